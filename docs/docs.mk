.PHONY: docs

docs: ## write the generated documents: docs/reference, docs/figures.md, the plots, the figures of the README and docs/stock.md
	$(or $(GO),go) test ./cmd/... -run TestGeneratedDocsAreUpToDate -count=1 -args -write-docs
