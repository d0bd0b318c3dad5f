# SPDX-License-Identifier: Apache-2.0
"""The rows of onnx/hazards.def in ONNX Runtime, with and without the way around.

With it a rewritten model gives the original's results, to the bit. Without it the model is
refused or wrong; when it is not, this version of the runtime needs no such row: a failure, too.
Of what is slow alone the operators of both files are looked at; --time says how long they take.

Usage: check.py TSSA_OPT [--time]
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from models import MODELS, SLOW


def rows(opt: str) -> list[tuple[str, str]]:
    """Names of the hazards, and of their models."""
    listing = subprocess.run(
        [opt, "--print-hazards=markdown"], capture_output=True, text=True, check=True
    ).stdout
    names = re.findall(r"^## (\w+)$", listing, re.MULTILINE)
    models = re.findall(r"^- \*model\*: `(\w+)`", listing, re.MULTILINE)
    return list(zip(names, models, strict=True))


def run_here(path: Path, feeds: Path, optimized: bool) -> None:
    """Writes the outputs beside the model; in a process of its own, which may die."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    with np.load(feeds) as stored:
        results = session.run(None, dict(stored))
    for k, result in enumerate(results):
        if not isinstance(result, np.ndarray):
            sys.exit(f"output {k} is {result}")
    np.savez(path.with_suffix(".npz"), *results)


def run(path: Path, feeds: Path, optimized: bool) -> list[np.ndarray] | str:
    """The outputs, or why there are none."""
    arguments = ["--run", str(path), str(feeds), "optimized" if optimized else "plain"]
    try:
        done = subprocess.run(
            [sys.executable, __file__, *arguments], capture_output=True, text=True, timeout=120
        )
    except subprocess.TimeoutExpired:
        return "it takes more than two minutes"
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    with np.load(path.with_suffix(".npz")) as stored:
        return [stored[name] for name in stored.files]


def difference(got: list[np.ndarray] | str, want: list[np.ndarray]) -> str | None:
    if isinstance(got, str):
        return got
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
            return f"output {k} is {a.ravel()[:4]}, not {b.ravel()[:4]}"
    return None


def rewritten(opt: str, original: Path, feeds: Path, options: list[str]) -> str | None:
    """What is wrong with the rewritten model in ONNX Runtime; None: nothing."""
    want = run(original, feeds, optimized=False)
    if isinstance(want, str):
        return f"the original: {want}"
    out = original.with_name("rewritten.onnx")
    done = subprocess.run(
        [opt, str(original), str(out), "-q", *options], capture_output=True, text=True
    )
    if done.returncode:
        return f"tssa-opt: {done.stderr.strip()}"
    for optimized in (False, True):
        if wrong := difference(run(out, feeds, optimized), want):
            return wrong
    return None


def nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Those of its blocks included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from nodes(attribute.g)


def check_slow(opt: str, name: str, original: Path, feeds: Path) -> list[str]:
    failures, times = [], []
    for operator, other, options in (
        (*SLOW[name], []),
        (*reversed(SLOW[name]), [f"--keep-hazard={name}"]),
    ):
        if wrong := rewritten(opt, original, feeds, options):
            failures.append(wrong)
            continue
        written = onnx.load(original.with_name("rewritten.onnx"))
        operators = {node.op_type for node in nodes(written.graph)}
        if operator not in operators or other in operators:
            failures.append(f"{operators}: not {operator} alone")
        if "--time" in sys.argv:
            times.append(seconds(original.with_name("rewritten.onnx"), feeds))
    if len(times) == 2:
        print(
            f"{name}: {times[0] * 1e6:.0f} us; without the way around {times[1] * 1e6:.0f} us"
        )
    return failures


def seconds(path: Path, feeds: Path) -> float:
    """The least of some runs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    with np.load(feeds) as stored:
        inputs = dict(stored)
    taken = []
    for _ in range(20):
        start = time.perf_counter()
        session.run(None, inputs)
        taken.append(time.perf_counter() - start)
    return min(taken)


def check(opt: str, name: str, example: str) -> list[str]:
    """What does not hold of one row."""
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        original, feeds = Path(folder, "model.onnx"), Path(folder, "feeds.npz")
        model, inputs = MODELS[example]()
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, original)
        np.savez(feeds, **inputs)
        if name in SLOW:
            return check_slow(opt, name, original, feeds)
        if wrong := rewritten(opt, original, feeds, []):
            failures.append(f"the way around does not do: {wrong}")
        wrong = rewritten(opt, original, feeds, [f"--keep-hazard={name}"])
        if wrong is None:
            version = onnxruntime.__version__
            failures.append(
                f"not needed: ONNX Runtime {version} is right without the way around"
            )
        elif wrong.startswith("tssa-opt:"):
            failures.append(wrong)
        else:
            print(f"{name}: without the way around: {wrong[:140]}", flush=True)
    return failures


def main() -> int:
    if sys.argv[1] == "--run":
        run_here(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4] == "optimized")
        return 0
    opt, passed, failed = sys.argv[1], 0, 0
    table = rows(opt)
    for example in sorted(set(MODELS) - {model for _, model in table}):
        print(f"FAIL {example}: a model of no hazard")
        failed += 1
    for name, example in table:
        failures = check(opt, name, example) if example in MODELS else [f"no model {example}"]
        for text in failures:
            print(f"FAIL {name}: {text}", flush=True)
        failed += len(failures)
        passed += max(0, 2 - len(failures))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
