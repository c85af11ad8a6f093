# gpal: every target works from a bare machine with make and Python 3.10, 3.11 or 3.12.
#
#   make classify                          the main job: class probabilities for 4FGL-DR4
#   make classify SOURCE=gll_psc_v35.fit   the same on another catalog or a file of yours
#   make quick                             the inner loop: lint, contracts, types, the fast tests
#   make test                              lint, contracts, types, tests
#   make test-slow                         the studies that take longer
#   make fuzz                              thousands of damaged files of every kind
#   make test-oldest                       the loop on the oldest scikit-learn
#   make sbom                              docs/sbom.cdx.json: all that a user installs, with versions
#   make audit                             known faults of those versions, where there is a network

VENV    := .venv
BIN     := $(VENV)/bin
SOURCE  ?= 4fgl-dr4
OUT     ?= results
WORKERS ?= 2

# Wheels only: nothing that is installed runs code of its own while it is. For a platform without
# wheels: make PIP_OPTIONS=
PIP_OPTIONS ?= --only-binary :all:
INSTALL := -m pip install --quiet $(PIP_OPTIONS)

# The rooms whose tests fit no model, or few.
QUICK := tests/catalog tests/evaluation tests/metrics tests/plot tests/report tests/files tests/test_measurements.py \
	tests/test_provenance.py tests/test_structure.py \
	tests/likelihoods --ignore tests/likelihoods/test_site_rules.py

# What that scikit-learn asks of a newer SciPy, and of a newer pytest.
OLD_CALLS := -W "ignore:scipy.optimize:DeprecationWarning" -W "ignore:Passing a non"
OLDEST_SKLEARN := $(shell sed -n 's/.*"scikit-learn>=\([0-9.]*\)".*/\1/p' pyproject.toml)

# The first interpreter that runs and is in range; an older or newer `python3` is passed over.
PYTHON ?= $(shell for python in python3 python3.12 python3.11 python3.10 python; do \
	$$python -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' \
	2>/dev/null && echo $$python && break; done)

.DEFAULT_GOAL := help
.PHONY: help classify lint quick test test-slow test-oldest fuzz docs benchmark sbom audit clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

classify: $(VENV)/.installed ## class probabilities and the report, in results/
	$(BIN)/gpal classify $(SOURCE) --out $(OUT)

lint: $(VENV)/.installed ## ruff, the floors of docs/design.md, mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy gpal

# One TensorFlow thread per worker, or the workers fight over the cores.
TESTS := quick test test-slow test-oldest fuzz
$(TESTS): export OMP_NUM_THREADS = 1
$(TESTS): export TF_NUM_INTRAOP_THREADS = 1
$(TESTS): export TF_NUM_INTEROP_THREADS = 1
$(TESTS): export TF_CPP_MIN_LOG_LEVEL = 2
quick: lint ## the inner loop, within 90 seconds: lint and the tests that fit no model
	$(BIN)/pytest -n $(WORKERS) -m "not slow" $(QUICK)

test: lint ## lint and every test but the slow studies
	$(BIN)/pytest -n $(WORKERS) -m "not slow"

test-slow: $(VENV)/.installed ## the slow studies: crashes, many seeds, whole nights
	$(BIN)/pytest -n $(WORKERS) -m slow

MUTATIONS  ?= 150
FIRST_SEED ?= 0
fuzz: $(VENV)/.installed ## damaged files, MUTATIONS=150 of every kind from FIRST_SEED=0 on
	$(BIN)/pytest -n $(WORKERS) tests/fuzz --mutations $(MUTATIONS) --first-seed $(FIRST_SEED)

test-oldest: ## estimator and active learning with the oldest scikit-learn that pyproject.toml allows
	$(MAKE) VENV=.venv-oldest .venv-oldest/.installed
	.venv-oldest/bin/python $(INSTALL) 'scikit-learn==$(OLDEST_SKLEARN)'
	.venv-oldest/bin/pytest -n $(WORKERS) -m "not slow" $(OLD_CALLS) tests/active tests/test_classifier.py

docs: $(VENV)/.installed-docs ## the documentation, in docs/_build/html/
	$(BIN)/sphinx-build -q -W -b html docs docs/_build/html

benchmark: $(VENV)/.installed-benchmarks ## comparison with other libraries, docs/benchmarks.md
	$(BIN)/python workflows/benchmarks/sweep_rate.py
	$(BIN)/python workflows/benchmarks/compare.py

sbom: .venv-user/.installed .venv-audit/.installed ## bill of materials of what a user installs
	.venv-audit/bin/python workflows/bill_of_materials.py .venv-user docs/sbom.cdx.json

audit: .venv-user/.installed .venv-audit/.installed ## known faults of what a user installs (network)
	.venv-audit/bin/pip-audit --strict --path $$(echo .venv-user/lib/python3.*/site-packages)

clean: ## remove the environment and every cache; results stay
	rm -rf $(VENV) .venv-oldest .venv-user .venv-audit docs/_build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find gpal tests workflows -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python $(INSTALL) --editable '.[dev]'
	@touch $@

$(VENV)/.installed-%: pyproject.toml $(VENV)/.installed
	$(BIN)/python $(INSTALL) --editable '.[$*]'
	@touch $@

.venv-user/.installed: pyproject.toml gpal/_version.py
	$(MAKE) VENV=.venv-user .venv-user/bin/python
	.venv-user/bin/python $(INSTALL) .
	@touch $@

.venv-audit/.installed:
	$(MAKE) VENV=.venv-audit .venv-audit/bin/python
	.venv-audit/bin/python $(INSTALL) cyclonedx-bom pip-audit
	@touch $@

# Debian ships python3 without ensurepip: there the system's own pip fills the environment.
$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "gpal needs Python 3.10, 3.11 or 3.12 and found none;" \
			"install one, or say where it is: make PYTHON=/path/to/python3.12"; exit 1; fi
	@echo "Making $(VENV) with $$($(PYTHON) --version) and installing gpal: a few minutes, once"
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 \
		|| { $(PYTHON) -m venv --clear --without-pip $(VENV) >/dev/null 2>&1 \
			&& $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; } \
		|| { rm -rf $(VENV); echo "$(PYTHON) has neither ensurepip nor pip to make $(VENV) with;" \
			"on Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
