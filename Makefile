# gpal: every target works from a bare machine with make and Python 3.10 to 3.13.
#
#   make classify                          the main job: class probabilities for 4FGL-DR4
#   make classify SOURCE=gll_psc_v35.fit   the same on another catalog or a file of yours
#   make quick                             the inner loop: lint, contracts, types, the fast tests
#   make test                              lint, contracts, types, tests
#   make test-slow                         the studies that take longer
#   make papers-quick                      the studies of the papers in small
#   make fuzz                              thousands of damaged files of every kind
#   make test-oldest                       on NumPy 1 and the oldest of everything
#   make test-beside                       beside gammapy, astropy 8 and LSDB
#   make lock                              requirements/: what the tests ran on
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

# Without what it declares, numpy<2: see pyproject.toml.
GPFLOW := $(shell sed -n 's/^gpflow = \["\(.*\)"\].*/\1/p' pyproject.toml)

# The rooms whose tests fit no model, or few.
QUICK := tests/catalog tests/evaluation tests/metrics tests/plot tests/report tests/files tests/test_measurements.py \
	tests/test_provenance.py tests/test_structure.py \
	tests/likelihoods --ignore tests/likelihoods/test_site_rules.py

# The first interpreter that runs and is in range; an older or newer `python3` is passed over.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.10 python; do \
	$$python -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' \
	2>/dev/null && echo $$python && break; done)

.DEFAULT_GOAL := help
.PHONY: help classify lint quick test test-slow test-oldest test-beside fuzz papers-quick docs \
	benchmark lock sbom audit clean

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
TESTS := quick test test-slow test-oldest test-beside fuzz
$(TESTS): export OMP_NUM_THREADS = 1
$(TESTS): export TF_NUM_INTRAOP_THREADS = 1
$(TESTS): export TF_NUM_INTEROP_THREADS = 1
$(TESTS): export TF_CPP_MIN_LOG_LEVEL = 2
# And one process, unless a test asks for more: another would import TensorFlow for two folds.
$(TESTS): export LOKY_MAX_CPU_COUNT = 1
quick: lint ## the inner loop, two to three minutes: lint and the tests that fit no model
	$(BIN)/pytest -n $(WORKERS) -m "not slow" $(QUICK)

# A worker goes through files in their order, since the tests of one share what it prepares and the
# graphs that TensorFlow makes; who has finished takes over half of what another has left.
test: lint ## lint and every test but the slow studies
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow"

test-slow: $(VENV)/.installed ## the slow studies: crashes, many seeds, whole fits, whole nights
	$(BIN)/pytest -n $(WORKERS) -m slow

MUTATIONS  ?= 150
FIRST_SEED ?= 0
fuzz: $(VENV)/.installed ## damaged files, MUTATIONS=150 of every kind from FIRST_SEED=0 on
	$(BIN)/pytest -n $(WORKERS) tests/fuzz --mutations $(MUTATIONS) --first-seed $(FIRST_SEED)

# What stands on other libraries, with NumPy 1 under all of them: tables and files, SQLite, the
# estimator's interface, the command line, operations of TensorFlow, fits and their files. What gpal
# makes of these is the same by any version, and tested once.
OLDEST := tests/catalog tests/files tests/metrics $(addprefix tests/active/, \
	test_campaign.py test_campaign_database.py test_campaign_of_before.py test_campaign_releases.py \
	test_export_names.py) tests/input_noise/test_treatments.py \
	tests/likelihoods/test_likelihood_contract.py tests/likelihoods/test_likelihood_families.py \
	tests/test_classifier.py::test_scikit_learn_estimator_checks tests/test_cli.py \
	tests/test_measurements.py tests/test_model_file.py tests/test_predict.py tests/test_stacks.py

test-oldest: .venv-oldest/.installed ## NumPy 1, and the oldest of every library that pyproject.toml allows
	.venv-oldest/bin/pytest -n $(WORKERS) --dist worksteal -m "not slow" -W ignore::DeprecationWarning $(OLDEST)

test-beside: .venv-beside/.installed ## the main job where gammapy, astropy 8 and LSDB are installed
	.venv-beside/bin/pytest -n $(WORKERS) -m "not slow" tests/test_stacks.py tests/catalog \
		tests/test_engines.py tests/test_hats.py

# workflows/STUDY.py --quick, the longest first: a minute or two of one core each.
PAPERS := \
	paper_002/inferences \
	paper_003/dirichlet \
	paper_003/inducing_points \
	paper_004/convergence \
	paper_004/reference \
	paper_000/likelihoods \
	paper_000/training \
	paper_000/toy \
	paper_001/synthetic \
	paper_001/injected \
	paper_001/active \
	paper_001/fermi454 \
	paper_001/toy

