/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor that every iteration of a loop appends a row to, and that the loop does not read, is an
 * output that the loop stacks:
 *
 *     Loop(n, c, init) { (i, c, t): ... t1 = Concat(t, row); return(c, t1) }
 *     rows = Loop(n, c) { (i, c): ... return(c, Squeeze(row)) },  then Concat(init, rows)
 *
 * so that no iteration copies the rows before. All rows have one shape, or the Concat would fail.
 *
 *   needs   types
 *   keeps   types
 *   breaks  the value is still carried, unchanged (carried_values)
 */
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "ir/total.h"
#include "passes/analysis/loops.h"
#include "passes/lower/lower.h"

struct append {
    uint32_t carried;
    struct ir_value *row;
    int axis;
};

static bool read_append(const struct loop *loop, uint32_t k, struct append *append)
{
    const struct ir_value *init = loop_initial(loop, k), *next = loop_next(loop, k);
    const struct ir_op *concat = next ? next->op : NULL;
    if (!init || !concat || !ir_op_is(concat, IR_OP_Concat) || concat->parent != loop->body ||
        concat->n_operands != 2 || !loop_is_only_use(loop_param(loop, k), concat, 0) ||
        !loop_is_only_use(next, loop->ret, k + 1))
        return false;
    *append = (struct append){.carried = k, .row = ir_operand(concat, 1)};
    int rank = lower_rank(append->row);
    return rank >= 1 && append->row->type->dtype != TSSA_UNDEFINED && lower_rank(init) == rank &&
           append->row->type->dtype == init->type->dtype &&
           infer_find_axis(ir_op_axis(concat), rank, &append->axis) &&
           dim_is(append->row->type->dims[append->axis], 1);
}

/* The loop gets an output for the row, and carries the value as it was. */
static tssa_status *add_output(struct pass_context *pass, const struct loop *loop,
                               const struct append *append)
{
    struct lowering l = {
        .pass = pass, .graph = pass->graph, .op = loop_next(loop, append->carried)->op};
    uint32_t n = loop->op->n_results;
    uint32_t *from = ARENA_ARRAY(&pass->graph->arena, uint32_t, (size_t)n + 1);
    struct ir_value *row = lower_squeeze(&l, append->row, 1, (const int64_t[]){append->axis});
    if (l.status)
        return l.status;
    TRY_ALLOC(from);
    for (uint32_t i = 0; i <= n; i++)
        from[i] = i < n ? i : IR_FRESH;
    ir_op_set_operand(loop->ret, append->carried + 1, loop_param(loop, append->carried));
    ir_op_remove(l.op);
    if (!ir_op_add_operand(loop->ret, row) || !ir_op_set_results(loop->op, n + 1, from))
        return status_out_of_memory();
    return ir_infer_op_lenient(loop->op);
}

/* The rows with the shape that they have where there are any: of none, runtimes do not know it. */
static struct ir_value *shape_rows(struct lowering *l, struct ir_value *rows, struct ir_value *init,
                                   int axis)
{
    struct lower_shape shape = {.rank = lower_rank(init), .dims[0] = lower_dim(l, rows, 0)};
    for (int i = 0, k = 1; i < shape.rank; i++)
        if (i != axis)
            shape.dims[k++] = lower_dim(l, init, i);
    /* A dim of 0 stands for the one in its place, which is 0 as well. */
    struct ir_value *const operands[] = {rows, lower_numbers(l, shape.rank, shape.dims)};
    return lower_emit(l, IR_OP_Reshape, 2, operands);
}

/* Behind the loop: what it was given, and the rows along the axis. */
static tssa_status *join(struct pass_context *pass, const struct loop *loop,
                         const struct append *append)
{
    struct lowering l = {.pass = pass, .graph = pass->graph, .op = loop->op->next};
    struct ir_value *init = loop_initial(loop, append->carried);
    struct ir_value *rows = &loop->op->results[loop->op->n_results - 1];
    int64_t perm[TSSA_MAX_RANK];
    if (!ir_loop_runs(loop->op))
        rows = shape_rows(&l, rows, init, append->axis);
    for (int i = 0; i < lower_rank(init); i++)
        perm[i] = i < append->axis ? i + 1 : i == append->axis ? 0 : i;
    rows = lower_transpose(&l, rows, lower_rank(init), perm);
    struct ir_value *const parts[] = {init, rows};
    struct ir_value *all = lower_concat(&l, 2, parts, append->axis);
    if (l.status)
        return l.status;
    loop_replace(loop_final(loop, append->carried), all);
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, loop->op,
                       "carried value %u is appended to row by row: an output now",
                       (unsigned)append->carried);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    if (!ir_op_is(op, IR_OP_Loop))
        return NULL;
    struct loop loop = loop_of(op);
    for (uint32_t k = 0; k < loop.n_carried; k++) {
        struct append append;
        if (!read_append(&loop, k, &append))
            continue;
        TRY(add_output(context, &loop, &append));
        TRY(join(context, &loop, &append));
    }
    return NULL;
}

tssa_status *pass_stack_concats(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
