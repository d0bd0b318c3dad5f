"""Independent numpy implementations of the four detectors' post-processing.

Vectorised float32 numpy written from the description of the workloads, not from the
graphs.  Every decision that two float32 implementations could take differently (a
threshold, a top-k cut, an order, an overlap) is reported to a `Margins`, so that the
input generator can refuse data on which the expected output would be ambiguous.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.programs.detection.params import (
    IMAGE,
    Detector,
    Fcos,
    Level,
    PointDetector,
    Rtmdet,
    Ssd,
    Yolact,
    Yolov3,
)

Array = np.ndarray
Inputs = dict[str, Array]

SIGMA = np.array([0.1, 0.1, 0.2, 0.2], np.float32)
MAX_RATIO = 4.135166556742356  # |ln 0.016|


@dataclass
class Margins:
    """How far the closest decision is from flipping, in units of what is needed."""

    slack: float = np.inf

    RELATIVE = 1e-5  # needed between two scores, as a part of the larger
    GRID = 1e-3  # needed between a box edge and a pixel boundary
    ZERO = 0.05  # a coordinate smaller than this has lost its relative precision

    @property
    def safe(self) -> bool:
        return self.slack >= 1.0

    def _note(self, distance: Array, needed: float) -> None:
        if distance.size:
            self.slack = min(self.slack, float(distance.min()) / needed)

    def threshold(self, values: Array, limit: float) -> None:
        """`values` are compared with `limit`."""
        self._note(np.abs(values / np.float32(limit) - 1.0), self.RELATIVE)

    def order(self, larger: Array, smaller: Array) -> None:
        """Each of `larger` is taken before the matching one of `smaller`."""
        scale = np.maximum(np.abs(larger), np.finfo(np.float32).tiny)
        self._note((larger - smaller) / scale, self.RELATIVE)

    def sorted(self, values: Array, count: int) -> None:
        """The first `count` of the descending `values` are returned in this order."""
        head = values[: count + 1]
        self.order(head[:-1], head[1:])

    def cut(self, values: Array, count: int) -> None:
        """The set of the first `count` of the descending `values` is used."""
        if 0 < count < len(values):
            self.order(values[count - 1 : count], values[count : count + 1])

    def overlap(self, box: Array, others: Array, limit: float) -> None:
        """IoU of box (4) and others (n, 4) is compared with `limit`.

        Coordinates are uncertain by their last bit (large for the shifted boxes of
        high classes), so the bounds of the IoU must lie on one side of the limit.
        """
        if not len(others):
            return
        unsure = 2 * np.spacing(np.maximum(np.abs(others).max(axis=1), np.abs(box).max()))
        unsure = np.maximum(unsure, 1e-4).astype(np.float64)
        extent = _intersection_extent(box.astype(np.float64), others.astype(np.float64))
        area = _area(box.astype(np.float64)) + _area(others.astype(np.float64))
        slop = unsure * (np.ptp(box) + np.ptp(others, axis=1)) * 2
        less = np.maximum(extent - 2 * unsure[:, None], 0).prod(axis=1)
        more = np.maximum(extent + 2 * unsure[:, None], 0).prod(axis=1)
        low = less / np.maximum(area - less + slop, 1e-9)
        high = more / np.maximum(area - more - slop, 1e-9)
        if ((low <= limit) & (high > limit) & (more > 0)).any():
            self.slack = 0.0

    def grid(self, edges: Array, size: int) -> None:
        """Box edges are compared with the pixel numbers 0..size."""
        near = edges[(edges > 0) & (edges < size + 1)]
        self._note(np.abs(near - np.rint(near)), self.GRID)

    def precision(self, boxes: Array) -> None:
        """`boxes` are returned; cancellation must not leave a tiny coordinate."""
        self._note(np.abs(boxes[boxes != 0]), self.ZERO)


def sigmoid(x: Array) -> Array:
    return (1.0 / (1.0 + np.exp(-x))).astype(np.float32)


def softmax(x: Array) -> Array:
    """Softmax over the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rows_of(feature_map: Array, width: int) -> Array:
    """Map (C, S, S) with C = A * width as rows (S * S * A, width)."""
    return np.moveaxis(feature_map, 0, -1).reshape(-1, width)


def anchor_grid(level: Level) -> Array:
    """Anchors of a level, cell-major (S * S * A, 4)."""
    at = np.arange(level.size, dtype=np.float32) * level.stride
    y, x = np.meshgrid(at, at, indexing="ij")
    shift = np.stack([x, y, x, y], axis=-1).reshape(-1, 1, 4)
    return (shift + level.base_boxes).reshape(-1, 4)


def point_grid(params: PointDetector, level: Level) -> Array:
    """The points of a level (S * S, 2) as (x, y)."""
    at = (np.arange(level.size, dtype=np.float32) + params.offset) * level.stride
    y, x = np.meshgrid(at, at, indexing="ij")
    return np.stack([x, y], axis=-1).reshape(-1, 2).astype(np.float32)


def all_anchors(params: Detector) -> Array:
    return np.concatenate([anchor_grid(level) for level in params.levels])


