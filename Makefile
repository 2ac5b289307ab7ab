# make demo and make test set everything up by themselves: Python 3.11+ with venv is all they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test lint soak bench docs lock clean

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/'

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Lockgate needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@# A DuckDB that has no MERGE yet, on which tests/contracts/engine run too.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target $(VENV)/older/duckdb-1.3 duckdb==1.3.2
	@# The newest DuckDB for which its Delta extension comes as a package: it reads what Lockgate publishes.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target $(VENV)/older/duckdb-1.5 duckdb==1.5.5 duckdb-extension-delta==1.5.5
	$(BIN)/python -m compileall -q src
	@touch $@

demo: $(READY) ## run the example pipeline twice on embedded defaults and show what changed
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

lint: $(READY) ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint ## lint, then every test but the slow ones, in two halves side by side
	@$(BIN)/python -m pytest tests/end_to_end & half=$$!; bad=0; \
	  $(BIN)/python -m pytest --ignore=tests/end_to_end || bad=$$?; \
	  wait $$half || bad=$$?; exit $$bad

soak: $(READY) ## the long tests
	$(BIN)/python -m pytest -m slow --timeout 3600

bench: $(READY) ## every benchmark, as ratios within one run
	for each in benchmarks/*/run.py; do $(BIN)/python $$each || exit 1; done

docs: $(READY) ## the documentation as a site in site/
	$(BIN)/mkdocs build --strict --quiet

lock: ## pin the dependencies anew
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --upgrade \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links -o requirements.lock

clean: ## remove what the targets above made
	rm -rf $(VENV) demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis
