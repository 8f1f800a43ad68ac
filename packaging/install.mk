# make install, make uninstall: the programs, the service and a first configuration.
# DESTDIR is for packages; PREFIX is where the programs go.
PREFIX ?= /usr/local
DESTDIR ?=
UNITDIR ?= $(PREFIX)/lib/systemd/system

.PHONY: install uninstall

install: ## install bin/ and the service; configuration in /etc/temper (DESTDIR, PREFIX)
	@for f in bin/temper bin/scx_temper; do [ -x $$f ] || { echo "no $$f: run 'make build' first" >&2; exit 1; }; done
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(UNITDIR) $(DESTDIR)/etc/temper
	install -m 0755 bin/temper bin/scx_temper $(DESTDIR)$(PREFIX)/bin/
	sed 's|@PREFIX@|$(PREFIX)|g' packaging/temper.service > $(DESTDIR)$(UNITDIR)/temper.service
	chmod 0644 $(DESTDIR)$(UNITDIR)/temper.service
	@# A configuration that is there is the operator's.
	[ -e $(DESTDIR)/etc/temper/temper.yaml ] || install -m 0644 packaging/temper.yaml $(DESTDIR)/etc/temper/temper.yaml
	@if [ -z "$(DESTDIR)" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
	@echo "installed; 'temper doctor' checks this node, 'systemctl enable --now temper' puts it in force"

uninstall: ## stop the service and remove what install put there; /etc/temper stays
	@if [ -z "$(DESTDIR)" ] && [ -d /run/systemd/system ]; then systemctl disable --now temper 2>/dev/null || true; fi
	@[ -n "$(DESTDIR)" ] || rm -rf /run/temper
	rm -f $(DESTDIR)$(PREFIX)/bin/temper $(DESTDIR)$(PREFIX)/bin/scx_temper $(DESTDIR)$(UNITDIR)/temper.service
	@if [ -z "$(DESTDIR)" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
