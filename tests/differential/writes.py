# SPDX-License-Identifier: Apache-2.0
"""Makers of partial writes, in the ways exporters spell them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .expressions import Need, anything, expression, maker
from .movement import axis_of, index, static_axis, with_dim
from .scope import Scope
from .values import BOOL, INT64, INTS, MOST_SIZE, Facts, NoWay, Type, Value, union


@maker(8)
def write(s: Scope, t: Type, need: Need) -> Value:
    base = expression(s, t, need)
    return written(s, base, need)


def written(s: Scope, base: Value, need: Need) -> Value:
    """base with a part of it replaced."""
    if base.type.kind != "tensor" or not base.type.dims:
        raise NoWay
    return s.rng.choice(WAYS)(s, base, need)


def result(s: Scope, base: Value, new: Value) -> Facts:
    return union(base.type.elem, [base.facts, new.facts])


def row(s: Scope, base: Value, need: Need) -> Value:
    """ScatterND(x, [[i]], v)"""
    t = base.type
    at = s.unsqueeze(s.unsqueeze(index(s, t.dims[0]), 0), 0)
    new = expression(s, with_dim(t, 0, 1), need)
    return s.emit("ScatterND", [base, at, new], t, result(s, base, new))


def element(s: Scope, base: Value, need: Need) -> Value:
    """ScatterND(x, [[i, j]], v)"""
    t = base.type
    if len(t.dims) < 2:
        raise NoWay
    at = [s.unsqueeze(index(s, d), 0) for d in t.dims[:2]]
    both = s.emit("Concat", at, Type(INT64, (2,)), anything(INT64), axis=0)
    new = expression(s, t.shaped((1, *t.dims[2:])), need)
    return s.emit("ScatterND", [base, s.unsqueeze(both, 0), new], t, result(s, base, new))


def along_axis(s: Scope, base: Value, need: Need) -> Value:
    """ScatterElements(x, Expand(i), v)"""
    t, axis = base.type, axis_of(s, base.type)
    part = with_dim(t, axis, 1)
    at = index(s, t.dims[axis])
    at = s.expanded(at, part.of(INT64))
    new = expression(s, part, need)
    return s.emit("ScatterElements", [base, at, new], t, result(s, base, new), axis=axis)


def in_front(s: Scope, base: Value, need: Need) -> Value:
    """Transpose(ScatterND(Transpose(x), [[i]], v))"""
    t = base.type
    if len(t.dims) != 2:
        raise NoWay
    flipped = t.shaped(reversed(t.dims))
    turned = s.emit("Transpose", [base], flipped, base.facts, perm=[1, 0])
    back = row(s, turned, need)
    return s.emit("Transpose", [back], t, back.facts, perm=[1, 0])


def by_mask(s: Scope, base: Value, need: Need) -> Value:
    """Where(Range == i, v, x)"""
    t, axis = base.type, axis_of(s, base.type)
    s.checked("Where", [BOOL, t.elem, t.elem], t.elem)
    if t.is_float and need.zero_sign:
        raise NoWay
    size = t.dims[axis]
    line = Type(INT64, (size,))
    numbers = [s.scalar(0), s.size_scalar(size), s.scalar(1)]
    iota = s.emit("Range", numbers, line, Facts(0, MOST_SIZE))
    for _ in t.dims[axis + 1 :]:
        iota = s.unsqueeze(iota, len(iota.type.dims))
    op = s.rng.choice(("Equal", "Equal", "Less", "Greater"))
    mask = s.emit(op, [iota, index(s, size)], iota.type.of(BOOL), Facts(0, 1))
    new = expression(s, s.rng.choice((t, with_dim(t, axis, 1), Type(t.elem))), need)
    facts = result(s, base, new)
    facts = replace(facts, zero_sign=facts.zero_sign and not t.is_float)
    return s.emit("Where", [mask, new, base], t, facts)


def between(s: Scope, base: Value, need: Need) -> Value:
    """Concat(x[:i], v, x[i+1:])"""
    t, axis = base.type, axis_of(s, base.type)
    at = s.unsqueeze(index(s, t.dims[axis]), 0)
    after = s.emit("Add", [at, s.integers(1)], Type(INT64, (1,)), anything(INT64))
    where = s.integers(axis)
    part = with_dim(t, axis, s.program.fresh_symbol())
    front = s.emit("Slice", [base, s.integers(0), at, where], part, base.facts)
    part = with_dim(t, axis, s.program.fresh_symbol())
    end = s.integers(2**31 - 1)
    rest = s.emit("Slice", [base, after, end, where], part, base.facts)
    new = expression(s, with_dim(t, axis, 1), need)
    facts = result(s, base, new)
    return s.emit("Concat", [front, new, rest], t, facts, axis=axis)


def several_rows(s: Scope, base: Value, need: Need) -> Value:
    """ScatterND(x, Unsqueeze(list), v): distinct rows, in any order, or a Range of them"""
    t = base.type
    if not isinstance(t.dims[0], int):
        raise NoWay
    size = t.dims[0]
    count = s.rng.randint(0, size)
    if s.rng.random() < 0.5:
        rows = s.integers(*s.rng.sample(range(size), count))
    else:
        start = s.rng.randint(0, size - count)
        ends = [s.scalar(start), s.scalar(start + count), s.scalar(1)]
        rows = s.emit("Range", ends, Type(INT64, (count,)), Facts(0, max(0, size - 1)))
    new = expression(s, with_dim(t, 0, count), need)
    at = s.unsqueeze(rows, 1)
    return s.emit("ScatterND", [base, at, new], t, result(s, base, new))


def scattered(s: Scope, base: Value, need: Need) -> Value:
    """ScatterElements at distinct constant positions along an axis"""
    t = base.type
    if not t.is_static:
        raise NoWay
    axis = axis_of(s, t)
    size = t.dims[axis]
    part = with_dim(t, axis, s.rng.randint(0, size))
    at = np.zeros(part.dims, np.int64)
    for place in np.ndindex(*part.dims[:axis], *part.dims[axis + 1 :]):
        line = (*place[:axis], slice(None), *place[axis:])
        at[line] = s.rng.sample(range(size), part.dims[axis])
    new = expression(s, part, need)
    inputs = [base, s.constant(at), new]
    return s.emit("ScatterElements", inputs, t, result(s, base, new), axis=axis)


def reducing(s: Scope, base: Value, need: Need) -> Value:
    """Scatters that add, multiply or choose, at positions that repeat"""
    t = base.type
    if t.elem not in INTS or not t.is_static or 0 in t.dims:
        raise NoWay
    least = 18 if s.rng.random() < 0.5 else 16
    if s.program.opset < least:
        raise NoWay
    how = s.rng.choice(("add", "mul", "max", "min") if least == 18 else ("add", "mul"))
    if s.rng.random() < 0.5:
        s.checked("ScatterND", [t.elem, INT64, t.elem], t.elem, reduction=how)
        count = s.rng.randint(1, 3)
        at = s.constant(np.array([[s.rng.randrange(t.dims[0])] for _ in range(count)]))
        new = expression(s, with_dim(t, 0, count))
        return s.emit("ScatterND", [base, at, new], t, anything(t.elem), reduction=how)
    s.checked("ScatterElements", [t.elem, INT64, t.elem], t.elem, reduction=how)
    axis = static_axis(s, t)
    part = with_dim(t, axis, s.rng.randint(1, 4))
    count = int(np.prod(part.dims))
    at = np.array([s.rng.randrange(t.dims[axis]) for _ in range(count)]).reshape(part.dims)
    inputs = [base, s.constant(at), expression(s, part)]
    return s.emit("ScatterElements", inputs, t, anything(t.elem), axis=axis, reduction=how)


def changed(s: Scope, base: Value, need: Need) -> Value:
    """x[i] = f(x[i]): what is read is what is written"""
    t = base.type
    at = index(s, t.dims[0])
    if len(t.dims) < 1 or t.elem not in INTS:
        raise NoWay
    op = s.rng.choice(("Add", "Sub", "Mul"))
    s.checked(op, [t.elem] * 2, t.elem)
    part = t.shaped(t.dims[1:])
    old = s.emit("Gather", [base, at], part, base.facts, axis=0)
    new = s.emit(op, [old, expression(s, part)], part, anything(t.elem))
    new = s.unsqueeze(new, 0)
    place = s.unsqueeze(s.unsqueeze(at, 0), 0)
    return s.emit("ScatterND", [base, place, new], t, anything(t.elem))


def shifted(s: Scope, base: Value, need: Need) -> Value:
    """A write into a slice that is scattered back"""
    t = base.type
    if not isinstance(t.dims[0], int) or t.dims[0] < 2:
        raise NoWay
    size = t.dims[0]
    start = s.rng.randint(0, size - 1)
    count = s.rng.randint(1, size - start)
    bounds = [s.integers(start), s.integers(start + count), s.integers(0)]
    part = s.emit("Slice", [base, *bounds], with_dim(t, 0, count), base.facts)
    new = written(s, part, need)
    rows = s.integers(*range(start, start + count))
    place = s.unsqueeze(rows, 1)
    return s.emit("ScatterND", [base, place, new], t, result(s, base, new))


WAYS = [
    row,
    row,
    element,
    along_axis,
    along_axis,
    in_front,
    by_mask,
    between,
    several_rows,
    scattered,
    reducing,
    changed,
    shifted,
]
