# The commands of daily work. Each says in one line what it does; `make help` lists them.

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
export INGOT_VENV ?= $(HOME)/.cache/ingot/venv

CTEST = ctest --output-on-failure -j$(JOBS)
CLANG_FORMAT = $(firstword $(shell command -v clang-format-14 clang-format) clang-format)
CLANG_TIDY = $(firstword $(shell command -v clang-tidy-14 clang-tidy) clang-tidy)
# The device files of NVIDIA's driver, of this machine or (WSL) of the one it runs on.
GPU = $(wildcard /dev/nvidiactl /dev/dxg)
# TSan of g++ 12 needs fixed addresses; setarch -R provides them where it is allowed.
FIXED_ADDRESSES = $(shell setarch -R true 2>/dev/null && echo setarch -R)

.PHONY: help setup configure build demo python test test-all sanitize debug-test fuzz format tidy bench gpu gpu-bundle install clean
.DEFAULT_GOAL := help

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

setup: ## install the packages that are missing
	@tools/setup.sh

configure: setup
	@cmake --preset release -Wno-dev --log-level=WARNING >/dev/null

build: configure ## build the library, tests, examples and benchmark (build/release)
	@echo "build: compiling into build/release"
	@cmake --build build/release -j$(JOBS)

demo: configure ## train a network that classifies clothes (Fashion-MNIST) and write out/fashion/report.html; about a minute of training
	@tools/setup.sh --data fashion-mnist
	@targets=ingot_cli; \
	if [ -n "$(GPU)" ]; then \
	  if tools/setup.sh --gpu && cmake --preset release -Wno-dev --log-level=WARNING -DINGOT_CUDA=ON >/dev/null; then targets="ingot_cli ingot_cuda"; \
	  else echo "demo: the GPU libraries could not be installed, so this runs on the CPU only; \`make gpu\` tries again"; fi; \
	fi; \
	echo "demo: building the program ingot into build/release"; \
	cmake --build build/release -j$(JOBS) --target $$targets
	@tools/demo.sh build/release/bin/ingot

python: ## build the Python package into build/release/python (PYTHONPATH=build/release/python; `pip install .` makes a wheel)
	@echo "python: building the package ingot into build/release/python"
	@tools/setup.sh --python
	@cmake --preset release -Wno-dev --log-level=WARNING -DINGOT_PYTHON=ON >/dev/null
	@cmake --build build/release -j$(JOBS) --target _ingot ingot_stub

test: ## build and run the tests (a few minutes)
	@echo "test: building into build/release and running every test that is not labelled slow"
	@tools/setup.sh
	@tools/setup.sh --cuda-text || echo "test: NVRTC is missing, the tests that compile CUDA text will be skipped"
	@tools/setup.sh --python || echo "test: nanobind is missing, the Python package will not be built or tested"
	@$(MAKE) --no-print-directory build
	@cd build/release && $(CTEST) -LE slow

test-all: ## every test: slow ones, the debug build and the sanitizers too
	@echo "test-all: running all tests in release, the quick ones in debug, and the sanitizer subsets"
	@tools/setup.sh
	@tools/setup.sh --cuda-text || echo "test-all: NVRTC is missing, the tests that compile CUDA text will be skipped"
	@tools/setup.sh --torch || echo "test-all: PyTorch is missing, the tests that compare with it will be skipped"
	@tools/setup.sh --python || echo "test-all: nanobind is missing, the Python package will not be built or tested"
	@$(MAKE) --no-print-directory build
	@cd build/release && $(CTEST)
	@$(MAKE) --no-print-directory debug-test sanitize

debug-test: setup
	@echo "debug-test: building into build/debug (the graph is verified between passes) and running the quick tests"
	@cmake --preset debug -Wno-dev --log-level=WARNING >/dev/null
	@cmake --build build/debug -j$(JOBS)
	@cd build/debug && $(CTEST) -LE "slow|budget"

sanitize: setup ## run the tests labelled asan and tsan under the sanitizers
	@echo "sanitize: building into build/asan and build/tsan and running the tests of those labels"
	@cmake --preset asan -Wno-dev --log-level=WARNING >/dev/null
	@cmake --build build/asan -j$(JOBS) --target tests_asan
	@cd build/asan && $(CTEST) -L asan
	@cmake --preset tsan -Wno-dev --log-level=WARNING >/dev/null
	@cmake --build build/tsan -j$(JOBS) --target tests_tsan
	@cd build/tsan && $(FIXED_ADDRESSES) $(CTEST) -L tsan

sanitize-quick: setup ## the shorter tests labelled asan, under AddressSanitizer and UBSan
	@echo "sanitize-quick: building into build/asan and running the tests labelled asan that are not labelled long"
	@cmake --preset asan -Wno-dev --log-level=WARNING >/dev/null
	@cmake --build build/asan -j$(JOBS) --target tests_asan
	@cd build/asan && $(CTEST) -L asan -LE long

fuzz: build ## fuzz the readers of files and of foreign memory with libFuzzer (FUZZ_FLAGS="--seconds 600 image"; needs: tools/setup.sh --dev)
	@echo "fuzz: building the fuzzers into build/fuzz and running each"
	@tests/fuzz/fuzz.sh $(FUZZ_FLAGS)

format: ## put every source file into the project's format
	@echo "format: running $(CLANG_FORMAT) over the C++ files"
	@git ls-files '*.h' '*.cpp' | xargs $(CLANG_FORMAT) -i

tidy: configure ## run clang-tidy over the library
	@echo "tidy: running $(CLANG_TIDY) over src/"
	@git ls-files 'src/*.cpp' | xargs -P$(JOBS) -n1 $(CLANG_TIDY) --quiet -p build/release

bench: configure ## compare with PyTorch on this CPU (needs: tools/setup.sh --torch)
	@echo "bench: alternating ingot-bench and PyTorch and printing the ratio for each case"
	@cmake --build build/release -j$(JOBS) --target ingot-bench
	@bench/compare_cpu $(BENCH_FLAGS)

gpu: ## get what a GPU needs beside its driver, build the plug-in and run the demo on the GPU
	@tools/setup.sh
	@tools/setup.sh --gpu
	@tools/setup.sh --data fashion-mnist
	@cmake --preset release -Wno-dev --log-level=WARNING -DINGOT_CUDA=ON >/dev/null
	@echo "gpu: building the program ingot and the plug-in into build/release"
	@cmake --build build/release -j$(JOBS) --target ingot_cli ingot_cuda
	@tools/demo.sh build/release/bin/ingot cuda

gpu-bundle: ## put everything a machine with a GPU needs to test Ingot into build/gpu (run tools/gpu_check.sh there)
	@echo "gpu-bundle: building into build/release and filling build/gpu"
	@cmake --preset release -Wno-dev --log-level=WARNING -DINGOT_CUDA=ON >/dev/null
	@cmake --build build/release -j$(JOBS)
	@tools/gpu_bundle.sh build/release build/gpu

install: configure ## install the library and headers under PREFIX (default /usr/local)
	@echo "install: building the library and installing it under $(PREFIX)"
	@cmake --build build/release -j$(JOBS)
	@cmake --install build/release --prefix $(PREFIX)

clean: ## remove build/ and out/
	@echo "clean: removing build/ and out/"
	@rm -rf build out
