# make run                      read the sample and ask it three questions
# make run FILE=… ASK="…"       the same for your own file
# make test                     all tests, with every real part that can be started here
# make check                    seconds: style, types, import direction, fast tests
# make neo4j, make neo4j-stop   a real Neo4j on this machine, with Java and Maven, no Docker

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
FILE   ?=
ASK    ?=

.PHONY: run test check lint types layers bench clean neo4j neo4j-stop

# A variable's value for the shell, as it was given: `$` and quotes in it mean nothing to make or shell.
quoted = '$(subst ','\'',$(value $1))'

run: $(VENV)/.core
	@$(BIN)/python -m qrmem.demo $(if $(value FILE),--file $(call quoted,FILE)) $(if $(value ASK),--ask $(call quoted,ASK))

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q --cov --cov-report=term:skip-covered

check: $(VENV)/.dev lint types layers
	$(BIN)/python -m pytest -q tests/unit tests/contract tests/graph

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("qrmem needs Python 3.11 or newer: make run PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,files,tokenizers]'
	@touch $@ $(VENV)/.core

neo4j:
	@$(PYTHON) docker/neo4j-local/neo4j_local.py start

neo4j-stop:
	@$(PYTHON) docker/neo4j-local/neo4j_local.py stop

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
