#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random ONNX programs: does everybody who can run one compute the same?

    differential.py LIBTSSA [--programs N] [--seed S] [--out FOLDER] [...]

Every program runs in ONNX Runtime (without and with its optimizations), in tssa (-O0, -O2), and
as tssa-opt -O2 writes it again in ONNX Runtime.  What disagrees is made smaller as long as it
disagrees, and written to FOLDER/SEED: model.onnx, inputs.npz (of a sequence q its elements q.0,
q.1, ...; not an empty optional), program.txt, which says what differs, and original.onnx, as it
was generated.
docs/disagreements.md excuses what is nobody's bug or not tssa's.

Program K of a run has the seed S + K: `--programs 1 --seed SEED` makes one of them again.
Exit status 1: there are disagreements without excuse, or the generator lost something.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections import Counter
from pathlib import Path
from time import monotonic

import numpy as np
import onnx

from differential import excuses
from differential.coverage import Coverage
from differential.generate import Case, generate
from differential.judge import Finding
from differential.minimize import Minimizer
from differential.text import program_text
from differential.workers import Worker, judged

ROOT = Path(__file__).resolve().parent.parent


def write(folder: Path, seed: int, case: Case, small: Case, text: str) -> None:
    folder = folder / str(seed)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(small.model, folder / "model.onnx")
    onnx.save(case.model, folder / "original.onnx")
    arrays = {}
    for name, value in small.sets[0].items():
        several = isinstance(value, list)
        if value is None:  # nothing is in the optional
            continue
        arrays |= {f"{name}.{k}": v for k, v in enumerate(value)} if several else {name: value}
    np.savez(folder / "inputs.npz", **arrays)
    (folder / "program.txt").write_text(text)


class Report:
    """What was found, with its excuse or without."""

    def __init__(self, args: argparse.Namespace):
        self.args = args
        self.excuses = excuses.read(ROOT / "docs" / "disagreements.md")
        self.excused: Counter[str] = Counter()
        self.failed = 0
        self.worker: Worker | None = None

    def is_excused(self, finding: Finding, text: str) -> bool:
        excuse = next((e for e in self.excuses if e.covers(finding, text)), None)
        if excuse:
            self.excused[excuse.name] += 1
        return excuse is not None

    def described(self, small: Case, finding: Finding) -> str:
        text = f"{finding}\n\n{program_text(small.model)}"
        request = ("as rewritten", small.model.SerializeToString(), {}, small.sets)
        rewritten = self.worker.ask(request) if self.worker else None
        if isinstance(rewritten, list):
            text += f"\nrewritten:\n{rewritten[0]}"
        return text

    def add(self, seed: int, finding: Finding) -> None:
        if self.is_excused(finding, str(finding)):
            return
        case = small = generate(seed)
        if self.failed < self.args.minimize:
            self.worker = self.worker or Worker(self.args.library)
            small = Minimizer(self.worker, case, finding, self.args.seconds).run()
        text = self.described(small, finding)
        if self.is_excused(finding, text):
            return
        self.failed += 1
        write(self.args.out, seed, case, small, text)
        print(f"FAIL seed {seed}: {finding}", flush=True)


def run(args: argparse.Namespace) -> int:
    start = monotonic()
    print(f"{args.programs} programs, seed {args.seed}", flush=True)
    coverage, report = Coverage(), Report(args)
    until = start + args.time if args.time else None
    seeds = range(args.seed, args.seed + args.programs)
    for seed, verdict, found in judged(args.library, seeds, args.jobs, until):
        coverage.add(verdict, found)
        if verdict.findings:
            report.add(seed, verdict.findings[0])
        if args.progress and coverage.programs % 1000 == 0:
            print(f"{coverage.programs} after {monotonic() - start:.0f} s", flush=True)
    coverage.print()
    for name, count in report.excused.most_common():
        print(f"excused: {name}: {count}")
    lost = coverage.lost()
    for line in lost:
        print(f"FAIL generator: {line}")
    failed = report.failed + len(lost)
    passed = coverage.programs - coverage.refused - report.failed
    print(f"{monotonic() - start:.0f} s, seed {args.seed}")
    print(f"{passed} passed, {failed} failed, {coverage.refused} skipped")
    return 1 if failed or not passed else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("library", metavar="LIBTSSA", type=lambda p: str(Path(p).resolve()))
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, help="default: a fresh one, which is printed")
    parser.add_argument("--out", type=Path, default=Path("build/differential"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--time", type=float, help="begin no program after so many seconds")
    parser.add_argument("--seconds", type=float, default=30, help="for minimizing one program")
    parser.add_argument("--minimize", type=int, default=50, help="no more than so many")
    parser.add_argument("--progress", action="store_true", help="a line per 1,000 programs")
    args = parser.parse_args()
    if args.seed is None:
        args.seed = secrets.randbelow(10**9)
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
