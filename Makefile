# `make up` is all that a fresh machine needs; `make help` lists the rest.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check install

.DEFAULT_GOAL := help
.PHONY: up test check long chaos bench docs packages clean help

up: .venv/installed ## run everything here: MongoDB, Redis, API, beat, workers, Flower (ARGS="--port 9000")
	@$(BIN)/scheduler up $(ARGS)

test: .venv/installed-dev ## run all tests but the long ones (ARGS="-k words")
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not chaos and not long" $(ARGS)

check: .venv/installed-dev ## lint, format, types, layers
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

long: .venv/installed-dev ## run the tests that only take long: thousands of generated requests, long lists, long leases
	@$(BIN)/python -m pytest -n 2 -m long --timeout 1800 $(ARGS)

chaos: .venv/installed-dev ## break everything once and audit, then the tests that break one thing (ARGS="redis-killed --seeds 10")
	@$(BIN)/python -m tests.acceptance.chaos $(ARGS)
ifndef ARGS
	@$(BIN)/python -m pytest -m chaos --timeout 1800
endif

bench: .venv/installed-dev ## measure everything beside the budgets, or one thing (ARGS="tick --schedules 100000")
	@$(BIN)/python -m tests.bench $(ARGS)

docs: .venv/installed-dev ## build the manual as a site: build/docs/index.html
	@$(BIN)/python -m sphinx -W --keep-going -n -q -b html docs build/docs

packages: ## install the Debian packages that some faults of `make chaos` need (as root): faketime
	apt-get update -qq && apt-get install -qq -y --no-install-recommends faketime

clean: ## remove what was installed and built; ./data stays
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## /\1	/p' $(MAKEFILE_LIST) | expand -t 8

# The stamps are newer than pyproject.toml when there is nothing to install.
.venv/installed: pyproject.toml | .venv/bin/python
	@echo "Installing into .venv (once) …"
	@$(PIP) --editable '.[embedded]'
	@touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/python
	@echo "Installing into .venv, with the tools of development (once) …"
	@$(PIP) --editable '.[embedded,dev]'
	@touch $@ .venv/installed

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Python 3.11 or newer is needed and $(PYTHON) is not: make … PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }
