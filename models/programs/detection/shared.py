"""Sub-programs that the detectors share, as graph fragments.

    anchors, points   cell coordinates of a pyramid level (built, not stored)
    filter_topk       threshold, compaction and top-k per level
    delta_decode      prior + delta -> clamped box
    suppress          class-aware non-maximum suppression with its rare branch
    per_image         the loop over the batch that collects results in lists

Shapes in the comments: n rows of a level, m candidates, K detections, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from models.lib import idioms as im
from models.lib.builder import Builder, Value
from models.programs.detection.params import IMAGE, Detector, Level, PointDetector

SIGMA = (0.1, 0.1, 0.2, 0.2)
MEAN = (0.0, 0.0, 0.0, 0.0)
MAX_RATIO = 4.135166556742356  # |ln 0.016|


@dataclass(frozen=True)
class Form:
    """Structure of a program (Form L or U) and how it spells partial access."""

    unrolled: bool
    column: str = "elements"  # writes of one column, see idioms.assign_column
    span: str = "elements"  # writes of column ranges, see idioms.assign_slice
    mask: str = "compress"  # reads by boolean mask, see idioms.mask_select


def f32(g: Builder, data: object) -> Value:
    """A float32 constant."""
    return g.const(data, np.float32)


def clamp(g: Builder, x: Value, low: float | None, high: float | None) -> Value:
    """Clip with either bound optional."""
    bounds = [None if b is None else f32(g, b) for b in (low, high)]
    return g.Clip(x, *bounds)


def as_column(g: Builder, v: Value) -> Value:
    """The vector v (n) viewed as (n, 1)."""
    return im.unsqueeze(g, v, -1)


# Cell coordinates ------------------------------------------------------------


def _mesh(g: Builder, x: Value, y: Value, size: im.Index) -> tuple[Value, Value]:
    """Coordinates of all cells, row by row: x tiled, each y repeated (size * size)."""
    across = im.tile(g, x, im.vector(g, size))
    column = im.reshape(g, y, [-1, 1])
    wide = im.tile(g, column, g.Concat(g.const([1]), im.vector(g, size), axis=0))
    return across, im.reshape(g, wide, [-1])


def _zero_rows(g: Builder, size: im.Index, width: int) -> Value:
    """Zeros (size * size, width)."""
    side = im.vector(g, size)
    return g.full(g.Concat(g.Mul(side, side), g.const([width]), axis=0), 0, np.float32)


def write_columns(
    g: Builder, x: Value, columns: Sequence[Value], form: str, rank: int = 2
) -> Value:
    """x after all its columns have been overwritten one by one."""
    for k, column in enumerate(columns):
        x = im.assign_column(g, x, k, column, form, rank)
    return x


def anchors(g: Builder, size: im.Index, stride: Value, base: Value, form: Form) -> Value:
    """Anchors (size * size * A, 4) of a level from its base boxes (A, 4)."""
    x = g.cast(im.arange(g, size), np.float32) * stride
    y = g.cast(im.arange(g, size), np.float32) * stride
    xs, ys = _mesh(g, x, y, size)
    if form.unrolled:
        zeros = _zero_rows(g, size, 4)
        shift = write_columns(g, zeros, [xs, ys, xs, ys], form.column)
    else:
        shift = im.stack(g, [xs, ys, xs, ys])
    grid = im.unsqueeze(g, base, 0) + im.unsqueeze(g, shift, 1)
    return im.reshape(g, grid, [-1, 4])


def points(g: Builder, size: im.Index, stride: Value, offset: float, form: Form) -> Value:
    """One point per cell (size * size, 2) of a level."""
    x = (g.cast(im.arange(g, size), np.float32) + offset) * stride
    y = (g.cast(im.arange(g, size), np.float32) + offset) * stride
    xs, ys = _mesh(g, x, y, size)
    return write_columns(g, _zero_rows(g, size, 2), [xs, ys], form.column)


def anchors_of(g: Builder, level: Level, form: Form) -> Value:
    """Anchors of one written-out level."""
    return anchors(g, level.size, f32(g, level.stride), f32(g, level.base_boxes), form)


def points_of(g: Builder, params: PointDetector, level: Level, form: Form) -> Value:
    """Points of one written-out level."""
    return points(g, level.size, f32(g, level.stride), params.offset, form)


def anchors_loop(g: Builder, params: Detector, form: Form) -> Value:
    """A list with the anchors of every level."""
    sizes = g.const([level.size for level in params.levels])
    strides = f32(g, [level.stride for level in params.levels])
    bases = f32(g, [level.base_boxes for level in params.levels])

    def level(i: Value, grids: Value) -> list[Value]:
        size, stride, base = (im.select(g, t, 0, i) for t in (sizes, strides, bases))
        return [im.append(g, grids, anchors(g, size, stride, base, form))]

    return g.loop(level, [g.empty_sequence(np.float32)], trip=len(params.levels))


def points_loop(g: Builder, params: PointDetector, maps: Value, form: Form) -> Value:
    """A list with the points of every level; sizes are read from the maps."""
    strides = f32(g, [level.stride for level in params.levels])

    def level(i: Value, grids: Value) -> list[Value]:
        size = im.dim(g, im.at(g, maps, i), 3)
        stride = im.select(g, strides, 0, i)
        return [im.append(g, grids, points(g, size, stride, params.offset, form))]

    return g.loop(level, [g.empty_sequence(np.float32)], trip=len(params.levels))


# Lists of maps ---------------------------------------------------------------


def image_maps(g: Builder, maps: Value, count: int, b: Value) -> Value:
    """The list of image b's maps: [m[b] for m in maps]."""

    def pick(i: Value, out: Value) -> list[Value]:
        return [im.append(g, out, im.select(g, im.at(g, maps, i), 0, b))]

    return g.loop(pick, [g.empty_sequence(np.float32)], trip=count)


