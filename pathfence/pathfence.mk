# The path plane: PathFence. Included from the top-level Makefile.
.PHONY: pathfence-vectors pathfence-simulation

pathfence-vectors: ## write the test vectors from the reference model
	$(GO) test ./pathfence/spec/model -run '^TestVectorsAreUpToDate$$' -count=1 -args -write-vectors

pathfence-simulation: ## the simulation's table: all arms, scales, disturbances and traces
	@$(GO) test ./pathfence/spec/model/sim -run '^TestTable$$' -count=1 -timeout 0 -v -args -all
