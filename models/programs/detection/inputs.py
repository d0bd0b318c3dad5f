"""Seeded synthetic feature maps: sparse objects over a quiet background.

Background logits stay well below the thresholds; a few objects are planted on the
anchors that fit them best, so suppression sees clusters of overlapping boxes.  Seeds
whose data would leave a decision within rounding of flipping are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.programs.detection.params import (
    IMAGE,
    Detector,
    Fcos,
    PointDetector,
    Rtmdet,
    Ssd,
    Yolact,
    Yolov3,
)
from models.programs.detection.reference import Margins, all_anchors, detect, point_grid

Array = np.ndarray
Inputs = dict[str, Array]

ATTEMPTS = 400


@dataclass(frozen=True)
class Scene:
    """What the image shows: number of objects, and anchors that see each of them."""

    objects: int = 14
    witnesses: int = 3
    quiet: float = 0.0  # subtracted from every background logit


def _objects(rng: np.random.Generator, count: int) -> Array:
    """Random boxes (count, 4) of realistic sizes, some of them cut by the image border.

    The first one covers the top left corner: its box needs clamping, and its mask is
    not empty although masks are cropped without rescaling the box.
    """
    side = np.exp(rng.uniform(np.log(30), np.log(220), (count, 2)))
    side[:, 1] = np.clip(side[:, 1], side[:, 0] / 2, side[:, 0] * 2)
    low = rng.uniform(-0.1, 1.1, (count, 2)) * (IMAGE - side)
    low[:1] = rng.uniform(-0.3, -0.1, (1, 2)) * side[:1]
    return np.concatenate([low, low + side], axis=1).astype(np.float32)


def _overlaps(a: Array, b: Array) -> Array:
    """IoU of every a (n, 4) with every b (m, 4)."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(-1)
    area_a, area_b = ((x[:, 2:] - x[:, :2]).prod(-1) for x in (a, b))
    return shared / (area_a[:, None] + area_b[None] - shared)


def _seen_by(fit: Array, count: int) -> Array:
    """The `count` best-fitting anchors (objects, count) for fit (objects, anchors)."""
    return np.argsort(-fit, axis=1, kind="stable")[:, :count]


def _to_map(rows: Array, params: Detector, channels: int) -> list[Array]:
    """Anchor rows (N, channels) as one map (1, A * channels, S, S) per level."""
    ends = np.cumsum([level.rows for level in params.levels])
    maps = []
    for level, part in zip(params.levels, np.split(rows, ends[:-1])):
        cells = part.reshape(level.size, level.size, params.anchors * channels)
        maps.append(cells.transpose(2, 0, 1)[None])
    return maps


def _rounded(x: Array) -> Array:
    """x as float32 multiples of 2**-14: the same bytes whatever exp() and log() do."""
    return np.ascontiguousarray(np.rint(x * 2.0**14) / 2.0**14, dtype=np.float32)


def _named(prefix: str, maps: list[Array]) -> Inputs:
    return {f"{prefix}_{i}": _rounded(m) for i, m in enumerate(maps)}


def _centre_size(boxes: Array) -> tuple[Array, Array]:
    return (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]


def _yolov3_maps(params: Yolov3, scene: Scene, rng: np.random.Generator) -> Inputs:
    anchors = all_anchors(params)
    stride = np.repeat(
        [level.stride for level in params.levels], [level.rows for level in params.levels]
    )
    rows = rng.normal(0, 0.5, (len(anchors), 5 + params.classes))
    rows[:, 4] = rng.normal(-7, 1, len(anchors)) - scene.quiet
    rows[:, 5:] = rng.normal(-6, 1, (len(anchors), params.classes)) - scene.quiet
    boxes = _objects(rng, scene.objects)
    middle, side = _centre_size(anchors)
    for box, witnesses in zip(boxes, _seen_by(_overlaps(boxes, anchors), scene.witnesses)):
        centre, size = _centre_size(box[None])
        label = rng.integers(params.classes)
        shift = (centre - middle[witnesses]) / stride[witnesses, None] + 0.5
        shift = np.clip(shift, 0.03, 0.97)
        noise = rng.normal(0, 0.05, (len(witnesses), 2))
        rows[witnesses, 0:2] = np.log(shift / (1 - shift)) + noise
        rows[witnesses, 2:4] = np.log(size / side[witnesses]) + noise[:, ::-1]
        rows[witnesses, 4] = rng.normal(3, 0.5, len(witnesses))
        rows[witnesses, 5 + label] = rng.normal(2, 0.5, len(witnesses))
    return _named("pred", _to_map(rows, params, 5 + params.classes))


