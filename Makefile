# make demo | test | check | wheel | benchmark TABLE=… | clean
#
# Needs Python 3.11 or newer and GNU make; everything else goes into .venv. Another Python: make demo PYTHON=/path/to/python3.11

# 3.11 first: it is the newest one with a wheel of pybullet, which brings DeepMimic's clips. A name in PATH may be a shim of
# nothing, so each is tried.
CANDIDATES := python3.11 python3 python3.12 python3.13 python3.14 python
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
PYTHON := $(shell for p in $(CANDIDATES); do if $$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then echo $$p; break; fi; done)
endif

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := -m pip install -qq --disable-pip-version-check
PROJECT := pyproject.toml setup.py
SOURCES := mocap2ctrl tests tools setup.py
DEMO := captures/demo
PYTEST ?=
TABLE ?=
ARGS ?=

.PHONY: help demo test check wheel benchmark install clean
.DELETE_ON_ERROR:

help:
	@echo "make demo       fit a controller to a video of a walk; prints where its overlay and report are"
	@echo "make install    the package in $(VENV), without developers' tools"
	@echo "make check      lint, format, types, floors"
	@echo "make test       all tests; some of them: make test PYTEST='tests/unit -k prior'"
	@echo "make wheel      build the wheel into dist/ and test it in an environment of its own"
	@echo "make benchmark  the README's tables: make benchmark TABLE=... ARGS=--quick"
	@echo "make clean      remove $(VENV), caches and builds; captures stay"

demo: $(VENV)/.installed
	$(BIN)/mocap2ctrl fit video/walk.mp4 --budget quick -o $(DEMO) --overwrite
	@echo
	@echo "video:  $(CURDIR)/$(DEMO)/overlay.mp4"
	@echo "report: $(CURDIR)/$(DEMO)/report.html"

# Side by side, file by file, so that what a file's tests share is made once.
test: $(VENV)/.developer
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile $(PYTEST)

check: $(VENV)/.developer
	$(BIN)/ruff check --quiet $(SOURCES)
	$(BIN)/ruff format --check --quiet $(SOURCES)
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/unit/test_architecture.py

# From an empty folder, so that what is tested is what the wheel holds and not this checkout.
wheel: $(VENV)/.developer
	@rm -rf build
	@$(BIN)/python -m pip wheel -qq --disable-pip-version-check --no-deps --wheel-dir dist .
	@rm -rf build
	@set -e; wheel=$$(ls -t "$(CURDIR)"/dist/mocap2ctrl-*.whl | head -n 1); folder=$$(mktemp -d); \
	trap 'rm -rf "$$folder"' EXIT; \
	tools=$$($(BIN)/python -m pip freeze --disable-pip-version-check | grep -E '^pytest=='); \
	"$(CURDIR)/$(BIN)/python" -m venv --without-pip "$$folder/venv"; \
	$(BIN)/python -m pip --python "$$folder/venv/bin/python" install -qq --disable-pip-version-check --no-compile \
	  "$$wheel" "$$tools"; \
	cp tests/unit/test_package.py "$$folder"; cd "$$folder"; \
	MOCAP2CTRL_INSTALLED=1 ./venv/bin/python -m pytest -q -p no:cacheprovider test_package.py; \
	echo "$$wheel"

benchmark: $(VENV)/.developer
	$(BIN)/python tools/benchmark.py $(TABLE) $(ARGS)

install: $(VENV)/.installed
	@echo "the command is $(BIN)/mocap2ctrl"

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The stamps: an environment, the package in it, developers' tools in it. A change in what the project needs installs anew.
$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "mocap2ctrl needs Python 3.11 or newer; none of these is one: $(CANDIDATES)." \
	  "Install it, or name it: make demo PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' || { echo "mocap2ctrl needs Python 3.11 or newer; $(PYTHON) is not" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV) || { echo \
	  "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu its package python3-venv is missing" >&2; exit 1; }
	@touch $@

$(VENV)/.installed: $(PROJECT) | $(VENV)/.created
	@echo "installing into $(VENV) ..."
	@$(BIN)/python $(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/.developer: $(PROJECT) | $(VENV)/.created
	@echo "installing into $(VENV) ..."
	@$(BIN)/python $(PIP_INSTALL) --editable '.[dev]'
	@touch $@ $(VENV)/.installed
