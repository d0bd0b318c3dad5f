#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times loops against what tssa-opt makes of them, over trip counts and sizes of rows.

    bench/loops.py                        all programs, in ONNX Runtime and tssa
    bench/loops.py running_max --rows 1000 --trips 7 100000

Whether a loop is computed at once, in blocks or as it is must never cost much: for no trip
count and no size may what was rewritten take more than 1.15 times the time, or 1.5 times
the memory plus 64 MiB.  The models know neither number; `--known` fixes the sizes of rows
in the model, so that another choice may be made.

A line per program, size and trip count: milliseconds of the original and of the rewritten
file in ONNX Runtime, then of tssa-run -O0 and -O2, each with the ratio; and MiB of memory
of the four processes where they differ.  Times are the least of all runs, which take turns.
What is beyond a bound is marked with !; the status is 1 when something is.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
TRIPS = (0, 1, 7, 100, 10_000, 100_000)
ROWS = (1, 100, 10_000)
MOST_ELEMENTS = 2e8  # that a program goes through
COLUMNS = 16  # of pairs
ROUNDS = 5  # of runs that take turns
SLACK_MS = 0.05  # that no ratio is told of

F, INT, B, U = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8


class Program:
    """A loop: what it is given, what it carries, and its body."""

    def __init__(self, inputs, carried, stacked, nodes, constants=(), work=1, copies=0):
        self.inputs, self.carried, self.stacked = inputs, carried, stacked
        self.nodes, self.constants = nodes, constants
        self.work = work  # on an element of a row
        # In ONNX Runtime a Loop copies what it carries in every iteration: the outer one's, 1;
        # those of one in it, 2.
        self.copies = copies


