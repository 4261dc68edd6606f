# Every target sets up what it needs; a second run sets up nothing again.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Test workers run torch with one thread each: more threads than cores collapse under load.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench format clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(READY) ## Create .venv with the package and its development tools

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(READY) ## Find the best tube in a generated volume and draw it
	$(BIN)/whytube demo

test: $(READY) ## Run the whole test suite
	$(BIN)/python -m pytest -n 2

check: $(READY) ## Format, lint, types and the quick tests
	$(BIN)/ruff format src tests
	$(BIN)/ruff check --fix src tests
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 -m "not slow"

bench: $(READY) ## Measure the maximum-subpath layer on this machine
	OMP_NUM_THREADS= $(BIN)/whytube bench subpath

clean: ## Remove the environment and everything built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +
