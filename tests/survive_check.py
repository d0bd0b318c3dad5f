# SPDX-License-Identifier: Apache-2.0
"""What must survive tssa-opt although no result depends on it.

Documentation, metadata, names of initializers and dims, functions and quantization
annotations; in a model made here, optimized with and without --keep-functions, and
written at level 0.  Every model that is written must please onnx.checker, and be written
as the same file again.

Usage: survive_check.py TSSA_OPT
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NOT_CHECKED = 7  # exit status of tssa-opt
KEEP, LEVEL0 = "--keep-functions", "-O0"


def note(thing, name: str) -> None:
    """Documentation and metadata."""
    thing.doc_string = f"doc of {name}"
    thing.metadata_props.add(key="of", value=name)


def is_noted(thing, name: str) -> bool:
    props = {p.key: p.value for p in thing.metadata_props}
    return thing.doc_string == f"doc of {name}" and props.get("of") == name


def tensor(name: str, dims: list, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def opsets(*domains: str) -> list[onnx.OperatorSetIdProto]:
    return [helper.make_opsetid(d, 18 if d == "" else 1) for d in domains]


def function(
    domain: str, name: str, nodes: list[onnx.NodeProto], *imported: str, **more
) -> onnx.FunctionProto:
    made = helper.make_function(
        domain, name, ["a"], ["b"], nodes, opsets("", *imported), **more
    )
    note(made, f"{domain}.{name}")
    return made


def functions() -> list[onnx.FunctionProto]:
    scaled = helper.make_node("LeakyRelu", ["t"], ["b"])
    attribute = scaled.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT)
    attribute.ref_attr_name = "slope"
    inner = helper.make_node("f", ["a"], ["t"], domain="local")
    outer = function(
        "local", "outer", [inner, scaled], "local",
        attribute_protos=[helper.make_attribute("slope", 0.25)],
        value_info=[tensor("t", ["N", 4])],
    )  # fmt: skip
    magic = helper.make_node("Magic", ["t"], ["b"], domain="com.acme")
    return [
        function("local", "f", [helper.make_node("Neg", ["a"], ["b"])]),
        function("other", "f", [helper.make_node("Exp", ["a"], ["b"])]),
        function("local", "f", [helper.make_node("Abs", ["a"], ["b"])], overload="second"),
        outer,
        function("local", "nobody", [helper.make_node("Tanh", ["a"], ["b"])]),
        function(
            "local", "unknown", [helper.make_node("f", ["a"], ["t"], domain="other"), magic],
            "other", "com.acme",
        ),
    ]  # fmt: skip


def branch(name: str, domain: str) -> onnx.GraphProto:
    """Calls a function on what is outside."""
    value = f"{name}_result"
    node = helper.make_node("f", ["w"], [value], domain=domain, name=f"{name}_call")
    note(node, node.name)
    graph = helper.make_graph([node], name, [], [tensor(value, ["N", 4])])
    note(graph, name)
    return graph


def make_model(with_unknown: bool) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Add", ["x", "bias"], ["u"], name="add"),
        helper.make_node("outer", ["u"], ["v"], domain="local", name="call", slope=0.5),
        helper.make_node("f", ["v"], ["w0"], domain="local", name="call_second"),
        helper.make_node("outer", ["w0"], ["w"], domain="local", name="call_default"),
        helper.make_node(
            "If", ["p"], ["z"], name="if",
            then_branch=branch("yes", "local"), else_branch=branch("no", "other"),
        ),
        helper.make_node("Mul", ["z", "v"], ["y"], name="mul"),
    ]  # fmt: skip
    nodes[2].overload = "second"
    for node in nodes:
        note(node, node.name)
    outputs = [tensor("y", ["N", 4])]
    if with_unknown:
        nodes.append(helper.make_node("unknown", ["y"], ["q"], domain="local", name="unknown"))
        outputs.append(tensor("q", ["N", 4]))
    bias = numpy_helper.from_array(np.arange(4, dtype=np.float32), "bias")
    scale = numpy_helper.from_array(np.float32(0.5), "u_scale")
    given = numpy_helper.from_array(np.array(True), "p")
    inputs = [tensor("x", ["N", 4]), tensor("p", [], TensorProto.BOOL)]
    graph = helper.make_graph(
        nodes, "main", inputs, outputs, [bias, scale, given],
        value_info=[tensor("u", ["N", 4]), tensor("v", ["N", 4])],
    )  # fmt: skip
    for thing in (graph, *graph.initializer, *inputs, *graph.value_info, *graph.output):
        note(thing, thing.name)
    for info in graph.input:
        note(info, info.name)
    annotation = graph.quantization_annotation.add(tensor_name="u")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="u_scale")
    model = helper.make_model(
        graph, ir_version=10, opset_imports=opsets("", "local", "other", "com.acme"),
        functions=[f for f in functions() if with_unknown or f.name != "unknown"],
    )  # fmt: skip
    note(model, "model")
    model.producer_name, model.producer_version, model.model_version = "me", "1.5", 7
    return model


def called(model: onnx.ModelProto) -> list[str]:
    return [f"{f.domain}.{f.name}{f.overload}" for f in model.functions]


def same_functions(old: onnx.ModelProto, new: onnx.ModelProto) -> bool:
    """Those that are still there are what they were."""
    before = {name: f.SerializeToString() for name, f in zip(called(old), old.functions)}
    return all(before[n] == f.SerializeToString() for n, f in zip(called(new), new.functions))


def expected_functions(old: onnx.ModelProto, options: list[str]) -> list[str]:
    if KEEP in options:
        return called(old)
    return [n for n in ("other.f", "local.unknown") if "local.unknown" in called(old)]


def graphs(graph: onnx.GraphProto) -> list[onnx.GraphProto]:
    inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return [graph, *(g for i in inner for g in graphs(i))]


def lost(old: onnx.ModelProto, new: onnx.ModelProto, options: list[str]) -> list[str]:
    """What is in `old` and should be in `new`."""
    found = []
    everything = graphs(new.graph)
    named = {g.name: g for g in everything}
    for graph in everything:
        named |= {n.name: n for n in graph.node}
        named |= {v.name: v for v in (*graph.initializer, *graph.input, *graph.output)}
        named |= {v.name: v for v in graph.value_info}
    defaults = {t.name: t for t in new.graph.initializer}
    wanted = ["main", "yes", "no", "add", "if", "mul", "x", "p", "y", "bias", "u", "v"]
    wanted += (
        ["call", "call_second", "call_default", "yes_call", "no_call"]
        if KEEP in options
        else []
    )
    found += [f"notes of {n}" for n in wanted if n not in named or not is_noted(named[n], n)]
    found += [] if is_noted(defaults["p"], "p") else ["notes of the default of p"]
    found += [] if is_noted(new, "model") else ["notes of the model"]
    for field in ("producer_name", "producer_version", "model_version", "domain"):
        found += [] if getattr(old, field) == getattr(new, field) else [field]
    found += [] if old.graph.input == new.graph.input else ["inputs"]
    found += [] if old.graph.output == new.graph.output else ["outputs"]
    annotations = old.graph.quantization_annotation
    found += [] if new.graph.quantization_annotation == annotations else ["annotations"]
    found += [] if "u_scale" in defaults else ["what an annotation names"]
    dims = [d.dim_param for d in named["u"].type.tensor_type.shape.dim]
    found += [] if dims == ["N", ""] else ["names of dims"]
    found += [] if called(new) == expected_functions(old, options) else ["functions"]
    found += [] if same_functions(old, new) else ["what functions were"]
    return found


def optimize(
    tool: str, source: Path, target: Path, options: list[str], unchecked: bool = False
) -> str:
    """Standard error. A model that holds what tssa cannot run is written, but not checked."""
    command = [tool, "--quiet", *options, source, target]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != (NOT_CHECKED if unchecked else 0):
        raise RuntimeError(f"{done}")
    return done.stderr


def results(path: Path) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    return [y for p in (True, False) for y in session.run(None, {"x": x, "p": np.array(p)})]


def problems(tool: str, folder: Path, with_unknown: bool, options: list[str]) -> list[str]:
    source, target, again = (folder / f"{n}.onnx" for n in ("old", "new", "again"))
    old = make_model(with_unknown)
    onnx.save(old, source)
    optimize(tool, source, target, ["--check", "2", *options], with_unknown)
    optimize(tool, target, again, options)
    new = onnx.load(target)
    found = lost(old, new, options)
    if again.read_bytes() != target.read_bytes():
        found.append("written again, it is another file")
    onnx.checker.check_model(new, full_check=not with_unknown)
    if not with_unknown:
        pairs = zip(results(source), results(target))
        if not all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in pairs):
            found.append("results in ONNX Runtime")
    return found


def dropped(tool: str, folder: Path) -> list[str]:
    """What cannot survive is said."""
    model = make_model(False)
    model.training_info.add().initialization.name = "start"
    onnx.save(model, folder / "old.onnx")
    said = optimize(tool, folder / "old.onnx", folder / "new.onnx", [])
    return [] if "not kept: training information" in said else ["a word on training_info"]


def main() -> int:
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as name:
        runs = {
            f"{'unknown' if unknown else 'known'} {' '.join(options)}": problems(
                sys.argv[1], Path(name), unknown, options
            )
            for unknown in (False, True)
            for options in ([], [KEEP], [LEVEL0], [KEEP, LEVEL0])
        }
        runs["dropped"] = dropped(sys.argv[1], Path(name))
    for run, found in runs.items():
        for line in found:
            print(f"{run}: lost: {line}")
        passed += not found
        failed += bool(found)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
