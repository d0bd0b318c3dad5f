"""YOLOv3: anchors, objectness and independent class scores on three levels."""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder, Value
from models.programs.detection import shared
from models.programs.detection.params import Yolov3
from models.programs.detection.shared import Form

LOOP = Form(unrolled=False, span="concat", mask="rows")
UNROLLED = Form(unrolled=True, column="nd", span="elements", mask="gather")


def _level(
    g: Builder, params: Yolov3, pred: Value, stride: Value, form: Form
) -> tuple[Value, Value]:
    """One map as rows (B, n, 5 + C), centre offsets activated, and its strides (n)."""
    rows = im.reshape(g, im.permute(g, pred, [0, 2, 3, 1]), [0, -1, 5 + params.classes])
    rows = g.Identity(rows)
    shift = g.Sigmoid(im.slice_(g, rows, 0, 2))
    rows = im.assign_slice(g, rows, shift, 0, 2, form=form.span, rank=3)
    count = g.Reshape(im.dim(g, rows, 1), g.const([1]))
    return rows, im.expand(g, stride, count)


def _read_looped(g: Builder, params: Yolov3, preds: list[Value]) -> tuple[Value, ...]:
    """Rows (B, N, 5 + C), strides (N) and anchors (N, 4) of all levels."""
    count = len(params.levels)
    grids = shared.anchors_loop(g, params, LOOP)
    maps = g.SequenceConstruct(*preds)
    strides = g.const([level.stride for level in params.levels])

    def level(i: Value, rows: Value, steps: Value) -> list[Value]:
        step = im.select(g, strides, 0, i)
        found = _level(g, params, im.at(g, maps, i), step, LOOP)
        return [im.append(g, seq, v) for seq, v in zip((rows, steps), found)]

    start = [g.empty_sequence(np.float32), g.empty_sequence(np.int64)]
    rows, steps = g.loop(level, start, trip=count)
    return (
        g.ConcatFromSequence(rows, axis=1),
        g.ConcatFromSequence(steps, axis=0),
        g.ConcatFromSequence(grids, axis=0),
    )


def _read_unrolled(g: Builder, params: Yolov3, preds: list[Value]) -> tuple[Value, ...]:
    """The same with every level written out."""
    grids = [shared.anchors_of(g, level, UNROLLED) for level in params.levels]
    rows, steps = zip(
        *(
            _level(g, params, pred, g.const(level.stride), UNROLLED)
            for pred, level in zip(preds, params.levels)
        )
    )
    return g.Concat(*rows, axis=1), g.Concat(*steps, axis=0), g.Concat(*grids, axis=0)


def _decode(g: Builder, raw: Value, strides: Value, anchors: Value, form: Form) -> Value:
    """Boxes (B, N, 4) from activated regressions raw (B, N, 4)."""
    step = shared.as_column(g, g.cast(strides, np.float32))
    low, high = im.slice_(g, anchors, 0, 2), im.slice_(g, anchors, 2, 4)
    shift = (im.slice_(g, raw, 0, 2) - 0.5) * step
    centre = (low + high) * 0.5 + shift
    half = (high - low) * 0.5 * g.Exp(im.slice_(g, raw, 2, 4))
    cx, cy, hx, hy = (im.select(g, t, -1, k) for t in (centre, half) for k in (0, 1))
    edges = [cx - hx, cy - hy, cx + hx, cy + hy]
    if form.unrolled:
        return shared.write_columns(g, g.Identity(raw), edges, "transpose", rank=3)
    return im.stack(g, edges)


def _detect(
    g: Builder, params: Yolov3, box: Value, cls: Value, obj: Value, form: Form
) -> tuple[Value, Value]:
    """Detections of one image: box (N, 4), cls (N, C + 1), obj (N)."""
    sure = obj >= params.confidence
    box, cls, obj = (im.mask_select(g, t, sure, form.mask) for t in (box, cls, obj))
    rows = im.vector(g, im.dim(g, obj, 0))
    classes = params.classes
    wide = g.Concat(rows, g.const([classes, 4]), axis=0)
    boxes = im.reshape(g, im.expand(g, im.unsqueeze(g, box, 1), wide), [-1, 4])
    scores = im.slice_(g, cls, 0, classes)
    labels = im.tile(g, im.arange(g, classes), rows)
    valid = im.reshape(g, scores > params.score, [-1])
    scores = im.reshape(g, scores * shared.as_column(g, obj), [-1])
    at = im.reshape(g, g.NonZero(valid), [-1])
    found = (im.gather_rows(g, t, at) for t in (boxes, scores, labels))
    return shared.suppress(g, *found, params)


def build(params: Yolov3, name: str, unrolled: bool, batch: int) -> onnx.ModelProto:
    """The program; one input pred_l per level, outputs dets and labels."""
    g = Builder(name, __doc__)
    form = UNROLLED if unrolled else LOOP
    channels = params.anchors * (5 + params.classes)
    preds = [
        g.input(f"pred_{i}", np.float32, [batch, channels, level.size, level.size])
        for i, level in enumerate(params.levels)
    ]
    read = _read_unrolled if unrolled else _read_looped
    rows, strides, anchors = read(g, params, preds)
    obj = g.Sigmoid(im.select(g, rows, -1, 4))
    cls = g.Sigmoid(im.slice_(g, rows, 5, None))
    box = _decode(g, im.slice_(g, rows, 0, 4), strides, anchors, form)
    padding = g.full(g.Shape(im.slice_(g, rows, 0, 1)), 0, np.float32)
    cls = g.Concat(cls, padding, axis=-1)
    lists = [g.SplitToSequence(t, g.const(1), axis=0) for t in (box, cls, obj)]

    def image(b: Value) -> tuple[Value, Value]:
        own = (im.squeeze(g, im.at(g, seq, b), 0) for seq in lists)
        return _detect(g, params, *own, form)

    dets, labels = shared.per_image(g, batch, image, (np.float32, np.int64))
    shared.outputs(g, batch, {"dets": (dets, [5]), "labels": (labels, [])})
    return g.model()
