#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loops over sequences with operators that are functions, after tssa-opt.

    functions.py TSSA_OPT

ONNX Runtime has kernels for some of the operators that the standard defines by a function,
for some element types, and writes the others out, which goes wrong in a SequenceMap.  A loop is
written as a SequenceMap where there is a kernel, and stays a Loop where there is none; what is
written runs as the original does.

The last line is `N passed, N failed, N skipped`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state

# ONNX Runtime writes out few of them at newer opsets.
OPSET = 18
OPSETS = {"Gelu": 20, "RMSNormalization": 23, "Swish": 24}
# How many times an operator takes its operand, and its attributes.
OPERATORS: dict[str, tuple[int, dict]] = {
    "Celu": (1, {}),
    "Clip": (1, {}),
    "Elu": (1, {}),
    "Gelu": (1, {}),
    "GreaterOrEqual": (2, {}),
    "HardSigmoid": (1, {}),
    "HardSwish": (1, {}),
    "LayerNormalization": (2, {}),
    "LeakyRelu": (1, {}),
    "LessOrEqual": (2, {}),
    "LogSoftmax": (1, {}),
    "MeanVarianceNormalization": (1, {"axes": [0]}),
    "Mish": (1, {}),
    "PRelu": (2, {}),
    "RMSNormalization": (2, {}),
    "ReduceL1": (1, {}),
    "ReduceL2": (1, {}),
    "ReduceLogSum": (1, {}),
    "ReduceLogSumExp": (1, {}),
    "ReduceSumSquare": (1, {}),
    "Relu": (1, {}),
    "Selu": (1, {}),
    "Shrink": (1, {}),
    "Softmax": (1, {}),
    "Softplus": (1, {}),
    "Softsign": (1, {}),
    "Swish": (1, {}),
    "ThresholdedRelu": (1, {}),
}
TYPES = ("float", "double", "float16", "int8", "int16", "int32", "int64", "uint8", "uint32")


def has_kernel(operator: str, name: str, parameter: str) -> bool:
    for kernel in onnxruntime_pybind11_state.get_all_opkernel_def():
        first, last = kernel.version_range
        if (
            kernel.op_name == operator
            and kernel.provider == "CPUExecutionProvider"
            and first <= OPSETS.get(operator, OPSET) <= last
            and f"tensor({name})" in dict(kernel.type_constraints).get(parameter, ())
        ):
            return True
    return False


def loop(operator: str, dtype: int) -> onnx.ModelProto:
    """Of each element, in a Loop that appends."""
    value, node = helper.make_tensor_value_info, helper.make_node
    takes, attributes = OPERATORS[operator]
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(dtype, None))
    compares = operator.endswith("OrEqual")
    body = helper.make_graph(
        [
            node("SequenceAt", ["s", "i"], ["e"]),
            node("Mul", ["e", "f"], ["t"]),
            node(operator, ["t"] * takes, ["u"], **attributes),
            node("Where", ["u", "t", "e"], ["r"])
            if compares
            else node("Identity", ["u"], ["r"]),
            node("SequenceInsert", ["q", "r"], ["q_out"]),
            node("Identity", ["c"], ["c_out"]),
        ],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("c", TensorProto.BOOL, []),
            helper.make_value_info("q", sequence),
        ],
        [value("c_out", TensorProto.BOOL, []), helper.make_value_info("q_out", sequence)],
    )
    graph = helper.make_graph(
        [
            node("SequenceLength", ["s"], ["n"]),
            node("SequenceEmpty", [], ["empty"], dtype=dtype),
            node("Loop", ["n", "", "empty"], ["z"], body=body),
            node("Constant", [], ["k"], value_int=0),
            node("SequenceAt", ["z", "k"], ["y"]),
        ],
        "g",
        [helper.make_value_info("s", sequence), value("f", dtype, [4])],
        [value("y", dtype, None)],
    )
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSETS.get(operator, OPSET))],
        ir_version=10,
    )


def run(path: Path, inputs: dict, optimized: bool) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    )
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


def check(opt: str, folder: Path, operator: str, name: str) -> str | None:
    """What is wrong; "": nothing. None: ONNX Runtime does not run the original."""
    schema = onnx.defs.get_schema(operator, OPSETS.get(operator, OPSET), "")
    parameter = schema.inputs[0].type_str
    kind = onnx.TensorProto.DataType.Value(name.upper())
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    original, written = folder / "model.onnx", folder / "written.onnx"
    onnx.save(loop(operator, kind), original)
    rows = [np.array([3, 1, 0, 2], dtype), np.array([1, 2, 5, 3], dtype)]
    inputs = {"s": rows, "f": rows[1]}
    try:
        want = run(original, inputs, False)
    except Exception as error:
        print(f"skipped {operator} of {name}: {str(error)[:100]}")
        return None
    done = subprocess.run([opt, original, written, "-q"], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    operators = {node.op_type for node in onnx.load(written).graph.node}
    if ("SequenceMap" in operators) != has_kernel(operator, name, parameter):
        return f"written as {sorted(operators)}"
    for optimized in (False, True):
        try:
            got = run(written, inputs, optimized)
        except Exception as error:
            return f"ONNX Runtime: {error}"
        if got.dtype != want.dtype or not np.allclose(
            got.astype(float), want.astype(float), 1e-3, 1e-5, equal_nan=True
        ):
            return f"{got}, not {want}"
    return ""


def main() -> int:
    opt, passed, failed, skipped = sys.argv[1], 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for operator in OPERATORS:
            schema = onnx.defs.get_schema(operator, OPSETS.get(operator, OPSET), "")
            allowed = next(
                c.allowed_type_strs
                for c in schema.type_constraints
                if c.type_param_str == schema.inputs[0].type_str
            )
            for name in TYPES:
                if f"tensor({name})" not in allowed:
                    continue
                wrong = check(opt, Path(folder), operator, name)
                passed += wrong == ""
                skipped += wrong is None
                failed += bool(wrong)
                if wrong:
                    print(f"FAIL {operator} of {name}: {wrong[:300]}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
