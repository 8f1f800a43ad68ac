.PHONY: docs

docs: ## write the generated documents: docs/reference, docs/figures.md, docs/img, the README's figures
	$(or $(GO),go) test ./cmd/... -run TestGeneratedDocsAreUpToDate -count=1 -args -write-docs
