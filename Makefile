# What there is to do with this repository; `make help` lists it.
#
# The repository holds several modules, and ./... covers only the one you
# stand in, so every target walks over the modules that go.work names. It does
# so with GOWORK=off: each module is judged by its own go.mod, as its users get
# it, and not by the versions that the workspace picks for all of them
# together. (`make build` is what looks at the workspace.)

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

# Nothing here is in C. Where a package of the standard library, or another, has a part that
# is, the race detector's builds take it, and the others do not compile all twice.
NOCGO := CGO_ENABLED=0
DETECTOR := GORACE='atexit_sleep_ms=50 $(GORACE)'

STATICCHECK_VERSION := v0.8.2
STATICCHECK         := $(CURDIR)/.bin/staticcheck-$(STATICCHECK_VERSION)

# The directories of the modules, the core first.
MODULES := $(shell GOWORK='$(CURDIR)/go.work' $(GO) list -m -f '{{.Dir}}')
$(if $(MODULES),,$(error `$(GO) list -m` names no modules))

# $(call each,TITLE,COMMAND) runs COMMAND in every module and stops at the
# first that fails.
define each
$(call each_of,$(MODULES),$(1),$(2))
endef

define each_of
@set -e; for dir in $(1); do \
	printf '\n-- %s: .%s\n' '$(2)' "$${dir#$(CURDIR)}"; \
	( cd "$$dir" && export GOWORK=off && $(3) ); \
done
endef

# The modules that have files for one system only, the core first. The others' code is the
# same everywhere, and to vet it takes a minute of compiling what it needs.
CROSS := $(addprefix $(CURDIR)/,. benchmarks cmd/tickless durable durable/sqlitestore durable/redisstore)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## download what the modules and their tests need, and no more
	@set -e; for dir in $(MODULES); do (cd "$$dir" && GOWORK=off $(GO) list -deps -test ./... >/dev/null); done

.PHONY: build
build: ## build every module, alone and in the workspace
	$(call each,build,$(NOCGO) $(GO) build -o /dev/null ./...)
	GOWORK='$(CURDIR)/go.work' $(NOCGO) $(GO) build -o /dev/null ./cmd/tickless

# The store on Redis comes first: its tests mostly wait, and the other modules run beside
# them. Go's own timer tests, in internal/conformance, judge how late timers are by the real
# clock, so they run alone at the end.
FIRST := $(addprefix $(CURDIR)/,durable/redisstore)
QUIET_ENV := TICKLESS_CONFORMANCE=off TICKLESS_CHAOS=off

.PHONY: test
test: deps need-redis need-browser need-prometheus ## run the tests of every module, shuffled; needs Go and redis-server
	@$(NOCGO) $(QUIET_ENV) ALONE=./internal/conformance GO='$(GO)' ./scripts/test test 2 $(FIRST) $(filter-out $(FIRST),$(MODULES)) -- -shuffle=on $(TESTFLAGS)

# -short leaves out what takes minutes and runs the same code as another test. A program
# under the detector sleeps a second before it exits, so that goroutines that still run may
# show a race: there are some hundred, and a twentieth of it has to do.
CONCURRENT := $(filter-out $(addprefix $(CURDIR)/,benchmarks cmd/tickless examples migrate),$(MODULES))

.PHONY: race
race: need-cgo need-redis ## run the tests of the modules that start goroutines under the race detector
	@$(DETECTOR) $(QUIET_ENV) GO='$(GO)' ./scripts/test race 2 $(FIRST) $(filter-out $(FIRST),$(CONCURRENT)) -- -race -short -shuffle=on $(TESTFLAGS)

# The race detector links against the C library (except on macOS).
.PHONY: need-cgo
need-cgo:
	@if [ "$$($(GO) env GOOS)" != darwin ] && ! { [ "$$($(GO) env CGO_ENABLED)" = 1 ] \
		&& command -v "$$($(GO) env CC | cut -d' ' -f1)" >/dev/null; }; then \
		echo 'make: the race detector needs cgo and a C compiler; install gcc (or clang), or run `make test`' >&2; \
		exit 1; \
	fi

# The tests of redisstore start servers of their own.
.PHONY: need-redis
need-redis:
	@./scripts/need-redis

# Without one the tests that open a page in it are skipped.
.PHONY: need-browser
need-browser:
	@./scripts/need-browser

# Tests of observe/prom have Prometheus check what it is to read.
.PHONY: need-prometheus
need-prometheus:
	@./scripts/need-prometheus

# Beside a busy loop for each processor. Tests that fail now and then leave what they
# wrote in .flaky; RACE=1, PACKAGES, TESTS and JOBS are explained in the script.
.PHONY: flaky
flaky: need-redis ## run the tests of every module COUNT times over, shuffled, beside busy loops, and keep what fails
	@GO='$(GO)' ./scripts/flaky $(COUNT) $(MODULES)

.PHONY: test32
test32: ## run the core's tests as a 32-bit program, or build them where the kernel runs none
	@set -e; export GOWORK=off GOARCH=386 CGO_ENABLED=0 TICKLESS_CONFORMANCE=off; \
	probe=$$(mktemp); trap 'rm -f "$$probe"' EXIT; \
	$(GO) test -c -o "$$probe" ./internal/closed; \
	if "$$probe" -test.run '^$$' >/dev/null 2>&1; then $(GO) test $(TESTFLAGS) ./...; else \
		echo 'test32: this machine runs no 32-bit programs: the tests are built and not run' >&2; \
		$(GO) test -exec true $(TESTFLAGS) ./... >/dev/null; \
	fi

# The versions of Go besides the one in the PATH: an early patch of the oldest that the
# core's go.mod allows, and the newest.
COMPAT ?= go1.25.1 go1.27.0

