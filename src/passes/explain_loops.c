/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says, for each loop and branch that is left, why it is: one remark each, which names the value that stands
 * in the way. Changes nothing; runs last.
 *
 *   needs   nothing
 *   keeps   everything
 *   breaks  nothing
 */
#include "base/vec.h"
#include "passes/loops.h"
#include "passes/pass.h"

/* ---- Names ---------------------------------------------------------------------------------------- */

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

/* ---- What an iteration needs of the one before ---------------------------------------------------- */

struct search {
    VEC(struct ir_value *) queue;
    bool *seen; /* by id */
};

static bool push(struct search *search, struct ir_value *value)
{
    if (search->seen[value->id])
        return true;
    search->seen[value->id] = true;
    return vec_push(&search->queue, value);
}

/* The values that an op makes, and, of an op that ends a block, those of the block's owner. */
static bool push_results(struct search *search, const struct loop *loop, struct ir_op *op)
{
    struct ir_op *owner = op;
    if (ir_op_is(op, IR_OP_return) && op != loop->ret)
        owner = op->parent->owner;
    for (uint32_t i = 0; i < owner->n_results; i++)
        if (!push(search, &owner->results[i]))
            return false;
    for (uint32_t b = 0; b < op->n_blocks; b++)
        for (uint32_t i = 0; i < op->blocks[b]->n_params; i++)
            if (!push(search, op->blocks[b]->params[i]))
                return false;
    return true;
}

/* Marks everything that depends on a value. */
static tssa_status *reach(struct search *search, const struct loop *loop, struct ir_value *from)
{
    bool memory = push(search, from);
    for (size_t i = 0; memory && i < search->queue.count; i++)
        for (struct ir_use *use = search->queue.data[i]->uses; memory && use; use = use->next)
            if (use->user != loop->ret)
                memory = push_results(search, loop, use->user);
    return memory ? NULL : status_out_of_memory();
}

/* The first carried value that an iteration computes from its value before; NULL: none. */
static tssa_status *find_recurrence(struct pass_context *pass, const struct loop *loop,
                                    const struct ir_value **found)
{
    const struct ir_graph *graph = pass->graph;
    struct search search = {.queue = VEC_INIT(graph->allocator)};
    tssa_status *status = NULL;
    *found = NULL;
    search.seen = allocator_calloc(graph->allocator, graph->n_values + 1u, sizeof *search.seen);
    TRY_ALLOC(search.seen);
    for (uint32_t k = 0; k < loop->n_carried && !status && !*found; k++) {
        struct ir_value *next = loop_next(loop, k);
        for (size_t i = 0; i < search.queue.count; i++)
            search.seen[search.queue.data[i]->id] = false;
        search.queue.count = 0;
        status = reach(&search, loop, loop_param(loop, k));
        if (next && search.seen[next->id])
            *found = loop_param(loop, k);
    }
    vec_free(&search.queue);
    allocator_free(graph->allocator, search.seen);
    return status;
}

/* ---- Loops and branches --------------------------------------------------------------------------- */

static tssa_status *explain_loop(struct pass_context *pass, struct ir_op *op)
{
    struct loop loop = loop_of(op);
    const struct ir_value *value;
    int64_t trips;
    TRY(find_recurrence(pass, &loop, &value));
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
        return remark(context, op, "its condition depends on data:", ir_operand(op, 0), "");
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
