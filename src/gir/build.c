/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of fuse ops; see build.h. */
#include "gir/build.h"

#include <string.h>

#include "base/integers.h"
#include "gir/alignment.h"
#include "gir/form.h"
#include "gir/mapper.h"
#include "gir/rows.h"
#include "gir/view.h"
#include "ir/fuse.h"
#include "ir/quantization.h"
#include "ir/row.h"

struct builder {
    const struct ir_op *fuse;
    const struct ir_block *body;
    const struct ir_type *like; /* its dims are the space */
    struct gir_space *space;
    struct gir_maker maker;
    struct gir_arg args[GIR_MAX_ARGS];
    uint32_t n_args;
    uint32_t scales[GIR_MAX_ARGS];  /* per argument that is a zero point: its scale's step */
    uint32_t first_value, n_values; /* ids of the values of the block */
    uint32_t *steps;                /* per value of the block */
    bool *dropped;                  /* per value of the block: it is without the row's axes */
};

static const char *refuse(struct builder *b, const char *why)
{
    if (!b->maker.why)
        b->maker.why = why;
    return b->maker.why;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

/* The axis of the space that is the value's first one. */
static int first_axis(const struct builder *b, const struct ir_value *value)
{
    const int dropped = b->dropped[value->id - b->first_value] ? b->space->row : 0;
    return b->like->rank - dropped - value->type->rank;
}

/* The axes that a value has; false: it is not known how it is broadcast. */
static bool find_axes(const struct builder *b, const struct ir_value *value, int first,
                      uint32_t *axes)
{
    const struct ir_type *type = value->type;
    *axes = 0;
    if (type->kind != TYPE_TENSOR || type->rank < 0 || first < 0)
        return false;
    for (int i = 0; i < type->rank; i++) {
        if (dim_is(type->dims[i], 1))
            continue;
        if (type->dims[i] != b->like->dims[first + i])
            return false;
        *axes |= 1u << (first + i);
    }
    return true;
}

/* The axes of the space from this one on that are longer than one element. */
static uint32_t axes_from(const struct builder *b, int first)
{
    uint32_t axes = 0;
    for (int i = first; i < b->like->rank; i++)
        axes |= dim_is(b->like->dims[i], 1) ? 0 : 1u << i;
    return axes;
}

/* Those of a row. */
static uint32_t row_axes(const struct builder *b)
{
    return axes_from(b, b->like->rank - b->space->row);
}

/* Has a result of these axes an element of its own for each row, or each element where there are no
 * rows? */
static bool is_whole(const struct builder *b, uint32_t axes)
{
    const uint32_t row = row_axes(b);
    return (axes | row) == axes_from(b, 0);
}

/* The argument that the value is, as a whole, of the operand or result of this number. */
static void add_arg(struct builder *b, const struct ir_value *value, uint32_t index, bool is_result)
{
    const int first = value->type->kind == TYPE_TENSOR ? first_axis(b, value) : -1;
    const uint32_t row = row_axes(b);
    uint32_t axes;
    if (b->n_args == GIR_MAX_ARGS) {
        refuse(b, "it has more arguments than kernels may have");
    } else if (!dtype_in(T_FLOAT | T_INT | T_BOOL, value->type->dtype)) {
        refuse(b, "kernels have no such elements");
    } else if (!find_axes(b, value, first, &axes) || ((axes & row) && (axes & row) != row) ||
               (is_result && !is_whole(b, axes))) {
        refuse(b, "how shapes are broadcast is not known");
    } else {
        b->space->places[b->n_args] = (struct gir_place){
            .index = index, .rank = value->type->rank, .first = first, .axes = axes};
        b->args[b->n_args++] = (struct gir_arg){
            .dtype = (uint8_t)value->type->dtype, .is_result = is_result, .fields = 1};
    }
}

/* The innermost axis that anything has. */
static uint32_t innermost(const struct builder *b)
{
    uint32_t all = 0, axis = 1;
    for (uint32_t i = 0; i < b->n_args; i++)
        all |= b->space->places[i].axes;
    for (uint32_t bit = 1; bit <= all; bit <<= 1)
        if (all & bit)
            axis = bit;
    return axis;
}

/* ---- Planes ---------------------------------------------------------------------------------- */

/* The elements of a row are apart in them. Only what has rows reads planes. */
static void finish_planes(struct builder *b)
{
    for (uint32_t i = 0; i < b->n_args; i++) {
        if (!b->space->places[i].planes)
            continue;
        if (!b->space->row || !b->args[i].moves)
            refuse(b, "what it permutes is no row");
        b->args[i].moves = GIR_STRIDED;
        for (uint32_t k = 0; k < b->n_args; k++)
            b->args[k].may_lie_on &= ~(UINT64_C(1) << i);
    }
}

/* ---- Lying on operands ----------------------------------------------------------------------- */

/* What moves, and what may lie on what. Every axis of results is one of an operand, or else of
 * length 1. */
static void finish_args(struct builder *b)
{
    const uint32_t row = row_axes(b), inner = b->space->row ? row : innermost(b);
    uint32_t read = 0;
    for (uint32_t i = 0; i < b->n_args; i++) {
        b->args[i].moves =
            (b->args[i].is_result && !b->space->row) || (b->space->places[i].axes & inner);
        read |= b->args[i].is_result ? 0 : b->space->places[i].axes;
    }
    if (row & ~read)
        refuse(b, "how shapes are broadcast is not known");
    for (uint32_t i = 0; i < b->n_args; i++) {
        if (!b->args[i].is_result)
            continue;
        if (b->space->places[i].axes & ~read)
            refuse(b, "how shapes are broadcast is not known");
        for (uint32_t k = 0; k < b->n_args && b->args[i].moves; k++)
            if (!b->args[k].is_result && b->args[k].moves && b->args[k].dtype == b->args[i].dtype &&
                b->space->places[k].axes == b->space->places[i].axes)
                b->args[i].may_lie_on |= UINT64_C(1) << k;
    }
    finish_planes(b);
}

/* ---- Short rows ------------------------------------------------------------------------------ */

#define SHORT_ROW 32 /* elements */

/* Do all arguments have both axes, or neither? */
static bool are_one(const struct builder *b, int axis, int other)
{
    for (uint32_t i = 0; i < b->n_args; i++) {
        const uint32_t axes = b->space->places[i].axes;
        if ((axes >> axis & 1) != (axes >> other & 1))
            return false;
    }
    return true;
}

/*
 * Where something is broadcast along the last axes, or to the others, and these axes have few
 * elements in every run: they are rows, since a generator does best to compute such rows together.
 */
static void find_short_rows(struct builder *b)
{
    const uint32_t all = axes_from(b, 0);
    const int rank = b->like->rank;
    int64_t length = 1, dim;
    int last = rank - 1, axis;
    while (last >= 0 && !(all >> last & 1))
        last--;
    for (axis = last; axis >= 0; axis--) {
        if (!(all >> axis & 1))
            continue;
        if (!are_one(b, axis, last))
            break;
        if (!dim_is_const(b->like->dims[axis], &dim) || dim > SHORT_ROW)
            return;
        length *= dim;
    }
    if (axis >= 0 && length <= SHORT_ROW)
        b->space->row = rank - 1 - axis;
}

static tssa_dtype loaded_as(const struct builder *b, uint32_t arg)
{
    return b->args[arg].dtype == TSSA_BOOL ? TSSA_UINT8 : (tssa_dtype)b->args[arg].dtype;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static uint32_t *step_of(const struct builder *b, const struct ir_value *value)
{
    return &b->steps[value->id - b->first_value];
}

/* Is it used as the zero point of elements, which add_zero loads? */
static bool is_zero(const struct ir_use *use)
{
    return ir_quantizes_elements(use->user) && use->user->n_operands == 3 &&
           use == &use->user->operands[2];
}

/* Whether anything but accesses and what has it as a zero point needs it. */
static bool is_read(const struct ir_value *param)
{
    for (const struct ir_use *use = param->uses; use; use = use->next)
        if (!ir_op_is(use->user, IR_OP_access) && !is_zero(use))
            return true;
    return false;
}

static void add_load(struct builder *b, const struct ir_value *value, uint32_t index)
{
    const uint32_t arg = b->n_args;
    add_arg(b, value, index, false);
    if (b->maker.why)
        return;
    b->scales[arg] = GIR_NONE;
    *step_of(b, value) = gir_make(
        &b->maker,
        (struct gir_code){.op = GIR_LOAD, .type = (uint8_t)loaded_as(b, arg), .bits = arg});
}

static void add_param(struct builder *b, const struct ir_value *param)
{
    if (is_read(param))
        add_load(b, param, param->index);
}

/* An access of an operand is an operand that lies in planes. */
static tssa_status *add_planes(struct builder *b, const struct ir_op *op)
{
    struct gir_planes *planes = ARENA_NEW(&b->body->graph->arena, struct gir_planes);
    const uint32_t arg = b->n_args;
    TRY_ALLOC(planes);
    const char *why = ir_operand(op, 0)->block ? gir_planes_refuses(op, planes)
                                               : "an access reads what it computes";
    if (why) {
        refuse(b, why);
        return NULL;
    }
    add_load(b, &op->results[0], ir_operand(op, 0)->index);
    if (!b->maker.why)
        b->space->places[arg].planes = planes;
    return NULL;
}

/* Is the value which axes are reduced, and nothing else? */
static bool is_axes(const struct ir_value *value)
{
    for (const struct ir_use *use = value->uses; use; use = use->next)
        if (!use->user->info->reduction || use == use->user->operands)
            return false;
    return true;
}

static void add_constant(struct builder *b, const struct ir_op *op)
{
    const struct tensor *tensor = ir_value_constant(&op->results[0]);
    if (is_axes(&op->results[0]))
        return;
    if (!tensor || tensor_count(tensor) != 1 ||
        !dtype_in(T_FLOAT | T_INT | T_BOOL, tensor->dtype)) {
        refuse(b, "it holds a constant that is no number");
        return;
    }
    const tssa_dtype type = tensor->dtype == TSSA_BOOL ? TSSA_UINT8 : tensor->dtype;
    struct gir_code code = {.op = GIR_CONSTANT, .type = (uint8_t)type};
    memcpy(&code.bits, tensor->data, dtype_info(type)->size);
    *step_of(b, &op->results[0]) = gir_make(&b->maker, code);
}

/* Does nobody want but the first result? */
static bool has_one_result(const struct ir_op *op)
{
    for (uint32_t i = 1; i < op->n_results; i++)
        if (op->results[i].wanted && op->results[i].uses)
            return false;
    return op->n_results > 0;
}

static uint32_t make_op(struct gir_maker *maker, const struct ir_op *op, const uint32_t *operands)
{
    const bool rows = !op->info->ew && !op->opaque && (ir_row_axes(op) || ir_column_axis(op) >= 0);
    return rows ? gir_make_row_op(maker, op, operands) : gir_make_op(maker, op, operands);
}

/*
 * A zero point, a small number that often happens to be the same one as others: it is an argument
 * of its own for each scale, so that layers of a network have the same kernel nevertheless.
 */
static uint32_t add_zero(struct builder *b, const struct ir_op *op)
{
    const struct ir_value *zero = ir_operand(op, 2);
    const uint32_t scale = *step_of(b, ir_operand(op, 1)), arg = b->n_args;
    if (!zero || !zero->block)
        return zero ? *step_of(b, zero) : GIR_NONE;
    for (uint32_t i = 0; i < b->n_args; i++)
        if (b->space->places[i].index == zero->index && b->scales[i] == scale)
            return gir_make(
                &b->maker,
                (struct gir_code){.op = GIR_LOAD, .type = (uint8_t)loaded_as(b, i), .bits = i});
    add_load(b, zero, zero->index);
    if (!b->maker.why)
        b->scales[arg] = scale;
    return *step_of(b, zero);
}

static void add_op(struct builder *b, const struct ir_op *op)
{
    uint32_t operands[GIR_MAX_ARGS];
    if (op->n_operands > GIR_MAX_ARGS || !has_one_result(op)) {
        refuse(b, "it has more arguments than kernels may have");
        return;
    }
    if (ir_column_axis(op) >= 0) { /* maps.h */
        refuse(b, "its columns are no rows");
        return;
    }
    for (uint32_t i = 0; i < op->n_operands; i++)
        operands[i] = is_zero(&op->operands[i]) ? add_zero(b, op)
                      : ir_operand(op, i)       ? *step_of(b, ir_operand(op, i))
                                                : GIR_NONE;
    *step_of(b, &op->results[0]) = make_op(&b->maker, op, operands);
}

static void add_result(struct builder *b, uint32_t index)
{
    const struct ir_value *value = ir_operand(ir_block_return(b->body), index);
    const uint32_t arg = b->n_args;
    add_arg(b, value, index, true);
    if (b->maker.why)
        return;
    const tssa_dtype type = loaded_as(b, arg);
    const uint32_t step = gir_make_as(&b->maker, *step_of(b, value), type);
    gir_make(
        &b->maker,
        (struct gir_code){.op = GIR_STORE, .type = (uint8_t)type, .operands = {step}, .bits = arg});
}

static tssa_status *add_all(struct builder *b)
{
    for (uint32_t i = 0; i < b->body->n_params; i++)
        add_param(b, b->body->params[i]);
    for (const struct ir_op *op = b->body->first; op && !b->maker.why; op = op->next)
        if (ir_op_is(op, IR_OP_Constant))
            add_constant(b, op);
        else if (ir_op_is(op, IR_OP_access))
            TRY(add_planes(b, op));
        else if (!ir_op_is(op, IR_OP_return))
            add_op(b, op);
    for (uint32_t i = 0; i < b->fuse->n_results; i++)
        if (b->fuse->results[i].wanted)
            add_result(b, i);
    if (!b->space->row)
        find_short_rows(b);
    finish_args(b);
    return NULL;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

void gir_drop_dead(struct gir_maker *maker, uint32_t *numbers)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < maker->n; i++)
        numbers[i] = gir_has_effect(&maker->codes[i]);
    for (uint32_t i = maker->n; i-- > 0;)
        for (uint32_t k = 0; numbers[i] && k < gir_n_operands(&maker->codes[i]); k++)
            numbers[maker->codes[i].operands[k]] = 1;
    for (uint32_t i = 0; i < maker->n; i++) {
        if (!numbers[i])
            continue;
        struct gir_code code = maker->codes[i];
        for (uint32_t k = 0; k < gir_n_operands(&code); k++)
            code.operands[k] = numbers[code.operands[k]];
        numbers[i] = n;
        maker->codes[n++] = code;
    }
    maker->n = n;
}

static uint32_t count_reductions(const struct gir_maker *maker)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < maker->n; i++)
        n += maker->codes[i].op == GIR_REDUCE;
    return n;
}

