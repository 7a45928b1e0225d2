# Every target makes .venv and installs what it needs; a second run only runs.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: demo help test core check lint advisories docs pictures format validate bench clean
.PHONY: robustness fuzz mutate memory faults numbers threads coverage lowest

demo: .venv/.package  ## simulate a small data set, audit two labelers on it, and write the report
	$(BIN)/dhkappa demo

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: .venv/.dev  ## run the tests
	$(BIN)/python -m pytest

core: .venv-core/.ready  ## run the tests that need only what the package itself installs, at its oldest versions
	env -u DHKAPPA_REQUIRE_ALL .venv-core/bin/python -m pytest --hypothesis-profile=brief

check:  ## all that must hold before a change lands: lint, advisories, the site, tests
	$(MAKE) --no-print-directory lint advisories docs test

lint: .venv/.dev  ## format, lint, types, and code that may be unsafe
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/bandit --quiet --recursive --skip B101 src

advisories: .venv/.dev  ## known holes in the packages that are installed, where they can be asked for
	$(BIN)/python robustness/advisories.py

docs: .venv/.dev  ## build the site into site/; any warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

pictures: .venv/.dev  ## draw the pictures of the docs anew: a terminal, and the report in Chromium
	$(BIN)/python docs/pictures/draw.py

format: .venv/.dev  ## rewrite the code in the house's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

validate: .venv/.dev  ## simulate how often intervals hold the truth, and write docs/coverage*.md (three quarters of an hour)
	$(BIN)/python validation/interval_coverage.py
	$(BIN)/python validation/design_coverage.py
	$(BIN)/python validation/paired_coverage.py
	$(BIN)/python validation/people_coverage.py

robustness: fuzz mutate memory faults numbers threads coverage lowest  ## write every section of docs/robustness.md (hours)

fuzz: .venv/.dev  ## 100,000 hostile inputs, over all entrances
	$(BIN)/python robustness/fuzz.py

mutate: .venv/.mutate  ## change the statistics, one thing at a time, and see whether a test fails
	$(BIN)/python robustness/mutate.py

memory: .venv/.dev  ## a CSV file of 5 GB and 10^8 items of Parquet within 1 GiB (needs 16 GB of disk)
	$(BIN)/python robustness/memory.py

faults: .venv/.dev  ## kill it, fill the disk, restart the database, change the file as it is read
	$(BIN)/python robustness/faults.py

numbers: .venv/.dev  ## all data, engines, orders and splits: one set of bits; and peers
	$(BIN)/python robustness/same_numbers.py

threads: .venv/.dev  ## the same bits from threads and processes
	$(BIN)/python robustness/threads.py

coverage: .venv/.dev  ## lines and branches that the tests run
	$(BIN)/python robustness/cover.py

lowest: .venv/.package  ## the tests with the oldest versions of all packages that dhkappa allows
	$(BIN)/python robustness/lowest.py

bench: .venv/.bench  ## speed and memory beside np.sum and the peers, one table
	$(BIN)/python benchmarks/bench.py

clean:
	rm -rf .venv .venv-core .venv-lowest site

.venv/.python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dhkappa needs Python 3.11 or newer; name one with make PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(PIP) install --upgrade "pip>=25.1"
	touch $@

.venv/.package: pyproject.toml | .venv/.python
	$(PIP) install -e ".[report]"
	touch $@

.venv/.dev: pyproject.toml | .venv/.package
	$(PIP) install -e ".[dask,pandas,polars,postgres,report,spark]" --group dev
	$(PIP) install --no-deps "irrCAC>=0.4"
	touch $@

.venv-core/.ready: pyproject.toml robustness/floors.py
	$(PYTHON) -m venv --clear .venv-core
	$(PYTHON) robustness/floors.py > .venv-core/floors.txt
	.venv-core/bin/python -m pip --disable-pip-version-check -q install -e . -c .venv-core/floors.txt "hypothesis>=6.100" "pytest>=8,<9.2" "pytest-xdist>=3.6"
	touch $@

.venv/.bench: pyproject.toml | .venv/.dev
	$(PIP) install --group bench
	touch $@

.venv/.mutate: pyproject.toml | .venv/.dev
	$(PIP) install --group mutate
	touch $@
