#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is a quantised model after tssa-opt what it was, for a runtime that fuses its operators?

    quantized.py TSSA_OPT

Models with QuantizeLinear and DequantizeLinear around their operators, or with weights in
FP16 that are widened, are made here.  A rewritten one must have as many of these operators as
before, be no more than 64 KiB larger, and give the same bits in ONNX Runtime at its default
optimizations.

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
from onnx import TensorProto, helper, numpy_helper

KEPT = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Cast")
MAX_GROWTH = 64 << 10


class Builder:
    """A graph that is put together node by node; values are their names."""

    def __init__(self, prefix: str = ""):
        self.prefix = prefix
        self.random = np.random.default_rng(0)
        self.nodes, self.constants = [], []

    def constant(self, array) -> str:
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, operator: str, *inputs: str, name: str = "", **attributes) -> str:
        name = name or f"{self.prefix}v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def scale(self, scale: float, dtype=np.uint8) -> tuple[str, str]:
        return self.constant(np.float32(scale)), self.constant(dtype(0))

    def quantized(self, x: str, scale: float, dtype=np.uint8, name: str = "") -> str:
        parameters = self.scale(scale, dtype)
        return self.dequantized(self.add("QuantizeLinear", x, *parameters), parameters, name)

    def dequantized(self, x: str, parameters, name: str = "", **attributes) -> str:
        return self.add("DequantizeLinear", x, *parameters, name=name, **attributes)

    def weights(self, *shape: int, axis: int = 0) -> str:
        """Of one scale for each index along the axis."""
        data = self.random.integers(-127, 128, shape).astype(np.int8)
        scales = self.random.uniform(0.01, 0.03, shape[axis]).astype(np.float32)
        parameters = self.constant(scales), self.constant(np.zeros(shape[axis], np.int8))
        return self.dequantized(self.constant(data), parameters, axis=axis)

    def model(self, shape, result_shape, opset=13) -> onnx.ModelProto:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, result_shape)
        graph = helper.make_graph(self.nodes, "g", [x], [y], self.constants)
        opsets = [helper.make_opsetid("", opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def network() -> onnx.ModelProto:
    """Two convolutions, a pooling between a pair, a residual sum, a product."""
    b = Builder()
    x = b.quantized("x", 0.02)
    a = b.add("Conv", x, b.weights(16, 3, 3, 3), pads=[1, 1, 1, 1])
    a = b.quantized(b.add("Relu", a), 0.03)
    c = b.add("Conv", a, b.weights(16, 16, 3, 3), pads=[1, 1, 1, 1])
    c = b.quantized(c, 0.05, np.int8)
    a = b.quantized(b.add("Add", a, c), 0.06)
    a = b.add("MaxPool", a, kernel_shape=[2, 2], strides=[2, 2])
    a = b.quantized(a, 0.06)
    a = b.add("Reshape", a, b.constant(np.int64([1, 1024])))
    a = b.add("MatMul", a, b.weights(1024, 10, axis=1))
    b.quantized(a, 0.5, name="y")
    return b.model([1, 3, 16, 16], [1, 10])


def shared() -> onnx.ModelProto:
    """One value, quantised and taken back twice, and moved in integers: nothing is merged."""
    b = Builder()
    parameters = b.scale(0.02)
    q = b.add("QuantizeLinear", "x", *parameters)
    moved = b.add("Transpose", b.add("Transpose", q, perm=[0, 2, 3, 1]), perm=[0, 3, 2, 1])
    left = b.dequantized(moved, parameters)
    right = b.dequantized(q, parameters)
    again = b.dequantized(q, parameters)
    b.add("Add", b.add("Add", left, right), b.add("Relu", again), name="y")
    return b.model([1, 4, 8, 8], [1, 4, 8, 8])


def weights_in_float() -> onnx.ModelProto:
    """Weights that are quantised in the graph: neither half of the pair is computed."""
    b = Builder()
    w = b.constant(b.random.standard_normal((8, 4, 3, 3)).astype(np.float32))
    w = b.quantized(w, 0.02, np.int8)
    x = b.quantized("x", 0.02)
    b.quantized(b.add("Conv", x, w), 0.1, name="y")
    return b.model([1, 4, 8, 8], [1, 8, 6, 6])


def in_a_loop() -> onnx.ModelProto:
    """Weights of a loop's body stay with the product that they belong to."""
    b, body = Builder(), Builder("inner_")
    w = body.weights(16, 16, axis=1)
    h = body.quantized("h", 0.05)
    product = body.quantized(body.add("MatMul", h, w), 0.2)
    body.add("Tanh", product, name="next")
    body.add("Identity", "condition", name="go_on")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        body.nodes,
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("condition", TensorProto.BOOL, []),
            value("h", TensorProto.FLOAT, [2, 16]),
        ],
        [value("go_on", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, [2, 16])],
        body.constants,
    )
    b.add("Loop", b.constant(np.int64(5)), "", "x", name="y", body=graph)
    return b.model([2, 16], [2, 16])


def half_weights() -> onnx.ModelProto:
    """Weights in FP16, which a reader widens or uses as they are."""
    b = Builder()
    w = b.constant(b.random.standard_normal((256, 256)).astype(np.float16))
    b.add("MatMul", "x", b.add("Cast", w, to=TensorProto.FLOAT), name="y")
    return b.model([4, 256], [4, 256])


def generated_weights() -> onnx.ModelProto:
    """Large constants that little makes: the file stays small, with or without them."""
    b = Builder()
    a = "x"
    for k in range(8):
        shape = b.constant(np.int64([64, 256]))
        fill = helper.make_tensor("v", TensorProto.FLOAT, [1], [0.5 + k])
        name = "y" if k == 7 else ""
        a = b.add("Add", a, b.add("ConstantOfShape", shape, value=fill), name=name)
    return b.model([64, 256], [64, 256])


MODELS = (network, shared, weights_in_float, in_a_loop, half_weights, generated_weights)


def count(graph: onnx.GraphProto) -> Counter:
    found = Counter(node.op_type for node in graph.node if node.op_type in KEPT)
    for node in graph.node:
        for attribute in node.attribute:
            found += count(attribute.g)
    return found


def run(path: Path, inputs: dict):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return session.run(None, inputs)


def check(tool: str, model: onnx.ModelProto, folder: Path) -> str | None:
    """What is wrong."""
    path, target = folder / "model.onnx", folder / "rewritten.onnx"
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    subprocess.run([tool, "--quiet", "--check", "1", path, target], check=True)
    before, after = count(model.graph), count(onnx.load(target).graph)
    if before != after:
        return f"{dict(before)} became {dict(after)}"
    growth = target.stat().st_size - path.stat().st_size
    if growth > MAX_GROWTH:
        return f"the file is {growth} bytes larger"
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    inputs = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    for a, b in zip(run(path, inputs), run(target, inputs)):
        if a.tobytes() != b.tobytes():
            return f"results differ by up to {np.abs(a - b).max()}"
    return None


def main() -> int:
    tool = str(Path(sys.argv[1]).resolve())
    failed = 0
    for make in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            wrong = check(tool, make(), Path(folder))
        failed += wrong is not None
        if wrong:
            print(f"FAIL {make.__name__}: {wrong}")
    print(f"{len(MODELS) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
