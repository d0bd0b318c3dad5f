# SPDX-License-Identifier: Apache-2.0
"""A model for each row of onnx/hazards.def: what the optimizer makes of it is such a hazard.

Each function gives a model that ONNX Runtime computes as the standard says, and inputs for it.
"""

from collections.abc import Callable, Sequence

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

Example = tuple[ModelProto, dict[str, np.ndarray]]

node = helper.make_node


def value(name: str, dtype: type, shape: Sequence[int | str | None] | None) -> ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, shape)


def graph(
    name: str,
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
) -> GraphProto:
    return helper.make_graph(nodes, name, inputs, outputs)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
) -> ModelProto:
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(
        graph("g", nodes, inputs, outputs), opset_imports=opsets, ir_version=8
    )


def number(name: str, content: int) -> NodeProto:
    return node("Constant", [], [name], value_int=content)


def loop_counter() -> Example:
    """A chain that must stay a Loop, and beside it the iteration number."""
    body = graph(
        "body",
        [
            node("Identity", ["c"], ["more"]),
            node("Softmax", ["s"], ["next"]),
            node("Identity", ["i"], ["k"]),
        ],
        [value("i", np.int64, []), value("c", np.bool_, []), value("s", np.float32, [3])],
        [value("more", np.bool_, []), value("next", np.float32, [3]), value("k", np.int64, [])],
    )
    return model(
        [node("Loop", ["m", "", "x"], ["y", "numbers"], body=body)],
        [value("x", np.float32, [3]), value("m", np.int64, [])],
        [value("y", np.float32, [3]), value("numbers", np.int64, ["M"])],
    ), {"x": np.float32([1, 2, 3]), "m": np.int64(4)}


def scan_parameter() -> Example:
    body = graph(
        "body",
        [node("Identity", ["e"], ["next"]), node("Identity", ["s"], ["before"])],
        [value("s", np.float32, [3]), value("e", np.float32, [3])],
        [value("next", np.float32, [3]), value("before", np.float32, [3])],
    )
    return model(
        [node("Scan", ["w", "x"], ["y", "z"], body=body, num_scan_inputs=1)],
        [value("w", np.float32, [3]), value("x", np.float32, [4, 3])],
        [value("y", np.float32, [3]), value("z", np.float32, [4, 3])],
    ), {"w": np.float32([7, 8, 9]), "x": np.arange(12, dtype=np.float32).reshape(4, 3)}


def sequence_state() -> Example:
    """Two sequences that change places, and are read once more behind the Loop."""
    kind = helper.make_sequence_type_proto(
        helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    )
    p, q, r, t = (helper.make_value_info(name, kind) for name in "pqrt")
    body = graph(
        "body",
        [
            node("Identity", ["c"], ["more"]),
            node("Identity", ["q"], ["r"]),
            node("Identity", ["p"], ["t"]),
        ],
        [value("i", np.int64, []), value("c", np.bool_, []), p, q],
        [value("more", np.bool_, []), r, t],
    )
    sizes: Sequence[str] = ["N"]
    return model(
        [
            node("SplitToSequence", ["x", "parts"], ["a"]),
            node("SplitToSequence", ["x", "others"], ["b"]),
            node("Loop", ["m", "", "a", "b"], ["d", "e"], body=body),
            node("SequenceAt", ["d", "zero"], ["y"]),
            node("Size", ["y"], ["at"]),
            node("SequenceAt", ["a", "at"], ["z"]),
            node("SequenceAt", ["e", "at"], ["w"]),
        ],
        [
            value("x", np.float32, sizes),
            value("parts", np.int64, ["K"]),
            value("others", np.int64, ["L"]),
            value("m", np.int64, []),
            value("zero", np.int64, []),
        ],
        [value(name, np.float32, ["P"]) for name in "yzw"],
    ), {
        "x": np.arange(5, dtype=np.float32),
        "parts": np.int64([2, 3]),
        "others": np.int64([1, 1, 3]),
        "m": np.int64(3),
        "zero": np.int64(0),
    }


def branches(then_nodes: Sequence[NodeProto], results: Sequence[str]) -> Example:
    """An If that must stay one, since its work is not known."""
    rows: Sequence[str] = ["N"]
    then = graph("then", then_nodes, [], [value(name, np.float32, rows) for name in results])
    other = graph(
        "else",
        [node(("Exp", "Sqrt")[k], ["x"], [f"e{k}"]) for k in range(len(results))],
        [],
        [value(f"e{k}", np.float32, rows) for k in range(len(results))],
    )
    names = [f"y{k}" for k in range(len(results))]
    return model(
        [node("If", ["b"], names, then_branch=then, else_branch=other)],
        [value("b", np.bool_, []), value("x", np.float32, rows)],
        [value(name, np.float32, rows) for name in names],
    ), {"b": np.bool_(True), "x": np.float32([1, 2, 3])}


