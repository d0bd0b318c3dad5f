#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times tssa against ONNX Runtime on the CPU, in one process, in alternating blocks.

    bench/versus_ort.py                           the workload models of build/models
    bench/versus_ort.py --models DIR... lstm ssd  those of DIR whose name holds a word
    bench/versus_ort.py --record bench/results/2026-01-31-cpu

A model is a folder with model.onnx and a folder of input_K.pb or in_K.npy (of a sequence:
in_K_J.npy).  Both engines get the same input memory and write into the outputs of their
first run; outputs must agree.  tssa has compiled its kernels before it is timed (--compile
off: runs without); what it takes to create a session leaves that out.  Each thread count has
a process of its own, because OpenMP reads its settings once.

Columns: microseconds per run.  `min` and `median` are over all runs; `spread` is the
lowest and highest median of a block; `copy` is the time to copy half of the bytes of
inputs and outputs with memmove: as much traffic as reading the inputs and writing the
outputs once, so what no runtime gets below unless it reads less.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import gc
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = 9
RTOL, ATOL = 1e-3, 1e-5


# ---- One process: one thread count ---------------------------------------------------


def data_set_of(folder: Path) -> Path | None:
    """The first folder of test data: test_data_set_0, or one of another name."""
    return min((path.parent for path in folder.glob("*/in*_0.*")), default=None)


def read_inputs(folder: Path) -> list[tuple[str, np.ndarray | list[np.ndarray]]]:
    """(name, value) of each input, a sequence as a list; the name may be empty."""
    arrays: dict[int, np.ndarray | list[np.ndarray]] = {}
    for path in sorted(folder.glob("in_*.npy"), key=numbers_of):
        index, *element = numbers_of(path)
        if element:
            arrays.setdefault(index, []).append(contiguous(np.load(path)))
        else:
            arrays[index] = contiguous(np.load(path))
    protos = sorted(folder.glob("input_*.pb"), key=numbers_of)
    return [("", array) for array in arrays.values()] + list(map(read_proto, protos))


def read_proto(path: Path) -> tuple[str, np.ndarray | list[np.ndarray]]:
    import onnx
    from onnx import numpy_helper

    content = path.read_bytes()
    tensor, sequence = onnx.TensorProto(), onnx.SequenceProto()
    try:
        tensor.ParseFromString(content)
        return tensor.name, contiguous(numpy_helper.to_array(tensor))
    except Exception:  # protobuf's own, or numpy's, of a tensor that is none
        sequence.ParseFromString(content)
        return sequence.name, list(map(contiguous, numpy_helper.to_list(sequence)))


def contiguous(array: np.ndarray) -> np.ndarray:
    return np.array(array, order="C")


def numbers_of(path: Path) -> list[int]:
    """in_3.npy is input 3; in_3_0.npy is the first element of a sequence, input 3."""
    return [int(number) for number in path.stem.split("_")[1:]]


class Ort:
    def __init__(
        self, path: Path, threads: int, inputs: dict[str, np.ndarray], optimize: bool = True
    ):
        import onnxruntime

        levels = onnxruntime.GraphOptimizationLevel
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = (
            levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
        )
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self.inputs = inputs
        self.output_names = [o.name for o in self.session.get_outputs()]
        ends = self.session.get_inputs() + self.session.get_outputs()
        self.tensors = all(end.type.startswith("tensor(") for end in ends)

    def bind(self) -> None:
        """The way to call ONNX Runtime with the least work: nothing is copied.  It takes
        tensors only, and where a model declares another shape than an output has, its second
        run refuses the memory of the first."""
        import onnxruntime

        self.binding = self.session.io_binding()
        self.values = []
        for name, array in self.inputs.items():
            value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
            self.values.append(value)
            self.binding.bind_ortvalue_input(name, value)
        for name in self.output_names:
            self.binding.bind_output(name, "cpu")
        try:
            for _ in range(2):
                self.session.run_with_iobinding(self.binding)
        except Exception:  # ONNX Runtime has many of its own
            self.tensors = False

    def call(self):
        if not self.tensors:
            return lambda: self.session.run(None, self.inputs)
        run = self.session._sess.run_with_iobinding
        binding = self.binding._iobinding
        return lambda: run(binding, None)

    def results(self) -> list:
        return self.session.run(None, self.inputs)


