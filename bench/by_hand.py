#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times tssa, with kernels, against C written by hand: one thread, one core, in turn.

    bench/by_hand.py                               those of bench/by_hand
    bench/by_hand.py --programs bench/by_hand DIR  those of another folder, too
    bench/by_hand.py ssd lstm                      models whose name holds one of these words
    bench/by_hand.py --record bench/results/2026-01-31-by-hand

A folder of programs has C files, each a program, and data.py, which gets the folder of models
and writes what they read to ./data.  A program gets the number of runs, checks its outputs
and prints a line for each of its variants:

    RES model variant min_us 92.6 med_us 92.9 n 100

Those that count compute all that the model says (STRAIGHT): others leave out what data makes
superfluous, as tssa may.  In each round every program has its runs and then tssa as many, on
the model's first data set, into outputs that the caller keeps.

Columns: microseconds; the least of all rounds, and the median of the rounds' medians; by hand,
of the variant which is fastest by that measure.  Of tssa's, what is printed last is the way
from Python into the library.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

import versus_ort as versus

HERE = Path(__file__).resolve().parent
FLAGS = ["-std=gnu17", "-O3", "-march=native", "-mprefer-vector-width=512", "-w"]

# Constants may be prepared, loops interchanged, stores made past the caches.
STRAIGHT = {
    "ssd_loop": ["straight"],
    "yolov3_loop": ["straight"],
    "fcos_loop": ["straight"],
    "yolact_loop": ["straight"],
    "attention": ["straight(steps_outer)", "interchange(heads_outer)"],
    "seq2seq_50": [
        "straight(x*W_ih_each_step)",
        "table+packed_gemv",
        "table+packed_gemv+alternating_sweep",
        "table+natural_layout",
    ],
    "nasrnn": [
        "straight(2_gemv_per_step)",
        "hoisted_gemm+packed_gemv",
        "hoisted_gemm+packed_gemv+alternating_sweep",
        "hoisted_gemm+natural_layout_gemv",
    ],
    "lstm": ["fused"],
    "normalize": ["fused_temporal_reused_out", "fused_nontemporal_reused_out"],
    "offset2bbox": ["fused"],
    "t_dataflow": ["fused_temporal_reused_out", "fused_nontemporal_reused_out"],
}


class Times(NamedTuple):
    """Microseconds of a block of runs."""

    least: float
    median: float


class Program(NamedTuple):
    path: Path
    folder: Path  # where it runs, with its data

    def run(self, runs: int) -> dict[tuple[str, str], Times]:
        """Times by model and variant."""
        result = subprocess.run(
            [self.path, str(runs)], cwd=self.folder, capture_output=True, text=True
        )
        if result.returncode:
            raise SystemExit(f"{self.path.name} failed:\n{result.stderr}")
        times = {}
        for line in result.stdout.splitlines():
            match line.split():
                case ["RES", model, variant, "min_us", least, "med_us", median, *_]:
                    if variant in STRAIGHT.get(model, []):
                        times[model, variant] = Times(float(least), float(median))
        return times


def build(source: Path, models: Path, work: Path) -> list[Program]:
    """The programs of a folder, with their data."""
    if not (source / "data.py").is_file():
        raise SystemExit(f"{source}: there is no data.py, so it is no folder of programs")
    folder = Path(tempfile.mkdtemp(dir=work))
    command = [sys.executable, source.resolve() / "data.py", models.resolve()]
    subprocess.run(command, cwd=folder, check=True)
    programs = []
    for path in sorted(source.glob("*.c")):
        program = folder / path.stem
        subprocess.run(["gcc", *FLAGS, "-o", program, path, "-lm"], check=True)
        programs.append(Program(program, folder))
    return programs


class Model:
    def __init__(self, lib, folder: Path):
        data = folder / "test_data_set_0"
        arrays = dict(versus.read_inputs(data))
        self.engine = versus.Tssa(lib, folder / "model.onnx", 1, arrays, compile=True)
        for k, (ours, theirs) in enumerate(zip(self.engine.results(), expected(data))):
            if found := versus.difference(ours, theirs):
                raise SystemExit(f"{folder.name}: output {k}: {found}")
        self.call = self.engine.call(prebound=True)

    def run(self, runs: int) -> Times:
        samples = versus.time_runs(self.call, runs, 60) / 1e3
        return Times(float(samples.min()), float(np.median(samples)))


