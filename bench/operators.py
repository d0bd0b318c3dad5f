#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times single operators in tssa and in ONNX Runtime: in turn, in one process, on one thread.

    bench/operators.py                        all of CASES
    bench/operators.py exp 'lstm_*'           those whose name matches one of these patterns
    bench/operators.py --threads 2            on two threads
    bench/operators.py --against OLD.so ...   another build of tssa, too
    bench/operators.py --record bench/results/2026-01-31-operators

Columns: the least microseconds of a run, over blocks of runs that alternate, and with
--median the median; `ratio` is tssa's by ONNX Runtime's.  Results must agree.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import numpy as np

import versus_ort as versus

IMAGE = (1, 64, 80, 80)


class Case(NamedTuple):
    """An operator on random inputs of these shapes; constants are weights or operands."""

    op: str
    inputs: list
    constants: list = []  # shapes of random numbers, or arrays
    attributes: dict = {}
    low: float = -2.0
    high: float = 2.0
    opset: int = 20
    layers: int = 1  # of a recurrent operator, one after the other: each has as many constants


def regions(count: int, size: float) -> np.ndarray:
    """Corners of boxes."""
    corners = np.random.default_rng(2).uniform(0, size, (count, 2, 2))
    return np.sort(corners, axis=1).reshape(count, 4).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def number(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def recurrent(
    op: str, steps: int, batch: int, inputs: int, hidden: int, directions: int = 1
) -> Case:
    width = {"RNN": 1, "GRU": 3, "LSTM": 4}[op] * hidden
    shapes = [
        (directions, width, inputs),
        (directions, width, hidden),
        (directions, 2 * width),
    ]
    attributes = {"hidden_size": hidden}
    if directions == 2:
        attributes["direction"] = "bidirectional"
    return Case(op, [(steps, batch, inputs)], shapes, attributes)


def stack(op: str, layers: int, steps: int, batch: int, hidden: int) -> Case:
    """Layers of as many inputs as states."""
    one = recurrent(op, steps, batch, hidden, hidden)
    return one._replace(constants=one.constants * layers, layers=layers)


CASES = {
    # Functions and activations.
    "exp": Case("Exp", [IMAGE]),
    "log": Case("Log", [IMAGE], low=0.01),
    "sin": Case("Sin", [IMAGE]),
    "cos": Case("Cos", [IMAGE]),
    "tanh": Case("Tanh", [IMAGE]),
    "erf": Case("Erf", [(3136, 384)]),
    "sigmoid": Case("Sigmoid", [IMAGE]),
    "softplus": Case("Softplus", [IMAGE]),
    "elu": Case("Elu", [IMAGE]),
    "gelu": Case("Gelu", [(3136, 384)]),
    "mish": Case("Mish", [IMAGE]),
    "hardswish": Case("HardSwish", [IMAGE]),
    "hardsigmoid": Case("HardSigmoid", [IMAGE]),
    "leakyrelu": Case("LeakyRelu", [IMAGE]),
    "atan": Case("Atan", [IMAGE]),
    "pow2": Case("Pow", [IMAGE], [number(2)]),
    "pow3": Case("Pow", [IMAGE], [number(3)]),
    "pow0.5": Case("Pow", [IMAGE], [number(0.5)], low=0.01),
    "pow1.7": Case("Pow", [IMAGE], [number(1.7)], low=0.01),
    # Arithmetic.
    "sqrt": Case("Sqrt", [IMAGE], low=0.01),
    "reciprocal": Case("Reciprocal", [IMAGE], low=0.01),
    "neg": Case("Neg", [IMAGE]),
    "abs": Case("Abs", [IMAGE]),
    "relu": Case("Relu", [IMAGE]),
    "floor": Case("Floor", [IMAGE]),
    "round": Case("Round", [IMAGE]),
    "div": Case("Div", [IMAGE, IMAGE], low=0.5),
    "addbc": Case("Add", [IMAGE, (1, 64, 1, 1)]),
    "mod": Case("Mod", [(256, 1000)] * 2, attributes={"fmod": 1}, low=0.5),
    # Lines and reductions.
    "softmax": Case("Softmax", [(64, 3, 49, 49)], attributes={"axis": -1}),
    "softmax21": Case("Softmax", [(8732, 21)], attributes={"axis": -1}),
    "softmax1000": Case("Softmax", [(64, 1000)], attributes={"axis": -1}),
    "softmax_c": Case("Softmax", [(1, 21, 80, 80)], attributes={"axis": 1}),
    "logsoftmax": Case("LogSoftmax", [(64, 3, 49, 49)], attributes={"axis": -1}),
    "layernorm": Case("LayerNormalization", [(8, 197, 192)], [(192,), (192,)], {"axis": -1}),
    "instancenorm": Case("InstanceNormalization", [(1, 64, 64, 64)], [(64,), (64,)]),
    "batchnorm": Case(
        "BatchNormalization", [IMAGE], [(64,), (64,), (64,), np.full(64, 0.7, np.float32)]
    ),
    "lrn": Case("LRN", [IMAGE], attributes={"size": 5}),
    "loss": Case("SoftmaxCrossEntropyLoss", [(512, 1000)], [np.arange(512)]),
    "loss_hw": Case(
        "SoftmaxCrossEntropyLoss", [(1, 21, 80, 80)], [np.arange(6400).reshape(1, 80, 80) % 21]
    ),
    "attention": Case("Attention", [(1, 4, 197, 64)] * 3, opset=23),
    "attention128": Case("Attention", [(1, 12, 128, 64)] * 3, opset=23),
    "attention1024": Case("Attention", [(1, 8, 1024, 64)] * 3, opset=23),
    "attention_causal": Case(
        "Attention", [(1, 8, 512, 64)] * 3, attributes={"is_causal": 1}, opset=23
    ),
    "attention_rows": Case(
        "Attention", [(8, 8, 1, 64), (8, 8, 128, 64), (8, 8, 128, 64)], opset=23
    ),
    "attention_row50": Case(
        "Attention", [(1, 8, 1, 64), (1, 8, 50, 64), (1, 8, 50, 64)], opset=23
    ),
    "attention_row300": Case(
        "Attention", [(1, 8, 1, 64), (1, 8, 300, 64), (1, 8, 300, 64)], opset=23
    ),
    "globallp": Case("GlobalLpPool", [IMAGE]),
    "reducesum_all": Case("ReduceSum", [(1000000,)], [ints(0)]),
    "reducesum_last": Case("ReduceSum", [(3136, 384)], [ints(-1)]),
    "reducemean_hw": Case("ReduceMean", [IMAGE], [ints(2, 3)]),
    "reducemean_c": Case("ReduceMean", [IMAGE], [ints(1)]),
    "reducesumsq": Case("ReduceSumSquare", [(300, 10)], [ints(1)], {"keepdims": 0}),
    "reducemax_last": Case("ReduceMax", [(3136, 384)], [ints(-1)]),
    "gap": Case("GlobalAveragePool", [IMAGE]),
    "argmax": Case("ArgMax", [(8400, 80)], attributes={"axis": 1}),
    "argmax_mid": Case("ArgMax", [(1, 80, 8400)], attributes={"axis": 1}),
    "cumsum": Case("CumSum", [(100, 6400)], [np.array(1)], low=0.0),
    # Windows and samples.
    "maxpool": Case(
        "MaxPool",
        [(1, 64, 80, 100)],
        attributes={"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]},
    ),
    "avgpool": Case(
        "AveragePool", [IMAGE], attributes={"kernel_shape": [3, 3], "pads": [1] * 4}
    ),
    "avgpool11": Case(
        "AveragePool", [IMAGE], attributes={"kernel_shape": [11, 11], "pads": [5] * 4}
    ),
    "lppool": Case("LpPool", [IMAGE], attributes={"kernel_shape": [3, 3], "strides": [2, 2]}),
    "gridsample": Case("GridSample", [(1, 32, 40, 40), (1, 40, 40, 2)]),
    "gridsample_cubic": Case(
        "GridSample", [(1, 32, 40, 40), (1, 40, 40, 2)], attributes={"mode": "cubic"}
    ),
    "resize_nearest": Case(
        "Resize",
        [(1, 64, 40, 40)],
        [np.zeros(0, np.float32), np.array([1, 1, 2, 2], np.float32)],
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    "resize_linear": Case(
        "Resize",
        [(1, 32, 40, 40)],
        [np.zeros(0, np.float32), np.array([1, 1, 2, 2], np.float32)],
        {"mode": "linear"},
    ),
    "resize_down": Case(
        "Resize",
        [(1, 32, 80, 80)],
        [np.zeros(0, np.float32), np.array([1, 1, 0.6, 0.6], np.float32)],
        {"mode": "linear", "antialias": 1},
    ),
    "resize_cubic": Case(
        "Resize",
        [(1, 32, 40, 40)],
        [np.zeros(0, np.float32), np.array([1, 1, 2, 2], np.float32)],
        {"mode": "cubic"},
    ),
    "roialign": Case(
        "RoiAlign",
        [(1, 256, 56, 56)],
        [regions(100, 224), np.zeros(100, np.int64)],
        {"output_height": 7, "output_width": 7, "sampling_ratio": 2, "spatial_scale": 0.25},
    ),
    "affinegrid": Case("AffineGrid", [(4, 2, 3)], [ints(4, 3, 80, 80)]),
    # Recurrent layers.
    "lstm": Case(
        "LSTM",
        [(20, 2, 32)],
        [(2, 192, 32), (2, 192, 48), (2, 384)],
        {"direction": "bidirectional", "hidden_size": 48},
    ),
    "lstm_row": recurrent("LSTM", 100, 1, 256, 256),
    "lstm_batch8": recurrent("LSTM", 50, 8, 64, 128),
    "lstm_batch32": recurrent("LSTM", 50, 32, 128, 128),
    "gru": Case("GRU", [(20, 2, 32)], [(1, 144, 32), (1, 144, 48)], {"hidden_size": 48}),
    "gru_row": recurrent("GRU", 100, 1, 256, 256),
    "gru_batch32": recurrent("GRU", 20, 32, 256, 256),
    "rnn_batch8": recurrent("RNN", 50, 8, 128, 128),
    # Products.
    "conv3x3": Case("Conv", [(1, 64, 40, 40)], [(64, 64, 3, 3)], {"pads": [1] * 4}),
    "conv1x1": Case("Conv", [(1, 128, 40, 40)], [(128, 128, 1, 1)]),
    "conv_dw3": Case(
        "Conv", [(1, 96, 40, 40)], [(96, 1, 3, 3)], {"group": 96, "pads": [1] * 4}
    ),
    "deformconv": Case("DeformConv", [(1, 16, 20, 20)], [(16, 16, 3, 3), (1, 18, 18, 18)]),
    "convtranspose": Case(
        "ConvTranspose",
        [(20, 256, 14, 14)],
        [(256, 256, 2, 2), (256,)],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
    "convtranspose4": Case(
        "ConvTranspose",
        [(1, 64, 32, 32)],
        [(64, 32, 4, 4)],
        {"strides": [2, 2], "pads": [1] * 4},
    ),
    "einsum": Case("Einsum", [(1, 300, 256), (1, 256, 160)], [], {"equation": "bqc,bcn->bqn"}),
    "einsum_turned": Case("Einsum", [(64, 300, 120)], [], {"equation": "bij->bji"}),
    "einsum_sum": Case("Einsum", [(64, 300, 120)], [], {"equation": "bij->bi"}),
    "einsum_sum_mid": Case("Einsum", [(64, 300, 120)], [], {"equation": "bij->bj"}),
    "einsum_trace": Case("Einsum", [(64, 200, 200)], [], {"equation": "bii->b"}),
    "einsum_scaled": Case("Einsum", [(300, 256), (256,)], [], {"equation": "ij,j->ij"}),
    "einsum_dots": Case("Einsum", [(800, 256)] * 2, [], {"equation": "bi,bi->b"}),
    "einsum3": Case("Einsum", [(64, 128), (128, 96), (96,)], [], {"equation": "ij,jk,k->i"}),
    "einsum3_batch": Case(
        "Einsum",
        [(4, 64, 32), (4, 80, 32), (4, 80, 24)],
        [],
        {"equation": "bid,bjd,bje->bie"},
    ),
    "col2im": Case("Col2Im", [(1, 144, 400)], [ints(22, 22), ints(3, 3)]),
    "matmul_small": Case("MatMul", [(500, 4, 8), (500, 8, 4)]),
    "matmul_vit": Case("MatMul", [(1, 197, 192)], [(192, 768)]),
    "matmul_1024": Case("MatMul", [(1, 196, 256)], [(256, 1024)]),
    "gemm_row": Case("Gemm", [(1, 1024)], [(1000, 1024), (1000,)], {"transB": 1}),
    # Movement and selection.
    "transpose_last": Case("Transpose", [(1, 84, 8400)], attributes={"perm": [0, 2, 1]}),
    "transpose": Case("Transpose", [(8, 197, 3, 64)], attributes={"perm": [0, 2, 1, 3]}),
    "concat": Case("Concat", [IMAGE, IMAGE], attributes={"axis": 1}),
    "topk": Case("TopK", [(1, 8400)], [ints(100)]),
    "topk_rows": Case("TopK", [(80, 8400)], [ints(100)]),
    "topk_one": Case("TopK", [(8, 128, 256)], [ints(1)], {"axis": 1}),
    "hardmax": Case("Hardmax", [(8, 128, 256)]),
    "spacetodepth": Case("SpaceToDepth", [(1, 32, 56, 56)], attributes={"blocksize": 2}),
    "pad_reflect": Case(
        "Pad", [(1, 32, 56, 56)], [ints(0, 0, 3, 3, 0, 0, 3, 3)], {"mode": "reflect"}
    ),
    "maxunpool": Case(
        "MaxUnpool",
        [(1, 16, 28, 28)],
        [4 * np.arange(16 * 28 * 28).reshape(1, 16, 28, 28)],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
    "nms": Case(
        "NonMaxSuppression",
        [(1, 4, 2000)],
        [regions(2000, 640)[None], ints(100), number(0.5), number(1.0)],
    ),
    "gatherelements": Case(
        "GatherElements",
        [(8400, 84)],
        [np.random.default_rng(3).integers(0, 8400, (300, 84))],
        {"axis": 0},
    ),
}

# Windows of all sizes: kernel, stride, channels and pixels of a side.
IMAGES = ((3, 224), (32, 20), (32, 80), (64, 40), (256, 14), (512, 7))

CASES |= {
    f"pool_{op[:3].lower()}_{kernel}_{stride}_{channels}_{side}": Case(
        op,
        [(1, channels, side, side)],
        attributes={
            "kernel_shape": [kernel] * 2,
            "strides": [stride] * 2,
            "pads": [kernel // 2 if kernel > 2 else 0] * 4,
        },
    )
    for op in ("MaxPool", "AveragePool")
    for kernel, stride in ((2, 2), (2, 1), (3, 1), (3, 2), (5, 1))
    for channels, side in IMAGES
}
CASES |= {
    f"resize_{mode}_{scale}_{way}_{channels}_{side}": Case(
        "Resize",
        [(1, channels, side, side)],
        [np.zeros(0, np.float32), np.array([1, 1, scale, scale], np.float32)],
        {"mode": mode, "coordinate_transformation_mode": way},
    )
    for mode in ("nearest", "linear", "cubic")
    for scale in (0.5, 1.5, 2)
    for way in ("half_pixel", "asymmetric")
    for channels, side in IMAGES
}
CASES |= {
    f"roialign_{mode}_{bins}_{samples}": Case(
        "RoiAlign",
        [(1, 64, 50, 50)],
        [regions(100, 200), np.zeros(100, np.int64)],
        {
            "mode": mode,
            "output_height": bins,
            "output_width": bins,
            "sampling_ratio": samples,
            "spatial_scale": 0.25,
        },
    )
    for mode in ("avg", "max")
    for bins, samples in ((1, 1), (7, 0), (7, 2), (14, 0))
}
CASES |= {
    f"gridsample_{mode}_{padding}_{channels}_{side}": Case(
        "GridSample",
        [(1, channels, side, side), (1, side, side, 2)],
        attributes={"mode": mode, "padding_mode": padding},
        low=-1.1,
        high=1.1,
    )
    for mode in ("linear", "nearest", "cubic")
    for padding in ("zeros", "border", "reflection")
    for channels, side in ((3, 64), (16, 40), (64, 20), (256, 14))
}
# Channels in and out, side, kernel and stride.
CASES |= {
    f"convtranspose_{inside}_{out}_{side}_{kernel}_{stride}": Case(
        "ConvTranspose",
        [(1, inside, side, side)],
        [(inside, out, kernel, kernel)],
        {"strides": [stride] * 2, "pads": [(kernel - 1) // 2] * 4},
    )
    for inside, out, side, kernel, stride in (
        (512, 256, 4, 4, 2),
        (256, 128, 8, 4, 2),
        (128, 64, 16, 4, 2),
        (64, 32, 32, 4, 2),
        (64, 64, 7, 4, 2),
        (64, 64, 14, 4, 2),
        (256, 256, 7, 3, 2),
        (96, 48, 20, 3, 2),
        (64, 32, 32, 3, 2),
        (512, 256, 8, 2, 2),
        (256, 256, 14, 2, 2),
        (128, 64, 28, 2, 2),
    )
}

# Layers of all sizes: hidden units, steps, batch and directions.
CASES |= {
    f"{op.lower()}_{hidden}_{steps}_{batch}_{directions}": recurrent(
        op, steps, batch, hidden, hidden, directions
    )
    for op in ("LSTM", "GRU")
    for hidden in (48, 97, 256, 352, 512)
    for steps in (10, 100)
    for batch in (1, 4)
    for directions in (1, 2)
}

# Layers in a row: how many, hidden units, steps and batch.
CASES |= {
    f"{op.lower()}_stack_{layers}_{hidden}_{steps}_{batch}": stack(
        op, layers, steps, batch, hidden
    )
    for op in ("LSTM", "GRU")
    for layers in (2, 3, 4)
    for hidden in (48, 64, 97, 128, 256, 352, 512)
    for steps in (10, 100)
    for batch in (1, 4)
}


def make_nodes(case: Case, names: list[str], outputs: list[str]) -> list:
    """The operator, or layers of it."""
    from onnx import helper

    if case.layers == 1:
        return [helper.make_node(case.op, names, outputs, **case.attributes)]
    nodes, last = [], names[0]
    each = (len(names) - 1) // case.layers
    for i in range(case.layers):
        own = [last, *names[1 + i * each : 1 + (i + 1) * each]]
        nodes.append(helper.make_node(case.op, own, [f"y{i}"], **case.attributes))
        last = outputs[0] if i + 1 == case.layers else f"s{i}"
        nodes.append(helper.make_node("Squeeze", [f"y{i}", "axes"], [last]))
    return nodes


def write_model(case: Case, path: Path) -> dict[str, np.ndarray]:
    """Also makes the inputs."""
    from onnx import TensorProto, helper, numpy_helper, save

    random = np.random.default_rng(1)

    def numbers(shape) -> np.ndarray:
        return random.uniform(case.low, case.high, shape).astype(np.float32)

    inputs = {f"x{i}": numbers(shape) for i, shape in enumerate(case.inputs)}
    constants = [
        numpy_helper.from_array(c if isinstance(c, np.ndarray) else numbers(c) / 8, f"c{i}")
        for i, c in enumerate(case.constants)
    ]
    outputs = ["y", "z"] if case.op == "TopK" else ["y"]
    types = {"ArgMax": TensorProto.INT64, "NonMaxSuppression": TensorProto.INT64}
    names = [*inputs, *(c.name for c in constants)]
    if case.op == "NonMaxSuppression":  # boxes, which are constant, come first
        names = [names[1], names[0], *names[2:]]
    if case.layers > 1:
        constants.append(numpy_helper.from_array(ints(1), "axes"))
    graph = helper.make_graph(
        make_nodes(case, names, outputs),
        case.op,
        [helper.make_tensor_value_info(n, 1, list(v.shape)) for n, v in inputs.items()],
        [
            helper.make_tensor_value_info(
                n, types.get(case.op, 7 if n == "z" else TensorProto.FLOAT), None
            )
            for n in outputs
        ],
        constants,
    )
    save(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=9
        ),
        path,
    )
    return inputs


def sample(calls: dict, seconds: float) -> dict[str, np.ndarray]:
    """Microseconds, of blocks that alternate."""
    blocks = {name: [] for name in calls}
    for _ in range(versus.BLOCKS):
        for name, call in calls.items():
            blocks[name].append(versus.time_block(call, 1_000_000, seconds / versus.BLOCKS))
    return {name: np.concatenate(times) / 1e3 for name, times in blocks.items()}


def measure(case: Case, libraries: dict, seconds: float, threads: int) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        inputs = write_model(case, path)
        ort = versus.Ort(path, threads, inputs)
        engines = {n: versus.Tssa(lib, path, threads, inputs) for n, lib in libraries.items()}
        for engine in engines.values():
            for ours, theirs in zip(engine.results(), ort.results()):
                if found := versus.difference(ours, theirs):
                    raise ValueError(found)
        ort.bind()
        calls = {"ort": ort.call()}
        calls |= {name: engine.call(True) for name, engine in engines.items()}
        return sample(calls, seconds)


def figures(times: dict[str, float]) -> str:
    columns = " | ".join(versus.figure(time) for time in times.values())
    return f"{columns} | {times['tssa'] / times['ort']:.2f} |"


def row(name: str, case: Case, times: dict[str, np.ndarray], median: bool) -> str:
    shapes = " ".join(str(list(shape)) for shape in case.inputs)
    line = f"| {name} | {case.op} | {shapes} | "
    line += figures({engine: float(t.min()) for engine, t in times.items()})
    if median:
        line += " " + figures({engine: float(np.median(t)) for engine, t in times.items()})
    return line


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="PATTERN")
    parser.add_argument(
        "--library", type=Path, default=versus.ROOT / "build/release/libtssa.so"
    )
    parser.add_argument("--against", type=Path, metavar="LIBRARY")
    parser.add_argument("--seconds", type=float, default=0.5, help="per operator and engine")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--median", action="store_true", help="medians, too")
    parser.add_argument("--record", type=Path, metavar="STEM", help="write STEM.md")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    from tssa_ctypes import Library, TssaError

    libraries = {"tssa": Library(args.library)}
    if args.against:
        libraries["before"] = Library(args.against)
    columns = ["ORT", *libraries, "ratio"]
    if args.median:
        columns += [f"{name}, median" for name in columns]
    head = f"| case | operator | inputs | {' | '.join(columns)} |\n|---|---|---"
    head += "|--:" * len(columns) + "|"
    print(head, flush=True)
    lines, failed, loads = [], 0, []
    for name, case in CASES.items():
        if args.names and not any(fnmatch(name, pattern) for pattern in args.names):
            continue
        try:
            line = row(
                name, case, measure(case, libraries, args.seconds, args.threads), args.median
            )
        except (TssaError, ValueError) as error:
            line, failed = f"| {name} | {case.op} | {error} |", failed + 1
        lines.append(line)
        loads.append(os.getloadavg()[0])
        print(line, flush=True)
    if args.record:
        about = versus.machine()
        text = [
            f"# Single operators: tssa and ONNX Runtime, {about['date']}",
            "",
            f"tssa {about['tssa']}, ONNX Runtime {about['onnxruntime']}; {about['cpu']}, "
            f"{about['cores']} cores, {about['system']}. Load average while measuring: "
            f"{min(loads):.1f} to {max(loads):.1f}. Threads: {args.threads}.",
            "",
            "Made by `bench/operators.py --record`, which explains the columns (microseconds).",
            "",
        ]
        args.record.with_suffix(".md").write_text("\n".join([*text, head, *lines]) + "\n")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
