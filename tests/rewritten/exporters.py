#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that exporters write, after tssa-opt: which operators are left?

    exporters.py TSSA_OPT

Each model is made here, with the operators that must be left of it, and how often.  What is
rewritten must give the same in ONNX Runtime, with its optimizations and without them.

The last line is `N passed, N failed, N skipped`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from quantized import Builder

RTOL, ATOL = 1e-4, 1e-5
HALF_RTOL, HALF_ATOL = 1e-2, 1e-2  # where there are weights of two bytes


def numbers(b: Builder, *shape: int) -> str:
    return b.constant(b.random.uniform(0.5, 1.5, shape).astype(np.float32))


def split() -> tuple[onnx.ModelProto, dict]:
    """torch.chunk: its parts are not sliced one by one."""
    b = Builder()
    b.nodes.append(
        helper.make_node(
            "Split", ["x", b.constant(np.int64([4, 4, 8]))], ["p", "q", "r"], axis=1
        )
    )
    b.add("Concat", b.add("Relu", "q"), b.add("Tanh", "r"), "p", axis=1, name="y")
    return b.model([2, 16], [2, 16]), {"Split": 1, "Relu": 1, "Tanh": 1, "Concat": 1}


def split_in_part() -> tuple[onnx.ModelProto, dict]:
    """Nobody reads the middle: it is small, so that Slices of the others take longer."""
    b = Builder()
    sizes = b.constant(np.int64([4, 4, 8]))
    b.nodes.append(helper.make_node("Split", ["x", sizes], ["p", "q", "r"], axis=1))
    b.add("Concat", b.add("Relu", "p"), b.add("Tanh", "r"), axis=1, name="y")
    return b.model([2, 16], [2, 12]), {"Split": 1, "Relu": 1, "Tanh": 1, "Concat": 1}


def position_embedding() -> tuple[onnx.ModelProto, dict]:
    """A constant table that is turned around and resized for the size of the image."""
    b = Builder()
    table = b.add("Reshape", numbers(b, 1, 256, 96), b.constant(np.int64([1, 16, 16, 96])))
    table = b.add("Transpose", table, perm=[0, 3, 1, 2])
    sizes = b.constant(np.int64([1, 96, 14, 14]))
    table = b.add("Resize", table, "", "", sizes, mode="cubic")
    table = b.add("Transpose", table, perm=[0, 2, 3, 1])
    table = b.add("Reshape", table, b.constant(np.int64([1, 196, 96])))
    b.add("Add", "x", table, name="y")
    return b.model([1, 196, 96], [1, 196, 96]), {"Add": 1}


def convolution() -> tuple[onnx.ModelProto, dict]:
    """Input that is normalised and padded, a Conv, a BatchNormalization, a factor."""
    b = Builder()
    a = b.add("Div", "x", numbers(b, 1, 3, 1, 1))
    a = b.add("Pad", a, b.constant(np.int64([0, 0, 1, 1, 0, 0, 1, 1])))
    a = b.add("Conv", a, numbers(b, 8, 3, 3, 3))
    a = b.add("BatchNormalization", a, *(numbers(b, 8) for _ in range(4)))
    a = b.add("Mul", a, numbers(b, 8, 1, 1))
    b.add("Relu", a, name="y")
    return b.model([1, 3, 8, 8], [1, 8, 8, 8]), {"Conv": 1, "Relu": 1}


def transposed_convolution() -> tuple[onnx.ModelProto, dict]:
    """In groups, with factors before, and a BatchNormalization behind."""
    b = Builder()
    a = b.add("Mul", "x", numbers(b, 4, 1, 1))
    a = b.add("ConvTranspose", a, numbers(b, 4, 3, 2, 2), group=2, strides=[2, 2])
    b.add("BatchNormalization", a, *(numbers(b, 6) for _ in range(4)), name="y")
    return b.model([1, 4, 8, 8], [1, 6, 16, 16]), {"ConvTranspose": 1}


def half_convolution() -> tuple[onnx.ModelProto, dict]:
    """With weights of two bytes: only a factor that rounds nothing goes."""
    b = Builder()

    def halves(*shape: int) -> str:
        return b.constant(b.random.uniform(0.5, 1.5, shape).astype(np.float16))

    a = b.add("Cast", "x", to=onnx.TensorProto.FLOAT16)
    a = b.add("Conv", a, halves(8, 3, 3, 3), halves(8))
    a = b.add("Mul", a, b.constant(np.float16(0.125)))
    a = b.add("Relu", b.add("Mul", b.add("Relu", a), halves(8, 1, 1)))
    b.add("Cast", b.add("Conv", a, halves(8, 8, 1, 1)), to=onnx.TensorProto.FLOAT, name="y")
    return b.model([1, 3, 8, 8], [1, 8, 6, 6]), {"Cast": 2, "Conv": 2, "Relu": 2, "Mul": 1}


def linear() -> tuple[onnx.ModelProto, dict]:
    """A layer that normalises its input, as MatMul and Add."""
    b = Builder()
    a = b.add("Sub", "x", numbers(b, 16))
    a = b.add("Div", a, numbers(b, 16))
    a = b.add("Add", b.add("MatMul", a, numbers(b, 16, 8)), numbers(b, 8))
    b.add("BatchNormalization", a, *(numbers(b, 8) for _ in range(4)), name="y")
    return b.model([4, 16], [4, 8]), {"Gemm": 1}


MODELS = (
    split,
    split_in_part,
    position_embedding,
    convolution,
    transposed_convolution,
    half_convolution,
    linear,
)


def count(graph: onnx.GraphProto) -> Counter:
    found = Counter(node.op_type for node in graph.node if node.op_type != "Constant")
    for node in graph.node:
        for attribute in node.attribute:
            found += count(attribute.g)
    return found


def run(path: Path, inputs: dict, optimized: bool):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return session.run(None, inputs)


def check(tool: str, model: onnx.ModelProto, left: dict, folder: Path) -> str | None:
    """What is wrong."""
    path, target = folder / "model.onnx", folder / "rewritten.onnx"
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    subprocess.run([tool, "--quiet", "--check", "1", path, target], check=True)
    after = count(onnx.load(target).graph)
    if after != left:
        return f"{dict(after)} are left, not {left}"
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    inputs = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    half = any(t.data_type == onnx.TensorProto.FLOAT16 for t in model.graph.initializer)
    tolerance = (HALF_RTOL, HALF_ATOL) if half else (RTOL, ATOL)
    expected = run(path, inputs, optimized=False)
    for optimized in (False, True):
        for a, b in zip(expected, run(target, inputs, optimized)):
            if not np.allclose(a, b, *tolerance):
                return f"results differ by up to {np.abs(a - b).max()}"
    return None


def main() -> int:
    tool = str(Path(sys.argv[1]).resolve())
    failed = 0
    for make in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            wrong = check(tool, *make(), Path(folder))
        failed += wrong is not None
        if wrong:
            print(f"FAIL {make.__name__}: {wrong}")
    print(f"{len(MODELS) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