def _anchor_maps(params: Ssd | Yolact, scene: Scene, rng: np.random.Generator) -> Inputs:
    """Softmax class maps (background last) and delta-coded box maps."""
    anchors = all_anchors(params)
    logits = rng.normal(-6, 1, (len(anchors), params.classes + 1)) - scene.quiet
    logits[:, -1] = 6
    deltas = rng.normal(0, 0.5, (len(anchors), 4))
    boxes = _objects(rng, scene.objects)
    middle, side = _centre_size(anchors)
    for box, witnesses in zip(boxes, _seen_by(_overlaps(boxes, anchors), scene.witnesses)):
        centre, size = _centre_size(box[None])
        label = rng.integers(params.classes)
        noise = rng.normal(0, 0.1, (len(witnesses), 4))
        deltas[witnesses, :2] = (centre - middle[witnesses]) / side[witnesses] / 0.1
        deltas[witnesses, 2:] = np.log(size / side[witnesses]) / 0.2
        deltas[witnesses] += noise
        logits[witnesses, -1] = rng.normal(0, 1, len(witnesses))
        logits[witnesses, label] = rng.normal(2, 0.5, len(witnesses))
    return _named("cls", _to_map(logits, params, params.classes + 1)) | _named(
        "box", _to_map(deltas, params, 4)
    )


def _ssd_maps(params: Ssd, scene: Scene, rng: np.random.Generator) -> Inputs:
    return _anchor_maps(params, scene, rng)


def _yolact_maps(params: Yolact, scene: Scene, rng: np.random.Generator) -> Inputs:
    maps = _anchor_maps(params, scene, rng)
    rows = sum(level.rows for level in params.levels)
    coefs = np.tanh(rng.normal(0, 1, (rows, params.coefs)))
    proto = np.maximum(rng.normal(0, 1, (1, params.coefs, params.proto, params.proto)), 0)
    maps |= _named("coef", _to_map(coefs, params, params.coefs))
    return maps | {"proto": _rounded(proto)}


def _fcos_maps(params: PointDetector, scene: Scene, rng: np.random.Generator) -> Inputs:
    points = np.concatenate([point_grid(params, level) for level in params.levels])
    stride = np.repeat(
        [level.stride for level in params.levels], [level.rows for level in params.levels]
    )
    logits = rng.normal(-6, 1, (len(points), params.classes)) - scene.quiet
    reach = np.abs(rng.normal(0, 40, (len(points), 4)))
    centred = rng.normal(0, 1, (len(points), 1))
    boxes = _objects(rng, scene.objects)
    middle, side = _centre_size(boxes)
    away = np.abs(points[None] - middle[:, None]).max(axis=-1) / side.max(axis=1)[:, None]
    wrong_level = np.abs(np.log2(side.max(axis=1)[:, None] / (6 * stride[None])))
    for box, witnesses in zip(boxes, _seen_by(-away - wrong_level, scene.witnesses)):
        label = rng.integers(params.classes)
        exact = np.concatenate(
            [points[witnesses] - box[:2], box[2:] - points[witnesses]], axis=1
        )
        reach[witnesses] = np.maximum(exact + rng.normal(0, 1, exact.shape), 1)
        logits[witnesses, label] = rng.normal(2, 0.5, len(witnesses))
        centred[witnesses] = rng.normal(1, 0.5, (len(witnesses), 1))
    return (
        _named("cls", _to_map(logits, params, params.classes))
        | _named("box", _to_map(reach, params, 4))
        | _named("ctr", _to_map(centred, params, 1))
    )


def _rtmdet_maps(params: Rtmdet, scene: Scene, rng: np.random.Generator) -> Inputs:
    maps = _fcos_maps(params, scene, rng)
    return {name: maps[name] for name in map_names(params)}


_MAPS = {
    Yolov3: _yolov3_maps,
    Ssd: _ssd_maps,
    Yolact: _yolact_maps,
    Fcos: _fcos_maps,
    Rtmdet: _rtmdet_maps,
}


def image(params: Detector, rng: np.random.Generator, scene: Scene) -> Inputs:
    """Feature maps of one image (batch 1) whose detections are unambiguous."""
    for _ in range(ATTEMPTS):
        maps = _MAPS[type(params)](params, scene, rng)
        margins = Margins()
        detect(params, maps, margins)
        if margins.safe:
            return {name: maps[name] for name in map_names(params)}
    raise RuntimeError(f"no unambiguous image for {params}")


def map_names(params: Detector) -> list[str]:
    """Names of the feature maps, in the order of the model's inputs."""
    kinds = {
        Yolov3: ("pred",),
        Ssd: ("cls", "box"),
        Yolact: ("box", "cls", "coef"),
        Fcos: ("cls", "box", "ctr"),
        Rtmdet: ("cls", "box"),
    }[type(params)]
    names = [f"{kind}_{i}" for kind in kinds for i in range(len(params.levels))]
    return names + (["proto"] if isinstance(params, Yolact) else [])


def tiled(maps: Inputs, batch: int) -> Inputs:
    """The same image `batch` times, as the published batch sweep does."""
    return {name: np.repeat(x, batch, axis=0) for name, x in maps.items()}


def stacked(images: list[Inputs]) -> Inputs:
    """Different images as one batch."""
    return {name: np.concatenate([i[name] for i in images]) for name in images[0]}
