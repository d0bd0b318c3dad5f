# SPDX-License-Identifier: Apache-2.0
"""A program as text: a line per node, with the types that are known."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

NAMES = onnx.TensorProto.DataType


def type_text(type: onnx.TypeProto) -> str:
    if type.HasField("sequence_type"):
        return f"seq({type_text(type.sequence_type.elem_type)})"
    if type.HasField("optional_type"):
        return f"optional({type_text(type.optional_type.elem_type)})"
    tensor = type.tensor_type
    name = NAMES.Name(tensor.elem_type).lower() if tensor.elem_type else "?"
    if not tensor.HasField("shape"):
        return name
    dims = [
        str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?"
        for d in tensor.shape.dim
    ]
    return f"{name}[{','.join(dims)}]"


def tensor_text(tensor: onnx.TensorProto) -> str:
    array = numpy_helper.to_array(tensor)
    numbers = np.array2string(array, threshold=24, separator=", ").replace("\n", "")
    return f"{array.dtype}{list(array.shape)} {numbers}"


def attribute_text(attribute: onnx.AttributeProto) -> str:
    if attribute.type == onnx.AttributeProto.TENSOR:
        return f"{attribute.name}={tensor_text(attribute.t)}"
    value = onnx.helper.get_attribute_value(attribute)
    return f"{attribute.name}={value.decode() if isinstance(value, bytes) else value}"


def graph_text(graph: onnx.GraphProto, indent: str, types: dict[str, str]) -> list[str]:
    types = dict(types)
    for info in [*graph.value_info, *graph.input, *graph.output]:
        types[info.name] = type_text(info.type)
    for tensor in graph.initializer:
        types[tensor.name] = f"{NAMES.Name(tensor.data_type).lower()}{list(tensor.dims)}"
    show = lambda name: f"{name}: {types[name]}" if types.get(name) else name or '""'  # noqa: E731
    lines = [f"{indent}given {', '.join(show(i.name) for i in graph.input)}"]
    lines += [f"{indent}{t.name} = initializer {tensor_text(t)}" for t in graph.initializer]
    for node in graph.node:
        plain = [a for a in node.attribute if a.type != onnx.AttributeProto.GRAPH]
        attributes = ", ".join(attribute_text(a) for a in plain)
        results = ", ".join(show(o) for o in node.output)
        operands = ", ".join(show(i) for i in node.input)
        lines.append(f"{indent}{results} = {node.op_type}({operands}) {attributes}".rstrip())
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                lines.append(f"{indent}  {attribute.name}:")
                lines += graph_text(attribute.g, indent + "    ", types)
    lines.append(f"{indent}return {', '.join(show(o.name) for o in graph.output)}")
    return lines


def program_text(model: onnx.ModelProto) -> str:
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:  # then without the types
        pass
    lines = [f"opset {model.opset_import[0].version}", *graph_text(model.graph, "", {})]
    return "\n".join(lines) + "\n"
