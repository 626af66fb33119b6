# Needs python3 (3.11 or newer), pip and make; everything else goes into .venv on first use.

PYTHON  ?= python3
WORKERS ?= 2
VENV    := .venv
PEERS   := .venv-peers
BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile

# Pip compiles one file after the other: all processors together are sooner done. A library may hold files that are no
# Python of this version, which nobody imports.
COMPILE := $(BIN)/python -m compileall -qq -j 0 src $(VENV)/lib || true

TORCH   := torch==2.13.0

PYTEST  := $(BIN)/pytest -q -n $(WORKERS) --dist worksteal

# Workers fill the processors by themselves: pools of threads inside each would only wait for one another.
SINGLE  := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1

# Arrays come and go by the thousand: memory that was given back and fetched again is a tenth of the accountants' time.
REUSE   := MALLOC_MMAP_THRESHOLD_=268435456 MALLOC_TRIM_THRESHOLD_=536870912 MALLOC_TOP_PAD_=16777216

# What one worker has compiled the others read, and every program that a test starts.
unexport PYTHONDONTWRITEBYTECODE

# Where these are set, pytest compares failing texts whole: mutants that show a long one would not end.
unexport CI BUILD_NUMBER

.PHONY: demo test test-slow test-shadow test-mutants test-sklearn lint style types quick slow test-ci bench docs \
  pages examples clean
.DELETE_ON_ERROR:

demo: $(VENV)/.run
	@$(BIN)/discreet demo --out build/demo

# Style, import contracts and quick tests. Types are a target of their own, `make types`.
test: $(VENV)/.dev
	+@$(MAKE) -j2 --no-print-directory style quick

# Types are checked beside the tests: together they keep all processors busy to the end.
test-slow: style
	+@$(MAKE) -j2 --no-print-directory types slow

# Tests of questions, in which every reading of the referee is another engine's, too (tests/shadow.py).
SHADOWED := $(addprefix tests/curator/test_,$(addsuffix .py,first_last groupings histograms marks modes owners \
  private_limits private_owners public ranges row_joins shapes three_values times unions weighted_groups windows))

FUZZED := $(addprefix tests/curator/test_,fuzz.py joined_fuzz.py)

test-shadow: $(VENV)/.dev
	$(SINGLE) $(REUSE) DISCREET_SHADOW=postgres $(PYTEST) -m "not slow" tests/curator tests/corpus
	$(SINGLE) $(REUSE) DISCREET_SHADOW=mariadb $(PYTEST) -m "not slow" $(SHADOWED) $(FUZZED)
	$(SINGLE) $(REUSE) DISCREET_SHADOW=spark $(PYTEST) -m "not slow" $(SHADOWED) $(FUZZED)

# What `make test` has no time for and .ci/run has: tests that are marked for it.
test-ci: $(VENV)/.dev
	$(SINGLE) $(REUSE) $(PYTEST) -m ci

# Which tests kill which mutants, in build/mutants/kills.md: hours of it, which may be stopped and gone on with.
# MUTANTS="half the scale,too much truth" TESTS=tests/mechanisms runs a part.
test-mutants: $(VENV)/.dev
	$(SINGLE) $(REUSE) DISCREET_MUTANTS=calls $(BIN)/pytest -q -p no:xdist -m "not slow" $(or $(TESTS),tests)
	$(SINGLE) $(REUSE) DISCREET_MUTANTS=kills $(BIN)/pytest -q -p no:xdist -m "not slow" $(or $(TESTS),tests)

# Learners under every version of scikit-learn that the extra allows, each in a folder before the environment's own.
SKLEARN := 1.6 1.7 1.8 1.9

test-sklearn: $(VENV)/.dev
	@set -e; for version in $(SKLEARN); do echo "== scikit-learn $$version"; \
	  test -d .sklearn/$$version || $(PIP) --no-deps --target .sklearn/$$version "scikit-learn==$$version.*"; \
	  PYTHONPATH=$(CURDIR)/.sklearn/$$version $(SINGLE) $(REUSE) $(PYTEST) -m "not slow" \
	    tests/learn tests/conformance/test_learners.py $(wildcard tests/curator/test_fit*.py); done

