/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of which every iteration writes the first elements, as many as data says, are written whole:
 * what is behind is what was there. All iterations can then be computed at once (parallelize), for
 * which rows must be of one size.
 *
 *     ScatterND(t, [i, 0 .. count], base[start : end])
 *         ->   t[i] := Where(Range(L) < count, base[start + Range(L)], t[i])
 *
 * Packed rows are padded so (start is the sum of the counts before), and masks made of their
 * lengths. Only in loops that carry such rows, sums of integers, and what does not change: of
 * others a whole row would cost more than its part and save nothing.
 *
 *   needs   known elements, accesses (recover)
 *   keeps   results' bits
 *   breaks  nothing; the old indices are dead (dead_code)
 *
 * A source that is shorter than the part it is written to is no error any more: its last row is
 * repeated.
 */
#include "ir/element.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/analysis/loops.h"
#include "passes/lower/lower.h"

#define MAX_PARTS 16 /* tensors of one loop */

/* base[start : end] along one axis, with steps of one. */
struct cut {
    struct ir_value *base;
    int64_t axis;
    struct lower_number start, end;
};

/* A write of the first elements of a row. */
struct part {
    struct ir_op *op; /* the ScatterND */
    uint32_t carried; /* the tensor that it writes to */
    int n_fixed;      /* leading axes with one index each */
    struct ir_value *fixed[TSSA_MAX_RANK];
    struct cut count; /* of the row's axis: the part is as long as this */
    struct ir_value *uniform;
    struct cut source; /* when not uniform: along axis 0 */
};

/* ---- Slices ---------------------------------------------------------------------------------- */

static bool read_bound(const struct ir_op *op, const struct rule_param *param,
                       struct lower_number *number)
{
    if (!param->is_operand) {
        *number = (struct lower_number){.number = param->value};
        return true;
    }
    *number = (struct lower_number){.value = rule_param_value(op, param)};
    return number->value && number->value->type->kind == TYPE_TENSOR &&
           number->value->type->rank >= 0 && number->value->type->rank <= 1;
}

/* Is the op one slice, with a step of one? */
static bool read_cut(const struct ir_op *op, struct cut *cut)
{
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    if (!rule || rule->n_steps != 1 || rule->steps[0].kind != RULE_SLICE)
        return false;
    const struct rule_param *params = rule->steps[0].params;
    cut->base = ir_operand(op, 0);
    cut->axis = params[0].value;
    return cut->base->type->kind == TYPE_TENSOR && cut->base->type->rank > cut->axis &&
           read_bound(op, &params[1], &cut->start) && read_bound(op, &params[2], &cut->end) &&
           !params[3].is_operand && params[3].value == 1;
}

/* The slice of an axis of size `whole` that `count` is the length of, from the first element on. */
static bool find_count(const struct ir_block *body, const struct dim *count,
                       const struct dim *whole, struct cut *cut)
{
    for (const struct ir_op *op = body->first; op; op = op->next)
        if (read_cut(op, cut) && op->results[0].type->kind == TYPE_TENSOR &&
            op->results[0].type->rank > cut->axis &&
            op->results[0].type->dims[cut->axis] == count &&
            cut->base->type->dims[cut->axis] == whole && !cut->start.value &&
            cut->start.number == 0)
            return true;
    return false;
}

/* ---- Where it writes ------------------------------------------------------------------------- */

static tssa_status *read_column(struct pass_context *pass, const struct ir_op *op,
                                const struct element_space *space, int column,
                                struct element *element, bool *proven)
{
    struct element at[TSSA_MAX_RANK];
    struct element_doubt doubt;
    for (int i = 0; i < space->rank; i++)
        if (!element_coordinate(pass->graph, i, &at[i]))
            return status_out_of_memory();
    if (!element_number(pass->graph, column, &at[space->rank]))
        return status_out_of_memory();
    return element_read(pass->graph, space, ir_operand(op, 1), at, element, proven, &doubt);
}

/* The same index at all positions, in range even where there is none. */
static bool is_fixed(struct pass_context *pass, const struct element_space *space,
                     const struct element *element, const struct dim *dim)
{
    for (int i = 0; i < space->rank; i++)
        if (element->factors[i] && !dim_is(space->extents[i], 1))
            return false;
    return element->witness && element_within(pass->graph, space, element, dim);
}

