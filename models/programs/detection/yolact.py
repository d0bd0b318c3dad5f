"""YOLACT: SSD-like boxes, suppression by a per-class IoU matrix, and instance masks."""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder, Value
from models.programs.detection import shared
from models.programs.detection.params import Yolact
from models.programs.detection.shared import Form

LOOP = Form(unrolled=False, span="transpose", mask="gather")
UNROLLED = Form(unrolled=True, column="transpose", mask="compress")


def _level(
    g: Builder,
    params: Yolact,
    box: Value,
    cls: Value,
    coef: Value,
    priors: Value,
    form: Form,
) -> tuple[Value, Value, Value]:
    """Best rows of one level: boxes (m, 4), softmax scores (m, C + 1), coefs (m, c)."""
    scores = g.Softmax(shared.map_rows(g, cls, params.classes + 1), axis=-1)
    deltas = shared.map_rows(g, box, 4)
    coefs = shared.map_rows(g, coef, params.coefs)
    best = g.ReduceMax(im.slice_(g, scores, 0, -1), g.const([-1]), keepdims=0)
    top = g.Min(g.Shape(best), g.const([params.cap]))
    _, rows = g.op("TopK", best, top, outputs=2, axis=0, largest=1, sorted=1)
    priors, deltas, scores, coefs = (
        im.gather_rows(g, t, rows) for t in (priors, deltas, scores, coefs)
    )
    return shared.delta_decode(g, priors, deltas, form), scores, coefs


def _edges(g: Builder, boxes: Value) -> list[Value]:
    """The four coordinates of boxes (..., 4)."""
    return [im.select(g, boxes, -1, k) for k in range(4)]


def _pairwise_iou(g: Builder, boxes: Value) -> Value:
    """IoU within each class of boxes (C, t, 4): (C, t, t)."""
    x1, y1, x2, y2 = _edges(g, boxes)
    area = (x2 - x1) * (y2 - y1)
    rows, columns = im.unsqueeze(g, boxes, 2), im.unsqueeze(g, boxes, 1)
    low = g.Max(im.slice_(g, rows, 0, 2), im.slice_(g, columns, 0, 2))
    high = g.Min(im.slice_(g, rows, 2, None), im.slice_(g, columns, 2, None))
    extent = shared.clamp(g, high - low, 0.0, None)
    overlap = im.select(g, extent, -1, 0) * im.select(g, extent, -1, 1)
    union = im.unsqueeze(g, area, 2) + im.unsqueeze(g, area, 1) - overlap
    return overlap / g.Max(union, shared.f32(g, 1e-6))


def _pick(g: Builder, x: Value, mask: Value, width: int, form: Form) -> Value:
    """x[mask] for x (C, t, width) and mask (C, t): (K, width)."""
    if form.mask == "gather":
        return im.mask_select(g, x, mask, "gather")
    return im.mask_select(g, im.reshape(g, x, [-1, width]), im.reshape(g, mask, [-1]), "rows")


def _fast_nms(
    g: Builder, params: Yolact, boxes: Value, scores: Value, coefs: Value, form: Form
) -> tuple[Value, Value, Value]:
    """Detections (K, 5), labels (K) and coefs (K, c) of one image."""
    by_class = im.permute(g, im.slice_(g, scores, 0, params.classes), [1, 0])
    every = im.vector(g, im.dim(g, by_class, 1))
    ranked, order = g.op("TopK", by_class, every, outputs=2, axis=1, largest=1, sorted=1)
    ranked = im.slice_(g, ranked, 0, params.top, axis=1)
    order = im.slice_(g, order, 0, params.top, axis=1)
    boxes, coefs = im.gather_rows(g, boxes, order), im.gather_rows(g, coefs, order)
    iou = g.Trilu(_pairwise_iou(g, boxes), g.const(1), upper=1)
    worst = g.ReduceMax(iou, g.const([1]), keepdims=0)
    keep = (worst <= params.iou) & (ranked > params.score)
    classes = shared.as_column(g, im.arange(g, params.classes))
    classes = im.mask_select(g, im.expand(g, classes, g.Shape(keep)), keep, form.mask)
    scores = im.mask_select(g, ranked, keep, form.mask)
    boxes = _pick(g, boxes, keep, 4, form)
    coefs = _pick(g, coefs, keep, params.coefs, form)
    best, first = shared.sort_descending(g, scores, params.limit)
    boxes, classes, coefs = (im.gather_rows(g, t, first) for t in (boxes, classes, coefs))
    return shared.with_scores(g, boxes, best), classes, coefs


