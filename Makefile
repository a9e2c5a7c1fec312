# The commands of this project; `make help` lists them. Everything they need is installed first, once.

# A Python that is new enough; choose another one with `make PY=/path/to/python3`. It is looked for once.
ifeq ($(origin PY),undefined)
PY := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
endif
VENV := venv/bin
PACKAGES := $(wildcard contract kafka settings monitoring components spark ops sandbox examples benchmarks)
# Four workers more than cores: they wait for half of their time, and each has a share of the files (tests/shares.py).
UNIT_TESTS = --ignore tests/integration -n "$$(($$(nproc) + 4))"
LINT = $(VENV)/ruff format --check --quiet . && $(VENV)/ruff check --quiet . && $(VENV)/mypy $(PACKAGES) __main__.py && \
	cd policies && ../$(VENV)/mypy --config-file ../pyproject.toml --cache-dir ../.mypy_cache .
# Tests beside lint, to which they leave a core whenever they wait; what it finds is shown after them.
BESIDE_LINT = found="$$(mktemp)"; trap 'kill $$linting 2> /dev/null; rm -f "$$found"' EXIT; \
	( $(LINT) ) > "$$found" 2>&1 & linting=$$!; $(1); tests=$$?; \
	wait $$linting; lint=$$? linting=; cat "$$found"; test $$tests -eq 0 -a $$lint -eq 0
STACK_GIVEN = test -n "$(STACK)" || { echo "$@: STACK must be given: make $@ STACK=stg" >&2; exit 2; }
# The site that a failover drill would make active, and where the steps of a pipeline leave what they found.
TO ?= stg
# A pair that lies in a folder of its own, with Pulumi.yaml in it: FOLDER=pairs/orders. Without it, the one here.
IN_FOLDER = $(if $(FOLDER),--folder "$(FOLDER)")
POLICY_CONFIG = $(if $(FOLDER),$(wildcard $(FOLDER)/policy.$(STACK).json))
POLICIES = $(if $(FOLDER),$(CURDIR)/)policies$(if $(POLICY_CONFIG), --policy-pack-config "$(abspath $(POLICY_CONFIG))")
DOCUMENTS ?= reports/pipeline
# What a diff compares with: the commit before, which is the base in the merge of a pull request that GitHub checks out.
BASE ?= HEAD^1
SBOM ?= reports/sbom.cdx.json
# Programs that come as Python packages, one of which writes the locks.
TOOLS_LOCK = sandbox/toolchain/tools.lock
COMPILE = reports/lock/bin/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-annotate \
	--no-emit-index-url --custom-compile-command "make lock"
# Strimzi's release, which `make demo CLUSTER=current` installs where no operator is there, and where it comes from.
STRIMZI ?= .strimzi
STRIMZI_RELEASES ?= https://github.com/strimzi/strimzi-kafka-operator/releases/download
ON_CURRENT = $(if $(REMOVE),--remove,$(if $(YES),--yes) $(if $(DEV_CONTEXT),--dev-context "$(DEV_CONTEXT)") \
	$(if $(STG_CONTEXT),--stg-context "$(STG_CONTEXT)") $(if $(EXPOSE),--expose "$(EXPOSE)") \
	$(if $(and $(STRIMZI),$(or $(filter-out file,$(origin STRIMZI)),$(wildcard $(STRIMZI)))),--strimzi "$(STRIMZI)"))
RUN = JAVA_HOME="$$($(PY) -m sandbox.toolchain java-home)" $(VENV)/python
# For the jobs of a pipeline: with the pinned jars, Spark resolves no package when it starts.
WITH_JARS = RT_INVENTORY_SPARK_JARS="$$($(PY) -m sandbox.toolchain spark-jars)"

# Bytecode is kept whatever the environment says: many processes are started, and each would compile it again.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.SILENT:
.PHONY: help setup setup-fast setup-spark python bench soak demo strimzi render policy dashboards test test-fast test-jvm
.PHONY: test-nightly lint format lock sbom
.PHONY: setup-pipeline cloud-config kubeconfig diff preview comment up verify drift drill summary state-bucket clean

help: ## this list
	sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | awk -F '\t' '{ line = sprintf("  make %-14s", $$1); \
		count = split($$2, words, " "); for (i = 1; i <= count; i++) { \
		if (length(line " " words[i]) > 80) { print line; line = sprintf("%21s", "") } line = line " " words[i] } print line }'

python:
	test -n "$(PY)" || { echo "Python: version must be >= 3.11 (none on PATH). Install it, or: make PY=/path/to/python3" >&2; exit 2; }

setup: python ## install what is missing: venv/ and the tools in the cache folder
	$(PY) -m sandbox.toolchain ensure

setup-fast: python
	$(PY) -m sandbox.toolchain ensure --only venv java

