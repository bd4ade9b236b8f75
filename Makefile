# Every target makes and keeps its own virtual environment in .venv; a second run installs nothing.
PYTHON ?= python3
# What to install as PyTorch: a version, a path, a list of options for pip; empty for none.
TORCH ?= torch
# Packages without which tests are skipped, such as numba, triton and torch-mlir: each is installed
# if it can be had.
OPTIONAL ?=
VENV ?= .venv
JOBS ?= 2

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# Half a minute of an install compiles thousands of modules of which tests import a tenth: what is
# imported is compiled then.
PIP_FOR_TESTS := $(PIP) --no-compile
# One stamp for each thing that was asked of PyTorch, so that another wish installs anew.
TORCH_KEY := $(shell printf '%s' '$(TORCH)' | cksum | cut -d' ' -f1)

.PHONY: help quickstart test test-all fuzz docs format clean
.DELETE_ON_ERROR:

help:
	@echo 'make quickstart   compile and run three kernels on the CPU'
	@echo 'make test         linters, types, import rules and tests (with PyTorch)'
	@echo 'make test-all     the same with every optional dependency, and the documentation'
	@echo 'make fuzz         random programs, calls and files, for MINUTES=30'
	@echo 'make docs         the documentation, in docs/_build/html'
	@echo 'make format       format the code and sort its imports'
	@echo 'make clean        remove the environment and everything that was built'

quickstart: $(VENV)/core.stamp
	$(BIN)/python examples/quickstart.py

test: $(VENV)/test-$(TORCH_KEY).stamp $(OPTIONAL:%=$(VENV)/optional-%.stamp)
	$(check)

test-all: $(VENV)/all-$(TORCH_KEY).stamp
	$(build_docs)
	$(check)

# Random cases: what passed is counted, what fails is saved in fuzz-failures, as files to replay.
MINUTES ?= 30
FUZZ ?=
fuzz: $(VENV)/test-$(TORCH_KEY).stamp
	PYTHONPATH=tests/support $(BIN)/python -m fuzz --minutes $(MINUTES) --jobs $(JOBS) $(FUZZ)

docs: $(VENV)/docs.stamp
	$(build_docs)

format: $(VENV)/test-$(TORCH_KEY).stamp
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The nested ruff.toml files hold the rule that imports go one way.
define check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers $(JOBS)
	$(BIN)/python -m pytest -n $(JOBS) -rsfE
endef

define build_docs
	$(BIN)/sphinx-build -W --keep-going -q -j $(JOBS) -b html docs docs/_build/html
endef

$(VENV)/core.stamp: pyproject.toml | $(BIN)/pip
	$(PIP) --editable .
	@touch $@

$(VENV)/docs.stamp: pyproject.toml | $(BIN)/pip
	$(PIP) --editable '.[docs]'
	@touch $@

$(VENV)/test-$(TORCH_KEY).stamp: pyproject.toml | $(BIN)/pip
	$(PIP_FOR_TESTS) --editable '.[test]' $(TORCH)
	@touch $@

# After PyTorch: some of them would choose a version of it.
$(VENV)/optional-%.stamp: $(VENV)/test-$(TORCH_KEY).stamp
	@if $(PIP_FOR_TESTS) '$*'; then touch $@; \
	else echo '$* cannot be installed: its tests are skipped.' >&2; fi

$(VENV)/all-$(TORCH_KEY).stamp: pyproject.toml | $(BIN)/pip
	$(PIP_FOR_TESTS) --editable '.[test,cuda,mlir,triton]' $(TORCH)
	@touch $@

# Debian and Ubuntu ship venv without ensurepip; the system's pip, if new enough, fills the gap.
$(BIN)/pip:
	@command -v $(PYTHON) >/dev/null || { \
	  echo 'No $(PYTHON) found. Install Python 3.10 or newer, or name one: make PYTHON=...' >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "ferrule needs Python 3.10 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1)." \
	       'Name another one: make PYTHON=python3.12' >&2; \
	  exit 1; }
	@if $(PYTHON) -c 'import ensurepip' 2>/dev/null; then \
	  $(PYTHON) -m venv $(VENV); \
	else \
	  $(PYTHON) -m venv --without-pip $(VENV) 2>/dev/null && \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet pip 2>/dev/null || { \
	    echo 'This Python can make no virtual environment: its ensurepip module is missing.' >&2; \
	    echo 'On Debian and Ubuntu, as root: apt install python3-venv. Then run make again.' >&2; \
	    exit 1; } \
	fi
