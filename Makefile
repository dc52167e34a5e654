# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
DATA ?= ../shared/data
# pip and setuptools print advice that is not for whoever builds this package. Errors are shown.
# What is never imported is not compiled to bytecode: half of the time of an installation.
QUIETLY = -qq --no-warn-script-location --no-compile
# Bytecode is kept, whatever the environment says: tests begin a hundred processes, and each would
# compile scikit-learn anew.
unexport PYTHONDONTWRITEBYTECODE
# As [build-system] of pyproject.toml, to compile without an environment of pip's own.
BUILD_REQUIRES = "setuptools>=77" "Cython>=3.1" "scipy>=1.12"
# The commit that `make check` and `make net` compare with.
BASE ?= HEAD
KERNELS = $(shell find sklearn_boltz -name '*.pyx' -o -name '*.pxd' -o -name '*.h')

.PHONY: demo test check test-slow test-processors messages stubs fuzz net test-array-api test-oldest test-newest test-free-threaded test-sanitizers test-wheel lint doc bench bench-kernels reproduce reproduce-quick sdist dist clean

# What builds the kernels, and the package in place without them: its Python files need no more.
# A stamp for each set of extras.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: $(VENV)/bin/python pyproject.toml setup.py
	$(BIN)/pip install $(QUIETLY) $(BUILD_REQUIRES)
	SKLEARN_BOLTZ_NO_KERNELS=1 $(BIN)/pip install $(QUIETLY) --no-build-isolation --editable ".[$*]"
	@touch $@

# Kernels are compiled once, on all processors, and again where they or their headers change.
$(VENV)/.built: $(VENV)/.installed-plot setup.py $(KERNELS)
	$(BIN)/python setup.py -q build_ext --inplace
	@touch $@

demo: $(VENV)/.installed-plot $(VENV)/.built
	$(BIN)/python examples/quick_start.py

# Arrays of other libraries are dispatched where SciPy is told so before it is imported: these tests
# are run by themselves, with the strict arrays, and PyTorch if `make test-array-api` installed it.
ARRAY_API = SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto tests/test_array_api.py

# In a process for each processor, with a thread of BLAS in each. The tests of a file are in one of
# them: what they share is computed once, and files of many tests come first.
test: $(VENV)/.installed-test $(VENV)/.built
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile
	$(ARRAY_API)

# In a minute: tests near what differs from the commit BASE, kernels, and what all estimators share,
# except what takes long there.
LONG = test_same_table.py test_remedies.py::test_the_line_converts_the_column \
	test_saving.py::test_a_model_comes_back_with_the_types_that_the_guide_lists \
	test_state.py::test_threads_give_the_bits_of_a_sequence \
	test_unseen.py::test_each_fold_of_a_cross_validation_is_finite \
	test_values.py::test_cells_come_back_as_they_were \
	test_verbs.py::test_what_cannot_be_enumerated_is_within_its_standard_error
check: $(VENV)/.installed-test $(VENV)/.built
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup tests/contract \
		$(LONG:%=--deselect=tests/contract/%) tests/test_*kernels.py $$($(BIN)/python tests/changed.py $(BASE))

# What takes long, besides `make test`: before a release.
test-slow: $(VENV)/.installed-test $(VENV)/.built
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup -m slow

# The numerical tests with the registers, the BLAS and the threads of other processors.
test-processors: $(VENV)/.installed-test $(VENV)/.built
	$(BIN)/python tests/processors.py

# The file with all messages to bad input; git diff shows what a change makes of them.
messages: $(VENV)/.installed-test $(VENV)/.built
	PYTHONPATH=tests $(BIN)/python tests/contract/test_messages.py

# The type stubs, from signatures and docstrings.
stubs: $(VENV)/.installed-test $(VENV)/.built
	$(BIN)/python tests/stubs.py

test-array-api: $(VENV)/.installed-test-array-api $(VENV)/.built
	$(ARRAY_API)

# Random cases of all property tests, at least eight for each of `make test`. A failure prints the line
# that reproduces it. `make fuzz MINUTES=120` goes on for two hours.
MINUTES ?= 0
fuzz: $(VENV)/.installed-test $(VENV)/.built
	end=$$(( $$(date +%s) + 60 * $(MINUTES) )); \
	while SKLEARN_BOLTZ_FUZZ=8 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests -m hypothesis -n auto; \
		do [ $$(date +%s) -lt $$end ] || exit 0; done; exit 1

# What the working tree changes beside another commit, BASE: results of 400 fits.
net: $(VENV)/.installed-test $(VENV)/.built
	rm -rf build/net && git worktree prune && git worktree add --force --detach build/net $(BASE)
	cd build/net && $(CURDIR)/$(BIN)/python setup.py -q build_ext --inplace
	PYTHONPATH=$(CURDIR)/build/net $(BIN)/python tests/net.py record build/net.pickle
	PYTHONPATH=$(CURDIR) $(BIN)/python tests/net.py compare build/net.pickle

# The lowest versions that pyproject.toml declares; of what these need in turn, the newest.
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/pip install $(QUIETLY) uv
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest --resolution lowest-direct \
		--requirements pyproject.toml --extra test
	.venv-oldest/bin/pip install $(QUIETLY) --no-deps --editable .
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest

