# One command each. Every target sets up what it needs; PYTHON chooses the interpreter to start from.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test check bench docs fuzz clean

demo: $(VENV)/.installed
	$(BIN)/boxscore run configs/shapes-coco.toml
	@echo
	$(BIN)/boxscore run configs/shapes-voc.toml

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto -m 'not slow'

# The slow tests: tens of thousands of made-up cases, the wheel in a new environment.
fuzz: $(VENV)/.test
	$(BIN)/python -m pytest -n auto -m slow

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir $(VENV)/site

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/compare.py

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "boxscore needs Python 3.10 or newer; choose one with: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up $(VENV), once"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.test $(VENV)/.installed

# axe-core for tests/reports/test_browser.py; the browser itself: apt-get install chromium chromium-driver
tests/node_modules: tests/package.json
	npm install --prefix tests --no-audit --no-fund
	@touch $@

clean:
	rm -rf $(VENV) reports-out site build dist
