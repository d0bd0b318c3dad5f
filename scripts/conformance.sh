#!/usr/bin/env bash
# Usage: conformance.sh BUILD_DIR [OPTION...]
# Runs the test cases that the onnx package (pinned in requirements.txt) carries. What counts is that no
# case of tests/conformance/passing.txt stops passing: the closing line counts such cases as failed, and
# cases that fail but never passed as skipped. The line before it is the runner's own count.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/venv.sh
data=$(echo build/venv/lib/python3*/site-packages/onnx/backend/test/data)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$1/tssa-conformance" "$data" --expect tests/conformance/passing.txt "${@:2}" 2>&1 | tee "$log"
tail -n 1 "$log" | awk '{ printf "%d passed, 0 failed, %d skipped\n", $1, $3 + $5 }'
