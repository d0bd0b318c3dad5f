"""RTMDet: one point per cell and distances to the box edges, on three levels."""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder, Value
from models.programs.detection import shared
from models.programs.detection.fcos import decode
from models.programs.detection.params import Rtmdet
from models.programs.detection.shared import Form

LOOP = Form(unrolled=False, column="transpose", span="elements", mask="gather")
UNROLLED = Form(unrolled=True, column="nd", mask="compress")

# Kept per level: distances, points, scores, classes.
_LISTS = (np.float32, np.float32, np.float32, np.int64)


def _level(
    g: Builder, params: Rtmdet, cls: Value, box: Value, grid: Value, form: Form
) -> tuple[Value, ...]:
    """Candidates of one level of one image, in the order of _LISTS (m rows each)."""
    reach = shared.map_rows(g, box, 4)
    scores = g.Sigmoid(shared.map_rows(g, cls, params.classes))
    best, classes, rows = shared.filter_topk(g, scores, params.score, params.cap, form)
    return im.gather_rows(g, reach, rows), im.gather_rows(g, grid, rows), best, classes


def _finish(g: Builder, params: Rtmdet, found: list[Value], form: Form) -> tuple[Value, Value]:
    """Detections of one image from the candidates of all levels."""
    reach, grid, scores, classes = found
    return shared.suppress(g, decode(g, reach, grid, form), scores, classes, params)


def _looped(g: Builder, params: Rtmdet, maps: list[list[Value]], batch: int) -> list[Value]:
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


def _unrolled(g: Builder, params: Rtmdet, maps: list[list[Value]], batch: int) -> list[Value]:
    grids = [shared.points_of(g, params, level, UNROLLED) for level in params.levels]

    def image(b: Value) -> tuple[Value, Value]:
        found = []
        for cls, box, grid in zip(*maps, grids):
            own = (im.select(g, m, 0, b) for m in (cls, box))
            found.append(_level(g, params, *own, grid, UNROLLED))
        kept = [g.Concat(*part, axis=0) for part in zip(*found)]
        return _finish(g, params, kept, UNROLLED)

    return shared.per_image(g, batch, image, (np.float32, np.int64))


def build(params: Rtmdet, name: str, unrolled: bool, batch: int) -> onnx.ModelProto:
    """The program; inputs cls_l, box_l per level, outputs dets and labels."""
    g = Builder(name, __doc__)
    maps = [
        [
            g.input(f"{kind}_{i}", np.float32, [batch, width, level.size, level.size])
            for i, level in enumerate(params.levels)
        ]
        for kind, width in (("cls", params.classes), ("box", 4))
    ]
    dets, labels = (_unrolled if unrolled else _looped)(g, params, maps, batch)
    shared.outputs(g, batch, {"dets": (dets, [5]), "labels": (labels, [])})
    return g.model()
