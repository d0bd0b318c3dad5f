#!/usr/bin/env bash
# Usage: fuzz.sh [SECONDS]
# Runs every libFuzzer target for SECONDS (60), from tests/fuzz/corpus/NAME and the committed models.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}

cmake --preset fuzz
cmake --build --preset fuzz --target fuzzers
passed=0 failed=0
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    work=build/fuzz/corpus/$name
    mkdir -p "$work"
    seeds=(tests/fuzz/corpus/"$name")
    if [ ! -d "${seeds[0]}" ]; then
        mkdir -p build/fuzz/models
        for model in models/*/model.onnx; do
            cp "$model" "build/fuzz/models/$(basename "${model%/*}").onnx"
        done
        seeds=(build/fuzz/models)
    fi
    echo "$name: $seconds s"
    if build/fuzz/fuzz/"$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="build/fuzz/" -print_final_stats=1 "$work" "${seeds[@]}" \
        >"build/fuzz/$name.log" 2>&1; then
        passed=$((passed + 1))
        grep -h 'stat::number_of_executed_units' "build/fuzz/$name.log"
    else
        failed=$((failed + 1))
        tail -n 40 "build/fuzz/$name.log"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
