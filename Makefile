# Every target sets up the environment it needs from requirements/*.lock, by uv. Caches are outside of the checkout.
.DEFAULT_GOAL := help
.PHONY: help demo check test test-all bench format docs lock schemas build clean .venv .venv-spark-4.1.1 .venv-demo

# Hundreds of processes of tests import the same modules; `make clean` removes what is compiled.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# An environment's own Python sees fastest that it is fresh. Else any Python from 3.10 sets it up, or the one that uv has.
SETUP = -m tools.environment $(or $(patsubst .venv-%,%,$(filter .venv-%,$@)),dev)
IS_NEW := import sys; sys.exit(sys.version_info < (3, 10))

help: ## Show this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-20s%s\n", $$1, $$2}'

demo: .venv-demo ## See it work
	@.venv-demo/bin/headwater demo

check: .venv ## Format, lint, types, layers, fast tests; under a minute
	@$(BIN)/python -m tools.check

test: .venv ## What finds most faults in 13 minutes, on real servers and real Spark
	@$(BIN)/python -m tools.test

test-all: .venv ## Everything that takes long; SLICE=3/39 plays a part of eight minutes, SLICE=auto one by the commit
	@SLICE=$(SLICE) $(BIN)/python -m tools.test_all

bench: .venv ## The benchmarks and long fuzz runs, as tables of ratios; BENCH=name runs one
	@$(BIN)/python -m tools.bench $(BENCH)

format: .venv ## Format the code and mend what lint can mend
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

docs: .venv ## Build the documentation as a site, into site/; a broken link fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

COMPILE = $(BIN)/python -m tools.uv pip compile $(LOCKING) --python-version 3.10 pyproject.toml
LOCK_SPARK = $(BIN)/python -m tools.uv pip compile $(LOCKING) --python-version 3.11
LOCKING = --universal --generate-hashes --quiet --no-emit-index-url --no-annotate --custom-compile-command "make lock"
# The versions of Spark that tests run on besides that of requirements/dev.in.
SPARKS = $(patsubst requirements/spark-%.lock,%,$(wildcard requirements/spark-*.lock))

lock: .venv ## Write requirements/*.lock anew from pyproject.toml; UPGRADE=1 takes the newest of everything
	@$(COMPILE) $(if $(UPGRADE),--upgrade) --extra dev requirements/dev.in --output-file requirements/dev.lock
	@for spark in $(SPARKS); do \
		echo pyspark==$$spark | $(LOCK_SPARK) - --output-file requirements/spark-$$spark.lock || exit 1; done
	@cp requirements/dev.lock requirements/demo.lock
	@$(COMPILE) --extra demo requirements/demo.in --output-file requirements/demo.lock

schemas: .venv ## Write the Avro schemas anew from the event models
	@$(BIN)/python -m tools.schemas

build: .venv ## Make dist/*.tar.gz and, from it, dist/*.whl
	@rm -rf dist && $(BIN)/python -m build --no-isolation

clean: ## Remove whatever make has made in this checkout
	@rm -rf .venv .venv-* dist build site .coverage .coverage.* .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .benchmarks
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv .venv-spark-4.1.1 .venv-demo:
	@$@/bin/python -S $(SETUP) --is-fresh 2>/dev/null && exit; \
	for python in python3 python3.12 python3.11 python3.10 python "$(PYTHON)"; do \
		"$$python" -c "$(IS_NEW)" >/dev/null 2>&1 && exec "$$python" $(SETUP); \
	done; \
	command -v uv >/dev/null && exec uv run --no-project --python '>=3.10' python $(SETUP); \
	echo "no Python found: install Python 3.10, 3.11 or 3.12 with pip or its venv module, or uv" >&2; exit 1
