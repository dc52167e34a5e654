# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
DATA ?= ../shared/data
KERNELS = $(shell find sklearn_boltz -name '*.pyx' -o -name '*.h')

.PHONY: demo test test-oldest lint doc bench dist clean

# A stamp a set of extras: installing is done once, and again when a kernel changes.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/.installed-%: $(VENV)/bin/python pyproject.toml setup.py $(KERNELS)
	$(BIN)/pip install --quiet --editable ".[$*]"
	@touch $@

demo: $(VENV)/.installed-data
	$(BIN)/python examples/quick_start.py --data $(DATA)

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest

# The oldest scikit-learn that is supported, with libraries of its time.
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/pip install --quiet --editable ".[test]" \
		"scikit-learn==1.6.*" "numpy<2.3" "scipy<1.16" "pandas<3" "polars<1.30"
	.venv-oldest/bin/python -m pytest

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint sklearn_boltz

doc: $(VENV)/.installed-doc
	$(BIN)/python -m sphinx -W --keep-going -j auto -b html doc doc/_build/html

bench: $(VENV)/.installed-test
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script --data $(DATA) || exit 1; done

dist: $(VENV)/bin/python
	$(BIN)/pip install --quiet build
	$(BIN)/python -m build

clean:
	rm -rf .venv .venv-oldest build dist doc/_build doc/auto_examples doc/api/generated *.egg-info
	find sklearn_boltz -name '*.so' -delete -o -name '*.c' -delete
