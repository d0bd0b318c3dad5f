#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far operators that sum float32 are from the exact results: a table of docs/numerics.md.

    bench/operator_errors.py
    bench/operator_errors.py --against OLD.so      another build of tssa, too

Operands are uniform in [0, 1); what is exact is taken to be the same operator on the same
numbers in double.  Errors are in units of 2^-24 of the largest element of the result: one
that is rounded once has one unit at most.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import versus_ort as versus
from operators import ints, regions
from tssa_ctypes import Library

IMAGE = (1, 8, 80, 80)
NONE = np.zeros(0, np.float32)


class Case(NamedTuple):
    """Operands are shapes of random numbers, or constants, of which float32 stays so."""

    op: str
    operands: list
    attributes: dict = {}
    opset: int = 20


def scales(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def grid(n: int) -> np.ndarray:
    return np.random.default_rng(4).uniform(-1, 1, (1, n, n, 2)).astype(np.float32)


CASES = {
    "CumSum of 10,000": Case("CumSum", [(10, 10000), np.array(1)]),
    "AveragePool 3 x 3": Case(
        "AveragePool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1] * 4}
    ),
    "AveragePool 31 x 31": Case("AveragePool", [IMAGE], {"kernel_shape": [31, 31]}),
    "AveragePool of 4,000": Case("AveragePool", [(1, 4, 5000)], {"kernel_shape": [4000]}),
    "LpPool 3 x 3, p = 2": Case("LpPool", [IMAGE], {"kernel_shape": [3, 3]}),
    "LpPool 3 x 3, p = 3": Case("LpPool", [IMAGE], {"kernel_shape": [3, 3], "p": 3}),
    "Resize linear, 2.3": Case(
        "Resize", [IMAGE, NONE, scales(1, 1, 2.3, 2.3)], {"mode": "linear"}
    ),
    "Resize cubic, 2.3": Case(
        "Resize", [IMAGE, NONE, scales(1, 1, 2.3, 2.3)], {"mode": "cubic"}
    ),
    "Resize linear, 0.1, antialias": Case(
        "Resize", [IMAGE, NONE, scales(1, 1, 0.1, 0.1)], {"mode": "linear", "antialias": 1}
    ),
    "GridSample linear": Case("GridSample", [IMAGE, grid(50)]),
    "GridSample cubic": Case("GridSample", [IMAGE, grid(50)], {"mode": "cubic"}),
    "RoiAlign": Case(
        "RoiAlign",
        [IMAGE, regions(20, 80).astype(np.float64), np.zeros(20, np.int64)],
        {"output_height": 7, "output_width": 7},
    ),
    "Col2Im 3 x 3": Case("Col2Im", [(1, 72, 6084), ints(80, 80), ints(3, 3)]),
    "DeformConv 8 x 3 x 3": Case("DeformConv", [IMAGE, (8, 8, 3, 3), (1, 18, 78, 78)]),
    "ConvTranspose 64 x 3 x 3": Case("ConvTranspose", [(1, 64, 20, 20), (64, 4, 3, 3)]),
    "Conv of 4 axes, 8 x 81": Case("Conv", [(1, 8, 5, 5, 5, 9), (4, 8, 3, 3, 3, 3)]),
    "MatMul of 500": Case("MatMul", [(2, 500), (500, 2)]),
    "Einsum ij,jk,k->i, 100,000": Case(
        "Einsum", [(4, 500), (500, 200), (200,)], {"equation": "ij,jk,k->i"}
    ),
    "DFT of 1,000": Case("DFT", [(4, 1000, 1)]),
    "DFT of 65,536": Case("DFT", [(1, 65536, 1)]),
    "Det of 8": Case("Det", [(100, 8, 8)]),
    "Det of 50": Case("Det", [(20, 50, 50)]),
}


def write_model(case: Case, wide: bool, path: Path) -> dict[str, np.ndarray]:
    """In double, or in float32; the first operand is the input. Also makes that."""
    from onnx import TensorProto, helper, numpy_helper, save

    random = np.random.default_rng(1)
    values = [
        o if isinstance(o, np.ndarray) else random.random(o).astype(np.float32).astype(float)
        for o in case.operands
    ]
    values = [v if wide or v.dtype != float else v.astype(np.float32) for v in values]
    names = [f"x{i}" for i in range(len(values))]
    kind = TensorProto.DOUBLE if wide else TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(case.op, names, ["y"], **case.attributes)],
        case.op,
        [helper.make_tensor_value_info("x0", kind, values[0].shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(v, n) for v, n in zip(values[1:], names[1:])],
    )
    opset = helper.make_opsetid("", case.opset)
    save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)
    return {"x0": values[0]}


def result(library, case: Case, wide: bool) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        inputs = write_model(case, wide, path)
        engine = versus.Tssa(library, path, 1, inputs) if library else None
        return np.asarray((engine or versus.Ort(path, 1, inputs)).results()[0], np.float64)


def error(library, case: Case, exact: np.ndarray) -> str:
    try:
        off = np.abs(result(library, case, False) - exact).max()
    except Exception as found:  # noqa: BLE001 - ONNX Runtime's have many types
        return f"none ({type(found).__name__})"
    return f"{off / np.abs(exact).max() * 2**24:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--library", type=Path, default=versus.ROOT / "build/release/libtssa.so"
    )
    parser.add_argument("--against", type=Path, metavar="LIBRARY")
    args = parser.parse_args()
    now = Library(args.library)
    columns = {"tssa": now}
    if args.against:
        columns["before"] = Library(args.against)
    columns["ONNX Runtime"] = None
    print(f"| operator | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for name, case in CASES.items():
        exact = result(now, case, True)
        row = " | ".join(error(library, case, exact) for library in columns.values())
        print(f"| {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
