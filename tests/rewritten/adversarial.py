#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes models that rewriters trip over: FOLDER/NAME/model.onnx, without data.

    adversarial.py FOLDER

Each is small and says in its name what is odd about it.  `check.py` runs them before and
after tssa-opt.
"""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
from onnx import TensorProto, helper, parser

HEADER = '<ir_version: 9, opset_import: ["" : 18, "local" : 1, "other" : 1]>\n'

# In the text form of onnx.parser: the graph, and functions behind it.
TEXTS: dict[str, str] = {}


def loop(name: str, trips: str, condition: str, body: str, before: str = "") -> None:
    """A loop that carries v, and its last value as the output."""
    TEXTS[name] = f"""g (float[3, 4] x, int64 n) => (float[r, c] y) {{
        trips = {trips}
        start = {condition}
        {before}
        y = Loop (trips, start, x) <body = b (int64 i, bool c, float[r, k] v)
                => (bool d, float[r, k] w) {{
            {body}
        }}>
    }}"""


NO_CHANGE = "d = Identity (c)"
LARGEST = 2**63 - 1

loop(
    "zero_trips",
    "Constant <value_int = 0> ()",
    "Constant <value = bool {1}> ()",
    f"{NO_CHANGE} w = Relu (v)",
)
loop(
    "negative_trips",
    "Constant <value_int = -3> ()",
    "Constant <value = bool {1}> ()",
    f"{NO_CHANGE} w = Neg (v)",
)
loop(
    "false_at_first",
    "Identity (n)",
    "Constant <value = bool {0}> ()",
    f"{NO_CHANGE} w = Neg (v)",
)
loop(
    "unknown_trips",
    "Identity (n)",
    "Constant <value = bool {1}> ()",
    f"{NO_CHANGE} w = Neg (v)",
)
loop(
    "largest_trips",
    f"Constant <value_int = {LARGEST}> ()",
    "Constant <value = bool {1}> ()",
    "five = Constant <value_int = 5> () d = Less (i, five) w = Add (v, v)",
)
loop(
    "condition_never_changes",
    "Constant <value_int = 7> ()",
    "Constant <value = bool {1}> ()",
    "t = Constant <value_int = 1> () d = Cast <to = 9> (t) w = Sub (v, x)",
)
loop(
    "condition_is_swapped",
    "Constant <value_int = 9> ()",
    "Constant <value = bool {1}> ()",
    "d = Not (c) w = Add (v, v)",
)
loop(
    "shape_changes",
    "Constant <value_int = 3> ()",
    "Constant <value = bool {1}> ()",
    f"{NO_CHANGE} w = Concat <axis = 0> (v, v)",
)
loop(
    "shape_changes_once",
    "Identity (n)",
    "Constant <value = bool {1}> ()",
    f"""{NO_CHANGE} zero = Constant <value_ints = [0]> () one = Constant <value_ints = [1]> ()
    w = Slice (v, zero, one, zero)""",
)
loop(
    "counter_is_read_backwards",
    "Constant <value_int = 3> ()",
    "Constant <value = bool {1}> ()",
    f"""{NO_CHANGE} k = Neg (i) one = Constant <value_int = 1> () j = Sub (k, one)
    axis = Constant <value_ints = [0]> () row = Gather <axis = 0> (v, j) twice = Add (row, row)
    rows = Unsqueeze (twice, axis) where1 = Unsqueeze (j, axis) where = Unsqueeze (where1, axis)
    w = ScatterND (v, where, rows)""",
)
loop(
    "row_before_is_read",
    "Constant <value_int = 2> ()",
    "Constant <value = bool {1}> ()",
    f"""{NO_CHANGE} one = Constant <value_int = 1> () j = Add (i, one)
    axis = Constant <value_ints = [0]> () row = Gather <axis = 0> (v, i) twice = Add (row, row)
    rows = Unsqueeze (twice, axis) where1 = Unsqueeze (j, axis) where = Unsqueeze (where1, axis)
    w = ScatterND (v, where, rows)""",
)
loop(
    "same_row_every_time",
    "Constant <value_int = 3> ()",
    "Constant <value = bool {1}> ()",
    f"""{NO_CHANGE} where = Constant <value = int64[1, 1] {{1}}> ()
    zero = Constant <value_ints = [0]> () row = Gather <axis = 0> (v, zero)
    more = Add (row, row) w = ScatterND (v, where, more)""",
)
loop(
    "rows_meet_by_modulo",
    "Constant <value_int = 5> ()",
    "Constant <value = bool {1}> ()",
    f"""{NO_CHANGE} two = Constant <value_int = 2> () j = Mod (i, two)
    axis = Constant <value_ints = [0]> () row = Gather <axis = 0> (v, j) twice = Add (row, row)
    rows = Unsqueeze (twice, axis) where1 = Unsqueeze (j, axis) where = Unsqueeze (where1, axis)
    w = ScatterND (v, where, rows)""",
)

TEXTS[
    "captured_through_three_levels"
] = """g (float[3, 4] x, int64 n, bool p) => (float[3, 4] y) {
    yes = Constant <value = bool {1}> ()
    deep = Neg (x)
    y = Loop (n, yes, x) <body = a (int64 i, bool c, float[3, 4] v) => (bool d, float[3, 4] w) {
        d = Identity (c)
        twice = Add (v, deep)
        w = If (p) <then_branch = t () => (float[3, 4] t1) {
            t1 = Loop (n, yes, v) <body = b (int64 j, bool e, float[3, 4] u)
                    => (bool f, float[3, 4] s) {
                f = Identity (e)
                both = Add (twice, deep)
                s = Max (u, both)
            }>
        }, else_branch = f () => (float[3, 4] f1) { f1 = Sub (twice, deep) }>
    }>
}"""
TEXTS["branches_of_different_rank"] = """g (float[3, 4] x, bool p) => (float y) {
    z = If (p) <then_branch = t () => (float[3, 4] t1) { t1 = Identity (x) },
                else_branch = f () => (float[12] f1) {
        shape = Constant <value_ints = [-1]> ()
        f1 = Reshape (x, shape)
    }>
    axes = Constant <value_ints = [0]> ()
    y = ReduceSum <keepdims = 0> (z)
}"""
TEXTS["scatters_overlap"] = """g (float[3, 4] x) => (float[3, 4] y) {
    first = Constant <value = int64[2, 1] {0, 1}> ()
    second = Constant <value = int64[2, 1] {1, 2}> ()
    zero = Constant <value_ints = [0]> ()
    two = Constant <value_ints = [2]> ()
    rows = Slice (x, zero, two, zero)
    twice = Add (rows, rows)
    a = ScatterND (x, first, twice)
    more = Slice (a, zero, two, zero)
    y = ScatterND (a, second, more)
}"""
TEXTS["indices_are_there_twice"] = """g (float[3, 4] x) => (float[3, 4] y, float[3, 4] z) {
    where = Constant <value = int64[3, 1] {1, 1, 1}> ()
    row = Constant <value = float[3, 4] {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}> ()
    y = ScatterND (x, where, row)
    z = ScatterND <reduction = "add"> (x, where, row)
}"""
TEXTS["indices_are_negative"] = """g (float[3, 4] x) => (float[3, 4] y, float[3, 4] z) {
    where = Constant <value = int64[1, 1] {-1}> ()
    row = Constant <value = float[1, 4] {1, 2, 3, 4}> ()
    y = ScatterND (x, where, row)
    column = Constant <value = int64[3, 1] {-2, -2, -2}> ()
    values = Constant <value = float[3, 1] {7, 8, 9}> ()
    z = ScatterElements <axis = -1> (x, column, values)
}"""
TEXTS["function_in_a_loop"] = """g (float[3, 4] x, int64 n) => (float[3, 4] y) {
    yes = Constant <value = bool {1}> ()
    y = Loop (n, yes, x) <body = a (int64 i, bool c, float[3, 4] v) => (bool d, float[3, 4] w) {
        d = Identity (c)
        t = local.twice (v)
        w = local.twice (t)
    }>
}
<domain: "local", opset_import: ["" : 18]>
twice (a) => (b) { t = Add (a, a) b = Tanh (t) }"""
TEXTS["functions_of_one_name"] = """g (float[3, 4] x, bool p) => (float[3, 4] y) {
    a = local.f (x)
    b = other.f (a)
    y = If (p) <then_branch = t () => (float[3, 4] t1) { t1 = local.f (b) },
                else_branch = e () => (float[3, 4] e1) { c = other.f (x) e1 = Sub (c, a) }>
}
<domain: "local", opset_import: ["" : 18]>
f (a) => (b) { b = Neg (a) }
<domain: "other", opset_import: ["" : 18]>
f (a) => (b) { b = Exp (a) }"""
TEXTS["functions_call_functions"] = """g (float[3, 4] x, int64 n) => (float[3, 4] y) {
    yes = Constant <value = bool {1}> ()
    steep = local.outer <slope = 0.5> (x, x)
    flat = local.outer (steep, x)
    y = Loop (n, yes, flat) <body = a (int64 i, bool c, float[3, 4] v)
            => (bool d, float[3, 4] w) {
        d = Identity (c)
        w = local.outer (v, steep)
    }>
}
<domain: "local", opset_import: ["" : 18, "local" : 1, "other" : 1]>
outer <slope: float = 0.25> (a, b) => (c) {
    t = other.inner <limit: float = @slope> (a)
    u = Sub (t, b)
    c = local.leaf (u)
}
<domain: "other", opset_import: ["" : 18]>
inner <limit> (a) => (b) { t = LeakyRelu <alpha: float = @limit> (a) b = Tanh (t) }
<domain: "local", opset_import: ["" : 18]>
leaf (a) => (b) {
    one = Constant <value_float = 1.0> ()
    zero = Constant <value_float = 0.0> ()
    sum = ReduceSum <keepdims = 0> (a)
    p = Less (sum, zero)
    b = If (p) <then_branch = t () => (t1) { t1 = Add (a, one) },
                else_branch = e () => (e1) { e1 = Mul (a, one) }>
}"""
TEXTS["sequences_grow_and_shrink"] = """g (float[3, 4] x, int64 n) => (float y) {
    yes = Constant <value = bool {1}> ()
    zero = Constant <value_int = 0> ()
    last = Constant <value_int = -1> ()
    s0 = SequenceConstruct (x, x)
    s1 = SequenceInsert (s0, x, zero)
    s2 = SequenceErase (s1, last)
    e = SequenceAt (s2, last)
    k = SequenceLength (s2)
    kf = Cast <to = 1> (k)
    sum = ReduceSum <keepdims = 0> (e)
    y = Mul (sum, kf)
}"""
TEXTS["results_nobody_wants"] = """g (float[3, 4] x, int64 n) => (float[3, 4] y) {
    yes = Constant <value = bool {1}> ()
    unused, y, s = Loop (n, yes, x, x) <body = a (int64 i, bool c, float[3, 4] u, float[3, 4] v)
            => (bool d, float[3, 4] w, float[3, 4] z, float[3, 4] o) {
        d = Identity (c)
        w = Exp (u)
        z = Neg (v)
        o = Identity (v)
    }>
}"""


def value(name: str, dtype: int, dims: list | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def model(graph: onnx.GraphProto) -> onnx.ModelProto:
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)])


def straight_line(count: int) -> onnx.ModelProto:
    nodes = [
        helper.make_node(("Add", "Sub", "Max")[i % 3], [f"v{i}", "x"], [f"v{i + 1}"])
        for i in range(count)
    ]
    nodes.insert(0, helper.make_node("Neg", ["x"], ["v0"]))
    return model(
        helper.make_graph(
            nodes, "line", [value("x", TensorProto.FLOAT, [4])],
            [value(f"v{count}", TensorProto.FLOAT, [4])],
        )
    )  # fmt: skip


def nested(depth: int) -> onnx.ModelProto:
    """Branches in branches; every level captures x and a value of the level above."""
    inner = helper.make_graph(
        [helper.make_node("Neg", [f"t{depth - 1}"], ["leaf"])],
        "leaf", [], [value("leaf", TensorProto.FLOAT, [4])],
    )  # fmt: skip
    for level in reversed(range(depth)):
        above = f"t{level - 1}" if level else "x"
        other = helper.make_graph(
            [helper.make_node("Add", [above, "x"], [f"o{level}"])],
            "other", [], [value(f"o{level}", TensorProto.FLOAT, [4])],
        )  # fmt: skip
        inner = helper.make_graph(
            [
                helper.make_node("Sub", [above, "x"], [f"t{level}"]),
                helper.make_node(
                    "If", ["p"], [f"r{level}"], then_branch=inner, else_branch=other
                ),
            ],
            f"level{level}", [], [value(f"r{level}", TensorProto.FLOAT, [4])],
        )  # fmt: skip
    graph = onnx.GraphProto()
    graph.CopyFrom(inner)
    graph.input.extend([value("x", TensorProto.FLOAT, [4]), value("p", TensorProto.BOOL, [])])
    return model(graph)


def same_names_side_by_side() -> onnx.ModelProto:
    """Two branches, and two loops, whose values have the same names."""

    def branch(op: str) -> onnx.GraphProto:
        nodes = [helper.make_node(op, ["x"], ["t"]), helper.make_node("Add", ["t", "x"], ["r"])]
        return helper.make_graph(nodes, "b", [], [value("r", TensorProto.FLOAT, [4])])

    def body(op: str) -> onnx.GraphProto:
        nodes = [
            helper.make_node("Identity", ["c"], ["d"]),
            helper.make_node(op, ["v", "x"], ["w"]),
        ]
        inputs = [
            value("i", TensorProto.INT64, []),
            value("c", TensorProto.BOOL, []),
            value("v", TensorProto.FLOAT, [4]),
        ]
        outputs = [value("d", TensorProto.BOOL, []), value("w", TensorProto.FLOAT, [4])]
        return helper.make_graph(nodes, "l", inputs, outputs)

    nodes = [
        helper.make_node(
            "If", ["p"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs")
        ),
        helper.make_node("Loop", ["n", "", "y"], ["z0"], body=body("Add")),
        helper.make_node("Loop", ["n", "", "z0"], ["z"], body=body("Max")),
    ]
    inputs = [
        value("x", TensorProto.FLOAT, [4]),
        value("p", TensorProto.BOOL, []),
        value("n", TensorProto.INT64, []),
    ]
    return model(helper.make_graph(nodes, "g", inputs, [value("z", TensorProto.FLOAT, [4])]))


def main() -> int:
    folder = Path(sys.argv[1])
    models = {name: parser.parse_model(HEADER + text) for name, text in TEXTS.items()}
    models["straight_line_of_5000"] = straight_line(5000)
    models["nested_20_deep"] = nested(20)
    models["same_names_side_by_side"] = same_names_side_by_side()
    for name, made in models.items():
        target = folder / name / "model.onnx"
        target.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(made, target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
