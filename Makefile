# Each target does all of its own set-up; nothing outside this folder is touched.
PYTHON ?= python3
VENV := .venv
VENV_ALL := .venv-all
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check -c constraints.txt
export LITELLM_LOCAL_MODEL_COST_MAP := True

.PHONY: demo test test-all explore check docs clean

demo: $(VENV)/.core
	$(VENV)/bin/metricsmith demo --out metricsmith-demo

test: $(VENV)/.test
	$(VENV)/bin/python -m pytest -m "not extras and not slow" -n 2 --dist worksteal

test-all: $(VENV_ALL)/.all
	$(VENV_ALL)/bin/python -m pytest -n 2 $(TESTS)

# Other examples for the tests of properties than those of the gate, anew at each call.
explore: $(VENV)/.test
	$(VENV)/bin/python -m pytest -m "not extras and not slow" -n 2 --hypothesis-profile explore

check: $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy tools
	$(VENV)/bin/python -m pytest -n 2 tests/test_layout.py tests/test_layers.py tests/test_public_names.py

docs: $(VENV)/.test
	$(VENV)/bin/python tools/bank_page.py
	$(VENV)/bin/python tools/perturbers_page.py
	$(VENV)/bin/python tools/notebooks.py

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python $(PIP_INSTALL) -e .
	touch $@

$(VENV)/.test: $(VENV)/.core
	$(VENV)/bin/python $(PIP_INSTALL) -e ".[test,dev]"
	touch $@

# torch goes first: its pinned build must be in place before anything else asks for one.
$(VENV_ALL)/.all: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV_ALL)
	$(VENV_ALL)/bin/python $(PIP_INSTALL) torch
	$(VENV_ALL)/bin/python $(PIP_INSTALL) -e ".[all]"
	touch $@

clean:
	rm -rf $(VENV) $(VENV_ALL) build metricsmith-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