# On CLUSTER=current, which is the kubeconfig's: DEV_CONTEXT, STG_CONTEXT, STRIMZI=folder (STRIMZI= for none), EXPOSE, YES=1, REMOVE=1.
demo: $(if $(CLUSTER),setup-fast,setup) ## two clusters, a mirror, a failover and the proof (KEEP=1 leaves them; LATENCY=100ms; CLUSTER=current)
	$(RUN) -m sandbox demo $(if $(KEEP),--keep) $(if $(LATENCY),--latency "$(LATENCY)") $(if $(CLUSTER),--cluster "$(CLUSTER)" $(ON_CURRENT))

strimzi: python ## Strimzi's release for clusters without an operator, into STRIMZI=.strimzi
	version="$$($(PY) -c 'from sandbox.toolchain import pins; print(pins.STRIMZI)')" && mkdir -p "$(STRIMZI)" && \
		curl --fail --location --silent --show-error --retry 3 --output "$(STRIMZI)/strimzi-cluster-operator.yaml" \
		"$(STRIMZI_RELEASES)/$$version/strimzi-cluster-operator-$$version.yaml"

render: setup-fast ## plain manifests of a stack: STACK=stg OUT=folder, of an example with EXAMPLE=name
	test -n "$(STACK)" -a -n "$(OUT)" || { echo "render: STACK and OUT must be given: make render STACK=stg OUT=manifests" >&2; exit 2; }
	$(VENV)/python -m components render --stack "$(STACK)" --out "$(OUT)" --folder "$(if $(EXAMPLE),examples/$(EXAMPLE),.)"

policy: setup-fast ## what the policy pack finds in a preview: STACK=stg, EXAMPLE=name JSON=1 SARIF=file CONFIG=file
	test -n "$(STACK)" || { echo "policy: STACK must be given: make policy STACK=stg" >&2; exit 2; }
	$(VENV)/python -m ops policy --stack "$(STACK)" --folder "$(if $(EXAMPLE),examples/$(EXAMPLE),.)" $(if $(JSON),--json) \
		$(if $(SARIF),--sarif "$(SARIF)") $(if $(CONFIG),--config "$(CONFIG)")

setup-spark: python
	$(PY) -m sandbox.toolchain ensure --only spark

setup-pipeline: setup-fast setup-spark ## what a job of a pipeline needs: venv/, a JDK, Spark's connector, and pulumi on PATH
	command -v pulumi > /dev/null || { echo "Pulumi: pulumi must be on PATH (not found). Let the pipeline install it." >&2; exit 2; }

cloud-config: setup-fast ## a configuration that gets credentials of the role AWS_ROLE_ARN for the job's own identity
	$(VENV)/python -m ops pipeline cloud-config

kubeconfig: setup-fast ## a kubeconfig without a credential, for the API server KUBE_SERVER
	$(VENV)/python -m ops pipeline kubeconfig $(IN_FOLDER)

diff: setup-fast ## what changes in a stack's manifests since BASE=HEAD^1 and what the policy pack finds, without any access: STACK=stg
	$(STACK_GIVEN)
	$(VENV)/python -m ops pipeline diff --stack "$(STACK)" --base "$(BASE)" $(IN_FOLDER) --documents "$(DOCUMENTS)"

preview: setup-pipeline ## what an update would change and what the policy pack finds in it: STACK=stg
	$(STACK_GIVEN)
	$(VENV)/python -m ops policy --stack "$(STACK)" $(IN_FOLDER) --out "$(DOCUMENTS)"

comment: setup-fast ## put diffs and previews into the pull request's one comment: STACKS="dev stg", those that must have a diff
	$(VENV)/python -m ops pipeline comment --documents "$(DOCUMENTS)" $(foreach stack,$(STACKS),--stack "$(stack)") \
		$(if $(filter true,$(PREVIEW_WITH_CREDENTIALS)),--previewed)

# --foreground: Pulumi is interrupted once; the second time it would end without releasing the lock of the state.
up: setup-pipeline ## bring a stack up behind the policy gate, without a question: STACK=stg
	$(STACK_GIVEN)
	JAVA_HOME="$$($(PY) -m sandbox.toolchain java-home)" $(WITH_JARS) timeout --foreground -s INT -k 120 75m \
		pulumi up --stack "$(STACK)" $(if $(FOLDER),-C "$(FOLDER)") --yes --non-interactive --policy-pack $(POLICIES)

verify: setup-pipeline ## verify every mirror of a stack: STACK=stg
	$(STACK_GIVEN)
	$(WITH_JARS) $(RUN) -m ops pipeline verify --stack "$(STACK)" $(IN_FOLDER) --documents "$(DOCUMENTS)"

drift: setup-pipeline ## what differs between a stack's state and what is there: STACK=stg
	$(STACK_GIVEN)
	$(VENV)/python -m ops pipeline drift --stack "$(STACK)" $(IN_FOLDER) --documents "$(DOCUMENTS)"

