# Two commands do everything on a fresh clone: `make demo` and `make test`.
# `make test TORCH=2.13.0` also installs the networks' libraries, a llama.cpp server and the weights of the small set, for
# tests that are skipped without them. `make test LONG=1` runs the longest tests, too.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# uv installs in a fifth of pip's time. Where it cannot be had, or does not reach the index that pip is set to, pip does it.
INSTALL := $(BIN)/install
# Tests start the command hundreds of times: compiled modules are kept, whatever the shell says.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test lint types tests fast times checks fuzz soak docs figures site benchmarks lock sbom wheels release-check clean

demo: .venv/installed
	$(BIN)/revisit demo --out demo

# The project and all that it needs, for docker/Dockerfile or a machine without a network. EXTRAS=networks adds to it;
# PLATFORM is what the wheels are for, where that is not this machine: "--platform manylinux_2_28_x86_64 --python-version 3.12 --only-binary :all:".
wheels: .venv/installed
	rm -rf dist/wheels
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist/wheels .
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --dest dist/wheels $(PLATFORM) --find-links dist/wheels "revisit-bench[$(EXTRAS)]"
	@$(BIN)/python -c "import sys; print('docker build -f docker/Dockerfile --build-arg BASE=python:%d.%d-slim -t revisit .' % sys.version_info[:2])"

# Types are checked beside the tests: alone they would keep one core only.
test: .venv/installed-dev lint
	+$(MAKE) --no-print-directory -j2 types tests

lint: .venv/installed-dev
	$(BIN)/ruff check src tests benchmarks examples docs release stubs
	$(BIN)/ruff format --check src tests benchmarks examples docs release stubs

types: .venv/installed-dev
	$(BIN)/mypy

# Four processes test on two cores, because many tests wait; threads within them would only wait for each other.
tests fast times checks: export OMP_NUM_THREADS = 1
tests fast times checks: export OPENBLAS_NUM_THREADS = 1

# The tests of a file stay together: what they share is then made once.
tests: .venv/compiled
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(if $(LONG),,-m "not long")

# What tests/times.json calls slow is left out; `make times` measures again.
fast: .venv/installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not long"

times: .venv/compiled
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not long" --record-times

# The tests that the checklist names (docs/checklist/), and the day on which each passed.
checks: .venv/installed-dev
	$(BIN)/python -m pytest -n 4 --dist loadfile --record-checks $$($(BIN)/python docs/checklist.py)
	$(BIN)/python docs/make_cards.py

# Files changed at random, read by everything that reads files; FUZZ="--inputs 95000 --media 5000 --flips 100000 --log build/fuzz.jsonl" for long.
fuzz: .venv/installed-dev
	$(BIN)/python -m tests.fuzzing $(FUZZ)

# Thousands of small clips while processes, disks and the judge fail; SOAK="--clips 60" for a short one. Needs torch.
soak: .venv/installed-dev
	$(BIN)/python -m tests.soak $(SOAK)

docs: .venv/installed-dev
	$(BIN)/python docs/make_cards.py
	$(BIN)/python docs/make_commands.py
	$(BIN)/python docs/make_scorers.py
	$(BIN)/python docs/make_target_gate.py
	$(BIN)/python docs/make_speed.py
	$(BIN)/python docs/make_gpu.py
	$(BIN)/python docs/make_truth.py

# README's table and picture, the tutorial's numbers and verdict.md, from fresh runs of the demo and the tutorial.
figures: .venv/installed-dev
	$(BIN)/python docs/make_figures.py

site: docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "build/site/index.html; while writing: .venv/bin/mkdocs serve"

benchmarks: .venv/installed-dev
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || { [ $$? -eq 2 ] && echo "left out: it needs arguments"; } || exit 1; done

# Exact versions and digests of everything that an install brings, for Python 3.10 to 3.13 on all platforms.
lock: .venv/installed-release
	$(BIN)/python release/lock.py

# The wheel alone in a new environment, the locked versions on every Python, the tests from the source archive (ALL=1: also
# the slow ones), and a list of what an install brings.
release-check: .venv/installed-release
	$(BIN)/python release/check.py $(if $(ALL),--all)

sbom: .venv/installed-release
	$(BIN)/python release/check.py --only-sbom

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Revisit needs Python 3.10 or newer; try: make PYTHON=python3.11 ...") if sys.version_info < (3, 10) else None'
	$(PYTHON) -m venv .venv

$(BIN)/install: | .venv/bin/python
	-@$(PIP) uv
	@printf '#!/bin/sh\n$(BIN)/uv pip install --quiet --python $(BIN)/python "$$@" 2> /dev/null || exec $(PIP) "$$@"\n' > $@
	@chmod +x $@

.venv/installed: pyproject.toml | $(BIN)/install
	$(INSTALL) --editable .
	@touch $@

.venv/installed-dev: pyproject.toml | $(BIN)/install
ifdef TORCH
	$(PIP) torch==$(TORCH)  # by pip, which also looks where its settings say that wheels lie
	$(INSTALL) --editable '.[dev,networks,cpu]' onnx xllamacpp gguf wandb mlflow-skinny webdataset datasets
	$(INSTALL) --no-deps lpips  # without torchvision
	$(INSTALL) --no-deps lightning lightning-utilities torchmetrics  # without another torch
	$(INSTALL) --no-deps irrCAC  # without the old scipy and pandas that it asks for
	$(BIN)/revisit weights pull --set small || echo "tests with these weights are skipped"
	$(BIN)/revisit weights pull xfeat sscd || echo "tests with these weights are skipped"
else
	$(INSTALL) --editable '.[dev]'
endif
	@touch .venv/installed $@

# All that tests import is compiled once, beside mypy: each of the four processes would do it by itself, at the same time.
.venv/compiled: export OMP_NUM_THREADS = 1
.venv/compiled: .venv/installed-dev
	$(BIN)/python -m pytest -p no:xdist -p no:cacheprovider --collect-only -qq > /dev/null || echo "the tests say what cannot be collected"
	@touch $@

.venv/installed-release: .venv/installed-dev
	$(INSTALL) --editable '.[release]'
	@touch $@

clean:
	rm -rf .venv demo runs build dist .mypy_cache .ruff_cache .pytest_cache
