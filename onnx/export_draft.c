/* SPDX-License-Identifier: Apache-2.0 */
/* An op on its way to a node of some opset: its draft, brought there by downgrade.c, and what the
 * schema says of the outcome. */
#include <string.h>

#include "onnx/export.h"
#include "onnx/schema.h"

/* ---- What is asked of a draft ---------------------------------------------------------------- */

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

/* A node that is written in the version that it was read in is not judged. */
static bool is_unchanged(const struct export_draft *draft)
{
    return draft->op->origin == IR_ORIGIN_NODE && draft->op->version == draft->version;
}

static tssa_status *check_schema(struct export_draft *draft)
{
    const struct export *export = draft->export;
    const struct schema *schema = schema_find(draft->name, draft->version);
    draft->min_outputs = schema ? schema->min_outputs : 0;
    if (!schema || is_unchanged(draft))
        return NULL;
    for (size_t i = 0; i < export->node_attrs.count; i++)
        if (!schema_has_attribute(schema, export->node_attrs.data[i].name))
            return export_unknown_attr(draft, export->node_attrs.data[i].name);
    TRY(check_operands(draft, schema));
    return check_results(draft, schema);
}

/* ---- Axes ------------------------------------------------------------------------------------ */

/* The rank that an op's axes are counted in; -1: unknown. */
static int axes_rank(const struct export_draft *draft, size_t n_axes)
{
    int rank = node_operand_rank(export_draft_operand(draft, 0));
    if (rank >= 0 && draft->op->info->id == IR_OP_Unsqueeze)
        rank += (int)n_axes;
    if (rank >= 0 && draft->op->info->id == IR_OP_OneHot)
        rank++;
    return rank;
}

static tssa_status *count_from_front(const struct export_draft *draft, int64_t *axes, size_t count)
{
    int rank = axes_rank(draft, count);
    for (size_t i = 0; i < count; i++) {
        if (axes[i] < 0 && rank < 0)
            return export_refuse(draft, "counts axes from the front, and the rank is unknown");
        axes[i] += axes[i] < 0 ? rank : 0;
    }
    return NULL;
}

/* Before opset 11 axes were not negative. */
static tssa_status *positive_axes(const struct export_draft *draft)
{
    struct ir_attr *axis = export_draft_attr(draft, "axis"),
                   *axes = export_draft_attr(draft, "axes");
    if (is_unchanged(draft))
        return NULL;
    if (axis && axis->kind == IR_ATTR_INT)
        TRY(count_from_front(draft, &axis->i, 1));
    if (!axes || axes->kind != IR_ATTR_INTS)
        return NULL;
    int64_t *copy =
        arena_copy(&draft->export->scratch, axes->ints, axes->count * sizeof *axes->ints);
    TRY_ALLOC(copy);
    axes->ints = copy;
    return count_from_front(draft, copy, axes->count);
}

/* ---- Drafts ---------------------------------------------------------------------------------- */

static tssa_status *fill_draft(struct export_draft *draft)
{
    struct export *export = draft->export;
    const struct ir_op *op = draft->op;
    export->operands.count = export->node_attrs.count = 0;
    if (!vec_reserve(&export->operands, op->n_operands) ||
        !vec_reserve(&export->node_attrs, op->n_attrs))
        return status_out_of_memory();
    for (uint32_t i = 0; i < op->n_operands; i++)
        export->operands.data[export->operands.count++] = op->operands[i].value;
    for (uint32_t i = 0; i < op->n_attrs; i++)
        export->node_attrs.data[export->node_attrs.count++] = op->attrs[i];
    return NULL;
}

static tssa_status *draft_opaque(struct export_draft *draft, int64_t opset)
{
    const struct ir_opaque *opaque = draft->op->opaque;
    draft->domain = opaque->domain;
    draft->name = opaque->name;
    draft->overload = opaque->overload;
    int version = schema_bind(opaque->name, opset);
    bool same =
        opaque->opset == opset || (version && version == schema_bind(opaque->name, opaque->opset) &&
                                   opaque->opset <= IR_NEWEST_OPSET);
    if (!opaque->domain[0] && !same && !opaque->function)
        return ERROR(TSSA_UNSUPPORTED, "what %s means is known at opset %lld alone", opaque->name,
                     (long long)opaque->opset);
    return NULL;
}

/* Operators that had another name: the inverse of upgrade_replaced. NULL: not at this opset. */
static const char *replaced_name(const struct ir_op_info *info, int64_t opset, int *version)
{
    if (info->id == IR_OP_Resize && opset < 10) {
        *version = opset >= 9 ? 9 : 7;
        return "Upsample";
    }
    if (info->id == IR_OP_ScatterElements && opset >= 9 && opset < 11) {
        *version = 9;
        return "Scatter";
    }
    return NULL;
}

tssa_status *export_draft(struct export *export, const struct ir_op *op, int64_t opset,
                          struct export_draft *draft)
{
    const struct ir_op_info *info = op->info;
    *draft = (struct export_draft){
        .export = export, .op = op, .domain = info->domain, .name = info->name};
    TRY(fill_draft(draft));
    if (op->opaque)
        return draft_opaque(draft, opset);
    if (strcmp(info->domain, "tssa") == 0)
        return ERROR(TSSA_UNSUPPORTED, "%s is tssa's own and has no form in ONNX", info->name);
    if (info->domain[0]) {
        draft->version = op->version;
        return NULL;
    }
    const char *replaced = replaced_name(info, opset, &draft->version);
    if (replaced)
        draft->name = replaced;
    else
        draft->version = ir_op_bind(info, opset);
    if (draft->version == 0)
        return ERROR(TSSA_UNSUPPORTED, "%s came with opset %d", info->name, info->versions[0]);
    TRY(export_downgrade(draft));
    if (opset < 11)
        TRY(positive_axes(draft));
    return check_schema(draft);
}
