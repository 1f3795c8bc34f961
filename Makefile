# The tasks of this repository; `make help` lists them.
#
# The repository has several modules, which go.work lists. The pattern ./... covers only
# one module, so most targets visit every module. They set GOWORK=off, so that a module is
# checked with its own go.mod, as its users get it. Only `make build` also builds in the
# workspace.

GO         ?= go
FUZZTIME   ?= 10000x
MODE       ?= quick
BENCHTIME  ?= 1s
BENCHCOUNT ?= 6
TESTFLAGS  ?=
STRESS     ?= long
MODEL      ?= 1000000
COUNT      ?= 20
SOAK       ?= 30m
LOAD       ?= 50

# Only the race detector needs cgo: the repository has no C code.
NOCGO := CGO_ENABLED=0

# By default, a program with the race detector sleeps for 1 s before it exits. The tests
# run some hundred programs, so 50 ms must do.
DETECTOR := GORACE='atexit_sleep_ms=50 $(GORACE)'

STATICCHECK_VERSION := v0.8.2
STATICCHECK         := $(CURDIR)/.bin/staticcheck-$(STATICCHECK_VERSION)

GOVULNCHECK_VERSION := v1.1.4
GOVULNCHECK         := $(CURDIR)/.bin/govulncheck-$(GOVULNCHECK_VERSION)

# The directories of the modules, the core first.
MODULES := $(shell GOWORK='$(CURDIR)/go.work' $(GO) list -m -f '{{.Dir}}')
$(if $(MODULES),,$(error `$(GO) list -m` names no modules))

# $(call each,TITLE,COMMAND) runs COMMAND in every module, until one fails.
define each
$(call each_of,$(MODULES),$(1),$(2))
endef

define each_of
@set -e; for dir in $(1); do \
	printf '\n-- %s: .%s\n' '$(2)' "$${dir#$(CURDIR)}"; \
	( cd "$$dir" && export GOWORK=off && $(3) ); \
done
endef

# The systems for which `make cross` vets every module.
CROSS ?= darwin/arm64 windows/amd64 freebsd/amd64 linux/386 linux/arm64

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## download the dependencies of all modules and their tests
	@set -e; for dir in $(MODULES); do (cd "$$dir" && GOWORK=off $(GO) list -deps -test ./... >/dev/null); done

.PHONY: build
build: ## build every module by itself, and the command in the workspace
	$(call each,build,$(NOCGO) $(GO) build -o /dev/null ./...)
	GOWORK='$(CURDIR)/go.work' $(NOCGO) $(GO) build -o /dev/null ./cmd/tickless

# The tests of redisstore and pgstore mostly wait, so they start first, and other modules
# run at the same time. The tests of internal/conformance measure how late timers fire, so
# they run alone at the end.
FIRST := $(addprefix $(CURDIR)/,durable/redisstore durable/pgstore)
QUIET_ENV := TICKLESS_CONFORMANCE=off TICKLESS_CHAOS=off

# Without a server, its modules are skipped. In CI, the need-* scripts install what is
# missing, and fail if they cannot. They run before anything is downloaded.
.PHONY: test
test: need-browser need-prometheus ## run the tests of every module, in random order; skips modules whose server is missing
	@skip=; \
	./scripts/need-redis || { [ '$(CI)' != true ] && skip="$$skip $(CURDIR)/durable/redisstore"; } || exit 1; \
	./scripts/need-postgres || { [ '$(CI)' != true ] && skip="$$skip $(CURDIR)/durable/pgstore"; } || exit 1; \
	$(MAKE) --no-print-directory deps && \
	$(NOCGO) $(QUIET_ENV) SKIP="$$skip" ALONE=./internal/conformance GO='$(GO)' ./scripts/test test 2 $(FIRST) $(filter-out $(FIRST),$(MODULES)) -- -shuffle=on -timeout 20m $(TESTFLAGS)

# The modules with concurrent code.
CONCURRENT := $(filter-out $(addprefix $(CURDIR)/,benchmarks cmd/tickless examples migrate),$(MODULES))

