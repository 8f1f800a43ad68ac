# make packages, make dist: what is installed without a compiler. The same sources give the same bytes: times are the commit's.
DIST := dist
ARCH := $(shell uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
export SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),0)
# A release says its commit; COMMIT= makes the programs say none. Made by a make of its own: what this one built before says none.
COMMIT_OF_RELEASE = $(if $(findstring command,$(origin COMMIT)),$(COMMIT),$(shell git describe --always --abbrev=40 --dirty=-changed --exclude='*' 2>/dev/null))
RELEASE = $(MAKE) --no-print-directory COMMIT=$(COMMIT_OF_RELEASE)
TAR := tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(SOURCE_DATE_EPOCH)
PACKAGE_ROOT := build/package/root

.PHONY: dist dist-pathfence packages test-packages kubectl-archives

# SIGN_KEY names the secret key of gpg that signs the release: a fingerprint, or a mail address. Nothing is signed without it.
SIGN_KEY ?=
SIGN := packaging/sign.sh '$(SIGN_KEY)'
MAVEN_FILES := -type f \( -name '*-$(VERSION)*.jar' -o -name '*-$(VERSION)*.pom' \)
dist: ## all that a release has, in dist/; SIGN_KEY=FINGERPRINT: signed with that key of gpg
	$(if $(SIGN_KEY),$(SIGN))
	rm -f $(DIST)/*.asc $(DIST)/*.prov
	$(RELEASE) packages kubectl-archives images chart dist-pathfence
	cp build/images/temper.tar $(DIST)/temper-image-$(VERSION)-$(ARCH).tar
	cp build/images/temper.cdx.json $(DIST)/temper-image-$(VERSION)-$(ARCH).cdx.json
	cp build/charts/temper-$(VERSION).tgz $(DIST)/
	$(if $(SIGN_KEY),$(SIGN) $(DIST)/temper_$(VERSION)-1_*.deb $(DIST)/temper-$(VERSION)-1*.rpm $(DIST)/temper-$(VERSION).tgz $$(find $(DIST)/maven $(MAVEN_FILES)))
	cd $(DIST) && { ls -d -- *$(VERSION)* kubectl-temper.yaml; find maven $(MAVEN_FILES); } | sort | xargs sha256sum >SHA256SUMS
	@$(if $(SIGN_KEY),$(SIGN) $(DIST)/SHA256SUMS,echo "$(DIST)/ is not signed: SIGN_KEY names no key")

packages: ## temper_VERSION_ARCH.deb and the .rpm, in dist/: programs, service, manual pages, completions
	$(RELEASE) build
	rm -rf $(PACKAGE_ROOT) && mkdir -p $(DIST)
	$(MAKE) --no-print-directory install DESTDIR=$(PACKAGE_ROOT) PREFIX=/usr
	rm -r $(PACKAGE_ROOT)/etc
	$(GO) test ./cmd/temper -run '^TestManualPages$$' -count=1 -args -man $(CURDIR)/$(PACKAGE_ROOT)/usr/share/man
	gzip -9n $(PACKAGE_ROOT)/usr/share/man/man*/*
	install -d $(PACKAGE_ROOT)/usr/share/bash-completion/completions $(PACKAGE_ROOT)/usr/share/zsh/vendor-completions \
		$(PACKAGE_ROOT)/usr/share/fish/vendor_completions.d $(PACKAGE_ROOT)/usr/share/doc/temper
	bin/temper completion bash >$(PACKAGE_ROOT)/usr/share/bash-completion/completions/temper
	bin/temper completion zsh >$(PACKAGE_ROOT)/usr/share/zsh/vendor-completions/_temper
	bin/temper completion fish >$(PACKAGE_ROOT)/usr/share/fish/vendor_completions.d/temper.fish
	install -m 0644 LICENSE CHANGELOG.md $(PACKAGE_ROOT)/usr/share/doc/temper/
	install -m 0644 LICENSES/GPL-2.0-only.txt $(PACKAGE_ROOT)/usr/share/doc/temper/LICENSE.scx_temper
	for format in deb rpm; do \
		VERSION=$(VERSION) ARCH=$(ARCH) $(GO) tool -modfile=tools/nfpm/go.mod nfpm package --config packaging/package/nfpm.yaml --packager $$format --target $(DIST)/ || exit 1; done

# The sources of C++ need VERSION where they find it.
dist-pathfence: ## PathFence: a Maven repository with sources and javadoc, and the C++ sources, in dist/
	mkdir -p $(DIST) && rm -rf $(DIST)/maven
	$(PATHFENCE_MVN) --quiet -Prelease -DskipTests \
		-Dproject.build.outputTimestamp=$(SOURCE_DATE_EPOCH) -DaltDeploymentRepository=dist::file://$(CURDIR)/$(DIST)/maven clean deploy
	git archive --prefix=temper-pathfence-cpp-$(VERSION)/ HEAD VERSION LICENSE LICENSES pathfence/README.md pathfence/cpp pathfence/spec | gzip -9n >$(DIST)/temper-pathfence-cpp-$(VERSION).tar.gz

# kubectl runs what is called kubectl-temper; krew installs it from the manifest, where the archives are at URL.
URL ?= https://temper.dev/temper/releases/$(VERSION)
PLATFORMS := linux-amd64 linux-arm64 darwin-amd64 darwin-arm64
kubectl-archives: sched ## kubectl-temper for Linux and macOS, and krew's manifest, in dist/
	mkdir -p $(DIST)
	set -e; for platform in $(PLATFORMS); do \
		dir=build/kubectl/$$platform; mkdir -p $$dir; cp LICENSE $$dir/; \
		GOOS=$${platform%-*} GOARCH=$${platform#*-} $(GO) build $(STAMP) -o $$dir/kubectl-temper ./cmd/kubectl-temper; \
		$(TAR) -C $$dir -c kubectl-temper LICENSE | gzip -9n >$(DIST)/kubectl-temper_$(VERSION)_$$platform.tar.gz; \
	done
	packaging/krew.sh $(VERSION) $(URL) $(DIST)/kubectl-temper_$(VERSION)_*.tar.gz >$(DIST)/kubectl-temper.yaml

test-packages: packages guest lab-deps ## the same packages twice; what dpkg makes of one, in a folder and on a host with systemd; signatures
	sha256sum $(DIST)/temper[_-]$(VERSION)-1* >build/package/sums && $(MAKE) --no-print-directory packages >/dev/null && sha256sum --check --quiet build/package/sums
	$(GO) test -count=1 -tags packages ./test/packages
	timeout 900 $(GO) test -count=1 -v -tags host ./test/host
