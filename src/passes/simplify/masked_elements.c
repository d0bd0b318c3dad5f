/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements that a mask selects are taken from the places that NonZero finds anyway:
 *
 *     Compress(Reshape(x, [-1]), Reshape(mask, [-1]))   ->   GatherND(x, Transpose(places))
 *     places = NonZero(mask)                                 places = NonZero(mask)
 *
 * and these from where a slice that begins with the first element has them:
 *
 *     GatherND(Slice(x, [0], [80], [1]), Transpose(NonZero(mask)))   ->   GatherND(x, ...)
 *
 * Detectors ask which scores exceed a threshold, and for both the scores and their places, of which
 * there are few: so the mask is gone through once, and the slice need not be written for them. Of
 * 24,000 elements it saves a fifth of the time where one of 200 is selected and nothing where a
 * fiftieth is, but for the slice; where half is, it takes thrice as long. So it is done in sessions
 * alone, where detectors are, and not in files, whose reader may select more.
 *
 *   needs   types, known elements
 *   keeps   results' bits
 *   breaks  NonZero is there twice (common_subexpressions); what is read no more (dead_code)
 */
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"

static bool have_same_dims(const struct ir_value *a, const struct ir_value *b)
{
    if (infer_value_rank(a) < 0 || infer_value_rank(a) != infer_value_rank(b))
        return false;
    for (int i = 0; i < infer_value_rank(a); i++)
        if (a->type->dims[i] != b->type->dims[i])
            return false;
    return true;
}

/* ---- Compress -------------------------------------------------------------------------------- */

/* What the list has all elements of, in order; NULL: it is none. */
static struct ir_value *flattened(const struct ir_value *list)
{
    const struct ir_op *op = list ? list->op : NULL;
    return op && !op->opaque && ir_op_is(op, IR_OP_Reshape) && infer_value_rank(list) == 1
               ? ir_operand(op, 0)
               : NULL;
}

/* The elements of x, a tensor of several axes, where the mask is true, in order. */
static bool selects_masked(const struct ir_op *op, struct ir_value **x, struct ir_value **mask)
{
    if (!ir_op_is(op, IR_OP_Compress) || op->opaque || infer_value_rank(ir_operand(op, 0)) != 1)
        return false;
    *x = flattened(ir_operand(op, 0));
    *mask = flattened(ir_operand(op, 1));
    return *x && *mask && infer_value_rank(*x) > 1 && have_same_dims(*x, *mask) &&
           (*mask)->type->dtype == TSSA_BOOL;
}

/* Who asks for the places beside the op; NULL: nobody. */
static const struct ir_op *who_finds(const struct ir_value *mask, const struct ir_op *op)
{
    for (const struct ir_use *use = mask->uses; use; use = use->next)
        if (ir_op_is(use->user, IR_OP_NonZero) && use->user->parent == op->parent)
            return use->user;
    return NULL;
}

/* The places of true elements, one after the other. They may be found further behind so far. */
static tssa_status *make_places(struct ir_op *before, const struct ir_op *finds,
                                struct ir_value **places)
{
    struct ir_graph *graph = before->parent->graph;
    int64_t *perm = arena_copy(&graph->arena, (const int64_t[]){1, 0}, 2 * sizeof *perm);
    struct ir_op *found = loop_make_op(before, IR_OP_NonZero, 1);
    TRY_ALLOC(found);
    found->name = finds->name;
    ir_op_set_operand(found, 0, ir_operand(finds, 0));
    TRY(ir_infer_op_lenient(found));
    struct ir_op *turned = loop_make_op(before, IR_OP_Transpose, 1);
    const struct ir_attr attr = {.name = intern_str(&graph->strings, "perm"),
                                 .kind = IR_ATTR_INTS,
                                 .count = 2,
                                 .ints = perm};
    if (!perm || !turned || !attr.name || !ir_op_set_attr(graph, turned, &attr))
        return status_out_of_memory();
    ir_op_set_operand(turned, 0, &found->results[0]);
    *places = &turned->results[0];
    return ir_infer_op_lenient(turned);
}

