# SPDX-License-Identifier: Apache-2.0
"""Whether the machine is quiet: nobody else takes its cores' throughput away.

A virtual machine's neighbours make everything up to twice as slow, for milliseconds or for
minutes, and steal time tells little of it: they share the cores' other hardware threads, and
caches. A few exponentials tell it. What is timed between two quiet readings can be repeated;
what is not says more about the neighbours.

Where one thread works it reads the pace of its own core, every millisecond (timing.py). Where
several do, another process reads that of all cores at once, before and after a block of calls.
"""

from __future__ import annotations

import bisect
import math
import time
from collections.abc import Callable, Iterable

TOLERANCE = 1.15  # of the quiet reading; a busy sibling of a core makes it 1.3 to 1.4
STEP = 0.02  # seconds between readings while waiting
FIRST_READINGS = 200


class Pace:
    def __init__(
        self, read: Callable[[], float], patience: float, known: float | None = None
    ) -> None:
        """`read` gives microseconds of work that is always the same; `patience` are the
        seconds that may be lost in all, waiting and with what does not count; `known` is the
        reading of a quiet machine, where it is, so that a loud one is not taken for it."""
        self.read = read
        self.patience = patience  # of the program that is being timed
        self.known = known
        self.saved = 0.0  # for those after it in this round
        self.later = 0.0  # for further rounds
        self.readings: list[float] = []  # ascending

    def learn(self) -> None:
        """What quiet is, if the machine is it in the next seconds."""
        for _ in range(FIRST_READINGS):
            self.take()
            time.sleep(STEP)

    def left(self) -> float:
        return self.patience + self.saved + self.later

    def begin_round(self) -> None:
        """A round through the programs may spend half of the patience that is left."""
        self.later = self.saved = self.left() / 2
        self.patience = 0.0

    def share(self, programs: int) -> None:
        """What the round has left, with so many programs to go: the next gets its part."""
        left = self.saved + self.patience
        self.patience = left / programs
        self.saved = left - self.patience

    def quiet_us(self) -> float:
        """The best of all readings but the odd one in a hundred."""
        best = self.readings[len(self.readings) // 100] if self.readings else math.inf
        return best if self.known is None else min(best, self.known)

    def take(self) -> float:
        reading = self.read()
        self.note([reading])
        return reading

    def note(self, readings: Iterable[float]) -> None:
        """What others have read."""
        for reading in set(readings):
            bisect.insort(self.readings, float(reading))

    def limit(self) -> float:
        """Of a quiet reading, by what is known now: later ones may show that it was not."""
        return TOLERANCE * self.quiet_us()

    def accepted(self) -> float:
        """The slowest reading of a call that counts: any, when patience is over."""
        return self.limit() if self.patience > 0 else math.inf

    def wait(self) -> float:
        """Until the machine is quiet, or patience is over: the last reading."""
        start = time.monotonic()
        while (reading := self.take()) > self.limit():
            if time.monotonic() - start >= self.patience:
                break
            time.sleep(STEP)
        self.patience -= time.monotonic() - start
        return reading
