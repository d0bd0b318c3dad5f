# SPDX-License-Identifier: Apache-2.0
"""The table of all programs: the eight workloads first, then the micro programs."""

from __future__ import annotations

from bench.peers.program import Program
from bench.peers.programs.fcos import Fcos
from bench.peers.programs.get_started import GetStarted
from bench.peers.programs.ssd import Ssd
from bench.peers.programs.yolact import Yolact
from bench.peers.programs.yolov3 import Yolov3

DETECTOR_BATCHES = (1, 2, 4, 6, 8)
NETWORK_BATCHES = (1, 4, 8, 12, 16)
LENGTHS = (50, 100, 150, 200, 250, 300)

PROGRAMS: tuple[Program, ...] = (
    # Detection post-processing in its loop form.
    Program("yolov3", "yolov3_loop", Yolov3, DETECTOR_BATCHES, workload=True),
    Program("ssd", "ssd_loop", Ssd, DETECTOR_BATCHES, workload=True),
    Program("yolact", "yolact_loop", Yolact, DETECTOR_BATCHES, workload=True),
    Program("fcos", "fcos_loop", Fcos, DETECTOR_BATCHES, workload=True),
    # Micro programs.
    Program("get_started", "get_started", GetStarted),
)
