/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says, for each loop and branch that is left, why it is: one remark each, which names the value
 * that stands in the way. Changes nothing; runs last.
 *
 *   needs   nothing
 *   keeps   everything
 *   breaks  nothing
 */
#include "passes/analysis/loops.h"
#include "passes/pass.h"

/* ---- Names ----------------------------------------------------------------------------------- */

/* "%name: type", or the type alone. */
static void print_value(const struct ir_value *value, struct text *text)
{
    if (value->name)
        text_printf(text, "%%%s: ", value->name);
    else if (value->op)
        text_printf(text, "a result of %s: ",
                    value->op->opaque ? value->op->opaque->name : value->op->info->name);
    type_print(value->type, text);
}

/* The remark `before`, the value, `after`. */
static tssa_status *remark(struct pass_context *pass, const struct ir_op *op, const char *before,
                           const struct ir_value *value, const char *after)
{
    struct text text;
    text_init(&text, pass->graph->allocator);
    print_value(value, &text);
    const char *name = text_string(&text);
    tssa_status *status =
        name ? pass_remark(pass, TSSA_REMARK_MISSED, op, "%s %s%s", before, name, after)
             : status_out_of_memory();
    text_free(&text);
    return status;
}

/* ---- Loops and branches ---------------------------------------------------------------------- */

static tssa_status *explain_loop(struct pass_context *pass, struct ir_op *op)
{
    struct loop loop = loop_of(op);
    const struct ir_value *value;
    int64_t trips;
    if (op->in_blocks || op->kept)
        return NULL; /* parallelize has said so */
    TRY(loop_find_recurrence(&loop, false, &value));
    if (value)
        return remark(pass, op, "each iteration needs what the one before has made of", value, "");
    if (loop_stays(&loop) == LOOP_UNKNOWN)
        return remark(pass, op,
                      "every iteration decides whether another follows:", ir_operand(loop.ret, 0),
                      "");
    if (!loop_trips(&loop, &trips) && ir_operand(op, 0))
        return remark(pass, op, "only a run can tell how often it runs:", ir_operand(op, 0),
                      ", and there is no batched form of its body");
    return pass_remark(pass, TSSA_REMARK_MISSED, op, "there is no batched form of its body");
}

static tssa_status *explain_scan(struct pass_context *pass, struct ir_op *op)
{
    const struct ir_block *body = op->blocks[0];
    int64_t scanned = ir_attr_int(op, "num_scan_inputs", 0);
    if (body->n_params > scanned)
        return remark(pass, op, "each step needs what the one before has made of", body->params[0],
                      "");
    return pass_remark(pass, TSSA_REMARK_MISSED, op, "there is no batched form of its body");
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    switch (op->info->id) {
    case IR_OP_Loop:
        return explain_loop(context, op);
    case IR_OP_Scan:
        return explain_scan(context, op);
    case IR_OP_SequenceMap:
        return remark(context, op, "only a run can tell what the elements are of",
                      ir_operand(op, 0), "");
    case IR_OP_If:
        return op->kept
                   ? NULL
                   : remark(context, op, "its condition depends on data:", ir_operand(op, 0), "");
    default:
        return NULL;
    }
}

tssa_status *pass_explain_loops(struct pass_context *pass)
{
    if (!pass->options || !pass->options->remark)
        return NULL;
    return ir_block_walk(pass->graph->body, visit, pass);
}