/* What form it has in every run, where it is not left to the calls: half of the code is then not
 * made. */
static uint32_t form_of(const struct builder *b)
{
    int64_t length = 1, dim;
    for (int i = b->like->rank - b->space->row; i < b->like->rank; i++)
        if (!dim_is_const(b->like->dims[i], &dim) || !i64_mul(length, dim, &length))
            return 0;
    for (uint32_t i = 0; i < b->n_args; i++)
        if (b->args[i].moves == GIR_STRIDED)
            return 0;
    return b->space->row && length > GIR_FORM_LONGEST_ROW ? GIR_FORM_ROWS_ALONG : 0;
}

static tssa_status *copy_out(const struct builder *b, const tssa_allocator *allocator,
                             struct gir_kernel **kernel)
{
    const size_t args = b->n_args * sizeof(struct gir_arg),
                 codes = b->maker.n * sizeof(struct gir_code);
    struct gir_kernel *made = allocator_alloc(allocator, sizeof *made + args + codes);
    TRY_ALLOC(made);
    *made = (struct gir_kernel){.magic = GIR_MAGIC,
                                .size = (uint32_t)(sizeof *made + args + codes),
                                .n_args = b->n_args,
                                .n_codes = b->maker.n,
                                .whole_rows = b->space->row > 0,
                                .form = form_of(b)};
    memcpy(made + 1, b->args, args);
    memcpy((char *)(made + 1) + args, b->maker.codes, codes);
    *kernel = made;
    return NULL;
}

