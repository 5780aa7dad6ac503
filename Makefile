# Every target works alone on a fresh machine with Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUTPUT := output
# Two test processes on two cores: threads of their own would only wait for each other.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.PHONY: demo test lint unit slow experiments benchmarks clean

## The main job on data that comes with scikit-learn; names the picture that it draws.
demo: $(VENV)/.installed
	$(BIN)/cloakgp demo --output-dir $(OUTPUT)

## Everything that CI checks.
test: lint unit

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/pytest -q -n 2

## Tests that take long.
slow: $(VENV)/.installed-dev
	$(ONE_THREAD) $(BIN)/pytest -q -n 2 -m slow

## The papers' tables and figures, from the papers' data.
experiments: $(VENV)/.installed
	$(BIN)/python -m cloakgp.experiments kung --output-dir $(OUTPUT)
	$(BIN)/python -m cloakgp.experiments london --output-dir $(OUTPUT)

## Beside other packages, each in an environment of its own; takes hours.
benchmarks: $(VENV)/.installed
	$(BIN)/python -m benchmarks environments
	$(BIN)/python -m benchmarks --out $(OUTPUT)/benchmarks

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) $(OUTPUT) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
