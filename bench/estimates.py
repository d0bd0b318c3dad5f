# SPDX-License-Identifier: Apache-2.0
"""How far the estimates of kernels (src/gir/estimate.h) are from what they take.

    build/venv/bin/python bench/estimates.py
    build/venv/bin/python bench/estimates.py --record bench/results/2026-01-31-estimates.md

Kernels of models in build/models, and of one or a few operators, whose sizes are the same in
every run. Each model is run by tssa-run on one thread, several times; of a kernel counts the
least mean of these, or, where there is nothing else in the model, the least run, and what
`--remarks=gir` says of it. TSSA_ISA=v3 in the environment: AVX2.
"""

import argparse
import json
import math
import os
import re
import subprocess
import tempfile
from pathlib import Path

import onnx
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "build" / "models"
UNITS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}
REMARK = re.compile(r"\[gir\] (?P<name>fuse \(node .*?\)): (?P<text>.*)")
LEAST_RUN = re.compile(r"runs: min ([\d.]+) ms")
TOLD = 2  # microseconds: what is longer is more than what is around it
ABOUT = re.compile(r"; about ([\d.e+]+) (\w+), ")
# Memory is kept from run to run.
LARGE = 2**32 - 1
KEEP = f"glibc.malloc.mmap_threshold={LARGE}:glibc.malloc.trim_threshold={LARGE}"

WORKLOADS = """ssd_loop yolact_loop yolov3_loop fcos_loop lstm nasrnn attention seq2seq_50
               normalize t_dataflow multiscale_bbox""".split()

# Operators of x, one after the other, and the shapes of x.
CHAINS = [
    ("Sigmoid Mul", [[256], [64, 1000], [1000, 1000], [2500, 2000]]),
    ("Relu Neg", [[256], [64, 1000], [1000, 1000], [2500, 2000]]),
    ("Sqrt Reciprocal", [[64, 1000]]),
    ("Erf Mul", [[64, 1000]]),
    ("Softmax", [[2400, 4], [2400, 16], [1000, 81], [256, 1000], [64, 4096]]),
    ("Softmax Neg", [[2400, 8], [512, 512]]),
    ("ReduceMax", [[2400, 4], [300, 10], [2400, 16], [8400, 80], [1000, 100]]),
    ("ReduceSum", [[2400, 4], [300, 10], [2400, 16], [8400, 80], [1000, 100]]),
    ("ArgMax", [[2400, 4], [2400, 16], [8400, 80], [3136, 384], [256, 512]]),
    ("LpNormalization", [[256, 768], [64, 4096]]),
    ("Neg ReduceColumns", [[400, 80], [200, 2000]]),
]


def make_node(op, value, result):
    if op == "Mul":
        return helper.make_node(op, [value, "x"], [result], name=result)
    if op == "ReduceColumns":
        return helper.make_node("ReduceSum", [value, "first"], [result], name=result)
    if op in ("ReduceMax", "ReduceSum"):
        return helper.make_node(op, [value, "last"], [result], name=result)
    attributes = {"axis": -1} if op == "ArgMax" else {}
    return helper.make_node(op, [value], [result], name=result, **attributes)


def make_chain(chain, shape, path):
    ops = chain.split()
    values = ["x"] + [f"v{i}" for i in range(len(ops))]
    nodes = [make_node(op, values[i], values[i + 1]) for i, op in enumerate(ops)]
    axes = {"first": 0, "last": -1}
    constants = [helper.make_tensor(n, TensorProto.INT64, [1], [k]) for n, k in axes.items()]
    out = TensorProto.INT64 if ops[-1] == "ArgMax" else TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info(values[-1], out, None)]
    graph = helper.make_graph(nodes, "chain", inputs, outputs, constants)
    opset = helper.make_opsetid("", 21)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=10), path)


