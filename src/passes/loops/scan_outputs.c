/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A carried tensor of which every iteration writes one row, the next one, and which the loop does
 * not read, is an output that the loop stacks:
 *
 *     Loop(n, c, init) { (i, c, t): ... t1 = assign(t, row, i){[select(0, $0)]}; return(c, t1) }
 *     rows = Loop(n, c) { (i, c): ... return(c, row) }
 *     Concat(rows, init[trips:])
 *
 * so that no iteration copies the tensor. The row may be i + k for a constant k: then init[:k]
 * stands in front. Or it is the last one less i, where all rows are written: rows[::-1], but for
 * sessions, which write in place and turn nothing round. Only where the loop runs once at least
 * (the shape of an empty stack is anybody's guess) and cannot run beyond the tensor's end, where
 * writing would fail. Not for sessions where data ends the loop: how many rows are stacked is then
 * told behind it, which nothing is computed by, and what is written in place needs no Concat.
 *
 *   needs   assigns (recover), known elements, counters computed from the iteration's number
 *           (induction)
 *   keeps   types
 *   breaks  the value is still carried, unchanged (carried_values)
 */
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "ir/rule.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"

struct append {
    uint32_t carried;
    struct ir_op *assign;
    struct ir_value *row;
    int64_t first;  /* the row that the first iteration writes */
    bool backwards; /* it is the last one, and all are written */
};

/* ---- Recognition ----------------------------------------------------------------------------- */

/* dim == i + *offset for the iteration's number i? */
static bool counts(const struct loop *loop, const struct dim *dim, int64_t *offset)
{
    const struct ir_known *known = loop->body->params[0]->known;
    const struct dim *counter = known && known->count == 1 ? known->elements[0] : NULL;
    if (!dim || !counter)
        return false;
    *offset = 0;
    if (dim == counter)
        return true;
    *offset = dim->kind == DIM_SUM ? dim->value : 0;
    return dim->kind == DIM_SUM && dim->n_terms == 1 && dim->terms[0] == counter &&
           dim->coefficients[0] == 1;
}

static bool selects_row(const struct loop *loop, const struct ir_op *assign, int64_t *first)
{
    return counts(loop, loop_row_of(assign), first) && *first >= 0;
}

/* What is known of the only element; NULL: nothing. */
static const struct dim *known_number(const struct ir_value *value)
{
    const struct ir_known *known = value ? value->known : NULL;
    return known && known->count == 1 ? known->elements[0] : NULL;
}

/* Does each iteration write row rows - 1 - i, and is there one for each row? */
static tssa_status *counts_back(struct ir_graph *graph, const struct loop *loop,
                                const struct ir_op *assign, const struct dim *rows, bool *back)
{
    const struct dim *counter = known_number(loop->body->params[0]),
                     *trips = known_number(ir_operand(loop->op, 0)), *row = loop_row_of(assign);
    *back = false;
    if (!row || !counter || trips != rows || trips->low < 1 || loop_enters(loop) != LOOP_TRUE ||
        loop_stays(loop) != LOOP_TRUE)
        return NULL;
    const struct dim *sum = dim_add(&graph->dims, row, counter);
    TRY_ALLOC(sum);
    const struct dim *left = dim_sub(&graph->dims, rows, sum);
    TRY_ALLOC(left);
    *back = dim_is(left, 1);
    return NULL;
}

/* One iteration at least, and none behind the last row. */
static tssa_status *stays_inside(struct ir_graph *graph, const struct loop *loop,
                                 const struct dim *rows, int64_t first, bool *inside)
{
    const struct ir_value *count = ir_operand(loop->op, 0);
    const struct ir_known *known = count ? count->known : NULL;
    const struct dim *trips = known && known->count == 1 ? known->elements[0] : NULL;
    *inside = false;
    if (!trips || trips->low < 1 || loop_enters(loop) != LOOP_TRUE)
        return NULL;
    const struct dim *end = dim_add(&graph->dims, trips, dim_const(&graph->dims, first));
    const struct dim *left = dim_sub(&graph->dims, rows, end);
    TRY_ALLOC(left);
    *inside = left->low >= 0;
    return NULL;
}

static tssa_status *read_append(const struct pass_context *pass, const struct loop *loop,
                                uint32_t k, struct append *append, bool *found)
{
    struct ir_value *next = loop_next(loop, k), *param = loop_param(loop, k);
    struct ir_value *init = loop_initial(loop, k);
    *found = false;
    if (!next || !init || !next->op || !ir_op_is(next->op, IR_OP_assign) ||
        next->op->parent != loop->body || !loop_is_only_use(param, next->op, 0) ||
        !loop_is_only_use(next, loop->ret, k + 1))
        return NULL;
    *append = (struct append){.carried = k, .assign = next->op, .row = ir_operand(next->op, 1)};
    if (!loop_is_row(init->type, append->row->type) || param->type != init->type)
        return NULL;
    if (!pass_is_for_session(pass))
        TRY(counts_back(pass->graph, loop, next->op, init->type->dims[0], &append->backwards));
    *found = append->backwards;
    if (append->backwards || !selects_row(loop, next->op, &append->first) ||
        (pass_is_for_session(pass) && loop_stays(loop) != LOOP_TRUE))
        return NULL;
    return stays_inside(pass->graph, loop, init->type->dims[0], append->first, found);
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

/* value[start:end] along axis 0; `end` NULL: to the end. */
static tssa_status *slice_rows(struct ir_op *at, struct ir_value *value, struct ir_value *start,
                               struct ir_value *end, struct ir_value **result)
{
    struct ir_value *axis;
    TRY(loop_make_int(at, 1, 0, &axis));
    if (!end)
        TRY(loop_make_int(at, 1, INT64_MAX, &end));
    struct ir_op *slice = loop_make_op(at, IR_OP_Slice, 4);
    TRY_ALLOC(slice);
    ir_op_set_operand(slice, 0, value);
    ir_op_set_operand(slice, 1, start);
    ir_op_set_operand(slice, 2, end);
    ir_op_set_operand(slice, 3, axis);
    *result = &slice->results[0];
    return ir_infer_op_lenient(slice);
}

static bool set_int(struct ir_op *op, const char *name, int64_t value)
{
    struct ir_graph *graph = op->parent->graph;
    const struct ir_attr attr = {
        .name = intern_str(&graph->strings, name), .kind = IR_ATTR_INT, .i = value};
    return attr.name && ir_op_set_attr(graph, op, &attr);
}

/* The number of the row behind the stacked ones, as a list. */
static tssa_status *row_behind(struct ir_op *at, struct ir_value *stacked, int64_t first,
                               struct ir_value **row)
{
    struct ir_value *offset;
    struct ir_op *shape = loop_make_op(at, IR_OP_Shape, 1);
    TRY_ALLOC(shape);
    ir_op_set_operand(shape, 0, stacked);
    if (!set_int(shape, "start", 0) || !set_int(shape, "end", 1))
        return status_out_of_memory();
    TRY(ir_infer_op_lenient(shape));
    *row = &shape->results[0];
    if (first == 0)
        return NULL;
    TRY(loop_make_int(at, 1, first, &offset));
    struct ir_op *add = loop_make_op(at, IR_OP_Add, 2);
    TRY_ALLOC(add);
    ir_op_set_operand(add, 0, &shape->results[0]);
    ir_op_set_operand(add, 1, offset);
    *row = &add->results[0];
    return ir_infer_op_lenient(add);
}

/*
 * init[:first], the stacked rows, what is left of init; before `at`, which comes behind the loop.
 */
static tssa_status *join_rows(struct ir_op *at, struct ir_value *init, struct ir_value *stacked,
                              int64_t first, struct ir_value **result)
{
    struct ir_value *parts[3], *row, *bound;
    uint32_t count = 0;
    if (first > 0) {
        TRY(loop_make_int(at, 1, 0, &row));
        TRY(loop_make_int(at, 1, first, &bound));
        TRY(slice_rows(at, init, row, bound, &parts[count++]));
    }
    parts[count++] = stacked;
    TRY(row_behind(at, stacked, first, &row));
    TRY(slice_rows(at, init, row, NULL, &parts[count++]));
    struct ir_op *concat = loop_make_op(at, IR_OP_Concat, count);
    TRY_ALLOC(concat);
    for (uint32_t i = 0; i < count; i++)
        ir_op_set_operand(concat, i, parts[i]);
    if (!set_int(concat, "axis", 0))
        return status_out_of_memory();
    *result = &concat->results[0];
    return ir_infer_op_lenient(concat);
}

/* The stacked rows from the last to the first, the same way. */
static tssa_status *turn_rows(struct ir_op *at, struct ir_value *stacked, struct ir_value **result)
{
    const int64_t numbers[] = {-1, INT64_MIN, 0, -1}; /* starts, ends, axes, steps */
    struct ir_value *operands[4];
    for (uint32_t i = 0; i < 4; i++)
        TRY(loop_make_int(at, 1, numbers[i], &operands[i]));
    struct ir_op *slice = loop_make_op(at, IR_OP_Slice, 5);
    TRY_ALLOC(slice);
    ir_op_set_operand(slice, 0, stacked);
    for (uint32_t i = 0; i < 4; i++)
        ir_op_set_operand(slice, i + 1, operands[i]);
    *result = &slice->results[0];
    return ir_infer_op_lenient(slice);
}

/* The loop gets an output for the row, the carried value stays what it was. */
static tssa_status *add_output(const struct loop *loop, const struct append *append)
{
    struct ir_op *op = loop->op;
    uint32_t n = op->n_results;
    uint32_t *from = ARENA_ARRAY(&loop->body->graph->arena, uint32_t, (size_t)n + 1);
    TRY_ALLOC(from);
    for (uint32_t i = 0; i <= n; i++)
        from[i] = i < n ? i : IR_FRESH;
    ir_op_set_operand(loop->ret, append->carried + 1, loop_param(loop, append->carried));
    ir_op_remove(append->assign);
    if (!ir_op_add_operand(loop->ret, append->row) || !ir_op_set_results(op, n + 1, from))
        return status_out_of_memory();
    return ir_infer_op_lenient(op);
}

static tssa_status *rewrite(struct pass_context *pass, const struct loop *loop,
                            const struct append *append)
{
    struct ir_value *init = loop_initial(loop, append->carried), *joined = NULL;
    TRY(add_output(loop, append));
    struct ir_value *result = loop_final(loop, append->carried);
    struct ir_value *stacked = &loop->op->results[loop->op->n_results - 1];
    struct ir_op *at = loop->op->next;
    TRY(append->backwards ? turn_rows(at, stacked, &joined)
                          : join_rows(at, init, stacked, append->first, &joined));
    joined->op->name = append->assign->name;
    joined->type = result->type; /* sizes of slices say less */
    loop_replace(result, joined);
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, loop->op,
                       "carried value %u is written row by row: an output now",
                       (unsigned)append->carried);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    if (!ir_op_is(op, IR_OP_Loop))
        return NULL;
    struct loop loop = loop_of(op);
    for (uint32_t k = 0; k < loop.n_carried; k++) {
        struct append append;
        bool found;
        TRY(read_append(pass, &loop, k, &append, &found));
        if (found)
            TRY(rewrite(pass, &loop, &append));
    }
    return NULL;
}

tssa_status *pass_scan_outputs(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
