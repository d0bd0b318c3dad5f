# SPDX-License-Identifier: Apache-2.0
"""What the generated programs consist of, and what of that must not get lost.

LEAST says in what share of the programs each thing has to be, which is about half of what it is
in: a generator that loses a construct fails the test, chance does not.
"""

from __future__ import annotations

from collections import Counter

import onnx

from .judge import Verdict

GRAPH, TENSOR_TYPES = onnx.AttributeProto.GRAPH, onnx.TensorProto.DataType


def features(model: onnx.ModelProto) -> Counter:
    """How often each operator and construct is there."""
    found: Counter[str] = Counter()
    walk(model.graph, 0, set(), found)
    found[f"opset {model.opset_import[0].version}"] += 1
    for info in model.graph.input:
        if not info.type.HasField("tensor_type"):
            optional = info.type.HasField("optional_type")
            found[f"{'optional' if optional else 'sequence'} as input"] += 1
            continue
        tensor = info.type.tensor_type
        found[TENSOR_TYPES.Name(tensor.elem_type).lower()] += 1
        found["symbolic dims"] += any(d.dim_param for d in tensor.shape.dim)
        found["zero-size dims"] += any(
            d.HasField("dim_value") and not d.dim_value for d in tensor.shape.dim
        )
    return +found


def walk(graph: onnx.GraphProto, depth: int, outside: set[str], found: Counter) -> None:
    names = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    found["shadowing"] += bool(depth and names & outside)
    visible = outside | names
    for node in graph.node:
        found[node.op_type] += 1
        for attribute in node.attribute:
            if attribute.name.endswith("_directions") or attribute.name == "scan_output_axes":
                found[attribute.name] += 1
        if any(a.name == "reduction" for a in node.attribute):
            found["scatter with reduction"] += 1
        for attribute in node.attribute:
            if attribute.type == GRAPH:
                found[f"blocks {depth + 1} deep"] += 1
                walk(attribute.g, depth + 1, visible, found)
        visible |= set(node.output)
    made = {name for node in graph.node for name in node.output}
    inside = {name for node in graph.node for name in node.input}
    captured = inside & outside - names - made
    found["captures"] += bool(captured)
    found["captures over levels"] += bool(depth > 1 and captured)
    found["parameters returned"] += bool(
        depth and {o.name for o in graph.output} & {i.name for i in graph.input}
    )


class Coverage:
    def __init__(self) -> None:
        self.programs = self.refused = self.rewritten = self.unstable = 0
        self.features: Counter[str] = Counter()
        self.passes: Counter[str] = Counter()

    def add(self, verdict: Verdict, found: Counter | None) -> None:
        self.programs += 1
        self.refused += bool(verdict.refused)
        self.unstable += bool(verdict.unstable)
        if verdict.refused or found is None:
            return
        self.rewritten += bool(verdict.passes)
        self.features.update(found.keys())
        self.passes.update(verdict.passes.keys())

    def print(self) -> None:
        accepted = max(1, self.programs - self.refused)
        print(f"{self.programs} programs, {accepted} of them run by ONNX Runtime")
        print(
            f"{self.rewritten} changed by a pass; {self.unstable} not compared with ONNX"
            " Runtime's optimizations, which change the original's results"
        )
        for title, counter in (("contain", self.features), ("changed by", self.passes)):
            rows = [f"{name} {100 * n / accepted:.1f}%" for name, n in counter.most_common()]
            print(f"{title}: " + ", ".join(rows))

    def lost(self) -> list[str]:
        """What is less than it has to be."""
        accepted = self.programs - self.refused
        if accepted < 0.85 * self.programs:
            return [f"ONNX Runtime runs {accepted} of {self.programs} programs alone"]
        if self.programs < 500:
            return []
        found = self.features + self.passes
        return [
            f"{name}: in {found[name]} of {accepted} programs, not in {share:.1%}"
            for name, share in LEAST.items()
            if found[name] < share * accepted
        ]


LEAST = {
    # constructs
    "Loop": 0.8,
    "If": 0.6,
    "Scan": 0.2,
    "SequenceMap": 0.1,
    "blocks 2 deep": 0.5,
    "blocks 3 deep": 0.3,
    "captures over levels": 0.5,
    "shadowing": 0.3,
    "parameters returned": 0.15,
    "ScatterND": 0.4,
    "ScatterElements": 0.3,
    "scatter with reduction": 0.04,
    "SequenceInsert": 0.3,
    "ConcatFromSequence": 0.3,
    "SplitToSequence": 0.2,
    "Optional": 0.2,
    "Where": 0.4,
    "Concat": 0.5,
    "NonZero": 0.05,
    **{name: 0.003 for name in ("RNN", "GRU", "LSTM")},
    # types of inputs, and their shapes
    **{name: 0.07 for name in ("float", "double", "float16")},
    **{f"{sign}int{bits}": 0.07 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": 0.5,
    "sequence as input": 0.1,
    "optional as input": 0.05,
    "scan_input_directions": 0.08,
    "scan_output_directions": 0.025,
    "scan_output_axes": 0.012,
    "symbolic dims": 0.15,
    "zero-size dims": 0.015,
    # opsets
    **{f"opset {number}": 0.02 for number in range(11, 27)},
    # passes
    "recover": 0.3,
    "lower_rules": 0.3,
    "parallelize": 0.15,
    "unroll": 0.3,
    "known_branches": 0.4,
    "select_branches": 0.15,
    "loop_conditions": 0.3,
    "carried_values": 0.5,
    "forward_assigns": 0.1,
    "induction": 0.025,
    "scalar_replacement": 0.015,
    "stack_sequences": 0.01,
    "sequences": 0.3,
    "hoist": 0.4,
    "scan_outputs": 0.05,
    "narrow_selection": 0.01,
    "distribute": 0.005,
    "fold_lookups": 0.008,
    "guard_loops": 0.02,
    "branch_writes": 0.001,
    "chosen_terms": 0.001,
    "outer_shapes": 0.01,
}
