#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times models against what tssa-opt makes of them, both in ONNX Runtime on the CPU.

    bench/rewrite.py                              the workload models of build/models
    bench/rewrite.py --models DIR... lstm ssd     those of DIR whose name holds a word
    bench/rewrite.py --record bench/results/2026-01-31-rewrite

Both files run in one process, in alternating blocks, on the same inputs, with the same
options and thread count; their outputs must agree (rtol 1e-3, atol 1e-5; integers are
identical) before anything is timed.  Each thread count has a process of its own.

Columns: microseconds per run of the original and of the rewritten file, least of all
runs, and their ratio; medians with the lowest and highest median of a block; the number
of nodes, subgraphs included, and the Loops among them, before and after; how long
tssa-opt took.  The last line is the geometric mean of the ratios over the eight
workloads, of which some have two imperative forms.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import versus_ort
from versus_ort import BLOCKS, ROOT, Ort, data_set_of, difference, figure, find_models, spread

# The programs of the eight workloads; the other models are single idioms.
WORKLOADS = ("yolov3", "ssd", "yolact", "fcos", "nasrnn", "lstm", "seq2seq", "attention")


# Further rows: a model with another value of an input.
VARIANTS = {"get_started": [("get_started, n = 1000", {"n": 1000})]}


# ---- One process: one thread count ---------------------------------------------------


def nodes(path: Path) -> dict[str, int]:
    """Operators and how many there are, subgraphs included; constants are not counted."""
    import onnx

    counts: dict[str, int] = {}

    def count(graph) -> None:
        for node in graph.node:
            if node.op_type != "Constant":
                counts[node.op_type] = counts.get(node.op_type, 0) + 1
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    count(attribute.g)

    count(onnx.load(path, load_external_data=False).graph)
    return counts


