"""The imperative idioms and their ONNX encodings.

Tensor programs written with views and in-place writes reach ONNX as gathers,
slices and scatters.  Each function here emits one such pattern the way an
exporter does, deliberately unsimplified, because recognising these patterns is
the optimizer's job.  Where exporters differ there are variants (`form`), so
that the models cover all of them.

    I1  write column k               assign_select(g, x, v, -1, k)
    I2  write row i                  assign_row(g, x, i, v)
    I3  write a range of an axis     assign_slice(g, x, v, a, b)
    I4  write every second column    assign_slice(g, x, v, a, b, step=2)
    I5  in place on a whole tensor   the plain operator
    I6  write one inner position     assign_select(g, x, v, 2, pos)
    I7  read by boolean mask         mask_select(g, x, mask)
    I8  read rows by index           gather_rows(g, x, idx)
    I9  write rows by index          scatter_rows(g, x, idx, v)
    I10 append to a list             append(g, seq, v)
    I11 read a list element          at(g, seq, i)
    I12 views                        select, slice_, reshape, permute, ...

Positions (`k`, `i`, `start`, `stop`) are Python ints or scalar int64 values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.lib.builder import Builder, Value

Index = int | Value


# I12: views ------------------------------------------------------------------


def select(g: Builder, x: Value, axis: int, k: Index) -> Value:
    """The view x[..., k, ...] on `axis`, which disappears (Gather, scalar index)."""
    return g.Gather(x, scalar(g, k), axis=axis)


def slice_(
    g: Builder, x: Value, start: Index, stop: Index | None, step: int = 1, axis: int = -1
) -> Value:
    """The view x[..., start:stop:step, ...] on `axis`; `stop` None means the end."""
    end = np.iinfo(np.int64).max if stop is None else stop
    return g.Slice(x, vector(g, start), vector(g, end), g.const([axis]), g.const([step]))


def reshape(g: Builder, x: Value, shape: Sequence[int] | Value) -> Value:
    """The view x.reshape(shape); 0 keeps a dim and -1 infers one."""
    return g.Reshape(x, shape if isinstance(shape, Value) else g.const(shape))


def permute(g: Builder, x: Value, perm: Sequence[int]) -> Value:
    """The view with axes permuted."""
    return g.Transpose(x, perm=list(perm))


def unsqueeze(g: Builder, x: Value, axis: int) -> Value:
    """The view with a new axis of size one."""
    return g.Unsqueeze(x, g.const([axis]))


def squeeze(g: Builder, x: Value, axis: int) -> Value:
    """The view without an axis of size one."""
    return g.Squeeze(x, g.const([axis]))


def expand(g: Builder, x: Value, shape: Sequence[int] | Value) -> Value:
    """The view broadcast to `shape`."""
    return g.Expand(x, shape if isinstance(shape, Value) else g.const(shape))


def tile(g: Builder, x: Value, repeats: Sequence[int] | Value) -> Value:
    """x repeated along its axes."""
    return g.Tile(x, repeats if isinstance(repeats, Value) else g.const(repeats))


def stack(g: Builder, parts: Sequence[Value], axis: int = -1) -> Value:
    """Stack along a new axis (Unsqueeze each, Concat)."""
    return g.Concat(*[unsqueeze(g, p, axis) for p in parts], axis=axis)


def arange(g: Builder, n: Index, start: Index = 0, step: Index = 1) -> Value:
    """The int64 vector start, start+step, ... below n."""
    return g.Range(scalar(g, start), scalar(g, n), scalar(g, step))


def dim(g: Builder, x: Value, axis: int) -> Value:
    """The size of one axis as a scalar (Shape, Gather)."""
    return g.Gather(g.Shape(x), g.const(axis), axis=0)


# I1, I2, I6: writes at one position of an axis -------------------------------


def assign_select(
    g: Builder,
    x: Value,
    v: Value,
    axis: int,
    k: Index,
    form: str = "elements",
    rank: int = 2,
) -> Value:
    """The tensor x after `x[..., k, ...] = v` on `axis`.

    v has the shape of x without `axis`.  Forms:
      elements   ScatterElements on the axis, index expanded to the update
      transpose  axis moved to the front, ScatterND of one slice, moved back
      nd         ScatterND with an explicit coordinate for every element
    `rank` is the rank of x and is needed by `transpose` and `nd` only.
    """
    if form == "elements":
        update = unsqueeze(g, v, axis)
        index = g.Expand(vector(g, k), g.Shape(update))
        return g.ScatterElements(x, index, update, axis=axis)
    axis %= rank
    if form == "transpose":
        to_front, back = _to_front(axis, rank)
        front = permute(g, x, to_front)
        written = g.ScatterND(front, matrix(g, k), unsqueeze(g, v, 0))
        return permute(g, written, back)
    if form == "nd":
        shape = g.Shape(v)
        coords, free = [], iter(range(rank - 1))
        for d in range(rank):
            if d == axis:
                c = g.Expand(scalar(g, k), shape)
            else:
                c = _axis_range(g, v, next(free), rank - 1, shape)
            coords.append(unsqueeze(g, c, -1))
        return g.ScatterND(x, g.Concat(*coords, axis=-1), v)
    raise ValueError(f"unknown form {form!r}")


def assign_column(
    g: Builder, x: Value, k: Index, v: Value, form: str = "elements", rank: int = 2
) -> Value:
    """I1: x after `x[..., k] = v`; see assign_select."""
    return assign_select(g, x, v, -1, k, form, rank)


def assign_row(g: Builder, x: Value, i: Index, v: Value) -> Value:
    """I2: x after `x[i] = v` (ScatterND with one row index)."""
    return g.ScatterND(x, matrix(g, i), unsqueeze(g, v, 0))


# I3, I4: writes of a range of an axis ----------------------------------------


def assign_slice(
    g: Builder,
    x: Value,
    v: Value,
    start: Index,
    stop: Index,
    step: int = 1,
    axis: int = -1,
    form: str = "elements",
    rank: int = 2,
) -> Value:
    """The tensor x after `x[..., start:stop:step, ...] = v` on `axis`.

    v has exactly the shape of the slice.  `stop` is the true end (not beyond the
    axis).  Forms:
      elements  ScatterElements, index Range(start, stop, step) expanded
      nd        ScatterND with an explicit coordinate for every element
      transpose axis moved to the front, ScatterND of whole slices, moved back
      concat    Concat(x[:start], v, x[stop:]); step 1 only
    `rank` is the rank of x.
    """
    axis %= rank
    if form == "concat":
        if step != 1:
            raise ValueError("form 'concat' needs step 1")
        head = slice_(g, x, 0, start, axis=axis)
        tail = slice_(g, x, stop, None, axis=axis)
        return g.Concat(head, v, tail, axis=axis)
    if form == "transpose":
        to_front, back = _to_front(axis, rank)
        places = unsqueeze(g, arange(g, stop, start, step), -1)
        written = g.ScatterND(permute(g, x, to_front), places, permute(g, v, to_front))
        return permute(g, written, back)
    span = reshape(g, arange(g, stop, start, step), _along(axis, rank))
    shape = g.Shape(v)
    if form == "elements":
        return g.ScatterElements(x, g.Expand(span, shape), v, axis=axis)
    if form == "nd":
        coords = [
            g.Expand(span, shape) if d == axis else _axis_range(g, v, d, rank, shape)
            for d in range(rank)
        ]
        index = g.Concat(*[unsqueeze(g, c, -1) for c in coords], axis=-1)
        return g.ScatterND(x, index, v)
    raise ValueError(f"unknown form {form!r}")


# I7, I8, I9: index tensors ---------------------------------------------------


def mask_select(g: Builder, x: Value, mask: Value, form: str = "compress") -> Value:
    """I7: x[mask] for a boolean mask of the leading axes of x.

    Forms:
      compress  both flattened, Compress (mask of the full shape of x)
      rows      Compress on axis 0 (rank-1 mask)
      gather    NonZero, Transpose, GatherND (any mask)
    """
    if form == "compress":
        return g.Compress(reshape(g, x, [-1]), reshape(g, mask, [-1]))
    if form == "rows":
        return g.Compress(x, mask, axis=0)
    if form == "gather":
        return g.GatherND(x, permute(g, g.NonZero(mask), [1, 0]))
    raise ValueError(f"unknown form {form!r}")


def gather_rows(g: Builder, x: Value, idx: Value) -> Value:
    """I8: x[idx] for an int64 vector."""
    return g.Gather(x, idx, axis=0)


def scatter_rows(g: Builder, x: Value, idx: Value, v: Value) -> Value:
    """I9: x after `x[idx] = v` for an int64 vector without duplicates."""
    return g.ScatterND(x, unsqueeze(g, idx, -1), v)


# I10, I11: lists -------------------------------------------------------------


def append(g: Builder, seq: Value, v: Value) -> Value:
    """I10: the list after append(v)."""
    return g.SequenceInsert(seq, v)


def at(g: Builder, seq: Value, i: Index) -> Value:
    """I11: the element seq[i]."""
    return g.SequenceAt(seq, scalar(g, i))


# Index tensors of rank 0, 1 and 2 --------------------------------------------


def scalar(g: Builder, k: Index) -> Value:
    """k as a rank-0 int64 value."""
    return k if isinstance(k, Value) else g.const(k)


def vector(g: Builder, k: Index) -> Value:
    """k as a [1] int64 value."""
    return g.Reshape(k, g.const([1])) if isinstance(k, Value) else g.const([k])


def matrix(g: Builder, k: Index) -> Value:
    """k as a [1, 1] int64 value."""
    return g.Reshape(k, g.const([1, 1])) if isinstance(k, Value) else g.const([[k]])


def _along(axis: int, rank: int) -> list[int]:
    """The Reshape target that lays a vector along `axis`: [1, .., -1, .., 1]."""
    return [-1 if d == axis else 1 for d in range(rank)]


def _to_front(axis: int, rank: int) -> tuple[list[int], list[int]]:
    """The permutation that moves `axis` to the front, and the one that undoes it."""
    there = [axis] + [d for d in range(rank) if d != axis]
    return there, [there.index(d) for d in range(rank)]


def _axis_range(g: Builder, v: Value, axis: int, rank: int, shape: Value) -> Value:
    """0, 1, ... along `axis` of v, expanded to `shape` (the shape of v)."""
    span = reshape(g, arange(g, dim(g, v, axis)), _along(axis, rank))
    return g.Expand(span, shape)