def run(arguments, model, data):
    """What tssa-run says, and the events of its profile."""
    with tempfile.NamedTemporaryFile(suffix=".json") as trace:
        command = [arguments.program, str(model), *data, "--threads=1", "--compile=wait"]
        command += ["--remarks=gir", f"--repeat={arguments.repeat}", f"--profile={trace.name}"]
        environment = {**os.environ, "GLIBC_TUNABLES": KEEP}
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        )
        with open(trace.name) as file:
            events = json.load(file)
    return done.stdout, events if isinstance(events, list) else events["traceEvents"]


def measured(text, events, alone):
    """Means by the kernel's name, in the order of steps; of one by itself, the least run."""
    by_name = {}
    for event in events:
        if event.get("name", "").startswith("fuse (") and event.get("args", {}).get("count"):
            by_name.setdefault(event["name"], []).append(event["args"]["mean_us"])
    least_run = float(LEAST_RUN.search(text)[1]) * UNITS["ms"]
    if alone and least_run > TOLD:
        by_name = {name: [min(least_run, *means)] for name, means in by_name.items()}
    return by_name


def estimated(text):
    """What is said, by the kernel's name, in the same order."""
    by_name = {}
    for line in text.splitlines():
        match = REMARK.search(line)
        if match:
            times = re.search(r" \((\d+) times\)$", line)
            said = [match["text"]] * (int(times[1]) if times else 1)
            by_name.setdefault(match["name"], []).extend(said)
    return by_name


def compare(arguments, title, model, data):
    """Rows: title, kernel, form and extent, estimate, least that was measured."""
    least, rows, seen = {}, [], set()
    for _ in range(arguments.runs):
        text, events = run(arguments, model, data)
        for name, means in measured(text, events, not data).items():
            for i, mean in enumerate(means):
                least[name, i] = min(mean, least.get((name, i), math.inf))
    for name, all_said in estimated(text).items():
        for i, said in enumerate(all_said):
            if "for what a run tells" in said or (name, i) not in least or said in seen:
                continue
            seen.add(said)
            number, unit = ABOUT.search(said).groups()
            node = name.removeprefix("fuse (node ").removesuffix(")").strip('"')
            form = said.split(": reads")[0]
            rows.append((title, node, form, float(number) * UNITS[unit], least[name, i]))
    return rows


def table(rows):
    lines = [
        "| | kernel | form, rows by elements | estimate | measured | estimate / measured |"
    ]
    lines.append("|---|---|---|--:|--:|--:|")
    for title, name, form, time, took in rows:
        ratio = time / took
        lines.append(f"| {title} | {name} | {form} | {time:.3g} | {took:.3g} | {ratio:.2f} |")
    return "\n".join(lines)


def summary(rows):
    logs = [abs(math.log(time / took)) for *_, time, took in rows]
    within = {factor: sum(x <= math.log(factor) for x in logs) for factor in (1.5, 2)}
    mean, most = math.exp(sum(logs) / len(logs)), math.exp(max(logs))
    return (
        f"{len(rows)} kernels: {within[2]} within a factor of 2, {within[1.5]} of 1.5; "
        f"off by {mean:.2f} in the geometric mean, by {most:.2f} at most"
    )


def wanted(arguments, title):
    return not arguments.only or any(part in title for part in arguments.only)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "tssa-run"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=100, help="runs of each")
    parser.add_argument(
        "--only", nargs="*", help="models and operators with this in their name"
    )
    parser.add_argument("--record", type=Path)
    arguments = parser.parse_args()
    rows = []
    for name in filter(lambda name: wanted(arguments, name), WORKLOADS):
        folder = MODELS / name
        data = [str(folder / "test_data_set_0")]
        rows += compare(arguments, name, folder / "model.onnx", data)
    with tempfile.TemporaryDirectory() as folder:
        for chain, shapes in CHAINS:
            for shape in shapes if wanted(arguments, chain) else []:
                path = Path(folder) / "chain.onnx"
                make_chain(chain, shape, path)
                rows += compare(arguments, chain, path, [])
    text = f"{summary(rows)}\n\n{table(rows)}\n"
    print(text)
    if arguments.record:
        arguments.record.write_text(text)


if __name__ == "__main__":
    main()
