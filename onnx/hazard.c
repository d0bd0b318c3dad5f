/* SPDX-License-Identifier: Apache-2.0 */
/* The table of hazards, and what the exporter asks of it. */
#include "onnx/hazard.h"

#include <string.h>

static const struct hazard hazards[] = {
#define HAZARD(field, id, what, where, otherwise, example)                                         \
    [HAZARD_##id] = {.name = #id,                                                                  \
                     .kind = #field,                                                               \
                     .pattern = (what),                                                            \
                     .seen = (where),                                                              \
                     .around = (otherwise),                                                        \
                     .model = (example),                                                           \
                     .field = hazard_##id},
#include "onnx/hazards.def"
#undef HAZARD
};

_Static_assert(HAZARD_COUNT <= 64, "a row is a bit of onnx_export_options.kept_hazards");

size_t onnx_hazard_count(void)
{
    return HAZARD_COUNT;
}

tssa_hazard_info onnx_hazard(size_t index)
{
    const struct hazard *hazard = &hazards[index];
    return (tssa_hazard_info){.name = hazard->name,
                              .pattern = hazard->pattern,
                              .seen = hazard->seen,
                              .around = hazard->around,
                              .model = hazard->model};
}

bool onnx_hazard_is_slow(size_t index)
{
    return hazards[index].slow != NULL;
}

/* NULL: the row is not to be avoided. */
static const struct hazard *row(const struct export *export, size_t index)
{
    return export->options.kept_hazards >> index & 1 ? NULL : &hazards[index];
}

bool export_copies_result(const struct export *export, const struct ir_op *results, uint32_t index)
{
    for (size_t i = 0; i < HAZARD_COUNT; i++) {
        const struct hazard *hazard = row(export, i);
        if (hazard && hazard->copy && hazard->copy(results, index))
            return true;
    }
    return false;
}

enum export_shape export_result_shape(const struct export *export, const struct ir_op *results,
                                      uint32_t index)
{
    enum export_shape shape = SHAPE_DECLARED;
    for (size_t i = 0; i < HAZARD_COUNT; i++)
        if (hazards[i].shape && hazards[i].shape(results, index))
            shape = row(export, i) ? SHAPE_INFERRED : SHAPE_NONE;
    return shape;
}

/* ---- Ops ------------------------------------------------------------------------------------- */

/* The last op stands for the one that is rewritten: its result is that op's. */
static tssa_status *keep_rewrite(struct export *export, const struct hazard_rewrite *rewrite,
                                 size_t hazard)
{
    struct export_ops *ops = ARENA_NEW(&export->scratch, struct export_ops);
    const struct ir_op **made =
        ARENA_ARRAY(&export->scratch, const struct ir_op *, rewrite->made.count);
    if (!ops || !made)
        return status_out_of_memory();
    struct ir_op *last = (struct ir_op *)rewrite->made.data[rewrite->made.count - 1];
    memcpy(made, rewrite->made.data, rewrite->made.count * sizeof *made);
    *ops = (struct export_ops){.hazard = hazard, .ops = made, .count = rewrite->made.count};
    last->results[0] = rewrite->op->results[0];
    last->results[0].op = last;
    if (!map_put(&export->rewritten, &rewrite->op->id, sizeof rewrite->op->id, ops))
        return status_out_of_memory();
    return NULL;
}

/* Is an operand a constant that passes made? */
static bool is_folded(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *operand = ir_operand(op, i);
        if (operand && operand->op && operand->op->origin == IR_ORIGIN_MADE &&
            ir_op_is(operand->op, IR_OP_Constant))
            return true;
    }
    return false;
}

static tssa_status *rewrite_op(struct hazard_rewrite *rewrite)
{
    struct export *export = rewrite->export;
    size_t last = 0;
    for (size_t i = 0; i < HAZARD_COUNT && rewrite->made.count == 0; i++) {
        const struct hazard *hazard = row(export, i);
        if (hazard && hazard->ops && rewrite->op->exact)
            hazard->ops(rewrite, rewrite->op);
        if (hazard && hazard->folded && is_folded(rewrite->op))
            hazard->folded(rewrite, rewrite->op);
        if (hazard && hazard->slow && rewrite->op->origin == IR_ORIGIN_MADE)
            hazard->slow(rewrite, rewrite->op);
        last = i;
    }
    if (rewrite->failed)
        return status_out_of_memory();
    return rewrite->made.count ? keep_rewrite(export, rewrite, last) : NULL;
}

/* Nodes of the model stay what they are unless they read what passes made; what passes made of
 * them, too, unless it is to be exact, or is slow. */
static tssa_status *visit(void *context, struct ir_op *op)
{
    struct export *export = context;
    if (!op->exact && op->origin != IR_ORIGIN_MADE && !is_folded(op))
        return NULL;
    struct hazard_rewrite rewrite = {.export = export, .op = op};
    vec_init(&rewrite.made, export->allocator);
    tssa_status *status = rewrite_op(&rewrite);
    vec_free(&rewrite.made);
    return status;
}

tssa_status *export_avoid_hazards(struct export *export)
{
    return ir_block_walk(export->graph->body, visit, export);
}

struct export_ops *export_instead(const struct export *export, const struct ir_op *op)
{
    struct export_ops *ops = map_get(&export->rewritten, &op->id, sizeof op->id);
    return ops && ops->unsaid == export->opset ? NULL : ops;
}
