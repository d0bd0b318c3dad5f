#!/usr/bin/env bash
# Every test of the release build: what `make test` runs once set-up, build and models are done.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/parts.sh
. scripts/parts.sh

part_ctest unit release
part models-committed build/venv/bin/python models/build.py --verify-committed
part models scripts/check_models.sh build/release models build/models
part conformance scripts/conformance.sh build/release
part emulated scripts/conformance.sh build/release --device emulated
part opencl scripts/conformance.sh build/release --device opencl --every 24
part cuda env TSSA_CUDA_LIBRARIES="$PWD/build/release/tests/fake_cuda_new" \
    scripts/conformance.sh build/release --device cuda --every 12 # on fakes of CUDA's libraries
data=$(echo build/venv/lib/python3*/site-packages/onnx/backend/test/data)
real=${REAL_MODELS:-../shared/real-models}
models=("$data/node" "$data/simple" "$data/pytorch-operator" "$data/pytorch-converted" models build/models)
if [ -d "$real" ]; then
    models+=("$real")
    part real build/release/tssa-real "$real"
else
    part_skip real "there is no $real"
fi
part export build/venv/bin/python tests/export_check.py build/release/libtssa.so "${models[@]}"
part hazards build/venv/bin/python tests/hazards/check.py build/release/tssa-opt
part ort-runner build/venv/bin/python tests/ort_runner_check.py build/release/tssa-opt
part survive build/venv/bin/python tests/survive_check.py build/release/tssa-opt
# Not written at old opsets, by which some of these would be invalid.
part adversarial build/venv/bin/python tests/rewritten/adversarial.py build/adversarial
part quantized build/venv/bin/python tests/rewritten/quantized.py build/release/tssa-opt
part exporters build/venv/bin/python tests/rewritten/exporters.py build/release/tssa-opt
part functions build/venv/bin/python tests/rewritten/functions.py build/release/tssa-opt
part rewritten build/venv/bin/python tests/rewritten/check.py build/release/tssa-opt "${models[@]}" build/adversarial
part ctypes build/venv/bin/python tests/ctypes_check.py include/tssa.h
part differential env TSSA_CUDA_LIBRARIES="$PWD/build/release/tests/fake_cuda_new" build/venv/bin/python \
    tests/differential.py build/release/libtssa.so --seed 1
parts_end