/* The coordinate that counts the positions from 0; -1: there is none, or more than one. */
static int moving_coordinate(const struct element_space *space, const struct element *element)
{
    int coordinate = element_coordinate_of(element, space);
    for (int i = 0; i < space->rank; i++)
        if (i != coordinate && !dim_is(space->extents[i], 1))
            return -1;
    return coordinate;
}

static tssa_status *read_places(struct pass_context *pass, const struct loop *loop,
                                struct part *part, bool *found)
{
    const struct ir_type *indices = ir_operand(part->op, 1)->type,
                         *data = ir_operand(part->op, 0)->type;
    struct element_space space = {.rank = indices->rank - 1, .block = part->op->parent};
    struct element element;
    int64_t depth;
    *found = false;
    if (space.rank < 1 || !dim_is_const(indices->dims[space.rank], &depth) || depth < 2 ||
        depth > data->rank)
        return NULL;
    for (int i = 0; i < space.rank; i++)
        space.extents[i] = indices->dims[i];
    part->n_fixed = (int)depth - 1;
    for (int k = 0; k < part->n_fixed; k++) {
        TRY(read_column(pass, part->op, &space, k, &element, found));
        if (!*found || !is_fixed(pass, &space, &element, data->dims[k])) {
            *found = false;
            return NULL;
        }
        part->fixed[k] = element.witness;
    }
    TRY(read_column(pass, part->op, &space, part->n_fixed, &element, found));
    int coordinate = *found ? moving_coordinate(&space, &element) : -1;
    *found = coordinate >= 0 && find_count(loop->body, space.extents[coordinate],
                                           data->dims[part->n_fixed], &part->count);
    return NULL;
}

/* ---- What it writes -------------------------------------------------------------------------- */

/* The last dims of both are the same; before them `from` has one that is not one, at most. */
static bool has_rows(const struct ir_type *from, const struct ir_type *data, int n_trailing)
{
    int n_long = 0;
    if (from->kind != TYPE_TENSOR || from->rank < n_trailing)
        return false;
    for (int i = 1; i <= n_trailing; i++)
        if (from->dims[from->rank - i] != data->dims[data->rank - i])
            return false;
    for (int i = 0; i < from->rank - n_trailing; i++)
        n_long += !dim_is(from->dims[i], 1);
    return n_long <= 1;
}

/* The same for all rows: without their axis, or with axes of size one. */
static bool is_uniform(const struct ir_type *from, int n_trailing)
{
    if (from->kind != TYPE_TENSOR || from->rank < 0)
        return false;
    for (int i = 0; i < from->rank - n_trailing; i++)
        if (!dim_is(from->dims[i], 1))
            return false;
    return true;
}

/* Axes of size one come and go; the rows stay what they are, and in order. */
static bool is_rearranged(const struct ir_op *op)
{
    return ir_op_keeps_order(op) || (ir_op_is(op, IR_OP_access) && rule_keeps_order(rule_of(op)));
}

/*
 * Back through what gives the rows another shape, to one value for all of them, or the slice that
 * they come from. Expand repeats a single row, as reading beyond the last one does.
 */
static bool read_source(struct part *part)
{
    const struct ir_type *data = ir_operand(part->op, 0)->type;
    struct ir_value *value = ir_operand(part->op, 2);
    int n_trailing = data->rank - part->n_fixed - 1;
    while (value && has_rows(value->type, data, n_trailing) && value->op) {
        const struct ir_op *op = value->op;
        struct ir_value *inner = op->n_operands ? ir_operand(op, 0) : NULL;
        if (ir_op_is(op, IR_OP_Expand) && is_uniform(inner->type, n_trailing)) {
            part->uniform = inner;
            return true;
        }
        if (read_cut(op, &part->source))
            return part->source.axis == 0 && value->type->rank == n_trailing + 1 &&
                   has_rows(inner->type, data, n_trailing);
        if (!is_rearranged(op) && !ir_op_is(op, IR_OP_Expand))
            return false;
        value = inner;
    }
    return false;
}

/* ---- The loop -------------------------------------------------------------------------------- */

static bool is_selectable(tssa_dtype dtype)
{
    return dtype == TSSA_BOOL || dtype_in(PASS_SELECTABLE, dtype);
}

