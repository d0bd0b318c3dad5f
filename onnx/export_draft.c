/* SPDX-License-Identifier: Apache-2.0 */
/* An op on its way to a node of some opset: its draft, brought there by downgrade.c and held
 * against the schema. */
#include <string.h>

#include "onnx/export.h"
#include "onnx/schema.h"

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
    if (export_draft_unchanged(draft))
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
    return export_check_schema(draft);
}
