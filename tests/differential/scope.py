# SPDX-License-Identifier: Apache-2.0
"""A program while it is written: nested blocks, the values that can be used in each, names."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .values import (
    DTYPES,
    ELEMENTS,
    INT64,
    MOST_SIZE,
    Dim,
    Facts,
    NoWay,
    Type,
    Value,
    of_array,
    union,
)


class Program:
    """What all blocks share."""

    def __init__(
        self, rng: random.Random, opset: int, supports: Callable[..., bool], fuel: int
    ):
        self.rng, self.opset, self.supports = rng, opset, supports
        self.fuel = fuel  # how many more nodes may be made for their own sake
        self.counter = 0  # of names
        self.constants = 0
        self.symbols = 0  # of dims that only a run knows
        self.reuse_names = rng.random() < 0.5
        self.name_nodes = rng.random() < 0.5
        self.tolerant = rng.random() < 0.35  # has results that are no more than close
        self.least: dict[str, int] = {}  # of symbols, the smallest size
        self.initializers: list[onnx.TensorProto] = []

    def fresh_symbol(self) -> str:
        self.symbols += 1
        return f"?{self.symbols}"

    def least_size(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else self.least.get(dim, 0)


class Scope:
    """A block: its nodes, and the values that are visible in it, from outside in."""

    def __init__(self, program: Program, parent: Scope | None = None):
        self.program, self.parent = program, parent
        self.rng = program.rng
        self.depth = parent.depth + 1 if parent else 0
        self.values: list[Value] = list(parent.values) if parent else []
        self.nodes: list[onnx.NodeProto] = []
        self.params: list[Value] = []
        self.initializers: list[onnx.TensorProto] = (
            program.initializers if parent is None else []
        )
        self.names = 0

    # ---- names and values ----

    def name(self) -> str:
        """Blocks beside each other may use the same names, those in each other may not."""
        self.program.counter += 1
        if not self.program.reuse_names:
            return f"v{self.program.counter}"
        self.names += 1
        return f"{'vabc'[self.depth]}{self.names}"

    def add(self, name: str, type: Type, facts: Facts) -> Value:
        value = Value(name, type, facts)
        self.values.append(value)
        return value

    def param(self, type: Type, facts: Facts) -> Value:
        """A block's parameter. It may hide a value from outside."""
        name = self.name()
        hidden = self.rng.choice(self.values) if self.values else None
        if hidden and self.rng.random() < 0.1 and self.may_hide(hidden):
            name = hidden.name
            self.values = [v for v in self.values if v.name != name]
        value = self.add(name, type, facts)
        self.params.append(value)
        return value

    def may_hide(self, value: Value) -> bool:
        """Sizes must still be found, and parameters are used once more."""
        dims = [d for d in value.type.dims or () if isinstance(d, str)]
        others = [v for v in self.values if v.name != value.name]
        return value.name not in {p.name for p in self.params} and all(
            any(d in (v.type.dims or ()) for v in others if v.type.kind == "tensor")
            for d in dims
        )

    def block(self) -> Scope:
        return Scope(self.program, self)

    def visible(self, accepts: Callable[[Value], bool]) -> Value:
        """One of the values that are accepted, rather a late one."""
        found = [v for v in self.values if accepts(v)]
        if not found:
            raise NoWay
        return found[max(self.rng.randrange(len(found)) for _ in range(2))]

    # ---- nodes ----

    def node(
        self,
        op: str,
        inputs: Iterable[Value | None],
        outputs: list[tuple[Type, Facts]],
        **attrs,
    ) -> list[Value]:
        names = [value.name if value else "" for value in inputs]
        results = [self.name() for _ in outputs]
        node = helper.make_node(op, names, results, **attrs)
        if self.program.name_nodes:
            node.name = f"{op}_{results[0]}"
        self.nodes.append(node)
        self.program.fuel -= 1
        return [self.add(r, t, f) for r, (t, f) in zip(results, outputs)]

    def emit(
        self,
        op: str,
        inputs: list[Value | None],
        type: Type,
        facts: Facts | None = None,
        **attrs,
    ) -> Value:
        """One result. Without facts: the elements are those of the operands of its type."""
        if facts is None:
            data = [v.facts for v in inputs if v and v.type.elem == type.elem]
            facts = union(type.elem, data)
        return self.node(op, inputs, [(type, facts)], **attrs)[0]

    def checked(self, op: str, elems: list[int], result: int, **attrs) -> None:
        if not self.program.supports(op, tuple(elems), result, self.program.opset, **attrs):
            raise NoWay

    # ---- constants and sizes ----

    def constant(self, array: np.ndarray) -> Value:
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        type, facts = Type(ELEMENTS[array.dtype], array.shape), of_array(array)
        # Initializers are visible from the block's beginning on, and ONNX Runtime makes
        # initializers of Constants: their names are used nowhere else.
        self.program.constants += 1
        name = f"w{self.program.constants}"
        tensor = numpy_helper.from_array(array, name)
        if self.rng.random() < 0.3:
            self.initializers.append(tensor)
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return self.add(name, type, facts)

    def integers(self, *numbers: int) -> Value:
        return self.constant(np.array(numbers, np.int64))

    def scalar(self, number, elem: int = INT64) -> Value:
        return self.constant(np.array(number, DTYPES[elem]))

    def size(self, dim: Dim) -> Value:
        """A dim as int64[1]."""
        if isinstance(dim, int):
            return self.integers(dim)
        owner = self.visible(lambda v: v.type.kind == "tensor" and dim in v.type.dims)
        axis, rank = owner.type.dims.index(dim), len(owner.type.dims)
        facts = Facts(self.program.least_size(dim), MOST_SIZE)
        if self.program.opset >= 15 and self.rng.random() < 0.3:
            one = Type(INT64, (1,))
            return self.emit("Shape", [owner], one, facts, start=axis, end=axis + 1)
        shape = self.emit("Shape", [owner], Type(INT64, (rank,)), Facts(0, MOST_SIZE))
        if self.rng.random() < 0.5:
            return self.emit(
                "Gather", [shape, self.integers(axis)], Type(INT64, (1,)), facts, axis=0
            )
        ends = [self.integers(axis), self.integers(axis + 1)]
        return self.emit("Slice", [shape, *ends], Type(INT64, (1,)), facts)

    def size_scalar(self, dim: Dim) -> Value:
        if isinstance(dim, int):
            return self.scalar(dim)
        return self.squeeze(self.size(dim), 0)

    def shape(self, dims: tuple[Dim, ...]) -> Value:
        if all(isinstance(d, int) for d in dims):
            return self.integers(*dims)
        same = [v for v in self.values if v.type.kind == "tensor" and v.type.dims == dims]
        if same and self.rng.random() < 0.7:
            value = self.rng.choice(same)
            return self.emit("Shape", [value], Type(INT64, (len(dims),)), Facts(0, MOST_SIZE))
        sizes = [self.size(d) for d in dims]
        return self.emit("Concat", sizes, Type(INT64, (len(dims),)), axis=0)

    def squeeze(self, value: Value, axis: int) -> Value:
        dims = value.type.dims[:axis] + value.type.dims[axis + 1 :]
        return self.axes_op("Squeeze", value, [axis], value.type.shaped(dims), value.facts)

    def unsqueeze(self, value: Value, axis: int) -> Value:
        dims = value.type.dims[:axis] + (1,) + value.type.dims[axis:]
        return self.axes_op("Unsqueeze", value, [axis], value.type.shaped(dims), value.facts)

    def axes_op(
        self, op: str, value: Value, axes: list[int], type: Type, facts: Facts, **attrs
    ) -> Value:
        """Axes are an attribute at first, and an operand later."""
        since = {"Squeeze": 13, "Unsqueeze": 13, "ReduceSum": 13}.get(op, 18)
        if self.program.opset >= since:
            return self.emit(op, [value, self.integers(*axes)], type, facts, **attrs)
        return self.emit(op, [value], type, facts, axes=axes, **attrs)

    def expanded(self, value: Value, type: Type) -> Value:
        """Broadcast; not to a 0, which ONNX Runtime's optimizations take for no change."""
        if 0 in type.dims:
            raise NoWay
        return self.emit("Expand", [value, self.shape(type.dims)], type, value.facts)

    # ---- the end of a block ----

    def own(self, value: Value, direct: float = 0.0) -> Value:
        """A value that this block may return: ONNX Runtime refuses those from outside, and
        misreads some of its own parameters, so that most go through an Identity."""
        made_here = any(value.name in node.output for node in self.nodes)
        is_param = any(value is p for p in self.params)
        if made_here and self.rng.random() < 0.7:
            return value
        if is_param and value is not self.params[0] and self.rng.random() < direct:
            return value
        if value.type.kind != "tensor" and self.program.opset < 14:
            raise NoWay
        return self.emit("Identity", [value], value.type, value.facts)

    def distinct(self, values: list[Value]) -> list[Value]:
        """No name is returned twice."""
        names, result = set(), []
        for value in values:
            if value.name in names:
                value = self.emit("Identity", [value], value.type, value.facts)
            names.add(value.name)
            result.append(value)
        return result

    def graph(self, outputs: list[Value], declared: int = 0) -> onnx.GraphProto:
        """Of the last outputs so many are declared in full."""
        certain = len(outputs) - declared
        return helper.make_graph(
            self.nodes,
            f"block{self.program.counter}",
            [self.info(p) for p in self.params],
            [self.info(o, k >= certain) for k, o in enumerate(outputs)],
            self.initializers,
        )

    def info(self, value: Value, in_full: bool = False) -> onnx.ValueInfoProto:
        """Declares a value: its dims, some of them, its rank or, seldom, its type alone."""
        type, luck = value.type, self.rng.random()
        if type.kind != "tensor":
            return typed(value.name, type, None)
        if luck > 0.95 and self.parent and type.dims and not in_full:
            return typed(value.name, type, None)
        keep = 1.0 if in_full or luck < 0.6 else 0.5
        named = luck < 0.3  # symbols of inputs mean something in outputs
        dims = [
            d if self.rng.random() < keep and (named or isinstance(d, int)) else None
            for d in type.dims
        ]
        return typed(value.name, type, [None if str(d)[0] == "?" else d for d in dims])


def typed(name: str, type: Type, dims: list[Dim | None] | None) -> onnx.ValueInfoProto:
    tensor = helper.make_tensor_type_proto(type.elem, dims)
    if type.kind == "sequence":
        tensor = helper.make_sequence_type_proto(tensor)
    if type.kind == "optional":
        tensor = helper.make_optional_type_proto(tensor)
    return helper.make_value_info(name, tensor)


def loosened(value: Value, **changes) -> Value:
    value.facts = replace(value.facts, **changes)
    return value
