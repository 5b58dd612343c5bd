# make study   sets everything up and runs the first study
# make check   checks style and types, runs the quick tests that need no server, device or root
# make test    sets everything up, checks style and types, runs the tests
SHELL := /bin/bash
.DELETE_ON_ERROR:
# The parts of `make lint`, which wait for nothing of each other.
LINTS := lint-style lint-types lint-layers lint-rules lint-c
.PHONY: help setup parts test-packages compiled-tests study fleet check test test-long test-fleet test-cluster test-attach test-kernels verdicts faults lint $(LINTS) format lock docs pictures site audit clean

PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
# Stages start a third faster when Python may keep what it compiled, whatever the caller's environment says.
export PYTHONDONTWRITEBYTECODE :=
# What computes in threads of its own takes one each: tests run side by side.
PYTEST := PYTEST_DEBUG_TEMPROOT=/var/tmp OMP_NUM_THREADS=1 $(BIN)/python -m pytest # /tmp may be in memory
CLIENTS := clients/target/.built
DEVMODEL := devmodel/build/devmodel
C_SOURCES := $(wildcard devmodel/*.[ch] probes/*.[ch] benchmarks/*.c)
# What `make fleet` measures, what starts fast first.
FLEET := redis rocksdb sqlite wiredtiger duckdb valkey postgresql postgresql18 mariadb mysql cassandra

help: ## show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: ## install all that is needed: system packages, .venv, load generator, drivers
	@$(MAKE) --no-print-directory -j --output-sync parts
	@test "$$(id -u)" != 0 || id knobscope >/dev/null 2>&1 || setup/system-packages.sh
	@$(BIN)/knobscope drivers >/dev/null
	@/usr/bin/python3 -m compileall -q probes  # the monitor, which root runs, writes no files here

parts: .venv/.installed $(CLIENTS) $(DEVMODEL)

# On modelled drives where those come up; which study it is is chosen once, whoever calls again.
study: setup ## run the first study, quickstart-drives or else quickstart; a second call does nothing
	@study=quickstart-drives; \
	if ! test -d results/$$study && ! $(BIN)/knobscope doctor $$study; then \
		study=quickstart; \
		echo "Modelled drives do not come up here. The first study uses the disk of this checkout instead: it shows what" \
			"the knobs do on this one, and cannot compare a drive without power-loss protection with one that has it."; \
	fi; \
	$(BIN)/snakemake --cores all --quiet rules --config study=specs/studies/$$study.yaml || exit; \
	echo "the report: $(CURDIR)/results/$$study/report.html"

fleet: setup ## run the quick studies of all DBMSs, write docs/evidence/results.md; a second call does what is missing
	@failed=""; for dbms in $(FLEET); do \
		echo "$$dbms-quick"; \
		$(BIN)/snakemake --cores all --quiet rules --config study=specs/studies/$$dbms-quick.yaml || failed="$$failed $$dbms-quick"; \
	done; \
	$(BIN)/python benchmarks/fleet_results.py $(FLEET:%=%-quick) || exit; \
	test -z "$$failed" || { echo "not finished:$$failed" >&2; exit 1; }

check: lint ## check style and types, run the quick tests that need no server, device or root
	$(PYTEST) -n 2 -m "not real and not slow and not fleet and not cluster and not long"

# Whoever only wants to use what is built here may have a compiler that warns of more.
test: export WERROR := -Werror
test: ## set everything up, check style and types, run the tests: what CI does
	@$(MAKE) --no-print-directory -j --output-sync parts test-packages lint compiled-tests
	@$(MAKE) --no-print-directory setup
	$(MAKE) -C devmodel test
	$(PYTEST) -n 4

# Once, while others check: the processes of a test run, which begin at the same time, would each compile all tests. What
# is wrong with a test the run itself says.
compiled-tests: .venv/.installed
	@-$(PYTEST) -n 0 --collect-only -qqq >/dev/null

test-packages: | .venv/.packages
	@setup/system-packages.sh chromium sshd slapd || echo "no Chromium, sshd or slapd here: tests that need it will be skipped" >&2

test-long: setup test-packages ## run the tests that take long: more of what shorter ones look at
	@test -d .fleet/roc-validator || setup/fleet.sh roc-validator
	$(PYTEST) -n 3 -m "long and not fleet and not cluster"

test-fleet: setup ## run the tests of all DBMSs, also of those that setup/fleet.sh installs
	$(PYTEST) -m fleet

test-cluster: setup ## run a study on a Slurm cluster of two nodes on this machine, one lost, one drained; needs root
	$(PYTEST) -m cluster tests/cluster

test-attach: setup ## run the tests of attach on running servers, with twenty kills at random moments; needs root
	$(PYTEST) -m "not fleet" tests/commands/attach tests/probes/test_in_place.py

test-kernels: setup ## compare the probes with ftrace in kernels of Debian's suites, under QEMU; prints the table of docs/evidence/kernels.md
	KNOBSCOPE_KERNELS=$(CURDIR)/.kernels setup/kernels.sh $(SUITES)
	$(BIN)/python tests/kernels/boot.py .kernels .kernels/results $(CHECKS)

verdicts: setup ## score the rules against causes found by changing a modelled device; VERDICTS='--studies sqlite redis --devices A B' takes others; needs root
	mkdir -p results/verdicts
	cd results/verdicts && $(CURDIR)/$(BIN)/python $(CURDIR)/benchmarks/verdicts.py $(VERDICTS) --cases cases.jsonl

FAULTS ?= --trials 200 --jobs 2
faults: setup ## kill, fill, damage and cut the power of 200 small studies at random; FAULTS='--trials 20' for fewer; needs root
	$(BIN)/python benchmarks/faults $(FAULTS)

lint: .venv/.installed ## check style, types, layers and rules, side by side
	@$(MAKE) --no-print-directory -j --output-sync -k $(LINTS)

lint-style:
	$(BIN)/ruff check
	$(BIN)/ruff format --check

lint-types:
	$(BIN)/mypy

lint-layers:
	$(BIN)/lint-imports --no-logo

lint-rules:
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint

lint-c:
	$(BIN)/clang-format --dry-run -Werror $(C_SOURCES)

format: .venv/.installed ## format all code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/snakefmt Snakefile rules
	$(BIN)/clang-format -i $(C_SOURCES)

docs: .venv/.installed ## write the generated pages, schemas and the drawing of the architecture
	$(BIN)/knobscope schema
	$(BIN)/python -m knobscope.reference docs/reference
	$(BIN)/python -m knobscope.tables.reference docs/reference/tables.md
	$(BIN)/python setup/architecture.py docs/architecture.svg

pictures: test-packages setup ## take the pictures of the docs anew; runs the studies that they show, half an hour at most; needs root
	$(BIN)/python benchmarks/pictures.py

site: ## build the documentation as a site that opens from its folder, site/index.html
	test -x .site/bin/python || $(PYTHON) -m venv .site
	.site/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r setup/checksums/site.txt
	NO_MKDOCS_2_WARNING=1 .site/bin/mkdocs build --strict --quiet
	@echo "the documentation: $(CURDIR)/site/index.html"

lock: .venv/.installed ## resolve the dependencies anew (all platforms and Python versions in one file)
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --all-extras --generate-hashes --no-header --no-annotate \
		--upgrade -q -o requirements.lock pyproject.toml
	for tool in wiredtiger tpcds; do \
		sed -n 's/^\([a-z-]*==[0-9.]*\).*/\1/p' setup/checksums/$$tool.txt | $(BIN)/uv pip compile --universal --no-deps --python-version 3.11 \
			--generate-hashes --no-header --no-annotate -q -o setup/checksums/$$tool.txt - || exit; done
	echo "roc-validator>=0.13,<1" | $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate -q -o setup/checksums/roc-validator.txt -
	echo "mkdocs-material>=9.8,<10" | $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate -q -o setup/checksums/site.txt -

audit: .venv/.installed ## look up known vulnerabilities of the locked dependencies
	$(BIN)/python -m pip install -q pip-audit
	$(BIN)/pip-audit --require-hashes --disable-pip -r requirements.lock

clean: ## remove what was built; results stay
	rm -rf .venv .site site clients/target devmodel/build

.venv/.packages: setup/system-packages.sh
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed" >&2; exit 1; }
	PYTHON=$(PYTHON) setup/system-packages.sh
	mkdir -p .venv
	touch $@

.venv/.installed: requirements.lock pyproject.toml | .venv/.packages
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(CLIENTS): clients/pom.xml clients/checksums.sha256 $(shell find clients/src -type f 2>/dev/null) | .venv/.packages
	rm -rf clients/target/lib clients/target/bindings
	umask 022; mvn -q -B -f clients/pom.xml -DskipTests -Dexec.skip $(if $(WERROR),-Dmaven.compiler.failOnWarning=true) package
	setup/check-jars.sh clients/target clients/checksums.sha256
	umask 022; mvn -q -B -f clients/pom.xml exec:exec@class-archive || { tail clients/target/class-archive.log >&2; false; }
	touch $@

$(DEVMODEL): $(wildcard devmodel/*.c devmodel/*.h) devmodel/Makefile | .venv/.packages
	$(MAKE) -C devmodel
