# Every target sets up what it needs: .venv in this checkout, from requirements/*.lock. Caches are outside of it.
.DEFAULT_GOAL := help
.PHONY: help demo check test test-spark4 bench format lock schemas migrations build clean base spark dev

BIN := .venv/bin
# Any Python 3 can start tools/bootstrap.py, which looks for one to build on: PYTHON if given, else the best it finds.
STARTER := $(shell for name in python3 python3.12 python3.11 python3.10 python $(PYTHON); do \
	command -v $$name 2>/dev/null && break; done)
SETUP = @test -n "$(STARTER)" || { echo "no Python found: install Python 3.10, 3.11 or 3.12 with its venv module or pip" >&2; exit 1; }; \
	"$(STARTER)" -m tools.bootstrap

help: ## Show this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-20s%s\n", $$1, $$2}'

demo: spark ## See it work
	@$(BIN)/headwater demo

check: dev ## Format, lint, types, layers, fast tests; under a minute
	@$(BIN)/python -m tools.check

test: dev ## All tests, on real servers, with coverage
	@$(BIN)/python -m tools.test

test-spark4: dev ## All tests of capture that apply to Spark 4, on Spark 4
	@$(BIN)/python -m tools.spark4

bench: dev ## The benchmarks and long fuzz runs, as tables of ratios; BENCH=name runs one
	@$(BIN)/python -m tools.bench $(BENCH)

format: dev ## Format the code and mend what lint can mend
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

lock: base ## Write requirements/*.lock anew from pyproject.toml; UPGRADE=1 takes the newest of everything
	@$(BIN)/python -m tools.lock

schemas: dev ## Write the Avro schemas anew from the event models
	@$(BIN)/python -m tools.schemas

migrations: dev ## Write the store's first migration anew from its tables, as long as no release has it
	@$(BIN)/python -m tools.migrations

build: dev ## Make dist/*.tar.gz and, from it, dist/*.whl
	@rm -rf dist && $(BIN)/python -m build --no-isolation

clean: ## Remove whatever make has made in this checkout
	@rm -rf .venv dist build .coverage .coverage.* .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .benchmarks
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

base:
	$(SETUP) base

spark:
	$(SETUP) demo

dev:
	$(SETUP) dev
