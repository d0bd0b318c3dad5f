/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a draft of a node, and what the schema of its version says of it. */
#include "onnx/schema.h"

#include "base/dtype.h"
#include "onnx/export.h"

int64_t export_model_opset(const struct ir_graph *graph)
{
    for (size_t i = 0; i < graph->n_opsets; i++)
        if (!graph->opsets[i].domain[0])
            return graph->opsets[i].version;
    return 0;
}

struct ir_attr *export_draft_attr(const struct export_draft *draft, const char *name)
{
    return node_attrs_find(&draft->export->node_attrs, name);
}

const struct ir_value *export_draft_operand(const struct export_draft *draft, int index)
{
    const struct export *export = draft->export;
    return (size_t)index < export->operands.count ? export->operands.data[index] : NULL;
}

tssa_status *export_refuse(const struct export_draft *draft, const char *why)
{
    return ERROR(TSSA_UNSUPPORTED, "%s-%d %s", draft->name, draft->version, why);
}

tssa_status *export_unknown_attr(const struct export_draft *draft, const char *attr)
{
    return ERROR(TSSA_UNSUPPORTED, "%s-%d has no \"%s\"", draft->name, draft->version, attr);
}

/* ---- Against the schema ---------------------------------------------------------------------- */

/* 0: unknown. */
static uint32_t type_bits(const struct ir_type *type)
{
    switch (type->kind) {
    case TYPE_TENSOR:
        return type->dtype == TSSA_UNDEFINED ? 0 : DTYPE_BIT(type->dtype);
    case TYPE_SEQUENCE:
        return SCHEMA_SEQUENCE;
    case TYPE_OPTIONAL:
        return SCHEMA_OPTIONAL;
    default:
        return 0;
    }
}

tssa_status *export_check_type(const struct export_draft *draft, const char *what, size_t index,
                               const struct ir_value *value, uint32_t legal)
{
    uint32_t bits = type_bits(value->type);
    if (!bits || !legal || (bits & legal))
        return NULL;
    return ERROR(TSSA_UNSUPPORTED, "%s-%d has no %s %zu of type %s", draft->name, draft->version,
                 what, index,
                 value->type->kind == TYPE_TENSOR ? tssa_dtype_name(value->type->dtype)
                                                  : "sequence or optional");
}

static tssa_status *check_operands(const struct export_draft *draft, const struct schema *schema)
{
    size_t count = draft->export->operands.count;
    if (schema->max_inputs != SCHEMA_VARIADIC && count > schema->max_inputs)
        return ERROR(TSSA_UNSUPPORTED, "%s-%d has %d inputs at most", draft->name, draft->version,
                     schema->max_inputs);
    /* Loop's trip count and condition may be absent, though values must follow. */
    for (size_t i = 0; i < count || i < schema->min_inputs; i++) {
        size_t row = i < schema->n_input_types ? i : schema->n_input_types - 1u;
        uint32_t types = schema->input_types[row];
        const struct ir_value *value = export_draft_operand(draft, (int)i);
        if (!value && i < schema->min_inputs && (i >= count || !(types & SCHEMA_ABSENT)))
            return ERROR(TSSA_UNSUPPORTED, "%s-%d has no optional input %zu", draft->name,
                         draft->version, i);
        if (value)
            TRY(export_check_type(draft, "input", i, value, types & ~SCHEMA_ABSENT));
    }
    return NULL;
}

static tssa_status *check_results(const struct export_draft *draft, const struct schema *schema)
{
    const struct ir_op *op = draft->op;
    for (uint32_t i = 0; i < op->n_results; i++) {
        uint32_t row = i < schema->n_output_types ? i : schema->n_output_types - 1u;
        if (!op->results[i].wanted)
            continue;
        if (schema->max_outputs != SCHEMA_VARIADIC && i >= schema->max_outputs)
            return ERROR(TSSA_UNSUPPORTED, "%s-%d has %d outputs at most", draft->name,
                         draft->version, schema->max_outputs);
        TRY(export_check_type(draft, "output", i, &op->results[i], schema->output_types[row]));
    }
    return NULL;
}

bool export_draft_unchanged(const struct export_draft *draft)
{
    return draft->op->origin == IR_ORIGIN_NODE && draft->op->version == draft->version;
}

tssa_status *export_check_schema(struct export_draft *draft)
{
    const struct export *export = draft->export;
    const struct schema *schema = schema_find(draft->name, draft->version);
    draft->min_outputs = schema ? schema->min_outputs : 0;
    if (!schema)
        return NULL;
    /* Passes take what a Loop carries, and before version 11 it had to carry something. */
    if (export_draft_unchanged(draft))
        return export->operands.count < schema->min_inputs ? check_operands(draft, schema) : NULL;
    for (size_t i = 0; i < export->node_attrs.count; i++)
        if (!schema_has_attribute(schema, export->node_attrs.data[i].name))
            return export_unknown_attr(draft, export->node_attrs.data[i].name);
    TRY(check_operands(draft, schema));
    return check_results(draft, schema);
}
