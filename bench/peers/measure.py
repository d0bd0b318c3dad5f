# SPDX-License-Identifier: Apache-2.0
"""Makes all modes of a program ready, checks them, and times them in alternating blocks.

A block counts if the machine was quiet before and after it (pace.py); one that was not is
timed again, as long as there is patience. Then the least loud ones count as well, as many as
it takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.peers.effort import LEAST_BLOCKS, LEAST_CALLS, Effort
from bench.peers.modes.base import Task
from bench.peers.modes.table import Mode
from bench.peers.pace import Pace
from bench.peers.worker import Failed, Worker
from bench.versus_ort import summary

BLOCKS = 30  # that count, of each mode; short, since quiet may be; fewer of slow calls
LEAST_OF_A_BLOCK = 3  # calls
TOO_LONG = 3  # times what its calls should have taken ends a block
STEP_LIMIT = 120.0  # seconds for anything that has been done before without trouble


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


@dataclass(frozen=True)
class Block:
    reading: float  # of the machine's pace, the slower of those before and after
    samples: np.ndarray  # nanoseconds of each call


@dataclass
class Blocks:
    """Of a mode: how many are wanted, of how many calls, and those that there are."""

    wanted: int
    runs: int
    least_seconds: float
    done: list[Block] = field(default_factory=list)

    def suffice(self, pace: Pace) -> bool:
        counted = self.done if pace.patience <= 0 else self.quiet(pace)
        return len(counted) >= self.wanted and self.is_enough(counted)

    def quiet(self, pace: Pace) -> list[Block]:
        return [block for block in self.done if pace.is_quiet(block.reading)]

    def is_enough(self, counted: list[Block]) -> bool:
        """For a median."""
        calls = sum(len(block.samples) for block in counted)
        seconds = sum(int(block.samples.sum()) for block in counted) / 1e9
        return len(counted) >= LEAST_BLOCKS and (
            calls >= LEAST_CALLS or seconds >= self.least_seconds
        )

    def summary(self, pace: Pace) -> Row:
        quiet = len(self.quiet(pace))
        counted = sorted(self.done, key=lambda block: block.reading)
        count = quiet
        while count < len(counted) and not self.is_enough(counted[:count]):
            count += 1
        return summary([block.samples for block in counted[:count]]) | {
            "quiet_blocks": quiet,
            "counted_blocks": count,
            "blocks": len(self.done),
        }


def time_all(workers: dict[str, Worker], effort: Effort, pace: Pace) -> dict[str, Row]:
    """What was measured of each mode. One that fails on the way has a reason instead."""
    found: dict[str, Row] = {name: {} for name in workers}
    blocks: dict[str, Blocks] = {}
    for name in list(workers):
        with excused(workers, name, found):
            blocks[name] = plan_blocks(workers[name], effort)
    while wanting := [name for name in workers if not blocks[name].suffice(pace)]:
        for name in wanting:
            with excused(workers, name, found):
                try_block(workers[name], blocks[name], effort, pace)
    for name in list(workers):
        with excused(workers, name, found):
            found[name] |= blocks[name].summary(pace)
            found[name] |= workers[name].ask(STEP_LIMIT, "memory")
            found[name] |= {"counts": workers[name].ask(STEP_LIMIT, "counts")}
    return found


def try_block(worker: Worker, blocks: Blocks, effort: Effort, pace: Pace) -> None:
    before, start = pace.wait(), time.monotonic()
    budget = TOO_LONG * max(effort.seconds, effort.least_seconds) / blocks.wanted
    samples = worker.ask(STEP_LIMIT, "block", blocks.runs, budget)
    block = Block(max(before, pace.take()), samples)
    blocks.done.append(block)
    if not pace.is_quiet(block.reading):
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
    each = max(float(np.median(samples)) / 1e9, 1e-7)
    calls = int(max(effort.seconds / each, min(LEAST_CALLS, effort.least_seconds / each)))
    wanted = min(max(calls // LEAST_OF_A_BLOCK, LEAST_BLOCKS), BLOCKS)
    runs = max(calls // wanted + 1, LEAST_OF_A_BLOCK)
    return Blocks(wanted, runs, effort.least_seconds)


def copy_time_of(workers: dict[str, Worker], count: int) -> float | None:
    """Microseconds to copy `count` bytes where the program runs."""
    for worker in workers.values():
        return worker.ask(STEP_LIMIT, "copy_us", count)
    return None
