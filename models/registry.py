"""The table of all models."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One model: the Program class and its options.

    `module` is relative to models.programs.  `standard` models are built by
    default; `committed` ones are also kept in the repository under models/NAME.
    """

    module: str
    cls: str
    options: dict[str, Any] = field(default_factory=dict)
    standard: bool = True
    committed: bool = False

    def program(self) -> Any:
        """An instance of the Program (imports its module)."""
        module = importlib.import_module(f"models.programs.{self.module}")
        return getattr(module, self.cls)(**self.options)


def _extra(module: str, cls: str, **options: Any) -> Entry:
    """A model that is built only by name or with --all."""
    return Entry(module, cls, options, standard=False)


def _detector(network: str, form: str, small: bool = False, **changes: Any) -> Entry:
    """A detection post-processor in Form L (loop) or Form U (unrolled)."""
    options = {"network": network, "unrolled": form == "unrolled", "small": small, **changes}
    return Entry("detection.program", "Detection", options, not small, small)


_DETECTORS = [
    (network, form)
    for network in ("yolov3", "ssd", "yolact", "fcos")
    for form in ("loop", "unrolled")
]


def _small(module: str, cls: str, **options: Any) -> Entry:
    """A small model that is committed to the repository."""
    return Entry(module, cls, options, standard=False, committed=True)


MODELS: dict[str, Entry] = {
    # Detection post-processing.
    **{f"{n}_{form}": _detector(n, form) for n, form in _DETECTORS},
    **{f"{n}_{form}_small": _detector(n, form, small=True) for n, form in _DETECTORS},
    # The branch for very many candidates (suppression class by class), always taken.
    "yolov3_by_class_small": _detector("yolov3", "loop", small=True, batched=0),
    "rtmdet_loop": _extra("detection.program", "Detection", network="rtmdet", unrolled=False),
    "rtmdet_unrolled": _extra(
        "detection.program", "Detection", network="rtmdet", unrolled=True
    ),
    "rtmdet_loop_small": _detector("rtmdet", "loop", small=True),
    "rtmdet_unrolled_small": _detector("rtmdet", "unrolled", small=True),
    "solov2": _extra("solov2", "SoloV2"),
    "solov2_small": _small("solov2", "SoloV2", small=True),
    # Networks.
    "nasrnn": Entry("nasrnn", "NasRnn"),
    "nasrnn_small": _small("nasrnn", "NasRnn", hidden=8, length=6),
    "lstm": Entry("lstm", "Lstm"),
    "lstm_nested": _extra("lstm", "Lstm", nested=True),
    "lstm_small": _small("lstm", "Lstm", layers=3, hidden=8, length=6),
    "lstm_nested_small": _small("lstm", "Lstm", layers=3, hidden=8, length=6, nested=True),
    "seq2seq_10": Entry("seq2seq", "Seq2Seq", {"steps": 10}),
    "seq2seq_50": Entry("seq2seq", "Seq2Seq"),
    "seq2seq": _extra("seq2seq", "Seq2Seq"),  # seq2seq_l300: all 300 steps
    "seq2seq_small": _small("seq2seq", "Seq2Seq", steps=5, hidden=16, vocabulary=40, length=12),
    "attention": Entry("attention", "Attention"),
    "attention_nd": _extra("attention", "Attention", form="nd"),
    "attention_transpose": _extra("attention", "Attention", form="transpose"),
    **{
        f"attention_{form}_small": _small(
            "attention", "Attention", heads=2, depth=8, start=4, length=10, form=form
        )
        for form in ("elements", "nd", "transpose")
    },
    # Micro programs.
    "get_started": Entry("get_started", "GetStarted"),
    "get_started_small": _small("get_started", "GetStarted", rows=16, columns=8),
    "if_partial_write": Entry("if_partial_write", "IfPartialWrite", committed=True),
    "if_partial_write_fixed": _small(
        "if_partial_write", "IfPartialWrite", rows=4, columns=6, fixed_rows=True
    ),
    "normalize": Entry("normalize", "Normalize"),
    "normalize_small": _small(
        "normalize", "Normalize", height=20, width=30, mean=0.45, scale=2.25
    ),
    "normalize_nd_small": _small(
        "normalize", "Normalize", height=5, width=7, mean=0.5, scale=2.0, form="nd"
    ),
    "normalize_transpose_small": _small(
        "normalize", "Normalize", height=5, width=7, mean=0.5, scale=2.0, form="transpose"
    ),
    "multiscale_bbox": Entry("multiscale_bbox", "MultiScaleBbox", committed=True),
    "multiscale_bbox_levels": _small("multiscale_bbox", "MultiScaleBbox", form="levels"),
    "multiscale_bbox_map": _small("multiscale_bbox", "MultiScaleBbox", form="map"),
    "offset2bbox": Entry("offset2bbox", "Offset2Bbox", committed=True),
    "bbox_expand": Entry("bbox_expand", "BboxExpand", committed=True),
    "t_dataflow": Entry("aliasing", "Dataflow"),
    "t_dataflow_small": _small("aliasing", "Dataflow", size=12),
    "t_loop": Entry("aliasing", "RowLoop"),
    "t_loop_small": _small("aliasing", "RowLoop", size=12),
    "t_branch": Entry("aliasing", "Branch"),
    "t_branch_small": _small("aliasing", "Branch", size=12, data_sets=3),
    "t_branch_loop": Entry("aliasing", "BranchLoop"),
    "t_branch_loop_small": _small("aliasing", "BranchLoop", size=12, data_sets=2),
    "view_example": Entry("aliasing", "ViewExample", committed=True),
    "op_select": _small("single_op", "Select"),
    "op_select_assign": _small("single_op", "SelectAssign"),
    "op_select_assign_nd": _small("single_op", "SelectAssign", form="nd", rows=30),
    "op_select_assign_transpose": _small(
        "single_op", "SelectAssign", form="transpose", rows=30
    ),
    "op_slice": _small("single_op", "Slice"),
    "op_slice_assign": _small("single_op", "SliceAssign"),
    "op_slice_assign_nd": _small(
        "single_op", "SliceAssign", span=(1, 4, 2), form="nd", rows=30
    ),
    "op_slice_assign_concat": _small(
        "single_op", "SliceAssign", span=(1, 3, 1), form="concat", rows=30
    ),
    "op_unsqueeze": _small("single_op", "Unsqueeze"),
}


@dataclass(frozen=True)
class Spec:
    """A model name resolved to a table entry and sizes (None: the default)."""

    base: str
    batch: int | None
    length: int | None

    @property
    def entry(self) -> Entry:
        return MODELS[self.base]


def parse_name(name: str) -> Spec:
    """Resolve NAME, NAME_b8, NAME_l300 or NAME_b4_l100."""
    if name in MODELS:
        return Spec(name, None, None)
    m = re.fullmatch(r"(.+?)(?:_b([1-9]\d*))?(?:_l([1-9]\d*))?", name)
    if m is None or m[1] not in MODELS:
        raise KeyError(name)
    return Spec(m[1], int(m[2]) if m[2] else None, int(m[3]) if m[3] else None)
