# SPDX-License-Identifier: Apache-2.0
"""Makers of what moves elements (gathers, slices, parts put together) and of reductions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .expressions import (
    EXACT,
    Need,
    anything,
    bounded,
    combined,
    constant,
    expression,
    maker,
    tamed,
)
from .scope import Scope
from .values import (
    BOOL,
    FLOATS,
    HALF,
    INT32,
    INT64,
    MOST_SIZE,
    Dim,
    Facts,
    NoWay,
    Type,
    Value,
    fit,
)


def index(s: Scope, dim: Dim) -> Value:
    """An int64 scalar that is a position of an axis of this size."""
    luck = s.rng.random()
    if luck < 0.6 and s.depth:
        try:
            return s.visible(lambda v: is_index(v, dim))
        except NoWay:
            pass
    least = s.program.least_size(dim)
    if not least:
        return s.visible(lambda v: is_index(v, dim))
    if luck < 0.8:
        return s.scalar(s.rng.randrange(least))
    number = expression(s, Type(INT64))
    size = s.size_scalar(dim)
    facts = Facts(0, 7 if isinstance(dim, str) else dim - 1)
    facts = replace(facts, below=dim if isinstance(dim, str) else None)
    return s.emit("Mod", [number, size], Type(INT64), facts)


def is_index(v: Value, dim: Dim) -> bool:
    if v.type != Type(INT64):
        return False
    if isinstance(dim, str):
        return v.facts.below == dim
    return 0 <= v.facts.low and v.facts.high < dim


def axis_of(s: Scope, t: Type) -> int:
    if not t.dims:
        raise NoWay
    return s.rng.randrange(len(t.dims))


def with_dim(t: Type, axis: int, dim: Dim) -> Type:
    return t.shaped(t.dims[:axis] + (dim,) + t.dims[axis + 1 :])


def inserted(t: Type, axis: int, dim: Dim) -> Type:
    return t.shaped(t.dims[:axis] + (dim,) + t.dims[axis:])


def some_dim(s: Scope) -> Dim:
    symbols = [d for d in s.program.least if s.rng.random() < 0.3]
    return symbols[0] if symbols else s.rng.choice((1, 2, 3, 4))


@maker(9)
def gather_one(s: Scope, t: Type, need: Need) -> Value:
    """x[.., i, ..]"""
    axis = s.rng.randint(0, len(t.dims))
    if len(t.dims) >= 4:
        raise NoWay
    candidates = [
        v
        for v in s.values
        if v.type.kind == "tensor"
        and v.type.elem == t.elem
        and len(v.type.dims) == len(t.dims) + 1
        and v.type.dims[:axis] + v.type.dims[axis + 1 :] == t.dims
        and need.met_by(v)
    ]
    if candidates and s.rng.random() < 0.8:
        source = s.rng.choice(candidates)
        position = index(s, source.type.dims[axis])
    else:
        dim = some_dim(s)
        position = index(s, dim)
        source = expression(s, inserted(t, axis, dim), need)
    facts = source.facts
    if s.rng.random() < 0.2 and axis == 0 and source.type.dims:
        at = s.unsqueeze(position, 0)
        return s.emit("GatherND", [source, at], t, facts)
    if s.rng.random() < 0.2:
        at = s.unsqueeze(position, 0)
        end = s.emit("Add", [at, s.integers(1)], Type(INT64, (1,)), anything(INT64))
        inputs = [source, at, end, s.integers(axis)]
        return s.squeeze(s.emit("Slice", inputs, inserted(t, axis, 1), facts), axis)
    return s.emit("Gather", [source, position], t, facts, axis=axis)


def static_axis(s: Scope, t: Type, least: int = 1) -> int:
    axes = [a for a, d in enumerate(t.dims) if isinstance(d, int) and d >= least]
    if not axes:
        raise NoWay
    return s.rng.choice(axes)


@maker(3)
def gather_several(s: Scope, t: Type, need: Need) -> Value:
    axis = static_axis(s, t)
    dim = s.rng.choice((1, 2, 3, 4))
    positions = [s.rng.randrange(-dim, dim) for _ in range(t.dims[axis])]
    source = expression(s, with_dim(t, axis, dim), need)
    if s.rng.random() < 0.6 or not t.is_static:
        return s.emit("Gather", [source, s.integers(*positions)], t, source.facts, axis=axis)
    shape = [-1 if a == axis else 1 for a in range(len(t.dims))]
    whole = np.broadcast_to(np.array(positions).reshape(shape), t.dims)
    at = s.constant(np.ascontiguousarray(whole, np.int64))
    return s.emit("GatherElements", [source, at], t, source.facts, axis=axis)


def opaque(s: Scope, number: int) -> Value:
    """A list of one number, which perhaps nobody knows before the program runs."""
    if s.rng.random() < 0.7:
        return s.integers(number)
    k = s.visible(lambda v: v.name == "k" and v.type == Type(INT64))
    zero = s.emit("Mul", [k, s.scalar(0)], Type(INT64), Facts(0, 0))
    if s.rng.random() < 0.5 and s.program.opset >= 12:
        zero = s.emit("Min", [k, s.scalar(0)], Type(INT64), Facts(0, 0))
    unsqueezed = s.unsqueeze(zero, 0)
    facts = Facts(number, number)
    return s.emit("Add", [unsqueezed, s.integers(number)], Type(INT64, (1,)), facts)


def outside(s: Scope, start: int, end: int, size: int, step: int) -> tuple[int, int]:
    """The same part, counted from the end, or with bounds that are beyond it."""
    if 0 <= start < size and s.rng.random() < 0.5:
        start -= size
    elif start == (0 if step > 0 else size - 1):
        start = -size - 2 if step > 0 else size + 5
    if step > 0 and end >= size:
        end = s.rng.choice((size + 1, 2**31 - 1, 2**63 - 1))
    elif step < 0 and end < 0:
        end = s.rng.choice((-size - 1, -size - 4, -(2**63)))
    elif 0 <= end < size:
        end -= size
    return start, end


@maker(6)
def slice_(s: Scope, t: Type, need: Need) -> Value:
    axis = static_axis(s, t, 0)
    size, step = t.dims[axis], s.rng.choice((1, 1, 1, 2, -1, -1, -2, -3))
    span = (size - 1) * abs(step) + 1 if size else 0
    before, after = s.rng.randint(0, 2), s.rng.randint(0, 2)
    source = expression(s, with_dim(t, axis, before + span + after), need)
    start, end = before, before + span
    if step < 0:
        start, end = before + span - 1, before - 1 if before else -(2**31)
    if size == 0:
        start = end = before
    elif s.rng.random() < 0.3:
        start, end = outside(s, start, end, before + span + after, step)
    inputs = [source, *(opaque(s, n) for n in (start, end)), s.integers(axis)]
    if step != 1 or s.rng.random() < 0.3:
        inputs.append(opaque(s, step))
    return s.emit("Slice", inputs, t, source.facts)


@maker(5)
def concat(s: Scope, t: Type, need: Need) -> Value:
    axis = static_axis(s, t, 0)
    size = t.dims[axis]
    cuts = sorted(s.rng.randint(0, size) for _ in range(s.rng.choice((1, 1, 2))))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, size])]
    parts = [expression(s, with_dim(t, axis, n), need) for n in sizes]
    return s.emit("Concat", parts, t, axis=axis)


@maker(4)
def transpose(s: Scope, t: Type, need: Need) -> Value:
    if len(t.dims) < 2:
        raise NoWay
    order = list(range(len(t.dims)))
    s.rng.shuffle(order)
    dims: list[Dim] = [0] * len(order)
    for a, b in enumerate(order):
        dims[b] = t.dims[a]
    source = expression(s, t.shaped(dims), need)
    return s.emit("Transpose", [source], t, source.facts, perm=order)


@maker(3)
def reshape(s: Scope, t: Type, need: Need) -> Value:
    if t.is_static and t.dims and 0 not in t.dims and s.rng.random() < 0.7:
        count = int(np.prod(t.dims))
        shapes = [(count,), (1, count), (count, 1), (2, count // 2), tuple(reversed(t.dims))]
        dims = s.rng.choice([d for d in shapes if int(np.prod(d)) == count])
        source = expression(s, t.shaped(dims), need)
        return s.emit("Reshape", [source, s.integers(*t.dims)], t, source.facts)
    ones = [a for a, d in enumerate(t.dims) if d == 1]
    if ones and s.rng.random() < 0.6:
        axis = s.rng.choice(ones)
        dims = t.dims[:axis] + t.dims[axis + 1 :]
        return s.unsqueeze(expression(s, t.shaped(dims), need), axis)
    if len(t.dims) >= 4:
        raise NoWay
    axis = s.rng.randint(0, len(t.dims))
    return s.squeeze(expression(s, inserted(t, axis, 1), need), axis)


@maker(2)
def expand(s: Scope, t: Type, need: Need) -> Value:
    if not t.dims:
        raise NoWay
    dims = tuple(1 if s.rng.random() < 0.5 else d for d in t.dims)[s.rng.randint(0, 1) :]
    source = expression(s, t.shaped(dims), need)
    return s.expanded(source, t)


@maker(2)
def pad(s: Scope, t: Type, need: Need) -> Value:
    axis = static_axis(s, t, 1)
    s.checked("Pad", [t.elem, INT64, t.elem], t.elem)
    before = s.rng.randint(0, t.dims[axis] - 1)
    after = s.rng.randint(0, t.dims[axis] - 1 - before)
    source = expression(s, with_dim(t, axis, t.dims[axis] - before - after), need)
    pads = [0] * (2 * len(t.dims))
    pads[axis], pads[axis + len(t.dims)] = before, after
    filler = constant(s, Type(t.elem), need)
    if not need.met_by(filler):
        raise NoWay
    return s.emit("Pad", [source, s.integers(*pads), filler], t)


@maker(1)
def tile(s: Scope, t: Type, need: Need) -> Value:
    axis = static_axis(s, t, 2)
    times = s.rng.choice([n for n in (1, 2, 3, 4) if t.dims[axis] % n == 0])
    source = expression(s, with_dim(t, axis, t.dims[axis] // times), need)
    repeats = [times if a == axis else 1 for a in range(len(t.dims))]
    return s.emit("Tile", [source, s.integers(*repeats)], t, source.facts)


@maker(2)
def range_(s: Scope, t: Type, need: Need) -> Value:
    if len(t.dims) != 1 or t.elem not in (INT64, INT32, *FLOATS - {HALF}):
        raise NoWay
    s.checked("Range", [t.elem] * 3, t.elem)
    size = t.dims[0]
    if isinstance(size, int):
        start, step = s.rng.randint(-2, 2), s.rng.choice((1, 1, 2, -1))
        numbers = [s.scalar(n, t.elem) for n in (start, start + size * step, step)]
        ends = sorted((start, start + size * step))
        return s.emit("Range", numbers, t, Facts(*ends))
    if t.elem != INT64:
        raise NoWay
    numbers = [s.scalar(0), s.size_scalar(size), s.scalar(1)]
    return s.emit("Range", numbers, t, Facts(0, MOST_SIZE, below=size))


@maker(2)
def split(s: Scope, t: Type, need: Need) -> Value:
    """One of the results; the others may be used later."""
    axis = static_axis(s, t, 1)
    sizes = [t.dims[axis], s.rng.randint(0, 2)]
    s.rng.shuffle(sizes)
    source = expression(s, with_dim(t, axis, sum(sizes)), need)
    outputs = [(with_dim(t, axis, n), source.facts) for n in sizes]
    if s.program.opset >= 13:
        results = s.node("Split", [source, s.integers(*sizes)], outputs, axis=axis)
    else:
        results = s.node("Split", [source], outputs, axis=axis, split=sizes)
    return results[sizes.index(t.dims[axis])]


# ---- reductions ----


@maker(6)
def reduction(s: Scope, t: Type, need: Need) -> Value:
    if len(t.dims) >= 4:
        raise NoWay
    op = s.rng.choice(("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean"))
    sums = op in ("ReduceSum", "ReduceProd", "ReduceMean")
    if t.is_float and (need.exact if sums else need.zero_sign):
        raise NoWay
    if op == "ReduceMean" and not t.is_float:
        raise NoWay
    s.checked(op, [t.elem], t.elem, keepdims=0)
    keep = 1 in t.dims and s.rng.random() < 0.5
    axis = t.dims.index(1) if keep else s.rng.randint(0, len(t.dims))
    dim = some_dim(s)
    if op not in ("ReduceSum", "ReduceProd") and not s.program.least_size(dim):
        raise NoWay  # the least of nothing, or its mean
    source = expression(s, with_dim(t, axis, dim) if keep else inserted(t, axis, dim), need)
    source = source if sums else tamed(s, source)
    old = source.facts
    if sums and not (old.finite and old.within(-(2**20), 2**20)):
        raise NoWay  # ONNX Runtime adds integers up in double
    if not sums and old.nan:
        raise NoWay
    facts = old
    if op == "ReduceSum":
        facts = fit(t.elem, Facts(min(0, MOST_SIZE * old.low), max(0, MOST_SIZE * old.high)))
    if op == "ReduceProd":
        if not old.within(-9, 9) or t.elem == HALF:
            raise NoWay
        facts = fit(t.elem, Facts(-(9**MOST_SIZE), 9**MOST_SIZE))
    if sums:
        facts = combined(s, t, facts, [source])
    exact = old.exact and not (sums and t.is_float)
    facts = replace(facts, exact=exact, zero_sign=not t.is_float, below=None)
    return s.axes_op(op, source, [axis], t, facts, keepdims=int(keep))


@maker(2)
def cumulated(s: Scope, t: Type, need: Need) -> Value:
    axis = axis_of(s, t)
    if t.is_float and need.exact:
        raise NoWay
    s.checked("CumSum", [t.elem, INT64], t.elem)
    source = expression(s, t, need)
    if t.is_float and not source.facts.within(-100, 100):
        raise NoWay
    facts = combined(s, t, anything(t.elem), [source])
    facts = replace(facts, exact=not t.is_float, nan=False)
    if t.is_float:
        facts = replace(facts, low=-800, high=800)
    attrs = {"exclusive": s.rng.randint(0, 1), "reverse": s.rng.randint(0, 1)}
    return s.emit("CumSum", [source, s.scalar(axis)], t, facts, **attrs)


@maker(2)
def arg(s: Scope, t: Type, need: Need) -> Value:
    if t.elem != INT64 or len(t.dims) >= 4:
        raise NoWay
    op, elem, dim = (
        s.rng.choice(("ArgMax", "ArgMin")),
        s.rng.choice((INT32, INT64)),
        some_dim(s),
    )
    s.checked(op, [elem], INT64, keepdims=0)
    if not s.program.least_size(dim):
        raise NoWay
    axis = s.rng.randint(0, len(t.dims))
    source = expression(s, inserted(t.of(elem), axis, dim), EXACT)
    high = dim - 1 if isinstance(dim, int) else 7
    return s.emit(op, [source], t, Facts(0, high), axis=axis, keepdims=0)


@maker(3)
def chosen(s: Scope, t: Type, need: Need) -> Value:
    """Compress or NonZero: a size that only a run knows, reduced or counted."""
    if t.elem not in (INT64, BOOL) or t.dims:
        raise NoWay
    dim = some_dim(s)
    condition = expression(s, Type(BOOL, (dim,)))
    symbol = s.program.fresh_symbol()
    if s.rng.random() < 0.5:
        found = s.emit(
            "NonZero", [condition], Type(INT64, (1, symbol)), Facts(0, MOST_SIZE - 1)
        )
    else:
        source = expression(s, Type(INT64, (dim,)))
        found = s.emit("Compress", [source, condition], Type(INT64, (symbol,)), axis=0)
    if t.elem == INT64 and s.rng.random() < 0.5:
        return s.emit("Size", [found], t, Facts(0, MOST_SIZE))
    if not found.facts.within(-(2**20), 2**20):
        raise NoWay
    axes = list(range(len(found.type.dims)))
    total = s.axes_op(
        "ReduceSum",
        found,
        axes,
        Type(INT64),
        Facts(MOST_SIZE * min(0, found.facts.low), MOST_SIZE * max(0, found.facts.high)),
        keepdims=0,
    )
    if t.elem == INT64:
        return total
    return s.emit("Greater", [total, s.scalar(2)], t, Facts(0, 1))


# ---- what libraries compute: no more than close ----


@maker(12)
def library(s: Scope, t: Type, need: Need) -> Value:
    if not t.is_float or need.exact:
        raise NoWay
    op = s.rng.choice(("Exp", "Tanh", "Sigmoid", "Softmax", "MatMul", "Sin", "Erf"))
    s.checked(op, [t.elem] * (2 if op == "MatMul" else 1), t.elem)
    close = Need(exact=False, finite=True)
    if op == "MatMul":
        if len(t.dims) < 2 or not t.is_static:
            raise NoWay
        inner = s.rng.choice((1, 2, 3))
        left = bounded(s, t.shaped((*t.dims[:-1], inner)), close)
        right = bounded(s, t.shaped((inner, t.dims[-1])), close)
        facts = combined(s, t, Facts(-300, 300, exact=False), [left, right])
        return s.emit(op, [left, right], t, replace(facts, exact=False))
    if op == "Softmax":
        axis_of(s, t)
    source = bounded(s, t, close)
    high = 25000 if op == "Exp" else 1.001
    facts = Facts(-high, high, exact=False, carried=source.facts.carried, zero_sign=False)
    attrs = {"axis": len(t.dims) - 1} if op == "Softmax" else {}
    return s.emit(op, [source], t, facts, **attrs)
