# SPDX-License-Identifier: Apache-2.0
"""Makers of Loop, If and Scan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .expressions import EXACT, Need, anything, array, expression, is_many, maker
from .movement import index, some_dim
from .scope import Scope
from .values import BOOL, DTYPES, FLOAT, INT64, MOST_SIZE, Dim, Facts, NoWay, Type, Value, union
from .writes import written

DEEPEST = 3
MOST_TRIPS = 5


def deeper(s: Scope) -> None:
    if s.depth >= DEEPEST or s.program.fuel <= 0:
        raise NoWay


def some_type(s: Scope, deepest: int = 3) -> Type:
    elem = s.rng.choice((FLOAT, FLOAT, INT64, INT64, BOOL, *DTYPES))
    rank = s.rng.choice((0, 1, 1, 2, 2, 3))
    dims = [some_dim(s) for _ in range(min(rank, deepest))]
    if dims and s.rng.random() < 0.03:
        dims[s.rng.randrange(len(dims))] = 0
    return Type(elem, tuple(dims))


# ---- If ----


@maker(6)
def if_(s: Scope, t: Type, need: Need) -> Value:
    deeper(s)
    condition = expression(s, Type(BOOL))
    types = [t]
    if s.rng.random() < 0.4:
        types.append(some_type(s, 2))
    graphs, returned = [], []
    for _ in range(2):
        block = s.block()
        values = [block.own(expression(block, each, need)) for each in types]
        values = block.distinct(values)
        graphs.append(block.graph(values))
        returned.append(values)
    outputs = [
        (each, union(each.elem, [a.facts, b.facts])) for each, a, b in zip(types, *returned)
    ]
    return s.node("If", [condition], outputs, then_branch=graphs[0], else_branch=graphs[1])[0]


@maker(1)
def if_of_sizes(s: Scope, t: Type, need: Need) -> Value:
    """Branches of different shapes, and what is made of the result."""
    deeper(s)
    if t.dims or t.elem != INT64:
        raise NoWay
    condition = expression(s, Type(BOOL))
    graphs, facts = [], []
    for size in s.rng.sample((0, 1, 2, 3), 2):
        block = s.block()
        value = block.own(expression(block, Type(INT64, (size,))))
        graphs.append(block.graph([value]))
        facts.append(value.facts)
    type = Type(INT64, (s.program.fresh_symbol(),))
    value = s.node(
        "If",
        [condition],
        [(type, union(INT64, facts))],
        then_branch=graphs[0],
        else_branch=graphs[1],
    )[0]
    if s.rng.random() < 0.5:
        return s.emit("Size", [value], t, Facts(0, 3))
    longer = s.emit(
        "Concat", [value, s.integers(s.rng.randint(-3, 3))], Type(INT64, ("?",)), axis=0
    )
    s.values.remove(longer)
    return s.emit("Gather", [longer, s.scalar(0)], t, anything(INT64), axis=0)


# ---- Loop ----


@dataclass
class Trips:
    count: Value | None  # int64 scalar, or no limit
    most: int
    below: str | None = None  # the symbol that the count is


def trips(s: Scope, dim: Dim | None = None) -> Trips:
    """How often; for a stack exactly as often as its first dim says."""
    if dim is None and s.rng.random() < 0.35:
        dim = s.rng.choice([*s.program.least, 2, 3]) if s.rng.random() < 0.8 else some_dim(s)
    if isinstance(dim, str):
        return Trips(s.size_scalar(dim), MOST_SIZE, dim)
    if dim is not None:
        return Trips(s.scalar(dim), dim)
    if s.rng.random() < 0.35:
        count = s.rng.choice((0, 1, 1, 2, 3, 4, MOST_TRIPS, -1))
        return Trips(s.scalar(count), max(count, 0))
    wanted = lambda v: v.type == Type(INT64) and v.facts.within(-2, MOST_SIZE)  # noqa: E731
    count = s.visible(wanted)
    return Trips(count, max(int(count.facts.high), 0))


@dataclass
class Carried:
    """One carried value: what it is at first, and how an iteration changes it."""

    type: Type
    how: str
    initial: Value
    param: Value | None = None


def ways(t: Type) -> list[str]:
    found = ["free", "free", "accumulate", "accumulate", "choose", "pass"]
    if t.dims:
        found += ["write"] * 5
    if not t.dims and t.elem == INT64:
        found += ["count", "count", "iteration"]
    return found


def stricter(s: Scope, t: Type, need: Need) -> Need:
    """What the states of a loop have to keep."""
    exact = need.exact or not t.is_float or not s.program.tolerant
    zero_sign = need.zero_sign or (exact and t.is_float and s.rng.random() < 0.5)
    return Need(exact=exact, zero_sign=zero_sign)


def met(value: Value, need: Need) -> Value:
    if not need.met_by(value):
        raise NoWay
    return value


def carried(s: Scope, t: Type, need: Need) -> Carried:
    how = s.rng.choice(ways(t))
    initial = expression(s, t, Need(True, need.zero_sign, not need.exact))
    return Carried(t, how, initial)


def param_facts(c: Carried, exact: bool, zero_sign: bool) -> Facts:
    """What holds in any iteration, given that `how` makes the later values."""
    t = c.type
    if c.how == "pass":
        return replace(c.initial.facts, carried=t.is_float and exact)
    if c.how == "count":
        facts = c.initial.facts
        if facts.within(-100, 100):
            return Facts(facts.low - 24, facts.high + 24)
        return anything(t.elem)
    facts = anything(t.elem)
    return replace(facts, exact=exact, carried=t.is_float and exact, zero_sign=zero_sign)


ACCUMULATE = ("Add", "Add", "Mul", "Sub", "Max", "Min", "BitwiseOr", "BitwiseAnd", "BitwiseXor")


def updated(b: Scope, c: Carried, i: Value, all_carried: list[Carried], need: Need) -> Value:
    """The value that the iteration hands on."""
    p, t = c.param, c.type
    if c.how == "pass":
        return p
    if c.how == "count":
        step = b.scalar(b.rng.choice((1, 1, 2, -1, 3)))
        facts = Facts(p.facts.low - 3, p.facts.high + 3) if p.facts.high < 2**40 else p.facts
        return b.emit("Add", [p, step], t, facts)
    if c.how == "iteration":
        return b.emit("Identity", [i], t, i.facts)
    if c.how == "accumulate":
        return accumulated(b, p, need)
    if c.how == "write":
        return written(b, p, need)
    if c.how == "choose":
        return choosing(b, p, need)
    others = [o.param for o in all_carried if o is not c and o.type == t]
    if others and b.rng.random() < 0.4 and need.met_by(others[0]):
        return others[0]
    return expression(b, t, need)


def accumulated(b: Scope, p: Value, need: Need) -> Value:
    t = p.type
    if t.elem == BOOL:
        op = b.rng.choice(("And", "Or", "Xor"))
        return b.emit(op, [p, expression(b, t)], t, Facts(0, 1))
    if t.is_float:
        op = b.rng.choice(("Max", "Min") if need.exact else ("Add", "Add", "Max"))
    else:
        op = b.rng.choice(ACCUMULATE)
    if op in ("Max", "Min") and is_many(t):
        raise NoWay  # see tamed
    b.checked(op, [t.elem] * 2, t.elem)
    new = expression(b, t, replace(need, finite=t.is_float and not need.exact))
    if t.is_float and not need.exact and not new.facts.within(-50, 50):
        raise NoWay
    inputs = [p, new] if b.rng.random() < 0.7 else [new, p]
    facts = replace(p.facts, zero_sign=not t.is_float, below=None)
    return b.emit(op, inputs, t, facts)


def choosing(b: Scope, p: Value, need: Need) -> Value:
    """if c: p = f(p)"""
    deeper(b)
    t = p.type
    graphs = []
    facts = [p.facts]
    for taken in b.rng.sample((True, False), 2):
        block = b.block()
        if taken:
            value = block.own(written(block, p, need) if t.dims else expression(block, t, need))
            facts.append(value.facts)
        else:
            value = block.emit("Identity", [p], t, p.facts)
        graphs.append(block.graph([value]))
    condition = expression(b, Type(BOOL))
    outputs = [(t, union(t.elem, facts))]
    return b.node("If", [condition], outputs, then_branch=graphs[0], else_branch=graphs[1])[0]


def attempt(make, *alternatives):
    for alternative in (make, *alternatives):
        try:
            return alternative()
        except NoWay:
            continue
    raise NoWay


def go_on(b: Scope, i: Value, condition: Value, endless: bool) -> Value:
    """The condition for the next iteration."""
    luck, flag = b.rng.random(), Type(BOOL)
    if not endless and luck < 0.5:
        return b.emit("Identity", [condition], flag, condition.facts)
    if not endless and luck < 0.65:
        return b.own(b.scalar(True, BOOL))
    last = b.scalar(b.rng.randint(0, MOST_TRIPS))
    counted = b.emit("Less", [i, last], flag, Facts(0, 1))
    if luck < 0.85:
        return counted
    also = expression(b, flag)
    return b.emit("And", [counted, also], flag, Facts(0, 1))


def loop(s: Scope, main: Type, need: Need, stack: Type | None) -> list[Value]:
    """Results: what is carried, and then stacks: of `stack`, and perhaps others."""
    deeper(s)
    plan = trips(s, stack.dims[0] if stack else None)
    endless = stack is None and s.rng.random() < 0.12
    all_types = [] if stack and s.rng.random() < 0.4 else [main]
    all_types += [some_type(s, 2) for _ in range(s.rng.choice((0, 0, 1, 1, 2)))]
    if s.rng.random() < 0.15 and all_types:
        all_types.append(all_types[0])
    needs = [stricter(s, t, need if t is main else EXACT) for t in all_types]
    states = [carried(s, t, n) for t, n in zip(all_types, needs)]
    start = None
    if s.rng.random() < 0.3 and not stack:
        start = expression(s, Type(BOOL))
    elif s.rng.random() < 0.5:
        start = s.scalar(True, BOOL)

    b = s.block()
    most = MOST_TRIPS + 1 if endless else plan.most
    i = b.param(Type(INT64), Facts(0, max(most - 1, 0), below=plan.below))
    if endless:
        i.facts = Facts(0, MOST_TRIPS + 1)
    c = b.param(Type(BOOL), Facts(0, 1))
    for state, n in zip(states, needs):
        facts = param_facts(state, n.exact, n.zero_sign or not state.type.is_float)
        state.param = b.param(state.type, facts)
    new = []
    for state, n in zip(states, needs):
        value = attempt(
            lambda state=state, n=n: met(updated(b, state, i, states, n), n),
            lambda state=state, n=n: expression(b, state.type, n),
        )
        new.append(b.own(value, direct=0.2))
    rows = []
    # What shape a stack of nothing has is open where the rows' shape is not declared.
    runs = stack is not None and s.program.least_size(stack.dims[0]) > 0
    if stack:
        type = stack.shaped(stack.dims[1:])
        if not runs and not type.is_static:
            raise NoWay
        rows.append(b.own(expression(b, type, need)))
    elif s.rng.random() < 0.3:
        type = some_type(s, 2)
        if type.is_static:
            rows.append(b.own(expression(b, type, EXACT)))
    if stack:
        more = b.own(attempt(lambda: b.emit("Identity", [c], Type(BOOL), c.facts)))
    else:
        more = go_on(b, i, c, endless)
    returned = b.distinct([more, *new, *rows])
    outputs = [(state.type, result_facts(state, v)) for state, v in zip(states, returned[1:])]
    for row in returned[1 + len(states) :]:
        first = stack.dims[0] if stack else s.program.fresh_symbol()
        outputs.append((row.type.shaped((first, *row.type.dims)), row.facts))
    if not outputs:
        raise NoWay
    inputs = [None if endless else plan.count, start, *[state.initial for state in states]]
    return s.node("Loop", inputs, outputs, body=b.graph(returned, 0 if runs else len(rows)))


def result_facts(state: Carried, last: Value) -> Facts:
    facts = union(state.type.elem, [state.initial.facts, last.facts])
    return replace(facts, carried=False, below=None)


@maker(8)
def loop_result(s: Scope, t: Type, need: Need) -> Value:
    return loop(s, t, need, None)[0]


@maker(5)
def loop_stack(s: Scope, t: Type, need: Need) -> Value:
    if not t.dims or (isinstance(t.dims[0], str) and t.dims[0] not in s.program.least):
        raise NoWay
    results = loop(s, some_type(s, 2), need, t)
    return met(next(v for v in results if v.type == t), need)


@maker(2)
def appended(s: Scope, t: Type, need: Need) -> Value:
    """A buffer that grows: rows are appended by Concat, and it is reduced in the end."""
    deeper(s)
    if t.dims or t.elem != INT64:
        raise NoWay
    plan = trips(s)
    width = s.rng.choice((1, 2, 3))
    row = Type(INT64, (width,))
    initial = expression(s, Type(INT64, (s.rng.choice((0, 0, 1)), width)))
    b = s.block()
    b.param(Type(INT64), Facts(0, max(plan.most - 1, 0), below=plan.below))
    c = b.param(Type(BOOL), Facts(0, 1))
    buffer = Type(INT64, (s.program.fresh_symbol(), width))
    p = b.param(buffer, anything(INT64))
    new = b.unsqueeze(expression(b, row), 0)
    longer = b.emit("Concat", [p, new], buffer.shaped(("?", width)), anything(INT64), axis=0)
    more = b.emit("Identity", [c], Type(BOOL), c.facts)
    buffer = buffer.shaped((s.program.fresh_symbol(), width))
    body = b.graph([more, longer])
    grown = s.node("Loop", [plan.count, None, initial], [(buffer, anything(INT64))], body=body)[
        0
    ]
    if s.rng.random() < 0.4:
        return s.emit("Size", [grown], t, Facts(0, 30))
    first = s.constant(array(s, INT64, (1, width)))
    whole = s.emit("Concat", [first, grown], buffer.shaped(("?", width)), axis=0)
    s.values.remove(whole)
    last = s.emit("Gather", [whole, s.scalar(-1)], row, anything(INT64), axis=0)
    return s.emit("Gather", [last, index(s, width)], t, anything(INT64), axis=0)


# ---- Scan ----


@maker(3)
def scan(s: Scope, t: Type, need: Need) -> Value:
    """Its last state, or what it stacks."""
    deeper(s)
    stacks = bool(t.dims) and s.rng.random() < 0.5
    along = s.rng.randrange(len(t.dims)) if stacks and s.rng.random() < 0.5 else 0
    length = t.dims[along] if stacks else s.rng.choice((1, 2, 3, *s.program.least))
    if not s.program.least_size(length):
        raise NoWay  # ONNX Runtime wants one iteration
    state_type = some_type(s, 2) if stacks else t
    initial = expression(s, state_type, replace(need, exact=True))
    elements = [some_type(s, 2) for _ in range(s.rng.choice((1, 1, 2)))]
    dims = [d for element in elements for d in element.dims]
    if not all(map(s.program.least_size, (*dims, *state_type.dims, *t.dims))):
        raise NoWay  # and divides by the size of its elements
    axes, scanned = [], []
    for element in elements:
        axes.append(s.rng.randint(0, len(element.dims)) if s.rng.random() < 0.3 else 0)
        whole = (*element.dims[: axes[-1]], length, *element.dims[axes[-1] :])
        scanned.append(expression(s, element.shaped(whole)))
    b = s.block()
    facts = replace(anything(state_type.elem), carried=state_type.is_float, zero_sign=False)
    state = b.param(state_type, facts)
    items = [b.param(element, whole.facts) for element, whole in zip(elements, scanned)]
    direct = state_type.dims and b.rng.random() < 0.3
    new = b.own(
        attempt(
            lambda: written(b, state, need) if direct else expression(b, state_type),
            lambda: expression(b, state_type),
        )
    )
    if any(new is p for p in (state, *items)) or not new.facts.exact:
        raise NoWay
    returned = [new]
    outputs = [(state_type, replace(anything(state_type.elem), zero_sign=False))]
    if stacks:
        row = b.own(expression(b, t.shaped(t.dims[:along] + t.dims[along + 1 :]), need))
        returned.append(row)
        outputs.append((t, replace(row.facts, carried=False)))
    returned = b.distinct(returned)
    attrs: dict = {"num_scan_inputs": len(items)}
    if any(axes):
        attrs["scan_input_axes"] = axes
    if s.rng.random() < 0.4:
        attrs["scan_input_directions"] = [s.rng.randint(0, 1) for _ in items]
    if along:
        attrs["scan_output_axes"] = [along]
    if stacks and s.rng.random() < 0.4:
        attrs["scan_output_directions"] = [1]
    results = s.node("Scan", [initial, *scanned], outputs, body=b.graph(returned), **attrs)
    return results[-1]
