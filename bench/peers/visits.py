# SPDX-License-Identifier: Apache-2.0
"""A run goes through its programs in rounds, and visits those again that it found loud.

Neighbours of a virtual machine are loud for minutes. Waiting them out at one program takes
the patience of all; in the next round, a quarter of an hour later, they may have gone. So a
round spends half of the patience that is left. After it, the modes that have too few quiet
calls for their median are made ready and timed again, and the calls of all visits count
alike. That is what decides, not what was measured; and no other run is looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers import machine, measure
from bench.peers.effort import Effort
from bench.peers.measure import Blocks, Row
from bench.peers.modes.base import Task
from bench.peers.modes.table import Mode
from bench.peers.pace import Pace
from bench.peers.program import Case
from bench.peers.record import Record

LEAST_PART = 30.0  # seconds of patience for each program, or there is no further round


@dataclass
class Visits:
    """What is known of a case after some visits."""

    case: Case
    modes: list[Mode]
    effort: Effort
    read_task: Callable[[], Task]  # each time, so that only one model is in memory
    logs: Path
    count: int = 0
    rows: dict[str, Row] = field(default_factory=dict)  # of each mode
    blocks: dict[str, Blocks] = field(default_factory=dict)  # of each that was timed
    facts: Row = field(default_factory=dict)  # of the case itself, for the record

    def visit(self, pace: Pace) -> None:
        """First all modes, later those that have too few quiet calls."""
        started = time.monotonic()
        print(f"== {self.case.model}{', again' if self.count else ''}", flush=True)
        task, modes = self.read_task(), self.loud(pace) if self.count else self.modes
        with measure.workers_of() as workers:
            for row in measure.make_ready(modes, task, self.effort, self.logs, workers):
                self.note_ready(row)
            copy_us = measure.copy_time_of(workers, task.model.bytes_moved() // 2)
            if self.count:
                pace.patience -= time.monotonic() - started
            timed = measure.time_all(workers, self.effort, pace, self.blocks)
        for name, row in timed.items():
            self.note_timed(name, row)
        self.count += 1
        self.note_facts(task, copy_us, time.monotonic() - started, pace)

    def loud(self, pace: Pace) -> list[Mode]:
        """The modes that were timed and have too few quiet calls."""
        timed = [mode for mode in self.modes if mode.name in self.blocks]
        return [mode for mode in timed if not self.blocks[mode.name].suffice(pace.limit())]

    def note_ready(self, row: Row) -> None:
        """What the first time took stays: later compilers find what they have kept."""
        if "failed" in row:
            self.note_failed(row["mode"], row)
        else:
            self.rows.setdefault(row["mode"], row)

    def note_timed(self, name: str, row: Row) -> None:
        if "failed" in row:
            self.note_failed(name, row)
        else:
            self.rows[name] |= row
            print(f"   {name}: {row['median']:.1f} us", flush=True)

    def note_failed(self, name: str, row: Row) -> None:
        """Whatever was measured of it before: a mode that crashes now and then cannot."""
        self.rows[name] = row
        self.blocks.pop(name, None)
        print(f"   {name}: {row['reason']}", flush=True)

    def note_facts(self, task: Task, copy_us: float | None, seconds: float, pace: Pace) -> None:
        case, before = self.case, self.facts
        copies = [copy for copy in (copy_us, before.get("copy_us")) if copy is not None]
        self.facts = {
            "program": case.program.name,
            "workload": case.program.workload,
            "model": case.model,
            "batch": case.batch,
            "length": case.length,
            "bytes_moved": task.model.bytes_moved(),
            "copy_us": min(copies, default=None),
            "quiet_us": pace.quiet_us(),
            "load_average": max(machine.load_average(), before.get("load_average", 0.0)),
            "visits": self.count,
            "seconds": seconds + before.get("seconds", 0.0),
        }


def measure_in_rounds(cases: list[Visits], pace: Pace, kept: Record) -> None:
    """The record is written after each visit."""
    while cases:
        pace.begin_round()
        for done, case in enumerate(cases):
            pace.share(len(cases) - done)
            case.visit(pace)
            kept.add(case.facts, list(case.rows.values()))
        cases = [case for case in cases if case.loud(pace)]
        if pace.left() < LEAST_PART * len(cases):
            break
