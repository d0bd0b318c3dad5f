/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A branch of a loop that writes elements of what is carried, or leaves them as they are, chooses
 * what is written:
 *
 *     u = If(q) { assign(t, v, i){[select(0, $0)]} } { t }
 *       ->   s = If(q) { v } { access(t, i){[select(0, $0)]} }
 *            u = assign(t, s, i){[select(0, $0)]}
 *
 * so that it is told which elements an iteration writes, and all can be computed at once
 * (parallelize). So it is where both sides write the same elements. Where one side does, these are
 * few, and proven to be there: an index may be out of range as long as nobody writes there.
 *
 *   needs   assigns (recover), known elements
 *   keeps   results' bits; what is large, or stands in no loop
 *   breaks  nothing
 */
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "ir/total.h"
#include "passes/analysis/regions.h"
#include "passes/pass.h"

#define MAX_WRITES 16
/* Of a region that both sides write, and of one that is written in any case where one did. */
#define MAX_ELEMENTS 2048
#define MAX_ELEMENTS_ALONE 512
#define MAX_DEPTH 8 /* of the arithmetic of an index that leaves the branch */

/* What one side of a branch makes of a tensor: assigns, the last one first, to what it was. */
struct side {
    struct ir_block *block;
    struct ir_op *writes[MAX_WRITES];
    uint32_t n_writes;
    struct ir_value *base;
};

struct state {
    struct pass_context *pass;
    struct region_space space;
    struct ir_op *branch;
    uint32_t index; /* of the result that is the tensor */
    struct side sides[2];
    const struct side *writer; /* one that writes */
};

static void read_side(struct side *side, struct ir_block *block, uint32_t index)
{
    *side = (struct side){.block = block, .base = ir_operand(ir_block_return(block), index)};
    while (side->base && side->base->op && ir_op_is(side->base->op, IR_OP_assign) &&
           side->base->op->parent == block && side->base->uses && !side->base->uses->next &&
           side->n_writes < MAX_WRITES) {
        side->writes[side->n_writes++] = side->base->op;
        side->base = ir_operand(side->base->op, 0);
    }
}

/* Is it what a loop carries, or what has been written into that since? */
static bool is_carried(const struct ir_value *value)
{
    while (value->op && ir_op_is(value->op, IR_OP_assign))
        value = ir_operand(value->op, 0);
    const struct ir_op *owner = value->op ? NULL : value->block->owner;
    return owner && ir_op_is(owner, IR_OP_Loop) && value->index >= 2;
}

/* Can the value be had in front of the branch: is it there, or made of such without a failure? */
static bool can_leave(const struct ir_value *value, const struct ir_block *block, int depth)
{
    const struct ir_op *op = value->op;
    if (!op || op->parent != block)
        return true;
    if (depth == 0 || op->n_blocks || !ir_op_is_total(op))
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && !can_leave(ir_operand(op, i), block, depth - 1))
            return false;
    return true;
}

static void leave(struct ir_value *value, const struct ir_block *block, struct ir_op *branch)
{
    struct ir_op *op = value->op;
    if (!op || op->parent != block)
        return;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i))
            leave(ir_operand(op, i), block, branch);
    ir_op_move_before(op, branch);
}

/* ---- What is written ------------------------------------------------------------------------- */

/* The type of what the assign writes to; NULL: its size is not known, or it is larger. */
static const struct ir_type *region_type(struct state *s, struct ir_op *assign, int64_t largest)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_type *base = ir_operand(assign, 0)->type;
    int64_t count = 1, size;
    int rank;
    if (base->kind != TYPE_TENSOR || base->rank < 0)
        return NULL;
    tssa_status *status = rule_region_shape(assign, base->rank, base->dims, &rank, dims);
    bool known = !status && rank >= 0;
    tssa_status_free(status);
    for (int i = 0; known && i < rank; i++)
        known = dim_is_const(dims[i], &size) && size <= largest && (count *= size) <= largest;
    return known ? type_tensor(&s->pass->graph->types, base->dtype, rank, dims) : NULL;
}

static bool is_candidate(struct state *s, struct ir_op *assign, bool alone)
{
    const struct ir_type *type = region_type(s, assign, alone ? MAX_ELEMENTS_ALONE : MAX_ELEMENTS);
    if (!type || ir_operand(assign, 1)->type != type ||
        (alone && !region_never_fails_in_loops(assign)))
        return false;
    for (uint32_t i = rule_first_operand(assign); i < assign->n_operands; i++)
        if (!can_leave(ir_operand(assign, i), assign->parent, MAX_DEPTH))
            return false;
    return true;
}

