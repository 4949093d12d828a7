# Everything that a checkout needs, from nothing but Python 3.11, git and make.
#
# The environment is .venv. Its stamps lie in a folder named after the checkout's path: scripts
# in an environment hold absolute paths, so that a moved checkout gets a new one.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
unexport ARGS

VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made-for-$(shell pwd | cksum | cut -d ' ' -f 1)

PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; \
	done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# What make tells its recipes is no business of the programs that they start.
# A process that writes no bytecode compiles all of Carrel at each start.
CLEAN_ENV := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'Flags go into ARGS: make up ARGS="--port 8123 --simulated-devices 1"'

.PHONY: up
up: $(MADE)/carrel $(MADE)/proxy $(MADE)/figures $(MADE)/help ## Build what is missing and start Carrel with its demo (Ctrl-C stops it)
	@exec $(CLEAN_ENV) $(BIN)/carrel up --demo $(ARGS)

# Tests of one file share their installation: a file stays with one worker.
BESIDE = $(if $(WORKERS),-n $(WORKERS) --dist loadfile)

# Two pips at a time would change the environment under each other; what is below it may be
# made in parallel.
.PHONY: environment
environment: $(MADE)/dev $(MADE)/carrel

# PyTorch is large, and its CPU build is not in every package index: it is asked for.
WITH_TORCH = $(if $(TORCH),$(MADE)/torch)
# So are JAX and Spark, which few tests use.
WITH_JAX = $(if $(JAX),$(MADE)/jax)
WITH_SPARK = $(if $(SPARK),$(MADE)/spark)

.PHONY: test
test: $(MADE)/dev $(MADE)/carrel $(MADE)/proxy $(MADE)/figures $(MADE)/help $(MADE)/axe $(MADE)/notebook-jobs $(WITH_TORCH) $(WITH_JAX) ## Run the tests (all but the slow ones)
	@$(CLEAN_ENV) $(BIN)/python -m pytest -m "not slow" $(BESIDE) $(ARGS)

.PHONY: test-slow
test-slow: $(MADE)/dev $(MADE)/carrel $(MADE)/proxy $(MADE)/figures $(MADE)/help $(MADE)/notebook-jobs $(WITH_TORCH) $(WITH_JAX) $(WITH_SPARK) ## Run the slow tests, and properties with thousands of examples
	@$(CLEAN_ENV) $(BIN)/python -m pytest -m "slow or hypothesis" --hypothesis-profile=thorough $(BESIDE) $(ARGS)

.PHONY: lint
lint: $(MADE)/dev $(MADE)/carrel ## Check style (ruff) and types (mypy)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) types

.PHONY: types
types: $(MADE)/dev .typed/carrel ## Check types only
	MYPYPATH=.typed $(BIN)/mypy -p carrel

.PHONY: docs
docs: $(MADE)/help ## Build the documentation, which Carrel serves at /help (warnings are errors)
	@echo "Open hub/web/help/index.html"

.PHONY: reference
reference: $(MADE)/dev $(MADE)/carrel ## Regenerate the pages and pictures that are made from the code
	@for page in diagram rooms cli_reference rest_api config_reference; do \
		$(CLEAN_ENV) $(BIN)/python -m tests.$$page || exit 1; done

.PHONY: pictures
pictures: $(MADE)/dev $(MADE)/carrel $(MADE)/proxy $(MADE)/figures $(MADE)/help $(MADE)/axe ## Retake the screenshots of the documentation
	@$(CLEAN_ENV) $(BIN)/python -m tests.pictures

.PHONY: format
format: $(MADE)/dev ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: lock
lock: $(MADE)/lock ## Regenerate requirements/*.txt (newest versions with ARGS=--upgrade)
	$(COMPILE) pyproject.toml requirements/up.in -o requirements/up.txt \
		--extra runner --extra hub --extra session --extra courses --extra search --extra sample --extra mcp --extra insight $(ARGS)
	$(COMPILE) requirements/dev.in -c requirements/up.txt -o requirements/dev.txt $(ARGS)
	$(COMPILE) pyproject.toml -c requirements/up.txt -o images/base/requirements.txt \
		--extra runner --extra session --extra courses --extra notebook-jobs $(ARGS)
	for name in datascience grading; do \
		$(COMPILE) images/$$name/requirements.in -c images/base/requirements.txt \
			-o images/$$name/requirements.txt $(ARGS) || exit 1; done
	$(COMPILE) images/jax/requirements.in -c images/base/requirements.txt \
		-c images/datascience/requirements.txt -o images/jax/requirements.txt $(ARGS)
	$(COMPILE) images/spark/requirements.in -c images/base/requirements.txt \
		-c images/datascience/requirements.txt -o images/spark/requirements.txt $(ARGS)
	$(COMPILE) requirements/execution.in -c requirements/up.txt -c requirements/dev.txt \
		-o requirements/execution.txt $(ARGS) || echo "requirements/execution.txt is as it was." >&2
	for name in cuda cpu; do \
		$(COMPILE) images/torch/requirements-$$name.in -c images/base/requirements.txt \
			-c images/datascience/requirements.txt -o images/torch/requirements-$$name.txt \
			$(ARGS) || { echo "images/torch/requirements-$$name.txt is as it was; all before it are written anew." \
			"The CPU build of PyTorch is not in every index: put its wheel into a folder and name that:" \
			'make lock ARGS="--find-links DIR"' >&2; exit 1; }; done

