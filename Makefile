# Needs Go, gcc and make; tools are pinned in tools/*/go.mod and built by go itself.
SHELL := bash
.DEFAULT_GOAL := help

GOOSE_TAGS := no_postgres no_mysql no_clickhouse no_mssql no_vertica no_ydb no_libsql no_turso no_spanner no_starrocks no_duckdb no_azuresql
SQLC  := go tool -modfile=tools/sqlc/go.mod sqlc
GOOSE := go run -modfile=tools/goose/go.mod -tags '$(GOOSE_TAGS)' github.com/pressly/goose/v3/cmd/goose
LICENCES := go tool -modfile=tools/go-licenses/go.mod go-licenses
VULNS := go tool -modfile=tools/govulncheck/go.mod govulncheck
LINT  := go tool -modfile=tools/golangci-lint/go.mod golangci-lint

.PHONY: help build demo test lint goose fixtures generate verify licences vulns faults chaos soak powercut iofaults fuzz bench bench-scale bench-report bench-smoke bench-peers limit clean
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

build: ## the command, as bin/localqueue
	go build -o bin/localqueue ./cmd/localqueue

demo: build ## the main job, for real: every file of TREE=. through worker processes, one of them killed
	@demo/demo.sh bin/localqueue "$(or $(TREE),.)"

test: ## all tests, with the race detector, in a random order
	go vet ./...
	go test -race -shuffle=on ./...

lint: ## golangci-lint, with the list in .golangci.yml
	$(LINT) run ./...

