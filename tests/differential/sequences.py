# SPDX-License-Identifier: Apache-2.0
"""Makers with sequences and optionals."""

from __future__ import annotations

from dataclasses import replace

from .control import deeper, trips
from .expressions import Need, expression, maker
from .movement import index, some_dim, static_axis, with_dim
from .scope import Scope
from .values import BOOL, INT64, MOST_SIZE, Facts, NoWay, Type, Value, union


def sequence_of(t: Type) -> Type:
    return replace(t, kind="sequence")


@maker(3)
def constructed(s: Scope, t: Type, need: Need) -> Value:
    """An element of a sequence that is written out, and perhaps changed."""
    count = s.rng.choice((1, 2, 3))
    elements = [expression(s, t, need) for _ in range(count)]
    facts = union(t.elem, [e.facts for e in elements])
    made = s.emit("SequenceConstruct", elements, sequence_of(t), facts)
    luck = s.rng.random()
    if luck < 0.3:
        new = expression(s, t, need)
        facts = union(t.elem, [facts, new.facts])
        at = [s.scalar(s.rng.randint(-count, count))] if s.rng.random() < 0.6 else []
        made = s.emit("SequenceInsert", [made, new, *at], sequence_of(t), facts)
        count += 1
    elif luck < 0.5 and count > 1:
        at = [index(s, count)] if s.rng.random() < 0.6 else []
        made = s.emit("SequenceErase", [made, *at], sequence_of(t), facts)
        count -= 1
    if t == Type(INT64) and s.rng.random() < 0.3:
        return s.emit("SequenceLength", [made], t, Facts(0, 4))
    return s.emit("SequenceAt", [made, index(s, count)], t, facts)


@maker(2)
def joined(s: Scope, t: Type, need: Need) -> Value:
    """ConcatFromSequence of what was put together."""
    axis = static_axis(s, t)
    size = t.dims[axis]
    if s.rng.random() < 0.5:
        part = t.shaped(t.dims[:axis] + t.dims[axis + 1 :])
        parts, new_axis = [expression(s, part, need) for _ in range(size)], 1
    else:
        parts, new_axis = [expression(s, with_dim(t, axis, 1), need) for _ in range(size)], 0
    facts = union(t.elem, [p.facts for p in parts])
    made = s.emit("SequenceConstruct", parts, sequence_of(parts[0].type), facts)
    return s.emit("ConcatFromSequence", [made], t, facts, axis=axis, new_axis=new_axis)


@maker(4)
def collected(s: Scope, t: Type, need: Need) -> Value:
    """A loop that appends to a sequence, which is stacked, indexed or counted."""
    deeper(s)
    if s.program.opset < 13:
        raise NoWay
    stacked = bool(t.dims) and s.rng.random() < 0.6
    counted = t == Type(INT64) and s.rng.random() < 0.5
    part = t.shaped(t.dims[1:]) if stacked else t
    dim = t.dims[0] if stacked else s.rng.choice((1, 2, 3, 4))
    if not s.program.least_size(dim) and not counted:
        raise NoWay
    plan = trips(s, None if counted else dim)
    empty = s.emit("SequenceEmpty", [], sequence_of(part), Facts(0, 0), dtype=part.elem)
    s.values.remove(empty)
    b = s.block()
    b.param(Type(INT64), Facts(0, max(plan.most - 1, 0), below=plan.below))
    c = b.param(Type(BOOL), Facts(0, 1))
    p = b.param(sequence_of(part), Facts())
    b.values.remove(p)
    new = expression(b, part, need)
    at = [b.scalar(0)] if b.rng.random() < 0.15 else []
    longer = b.emit("SequenceInsert", [p, new, *at], sequence_of(part), new.facts)
    more = b.emit("Identity", [c], Type(BOOL), c.facts)
    outputs = [(sequence_of(part), new.facts)]
    body = b.graph([more, longer])
    found = s.node("Loop", [plan.count, None, empty], outputs, body=body)[0]
    if counted:
        return s.emit("SequenceLength", [found], t, Facts(0, MOST_SIZE))
    if stacked:
        return s.emit("ConcatFromSequence", [found], t, new.facts, axis=0, new_axis=1)
    return s.emit("SequenceAt", [found, index(s, dim)], t, new.facts)


@maker(6)
def given(s: Scope, t: Type, need: Need) -> Value:
    """An element of a sequence that the program is given, or how many there are."""
    if t == Type(INT64) and s.rng.random() < 0.5:
        q = s.visible(lambda v: v.name == "q" and v.type.kind == "sequence")
        return s.emit("SequenceLength", [q], t, Facts(1, 3))
    q = s.visible(lambda v: v.name == "q" and v.type == sequence_of(t) and need.met_by(v))
    return s.emit("SequenceAt", [q, s.scalar(s.rng.choice((0, -1)))], t, q.facts)


