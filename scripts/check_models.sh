#!/usr/bin/env bash
# Usage: check_models.sh BUILD_DIR MODELS_DIR...
# Runs every MODELS_DIR/NAME/model.onnx on its data sets and compares with the expected outputs.
set -euo pipefail
run=$1/tssa-run
shift
passed=0 failed=0
for dir in "$@"; do
    found=no
    for set in "$dir"/*/test_data_set_*; do
        model=${set%/*}/model.onnx
        [ -f "$model" ] || continue
        found=yes
        if output=$(timeout 120 "$run" "$model" "$set" --compare "$set" --rtol 1e-3 --atol 1e-5 \
            </dev/null 2>&1); then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            printf 'FAILED %s\n%s\n' "$set" "$output"
        fi
    done
    if [ $found = no ]; then
        failed=$((failed + 1))
        echo "FAILED $dir holds no NAME/model.onnx with test_data_set_K"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
