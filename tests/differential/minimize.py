# SPDX-License-Identifier: Apache-2.0
"""Delta debugging of a program that disagrees.

Smaller programs are proposed one after the other; whoever still shows the finding is the next
to be made smaller.  A proposal need not be valid: one that ONNX Runtime does not run shows
nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from time import monotonic

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .generate import Case
from .judge import Finding
from .text import NAMES, type_text
from .workers import Worker

GRAPH = onnx.AttributeProto.GRAPH


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for block in blocks(node):
            yield from graphs(block)


def blocks(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [a.g for a in node.attribute if a.type == GRAPH]


def uses(graph: onnx.GraphProto) -> set[str]:
    """Names that are read in a graph, inner blocks included."""
    found = {o.name for o in graph.output}
    for node in graph.node:
        found |= set(node.input)
        for block in blocks(node):
            found |= uses(block)
    return found


def known_types(model: onnx.ModelProto) -> dict[str, str]:
    """By name; none for a name that has another type in another block."""
    found: dict[str, str] = {}
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:
        return found
    for graph in graphs(model.graph):
        texts = [
            (i.name, type_text(i.type))
            for i in [*graph.value_info, *graph.input, *graph.output]
        ]
        for tensor in graph.initializer:
            elem = NAMES.Name(tensor.data_type).lower()
            texts.append((tensor.name, f"{elem}[{','.join(map(str, tensor.dims))}]"))
        for name, text in texts:
            found[name] = text if found.get(name, text) == text else ""
    return found


def misread(model: onnx.ModelProto) -> bool:
    """A Loop that returns its iteration number as it is, or a Scan a parameter: ONNX Runtime
    takes such programs for others, and the generator makes none."""
    for graph in graphs(model.graph):
        for node in graph.node:
            for block in blocks(node) if node.op_type in ("Loop", "Scan") else []:
                names = {i.name for i in block.input}
                if node.op_type == "Loop":
                    names = {block.input[0].name}
                if names & {o.name for o in block.output}:
                    return True
    return False


def contradicts(model: onnx.ModelProto) -> bool:
    """Whether a shape is declared that cannot be: what such a program is to do nobody knows."""
    try:
        onnx.shape_inference.infer_shapes(model, strict_mode=True)
    except Exception:
        return True
    return False


def rename_uses(graph: onnx.GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        for k, name in enumerate(node.input):
            if name == old:
                node.input[k] = new
        for block in blocks(node):
            if old not in {i.name for i in block.input}:
                rename_uses(block, old, new)
    for info in graph.output:
        if info.name == old:
            info.name = new


def replace_nodes(graph: onnx.GraphProto, at: int, nodes: list[onnx.NodeProto]) -> None:
    everything = [*graph.node[:at], *nodes, *graph.node[at + 1 :]]
    copies = [onnx.NodeProto.FromString(n.SerializeToString()) for n in everything]
    del graph.node[:]
    graph.node.extend(copies)


def sweep(model: onnx.ModelProto) -> None:
    """Drops what nothing reads."""
    changed = True
    while changed:
        changed = False
        for graph in graphs(model.graph):
            read = uses(graph)
            for k in reversed(range(len(graph.node))):
                if not set(graph.node[k].output) & read:
                    del graph.node[k]
                    changed = True
            for k in reversed(range(len(graph.initializer))):
                if graph.initializer[k].name not in read:
                    del graph.initializer[k]
        for k in reversed(range(len(model.graph.input))):
            if model.graph.input[k].name not in uses(model.graph):
                del model.graph.input[k]


class Minimizer:
    def __init__(self, worker: Worker, case: Case, finding: Finding, seconds: float):
        self.worker, self.finding = worker, finding
        self.until = monotonic() + seconds
        self.names = itertools.count()
        self.model = onnx.ModelProto()
        self.model.CopyFrom(case.model)
        self.outputs, self.inputs = case.outputs, case.sets[finding.set]
        self.consistent = not contradicts(case.model)

    # ---- the loop ----

    def run(self) -> Case:
        sets = [self.inputs]
        if not self.shows(self.model, self.inputs):
            return Case(self.model, self.outputs, sets)  # it takes both sets, or luck
        self.accept(self.only_output())
        steps = (
            self.fewer_outputs,
            self.without_chunks,
            self.without_results,
            self.inlined,
            self.with_fewer_states,
            self.tamer_loops,
            self.bypassed,
            self.simpler_inputs,
            self.smaller_inputs,
        )
        progress = True
        while progress and monotonic() < self.until:
            progress = False
            for step in steps:
                while monotonic() < self.until and any(map(self.accept, step())):
                    progress = True
        return Case(self.model, self.outputs, [self.inputs])

    def shows(self, model: onnx.ModelProto, inputs: dict) -> bool:
        request = (self.finding.stage, model.SerializeToString(), self.outputs, [inputs])
        verdict = self.worker.ask(request)
        return any(f.is_like(self.finding) for f in verdict.findings)

    def accept(self, proposal: tuple[onnx.ModelProto, dict] | None) -> bool:
        if proposal is None or monotonic() > self.until:
            return False
        model, inputs = proposal
        try:
            sweep(model)
            size = model.ByteSize()
        except Exception:
            return False
        same = inputs is self.inputs and size == self.model.ByteSize()
        if misread(model) or (self.consistent and contradicts(model)):
            return False
        if same and model.SerializeToString() == self.model.SerializeToString():
            return False
        if not self.shows(model, inputs):
            return False
        self.model, self.inputs = model, inputs
        return True

    def copy(self) -> onnx.ModelProto:
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        return model

    def places(self, op: str | None = None) -> list[tuple[int, int]]:
        """(number of the graph, number of the node)"""
        return [
            (g, n)
            for g, graph in enumerate(graphs(self.model.graph))
            for n, node in reversed(list(enumerate(graph.node)))
            if op in (None, node.op_type)
        ]

    def at(self, model: onnx.ModelProto, place: tuple[int, int]):
        graph = next(itertools.islice(graphs(model.graph), place[0], None))
        return graph, graph.node[place[1]]

    # ---- proposals ----

    def only_output(self):
        model = self.copy()
        keep = [o for o in model.graph.output if o.name == self.finding.output]
        if keep:
            kept = [onnx.ValueInfoProto.FromString(o.SerializeToString()) for o in keep]
            del model.graph.output[:]
            model.graph.output.extend(kept)
        return model, self.inputs

    def fewer_outputs(self):
        for k in range(len(self.model.graph.output)):
            if len(self.model.graph.output) > 1:
                model = self.copy()
                del model.graph.output[k]
                yield model, self.inputs

    def without_chunks(self):
        """Some nodes of the main graph become inputs, with the values that they have."""
        count = len(self.model.graph.node)
        size = max(1, count // 2)
        while size:
            for start in range(0, count, size):
                yield self.fed(range(start, min(start + size, count)))
            size //= 2

    def fed(self, which: range):
        model = self.copy()
        nodes = [model.graph.node[k] for k in which if k < len(model.graph.node)]
        produced = [name for node in nodes for name in node.output if name]
        del model.graph.node[which.start : which.stop]
        wanted = [name for name in produced if name in uses(model.graph)]
        if any(o.name in produced for o in model.graph.output) or not produced:
            return None
        probe = self.copy()
        del probe.graph.output[:]
        probe.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in wanted)
        request = ("values", probe.SerializeToString(), {}, [self.inputs])
        values = self.worker.ask(request) if wanted else []
        if not isinstance(values, list) or not all(isinstance(v, np.ndarray) for v in values):
            return None
        inputs = dict(self.inputs)
        for name, value in zip(wanted, values):
            inputs[name] = value
            elem = helper.np_dtype_to_tensor_dtype(value.dtype)
            model.graph.input.append(helper.make_tensor_value_info(name, elem, value.shape))
        return model, inputs

    def without_results(self):
        """Results that nothing reads."""
        for place in self.places():
            graph, node = self.at(self.model, place)
            if node.op_type != "If" or len(node.output) < 2:
                continue
            for k, name in enumerate(node.output):
                if name in uses(graph):
                    continue
                model = self.copy()
                _, node = self.at(model, place)
                del node.output[k]
                for block in blocks(node):
                    del block.output[k]
                yield model, self.inputs

    def inlined(self):
        for place in self.places("If"):
            for which in (0, 1):
                model = self.copy()
                graph, node = self.at(model, place)
                self.inline(graph, place[1], blocks(node)[which], {}, list(node.output))
                yield model, self.inputs
        for place in self.places("Loop"):
            yield self.one_iteration(place)

    def inline(
        self,
        graph: onnx.GraphProto,
        at: int,
        block: onnx.GraphProto,
        given: dict[str, str],
        results: list[str],
    ) -> None:
        """The block's nodes take the place of the node that holds it."""
        body = onnx.GraphProto.FromString(block.SerializeToString())
        nodes = [helper.make_node("Constant", [], [t.name], value=t) for t in body.initializer]
        mark = f"_{next(self.names)}"
        for name in [t.name for t in body.initializer] + [
            o for node in body.node for o in node.output if o
        ]:
            rename_uses(body, name, name + mark)
            for node in [*nodes, *body.node]:
                for k, output in enumerate(node.output):
                    if output == name:
                        node.output[k] = name + mark
        for name, outer in given.items():
            rename_uses(body, name, outer)
        nodes += body.node
        for info, result in zip(body.output, results):
            if result:
                nodes.append(helper.make_node("Identity", [info.name], [result]))
        replace_nodes(graph, at, nodes)

    def one_iteration(self, place: tuple[int, int]):
        model = self.copy()
        graph, node = self.at(model, place)
        block, mark = blocks(node)[0], next(self.names)
        zero, yes = f"zero_{mark}", f"yes_{mark}"
        constants = [
            self.constant(zero, np.array(0, np.int64)),
            self.constant(yes, np.array(True)),
        ]
        given = [zero, yes, *node.input[2:]]
        names = dict(zip((i.name for i in block.input), given))
        states = len(node.input) - 2
        if len(node.output) > states and any(node.output[states:]):
            return None
        self.inline(graph, place[1], block, names, ["", *node.output])
        replace_nodes(graph, place[1], [*constants, graph.node[place[1]]])
        return model, self.inputs

    def constant(self, name: str, array: np.ndarray) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))

    def with_fewer_states(self):
        """A state of a Loop is its initial value in every iteration; or a stack goes."""
        for place in self.places("Loop"):
            _, node = self.at(self.model, place)
            for k in range(len(node.output)):
                model = self.copy()
                graph, node = self.at(model, place)
                block, states, name = blocks(node)[0], len(node.input) - 2, node.output[k]
                if k < states:
                    initial = node.input[2 + k]
                    rename_uses(block, block.input[2 + k].name, initial)
                    del node.input[2 + k], block.input[2 + k]
                    rename_uses(graph, name, initial)
                elif name in uses(graph):
                    continue
                del node.output[k], block.output[1 + k]
                yield model, self.inputs

    def tamer_loops(self):
        """Fixed trips, and no condition."""
        for place in self.places("Loop"):
            for count in (0, 1, 2):
                model = self.copy()
                graph, node = self.at(model, place)
                name = f"trips_{next(self.names)}"
                if node.input[0].startswith("trips_"):
                    break
                node.input[0] = name
                made = self.constant(name, np.array(count, np.int64))
                replace_nodes(graph, place[1], [made, graph.node[place[1]]])
                yield model, self.inputs
            model = self.copy()
            _, node = self.at(model, place)
            node.input[1] = ""
            yield model, self.inputs

    def bypassed(self):
        """An operand or another value of the block, of the same type, instead of a result."""
        kinds = known_types(self.model)
        for place in self.places():
            graph, node = self.at(self.model, place)
            others = [i for i in node.input if i]
            others += [i.name for i in graph.input if i.name not in others]
            for result in node.output:
                kind = kinds.get(result)
                same = [o for o in others if kind and kinds.get(o) == kind]
                for other in same[:6]:
                    model = self.copy()
                    graph, node = self.at(model, place)
                    rename_uses(graph, result, other)
                    yield model, self.inputs

    def simpler_inputs(self):
        """Zeros and ones; and inputs as constants stay inputs, since constants fold."""
        for name, value in self.inputs.items():
            if not isinstance(value, np.ndarray) or not value.size:
                continue
            for simple in (np.zeros_like(value), np.ones_like(value)):
                if value.tobytes() != simple.tobytes() and not (value == 1).all():
                    yield self.copy(), {**self.inputs, name: simple}

    def smaller_inputs(self):
        """An axis of one, or less by one, in all inputs that share its name."""
        for info in self.model.graph.input:
            value = self.inputs.get(info.name)
            if not isinstance(value, np.ndarray) or not info.type.HasField("tensor_type"):
                continue
            for axis, size in enumerate(value.shape):
                for less in {1, size - 1} if size > 1 else ():
                    yield self.cut(info.name, axis, less)

    def cut(self, name: str, axis: int, size: int):
        model, inputs = self.copy(), dict(self.inputs)
        axes = {i.name: i.type.tensor_type.shape.dim for i in model.graph.input}
        if axis >= len(axes[name]):
            return None
        symbol = axes[name][axis].dim_param
        for other, dims in axes.items():
            for k, dim in enumerate(dims):
                if (other, k) != (name, axis) and (not symbol or dim.dim_param != symbol):
                    continue
                if not isinstance(inputs.get(other), np.ndarray):
                    return None
                inputs[other] = np.take(inputs[other], range(size), axis=k)
                if not symbol:
                    dim.dim_value = size
        return model, inputs
