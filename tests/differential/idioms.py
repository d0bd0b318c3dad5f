# SPDX-License-Identifier: Apache-2.0
"""Makers of whole patterns that passes look for, with random expressions in them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from .control import Trips, deeper, trips
from .expressions import (
    EXACT,
    Need,
    anything,
    array,
    bounded,
    converted,
    expression,
    maker,
    tamed,
)
from .movement import index, inserted, static_axis, with_dim
from .scope import Scope
from .values import (
    BOOL,
    FLOAT,
    FLOATS,
    INT32,
    INT64,
    MOST_SIZE,
    Facts,
    NoWay,
    Type,
    Value,
    union,
)


class Updates(NamedTuple):
    """A loop that writes along an axis of a tensor which it carries."""

    plan: Trips
    need: Need
    initial: Value
    body: Scope
    i: Value
    condition: Value
    carried: Value
    facts: Facts  # of what is carried


def begin_updates(s: Scope, t: Type, axis: int, need: Need) -> Updates:
    plan = trips(s, t.dims[axis])
    need = Need(exact=True, zero_sign=need.zero_sign or s.rng.random() < 0.5)
    initial = expression(s, t, need)
    b = s.block()
    i = b.param(Type(INT64), Facts(0, max(plan.most - 1, 0), below=plan.below))
    c = b.param(Type(BOOL), Facts(0, 1))
    facts = replace(anything(t.elem), carried=t.is_float, zero_sign=need.zero_sign)
    return Updates(plan, need, initial, b, i, c, b.param(t, facts), facts)


@maker(6)
def filled(s: Scope, t: Type, need: Need) -> Value:
    """for i: x[.., i, ..] = f(i): all of an axis, or its beginning"""
    deeper(s)
    if not t.dims:
        raise NoWay
    axis = s.rng.randrange(len(t.dims))
    loop = begin_updates(s, t, axis, need)
    need, b, i, p = loop.need, loop.body, loop.i, loop.carried
    if b.rng.random() < 0.6:  # the loop does not read what it writes
        b.values.remove(p)
    part = with_dim(t, axis, 1)
    new = expression(b, part, need)
    if axis == 0 and b.rng.random() < 0.6:
        at = b.unsqueeze(b.unsqueeze(i, 0), 0)
        next_ = b.emit("ScatterND", [p, at, new], t)
    else:
        at = b.expanded(i, part.of(INT64))
        next_ = b.emit("ScatterElements", [p, at, new], t, axis=axis)
    more = b.emit("Identity", [loop.condition], Type(BOOL), loop.condition.facts)
    facts = replace(union(t.elem, [loop.initial.facts, new.facts]), carried=False)
    body = b.graph([more, next_])
    start = None if s.rng.random() < 0.5 else s.scalar(True, BOOL)
    return s.node("Loop", [loop.plan.count, start, loop.initial], [(t, facts)], body=body)[0]


def combined(s: Scope, a: Value, b: Value) -> Value:
    """Of two values of one type, exactly."""
    t = a.type
    op = (
        "Or"
        if t.elem == BOOL
        else s.rng.choice(("Max", "Min") if t.is_float else ("Add", "Sub"))
    )
    s.checked(op, [t.elem] * 2, t.elem)
    facts = union(t.elem, [a.facts, b.facts]) if t.is_float else anything(t.elem)
    return s.emit(op, [a, b], t, replace(facts, zero_sign=False, below=None))


@maker(4)
def there_if_it_runs(s: Scope, t: Type, need: Need) -> Value:
    """for i in range(n): p = f(p, x[size - n]): a row that is there only where the loop runs"""
    deeper(s)
    if (t.is_float and need.zero_sign) or len(t.dims) > 3:
        raise NoWay
    need = Need(exact=True)
    plan = trips(s)
    size = max(plan.most, 1)
    table = expression(s, t.shaped((size, *t.dims)), need)
    initial = expression(s, t, need)
    where = s.emit("Sub", [s.scalar(size), plan.count], Type(INT64), Facts(0, size + 2))
    s.values.remove(where)
    b = s.block()
    b.param(Type(INT64), Facts(0, max(plan.most - 1, 0), below=plan.below))
    c = b.param(Type(BOOL), Facts(0, 1))
    facts = anything(t.elem)
    if t.is_float:
        facts = replace(
            union(t.elem, [table.facts, initial.facts]), carried=True, zero_sign=False
        )
    p = b.param(t, facts)
    row = b.emit("Gather", [table, where], t, table.facts, axis=0)
    other = expression(s, t, need)
    next_ = combined(b, p, combined(b, row, other)) if s.rng.random() < 0.7 else row
    rows = []
    if t.is_static and s.rng.random() < 0.5:
        rows.append(b.own(combined(b, row, other)))
    more = b.emit("Identity", [c], Type(BOOL), c.facts)
    start = expression(s, Type(BOOL)) if s.rng.random() < 0.3 else None
    outputs = [(t, replace(facts, carried=False) if t.is_float else facts)]
    if rows:
        outputs.append((t.shaped((s.program.fresh_symbol(), *t.dims)), rows[0].facts))
    values = b.distinct([more, b.own(next_), *rows])
    body = b.graph(values, len(rows))
    return s.node("Loop", [plan.count, start, initial], outputs, body=body)[0]


@maker(3)
def nested_writes(s: Scope, t: Type, need: Need) -> Value:
    """for i: for j: x[i, j] = v, for as many j as i says"""
    if s.depth >= 2 or s.program.fuel <= 0 or len(t.dims) != 2 or not t.is_static:
        raise NoWay
    if 0 in t.dims:
        raise NoWay
    initial, value = expression(s, t, need), expression(s, t.shaped((1,)), need)
    facts = replace(union(t.elem, [initial.facts, value.facts]), carried=t.is_float)
    counts = s.constant(
        array(s, INT64, (t.dims[0],)).clip(0, t.dims[1])
        if s.rng.random() < 0.6
        else array(s, INT64, (t.dims[0],)) * 0 + t.dims[1]
    )
    outer, inner = s.block(), None
    i = outer.param(Type(INT64), Facts(0, t.dims[0] - 1))
    c = outer.param(Type(BOOL), Facts(0, 1))
    p = outer.param(t, facts)
    count = outer.emit("Gather", [counts, i], Type(INT64), counts.facts, axis=0)
    inner = outer.block()
    j = inner.param(Type(INT64), Facts(0, t.dims[1] - 1))
    d = inner.param(Type(BOOL), Facts(0, 1))
    q = inner.param(t, facts)
    at = [inner.unsqueeze(v, 0) for v in (i, j)]
    both = inner.emit("Concat", at, Type(INT64, (2,)), anything(INT64), axis=0)
    place = inner.unsqueeze(both, 0)
    written = inner.emit("ScatterND", [q, place, value], t, facts)
    again = inner.emit("Identity", [d], Type(BOOL), d.facts)
    body = inner.graph([again, written])
    p = outer.node("Loop", [count, None, p], [(t, facts)], body=body)[0]
    more = outer.emit("Identity", [c], Type(BOOL), c.facts)
    body = outer.graph([more, p])
    inputs = [s.scalar(t.dims[0]), None, initial]
    return s.node("Loop", inputs, [(t, replace(facts, carried=False))], body=body)[0]


@maker(5)
def position(s: Scope, t: Type, need: Need) -> Value:
    """i == 0, i > 0, i < k, of the iterations around"""
    if t != Type(BOOL) or not s.depth:
        raise NoWay
    i = s.visible(
        lambda v: v.type == Type(INT64) and v in s.params and v.facts.within(0, MOST_SIZE)
    )
    op = s.rng.choice(("Equal", "Equal", "Less", "Greater"))
    other = s.scalar(s.rng.choice((0, 0, 1, int(i.facts.high))))
    return s.emit(op, [i, other], t, Facts(0, 1))


def counted_place(b: Scope, t: Type, i: Value, p: Value) -> Value:
    """Row i of so many; row i from the end; i modulo how many there are"""
    how = b.rng.choice(("i", "i", "reversed", "modulo"))
    if how == "i" or t.dims[0] == 0:
        return i
    size = b.size_scalar(t.dims[0]) if isinstance(t.dims[0], str) else b.scalar(t.dims[0])
    place = Facts(0, i.facts.high, below=i.facts.below)
    if how == "reversed":
        last = b.emit("Sub", [size, b.scalar(1)], Type(INT64), Facts(-1, MOST_SIZE))
        b.values.remove(last)
        return b.emit("Sub", [last, i], Type(INT64), place)
    shape = b.emit("Shape", [p], Type(INT64, (len(t.dims),)), Facts(0, MOST_SIZE))
    rows = b.emit("Gather", [shape, b.scalar(0)], Type(INT64), Facts(1, MOST_SIZE), axis=0)
    return b.emit("Mod", [i, rows], Type(INT64), place)


@maker(4)
def written_where(s: Scope, t: Type, need: Need) -> Value:
    """for i: if q(i): x[i] = f(i), and perhaps else: x[i] = g(i)"""
    deeper(s)
    if not t.dims:
        raise NoWay
    loop = begin_updates(s, t, 0, need)
    need, b, i, p = loop.need, loop.body, loop.i, loop.carried
    place = counted_place(b, t, i, p)
    b.values.remove(p)
    condition = expression(b, Type(BOOL))
    quiet = b.rng.choice((0, 1, 1, 2))
    graphs, written = [], [loop.initial.facts]
    for side in range(2):
        deeper(b)
        inner = b.block()
        if side == quiet:
            graphs.append(inner.graph([inner.emit("Identity", [p], t, loop.facts)]))
            continue
        new = expression(inner, with_dim(t, 0, 1), need)
        at = inner.unsqueeze(inner.unsqueeze(place, 0), 0)
        graphs.append(inner.graph([inner.emit("ScatterND", [p, at, new], t, loop.facts)]))
        written.append(new.facts)
    next_ = b.node(
        "If", [condition], [(t, loop.facts)], then_branch=graphs[0], else_branch=graphs[1]
    )[0]
    more = b.emit("Identity", [loop.condition], Type(BOOL), loop.condition.facts)
    body = b.graph([more, next_])
    facts = replace(union(t.elem, written), carried=False)
    return s.node("Loop", [loop.plan.count, None, loop.initial], [(t, facts)], body=body)[0]


@maker(3)
def combined_where(s: Scope, t: Type, need: Need) -> Value:
    """for i: if q(i): m = m + f(i), or the larger one, or a flag is set"""
    deeper(s)
    if t.dims or t.elem not in (INT64, INT32, BOOL):
        raise NoWay
    plan = trips(s)
    initial = expression(s, t, Need(exact=True))
    b = s.block()
    b.param(Type(INT64), Facts(0, max(plan.most - 1, 0), below=plan.below))
    c = b.param(Type(BOOL), Facts(0, 1))
    m = b.param(t, anything(t.elem))
    b.values.remove(m)
    term = expression(b, t, Need(exact=True))
    deeper(b)
    inner = b.block()
    if t.elem == BOOL:
        condition = expression(b, t)
        new = inner.scalar(b.rng.random() < 0.5, BOOL)
        new = inner.emit("Identity", [new], t) if b.rng.random() < 0.7 else inner.own(term)
    elif b.rng.random() < 0.4:
        op = b.rng.choice(("Greater", "Less"))
        condition = b.emit(op, [term, m], Type(BOOL), Facts(0, 1))
        new = inner.emit("Identity", [term], t)
    else:
        condition = expression(b, Type(BOOL))
        op = b.rng.choice(("Add", "Add", "Mul", "Max", "Min"))
        s.checked(op, [t.elem] * 2, t.elem)
        new = inner.emit(op, b.rng.sample([m, term], 2), t, anything(t.elem))
    other = b.block()
    kept = other.graph([other.emit("Identity", [m], t, anything(t.elem))])
    sides = [inner.graph([new]), kept]
    if b.rng.random() < 0.3:
        sides.reverse()
    outputs = [(t, anything(t.elem))]
    next_ = b.node("If", [condition], outputs, then_branch=sides[0], else_branch=sides[1])[0]
    more = b.emit("Identity", [c], Type(BOOL), c.facts)
    body = b.graph([more, next_])
    return s.node("Loop", [plan.count, None, initial], outputs, body=body)[0]


@maker(3)
def by_parts(s: Scope, t: Type, need: Need) -> Value:
    """Concat(f(a[0], b[0]), f(a[1], b[1]), ...)"""
    axis = static_axis(s, t, 2)
    if t.elem == BOOL:
        raise NoWay
    op = s.rng.choice(("Max", "Min") if t.is_float else ("Add", "Sub", "Mul", "Max"))
    s.checked(op, [t.elem] * 2, t.elem)
    if t.is_float and need.zero_sign:
        raise NoWay
    a, b = tamed(s, expression(s, t, need)), tamed(s, expression(s, t, need))
    part = with_dim(t, axis, 1)
    facts = anything(t.elem)
    if t.is_float:
        facts = replace(union(t.elem, [a.facts, b.facts]), zero_sign=False)
    made = []
    for k in range(t.dims[axis]):
        bounds = [s.integers(k), s.integers(k + 1), s.integers(axis)]
        x = s.emit("Slice", [a, *bounds], part, a.facts)
        y = s.emit("Slice", [b, *bounds], part, b.facts)
        made.append(s.emit(op, [x, y], part, facts))
    return s.emit("Concat", made, t, facts, axis=axis)


@maker(3)
def updated_by_parts(s: Scope, t: Type, need: Need) -> Value:
    """x[0::2] = f(x[0::2]); x[1::2] = f(x[1::2])"""
    axis = static_axis(s, t, 2)
    if t.elem == BOOL or (t.is_float and need.zero_sign):
        raise NoWay
    s.checked("Clip", [t.elem] * 3, t.elem)
    x, size = tamed(s, expression(s, t, need)), t.dims[axis]
    low, high = s.scalar(0, t.elem), s.scalar(s.rng.randint(1, 3), t.elem)
    facts = replace(x.facts, zero_sign=not t.is_float)
    for start in range(2):
        places = range(start, size, 2)
        part = with_dim(t, axis, len(places))
        bounds = [s.integers(start), s.integers(size), s.integers(axis), s.integers(2)]
        old = s.emit("Slice", [x, *bounds], part, facts)
        new = s.emit("Clip", [old, low, high], part, facts)
        at = s.integers(*places)
        if axis == 0:
            x = s.emit("ScatterND", [x, s.unsqueeze(at, 1), new], t, facts)
            continue
        for _ in t.dims[axis + 1 :]:
            at = s.unsqueeze(at, len(at.type.dims))
        at = s.expanded(at, part.of(INT64))
        x = s.emit("ScatterElements", [x, at, new], t, facts, axis=axis)
    return x


@maker(2)
def largest(s: Scope, t: Type, need: Need) -> Value:
    """TopK, of which the first are used"""
    axis = static_axis(s, t)
    if t.elem not in (INT64, INT32, FLOAT):
        raise NoWay
    elem = s.rng.choice((INT64, INT32)) if t.elem == INT64 else t.elem
    k = t.dims[axis] + s.rng.randint(0, 2)
    whole = with_dim(t, axis, k + s.rng.randint(0, 2)).of(elem)
    source = expression(s, whole, EXACT)
    if source.facts.nan or (elem in FLOATS and need.zero_sign):
        raise NoWay
    facts = replace(source.facts, zero_sign=elem not in FLOATS)
    types = [with_dim(t, axis, k).of(elem), with_dim(t, axis, k).of(INT64)]
    outputs = [(types[0], facts), (types[1], Facts(0, whole.dims[axis] - 1))]
    attrs = {"axis": axis, "largest": s.rng.randint(0, 1), "sorted": 1}
    results = s.node("TopK", [source, s.integers(k)], outputs, **attrs)
    chosen = s.rng.choice([v for v in results if v.type.elem == t.elem])
    if elem in FLOATS and chosen is results[0]:
        chosen.facts = facts
    bounds = [s.integers(0), s.integers(t.dims[axis]), s.integers(axis)]
    return s.emit("Slice", [chosen, *bounds], t, chosen.facts)


@maker(2)
def up_to(s: Scope, t: Type, need: Need) -> Value:
    """for i: x[i] o x[0] o ... o x[i - 1], a loop of as many iterations as i, or as are left"""
    deeper(s)
    if s.depth > 1 or not t.is_static or len(t.dims) > 1 or (t.is_float and need.zero_sign):
        raise NoWay
    size = s.rng.choice((3, 10, MOST_SIZE))
    all_ = t.shaped((size, *t.dims))
    x = tamed(s, expression(s, all_, EXACT))
    facts = anything(t.elem)
    if t.is_float:
        facts = replace(x.facts, zero_sign=False, below=None)
    b = s.block()
    i = b.param(Type(INT64), Facts(0, size - 1))
    c = b.param(Type(BOOL), Facts(0, 1))
    count = i
    if s.rng.random() < 0.4:
        count = b.emit("Sub", [b.scalar(size - 1), i], Type(INT64), i.facts)
    first = b.emit("Gather", [x, i], t, x.facts, axis=0)
    inner = b.block()
    j = inner.param(Type(INT64), i.facts)
    more = inner.param(Type(BOOL), c.facts)
    p = inner.param(t, replace(facts, carried=t.is_float))
    row = inner.emit("Gather", [x, j], t, x.facts, axis=0)
    next_ = combined(inner, p, row)
    more = inner.emit("Identity", [more], Type(BOOL), c.facts)
    body = inner.graph([more, next_])
    one = b.node("Loop", [count, None, first], [(t, facts)], body=body)[0]
    more = b.emit("Identity", [c], Type(BOOL), c.facts)
    body = b.graph([more, one], 1)
    found = s.node("Loop", [s.scalar(size), None], [(all_, facts)], body=body)[0]
    return s.emit("Gather", [found, index(s, size)], t, facts, axis=0)


@maker(3)
def each(s: Scope, t: Type, need: Need) -> Value:
    """A loop over the elements of a sequence that makes another one"""
    deeper(s)
    if s.program.opset < 13:
        raise NoWay
    count = s.rng.choice((1, 2, 3))
    source = replace(t, elem=s.rng.choice((t.elem, INT64)))
    elements = [expression(s, source) for _ in range(count)]
    given = union(source.elem, [e.facts for e in elements])
    kind = replace(source, kind="sequence")
    made = s.emit("SequenceConstruct", elements, kind, given)
    length = s.emit("SequenceLength", [made], Type(INT64), Facts(count, count))
    result = replace(t, kind="sequence")
    empty = s.emit("SequenceEmpty", [], result, Facts(0, 0), dtype=t.elem)
    s.values.remove(empty)
    b = s.block()
    i = b.param(Type(INT64), Facts(0, count - 1))
    c = b.param(Type(BOOL), Facts(0, 1))
    q = b.param(result, Facts())
    b.values.remove(q)
    x = b.emit("SequenceAt", [made, i], source, given)
    b.values += [x, x]  # likely to be used
    new = expression(b, t, need)
    longer = b.emit("SequenceInsert", [q, new], result, new.facts)
    more = b.emit("Identity", [c], Type(BOOL), c.facts)
    body = b.graph([more, longer])
    found = s.node("Loop", [length, None, empty], [(result, new.facts)], body=body)[0]
    return s.emit("SequenceAt", [found, index(s, count)], t, new.facts)


@maker(10)
def recurrent(s: Scope, t: Type, need: Need) -> Value:
    """h = tanh(f(x[i]) + h U), where f is often enough work to be split off"""
    deeper(s)
    if not t.is_float or need.exact or len(t.dims) != 2 or not t.is_static or 0 in t.dims:
        raise NoWay
    s.checked("MatMul", [t.elem] * 2, t.elem)
    close = Need(exact=False, finite=True)
    steps, width = s.rng.choice((1, 3, 8, 12)), s.rng.choice((1, 2, 3))
    x = bounded(s, t.shaped((steps, t.dims[0], width)), close)
    w = converted(s, s.constant(array(s, FLOAT, (width, t.dims[1]), True)), t.elem)
    u = converted(s, s.constant(array(s, FLOAT, (t.dims[1], t.dims[1]), True)), t.elem)
    initial = bounded(s, t, close)
    facts = Facts(-100, 100, exact=False, zero_sign=False)
    b = s.block()
    i = b.param(Type(INT64), Facts(0, steps - 1))
    c = b.param(Type(BOOL), Facts(0, 1))
    h = b.param(t, facts)
    row = b.emit("Gather", [x, i], x.type.shaped(x.type.dims[1:]), facts, axis=0)
    made = b.emit("MatMul", [row, w], t, facts)
    for _ in range(b.rng.choice((0, 1, 2, 3))):
        made = b.emit("Tanh", [made], t, replace(facts, low=-1.01, high=1.01))
        made = b.emit("MatMul", [made, u], t, facts)
    parts = [made, b.emit("MatMul", [h, u], t, facts)]
    total = b.emit("Add", parts, t, facts)
    new = b.emit(b.rng.choice(("Tanh", "Sigmoid")), [total], t, replace(facts, low=-1.01))
    more = b.emit("Identity", [c], Type(BOOL), c.facts)
    returned, outputs = [more, new], [(t, facts)]
    if b.rng.random() < 0.5:
        returned.append(b.emit("Identity", [new], t, facts))
        outputs.append((inserted(t, 0, steps), facts))
    inputs = [s.scalar(steps), None, initial]
    return s.node("Loop", inputs, outputs, body=b.graph(returned, 1))[0]


@maker(4)
def layers(s: Scope, t: Type, need: Need) -> Value:
    """The last state of recurrent layers in a row; others may read what some of them leave"""
    deeper(s)
    if t.elem != FLOAT or need.exact or len(t.dims) != 2 or not t.is_static or 0 in t.dims:
        raise NoWay
    op = s.rng.choice(("RNN", "GRU", "LSTM"))
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    s.checked(op, [FLOAT] * 3, FLOAT, hidden_size=1)
    count, steps = s.rng.choice((1, 2, 3)), s.rng.choice((1, 3, 8))
    width = s.rng.choice((1, 2, 3))
    close = Need(exact=False, finite=True)
    x = bounded(s, t.shaped((steps, t.dims[0], width)), close)
    facts = Facts(-1.001, 1.001, exact=False, zero_sign=False)
    for layer in range(count):
        last = layer + 1 == count
        hidden = t.dims[1] if last else s.rng.choice((1, 2, 3, 5))
        sides = (width, hidden)
        weights = [s.constant(array(s, FLOAT, (1, gates * hidden, n), True)) for n in sides]
        initial = None
        if s.rng.random() < 0.3:
            initial = bounded(s, t.shaped((1, t.dims[0], hidden)), close)
        states = t.shaped((steps, 1, t.dims[0], hidden))
        ends = t.shaped((1, t.dims[0], hidden))
        direction = s.rng.choice(("forward", "forward", "forward", "reverse"))
        y, end = s.node(
            op,
            [x, *weights, None, None, initial],
            [(states, facts), (ends, facts)],
            hidden_size=hidden,
            direction=direction,
        )
        x, width = s.squeeze(y, 1), hidden
        if not last and s.rng.random() < 0.7:
            for value in (y, end, x):
                s.values.remove(value)  # nobody else reads them
    return s.squeeze(end, 0)


@maker(2)
def looked_up(s: Scope, t: Type, need: Need) -> Value:
    """Rows of a constant table times a constant matrix"""
    if not t.is_float or need.exact or len(t.dims) != 2 or not isinstance(t.dims[1], int):
        raise NoWay
    s.checked("MatMul", [t.elem] * 2, t.elem)
    rows, inner = s.rng.choice((2, 3, 5)), s.rng.choice((1, 2, 3))
    table = converted(s, s.constant(array(s, FLOAT, (rows, inner), True)), t.elem)
    matrix = converted(s, s.constant(array(s, FLOAT, (inner, t.dims[1]), True)), t.elem)
    facts = Facts(-100, 100, exact=False, zero_sign=False)
    line = Type(INT64, (t.dims[0],))
    at = s.emit("Mod", [expression(s, line), s.scalar(rows)], line, Facts(0, rows - 1))
    x = s.emit("Gather", [table, at], t.shaped((t.dims[0], inner)), facts, axis=0)
    return s.emit("MatMul", [x, matrix], t, facts)
