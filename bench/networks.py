#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole networks in tssa, ONNX Runtime and OpenVINO on the CPU, in alternating blocks.

    bench/networks.py                                those of build/networks (`make networks`)
    bench/networks.py resnet bert                    whose names hold a word
    bench/networks.py --models DIR... --threads 1    folders of models with data
    bench/networks.py --record bench/results/2026-01-31-networks

It wants the Python of build/peers-venv.  Each network has a process of its own.  Every
engine gets the same input memory; outputs must agree with ONNX Runtime's within 1e-3 of
the largest element (of float16 2e-2; of quantized networks the largest element must be
the same), those of detectors in any order, but for one in fifty: of two with nearly the same
score the other one may be kept.

Columns: milliseconds per run, the least and the median; the ratios of the least to
ONNX Runtime's (below 1: tssa is faster) and to OpenVINO's; `create` until a session is
made, `first` until its first result is there; `peak` the memory that a process of its own
takes for the engine and the model, in MiB.  With --record a chart of the ratios lies beside
the table, where matplotlib is installed.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import network_chart  # noqa: E402
import versus_ort as versus  # noqa: E402

ENGINES = ("tssa", "ort", "openvino")
LEAST_RUNS = 18
NEAR, NEAR_HALF = 1e-3, 2e-2
FEW = 0.02  # of detections


class OpenVino:
    """The model as it is, in full precision, tuned for latency."""

    def __init__(self, path: Path, threads: int, inputs: dict[str, np.ndarray]):
        import openvino

        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
        }
        self.compiled = openvino.Core().compile_model(str(path), "CPU", settings)
        self.request = self.compiled.create_infer_request()
        used = {name for port in self.compiled.inputs for name in port.get_names()}
        self.arrays = {name: array for name, array in inputs.items() if name in used}
        for name, array in self.arrays.items():
            self.request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def call(self):
        return lambda: self.request.infer(share_outputs=True)

    def results(self) -> list:
        self.request.infer()
        ports = range(len(self.compiled.outputs))
        return [self.request.get_output_tensor(k).data.copy() for k in ports]


class Ort(versus.Ort):
    def call(self):
        if self.tensors:
            self.bind()
        return super().call()


def make(engine: str, args, path: Path, inputs: dict[str, np.ndarray]):
    if engine == "ort":
        return Ort(path, args.child, inputs)
    if engine == "openvino":
        return OpenVino(path, args.child, inputs)
    from tssa_ctypes import Library

    relaxed = int(args.precision == "relaxed")
    library = Library(args.library)
    return versus.Tssa(library, path, args.child, inputs, compile=True, precision=relaxed)


def call_of(engine: str, made):
    """tssa keeps its outputs, as the others do, where all of them are tensors."""
    if engine != "tssa":
        return made.call()
    tensors = all(isinstance(value, np.ndarray) for value in made.results())
    return made.call(tensors)


# ---- Do they agree? ------------------------------------------------------------------


def kind_of(folder: Path) -> str:
    """The network's class; of a folder that is none of ours, what its operators tell, or ''."""
    import onnx

    about = folder / "network.json"
    if about.exists():
        return json.loads(about.read_text())["kind"]
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    return "quantized" if any(n.op_type == "QuantizeLinear" for n in model.graph.node) else ""


def without_partner(ours: np.ndarray, theirs: np.ndarray, far: float) -> int:
    """How many of ours are near none of theirs, each of which is near one at most."""
    a, b = np.sort(ours, axis=None), np.sort(theirs, axis=None)
    alone = k = 0
    for value in a:
        while k < b.size and b[k] < value - far:
            k += 1
        if k < b.size and b[k] <= value + far:
            k += 1
        else:
            alone += 1
    return alone


def differ_detections(ours: np.ndarray, theirs: np.ndarray, near: float) -> str | None:
    """In any order; of some with nearly the same score an engine may keep the other one."""
    far = near * float(np.abs(theirs).max(initial=0)) if ours.dtype.kind == "f" else 0
    alone = without_partner(ours, theirs, far)
    return None if alone <= FEW * ours.size else f"{alone} of {ours.size} are others"


def differs(kind: str, ours, theirs) -> str | None:
    """Where two outputs differ by more than engines may, else None."""
    if not isinstance(ours, np.ndarray) or not isinstance(theirs, np.ndarray):
        return versus.difference(ours, theirs)
    if ours.shape != theirs.shape:
        return f"{ours.shape} is not {theirs.shape}"
    if kind == "quantized":
        same = ours.size == 0 or np.argmax(ours) == np.argmax(theirs)
        return None if same else "the largest element is another one"
    near = NEAR_HALF if ours.dtype == np.float16 else NEAR
    if kind == "detector" and ours.dtype.kind in "fiu":
        return differ_detections(ours, theirs, near)
    if ours.dtype.kind != "f":
        return None if np.array_equal(ours, theirs) else "integers differ"
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    far = float(np.abs(a - b).max(initial=0))
    scale = float(np.abs(b).max(initial=0))
    return None if far <= near * scale else f"differs by {far:.2g} of {scale:.2g}"


