.PHONY: docs site

docs: ## write the generated documents: docs/reference, docs/figures.md, the plots, the figures of the README and docs/stock.md
	$(or $(GO),go) test ./cmd/... ./test/docs -run TestGeneratedDocsAreUpToDate -count=1 -args -write-docs

# Python's packages are pinned with their hashes; all is in build/site/.
SITE_ENV := build/site/env
site: lab-deps $(SITE_ENV)/installed ## the documents as a site, in build/site/html/; needs python3 with venv; fails where a link leads nowhere
	NO_MKDOCS_2_WARNING=1 $(SITE_ENV)/bin/mkdocs build --clean --config-file tools/site/mkdocs.yml

$(SITE_ENV)/installed: tools/site/requirements.txt | lab-deps
	python3 -m venv --clear $(SITE_ENV)
	$(SITE_ENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	touch $@
