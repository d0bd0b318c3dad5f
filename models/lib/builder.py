"""A thin graph builder over onnx.helper.

A `Builder` makes one model.  Operators are methods with the ONNX spelling,
attributes are keyword arguments:

    g = Builder("example")
    x = g.input("x", np.float32, [4, "N"])
    y = g.Softmax(x * 0.5, axis=-1)
    g.output(y, "y", [4, "N"])
    model = g.model()

Control flow takes Python callables that emit the body; values of enclosing
scopes are captured simply by using them.  `Value` overloads arithmetic and
comparison, and Python numbers become scalar constants of the other operand's
element type.  Nothing is folded or simplified: what is written is what ends up
in the model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18
IR_VERSION = 8

Shape = Sequence["int | str | None"]

_BOOL_OPS = frozenset(
    "Greater GreaterOrEqual Less LessOrEqual Equal And Or Xor Not IsNaN IsInf".split()
)
_INT64_OPS = frozenset(
    "Shape Size NonZero ArgMax ArgMin NonMaxSuppression SequenceLength".split()
)
_SEQUENCE_OPS = frozenset(
    "SequenceConstruct SequenceEmpty SequenceInsert SequenceErase SplitToSequence".split()
)
_ELEMENT_OPS = frozenset("SequenceAt ConcatFromSequence".split())
_SECOND_OPERAND_OPS = frozenset("Where".split())


def elem_type(dtype: Any) -> int:
    """The TensorProto.DataType of a numpy dtype (integers pass through)."""
    if isinstance(dtype, int):
        return dtype
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def _binary(op: str, swap: bool = False) -> Callable[[Value, Any], Value]:
    """The Python operator that emits `op`; `swap` for the reflected one."""

    def emit(self: Value, other: Any) -> Value:
        g = self.builder
        other = g.as_value(other, self.elem)
        return g.op(op, other, self) if swap else g.op(op, self, other)

    return emit


@dataclass(frozen=True, eq=False)
class Value:
    """One SSA value: a tensor, or a sequence of tensors, of a known element type."""

    builder: Builder
    name: str
    elem: int
    is_sequence: bool = False

    __add__, __radd__ = _binary("Add"), _binary("Add", swap=True)
    __sub__, __rsub__ = _binary("Sub"), _binary("Sub", swap=True)
    __mul__, __rmul__ = _binary("Mul"), _binary("Mul", swap=True)
    __truediv__, __rtruediv__ = _binary("Div"), _binary("Div", swap=True)
    __matmul__ = _binary("MatMul")
    __gt__, __ge__ = _binary("Greater"), _binary("GreaterOrEqual")
    __lt__, __le__ = _binary("Less"), _binary("LessOrEqual")
    __and__, __or__ = _binary("And"), _binary("Or")

    def __neg__(self) -> Value:
        return self.builder.op("Neg", self)

    def __invert__(self) -> Value:
        return self.builder.op("Not", self)

    def __bool__(self) -> bool:
        raise TypeError("a graph value has no truth value; use Builder.if_")


@dataclass
class _Scope:
    """A graph under construction: the main graph or one subgraph."""

    name: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    produced: set[str] = field(default_factory=set)
    consts: dict[tuple, Value] = field(default_factory=dict)


class Builder:
    """Builds one ONNX model; see the module comment."""

    def __init__(self, name: str, doc: str = "") -> None:
        self._doc = doc
        self._scopes = [_Scope(name)]
        self._names: dict[str, int] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._rename: dict[str, str] = {}

    # Names and leaves -----------------------------------------------------

    def unique(self, hint: str) -> str:
        """A name that no other value or node of this model has."""
        n = self._names.get(hint, 0)
        self._names[hint] = n + 1
        return f"{hint}_{n}" if n else hint

    def input(self, name: str, dtype: Any, shape: Shape) -> Value:
        """A tensor input of the model; strings in `shape` are symbolic dims."""
        value = Value(self, self._claim(name), elem_type(dtype))
        self._inputs.append(_value_info(value, shape))
        return value

    def sequence_input(self, name: str, dtype: Any, shape: Shape) -> Value:
        """A sequence-of-tensors input of the model; `shape` is that of an element."""
        value = Value(self, self._claim(name), elem_type(dtype), True)
        self._inputs.append(_value_info(value, shape))
        return value

    def param(self, name: str, array: np.ndarray) -> Value:
        """A weight: an initializer of the main graph, visible in every scope."""
        name = self._claim(name)
        self._initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return Value(self, name, elem_type(array.dtype))

    def const(self, data: Any, dtype: Any = np.int64) -> Value:
        """A Constant node in the current scope (one per scope and value)."""
        if isinstance(dtype, int):
            dtype = helper.tensor_dtype_to_np_dtype(dtype)
        array = np.asarray(data, dtype=dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        scope = self._scopes[-1]
        if key not in scope.consts:
            tensor = numpy_helper.from_array(array, "value")
            scope.consts[key] = self.op("Constant", value=tensor, _elem=elem_type(array.dtype))
        return scope.consts[key]

    def as_value(self, x: Any, elem: int) -> Value:
        """`x` itself when it is a Value, else a constant of element type `elem`."""
        return x if isinstance(x, Value) else self.const(x, elem)

    def _claim(self, name: str) -> str:
        if name in self._names:
            raise ValueError(f"name {name!r} is taken")
        self._names[name] = 1
        return name

    # Operators ------------------------------------------------------------

    def op(
        self,
        op_type: str,
        *inputs: Value | None,
        outputs: int = 1,
        _elem: int | None = None,
        **attrs: Any,
    ) -> Any:
        """Emit one node; returns its value, or a tuple when `outputs` > 1.

        None stands for an omitted optional input.  `_elem` overrides the
        element type of the results where the rules below do not give it.
        """
        elem, is_seq = self._result_type(op_type, inputs, attrs)
        elem = _elem if _elem is not None else elem
        if elem is None:
            raise ValueError(f"{op_type}: the result type is unknown, pass _elem")
        results = [
            Value(self, self.unique(f"{op_type.lower()}_out"), elem, is_seq)
            for _ in range(outputs)
        ]
        if op_type == "TopK":
            results = [results[0], Value(self, results[1].name, TensorProto.INT64)]
        self._emit(op_type, inputs, results, attrs)
        return results[0] if outputs == 1 else tuple(results)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name[:1].isupper() and onnx.defs.has(name):
            return functools.partial(self.op, name)
        raise AttributeError(name)

    def _emit(
        self,
        op_type: str,
        inputs: Iterable[Value | None],
        results: list[Value],
        attrs: dict[str, Any],
    ) -> None:
        scope = self._scopes[-1]
        names = []
        for v in inputs:
            if v is not None and not isinstance(v, Value):
                raise TypeError(f"{op_type}: input {v!r} is not a graph value")
            names.append("" if v is None else v.name)
        while names and not names[-1]:
            names.pop()
        scope.nodes.append(
            helper.make_node(
                op_type,
                names,
                [r.name for r in results],
                name=self.unique(op_type),
                **attrs,
            )
        )
        scope.produced.update(r.name for r in results)

    @staticmethod
    def _result_type(
        op_type: str, inputs: Sequence[Value | None], attrs: dict[str, Any]
    ) -> tuple[int | None, bool]:
        first = inputs[0] if inputs else None
        is_seq = op_type in _SEQUENCE_OPS
        if op_type == "Identity":
            is_seq = first.is_sequence
        if op_type in _BOOL_OPS:
            return TensorProto.BOOL, False
        if op_type in _INT64_OPS:
            return TensorProto.INT64, False
        if op_type in ("Cast", "SequenceEmpty"):
            key = "to" if op_type == "Cast" else "dtype"
            return attrs.get(key, TensorProto.FLOAT), is_seq
        if op_type == "ConstantOfShape":
            value = attrs.get("value")
            return (value.data_type if value is not None else TensorProto.FLOAT), False
        if op_type in _SECOND_OPERAND_OPS:
            return inputs[1].elem, False
        if op_type in _ELEMENT_OPS and not first.is_sequence:
            raise TypeError(f"{op_type}: {first.name} is not a sequence")
        return (first.elem if first is not None else None), is_seq

    # Small conveniences that stay one node --------------------------------

    def cast(self, x: Value, dtype: Any) -> Value:
        """Cast to a numpy dtype."""
        return self.op("Cast", x, to=elem_type(dtype))

    def full(self, shape: Value | Sequence[int], fill: Any, dtype: Any) -> Value:
        """ConstantOfShape with the given fill value."""
        value = numpy_helper.from_array(np.asarray([fill], dtype=dtype), "value")
        return self.op(
            "ConstantOfShape",
            self.as_value(shape, TensorProto.INT64),
            value=value,
        )

    def empty_sequence(self, dtype: Any) -> Value:
        """An empty sequence of tensors."""
        return self.op("SequenceEmpty", dtype=elem_type(dtype))

    # Control flow ---------------------------------------------------------

    def loop(
        self,
        body: Callable[..., Sequence[Value]],
        carried: Sequence[Value],
        trip: Value | int | None = None,
        cond: Value | None = None,
        scans: int = 0,
    ) -> Any:
        """A Loop; returns its results (one value, or a tuple).

        `body(i, *carried)` is called once to emit the body and returns the next
        carried values followed by `scans` scan values.  With a `cond` (a while
        loop) it returns the next condition first.  `i` is the int64 counter.
        Without one, the loop has the form exporters give a counted loop: the
        condition is a constant that the body hands on.
        """
        trip = self.as_value(trip, TensorProto.INT64) if trip is not None else None
        counted = cond is None
        cond = self.const(True, np.bool_) if counted else cond
        with _Sub(self, "loop_body") as sub:
            i = Value(self, self.unique("i"), TensorProto.INT64)
            keep = Value(self, self.unique("keep_going"), TensorProto.BOOL)
            args = [Value(self, self.unique("carried"), v.elem, v.is_sequence) for v in carried]
            results = list(body(i, *args))
            if counted:
                results.insert(0, keep)
            if len(results) != 1 + len(carried) + scans:
                raise ValueError(
                    f"Loop body returned {len(results)} values, "
                    f"expected {1 + len(carried) + scans}"
                )
            for old, new in zip(carried, results[1:]):
                if (old.elem, old.is_sequence) != (new.elem, new.is_sequence):
                    raise TypeError(f"Loop-carried {old.name} changes its type")
            graph = sub.finish([i, keep, *args], results, scalars=2)
        outs = [
            Value(self, self.unique("loop_out"), r.elem, r.is_sequence) for r in results[1:]
        ]
        self._emit("Loop", [trip, cond, *carried], outs, {"body": graph})
        return outs[0] if len(outs) == 1 else tuple(outs)

    def if_(
        self,
        cond: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]],
    ) -> Any:
        """An If; both callables emit a branch and return the same number of values."""
        graphs, types = [], []
        for name, branch in (("then_branch", then), ("else_branch", otherwise)):
            with _Sub(self, name) as sub:
                results = list(branch())
                graphs.append(sub.finish([], results))
                types.append([(r.elem, r.is_sequence) for r in results])
        if types[0] != types[1]:
            raise TypeError(f"the branches of an If return {types[0]} and {types[1]}")
        outs = [Value(self, self.unique("if_out"), r.elem, r.is_sequence) for r in results]
        self._emit("If", [cond], outs, {"then_branch": graphs[0], "else_branch": graphs[1]})
        return outs[0] if len(outs) == 1 else tuple(outs)

    def sequence_map(self, body: Callable[..., Sequence[Value]], *sequences: Value) -> Any:
        """A SequenceMap over parallel sequences (or tensors shared by all elements)."""
        with _Sub(self, "map_body") as sub:
            args = [Value(self, self.unique("element"), s.elem) for s in sequences]
            results = list(body(*args))
            graph = sub.finish(args, results)
        outs = [Value(self, self.unique("map_out"), r.elem, True) for r in results]
        self._emit("SequenceMap", list(sequences), outs, {"body": graph})
        return outs[0] if len(outs) == 1 else tuple(outs)

    # The finished model ---------------------------------------------------

    def output(self, value: Value, name: str, shape: Shape | None) -> None:
        """Make `value` an output of the model (`shape` of an element for sequences)."""
        main = self._scopes[0]
        if len(self._scopes) != 1:
            raise ValueError("output() inside a subgraph")
        if value.name not in main.produced or value.name in self._rename:
            value = self.op("Identity", value)
        self._rename[value.name] = self._claim(name)
        named = Value(self, name, value.elem, value.is_sequence)
        self._outputs.append(_value_info(named, shape))

    def model(self) -> onnx.ModelProto:
        """The checked model (structure, types and shapes)."""
        main = self._scopes[0]
        graph = helper.make_graph(
            main.nodes, main.name, self._inputs, self._outputs, self._initializers
        )
        _rename_values(graph, self._rename)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="tssa-models",
            doc_string=self._doc,
        )
        onnx.checker.check_model(model, full_check=True)
        return model


class _Sub:
    """Context manager that opens a subgraph scope on a builder."""

    def __init__(self, builder: Builder, name: str) -> None:
        self.builder = builder
        self.scope = _Scope(builder.unique(name))

    def __enter__(self) -> _Sub:
        self.builder._scopes.append(self.scope)
        return self

    def __exit__(self, *exc: object) -> None:
        self.builder._scopes.pop()

    def finish(
        self, inputs: list[Value], results: list[Value], scalars: int = 0
    ) -> onnx.GraphProto:
        """The GraphProto; the first `scalars` inputs are declared as scalars.

        Results not made here, or returned twice, get an Identity.
        """
        g, seen = self.builder, set()
        for k, v in enumerate(results):
            if v.name not in self.scope.produced or v.name in seen:
                results[k] = g.op("Identity", v)
            seen.add(results[k].name)
        return helper.make_graph(
            self.scope.nodes,
            self.scope.name,
            [_value_info(v, [] if k < scalars else None) for k, v in enumerate(inputs)],
            [_value_info(v, None) for v in results],
        )


def _value_info(v: Value, shape: Shape | None) -> onnx.ValueInfoProto:
    """Type of a graph input or output (None leaves the shape open)."""
    make = (
        helper.make_tensor_sequence_value_info
        if v.is_sequence
        else helper.make_tensor_value_info
    )
    return make(v.name, v.elem, None if shape is None else list(shape))


def _rename_values(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    """Rename values in all nodes of a graph and its subgraphs (names are unique)."""
    for node in graph.node:
        for field_ in (node.input, node.output):
            for k, old in enumerate(field_):
                if old in names:
                    field_[k] = names[old]
        for attr in node.attribute:
            if attr.type == onnx.AttributeProto.GRAPH:
                _rename_values(attr.g, names)


def count_nodes(graph: onnx.GraphProto) -> int:
    """Number of nodes including those of subgraphs."""
    total = len(graph.node)
    for node in graph.node:
        for attr in node.attribute:
            if attr.type == onnx.AttributeProto.GRAPH:
                total += count_nodes(attr.g)
    return total