static tssa_status *find_places(struct pass_context *pass, struct ir_op *op, struct ir_op **next)
{
    struct ir_value *x, *mask, *places;
    const struct ir_op *finds = selects_masked(op, &x, &mask) ? who_finds(mask, op) : NULL;
    if (!finds)
        return NULL;
    TRY(make_places(op, finds, &places));
    const struct ir_op_info *info = ir_op_info(IR_OP_GatherND);
    struct ir_op *gather = ir_op_create(pass->graph, info, 2, 1);
    TRY_ALLOC(gather);
    gather->version = ir_op_bind(info, IR_NEWEST_OPSET);
    ir_op_set_operand(gather, 0, x);
    ir_op_set_operand(gather, 1, places);
    TRY(pass_replace(pass, op, gather));
    *next = gather;
    return pass_remark(pass, TSSA_REMARK_APPLIED, gather,
                       "takes elements from the places that NonZero finds of the same mask");
}

/* ---- Slices ---------------------------------------------------------------------------------- */

/* The mask whose true elements' places these are; NULL: there is none. */
static const struct ir_value *mask_of(const struct ir_value *places)
{
    const struct ir_op *turned = places ? places->op : NULL;
    size_t n;
    const int64_t *perm = turned && ir_op_is(turned, IR_OP_Transpose) && !turned->opaque
                              ? ir_attr_ints(turned, "perm", &n)
                              : NULL;
    const struct ir_op *found = perm && n == 2 && perm[0] == 1 ? ir_operand(turned, 0)->op : NULL;
    return found && ir_op_is(found, IR_OP_NonZero) && !found->opaque ? ir_operand(found, 0) : NULL;
}

/* One after the other from the first one on, along each axis. */
static bool begins_with_first(const struct ir_op *op)
{
    int64_t starts[IR_KNOWN_MAX], steps[IR_KNOWN_MAX];
    size_t n, n_steps = 0;
    if (ir_op_is(op, IR_OP_access)) {
        const struct rule *rule = rule_of(op);
        const struct rule_param *params = rule->n_steps == 1 ? rule->steps[0].params : NULL;
        return params && rule->steps[0].kind == RULE_SLICE && !params[1].is_operand &&
               params[1].value == 0 && params[3].value == 1;
    }
    if (!ir_op_is(op, IR_OP_Slice) || !infer_const_ints(op, 1, starts, &n) ||
        (ir_operand(op, 4) && !infer_const_ints(op, 4, steps, &n_steps)))
        return false;
    for (size_t i = 0; i < n; i++)
        if (starts[i] != 0 || (i < n_steps && steps[i] != 1))
            return false;
    return true;
}

static tssa_status *pass_slice(struct pass_context *pass, struct ir_op *op)
{
    struct ir_value *part = ir_operand(op, 0);
    const struct ir_op *slice = part ? part->op : NULL;
    if (!ir_op_is(op, IR_OP_GatherND) || op->opaque || !slice || slice->opaque ||
        ir_attr_int(op, "batch_dims", 0) != 0 || !begins_with_first(slice) ||
        !have_same_dims(part, mask_of(ir_operand(op, 1))))
        return NULL;
    ir_op_set_operand(op, 0, ir_operand(slice, 0));
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, op, "takes elements from where a slice has them");
}

static tssa_status *visit(struct pass_context *pass, struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque; i++)
            TRY(visit(pass, op->blocks[i]));
        TRY(find_places(pass, op, &op));
        TRY(pass_slice(pass, op));
    }
    return NULL;
}

tssa_status *pass_masked_elements(struct pass_context *pass)
{
    return pass_is_for_session(pass) ? visit(pass, pass->graph->body) : NULL;
}
