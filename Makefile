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
.PHONY: up demo test smoke check types style long chaos mutants bench containers docs dist lock audit pin-images packages clean help

up: .venv/installed ## run everything here: MongoDB, Redis (or BROKER=rabbitmq), API, beat, workers, Flower (ARGS="--port 9000")
	@$(BIN)/scheduler up $(if $(BROKER),--broker $(BROKER)) $(ARGS)

demo: .venv/installed ## run everything in ./data/demo, with schedules and a week of made-up history to look at
	@mkdir -p data/demo
	@$(BIN)/scheduler demo --data-dir data/demo --wait 60 & $(BIN)/scheduler up --data-dir data/demo $(ARGS)

# Four at once on two cores: a test of real processes waits for them most of its time.
test: .venv/installed-dev .venv/node/installed ## about a quarter of an hour on two cores: all that README promises, on real servers (ARGS="-k words")
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not smoke and not chaos and not long" $(ARGS)

smoke: .venv/installed-dev ## about a minute: a worker, a beat and Redis are killed, MongoDB's primary steps down, under load, with an audit
	@$(BIN)/python -m pytest tests/acceptance/chaos -m smoke $(ARGS)

check: .venv/installed-dev ## about a minute, and seconds later on: lint, format, types, layers, circles, names, dead code, the API's compatibility
	@$(MAKE) --no-print-directory --jobs 2 --output-sync types style

# It takes as long as all others together, which run beside it.
types: .venv/installed-dev
	@$(BIN)/mypy

style: .venv/installed-dev
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports
	@$(BIN)/python -m docs.reference.house
	@$(BIN)/vulture
	@$(BIN)/python -m docs.reference.compatibility

long: .venv/installed-dev .venv/installed-tools .venv/node/installed ## what is left out of `make test`: whole tables, thousands of generated requests, long lists and leases
	@$(BIN)/python -m pytest -n 2 -m long --timeout 1800 $(ARGS)

chaos: .venv/installed-dev ## break everything once and audit, then what breaks one thing (ARGS="redis-killed --seeds 10")
	@$(BIN)/python -m tests.acceptance.chaos $(ARGS)
ifndef ARGS
	@$(BIN)/python -m tests.acceptance.chaos --broker rabbitmq rabbitmq-cut rabbitmq-cut-there rabbitmq-cut-back rabbitmq-killed rabbitmq-emptied rabbitmq-full
	@$(BIN)/python -m pytest -m chaos --timeout 1800
endif

mutants: .venv/installed-dev ## put deliberate faults into the core and show which no test notices (ARGS="--seed 7 --count 30 --only scheduler_app/worker")
	@$(BIN)/python -m tests.mutants $(ARGS)

bench: .venv/installed-dev ## measure everything beside the budgets, or one thing (ARGS="tick --schedules 100000")
	@$(BIN)/python -m tests.bench $(ARGS)

containers: .venv/installed-dev .venv/installed-tools ## run deploy/, docker-compose.yml and the manual's commands in a Docker Engine of their own (as root, on Debian; ARGS="readme backup")
	@$(BIN)/python -m tests.containers $(ARGS)

docs: .venv/installed-dev ## write what is made from the code, and build the manual as a site: api/manual/index.html
	@$(BIN)/python -m docs.reference
	@$(BIN)/python -m docs.reference.ways
	@$(BIN)/python -m sphinx -W --keep-going -n -q -b html -d build/doctrees docs api/manual

dist: .venv/installed-dev .venv/installed-tools ## the files of a release, in dist/: sdist, wheel, bill of materials, licences (ARGS=--uncommitted to try)
	@$(BIN)/python deploy/dist.py $(ARGS)

lock: .venv/installed-tools ## write requirements/*.txt anew for what pyproject.toml asks for (ARGS="--upgrade" for newer releases)
	@$(LOCK) --extra server --extra embedded --extra dev pyproject.toml requirements/build.in --output-file requirements/dev.txt
	@$(LOCK) --extra server --extra embedded pyproject.toml requirements/build.in --constraint requirements/dev.txt --output-file requirements/up.txt
	@$(LOCK) --extra server pyproject.toml --constraint requirements/dev.txt --output-file requirements/runtime.txt
	@$(LOCK) requirements/build.in --constraint requirements/dev.txt --output-file requirements/build.txt
	@$(LOCK) requirements/manual.in --constraint requirements/dev.txt --output-file requirements/manual.txt
	@$(LOCK) requirements/tools.in --output-file requirements/tools.txt

audit: .venv/installed-tools ## ask PyPI for known vulnerabilities of all that is installed by requirements/*.txt
	@$(TOOLS)/pip-audit --disable-pip --require-hashes $(foreach file,dev tools,--requirement requirements/$(file).txt) $(ARGS)

pin-images: ## write the digests of the images that deploy/ names beside their tags (asks their registry, by docker)
	@$(PYTHON) deploy/pin_images.py

packages: ## install the Debian packages that some tests need (as root): faketime, chromium-headless-shell, rabbitmq-server, nodejs, npm
	apt-get update -qq && apt-get install -qq -y --no-install-recommends faketime chromium-headless-shell rabbitmq-server \
		$(if $(shell command -v npm),,nodejs npm)

clean: ## remove what was installed and built; ./data stays
	rm -rf .venv build dist api/manual .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1	/p' $(MAKEFILE_LIST) | expand -t 8

# The stamps are newer than what they depend on when there is nothing to install.
.venv/installed: requirements/up.txt pyproject.toml | .venv/bin/python
	@echo "Installing into .venv (once) …"
	@$(INSTALL) requirements/up.txt
	@$(OURSELVES)
	@touch $@

# At the releases and with the hashes of the lock file. Without them, the tests that need them fail, and no others.
.venv/node/installed: tests/node/package.json tests/node/package-lock.json | .venv/bin/python
	@mkdir -p .venv/node && cp tests/node/package.json tests/node/package-lock.json .venv/node/
	@npm ci --prefix .venv/node --silent --ignore-scripts --no-audit --no-fund && touch $@ || \
		echo "Packages for Node are not installed: npm is missing (make packages, as root) or cannot reach its registry" >&2

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
