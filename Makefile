# Temper. `make` alone lists what there is to do.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO ?= go
CC ?= gcc

# For all of Go, whether it builds, tests or vets: with flags of its own, each would have every library compiled anew.
# -trimpath and -buildvcs=false: equal sources give equal programs, committed or not, and the lab's hashes stay.
# -vet=off: 'make lint' vets tests, too, and would read every library once more for another set of checks.
# -count=1: of files outside of a module, and of what a test's commands read, go does not notice that they have changed.
# What the user has set stays.
export CGO_ENABLED := 0
FLAGS := -trimpath -buildvcs=false -vet=off -count=1
export GOFLAGS := $(filter-out $(FLAGS),$(GOFLAGS)) $(FLAGS)
STATIC := -ldflags='-s -w'
CFLAGS_GUEST := -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -static -pthread
GUEST_LOAD := chain churn cost crowd httpload lateness mcload pgload preempt quantum reach readers redisload resize share spin web work

# One version for all. COMMIT is a release's ('make dist'): programs of other builds change with their sources only.
VERSION := $(shell cat VERSION)
COMMIT ?=
export COMMIT
LDFLAGS_COMMIT = -s -w -X temper.dev/temper.commit=$(COMMIT)
STAMP_COMMIT = -ldflags='$(LDFLAGS_COMMIT)'
STAMP = -ldflags='$(LDFLAGS_COMMIT) -X temper.dev/temper.object=$(shell sha256sum build/temper.bpf.o | cut -c1-64)'

include packaging/install.mk
include packaging/dist.mk
include docs/docs.mk
include pathfence/pathfence.mk

.PHONY: version hogs vet-tools nightly reach scale capacity-scale images chart e2e e2e-quick kubernetes-node temper-agent temper-controller guest-tests kubernetes test-kubernetes generate kubectl-temper pathfence-top demo jvm-service records chaos soak kernels peers topologies test-chaos help deps lab-deps build temper temper-lab sched guest test test-unit test-guests test-services test-guest test-timed test-lab lint check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: lab-deps pathfence-deps ## install what the build, the tests and the lab need (root)

lab-deps:
	@scripts/deps.sh

build: temper temper-lab kubectl-temper pathfence-top sched guest ## bin/temper, bin/temper-lab, bin/kubectl-temper, bin/pathfence, bin/scx_temper, and the lab's guest in build/

temper: sched | bin
	$(GO) build $(STAMP) -o bin/temper ./cmd/temper

temper-lab: sched | bin
	$(GO) build $(STAMP) -o bin/temper-lab ./cmd/temper-lab

# It belongs to no scheduler.
pathfence-top: | bin
	$(GO) build $(STAMP_COMMIT) -o bin/pathfence ./cmd/pathfence

temper-agent: sched | bin ## bin/temper-agent: what runs on a node of a cluster
	$(GO) build $(STAMP) -o bin/temper-agent ./cmd/temper-agent

temper-controller: sched | bin
	$(GO) build $(STAMP) -o bin/temper-controller ./cmd/temper-controller

kubectl-temper: sched | bin ## bin/kubectl-temper: the plugin for kubectl
	$(GO) build $(STAMP) -o bin/kubectl-temper ./cmd/kubectl-temper

sched: | bin build/guest
	$(MAKE) -C sched

guest: $(GUEST_LOAD:%=build/guest/%) | build/guest
	$(GO) build $(STATIC) -o build/guest/init ./lab/guest
	$(GO) build $(STATIC) -o build/guest/chaos ./lab/guest/chaos
	$(GO) build $(STATIC) -o build/guest/goservice ./lab/guest/goservice

