#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times loops whose iterations need each other: one thread, in turn, in one process.

    bench/recurrences.py                       all of PROGRAMS
    bench/recurrences.py average newton        those whose name is one of these words
    bench/recurrences.py --against OLD.so ...  another build of tssa, too
    bench/recurrences.py --record bench/results/2026-01-31-recurrences

Columns: the least microseconds of a run, over blocks of runs that alternate; `ratio` is
ONNX Runtime's time by tssa's, whose kernels are compiled before.  Results must agree.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

import operators
import versus_ort as versus


def n(op: str, inputs: str, outputs: str, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


class Program(NamedTuple):
    """Carried names and what they are next, what is stacked, what an iteration reads of xs,
    and its nodes; `i` is its number.  Of a Scan, xs come by themselves."""

    carried: dict[str, str]
    stacked: list[str]
    rows: list[str]
    nodes: list
    same: list[str] = []  # inputs that are the same in all iterations
    constants: dict[str, float] = {}
    scan: bool = False


PROGRAMS = {
    # h = a h + (1 - a) x, with a of each element
    "average": Program(
        {"h": "next"},
        ["next"],
        ["x"],
        [
            n("Mul", "h a", "old"),
            n("Sub", "one a", "rest"),
            n("Mul", "rest x", "new"),
            n("Add", "old new", "next"),
        ],
        ["a"],
        {"one": 1},
    ),
    # a filter of the second order
    "filter": Program(
        {"h": "next", "g": "h"},
        ["next"],
        ["x"],
        [
            n("Mul", "h a", "first"),
            n("Mul", "g b", "second"),
            n("Add", "first second", "old"),
            n("Add", "old x", "next"),
        ],
        ["a", "b"],
        scan=True,
    ),
    # attention without softmax's sum: exponentials against the highest so far
    "wkv": Program(
        {"p": "up", "q": "down", "m": "high"},
        ["out"],
        ["k", "v"],
        [
            n("Add", "m w", "before"),
            n("Max", "before k", "high"),
            n("Sub", "before high", "d"),
            n("Exp", "d", "old"),
            n("Sub", "k high", "e"),
            n("Exp", "e", "new"),
            n("Mul", "p old", "p1"),
            n("Mul", "new v", "p2"),
            n("Add", "p1 p2", "up"),
            n("Mul", "q old", "q1"),
            n("Add", "q1 new", "down"),
            n("Div", "up down", "out"),
        ],
        ["w"],
        scan=True,
    ),
    # x = x - (x^2 - a) / 2x
    "newton": Program(
        {"h": "next"},
        [],
        [],
        [
            n("Mul", "h h", "square"),
            n("Sub", "square a", "error"),
            n("Add", "h h", "slope"),
            n("Div", "error slope", "step"),
            n("Sub", "h step", "next"),
        ],
        ["a"],
    ),
    # how long z = z^2 + c stays near
    "mandelbrot": Program(
        {"h": "x1", "g": "y1", "m": "m1"},
        [],
        [],
        [
            n("Mul", "h h", "xx"),
            n("Mul", "g g", "yy"),
            n("Sub", "xx yy", "d"),
            n("Add", "d a", "x1"),
            n("Mul", "h g", "xy"),
            n("Add", "xy xy", "xy2"),
            n("Add", "xy2 b", "y1"),
            n("Add", "xx yy", "far"),
            n("Less", "far four", "near"),
            n("Cast", "near", "count", to=TensorProto.FLOAT),
            n("Add", "m count", "m1"),
        ],
        ["a", "b"],
        {"four": 4},
    ),
}
SIZES = {
    "average": ((1000, 1), (1000, 16), (1000, 256), (1000, 4096)),
    "filter": ((1000, 1), (1000, 16), (1000, 256), (1000, 4096)),
    "wkv": ((256, 64), (256, 768), (1024, 768)),
    "newton": ((20, 1), (20, 100), (20, 10_000), (20, 1_000_000)),
    "mandelbrot": ((50, 1024), (50, 262_144)),
}


def body_of(program: Program):
    info = helper.make_tensor_value_info
    f = TensorProto.FLOAT
    nodes = list(program.nodes)
    carried = [info(name, f, ["N"]) for name in program.carried]
    returned = [info(name, f, ["N"]) for name in program.carried.values()]
    stacked = []
    for k, name in enumerate(program.stacked):
        nodes.append(n("Identity", name, f"s{k}"))
        stacked.append(info(f"s{k}", f, ["N"]))
    # What is carried on as it was would be returned as a parameter.
    for k, (value, name) in enumerate(zip(returned, program.carried.values())):
        if name in program.carried:
            nodes.append(n("Identity", name, f"r{k}"))
            value.name = f"r{k}"
    if program.scan:
        rows = [info(name, f, ["N"]) for name in program.rows]
        return helper.make_graph(nodes, "body", [*carried, *rows], [*returned, *stacked])
    reads = [n("Gather", f"xs_{name} i", name) for name in program.rows]
    params = [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, [])]
    stays = [n("Identity", "go", "goes")]
    results = [info("goes", TensorProto.BOOL, []), *returned, *stacked]
    return helper.make_graph([*reads, *nodes, *stays], "body", [*params, *carried], results)