class Tssa:
    def __init__(
        self,
        lib,
        path: Path,
        threads: int,
        inputs: dict[str, np.ndarray],
        compile: bool = False,
        precision: int = 0,
    ):
        from tssa_ctypes import COMPILE_OFF, COMPILE_WAIT, Context, Model, Session, Value

        self.context = Context(lib, threads)
        model = Model(self.context, path)
        model.optimize(2)
        when = COMPILE_WAIT if compile else COMPILE_OFF
        self.session = Session(model, compile=when, precision=precision)
        self.inputs = [
            Value.of(self.context, inputs[name]) if name in inputs else None
            for name in model.input_names()
        ]

    def call(self, prebound: bool):
        from tssa_ctypes import Call

        return Call(self.session, self.inputs, prebound)

    def results(self) -> list:
        return [value.to_python() for value in self.session.run(self.inputs)]


def difference(ours, theirs) -> str | None:
    """Where they differ, else None."""
    if isinstance(ours, list) or isinstance(theirs, list):
        if type(ours) is not type(theirs) or len(ours) != len(theirs):
            return "sequences of different lengths"
        for a, b in zip(ours, theirs):
            if found := difference(a, b):
                return found
        return None
    if ours is None or theirs is None:
        return None if ours is theirs else "one of them is empty"
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{ours.shape} is not {theirs.dtype}{theirs.shape}"
    if np.issubdtype(ours.dtype, np.inexact):
        if not np.allclose(ours, theirs, rtol=RTOL, atol=ATOL, equal_nan=True):
            with np.errstate(invalid="ignore"):
                return f"values differ by up to {np.nanmax(np.abs(ours - theirs)):.2g}"
    elif not np.array_equal(ours, theirs):
        return "integers differ"
    return None


def time_block(call, runs: int, seconds: float) -> np.ndarray:
    """Nanoseconds of each run, after a warm-up; then waits until the threads rest. On a
    machine so busy that it takes too long, three runs are enough."""
    samples = time_runs(call, runs, seconds)
    rest()
    return samples


def warm_up(call) -> None:
    calm = time.perf_counter_ns() + 3_000_000
    warm = 0
    while warm < 2 or time.perf_counter_ns() < calm:
        call()
        warm += 1


def time_runs(call, runs: int, seconds: float) -> np.ndarray:
    warm_up(call)
    clock = time.perf_counter_ns
    samples = np.empty(runs, np.int64)
    deadline = clock() + int(seconds * 1e9)
    for i in range(runs):
        start = clock()
        call()
        samples[i] = clock() - start
        if i >= 2 and clock() > deadline:
            return samples[: i + 1]
    return samples


def rest() -> None:
    """Until the threads of this process sleep: after work they spin for their next, OpenMP's
    for 12 ms, ONNX Runtime's for 40, on a core that somebody else is timed on."""
    for _ in range(100):
        used = time.process_time()
        time.sleep(0.004)
        if time.process_time() - used < 0.0004:
            return


def summary(blocks: list[np.ndarray]) -> dict[str, float]:
    """In microseconds."""
    samples = np.concatenate(blocks) / 1e3
    medians = [float(np.median(block)) / 1e3 for block in blocks]
    return {
        "runs": len(samples),
        "min": float(samples.min()),
        "median": float(np.median(samples)),
        "p90": float(np.percentile(samples, 90)),
        "lowest_block_median": min(medians),
        "highest_block_median": max(medians),
    }