def outer_result() -> Example:
    return branches([node("Identity", ["x"], ["p"])], ["p"])


def repeated_result() -> Example:
    return branches([node("Neg", ["x"], ["p"]), node("Identity", ["p"], ["q"])], ["p", "q"])


def stacked_shape() -> Example:
    """The shape of what is stacked stands at a node that goes."""
    then = graph(
        "then",
        [node("Constant", [], ["s1"], value_ints=[1]), node("Reshape", ["w", "s1"], ["a"])],
        [],
        [value("a", np.float32, ["K"])],
    )
    other = graph(
        "else",
        [node("Constant", [], ["s2"], value_ints=[1, 1]), node("Reshape", ["w", "s2"], ["b"])],
        [],
        [value("b", np.float32, ["K", "L"])],
    )
    body = graph(
        "body",
        [
            node("Add", ["s", "e"], ["next"]),
            node("Add", ["u", "e"], ["v"]),
            node("Squeeze", ["v"], ["q"]),
            node("Identity", ["q"], ["o"]),
        ],
        [value("s", np.float32, []), value("e", np.float32, [])],
        [value("next", np.float32, []), value("o", np.float32, [])],
    )
    return model(
        [
            node("If", ["c"], ["u"], then_branch=then, else_branch=other),
            node("Scan", ["w", "x"], ["y", "z"], body=body, num_scan_inputs=1),
        ],
        [value("x", np.float32, [4]), value("w", np.float32, []), value("c", np.bool_, [])],
        [value("y", np.float32, []), value("z", np.float32, [4])],
    ), {"x": np.float32([1, 2, 3, 4]), "w": np.float32(5), "c": np.bool_(True)}


def reduction(operator: str, rows: Sequence[int]) -> Example:
    """Of all rows at once, and of rows that nobody has counted, in blocks."""

    def loop(rows: str, result: str) -> NodeProto:
        body = graph(
            "body",
            [
                node("Identity", ["c"], ["more"]),
                node("Gather", [rows, "i"], ["e"]),
                node(operator, ["s", "e"], ["next"]),
            ],
            [value("i", np.int64, []), value("c", np.bool_, []), value("s", np.int64, [])],
            [value("more", np.bool_, []), value("next", np.int64, [])],
        )
        return node("Loop", ["m", "", "a"], [result], body=body)

    return model(
        [loop("x", "y"), loop("z", "w")],
        [
            value("x", np.int64, [3]),
            value("z", np.int64, ["N"]),
            value("a", np.int64, []),
            value("m", np.int64, []),
        ],
        [value("y", np.int64, []), value("w", np.int64, [])],
    ), {"x": np.int64(rows), "z": np.int64(rows), "a": np.int64(1), "m": np.int64(3)}


def integer_sum() -> Example:
    return reduction("Add", [2**53, 2**62, 2**62 + 5])


def integer_product() -> Example:
    return reduction("Mul", [3, 2**40 + 1, 2**40 + 3])


LARGE = [2**31, -(2**31) - 1, 2**32, -(2**32), 2**62, -(2**62), 2**31 - 1, 2**40 + 3]


def integer_extreme() -> Example:
    """Of each number, and one after the other."""
    operators = {"Max": ["e", "z"], "Min": ["e", "z"], "Clip": ["e", "low", "high"]}
    operators |= {"Sign": ["e"], "Relu": ["e"]}
    body = graph(
        "body",
        [
            node("Identity", ["c"], ["more"]),
            node("Gather", ["x", "i"], ["e"]),
            *(node(op, inputs, [f"row_{op}"]) for op, inputs in operators.items()),
        ],
        [value("i", np.int64, []), value("c", np.bool_, [])],
        [
            value("more", np.bool_, []),
            *(value(f"row_{op}", np.int64, []) for op in operators),
        ],
    )
    return model(
        [
            number("z", 0),
            number("low", -5),
            number("high", 2**33),
            number("m", len(LARGE)),
            node("Loop", ["m", ""], list(operators), body=body),
        ],
        [value("x", np.int64, [len(LARGE)])],
        [value(op, np.int64, [len(LARGE)]) for op in operators],
    ), {"x": np.int64(LARGE)}


def integer_reduced_extreme() -> Example:
    x = np.int64([0, 0, 2**32 - 1, 0, 0, 0, 0, 0])

    def loop(operator: str) -> NodeProto:
        body = graph(
            operator,
            [
                node("Identity", ["c"], ["more"]),
                node("Gather", ["x", "i"], ["e"]),
                node(operator, ["s", "e"], ["next"]),
            ],
            [value("i", np.int64, []), value("c", np.bool_, []), value("s", np.int64, [])],
            [value("more", np.bool_, []), value("next", np.int64, [])],
        )
        return node("Loop", ["m", "", "a"], [f"y_{operator}"], body=body)

    return model(
        [loop("Max"), loop("Min")],
        [
            value("x", np.int64, [len(x)]),
            value("a", np.int64, []),
            value("m", np.int64, []),
        ],
        [value("y_Max", np.int64, []), value("y_Min", np.int64, [])],
    ), {"x": x, "a": np.int64(1), "m": np.int64(len(x))}


