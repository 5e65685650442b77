# Everything that this repository does from the command line.
# Lambda's own settings (flags of the compiler, names of the files) stand here
# once; template.yaml expects dist/<function>/bootstrap.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Architecture of the functions: arm64 or amd64 to Go, arm64 or x86_64 to AWS.
ARCH ?= arm64
AWS_ARCH = $(subst amd64,x86_64,$(ARCH))
HOST_ARCH := $(shell go env GOARCH)

# One set of flags for run, build, test and lint, so that each package is compiled once.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false -tags=lambda.norpc
GO_BUILD := go build -ldflags "-s -w"

FUNCTIONS := $(notdir $(wildcard functions/*))
TOOL := go tool -modfile=.tools/go.mod
SAM_VERSION := 1.170.0
CFN_LINT_VERSION := 1.53.3
SCHEMATHESIS_VERSION := 4.32.5
SAM := SAM_CLI_TELEMETRY=0 .build/sam/bin/sam
GO_DIRS := functions pkg

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The portal's page is built anew when its source or the OpenAPI document changed.
PORTAL := pkg/api/portal/web
PAGE := pkg/api/portal/dist/index.html

$(PORTAL)/node_modules/.package-lock.json: $(PORTAL)/package-lock.json
	cd $(PORTAL) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(PORTAL)/src/schema.d.ts: pkg/api/docs/openapi.json $(PORTAL)/node_modules/.package-lock.json
	cd $(PORTAL) && npx openapi-typescript ../../docs/openapi.json --output src/schema.d.ts >/dev/null

$(PAGE): $(PORTAL)/node_modules/.package-lock.json $(PORTAL)/build.mjs $(wildcard $(PORTAL)/src/* $(PORTAL)/src/pages/* pkg/api/docs/web/*)
	cd $(PORTAL) && node build.mjs

.PHONY: portal
portal: $(PAGE) ## build the portal's page, which is embedded in its function

.PHONY: portal-test
portal-test: $(PAGE) $(PORTAL)/src/schema.d.ts ## check the types of the portal's page, and use it in Chromium (which CHROMIUM may name)
	cd $(PORTAL) && npx tsc
	$(GO_BUILD) -o .build/commerce ./pkg/cmd/commerce
	cd $(PORTAL) && node --test --test-concurrency=2 test/*.test.mjs

.PHONY: build
build: $(PAGE) ## build every function to dist/<function>/bootstrap (ARCH=arm64|amd64)
	GOOS=linux GOARCH=$(ARCH) $(GO_BUILD) \
		-o .build/$(ARCH)/functions/ ./functions/...
	@for f in $(FUNCTIONS); do install -D .build/$(ARCH)/functions/$$f dist/$$f/bootstrap; done

.PHONY: run
run: $(PAGE) ## run the whole service locally (RUN_FLAGS="--fresh ...")
	@[ -x .build/commerce ] || echo "Building, about a minute the first time …"
	@$(GO_BUILD) -o .build/commerce ./pkg/cmd/commerce
	@exec .build/commerce run $(RUN_FLAGS)

.PHONY: install
install: $(PAGE) ## put commerce on the PATH: into Go's folder of programs, or PREFIX/bin (PREFIX=/usr/local)
	$(if $(PREFIX),GOBIN="$(abspath $(PREFIX))/bin") go install -ldflags "-s -w" ./pkg/cmd/commerce

.PHONY: first-hour
first-hour: ## time what the README tells a new user, from a fresh clone to a verified webhook (needs curl and jq)
	python3 .tools/first_hour.py

.PHONY: smoke
smoke: ## ask a service what README's tour asks (URL=https://... KEY=... or TOKEN=...; without URL a local one on each table server, which takes Maven and Java)
	@$(if $(URL),python3 .tools/smoke.py "$(URL)",go test -tags lambda.norpc,emulate -count=1 -timeout 5m -run 'Smoke$$' ./pkg/cmd/commerce)

# Everything, unless PKG and RUN name packages and tests. Lint vets. Tests wait for
# servers, so more packages run at a time than there are processors.
PKG ?= ./...
TEST = go test -vet=off -shuffle=on -timeout 10m -p $(shell expr $$(nproc 2>/dev/null || sysctl -n hw.ncpu) + 2) $(if $(RUN),-run '$(RUN)')

.PHONY: test
test: $(PAGE) ## test everything (PKG=./pkg/delivery/worker RUN=TestName for a part)
	$(TEST) $(PKG)

# The packages that start goroutines, or whose state several share.
RACE := $(addprefix ./pkg/,auth/... base/... delivery/... dynamo index/... ingest api/records local/eventsource local/gateway local/processes local/queueserver)

.PHONY: race
race: ## test what runs concurrently with the race detector (PKG=./... for everything)
	CGO_ENABLED=1 $(TEST) -race $(if $(filter file,$(origin PKG)),$(RACE),$(PKG))

.PHONY: quick
quick: ## vet everything, and run the tests that need no server, without the race detector
	go vet ./...
	go test -vet=off -short $$(go list ./pkg/... | grep -vE '/pkg/(cmd|lab|local)/')

.PHONY: check
check: ## all that a change has to pass
	@.ci/run

.PHONY: release-check
release-check: ## what a release has to pass beyond check: race everywhere, all samples, fuzzing, chaos, Java tools, the official servers (about an hour)
	@$(MAKE) --no-print-directory race PKG=./...
	@$(MAKE) --no-print-directory samples smoke test-official test-mcp
	@$(MAKE) --no-print-directory clients GENERATORS=java
	@$(MAKE) --no-print-directory fuzz chaos first-hour

.PHONY: samples
samples: $(PAGE) ## run every sample of the guides in every language (curl, jq, openssl, Python, Node.js, PHP)
	SAMPLES=all go test -count=1 -timeout 10m -run TheGuides ./pkg/cmd/commerce

.PHONY: lint
lint: ## format check, static analysis, known vulnerabilities
	@unformatted=$$($(TOOL) gofumpt -l $(GO_DIRS)); \
		if [ -n "$$unformatted" ]; then echo "not formatted, run make format:"; echo "$$unformatted"; exit 1; fi
	$(TOOL) golangci-lint run
	cd pkg/client/go && go tool -modfile=../../../.tools/go.mod golangci-lint run -c ../../../.golangci.yml
	@if curl -fsS -m 10 -o /dev/null https://vuln.go.dev/index/db.json 2>/dev/null; \
		then $(TOOL) govulncheck ./...; \
		else echo "govulncheck was skipped: https://vuln.go.dev cannot be reached"; fi

.PHONY: format
format: ## format all Go code
	$(TOOL) gofumpt -w $(GO_DIRS)

.build/sam/.installed-$(SAM_VERSION)-$(CFN_LINT_VERSION):
	rm -rf .build/sam
	python3 -m venv .build/sam
	.build/sam/bin/pip install -q aws-sam-cli==$(SAM_VERSION) cfn-lint==$(CFN_LINT_VERSION)
	@touch $@

.PHONY: validate
validate: .build/sam/.installed-$(SAM_VERSION)-$(CFN_LINT_VERSION) ## check the templates, also that sam local reads them (installs the SAM CLI on first use)
	AWS_DEFAULT_REGION=us-east-1 $(SAM) validate -t template.yaml
	AWS_DEFAULT_REGION=us-east-1 $(SAM) validate -t template.yaml --lint
	AWS_DEFAULT_REGION=us-east-1 $(SAM) validate -t pkg/app/state/state.yaml --lint
	.build/sam/bin/python .tools/sam_local.py check

.PHONY: emulate
emulate: ## test every function's binary: what it may call, and the service of processes that are killed
	@$(MAKE) --no-print-directory build ARCH=$(HOST_ARCH)
	go test -tags lambda.norpc,emulate -count=1 -timeout 5m -run Binary ./pkg/local/template
	go test -tags lambda.norpc,emulate -count=1 -timeout 12m -run Processes ./pkg/cmd/commerce

MINISTACK_VERSION := 1.5.33

.build/ministack/.installed-$(MINISTACK_VERSION):
	rm -rf .build/ministack
	python3 -m venv .build/ministack
	.build/ministack/bin/pip install -q 'ministack[full]==$(MINISTACK_VERSION)'
	@touch $@

.PHONY: test-cloud
test-cloud: .build/sam/.installed-$(SAM_VERSION)-$(CFN_LINT_VERSION) .build/ministack/.installed-$(MINISTACK_VERSION) ## deploy onto an emulator of AWS that enforces IAM, and use the service there (no Docker)
	@$(MAKE) --no-print-directory build ARCH=$(HOST_ARCH)
	go test -tags lambda.norpc,cloud -count=1 -timeout 10m ./pkg/local/cloud

.PHONY: test-official
test-official: ## run the tests of table and queues on DynamoDB Local and ElasticMQ: before every release (Maven, Java 17)
	@.tools/official.sh

.PHONY: clients
clients: ## lint the OpenAPI document, refuse breaking changes of it, generate clients and compile them, test those of pkg/client, run the tools of the guide (Python; GENERATORS=java adds one that takes Maven and Java, and kills the tools)
	$(GO_BUILD) -o .build/commerce ./pkg/cmd/commerce
	@.tools/clients.sh $(GENERATORS)

# The TypeScript client is built anew when its source or the OpenAPI document changed.
CLIENT := pkg/client/typescript
PACKAGE := $(CLIENT)/dist/index.js

$(CLIENT)/node_modules/.package-lock.json: $(CLIENT)/package-lock.json
	cd $(CLIENT) && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

$(PACKAGE): pkg/api/docs/openapi.json $(CLIENT)/node_modules/.package-lock.json $(wildcard $(CLIENT)/src/*) $(CLIENT)/tsconfig.json
	cd $(CLIENT) && npm run build --silent
	@touch $@

.PHONY: test-clients
test-clients: $(PACKAGE) ## test pkg/client, also on the service that COMMERCE_RUN=.local/run.json describes
	cd pkg/client/go && COMMERCE_RUN=$(abspath $(COMMERCE_RUN)) go test -shuffle=on -count=1 ./...
	cd $(CLIENT) && COMMERCE_RUN=$(abspath $(COMMERCE_RUN)) npm test --silent

.PHONY: released
released: ## take the OpenAPI document as the released one: from then on it may only be added to
	python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin), separators=(",", ":"), ensure_ascii=False))' \
		<pkg/api/docs/openapi.json >pkg/api/docs/released.json

# conform takes about two minutes.
.build/schemathesis/.installed-$(SCHEMATHESIS_VERSION):
	rm -rf .build/schemathesis
	python3 -m venv .build/schemathesis
	.build/schemathesis/bin/pip install -q schemathesis==$(SCHEMATHESIS_VERSION)
	@touch $@

.PHONY: conform
conform: .build/schemathesis/.installed-$(SCHEMATHESIS_VERSION) ## ask the running service what the OpenAPI document permits, and what it does not
	$(GO_BUILD) -o .build/commerce ./pkg/cmd/commerce
	@.tools/conform/run.sh

.build/mcp/node_modules/.package-lock.json: .tools/mcp/package-lock.json
	@mkdir -p .build/mcp && cp .tools/mcp/package*.json .build/mcp/
	cd .build/mcp && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

.PHONY: test-mcp
test-mcp: $(PAGE) .build/mcp/node_modules/.package-lock.json ## run the Model Context Protocol's own suite against the running service
	$(GO_BUILD) -o .build/commerce ./pkg/cmd/commerce
	@.tools/mcp/run.sh

# How long each target is fuzzed.
FUZZTIME ?= 10s

.PHONY: fuzz
fuzz: ## fuzz every target, each for FUZZTIME=10s (PKG=./pkg/auth for a part)
	@.tools/fuzz.sh $(FUZZTIME) $(PKG)

.PHONY: bench
bench: ## measure the service on this machine (BENCH_FLAGS="--quick ...")
	@go build -o .build/lab ./pkg/cmd/lab
	@exec .build/lab bench $(BENCH_FLAGS)

.PHONY: chaos
chaos: ## break the service while it delivers 20,000 events, and check what it promises (CHAOS_FLAGS="--seed 7 ...")
	@go build -o .build/lab ./pkg/cmd/lab
	@exec .build/lab chaos $(CHAOS_FLAGS)

.PHONY: chaos-seed
chaos-seed: ## chaos for some seconds and of a known seed, as a test
	go test -tags lambda.norpc,emulate -count=1 -timeout 12m ./pkg/lab/chaos

.PHONY: measured
measured: ## write pkg/lab/MEASURED.md: the figures of this machine, in about eight minutes
	@go build -o .build/lab ./pkg/cmd/lab
	@.build/lab bench $(BENCH_FLAGS) >.build/measured.md
	@mv .build/measured.md pkg/lab/MEASURED.md

.PHONY: sam-local
sam-local: .build/sam/.installed-$(SAM_VERSION)-$(CFN_LINT_VERSION) ## sam local start-api beside a run that is under way (needs Docker; PORT=3100)
	@$(MAKE) --no-print-directory build ARCH=$(HOST_ARCH)
	@exec .build/sam/bin/python .tools/sam_local.py start-api --port $(or $(PORT),3100)

.PHONY: sam-invoke
sam-invoke: .build/sam/.installed-$(SAM_VERSION)-$(CFN_LINT_VERSION) ## sam local invoke with a sample, beside a run that is under way (EVENT=api, needs Docker)
	@: "$${EVENT:?set it to the name of a file in events, such as api}"
	@$(MAKE) --no-print-directory build ARCH=$(HOST_ARCH)
	@exec .build/sam/bin/python .tools/sam_local.py invoke $$EVENT

.PHONY: package
package: build .build/sam/.installed-$(SAM_VERSION)-$(CFN_LINT_VERSION) ## upload the functions and write the template to deploy
	$(SAM) package -t template.yaml --output-template-file .build/packaged.yaml

# The service's stack, and its state's.
STACK ?= commerce-integration-service
STATE = $(STACK)-state
# It refuses a secret of HS256 tokens that the authorizer would refuse.
CHECK_SECRET = .build/sam/bin/python .tools/check_secret.py
DEPLOY = $(SAM) deploy $(if $(CI),--no-confirm-changeset)

# The SAM CLI does not read AWS_REGION.
ifdef AWS_REGION
export AWS_DEFAULT_REGION := $(AWS_REGION)
endif

.PHONY: preflight
preflight: .build/sam/.installed-$(SAM_VERSION)-$(CFN_LINT_VERSION) ## compare the account's quotas with what a deployment takes ([PROFILE=production] [PARAMETERS="Key=value ..."])
	@.build/sam/bin/python .tools/preflight.py "$(PROFILE)" $(PARAMETERS)

.PHONY: deploy
deploy: build validate ## deploy state and service (JWT_ISSUER=... JWT_AUDIENCE=... JWKS_URL=... or JWT_HS256_SECRET_ARN=... [PROFILE=production] [STACK=name] [PARAMETERS="Key=value ..."])
	@: "$${JWT_ISSUER:?set it}" "$${JWT_AUDIENCE:?set it}" "$${JWKS_URL:-$${JWT_HS256_SECRET_ARN:?set it, or JWKS_URL}}"
	@[ -z "$${JWT_HS256_SECRET_ARN:-}" ] || $(CHECK_SECRET) "$$JWT_HS256_SECRET_ARN"
	@parameters=$$(python3 .tools/parameters.py "$(PROFILE)" $(PARAMETERS)); \
	$(DEPLOY) -t pkg/app/state/state.yaml --stack-name $(STATE) $${parameters:+--parameter-overrides $$parameters}; \
	outputs=$$($(SAM) list stack-outputs --stack-name $(STATE) --output json | \
		python3 -c 'import json, sys; print(*("{OutputKey}={OutputValue}".format(**o) for o in json.load(sys.stdin)))'); \
	$(DEPLOY) -t template.yaml --stack-name $(STACK) --parameter-overrides $$outputs \
		Release=$$(date +%s) Architecture=$(AWS_ARCH) JwtIssuer="$$JWT_ISSUER" JwtAudience="$$JWT_AUDIENCE" \
		$${JWKS_URL:+JwksUrl="$$JWKS_URL"} $${JWT_HS256_SECRET_ARN:+JwtHs256SecretArn="$$JWT_HS256_SECRET_ARN"} $$parameters

.PHONY: clean
clean: ## remove what was built, not what was stored
	rm -rf dist .build .aws-sam