static tssa_status *read_part(struct pass_context *pass, const struct loop *loop, uint32_t k,
                              struct part *part, bool *found)
{
    struct ir_op *op = loop_next(loop, k)->op;
    *found = false;
    *part = (struct part){.op = op, .carried = k};
    if (!op || op->parent != loop->body || !ir_op_is(op, IR_OP_ScatterND) ||
        ir_operand(op, 0) != loop_param(loop, k) || op->results[0].uses->next ||
        ir_attr(op, "reduction"))
        return NULL;
    for (uint32_t i = 0; i < 3; i++)
        if (ir_operand(op, i)->type->kind != TYPE_TENSOR || ir_operand(op, i)->type->rank < 0)
            return NULL;
    if (!is_selectable(ir_operand(op, 0)->type->dtype) ||
        loop_initial(loop, k)->type != loop_param(loop, k)->type)
        return NULL;
    TRY(read_places(pass, loop, part, found));
    *found = *found && read_source(part);
    return NULL;
}

static bool is_sum(const struct loop *loop, uint32_t k)
{
    const struct ir_value *param = loop_param(loop, k), *next = loop_next(loop, k);
    return next->op && ir_op_is(next->op, IR_OP_Add) && param->type->kind == TYPE_TENSOR &&
           dtype_is_integer(param->type->dtype) &&
           (ir_operand(next->op, 0) == param || ir_operand(next->op, 1) == param);
}

/* All that the loop carries; *n_parts is 0 where something keeps its iterations in order. */
static tssa_status *read_loop(struct pass_context *pass, const struct loop *loop,
                              struct part *parts, uint32_t *n_parts)
{
    *n_parts = 0;
    if (!ir_operand(loop->op, 0) || loop_enters(loop) != LOOP_TRUE || loop_stays(loop) != LOOP_TRUE)
        return NULL;
    for (uint32_t k = 0; k < loop->n_carried; k++) {
        bool found = false;
        if (!loop_next(loop, k) || !loop_initial(loop, k)) {
            *n_parts = 0;
            return NULL;
        }
        if (loop_unaliased(loop_next(loop, k)) == loop_param(loop, k) || is_sum(loop, k))
            continue;
        if (*n_parts < MAX_PARTS)
            TRY(read_part(pass, loop, k, &parts[*n_parts], &found));
        if (!found) {
            *n_parts = 0;
            return NULL;
        }
        ++*n_parts;
    }
    return NULL;
}

/* ---- Whole rows ------------------------------------------------------------------------------ */

/* A size or bound as i64[]. */
static struct ir_value *scalar(struct lowering *l, const struct lower_number *number)
{
    return number->value ? lower_scalar(l, number->value, 0) : lower_int(l, number->number);
}

static struct ir_value *size_of(struct lowering *l, struct ir_value *x, int axis)
{
    struct lower_number dim = lower_dim(l, x, axis);
    return scalar(l, &dim);
}

/* A bound of a slice of `size` elements, counted from the first one: between 0 and the size. */
static struct ir_value *clamp(struct lowering *l, const struct lower_number *bound,
                              struct ir_value *size)
{
    struct ir_value *zero = lower_int(l, 0), *at = scalar(l, bound);
    if (bound->value || bound->number < 0) {
        struct ir_value *const operands[] = {lower_binary(l, IR_OP_Less, at, zero),
                                             lower_binary(l, IR_OP_Add, at, size), at};
        at = lower_emit(l, IR_OP_Where, 3, operands);
        at = lower_binary(l, IR_OP_Max, at, zero);
    }
    return lower_binary(l, IR_OP_Min, at, size);
}

/* The base with one row more, of zeros, so that there is a row to read. NULL also where it cannot
 * be said. */
static struct ir_value *with_row(struct lowering *l, struct ir_value *base)
{
    const struct ir_type *type = base->type;
    struct lower_shape shape = {.rank = type->rank, .dims[0] = {.number = 1}};
    if (type->dims[0]->low >= 1)
        return base;
    for (int i = 1; i < type->rank; i++)
        shape.dims[i] = lower_dim(l, base, i);
    struct ir_value *dims = lower_numbers(l, shape.rank, shape.dims);
    struct ir_value *zeros = lower_emit(l, IR_OP_ConstantOfShape, 1, &dims);
    if (type->dtype != TSSA_FLOAT)
        zeros = lower_cast(l, zeros, type->dtype);
    struct ir_value *const parts[] = {base, zeros};
    return lower_concat(l, 2, parts, 0);
}

