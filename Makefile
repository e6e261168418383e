# `make help` lists the targets. Every target that needs the environment sets it up first.

PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
READY := .venv/.ready
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest
BOUNDED := -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true  # a test that hangs says where

.DEFAULT_GOAL := help
.PHONY: help setup demo check test test-long test-gpu results docs format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## make .venv from requirements.lock and install weft into it

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("weft needs Python 3.11 or newer: make setup PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: $(READY)  ## train and compare two models on built-in data, and write report.html
	$(BIN)/weft demo

check: $(READY)  ## format, lint, types, structure
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright --warnings
	$(PYTEST) -q tests/structure

test: $(READY)  ## every quick test (at most 15 minutes on 2 cores)
	$(PYTEST) -q -n $(JOBS)

test-long: $(READY)  ## the full grids
	$(PYTEST) -q -n $(JOBS) -m long

test-gpu: $(READY)  ## the tests that need a CUDA device; the log stays in benchmarks/results
	@mkdir -p benchmarks/results
	bash -o pipefail -c '$(PYTEST) -q -m gpu $(BOUNDED) tests/gpu 2>&1 | tee benchmarks/results/test_gpu.txt'

results: $(READY)  ## the timed quality runs; writes results/*.json
	$(BIN)/python scripts/results.py

docs: $(READY)  ## write docs/config.md, docs/speed.md and README's table of speed anew
	$(BIN)/python -m weft.cli.config_docs
	$(BIN)/python -m weft.bench.page

format: $(READY)  ## format the code and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove caches and build leftovers; runs and data stay
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -path ./.venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