def where_zero_sign() -> Example:
    """Both operands may hold -0.0, the first of them alone, and the second of a condition that
    is a Not, which exchanges them."""

    def choice(result: str, first: str, second: str, condition: str = "b") -> NodeProto:
        then = [node(first, ["x"], [f"{result}_then"])]
        other = [node(second, ["n"], [f"{result}_else"])]
        return node(
            "If",
            [condition],
            [result],
            then_branch=graph("then", then, [], [value(f"{result}_then", np.float32, [2])]),
            else_branch=graph("else", other, [], [value(f"{result}_else", np.float32, [2])]),
        )

    return model(
        [
            node("Neg", ["x"], ["n"]),
            node("Not", ["b"], ["not_b"]),
            choice("y", "Identity", "Identity"),
            choice("z", "Identity", "Abs"),
            choice("w", "Abs", "Identity", "not_b"),
        ],
        [value("x", np.float32, [2]), value("b", np.bool_, [])],
        [value(result, np.float32, [2]) for result in "yzw"],
    ), {"x": np.float32([-0.0, 0.0]), "b": np.bool_(True)}


def expand_to_nothing() -> Example:
    """The first step of a list that grows: what is reordered has nothing in it."""
    return model(
        [
            node("Constant", [], ["one"], value_ints=[1]),
            node("Constant", [], ["zero"], value_ints=[0]),
            node("Slice", ["x", "zero", "zero", "one"], ["none"]),
            node("Shape", ["none"], ["sizes"]),
            node("Gather", ["sizes", "one"], ["size"]),
            node("Concat", ["one", "size"], ["shape"], axis=0),
            node("Abs", ["order"], ["kept"]),
            node("Expand", ["kept", "shape"], ["places"]),
            node("GatherElements", ["none", "places"], ["moved"], axis=0),
            node("Concat", ["moved", "x"], ["y"], axis=1),
        ],
        [value("x", np.float32, ["N", 1]), value("order", np.int64, ["N", 1])],
        [value("y", np.float32, ["N", 1])],
    ), {"x": np.float32([[1], [2]]), "order": np.int64([[1], [0]])}


def gather_elements() -> Example:
    """Numbers of a list, by a list of places."""
    body = graph(
        "body",
        [
            node("Identity", ["c"], ["more"]),
            node("Gather", ["places", "i"], ["place"]),
            node("Gather", ["x", "place"], ["e"]),
        ],
        [value("i", np.int64, []), value("c", np.bool_, [])],
        [value("more", np.bool_, []), value("e", np.float32, [])],
    )
    count = 100_000
    return model(
        [
            node("Shape", ["places"], ["s"]),
            node("Squeeze", ["s"], ["m"]),
            node("Loop", ["m", ""], ["y"], body=body),
        ],
        [value("x", np.float32, ["K"]), value("places", np.int64, ["M"])],
        [value("y", np.float32, ["M"])],
    ), {
        "x": np.arange(count, dtype=np.float32),
        "places": np.arange(count) * 7919 % count - count // 2,
    }


def count() -> Example:
    """How many numbers of a list are positive."""
    body = graph(
        "body",
        [
            node("Identity", ["c"], ["more"]),
            node("Gather", ["x", "i"], ["e"]),
            node("Greater", ["e", "zero"], ["positive"]),
            node("Cast", ["positive"], ["one"], to=TensorProto.INT64),
            node("Add", ["s", "one"], ["next"]),
        ],
        [value("i", np.int64, []), value("c", np.bool_, []), value("s", np.int64, [])],
        [value("more", np.bool_, []), value("next", np.int64, [])],
    )
    return model(
        [
            number("none", 0),
            node("Constant", [], ["zero"], value_float=0.0),
            node("Shape", ["x"], ["shape"]),
            node("Squeeze", ["shape"], ["m"]),
            node("Loop", ["m", "", "none"], ["y"], body=body),
        ],
        [value("x", np.float32, ["M"])],
        [value("y", np.int64, [])],
    ), {"x": np.sin(np.arange(100_000, dtype=np.float32))}


# What takes too long: the operators of the file with the way around, and without.
SLOW = {"gather_elements": ("GatherElements", "Gather"), "count": ("CumSum", "ReduceSum")}

MODELS: dict[str, Callable[[], Example]] = {
    f.__name__: f
    for f in (
        loop_counter,
        scan_parameter,
        outer_result,
        repeated_result,
        sequence_state,
        stacked_shape,
        integer_sum,
        integer_product,
        integer_extreme,
        integer_reduced_extreme,
        where_zero_sign,
        expand_to_nothing,
        gather_elements,
        count,
    )
}
