"""A branch that writes one row of one tensor from another.

    if idx >= 0: a = a + 1;  b[idx]  = a[idx]
    else:        a = a - 1;  b[-idx] = a[-idx]
    return a + b

Both branches change `b` in place, so the changed `b` has to leave the branch as
an extra result.
"""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder
from models.lib.data import normal
from models.lib.program import Program, Rng, Size, Values


class IfPartialWrite(Program):
    """a, b [rows, columns], idx scalar -> [rows, columns].

    With `fixed_rows` the branches write row 0 and row 1 instead of |idx|.
    """

    name = "if_partial_write"
    data_sets = 4

    def __init__(self, rows: int = 24, columns: int = 32, fixed_rows: bool = False) -> None:
        self.rows, self.columns, self.fixed_rows = rows, columns, fixed_rows

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("if_partial_write")
        a = g.Identity(g.input("a", np.float32, ["rows", "columns"]))
        b = g.Identity(g.input("b", np.float32, ["rows", "columns"]))
        idx = g.input("idx", np.int64, [])

        def then():
            changed = a + 1.0
            row = 0 if self.fixed_rows else idx
            return [changed, im.assign_row(g, b, row, im.select(g, changed, 0, row))]

        def otherwise():
            changed = a - 1.0
            row = 1 if self.fixed_rows else -idx
            return [changed, im.assign_row(g, b, row, im.select(g, changed, 0, row))]

        a, b = g.if_(idx >= 0, then, otherwise)
        g.output(a + b, "out", ["rows", "columns"])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        a = normal(rng, self.rows, self.columns)
        b = normal(rng, self.rows, self.columns)
        return [a, b, np.array(2, np.int64)]

    def data_set(self, k: int, rng: Rng, batch: Size, length: Size) -> Values:
        a, b, _ = self.inputs(rng, batch, length)
        idx = (2, -3, 0, self.rows - 1)[k]
        return [a, b, np.array(idx, np.int64)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        a, b, idx = inputs
        delta = 1 if idx >= 0 else -1
        row = (0 if idx >= 0 else 1) if self.fixed_rows else abs(int(idx))
        hit = np.arange(a.shape[0])[:, None] == row
        a = (a + np.float32(delta)).astype(np.float32)
        return [a + np.where(hit, a, b)]
