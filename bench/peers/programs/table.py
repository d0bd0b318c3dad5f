# SPDX-License-Identifier: Apache-2.0
"""The table of all programs: the eight workloads, the detectors once more, micro programs."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import torch

from bench.peers.program import Program, Weights
from bench.peers.programs.aliasing import (
    Branch,
    BranchLoop,
    Dataflow,
    IfPartialWrite,
    RowLoop,
    ViewExample,
)
from bench.peers.programs.attention import Attention
from bench.peers.programs.boxes import BboxExpand, MultiScaleBbox, Offset2Bbox
from bench.peers.programs.get_started import GetStarted
from bench.peers.programs.lstm import Lstm
from bench.peers.programs.nasrnn import NasRnn
from bench.peers.programs.normalize import Normalize
from bench.peers.programs.seq2seq import Seq2Seq

DETECTOR_BATCHES = (1, 2, 4, 6, 8)
NETWORK_BATCHES = (1, 4, 8, 12, 16)
LENGTHS = (50, 100, 150, 200, 250, 300)


def _detector(module: str, cls: str) -> Callable[[Weights], torch.nn.Module]:
    """Makes the module; imports it only then, since only the detectors need torchvision."""

    def make(weights: Weights) -> torch.nn.Module:
        return getattr(importlib.import_module(f"bench.peers.programs.{module}"), cls)(weights)

    return make


PROGRAMS: tuple[Program, ...] = (
    # Detection post-processing in its loop form.
    Program(
        "yolov3", "yolov3_loop", _detector("yolov3", "Yolov3"), DETECTOR_BATCHES, workload=True
    ),
    Program("ssd", "ssd_loop", _detector("ssd", "Ssd"), DETECTOR_BATCHES, workload=True),
    Program(
        "yolact", "yolact_loop", _detector("yolact", "Yolact"), DETECTOR_BATCHES, workload=True
    ),
    Program("fcos", "fcos_loop", _detector("fcos", "Fcos"), DETECTOR_BATCHES, workload=True),
    # Networks.
    Program("nasrnn", "nasrnn", NasRnn, NETWORK_BATCHES, LENGTHS, workload=True),
    Program("lstm", "lstm", Lstm, NETWORK_BATCHES, LENGTHS, workload=True),
    Program("seq2seq_10", "seq2seq_10", Seq2Seq, workload=True),  # its loop stops early
    Program("seq2seq_50", "seq2seq_50", Seq2Seq, NETWORK_BATCHES, LENGTHS, workload=True),
    Program("attention", "attention", Attention, NETWORK_BATCHES, LENGTHS, workload=True),
    # The detectors without a loop over the levels: longer chains of column writes.
    Program(
        "yolov3_unrolled",
        "yolov3_unrolled",
        _detector("yolov3", "Yolov3Unrolled"),
        standard=False,
    ),
    Program("ssd_unrolled", "ssd_unrolled", _detector("ssd", "SsdUnrolled"), standard=False),
    Program(
        "yolact_unrolled",
        "yolact_unrolled",
        _detector("yolact", "YolactUnrolled"),
        standard=False,
    ),
    Program(
        "fcos_unrolled", "fcos_unrolled", _detector("fcos", "FcosUnrolled"), standard=False
    ),
    # Micro programs.
    Program("get_started", "get_started", GetStarted),
    Program("if_partial_write", "if_partial_write", IfPartialWrite),
    Program("normalize", "normalize", Normalize),
    Program("multiscale_bbox", "multiscale_bbox", MultiScaleBbox),
    Program("offset2bbox", "offset2bbox", Offset2Bbox),
    Program("bbox_expand", "bbox_expand", BboxExpand),
    Program("t_dataflow", "t_dataflow", Dataflow),
    Program("t_loop", "t_loop", RowLoop),
    Program("t_branch", "t_branch", Branch),
    Program("t_branch_loop", "t_branch_loop", BranchLoop),
    Program("view_example", "view_example", ViewExample),
)
