# Every target works alone on a fresh machine with Python 3.11+, make and bash.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
OUTPUT := output
# What the demo needs.
USERS_EXTRAS := cli,plots
# Two test processes on two cores: threads of their own would only wait for each other. They start
# some fifty more: what is compiled is kept for these, whatever the environment says.
TESTING := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PYTEST := $(TESTING) $(BIN)/pytest -q -n 2
# The numbers in a certificate depend on the kernels that OpenBLAS picks for a processor: these are
# what processors without AVX-512, and old ones, get.
KERNELS ?= $(if $(filter x86_64 amd64,$(shell uname -m)),Haswell Nehalem)
# Forged files are refused, and pictures drawn, whatever the kernels are.
ABOUT_NUMBERS := not hostile_files and not test_bundle and not kernel_tree and not drawn

SHELL := bash

.PHONY: demo test test-kernels test-lowest lint unit slow experiments benchmarks clean

## The main job on data that comes with scikit-learn; names the picture that it draws.
demo: $(VENV)/.installed
	$(BIN)/cloakgp demo --output-dir $(OUTPUT)

## Lint, types, import contracts and tests.
test: lint unit

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.installed-dev
	@echo "Tests: some five minutes on two cores."
	$(PYTEST)

## What depends on the last bits, under the kernels that OpenBLAS picks for other processors.
test-kernels: $(VENV)/.installed-dev
	@set -e; for kernel in $(KERNELS); do \
	    echo "Tests with OPENBLAS_CORETYPE=$$kernel; some three minutes on two cores. In force:"; \
	    export OPENBLAS_CORETYPE=$$kernel; \
	    $(BIN)/python -m threadpoolctl -i numpy scipy.linalg | grep '"architecture"'; \
	    $(PYTEST) -k "$(ABOUT_NUMBERS)" \
	        tests/test_kernels.py tests/design tests/models tests/release; \
	done

## With the lowest versions that pyproject.toml allows of what it names.
test-lowest: $(LOWEST)/.installed
	@echo "Tests with the lowest versions allowed: some six minutes on two cores."
	$(TESTING) $(LOWEST)/bin/pytest -q -n 2

## Tests that take long.
slow: $(VENV)/.installed-dev
	$(PYTEST) -m slow

## The papers' tables and figures, from the papers' data.
experiments: $(VENV)/.installed-experiments
	$(BIN)/python -m experiments kung --output-dir $(OUTPUT)
	$(BIN)/python -m experiments london --output-dir $(OUTPUT)

## Beside other packages, each in an environment of its own; takes hours.
benchmarks: $(VENV)/.installed-experiments
	$(BIN)/python -m benchmarks environments
	$(BIN)/python -m benchmarks --out $(OUTPUT)/benchmarks

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

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV), once only: 140 packages, some 350 MB to download; two minutes or so."
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
	rm -rf $(VENV) $(LOWEST) $(OUTPUT) .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	    .import_linter_cache
