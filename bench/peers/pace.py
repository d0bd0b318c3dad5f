# SPDX-License-Identifier: Apache-2.0
"""Whether the machine is quiet: nobody else takes its cores' throughput away.

A virtual machine's neighbours make everything up to twice as slow, for seconds or minutes,
and steal time tells little of it: they share the cores' other hardware threads, and caches.
A few exponentials on each core at once tell it in a millisecond.  What is timed between two
quiet readings can be repeated; what is not says more about the neighbours.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable

TOLERANCE = 1.08  # of the quiet reading; a busy sibling of a core makes it 1.2 and more
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
        self.saved = 0.0  # for those after it
        self.readings: list[float] = []  # ascending

    def learn(self) -> None:
        """What quiet is, if the machine is it in the next seconds."""
        for _ in range(FIRST_READINGS):
            self.take()
            time.sleep(STEP)

    def share(self, programs: int) -> None:
        """What is left of the patience, with so many programs to go: the next has its part."""
        left = self.saved + self.patience
        self.patience = left / programs
        self.saved = left - self.patience

    def quiet_us(self) -> float:
        """The best of all readings but the odd one in a hundred."""
        best = self.readings[len(self.readings) // 100]
        return best if self.known is None else min(best, self.known)

    def take(self) -> float:
        reading = self.read()
        bisect.insort(self.readings, reading)
        return reading

    def is_quiet(self, reading: float) -> bool:
        """By what is known now: a later reading may show that it was not."""
        return reading <= TOLERANCE * self.quiet_us()

    def wait(self) -> float:
        """Until the machine is quiet, or patience is over: the last reading."""
        start = time.monotonic()
        while not self.is_quiet(reading := self.take()):
            if time.monotonic() - start >= self.patience:
                break
            time.sleep(STEP)
        self.patience -= time.monotonic() - start
        return reading
