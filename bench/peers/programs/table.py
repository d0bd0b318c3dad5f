# SPDX-License-Identifier: Apache-2.0
"""The table of all programs: the eight workloads, the detectors once more, micro programs."""

from __future__ import annotations

from bench.peers.program import Program

DETECTOR_BATCHES = (1, 2, 4, 6, 8)
NETWORK_BATCHES = (1, 4, 8, 12, 16)
LENGTHS = (50, 100, 150, 200, 250, 300)

PROGRAMS: tuple[Program, ...] = (
    # Detection post-processing in its loop form.
    Program("yolov3", "yolov3_loop", "yolov3.Yolov3", DETECTOR_BATCHES, workload=True),
    Program("ssd", "ssd_loop", "ssd.Ssd", DETECTOR_BATCHES, workload=True),
    Program("yolact", "yolact_loop", "yolact.Yolact", DETECTOR_BATCHES, workload=True),
    Program("fcos", "fcos_loop", "fcos.Fcos", DETECTOR_BATCHES, workload=True),
    # Networks.
    Program("nasrnn", "nasrnn", "nasrnn.NasRnn", NETWORK_BATCHES, LENGTHS, workload=True),
    Program("lstm", "lstm", "lstm.Lstm", NETWORK_BATCHES, LENGTHS, workload=True),
    # Its loop stops early.
    Program("seq2seq_10", "seq2seq_10", "seq2seq.Seq2Seq", workload=True),
    Program(
        "seq2seq_50", "seq2seq_50", "seq2seq.Seq2Seq", NETWORK_BATCHES, LENGTHS, workload=True
    ),
    Program(
        "attention", "attention", "attention.Attention", NETWORK_BATCHES, LENGTHS, workload=True
    ),
    # The detectors without a loop over the levels: longer chains of column writes.
    Program("yolov3_unrolled", "yolov3_unrolled", "yolov3.Yolov3Unrolled", standard=False),
    Program("ssd_unrolled", "ssd_unrolled", "ssd.SsdUnrolled", standard=False),
    Program("yolact_unrolled", "yolact_unrolled", "yolact.YolactUnrolled", standard=False),
    Program("fcos_unrolled", "fcos_unrolled", "fcos.FcosUnrolled", standard=False),
    # Micro programs.
    Program("get_started", "get_started", "get_started.GetStarted"),
    Program("if_partial_write", "if_partial_write", "aliasing.IfPartialWrite"),
    Program("normalize", "normalize", "normalize.Normalize"),
    Program("multiscale_bbox", "multiscale_bbox", "boxes.MultiScaleBbox"),
    Program("offset2bbox", "offset2bbox", "boxes.Offset2Bbox"),
    Program("bbox_expand", "bbox_expand", "boxes.BboxExpand"),
    Program("t_dataflow", "t_dataflow", "aliasing.Dataflow"),
    Program("t_loop", "t_loop", "aliasing.RowLoop"),
    Program("t_branch", "t_branch", "aliasing.Branch"),
    Program("t_branch_loop", "t_branch_loop", "aliasing.BranchLoop"),
    Program("view_example", "view_example", "aliasing.ViewExample"),
)
