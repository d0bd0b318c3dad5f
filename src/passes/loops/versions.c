/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops/versions.h"

#include "ir/infer.h"
#include "passes/loops/branch.h"
#include "passes/loops/dim_value.h"

#define BYTES_OF_OP 100 /* of a node in a file, about */

bool versions_has(const struct ir_op *loop)
{
    const struct ir_op *owner = loop->parent->owner;
    return owner && ir_op_is(owner, IR_OP_If) && owner->kept;
}

static tssa_status *add_bytes(void *bytes, struct ir_op *op)
{
    const struct tensor *constant = op->n_results > 0 ? ir_value_constant(&op->results[0]) : NULL;
    *(int64_t *)bytes += BYTES_OF_OP + (constant ? (int64_t)tensor_bytes(constant) : 0);
    return NULL;
}

static int64_t body_bytes(const struct loop *loop)
{
    int64_t bytes = 0;
    tssa_status_free(ir_block_walk(loop->body, add_bytes, &bytes));
    return bytes;
}

bool versions_fit(const struct pass_context *pass, const struct loop *loop)
{
    return pass_is_for_session(pass) ||
           pass->graph->folded_growth + body_bytes(loop) <= pass_file_growth(pass);
}

tssa_status *versions_ask(struct batch *batch, const struct loop *loop,
                          const struct choice_rows *rows, struct ir_value **question)
{
    struct ir_value *elements = dim_value_bound(batch, loop, rows->elements);
    *question = elements
                    ? batch_binary(batch, IR_OP_Less, elements, batch_number(batch, rows->too_long))
                    : NULL;
    if (*question && rows->trips->low < rows->least_trips)
        *question = batch_binary(batch, IR_OP_And, *question,
                                 batch_binary(batch, IR_OP_Greater, batch->trips,
                                              batch_number(batch, rows->least_trips - 1)));
    return batch->status;
}

tssa_status *versions_create(struct pass_context *pass, const struct loop *loop,
                             struct ir_value *question, struct ir_value *trips,
                             const struct ir_op *begun, struct ir_value *const *results)
{
    struct ir_op *branch, *op = loop->op;
    struct arena *arena = &pass->graph->arena;
    uint32_t *kept = ARENA_ARRAY(arena, uint32_t, op->n_results);
    struct ir_value **left = ARENA_ARRAY(arena, struct ir_value *, op->n_results);
    TRY_ALLOC(kept);
    TRY_ALLOC(left);
    for (uint32_t i = 0; i < op->n_results; i++)
        left[i] = &op->results[i];
    TRY(branch_create(loop, question, &branch, kept));
    branch_fill(branch, 0, begun, branch, results, kept);
    ir_op_set_operand(op, 0, trips);
    branch_fill(branch, 1, branch, op->next, left, kept);
    op->kept = true;
    branch->kept = true;
    pass->graph->folded_growth += body_bytes(loop);
    pass->changed = true;
    TRY(ir_infer_op_lenient(op));
    return ir_infer_op_lenient(branch);
}

/* ---- Few iterations and many ----------------------------------------------------------------- */

static struct ir_value *ask_few(struct batch *batch, bool some)
{
    struct ir_value *few =
        batch_binary(batch, IR_OP_Less, batch->trips, batch_number(batch, CHOICE_MANY));
    if (!some || batch->n_trips->low > 0)
        return few;
    return batch_binary(batch, IR_OP_And, few,
                        batch_binary(batch, IR_OP_Greater, batch->trips, batch_number(batch, 0)));
}

tssa_status *versions_split(struct batch *batch, const struct loop *loop,
                            const struct versions_few *few)
{
    struct ir_op *branch, *op = loop->op, *end = op->prev;
    uint32_t *kept = ARENA_ARRAY(&batch->graph->arena, uint32_t, op->n_results);
    struct ir_value *question = ask_few(batch, few->some);
    TRY(batch->status);
    TRY_ALLOC(kept);
    TRY_ALLOC(question);
    TRY(branch_create(loop, question, &branch, kept));
    branch_fill(branch, 0, few->begun, few->last->next, few->at_once, kept);
    branch_fill(branch, 1, few->begun, end->next, few->in_blocks, kept);
    batch->graph->folded_growth += body_bytes(loop);
    batch->pass->changed = true;
    ir_release_blocks(op);
    ir_op_remove(op);
    return ir_infer_op_lenient(branch);
}
