# SPDX-License-Identifier: Apache-2.0
"""Random expressions of a given type: leaves, arithmetic, and what moves elements.

Every maker takes the scope, the type that is wanted and what must hold of it (Need), and either
returns a value of just that type or raises NoWay.  control.py and writes.py add makers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from onnx import numpy_helper

from .scope import Scope
from .values import (
    BOOL,
    BYTES,
    DOUBLE,
    DTYPES,
    FLOAT,
    FLOATS,
    HALF,
    INT32,
    INT64,
    INTS,
    UNSIGNED,
    Dim,
    Facts,
    NoWay,
    Type,
    Value,
    anything,
    fit,
    limits,
    union,
)


@dataclass(frozen=True)
class Need:
    """What must hold of a value that is asked for."""

    exact: bool = True
    zero_sign: bool = False
    finite: bool = False

    def met_by(self, value: Value) -> bool:
        facts = value.facts
        return (
            (facts.exact or not self.exact)
            and (facts.zero_sign or not self.zero_sign or not value.type.is_float)
            and (facts.finite or not self.finite)
        )


EXACT = Need()

Maker = Callable[[Scope, Type, Need], Value]
MAKERS: list[tuple[Maker, int]] = []


def maker(weight: int):
    def register(function: Maker) -> Maker:
        MAKERS.append((function, weight))
        return function

    return register


def expression(s: Scope, t: Type, need: Need = EXACT) -> Value:
    """A value of type t. Shallow when the fuel is spent."""
    tries = 3 if s.program.fuel > 0 else 0
    if s.rng.random() < 0.25 and s.depth:
        tries = 0
    makers, weights = zip(*MAKERS)
    for _ in range(tries):
        try:
            value = s.rng.choices(makers, weights)[0](s, t, need)
        except NoWay:
            continue
        if need.met_by(value):
            return value
    return leaf(s, t, need)


def leaf(s: Scope, t: Type, need: Need) -> Value:
    if s.rng.random() < 0.85:
        try:
            return s.visible(lambda v: v.type == t and need.met_by(v))
        except NoWay:
            pass
    if s.rng.random() < 0.5:
        try:
            return from_smaller(s, t, need)
        except NoWay:
            pass
    return constant(s, t, need)


def from_smaller(s: Scope, t: Type, need: Need) -> Value:
    """A visible value that t can be broadcast or converted from."""
    value = s.visible(
        lambda v: (
            v.type.kind == "tensor"
            and (v.type.elem == t.elem or t.elem == BOOL or v.facts.finite)
            and broadcasts(v.type.dims, t.dims)
            and need.met_by(v)
        )
    )
    value = converted(s, value, t.elem)
    if value.type.dims == t.dims:
        return value
    return s.expanded(value, t)


def broadcasts(dims: tuple[Dim, ...], to: tuple[Dim, ...]) -> bool:
    if len(dims) > len(to):
        return False
    return all(d in (1, o) for d, o in zip(reversed(dims), reversed(to)))


SPECIAL_FLOATS = [-0.0, 0.0, math.nan, math.inf, -math.inf, 1.0, -1.0]


def number(s: Scope, elem: int, finite: bool):
    rng, (low, high) = s.rng, limits(elem)
    if elem == BOOL:
        return rng.random() < 0.5
    if elem in FLOATS:
        if rng.random() < (0.1 if finite else 0.3):
            return rng.choice(SPECIAL_FLOATS[:2] if finite else SPECIAL_FLOATS)
        return rng.choice((rng.randint(-8, 8) / 4, round(rng.uniform(-3, 3), 3)))
    luck = rng.random()
    if luck < (0.5 if elem in BYTES else 0.25):
        return rng.choice((low, high, low + 1, high - 1, high // 2 + 1))
    if luck < 0.35 and elem == INT64:
        return rng.choice((2**53 + 1, -(2**53) - 1, 2**32, 1103515245))
    return rng.randint(max(low, -4), 5)


def array(s: Scope, elem: int, dims, finite: bool = False) -> np.ndarray:
    count = int(np.prod(dims, dtype=np.int64))
    result = np.empty(count, DTYPES[elem])
    for i in range(count):
        result[i] = number(s, elem, finite)
    return result.reshape(dims)


def constant(s: Scope, t: Type, need: Need = EXACT) -> Value:
    if t.kind != "tensor":
        raise NoWay
    finite = need.finite or s.rng.random() < 0.6
    if t.is_static and s.rng.random() < 0.8:
        return s.constant(array(s, t.elem, t.dims, finite))
    if 0 in t.dims or s.rng.random() < 0.5:
        one = array(s, t.elem, (1,), finite)
        facts = s.constant(one).facts
        fill = numpy_helper.from_array(one)
        return s.emit("ConstantOfShape", [s.shape(t.dims)], t, facts, value=fill)
    value = s.constant(array(s, t.elem, (), finite))
    return s.expanded(value, t)


def converted(s: Scope, value: Value, elem: int) -> Value:
    """Cast where the standard says what comes out: no float that an integer cannot hold."""
    old = value.type.elem
    if old == elem:
        return value
    facts = value.facts
    if not facts.exact and (old == HALF or elem == DOUBLE):
        raise NoWay  # it would be held to the tolerance of the wider type
    if old in FLOATS and elem not in FLOATS:
        low, high = limits(elem)
        if not facts.exact:
            raise NoWay
        if elem == BOOL:
            facts = Facts(0, 1)
        elif not facts.within(max(low, -(2**31)), min(high, 2**31 - 1)):
            raise NoWay
        else:
            facts = Facts(math.trunc(facts.low), math.trunc(facts.high))
    elif elem == BOOL:
        facts = Facts(0, 1)
    elif elem in FLOATS:
        # ONNX Runtime converts to float16 through float32: large integers are rounded twice.
        if elem == HALF and not (facts.within(-2048, 2048) or old == FLOAT):
            raise NoWay
        if elem == HALF and old in FLOATS:
            facts = replace(facts, exact=False)
        if old not in FLOATS:
            facts = Facts(float(facts.low), float(facts.high), zero_sign=True)
        facts = fit(elem, facts)
    else:
        facts = fit(elem, replace(facts, zero_sign=True))
    s.checked("Cast", [old], elem, to=elem)
    result = s.emit("Cast", [value], value.type.of(elem), facts, to=elem)
    return replace_below(result, value) if elem in (INT32, INT64) else result


def replace_below(result: Value, value: Value) -> Value:
    result.facts = replace(result.facts, below=value.facts.below)
    return result


def is_many(t: Type) -> bool:
    """An int64 tensor of more than one number: Max, Min, Clip, Sign, Relu and ReduceMax and
    ReduceMin of several get those beyond 32 bits wrong in ONNX Runtime."""
    return t.elem == INT64 and any(d != 1 for d in t.dims)


def tamed(s: Scope, value: Value, result: Type | None = None) -> Value:
    """The operand of such an operator."""
    if not is_many(result or value.type) or value.facts.within(-(2**31), 2**31 - 1):
        return value
    span = s.scalar(s.rng.choice((7, 1000, 2**31 - 1)))
    return s.emit("Mod", [value, span], value.type, Facts(0, 2**31 - 2))


def clamped(s: Scope, t: Type, low: int, high: int) -> Value:
    """An expression whose elements are numbers from low to high."""
    value = tamed(s, expression(s, t, Need(zero_sign=False)))
    if value.facts.within(low, high):
        return value
    high = min(high, 2**31 - 1)
    if t.is_float:
        is_nan = s.emit("IsNaN", [value], t.of(BOOL), Facts(0, 1))
        zero = s.scalar(0, t.elem)
        value = s.emit("Where", [is_nan, zero, value], t, replace(value.facts, nan=False))
    for op, bound in (("Max", low), ("Min", high)):
        s.checked(op, [t.elem] * 2, t.elem)
        facts = replace(value.facts, zero_sign=False)
        value = s.emit(op, [value, s.scalar(bound, t.elem)], t, facts)
    value.facts = replace(value.facts, low=low, high=high, nan=False)
    return value


def bounded(s: Scope, t: Type, need: Need) -> Value:
    value = expression(s, t, need)
    if value.facts.within(-10, 10):
        return value
    if not value.facts.exact:
        raise NoWay
    return clamped(s, t, -10, 10)


def part_of(s: Scope, t: Type) -> Type:
    """A type that broadcasts to t."""
    if s.rng.random() < 0.5:
        return t
    dims = tuple(1 if s.rng.random() < 0.3 else d for d in t.dims)
    return t.shaped(dims[s.rng.randint(0, len(dims)) :] if s.rng.random() < 0.4 else dims)


def operands(s: Scope, t: Type, elem: int, count: int, need: Need) -> list[Value]:
    """That broadcast to t, one of them in the whole shape."""
    types = [part_of(s, t.of(elem)) for _ in range(count)]
    types[s.rng.randrange(count)] = t.of(elem)
    return [expression(s, each, need) for each in types]


# ---- arithmetic ----


def summed(elem: int, a: Facts, b: Facts, sign: int) -> Facts:
    low, high = (b.low, b.high) if sign > 0 else (-b.high, -b.low)
    if elem in FLOATS and not (a.finite and b.finite):
        return anything(elem)
    return fit(elem, Facts(a.low + low, a.high + high))


def multiplied(elem: int, a: Facts, b: Facts) -> Facts:
    if elem in FLOATS and not (a.finite and b.finite):
        return anything(elem)
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return fit(elem, Facts(min(ends), max(ends)))


def combined(s: Scope, t: Type, facts: Facts, inputs: list[Value]) -> Facts:
    """What sums and products are, whose order passes and libraries may change."""
    old = [v.facts for v in inputs]
    if t.is_float and any(f.carried for f in old):
        raise NoWay
    # ONNX Runtime computes in float32 what it has no float16 kernel for, and does not always
    # round in between (docs/disagreements.md).
    return replace(
        facts,
        exact=all(f.exact for f in old) and t.elem != HALF,
        zero_sign=all(f.zero_sign for f in old),
    )


@maker(14)
def arithmetic(s: Scope, t: Type, need: Need) -> Value:
    if t.elem == BOOL:
        raise NoWay
    op = s.rng.choice(("Add", "Add", "Sub", "Mul", "Mul"))
    s.checked(op, [t.elem] * 2, t.elem)
    inputs = operands(s, t, t.elem, 2, need)
    a, b = (v.facts for v in inputs)
    facts = multiplied(t.elem, a, b) if op == "Mul" else summed(t.elem, a, b, 1)
    if op == "Sub":
        facts = summed(t.elem, a, b, -1)
    if t.elem in UNSIGNED and op == "Sub" and a.low < b.high:
        facts = anything(t.elem)
    return s.emit(op, inputs, t, combined(s, t, facts, inputs))


@maker(4)
def division(s: Scope, t: Type, need: Need) -> Value:
    if t.elem == BOOL:
        raise NoWay
    if t.is_float:
        need = replace(need, zero_sign=True)
        op = s.rng.choice(("Div", "Reciprocal", "Mod"))
        count = 1 if op == "Reciprocal" else 2
        attrs = {"fmod": 1} if op == "Mod" else {}
        s.checked(op, [t.elem] * count, t.elem, **attrs)
        inputs = operands(s, t, t.elem, count, replace(need, exact=True))
        return s.emit(op, inputs, t, combined(s, t, anything(t.elem), inputs), **attrs)
    op = s.rng.choice(("Div", "Mod"))
    s.checked(op, [t.elem] * 2, t.elem)
    value = expression(s, t, need)
    divisor = s.scalar(s.rng.choice((1, 2, 3, 5, 7)), t.elem)
    if s.rng.random() < 0.4:
        divisor = clamped(s, part_of(s, t), 1, limits(t.elem)[1])
    if op == "Mod":
        return s.emit(op, [value, divisor], t, Facts(0, divisor.facts.high - 1))
    facts = value.facts
    return s.emit(op, [value, divisor], t, Facts(min(facts.low, 0), max(facts.high, 0)))


@maker(6)
def extremes(s: Scope, t: Type, need: Need) -> Value:
    """Which zero is larger is open: so is the sign of a zero."""
    if t.elem == BOOL:
        raise NoWay
    op, count = s.rng.choice(("Max", "Min")), s.rng.choice((1, 2, 2, 2, 3))
    s.checked(op, [t.elem] * count, t.elem)
    if t.is_float and need.zero_sign:
        raise NoWay
    inputs = operands(s, t, t.elem, count, replace(need, zero_sign=False))
    inputs = [tamed(s, v, t) for v in inputs]
    old = [v.facts for v in inputs]
    facts = union(t.elem, old)
    choose = max if op == "Max" else min
    facts = replace(
        facts,
        low=choose(f.low for f in old),
        high=choose(f.high for f in old),
        zero_sign=count == 1 and facts.zero_sign,
    )
    return s.emit(op, inputs, t, facts)


SIGNED_UNARY = ("Neg", "Abs", "Sign")
FLOAT_UNARY = ("Neg", "Abs", "Relu", "Floor", "Ceil", "Round", "Sqrt")


@maker(8)
def unary(s: Scope, t: Type, need: Need) -> Value:
    if t.elem == BOOL:
        value = expression(s, t, need)
        return s.emit("Not", [value], t, Facts(0, 1))
    op = s.rng.choice(FLOAT_UNARY if t.is_float else (*SIGNED_UNARY, "BitwiseNot", "Relu"))
    s.checked(op, [t.elem], t.elem)
    exact = op in ("Floor", "Ceil", "Round", "Sqrt")
    if op == "Sqrt" and t.elem == HALF:
        raise NoWay
    value = expression(s, t, replace(need, exact=need.exact or exact))
    if op in ("Sign", "Relu"):
        value = tamed(s, value)
    old = value.facts
    facts = anything(t.elem)
    if op == "Neg" and (t.is_float or -old.low <= limits(t.elem)[1]):
        facts = Facts(-old.high, -old.low, old.nan)
    elif op == "Abs" and (t.is_float or -old.low <= limits(t.elem)[1]):
        facts = Facts(max(0, old.low), max(-old.low, old.high), old.nan)
    elif op == "Sign":
        facts = Facts(-1 if t.elem not in UNSIGNED else 0, 1)
    elif op == "Relu":
        facts = Facts(max(0, old.low), max(0, old.high), old.nan)
    elif op in ("Floor", "Ceil", "Round") and old.finite:
        facts = Facts(math.floor(old.low), math.ceil(old.high))
    zero_sign = old.zero_sign and op not in ("Relu",)
    facts = replace(facts, exact=old.exact, carried=old.carried, zero_sign=zero_sign)
    return s.emit(op, [value], t, facts)


@maker(3)
def bits(s: Scope, t: Type, need: Need) -> Value:
    if t.elem not in INTS:
        raise NoWay
    if t.elem in UNSIGNED and s.rng.random() < 0.6:
        way = s.rng.choice(("LEFT", "RIGHT"))
        s.checked("BitShift", [t.elem] * 2, t.elem, direction=way)
        value = expression(s, t, need)
        most = np.dtype(DTYPES[t.elem]).itemsize * 8 - 1
        amount = s.scalar(s.rng.choice((0, 1, 2, most)), t.elem)
        return s.emit("BitShift", [value, amount], t, anything(t.elem), direction=way)
    op = s.rng.choice(("BitwiseAnd", "BitwiseOr", "BitwiseXor"))
    s.checked(op, [t.elem] * 2, t.elem)
    return s.emit(op, operands(s, t, t.elem, 2, need), t, anything(t.elem))


@maker(4)
def clip(s: Scope, t: Type, need: Need) -> Value:
    s.checked("Clip", [t.elem] * 3, t.elem)
    low = s.rng.randint(0 if t.elem in UNSIGNED else -3, 1)
    high = low + s.rng.randint(0, 6)
    if t.is_float and need.zero_sign:
        raise NoWay
    value = tamed(s, expression(s, t, need))
    old = value.facts
    facts = replace(
        old,
        low=max(low, min(old.low, high)),
        high=min(high, max(old.high, low)),
        zero_sign=False,
    )
    bounds = [s.scalar(low, t.elem), s.scalar(high, t.elem)]
    return s.emit("Clip", [value, *bounds], t, facts)


# ---- truth values ----


@maker(10)
def comparison(s: Scope, t: Type, need: Need) -> Value:
    if t.elem != BOOL:
        raise NoWay
    ops = ["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"]
    op, elem = s.rng.choice(ops), s.rng.choice((INT64, INT64, FLOAT, *DTYPES))
    s.checked(op, [elem] * 2, BOOL)
    if elem in FLOATS and s.rng.random() < 0.2 and elem != HALF:
        op = s.rng.choice(("IsNaN", "IsInf"))
        inputs = [expression(s, t.of(elem))]
    else:
        inputs = operands(s, t, elem, 2, EXACT)
    return s.emit(op, inputs, t, Facts(0, 1))


@maker(5)
def logic(s: Scope, t: Type, need: Need) -> Value:
    if t.elem != BOOL:
        raise NoWay
    op = s.rng.choice(("And", "Or", "Xor"))
    return s.emit(op, operands(s, t, BOOL, 2, need), t, Facts(0, 1))


@maker(7)
def where(s: Scope, t: Type, need: Need) -> Value:
    if t.is_float and need.zero_sign:
        raise NoWay
    s.checked("Where", [BOOL, t.elem, t.elem], t.elem)
    condition = expression(s, part_of(s, t.of(BOOL)))
    inputs = operands(s, t, t.elem, 2, need)
    facts = union(t.elem, [v.facts for v in inputs])
    if t.is_float:  # docs/disagreements.md: ONNX Runtime adds two masked halves
        facts = replace(facts, zero_sign=False)
    return s.emit("Where", [condition, *inputs], t, facts)


# ---- conversions ----


@maker(7)
def cast(s: Scope, t: Type, need: Need) -> Value:
    elem = s.rng.choice(tuple(DTYPES))
    if elem == t.elem:
        raise NoWay
    source = t.of(elem)
    if elem in FLOATS and t.elem in INTS:
        low, high = limits(t.elem)
        return converted(s, clamped(s, source, max(low, -100), min(high, 100)), t.elem)
    return converted(s, expression(s, source, EXACT if t.elem == BOOL else need), t.elem)


@maker(3)
def identity(s: Scope, t: Type, need: Need) -> Value:
    value = expression(s, t, need)
    return s.emit("Identity", [value], t, value.facts)