def write_model(program: Program, trips: int, path: Path) -> None:
    info = helper.make_tensor_value_info
    f = TensorProto.FLOAT
    inputs = [info(f"xs_{name}", f, ["T", "N"]) for name in program.rows]
    inputs += [info(name, f, ["N"]) for name in [*program.same, *program.carried]]
    outputs = [f"last_{name}" for name in program.carried]
    outputs += [f"all_{k}" for k in range(len(program.stacked))]
    names = " ".join(program.carried)
    constants = [
        numpy_helper.from_array(np.array(value, np.float32), name)
        for name, value in program.constants.items()
    ]
    body = body_of(program)
    if program.scan:
        scanned = " ".join(f"xs_{name}" for name in program.rows)
        loop = n("Scan", f"{names} {scanned}", " ".join(outputs), body=body)
        loop.attribute.append(helper.make_attribute("num_scan_inputs", len(program.rows)))
    else:
        constants.append(numpy_helper.from_array(np.array(trips), "trips"))
        loop = helper.make_node("Loop", ["trips", "", *program.carried], outputs, body=body)
    graph = helper.make_graph(
        [loop], "graph", inputs, [info(name, f, None) for name in outputs], constants
    )
    opset = [helper.make_opsetid("", 20)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


def measure(program: Program, trips: int, size: int, libraries: dict, seconds: float) -> dict:
    random = np.random.default_rng(1)

    def numbers(*shape: int) -> np.ndarray:
        return random.uniform(0.1, 0.9, shape).astype(np.float32)

    inputs = {f"xs_{name}": numbers(trips, size) for name in program.rows}
    inputs |= {name: numbers(size) for name in [*program.same, *program.carried]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        write_model(program, trips, path)
        ort = versus.Ort(path, 1, inputs)
        engines = {k: versus.Tssa(lib, path, 1, inputs, True) for k, lib in libraries.items()}
        for engine in engines.values():
            for ours, theirs in zip(engine.results(), ort.results()):
                if found := versus.difference(ours, theirs):
                    raise ValueError(found)
        ort.bind()
        calls = {"ort": ort.call()}
        calls |= {name: engine.call(True) for name, engine in engines.items()}
        times = operators.sample(calls, seconds)
        return {name: float(all.min()) for name, all in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument(
        "--library", type=Path, default=versus.ROOT / "build/release/libtssa.so"
    )
    parser.add_argument("--against", type=Path, metavar="LIBRARY")
    parser.add_argument("--seconds", type=float, default=0.5, help="per case and engine")
    parser.add_argument("--record", type=Path, metavar="STEM", help="write STEM.md")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    from tssa_ctypes import Library

    libraries = {"tssa": Library(args.library)}
    if args.against:
        libraries["before"] = Library(args.against)
    head = f"| program | iterations | elements | ORT | {' | '.join(libraries)} | ratio |\n"
    head += "|---|--:|--:|--:" + "|--:" * len(libraries) + "|--:|"
    print(head, flush=True)
    lines, loads = [], []
    for name, program in PROGRAMS.items():
        for trips, size in SIZES[name] if not args.names or name in args.names else ():
            times = measure(program, trips, size, libraries, args.seconds)
            columns = " | ".join(versus.figure(time) for time in times.values())
            ratio = times["ort"] / times["tssa"]
            lines.append(f"| {name} | {trips} | {size} | {columns} | {ratio:.1f} |")
            loads.append(os.getloadavg()[0])
            print(lines[-1], flush=True)
    if args.record:
        about = versus.machine()
        text = [
            f"# Loops whose iterations need each other: tssa and ONNX Runtime, {about['date']}",
            "",
            f"tssa {about['tssa']}, ONNX Runtime {about['onnxruntime']}; {about['cpu']}, "
            f"{about['cores']} cores, {about['system']}. Load average while measuring: "
            f"{min(loads):.1f} to {max(loads):.1f}.",
            "",
            "Made by `bench/recurrences.py --record`, which explains the columns (us).",
            "",
        ]
        args.record.with_suffix(".md").write_text("\n".join([*text, head, *lines]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