papers-quick: $(VENV)/.installed ## the papers' studies in small, WORKERS at a time: do they still run?
	rm -f workflows/paper_*/results/*-quick.jsonl
	printf '%s\n' $(PAPERS) | xargs -P $(WORKERS) -I STUDY $(BIN)/python workflows/STUDY.py --quick

docs: $(VENV)/.installed-docs ## the documentation, in docs/_build/html/
	$(BIN)/sphinx-build -q -W -b html docs docs/_build/html

benchmark: $(VENV)/.installed-benchmarks ## comparison with other libraries, docs/benchmarks.md
	$(BIN)/python workflows/benchmarks/sweep_rate.py
	$(BIN)/python workflows/benchmarks/compare.py

lock: $(VENV)/.installed .venv-oldest/.installed ## requirements/: what the tests ran on
	$(call FREEZE,$(VENV),newest)
	$(call FREEZE,.venv-oldest,oldest)

# The names of packages and their versions, under the Python and the system that they are for.
define FREEZE
	mkdir -p requirements
	$(1)/bin/python -c 'import platform as p; print(f"# Python {p.python_version()}, {p.system()} {p.machine()}")' > requirements/$(2).tmp
	$(1)/bin/python -m pip freeze --exclude-editable >> requirements/$(2).tmp
	mv requirements/$(2).tmp requirements/$(2).txt
endef

sbom: .venv-user/.installed .venv-audit/.installed ## bill of materials of what a user installs
	.venv-audit/bin/python workflows/bill_of_materials.py .venv-user docs/sbom.cdx.json

audit: .venv-user/.installed .venv-audit/.installed ## known faults of what a user installs (network)
	.venv-audit/bin/pip-audit --strict --path $$(echo .venv-user/lib/python3.*/site-packages)

clean: ## remove the environment and every cache; results stay
	rm -rf $(VENV) .venv-oldest .venv-beside .venv-user .venv-audit docs/_build build dist .pytest_cache \
		.mypy_cache .ruff_cache .hypothesis
	find gpal tests workflows -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python $(INSTALL) --editable '.[dev]'
	$(BIN)/python $(INSTALL) --no-deps '$(GPFLOW)'
	@touch $@

$(VENV)/.installed-%: pyproject.toml $(VENV)/.installed
	$(BIN)/python $(INSTALL) --editable '.[$*]'
	@touch $@

.venv-user/.installed: pyproject.toml gpal/_version.py | .venv-user/bin/python
	.venv-user/bin/python $(INSTALL) .
	.venv-user/bin/python $(INSTALL) --no-deps '$(GPFLOW)'
	@touch $@

.venv-oldest/.installed: pyproject.toml | .venv-oldest/bin/python
	sed -n 's/.*"\([a-zA-Z][a-zA-Z0-9-]*\)>=\([0-9.]*\),<.*/\1==\2/p' pyproject.toml > .venv-oldest/oldest.txt
	.venv-oldest/bin/python $(INSTALL) --editable '.[test,gpflow]' --constraint .venv-oldest/oldest.txt
	@touch $@

# gammapy 2.1 does not import beside regions 0.12, which came after it.
.venv-beside/.installed: pyproject.toml | .venv-beside/bin/python
	.venv-beside/bin/python $(INSTALL) --editable '.[test,dask,hats]' 'gammapy>=2.1' 'regions<0.12' 'astropy>=8'
	.venv-beside/bin/python $(INSTALL) --no-deps '$(GPFLOW)'
	@touch $@

.venv-audit/.installed: | .venv-audit/bin/python
	.venv-audit/bin/python $(INSTALL) cyclonedx-bom pip-audit
	@touch $@

# Debian ships python3 without ensurepip: there the system's own pip fills the environment.
%/bin/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "gpal needs Python 3.10 to 3.13 and found none;" \
			"install one, or say where it is: make PYTHON=/path/to/python3.13"; exit 1; fi
	@echo "Making $* with $$($(PYTHON) --version) and installing gpal: a few minutes, once"
	@$(PYTHON) -m venv $* >/dev/null 2>&1 \
		|| { $(PYTHON) -m venv --clear --without-pip $* >/dev/null 2>&1 \
			&& $(PYTHON) -m pip --python $@ install --quiet pip; } \
		|| { rm -rf $*; echo "$(PYTHON) has neither ensurepip nor pip to make $* with;" \
			"on Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
