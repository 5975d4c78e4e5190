# The words everyone shares. Recipes are plain commands: read them to see what a word does.
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,\
	$(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
K ?=
CODE := src tests $(wildcard bench demo)
NODE := $(patsubst %/package.json,%/node_modules/.set-up,$(wildcard tests/*/package.json))
NPM_INSTALL := npm install --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error
COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --quiet \
	--no-emit-index-url --custom-compile-command "make pins"

# Commands of ours start Python in other folders, too.
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test cover check fix bench prove docs setup pins lowest dist clean

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: setup ## See it work: write, find and read entries, as a person and as an agent
	$(BIN)/python demo/demo.py

test: setup $(NODE) ## Run linters, types, contracts and all tests; K=expr runs only some tests
ifneq ($(strip $(K)),)
	$(BIN)/pytest -k '$(K)'
else
	@$(MAKE) --no-print-directory check
	$(BIN)/pytest
endif

cover: setup $(NODE) ## Run all tests one after the other, and show lines and branches they miss
	rm -rf build/coverage
	mkdir -p build/coverage
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: setup ## Run linters, types and layer contracts
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/mypy bench/speed bench/inside.py
	$(BIN)/mypy bench/retrieval
	$(BIN)/mypy demo/demo.py
	$(BIN)/lint-imports

fix: setup ## Format the code and mend what the linter can
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: setup ## Measure speed and retrieval, beside a baseline from the same run
	$(BIN)/python bench/retrieval
	$(BIN)/python bench/speed

prove: setup $(NODE) ## Run the longer proofs: many processes, many crashes, many examples
	$(BIN)/pytest -m prove --timeout=1800

docs: setup ## Check the documentation: its links and its examples
	$(BIN)/pytest -k 'docs or documents or documented'

setup: $(VENV)/.set-up ## Make the virtual environment; does nothing when it is up to date

$(VENV)/.set-up: requirements-dev.txt pyproject.toml
	@test -x $(BIN)/python || test -n '$(PYTHON)' || { echo 'make: no Python >= 3.11 found; give PYTHON=path' >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

tests/node/node_modules/.set-up: tests/node/package.json
	cd tests/node && $(NPM_INSTALL)
	touch $@

# Where npm can't be reached this makes nothing, and the tests of hosts are skipped, saying so.
tests/hosts/node_modules/.set-up: tests/hosts/package.json
	cd tests/hosts && if $(NPM_INSTALL); then \
		node node_modules/opencode-ai/postinstall.mjs && \
		node node_modules/@anthropic-ai/claude-code/install.cjs && \
		touch node_modules/.set-up; \
	else ! npm view opencode-ai version; fi

pins: setup ## Renew requirements-dev.txt
	$(COMPILE) --group dev --generate-hashes --upgrade --output-file requirements-dev.txt

lowest: setup $(NODE) ## Run the tests with the oldest libraries that pyproject.toml allows
	mkdir -p build
	$(COMPILE) --extra onnx --resolution lowest-direct --output-file build/lowest.txt
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/lowest
	$(BIN)/uv pip install --quiet --python build/lowest --constraint build/lowest.txt --group dev --editable .
	build/lowest/bin/pytest

dist: setup ## Build the wheel and the source archive into dist/
	$(BIN)/hatchling build

clean: ## Remove everything that was made here
	rm -rf $(VENV) build dist tests/*/node_modules .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
