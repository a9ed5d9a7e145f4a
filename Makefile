# One command each. Every target sets up what it needs; PYTHON chooses the interpreter to start from.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# What fills the environment; .ci/run takes uv, which takes 3 s of processor time where pip takes 47.
INSTALL ?= $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test check bench bench-processors docs pictures links dist fuzz attack tools frameworks mutate matrix audit clean

demo: $(VENV)/.installed
	$(BIN)/boxscore run configs/shapes-coco.toml
	@echo
	$(BIN)/boxscore run configs/shapes-voc.toml

# The core, and what has changed since main, with a twentieth of the generated cases: under two minutes on two cores.
# ALL=1 runs everything but the slow tests, as CI does, with a fifth of the generated cases.
ALL ?=
test: export BOXSCORE_EXAMPLES ?= $(if $(ALL),0.2,0.05)
test: export PYTHONDONTWRITEBYTECODE =# hundreds of processes, which would each compile what they import
test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal $(if $(ALL),,--changed -m 'not slow and not browser and not real and not long')

# Made-up cases scored twice, here and by another program; bytes that no reader may fail with; the slow tests.
CASES ?= 100000
SEED ?= 0
SECONDS ?= 60
fuzz: $(VENV)/.test
	-$(INSTALL) faster-coco-eval
	-$(INSTALL) --only-binary :all: atheris
	$(BIN)/python qa/fuzz/differential.py --cases $(CASES) --seed $(SEED)
	$(BIN)/python qa/fuzz/partitions.py --cases 200 --seed $(SEED)
	$(BIN)/python qa/fuzz/vocabularies.py --cases 20000 --seed $(SEED)
	$(BIN)/python qa/fuzz/mutants.py answers --count 20000 --seed $(SEED)
	$(BIN)/python qa/fuzz/mutants.py json --count 20000 --seed $(SEED)
	$(BIN)/python qa/fuzz/coverage_guided.py --seconds $(SECONDS) --seed $(SEED)
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow
	BOXSCORE_EXAMPLES=4 $(BIN)/python -m pytest -n auto --dist worksteal -m 'property and not slow'

# Every tool that a protocol imitates, at its named version, on the same data, and the evaluators of benchmarks on 2,000
# made-up cases each: are our numbers still theirs? Fetches the tools (2 GB, torch; KITTI's needs g++);
# TOOLS="--tools globox --folder /tmp/tools" takes one and keeps it.
TOOLS ?=
tools: $(VENV)/.test
	$(BIN)/python qa/tools/run.py $(TOOLS)
	$(BIN)/python qa/tools/benchmarks.py $(TOOLS)

# The adapters of boxscore.integrations inside the frameworks themselves, which are fetched (some GB, torch) into an environment
# of their own. FRAMEWORKS="torchmetrics lightning" fetches and tests some; tests of the others are skipped.
FRAMEWORKS ?= torch torchvision torchmetrics lightning rfdetr[train] supervision accelerate ultralytics transformers faster-coco-eval \
	mmengine mmdet 'mmcv-lite<2.2' fiftyone wandb mlflow tensorboard polars pyarrow datasets
FRAMEWORKS_VENV ?= $(VENV)/frameworks
frameworks: $(BIN)/python
	test -x $(FRAMEWORKS_VENV)/bin/python || $(BIN)/python -m venv $(FRAMEWORKS_VENV)
	$(FRAMEWORKS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]' $(FRAMEWORKS)
	@$(FRAMEWORKS_VENV)/bin/python -c 'import re, sys; from importlib.metadata import version; \
	  print(*(f"{name} {version(name)}" for name in (re.split("[^a-z0-9-]", each)[0] for each in sys.argv[1:])), sep=", ")' $(FRAMEWORKS)
	$(FRAMEWORKS_VENV)/bin/pytest -n 0 tests/integrations tests/extensions/training/test_model_objects_peers.py tests/data/test_other_frames.py
	@# rfdetr asks for an older torchmetrics: the newest comes after it
	$(FRAMEWORKS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade torchmetrics
	$(FRAMEWORKS_VENV)/bin/pytest -n 0 tests/integrations/test_torchmetrics.py tests/integrations/test_rfdetr.py

# Files and options that mean harm, then signals, closed streams and races: about an hour. A short run:
# make attack MUTANTS=2000 SCRIPTS=
MUTANTS ?= 1000000
SCRIPTS ?= $(filter-out %/__init__.py %/mutants.py qa/attack/test_%,$(wildcard qa/attack/*.py))
attack: $(VENV)/.test
	$(BIN)/python qa/attack/mutants.py --cases qa/attack/cases
	$(BIN)/python qa/attack/mutants.py --count $(MUTANTS) --seed $(SEED)
	for script in $(SCRIPTS); do $(BIN)/python $$script || exit 1; done

# Every small change of the code that decides a score: does a test notice? An hour or two.
mutate: $(VENV)/.test
	$(INSTALL) cosmic-ray
	$(BIN)/python qa/mutation/run.py

# The oldest and the newest dependencies, on every Python that is here.
matrix: $(BIN)/python
	$(INSTALL) uv
	$(BIN)/python tests/packaging/matrix.py

# Known faults of what boxscore is installed with, and a list of it (CycloneDX).
audit: $(VENV)/.installed
	$(INSTALL) pip-audit cyclonedx-bom
	-$(BIN)/python -m pip_audit --skip-editable --progress-spinner off
	$(BIN)/python -m cyclonedx_py environment --output-file sbom.json

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir $(VENV)/site  # with --quiet it would not be strict

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The pictures of the README and the pages, and the outputs of the notebooks, from what the program prints today.
pictures: $(VENV)/.dev
	$(BIN)/python docs/pictures/make.py
	$(BIN)/python tests/docs/test_notebooks.py

# Links to other sites; needs a network, so it is no part of check. Links between pages: check.
links: $(BIN)/python
	$(BIN)/python tests/docs/external_links.py

# The wheel and the source archive, as they would be uploaded, into dist.
INSTALLER ?= pip
dist: $(BIN)/python
	$(INSTALL) build twine
	rm -rf dist
	$(BIN)/python -m build --installer $(INSTALLER) --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

# Every row of the table of docs/contributing/benchmarks.md on two processors, a quarter of an hour; with WRITE="name of the machine" it is written there.
bench: $(VENV)/.installed
	$(BIN)/python benchmarks/table.py --threads 2 $(BENCH)
	test -z "$(WRITE)" || $(BIN)/python benchmarks/figures.py --results benchmarks/results/threads_2 \
	  --machine "$(WRITE)" --described "$$(uname -srm), $$(date '+%d %B %Y')"

# How time falls with processors: every step of evaluate with 1, 2, 4, 8 and 16 processes, then boxes, masks and small files beside the
# peers on as many processors. For an idle machine, an hour; it uses as many as are there.
bench-processors: $(VENV)/.installed
	$(BIN)/python benchmarks/steps.py
	$(BIN)/python benchmarks/table.py --threads 1 2 4 8 16 --only small boxes masks

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "boxscore needs Python 3.10 or newer; choose one with: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up $(VENV), once"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@$(INSTALL) --editable '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@$(INSTALL) --editable '.[dev]'
	@touch $@ $(VENV)/.test $(VENV)/.installed

# axe-core for tests/extensions/pages/test_browser.py; the browser itself: apt-get install chromium chromium-driver
tests/node_modules: tests/package.json
	npm install --prefix tests --no-audit --no-fund
	@touch $@

clean:
	rm -rf $(VENV) reports-out attack-out site build dist
