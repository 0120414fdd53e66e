# Everything below works on a fresh clone: the first target that needs it sets up .venv.
#   make demo    teach dragons of Loong, make them a bot of the judge, prove it, and play: eight minutes on two cores
#   make demo-tennis    train two rackets, then show their scores and a rally
#   make test    all that CI runs: lint, types, sanitized core tests, pytest
#   make PYTHON=/path/to/python3.12 test    with another Python
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo demo-tennis test lint test-core test-races test-python test-nocompiler bench clean

VENV := .venv
BIN := $(VENV)/bin
# Sanitizers of the core tests.
SANITIZE ?= address,undefined
CONFIGURE_CORE_TESTS = $(BIN)/cmake -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
	-DSPARRING_CORE_TESTS=ON -DSPARRING_WERROR=ON --log-level=WARNING
# The name of a Python that is new enough; empty if there is none.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
# Without compiling torch's thousands of files ahead: Python compiles those it imports, once.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
# What is compiled or decides how: after a change here the package is installed anew.
BUILD_INPUTS := pyproject.toml constraints.txt CMakeLists.txt $(wildcard build_backend/*.py core/*.cpp core/*.h core/*/*.h)
CORE_SOURCES := $(wildcard core/*.cpp core/*.h core/*/*.cpp core/*/*.cu core/*/*.h)

help:
	@sed -n 's/^#   //p' Makefile

# From nothing to a bot that is ready to submit. A bot is written anew each time; everything else goes on where it was.
DEMO := runs/demo
demo: export SPARRING_RUNS := runs
demo: $(VENV)/loong
	$(BIN)/sparring train loong-tiny --run demo --minutes 4 --decisions 500000 --loong.maps generated:0:512
	$(BIN)/sparring distil demo --minutes 2 --lr 0.001
	rm -rf $(DEMO)/bot $(DEMO)/bot.zip
	$(BIN)/sparring export demo --out $(DEMO)/bot --zip
	$(BIN)/sparring gate $(DEMO)/bot --maps generated:5:6 --most-turns 200
	$(BIN)/sparring match arena $(DEMO)/bot forager --replay $(DEMO)/bot.replay
	$(BIN)/sparring replay film $(DEMO)/bot.replay --out $(DEMO)/bot.gif
	$(BIN)/sparring ladder $(DEMO)/bot starter forager --maps generated:7:6 --matches 12 --out $(DEMO)/matches
	@echo
	@echo 'The bot that can be submitted is $(DEMO)/bot.zip, the film $(DEMO)/bot.gif; $(DEMO)/bot.replay is for the'
	@echo "organisers' viewer. Next:"
	@echo '  $(BIN)/sparring train loong-tiny --minutes 30     # a better teacher, in runs/loong-tiny'
	@echo '  $(BIN)/sparring distil loong-tiny --minutes 10    # its student'
	@echo '  $(BIN)/sparring export loong-tiny --out my-bot --zip && $(BIN)/sparring gate my-bot'
	@echo '  $(BIN)/sparring verdict my-bot $(DEMO)/bot        # is it better?'

demo-tennis: $(VENV)/ready
	$(BIN)/sparring train tennis --run demo-tennis --minutes 3 --stop-after-solved 200
	$(BIN)/sparring evaluate demo-tennis
	$(BIN)/sparring play demo-tennis
	@echo
	@echo 'The curve is runs/demo-tennis/curve.png, the rally runs/demo-tennis/rally.gif. Next:'
	@echo '  $(BIN)/sparring train tennis --seed 1             # another run, to the end'
	@echo '  $(BIN)/sparring runs compare demo-tennis tennis-seed-1'
	@echo '  $(BIN)/sparring train --help                      # every setting, explained'

test: lint test-core test-races test-python

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CORE_SOURCES)

test-core: $(VENV)/dev
	@$(BIN)/python build_backend/sparring_build.py | grep '^C++' || { echo 'The core tests need g++ or clang++ with its sanitizers: on Debian and Ubuntu, apt-get install g++'; exit 1; }
	$(CONFIGURE_CORE_TESTS) -B build/core-tests -DSPARRING_SANITIZE=$(SANITIZE)
	$(BIN)/cmake --build build/core-tests -- --quiet
	$(BIN)/ctest --test-dir build/core-tests --output-on-failure --no-tests=error

# ThreadSanitizer on the one test that has several threads.
test-races: $(VENV)/dev
	$(CONFIGURE_CORE_TESTS) -B build/core-races -DSPARRING_SANITIZE=thread
	$(BIN)/cmake --build build/core-races --target test_lanes -- --quiet
	build/core-races/test_lanes

test-python: $(VENV)/dev
	$(BIN)/python -m pytest --numprocesses 2

# Builds and runs the package with every compiler hidden. Takes minutes the first time, so it is not part of `make test`.
test-nocompiler: $(VENV)/made
	bash .ci/nocompiler $(BIN)/python

bench: $(VENV)/dev
	$(PIP_INSTALL) --editable '.[bench]'
	for script in $(filter-out bench/gpu_%,$(wildcard bench/*.py)); do $(BIN)/python "$$script"; done

$(VENV)/made:
	@[ -n "$(PYTHON)" ] || { echo 'Sparring needs Python 3.11 or newer and found none: install one, or name it with make PYTHON=/path/to/python3.12'; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo '$(PYTHON) is not Python 3.11 or newer: name another with make PYTHON=/path/to/python3.12'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo '$(PYTHON) cannot make virtual environments: on Debian and Ubuntu, apt-get install python3-venv, then run make again'; exit 1; }
	@echo 'Setting up $(VENV) with $(PYTHON)'
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/ready: $(VENV)/made $(BUILD_INPUTS)
	@$(BIN)/python build_backend/sparring_build.py
	@echo 'Installing Sparring into $(VENV); the first time this fetches torch'
	$(PIP_INSTALL) --editable .
	@touch $@

# With the judge of Loong.
$(VENV)/loong: $(VENV)/made $(BUILD_INPUTS)
	@$(BIN)/python build_backend/sparring_build.py
	@echo 'Installing Sparring and the judge of Loong into $(VENV); the first time this fetches torch'
	$(PIP_INSTALL) --editable '.[loong]'
	@touch $@ $(VENV)/ready

# For development: the tools, and warnings of the core as errors.
$(VENV)/dev: $(VENV)/made $(BUILD_INPUTS)
	@$(BIN)/python build_backend/sparring_build.py
	@echo 'Installing Sparring and its development tools into $(VENV); the first time this fetches torch'
	$(PIP_INSTALL) --config-settings=cmake.define.SPARRING_WERROR=ON --editable '.[dev]'
	@touch $@ $(VENV)/ready $(VENV)/loong

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests bench -name __pycache__ -prune -exec rm -rf {} +
