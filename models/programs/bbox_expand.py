"""Row writes that store what is already there.

For every label i, row i of a copy receives row i of the original, for two
tensors at once.  The result equals the input, so both loops can go.
"""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder
from models.lib.data import normal
from models.lib.program import Program, Rng, Size, Values


class BboxExpand(Program):
    """t, w [n, 4], labels [k] -> copies of t and w."""

    name = "bbox_expand"

    def __init__(self, rows: int = 300) -> None:
        self.rows = rows

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("bbox_expand")
        t = g.input("t", np.float32, ["n", 4])
        w = g.input("w", np.float32, ["n", 4])
        labels = g.input("labels", np.int64, ["k"])

        def body(i, t_copy, w_copy):
            label = im.select(g, labels, 0, i)
            t_copy = im.assign_row(g, t_copy, label, im.select(g, t, 0, label))
            w_copy = im.assign_row(g, w_copy, label, im.select(g, w, 0, label))
            return [t_copy, w_copy]

        copies = [g.Identity(t), g.Identity(w)]
        t_out, w_out = g.loop(body, copies, trip=im.dim(g, labels, 0))
        g.output(t_out, "t_out", ["n", 4])
        g.output(w_out, "w_out", ["n", 4])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        t, w = normal(rng, self.rows, 4), normal(rng, self.rows, 4)
        return [t, w, np.array([1, 2, 3, 4], np.int64)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        return [inputs[0].copy(), inputs[1].copy()]
