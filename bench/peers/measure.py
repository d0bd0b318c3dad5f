# SPDX-License-Identifier: Apache-2.0
"""Makes all modes of a program ready, checks them, and times them in alternating blocks.

A call counts if the machine was quiet before and after it (pace.py), or before and after its
block, where several threads work. There are more blocks until enough calls count, as long as
there is patience. Then the least loud of the others count as well, as many as it takes.
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

BLOCKS = 30  # of each mode, if all count; short, since quiet may be; fewer of slow calls
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
    """Of each call: its nanoseconds, and the slower reading of those around it."""

    samples: np.ndarray
    readings: np.ndarray

    def quiet(self, limit: float) -> np.ndarray:
        return self.samples[self.readings <= limit]


@dataclass
class Blocks:
    """Of a mode: how many calls are in a block, and the blocks that there are."""

    effort: Effort
    runs: int
    done: list[Block] = field(default_factory=list)

    def suffice(self, limit: float) -> bool:
        """Whether the calls whose readings are no slower than that are enough."""
        counted = [quiet for block in self.done if len(quiet := block.quiet(limit))]
        calls = sum(map(len, counted))
        seconds = sum(int(samples.sum()) for samples in counted) / 1e9
        return len(counted) >= LEAST_BLOCKS and (
            (calls >= LEAST_CALLS and seconds >= self.effort.seconds)
            or seconds >= self.effort.least_seconds
        )

    def summary(self, pace: Pace) -> Row:
        limit = max(pace.limit(), self.least_limit())
        counted = [quiet for block in self.done if len(quiet := block.quiet(limit))]
        return summary(counted) | {
            "quiet_runs": sum(len(block.quiet(pace.limit())) for block in self.done),
            "all_runs": sum(len(block.samples) for block in self.done),
        }

    def least_limit(self) -> float:
        """The readings of the least loud calls that are enough for a median."""
        readings = np.concatenate([block.readings for block in self.done])
        samples = np.concatenate([block.samples for block in self.done])
        numbers = np.repeat(np.arange(len(self.done)), [len(b.samples) for b in self.done])
        order = np.argsort(readings, kind="stable")
        seconds = np.cumsum(samples[order]) / 1e9
        _, firsts = np.unique(numbers[order], return_index=True)
        calls = min(LEAST_CALLS, 1 + int(np.searchsorted(seconds, self.effort.least_seconds)))
        blocks = 1 + int(np.sort(firsts)[:LEAST_BLOCKS][-1])
        return float(readings[order[min(max(calls, blocks), len(order)) - 1]])


def time_all(
    workers: dict[str, Worker], effort: Effort, pace: Pace, blocks: dict[str, Blocks]
) -> dict[str, Row]:
    """What was measured of each mode; `blocks` may have earlier ones, and gets the new ones.
    A mode that fails on the way has a reason instead."""
    found: dict[str, Row] = {name: {} for name in workers}
    new = [name for name in workers if name not in blocks]
    for name in new:
        with excused(workers, name, found):
            blocks[name] = plan_blocks(workers[name], effort)
    while wanting := [name for name in workers if not blocks[name].suffice(pace.accepted())]:
        for name in wanting:
            with excused(workers, name, found):
                try_block(workers[name], blocks[name], pace)
    for name in list(workers):
        with excused(workers, name, found):
            found[name] |= blocks[name].summary(pace)
            if name in new:
                found[name] |= workers[name].ask(STEP_LIMIT, "memory")
                found[name] |= {"counts": workers[name].ask(STEP_LIMIT, "counts")}
    return found


def try_block(worker: Worker, blocks: Blocks, pace: Pace) -> None:
    several = worker.task.threads > 1
    before = pace.wait() if several else 0.0
    start = time.monotonic()
    expected = max(blocks.effort.seconds, blocks.effort.least_seconds) / BLOCKS
    samples, readings = worker.ask(STEP_LIMIT, "block", blocks.runs, TOO_LONG * expected)
    if several:
        readings = np.full(len(samples), max(before, pace.take()))
    else:
        pace.note(readings)
    block = Block(samples, readings)
    blocks.done.append(block)
    lost = 1 - len(block.quiet(pace.limit())) / len(samples)
    pace.patience -= lost * (time.monotonic() - start)


@contextmanager
def excused(workers: dict[str, Worker], name: str, found: dict[str, Row]) -> Iterator[None]:
    """A mode that fails now is taken off; the others go on."""
    try:
        yield
    except Failed as failed:
        found[name] = failure(workers.pop(name).mode, failed)


def plan_blocks(worker: Worker, effort: Effort) -> Blocks:
    samples, _ = worker.ask(STEP_LIMIT, "block", 5, effort.seconds)
    each = max(float(np.median(samples)) / 1e9, 1e-7)
    calls = int(max(effort.seconds / each, min(LEAST_CALLS, effort.least_seconds / each)))
    return Blocks(effort, max(calls // BLOCKS + 1, LEAST_OF_A_BLOCK))


def copy_time_of(workers: dict[str, Worker], count: int) -> float | None:
    """Microseconds to copy `count` bytes where the program runs, if a worker can tell."""
    for worker in workers.values():
        if worker.task.device == "cpu" or worker.mode.torch_cuda:
            return worker.ask(STEP_LIMIT, "copy_us", count)
    return None
