# Each target sets up .venv by itself; only python3 (3.11 or later), make and a C compiler are needed.
# The demo needs NumPy and rich; what tests and tables need comes with the first of those.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ORACLES := .venv-oracles
TOOLS := .venv-tools/.installed
FRESH := build/fresh
LIVE := .venv-live
OLDEST := .venv-oldest
PIP := $(BIN)/pip install --disable-pip-version-check --prefer-binary
# On a terminal pip shows what it fetches; elsewhere nobody would see its bars.
SHOWN := $(shell [ -t 1 ] || echo --quiet)
CORE := $(VENV)/.core
STAMP := $(VENV)/.installed

.PHONY: help demo test skipped accept oldest live oracles lint bench docs release clean setup

help:
	@echo "make demo    a sketch becomes a kernel that runs on this machine (no GPU needed)"
	@echo "make test    the test suite, sampled where it is large"
	@echo "make skipped what make test skipped, run after more was installed (OpenCL, Chromium)"
	@echo "make accept  the full acceptance runs; leaves records in bench/results"
	@echo "make oldest  tests with the lowest versions that pyproject.toml allows; make accept does it too"
	@echo "make live    Triton, Numba and CuPy kernels compiled now and emulated; make accept does it too"
	@echo "make oracles other layout libraries, with which make accept then compares"
	@echo "make lint    ruff and mypy"
	@echo "make docs    the site, into site/; broken links are errors"
	@echo "make release a wheel and a source archive, tried in an environment of their own"
	@echo "make bench   the papers' tables and the kernel check, measured on this machine"

setup: $(STAMP)

$(CORE): pyproject.toml
	@echo "1 of 2: an environment of its own in $(VENV) (about 5 seconds)"
	@$(PYTHON) -m venv $(VENV)
	@echo "2 of 2: NumPy, rich and Warploom itself, about 20 MB to fetch (10 to 60 seconds)"
	@$(PIP) $(SHOWN) --no-compile --editable .
	@touch $(CORE)
	@echo "installed: $(BIN)/warploom"

$(STAMP): pyproject.toml | $(CORE)
	@echo "what tests need: Z3, NVRTC, OpenCL, pytest, ruff, mypy (1 to 5 minutes, once)"
	@$(PIP) $(SHOWN) --editable ".[smt,nvrtc,opencl,dev]"
	@touch $(STAMP)

demo: $(CORE)
	$(BIN)/python examples/demo.py

test: $(STAMP)
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow and not device"

# Something was installed: no more is run than what the last run had to skip.
skipped: $(STAMP)
	$(BIN)/pytest -n 2 -m "not slow and not device" --only-skipped || [ $$? -eq 5 ]

# The site comes first: tests look at its pages in a browser.
accept: $(STAMP)
	$(MAKE) docs
	$(BIN)/pytest -m "not device" --durations=15 --hypothesis-profile=new
	$(BIN)/warploom bench synth --limits --ablation --json bench/results/synth.json
	$(BIN)/warploom bench growth --seconds 120 --json bench/results/growth.json
	$(BIN)/python -m bench.cli.budgets
	$(BIN)/python -m bench.cli.startup
	$(BIN)/python -m bench.ptx.speed
	$(BIN)/python -m bench.sketch.operators
	$(BIN)/python -m bench.machine.races
	$(BIN)/python -m bench.ptx.all_schedules
	$(BIN)/python -m bench.ptx.museum
	$(BIN)/python -m bench.ptx.hopper_proofs
	$(BIN)/python -m bench.judge.rationals
	$(BIN)/python -m bench.judge.generated --again
	$(BIN)/python -m bench.judge.texts --again
	$(BIN)/python -m bench.catalogue.permute_random
	$(BIN)/python -m bench.kernel.random_kernels
	$(BIN)/python -m bench.kernel.check
	$(BIN)/python -m bench.kernel.header_names
	$(BIN)/python -m bench.loopnest.cuts
	$(BIN)/python -m bench.loopnest.descents
	$(BIN)/python -m bench.loopnest.estimates
	$(BIN)/python -m bench.array.check
	$(BIN)/python -m bench.layout.accept
	$(BIN)/python -m bench.layout.speed
	$(BIN)/python -m bench.layout.hopper_device --dry
	$(BIN)/python -m bench.sketch.certificates
	$(BIN)/python -m bench.sketch.impossible
	$(BIN)/python -m bench.search.store
	$(BIN)/python -m bench.search.store_damage
	$(BIN)/python -m bench.cli.manners
	$(BIN)/python -m bench.search.farm --workers 1,2 --kill --crash
	$(BIN)/python -m bench.search.thousand --compare
	$(PIP) --quiet "distributed>=2024.1"
	$(BIN)/python -m bench.search.clusters
	$(MAKE) oldest live
	PYTHONPATH=src $(if $(wildcard $(ORACLES)/bin/python),$(ORACLES),$(VENV))/bin/python -m bench.layout.oracles
	$(MAKE) release