def map_rows(g: Builder, feature_map: Value, width: int) -> Value:
    """One image's map (A * width, S, S) viewed as (n, width)."""
    return im.reshape(g, im.permute(g, feature_map, [1, 2, 0]), [-1, width])


def concat_lists(g: Builder, *lists: Value) -> list[Value]:
    """Each list concatenated on its first axis."""
    return [g.ConcatFromSequence(seq, axis=0) for seq in lists]


# Filtering -------------------------------------------------------------------


def sort_descending(g: Builder, values: Value, cap: int | None = None) -> tuple[Value, Value]:
    """The `cap` largest values (m), descending, with their positions.

    TopK is only reached with at least one value, as the standard wants.
    """
    count = g.Shape(values)
    top = count if cap is None else g.Min(count, g.const([cap]))
    return g.if_(
        im.reshape(g, count, []) > 0,
        lambda: g.op("TopK", values, top, outputs=2, axis=0, largest=1, sorted=1),
        lambda: (values, g.full([0], 0, np.int64)),
    )


def filter_topk(
    g: Builder, scores: Value, limit: float, cap: int, form: Form
) -> tuple[Value, Value, Value]:
    """The `cap` best of scores (n, C) above limit: values, classes, rows (each m)."""
    mask = scores > limit
    values = im.mask_select(g, scores, mask, form.mask)
    where = im.permute(g, g.NonZero(mask), [1, 0])
    best, order = sort_descending(g, values, cap)
    rows = im.gather_rows(g, im.select(g, where, 1, 0), order)
    classes = im.gather_rows(g, im.select(g, where, 1, 1), order)
    return best, classes, rows


# Boxes -----------------------------------------------------------------------


def clamp_boxes(g: Builder, boxes: Value, form: Form) -> Value:
    """Boxes (m, 4) clamped in place: x columns, then y columns, or all at once."""
    if form.unrolled:
        return clamp(g, boxes, 0.0, IMAGE)
    for start in (0, 1):
        columns = im.slice_(g, boxes, start, 4, step=2)
        clamped = clamp(g, columns, 0.0, IMAGE)
        boxes = im.assign_slice(g, boxes, clamped, start, 4, step=2, form=form.span)
    return boxes


def delta_decode(g: Builder, priors: Value, deltas: Value, form: Form) -> Value:
    """Boxes (m, 4) from priors (m, 4) and deltas (m, 4)."""
    e = deltas * f32(g, SIGMA) + f32(g, MEAN)
    shift, ratio = im.slice_(g, e, 0, 2), im.slice_(g, e, 2, None)
    low, high = im.slice_(g, priors, 0, 2), im.slice_(g, priors, 2, None)
    centre = (low + high) * 0.5
    size = high - low
    centre = centre + size * shift
    half = size * g.Exp(clamp(g, ratio, -MAX_RATIO, MAX_RATIO)) * 0.5
    boxes = g.Concat(centre - half, centre + half, axis=-1)
    return clamp_boxes(g, boxes, form)


# Suppression -----------------------------------------------------------------


def with_scores(g: Builder, boxes: Value, scores: Value) -> Value:
    """Boxes (K, 4) and scores (K) as detections (K, 5)."""
    return g.Concat(boxes, as_column(g, scores), axis=-1)


