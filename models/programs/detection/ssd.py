"""SSD: softmax scores and delta-coded boxes on six levels of anchors."""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder, Value
from models.programs.detection import shared
from models.programs.detection.params import Ssd
from models.programs.detection.shared import Form

LOOP = Form(unrolled=False, span="elements", mask="compress")
UNROLLED = Form(unrolled=True, column="elements", mask="gather")


def _level(
    g: Builder, params: Ssd, cls: Value, box: Value, priors: Value, form: Form
) -> tuple[Value, Value, Value]:
    """Candidates of one level of one image: boxes (m, 4), scores (m), classes (m)."""
    deltas = shared.map_rows(g, box, 4)
    logits = shared.map_rows(g, cls, params.classes + 1)
    scores = im.slice_(g, g.Softmax(logits, axis=-1), 0, -1)
    best, classes, rows = shared.filter_topk(g, scores, params.score, params.cap, form)
    deltas = im.gather_rows(g, deltas, rows)
    boxes = shared.delta_decode(g, im.gather_rows(g, priors, rows), deltas, form)
    return boxes, best, classes


def _looped(g: Builder, params: Ssd, cls: list[Value], box: list[Value], batch: int):
    levels = len(params.levels)
    cls_list, box_list = g.SequenceConstruct(*cls), g.SequenceConstruct(*box)
    priors = shared.anchors_loop(g, params, LOOP)

    def image(b: Value) -> tuple[Value, Value]:
        own_cls = shared.image_maps(g, cls_list, levels, b)
        own_box = shared.image_maps(g, box_list, levels, b)

        def level(i: Value, *lists: Value) -> list[Value]:
            maps = (im.at(g, seq, i) for seq in (own_cls, own_box, priors))
            found = _level(g, params, *maps, LOOP)
            return [im.append(g, seq, v) for seq, v in zip(lists, found)]

        start = [g.empty_sequence(d) for d in (np.float32, np.float32, np.int64)]
        found = shared.concat_lists(g, *g.loop(level, start, trip=levels))
        return shared.suppress(g, *found, params)

    return shared.per_image(g, batch, image, (np.float32, np.int64))


def _unrolled(g: Builder, params: Ssd, cls: list[Value], box: list[Value], batch: int):
    priors = [shared.anchors_of(g, level, UNROLLED) for level in params.levels]

    def image(b: Value) -> tuple[Value, Value]:
        found = [
            _level(g, params, im.select(g, c, 0, b), im.select(g, x, 0, b), p, UNROLLED)
            for c, x, p in zip(cls, box, priors)
        ]
        return shared.suppress(g, *(g.Concat(*part, axis=0) for part in zip(*found)), params)

    return shared.per_image(g, batch, image, (np.float32, np.int64))


def build(params: Ssd, name: str, unrolled: bool, batch: int) -> onnx.ModelProto:
    """The program; inputs cls_l, box_l per level, outputs dets and labels."""
    g = Builder(name, __doc__)
    sizes = [level.size for level in params.levels]
    cls, box = (
        [
            g.input(f"{kind}_{i}", np.float32, [batch, params.anchors * width, s, s])
            for i, s in enumerate(sizes)
        ]
        for kind, width in (("cls", params.classes + 1), ("box", 4))
    )
    program = _unrolled if unrolled else _looped
    dets, labels = program(g, params, cls, box, batch)
    shared.outputs(g, batch, {"dets": (dets, [5]), "labels": (labels, [])})
    return g.model()
