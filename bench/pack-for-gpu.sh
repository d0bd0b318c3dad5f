#!/usr/bin/env bash
# What bench/on-gpu.sh wants of this machine's build, in one file that is small enough to be carried to a machine
# with a card, on which nothing can be built or fetched: tools and tests of build/release without their symbols,
# the libraries that they open, and the workloads' models, one data set each. In a checkout there,
# `mkdir -p build && tar -C build -xJf FILE` makes build/release and build/models.
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
mkdir -p "$folder"/{release/tests,release/bench,release/lib,models}

programs=(tssa-run tssa-bench tssa-conformance bench/cuda_probe tests/test_devices tests/test_grid_texts
    tests/test_cuda_models tests/test_cuda_random)
for program in "${programs[@]}" libtssa.so.0.1.0; do
    strip -o "$folder/release/$program" "build/release/$program"
done
ln -sf libtssa.so.0.1.0 "$folder/release/libtssa.so"
cp build/release/tssa-openmp.so "$folder/release/"
for program in "${programs[@]}"; do
    ldd "build/release/$program"
done | awk '/=> \// && $1 !~ /^(libc|libm|libdl|libpthread|libstdc\+\+|libgcc_s)\.so/ {print $3}' | sort -u |
    xargs -I{} cp -L {} "$folder/release/lib/"
for model in "$@"; do
    mkdir "$folder/models/$model"
    cp -r build/models/"$model"/{model.onnx,test_data_set_0} "$folder/models/$model/"
done
XZ_OPT=-9 tar -C "$folder" -cJf "$file" release models # its window spans what all the programs share
du -h "$file"
