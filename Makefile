# Everything a fresh Debian machine needs is set up by the targets themselves.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test unit test-long bench bench-quick lint cluster-up cluster-down jre jdk lock clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(STAMP): requirements.lock pyproject.toml .ci/make-venv
	@.ci/make-venv $(VENV)
	@touch $@

jre:
	@.ci/install-java --jre

jdk:
	@.ci/install-java

demo: $(STAMP) jre ## start a local RocketMQ, write and read a data set through Spark, prove them equal
	@$(BIN)/python -m examples.demo

test: $(STAMP) jdk ## all tests but the long ones; those on Docker and Spark included
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -m "not slow"

test-long: $(STAMP) jdk ## the tests that take minutes
	@$(BIN)/python -m pytest -m slow

unit: $(STAMP) ## tests without a broker, in seconds
	@$(BIN)/python -m pytest -q -m "not slow" -n 3 --dist loadfile tests/unit

bench: $(STAMP) jdk ## speed against the official Java client, and how it scales: up to an hour, on a quiet machine
	@$(BIN)/python -m tests.bench --scaling

bench-quick: $(STAMP) jdk ## the main lines of it, in three minutes
	@$(BIN)/python -m tests.bench --quick --rounds 2 --seconds 1 --messages 100000 --warm-up 4

lint: $(STAMP) ## ruff and mypy --strict
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

cluster-up: $(STAMP) jdk ## the Docker cluster: a name server and three masters
	@$(BIN)/python -m tests.support.docker_cluster up

cluster-down: $(STAMP) ## stop it, and Docker too where cluster-up started it
	@$(BIN)/python -m tests.support.docker_cluster down

clean: ## remove what the targets have made in this folder
	rm -rf $(VENV) .build .mypy_cache .ruff_cache .pytest_cache .hypothesis

lock: $(STAMP) ## resolve the dependencies of pyproject.toml into requirements.lock
	@$(BIN)/python -m pip install --quiet pip-tools
	@CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --upgrade --generate-hashes --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --unsafe-package rmqtools \
		--extra dev --output-file requirements.lock pyproject.toml