.PHONY: build
build: $(MADE)/dev $(MADE)/help ## Build the wheel into dist/
	$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation \
		--wheel-dir dist .

.PHONY: clean
clean: ## Remove all build outputs; state folders are kept
	rm -rf $(VENV) .typed build dist *.egg-info artefacts docs/_build hub/web/help
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# -- how it is built: noise goes to stderr, so that `make up ARGS=--json` can be read --------

# uv resolves; it is no dependency of Carrel, so that it has an environment of its own.
COMPILE = $(VENV)/lock/bin/uv pip compile --quiet --python-version 3.11 --generate-hashes \
	--no-strip-extras --no-emit-index-url --no-emit-find-links --no-header

$(MADE)/python:
	@test -n "$(PYTHON)" || { echo "Carrel needs Python 3.11 or newer, and none was found. Install it (on Debian: apt-get install python3 python3-venv), or name one: make up PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than Python 3.11, which Carrel needs. Name a newer one: make up PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot make environments. Install its venv module (on Debian: apt-get install python3-venv)." >&2; exit 1; }
	@echo "Making the environment $(VENV) with $(PYTHON) …" >&2
	@$(PYTHON) -m venv $$(test -z "$$(ls -d $(VENV)/.made-for-* 2>/dev/null)" || echo --clear) $(VENV) >&2
	@mkdir -p $(MADE) && touch $@

$(MADE)/up: requirements/up.txt $(MADE)/python
	@echo "Installing what Carrel needs (once; a few minutes) …" >&2
	@$(PIP) install --require-hashes -r requirements/up.txt >&2
	@touch $@

$(MADE)/dev: requirements/dev.txt $(MADE)/up
	@echo "Installing what developing and testing need …" >&2
	@$(PIP) install --require-hashes -r requirements/dev.txt >&2
	@touch $@

$(MADE)/carrel: pyproject.toml __init__.py $(MADE)/up
	@$(PIP) install --no-deps --no-build-isolation -e . >&2
	@touch $@

$(MADE)/proxy: hub/jupyterhub/proxy/package-lock.json $(MADE)/carrel
	@echo "Installing the proxy …" >&2
	@$(BIN)/python -m carrel.hub.supervisor.proxy >&2
	@touch $@

$(MADE)/figures: hub/supervisor/figures/package-lock.json $(MADE)/carrel
	@echo "Installing the libraries that draw figures …" >&2
	@$(BIN)/python -m carrel.hub.supervisor.figure_libraries >&2
	@touch $@

$(MADE)/help: $(shell find docs -name _build -prune -o -type f -print) $(MADE)/up
	@echo "Building the documentation …" >&2
	@$(CLEAN_ENV) $(BIN)/python docs/build.py >&2
	@touch $@

$(MADE)/axe: tests/e2e/axe/package-lock.json $(MADE)/dev $(MADE)/carrel
	@echo "Installing the accessibility checks …" >&2
	@$(BIN)/python -m tests.e2e.axe >&2
	@touch $@

$(MADE)/notebook-jobs: images/base/requirements.txt $(MADE)/dev $(MADE)/carrel
	@echo "Installing JupyterLab's Notebook Jobs for tests, beside the environment …" >&2
	@$(BIN)/python -m tests.notebook_jobs >&2
	@touch $@

$(MADE)/torch: requirements/execution.txt $(MADE)/dev
	@echo "Installing PyTorch for tests, beside the environment …" >&2
	@$(BIN)/python -m tests.torch_packages >&2
	@touch $@

$(MADE)/jax: images/jax/requirements.txt $(MADE)/dev
	@echo "Installing JAX for tests, beside the environment …" >&2
	@$(BIN)/python -m tests.jax_packages >&2
	@touch $@

$(MADE)/spark: images/spark/requirements.txt $(MADE)/dev
	@echo "Installing Spark for tests, beside the environment …" >&2
	@$(BIN)/python -m tests.pyspark_packages >&2
	@touch $@

$(MADE)/lock: $(MADE)/python
	@$(BIN)/python -m venv $(VENV)/lock >&2
	@$(VENV)/lock/bin/python -m pip --disable-pip-version-check --quiet install uv >&2
	@touch $@

.typed/carrel:
	@mkdir -p .typed && ln -sfn .. $@