def n(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def weights(*shape) -> np.ndarray:
    return np.random.default_rng(1).random(shape, np.float32) - np.float32(0.5)


def inner_loop(initial: str, length: str, body: list, kind) -> onnx.NodeProto:
    """A Loop that carries `s`, of the type, to `u`; its counter is `k`."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [n("Identity", "more", "more_on"), *body],
        "inner",
        [info("k", INT, []), info("more", B, []), info("s", *kind)],
        [info("more_on", B, []), info("u", *kind)],
    )
    return helper.make_node("Loop", [length, "", initial], ["next"], body=graph)


ONE_AXIS = [("axis0", np.array([0])), ("axis1", np.array([1])), ("column", np.array([1, 1]))]

# Inputs: name -> (type, dims), or (type, dims, elements); "N" is the size of a row, "M" the
# trip count.
PROGRAMS = {
    # s = max(s, x * i)
    "running_max": Program(
        {"x": (INT, ["N"])},
        {"s": ("x", "next")},
        {},
        [n("Mul", "x i", "product"), n("Max", "s product", "next")],
    ),
    # t[i] = sum over rows of |x - x[i]|
    "pairs": Program(
        {"x": (F, ["N", COLUMNS]), "z": (F, ["M"])},
        {"t": ("z", "next")},
        {},
        [
            n("Cast", "i", "f", to=F),
            n("Sub", "x f", "difference"),
            n("Mul", "difference difference", "square"),
            n("ReduceSum", "square axis1", "sums", keepdims=0),
            n("Sqrt", "sums", "root"),
            n("ReduceSum", "root axis0", "all", keepdims=0),
            n("Reshape", "i column", "place"),
            n("Unsqueeze", "all axis0", "value"),
            n("ScatterND", "t place value", "next"),
        ],
        ONE_AXIS,
        work=COLUMNS,
        copies=1,
    ),
    # any |= sum(x * i) > threshold
    "any_sum": Program(
        {"x": (F, ["N"]), "any": (B, [])},
        {"s": ("any", "next")},
        {},
        [
            n("Cast", "i", "f", to=F),
            n("Mul", "x f", "product"),
            n("ReduceSum", "product", "sum", keepdims=0),
            n("Greater", "sum huge", "beyond"),
            n("Or", "s beyond", "next"),
        ],
        [("huge", np.array(1e30, np.float32))],
    ),
    # any |= (x * i) mod y == i, of scalars alone
    "any_number": Program(
        {"x": (INT, []), "y": (INT, []), "any": (B, [])},
        {"s": ("any", "next")},
        {},
        [
            n("Mul", "x i", "product"),
            n("Mod", "product y", "rest"),
            n("Equal", "rest i", "equal"),
            n("Or", "s equal", "next"),
        ],
    ),
    # t[i] = (x * i) mod y, stacked
    "multiples": Program(
        {"x": (INT, []), "y": (INT, [])},
        {},
        {"rest": (INT, [])},
        [n("Mul", "x i", "product"), n("Mod", "product y", "rest")],
    ),
    # rows of a tensor, several element-wise operators
    "rows": Program(
        {"x": (F, ["M", "N"]), "w": (F, ["N"])},
        {},
        {"row": (F, ["N"])},
        [
            n("Gather", "x i", "from"),
            n("Mul", "from w", "scaled"),
            n("Add", "scaled w", "moved"),
            n("Mul", "moved moved", "square"),
            n("Sub", "square moved", "row"),
        ],
    ),
    # t[i] = f(t[i]), in place
    "in_place": Program(
        {"x": (F, ["M", "N"])},
        {"t": ("x", "next")},
        {},
        [
            n("Gather", "t i", "from"),
            n("Mul", "from from", "square"),
            n("Reshape", "i column", "place"),
            n("Unsqueeze", "square axis0", "value"),
            n("ScatterND", "t place value", "next"),
        ],
        ONE_AXIS,
        copies=1,
    ),
    # a number for each iteration
    "numbers": Program(
        {"x": (F, ["N"])},
        {},
        {"least": (F, [])},
        [
            n("Cast", "i", "f", to=F),
            n("Add", "x f", "sum"),
            n("Sin", "sum", "sin"),
            n("ReduceMin", "sin", "least", keepdims=0),
        ],
    ),
    # running sums of integers
    "prefix": Program(
        {"x": (INT, ["N"])},
        {"s": ("x", "next")},
        {"row": (INT, ["N"])},
        [n("Mul", "x i", "product"), n("Add", "s product", "next"), n("Neg", "s", "row")],
    ),
    # h = tanh((x[t] y) W + h), where the products are much larger than x
    "product": Program(
        {"x": (F, ["M"]), "y": (F, ["N", COLUMNS]), "h": (F, ["N", COLUMNS])},
        {"g": ("h", "next")},
        {},
        [
            n("Gather", "x i", "from"),
            n("Mul", "y from", "scaled"),
            n("MatMul", "scaled w", "product"),
            n("Add", "product g", "sum"),
            n("Tanh", "sum", "next"),
        ],
        [("w", weights(COLUMNS, COLUMNS))],
        work=COLUMNS,
    ),
    # h = tanh(x[t] W + h), a recurrent layer with few inputs, which stacks what it computes
    "layer": Program(
        {"x": (F, ["M", "N", 64]), "h": (F, ["N", 256])},
        {"g": ("h", "next")},
        {"row": (F, ["N", 256])},
        [
            n("Gather", "x i", "from"),
            n("MatMul", "from w", "product"),
            n("Add", "product g", "sum"),
            n("Tanh", "sum", "next"),
            n("Neg", "g", "row"),
        ],
        [("w", weights(64, 256))],
        work=512,
    ),
    # h = tanh(x[t] W + h U), a recurrent layer
    "recurrent": Program(
        {"x": (F, ["M", "N", 256]), "h": (F, ["N", 256])},
        {"g": ("h", "next")},
        {},
        [
            n("Gather", "x i", "from"),
            n("MatMul", "from w", "product"),
            n("MatMul", "g u", "old"),
            n("Add", "product old", "sum"),
            n("Tanh", "sum", "next"),
        ],
        [("w", weights(256, 256)), ("u", weights(256, 256))],
        work=16384,
    ),
    # two recurrences with a product each, the second of what the first one computes
    "layers": Program(
        {"x": (F, ["M"]), "h": (F, ["N", COLUMNS])},
        {"g": ("h", "next"), "g2": ("h", "next2")},
        {},
        [
            n("Gather", "x i", "from"),
            n("MatMul", "g u", "old"),
            n("Add", "old from", "sum"),
            n("Tanh", "sum", "next"),
            n("MatMul", "next w", "product"),
            n("MatMul", "g2 u", "old2"),
            n("Add", "product old2", "sum2"),
            n("Tanh", "sum2", "next2"),
        ],
        [("u", weights(COLUMNS, COLUMNS)), ("w", weights(COLUMNS, COLUMNS))],
        work=2 * COLUMNS,
    ),
    # t[p[i]] = 1
    "marks": Program(
        {"x": (U, ["N"]), "p": (INT, ["M"], 0)},
        {"t": ("x", "next")},
        {},
        [
            n("Gather", "p i", "at"),
            n("Reshape", "at column", "place"),
            n("ScatterND", "t place one", "next"),
        ],
        [*ONE_AXIS, ("one", np.array([1], np.uint8))],
        copies=1,
    ),
    # t[i, k] = 1 for all k below d[i]
    "nest": Program(
        {"x": (U, ["M", "N"]), "d": (INT, ["M"], "N")},
        {"t": ("x", "next")},
        {},
        [
            n("Gather", "d i", "length"),
            n("Reshape", "i column", "row"),
            inner_loop(
                "t",
                "length",
                [
                    n("Reshape", "k column", "at"),
                    n("Concat", "row at", "place", axis=1),
                    n("ScatterND", "s place one", "u"),
                ],
                (U, ["M", "N"]),
            ),
        ],
        [*ONE_AXIS, ("one", np.array([1], np.uint8))],
        work=20,
        copies=2,
    ),
}


def model_of(program: Program, rows: int | None) -> onnx.ModelProto:
    def info(name, kind):
        dims = [rows if d == "N" and rows else d for d in kind[1]]
        return helper.make_tensor_value_info(name, kind[0], dims)

    types = program.inputs
    carried = {name: types[first][:2] for name, (first, _) in program.carried.items()}
    body = helper.make_graph(
        [n("Identity", "go", "go_on"), *program.nodes],
        "body",
        [info("i", (INT, [])), info("go", (B, [])), *(info(k, v) for k, v in carried.items())],
        [
            info("go_on", (B, [])),
            *(info(last, types[first]) for first, last in program.carried.values()),
            *(info(k, v) for k, v in program.stacked.items()),
        ],
    )
    outputs = {f"{k}_out": v for k, v in carried.items()}
    outputs |= {f"{k}_out": (t, ["M", *d]) for k, (t, d) in program.stacked.items()}
    loop = helper.make_node(
        "Loop",
        ["trips", "", *(f for f, _ in program.carried.values())],
        list(outputs),
        body=body,
    )
    graph = helper.make_graph(
        [loop],
        "loop",
        [info(k, v) for k, v in types.items()] + [info("trips", (INT, []))],
        [info(k, v) for k, v in outputs.items()],
        [numpy_helper.from_array(v, k) for k, v in program.constants],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def inputs_of(program: Program, rows: int, trips: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    made = {"trips": np.array(trips)}
    for name, (kind, dims, *elements) in program.inputs.items():
        shape = [rows if d == "N" else trips if d == "M" else d for d in dims]
        value = np.zeros(shape) if kind == B else random.random(shape) * 100
        if elements:
            value = np.full(shape, rows if elements[0] == "N" else elements[0])
        made[name] = np.asarray(value, helper.tensor_dtype_to_np_dtype(kind))
    return made


def copied(program: Program, rows: int, trips: int) -> int:
    """Elements of carried tensors that ONNX Runtime copies."""
    carried = [program.inputs[first][1] for first, _ in program.carried.values()]
    sizes = [np.prod([{"N": rows, "M": trips}.get(d, d) for d in dims]) for dims in carried]
    return [0, trips, trips * rows][program.copies] * int(sum(sizes))


# ---- Running -------------------------------------------------------------------------

ORT = """
import resource, sys, time
import numpy as np, onnxruntime as o
s = o.SessionOptions(); s.intra_op_num_threads = 1; s.log_severity_level = 4
run = o.InferenceSession(sys.argv[1], s, providers=['CPUExecutionProvider'])
feeds = dict(np.load(sys.argv[2])); best = 1e9; begun = time.perf_counter(); runs = 0
while runs < 1 or (time.perf_counter() - begun < 0.2 and runs < 200):
    t = time.perf_counter(); out = run.run(None, feeds)
    best = min(best, time.perf_counter() - t); runs += 1
if len(sys.argv) > 3: np.savez(sys.argv[3], *out)
print(best * 1e3)
"""


def run(command: list) -> tuple[str, float]:
    """Standard output and error, and the most memory in MiB."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([str(c) for c in command], stdout=out, stderr=out)
        _, status, usage = os.wait4(process.pid, 0)
        out.seek(0)
        text = out.read().decode()
    if status:
        sys.exit(f"{command}: {text}")
    return text, usage.ru_maxrss / 1024


def run_ort(model: Path, feeds: Path, outputs: Path) -> tuple[float, float]:
    text, memory = run([sys.executable, "-c", ORT, model, feeds, outputs])
    return float(text.split()[-1]), memory


def run_tssa(
    build: Path, model: Path, feeds: Path, level: int, repeat: int
) -> tuple[float, float]:
    command = [build / "tssa-run", model, "-q", "-t", "1", "-O", level, "-r", repeat]
    text, memory = run([*command, "--input", feeds])
    return float(re.search(r"min ([\d.]+) ms", text)[1]), memory


def best(samples: list[tuple[float, float]]) -> tuple[float, float]:
    return min(t for t, _ in samples), min(m for _, m in samples)


def compare(old: tuple[float, float], new: tuple[float, float]) -> tuple[str, bool]:
    slow = new[0] > 1.15 * old[0] + SLACK_MS
    large = new[1] > 1.5 * old[1] + 64
    text = f"{old[0]:10.3f} {new[0]:10.3f} {old[0] / new[0]:7.2f}x{'!' if slow else ' '}"
    return text + f"{old[1]:7.0f} {new[1]:6.0f}{'!' if large else ' '}", slow or large


def measure(
    build: Path, folder: Path, original: Path, rewritten: Path, feeds: Path, ort: bool
) -> bool:
    samples: list[list] = [[], [], [], []]
    for _ in range(ROUNDS):
        if ort:
            samples[0].append(run_ort(original, feeds, folder / "old.npz"))
            samples[1].append(run_ort(rewritten, feeds, folder / "new.npz"))
        repeat = 1 if samples[2] and samples[2][0][0] > 100 else 20
        samples[2].append(run_tssa(build, original, feeds, 0, repeat))
        samples[3].append(run_tssa(build, original, feeds, 2, repeat))
        if sum(s[-1][0] for s in samples if s) > 4000:
            break
    texts, wrong = [f"{'':38}"] if not ort else [], False
    if ort:
        old, new = np.load(folder / "old.npz"), np.load(folder / "new.npz")
        for k in old.files:
            if old[k].size:  # of nothing, ONNX Runtime does not tell the shape
                np.testing.assert_allclose(new[k], old[k], rtol=1e-3, atol=1e-3)
    for k in (0, 2) if ort else (2,):
        text, beyond = compare(best(samples[k]), best(samples[k + 1]))
        texts.append(text)
        wrong |= beyond
    print(" | ".join(texts), flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--trips", type=int, nargs="+", default=TRIPS)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument(
        "--known", action="store_true", help="the model knows the size of a row"
    )
    options = parser.parse_args()
    if unknown := set(options.programs) - set(PROGRAMS):
        parser.error(f"no program is called {', '.join(sorted(unknown))}")
    columns = f"{'before':>10} {'after':>10} {'ratio':>8} {'MiB':>7} {'after':>6} "
    print(
        f"{'program':12} {'rows':>6} {'trips':>7} "
        f"| {'ONNX Runtime: ' + columns} | {'tssa: ' + columns}"
    )
    wrong = 0
    for name in options.programs:
        program = PROGRAMS[name]
        for rows in options.rows:
            with tempfile.TemporaryDirectory() as at:
                folder = Path(at)
                original, rewritten = folder / "original.onnx", folder / "rewritten.onnx"
                onnx.save(model_of(program, rows if options.known else None), original)
                run([options.build / "tssa-opt", original, rewritten, "-q"])
                for trips in options.trips:
                    work = trips * rows * program.work
                    if work > MOST_ELEMENTS:
                        continue
                    feeds = folder / "feeds.npz"
                    if (child := os.fork()) == 0:  # whose memory runs do not start with
                        np.savez(feeds, **inputs_of(program, rows, trips))
                        os._exit(0)
                    os.waitpid(child, 0)
                    print(f"{name:12} {rows:6} {trips:7}", end=" | ")
                    ort = copied(program, rows, trips) < 5e9
                    wrong += measure(options.build, folder, original, rewritten, feeds, ort)
    print(f"{wrong} beyond a bound")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
