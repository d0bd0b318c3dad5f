/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks what stands before a loop for its shape, where what the loop makes of it has the same one in
 * every iteration: a tensor that is carried and written into, say.
 *
 *     Loop(n, _, x) { (i, c, t): k = Shape(t), t1 = assign(t, v, Mod(i, k[0])), return(c, t1) }
 *     k = Shape(x), Loop(n, _, x) { (i, c, t): t1 = assign(t, v, Mod(i, k[0])), return(c, t1) }
 *
 * The tensor is only written then, and an index that is counted by its size does not wait for the
 * iteration before. Where only some sizes stay the same, those are asked for that a Gather takes.
 *
 *   needs   types
 *   keeps   types, known elements
 *   breaks  what was only asked for its shape loses its uses (dead_code)
 */
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/rebuild.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"

/* Steps that the value's shape is followed back. */
#define FARTHEST 6

/* Which sizes are asked for. */
struct sizes {
    const struct ir_op *loop; /* the innermost one around the question */
    int first, end;
};

static bool has_rank(const struct ir_type *type)
{
    return type->kind == TYPE_TENSOR && type->rank >= 0;
}

static bool same_sizes(const struct sizes *sizes, const struct ir_type *a, const struct ir_type *b)
{
    if (!has_rank(a) || !has_rank(b) || a->rank != b->rank)
        return false;
    for (int i = sizes->first; i < sizes->end; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

static const struct ir_op *innermost_loop(const struct ir_block *block)
{
    const struct ir_op *op = block->owner;
    while (op && !ir_op_is_loop(op))
        op = op->parent->owner;
    return op;
}

static bool is_outside(const struct ir_op *loop, const struct ir_value *value)
{
    const struct ir_block *block = value->op ? value->op->parent : value->block;
    while (block && block != loop->blocks[0])
        block = block->owner ? block->owner->parent : NULL;
    return block == NULL;
}

/* What a loop is given as this parameter of its body; NULL: it is none that is carried. */
static struct ir_value *given(const struct ir_value *param)
{
    const struct ir_op *op = param->block->owner;
    if (!op || !ir_op_is_loop(op))
        return NULL;
    uint32_t first = ir_loop_param(op, 0);
    if (param->index < first || param->index >= first + ir_loop_carried(op))
        return NULL;
    return ir_operand(op, ir_loop_operand(op, param->index - first));
}

/* Can the op's result have the shape of an operand? */
static bool may_keep_shape(const struct ir_op *op)
{
    return op->info->ew || ir_op_is(op, IR_OP_assign) || ir_op_is(op, IR_OP_ScatterND) ||
           ir_op_is(op, IR_OP_ScatterElements) || (op->info->flags & IR_ALIAS);
}

/* The value with these sizes that stands before the loop, as far out as there is one; else NULL. */
static struct ir_value *find(const struct sizes *sizes, struct ir_value *value, int steps)
{
    bool outside = is_outside(sizes->loop, value);
    struct ir_value *found = NULL;
    if (!value->op) {
        struct ir_value *before = given(value);
        if (before && steps > 0 && same_sizes(sizes, value->type, before->type))
            found = find(sizes, before, steps - 1);
    }
    for (uint32_t i = 0; value->op && !outside && !found && steps > 0 && i < value->op->n_operands;
         i++) {
        struct ir_value *operand = ir_operand(value->op, i);
        if (operand && may_keep_shape(value->op) && same_sizes(sizes, value->type, operand->type))
            found = find(sizes, operand, steps - 1);
    }
    return found ? found : outside ? value : NULL;
}

/* What the op asks of a value of this rank. */
static void read_range(const struct ir_op *op, int rank, struct sizes *sizes)
{
    int64_t start = ir_attr_int(op, "start", 0), end = ir_attr_int(op, "end", rank);
    start += start < 0 ? rank : 0;
    end += end < 0 ? rank : 0;
    sizes->first = start < 0 ? 0 : start > rank ? rank : (int)start;
    sizes->end = end < 0 ? 0 : end > rank ? rank : (int)end;
}

/* Gather(Shape(t), k): asks for one of the sizes alone. */
static tssa_status *ask_for_one(struct pass_context *pass, struct ir_op *op, struct ir_op *gather,
                                struct sizes sizes)
{
    int64_t index;
    int count = sizes.end - sizes.first;
    if (!ir_op_is(gather, IR_OP_Gather) || ir_operand(gather, 0) != &op->results[0] ||
        !loop_known_int(ir_operand(gather, 1), &index) || index < -count || index >= count)
        return NULL;
    sizes.first += (int)index + (index < 0 ? count : 0);
    sizes.end = sizes.first + 1;
    struct ir_value *found = find(&sizes, ir_operand(op, 0), FARTHEST);
    if (!found)
        return NULL;
    struct ir_cloner cloner;
    ir_cloner_init(&cloner, pass->graph);
    struct ir_op *shape = ir_clone_op(&cloner, op);
    ir_cloner_free(&cloner);
    TRY_ALLOC(shape);
    ir_op_set_operand(shape, 0, found);
    TRY(pass_insert(shape, op));
    ir_op_set_operand(gather, 0, &shape->results[0]);
    pass->changed = true;
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct ir_value *value = ir_operand(op, 0);
    if (!(ir_op_is(op, IR_OP_Shape) || ir_op_is(op, IR_OP_Size)) || !value ||
        !has_rank(value->type))
        return NULL;
    struct sizes sizes = {.loop = innermost_loop(op->parent)};
    if (!sizes.loop || ir_fuse_is_inside(op) || is_outside(sizes.loop, value))
        return NULL;
    read_range(op, value->type->rank, &sizes);
    struct ir_value *found = find(&sizes, value, FARTHEST);
    if (found) {
        ir_op_set_operand(op, 0, found);
        pass->changed = true;
        return NULL;
    }
    for (struct ir_use *use = op->results[0].uses, *next; use; use = next) {
        next = use->next;
        TRY(ask_for_one(pass, op, use->user, sizes));
    }
    return NULL;
}

tssa_status *pass_outer_shapes(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
