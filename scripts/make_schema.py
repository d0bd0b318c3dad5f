# SPDX-License-Identifier: Apache-2.0
"""Writes onnx/schema.def from the operator schemas of the onnx package."""

import re
import sys

import onnx

HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every version of every operator of ai.onnx takes: made by scripts/make_schema.py from
 * ONNX {version}, not to be edited. Sorted by name and version.
 *
 *   SCHEMA(operator, version, inputs at least, at most, outputs at least, at most,
 *          attributes, types of inputs, of outputs)
 *
 * Attributes stand between spaces, an integer with what it is where nobody says. A type is a
 * set of bits: element types of tensors, and those of schema.h. The last one of a list is that
 * of all further inputs or outputs. 0: anything.
 */
"""

NAMES = {
    "float": "FLOAT",
    "complex64": "COMPLEX64",
    "complex128": "COMPLEX128",
    "string": "STRING",
    "bool": "BOOL",
    "double": "DOUBLE",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
}
SEQUENCE, OPTIONAL, ABSENT, VARIADIC = 1 << 27, 1 << 28, 1 << 29, 255


def bit(spelling: str) -> int:
    if spelling.startswith("seq("):
        return SEQUENCE
    if spelling.startswith("optional("):
        return OPTIONAL
    match = re.fullmatch(r"tensor\((\w+)\)", spelling)
    if not match:
        return 0
    name = NAMES.get(match[1], match[1].upper())
    return 1 << onnx.TensorProto.DataType.Value(name)


def masks(schema: onnx.defs.OpSchema, formals: list) -> str:
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    found = []
    for formal in formals:
        mask = 0
        for spelling in constraints.get(formal.type_str, [formal.type_str]):
            mask |= bit(spelling)
        if formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional:
            mask |= ABSENT
        found.append(f"0x{mask:x}")
    return f"TYPES({', '.join(found or ['0x0'])})"


def attribute(schema: onnx.defs.OpSchema, name: str) -> str:
    default = schema.attributes[name].default_value
    return f"{name}={default.i}" if default.type == onnx.AttributeProto.INT else name


def row(schema: onnx.defs.OpSchema) -> str:
    attributes = (
        "".join(f" {attribute(schema, name)}" for name in sorted(schema.attributes)) + " "
    )
    counts = (schema.min_input, schema.max_input, schema.min_output, schema.max_output)
    numbers = ", ".join(str(min(n, VARIADIC)) for n in counts)
    return (
        f"SCHEMA({schema.name}, {schema.since_version}, {numbers}, "
        f'"{attributes}", {masks(schema, schema.inputs)}, {masks(schema, schema.outputs)})\n'
    )


def main() -> None:
    schemas = [
        s
        for s in onnx.defs.get_all_schemas_with_history()
        if s.domain == "" and not s.deprecated
    ]
    schemas.sort(key=lambda s: (s.name.encode(), s.since_version))
    sys.stdout.write(HEADER.format(version=onnx.__version__))
    for schema in schemas:
        sys.stdout.write(row(schema))


if __name__ == "__main__":
    main()