.PHONY: compat
compat: ## run the core's tests and Go's own timer tests, and build for other systems, with the versions of Go in COMPAT
	@set -e; for v in $(COMPAT); do echo "-- compat: $$v"; export GOTOOLCHAIN=$$v GOWORK=off; \
		TICKLESS_CONFORMANCE=off $(GO) test -short $(TESTFLAGS) ./...; \
		$(GO) test $(TESTFLAGS) ./internal/conformance; \
		for target in linux/386 linux/arm64 darwin/arm64 windows/amd64 freebsd/amd64 js/wasm; do \
			GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build ./...; done; done

.PHONY: stress
stress: need-cgo ## run the long stress tests of the core under the race detector
	GOWORK=off TICKLESS_STRESS=$(STRESS) $(GO) test -race -count=1 -timeout 0 -run Stress -v ./...

.PHONY: model
model: ## run the model tests of the core for MODEL operations
	GOWORK=off TICKLESS_MODEL=$(MODEL) $(GO) test -count=1 -timeout 0 -run Model -v ./...

# Beside goroutines that compute for LOAD percent of their time.
.PHONY: soak
soak: ## use timers of all kinds at once for SOAK, with a ledger of each, memory, goroutines and descriptors
	GOWORK=off TICKLESS_SOAK=$(SOAK) TICKLESS_SOAK_LOAD=$(LOAD) $(GO) test -count=1 -timeout 0 -v ./internal/soak

.PHONY: mutants
mutants: ## make each change that internal/mutants/list.txt names, or those that match MUTANT, and see that its test fails; takes minutes
	GOWORK=off $(GO) run ./internal/mutants -match '$(MUTANT)'

.PHONY: conformance
conformance: ## run the toolchain's own timer tests against package timer, all of them, five times
	GOWORK=off TICKLESS_CONFORMANCE=long $(GO) test -count=1 -timeout 0 -v ./internal/conformance

# The cases are in durable/redisstore/internal/chaos, and beside the code of sqlitestore; what is
# short runs in make test too. CASES are those whose names match it.
.PHONY: chaos
chaos: need-redis ## run the fault cases of redisstore and sqlitestore, those that take minutes too; CASES are those that match it
	cd durable/redisstore && GOWORK=off TICKLESS_CHAOS=long $(GO) test -count=1 -timeout 30m -run '$(CASES)' -v ./internal/chaos
	cd durable/sqlitestore && GOWORK=off TICKLESS_CHAOS=long $(GO) test -count=1 -timeout 30m -skip '^TestStore' -v .

.PHONY: page-picture
page-picture: ## take the picture of the debug page that README shows, of a load that runs; needs Chromium
	@GO='$(GO)' ./scripts/page-picture

.PHONY: migrate-modules
migrate-modules: ## move six public modules here by tickless migrate, and run their tests; takes minutes
	@GO='$(GO)' ./scripts/migrate-modules

.PHONY: fuzz-smoke
fuzz-smoke: ## run every fuzz target for FUZZTIME: a number of inputs, or a duration
	@GO='$(GO)' ./scripts/fuzz-smoke $(FUZZTIME) $(MODULES)

.PHONY: lint
lint: fmt vet staticcheck tidy vet32 ## run every check that is no test

.PHONY: fmt
fmt: ## report files that gofmt would change
	@set -e; files=$$(git ls-files --cached --others --exclude-standard '*.go'); \
	if [ -z "$$files" ]; then echo 'fmt: git knows no Go files here' >&2; exit 1; fi; \
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

.PHONY: tidy
tidy: ## report what `go mod tidy` would change
	$(call each,tidy,$(GO) mod tidy -diff)

VERSION ?= v0.1.0

.PHONY: release-check
release-check: ## get and build each module as its users will, from a folder in place of the proxy, and install the command
	cd migrate && GOWORK=off $(GO) run ../scripts/modules/main.go check $(VERSION)

.PHONY: vet32
vet32: ## vet the core for 32 bits
	GOWORK=off $(NOCGO) GOARCH=386 $(GO) vet ./...

.PHONY: cross
cross: ## vet the modules that differ for other systems
	$(call each_of,$(CROSS),vet for windows,$(NOCGO) GOOS=windows $(GO) vet ./...)
	$(call each_of,$(CROSS),vet for macOS,$(NOCGO) GOOS=darwin $(GO) vet ./...)

.PHONY: nightly
nightly: ## what takes hours: fuzz, other versions and systems, stress, models, faults, soak, mutants, and each benchmark once
	@set -e; for target in fuzz-smoke compat cross test32 stress model conformance chaos soak mutants bench-once; do \
		printf '\n==== make %s\n' $$target; $(MAKE) --no-print-directory $$target; done
	@echo 'make nightly: all passed'

# -short has the workloads of package benchmarks do next to nothing.
.PHONY: bench-once
bench-once: ## run each benchmark once, to see that it works
	$(call each,benchmarks once,tested=$$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./...) || exit 1; \
		packages=$$(printf '%s\n' "$$tested" | \
			while read -r path dir; do ! grep -qs '^func Benchmark' "$$dir"/*_test.go || echo "$$path"; done); \
		[ -z "$$packages" ] || $(NOCGO) $(GO) test -vet=off -short -run '^$$' -bench . -benchtime 1x -timeout 15m $$packages)

# With BENCH, nothing is written but the raw output of what matches it, in which a $ is one.
.PHONY: bench
bench: ## run the main workloads in short, for results/quick.md; MODE=full, busy, rates, contexts, stores or redis: the rest; or what matches BENCH
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
clean: ## remove what the targets made
	rm -rf .bin .flaky coverage.txt