.PHONY: race
race: need-cgo need-redis need-postgres ## run the tests of the modules with concurrent code, with the race detector
	@$(DETECTOR) $(QUIET_ENV) GO='$(GO)' ./scripts/test race 2 $(FIRST) $(filter-out $(FIRST),$(CONCURRENT)) -- -race -short -shuffle=on -timeout 20m $(TESTFLAGS)

# The race detector needs a C compiler, except on macOS.
.PHONY: need-cgo
need-cgo:
	@if [ "$$($(GO) env GOOS)" != darwin ] && ! { [ "$$($(GO) env CGO_ENABLED)" = 1 ] \
		&& command -v "$$($(GO) env CC | cut -d' ' -f1)" >/dev/null; }; then \
		echo 'make: the race detector needs cgo and a C compiler; install gcc (or clang), or run `make test`' >&2; \
		exit 1; \
	fi

# The tests of redisstore start their own Redis servers.
.PHONY: need-redis
need-redis:
	@./scripts/need-redis

# The tests of pgstore start their own PostgreSQL servers.
.PHONY: need-postgres
need-postgres:
	@./scripts/need-postgres

# Without a browser, the tests that need one are skipped.
.PHONY: need-browser
need-browser:
	@./scripts/need-browser

# Tests of observe/prom check its output with Prometheus. Without it, they are skipped.
.PHONY: need-prometheus
need-prometheus:
	@./scripts/need-prometheus

# scripts/flaky explains its variables, such as RACE=1, PACKAGES, TESTS and JOBS.
.PHONY: flaky
flaky: need-redis need-postgres ## look for tests that fail sometimes: run all tests COUNT times on a busy machine
	@GO='$(GO)' ./scripts/flaky $(COUNT) $(MODULES)

.PHONY: test32
test32: ## run the core's tests as 32-bit programs, or only build them if this machine cannot run them
	@set -e; export GOWORK=off GOARCH=386 CGO_ENABLED=0 TICKLESS_CONFORMANCE=off; \
	probe=$$(mktemp); trap 'rm -f "$$probe"' EXIT; \
	$(GO) test -c -o "$$probe" ./internal/closed; \
	if "$$probe" -test.run '^$$' >/dev/null 2>&1; then $(GO) test $(TESTFLAGS) ./...; else \
		echo 'test32: this machine cannot run 32-bit programs: the tests are only built' >&2; \
		$(GO) test -exec true $(TESTFLAGS) ./... >/dev/null; \
	fi

# The oldest version of Go that the core's go.mod allows, with an early patch, and the newest.
COMPAT ?= go1.25.1 go1.27.0

.PHONY: compat
compat: ## run the core's tests and build for other systems, with each version of Go in COMPAT
	@set -e; for v in $(COMPAT); do echo "-- compat: $$v"; export GOTOOLCHAIN=$$v GOWORK=off; \
		TICKLESS_CONFORMANCE=off $(GO) test -short $(TESTFLAGS) ./...; \
		$(GO) test $(TESTFLAGS) ./internal/conformance; \
		for target in linux/386 linux/arm64 darwin/arm64 windows/amd64 freebsd/amd64 js/wasm; do \
			GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build ./...; done; done

.PHONY: stress
stress: need-cgo ## run the long stress tests of the core with the race detector
	GOWORK=off TICKLESS_STRESS=$(STRESS) $(GO) test -race -count=1 -timeout 0 -run Stress -v ./...

.PHONY: model
model: ## run the model tests of the core with MODEL operations
	GOWORK=off TICKLESS_MODEL=$(MODEL) $(GO) test -count=1 -timeout 0 -run Model -v ./...
	GOWORK=off TICKLESS_CRON=1 $(GO) test -count=1 -timeout 0 -run TestCron ./jobs

# Other goroutines compute for LOAD percent of their time.
.PHONY: soak
soak: ## use all kinds of timers together for the time SOAK; check timers, memory, goroutines and file descriptors
	GOWORK=off TICKLESS_SOAK=$(SOAK) TICKLESS_SOAK_LOAD=$(LOAD) $(GO) test -count=1 -timeout 0 -v ./internal/soak

.PHONY: mutants
mutants: ## break the code as internal/mutants/list.txt says, and check that tests fail; MUTANT selects changes; takes minutes
	GOWORK=off $(GO) run ./internal/mutants -match '$(MUTANT)'