drill: setup-pipeline ## what a failover would do, changing nothing: TO=stg (EXECUTE=1 fails over)
	mkdir -p "$(DOCUMENTS)"
	$(WITH_JARS) $(RUN) -m ops failover --to "$(TO)" $(IN_FOLDER) $(if $(filter 1,$(EXECUTE)),,--dry-run) --yes --json > "$(DOCUMENTS)/drill.json"; \
		code=$$?; cat "$(DOCUMENTS)/drill.json"; exit $$code

summary: setup-fast ## what the steps of a pipeline found: in the summary of GitHub's run, else here
	$(VENV)/python -m ops pipeline summary --documents "$(DOCUMENTS)"

state-bucket: setup-fast ## the S3 bucket of Pulumi's state: BUCKET=name KEY=alias/name
	$(VENV)/python -m ops pipeline state-bucket $(if $(BUCKET),--bucket "$(BUCKET)") $(if $(KEY),--key "$(KEY)")

dashboards: setup-fast ## write the dashboards, the rule file and the tables of docs/monitoring.md
	$(VENV)/python -m monitoring write

test: setup ## every check: format, lint, types, fast tests, sandbox tests
	$(PY) -m sandbox.toolchain ensure --only spark-classes
	$(call BESIDE_LINT,$(RUN) -m pytest -q -m "not sandbox" $(UNIT_TESTS))
	$(RUN) -m tests.integration --timings reports/timings

test-nightly: setup ## every case of the sandbox tests and ten times as many of the properties (docs/testing.md)
	$(PY) -m sandbox.toolchain ensure --only spark-classes
	RT_INVENTORY_TEST_CASES=10 $(RUN) -m pytest -q -m "not sandbox" $(UNIT_TESTS) tests/unit/spark tests/unit/kafka
	$(RUN) -m tests.integration --nightly

# Without a JAVA_HOME that exists: a test that starts a JVM and is not marked so fails here.
test-fast: setup-fast ## what needs no tools and no JVM: format, lint, types, fast tests
	$(call BESIDE_LINT,JAVA_HOME=/nowhere $(VENV)/python -m pytest -q -m "not sandbox and not jvm" $(UNIT_TESTS))
	echo "Without the tests that start a JVM (Spark's session, Java's own classes). They are: make test-jvm"

test-jvm: setup-fast ## the fast tests that start a JVM: Spark's session, Java's own classes
	$(RUN) -m pytest -q -m "jvm and not sandbox" $(UNIT_TESTS)

bench: setup ## how fast a mirror copies, a large stack previews and a verification compares, here
	$(VENV)/python -m benchmarks.mirror_throughput
	$(VENV)/python -m benchmarks.preview_large_stack
	$(VENV)/python -m benchmarks.verification

soak: setup ## ten minutes of traffic, two restarts of the mirror, and every verification compared with the truth
	$(RUN) -m benchmarks.soak

lint: setup-fast ## formatting, lint and types, nothing changed
	$(LINT)

# What was locked stays unless requirements.txt or constraints.txt changed it; an image installs what is locked there. uv
# reads no configuration of pip's: it gets the index from there.
lock: python ## write the locks of requirements.txt, the images and the tools, with the SHA-256 of each file
	test -x reports/lock/bin/pip || $(PY) -m venv reports/lock
	sed -n '/^uv==/,/[^\]$$/p' $(TOOLS_LOCK) > reports/lock/uv.txt
	reports/lock/bin/pip install --quiet --require-hashes --only-binary :all: --requirement reports/lock/uv.txt
	index="$$(reports/lock/bin/pip config list | sed -n "s/^\(global\|:env:\)\.index-url='\(.*\)'$$/\2/p" | tail -n 1)"; \
		test -z "$$index" || export UV_DEFAULT_INDEX="$$index"; $(COMPILE) requirements.txt --output-file requirements.lock && \
		for packages in images/*/packages.txt; do $(COMPILE) "$$packages" --constraint requirements.lock \
			--output-file "$$(dirname "$$packages")/requirements.lock" || exit 1; done && \
		$(PY) -c 'from sandbox.toolchain import wheels; print(*wheels.RELEASES, sep="\n")' | \
			$(COMPILE) - --no-deps --output-file $(TOOLS_LOCK)

sbom: python ## the parts of a release as CycloneDX, into SBOM=reports/sbom.cdx.json
	mkdir -p "$(dir $(SBOM))" && $(PY) -m sandbox.toolchain sbom > "$(SBOM)"

format: setup-fast ## format and fix what can be fixed
	$(VENV)/ruff format .
	$(VENV)/ruff check --fix .

clean: ## stop the sandbox and remove what was made here; the tool cache stays
	if [ -x $(VENV)/python ] && [ -d .sandbox ]; then $(VENV)/python -m sandbox down; fi
	rm -rf .sandbox reports .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './venv/*' -prune -exec rm -rf {} +
