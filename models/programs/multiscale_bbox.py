"""Box decoding over lists: one loop iteration per pyramid level.

    for box, pred, stride in zip(boxes, preds, strides):
        centre = (box[:, 0:2] + box[:, 2:4]) * 0.5 + (pred[:, 0:2] - 0.5) * stride
        half = (box[:, 2:4] - box[:, 0:2]) * 0.5 * exp(pred[:, 2:4])
        out.append(stack(centre - half, centre + half))

The levels differ in their number of boxes and do not depend on each other: the
loop is a parallel map in disguise.
"""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder, Value
from models.lib.data import uniform
from models.lib.program import Program, Rng, Size, Values

STRIDES = (8.0, 16.0, 32.0)


def decode(g: Builder, box: Value, pred: Value, stride: Value) -> Value:
    """box, pred [n, 4], stride scalar -> corner boxes [n, 4]."""
    x1, y1, x2, y2 = (im.select(g, box, -1, k) for k in range(4))
    px, py, pw, ph = (im.select(g, pred, -1, k) for k in range(4))
    cx = (x1 + x2) * 0.5 + (px - 0.5) * stride
    cy = (y1 + y2) * 0.5 + (py - 0.5) * stride
    hx = (x2 - x1) * 0.5 * g.Exp(pw)
    hy = (y2 - y1) * 0.5 * g.Exp(ph)
    return im.stack(g, [cx - hx, cy - hy, cx + hx, cy + hy])


class MultiScaleBbox(Program):
    """Lists of boxes [n_i, 4], predictions [n_i, 4], strides [] -> list of [n_i, 4].

    Forms: `loop` takes the lists as sequences and loops over them; `levels` takes
    one input per level (strides are constants), builds the sequences and loops;
    `map` is `loop` written with SequenceMap, the explicitly parallel spelling.
    """

    name = "multiscale_bbox"

    def __init__(self, form: str = "loop", sizes: tuple[int, ...] = (128, 64, 32)) -> None:
        self.form, self.sizes = form, sizes

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("multiscale_bbox")
        if self.form == "levels":
            levels = range(len(self.sizes))
            boxes, preds = (
                g.SequenceConstruct(
                    *[g.input(f"{kind}_{k}", np.float32, [f"n{k}", 4]) for k in levels]
                )
                for kind in ("box", "pred")
            )
            strides = g.SequenceConstruct(*[g.const(s, np.float32) for s in STRIDES])
            trip = g.const(len(self.sizes))
        else:
            boxes = g.sequence_input("boxes", np.float32, [None, 4])
            preds = g.sequence_input("preds", np.float32, [None, 4])
            strides = g.sequence_input("strides", np.float32, [])
            trip = g.SequenceLength(boxes)

        if self.form == "map":
            out = g.sequence_map(lambda *level: [decode(g, *level)], boxes, preds, strides)
        else:

            def body(i, out):
                level = (im.at(g, seq, i) for seq in (boxes, preds, strides))
                return [im.append(g, out, decode(g, *level))]

            out = g.loop(body, [g.empty_sequence(np.float32)], trip=trip)
        g.output(out, "out", [None, 4])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        boxes = [uniform(rng, n, 4) for n in self.sizes]
        preds = [uniform(rng, n, 4) for n in self.sizes]
        if self.form == "levels":
            return [*boxes, *preds]
        return [boxes, preds, [np.array(s, np.float32) for s in STRIDES]]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        n = len(self.sizes)
        boxes, preds = (inputs[:n], inputs[n:]) if self.form == "levels" else inputs[:2]
        out = []
        for box, pred, stride in zip(boxes, preds, STRIDES):
            low, high = np.split(box.astype(np.float64), 2, axis=1)
            shift, log_scale = np.split(pred.astype(np.float64), 2, axis=1)
            centre = (low + high) / 2 + (shift - 0.5) * stride
            half = (high - low) / 2 * np.exp(log_scale)
            decoded = np.concatenate([centre - half, centre + half], axis=1)
            out.append(decoded.astype(np.float32))
        return [out]