# The environment of durable/internal/simulation, which explains the variables.
SIMULATION_ENV = TICKLESS_SEED='$(SEED)' TICKLESS_SEEDS='$(SEEDS)' TICKLESS_WITHOUT='$(WITHOUT)' TICKLESS_STORM='$(STORM)'

.PHONY: simulation
simulation: ## play all of durable from seeds, on memstore and SQLite: SEEDS=1000 or SEEDS=11-20; SEED=17, also WITHOUT=loss,worker1 STORM=5s
	cd durable && GOWORK=off $(NOCGO) $(SIMULATION_ENV) $(GO) test -count=1 -timeout 0 -run '^TestSimulation_Seeds$$' -v ./internal/simulation
	cd durable/sqlitestore && GOWORK=off $(NOCGO) $(SIMULATION_ENV) $(GO) test -count=1 -timeout 0 -run '^TestSimulation_Seeds$$' -v .

.PHONY: simulation-mutants
simulation-mutants: ## break durable as internal/simulation/mutants.txt says, and check that 500 seeds notice; MUTANT selects changes; takes an hour
	GOWORK=off TICKLESS_SEEDS=500 TICKLESS_SHRINK=off $(GO) run ./internal/mutants -C durable -list internal/simulation/mutants.txt -timeout 10m -match '$(MUTANT)'

.PHONY: conformance
conformance: ## run Go's own timer tests on package timer, five times
	GOWORK=off TICKLESS_CONFORMANCE=long $(GO) test -count=1 -timeout 0 -v ./internal/conformance

# `make test` runs the short cases too.
.PHONY: chaos
chaos: need-redis need-postgres ## test redisstore, sqlitestore and pgstore with injected faults, and deploys; CASES selects tests of redisstore; takes minutes
	cd durable/redisstore && GOWORK=off TICKLESS_CHAOS=long $(GO) test -count=1 -timeout 30m -run '$(CASES)' -v ./internal/chaos
	cd durable/redisstore && GOWORK=off TICKLESS_CHAOS=long $(GO) test -count=1 -timeout 30m -run AOF .
	cd durable/sqlitestore && GOWORK=off TICKLESS_CHAOS=long $(GO) test -count=1 -timeout 30m -skip '^TestStore' -v .
	cd cmd/tickless && GOWORK=off TICKLESS_CHAOS=long $(GO) test -count=1 -v -run 'Deploy|ThreeNodes' ./internal/deploy ./internal/serve
	cd durable/pgstore && GOWORK=off $(GO) test -count=20 -timeout 30m -run 'Faults|ScheduleTx' .

.PHONY: day
day: need-redis need-postgres ## print figures of the ordinary day of durable tasks, with real workers on each store; DAY selects tests; takes minutes
	cd cmd/tickless && GOWORK=off TICKLESS_CHAOS=long $(GO) test -count=1 -timeout 30m -parallel 1 -v -run 'Day_$(DAY)' ./internal/deploy

.PHONY: page-picture
page-picture: ## make docs/debug-page.png, a picture of the debug page under load; needs Chromium
	@GO='$(GO)' ./scripts/page-picture

.PHONY: migrate-modules
migrate-modules: ## rewrite six public modules with tickless migrate, and run their tests; takes minutes
	@GO='$(GO)' ./scripts/migrate-modules

.PHONY: fuzz-smoke
fuzz-smoke: ## run every fuzz target for FUZZTIME, such as 10000x inputs or 1m
	@GO='$(GO)' ./scripts/fuzz-smoke $(FUZZTIME) $(MODULES)

.PHONY: lint
lint: fmt vet staticcheck tidy vet32 ## run fmt, vet, staticcheck, tidy and vet32

.PHONY: fmt
fmt: ## list the files that gofmt would change
	@set -e; files=$$(git ls-files --cached --others --exclude-standard '*.go'); \
	if [ -z "$$files" ]; then echo 'fmt: git lists no Go files here' >&2; exit 1; fi; \
	unformatted=$$(gofmt -l $$files); \
	if [ -n "$$unformatted" ]; then \
		printf 'gofmt would change:\n%s\n' "$$unformatted" >&2; exit 1; \
	fi