def filter_topk(
    scores: Array, limit: float, cap: int, margins: Margins
) -> tuple[Array, Array, Array]:
    """The `cap` largest of scores (n, C) above limit: values, classes, rows (each m)."""
    margins.threshold(scores, limit)
    rows, classes = np.nonzero(scores > limit)
    values = scores[rows, classes]
    order = np.argsort(-values, kind="stable")
    margins.cut(values[order], cap)
    order = order[:cap]
    return values[order], classes[order], rows[order]


def delta_decode(priors: Array, deltas: Array) -> Array:
    """Boxes (m, 4) from priors (m, 4) and deltas (m, 4), clamped to the image."""
    e = deltas * SIGMA
    centre = (priors[:, :2] + priors[:, 2:]) * 0.5
    size = priors[:, 2:] - priors[:, :2]
    half = 0.5 * size * np.exp(np.clip(e[:, 2:], -MAX_RATIO, MAX_RATIO))
    middle = centre + size * e[:, :2]
    boxes = np.concatenate([middle - half, middle + half], axis=1)
    return np.clip(boxes, 0.0, IMAGE).astype(np.float32)


def _area(boxes: Array) -> Array:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def _intersection_extent(a: Array, b: Array) -> Array:
    """Width and height (possibly negative) of the intersection (..., 2)."""
    return np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])


def greedy_nms(boxes: Array, scores: Array, limit: float, margins: Margins) -> Array:
    """Indices that survive greedy suppression, by descending score."""
    order = np.argsort(-scores, kind="stable")
    keep = []
    while order.size:
        best, rest = order[0], order[1:]
        keep.append(best)
        shared = np.maximum(_intersection_extent(boxes[best], boxes[rest]), 0).prod(axis=1)
        union = _area(boxes[best]) + _area(boxes[rest]) - shared
        hit = shared > limit * union
        margins.overlap(boxes[best], boxes[rest], limit)
        margins.order(np.broadcast_to(scores[best], hit.sum()), scores[rest[hit]])
        order = rest[~hit]
    return np.array(keep, np.int64)


def class_aware_nms(
    boxes: Array, scores: Array, classes: Array, params: Detector, margins: Margins
) -> tuple[Array, Array]:
    """Detections (K, 5) and labels (K): suppression within each class."""
    if not len(boxes):
        return np.zeros((0, 5), np.float32), np.zeros(0, np.int64)
    offset = classes.astype(np.float32) * (boxes.max() + np.float32(1))
    shifted = (boxes + offset[:, None]).astype(np.float32)
    keep = greedy_nms(shifted, scores, params.iou, margins)
    margins.sorted(scores[keep], params.limit)
    keep = keep[: params.limit]
    margins.precision(boxes[keep])
    dets = np.concatenate([boxes[keep], scores[keep, None]], axis=1)
    return dets.astype(np.float32), classes[keep].astype(np.int64)


def yolov3_image(params: Yolov3, maps: Inputs, margins: Margins) -> tuple[Array, ...]:
    """One image: maps pred_l (A * (5 + C), S, S) to dets (K, 5), labels (K)."""
    width = 5 + params.classes
    raw = np.concatenate([rows_of(maps[f"pred_{i}"], width) for i in range(len(params.levels))])
    stride = np.concatenate(
        [np.full((level.rows, 1), level.stride, np.float32) for level in params.levels]
    )
    anchors = all_anchors(params)
    centre = (anchors[:, :2] + anchors[:, 2:]) * 0.5 + (sigmoid(raw[:, :2]) - 0.5) * stride
    half = (anchors[:, 2:] - anchors[:, :2]) * 0.5 * np.exp(raw[:, 2:4])
    boxes = np.concatenate([centre - half, centre + half], axis=1).astype(np.float32)
    sure = sigmoid(raw[:, 4])
    margins.threshold(sure, params.confidence)
    rows = np.nonzero(sure >= params.confidence)[0]
    scores = sigmoid(raw[rows, 5:])
    margins.threshold(scores, params.score)
    at, classes = np.nonzero(scores > params.score)
    final = scores[at, classes] * sure[rows[at]]
    return class_aware_nms(boxes[rows[at]], final, classes, params, margins)


def ssd_image(params: Ssd, maps: Inputs, margins: Margins) -> tuple[Array, ...]:
    """One image: maps cls_l (A * (C + 1), S, S), box_l (A * 4, S, S) to dets, labels."""
    parts = []
    for i, level in enumerate(params.levels):
        scores = softmax(rows_of(maps[f"cls_{i}"], params.classes + 1))[:, :-1]
        values, classes, rows = filter_topk(scores, params.score, params.cap, margins)
        deltas = rows_of(maps[f"box_{i}"], 4)[rows]
        parts.append((delta_decode(anchor_grid(level)[rows], deltas), values, classes))
    boxes, scores, classes = (np.concatenate(part) for part in zip(*parts))
    return class_aware_nms(boxes, scores, classes, params, margins)


