# `make up` is all that a fresh machine needs; `make help` lists the rest.
PYTHON ?= python3
BIN := .venv/bin
PIP := -m pip --quiet --quiet --disable-pip-version-check install
# Exactly what requirements/*.txt say, by their hashes; then this folder, by the build tools among them.
INSTALL := $(BIN)/python $(PIP) --require-hashes --requirement
OURSELVES := $(BIN)/python $(PIP) --no-deps --no-build-isolation --editable .
TOOLS := .venv/tools/bin
LOCK := $(TOOLS)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock" $(ARGS)

.DEFAULT_GOAL := help
.PHONY: up demo test check long chaos bench docs lock audit pin-images packages clean help

up: .venv/installed ## run everything here: MongoDB, Redis (or BROKER=rabbitmq), API, beat, workers, Flower (ARGS="--port 9000")
	@$(BIN)/scheduler up $(if $(BROKER),--broker $(BROKER)) $(ARGS)

demo: .venv/installed ## run everything in ./data/demo, with schedules and a week of made-up history to look at
	@mkdir -p data/demo
	@$(BIN)/scheduler demo --data-dir data/demo --wait 60 & $(BIN)/scheduler up --data-dir data/demo $(ARGS)

# Three at once on two cores: a test of real processes waits for them half of its time.
test: .venv/installed-dev ## run all tests but the long ones (ARGS="-k words")
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not chaos and not long" $(ARGS)

check: .venv/installed-dev ## lint, format, types, layers, dead code
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/vulture

long: .venv/installed-dev ## run what is left out of `make test`: whole tables, thousands of generated requests, long lists and leases
	@$(BIN)/python -m pytest -n 2 -m long --timeout 1800 $(ARGS)

chaos: .venv/installed-dev ## break everything once and audit, then the tests that break one thing (ARGS="redis-killed --seeds 10")
	@$(BIN)/python -m tests.acceptance.chaos $(ARGS)
ifndef ARGS
	@$(BIN)/python -m tests.acceptance.chaos --broker rabbitmq rabbitmq-killed rabbitmq-emptied rabbitmq-full rabbitmq-cut
	@$(BIN)/python -m pytest -m chaos --timeout 1800
endif

bench: .venv/installed-dev ## measure everything beside the budgets, or one thing (ARGS="tick --schedules 100000")
	@$(BIN)/python -m tests.bench $(ARGS)

docs: .venv/installed-dev ## write what is made from the code, and build the manual as a site: build/docs/index.html
	@$(BIN)/python -m docs.reference
	@$(BIN)/python -m sphinx -W --keep-going -n -q -b html docs build/docs

lock: .venv/installed-tools ## write requirements/*.txt anew for what pyproject.toml asks for (ARGS="--upgrade" for newer releases)
	@$(LOCK) --extra server --extra embedded --extra dev pyproject.toml requirements/build.in --output-file requirements/dev.txt
	@$(LOCK) --extra server --extra embedded pyproject.toml requirements/build.in --constraint requirements/dev.txt --output-file requirements/up.txt
	@$(LOCK) --extra server pyproject.toml --constraint requirements/dev.txt --output-file requirements/runtime.txt
	@$(LOCK) requirements/build.in --constraint requirements/dev.txt --output-file requirements/build.txt
	@$(LOCK) requirements/tools.in --output-file requirements/tools.txt

audit: .venv/installed-tools ## ask PyPI for known vulnerabilities of all that is installed by requirements/*.txt
	@$(TOOLS)/pip-audit --disable-pip --require-hashes $(foreach file,dev tools,--requirement requirements/$(file).txt) $(ARGS)

pin-images: ## write the digests of the images that deploy/ names beside their tags (asks their registry, by docker)
	@$(PYTHON) deploy/pin_images.py

packages: ## install the Debian packages that some tests need (as root): faketime, chromium, rabbitmq-server
	apt-get update -qq && apt-get install -qq -y --no-install-recommends faketime chromium rabbitmq-server

clean: ## remove what was installed and built; ./data stays
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1	/p' $(MAKEFILE_LIST) | expand -t 8

# The stamps are newer than what they depend on when there is nothing to install.
.venv/installed: requirements/up.txt pyproject.toml | .venv/bin/python
	@echo "Installing into .venv (once) …"
	@$(INSTALL) requirements/up.txt
	@$(OURSELVES)
	@touch $@

.venv/installed-dev: requirements/dev.txt pyproject.toml | .venv/bin/python
	@echo "Installing into .venv, with the tools of development (once) …"
	@$(INSTALL) requirements/dev.txt
	@$(OURSELVES)
	@touch $@ .venv/installed

.venv/installed-tools: requirements/tools.txt | .venv/bin/python
	@echo "Installing the tools of lock and audit (once) …"
	@$(BIN)/python -m venv .venv/tools
	@$(TOOLS)/python $(PIP) --require-hashes --requirement requirements/tools.txt
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Python 3.11 or newer is needed and $(PYTHON) is not: make … PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }
