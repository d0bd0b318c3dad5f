#!/usr/bin/env bash
# Makes build/peers-venv, the Python environment of bench/peers: PyTorch with its CUDA libraries, ONNX
# Runtime, OpenVINO; 6 GB. Does nothing when it is up to date.
set -euo pipefail
exec "$(dirname "$0")/venv.sh" build/peers-venv bench/peers/requirements.txt
