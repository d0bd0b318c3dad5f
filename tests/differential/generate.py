# SPDX-License-Identifier: Apache-2.0
"""A program and its inputs, from a seed: the same for the same seed and ONNX Runtime."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from . import control, idioms, movement, sequences, writes
from .expressions import Need, constant, expression, number
from .scope import Program, Scope, typed
from .values import (
    BOOL,
    BYTES,
    DOUBLE,
    DTYPES,
    FLOAT,
    FLOATS,
    INT64,
    MOST_SIZE,
    Facts,
    NoWay,
    Type,
    anything,
)

OPSETS = (11, 12, 13, 13, 14, 15, 16, 17, 18, 18, 19, 20, 21, 22, 23, 24, 25, 26)
IR_VERSION = 8
MAKERS_OF = (control, idioms, movement, sequences, writes)  # they register what they make


Data = np.ndarray | list | None  # a tensor, a sequence, nothing in an optional


@dataclass
class Output:
    exact: bool
    zero_sign: bool


@dataclass
class Case:
    """A model, what its outputs promise, and sets of inputs by name."""

    model: onnx.ModelProto
    outputs: dict[str, Output]
    sets: list[dict[str, Data]]
    notes: list[str] = field(default_factory=list)


@functools.cache
def supported(op: str, elems: tuple, result: int, opset: int, attrs: tuple) -> bool:
    """Whether ONNX Runtime has a kernel for these element types."""
    names = [f"x{k}" for k in range(len(elems))]
    inputs = [helper.make_tensor_value_info(n, e, None) for n, e in zip(names, elems)]
    output = helper.make_tensor_value_info("y", result, None)
    if op == "SplitToSequence":
        output = typed("y", Type(result, kind="sequence"), None)
    node = helper.make_node(op, names, ["y"], **dict(attrs))
    graph = helper.make_graph([node], "g", inputs, [output])
    model = helper.make_model(
        graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", opset)]
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:
        return False
    return True


def supports(op: str, elems: tuple, result: int, opset: int, **attrs) -> bool:
    return supported(op, elems, result, opset, tuple(sorted(attrs.items())))


@dataclass
class Input:
    name: str
    type: Type
    facts: Facts
    special: bool


def make_inputs(program: Program, main: Scope) -> list[Input]:
    rng = program.rng
    for symbol, least in (("N", 0), ("M", 1)):
        if rng.random() < 0.5:
            program.least[symbol] = least
    found = []

    def give(name: str, type: Type, facts: Facts, special: bool = False) -> None:
        main.params.append(main.add(name, type, facts))
        found.append(Input(name, type, facts, special))

    give("n", Type(INT64), Facts(-1, 6))
    give("k", Type(INT64), Facts(0, 1))
    give("c", Type(BOOL), Facts(0, 1))
    for symbol in program.least:
        type = control.some_type(main, 2)
        dims = (symbol, *type.dims[1:]) if type.dims else (symbol,)
        give(f"s{symbol}", type.shaped(dims), anything(type.elem), rng.random() < 0.5)
    if rng.random() < 0.25:
        type = control.some_type(main, 2)
        give("q", replace(type, kind="sequence"), anything(type.elem), rng.random() < 0.5)
    if rng.random() < 0.2 and program.opset >= 15:
        type = control.some_type(main, 2)
        if type.is_static:
            give("o", replace(type, kind="optional"), anything(type.elem), rng.random() < 0.5)
    for j in range(rng.randint(1, 4)):
        type, special = control.some_type(main), rng.random() < 0.4
        if type.elem in BYTES:
            special = rng.random() < 0.8  # what is near the limits of so few numbers
        facts = anything(type.elem)
        if not special and type.elem in FLOATS:
            facts = Facts(-4, 4)
        elif not special and type.elem != BOOL:
            facts = Facts(max(-5, int(facts.low)), 9)
        give(f"x{j}", type, facts, special)
    return found


def data(rng: random.Random, main: Scope, input: Input, sizes: dict) -> Data:
    if input.type.kind == "optional":
        if rng.random() < 0.4:
            return None
        return data(rng, main, replace(input, type=replace(input.type, kind="tensor")), sizes)
    if input.type.kind == "sequence":
        element = replace(input, type=replace(input.type, kind="tensor"))
        return [data(rng, main, element, sizes) for _ in range(rng.randint(1, 3))]
    dims = [sizes.get(d, d) for d in input.type.dims]
    count = int(np.prod(dims, dtype=np.int64))
    elem, facts = input.type.elem, input.facts
    result = np.empty(count, DTYPES[elem])
    for j in range(count):
        if input.special or elem == BOOL:
            result[j] = number(main, elem, False)
        elif elem in FLOATS:
            zero = -0.0 if rng.random() < 0.5 else 0.0
            result[j] = zero if rng.random() < 0.1 else rng.randint(-400, 400) / 100
        else:
            result[j] = rng.randint(int(max(facts.low, -(2**40))), int(min(facts.high, 2**40)))
    return result.reshape(dims)


def make_sets(program: Program, main: Scope, inputs: list[Input]) -> list[dict]:
    rng, sets = program.rng, []
    for _ in range(2):
        sizes = {
            d: max(least, rng.choice((0, 1, 1, 2, 2, 3, 3, 5, 5, MOST_SIZE)))
            for d, least in program.least.items()
        }
        for i in inputs:
            i.special = i.special or not i.facts.finite
        sets.append({i.name: data(rng, main, i, sizes) for i in inputs})
    return sets


FAVOURITES = (control.loop_result, control.loop_stack, idioms.filled, control.if_, expression)
INEXACT = (
    control.loop_result,
    idioms.recurrent,
    idioms.layers,
    idioms.looked_up,
    movement.library,
    movement.reduction,
)


def generate(seed: int) -> Case:
    rng = random.Random(seed)
    program = Program(rng, rng.choice(OPSETS), supports, rng.choice((15, 30, 60, 100)))
    main = Scope(program)
    inputs = make_inputs(program, main)
    need = Need(exact=not program.tolerant)
    wanted = rng.choice((1, 2, 2, 3))
    outputs = []
    while len(outputs) < wanted:
        type = control.some_type(main)
        if rng.random() < 0.5:
            type = rng.choice(main.values).type
            if type.kind != "tensor" or any(
                isinstance(d, str) and d not in program.least for d in type.dims
            ):
                continue
        try:
            maker = rng.choice(FAVOURITES)
            if program.tolerant and rng.random() < 0.5:
                type = Type(rng.choice((FLOAT, FLOAT, DOUBLE)), (rng.randint(1, 3),) * 2)
                maker = rng.choice(INEXACT)
            outputs.append(maker(main, type, need))
        except NoWay:
            outputs.append(constant(main, type))
    made = {name for node in main.nodes for name in node.output}
    extra = [v for v in main.values if v.name in made and v.type.kind != "optional"]
    outputs += rng.sample(extra, min(len(extra), rng.choice((0, 1, 2))))
    outputs = [
        v if v.name in made else main.emit("Identity", [v], v.type, v.facts) for v in outputs
    ]
    outputs = main.distinct(outputs)
    graph = main.graph(outputs)
    model = helper.make_model(
        graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", program.opset)]
    )
    del graph
    for info, value in zip(model.graph.input, inputs):
        assert info.name == value.name
    facts = {v.name: Output(v.facts.exact, v.facts.zero_sign) for v in outputs}
    return Case(model, facts, make_sets(program, main, inputs))