static const struct ir_type *find_space(const struct ir_op *fuse)
{
    const struct ir_op *ret = ir_block_return(ir_fuse_body(fuse));
    for (uint32_t i = 0; i < fuse->n_results; i++)
        if (fuse->results[i].wanted)
            return ir_operand(ret, i)->type;
    return NULL;
}

/* With planes dims are the same in every run. */
static bool can_walk(const struct builder *b, const struct gir_kernel *kernel)
{
    int64_t dims[TSSA_MAX_RANK], sizes[TSSA_MAX_RANK], steps[TSSA_MAX_RANK][GIR_MAX_ARGS];
    int n_axes;
    for (int i = 0; i < b->like->rank; i++)
        if (!dim_is_const(b->like->dims[i], &dims[i]))
            return false;
    return gir_walk_planes(kernel, b->space, dims, &n_axes, sizes, steps);
}

static tssa_status *build(struct builder *b, const struct gir_rows *rows,
                          const tssa_allocator *allocator, struct gir_kernel **kernel)
{
    TRY_ALLOC(b->maker.codes);
    TRY_ALLOC(b->steps);
    TRY_ALLOC(b->dropped);
    if (rows->like && !gir_align(b->body, rows, b->first_value, b->dropped))
        refuse(b, "how shapes are broadcast is not known");
    else
        TRY(add_all(b));
    if (b->maker.why)
        return NULL;
    gir_drop_dead(&b->maker, b->maker.codes ? b->steps : NULL);
    if (count_reductions(&b->maker) > GIR_MAX_REDUCTIONS) {
        refuse(b, "it has more reductions than kernels may have");
        return NULL;
    }
    TRY(copy_out(b, allocator, kernel));
    if (gir_has_planes(*kernel, b->space) && !can_walk(b, *kernel)) {
        allocator_free(allocator, *kernel);
        *kernel = NULL;
        refuse(b, "what it permutes does not fit the rest");
    }
    return NULL;
}

