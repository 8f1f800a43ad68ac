# The path plane: PathFence. Included from the top-level Makefile.
.PHONY: pathfence-deps pathfence-build pathfence-test pathfence-go-test pathfence-java-build pathfence-java-test pathfence-sanitize pathfence-vectors pathfence-simulation pathfence-bench-build pathfence-bench-java-build pathfence-bench pathfence-bench-java pathfence-bench-lab pathfence-report pathfence-example

export CMAKE_BUILD_PARALLEL_LEVEL := $(shell nproc)
PATHFENCE_CPP := cd pathfence/cpp && cmake
# Maven runs for a minute at most: time that a better compiler takes does not come back.
MVN := MAVEN_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC $$MAVEN_OPTS" mvn --batch-mode --no-transfer-progress
PATHFENCE_MVN := cd pathfence/java && $(MVN)
BENCH := $(CURDIR)/build/pathfence/bench
BENCH_JAR := $(CURDIR)/pathfence/bench/java/target/service.jar
BENCH_MVN := cd pathfence/bench/java && $(MVN) --quiet

pathfence-deps: ## install what the path plane needs (root)
	@pathfence/deps.sh

pathfence-build: ## the path plane's C++ library and its tests, in build/pathfence/
	$(PATHFENCE_CPP) --preset release >/dev/null
	$(PATHFENCE_CPP) --build --preset release

pathfence-example: pathfence-build pathfence-top ## install the C++ library in build/pathfence/prefix; build and try a consumer
	cmake --install build/pathfence/release --prefix build/pathfence/prefix >/dev/null
	cmake -S pathfence/examples/cpp -B build/pathfence/example -DCMAKE_PREFIX_PATH=$(CURDIR)/build/pathfence/prefix >/dev/null
	cmake --build build/pathfence/example
	pathfence/examples/cpp/check build/pathfence/example/shop bin/pathfence

pathfence-test: pathfence-build pathfence-bench-build pathfence-example ## the C++ tests: vectors, leaks, wire, Thrift servers and clients; an example; a short run of the benchmark
	cd pathfence/cpp && ctest --preset release
	$(GO) test -tags pathfence ./pathfence/bench -args -node $(BENCH)/pathfence-bench-node

pathfence-go-test: ## the Go tests: the algorithm with its vectors and simulation; HTTP and gRPC servers, with the race detector
	cd pathfence/go && $(GO) test ./core/... ./internal/... ./pathfenceprom
	cd pathfence/go && CGO_ENABLED=1 $(GO) test -race . ./pathfencegrpc

pathfence-java-build: ## the path plane's Java artifacts, into ~/.m2
	$(PATHFENCE_MVN) --quiet install -DskipTests

pathfence-java-test: pathfence-bench-build ## the Java tests, and the example and the benchmark against what they made
	$(PATHFENCE_MVN) install
	cd pathfence/examples/java && $(MVN) --quiet package
	$(BENCH_MVN) package
	$(GO) test -tags pathfence ./pathfence/bench -args -node $(BENCH)/pathfence-bench-node -java $(BENCH_JAR)

# All C++ tests run under both, with fewer operations; but ThreadSanitizer without Thrift: the distribution's library is not
# instrumented, and hand-overs through it are reported; whether each is the library's has not been proven.
pathfence-sanitize: ## the C++ tests under ThreadSanitizer and AddressSanitizer
	for preset in thread address; do \
		(cd pathfence/cpp && cmake --preset $$preset >/dev/null && cmake --build --preset $$preset && ctest --preset $$preset) || exit 1; \
	done

pathfence-vectors: ## write the test vectors from the reference model
	cd pathfence/go && $(GO) test ./core -run '^TestVectorsAreUpToDate$$' -args -write-vectors

pathfence-simulation: ## the simulation's table: all arms, scales, disturbances and traces
	@cd pathfence/go && $(GO) test ./core/sim -run '^TestTable$$' -timeout 0 -v -args -all

pathfence-bench-build: ## the benchmark's programs, in build/pathfence/bench/
	cmake -S pathfence/bench/cpp -B $(BENCH) >/dev/null
	cmake --build $(BENCH)
	$(GO) build $(STATIC) -o $(BENCH)/bench ./pathfence/bench

pathfence-bench-java-build: pathfence-java-build ## the benchmark's Java service
	$(BENCH_MVN) package

# QUICK=1: a look. JSON=FILE: the record. Further flags in BENCH_FLAGS.
BENCH_CHOICE = --node $(BENCH)/pathfence-bench-node $(if $(QUICK),--quick) $(if $(JSON),--json $(JSON)) $(BENCH_FLAGS)
BENCH_RUN = $(BENCH)/bench $(BENCH_CHOICE)
pathfence-bench: pathfence-bench-build ## what the fence does to two paths that share a service, beside what else one can do: C++; pathfence/bench/README.md
	$(BENCH_RUN)

pathfence-bench-java: pathfence-bench-build pathfence-bench-java-build ## the same in Java
	$(BENCH_RUN) --java $(BENCH_JAR)

pathfence-report: ## records/pathfence/report.html: all records of the path plane as one page
	$(GO) run ./pathfence/bench report records/pathfence/*.json --html records/pathfence/report.html

# One guest at a time: a repetition is one. What JSON=FILE has of the same plan and build is not done again.
pathfence-bench-lab: temper temper-lab sched guest pathfence-bench-build ## the deciding part of it in the deterministic lab, whatever else this machine does; 40 minutes
	$(BENCH)/bench lab --lab bin/temper-lab $(BENCH_CHOICE)
