# Every target creates .venv and installs what it needs there. ARGS is passed on: make test ARGS="--shuffle 1 -x"
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: demo help test test-all core check lint advisories docs pictures format validate bench clean
.PHONY: robustness fuzz mutate memory faults numbers threads coverage lowest

demo: .venv/.package  ## simulate a small data set, audit two labelers and write the report
	$(BIN)/dhkappa demo

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: .venv/.dev  ## run the tests that need no server (4 minutes)
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

test-all: .venv/.dev  ## run all tests: also Spark, Dask, Postgres, Chromium and robustness
	$(BIN)/python -m pytest $(ARGS)

core: .venv-core/.ready  ## run the tests of the core package with the oldest versions of its dependencies
	env -u DHKAPPA_REQUIRE_ALL .venv-core/bin/python -m pytest -m "not slow" --hypothesis-profile=brief $(ARGS)

check:  ## run what must pass before a commit: lint, advisories, docs, test
	$(MAKE) --no-print-directory lint advisories docs test

lint: .venv/.dev  ## check format, style, types and security
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/bandit --quiet --recursive --skip B101 src

advisories: .venv/.dev  ## look up known vulnerabilities of the installed packages
	$(BIN)/python robustness/advisories.py

docs: .venv/.dev  ## build the site into site/; any warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

pictures: .venv/.dev  ## redraw the pictures of the docs
	$(BIN)/python docs/pictures/draw.py

format: .venv/.dev  ## reformat the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

validate: .venv/.dev  ## simulate the coverage of intervals and the rates of problems, and write their tables in docs/ (50 minutes)
	$(BIN)/python validation/interval_coverage.py
	$(BIN)/python validation/design_coverage.py
	$(BIN)/python validation/cluster_coverage.py
	$(BIN)/python validation/annotator_flags.py
	$(BIN)/python validation/difference_coverage.py
	$(BIN)/python validation/annotator_coverage.py
	$(BIN)/python validation/baseline_coverage.py
	$(BIN)/python validation/other_annotators_coverage.py
	$(BIN)/python validation/problem_rates.py
	$(BIN)/python validation/weighted_coverage.py
	$(BIN)/python validation/pool_coverage.py
	$(BIN)/python validation/any_time_coverage.py
	$(BIN)/python validation/rate_coverage.py

robustness: fuzz mutate memory faults numbers threads coverage lowest  ## write all sections of docs/robustness.md (hours)

fuzz: .venv/.dev  ## fuzz every entry point with 100,000 inputs
	$(BIN)/python robustness/fuzz.py

mutate: .venv/.mutate  ## mutation testing of stats/
	$(BIN)/python robustness/mutate.py

memory: .venv/.dev  ## process a CSV file of 5 GB and 10^8 items of Parquet in 1 GiB of memory (needs 16 GB of disk)
	$(BIN)/python robustness/memory.py

faults: .venv/.dev  ## kill processes, fill disks, restart servers, change files while they are read
	$(BIN)/python robustness/faults.py

numbers: .venv/.dev  ## compare the numbers of all data sets, engines, row orders and partitions, and of other libraries
	$(BIN)/python robustness/reproducibility.py

threads: .venv/.dev  ## compare the numbers of threads and processes
	$(BIN)/python robustness/threads.py

coverage: .venv/.dev  ## measure the lines and branches that the tests execute
	$(BIN)/python robustness/cover.py

lowest: .venv/.package  ## run the tests with the oldest versions of all dependencies
	$(BIN)/python robustness/lowest.py

bench: .venv/.bench  ## measure speed and memory compared with np.sum and other libraries
	$(BIN)/python benchmarks/bench.py

clean:
	rm -rf .venv .venv-core .venv-lowest site

.venv/.python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dhkappa needs Python 3.11 or newer: make PYTHON=/path/to/python")'
	$(PYTHON) -m venv .venv
	$(PIP) install --upgrade "pip>=25.1"
	touch $@

.venv/.package: pyproject.toml | .venv/.python
	$(PIP) install -e ".[report]"
	touch $@

.venv/.dev: pyproject.toml | .venv/.package
	$(PIP) install -e ".[dask,excel,pandas,polars,postgres,report,spark]" --group dev
	$(PIP) install --no-deps "irrCAC>=0.4"
	touch $@

.venv-core/.ready: pyproject.toml robustness/oldest.py
	$(PYTHON) -m venv --clear .venv-core
	$(PYTHON) robustness/oldest.py > .venv-core/oldest.txt
	.venv-core/bin/python -m pip --disable-pip-version-check -q install -e . -c .venv-core/oldest.txt "hypothesis>=6.100" "pytest>=8,<9.2" "pytest-xdist>=3.6"
	touch $@

.venv/.bench: pyproject.toml | .venv/.dev
	$(PIP) install --group bench
	touch $@

.venv/.mutate: pyproject.toml | .venv/.dev
	$(PIP) install --group mutate
	touch $@
