# Everything a fresh Debian machine needs is set up by the targets themselves.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Per cent of the branches and lines that the tests without servers must take: just under what they do (95.2).
LEAST_COVERAGE := 95.0
# The groups and their order: tests/support/workers.py.
# Four processes: many of the tests wait. Those of make unit hardly do, and each process collects them for 6 s.
SHARED := --dist loadscope --no-loadscope-reorder
PARALLEL := -n 4 $(SHARED)
# Python's compiled files are kept: without them each process compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo check test unit test-long coverage bench bench-quick lint docs release faults faults-quick fuzz asan sim soak cluster-up cluster-down jre jdk lock clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(STAMP): requirements.lock pyproject.toml .ci/make-venv hatch_build.py $(wildcard rmqtools/compiled/*.[ch])
	@.ci/make-venv $(VENV)
	@touch $@

jre:
	@.ci/install-java --jre

jdk:
	@.ci/install-java

demo: $(STAMP) jre ## start a local RocketMQ, write and read a data set through Spark, compare both
	@$(BIN)/python -m examples.demo

check: $(STAMP) ## before a commit, in a minute: style, types, layers, pages, changelog, tests of the changed files
	@$(BIN)/python -m tools.check $(if $(SINCE),--since $(SINCE))

test: $(STAMP) jdk ## all tests except the long ones, with Docker and Spark
	@$(BIN)/python -m pytest -m "not slow" $(PARALLEL)

test-long: $(STAMP) jdk ## the tests that take minutes, and every property with many examples
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -m "slow or (hypothesis and not broker)" $(PARALLEL)

unit: $(STAMP) ## tests without a broker, in seconds; properties with three examples each
	@HYPOTHESIS_PROFILE=brief $(BIN)/python -m pytest -q -m "not slow and not broker and not process" -n auto $(SHARED) tests/unit tests/behaviour
	@echo "left out: tests that start programs or read all sources (marked process; layers, pages, changelog: make check), brokers, Spark, Docker (make test)"

coverage: $(STAMP) ## how many branches of each package the tests without servers take, in minutes
	@$(BIN)/python -m pip install --quiet "coverage>=7"
	@COVERAGE_CORE=ctrace $(BIN)/python -m coverage run --branch --source=rmqtools,spark_connector --data-file=.build/coverage \
		-m pytest -q -p no:cacheprovider -m "not slow and not broker" tests/unit tests/behaviour
	@for package in $(wildcard rmqtools/*/ spark_connector/*/ rmqtools/engine/*/); do \
		total=$$($(BIN)/python -m coverage report --data-file=.build/coverage --include="$$package*" --format=total 2>/dev/null) && \
		printf '%4s %%  %s\n' "$$total" "$$package"; done
	@$(BIN)/python -m coverage report --data-file=.build/coverage --precision=1 --format=total --fail-under=$(LEAST_COVERAGE)

bench: $(STAMP) jdk ## speed against the official Java client and other Python clients, and how it scales: up to an hour, on a quiet machine
	@$(BIN)/python -m tools.measure.bench --scaling

bench-quick: $(STAMP) jdk ## the main lines of the bench, in three minutes
	@$(BIN)/python -m tools.measure.bench --quick --rounds 2 --seconds 1 --messages 100000 --warm-up 4

faults: $(STAMP) jdk ## what dead, frozen and cut off servers and clients cost: half an hour, with Docker
	@$(BIN)/python -m tools.measure.faults

faults-quick: $(STAMP) jdk ## the eight most telling faults, on servers from the jars
	@$(BIN)/python -m pytest -q tests/measure/test_{faults,soak,broken_engine}.py

sim: $(STAMP) ## 10,000 simulated runs each of producers and consumers in trouble, of exact appenders, of staged writes: hours
	@$(BIN)/python -m tools.measure.sim
	@$(BIN)/python -m tools.measure.sim --exact
	@$(BIN)/python -m tools.measure.sim --mirror --seeds 1000
	@$(BIN)/python -m tools.measure.sim --staged

fuzz: $(STAMP) ## damaged bytes for every decoder, for ten minutes
	@$(BIN)/python -m tools.measure.fuzz

asan: $(STAMP) ## the compiled module under the sanitizers of gcc: its unit tests, then two minutes of fuzz
	@$(BIN)/python -m tools.asan

soak: $(STAMP) jdk ## 20 minutes of producing and consuming: memory, sockets, threads, tasks
	@$(BIN)/python -m tools.measure.faults.soak

lint: $(STAMP) ## ruff and mypy --strict
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

docs: $(STAMP) ## the documentation site, in .build/site; warnings are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open .build/site/index.html; with search: $(BIN)/python -m http.server -b 127.0.0.1 -d .build/site"

release: $(STAMP) ## build and check a release, commit and tag it: make release VERSION=x.y.z (pushes nothing)
	@$(BIN)/python -m tools.release "$(VERSION)"

cluster-up: $(STAMP) jdk ## the Docker cluster: a name server and three masters
	@$(BIN)/python -m tests.support.docker_cluster up

cluster-down: $(STAMP) ## stop the Docker cluster, and Docker if cluster-up started it
	@$(BIN)/python -m tests.support.docker_cluster down

clean: ## remove everything that these targets made in this folder
	rm -rf $(VENV) .build rmqtools/compiled/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis

lock: $(STAMP) ## resolve the dependencies of pyproject.toml into requirements.lock, on Python 3.11.0 to 3.11.2
	@$(BIN)/python -c 'import sys; sys.version_info < (3, 11, 3) or sys.exit("error: some packages need more on the oldest Python: run this on 3.11.0 to 3.11.2, such as Debian 12 has")'
	@$(BIN)/python -m pip install --quiet pip-tools
	@CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --upgrade --allow-unsafe --generate-hashes --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --unsafe-package rmqtools \
		--extra dev --output-file requirements.lock pyproject.toml
	@sed -i '/^# The following packages are considered to be unsafe/,$$d' requirements.lock