build/guest/%: lab/guest/load/%.c $(wildcard lab/guest/load/*.h) | build/guest
	$(CC) $(CFLAGS_GUEST) -o $@ $< -lm

jvm-service: | build/guest ## the JVM service of 'temper-lab limits jvm'; needs javac
	javac --release 17 -Xlint:all -Werror -d build/guest/jvmservice lab/guest/jvmservice/Service.java

bin build/guest build/images:
	@mkdir -p $@

demo: lab-deps build ## what Temper does to two services, in 12 to 15 minutes; report in temper-demo/
	@bin/temper-lab demo

records: build peers ## measure all that the claims stand on; takes about four hours, can be interrupted and run again
	@scripts/records.sh records

# Two lines of tests, each for about half of the time. The guests have bounds of time for each step that they wait for, so that
# what runs beside most of them gives way.
test: deps build jvm-service test-unit test-packages ## the tests that CI runs
	$(MAKE) --jobs=2 test-guests test-services

test-guests:
	$(MAKE) --jobs=1 test-guest test-lab

test-services:
	nice $(MAKE) --jobs=1 test-kubernetes pathfence-go-test pathfence-test
	$(MAKE) --jobs=1 pathfence-java-test

test-unit: temper temper-lab kubectl-temper temper-agent temper-controller sched ## the tests that need no guest
	$(GO) test ./...
	$(GO) test -tags object ./test/object .
	cd tools/chart && $(GO) test .
	cd tools/alerts && $(GO) test .
	cd tools/sbom && $(GO) test .

kubernetes: ## etcd, kube-apiserver, kube-scheduler and helm from source, in build/kubernetes/: tests run against them; the first time takes 8 minutes
	scripts/kubernetes.sh build/kubernetes etcd kube-apiserver kube-scheduler helm

test-kubernetes: kubernetes kubectl-temper temper-agent temper-controller ## what Temper adds to a cluster, in a real API server
	TEMPER_KUBERNETES=$(CURDIR)/build/kubernetes $(GO) test -timeout 35m -tags kubernetes ./test/kubernetes
	cd tools/chart && TEMPER_KUBERNETES=$(CURDIR)/build/kubernetes $(GO) test -tags kubernetes -run 'RandomValues|Platforms|QuotaForClasses|SCC' .

scale: kubernetes temper-agent ## what the agent takes on a node of 110 pods, and with 20 pods a second: records/agent; an API server that is away for 10 minutes; takes 17
	TEMPER_KUBERNETES=$(CURDIR)/build/kubernetes $(GO) test -v -tags kubernetes,scale -timeout 40m ./test/kubernetes \
		-run 'TestScale|TestAnAPIServerThatGoes' -away 10m -records $(CURDIR)/records/agent

capacity-scale: ## what the planner finds for 1,000 nodes and 20,000 pods within a minute, and what that takes; takes 2 minutes on 2 CPUs
	$(GO) test -v -tags scale -timeout 20m ./internal/capacity/plan -run TestSize

kubernetes-node: lab-deps kubernetes ## what a whole cluster needs beside: controllers, kubelet, containerd; another 5 minutes
	nice scripts/kubernetes.sh build/kubernetes kube-controller-manager kubelet kubectl \
		containerd containerd-shim-runc-v2 ctr runc ptp loopback host-local

IMAGE := build/images/image
LINKED := libbpf-dev,libelf-dev,zlib1g-dev,libzstd-dev,libc6-dev
images: build temper-agent temper-controller | build/images ## Temper's container image, as an OCI archive, and its bill of materials: build/images/temper.tar, .cdx.json
	cd tools/image && $(GO) build -o $(CURDIR)/$(IMAGE) .
	$(IMAGE) temper.dev/temper:$(VERSION) build/images/temper.tar bin/temper-agent bin/scx_temper bin/temper bin/temper-controller
	cd tools/sbom && $(GO) run . $(CURDIR)/build/images/temper.cdx.json $(addprefix $(CURDIR)/bin/,temper-agent scx_temper=$(LINKED) temper temper-controller)

# Busybox is the lab's: what pods of the test run, and what holds a pod's namespaces.
# SYSTEMD=1: systemd is the node's first process, and makes the pods' cgroups.
e2e: ## Temper on a node with a real kubelet and containerd, in a virtual machine; SYSTEMD=1: with systemd; RECORDS=records/agent: keep what exec took
e2e-quick: E2E := -test.run '^(TestNodeIsReady|TestAgentEnforces|TestKubeletAndRuntimeAreSystem|TestStartPage|TestContainersAreConfined|TestRuntimeTellsTheAgent|TestTierBeforeFirstInstruction|TestPodsLandInTheirTiers)$$'
e2e-quick: ## of that, only: the node enforces, pods are in their tiers, and before their first instruction
e2e e2e-quick: ON_SYSTEMD := $(if $(SYSTEMD),-systemd)
e2e e2e-quick: lab-deps kubernetes-node images
	$(GO) build $(STATIC) -o build/images/tierof ./test/e2e/tierof
	$(GO) test -c -tags e2e -o build/e2e.test ./test/e2e
	build/e2e.test -fetch $(ON_SYSTEMD)
	cd test/e2e && timeout 3600 ../../scripts/e2e.sh ../../build/e2e.test -test.v $(E2E) $(ON_SYSTEMD) -image-tool $(CURDIR)/$(IMAGE) \
		-programs $(CURDIR)/build/kubernetes -images $(CURDIR)/build/images -keep $(CURDIR)/build/e2e $(if $(RECORDS),-records $(CURDIR)/$(RECORDS))

# Linked statically: the guest has no C library.
guest-tests: | build/guest
	$(GO) test -c -tags guest -o build/guest.test ./test/guest

# AppArmor's profiles as the kernel takes them, whatever this host's has.
ABI := /etc/apparmor.d/abi/3.0
PROFILES := charts/temper/apparmor/temper-agent test/guest/testdata/containerd-default
PROFILED := $(addprefix build/apparmor/,$(notdir $(PROFILES)))
build/apparmor/%: $(PROFILES) | build/guest
	@mkdir -p build/apparmor
	/sbin/apparmor_parser --quiet --skip-kernel-load --skip-cache --policy-features $(ABI) --kernel-features $(ABI) -o $@ $(filter %/$*,$(PROFILES))

# Tests named TestTimed... measure time, and want the deterministic machine: test-timed.
test-guest: build guest-tests $(PROFILED) ## scheduler, loader and agent in a real kernel, in an emulated machine
	timeout 3200 bin/temper-lab exec --timeout 3000s --cpus 2 --console build/console.log --file /guest.test=build/guest.test \
		$(foreach p,$(PROFILED),--file /apparmor/$(notdir $p)=$p) -- \
		/guest.test -test.v -test.timeout 48m -test.skip '^Test(Timed|Interrupted|Nightly|Topology|CoreScheduling)' || { status=$$?; cat build/console.log; exit $$status; }
	bin/temper-lab survey --kernels 6.18 --check records/kernels.json
	$(MAKE) topologies TOPOLOGIES=1x2x2
	$(MAKE) topologies TOPOLOGIES=2x2x1 SKIP=ManyCPUs

TOPOLOGIES := 1x2x1 1x2x2 2x2x1 1x4x2 1x8x1 2x4x2
# SKIP: a pattern of tests that are left out.
topologies: SKIP := none
topologies: build guest-tests ## fences, loans and SMT, on machines of several shapes: sockets x cores x threads
	for shape in $(TOPOLOGIES); do \
		timeout 1500 bin/temper-lab exec --timeout 900s --topology $$shape --console build/console.log --file /guest.test=build/guest.test -- \
			/guest.test -test.v -test.run '^TestTopology' -test.skip '$(SKIP)' || { status=$$?; cat build/console.log; exit $$status; } \
	done

test-timed: build guest-tests ## the tests of figures, on the deterministic machine; takes 20 minutes and more
	scripts/timed.sh '^Test(Timed|Interrupted)'

reach: build guest-tests ## what a user can reach, all tricks and locks of the threat model, on the deterministic machine; takes 20 minutes
	timeout 2500 bin/temper-lab exec --timeout 2400s --cpus 3 --deterministic --file /guest.test=build/guest.test -- \
		/guest.test -test.v -test.timeout 40m -test.run '^TestNightly(Reach|SharedLocks|ManyReadersBesideStandard|UsersCgroupsRefuseNoScheduler)$$'

HOG_KERNELS := 6.12 6.18 6.19 7.0 7.3
hogs: build guest-tests ## two minutes of real-time tasks that never sleep, on each kernel; takes 15 minutes
	scripts/upstream.sh 6.12
	set -e; for kernel in $(HOG_KERNELS); do \
		timeout 900 bin/temper-lab exec --timeout 800s --kernel $$kernel --cpus 2 --file /guest.test=build/guest.test -- \
			/guest.test -test.v -test.run '^TestNightlyRealTimeHogsAreThrottled$$'; done

# A few files, and the libraries of Helm and Prometheus, which an analysis reads whole.
vet-tools: ## vet the tools that stand on large libraries; takes 5 minutes
	cd tools/chart && $(GO) vet -tags kubernetes .
	cd tools/alerts && $(GO) vet .

nightly: reach hogs vet-tools test-timed e2e ## what takes too long for CI; 80 minutes, by their sum

# The same seed twice gives the same record, to the last digit; on the way, a bursty service and a
# ladder that goes up and down.
SHORT_LADDER := chain --arms temper --steps 0,2 --up-down --bursty --seconds 1 --warm-up 0.5
# Where equal arms differ by chance in windows so short, the A/A study says by how much. From 2
# spinners on: at 1, strictness bounds the background work (docs/decisions/0006).
GUARD := chain --arms cpuidle,temper --steps 0,2,4 --seconds 4 --warm-up 1
# One window may be past a bar by chance, which another build of the guest is enough for: what misses with one seed is judged
# by three.
MEASURE_GUARD = bin/temper-lab study $(GUARD) --out build/guard
JUDGE_GUARD = bin/temper-lab bench report build/guard/*.json --aa $(AA_RECORDS) --check >build/guard.txt
space := $(eval) $(eval)
comma := ,
AA_RECORDS = $(subst $(space),$(comma),$(wildcard records/aa/chain-*.json))

test-lab: build ## the lab is deterministic, and Temper keeps its bars against stock
	bin/temper-lab ladder $(SHORT_LADDER) --json build/lab-1.json >/dev/null & \
	bin/temper-lab ladder $(SHORT_LADDER) --json build/lab-2.json >/dev/null; second=$$?; wait $$! && exit $$second
	bin/temper-lab bench compare build/lab-1.json build/lab-2.json
	@# It leaves as its command does, also where something that was started goes on.
	bin/temper-lab exec --timeout 60s -- sh -c 'sleep 1000 & exit 3'; [ $$? = 3 ]
	$(GO) test -timeout 30m -tags lab ./test/lab
	rm -rf build/guard
	$(MEASURE_GUARD) --seeds 1
	$(JUDGE_GUARD) || { $(MEASURE_GUARD) --seeds 2-3 && $(JUDGE_GUARD) || { cat build/guard.txt; exit 1; }; }
	tail -n 1 build/guard.txt

# On the fast machine: each seed takes half a minute of a CPU, and ends differently each time. What the
# kernels of seeds with violations said is printed after them.
# One guest at a time: its three CPUs are threads of the host, and two guests on two CPUs gain no time.
CHAOS := bin/temper-lab chaos --fast --jobs 1 --console build/chaos
SAY = { status=$$?; cat build/chaos/*.log; exit $$status; }

# Other seeds with each commit; the same again where there is no history.
FIRST_SEED = $(shell printf '%d' 0x$$(git rev-parse --short=6 HEAD 2>/dev/null || echo 1))

test-chaos: build ## attack the scheduler, 10 seeds; and 3 minutes of critical work on all CPUs
	$(CHAOS) --first-seed $(FIRST_SEED) --seeds 10 || $(SAY)
	$(CHAOS) --seeds 1 --soak 3m || $(SAY)

# What is recorded there for the same scheduler is not done again; move records of an earlier one away first.
chaos: build ## attack the scheduler: records/chaos, 70 seeds in the host's time, 7 deterministic ones; takes two hours, can be interrupted
	mkdir -p records/chaos
	$(CHAOS) --seeds 70 --json records/chaos/fast.json || $(SAY)
	bin/temper-lab chaos --seeds 7 --json records/chaos/deterministic.json

soak: build ## half an hour of critical work on all CPUs, beside 64 background workers: records/chaos/soak.json; takes an hour
	mkdir -p records/chaos
	bin/temper-lab chaos --seeds 1 --soak 30m --json records/chaos/soak.json

peers: build ## the schedulers of others that Temper is compared with, in build/peers/; takes 10 minutes
	@scripts/peers.sh build/peers
	@cp lab/peers/*.json build/peers/

kernels: build guest-tests ## find out on which of the archive's kernels the scheduler works; records/kernels.json
	scripts/upstream.sh 6.12
	scripts/upstream.sh 7.3 lazy
	bin/temper-lab survey --kernels 6.12,lazy-7.3 --suite build/guest.test --json records/kernels.json
	timeout 900 bin/temper-lab exec --timeout 800s --kernel lazy-7.3 --topology 1x2x2 --file /guest.test=build/guest.test -- \
		/guest.test -test.v -test.run '^Test(Topology|CoreScheduling)'
	bin/temper-lab survey --suite build/guest.test --json records/kernels.json

generate: ## what follows from the API's types, deep copies and CustomResourceDefinitions; and the chart's manifests
	$(GO) tool -modfile=tools/go.mod controller-gen object crd paths=./api/... output:crd:dir=charts/temper/crds
	cd tools/chart && $(GO) run . manifests ../../charts/temper ../../packaging/kubernetes

chart: ## the Helm chart's archive, build/charts/temper-VERSION.tgz
	cd tools/chart && $(GO) run . package ../../charts/temper ../../build/charts

version: ## write what VERSION says to the files that are read without a build; then 'make generate docs'
	$(GO) test . -run '^TestFilesStateTheVersion$$' -args -write-version

GENERATED := api/*/zz_generated.deepcopy.go charts/temper/crds/*.yaml packaging/kubernetes/*.yaml packaging/kubernetes/crds/*.yaml
lint: ## formatting, vet, the scheduler's headers, and whether the generated source is up to date
	@before=$$(cat $(GENERATED) | sha256sum); $(MAKE) --no-print-directory generate || exit 1; \
	if [ "$$before" != "$$(cat $(GENERATED) | sha256sum)" ]; then echo "'make generate' has changed $(GENERATED): commit that"; exit 1; fi
	@unformatted=$$(gofmt -l api cmd internal lab packaging pathfence test tools); \
	if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(MAKE) --no-print-directory -C sched headers
	$(GO) vet -tags guest,kubernetes,lab,scale,e2e,object,packages,host,pathfence ./...
	cd pathfence/go && $(GO) vet ./...
	cd tools/image && $(GO) vet .
	cd tools/sbom && $(GO) vet .

check: lint test-unit ## before a commit: formatting, vet, generated files, and the tests that need no guest

clean: ## remove what was built; the lab's cache stays
	rm -rf bin build
	@if [ -f sched/Makefile ]; then $(MAKE) -C sched clean; fi