def point_image(params: PointDetector, maps: Inputs, margins: Margins) -> tuple[Array, ...]:
    """One image: maps cls_l (C, S, S), box_l (4, S, S) to dets, labels.

    FCOS has centre-ness maps ctr_l (1, S, S) too.
    """
    parts = []
    for i, level in enumerate(params.levels):
        scores = sigmoid(rows_of(maps[f"cls_{i}"], params.classes))
        values, classes, rows = filter_topk(scores, params.score, params.cap, margins)
        reach = rows_of(maps[f"box_{i}"], 4)[rows]
        point = point_grid(params, level)[rows]
        box = np.concatenate([point - reach[:, :2], point + reach[:, 2:]], axis=1)
        if isinstance(params, Fcos):
            values = values * sigmoid(maps[f"ctr_{i}"].reshape(-1)[rows])
        parts.append((np.clip(box, 0.0, IMAGE), values, classes))
    boxes, scores, classes = (np.concatenate(part) for part in zip(*parts))
    return class_aware_nms(boxes, scores, classes, params, margins)


def _fast_nms(
    params: Yolact, boxes: Array, scores: Array, margins: Margins
) -> tuple[Array, Array, Array]:
    """YOLACT's suppression: values, classes and box rows of the survivors, sorted.

    A box goes when any better box of its class overlaps it, survivor or not.
    """
    found = []
    margins.threshold(scores, params.score)
    for k in range(params.classes):
        order = np.argsort(-scores[:, k], kind="stable")[: params.top]
        value = scores[order, k]
        order = order[value > params.score]  # weaker boxes cannot suppress better ones
        value = scores[order, k]
        margins.sorted(value, len(value))
        for j, row in enumerate(order):
            better = boxes[order[:j]]
            margins.overlap(boxes[row], better, params.iou)
            shared = np.maximum(_intersection_extent(boxes[row], better), 0).prod(axis=1)
            union = _area(boxes[row]) + _area(better) - shared
            if (shared <= params.iou * np.maximum(union, 1e-6)).all():
                found.append((value[j], k, row))
    values = np.array([f[0] for f in found], np.float32)
    order = np.argsort(-values, kind="stable")
    margins.sorted(values[order], params.limit)
    order = order[: params.limit]
    classes = np.array([f[1] for f in found], np.int64)
    rows = np.array([f[2] for f in found], np.int64)
    return values[order], classes[order], rows[order]


def _inside(low: Array, high: Array, size: int) -> Array:
    """Which of `size` pixels lie in the padded intervals [low, high): bool (K, size)."""
    low = np.minimum(low, high)
    pixel = np.arange(size, dtype=np.float32)
    low = np.maximum(low - 1, 0)[:, None]
    high = np.minimum(high + 1, size)[:, None]
    return (pixel >= low) & (pixel < high)


def crop_masks(masks: Array, boxes: Array) -> Array:
    """Masks (K, h, h) set to zero outside boxes (K, 4), which are not rescaled."""
    size = masks.shape[-1]
    columns = _inside(boxes[:, 0], boxes[:, 2], size)
    rows = _inside(boxes[:, 1], boxes[:, 3], size)
    return masks * (rows[:, :, None] & columns[:, None, :])


def yolact_image(params: Yolact, maps: Inputs, margins: Margins) -> tuple[Array, ...]:
    """One image: box_l, cls_l, coef_l, proto to dets, labels, coefs (K, c), masks."""
    parts = []
    for i, level in enumerate(params.levels):
        scores = softmax(rows_of(maps[f"cls_{i}"], params.classes + 1))[:, :-1]
        best = scores.max(axis=1)
        order = np.argsort(-best, kind="stable")
        margins.cut(best[order], params.cap)
        rows = order[: params.cap]
        boxes = delta_decode(anchor_grid(level)[rows], rows_of(maps[f"box_{i}"], 4)[rows])
        coefs = rows_of(maps[f"coef_{i}"], params.coefs)[rows]
        parts.append((boxes, scores[rows], coefs))
    boxes, scores, coefs = (np.concatenate(part) for part in zip(*parts))
    values, labels, rows = _fast_nms(params, boxes, scores, margins)
    boxes, coefs = boxes[rows], coefs[rows]
    margins.grid(boxes, params.proto)
    margins.precision(boxes)
    masks = sigmoid(np.einsum("kc,chw->khw", coefs, maps["proto"]))
    masks = crop_masks(masks, boxes).astype(np.float32)
    return np.concatenate([boxes, values[:, None]], axis=1), labels, coefs, masks


IMAGE_PROGRAMS = {
    Yolov3: yolov3_image,
    Ssd: ssd_image,
    Yolact: yolact_image,
    Fcos: point_image,
    Rtmdet: point_image,
}


def detect(params: Detector, inputs: Inputs, margins: Margins | None = None) -> list[tuple]:
    """Every image of the batch: a list of (dets, labels, ...) tuples."""
    program = IMAGE_PROGRAMS[type(params)]
    margins = margins if margins is not None else Margins()
    batch = next(iter(inputs.values())).shape[0]
    return [
        program(params, {name: x[b] for name, x in inputs.items()}, margins)
        for b in range(batch)
    ]