def creation(make) -> float:
    """The least milliseconds of five creations."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter_ns()
        made = make()
        best = min(best, (time.perf_counter_ns() - start) / 1e6)
        del made
    return best


def copy_time(count: int) -> float:
    """Microseconds to copy so many bytes, the better of many."""
    source, target = np.ones(max(count, 1), np.uint8), np.ones(max(count, 1), np.uint8)
    a, b = source.ctypes.data, target.ctypes.data
    runs = max(20, min(2000, 200_000_000 // max(count, 1)))
    clock, best = time.perf_counter_ns, 1 << 62
    for _ in range(runs):
        start = clock()
        ctypes.memmove(b, a, count)
        best = min(best, clock() - start)
    return best / 1e3


def nbytes(value) -> int:
    if isinstance(value, list):
        return sum(nbytes(element) for element in value)
    return 0 if value is None else value.nbytes


def inputs_of(folder: Path) -> dict[str, np.ndarray]:
    """The inputs of the folder's data set, by the names of the model's inputs."""
    import onnxruntime

    path = folder / "model.onnx"
    probe = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [i.name for i in probe.get_inputs()]
    given = read_inputs(data_set_of(folder))
    if not all(name in names for name, _ in given):
        given = list(zip(names, [value for _, value in given]))
    return dict(given)


def time_in_turn(calls: dict, seconds: float, least: int = 50) -> dict[str, list[np.ndarray]]:
    """Blocks of runs of each engine, in turn: at least so many runs and `seconds` in all."""
    runs = {}
    for engine, call in calls.items():
        call()
        estimate = float(np.median(time_block(call, 5, seconds))) / 1e9
        runs[engine] = max(least, int(seconds / max(estimate, 1e-7))) // BLOCKS + 1
    blocks: dict[str, list[np.ndarray]] = {engine: [] for engine in calls}
    gc.disable()
    for _ in range(BLOCKS):
        for engine, call in calls.items():
            blocks[engine].append(time_block(call, runs[engine], 3 * seconds / BLOCKS))
    gc.enable()
    return blocks


def measure(lib, folder: Path, threads: int, seconds: float, compile: bool) -> dict:
    path, inputs = folder / "model.onnx", inputs_of(folder)
    tssa, ort = Tssa(lib, path, threads, inputs, compile), Ort(path, threads, inputs)
    ours, theirs = tssa.results(), ort.results()
    for k, (a, b) in enumerate(zip(ours, theirs)):
        if found := difference(a, b):
            raise ValueError(f"output {k}: {found}")
    if ort.tensors:
        ort.bind()
    blocks = time_in_turn({"tssa": tssa.call(ort.tensors), "ort": ort.call()}, seconds)
    moved = sum(map(nbytes, inputs.values())) + sum(map(nbytes, ours))
    return {
        "model": folder.name,
        "threads": threads,
        "tssa": summary(blocks["tssa"]),
        "ort": summary(blocks["ort"]),
        "tssa_create_ms": creation(lambda: Tssa(lib, path, threads, inputs)),
        "ort_create_ms": creation(lambda: Ort(path, threads, inputs)),
        "io_bytes": moved,
        "copy_us": copy_time(moved // 2),
        "outputs_bound": ort.tensors,
    }


def child(args: argparse.Namespace) -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from tssa_ctypes import Library, TssaError

    lib = Library(args.library)
    for folder in find_models(args):
        try:
            row = measure(lib, folder, args.child, args.seconds, args.compile == "wait")
        except (TssaError, ValueError) as error:
            row = {"model": folder.name, "threads": args.child, "error": str(error)}
        except Exception as error:  # ONNX Runtime has many of its own
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            row = {"model": folder.name, "threads": args.child, "error": text}
        print(json.dumps(row), flush=True)
    return 0


# ---- The parent ----------------------------------------------------------------------


def find_models(args: argparse.Namespace) -> list[Path]:
    folders = []
    for root in args.models:
        folders += [p.parent for p in sorted(Path(root).glob("*/model.onnx"))]
    return [
        folder
        for folder in folders
        if data_set_of(folder)
        and (not args.words or any(word in folder.name for word in args.words))
    ]


def machine() -> dict:
    import onnxruntime

    return host() | {"onnxruntime": onnxruntime.__version__, "numpy": np.__version__}


def commit() -> str:
    """Of this checkout; of a build that was brought along (bench/pack-for-gpu.sh), its own."""
    packed = ROOT / "build/release/commit"
    if packed.exists():
        return packed.read_text().strip()
    return subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()


def host() -> dict:
    """What needs no more than Python."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "cpu family")):
            key, value = (part.strip() for part in line.split(":", 1))
            cpu = value if key == "model name" else f"{cpu} family {value}"
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "tssa": commit(),
        "date": datetime.date.today().isoformat(),
        "copy_gb_per_s": (64 << 20) / copy_time(64 << 20) / 1e3,
    }