# ---- One process: one network --------------------------------------------------------


def ready(engine: str, args, path: Path, inputs) -> tuple[object, dict[str, float]]:
    start = time.perf_counter()
    made = make(engine, args, path, inputs)
    created = time.perf_counter()
    made.results()
    first = time.perf_counter()
    return made, {"create_ms": (created - start) * 1e3, "first_ms": (first - start) * 1e3}


def expected(args, path: Path, kind: str, inputs, made) -> list | None:
    """What results are compared with.  ONNX Runtime's optimizations multiply bytes in pairs
    that saturate where a processor has no VNNI; without them it computes quantized models in
    floats."""
    if "ort" not in made:
        return None
    if kind == "quantized":
        return Ort(path, args.child, inputs, optimize=False).results()
    return made["ort"].results()


def measure(args, folder: Path) -> dict:
    path, inputs, kind = folder / "model.onnx", versus.inputs_of(folder), kind_of(folder)
    row = {"model": folder.name, "kind": kind, "threads": args.child, "cannot": {}}
    made = {}
    for engine in args.engines:
        try:
            made[engine], row[engine] = ready(engine, args, path, inputs)
        except Exception as error:  # each engine has its own
            if engine != "openvino":
                raise
            row["cannot"][engine] = str(error).strip().splitlines()[-1][:200]
    theirs = expected(args, path, kind, inputs, made)
    for engine in [e for e in made if theirs is not None and e != "ort"]:
        for k, (a, b) in enumerate(zip(made[engine].results(), theirs)):
            if found := differs(kind, a, b):
                row["cannot"][engine] = f"output {k}: {found}"
    calls = {engine: call_of(engine, made[engine]) for engine in made}
    blocks = versus.time_in_turn(calls, args.seconds, LEAST_RUNS)
    for engine in made:
        row[engine] |= versus.summary(blocks[engine])
    return row


def peak(args, folder: Path) -> dict:
    """What one engine takes, its library included, beside what Python and numpy have anyway."""
    # What finds the inputs loads the model, and leaves memory that engines take for nothing.
    with multiprocessing.get_context("fork").Pool(1) as pool:
        inputs = pool.apply(versus.inputs_of, (folder,))
    before = memory("VmRSS")
    made = make(args.peak, args, folder / "model.onnx", inputs)
    for _ in range(3):
        made.results()
    return {"peak_mib": memory("VmHWM") - before}


