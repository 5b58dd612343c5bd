# make study   sets everything up and runs the quickstart study
# make test    sets everything up, checks style and types, runs all tests
SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: help setup study fleet test test-fleet lint format lock docs clean

PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
CLIENTS := clients/target/.built
# What `make fleet` measures, what starts fast first.
FLEET := redis rocksdb sqlite wiredtiger duckdb valkey postgresql postgresql18 mariadb mysql cassandra

help: ## show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: .venv/.installed $(CLIENTS) ## install all that is needed: system packages, .venv, load generator

study: setup ## run the quickstart study; a second call does nothing again
	$(BIN)/snakemake --cores all --quiet rules
	@echo "the report: $(CURDIR)/results/quickstart/report.html"

fleet: setup ## run the quick studies of all DBMSs, write docs/results.md; a second call does what is missing
	@failed=""; for dbms in $(FLEET); do \
		echo "$$dbms-quick"; \
		$(BIN)/snakemake --cores all --quiet rules --config study=specs/studies/$$dbms-quick.yaml || failed="$$failed $$dbms-quick"; \
	done; \
	$(BIN)/python benchmarks/fleet_results.py $(FLEET:%=%-quick) || exit; \
	test -z "$$failed" || { echo "not finished:$$failed" >&2; exit 1; }

test: setup lint ## check style and types, run all tests
	$(BIN)/python -m pytest

test-fleet: setup ## run the tests of all DBMSs, also of those that setup/fleet.sh installs
	$(BIN)/python -m pytest -m fleet

lint: .venv/.installed ## check style, types, layers and rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint

format: .venv/.installed ## format all code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/snakefmt Snakefile rules

docs: .venv/.installed ## write the generated pages and schemas anew
	$(BIN)/knobscope schema
	$(BIN)/python -m knobscope.reference docs/cli.md
	$(BIN)/python -m knobscope.select.documents docs/schemas

lock: .venv/.installed ## resolve the dependencies anew (all platforms and Python versions in one file)
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --all-extras --no-header --no-annotate --upgrade \
		-q -o requirements.lock pyproject.toml

clean: ## remove what was built; results stay
	rm -rf .venv clients/target

.venv/.installed: requirements.lock pyproject.toml setup/system-packages.sh
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed" >&2; exit 1; }
	PYTHON=$(PYTHON) setup/system-packages.sh
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	touch $@

$(CLIENTS): clients/pom.xml $(shell find clients/src -type f 2>/dev/null) | .venv/.installed
	mvn -q -B -f clients/pom.xml -DskipTests package
	touch $@
