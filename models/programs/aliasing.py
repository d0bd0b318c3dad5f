"""Small programs about aliasing: overlapping writes, views taken before a branch.

In tensor programs with views, a write through a view changes its base.  ONNX has
no views, so an exporter re-reads and re-writes the base tensor wherever the view
was used; these are the programs in which getting that right is not obvious.
"""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder
from models.lib.data import normal
from models.lib.program import Program, Rng, Size, Values

SHAPE = ["rows", "columns"]


class _Square(Program):
    """Programs over [size, size] matrices (symbolic dims)."""

    def __init__(self, size: int = 1024, data_sets: int = 1) -> None:
        self.size, self.data_sets = size, data_sets

    def matrix(self, rng: np.random.Generator) -> np.ndarray:
        """Random data [size, size]."""
        return normal(rng, self.size, self.size)


class Dataflow(_Square):
    """a[0] = b[0]; a[1] = b[1]; a[0:1] = b[0:1]; return a + a[0:1].

    The third write overlaps the first; the last one wins.  The sum broadcasts
    row 0.
    """

    name = "t_dataflow"

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("t_dataflow")
        a = g.input("a", np.float32, SHAPE)
        b = g.input("b", np.float32, SHAPE)
        a = im.assign_row(g, a, 0, im.select(g, b, 0, 0))
        a = im.assign_row(g, a, 1, im.select(g, b, 0, 1))
        a = im.assign_slice(g, a, im.slice_(g, b, 0, 1, axis=0), 0, 1, axis=0)
        g.output(a + im.slice_(g, a, 0, 1, axis=0), "out", SHAPE)
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [self.matrix(rng), self.matrix(rng)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        a, b = inputs
        mixed = np.concatenate([b[:2], a[2:]])
        return [mixed + b[:1]]


class RowLoop(_Square):
    """for i in range(10): a[i] = b[i + 1]; return a."""

    name = "t_loop"
    TRIPS = 10

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("t_loop")
        a = g.input("a", np.float32, SHAPE)
        b = g.input("b", np.float32, SHAPE)

        def body(i, a):
            return [im.assign_row(g, a, i, im.select(g, b, 0, i + 1))]

        g.output(g.loop(body, [a], trip=self.TRIPS), "out", SHAPE)
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [self.matrix(rng), self.matrix(rng)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        a, b = inputs
        return [np.concatenate([b[1 : self.TRIPS + 1], a[self.TRIPS :]])]


class Branch(_Square):
    """v = a[1]; v.copy_(b[0] if cond > 0 else 2 * b[1]); return a.

    The view is taken before the If; each branch writes the base through it.
    """

    name = "t_branch"

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("t_branch")
        a = g.input("a", np.float32, SHAPE)
        b = g.input("b", np.float32, SHAPE)
        cond = g.input("cond", np.int64, [])
        view = im.select(g, a, 0, 1)

        def write(source):
            # copy_ broadcasts its source to the shape of the view
            return [im.assign_row(g, a, 1, im.expand(g, source, g.Shape(view)))]

        out = g.if_(
            cond > 0,
            lambda: write(im.select(g, b, 0, 0)),
            lambda: write(im.select(g, b, 0, 1) * 2.0),
        )
        g.output(out, "out", SHAPE)
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [self.matrix(rng), self.matrix(rng), np.array(1, np.int64)]

    def data_set(self, k: int, rng: Rng, batch: Size, length: Size) -> Values:
        a, b, _ = self.inputs(rng, batch, length)
        return [a, b, np.array((1, 0, -3)[k], np.int64)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        a, b, cond = inputs
        row = b[:1] if cond > 0 else b[1:2] + b[1:2]
        return [np.concatenate([a[:1], row, a[2:]])]


class BranchLoop(_Square):
    """Rebinding a name against writing through a view of what it named before.

        t0 = d.clone(); t1 = t0[1]
        if a.nonzero().sum() != 0:
            t0 = t0 + 1                      # a new tensor; t1 views the old one
            for i in range(10): t1.copy_(t0[i + 1])
        else:
            t0 = t0 + t1                     # likewise
            t1.copy_(t0[2])
        return t1 + t0

    `c` is an input that nothing uses.  In the second data set `a` is zero, which
    takes the second branch.
    """

    name = "t_branch_loop"
    TRIPS = 10

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("t_branch_loop")
        a = g.input("a", np.float32, SHAPE)
        g.input("c", np.float32, SHAPE)
        base = g.Identity(g.input("d", np.float32, SHAPE))
        total = g.ReduceSum(g.NonZero(a), keepdims=0)

        def then():
            t0 = base + 1.0

            def body(i, base):
                return [im.assign_row(g, base, 1, im.select(g, t0, 0, i + 1))]

            return [g.loop(body, [base], trip=self.TRIPS), t0]

        def otherwise():
            t0 = base + im.select(g, base, 0, 1)
            return [im.assign_row(g, base, 1, im.select(g, t0, 0, 2)), t0]

        written, t0 = g.if_(~g.Equal(total, g.const(0)), then, otherwise)
        g.output(im.select(g, written, 0, 1) + t0, "out", SHAPE)
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [self.matrix(rng), self.matrix(rng), self.matrix(rng)]

    def data_set(self, k: int, rng: Rng, batch: Size, length: Size) -> Values:
        a, c, d = self.inputs(rng, batch, length)
        return [a if k == 0 else np.zeros_like(a), c, d]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        a, _, d = inputs
        if sum(int(axis.sum()) for axis in np.nonzero(a)) != 0:
            t0 = d + np.float32(1)
            t1 = t0[self.TRIPS]  # the last of the ten writes
        else:
            t0 = d + d[1]
            t1 = t0[2]
        return [t1 + t0]


class ViewExample(Program):
    """B = A[1]; C = A[2]; D = B + C; C += 2; E = A + D; return D, E.

    D sees the old row 2, E the new one, and row 1 stays as it is.  A is
    [rows, columns], D [columns], E [rows, columns].
    """

    name = "view_example"

    def __init__(self, rows: int = 8, columns: int = 16) -> None:
        self.rows, self.columns = rows, columns

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("view_example")
        a = g.input("A", np.float32, SHAPE)
        b = im.select(g, a, 0, 1)
        c = im.select(g, a, 0, 2)
        d = b + c
        a = im.assign_row(g, a, 2, c + 2.0)
        g.output(d, "D", ["columns"])
        g.output(a + d, "E", SHAPE)
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [normal(rng, self.rows, self.columns)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        (a,) = inputs
        d = a[1:3].sum(axis=0)
        bump = np.where(np.arange(a.shape[0]) == 2, np.float32(2), np.float32(0))
        return [d, (a + bump[:, None]) + d]
