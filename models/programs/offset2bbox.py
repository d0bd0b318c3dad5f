"""Offset decoding that ends in strided column writes.

The first write, `r[:] = left`, covers every column by broadcasting; the columns
1, 2 and 3 are overwritten after it.  So the copy `r` starts from is dead.
"""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder
from models.lib.data import normal
from models.lib.program import Program, Rng, Size, Values

LOG_LIMIT = 4.135


class Offset2Bbox(Program):
    """boxes, offset [n, 4] -> [n, 4]."""

    name = "offset2bbox"

    def __init__(self, boxes: int = 3000) -> None:
        self.boxes = boxes

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("offset2bbox")
        boxes = g.input("boxes", np.float32, ["n", 4])
        offset = g.input("offset", np.float32, ["n", 4])
        x1, y1, x2, y2 = (im.select(g, boxes, 1, k) for k in range(4))
        w = x2 - x1 + 1.0
        h = y2 - y1 + 1.0
        cx = x1 + w * 0.5
        cy = y1 + h * 0.5

        # [n, 1] each: columns k::4, as if there were several classes side by side
        dx, dy, dw, dh = (im.slice_(g, offset, k, None, step=4, axis=1) / 1.0 for k in range(4))
        limit = g.const(LOG_LIMIT, np.float32)
        dw, dh = g.Clip(dw, None, limit), g.Clip(dh, None, limit)
        w, h, cx, cy = (im.unsqueeze(g, v, 1) for v in (w, h, cx, cy))
        pcx = dx * w + cx
        pcy = dy * h + cy
        pw = g.Exp(dw) * w
        ph = g.Exp(dh) * h

        r = g.Identity(offset)
        whole = im.expand(g, pcx - pw * 0.5, g.Shape(r))
        r = im.assign_slice(g, r, whole, 0, im.dim(g, r, 0), axis=0)
        r = im.assign_slice(g, r, pcy - ph * 0.5, 1, 4, step=4)
        r = im.assign_slice(g, r, pcx + pw * 0.5 - 1.0, 2, 4, step=4, form="nd")
        r = im.assign_slice(g, r, pcy + ph * 0.5 - 1.0, 3, 4, step=4)
        g.output(r, "out", ["n", 4])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [normal(rng, self.boxes, 4), normal(rng, self.boxes, 4)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        boxes, offset = (v.astype(np.float64) for v in inputs)
        size = boxes[:, 2:] - boxes[:, :2] + 1
        centre = boxes[:, :2] + size / 2 + offset[:, :2] * size
        half = np.exp(np.minimum(offset[:, 2:], LOG_LIMIT)) * size / 2
        out = np.concatenate([centre - half, centre + half - 1], axis=1)
        return [out.astype(np.float32)]
