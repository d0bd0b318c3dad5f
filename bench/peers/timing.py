# SPDX-License-Identifier: Apache-2.0
"""Timing calls on one core, with the pace of that core beside each of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.versus_ort import rest, warm_up

STRETCH = 1_000_000  # nanoseconds of calls between two readings, unless a call takes longer


class Probe:
    """Microseconds of work that is always the same, on the core that this thread runs on."""

    def __init__(self) -> None:
        self.values = np.linspace(-1, 1, 4096, dtype=np.float32)
        self.results = np.empty_like(self.values)

    def __call__(self) -> float:
        """The better of two: after a long call the first is slower, on a quiet core too."""
        return min(self.once(), self.once())

    def once(self) -> float:
        start = time.perf_counter_ns()
        for _ in range(8):
            np.exp(self.values, out=self.results)
        return (time.perf_counter_ns() - start) / 1e3


def time_calls(
    call: Callable[[], object], runs: int, seconds: float, probe: Probe
) -> tuple[np.ndarray, np.ndarray]:
    """Nanoseconds of each call after a warm-up, fewer than `runs` where they take too long;
    and for each the slower of the probe's readings before and after it."""
    warm_up(call)
    samples, readings = np.empty(runs, np.int64), np.empty(runs)
    clock = time.perf_counter_ns
    before, since, last = probe(), 0, clock()
    deadline = last + int(seconds * 1e9)
    for i in range(runs):
        start = clock()
        call()
        now = clock()
        samples[i] = now - start
        ends = i + 1 == runs or (i >= 2 and now > deadline)
        if ends or now - last > STRETCH:
            after = probe()
            readings[since : i + 1] = max(before, after)
            before, since, last = after, i + 1, clock()
        if ends:
            break
    rest()
    return samples[:since], readings[:since]


def move_to(core: int) -> None:
    """This process, with the threads that a runtime has made."""
    for thread in Path("/proc/self/task").iterdir():
        try:
            os.sched_setaffinity(int(thread.name), {core})
        except ProcessLookupError:  # it has ended since
            continue
