# `make` lists what there is. CI runs .ci/run.

GO        ?= go
FUZZTIME  ?= 30s
SOAK      ?= 15m
MINUTES   ?= 30
SEED      ?= 0
SERVERS   ?= 1
BENCH     ?= .
COUNT     ?= 6
COMMIT    ?= HEAD
# Where threads, callbacks and locks are.
RACE_PKGS := ./events/... ./consumer/... ./dispatch/... ./isolates/... ./deploy/... ./internal/...

.PHONY: help test race hostile hostile-owners soak soak-cells mutants guarantees guarantees-cells asan lint bench bench-compare fuzz docs kube dist

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-15s %s\n", $$1, $$2}'

test: ## all tests
	$(GO) test ./...

race: ## tests of the rooms under the race detector
	$(GO) test -race $(RACE_PKGS)

hostile: ## every hostile script against the isolates: minutes, all cores (UPDATE=1 writes docs/development/hostile.md)
	$(GO) test -tags hostile -run '^(TestHostile|TestHostileFunctions|TestHostileCode|TestHostCallsAreBounded|TestEndlessLoops|TestNothingCrosses|TestHostileClones|TestHostileNamesOfCloudflare)$$' -timeout 30m -v ./isolates $(if $(UPDATE),-update)
	$(GO) test -count 1 -run '^TestLoopsEnd$$' ./isolates/v8x -loops 0

hostile-owners: ## the attacks of hostile owners on a real fleet, with their guards and without
	$(GO) test -count 1 -tags unguarded -v ./internal/test/hostileowners

soak: ## good, bad and hostile workers of 50 owners beside each other for SOAK (15m): nothing crosses, ends twice or grows
	$(GO) test -count 1 -run '^TestSoak$$' -timeout 0 -v ./isolates -soak $(SOAK)

soak-cells: ## the same scripts in cells for SOAK: nothing crosses, nothing grows, and no process is left
	$(GO) test -count 1 -run '^TestSoak$$' -timeout 0 -v ./internal/process/cells -soak $(SOAK)

mutants: ## take each check of what a cell says out, one at a time: a test has to fail (half an hour)
	$(GO) test -count 1 -tags mutants -timeout 0 -v ./internal/test/mutants

guarantees-cells: ## the same with a cell for each owner, which are killed too
	$(GO) test -count 1 -run '^TestGuaranteesInCells$$' -timeout 0 -v ./internal/test/guarantees -for $(MINUTES)m -seed $(SEED)

guarantees: ## processes, nats-server and network broken at random for MINUTES (30); SERVERS=3: a cluster; SEED repeats the choices
	$(GO) test -count 1 -run '^TestGuarantees$$' -timeout 0 -v ./internal/test/guarantees -for $(MINUTES)m -seed $(SEED) -servers $(SERVERS)

asan: ## the tests of isolates under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer
	.ci/asan ./isolates/v8x ./isolates

lint: ## gofmt, go vet, golangci-lint
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'gofmt -w these files'; exit 1; }
	$(GO) vet ./...
	$(GO) tool -modfile=.ci/tools/go.mod golangci-lint run ./...

bench: ## all benchmarks, COUNT times, to bench.txt (BENCH=regexp chooses)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./... | tee bench.txt

bench-compare: ## benchmarks of REF and of this tree, by turns, and what benchstat says: make bench-compare REF=main (BENCH=regexp chooses)
	@test -n "$(REF)" || { echo 'usage: make bench-compare REF=commit'; exit 2; }
	@COUNT=$(COUNT) $(if $(filter-out .,$(BENCH)),BENCH='$(BENCH)') .ci/bench-compare $(REF)

fuzz: ## every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

docs: ## write the tables of docs/reference from the code
	UPDATE_DOCS=1 $(GO) test -count 1 -run TestReference .

kube: ## the chart and the kustomization against the types of Kubernetes (UPDATE=1 makes deploy/kustomize of the chart)
	cd .ci/kube && $(if $(UPDATE),UPDATE_DOCS=1) $(GO) test -count 1 .

dist: ## what is released of COMMIT (HEAD), to dist: binaries, packages, image; on Debian with g++-aarch64-linux-gnu
	$(GO) run -C deploy/dist . -commit $(COMMIT)
