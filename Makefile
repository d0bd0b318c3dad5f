# The front door. `make help` lists what it opens.
BUILD := build/release
MODEL := models/ssd_loop_small
DIR   ?= $(or $(REAL_MODELS),../shared/real-models)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run build test models networks conformance test-real nightly bench gpu docs format lint clean setup setup-test setup-dev venv peers peers-test peers-venv

help: ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' Makefile | expand -t 22

run: setup ## build libraries, tools and plugins, then run an SSD detection post-processing model and print its boxes
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target product
	$(BUILD)/tssa-run $(MODEL)/model.onnx $(MODEL)/test_data_set_0 --boxes

build: setup ## build the library and the tools in build/release
	@cmake --preset release >/dev/null
	@cmake --build --preset release

test: setup-test build models ## run every test
	@REAL_MODELS=$(DIR) scripts/test.sh

models: setup-test venv ## write the workload models and their data to build/models
	@build/venv/bin/python models/build.py --out build/models

networks: peers-venv ## write whole networks with drawn weights to build/networks (5 GB; PyTorch's exporter)
	@build/peers-venv/bin/python models/networks/build.py --out build/networks

conformance: setup-test build venv ## run the official ONNX test cases
	@scripts/conformance.sh $(BUILD)

test-real: build ## run real exported models and compare (DIR=folder)
	$(BUILD)/tssa-real $(DIR)

nightly: build venv ## what takes too long for every change: 650,000 random programs, functions of all floats
	TSSA_FLOAT_STRIDE=1 $(BUILD)/tests/test_numerics
	TSSA_FLOAT_STRIDE=1 $(BUILD)/tests/test_numerics_f64
	TSSA_PROGRAMS=100000 $(BUILD)/tests/test_random_imperative
	TSSA_PLUGIN_DIR=$(BUILD) TSSA_PROGRAMS=10000% $(BUILD)/tests/test_kernels
	scripts/conformance.sh $(BUILD) --device opencl
	TSSA_CUDA_LIBRARIES=$(CURDIR)/$(BUILD)/tests/fake_cuda_new build/venv/bin/python tests/differential.py \
		$(BUILD)/libtssa.so --programs 50000 --progress

bench: build ## run the benchmarks; with build/models and build/venv (make models) also against ONNX Runtime
	@set -e; for b in $(BUILD)/bench/bench_*; do echo "== $$b"; "$$b"; done
	@if [ -x build/venv/bin/python ] && [ -d build/models ]; then build/venv/bin/python bench/versus_ort.py; fi

gpu: ## on a machine with a CUDA card: test the device on it, and time the workloads and the peers (ARGS="--probe 480")
	@bench/on-gpu.sh $(ARGS)

peers: build models peers-venv ## time the workloads in PyTorch, ONNX Runtime, OpenVINO and tssa (ARGS="--quick --only ssd")
	@build/peers-venv/bin/python bench/peers/run.py $(ARGS)

peers-test: models peers-venv ## test what `make peers` measures with
	@build/peers-venv/bin/python -m unittest bench.peers.test_peers
	@build/peers-venv/bin/python -m unittest bench.peers.test_programs

docs: build venv ## write docs/passes.md from the passes' own comments, and draw the README's picture
	@scripts/docs.sh $(BUILD)
	@build/venv/bin/python scripts/picture.py $(BUILD)/tssa-opt

format: setup-dev venv ## format all sources in place
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i
	@build/venv/bin/ruff format --quiet models bench tests scripts

lint: setup-dev build venv ## check format, layers, clang-tidy, cppcheck, shell scripts
	@scripts/lint.sh

clean: ## remove everything that was built
	rm -rf build

setup:
	@scripts/setup.sh

setup-test:
	@scripts/setup.sh --test

setup-dev:
	@scripts/setup.sh --dev

venv: setup-test
	@scripts/venv.sh

peers-venv: setup-test
	@scripts/peers_venv.sh
