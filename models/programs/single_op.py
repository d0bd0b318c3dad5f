"""Each access and each assign alone, at the sizes code generators are tested with."""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder
from models.lib.data import normal
from models.lib.program import Program, Rng, Size, Values


class Select(Program):
    """x [10, 20], index scalar -> x[index] [20]."""

    name = "op_select"

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("op_select")
        x = g.input("x", np.float32, [10, 20])
        index = g.input("index", np.int64, [])
        g.output(im.select(g, x, 0, index), "out", [20])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [normal(rng, 10, 20), np.array(0, np.int64)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        return [np.take(inputs[0], int(inputs[1]), axis=0)]


class SelectAssign(Program):
    """x [3000, 4], v [3000], index scalar -> x after x[:, index] = v.

    `form` is that of idioms.assign_select.
    """

    name = "op_select_assign"

    def __init__(self, form: str = "elements", rows: int = 3000) -> None:
        self.form, self.rows = form, rows

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("op_select_assign")
        x = g.input("x", np.float32, [self.rows, 4])
        v = g.input("v", np.float32, [self.rows])
        index = g.input("index", np.int64, [])
        out = im.assign_column(g, x, index, v, self.form)
        g.output(out, "out", [self.rows, 4])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [normal(rng, self.rows, 4), normal(rng, self.rows), np.array(0, np.int64)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        x, v, index = inputs
        return [np.where(np.arange(4) == index, v[:, None], x)]


class Slice(Program):
    """x [3000, 4] -> x[:, 0:3:4] [3000, 1]."""

    name = "op_slice"

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("op_slice")
        x = g.input("x", np.float32, [3000, 4])
        g.output(im.slice_(g, x, 0, 3, step=4, axis=1), "out", [3000, 1])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [normal(rng, 3000, 4)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        return [np.split(inputs[0], 4, axis=1)[0].copy()]


class SliceAssign(Program):
    """x [3000, 4], v [3000, w] -> x after x[:, start:stop:step] = v.

    `form` is that of idioms.assign_slice.
    """

    name = "op_slice_assign"

    def __init__(
        self,
        span: tuple[int, int, int] = (0, 3, 4),
        form: str = "elements",
        rows: int = 3000,
    ) -> None:
        self.span, self.form, self.rows = span, form, rows
        self.width = len(range(*span))

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("op_slice_assign")
        x = g.input("x", np.float32, [self.rows, 4])
        v = g.input("v", np.float32, [self.rows, self.width])
        start, stop, step = self.span
        out = im.assign_slice(g, x, v, start, stop, step, form=self.form)
        g.output(out, "out", [self.rows, 4])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [normal(rng, self.rows, 4), normal(rng, self.rows, self.width)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        x, v = inputs
        columns = [x[:, k] for k in range(4)]
        for source, column in enumerate(range(*self.span)):
            columns[column] = v[:, source]
        return [np.stack(columns, axis=1)]


class Unsqueeze(Program):
    """x [3000, 4] -> [1, 3000, 4]."""

    name = "op_unsqueeze"

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("op_unsqueeze")
        x = g.input("x", np.float32, [3000, 4])
        g.output(im.unsqueeze(g, x, 0), "out", [1, 3000, 4])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [normal(rng, 3000, 4)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        return [inputs[0][None]]
