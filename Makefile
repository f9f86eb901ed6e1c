PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV := test -x $(BIN)/uv && UV_HTTP_RETRIES=0 $(BIN)/uv pip install --quiet --python $(BIN)/python
TOOLS := --group test --group lint --group docs --group experiments

.PHONY: setup demo test test-all lint docs bench bench-scale bench-persons race privpgd tightness many audits paper clean

# Each is done once, and again when pyproject.toml changes: the package by itself, which is all that the demo needs, and
# the tools for tests and documentation. uv installs the same packages in a third of pip's time. It does not read pip's
# configuration, so that pip installs them where another index is configured, and wherever uv does not run or fails.
.venv/.package: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "certsynth needs Python 3.11 or newer: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip config list | grep -Eq '[.](index-url|no-index)=' || $(PIP) --no-compile --only-binary :all: uv || true
	$(UV) --editable . || $(PIP) --no-compile --editable .
	touch $@

# Tests treat warnings as errors, also those of compiling other packages: these are compiled beforehand.
.venv/.tools: .venv/.package
	$(UV) $(TOOLS) || { $(PIP) "pip>=25.1" && $(PIP) $(TOOLS); }  # older ones have no dependency groups
	$(BIN)/python -m compileall -qq -j 0 .venv/lib || true  # templates among them do not compile
	touch $@

setup: .venv/.tools

demo: .venv/.package
	rm -rf build/demo
	mkdir -p build
	$(BIN)/certsynth demo --out build/demo

test: setup
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

test-all: setup
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m ""

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: setup
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html docs build/docs/html
	@echo build/docs/html/index.html

bench: setup
	$(BIN)/python benchmarks/run.py

# Rows, columns, workers and engines: about an hour, and 4 GB on disk for 10^8 rows; `SCALE=--quick` takes minutes. What
# is done is kept in benchmarks/scale/results, and goes on: remove a file there to measure it again.
bench-scale: setup
	PYTHONPATH=benchmarks $(BIN)/python -m scale $(SCALE)

# Releases that protect persons with several rows, for several k: about half an hour. Results are kept in
# benchmarks/persons.json, and runs that it has are not repeated; the figure of docs/how-to/persons.md is drawn from it.
bench-persons: setup
	$(BIN)/python benchmarks/persons.py
	PYTHONPATH=experiments $(BIN)/python benchmarks/persons_figure.py

# Up to twelve hours, a run being stopped after one; `make race RACE=--quick` takes less than ten minutes, and
# RACE="--tables adult" runs one table.
# Peers have environments of their own in build/race. What is done is kept, and a race that was stopped goes on.
race: setup
	PYTHONPATH=benchmarks $(BIN)/python -m race $(RACE)
	PYTHONPATH=benchmarks $(BIN)/python docs/make_figures.py

# An hour or two; `make privpgd PRIVPGD="diamonds --epsilons 1 --modes delta-replace"` takes minutes. What is done is kept
# in benchmarks/privpgd/results, and an interrupted run resumes.
privpgd: setup
	PYTHONPATH=benchmarks $(BIN)/python -m privpgd $(PRIVPGD)
	PYTHONPATH=benchmarks $(BIN)/python docs/make_figures.py

# An hour or two; `make tightness TIGHTNESS="adult --seeds 1"` takes minutes. Releases are kept in build/tightness and results
# in benchmarks/tightness/results, and an interrupted run resumes.
tightness: setup
	PYTHONPATH=benchmarks $(BIN)/python -m tightness $(TIGHTNESS)
	PYTHONPATH=benchmarks $(BIN)/python docs/make_figures.py

# Hours for all tables; `make many MANY="adult --modes pure-add --seeds 1"` takes minutes. What is done is kept in
# build/many/results, and goes on: remove a file there to measure it again.
many: setup
	PYTHONPATH=benchmarks $(BIN)/python -m many $(MANY)

# Some twenty minutes. The judge has an environment of its own in build/audits/venv, without certsynth.
audits: setup
	$(BIN)/python audits/accounting.py
	$(BIN)/python audits/auditor.py
	$(BIN)/python audits/distinguish.py
	$(BIN)/python audits/intervals.py
	$(BIN)/python audits/certified_errors.py
	$(BIN)/python audits/readers.py

# The paper's figures and rates, and ours beside them: some three hours on one core; goes on where it was interrupted.
# QUICK=1 tries everything out in minutes.
paper: setup
	$(BIN)/python experiments/run.py $(if $(QUICK),--quick)
	$(BIN)/python experiments/rates.py $(if $(QUICK),--quick)
	$(BIN)/python experiments/dimension.py $(if $(QUICK),--quick)

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
