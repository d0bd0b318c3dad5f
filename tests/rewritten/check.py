#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what tssa-opt writes still run as before in ONNX Runtime?

    check.py TSSA_OPT FOLDER...

Below every FOLDER, a model is NAME.onnx or NAME/model.onnx; data sets are the folders
beside it: test_data_set_K with input_K.pb and output_K.pb, or any with in_K.npy and
out_K.npy.  A model that ONNX Runtime runs with the expected results (without expected
results: that it runs, on inputs made up here) is rewritten with `tssa-opt --check 1` and
must then give the same.  Models that ONNX Runtime does not run are only rewritten.  What has
functions is rewritten once more with --keep-functions: these must be the same after it.

The last line is `N passed, N failed, N skipped`; skipped are models that tssa does not load.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

RTOL, ATOL = 1e-3, 1e-5
NOT_LOADED = 3  # exit status of tssa-opt: the model is malformed
NOT_CHECKED = (
    7  # the same: written, but tssa could not compare anything; ONNX Runtime still does
)
UNKNOWN_DIM = 4


def number_of(path: Path) -> int:
    return int(path.stem.rsplit("_", 1)[1])


def read_value(path: Path):
    if path.suffix == ".npy":
        return np.load(path)
    content = path.read_bytes()
    for kind, convert in (
        (onnx.TensorProto, numpy_helper.to_array),
        (onnx.SequenceProto, numpy_helper.to_list),
        (onnx.OptionalProto, numpy_helper.to_optional),
    ):
        message = kind()
        try:
            message.ParseFromString(content)
            return convert(message)
        except Exception:
            continue
    raise ValueError(f"{path.name} holds no value")


def read_values(folder: Path, patterns: tuple[str, str]) -> list:
    files = [path for pattern in patterns for path in folder.glob(pattern)]
    return [read_value(path) for path in sorted(files, key=number_of)]


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])


def made_up(model: onnxruntime.InferenceSession) -> dict:
    """Inputs for a model without data: unknown dims and integer scalars are 4."""
    generator, inputs = np.random.default_rng(0), {}
    for i in model.get_inputs():
        shape = [d if isinstance(d, int) else UNKNOWN_DIM for d in i.shape]
        if i.type == "tensor(float)":
            inputs[i.name] = generator.uniform(-1, 1, shape).astype(np.float32)
        elif i.type == "tensor(int64)":
            inputs[i.name] = np.full(shape, 0 if shape else UNKNOWN_DIM, np.int64)
        elif i.type == "tensor(bool)":
            inputs[i.name] = np.ones(shape, bool)
        else:
            raise ValueError(f"input {i.name} is a {i.type}")
    return inputs


def data_sets(
    model: onnxruntime.InferenceSession, path: Path
) -> list[tuple[dict, list | None]]:
    """(inputs by name, expected outputs) of each data set."""
    names, sets = [i.name for i in model.get_inputs()], []
    folders = sorted(p for p in path.parent.iterdir() if p.is_dir())
    meta = path.parent / "meta.json"
    if meta.exists():  # says which inputs the files are
        names = [i["name"] for i in json.loads(meta.read_text())["sets"][0]["inputs"]]
    for folder in folders if path.name == "model.onnx" else []:
        values = read_values(folder, ("input_*.pb", "in_[0-9]*.npy"))
        outputs = read_values(folder, ("output_*.pb", "out_[0-9]*.npy"))
        if outputs:
            inputs = {n: v for n, v in zip(names, values) if v is not None}
            sets.append((inputs, outputs))
    return sets or [(made_up(model), None)]


def difference(actual, expected) -> str | None:
    if expected is None or actual is None:
        return None if actual is expected else "one of them is empty"
    if isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            return f"{len(actual)} elements, not {len(expected)}"
        found = (difference(a, e) for a, e in zip(actual, expected))
        return next((f for f in found if f), None)
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, not {expected.shape}"
    if expected.dtype.kind in "fc":
        if np.allclose(actual, expected, rtol=RTOL, atol=ATOL, equal_nan=True):
            return None
        with np.errstate(all="ignore"):
            return f"off by up to {np.nanmax(np.abs(actual - expected)):.3g}"
    return None if np.array_equal(actual, expected) else "integers differ"


