#!/usr/bin/env bash
# Makes build/venv, the Python environment of the tests, from scripts/requirements.txt; does nothing when
# it is up to date. The library and its tools need no Python.
set -euo pipefail
cd "$(dirname "$0")/.."

requirements=scripts/requirements.txt
venv=build/venv
stamp=$venv/requirements.txt
if cmp -s "$requirements" "$stamp" && [ -x $venv/bin/python ]; then
    exit 0
fi

python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "venv.sh: no Python >= 3.11 with venv found; scripts/setup.sh --test installs it" >&2
    exit 1
fi

echo "venv.sh: making $venv with $("$python" --version) (onnx, onnxruntime, numpy)"
rm -rf $venv
mkdir -p build
"$python" -m venv $venv
$venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
    --only-binary :all: --requirement "$requirements"
cp "$requirements" "$stamp"
