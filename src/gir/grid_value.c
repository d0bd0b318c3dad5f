/* SPDX-License-Identifier: Apache-2.0 */
/* What an element of a value is, by the op that computes the value; see grid_maker.h. */
#include <string.h>

#include "gir/grid_maker.h"
#include "ir/fuse.h"
#include "ir/row.h"

/* ---- Elements -------------------------------------------------------------------------------- */

static tssa_dtype stored_as(tssa_dtype dtype)
{
    return dtype == TSSA_BOOL ? TSSA_UINT8 : dtype;
}

uint32_t grid_element(struct grid_maker *m, uint32_t step, tssa_dtype dtype)
{
    return gir_make_as(&m->maker, step, stored_as(dtype));
}

static uint32_t zero_of(struct grid_maker *m, tssa_dtype dtype)
{
    return gir_make(&m->maker, (struct gir_code){.op = GIR_CONSTANT, .type = stored_as(dtype)});
}

uint32_t grid_arg(struct grid_maker *m, enum gir_owner owner, uint32_t index, bool is_result,
                  tssa_dtype dtype)
{
    for (uint32_t k = 0; k < m->n_args; k++)
        if (m->part->wholes[k].index == index && m->part->wholes[k].owner == owner &&
            m->args[k].is_result == is_result)
            return k;
    if (m->n_args == GIR_MAX_ARGS)
        return grid_refuse(m, "it has more arguments than kernels may have");
    if (!dtype_in(T_FLOAT | T_INT | T_BOOL, dtype))
        return grid_refuse(m, "kernels have no such elements");
    m->part->wholes[m->n_args] = (struct gir_whole){.owner = owner, .index = index};
    m->args[m->n_args] = (struct gir_arg){
        .dtype = (uint8_t)dtype, .is_result = is_result, .fields = 1, .is_looked_up = !is_result};
    return m->n_args++;
}

uint32_t grid_look_up(struct grid_maker *m, enum gir_owner owner, uint32_t index,
                      const struct ir_type *type, const struct grid_place *place)
{
    const uint32_t arg = grid_arg(m, owner, index, false, type->dtype);
    const uint32_t number = grid_flatten(m, place, type->dims);
    const bool inside = grid_is_sure(m, arg, number, type->dims, type->rank);
    return gir_make(&m->maker, (struct gir_code){.op = GIR_LOOKUP,
                                                 .type = (uint8_t)stored_as(type->dtype),
                                                 .inside = inside,
                                                 .operands = {number},
                                                 .bits = gir_bits(arg, 0)});
}

static uint32_t look_up(struct grid_maker *m, const struct ir_value *param,
                        const struct grid_place *place)
{
    return param->block == ir_fuse_body(m->fuse)
               ? grid_look_up(m, GIR_OF_OP, param->index, param->type, place)
               : grid_refuse(m, "an iteration is given nothing for what it reads");
}

static uint32_t look_up_cut(struct grid_maker *m, const struct grid_cut *cut,
                            const struct grid_place *place)
{
    const bool is_result = cut->result != GIR_NONE;
    return grid_look_up(m, is_result ? GIR_OF_RESULT : GIR_INNER,
                        is_result ? cut->result : cut->inner, cut->value->type, place);
}

static uint32_t constant(struct grid_maker *m, const struct ir_value *value)
{
    const struct tensor *tensor = ir_value_constant(value);
    if (tensor_count(tensor) != 1 || !dtype_in(T_FLOAT | T_INT | T_BOOL, tensor->dtype))
        return grid_refuse(m, "it holds a constant that is no number");
    struct gir_code code = {.op = GIR_CONSTANT, .type = (uint8_t)stored_as(tensor->dtype)};
    memcpy(&code.bits, tensor->data, dtype_info(tensor->dtype)->size);
    return gir_make(&m->maker, code);
}

/* ---- Element-wise ---------------------------------------------------------------------------- */

bool grid_broadcast(struct grid_maker *m, const struct dim *const *dims, int rank,
                    const struct dim *const *operand, struct grid_place *place)
{
    const int missing = place->rank - rank;
    int64_t size;
    if (missing < 0)
        return grid_refuse(m, "how shapes are broadcast is not known");
    place->rank = rank;
    for (int i = 0; i < rank; i++) {
        const uint32_t at = place->at[missing + i];
        const bool below = grid_is_below(m, at, dims[missing + i]);
        grid_claim(m, operand[i], dims[missing + i], GIR_SAME_OR_ONE);
        if (dim_is(operand[i], 1))
            place->at[i] = grid_constant(m, 0);
        else if (operand[i] == dims[missing + i] ||
                 (dim_is_const(operand[i], &size) && size != 1) || dim_at_least(operand[i], 2))
            place->at[i] = at;
        else
            place->at[i] = grid_choose(
                m, grid_test(m, SCALAR_EQ, grid_dim(m, operand[i]), grid_constant(m, 1)),
                grid_constant(m, 0), at);
        if (below) /* by the claim */
            grid_know_below(m, place->at[i], operand[i]);
    }
    return !m->maker.why;
}