@maker(3)
def over_given(s: Scope, t: Type, need: Need) -> Value:
    """A loop over a sequence that the program is given, which makes another one"""
    deeper(s)
    if s.program.opset < 13:
        raise NoWay
    q = s.visible(lambda v: v.name == "q" and v.type.kind == "sequence")
    length = s.emit("SequenceLength", [q], Type(INT64), Facts(1, 3))
    empty = s.emit("SequenceEmpty", [], sequence_of(t), Facts(0, 0), dtype=t.elem)
    s.values.remove(empty)
    b = s.block()
    i = b.param(Type(INT64), Facts(0, 2))
    c = b.param(Type(BOOL), Facts(0, 1))
    made = b.param(sequence_of(t), Facts())
    b.values.remove(made)
    if all(v is not q for v in b.values):  # a parameter has its name
        raise NoWay
    x = b.emit("SequenceAt", [q, i], replace(q.type, kind="tensor"), q.facts)
    b.values += [x, x]  # likely to be used
    new = expression(b, t, need)
    longer = b.emit("SequenceInsert", [made, new], sequence_of(t), new.facts)
    more = b.emit("Identity", [c], Type(BOOL), c.facts)
    outputs = [(sequence_of(t), new.facts)]
    found = s.node("Loop", [length, None, empty], outputs, body=b.graph([more, longer]))[0]
    return s.emit("SequenceAt", [found, s.scalar(0)], t, new.facts)


@maker(3)
def taken_apart(s: Scope, t: Type, need: Need) -> Value:
    """SplitToSequence, and an element of it, or a loop over all."""
    dim = s.rng.choice((1, 2, 3))
    s.checked("SplitToSequence", [t.elem], t.elem, axis=0)
    whole = expression(s, t.shaped((dim, *t.dims)), need)
    parts = s.emit("SplitToSequence", [whole], sequence_of(t), whole.facts, axis=0, keepdims=0)
    return s.emit("SequenceAt", [parts, index(s, dim)], t, whole.facts)


@maker(2)
def mapped(s: Scope, t: Type, need: Need) -> Value:
    """SequenceMap, or the loop that says the same."""
    deeper(s)
    if s.program.opset < 17:
        raise NoWay
    dim = s.rng.choice((1, 2, 3))
    source = replace(t, elem=s.rng.choice((t.elem, INT64)))
    elements = [expression(s, source, need) for _ in range(dim)]
    facts = union(source.elem, [e.facts for e in elements])
    made = s.emit("SequenceConstruct", elements, sequence_of(source), facts)
    b = s.block()
    b.param(source, facts)
    new = b.own(expression(b, t, need))
    if any(new is p for p in b.params):
        new = b.emit("Identity", [new], t, new.facts)
    outputs = [(sequence_of(t), new.facts)]
    found = s.node("SequenceMap", [made], outputs, body=b.graph([new]))[0]
    return s.emit("SequenceAt", [found, index(s, dim)], t, new.facts)


@maker(2)
def optional(s: Scope, t: Type, need: Need) -> Value:
    """Optional, and what is in it; or a branch on whether there is something."""
    if s.program.opset < 15:
        raise NoWay
    value = expression(s, t, need)
    kind = replace(t, kind="optional")
    wrapped = s.emit("Optional", [value], kind, value.facts)
    if t == Type(BOOL) and s.rng.random() < 0.4:
        return s.emit("OptionalHasElement", [wrapped], t, Facts(0, 1))
    return s.emit("OptionalGetElement", [wrapped], t, value.facts)


@maker(6)
def asked(s: Scope, t: Type, need: Need) -> Value:
    """What is in the optional that the program is given, or else something else."""
    o = s.visible(lambda v: v.name == "o" and v.type.kind == "optional")
    there = s.emit("OptionalHasElement", [o], Type(BOOL), Facts(0, 1))
    if t == Type(BOOL) and s.rng.random() < 0.3:
        return there
    deeper(s)
    graphs, facts = [], []
    for full in (True, False):
        block = s.block()
        if full:
            kind = replace(o.type, kind="tensor")
            value = block.emit("OptionalGetElement", [o], kind, o.facts)
            block.values += [value, value]  # likely to be used
            if kind != t or not need.met_by(value):
                value = block.own(expression(block, t, need))
        else:
            value = block.own(expression(block, t, need))
        graphs.append(block.graph([value]))
        facts.append(value.facts)
    outputs = [(t, union(t.elem, facts))]
    return s.node("If", [there], outputs, then_branch=graphs[0], else_branch=graphs[1])[0]


@maker(1)
def shrunk(s: Scope, t: Type, need: Need) -> Value:
    """The length of a sequence of different shapes."""
    if t != Type(INT64):
        raise NoWay
    elements = [expression(s, Type(INT64, (some_dim(s),))) for _ in range(2)]
    made = s.emit("SequenceConstruct", elements, sequence_of(Type(INT64, ("?",))), Facts())
    s.values.remove(made)
    joined = s.emit(
        "ConcatFromSequence",
        [made],
        Type(INT64, (s.program.fresh_symbol(),)),
        union(INT64, [e.facts for e in elements]),
        axis=0,
        new_axis=0,
    )
    return s.emit("Size", [joined], t, Facts(0, 16))
