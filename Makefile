# Every target works alone on a fresh machine with Python 3.11+, make and bash.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
OUTPUT := output
# What the demo and the commands of the README's example need.
USERS_EXTRAS := cli,plots,page
# Four test processes on two cores, as one of them mostly waits: for a browser, a server or a child.
# Threads of their own would only wait for each other. They start some fifty more: what is compiled
# is kept for these, whatever the environment says.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
TESTING := $(ONE_THREAD) PYTHONDONTWRITEBYTECODE=
# Many failures are one: what waits for two minutes each time would take hours.
# A file's tests stay in one process, so that what they share is made once.
TOGETHER := -n 4 --dist loadfile
PYTEST := $(TESTING) $(BIN)/pytest -q $(TOGETHER) --maxfail 12
# The numbers in a certificate depend on the kernels that OpenBLAS picks for a processor: these are
# what processors without AVX-512, and old ones, get.
KERNELS ?= $(if $(filter x86_64 amd64,$(shell uname -m)),Haswell Nehalem)
# Which questions of equal worth are asked, later stages above all, depends on last bits: designs,
# and whole fits, here those of which all neighbours are tried; and what kept files predict.
LAST_BITS := tests/test_golden.py tests/design $(addprefix tests/privacy/test_,bands.py count_rows.py \
    interval.py laplace_releases.py later_visits.py several_intervals.py streaming_bands.py)
# What else solves, factorises and searches. What files hold and words say depends on no last bit,
# nor do closed forms of covariances and likelihoods: these are left out.
NUMBERS := $(wildcard tests/models/test_*.py) tests/release/hyperparameters tests/release/posterior \
    $(addprefix tests/release/test_,groups.py many_rows.py release.py)
# CI tries the first alone.
KERNEL_TESTS ?= $(LAST_BITS) $(NUMBERS)
ARCHITECTURE := $(BIN)/python -m threadpoolctl -i numpy scipy.linalg | grep '"architecture"' | sort -u

# Where a distribution is published; and dates of files that say nothing.
REPOSITORY ?=
REPRODUCIBLY := CLOAKGP_REPOSITORY=$(REPOSITORY) SOURCE_DATE_EPOCH=1767225600

SHELL := bash

.PHONY: demo test test-kernels test-lowest lint lint-beside unit slow experiments reproduction benchmarks peers docs paper linkcheck dist sbom lock clean

## The main job on data that comes with scikit-learn; names the picture that it draws.
demo: $(VENV)/.installed
	$(BIN)/cloakgp demo --output-dir $(OUTPUT)

# What lint says while tests run is shown as a whole, and again at the end if it found something.
LINT_SAYS := $(VENV)/lint.log
LINT_FAILED := $(VENV)/lint.failed

## Lint, types, import contracts and tests, side by side: types are checked on one core. If one of
## both fails, the other still ends.
test: $(VENV)/.installed-dev
	@rm -f $(LINT_FAILED)
	@$(MAKE) --no-print-directory -j 2 lint-beside unit || { cat $(LINT_FAILED) 2> /dev/null; exit 1; }

lint-beside:
	@$(MAKE) --no-print-directory lint > $(LINT_SAYS) 2>&1 || mv $(LINT_SAYS) $(LINT_FAILED); \
	    echo; cat $(LINT_SAYS) 2> /dev/null || { cat $(LINT_FAILED); exit 1; }

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.installed-dev
	@echo "Tests: some 25 minutes on two cores, more on slow ones; some in a browser if there is one."
	$(PYTEST)

## What depends on the last bits, under the kernels that OpenBLAS picks for other processors, and
## under this one's own if others are in force; not under those that `make test` runs with.
test-kernels: $(VENV)/.installed-dev
	@set -e; before=$$($(ARCHITECTURE)); for kernel in "" $(KERNELS); do \
	    unset OPENBLAS_CORETYPE; \
	    if [ "$$kernel" ]; then export OPENBLAS_CORETYPE=$$kernel; fi; \
	    now=$$($(ARCHITECTURE)); \
	    if [ "$$now" = "$$before" ]; then continue; fi; \
	    echo "Tests with OPENBLAS_CORETYPE=$$kernel; one to two minutes on two cores. In force:" $$now; \
	    $(PYTEST) tests/test_kernels.py $(KERNEL_TESTS); \
	done

## With the lowest versions that pyproject.toml allows of what it names.
test-lowest: $(LOWEST)/.installed
	@echo "Tests with the lowest versions allowed: some six minutes on two cores."
	$(TESTING) $(LOWEST)/bin/pytest -q $(TOGETHER)

## Tests that take long.
slow: $(VENV)/.installed-dev
	$(PYTEST) -m slow

## The papers' tables and figures, from the papers' data.
experiments: $(VENV)/.installed-experiments
	$(BIN)/python -m experiments kung --output-dir $(OUTPUT)
	$(BIN)/python -m experiments london --output-dir $(OUTPUT)

