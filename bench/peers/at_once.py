#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Modes that take minutes to be made ready, of several programs, in the time that one takes.

    bench/peers/at_once.py --seconds 150 --record STEM PROGRAM:MODE,MODE... ...

All of them are made ready at once; what is not when so many seconds are over is left out. Then
their outputs are checked, and then nothing else runs: the modes of a program are timed in
alternating blocks, program by program.  Writes STEM.json, and prints medians.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np

sys.path[0] = str(Path(__file__).resolve().parents[2])

from bench.peers.errors import UsageError  # noqa: E402
from bench.peers.run import prepare_environment  # noqa: E402

BLOCKS, BLOCK_RUNS, BLOCK_SECONDS = 5, 400, 0.15
STEP_LIMIT = 20


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=150, help="to be made ready")
    parser.add_argument("--record", type=Path, required=True, metavar="STEM")
    parser.add_argument("work", nargs="+", metavar="PROGRAM:MODES")
    return parser.parse_args()


def start(work: list[str]) -> list[tuple[str, object]]:
    """The program's name and a worker, for each mode of each program. Raises UsageError."""
    from bench.peers import data
    from bench.peers.modes.base import Task
    from bench.peers.modes.table import modes_of
    from bench.peers.paths import MODELS, SCRATCH
    from bench.peers.programs.table import PROGRAMS
    from bench.peers.worker import Worker

    started, chosen, known = [], [], {mode.name for mode in modes_of("cuda")}
    for item in work:
        name, _, names = item.partition(":")
        programs = [p for p in PROGRAMS if p.name == name]
        if not programs:
            raise UsageError(f"there is no program {name}")
        if not (MODELS / programs[0].model / "model.onnx").exists():
            raise UsageError(f"{MODELS} lacks {programs[0].model}; make models builds it")
        unknown = set(names.split(",")) - known
        if unknown:
            raise UsageError(f"no mode {' '.join(sorted(unknown))}: {' '.join(sorted(known))}")
        chosen.append((programs[0], names))
    for program, names in chosen:
        task = Task(program, data.read_model(MODELS / program.model), "cuda", 1)
        for mode in modes_of("cuda"):
            if mode.name in names.split(","):
                log = SCRATCH / "logs" / program.model / f"{mode.name}.log"
                started.append((program.model, Worker(mode, task, log)))
    return started


def make_ready(started: list, seconds: float) -> tuple[list, list[dict]]:
    """Those that are ready and right, and why others are not."""
    from bench.peers.worker import Failed

    end = time.monotonic() + seconds
    waiting = {worker.connection: (model, worker) for model, worker in started}
    for connection in waiting:
        connection.send(("prepare",))
    ready, failed = [], []
    while waiting and time.monotonic() < end:
        for connection in wait(list(waiting), end - time.monotonic()):
            model, worker = waiting.pop(connection)
            try:
                kind, result = connection.recv()
                if kind != "done":
                    raise Failed(kind, str(result))
                worker.ask(STEP_LIMIT, "check")
                ready.append((model, worker))
            except (EOFError, OSError):
                failed.append({"model": model, "mode": worker.mode.name, "failed": "crashed"})
            except Failed as error:
                reason = f"{error.kind}: {error}"
                failed.append({"model": model, "mode": worker.mode.name, "failed": reason})
    for model, worker in waiting.values():
        reason = f"not ready within {seconds:.0f} s"
        failed.append({"model": model, "mode": worker.mode.name, "failed": reason})
        worker.close()
    return ready, failed


def time_model(model: str, workers: list) -> list[dict]:
    samples: dict[str, list[np.ndarray]] = {worker.mode.name: [] for worker in workers}
    for _ in range(BLOCKS):
        for worker in workers:
            times, _ = worker.ask(STEP_LIMIT, "block", BLOCK_RUNS, BLOCK_SECONDS)
            samples[worker.mode.name].append(np.asarray(times) / 1e3)
    rows = []
    for mode, blocks in samples.items():
        times = np.concatenate(blocks)
        row = {"model": model, "mode": mode, "median_us": float(np.median(times))}
        row |= {"least_us": float(times.min()), "runs": len(times)}
        row["medians_of_blocks_us"] = [float(np.median(block)) for block in blocks]
        rows.append(row)
    return rows


def main() -> int:
    args = parse()
    prepare_environment(1)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "2")
    from bench.peers.machine import describe

    try:
        started = start(args.work)
    except UsageError as error:
        print(f"at_once.py: {error}", file=sys.stderr)
        return 2
    ready, rows = make_ready(started, args.seconds)
    for model in dict.fromkeys(model for model, _ in ready):
        workers = [worker for of, worker in ready if of == model]
        rows += time_model(model, workers)
        print(
            model,
            *(
                f"{r['mode']} {r['median_us']:.0f}"
                for r in rows
                if "median_us" in r and r["model"] == model
            ),
            flush=True,
        )
    for _, worker in ready:
        worker.close()
    for row in rows:
        if "failed" in row:
            print(f"{row['model']} {row['mode']}: {row['failed']}")
    record = {"machine": describe("cuda", 1), "rows": rows}
    args.record.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
