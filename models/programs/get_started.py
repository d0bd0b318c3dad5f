"""Row-wise increment in a counted loop.

`b` is copied; for i < n, row i of the copy is read, incremented and written
back.  Iteration i touches row i only, so the loop-carried tensor is a false
dependence.  `a` is an input that nothing uses.
"""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder
from models.lib.data import uniform
from models.lib.program import Program, Rng, Size, Values


class GetStarted(Program):
    """a, b [rows, columns], n scalar -> b' [rows, columns]; symbolic dims."""

    name = "get_started"

    def __init__(self, rows: int = 1024, columns: int = 1024, trips: int = 3) -> None:
        self.rows, self.columns, self.trips = rows, columns, trips

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("get_started")
        g.input("a", np.float32, ["rows", "columns"])
        b = g.input("b", np.float32, ["rows", "columns"])
        n = g.input("n", np.int64, [])

        def body(i, b):
            row = im.select(g, b, 0, i)
            return [im.assign_row(g, b, i, row + 1.0)]

        g.output(g.loop(body, [g.Identity(b)], trip=n), "out", ["rows", "columns"])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        a = uniform(rng, self.rows, self.columns)
        b = uniform(rng, self.rows, self.columns)
        return [a, b, np.array(self.trips, np.int64)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        _, b, n = inputs
        rows = np.arange(b.shape[0])[:, None]
        return [b + (rows < n).astype(np.float32)]