def memory(which: str) -> float:
    """VmRSS: what this process has; VmHWM: the most that it had.  (getrusage's most is also
    what the process that started it had.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(which)) / 1024


def child(args) -> int:
    folder = args.models[0]
    try:
        row = peak(args, folder) if args.peak else measure(args, folder)
    except Exception as error:
        text = str(error).strip().splitlines()
        row = {"model": folder.name, "error": text[0] if text else type(error).__name__}
    print(json.dumps(row), flush=True)
    return 0


# ---- The parent ----------------------------------------------------------------------

HEAD = (
    "| network | threads | tssa least, median | ORT | OpenVINO | tssa / ORT | tssa / OpenVINO "
    "| create, first: tssa | ORT | peak: tssa, ORT |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def ratio(row: dict, other: str) -> float | None:
    if other in row["cannot"] or "min" not in row.get(other, {}) or "tssa" in row["cannot"]:
        return None
    return row["tssa"]["min"] / row[other]["min"]


def times(row: dict, engine: str) -> str:
    if engine not in row and engine not in row["cannot"]:
        return ""
    if engine in row["cannot"] or "min" not in row.get(engine, {}):
        return "cannot"
    values = (versus.figure(row[engine][key] / 1e3) for key in ("min", "median"))
    return ", ".join(values)


def table_row(row: dict) -> str:
    if "error" in row:
        return f"| {row['model']} | | {row['error']} |||||||||"
    shares = [ratio(row, other) for other in ("ort", "openvino")]
    made = [
        f"{versus.figure(row[e]['create_ms'])}, {versus.figure(row[e]['first_ms'])}"
        if e in row
        else ""
        for e in ("tssa", "ort")
    ]
    peaks = ", ".join(f"{row.get('peak', {}).get(e, math.nan):.0f}" for e in ("tssa", "ort"))
    cells = [row["model"], str(row["threads"]), *(times(row, e) for e in ENGINES)]
    cells += ["" if share is None else f"{share:.2f}" for share in shares] + made + [peaks]
    return f"| {' | '.join(cells)} |"


def command(args, threads: int, folder: Path) -> list[str]:
    words = [sys.executable, __file__, "--child", threads, "--seconds", args.seconds]
    words += ["--library", args.library, "--precision", args.precision]
    words += ["--models", folder, "--engines", *args.engines]
    return [str(word) for word in words]


def measure_all(args, folders: list[Path], about: dict) -> list[dict]:
    """What is recorded is recorded after each network, so that nothing is lost."""
    rows = []
    for threads in args.threads:
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        for folder in folders:
            given = command(args, threads, folder)
            row = versus.rows_of(given, environment)[0]
            if args.peaks and "error" not in row:
                row["peak"] = {
                    engine: versus.rows_of([*given, "--peak", engine], environment)[0].get(
                        "peak_mib", math.nan
                    )
                    for engine in ("tssa", "ort")
                }
            rows.append(row)
            print(table_row(row), flush=True)
            if args.record:
                record(args, about, rows)
    return rows


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def summaries(rows: list[dict]) -> list[str]:
    """Of each class and number of threads: the geometric mean and the worst."""
    lines = [
        "| class | threads | networks | tssa / ORT, mean | worst | tssa / OpenVINO, mean |"
    ]
    lines.append("|---|--:|--:|--:|---|--:|")
    good = [row for row in rows if "error" not in row and ratio(row, "ort")]
    groups = sorted({(row["kind"], row["threads"]) for row in good})
    for kind, threads in groups:
        members = [r for r in good if (r["kind"], r["threads"]) == (kind, threads)]
        worst = max(members, key=lambda row: ratio(row, "ort"))
        against = [ratio(row, "openvino") for row in members]
        against = [share for share in against if share]
        mean = f"{geometric_mean(against):.2f}" if against else ""
        lines.append(
            f"| {kind or 'other'} | {threads} | {len(members)} "
            f"| {geometric_mean([ratio(row, 'ort') for row in members]):.2f} "
            f"| {worst['model']} {ratio(worst, 'ort'):.2f} | {mean} |"
        )
    return lines


def refusals(rows: list[dict]) -> list[str]:
    return [
        f"- {row['model']}, {engine}: {why}"
        for row in rows
        for engine, why in row.get("cannot", {}).items()
    ]


def record(args, about: dict, rows: list[dict]) -> None:
    versus.note_load(about, rows)
    versus.write_json(args.record, {"machine": about, "rows": rows})
    lines = [
        f"# Whole networks in tssa, ONNX Runtime and OpenVINO on the CPU, {about['date']}",
        "",
        f"tssa {about['tssa']}, ONNX Runtime {about['onnxruntime']}; {about['cpu']}, "
        f"{about['cores']} cores, {about['system']}. Load average while measuring: "
        f"{about['load_average'][0]:.1f} to {about['load_average'][1]:.1f}.",
        "",
        "Made by `bench/networks.py --record`, which says what the columns are.",
        "",
        *summaries(rows),
        "",
        HEAD,
        *map(table_row, rows),
    ]
    lines += ["", *refusals(rows)]
    args.record.with_suffix(".md").write_text("\n".join(lines) + "\n")
    bars = [
        (row, ratio(row, "ort"), ratio(row, "openvino")) for row in rows if "error" not in row
    ]
    network_chart.draw(bars, args.record.with_suffix(".png"))


def main() -> int:
    parser = versus.arguments(__doc__)
    parser.set_defaults(models=[versus.ROOT / "build/networks"], seconds=2.0)
    parser.add_argument(
        "--library", type=Path, default=versus.ROOT / "build/release/libtssa.so"
    )
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument(
        "--precision", choices=("exact", "relaxed"), default="exact", help="of tssa's sessions"
    )
    parser.add_argument("--no-peaks", dest="peaks", action="store_false", help="of memory")
    parser.add_argument("--peak", choices=ENGINES, help=versus.argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args)
    folders = versus.find_models(args)
    if not folders:
        parser.error("no such networks; `make networks` builds them")
    about = versus.machine()
    print(HEAD, flush=True)
    rows = measure_all(args, folders, about)
    print("", *summaries(rows), "", *refusals(rows), sep="\n")
    failed = sum("error" in row or "tssa" in row.get("cannot", {}) for row in rows)
    print(f"{len(rows) - failed} measured, {failed} not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