# The floors of pyproject.toml, exactly: what users with older packages get. All are imported first: a test would be skipped.
OLDEST_TESTS := tests/cli/test_schemas.py tests/cli/test_absent.py tests/cli/test_kernel.py tests/runtime tests/search/test_cluster.py \
	tests/index/test_smt.py tests/agents/test_mcp.py tests/sketch/synth/test_smt.py tests/array/test_mapping.py tests/layout/test_colour.py tests/without_gpu
oldest:
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check --prefer-binary \
		$$($(PYTHON) -m bench.release.floors --extra smt --extra cp --extra nvrtc --extra opencl --extra cluster --extra mcp --extra dev)
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(OLDEST)/bin/python -c "import numpy, rich, z3, ortools.sat.python.cp_model, cuda.bindings.nvrtc, pyopencl, distributed, mcp"
	$(OLDEST)/bin/python -m pytest -n 2 -m "not slow and not device" $(OLDEST_TESTS)

# Other people's compilers, in an environment of their own: Triton alone is a gigabyte.
live:
	$(PYTHON) -m venv $(LIVE)
	$(LIVE)/bin/pip install --quiet --editable ".[nvrtc]" pytest hypothesis triton "numba-cuda[cu13]" cupy-cuda13x nvidia-cuda-cccl
	$(LIVE)/bin/python -m pytest -m slow tests/without_gpu/test_live.py tests/without_gpu/test_small.py tests/without_gpu/test_cub.py

# Other people's layout libraries, to compare with; apart, because Triton is large.
oracles:
	$(PYTHON) -m venv $(ORACLES)
	$(ORACLES)/bin/pip install --quiet numpy pytest hypothesis tensor-layouts triton
	$(ORACLES)/bin/pip install --quiet --no-deps nvidia-cutlass==4.2.0.0

# The tools that make the site and the archives are apart: tests do not need them.
$(TOOLS): pyproject.toml
	$(PYTHON) -m venv $(dir $(TOOLS))
	$(dir $(TOOLS))bin/pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $(TOOLS)

docs: $(TOOLS)
	$(dir $(TOOLS))bin/python -m bench.release.api_reference
	$(dir $(TOOLS))bin/python -m bench.release.records_reference
	NO_MKDOCS_2_WARNING=1 $(dir $(TOOLS))bin/mkdocs build --strict --quiet

# What is built is installed where nothing of this folder is seen, and does its main job there.
release: $(TOOLS)
	rm -rf dist build
	$(dir $(TOOLS))bin/python -m build --outdir dist . > /dev/null
	$(PYTHON) -m venv $(FRESH)
	$(FRESH)/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	cp examples/sketches/sums.swflow $(FRESH)
	cd $(FRESH) && bin/warploom synth sums.swflow --emit cuda -o sums.cu --certificate sums.json
	cd $(FRESH) && bin/warploom verify sums.json && bin/python -m warploom --version

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/warploom bench synth
	$(BIN)/warploom bench growth
	$(BIN)/python -m bench.machine.races
	$(BIN)/python -m bench.catalogue.permute_random
	$(BIN)/python -m bench.kernel.random_kernels
	$(BIN)/python -m bench.kernel.check

clean:
	rm -rf $(VENV) $(dir $(TOOLS)) build dist site src/*.egg-info
