# Everything a contributor or CI runs. Needs Python 3.11+ with venv, and make; `make help` lists it.

PYTHON ?= python3
# Where `make demo` writes study.duckdb.
OUT ?= demo-output
# `make lock UPGRADE=--upgrade` takes the newest versions instead of keeping the pins.
UPGRADE ?=

# `make bench RECORD=1` adds the results to docs/bench-history.md.
RECORD ?=

# How many configs `make fuzz` tries, and how many calls it makes to each method; FUZZ_SEED picks others.
FUZZ_EXAMPLES ?= 100000
FUZZ_CALLS ?= 2000

# Kills of the ingest service under load in `make faults`, and how often it makes every other fault that takes moments.
FAULT_KILLS ?= 200
FAULT_REPEATS ?= 60

BIN := .venv/bin
PROTOS_PYTHON := .venv-protos/bin/python
DOCKERFILES := $(wildcard docker/*.Dockerfile)
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate $(UPGRADE)
# The tests of a file stay together: they share servers. Some wait for processes and clocks, so there is one worker more
# than there are cores.
ON_EVERY_CORE := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist loadfile
# They end processes, and take minutes.
FAULTS := tests/faults
export PYTHON

# Whatever the shell says: tests start the command a few hundred times, and each would compile all of it anew.
test faults test-lake: export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help demo test faults bench fuzz check format lint types imports protos protos-check release docker-check \
	docs docs-check lock test-lake clean distclean venv venv-protos venv-lake

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{ printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: venv ## both services, the study's records, predicted beside measured; writes $(OUT)/study.duckdb
	@$(BIN)/linkbound demo --out $(OUT)

test: venv ## run every test but those of `make faults`, on every core
	@$(BIN)/pytest $(ON_EVERY_CORE) --ignore=$(FAULTS)

faults: venv ## kill, damage, cut off and flood the ingest service, print what was lost; FAULT_KILLS=3 FAULT_REPEATS=3: quickly
	@FAULT_KILLS=$(FAULT_KILLS) FAULT_REPEATS=$(FAULT_REPEATS) $(BIN)/pytest -q $(FAULTS)

check: lint types imports protos-check docker-check docs-check ## format, lint, types, imports, protos, Dockerfiles, docs

format: venv ## format the code and the protos
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix
	@$(BIN)/buf format protos --write

lint: venv
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check

types: venv
	@$(BIN)/mypy

imports: venv
	@$(BIN)/lint-imports --no-logo

protos: venv-protos ## regenerate the client code from the protos
	@$(PROTOS_PYTHON) scripts/gen_protos.py write

protos-check: venv venv-protos ## generated code up to date, protos linted, formatted and compatible
	@$(PROTOS_PYTHON) scripts/gen_protos.py check
	@BUF=$(BIN)/buf PYTHON=$(PROTOS_PYTHON) scripts/check_protos.sh

bench: venv ## measure sweeps, batches, calls and processes, as ratios; RECORD=1 keeps the results
	@RECORD=$(RECORD) $(BIN)/python -m tests.bench

fuzz: venv ## mutated configs and random requests: whatever is not answered is refused in words
	@FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) FUZZ_CALLS=$(FUZZ_CALLS) $(BIN)/pytest -q tests/fuzz

release: protos-check ## make today's protos the released contract (protos/released.binpb)
	@$(PROTOS_PYTHON) scripts/gen_protos.py release

docker-check: venv
	@$(BIN)/hadolint $(DOCKERFILES)

docs: venv ## write docs/errors.md, docs/schema.md, tables of docs/accuracy.md and outputs in docs/sizing.md and docs/sql.md from the code
	@$(BIN)/python scripts/error_docs.py write
	@$(BIN)/python scripts/gen_schema_doc.py write
	@$(BIN)/python -m tests.golden.engine_accuracy write
	@$(BIN)/python scripts/doc_outputs.py docs/sizing.md
	@$(BIN)/python -m tests.integration.sql_page write

docs-check: venv ## docs/errors.md, docs/schema.md and docs/accuracy.md say what the code does
	@$(BIN)/python scripts/error_docs.py check
	@$(BIN)/python scripts/gen_schema_doc.py check
	@$(BIN)/python -m tests.golden.engine_accuracy check

lock: venv ## resolve the locks again from pyproject.toml
	@$(COMPILE) pyproject.toml --extra services --extra dev -o requirements.lock
	@$(COMPILE) pyproject.toml --extra services --extra lake --extra dev -o requirements-lake.lock
	@$(COMPILE) pyproject.toml --extra services -c requirements.lock -o docker/requirements.lock
	@$(COMPILE) --group protos -o requirements-protos.lock

test-lake: venv venv-lake ## run the tests with the DuckDB that the lake needs
	@.venv-lake/bin/pytest $(ON_EVERY_CORE) --ignore tests/packaging

clean: ## remove caches and build output
	@rm -rf build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name '.venv*' -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean ## remove the environments too
	@rm -rf .venv .venv-protos .venv-lake

venv:
	@scripts/make_venv.sh .venv requirements.lock --with-project

venv-lake:
	@scripts/make_venv.sh .venv-lake requirements-lake.lock --with-project

venv-protos:
	@scripts/make_venv.sh .venv-protos requirements-protos.lock
