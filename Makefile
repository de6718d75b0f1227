# Everything needs Go and gcc only; `make web` also needs Node, and `make test-web` uses it.
GO         ?= go
GOTEST     ?= $(GO) test
TESTFLAGS  ?=
PACKAGES   ?= ./...
LINTER     ?= github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BIN        ?= bin/nodest
BENCH      ?= bin/nodest-bench
# Pure functions of libraries, which share no memory with ours, run without the
# detector: regular expressions alone take ten times as long with it. A package that
# uses sync.Map or atomic values must not be here: its copies of their functions may
# be linked for all packages, and the detector would see races where there are none.
PURE       := regexp/... compress/... image/... github.com/kljensen/snowball/... github.com/klauspost/compress/flate \
	github.com/santhosh-tekuri/jsonschema/v6/... golang.org/x/net/html/... golang.org/x/text/... github.com/markusmobius/... \
	github.com/go-shiori/... github.com/andybalholm/cascadia github.com/RadhiFadlillah/whatlanggo \
	github.com/tetratelabs/wazero/internal/engine/wazevo/ssa github.com/tetratelabs/wazero/internal/engine/wazevo/backend/...
# checkptr watches uses of unsafe, of which we have none.
RACE       := -race -gcflags=all=-d=checkptr=0 $(PURE:%=-gcflags=%=-race=false)
CONCURRENT = $(shell scripts/concurrent)
# The others, for .ci/run.
SEQUENTIAL = $(shell $(GO) list ./... | sed 's|^nodest/|./|' | grep -vxF $(CONCURRENT:%=-e %))
# The packages with tests that need PostgreSQL. NODEST_TEST_ONLY skips their other ones.
POSTGRES   ?= $(shell grep -rlE --include='*_test.go' 'func TestOnPostgres|storetest\.(Each|OpenPostgres|PostgresURL)|"NODEST_TEST_DATABASE_URL"' [a-z]* | xargs -n1 dirname | sort -u | sed 's|^|./|')
# Without symbols and DWARF, a quarter of the file; panics still name functions and lines.
LDFLAGS    := -s -w -X main.version=$(VERSION)

.PHONY: run build build-bench test test-race test-postgres test-web test-long lint fmt web web-check web-install client bench clean

# In a terminal the server gets a process group of its own (set -m): Ctrl-C then
# reaches it and not make, which would end with an error after it.
run: build ## start the server and show how to sign in
	@case "$$(ps -o stat= -p $$$$ 2>/dev/null)" in \
	*+*) set -m; $(BIN) serve ;; \
	*) exec $(BIN) serve ;; \
	esac

build: ## bin/nodest
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/nodest
	@echo "$(BIN): $$(($$(wc -c < $(BIN)) / 1000000)) MB"

build-bench: ## bin/nodest-bench, which measures the program beside it
	$(GO) build -trimpath -o $(BENCH) ./cmd/nodest-bench

test: ## all tests, a few minutes
	$(GOTEST) $(TESTFLAGS) $(PACKAGES)
	NODEST_SEGMENTED=1 $(GO) test -vet=off -count=1 ./memory

test-race: PACKAGES = $(CONCURRENT)
test-race: ## the tests of packages that start goroutines, under the race detector
	$(GOTEST) $(RACE) $(TESTFLAGS) $(PACKAGES)

# Those of the storage suite (store), and of what differs there: several processes, locks,
# kills, backups.
test-postgres: PACKAGES = $(POSTGRES)
test-postgres: ## the tests that need PostgreSQL, on a private one
	NODEST_TEST_ONLY=postgres scripts/with-postgres $(GOTEST) $(TESTFLAGS) $(PACKAGES)

test-web: web/node_modules/axe-core ## the page in headless Chromium, as web/dist has it
	$(GOTEST) $(TESTFLAGS) ./cmd/nodest -run '^TestPage'

# Without Node or a registry the test of its accessibility skips, and says so.
web/node_modules/axe-core:
	-cd web && npm ci --no-audit --no-fund

test-long: ## large numbers of cuts, kills, steps and fuzzing: an hour or more
	NODEST_LONG=1 scripts/with-postgres $(GO) test -timeout 3h ./...
	scripts/fuzz 2m

lint: ## go vet is one of the linters
	$(GO) run $(LINTER) run --allow-parallel-runners ./...

fmt:
	gofmt -w $$(git ls-files '*.go')

web: web-check ## build the page again into web/dist
	cd web && npm run build

web-check: client web-install ## install what the page is built with, and check its sources and its client
	cd web && npm run check

web-install:
	cd web && npm ci --no-audit --no-fund

client: ## build, check and test clients/typescript, which the page uses
	cd clients/typescript && npm ci --no-audit --no-fund && npm run build && npm run check && npm run test:built

bench: build build-bench ## the figures of docs/performance.md
	$(BENCH) chat
	$(BENCH) framework

clean:
	rm -rf bin
