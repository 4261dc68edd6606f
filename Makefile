# Every target sets up what it needs; a second run sets up nothing again.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
BROWSER := $(VENV)/.browser
AXE     := $(VENV)/axe/.ready
# Test workers run torch with one thread each: more threads than cores collapse under load.
TESTS  := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test check bench results clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(READY) ## Create .venv with the package and its development tools

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

# Browser tests look at the report and at the page in Chromium; where it cannot be installed, they are skipped and say so.
$(BROWSER): $(READY)
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && touch $@ && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; then touch $@; \
	else echo "no Chromium here: its tests will be skipped"; fi

# axe looks for what people who see or move differently would stumble over. It is for tests only, and skipped without npm.
$(AXE): $(READY)
	@if command -v npm >/dev/null && npm install --silent --no-audit --no-fund --prefix $(VENV)/axe axe-core@4; then touch $@; \
	else echo "no npm here: the tests with axe will be skipped"; fi

demo: $(READY) ## Explain clips of the embedded world, measure, and write demo/report.html
	$(BIN)/whytube demo --out demo --overwrite
	@echo "Ask about videos of your own in the browser: make serve, then open http://127.0.0.1:8000/"

serve: $(READY) ## Serve the page: ask "why not B?" in the browser
	$(BIN)/whytube serve

test: $(READY) $(BROWSER) $(AXE) ## Run the whole test suite
	$(TESTS)

check: $(READY) ## Format, lint, types and the quick tests
	$(BIN)/ruff format src tests examples benchmarks studies
	$(BIN)/ruff check --fix src tests examples benchmarks studies
	$(BIN)/mypy
	$(TESTS) -m "not slow and not browser"

bench: $(READY) ## Measure the layer, the explainer's training step, reading for a training, masked clips, the page and bulk runs on this machine
	$(BIN)/python benchmarks/subpath.py
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/masked.py
	$(BIN)/python benchmarks/answer.py
	$(BIN)/python benchmarks/page.py
	$(BIN)/python benchmarks/bulk.py
	$(BIN)/python benchmarks/bulk_profile.py

results: $(READY) ## Write the tables of README and docs from the files under results/
	$(BIN)/python studies/results.py pages results README.md docs/*.md docs/results/*.md --images docs/images

clean: ## Remove the environment and everything built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +
