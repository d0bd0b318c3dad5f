# SPDX-License-Identifier: Apache-2.0
"""The table of all programs: the eight workloads first, then the micro programs."""

from __future__ import annotations

from bench.peers.program import Program
from bench.peers.programs.get_started import GetStarted

DETECTOR_BATCHES = (1, 2, 4, 6, 8)
NETWORK_BATCHES = (1, 4, 8, 12, 16)
LENGTHS = (50, 100, 150, 200, 250, 300)

PROGRAMS: tuple[Program, ...] = (
    # Micro programs.
    Program("get_started", "get_started", GetStarted),
)
