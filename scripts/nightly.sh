#!/usr/bin/env bash
# Usage: nightly.sh [PERCENT [PROGRAMS]]
# All tests that make random programs (those with the ctest label `random`) make PERCENT hundredths of their
# usual number, 5000, and tests/differential.py makes PROGRAMS of a fresh seed, 50000. Before that, the functions of
# float32 are tried on all floats, and those of double on 10^8.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/parts.sh
. scripts/parts.sh

export TSSA_PROGRAMS=${1:-5000}%
export TSSA_PLUGIN_DIR=$PWD/build/release # for kernels
for test in test_numerics test_numerics_f64; do
    part "nightly-$test" env TSSA_FLOAT_STRIDE=1 "build/release/tests/$test"
done
tests=$(ctest --preset release -N -L '^random$' | sed -nE 's/^ *Test +#[0-9]+: //p')
[ -n "$tests" ]
for test in $tests; do
    part "nightly-$test" "build/release/tests/$test"
done
part nightly-differential env TSSA_CUDA_LIBRARIES="$PWD/build/release/tests/fake_cuda_new" build/venv/bin/python \
    tests/differential.py build/release/libtssa.so \
    --programs "${2:-50000}" --progress
parts_end