# Pre-releases of what the package computes with, and the newest of all else.
test-newest:
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/pip install $(QUIETLY) --editable ".[test]"
	.venv-newest/bin/pip install $(QUIETLY) --upgrade --pre numpy scipy scikit-learn
	OMP_NUM_THREADS=1 .venv-newest/bin/python -m pytest -n auto --dist loadgroup

# PYTHON is a free-threaded one, as python3.14t. Not all extras have wheels for it. Whether importing
# the package turns the interpreter lock on again is an error of this target: the kernels declare that
# they need none, so that another library would be the cause.
test-free-threaded:
	$(PYTHON) -c "import sysconfig; assert sysconfig.get_config_var('Py_GIL_DISABLED')"
	$(PYTHON) -m venv .venv-free-threaded
	.venv-free-threaded/bin/pip install $(QUIETLY) pytest mpmath hypothesis --editable .
	.venv-free-threaded/bin/python -W error::RuntimeWarning -c \
		"import sys, sklearn_boltz; assert not sys._is_gil_enabled(), 'the lock is on again'"
	.venv-free-threaded/bin/python -m pytest $(KERNEL_TESTS) tests/test_threads.py

# The kernels with the address and the undefined-behaviour sanitizer, by GCC, in a copy of the tree.
# Python keeps memory until it exits, so that leaks are not looked for.
KERNEL_TESTS = tests/test_fvbm_kernels.py tests/test_rbm_kernels.py tests/test_hadamard.py
SANITIZERS = -fsanitize=address,undefined -fno-sanitize-recover=undefined -g -O1
test-sanitizers: $(VENV)/.installed-test
	rm -rf build/sanitizers && mkdir -p build/sanitizers
	git ls-files -z | xargs -0 cp --parents --target-directory=build/sanitizers
	cd build/sanitizers && SKLEARN_BOLTZ_CFLAGS="$(SANITIZERS)" \
		$(CURDIR)/$(BIN)/python setup.py -q build_ext --inplace
	cd build/sanitizers && ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$$PWD OMP_NUM_THREADS=1 \
		LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		$(CURDIR)/$(BIN)/python -m pytest $(KERNEL_TESTS) -p no:cacheprovider -s

# A wheel in an environment of its own, tested from a folder without the sources, as the wheels
# of all systems are by [tool.cibuildwheel]. test_architecture.py reads the sources.
test-wheel: $(VENV)/bin/python
	rm -rf .venv-wheel build/wheel build/wheel-test
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/pip install $(QUIETLY) "$$(echo build/wheel/*.whl)[test]"
	mkdir -p build/wheel-test/doc
	cp -r tests README.md pyproject.toml build/wheel-test
	cp -r doc/*.rst doc/user_guide build/wheel-test/doc
	cd build/wheel-test && ../../.venv-wheel/bin/python -m pytest tests README.md doc/index.rst \
		doc/install.rst doc/user_guide --pyargs sklearn_boltz --ignore=tests/test_architecture.py

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint sklearn_boltz
	$(BIN)/codespell
	$(BIN)/codespell --dictionary doc/phrases.txt \
		--regex "(?i)\b($$(sed 's/->.*//' doc/phrases.txt | paste -sd '|'))\b"

doc: $(VENV)/.installed-doc $(VENV)/.built
	$(BIN)/python -m sphinx -W --keep-going -j auto -b html doc doc/_build/html

bench: $(VENV)/.installed-test $(VENV)/.built
	for script in benchmarks/bench_*.py benchmarks/*/bench_*.py; do \
		$(BIN)/python $$script --data $(DATA) || exit 1; done

# The speed of the kernels, by airspeed velocity, of what is checked out; see the developer guide.
bench-kernels: $(VENV)/.installed-bench $(VENV)/.built
	cd asv_benchmarks && ../$(BIN)/asv machine --yes && ../$(BIN)/asv run --python=same --quick

# The tables and figures of the papers. In full they take weeks, mostly of annealed importance
# sampling, of Gibbs sampling with 500 hidden units, and of adaptive TAP: run single scripts. The
# quick ones take some minutes together.
reproduce: $(VENV)/.installed-test $(VENV)/.built
	for script in benchmarks/reproduce/[a-z]*.py; do $(BIN)/python $$script --data $(DATA) || exit 1; done

reproduce-quick: $(VENV)/.installed-test $(VENV)/.built
	for script in benchmarks/reproduce/[a-z]*.py; do \
		$(BIN)/python $$script --quick --data $(DATA) || exit 1; done

# The same bytes whenever and wherever a commit is built: files have its time, and no owner.
sdist dist: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
sdist: $(VENV)/bin/python
	$(BIN)/pip install $(QUIETLY) build
	rm -rf dist build/sdist && mkdir -p build/sdist
	$(BIN)/python -m build --sdist
	tar xzf dist/*.tar.gz -C build/sdist
	tar c -C build/sdist --sort=name --mtime=@$$SOURCE_DATE_EPOCH --owner=0 --group=0 \
		--numeric-owner --mode=go=u-w $$(ls build/sdist) | gzip -n > $$(echo dist/*.tar.gz)
	sha256sum dist/*.tar.gz

dist: sdist
	$(BIN)/python -m build --wheel --outdir dist build/sdist/*
	$(BIN)/pip install $(QUIETLY) twine check-wheel-contents
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

clean:
	rm -rf .venv .venv-* build dist doc/_build doc/auto_examples doc/api/generated *.egg-info
	find sklearn_boltz -name '*.so' -delete -o -name '*.c' -delete