def _interval(g: Builder, a: Value, b: Value, size: int) -> tuple[Value, Value]:
    """Padded bounds of coordinates a, b (K), as published: the second sees the first."""
    low = g.Min(a, b)
    high = g.Max(low, b)
    return shared.clamp(g, low - 1.0, 0.0, None), shared.clamp(g, high + 1.0, None, size)


def _crop(g: Builder, masks: Value, boxes: Value, size: int) -> Value:
    """Masks (h, h, K) with zeros outside their boxes (K, 4)."""
    x1, y1, x2, y2 = _edges(g, boxes)
    shape = g.Shape(masks)
    pixel = g.cast(im.arange(g, size), np.float32)
    columns = im.expand(g, im.reshape(g, pixel, [1, -1, 1]), shape)
    rows = im.expand(g, im.reshape(g, pixel, [-1, 1, 1]), shape)
    inside = None
    for at, (low, high) in (
        (columns, _interval(g, x1, x2, size)),
        (rows, _interval(g, y1, y2, size)),
    ):
        low, high = (im.reshape(g, t, [1, 1, -1]) for t in (low, high))
        between = (at >= low) & (at < high)
        inside = between if inside is None else inside & between
    return masks * g.cast(inside, np.float32)


def _masks(g: Builder, params: Yolact, proto: Value, coefs: Value, boxes: Value) -> Value:
    """Instance masks (K, h, h) of one image from prototypes (h, h, c)."""
    masks = g.Sigmoid(proto @ im.permute(g, coefs, [1, 0]))
    masks = _crop(g, masks, boxes, params.proto)
    return g.Identity(im.permute(g, masks, [2, 0, 1]))


def _looped(g: Builder, params: Yolact, maps: list[list[Value]], batch: int) -> list[Value]:
    levels = len(params.levels)
    lists = [g.SequenceConstruct(*kind) for kind in maps]
    priors = shared.anchors_loop(g, params, LOOP)

    def image(b: Value) -> tuple[Value, Value, Value]:
        own = [shared.image_maps(g, seq, levels, b) for seq in lists]

        def level(i: Value, *kept: Value) -> list[Value]:
            items = (im.at(g, seq, i) for seq in (*own, priors))
            found = _level(g, params, *items, LOOP)
            return [im.append(g, seq, v) for seq, v in zip(kept, found)]

        kept = g.loop(level, [g.empty_sequence(np.float32)] * 3, trip=levels)
        return _fast_nms(g, params, *shared.concat_lists(g, *kept), LOOP)

    return shared.per_image(g, batch, image, (np.float32, np.int64, np.float32))


def _unrolled(g: Builder, params: Yolact, maps: list[list[Value]], batch: int) -> list[Value]:
    priors = [shared.anchors_of(g, level, UNROLLED) for level in params.levels]

    def image(b: Value) -> tuple[Value, Value, Value]:
        found = []
        for *level, grid in zip(*maps, priors):
            own = (im.select(g, m, 0, b) for m in level)
            found.append(_level(g, params, *own, grid, UNROLLED))
        kept = (g.Concat(*part, axis=0) for part in zip(*found))
        return _fast_nms(g, params, *kept, UNROLLED)

    return shared.per_image(g, batch, image, (np.float32, np.int64, np.float32))


def build(params: Yolact, name: str, unrolled: bool, batch: int) -> onnx.ModelProto:
    """The program; inputs box_l, cls_l, coef_l, proto; outputs dets ... masks."""
    g = Builder(name, __doc__)
    sizes = [level.size for level in params.levels]
    kinds = (("box", 4), ("cls", params.classes + 1), ("coef", params.coefs))
    maps = [
        [
            g.input(f"{kind}_{i}", np.float32, [batch, params.anchors * width, s, s])
            for i, s in enumerate(sizes)
        ]
        for kind, width in kinds
    ]
    side, depth = params.proto, params.coefs
    proto = g.input("proto", np.float32, [batch, depth, side, side])
    dets, labels, coefs = (_unrolled if unrolled else _looped)(g, params, maps, batch)
    proto = g.Identity(im.permute(g, proto, [0, 2, 3, 1]))

    def image(b: Value) -> tuple[Value]:
        boxes = im.slice_(g, im.at(g, dets, b), 0, 4)
        return (_masks(g, params, im.select(g, proto, 0, b), im.at(g, coefs, b), boxes),)

    (masks,) = shared.per_image(g, batch, image, (np.float32,))
    results = {"dets": (dets, [5]), "labels": (labels, [])}
    results |= {"coefs": (coefs, [depth]), "masks": (masks, [side, side])}
    shared.outputs(g, batch, results)
    return g.model()