/* Do both sides, or one of them, write elements that are the same whatever is chosen? */
static bool is_written(struct state *s)
{
    struct side *a = &s->sides[0], *b = &s->sides[1];
    if (!a->base || a->base != b->base || !is_carried(a->base) || a->n_writes + b->n_writes == 0 ||
        (a->n_writes && b->n_writes && a->n_writes != b->n_writes))
        return false;
    s->writer = a->n_writes ? a : b;
    for (uint32_t i = 0; i < s->writer->n_writes; i++) {
        bool both = a->n_writes && b->n_writes;
        if (!is_candidate(s, s->writer->writes[i], !both) ||
            (both && (!is_candidate(s, b->writes[i], false) ||
                      !regions_identical(&s->space, a->writes[i], b->writes[i]))))
            return false;
    }
    return true;
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

static struct ir_value *const *params_of(const struct ir_op *assign, struct ir_value **params)
{
    for (uint32_t i = rule_first_operand(assign); i < assign->n_operands; i++)
        params[i - rule_first_operand(assign)] = ir_operand(assign, i);
    return params;
}

/* What a side writes, first to last, becomes what it returns behind all else; where it does not
 * write, what is there. */
static tssa_status *return_written(struct state *s, const struct side *side)
{
    struct ir_value *params[IR_VARIADIC];
    struct ir_op *ret = ir_block_return(side->block);
    for (uint32_t i = s->writer->n_writes; i-- > 0;) {
        const struct ir_op *assign = s->writer->writes[i];
        if (side->n_writes) {
            TRY_ALLOC(ir_op_add_operand(ret, ir_operand(side->writes[i], 1)) ? side : NULL);
            continue;
        }
        struct ir_op *access = rule_access_create(s->pass->graph, side->base, rule_of(assign),
                                                  assign->n_operands - rule_first_operand(assign),
                                                  params_of(assign, params));
        TRY_ALLOC(access);
        access->name = assign->name;
        ir_op_insert_before(access, ret);
        TRY(ir_infer_op_lenient(access));
        TRY_ALLOC(ir_op_add_operand(ret, &access->results[0]) ? side : NULL);
    }
    return NULL;
}

/* The branch gives what is written as well, as results from n on. */
static tssa_status *widen_branch(struct state *s, uint32_t n)
{
    struct ir_op *branch = s->branch;
    uint32_t count = n + s->writer->n_writes;
    uint32_t *from = ARENA_ARRAY(&s->pass->graph->arena, uint32_t, count);
    TRY_ALLOC(from);
    for (uint32_t i = 0; i < count; i++)
        from[i] = i < n ? i : IR_FRESH;
    for (uint32_t b = 0; b < 2; b++)
        TRY(return_written(s, &s->sides[b]));
    if (!ir_op_set_results(branch, count, from))
        return status_out_of_memory();
    return ir_infer_op_lenient(branch);
}

/* The same assigns behind the branch; what they make is the result from now on. */
static tssa_status *write_behind(struct state *s, uint32_t n)
{
    struct ir_value *params[IR_VARIADIC], *written = s->writer->base;
    struct ir_value *result = &s->branch->results[s->index];
    struct ir_op *next = s->branch->next;
    for (uint32_t i = s->writer->n_writes, k = n; i-- > 0; k++) {
        const struct ir_op *assign = s->writer->writes[i];
        struct ir_op *made = rule_assign_create(
            s->pass->graph, written, &s->branch->results[k], rule_of(assign),
            assign->n_operands - rule_first_operand(assign), params_of(assign, params));
        TRY_ALLOC(made);
        made->name = assign->name;
        ir_op_insert_before(made, next);
        TRY(ir_infer_op_lenient(made));
        written = &made->results[0];
    }
    ir_value_replace(result, written);
    written->name = result->name;
    result->name = NULL;
    return NULL;
}

static tssa_status *drop_result(struct state *s)
{
    bool *drop = ARENA_ARRAY(&s->pass->graph->arena, bool, s->branch->n_results);
    TRY_ALLOC(drop);
    for (uint32_t i = 0; i < s->branch->n_results; i++)
        drop[i] = i == s->index;
    if (!ir_control_drop_results(s->branch, drop))
        return status_out_of_memory();
    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t i = 0; i < s->sides[b].n_writes; i++)
            ir_op_remove(s->sides[b].writes[i]);
    return NULL;
}

static tssa_status *rewrite(struct state *s)
{
    uint32_t n = s->branch->n_results;
    for (uint32_t i = 0; i < s->writer->n_writes; i++) {
        const struct ir_op *assign = s->writer->writes[i];
        for (uint32_t k = rule_first_operand(assign); k < assign->n_operands; k++)
            leave(ir_operand(assign, k), s->writer->block, s->branch);
    }
    TRY(widen_branch(s, n));
    TRY(write_behind(s, n));
    TRY(drop_result(s));
    s->pass->changed = true;
    return pass_remark(s->pass, TSSA_REMARK_APPLIED, s->branch,
                       "chooses what is written, in the place of whether it is");
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct state *s = context;
    if (!ir_op_is(op, IR_OP_If) || op->n_blocks != 2)
        return NULL;
    s->branch = op;
    for (s->index = 0; s->index < op->n_results; s->index++) {
        read_side(&s->sides[0], op->blocks[0], s->index);
        read_side(&s->sides[1], op->blocks[1], s->index);
        if (is_written(s))
            return rewrite(s); /* the next one in the next round */
    }
    return NULL;
}

tssa_status *pass_branch_writes(struct pass_context *pass)
{
    struct state state = {.pass = pass};
    region_space_init(&state.space, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &state);
    region_space_free(&state.space);
    return status;
}