tssa_status *gir_build(const struct ir_op *fuse, const tssa_allocator *allocator,
                       struct gir_kernel **kernel, struct gir_space *space, const char **why)
{
    struct builder b = {.fuse = fuse, .body = ir_fuse_body(fuse), .space = space};
    struct gir_rows rows;
    *kernel = NULL;
    *why = NULL;
    *space = (struct gir_space){0};
    if (!gir_rows_of(b.body, &rows)) {
        *why = "its rows are not the same";
        return NULL;
    }
    b.like = rows.like ? rows.like : find_space(fuse);
    space->row = rows.n;
    if (!b.like || b.like->kind != TYPE_TENSOR || b.like->rank < 0) {
        *why = "the shape of what it computes is not known";
        return NULL;
    }
    space->rank = b.like->rank;
    gir_number_values(b.body, &b.first_value, &b.n_values);
    b.maker.capacity = GIR_MAX_CODES;
    b.maker.codes = allocator_alloc(allocator, GIR_MAX_CODES * sizeof *b.maker.codes);
    /* Later on, room for a number per step. */
    const uint32_t n = b.n_values > GIR_MAX_CODES ? b.n_values : GIR_MAX_CODES;
    b.steps = allocator_calloc(allocator, n, sizeof *b.steps);
    b.dropped = allocator_calloc(allocator, n, sizeof *b.dropped);
    tssa_status *status = build(&b, &rows, allocator, kernel);
    *why = b.maker.why;
    allocator_free(allocator, b.maker.codes);
    allocator_free(allocator, b.steps);
    allocator_free(allocator, b.dropped);
    return status;
}