static uint32_t element_wise(struct grid_maker *m, const struct ir_op *op,
                             const struct grid_place *place)
{
    uint32_t operands[GRID_MOST_OPERANDS];
    if (op->n_operands > GRID_MOST_OPERANDS)
        return grid_refuse(m, "it has more operands than kernels may have");
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *operand = ir_operand(op, i);
        struct grid_place at = *place;
        operands[i] = GIR_NONE;
        if (!operand || !ir_fuse_reads(op, i))
            continue;
        if (operand->type->kind != TYPE_TENSOR || operand->type->rank < 0)
            return grid_refuse(m, "the shape of what it reads is not known");
        if (!grid_broadcast(m, op->results[0].type->dims, operand->type->rank, operand->type->dims,
                            &at))
            return 0;
        operands[i] = grid_evaluate(m, operand, &at);
    }
    return m->maker.why ? 0 : gir_make_op(&m->maker, op, operands);
}

/* ---- What chooses ---------------------------------------------------------------------------- */

/* Evaluates what is chosen only where the truth value is true. */
static uint32_t evaluate_if(struct grid_maker *m, uint32_t truth, const struct ir_value *value,
                            const struct grid_place *place)
{
    const uint32_t active = m->active;
    m->active = grid_both(m, active, truth);
    const uint32_t step = grid_element(m, grid_evaluate(m, value, place), value->type->dtype);
    m->active = active;
    return step;
}

static uint32_t not(struct grid_maker * m, uint32_t truth)
{
    return gir_make_scalar(&m->maker, SCALAR_NOT, TSSA_BOOL, &truth);
}

static uint32_t concat(struct grid_maker *m, const struct ir_op *op, const struct grid_place *place)
{
    const int rank = place->rank;
    const int64_t given = ir_attr_int(op, "axis", 0), axis = given < 0 ? given + rank : given;
    uint32_t begin = grid_constant(m, 0), value = GIR_NONE;
    if (axis < 0 || axis >= rank)
        return grid_refuse(m, "the axis of a Concat is not known");
    for (uint32_t i = 0; i < op->n_operands && !m->maker.why; i++) {
        const struct ir_value *operand = ir_operand(op, i);
        struct grid_place at = *place;
        if (operand->type->rank != rank)
            return grid_refuse(m, "the shape of what it reads is not known");
        for (int k = 0; k < rank; k++)
            if (k != axis)
                grid_claim(m, operand->type->dims[k], op->results[0].type->dims[k], GIR_SAME);
        at.at[axis] = grid_sub(m, place->at[axis], begin);
        const bool is_last = i + 1 == op->n_operands;
        const uint32_t end =
            is_last ? 0 : grid_add(m, begin, grid_dim(m, operand->type->dims[axis]));
        uint32_t here = i ? grid_test(m, SCALAR_GE, place->at[axis], begin) : GIR_NONE;
        if (!is_last)
            here = grid_both(m, here, grid_test(m, SCALAR_LT, place->at[axis], end));
        const uint32_t piece = evaluate_if(m, here, operand, &at);
        value = value == GIR_NONE ? piece : grid_choose(m, here, piece, value);
        begin = end;
    }
    return value;
}

static uint32_t assign(struct grid_maker *m, const struct ir_op *op, const struct grid_place *place)
{
    const struct ir_type *type = op->results[0].type;
    const struct ir_value *source = ir_operand(op, 1);
    const struct dim *dims[TSSA_MAX_RANK];
    struct grid_place at = *place;
    uint32_t is_there;
    int rank;
    if (source->type->kind != TYPE_TENSOR || source->type->rank < 0 ||
        !grid_into(m, op, &at, &is_there))
        return grid_refuse(m, "the shape of what is written is not known");
    tssa_status *status =
        rule_region_shape((struct ir_op *)op, type->rank, type->dims, &rank, dims);
    const bool good = !status && rank == at.rank;
    tssa_status_free(status);
    if (!good || !grid_broadcast(m, dims, source->type->rank, source->type->dims, &at))
        return grid_refuse(m, "the shape of what is written is not known");
    /* Each thread would walk all iterations for the few that write its element. */
    if (m->walks && is_there != GIR_NONE && grid_varies(m, is_there))
        return grid_refuse(m, "iterations write other elements each");
    const uint32_t written = evaluate_if(m, is_there, source, &at);
    if (is_there == GIR_NONE)
        return written;
    return grid_choose(m, is_there, written,
                       evaluate_if(m, not(m, is_there), ir_operand(op, 0), place));
}

