/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RNN, GRU and LSTM as loops and products, where the device has no kernel of them
 * (ir_fusion.expands):
 *
 *     y = LSTM(x, w, r, b)
 *     ->
 *     sums = MatMul(x, w turned) + biases          products with all inputs at once
 *     h, c, y = Loop(T, _, h0, c0) { (i, go, h, c):
 *         gates = sums[i] + MatMul(h, r turned)
 *         c1 = forget * c + in * candidate, ...    element-wise: one kernel with the product
 *         return(go, h1, c1, h1) }
 *
 * One loop goes in both directions, so that a kernel may; a reversed one reads its inputs from
 * behind, and what it stacks is turned around. Sequences that end earlier keep their states by
 * Where. Float16 and bfloat16 are computed in float32, states included, as the host's kernels do
 * it. Weights that are constants are turned once, up to 64 MiB each, others in every run.
 *
 * What is left, with a remark: operands whose sizes are not known (those of X may be unknown but
 * for its last axis, and those of initial states must be the same), or are no numbers that the
 * operator allows; no step, sequence or element; bounds below 0; more than 2^28 products with W.
 *
 *   needs   types
 *   keeps   bits of all that is element-wise: sums of products are the device's (docs/numerics.md)
 *   breaks  nothing
 */
#include "passes/lower/expand_recurrent.h"

#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/promotion.h"

#define MOST_PRODUCTS ((int64_t)1 << 28)

/* ---- What can be expanded -------------------------------------------------------------------- */

static bool is_tensor(const struct ir_value *x, tssa_dtype dtype, int rank)
{
    return x->type->kind == TYPE_TENSOR && x->type->rank == rank && x->type->dtype == dtype;
}

static bool has_size(const struct ir_value *x, int axis, int64_t size)
{
    int64_t known;
    return dim_is_const(x->type->dims[axis], &known) && known == size;
}

/* An operand that may be absent: [D, count]. */
static bool is_row(const struct expansion *e, uint32_t operand, int64_t count)
{
    const struct ir_value *x = ir_operand(e->op, operand);
    return !x || (is_tensor(x, ir_operand(e->op, RECURRENT_X)->type->dtype, 2) &&
                  has_size(x, 0, e->attrs.directions) && has_size(x, 1, count));
}

/* W or R. */
static bool is_weight(const struct expansion *e, uint32_t operand, int64_t depth)
{
    const struct ir_value *x = ir_operand(e->op, operand);
    return is_tensor(x, ir_operand(e->op, RECURRENT_X)->type->dtype, 3) &&
           has_size(x, 0, e->attrs.directions) && has_size(x, 1, e->width) && has_size(x, 2, depth);
}

static const struct dim *batch_dim(const struct expansion *e)
{
    return ir_operand(e->op, RECURRENT_X)->type->dims[e->attrs.batch_first ? 0 : 1];
}

static bool is_state(const struct expansion *e, uint32_t operand)
{
    const struct ir_value *x = ir_operand(e->op, operand);
    const bool batch_first = e->attrs.batch_first;
    return !x ||
           (is_tensor(x, ir_operand(e->op, RECURRENT_X)->type->dtype, 3) &&
            x->type->dims[batch_first ? 0 : 1] == batch_dim(e) &&
            has_size(x, batch_first ? 1 : 0, e->attrs.directions) && has_size(x, 2, e->hidden));
}

static bool is_lengths(const struct expansion *e)
{
    const struct ir_value *x = ir_operand(e->op, RECURRENT_LENGTHS);
    return !x || (is_tensor(x, x->type->dtype, 1) && dtype_is_integer(x->type->dtype) &&
                  x->type->dims[0] == batch_dim(e));
}

static bool may_be_empty(const struct ir_value *x)
{
    int64_t size;
    for (int i = 0; i < x->type->rank; i++)
        if (dim_is_const(x->type->dims[i], &size) && size == 0)
            return true;
    return false;
}

/* Are there more products of inputs and W than may lie there at once, where that is known? The
 * host's kernels have those of some steps only. */
static bool are_too_many(const struct expansion *e)
{
    const struct ir_type *x = ir_operand(e->op, RECURRENT_X)->type;
    int64_t count = e->attrs.directions, size;
    for (int i = 0; i < 2; i++)
        if (dim_is_const(x->dims[i], &size) && !i64_mul(count, size, &count))
            return true;
    return !i64_mul(count, e->width, &count) || count > MOST_PRODUCTS;
}

