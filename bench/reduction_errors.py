#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far sums of float32 are from the exact ones: the table of docs/numerics.md.

    bench/reduction_errors.py
    bench/reduction_errors.py --library OLD.so

Of n numbers, uniform in [0, 1) or normal, the largest error of some sums in units of 2^-24
of the sum of their magnitudes: a sum that is rounded once has one unit at most.  Columns:
tssa's along the innermost axis and along another one, ONNX Runtime's, and one float32
accumulator.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

import numpy as np

import versus_ort as versus
from tssa_ctypes import Library

COLUMNS = 16  # sums of each kind, as long as they are short


def write_model(shape: tuple[int, ...], axis: int, path: Path) -> None:
    from onnx import TensorProto, helper, numpy_helper, save

    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        "sum",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array([axis], np.int64), "axes")],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)


def sums(engine, library, x: np.ndarray, axis: int) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        write_model(x.shape, axis, path)
        inputs = {"x": x}
        made = engine(library, path, 1, inputs) if library else engine(path, 1, inputs)
        return np.asarray(made.results()[0], np.float64).reshape(-1)


def numbers(random, kind: str, shape: tuple[int, int]) -> np.ndarray:
    made = random.random(shape) if kind == "uniform" else random.standard_normal(shape)
    return made.astype(np.float32)


def one_accumulator(line: np.ndarray) -> float:
    return float(np.add.accumulate(line, dtype=np.float32)[-1])


def errors(library, random, kind: str, n: int) -> list[float]:
    count = max(2, min(COLUMNS, 2 * 10**7 // n))
    x = numbers(random, kind, (count, n))
    exact = np.array([math.fsum(line.tolist()) for line in x])
    unit = np.array([math.fsum(np.abs(line).tolist()) for line in x]) * 2.0**-24
    got = [
        sums(versus.Tssa, library, x, 1),
        sums(versus.Tssa, library, np.ascontiguousarray(x.T), 0),
        sums(versus.Ort, None, x, 1),
        np.array([one_accumulator(line) for line in x]),
    ]
    return [float(np.max(np.abs(sum_ - exact) / unit)) for sum_ in got]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--library", type=Path, default=versus.ROOT / "build/release/libtssa.so"
    )
    args = parser.parse_args()
    library, random = Library(args.library), np.random.default_rng(1)
    print("| numbers | n | innermost axis | another axis | ONNX Runtime | one accumulator |")
    print("|---|--:|--:|--:|--:|--:|")
    for kind in ("uniform", "normal"):
        for n in (10**k for k in range(1, 8)):
            row = " | ".join(f"{error:.2f}" for error in errors(library, random, kind, n))
            print(f"| {kind} | {n} | {row} |", flush=True)


if __name__ == "__main__":
    main()
