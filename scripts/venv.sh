#!/usr/bin/env bash
# Makes a Python environment in the build folder from a list of pinned packages; does nothing when it is up
# to date. The library and its tools need no Python.
#
# Usage: scripts/venv.sh [FOLDER REQUIREMENTS]
#   build/venv scripts/requirements.txt    the tests' environment, unless others are named
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${1:-build/venv}
requirements=${2:-scripts/requirements.txt}
stamp=$venv/requirements.txt
if cmp -s "$requirements" "$stamp" && [ -x "$venv/bin/python" ]; then
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

echo "venv.sh: making $venv with $("$python" --version) from $requirements"
rm -rf "$venv"
mkdir -p build
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
    --only-binary :all: --requirement "$requirements"
cp "$requirements" "$stamp"