## Both papers beside what is computed here, as a page and a PDF: of what is kept, and what is missing.
reproduction: $(VENV)/.installed-experiments
	$(ONE_THREAD) $(BIN)/python -m experiments.reproduction run --jobs 2
	$(BIN)/python -m experiments.reproduction page --output-dir $(OUTPUT)

## Beside other packages, each in an environment of its own; takes hours.
benchmarks: $(VENV)/.installed-experiments
	$(BIN)/python -m benchmarks environments
	$(BIN)/python -m benchmarks --out $(OUTPUT)/benchmarks

## The mathematics beside GPy's and GPflow's, and accounting beside OpenDP's and dp-accounting's.
peers: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks environments --only dp4gp --only gpflow
	$(ONE_THREAD) $(BIN)/pytest -q -m slow tests/benchmarks/test_posteriors.py \
	    tests/privacy/test_external_oracles.py

## The pages, with what the gallery's examples draw; an example is run again when it changed.
docs: $(VENV)/.installed-docs
	@echo "Pages: some five minutes on two cores the first time, one later."
	@rm -rf docs/api
	$(ONE_THREAD) $(BIN)/sphinx-build -W --keep-going -q -b html docs $(OUTPUT)/docs
	@echo "Pages: $(OUTPUT)/docs/index.html"

## The paper, typeset from kept results.
paper: $(VENV)/.installed-docs
	$(BIN)/python -m experiments paper --output-dir $(OUTPUT)

## Whether what the pages link to elsewhere is there; needs the network.
linkcheck: $(VENV)/.installed-docs
	$(ONE_THREAD) $(BIN)/sphinx-build -q -b linkcheck -D plot_gallery=0 docs $(OUTPUT)/linkcheck

## Source archive and wheel, checked, built twice to the same bytes; and what they were tested with.
## REPOSITORY=https://HOST/OWNER/NAME is where the README's links then go.
dist: $(VENV)/.installed-dist
	rm -rf dist $(OUTPUT)/again
	$(REPRODUCIBLY) $(BIN)/python -m build --outdir dist
	$(REPRODUCIBLY) $(BIN)/python -m build --outdir $(OUTPUT)/again
	@for made in dist/*; do cmp "$$made" "$(OUTPUT)/again/$${made##*/}"; done
	@echo "Built twice: the same bytes."
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(MAKE) --no-print-directory sbom
	@sha256sum dist/*

## What is in an environment with everything that users may install, for those who must know (CycloneDX).
sbom: $(VENV)/.installed-dist
	@mkdir -p dist
	@rm -rf $(OUTPUT)/sbom && $(PYTHON) -m venv --without-pip $(OUTPUT)/sbom
	$(BIN)/uv pip install --quiet --python $(OUTPUT)/sbom/bin/python --constraint distribution/tested.txt ".[all]"
	$(BIN)/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml \
	    --output-file dist/cloakgp.cdx.json $(OUTPUT)/sbom/bin/python

## The versions that the tests ran with last, with their hashes: from what is installed now.
lock: $(VENV)/.installed-dev $(VENV)/.installed-dist
	@mkdir -p $(OUTPUT)
	@$(BIN)/python -m pip list --format=freeze --exclude-editable > $(OUTPUT)/installed.txt
	$(BIN)/uv pip compile --quiet --extra dev --constraint $(OUTPUT)/installed.txt \
	    --generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make lock" \
	    --output-file distribution/tested.txt pyproject.toml

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Installs the extras $(1). pip says much: shown are large downloads and the last step, and the end
# of it all if it fails.
define install
	@set -o pipefail; $(BIN)/python -m pip install --progress-bar off --editable ".[$(1)]" 2>&1 \
	    | tee $(VENV)/install.log \
	    | awk '/(Downloading|Using cached) .* MB\)/ { print; fflush() } \
	        /^Installing collected/ { print "  Installing: half a minute or so"; fflush() }' \
	    || { tail -n 20 $(VENV)/install.log; exit 1; }
	@touch $@
endef

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV), once only: 45 packages, 250 MB to download; one to two minutes."
	$(call install,$(USERS_EXTRAS))

$(VENV)/.installed-experiments: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV) for experiments, once only: one to two minutes."
	$(call install,experiments)

$(VENV)/.installed-dist: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV) for distributions, once only: half a minute or so."
	$(call install,dist)

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV) for the pages, once only: one to two minutes."
	$(call install,docs)

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV), once only: 180 packages, some 380 MB to download; two minutes or so."
	$(call install,dev)
	@touch $(VENV)/.installed $(VENV)/.installed-experiments

$(LOWEST)/.installed: pyproject.toml
	@echo "Setting up $(LOWEST), once only: 90 packages, 300 MB to download; one to two minutes."
	$(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --quiet uv
	$(LOWEST)/bin/uv pip install --python $(LOWEST)/bin/python --resolution lowest-direct \
	    --editable ".[test]"
	@touch $@

clean:
	rm -rf $(VENV) $(LOWEST) $(OUTPUT) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	    .import_linter_cache docs/api docs/auto_examples docs/sg_execution_times.rst
