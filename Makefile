# Needs python3 (3.11 or newer), pip and make; everything else goes into .venv on first use.

PYTHON  ?= python3
WORKERS ?= 2
VENV    := .venv
BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip install -qq --disable-pip-version-check

.PHONY: demo test test-slow lint bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.run
	@$(BIN)/python -m discreet.demo

test: lint
	$(BIN)/pytest -q -n $(WORKERS) -m "not slow"

test-slow: lint
	DISCREET_HYPOTHESIS=slow $(BIN)/pytest -q -n $(WORKERS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@find src -name '*.py' -exec awk 'FNR == 501 {print FILENAME ": over 500 lines"; bad = 1} END {exit bad}' {} +
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/.bench
	@set -e; for script in $(sort $(wildcard bench/*.py)); do echo "== $$script"; $(BIN)/python $$script; done

clean:
	rm -rf $(VENV) .bootstrap build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A python without ensurepip (some distributions) cannot fill an environment by itself: virtualenv can.
$(VENV)/.made:
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); \
	  $(PYTHON) -m pip install -qq --disable-pip-version-check --target .bootstrap virtualenv && \
	  PYTHONPATH=.bootstrap $(PYTHON) -m virtualenv -q $(VENV); }
	@touch $@

# One stamp per set of dependencies; each is renewed when pyproject.toml changes.
$(VENV)/.run: pyproject.toml | $(VENV)/.made
	@echo "Setting up $(VENV)"
	@$(PIP) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	@echo "Setting up $(VENV) for development"
	@$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.run

$(VENV)/.bench: pyproject.toml | $(VENV)/.made
	@echo "Setting up $(VENV) for benchmarks"
	@$(PIP) -e '.[dev,bench]'
	@touch $@ $(VENV)/.dev $(VENV)/.run
