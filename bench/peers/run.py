#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times programs in PyTorch, ONNX Runtime, OpenVINO and tssa, on the same inputs.

    bench/peers/run.py                             the standard programs, batch 1, length 50
    bench/peers/run.py --quick --only ssd lstm     those whose name holds a word
    bench/peers/run.py --check-only --only ssd     are the modules right? (eager, jit.script)
    bench/peers/run.py --sweep --only ssd          and other batch sizes and lengths
    bench/peers/run.py --device cuda
    bench/peers/run.py --record bench/results/2026-01-31-peers-cpu
    bench/peers/run.py --record STEM --continue    go on after a stop, or on a loud machine
    bench/peers/run.py --report STEM.json          make STEM.md and charts again
    bench/peers/run.py --compare A.json B.json     how far two records are apart

Every mode's outputs must agree with the model's expected ones before it is timed.  Modes
have a process each and are timed in alternating blocks, on copies of the first data set.
A mode that cannot run a program is reported with its reason; build/peers has its log.
Results are written program by program, so that an end before the end loses nothing.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

sys.path[0] = str(Path(__file__).resolve().parents[2])

from bench.peers import compare, report  # noqa: E402
from bench.peers.errors import UsageError  # noqa: E402
from bench.peers.paths import MODELS, SCRATCH  # noqa: E402


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        usage="%(prog)s [options]; --help lists them",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--only",
        nargs="+",
        metavar="WORD",
        help="programs of that name, or else those whose name holds the WORD",
    )
    add("--all", action="store_true", help="also programs that are not measured otherwise")
    add("--modes", nargs="+", metavar="MODE", help="instead of all")
    add("--device", choices=["cpu", "cuda"], default="cpu")
    add("--threads", type=int, default=1, help="of each runtime (1)")
    add("--batch", type=int, default=1)
    add("--length", type=int, default=50)
    add("--sweep", action="store_true", help="all batch sizes and lengths of the programs")
    add("--quick", action="store_true", help="rough figures in a fraction of the time")
    add(
        "--seconds",
        type=float,
        help="of calls per program and mode (2; micro 0.5); up to 4 times that for 100 calls",
    )
    add("--limit", type=float, help="seconds for a mode to be ready (90), or it is left out")
    add("--patience", type=float, help="seconds to lose waiting for a quiet machine (1200)")
    add("--quiet-us", type=float, metavar="US", help="what a record of a quiet machine says")
    add("--models", type=Path, default=MODELS)
    add("--check-only", action="store_true")
    add("--record", type=Path, metavar="STEM", help="write STEM.json, STEM.md, STEM-*.png")
    add(
        "--continue",
        dest="resume",
        action="store_true",
        help="measure what the record lacks, or has of a loud machine",
    )
    add("--report", type=Path, metavar="JSON")
    add("--compare", type=Path, nargs=2, metavar="JSON")
    args = parser.parse_args(arguments)
    if args.patience is None:
        args.patience = 60 if args.quick else 1200
    if args.threads < 1 or args.batch < 1 or args.length < 1:
        fail("--threads, --batch and --length are 1 or more")
    if any(
        x is not None and not 0 < x < math.inf
        for x in (args.seconds, args.limit, args.quiet_us)
    ):
        fail("--seconds, --limit and --quiet-us are more than 0")
    if not 0 <= args.patience < math.inf:
        fail("--patience is 0 or more")
    return args


def fail(text: str) -> NoReturn:
    print(f"run.py: {text}", file=sys.stderr)
    raise SystemExit(2)


def main() -> int:
    args = parse(sys.argv[1:])
    try:
        if args.compare:
            return compare.main(*args.compare)
        if args.report:
            return report.main(args.report)
        prepare_environment(args.threads)
        from bench.peers import session  # imports PyTorch, which reads the environment

        return session.main(args)
    except UsageError as error:
        fail(str(error))


def prepare_environment(threads: int) -> None:
    """What libraries read once, when they are loaded."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    # Asking whether there is a card must not start CUDA in a process that will fork.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    kernels = SCRATCH / "kernels"
    shutil.rmtree(kernels, ignore_errors=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(kernels)


if __name__ == "__main__":
    sys.exit(main())
