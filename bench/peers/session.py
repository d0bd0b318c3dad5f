# SPDX-License-Identifier: Apache-2.0
"""A run from its options to its record: which programs at which sizes, and their rows."""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
from typing import Any

import torch

from bench.peers import data, machine, measure, pace, record
from bench.peers.effort import LEAST_SECONDS, SLOW, Effort
from bench.peers.errors import UsageError
from bench.peers.measure import Row
from bench.peers.modes.base import Task
from bench.peers.modes.table import Mode, modes_of
from bench.peers.paths import ROOT, SCRATCH
from bench.peers.program import DEFAULT_BATCH, DEFAULT_LENGTH, Case, Program
from bench.peers.programs.table import PROGRAMS
from bench.peers.visits import Visits, measure_in_rounds
from bench.peers.worker import Failed, Worker

CHECKED_BY_DEFAULT = ["eager", "script"]
QUICK_SECONDS = 0.3  # of calls are enough for rough figures
LOGS = SCRATCH / "logs"


def main(args: argparse.Namespace) -> int:
    cases = choose_cases(args)
    modes = choose_modes(args)
    if args.device == "cuda" and not torch.cuda.is_available():
        needy = [mode.name for mode in modes if mode.torch_cuda]
        if needy:
            raise UsageError(f"there is no CUDA device here for {' '.join(needy)}")
    find_models(args, cases)
    if args.check_only:
        return check_all(args, cases, modes)
    return measure_all(args, cases, modes)


def choose_cases(args: argparse.Namespace) -> list[Case]:
    words = args.only or [""]
    for word in words:
        if not any(word in program.name for program in PROGRAMS):
            names = " ".join(program.name for program in PROGRAMS)
            raise UsageError(f"no program's name holds {word}; there are {names}")
    chosen = [
        program
        for program in PROGRAMS
        if any(is_meant(program, word) for word in words)
        and (program.standard or args.all or args.only)
    ]
    cases = [Case(program, args.batch, args.length) for program in chosen]
    if args.sweep:
        cases += [Case(p, batch, DEFAULT_LENGTH) for p in chosen for batch in p.batches]
        cases += [Case(p, DEFAULT_BATCH, length) for p in chosen for length in p.lengths]
    return list(dict.fromkeys(case for case in cases if has_size(case)))


def is_meant(program: Program, word: str) -> bool:
    """A word that is a program's whole name means that program alone."""
    if any(word == other.name for other in PROGRAMS):
        return word == program.name
    return word in program.name


def has_size(case: Case) -> bool:
    """A program without batch or length is measured as it is only."""
    program = case.program
    return (case.batch == DEFAULT_BATCH or case.batch in program.batches) and (
        case.length == DEFAULT_LENGTH or case.length in program.lengths
    )


def choose_modes(args: argparse.Namespace) -> list[Mode]:
    there = modes_of(args.device)
    names = args.modes or (CHECKED_BY_DEFAULT if args.check_only else None)
    for name in names or []:
        if not any(mode.name == name for mode in there):
            known = " ".join(mode.name for mode in there)
            raise UsageError(f"no mode {name} on {args.device}; there are {known}")
    return [mode for mode in there if not names or mode.name in names]


def find_models(args: argparse.Namespace, cases: list[Case]) -> None:
    """Models of other sizes are built; the standard ones are `make models`."""
    missing = [c for c in cases if not (args.models / c.model / "model.onnx").exists()]
    plain = [c.model for c in missing if c.model == c.program.model]
    if plain:
        raise UsageError(f"{args.models} lacks {' '.join(plain)}; make models builds them")
    if not missing:
        return
    python = ROOT / "build/venv/bin/python"
    command = [
        str(python if python.exists() else sys.executable),
        str(ROOT / "models/build.py"),
    ]
    command += ["--out", str(args.models), *dict.fromkeys(case.model for case in missing)]
    if subprocess.run(command).returncode:
        raise UsageError("models/build.py could not build all models")


def task_of(args: argparse.Namespace, case: Case) -> Task:
    model = data.read_model(args.models / case.model)
    return Task(case.program, model, args.device, args.threads)


def effort_of(args: argparse.Namespace, program: Program) -> Effort:
    seconds = args.seconds or (2.0 if program.workload else 0.5) * (0.15 if args.quick else 1)
    least = QUICK_SECONDS if args.quick else max(LEAST_SECONDS, SLOW * seconds)
    return Effort(seconds, args.limit or (45.0 if args.quick else 90.0), least)


# ---- Only checking -------------------------------------------------------------------


def check_all(args: argparse.Namespace, cases: list[Case], modes: list[Mode]) -> int:
    """1 where a module is wrong."""
    failed = 0
    for case in cases:
        task, logs = task_of(args, case), LOGS / case.model
        with measure.workers_of() as workers:
            effort = effort_of(args, case.program)
            for row in measure.make_ready(modes, task, effort, logs, workers):
                failed += is_bad(row)
                print(f"{case.model} {row['mode']}: {row.get('reason', 'right')}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


def is_bad(row: Row) -> bool:
    """Whether a row means that the module is wrong; where only another engine's answer is,
    that is a result."""
    return row["mode"] == "eager" and "failed" in row


# ---- Measuring -----------------------------------------------------------------------


def measure_all(args: argparse.Namespace, cases: list[Case], modes: list[Mode]) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a limit ends it like Ctrl-C
    kept = record.Record(args.record or SCRATCH / "last", about(args, modes))
    kept.begin()
    if args.resume:
        kept.resume()
    cases = [case for case in cases if kept.lacks(case.model)]
    for mode in modes:
        if mode.name == "compile" and cases:
            warm_inductor(mode)
    reference = Worker(modes[0], None, LOGS / "pace.log")
    machine_pace = pace.Pace(
        lambda: reference.ask(measure.STEP_LIMIT, "pace_us"), args.patience, args.quiet_us
    )
    try:
        machine_pace.learn()
        measure_in_rounds([to_visit(args, case, modes) for case in cases], machine_pace, kept)
    except KeyboardInterrupt:
        print(f"stopped; {kept.stem}.json has {len(kept.cases)} programs; --continue goes on")
        return 130
    finally:
        reference.close()
        kept.finish()
    bad = [row for row in kept.rows if is_bad(row)]
    for row in bad:
        print(f"{row['model']} {row['mode']}: {row['reason']}")
    failed = sum("failed" in row for row in kept.rows)
    print(f"{len(kept.rows) - failed} measured, {failed} not; {kept.stem}.md has the reasons")
    return 1 if bad else 0


def about(args: argparse.Namespace, modes: list[Mode]) -> dict[str, Any]:
    found = machine.describe(args.device, args.threads)
    found["modes"] = {mode.name: mode.title for mode in modes_of(args.device)}
    found["host_values"] = [mode.title for mode in modes if args.device in mode.host_values]
    found["command"] = " ".join(sys.argv[1:])
    return found


def to_visit(args: argparse.Namespace, case: Case, modes: list[Mode]) -> Visits:
    effort = effort_of(args, case.program)
    return Visits(case, modes, effort, lambda: task_of(args, case), LOGS / case.model)


def warm_inductor(mode: Mode) -> None:
    """What Inductor makes once and keeps (headers, what the processor can) is made before
    the first program is timed."""
    worker = Worker(mode, None, LOGS / "inductor.log")
    with contextlib.suppress(Failed):  # each program says the reason itself
        worker.ask(measure.STEP_LIMIT, "warm_inductor")
    worker.close()
