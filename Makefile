# Millrace. `make` alone lists what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PROGRAMS := worker starter gateway edge
BIN := bin

.PHONY: help
help: ## Show the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build tools ## Start the local stack with three simulated factories (Ctrl-C stops it)
	@$(BIN)/local run

.PHONY: test
test: local tools ## Run all tests on a local stack of their own
	@echo "building the tests (some minutes the first time)"
	@$(BIN)/local exec -- go test -count=1 -timeout 20m $(TESTFLAGS) ./...
	@cd deploy/local && go test -count=1 -timeout 20m $(TESTFLAGS) ./...

.PHONY: soak
soak: build tools ## Kill every part in the middle of a flood and count that nothing is lost
	@$(BIN)/local exec --durable -- go test -count=1 -timeout 50m -tags soak -run 'TestSoak' -v ./deploy/...

.PHONY: bench
bench: build tools ## Run the benchmarks on a local stack of their own
	@$(BIN)/local exec -- go test -run '^$$' -bench . -benchmem $(BENCHFLAGS) ./...

.PHONY: lint
lint: lint-tools ## Check style, workflow determinism and formatting
	@$(BIN)/golangci-lint run --allow-parallel-runners ./...
	@cd deploy/local && ../../$(BIN)/golangci-lint run --allow-parallel-runners --config ../../.golangci.yml ./...
	@$(BIN)/workflowcheck ./workflows/...

.PHONY: vuln
vuln: lint-tools ## Look for known vulnerabilities (asks vuln.go.dev)
	@$(BIN)/govulncheck ./...

.PHONY: build
build: local ## Build all programs into bin/
	@test -x $(BIN)/gateway || echo "building the programs (some minutes the first time)"
	@go build -o $(BIN)/ $(addprefix ./,$(PROGRAMS))

.PHONY: local
local:
	@test -x $(BIN)/local || echo "building the local stack (some minutes the first time)"
	@cd deploy/local && go build -o ../../$(BIN)/local .

.PHONY: tools
tools: local
	@$(BIN)/local tools

.PHONY: lint-tools
lint-tools:
	@mkdir -p $(BIN)
	@test -x $(BIN)/golangci-lint || echo "building the linters (some minutes the first time)"
	@cd tools && go build -o ../$(BIN)/ tool

.PHONY: clean
clean: ## Remove what was built and the local stack's data
	@rm -rf $(BIN) .local
