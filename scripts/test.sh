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
real=${REAL_MODELS:-../shared/real-models}
if [ -d "$real" ]; then
    part real build/release/tssa-real "$real"
else
    part_skip real "there is no $real"
fi
parts_end