/* Sets the sizes. Why it stays as it is; NULL: it need not. */
static const char *read_sizes(struct expansion *e)
{
    const struct ir_value *x = ir_operand(e->op, RECURRENT_X), *r = ir_operand(e->op, RECURRENT_R);
    if (!x || !r || !ir_operand(e->op, RECURRENT_W) || x->type->kind != TYPE_TENSOR ||
        !dtype_in(e->op->info->types, x->type->dtype) || !is_tensor(x, x->type->dtype, 3) ||
        !is_tensor(r, x->type->dtype, 3) || !dim_is_const(x->type->dims[2], &e->input) ||
        !dim_is_const(r->type->dims[2], &e->hidden))
        return "the sizes of its input or of its weights are not known";
    if (may_be_empty(x) || may_be_empty(r))
        return "there is nothing to compute";
    if (e->hidden > INT32_MAX || e->input > INT32_MAX ||
        (e->attrs.hidden && e->attrs.hidden != e->hidden))
        return "its weights are not of the size that it names";
    e->width = e->cell->gates * e->hidden;
    e->dtype = computed_in(x->type->dtype);
    return NULL;
}

/* The same of the operands. */
static const char *find_obstacle(struct expansion *e)
{
    const char *why = read_sizes(e);
    const bool is_lstm = e->cell->kind == RECURRENT_LSTM;
    if (why)
        return why;
    if (!is_weight(e, RECURRENT_W, e->input) || !is_weight(e, RECURRENT_R, e->hidden) ||
        !is_row(e, RECURRENT_B, 2 * e->width) ||
        (is_lstm && !is_row(e, RECURRENT_P, 3 * e->hidden)))
        return "its weights are not known to be of the sizes that they must have";
    if (!is_state(e, RECURRENT_H0) || (is_lstm && !is_state(e, RECURRENT_C0)) || !is_lengths(e))
        return "its states or lengths are not known to be as many as sequences";
    if (e->attrs.clip < 0)
        return "it clips to less than nothing";
    if (are_too_many(e))
        return "the products of all its inputs would take more than a GiB";
    return NULL;
}

/* ---- Results --------------------------------------------------------------------------------- */

/* A direction's result, with an axis for directions. */
static struct ir_value *lay_out(struct expansion *e, struct ir_value *x, bool all, bool reversed)
{
    struct rule_draft draft;
    const int axis = (e->attrs.batch_first ? 1 : 0) + (all ? 1 : 0);
    draft_begin(&draft, RULE_EXACT);
    if (all && reversed)
        draft_slice(&draft, 0, -1, INT64_MIN, -1);
    if (all && e->attrs.batch_first)
        draft_step(&draft, RULE_PERMUTE, 3, (const int64_t[]){1, 0, 2});
    draft_step(&draft, RULE_UNSQUEEZE, 1, (const int64_t[]){axis});
    return expand_access(e, &e->maker, x, &draft);
}

/* All directions of result `index`: in the place of the op's. */
static void put_result(struct expansion *e, uint32_t index, struct ir_value *const *parts)
{
    struct ir_value *result = ir_result(e->op, index), *made = parts[0];
    const int axis = (e->attrs.batch_first ? 1 : 0) + (index == 0 ? 1 : 0);
    if (!result || !result->wanted || !result->uses)
        return;
    if (e->attrs.directions > 1)
        made = pass_make_with(&e->maker, IR_OP_Concat, parts[0], parts[1], "axis", axis);
    made = expand_cast(e, made, result->type->dtype);
    pass_put_result(&e->maker, result, made);
}

static void expand(struct expansion *e)
{
    struct direction directions[RECURRENT_MAX_DIRECTIONS];
    struct last last[RECURRENT_MAX_DIRECTIONS] = {{NULL, NULL, NULL}};
    struct ir_value *parts[3][RECURRENT_MAX_DIRECTIONS] = {{NULL}};
    expand_operands(e);
    for (int64_t i = 0; i < e->attrs.directions; i++)
        expand_direction(e, i, &directions[i]);
    expand_loop(e, directions, last);
    for (int64_t i = 0; i < e->attrs.directions; i++) {
        if (last[i].y)
            parts[0][i] = lay_out(e, last[i].y, true, directions[i].reversed);
        parts[1][i] = lay_out(e, last[i].h, false, false);
        if (last[i].c)
            parts[2][i] = lay_out(e, last[i].c, false, false);
    }
    for (uint32_t i = 0; i < 3; i++)
        put_result(e, i, parts[i]);
}

/* ---- The pass -------------------------------------------------------------------------------- */

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct expansion e = {.pass = pass,
                          .op = op,
                          .cell = recurrent_cell_of(op),
                          .maker = {.at = op, .graph = pass->graph}};
    if (!e.cell || !ir_op_is_used(op))
        return NULL;
    tssa_status *status = recurrent_decode(op, e.cell, &e.attrs);
    const char *why = status ? "its attributes are not understood" : find_obstacle(&e);
    tssa_status_free(status);
    if (why)
        return pass_remark(pass, TSSA_REMARK_MISSED, op, "runs as one operator: %s", why);
    expand(&e);
    TRY(e.maker.status);
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op, "is a loop over its steps, and products"));
    ir_op_remove(op);
    pass->changed = true;
    return NULL;
}

tssa_status *pass_expand_recurrent(struct pass_context *pass)
{
    if (!pass->fusion || !pass->fusion->expands)
        return NULL;
    return ir_block_walk(pass->graph->body, visit, pass);
}