def run(path: Path, sets: list | None):
    """The outputs for every data set; and the data sets."""
    model = session(path)
    sets = sets or data_sets(model, path)
    return [model.run(None, inputs) for inputs, _ in sets], sets


def definitions(path: Path) -> list[bytes]:
    functions = onnx.load(path, load_external_data=False).functions
    return [f.SerializeToString(deterministic=True) for f in functions]


def is_valid(path: Path) -> bool:
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception:
        return False
    return True


def kept_badly(tool: str, path: Path, target: Path) -> str | None:
    """What is wrong with `target`, which was written with --keep-functions."""
    if is_valid(path) and not is_valid(target):
        return "--keep-functions: onnx.checker does not take it any more"
    if definitions(path) != definitions(target):
        return "--keep-functions: the functions are not what they were"
    again = target.with_name("again.onnx")
    subprocess.run([tool, "--quiet", "--keep-functions", target, again], check=True)
    if target.read_bytes() != again.read_bytes():
        return "--keep-functions: written again, it is another file"
    return None


def same_results(path: Path, sets: list, before: list) -> tuple[str, str]:
    try:
        after, _ = run(path, sets)
    except Exception as error:
        return "fail", "ONNX Runtime: " + (str(error).splitlines() or ["?"])[0]
    for a, b, (_, expected) in zip(after, before, sets):
        if found := difference(a, b if expected is None else expected):
            return "fail", found
    return "pass", ""


def rewrite(
    tool: str, path: Path, folder: Path, kept: bool, sets: list | None, before: list | None
) -> tuple[str, str]:
    target = folder / "model.onnx"
    options = ["--keep-functions"] if kept else []
    command = [tool, "--quiet", "--check", "1", *options, path, target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    message = (done.stderr.strip().splitlines() or [""])[-1]
    if done.returncode == NOT_LOADED:
        return "skip", message
    if done.returncode not in (0, NOT_CHECKED):
        return "fail", f"exit status {done.returncode}: {message}"
    if kept and (wrong := kept_badly(tool, path, target)):
        return "fail", wrong
    if before is None:
        return "pass", "ONNX Runtime did not run the original"
    return same_results(target, sets, before)


def check(tool: str, path: Path) -> tuple[str, str]:
    """("pass" | "fail" | "skip", why)"""
    sets, before = None, None
    try:
        before, sets = run(path, None)
        if any(e is not None and difference(b, e) for b, (_, e) in zip(before, sets)):
            before = None
    except Exception:
        before = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outcome = rewrite(tool, path, folder, False, sets, before)
        if outcome[0] == "pass" and definitions(path):
            outcome = rewrite(tool, path, folder, True, sets, before)
    return outcome


def check_one(job: tuple[str, str]) -> tuple[str, str]:
    try:
        return check(job[0], Path(job[1]))
    except Exception as error:
        return "fail", f"{type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tool", metavar="TSSA_OPT")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--filter", default="", help="only models whose path holds this")
    args = parser.parse_args()
    models = sorted(
        str(path)
        for folder in args.folders
        for path in folder.rglob("*.onnx")
        if args.filter in str(path)
    )
    tool = str(Path(args.tool).resolve())
    counts = {"pass": 0, "fail": 0, "skip": 0}
    unrun = 0
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        jobs = [(tool, model) for model in models]
        for model, (outcome, why) in zip(models, pool.map(check_one, jobs, chunksize=16)):
            counts[outcome] += 1
            unrun += outcome == "pass" and bool(why)
            if outcome == "fail":
                print(f"FAIL {model}: {why}", flush=True)
    print(f"{unrun} of the passed are models that ONNX Runtime does not run as expected")
    print(f"{counts['pass']} passed, {counts['fail']} failed, {counts['skip']} skipped")
    return 1 if counts["fail"] or not models else 0


if __name__ == "__main__":
    sys.exit(main())