def rows_of(command: list[str], environment: dict[str, str] | None, show=None) -> list[dict]:
    """What a process prints, an object a line; `show` makes a line of a table of each."""
    rows = []
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout:
            rows.append(json.loads(line))
            rows[-1]["load_average"] = os.getloadavg()[0]
            if show:
                print(show(rows[-1]), flush=True)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed")
    return rows


def run_children(args: argparse.Namespace) -> list[dict]:
    rows = []
    for threads in args.threads:
        command = [sys.executable, __file__, "--child", str(threads)]
        command += ["--seconds", str(args.seconds), "--library", str(args.library)]
        command += ["--compile", args.compile]
        command += ["--models", *map(str, args.models), "--", *args.words]
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        rows += rows_of(command, environment, table_row)
    return rows


HEAD = (
    "| model | threads | tssa min | ORT min | ORT / tssa | tssa median (spread) "
    "| ORT median (spread) | copy | create tssa / ORT ms |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(times: dict[str, float]) -> str:
    low, high = figure(times["lowest_block_median"]), figure(times["highest_block_median"])
    return f"{figure(times['median'])} ({low} to {high})"


def table_row(row: dict) -> str:
    if "error" in row:
        return f"| {row['model']} | {row['threads']} | {row['error']} |||||||"
    middle = [spread(row[which]) for which in ("tssa", "ort")]
    return (
        f"| {row['model']} | {row['threads']} | {figure(row['tssa']['min'])} "
        f"| {figure(row['ort']['min'])} | {row['ort']['min'] / row['tssa']['min']:.2f} "
        f"| {middle[0]} | {middle[1]} | {figure(row['copy_us'])} "
        f"| {row['tssa_create_ms']:.2f} / {row['ort_create_ms']:.2f} |"
    )


def note_load(about: dict, rows: list[dict]) -> None:
    loads = [row["load_average"] for row in rows]
    about["load_average"] = [min(loads, default=0), max(loads, default=0)]


def write_json(stem: Path, content: dict) -> None:
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


def record(args: argparse.Namespace, about: dict, rows: list[dict]) -> None:
    notes = {}
    for program in ("bench_overhead", "bench_session"):
        path = args.library.parent / "bench" / program
        if path.exists():
            output = subprocess.run(
                [path], cwd=ROOT, capture_output=True, text=True, check=True
            )
            notes[program] = output.stdout.strip()
    note_load(about, rows)
    write_json(args.record, {"machine": about, "rows": rows, "programs": notes})
    lines = [
        f"# tssa against ONNX Runtime on the CPU, {about['date']}",
        "",
        f"tssa {about['tssa']}, ONNX Runtime {about['onnxruntime']}; {about['cpu']}, "
        f"{about['cores']} cores, {about['system']}; copying 64 MiB: "
        f"{about['copy_gb_per_s']:.1f} GB/s. Load average while measuring: "
        f"{about['load_average'][0]:.1f} to {about['load_average'][1]:.1f}.",
        "",
        f"Made by `bench/versus_ort.py --compile {args.compile} --record`, which says what the "
        "columns are.",
        "",
        HEAD,
        *map(table_row, rows),
    ]
    for program, text in notes.items():
        lines += ["", f"`{program}`:", "", *("    " + line for line in text.splitlines())]
    args.record.with_suffix(".md").write_text("\n".join(lines) + "\n")


def arguments(about: str) -> argparse.ArgumentParser:
    """What every comparison of model files can be told."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--models", nargs="+", type=Path, default=[ROOT / "build/models"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="per model, and per engine or file"
    )
    parser.add_argument("--record", type=Path, metavar="STEM", help="write STEM.md, STEM.json")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    return parser


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--library", type=Path, default=ROOT / "build/release/libtssa.so")
    parser.add_argument("--compile", choices=("wait", "off"), default="wait")
    args = parser.parse_args()
    if args.child:
        return child(args)
    if not find_models(args):
        parser.error("no such models; `make models` builds them")
    about = machine()
    print(HEAD, flush=True)
    rows = run_children(args)
    if args.record:
        record(args, about, rows)
    failed = sum("error" in row for row in rows)
    print(f"{len(rows) - failed} measured, {failed} not")
    return 0


if __name__ == "__main__":
    sys.exit(main())
