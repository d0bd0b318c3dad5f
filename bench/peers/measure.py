# SPDX-License-Identifier: Apache-2.0
"""Makes all modes of a program ready, checks them, and times them in alternating blocks.

A block counts if the machine was quiet before and after it (pace.py); one that was not is
timed again, as long as there is patience.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.peers.modes.base import Task
from bench.peers.modes.table import Mode
from bench.peers.pace import ENOUGH_QUIET, Pace
from bench.peers.worker import Failed, Worker
from bench.versus_ort import summary

BLOCKS = 30  # that count, of each mode; short, since quiet may be; fewer of slow calls
LEAST_OF_A_BLOCK = 3  # calls
LEAST_CALLS = 100
STRETCH = 3  # a mode may take so many times its seconds, to come to so many calls
STEP_LIMIT = 120.0  # seconds for anything that has been done before without trouble


@dataclass(frozen=True)
class Effort:
    seconds: float  # of calls, for each mode
    limit: float  # seconds until the first results, and again for all data sets


Row = dict[str, Any]


@contextmanager
def workers_of() -> Iterator[dict[str, Worker]]:
    """An empty table, to be filled by make_ready(); those in it end with the block."""
    workers: dict[str, Worker] = {}
    try:
        yield workers
    finally:
        for worker in workers.values():
            worker.close()


def make_ready(
    modes: list[Mode], task: Task, effort: Effort, logs: Path, workers: dict[str, Worker]
) -> Iterator[Row]:
    """One row for each mode: how long it took, or why it cannot."""
    slow: set[str] = set()
    for mode in modes:
        if mode.after in slow:
            slow.add(mode.name)
            yield failure(mode, Failed("slow", f"not tried: {mode.after} was too slow"))
            continue
        worker = workers[mode.name] = Worker(mode, task, logs / f"{mode.name}.log")
        try:
            row = {"mode": mode.name, **worker.ask(effort.limit, "prepare")}
            worker.ask(effort.limit, "check")
            yield row
        except Failed as failed:
            del workers[mode.name]
            if failed.kind == "slow":
                slow.add(mode.name)
            yield failure(mode, failed)


def failure(mode: Mode, failed: Failed) -> Row:
    return {"mode": mode.name, "failed": failed.kind, "reason": str(failed)}


@dataclass
class Blocks:
    """Of a mode: how many are wanted, the calls of each, and the nanoseconds of each call."""

    wanted: int
    runs: int
    all: list[np.ndarray] = field(default_factory=list)
    quiet: list[np.ndarray] = field(default_factory=list)

    def suffice(self, patience: float) -> bool:
        return len(self.all if patience <= 0 else self.quiet) >= self.wanted

    def summary(self) -> Row:
        chosen = self.quiet if len(self.quiet) >= ENOUGH_QUIET else self.all
        return summary(chosen) | {"quiet_blocks": len(self.quiet), "blocks": len(self.all)}


def time_all(workers: dict[str, Worker], effort: Effort, pace: Pace) -> dict[str, Row]:
    """What was measured of each mode. One that fails on the way has a reason instead."""
    found: dict[str, Row] = {name: {} for name in workers}
    blocks: dict[str, Blocks] = {}
    for name in list(workers):
        with excused(workers, name, found):
            blocks[name] = plan_blocks(workers[name], effort)
    while wanting := [name for name in workers if not blocks[name].suffice(pace.patience)]:
        for name in wanting:
            with excused(workers, name, found):
                try_block(workers[name], blocks[name], effort, pace)
    for name in list(workers):
        with excused(workers, name, found):
            found[name] |= blocks[name].summary()
            found[name] |= workers[name].ask(STEP_LIMIT, "memory")
            found[name] |= {"counts": workers[name].ask(STEP_LIMIT, "counts")}
    return found


def try_block(worker: Worker, blocks: Blocks, effort: Effort, pace: Pace) -> None:
    quiet, start = pace.wait(), time.monotonic()
    budget = STRETCH * effort.seconds / blocks.wanted
    block = worker.ask(STEP_LIMIT, "block", blocks.runs, budget)
    blocks.all.append(block)
    if quiet and pace.is_quiet():
        blocks.quiet.append(block)
    else:
        pace.patience -= time.monotonic() - start


@contextmanager
def excused(workers: dict[str, Worker], name: str, found: dict[str, Row]) -> Iterator[None]:
    """A mode that fails now is taken off; the others go on."""
    try:
        yield
    except Failed as failed:
        found[name] = failure(workers.pop(name).mode, failed)


def plan_blocks(worker: Worker, effort: Effort) -> Blocks:
    samples = worker.ask(STEP_LIMIT, "block", 5, effort.seconds)
    in_time = effort.seconds / max(float(np.median(samples)) / 1e9, 1e-7)
    calls = int(max(in_time, min(LEAST_CALLS, STRETCH * in_time)))
    wanted = min(max(calls // LEAST_OF_A_BLOCK, ENOUGH_QUIET), BLOCKS)
    return Blocks(wanted, max(calls // wanted + 1, LEAST_OF_A_BLOCK))


def copy_time_of(workers: dict[str, Worker], count: int) -> float | None:
    """Microseconds to copy `count` bytes where the program runs."""
    for worker in workers.values():
        return worker.ask(STEP_LIMIT, "copy_us", count)
    return None
