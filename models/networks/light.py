"""The official "light" models, as the onnx package has them: networks whose weights are
computed from nothing, so that the files are small.  Their input is i / n for element i of n,
their output lies beside them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx

from models.lib import data

FILES = Path(onnx.__file__).parent / "backend/test/data/light"
KIND = "light"


def names() -> list[str]:
    return [path.stem for path in sorted(FILES.glob("*.onnx"))]


def ramp(given: onnx.ValueInfoProto) -> np.ndarray:
    shape = [dim.dim_value or 1 for dim in given.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count) / count).astype(np.float32).reshape(shape)


def copy(name: str, folder: Path) -> str:
    path, sample = FILES / f"{name}.onnx", folder / "test_data_set_0"
    model = onnx.load(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    given = next(value for value in model.graph.input if value.name not in weights)
    sample.mkdir()
    shutil.copyfile(path, folder / "model.onnx")
    shutil.copyfile(FILES / f"{name}_output_0.pb", sample / "output_0.pb")
    (sample / "input_0.pb").write_bytes(data.encode(given.name, ramp(given)))
    (folder / "network.json").write_text(json.dumps({"kind": KIND}) + "\n")
    return f"{data.count_nodes(model.graph)} nodes"