def nms(g: Builder, boxes: Value, scores: Value, iou: float) -> Value:
    """Survivors of greedy suppression over boxes (n, 4), n > 0, by descending score."""
    picked = g.NonMaxSuppression(
        im.unsqueeze(g, boxes, 0),
        im.reshape(g, scores, [1, 1, -1]),
        g.Shape(scores),
        f32(g, [iou]),
    )
    found = im.select(g, picked, 1, 2)
    kept = im.gather_rows(g, scores, found)
    _, order = g.op("TopK", kept, g.Shape(kept), outputs=2, axis=0, largest=1, sorted=1)
    return im.gather_rows(g, found, order)


def _nms_by_class(
    g: Builder, boxes: Value, shifted: Value, scores: Value, classes: Value, iou: float
) -> tuple[Value, Value]:
    """Detections and survivors, one class after the other; for many boxes."""
    count = g.Shape(scores)
    distinct = g.Unique(classes, sorted=1)

    def one_class(i: Value, total: Value, kept: Value) -> list[Value]:
        members = g.Equal(classes, im.select(g, distinct, 0, i))
        chosen = im.reshape(g, g.NonZero(members), [-1])
        own = im.gather_rows(g, scores, chosen)
        keep = nms(g, im.gather_rows(g, shifted, chosen), own, iou)
        at = im.gather_rows(g, chosen, keep)
        true = g.Expand(g.const(True, np.bool_), g.Shape(at))
        total = im.scatter_rows(g, total, at, true)
        return [total, im.scatter_rows(g, kept, at, im.gather_rows(g, own, keep))]

    total, kept = g.loop(
        one_class,
        [g.full(count, False, np.bool_), g.full(count, 0, np.float32)],
        trip=im.dim(g, distinct, 0),
    )
    keep = im.reshape(g, g.NonZero(total), [-1])
    kept = im.gather_rows(g, kept, keep)
    best, order = g.op("TopK", kept, g.Shape(kept), outputs=2, axis=0, largest=1, sorted=1)
    keep = im.gather_rows(g, keep, order)
    return with_scores(g, im.gather_rows(g, boxes, keep), best), keep


def class_aware_nms(
    g: Builder,
    boxes: Value,
    scores: Value,
    classes: Value,
    params: Detector,
) -> tuple[Value, Value]:
    """Detections (K, 5) and survivors (K) of boxes (n, 4), scores (n), classes (n)."""
    far = g.ReduceMax(boxes, keepdims=0) + 1.0
    shifted = boxes + as_column(g, g.cast(classes, np.float32) * far)

    def batched() -> list[Value]:
        keep = nms(g, shifted, scores, params.iou)
        kept = im.gather_rows(g, boxes, keep), im.gather_rows(g, scores, keep)
        return [with_scores(g, *kept), keep]

    return g.if_(
        im.dim(g, scores, 0) < params.batched,
        batched,
        lambda: _nms_by_class(g, boxes, shifted, scores, classes, params.iou),
    )


def suppress(
    g: Builder, boxes: Value, scores: Value, classes: Value, params: Detector
) -> tuple[Value, Value]:
    """The best detections (K, 5) and their labels (K); candidates may be absent."""

    def some() -> list[Value]:
        dets, keep = class_aware_nms(g, boxes, scores, classes, params)
        labels = im.gather_rows(g, classes, keep)
        return [im.slice_(g, t, 0, params.limit, axis=0) for t in (dets, labels)]

    return g.if_(
        g.Equal(im.dim(g, scores, 0), g.const(0)),
        lambda: [with_scores(g, boxes, scores), classes],
        some,
    )


# The batch -------------------------------------------------------------------


def per_image(
    g: Builder, batch: int, image: Callable[[Value], Sequence[Value]], dtypes: Sequence[object]
) -> list[Value]:
    """Lists of the results of image(b) for every b of the batch."""

    def body(b: Value, *lists: Value) -> list[Value]:
        return [im.append(g, seq, v) for seq, v in zip(lists, image(b), strict=True)]

    lists = g.loop(body, [g.empty_sequence(d) for d in dtypes], trip=batch)
    return [lists] if isinstance(lists, Value) else list(lists)


def outputs(
    g: Builder, batch: int, results: dict[str, tuple[Value, Sequence[int | None]]]
) -> None:
    """Results that are lists per image: tensors when there is one image."""
    for name, (images, shape) in results.items():
        if batch == 1:
            g.output(im.at(g, images, 0), name, ["K", *shape])
        else:
            g.output(images, name, [None, *shape])
