#!/usr/bin/env bash
# What bench/on-gpu.sh wants of this machine's build, in one file that is small enough to be carried to a machine
# with a card, on which nothing can be built or fetched: tools and tests of build/release without their symbols,
# the libraries that they open, the workloads' models with one data set each, and the official cases of single
# operators, all of them (build/venv has them). bench/on-gpu.sh unpacks it into build/release, build/models and
# build/cases, where it is build/card/card.tar.xz or named by --pack.
#
# Usage: bench/pack-for-gpu.sh FILE.tar.xz [MODEL...]      (the eight workloads when left out, but lstm, which is
#                                                           21 MB and built there: models/build.py)
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -lt 1 ]; then
    echo "usage: bench/pack-for-gpu.sh FILE.tar.xz [MODEL...]" >&2
    exit 2
fi
file=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ $# -gt 0 ] || set -- yolov3_loop ssd_loop yolact_loop fcos_loop nasrnn seq2seq_50 attention
mkdir -p "$folder"/{release/tests,release/bench,release/lib/tools,models,cases}

# The libraries of PROGRAMs that not every machine has, by path.
needed() { # PROGRAM...
    local program
    for program in "$@"; do
        ldd "$program"
    done | awk '/=> \// && $1 !~ /^(libc|libm|libdl|libpthread|libstdc\+\+|libgcc_s)\.so/ {print $3}' | sort -u
}

programs=(tssa-run tssa-bench tssa-conformance bench/cuda_probe tests/test_devices tests/test_grid_texts tests/test_grid_ranked tests/test_grid_unique tests/test_grid_products
    tests/test_cuda_models tests/test_cuda_random tests/test_cuda_recorded tests/test_cuda_bound tests/test_cuda_conditions tests/test_cuda_values
    tests/test_cuda_library tests/test_cuda_convolution tests/test_grid_windows tests/test_grid_shapes
    tests/test_grid_indices tests/test_grid_turned tests/test_grid_long_rows)
for program in "${programs[@]}" libtssa.so.0.1.0; do
    strip -o "$folder/release/$program" "build/release/$program"
done
ln -sf libtssa.so.0.1.0 "$folder/release/libtssa.so"
cp build/release/tssa-openmp.so "$folder/release/"
# Python opens libtssa.so beside libraries of its own, so what the tools alone need is kept from it.
needed build/release/libtssa.so | xargs cp -L -t "$folder/release/lib"
needed "${programs[@]/#/build/release/}" build/release/tssa-openmp.so | while read -r library; do
    [ -e "$folder/release/lib/${library##*/}" ] || cp -L "$library" "$folder/release/lib/tools"
done
# Tests read models/ of the folder that they were built in.
sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' build/release/CMakeCache.txt >"$folder/release/source-folder"
git describe --always --dirty >"$folder/release/commit"
for model in "$@"; do
    mkdir "$folder/models/$model"
    cp -r build/models/"$model"/{model.onnx,test_data_set_0} "$folder/models/$model/"
done
cp -r build/venv/lib/python3*/site-packages/onnx/backend/test/data/node "$folder/cases/"
# Its window spans what all the programs share.
XZ_OPT=${XZ_OPT:--9} tar -C "$folder" --sort=name -cJf "$file" release models cases
du -h "$file"