def rewrite(tool: Path, source: Path, target: Path) -> float:
    """Seconds that it took."""
    target.parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    done = subprocess.run(
        [tool, source, target, "--quiet"], capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise ValueError(f"tssa-opt: {lines[-1]}")
    return time.perf_counter() - start


def prepare(path: Path, threads: int, inputs: list, changed: dict[str, int]) -> Ort:
    import onnxruntime

    probe = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    named = dict(zip([i.name for i in probe.get_inputs()], inputs))
    named |= {name: np.array(value, named[name].dtype) for name, value in changed.items()}
    return Ort(path, threads, named)


def measure(
    tool: Path, folder: Path, threads: int, seconds: float, name: str, changed: dict[str, int]
) -> dict:
    source, target = folder / "model.onnx", ROOT / "build/rewritten" / f"{folder.name}.onnx"
    took = rewrite(tool, source, target)
    inputs = [value for _, value in versus_ort.read_inputs(data_set_of(folder))]
    engines = {
        "original": prepare(source, threads, inputs, changed),
        "rewritten": prepare(target, threads, inputs, changed),
    }
    pairs = zip(engines["rewritten"].results(), engines["original"].results())
    for k, (ours, theirs) in enumerate(pairs):
        if found := difference(ours, theirs):
            raise ValueError(f"output {k}: {found}")
    calls, runs = {}, {}
    for which, engine in engines.items():
        if engine.tensors:
            engine.bind()
        calls[which] = engine.call()
        calls[which]()
        estimate = float(np.median(versus_ort.time_block(calls[which], 5, seconds))) / 1e9
        runs[which] = max(50, int(seconds / max(estimate, 1e-7))) // BLOCKS + 1
    blocks: dict[str, list[np.ndarray]] = {which: [] for which in engines}
    gc.disable()
    for _ in range(BLOCKS):
        for which, call in calls.items():
            blocks[which].append(versus_ort.time_block(call, runs[which], 3 * seconds / BLOCKS))
    gc.enable()
    before, after = nodes(source), nodes(target)
    return {
        "model": name,
        "threads": threads,
        "original": versus_ort.summary(blocks["original"]),
        "rewritten": versus_ort.summary(blocks["rewritten"]),
        "nodes": [sum(before.values()), sum(after.values())],
        "loops": [counts.get("Loop", 0) for counts in (before, after)],
        "rewrite_seconds": took,
    }


def child(args: argparse.Namespace) -> int:
    for folder in find_models(args):
        for name, changed in [(folder.name, {}), *VARIANTS.get(folder.name, [])]:
            try:
                row = measure(args.tool, folder, args.child, args.seconds, name, changed)
            except Exception as error:  # ONNX Runtime has many of its own
                text = str(error).splitlines()[0] if str(error) else type(error).__name__
                row = {"model": name, "threads": args.child, "error": text}
            print(json.dumps(row), flush=True)
    return 0


# ---- The parent ----------------------------------------------------------------------

HEAD = (
    "| model | threads | original | rewritten | ratio | original median (spread) "
    "| rewritten median (spread) | nodes | loops | tssa-opt s |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def ratio(row: dict) -> float:
    return row["original"]["min"] / row["rewritten"]["min"]


def table_row(row: dict) -> str:
    if "error" in row:
        return f"| {row['model']} | {row['threads']} | {row['error']} ||||||||"
    middle = [spread(row[which]) for which in ("original", "rewritten")]
    return (
        f"| {row['model']} | {row['threads']} | {figure(row['original']['min'])} "
        f"| {figure(row['rewritten']['min'])} | {ratio(row):.2f} | {middle[0]} | {middle[1]} "
        f"| {row['nodes'][0]} to {row['nodes'][1]} | {row['loops'][0]} to {row['loops'][1]} "
        f"| {row['rewrite_seconds']:.2f} |"
    )


def geometric_mean(rows: list[dict], threads: int) -> str:
    ratios = [
        ratio(row)
        for row in rows
        if row["threads"] == threads
        and "error" not in row
        and row["model"].startswith(WORKLOADS)
    ]
    if not ratios:
        return ""
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return (
        f"Geometric mean over {len(ratios)} forms of the workloads, {threads} thread(s): "
        f"{mean:.2f}; least {min(ratios):.2f}."
    )


def run_children(args: argparse.Namespace) -> list[dict]:
    rows = []
    for threads in args.threads:
        command = [sys.executable, __file__, "--child", str(threads)]
        command += ["--seconds", str(args.seconds), "--tool", str(args.tool)]
        command += ["--models", *map(str, args.models), "--", *args.words]
        rows += versus_ort.rows_of(command, None, table_row)
    return rows


def record(args: argparse.Namespace, about: dict, rows: list[dict], means: list[str]) -> None:
    versus_ort.note_load(about, rows)
    versus_ort.write_json(args.record, {"machine": about, "rows": rows})
    lines = [
        f"# Rewritten by tssa-opt, run by ONNX Runtime, {about['date']}",
        "",
        f"tssa {about['tssa']}, ONNX Runtime {about['onnxruntime']}; {about['cpu']}, "
        f"{about['cores']} cores, {about['system']}. Load average while measuring: "
        f"{about['load_average'][0]:.1f} to {about['load_average'][1]:.1f}.",
        "",
        "Made by `bench/rewrite.py --record`, which says what the columns are (microseconds).",
        "",
        HEAD,
        *map(table_row, rows),
        "",
        *means,
    ]
    args.record.with_suffix(".md").write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = versus_ort.arguments(__doc__)
    parser.add_argument("--tool", type=Path, default=ROOT / "build/release/tssa-opt")
    args = parser.parse_args()
    if args.child:
        return child(args)
    if not find_models(args):
        parser.error("no such models; `make models` builds them")
    about = versus_ort.machine()
    print(HEAD, flush=True)
    rows = run_children(args)
    means = [text for t in args.threads if (text := geometric_mean(rows, t))]
    print("\n".join(means))
    if args.record:
        record(args, about, rows, means)
    failed = sum("error" in row for row in rows)
    print(f"{len(rows) - failed} measured, {failed} not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
