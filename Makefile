# Every target makes .venv and installs what it needs; a second run only runs.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: demo test core check docs pictures format validate bench clean

demo: .venv/.package  ## simulate a small data set, audit two labelers on it, and write the report
	$(BIN)/dhkappa demo

test: .venv/.dev  ## run the tests
	$(BIN)/python -m pytest

core: .venv-core/.ready  ## run the tests that need nothing but what the package itself installs
	env -u DHKAPPA_REQUIRE_ALL .venv-core/bin/python -m pytest --hypothesis-profile=brief

check: .venv/.dev  ## format, lint, types, the site, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) --no-print-directory docs
	$(MAKE) --no-print-directory test

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

bench: .venv/.bench  ## speed and memory beside np.sum and the peers, one table
	$(BIN)/python benchmarks/bench.py

clean:
	rm -rf .venv .venv-core site

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

.venv-core/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip --disable-pip-version-check -q install -e . "hypothesis>=6.100" "pytest>=8,<9.2" "pytest-xdist>=3.6"
	touch $@

.venv/.bench: pyproject.toml | .venv/.dev
	$(PIP) install --group bench
	touch $@