.PHONY: vet
vet: ## run go vet over every module
	$(call each,vet,$(NOCGO) $(GO) vet ./...)

.PHONY: staticcheck
staticcheck: $(STATICCHECK) ## run staticcheck over every module
	$(call each,staticcheck,$(NOCGO) $(STATICCHECK) ./...)

$(STATICCHECK):
	mkdir -p $(@D)
	GOWORK=off GOBIN='$(@D)' $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
	mv '$(@D)/staticcheck' $@

.PHONY: vulncheck
vulncheck: ## look for known vulnerabilities in what each module uses; skipped without their database
	@[ -x '$(GOVULNCHECK)' ] || { mkdir -p .bin; GOWORK=off GOBIN='$(CURDIR)/.bin' $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) && \
		mv .bin/govulncheck '$(GOVULNCHECK)'; } || true
	@./scripts/vulncheck '$(GOVULNCHECK)' $(MODULES)

.PHONY: tidy
tidy: ## show what go mod tidy would change
	$(call each,tidy,$(GO) mod tidy -diff)

VERSION ?= v0.1.0

.PHONY: release
release: ## prepare the release VERSION: check it, and commit what the tags belong on
	./scripts/release $(VERSION)

.PHONY: release-check
release-check: ## get and build each module as a user does after a release, and install the command
	cd migrate && GOWORK=off $(GO) run ../scripts/modules/main.go check $(VERSION)

.PHONY: vet32
vet32: ## run go vet over the core for a 32-bit system
	GOWORK=off $(NOCGO) GOARCH=386 $(GO) vet ./...

.PHONY: cross
cross: ## run go vet over every module for each system in CROSS
	@set -e; for target in $(CROSS); do for dir in $(MODULES); do \
		printf -- '-- vet for %s: .%s\n' $$target "$${dir#$(CURDIR)}"; \
		(cd "$$dir" && GOWORK=off $(NOCGO) GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) vet ./...); \
	done; done

.PHONY: nightly
nightly: ## run all the long tests: fuzz-smoke, compat, cross, stress, soak, mutants and others; takes hours
	@set -e; for target in fuzz-smoke compat cross test32 stress model conformance chaos soak mutants bench-once; do \
		printf '\n==== make %s\n' $$target; $(MAKE) --no-print-directory $$target; done
	$(MAKE) --no-print-directory simulation SEEDS=1000
	@echo 'make nightly: all passed'

# With -short, the workloads of package benchmarks are very small.
.PHONY: bench-once
bench-once: ## run each benchmark once, to check that it works
	$(call each,benchmarks once,tested=$$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./...) || exit 1; \
		packages=$$(printf '%s\n' "$$tested" | \
			while read -r path dir; do ! grep -qs '^func Benchmark' "$$dir"/*_test.go || echo "$$path"; done); \
		[ -z "$$packages" ] || $(NOCGO) $(GO) test -vet=off -short -run '^$$' -bench . -benchtime 1x -timeout 15m $$packages)

# With BENCH, only matching benchmarks run, and only their raw output is printed. A $ in BENCH
# needs no escape.
.PHONY: bench
bench: ## run the benchmarks of MODE (quick, full, busy, rates, sweep, contexts, stores, postgres or redis) for results/MODE.md; or those that match BENCH
ifdef BENCH
	cd benchmarks && GOWORK=off TICKLESS_BENCH=$(MODE) $(GO) test -run '^$$' -bench '$(value BENCH)' -benchtime $(BENCHTIME) -count $(BENCHCOUNT) -timeout 0 ./peers
else
	GO='$(GO)' ./scripts/bench $(MODE)
	cd benchmarks && GOWORK=off $(GO) run ./report -mode $(MODE)
endif

.PHONY: cover
cover: ## write coverage.txt and print the core's coverage
	GOWORK=off $(GO) test -coverpkg ./... -coverprofile coverage.txt ./...
	GOWORK=off $(GO) tool cover -func coverage.txt | tail -n 1

.PHONY: clean
clean: ## remove the files that the targets make
	rm -rf .bin .flaky coverage.txt