static uint32_t triangle(struct grid_maker *m, const struct ir_op *op,
                         const struct grid_place *place)
{
    const bool upper = ir_attr_int(op, "upper", 1) != 0;
    const struct ir_value *k = ir_operand(op, 1);
    const tssa_dtype dtype = op->results[0].type->dtype;
    struct grid_place first = {0};
    if (place->rank < 2)
        return grid_refuse(m, "the shape of what it reads is not known");
    first.rank = k ? k->type->rank : 0;
    for (int i = 0; i < first.rank; i++)
        first.at[i] = grid_constant(m, 0);
    uint32_t diagonal =
        k ? gir_make_as(&m->maker, grid_evaluate(m, k, &first), TSSA_INT64) : grid_constant(m, 0);
    /* So far away that it makes no difference, and sums do not overflow. */
    diagonal = grid_min(m, grid_max(m, diagonal, grid_constant(m, -(INT64_C(1) << 62))),
                        grid_constant(m, INT64_C(1) << 62));
    const uint32_t edge = grid_add(m, place->at[place->rank - 2], diagonal);
    const uint32_t kept =
        grid_test(m, upper ? SCALAR_GE : SCALAR_LE, place->at[place->rank - 1], edge);
    return grid_choose(m, kept, evaluate_if(m, kept, ir_operand(op, 0), place), zero_of(m, dtype));
}

static uint32_t range(struct grid_maker *m, const struct ir_op *op, const struct grid_place *place)
{
    uint32_t numbers[3];
    for (uint32_t i = 0; i < 3; i += 2) {
        const struct ir_value *operand = ir_operand(op, i);
        struct grid_place first = {.rank = operand->type->rank};
        for (int k = 0; k < first.rank; k++)
            first.at[k] = grid_constant(m, 0);
        numbers[i] = grid_evaluate(m, operand, &first);
    }
    return gir_make_range(&m->maker, op, place->at[0], numbers[0], numbers[2]);
}

/* ---- What data tells the place of ------------------------------------------------------------ */

static uint32_t index_at(struct grid_maker *m, const struct ir_value *indices,
                         const struct grid_place *place, const struct dim *size)
{
    const uint32_t count = grid_dim(m, size);
    const uint32_t number = gir_make_as(&m->maker, grid_evaluate(m, indices, place), TSSA_INT64);
    const uint32_t at = grid_from_end(m, number, count);
    grid_check(m, at, count);
    return at;
}

static uint32_t gather_nd(struct grid_maker *m, const struct ir_op *op,
                          const struct grid_place *place)
{
    const struct ir_value *data = ir_operand(op, 0), *indices = ir_operand(op, 1);
    const int batch = (int)ir_attr_int(op, "batch_dims", 0), last = indices->type->rank - 1;
    int64_t n;
    if (data->type->rank < 0 || last < batch || batch < 0 ||
        !dim_is_const(indices->type->dims[last], &n) || batch + n > data->type->rank)
        return grid_refuse(m, "the shape of what it reads is not known");
    struct grid_place from = {.rank = data->type->rank}, at = {.rank = last + 1};
    memcpy(at.at, place->at, (size_t)last * sizeof *at.at);
    memcpy(from.at, place->at, (size_t)batch * sizeof *from.at);
    for (int i = 0; i < batch; i++)
        grid_claim(m, data->type->dims[i], indices->type->dims[i], GIR_SAME);
    for (int i = 0; i < n; i++) {
        at.at[last] = grid_constant(m, i);
        from.at[batch + i] = index_at(m, indices, &at, data->type->dims[batch + i]);
    }
    for (int i = batch + (int)n, k = last; i < from.rank; i++, k++)
        from.at[i] = place->at[k];
    return grid_evaluate(m, data, &from);
}

