/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nobody waits for how many a mask keeps where there is room for all of them:
 *
 *     n = NonZero(s > 0.05), v = s[n]              v = TopK(Where(s > 0.05, s, -inf), 100)
 *     v, i = TopK(v, min(100, size(n)))       ->   valid = v > -inf
 *     y = f(x[n[i]])                               y = f(x[i])
 *     NonMaxSuppression(y, v)                      NonMaxSuppression(y, Where(valid, v, nan))
 *
 * A device's host must know how many elements there are before it goes on; of what it computes for
 * as many as there may be, it need not. What is kept is then a set of which a mask says which
 * elements are there (bound_lists.h), and what is computed of it is computed of all, up to where it
 * does not matter any more which are there: the highest of all, which others do not change that are
 * -inf; a NonMaxSuppression, of which none is a candidate whose score is NaN; another NonZero. What
 * reads by the places that these find reads the same from more.
 *
 * It is done for what is computed element by element, views, regions along other axes, gathers by
 * the numbers of what is kept, Concats, and a TopK of up to 1,024 elements of which the mask has
 * said that they are more than a number; of masks of up to 32,768 elements, for up to 2^21 elements
 * of a value, and 16,384 boxes.
 * Either all that is computed of a NonZero goes so, or nothing: else both would be computed.
 *
 *   needs   types, known elements, a table of what kernels take, else nothing is done
 *   keeps   results' bits; what is read by numbers is read where they are in range
 *   breaks  sizes have other names (infer); what is not needed any more stays (dead_code)
 */
#include "passes/lower/bound_lists.h"

#include "ir/fuse.h"

/* ---- Is all of it there? --------------------------------------------------------------------- */

static bool is_taken(struct bounding *b, const struct ir_op *op, uint32_t root);

static bool are_uses_taken(struct bounding *b, const struct ir_value *value, uint32_t root)
{
    for (const struct ir_use *use = value->uses; use; use = use->next)
        if (use->user->id < b->n_ops && !is_taken(b, use->user, root))
            return false;
    return true;
}

/* Does nothing that is computed of it need to know what is kept? What was seen before of the root
 * does not, or somebody has said so. */
static bool is_taken(struct bounding *b, const struct ir_op *op, uint32_t root)
{
    const enum bound_role role = op->parent == b->block ? b->roles[op->id] : BOUND_OTHER;
    if (b->seen[op->id] == root + 1)
        return true;
    b->seen[op->id] = root + 1;
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_value *result = &op->results[i];
        if (role == BOUND_OTHER
                ? result->uses != NULL
                : bound_of(b, result)->kind != BOUND_NOTHING && !are_uses_taken(b, result, root))
            return false;
    }
    return op->n_results > 0;
}

/* Those of which not all is there, and what is computed with them of others. */
static uint64_t find_refused(struct bounding *b)
{
    uint64_t refused = 0, before;
    for (uint32_t i = 0; i < b->n_roots; i++)
        if (!are_uses_taken(b, &b->finders[i]->results[0], i))
            refused |= UINT64_C(1) << i;
    do {
        before = refused;
        for (size_t i = 0; i < b->ends.count; i++)
            if (b->ends.data[i].roots & refused)
                refused |= b->ends.data[i].roots;
    } while (refused != before);
    return refused;
}

/* ---- All ------------------------------------------------------------------------------------- */

static tssa_status *give(struct bounding *b)
{
    const uint64_t refused = find_refused(b);
    for (size_t i = 0; i < b->ends.count; i++) {
        const struct bound_end *end = &b->ends.data[i];
        if (end->roots & refused)
            continue;
        ir_op_set_operand(end->op, end->operand, end->value);
        b->pass->changed = true;
    }
    for (uint32_t i = 0; i < b->n_roots; i++)
        TRY(pass_remark(b->pass, refused >> i & 1 ? TSSA_REMARK_MISSED : TSSA_REMARK_APPLIED,
                        b->finders[i],
                        refused >> i & 1 ? "something must know how many are kept"
                                         : "there is room for all that may be kept"));
    return NULL;
}

/* What was made for those that are refused nobody uses. */
static void remove_unused(struct bounding *b)
{
    struct ir_op *before;
    for (struct ir_op *op = b->block->last; op; op = before) {
        bool used = op->id < b->n_ops;
        before = op->prev;
        for (uint32_t i = 0; i < op->n_results; i++)
            used |= op->results[i].uses != NULL;
        if (!used)
            ir_op_remove(op);
    }
}

static tssa_status *visit_all(struct bounding *b)
{
    for (struct ir_op *op = b->block->first; op->next; op = op->next)
        TRY(bound_visit(b, op));
    TRY(give(b));
    remove_unused(b);
    return NULL;
}

static bool has_finder(const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op; op = op->next)
        if (ir_op_is(op, IR_OP_NonZero))
            return true;
    return false;
}

static tssa_status *bound_block(struct pass_context *pass, struct ir_block *block)
{
    struct ir_graph *graph = pass->graph;
    struct bounding b = {
        .pass = pass, .block = block, .n_ops = graph->n_ops, .n_values = graph->n_values};
    b.values = allocator_calloc(graph->allocator, b.n_values + 1u, sizeof *b.values);
    b.seen = allocator_calloc(graph->allocator, b.n_ops + 1u, sizeof *b.seen);
    b.roles = allocator_calloc(graph->allocator, b.n_ops + 1u, sizeof *b.roles);
    vec_init(&b.sets, graph->allocator);
    vec_init(&b.ends, graph->allocator);
    ir_cloner_init(&b.cloner, graph);
    tssa_status *status = b.values && b.roles && b.seen ? visit_all(&b) : status_out_of_memory();
    ir_cloner_free(&b.cloner);
    vec_free(&b.ends);
    vec_free(&b.sets);
    allocator_free(graph->allocator, b.seen);
    allocator_free(graph->allocator, b.roles);
    allocator_free(graph->allocator, b.values);
    return status;
}

/* Of the graph alone: what a loop or a branch holds has its own time. */
tssa_status *pass_bound_lists(struct pass_context *pass)
{
    struct ir_block *block = pass->graph->body;
    return pass->fusion && (pass->fusion->classes & IR_FUSES_LISTS) &&
                   !ir_block_is_imperative(block) && has_finder(block)
               ? bound_block(pass, block)
               : NULL;
}