def expected(data: Path) -> list[np.ndarray]:
    import onnx
    from onnx import numpy_helper

    paths = sorted(data.glob("output_*.pb"), key=versus.numbers_of)
    tensors = [onnx.TensorProto.FromString(path.read_bytes()) for path in paths]
    return [numpy_helper.to_array(tensor) for tensor in tensors]


def call_time() -> float:
    """Microseconds of a call from Python that takes as many arguments and does nothing."""
    function = ctypes.CDLL(None).labs
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t] * 2 + [ctypes.c_void_p]
    arguments = (ctypes.c_void_p(0), 0, ctypes.c_void_p(0), 0, ctypes.c_void_p(0))
    return float(versus.time_runs(lambda: function(*arguments), 10_000, 1).min()) / 1e3


class Measured(NamedTuple):
    by_hand: dict[tuple[str, str], list[Times]]
    tssa: dict[str, list[Times]]


def measure(lib, programs: list[Program], args: argparse.Namespace) -> Measured:
    measured, models = Measured(defaultdict(list), defaultdict(list)), {}
    gc.disable()
    for _ in range(args.rounds):
        for program in programs:
            times = program.run(args.runs)
            for (name, variant), block in times.items():
                if args.words and not any(word in name for word in args.words):
                    continue
                measured.by_hand[name, variant].append(block)
            for name in dict.fromkeys(name for name, _ in times):
                if any(name == other for other, _ in measured.by_hand):
                    models[name] = models.get(name) or Model(lib, args.models / name)
                    measured.tssa[name].append(models[name].run(args.runs))
    return measured


def least(blocks: list[Times]) -> float:
    return min(block.least for block in blocks)


def median(blocks: list[Times]) -> float:
    return float(np.median([block.median for block in blocks]))


HEAD = (
    "| model | by hand, least | tssa | ratio | by hand, median | tssa | ratio | variant |\n"
    "|---|--:|--:|--:|--:|--:|--:|---|"
)


def table(measured: Measured) -> list[str]:
    lines, ratios = [HEAD], {least: [], median: []}
    for name, tssa in sorted(measured.tssa.items()):
        variants = {v: blocks for (n, v), blocks in measured.by_hand.items() if n == name}
        columns = ""
        for figure, all_ratios in ratios.items():
            ours, theirs = figure(tssa), min(map(figure, variants.values()))
            all_ratios.append(ours / theirs)
            columns += (
                f"{versus.figure(theirs)} | {versus.figure(ours)} | {ours / theirs:.2f} | "
            )
        fastest = min(variants, key=lambda variant: least(variants[variant]))
        lines.append(f"| {name} | {columns}{fastest} |")
    means = [float(np.exp(np.mean(np.log(of)))) for of in ratios.values()]
    lines.append(f"| geometric mean | | | {means[0]:.2f} | | | {means[1]:.2f} | |")
    return lines


def record(args: argparse.Namespace, lines: list[str], loads: tuple[float, float]) -> None:
    about = versus.host()
    text = [
        f"# tssa and programs written by hand, {about['date']}",
        "",
        f"tssa {about['tssa']}; {about['cpu']}, {about['cores']} cores, {about['system']}. "
        f"Load average: {loads[0]:.1f} before, {loads[1]:.1f} after.",
        "",
        "Made by `bench/by_hand.py --record`, which explains the columns.",
        "",
    ]
    args.record.with_suffix(".md").write_text("\n".join([*text, *lines]) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument(
        "--programs", type=Path, nargs="+", default=[HERE / "by_hand"], metavar="DIR"
    )
    parser.add_argument("--models", type=Path, default=versus.ROOT / "build/models")
    parser.add_argument(
        "--library", type=Path, default=versus.ROOT / "build/release/libtssa.so"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=50, help="in each round")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--record", type=Path, metavar="STEM", help="write STEM.md")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    os.sched_setaffinity(0, [args.core])
    from tssa_ctypes import Library

    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as work:
        programs = [
            program
            for folder in args.programs
            for program in build(folder, args.models, Path(work))
        ]
        measured = measure(Library(args.library), programs, args)
        if not measured.by_hand:
            raise SystemExit("no program is of such a model: " + " ".join(args.words))
        lines = table(measured)
    lines += ["", f"A call from Python that does nothing takes {call_time():.2f} us."]
    print("\n".join(lines))
    if args.record:
        record(args, lines, (before, os.getloadavg()[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
