/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that a mask keeps are read by their numbers, which are found once for all that the mask
 * keeps, where kernels read by numbers and keep nothing themselves:
 *
 *     Compress(x, m), y[mask(1, m)]   ->   n = NonZero(m)[reshape(-1)]
 *                                          x[gather(0, n)], y[gather(1, n)]
 *
 * To keep rows a device counts them, tells the host, which waits for that, and moves them.
 * Detectors keep boxes, scores and masks of the same rows: one count is enough for these, and rows
 * that are read by numbers are read where they are needed, by the kernel that needs them. Where
 * kernels keep rows it is done the other way round (fuse_numbers.c).
 *
 *   needs   types, a table of what kernels take, else nothing is done
 *   keeps   results' bits
 *   breaks  sizes have other names (infer)
 */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/pass.h"

/* Before the op; NULL: there is none. */
static struct ir_op *find_earlier(const struct ir_op *op, const struct ir_value *mask)
{
    for (struct ir_op *other = op->prev; other; other = other->prev)
        if (ir_op_is(other, IR_OP_NonZero) && !other->opaque && ir_operand(other, 0) == mask)
            return other;
    return NULL;
}

/* Behind the op, to be had before it as well. */
static struct ir_op *find_later(const struct ir_op *op, const struct ir_value *mask)
{
    for (const struct ir_use *use = mask->uses; use; use = use->next)
        if (ir_op_is(use->user, IR_OP_NonZero) && !use->user->opaque &&
            use->user->parent == op->parent)
            return use->user;
    return NULL;
}

static tssa_status *find_rows(struct pass_context *pass, struct ir_op *op, struct ir_value *mask,
                              struct ir_value **found)
{
    struct ir_op *finds = find_earlier(op, mask);
    if (!finds && (finds = find_later(op, mask)))
        ir_op_move_before(finds, op);
    if (!finds) {
        const struct ir_op_info *info = ir_op_info(IR_OP_NonZero);
        finds = ir_op_create(pass->graph, info, 1, 1);
        TRY_ALLOC(finds);
        finds->version = ir_op_bind(info, IR_NEWEST_OPSET);
        ir_op_set_operand(finds, 0, mask);
        TRY(pass_insert(finds, op));
    }
    *found = &finds->results[0];
    return NULL;
}

/* An access of one step; `param`: its last param, if that is no number. */
static struct ir_op *make_access(struct ir_graph *graph, struct ir_value *x, enum rule_kind kind,
                                 uint32_t n, const int64_t *numbers, struct ir_value *param)
{
    struct rule_param params[2];
    const struct rule_step step = {kind, n, params};
    for (uint32_t i = 0; i < n; i++)
        params[i] = param && i == n - 1 ? rule_operand(0) : rule_constant(numbers[i]);
    const struct rule *rule = rule_create(graph, 1, &step);
    return rule ? rule_access_create(graph, x, rule, param ? 1 : 0, &param) : NULL;
}

static tssa_status *read_by_numbers(struct pass_context *pass, struct ir_op *op,
                                    struct ir_op **reads)
{
    const int64_t axis = ir_fuse_kept_axis(op);
    struct ir_value *found;
    TRY(find_rows(pass, op, ir_fuse_mask(op), &found));
    struct ir_op *numbers = make_access(pass->graph, found, RULE_RESHAPE, 1, (int64_t[]){-1}, NULL);
    TRY(pass_insert(numbers, op));
    *reads = make_access(pass->graph, ir_operand(op, 0), RULE_GATHER, 2, (int64_t[]){axis, 0},
                         &numbers->results[0]);
    TRY_ALLOC(*reads);
    TRY(pass_replace(pass, op, *reads));
    return pass_remark(pass, TSSA_REMARK_APPLIED, *reads,
                       "reads rows by the numbers of those that a mask keeps");
}

/* Is it a Compress or an access that keeps rows? */
static bool keeps_rows(const struct ir_graph *graph, const struct ir_op *op)
{
    return !ir_op_is(op, IR_OP_NonZero) && ir_fuse_keeps(op) &&
           ir_operand(op, 0)->type->dtype != TSSA_STRING &&
           !ir_value_is_mutable(graph, ir_fuse_mask(op)) &&
           !ir_value_is_mutable(graph, ir_operand(op, 0));
}

static tssa_status *visit(struct pass_context *pass, struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_fuse_body(op); i++)
            TRY(visit(pass, op->blocks[i]));
        if (keeps_rows(pass->graph, op))
            TRY(read_by_numbers(pass, op, &op));
    }
    return NULL;
}

tssa_status *pass_number_masks(struct pass_context *pass)
{
    const uint32_t classes = pass->fusion ? pass->fusion->classes : 0;
    return (classes & IR_FUSES_GATHERS) && !(classes & IR_FUSES_KEEPS)
               ? visit(pass, pass->graph->body)
               : NULL;
}