# sqlc prepares every query on a real file, which the goose command makes from the migrations as they are.
build/vet.db: $(wildcard sql/sqlite/migrations/*.sql)
	@mkdir -p build && rm -f $@
	$(GOOSE) -dir sql/sqlite/migrations sqlite3 $@ up

goose: ## the goose command on our files: live ones, stopped ones, down and up
	@mkdir -p build
	go build -modfile=tools/goose/go.mod -tags '$(GOOSE_TAGS)' -o build/goose github.com/pressly/goose/v3/cmd/goose
	LOCALQUEUE_GOOSE=$(CURDIR)/build/goose go test -count=1 -run Goose ./sql/sqlite

fixtures: ## old files for the tests: of the Python original and of the present schema; those that are there stay
	queue/testdata/original/make.py
	LOCALQUEUE_TEST_ROLE=make-fixture go test -count=1 -v ./queue

generate: build/vet.db ## db/ from sql/
	$(SQLC) generate

verify: build/vet.db ## generated code and go.mod are current, the SQL is sound, the other queues' module works, the suites catch planted faults, fuzzing finds nothing
	$(SQLC) diff
	$(SQLC) vet
	go mod tidy -diff
	gofmt_out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$gofmt_out" || { echo "gofmt: $$gofmt_out"; exit 1; }
	cd bench/peers && go mod tidy -diff && go vet . && go test -short .
	$(MAKE) goose
	$(MAKE) faults
	$(MAKE) fuzz

# FreeType's own licence, which go-chart's fonts come under, is a permissive one that the tool doesn't know.
licences: ## what is linked in has a permissive licence
	$(LICENCES) check ./cmd/localqueue --ignore github.com/localqueue/localqueue --ignore github.com/golang/freetype \
	  --allowed_licenses=MIT,BSD-2-Clause,BSD-3-Clause,Apache-2.0,ISC 2>&1 | { grep -v -e 'non-Go code' -e '^/' || true; }; exit $${PIPESTATUS[0]}

vulns: ## no known vulnerability is reachable; where the database can't be had, that is said
	@mkdir -p build; $(VULNS) ./... > build/vulns.txt 2>&1 || { code=$$?; cat build/vulns.txt; test $$code != 3 && grep -q 'fetching vulnerabilities' build/vulns.txt && echo 'left out: the vulnerability database cannot be reached'; }

faults: ## break the product on purpose: each suite must fail on the faults it is there to catch
	go run ./internal/plantedrun

iofaults: ## every operation meets every fault of the disk at every call where it can come (a part of that is in go test): more than half an hour
	LOCALQUEUE_IOFAULTS=full go test -count=1 -timeout 60m -v ./chaos/iofault

IMAGES ?= 500
powercut: ## what a power cut can leave, rebuilt from a record of system calls: IMAGES=500 by chance and as many after answers, for each durability
	LOCALQUEUE_POWERCUT_IMAGES=$(IMAGES) go test -count=1 -timeout 30m -v -run 'PowerCut' ./chaos/powercut

KILLS ?= 2000
chaos: ## kill processes at every named point and at any moment, KILLS=2000 of them, and stop some; then their journals must agree with the file
	@mkdir -p build && go test -c -tags planted -o build/chaos.planted.test ./chaos
	cd chaos && LOCALQUEUE_CHAOS_KILLS=$(KILLS) ../build/chaos.planted.test -test.v -test.timeout 2h -test.run '^Test(KillCampaign|AStoppedProcess)$$'

DURATION ?= 60s
soak: build ## everything at once for DURATION=60s: kills, panics, lost leases, retention, backups, vacuums, the reading verbs
	LOCALQUEUE_SOAK=$(DURATION) LOCALQUEUE_BIN=$(CURDIR)/bin/localqueue go test ./chaos -count 1 -v -timeout 0 -run '^TestSoak$$'

FUZZTIME ?= 3000x
# A number of inputs, not a time: at the end of a time go may report the deadline itself as a failure.
fuzz: ## each fuzz target for FUZZTIME=3000x inputs
	@set -e; for pkg in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; done

# The C program runs the statements of sql/ against the driver's own SQLite, with the driver's flags.
SQLITE_DIR   = $(shell go list -m -f '{{.Dir}}' github.com/mattn/go-sqlite3)
SQLITE_FLAGS = $(shell sed -n 's/^\#cgo CFLAGS: //p' "$(SQLITE_DIR)/sqlite3.go") -O2
build/sqlite3.o: go.sum
	@mkdir -p build && go mod download github.com/mattn/go-sqlite3
	gcc $(SQLITE_FLAGS) -c -o $@ $(SQLITE_DIR)/sqlite3-binding.c
build/limit: bench/limit/limit.c build/sqlite3.o
	gcc $(SQLITE_FLAGS) -Wall -Wextra -I$(SQLITE_DIR) -o $@ $^ -lm -lpthread -ldl

limit: build/limit ## what SQLite itself does with this schema, in C: the figures to compare with
	rm -f build/limit.db*
	build/limit sql/sqlite build/limit.db 100000 normal
	build/limit sql/sqlite build/limit.db 20000 full

BENCHTIME ?= 2s
ROUNDS ?= 1
bench: build/limit ## the benchmarks beside the limit's figures, in turns (ROUNDS=1, BENCHTIME=2s)
	@go test -c -o build/queue.bench ./queue
	@for round in $$(seq $(ROUNDS)); do \
	  for d in normal full; do \
	    rm -f build/limit.db*; build/limit sql/sqlite build/limit.db 20000 $$d || exit 1; \
	    (cd queue && ../build/queue.bench -test.run '^$$' -test.bench "Put|GetAck|AckMany/$$d" -test.benchtime $(BENCHTIME)) || exit 1; \
	  done; done

bench-scale: ## a claim beside a million jobs, a million due at once, the WAL's size: some minutes
	go test ./queue -run '^$$' -bench 'Backlog|Million|WAL' -benchtime $(BENCHTIME)

# The contention harness itself, on this machine. PROFILE=smoke, standard or full.
PROFILE ?= standard
bench-report: build build/limit ## the harness beside the limit in C: build/report.html and .json (PROFILE=standard: some minutes)
	bin/localqueue bench --profile $(PROFILE) --limit build/limit --dir build/bench --out build/report.json --html build/report.html --force

bench-smoke: build ## the harness in small, for its accounting: under 20 s
	bin/localqueue bench --profile smoke --dir build/bench

PEERS ?= --seconds 5 --rounds 3
bench-peers: ## other queues on the same work, in turns, with results in bench/peers/results (PEERS="--seconds 5 --rounds 3")
	cd bench/peers && go run . $(PEERS) --out results/results.json --markdown results/table.md

clean: ## remove what was built
	rm -rf bin build
