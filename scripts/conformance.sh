#!/usr/bin/env bash
# Usage: conformance.sh BUILD_DIR
# Runs the test cases that the onnx package (pinned in requirements.txt) carries.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/venv.sh
data=$(echo build/venv/lib/python3*/site-packages/onnx/backend/test/data)
exec "$1/tssa-conformance" "$data" --expect tests/conformance/passing.txt
