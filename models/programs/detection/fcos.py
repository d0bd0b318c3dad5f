"""FCOS: one point per cell, distances to the box edges and a centre-ness factor."""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder, Value
from models.programs.detection import shared
from models.programs.detection.params import Fcos
from models.programs.detection.shared import Form

LOOP = Form(unrolled=False, column="nd", span="nd", mask="gather")
UNROLLED = Form(unrolled=True, column="elements", mask="compress")

# Kept per level: distances, points, centre-ness, scores, classes.
_LISTS = (np.float32, np.float32, np.float32, np.float32, np.int64)


def _level(
    g: Builder, params: Fcos, cls: Value, box: Value, ctr: Value, grid: Value, form: Form
) -> tuple[Value, ...]:
    """Candidates of one level of one image, in the order of _LISTS (m rows each)."""
    reach = shared.map_rows(g, box, 4)
    centred = g.Sigmoid(im.reshape(g, im.permute(g, ctr, [1, 2, 0]), [-1]))
    scores = g.Sigmoid(shared.map_rows(g, cls, params.classes))
    best, classes, rows = shared.filter_topk(g, scores, params.score, params.cap, form)
    kept = (im.gather_rows(g, t, rows) for t in (reach, grid, centred))
    return *kept, best, classes


def decode(g: Builder, reach: Value, grid: Value, form: Form) -> Value:
    """Boxes (m, 4) from points (m, 2) and distances left, top, right, bottom (m, 4)."""
    x, y = (im.select(g, grid, -1, k) for k in range(2))
    left, top, right, bottom = (im.select(g, reach, -1, k) for k in range(4))
    edges = [x - left, y - top, x + right, y + bottom]
    if form.unrolled:
        boxes = shared.write_columns(g, g.Identity(reach), edges, form.column)
    else:
        boxes = im.stack(g, edges)
    return shared.clamp_boxes(g, boxes, form)


def _finish(g: Builder, params: Fcos, found: list[Value], form: Form) -> tuple[Value, Value]:
    """Detections of one image from the candidates of all levels."""
    reach, grid, centred, scores, classes = found
    boxes = decode(g, reach, grid, form)
    return shared.suppress(g, boxes, scores * centred, classes, params)


def _looped(g: Builder, params: Fcos, maps: list[list[Value]], batch: int) -> list[Value]:
    levels = len(params.levels)
    lists = [g.SequenceConstruct(*kind) for kind in maps]
    grids = shared.points_loop(g, params, lists[0], LOOP)

    def image(b: Value) -> tuple[Value, Value]:
        own = [shared.image_maps(g, seq, levels, b) for seq in lists]

        def level(i: Value, *kept: Value) -> list[Value]:
            items = (im.at(g, seq, i) for seq in (*own, grids))
            found = _level(g, params, *items, LOOP)
            return [im.append(g, seq, v) for seq, v in zip(kept, found)]

        kept = g.loop(level, [g.empty_sequence(d) for d in _LISTS], trip=levels)
        return _finish(g, params, shared.concat_lists(g, *kept), LOOP)

    return shared.per_image(g, batch, image, (np.float32, np.int64))


def _unrolled(g: Builder, params: Fcos, maps: list[list[Value]], batch: int) -> list[Value]:
    # As published, the points are computed twice; nothing uses the first ones.
    for level in params.levels:
        shared.points_of(g, params, level, UNROLLED)
    grids = [shared.points_of(g, params, level, UNROLLED) for level in params.levels]

    def image(b: Value) -> tuple[Value, Value]:
        found = []
        for *level, grid in zip(*maps, grids):
            own = (im.select(g, m, 0, b) for m in level)
            found.append(_level(g, params, *own, grid, UNROLLED))
        return _finish(g, params, [g.Concat(*part, axis=0) for part in zip(*found)], UNROLLED)

    return shared.per_image(g, batch, image, (np.float32, np.int64))


def build(params: Fcos, name: str, unrolled: bool, batch: int) -> onnx.ModelProto:
    """The program; inputs cls_l, box_l, ctr_l per level, outputs dets and labels."""
    g = Builder(name, __doc__)
    maps = [
        [
            g.input(f"{kind}_{i}", np.float32, [batch, width, level.size, level.size])
            for i, level in enumerate(params.levels)
        ]
        for kind, width in (("cls", params.classes), ("box", 4), ("ctr", 1))
    ]
    dets, labels = (_unrolled if unrolled else _looped)(g, params, maps, batch)
    shared.outputs(g, batch, {"dets": (dets, [5]), "labels": (labels, [])})
    return g.model()
