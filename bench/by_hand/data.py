# SPDX-License-Identifier: Apache-2.0
"""Writes what lstm.c reads, as raw arrays: data.py BUILD_MODELS_FOLDER; they land in ./data."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
from onnx import numpy_helper


def main() -> None:
    model = Path(sys.argv[1]) / "lstm"
    arrays = {}
    for weights in onnx.load(model / "model.onnx").graph.initializer:
        arrays[weights.name] = weights
    for path in (model / "test_data_set_0").glob("*.pb"):
        arrays[path.stem] = onnx.TensorProto.FromString(path.read_bytes())
    folder = Path("data/lstm")
    folder.mkdir(parents=True, exist_ok=True)
    for name, tensor in arrays.items():
        numpy_helper.to_array(tensor).tofile(folder / f"{name}.bin")


if __name__ == "__main__":
    main()
