# SPDX-License-Identifier: Apache-2.0
"""How much is measured for one figure."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_BLOCKS = 6
LEAST_CALLS = 100
LEAST_SECONDS = 2.0  # of calls, where so many calls take longer
SLOW = 4  # times the seconds that are asked for, and no more, is spent on so many calls


@dataclass(frozen=True)
class Effort:
    seconds: float  # of calls, for each mode
    limit: float  # seconds until the first results, and again for all data sets
    least_seconds: float = LEAST_SECONDS
