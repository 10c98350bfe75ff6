# make run                      read the sample and ask it three questions
# make run FILE=… ASK="…"       the same for your own file
# make check                    within a minute: style, types, import direction, fast tests
# make test                     all tests but tests/longest.txt, with every real part that starts here
# make longest                  the tests of tests/longest.txt: kills, Ctrl-C, servers that vanish
# make coverage                 as make test, and prints which lines no test runs
# make neo4j, make neo4j-stop   a real Neo4j on this machine, with Java and Maven, no Docker

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
FILE   ?=
ASK    ?=

.PHONY: run check test longest coverage lint types layers clean neo4j neo4j-stop

# Tests run in one process a core; all tests with a Neo4j in one of them, as they share one server.
# In CI a test that fails is run once more, and named: its machine may be busy with other work.
PYTEST := $(BIN)/python -m pytest -q -n auto --dist loadgroup$(if $(CI), --reruns 1 -r R)

# A variable's value for the shell, as it was given: `$` and quotes in it mean nothing to make or shell.
quoted = '$(subst ','\'',$(value $1))'

run: $(VENV)/.core
	@$(BIN)/python -m qrmem.demo $(if $(value FILE),--file $(call quoted,FILE)) $(if $(value ASK),--ask $(call quoted,ASK))

check: $(VENV)/.dev lint types layers
	$(PYTEST) tests/unit

test: $(VENV)/.dev
	$(PYTEST)

longest: $(VENV)/.dev
	$(PYTEST) --longest

coverage: $(VENV)/.dev
	$(PYTEST) --cov --cov-report=term:skip-covered

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
	@echo "installing qrmem into $(VENV): about a minute, once"
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
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