lint: style types

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@find src -name '*.py' ! -path src/discreet/requests/verbs.py -exec awk 'FNR == 501 {print FILENAME ": over 500 lines"; bad = 1} END {exit bad}' {} +
	@awk 'FNR == 701 {print FILENAME ": over 700 lines, too long for a facade"; exit 1}' src/discreet/requests/verbs.py
	$(BIN)/lint-imports --no-logo

types: $(VENV)/.dev
	$(BIN)/mypy

quick: $(VENV)/.dev
	$(SINGLE) $(REUSE) $(PYTEST) --durations=40 -m "not slow"

slow: $(VENV)/.dev
	$(SINGLE) $(REUSE) DISCREET_HYPOTHESIS=slow $(PYTEST) --durations=40

bench: $(VENV)/.bench $(patsubst bench/peers/%.txt,$(PEERS)/%/.tried,$(wildcard bench/peers/*.txt))
	@set -e; for script in $(filter-out bench/_%,$(sort $(wildcard bench/*.py))); do echo "== $$script"; $(BIN)/python $$script; done

# The documentation as a site, in build/site: its pages are written while its examples run.
docs: $(VENV)/.docs
	+@$(MAKE) -j2 --no-print-directory pages examples
	@echo "Open build/site/index.html"

pages: $(VENV)/.docs
	@rm -rf build/site
	@$(BIN)/python -m docs.site.assemble build/site-pages
	@$(BIN)/python -m sphinx -q -W --keep-going -b html -c docs/site build/site-pages build/site

examples: $(VENV)/.examples
	@$(SINGLE) $(REUSE) $(BIN)/python -m docs.site.examples -n $(WORKERS)

clean:
	rm -rf $(VENV) .bootstrap .sklearn build dist discreet-demo .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A python without ensurepip (some distributions) cannot fill an environment by itself: virtualenv can. The pip that
# comes with an older python takes a third longer to find out what fits together.
$(VENV)/.made:
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); \
	  $(PYTHON) -m pip install -qq --disable-pip-version-check --target .bootstrap virtualenv && \
	  PYTHONPATH=.bootstrap $(PYTHON) -m virtualenv -q $(VENV); }
	@$(PIP) --upgrade pip
	@touch $@

# One stamp per set of dependencies; each is renewed when pyproject.toml changes. Most of what the documentation needs is
# never imported, and is not compiled.
$(VENV)/.run: pyproject.toml | $(VENV)/.made
	@echo "Setting up $(VENV)"
	@$(PIP) -e '.[report]'
	@$(COMPILE)
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	@echo "Setting up $(VENV) for development"
	@$(PIP) -e '.[dev]'
	@$(COMPILE)
	@touch $@ $(VENV)/.run

$(VENV)/.bench: pyproject.toml | $(VENV)/.made
	@echo "Setting up $(VENV) for benchmarks"
	@$(PIP) -e '.[dev,bench]'
	@touch $@ $(VENV)/.dev $(VENV)/.run

$(VENV)/.docs: pyproject.toml | $(VENV)/.made
	@echo "Setting up $(VENV) for the documentation"
	@$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/.run

# Two large libraries that examples need and pages do not: they are fetched while pages are written.
$(VENV)/.examples: pyproject.toml | $(VENV)/.docs
	@$(PIP) 'discreet[spark]' $(TORCH)
	@touch $@

# Libraries that are measured beside ours pin versions that conflict: an environment for each. One that cannot be
# installed here is reported by the benchmarks and stops nothing.
$(PEERS)/%/.tried: bench/peers/%.txt
	@echo "Setting up $(@D)"
	@rm -rf $(@D)
	@{ { $(PYTHON) -m venv $(@D) >/dev/null 2>&1 || { rm -rf $(@D); \
	  $(PYTHON) -m pip install -qq --disable-pip-version-check --target .bootstrap virtualenv && \
	  PYTHONPATH=.bootstrap $(PYTHON) -m virtualenv -q $(@D); }; } && \
	  $(@D)/bin/python -m pip install -qq --disable-pip-version-check -r $< && \
	  if [ -f bench/peers/$*.no-deps ]; then \
	    $(@D)/bin/python -m pip install -qq --disable-pip-version-check --no-deps -r bench/peers/$*.no-deps; fi && \
	  touch $(@D)/.made; } || echo "$* cannot be installed here"
	@mkdir -p $(@D) && touch $@