/* Row start + p of the base for every p; beyond the end the last one. */
static struct ir_value *gather_source(struct lowering *l, const struct cut *source,
                                      struct ir_value *positions)
{
    struct ir_value *size = size_of(l, source->base, 0), *one = lower_int(l, 1);
    struct ir_value *start = clamp(l, &source->start, size), *end = clamp(l, &source->end, size);
    struct ir_value *at = lower_binary(l, IR_OP_Add, positions, start);
    at = lower_binary(l, IR_OP_Min, at, lower_binary(l, IR_OP_Sub, end, one));
    at = lower_binary(l, IR_OP_Max, at, lower_int(l, 0));
    struct ir_value *const operands[] = {with_row(l, source->base), at};
    return lower_emit_axis(l, IR_OP_Gather, 2, operands, 0);
}

static struct ir_value *make_values(struct lowering *l, const struct part *part, int n_trailing,
                                    struct ir_value *positions)
{
    int64_t axes[TSSA_MAX_RANK];
    if (!part->uniform)
        return gather_source(l, &part->source, positions);
    int extra = part->uniform->type->rank - n_trailing;
    for (int i = 0; i < extra; i++)
        axes[i] = i;
    return extra > 0 ? lower_squeeze(l, part->uniform, extra, axes) : part->uniform;
}

/* The row as it was, by the rule that selects it. */
static tssa_status *read_row(struct lowering *l, const struct part *part, struct ir_value *param,
                             const struct rule **rule, struct ir_value **row)
{
    struct rule_param params[TSSA_MAX_RANK][2];
    struct rule_step steps[TSSA_MAX_RANK];
    for (int i = 0; i < part->n_fixed; i++) {
        params[i][0] = rule_constant(0);
        params[i][1] = rule_operand(i);
        steps[i] = (struct rule_step){RULE_SELECT, 2, params[i]};
    }
    *rule = rule_create(l->graph, (uint32_t)part->n_fixed, steps);
    TRY_ALLOC(*rule);
    struct ir_op *access = rule_access_create(l->graph, param, *rule, (uint32_t)part->n_fixed,
                                              (struct ir_value **)part->fixed);
    TRY_ALLOC(access);
    *row = &access->results[0];
    return pass_insert(access, l->op);
}

static tssa_status *widen(struct pass_context *pass, const struct loop *loop,
                          const struct part *part)
{
    struct lowering l = {.pass = pass, .graph = pass->graph, .op = part->op};
    struct ir_value *param = loop_param(loop, part->carried), *row;
    const struct rule *rule;
    int64_t axes[TSSA_MAX_RANK];
    int n_trailing = param->type->rank - part->n_fixed - 1;
    TRY(read_row(&l, part, param, &rule, &row));
    struct ir_value *length = size_of(&l, loop_initial(loop, part->carried), part->n_fixed);
    struct ir_value *const range[] = {lower_int(&l, 0), length, lower_int(&l, 1)};
    struct ir_value *positions = lower_emit(&l, IR_OP_Range, 3, range);
    struct ir_value *count = clamp(&l, &part->count.end, length);
    struct ir_value *values = make_values(&l, part, n_trailing, positions);
    struct ir_value *inside = lower_binary(&l, IR_OP_Less, positions, count);
    for (int i = 0; i < n_trailing; i++)
        axes[i] = i + 1;
    inside = lower_unsqueeze(&l, inside, n_trailing, axes);
    struct ir_value *whole = l.status ? NULL : lower_choose(&l, inside, values, row);
    if (l.status)
        return l.status;
    struct ir_op *assign = rule_assign_create(
        pass->graph, param, whole, rule, (uint32_t)part->n_fixed, (struct ir_value **)part->fixed);
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, part->op,
                    "writes the first elements of a row, as many as data says: the whole row is "
                    "written, so that iterations can be computed at once"));
    return pass_replace(pass, part->op, assign);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct part parts[MAX_PARTS];
    uint32_t n_parts;
    if (!ir_op_is(op, IR_OP_Loop) || op->n_blocks != 1)
        return NULL;
    struct loop loop = loop_of(op);
    if (!loop.ret || op->n_results < loop.n_carried)
        return NULL;
    TRY(read_loop(pass, &loop, parts, &n_parts));
    for (uint32_t i = 0; i < n_parts; i++)
        TRY(widen(pass, &loop, &parts[i]));
    return NULL;
}

tssa_status *pass_ragged_rows(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
