#!/usr/bin/env bash
# Usage: fuzz.sh [SECONDS]
# Runs every libFuzzer target for SECONDS (60), from tests/fuzz/corpus/NAME and the committed models.
set -euo pipefail
cd "$(dirname "$0")/.."
export seconds=${1:-60}

cmake --preset fuzz
cmake --build --preset fuzz --target fuzzers

if [ ! -d build/fuzz/models ]; then
    mkdir -p build/fuzz/models
    for model in models/*/model.onnx; do
        cp "$model" "build/fuzz/models/$(basename "${model%/*}").onnx"
    done
fi

fuzz_one() { # SOURCE
    local name work seeds log
    name=$(basename "$1" .c)
    work=build/fuzz/corpus/$name seeds=tests/fuzz/corpus/$name log=build/fuzz/$name.log
    [ -d "$seeds" ] || seeds=build/fuzz/models
    mkdir -p "$work"
    build/fuzz/fuzz/"$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="build/fuzz/" \
        -print_final_stats=1 "$work" "$seeds" >"$log" 2>&1 || {
        tail -n 40 "$log"
        return 1
    }
    echo "pass $name: $seconds s, $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs"
}
export -f fuzz_one

# Each has one thread: as many at a time as there are cores.
sources=(tests/fuzz/fuzz_*.c)
passed=0
while read -r line; do
    echo "$line"
    [[ "$line" != "pass "* ]] || passed=$((passed + 1))
done < <(printf '%s\n' "${sources[@]}" |
    xargs -P "$(nproc)" -I SOURCE bash -c "fuzz_one SOURCE")
failed=$((${#sources[@]} - passed))
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