static const char *refuses_movement(const struct ir_op *op)
{
    if (!dtype_in(T_FLOAT | T_INT | T_BOOL, op->results[0].type->dtype))
        return "kernels have no such elements";
    if (ir_op_is(op, IR_OP_Trilu) || ir_op_is(op, IR_OP_Range) || ir_fuse_keeps(op))
        return NULL;
    return ir_op_is(op, IR_OP_Concat) ? mapper_concat_refuses(op) : gir_view_refuses(op);
}

/* Along the last axis one sum waits for the other, and nothing else does; in vectors of several
 * rows elements lie apart. */
static const char *refuses_scan(const struct ir_op *op)
{
    if (ir_scan_axis(op) < 0)
        return "sums that run along the last axis take longer in a kernel";
    return dtype_in(T_FLOAT | T_INT, op->results[0].type->dtype) ? NULL
                                                                 : "kernels have no such elements";
}

const char *gir_refuses(const struct ir_op *op)
{
    struct gir_code codes[128];
    struct gir_maker maker = {.codes = codes, .capacity = sizeof codes / sizeof *codes};
    uint32_t operands[GIR_MAX_ARGS];
    if (ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_assign) || ir_op_is(op, IR_OP_Concat) ||
        ir_op_is(op, IR_OP_Trilu) || ir_op_is(op, IR_OP_Range) || ir_fuse_keeps(op))
        return refuses_movement(op);
    if (ir_op_is(op, IR_OP_CumSum) || ir_op_is(op, IR_OP_CumProd))
        return refuses_scan(op);
    if (op->n_operands > GIR_MAX_ARGS)
        return "it has more arguments than kernels may have";
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        const tssa_dtype dtype = value ? value->type->dtype : TSSA_FLOAT;
        if (!dtype_in(T_FLOAT | T_INT | T_BOOL, dtype))
            return "kernels have no such elements";
        const tssa_dtype type = dtype == TSSA_BOOL ? TSSA_UINT8 : dtype;
        struct gir_code code = {.op = GIR_LOAD, .type = (uint8_t)type, .bits = i};
        const struct tensor *tensor = value ? ir_value_constant(value) : NULL;
        if (tensor && tensor_count(tensor) == 1) {
            code = (struct gir_code){.op = GIR_CONSTANT, .type = (uint8_t)type};
            memcpy(&code.bits, tensor->data, dtype_info(type)->size);
        }
        operands[i] = value ? gir_make(&maker, code) : GIR_NONE;
    }
    make_op(&maker, op, operands);
    return maker.why;
}