static uint32_t gather(struct grid_maker *m, const struct ir_op *op, const struct grid_place *place)
{
    const struct ir_value *data = ir_operand(op, 0), *indices = ir_operand(op, 1);
    const int rank = data->type->rank, more = indices->type->rank;
    const int64_t given = ir_attr_int(op, "axis", 0), axis = given < 0 ? given + rank : given;
    struct grid_place from = {.rank = rank}, at = {.rank = more};
    if (rank < 0 || more < 0 || axis < 0 || axis >= rank || place->rank != rank - 1 + more)
        return grid_refuse(m, "the shape of what it reads is not known");
    memcpy(at.at, &place->at[axis], (size_t)more * sizeof *at.at);
    for (int i = 0; i < rank; i++)
        if (i != axis)
            from.at[i] = place->at[i < axis ? i : i - 1 + more];
    from.at[axis] = index_at(m, indices, &at, data->type->dims[axis]);
    return grid_evaluate(m, data, &from);
}

static uint32_t gather_elements(struct grid_maker *m, const struct ir_op *op,
                                const struct grid_place *place)
{
    const struct ir_value *data = ir_operand(op, 0), *indices = ir_operand(op, 1);
    const int64_t given = ir_attr_int(op, "axis", 0),
                  axis = given < 0 ? given + place->rank : given;
    struct grid_place from = *place;
    if (data->type->rank != place->rank || axis < 0 || axis >= place->rank)
        return grid_refuse(m, "the shape of what it reads is not known");
    for (int i = 0; i < place->rank; i++)
        if (i != axis)
            grid_claim(m, indices->type->dims[i], data->type->dims[i], GIR_AT_MOST);
    from.at[axis] = index_at(m, indices, place, data->type->dims[axis]);
    return grid_evaluate(m, data, &from);
}

/* ---- All ------------------------------------------------------------------------------------- */

static uint32_t compute(struct grid_maker *m, const struct ir_value *value,
                        const struct grid_place *place)
{
    const struct ir_op *op = value->op;
    struct grid_place from = *place;
    if (value->type->kind != TYPE_TENSOR || value->type->rank != place->rank)
        return grid_refuse(m, "the shape of what it computes is not known");
    const struct grid_cut *cut = value == m->stored ? NULL : grid_cut_of(m, value);
    if (cut)
        return look_up_cut(m, cut, place);
    if (!op)
        return grid_is_of_iteration(m, value) ? grid_iteration_param(m, value, place)
                                              : look_up(m, value, place);
    if (op == m->before)
        return grid_look_up(m, GIR_OF_OP, m->fuse->n_operands, value->type, place);
    if (m->walks && (grid_reduces(op) || grid_multiplies(op) || ir_scan_axis(op) >= 0))
        return grid_refuse(m, "an iteration does not only compute elements");
    if (value->index > 0)
        return grid_refuse(m, "it has more than one result");
    if (ir_value_constant(value))
        return constant(m, value);
    if (ir_op_is(op, IR_OP_access))
        return grid_through(m, op, &from) ? grid_evaluate(m, ir_operand(op, 0), &from) : 0;
    if (ir_op_is(op, IR_OP_assign))
        return assign(m, op, place);
    if (ir_op_is(op, IR_OP_Concat))
        return concat(m, op, place);
    if (ir_op_is(op, IR_OP_Trilu))
        return triangle(m, op, place);
    if (ir_op_is(op, IR_OP_Range))
        return range(m, op, place);
    if (ir_op_is(op, IR_OP_GatherND))
        return gather_nd(m, op, place);
    if (ir_op_is(op, IR_OP_GatherElements))
        return gather_elements(m, op, place);
    if (ir_op_is(op, IR_OP_Gather))
        return gather(m, op, place);
    if (ir_scan_axis(op) >= 0)
        return grid_scan(m, op, place);
    if (grid_multiplies(op))
        return grid_multiply(m, op, place);
    return grid_reduces(op) ? grid_reduce(m, op, place) : element_wise(m, op, place);
}

uint32_t grid_evaluate(struct grid_maker *m, const struct ir_value *value,
                       const struct grid_place *place)
{
    if (m->maker.why)
        return 0;
    value = m->loop ? grid_loop_source(m, value) : value;
    for (size_t i = 0; i < m->seen.count; i++) {
        const struct grid_seen *seen = &m->seen.data[i];
        if (seen->value == value && seen->active == m->active && seen->place.rank == place->rank &&
            memcmp(seen->place.at, place->at, (size_t)place->rank * sizeof *place->at) == 0)
            return seen->step;
    }
    const struct ir_op *user = m->op;
    m->op = value->op;
    const uint32_t step = compute(m, value, place);
    m->op = user;
    const struct grid_seen seen = {value, m->active, step, *place};
    if (!m->maker.why && !vec_push(&m->seen, seen)) {
        m->status = status_out_of_memory();
        grid_refuse(m, "memory ran out");
    }
    return step;
}
