/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise ops as steps of a kernel; see scalars.h. */
#include "gir/scalars.h"

#include <math.h>
#include <string.h>

#include "ir/promotion.h"
#include "ir/quantization.h"

static uint32_t refuse(struct gir_maker *maker, const char *why)
{
    if (!maker->why)
        maker->why = why;
    return 0;
}

uint32_t gir_make(struct gir_maker *maker, struct gir_code code)
{
    if (maker->why)
        return 0;
    for (uint32_t i = 0; i < maker->n; i++)
        if (memcmp(&maker->codes[i], &code, sizeof code) == 0)
            return i;
    if (maker->n == maker->capacity)
        return refuse(maker, "it is longer than kernels may be");
    maker->codes[maker->n] = code;
    return maker->n++;
}

static tssa_dtype type_of(const struct gir_maker *maker, uint32_t value)
{
    return maker->why ? TSSA_FLOAT : (tssa_dtype)maker->codes[value].type;
}

uint32_t gir_make_number(struct gir_maker *maker, tssa_dtype type, double number)
{
    struct gir_code code = {.op = GIR_CONSTANT, .type = (uint8_t)type};
    dtype_store_double(type, &code.bits, number);
    return gir_make(maker, code);
}

uint32_t gir_make_scalar(struct gir_maker *maker, enum scalar_id id, tssa_dtype type,
                         const uint32_t *operands)
{
    struct gir_code code = {.op = GIR_SCALAR, .scalar = (uint8_t)id, .type = (uint8_t)type};
    memcpy(code.operands, operands, scalar_info(id)->operands * sizeof *operands);
    return gir_make(maker, code);
}

/* ---- Types ----------------------------------------------------------------------------------- */

uint32_t gir_make_as(struct gir_maker *maker, uint32_t value, tssa_dtype type)
{
    const tssa_dtype from = type_of(maker, value);
    if (maker->why || from == type)
        return value;
    if (!gir_converts(from, type)) {
        /* By way of float, which has every number of two bytes. */
        const bool small = dtype_info(from)->size <= 2;
        if (!small || (!gir_converts(TSSA_FLOAT, type) && type != TSSA_FLOAT))
            return refuse(maker, "kernels have no such conversion");
        value = gir_make_as(maker, value, TSSA_FLOAT);
    }
    return gir_make(
        maker, (struct gir_code){.op = GIR_CONVERT, .type = (uint8_t)type, .operands = {value}});
}

static tssa_dtype dtype_of(const struct ir_op *op, uint32_t operand)
{
    return ir_operand(op, operand)->type->dtype;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* One evaluation of a row's program. */
struct evaluation {
    const struct scalar_code *program;
    const struct ir_op *op; /* NULL: of a reduction's row */
    tssa_dtype type;        /* that it computes in */
    uint32_t operands[3];   /* X, Y, Z; GIR_NONE: absent */
    uint32_t combined, shift;
    double params[EW_MAX_PARAMS];
    bool last; /* of a fold */
};

/* The lowest or the highest element. */
static uint64_t bound_of(tssa_dtype type, bool lowest)
{
    const unsigned bits = 8u * dtype_info(type)->size;
    const uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    const bool has_sign = dtype_info(type)->cls == DTYPE_CLASS_SIGNED;
    const uint64_t low = has_sign ? UINT64_C(1) << (bits - 1) : 0;
    return lowest ? low : all ^ low;
}

uint32_t gir_make_bound(struct gir_maker *maker, tssa_dtype type, bool lowest)
{
    if (dtype_is_float(type))
        return gir_make_number(maker, type, lowest ? -(double)INFINITY : (double)INFINITY);
    return gir_make(maker, (struct gir_code){.op = GIR_CONSTANT,
                                             .type = (uint8_t)type,
                                             .bits = bound_of(type, lowest)});
}

static uint32_t make_leaf(struct gir_maker *maker, const struct evaluation *e,
                          const struct scalar_code *code)
{
    switch ((enum scalar_id)code->id) {
    case SCALAR_X:
    case SCALAR_Y:
    case SCALAR_Z:
        return e->operands[code->id - SCALAR_X];
    case SCALAR_P:
        return gir_make_number(maker, e->type, e->params[code->index]);
    case SCALAR_K:
        return gir_make_number(maker, e->type, code->number);
    case SCALAR_A:
        return e->combined;
    case SCALAR_S:
        return e->shift;
    case SCALAR_COUNT:
        return e->op
                   ? gir_make_number(maker, e->type, e->op->n_operands)
                   : gir_make(maker, (struct gir_code){.op = GIR_LENGTH, .type = (uint8_t)e->type});
    default:
        return gir_make_bound(maker, e->type, code->id == SCALAR_LOWEST);
    }
}

/* a to one power, as kernels/cpu/elementwise has it; false: it is no product. */
static bool make_power(struct gir_maker *maker, uint32_t a, double exponent, uint32_t *result)
{
    const tssa_dtype type = type_of(maker, a);
    if (exponent == 1) {
        *result = a;
    } else if (exponent == 2 || exponent == 3) {
        *result = gir_make_scalar(maker, SCALAR_MUL, type, (uint32_t[]){a, a});
        if (exponent == 3)
            *result = gir_make_scalar(maker, SCALAR_MUL, type, (uint32_t[]){*result, a});
    } else if (exponent == -1) {
        *result = gir_make_scalar(maker, SCALAR_DIV, type,
                                  (uint32_t[]){gir_make_number(maker, type, 1), a});
    } else if (exponent == 0.5) {
        const uint32_t root = gir_make_scalar(maker, SCALAR_SQRT, type, &a);
        const uint32_t sum = gir_make_scalar(maker, SCALAR_ADD, type,
                                             (uint32_t[]){root, gir_make_number(maker, type, 0)});
        const uint32_t low = gir_make_number(maker, type, -(double)INFINITY);
        const uint32_t is_low = gir_make_scalar(maker, SCALAR_EQ, TSSA_BOOL, (uint32_t[]){a, low});
        *result = gir_make_scalar(
            maker, SCALAR_SEL, type,
            (uint32_t[]){is_low, gir_make_number(maker, type, (double)INFINITY), sum});
    } else {
        return false;
    }
    return true;
}

static uint32_t make_code(struct gir_maker *maker, const struct evaluation *e,
                          const struct scalar_code *code, const uint32_t *operands)
{
    const enum scalar_id id = code->id;
    if (id == SCALAR_WHEN)
        return operands[e->params[code->index] != 0 ? 0 : 1];
    if (id == SCALAR_OPT)
        return operands[operands[0] == GIR_NONE ? 1 : 0];
    if (id == SCALAR_LAST)
        return operands[e->last ? 0 : 1];
    const struct scalar_info *info = scalar_info(id);
    const tssa_dtype type = type_of(maker, operands[info->operands - 1]);
    if (!gir_computes(id, type))
        return refuse(maker, "kernels do not compute it of that element type");
    return gir_make_scalar(maker, id, info->kind == SCALAR_KIND_TEST ? TSSA_BOOL : type, operands);
}

static uint32_t evaluate(struct gir_maker *maker, const struct evaluation *e)
{
    uint32_t stack[SCALAR_MAX_STACK], n = 0;
    for (const struct scalar_code *code = e->program; code->id != SCALAR_END; code++) {
        const uint32_t operands = scalar_info(code->id)->operands;
        n -= operands;
        stack[n] = operands ? make_code(maker, e, code, &stack[n]) : make_leaf(maker, e, code);
        n++;
    }
    return stack[0];
}

/* ---- Reductions ------------------------------------------------------------------------------ */

/* What combining begins with, of elements of type `dtype`. The bounds of integers are those of
 * their own type, which is what is left where there are none. */
static uint64_t identity_of(struct gir_maker *maker, const struct evaluation *e, tssa_dtype dtype)
{
    const enum scalar_id id = e->program->id;
    if ((id == SCALAR_LOWEST || id == SCALAR_HIGHEST) && dtype_is_integer(dtype)) {
        const uint64_t bound = bound_of(dtype, id == SCALAR_LOWEST);
        struct gir_code code = {0};
        dtype_store_int64(e->type, &code.bits, dtype_load_int64(dtype, &bound));
        return code.bits;
    }
    const uint32_t value = evaluate(maker, e);
    return maker->why ? 0 : maker->codes[value].bits;
}

uint32_t gir_make_reduction(struct gir_maker *maker, enum reduction_row row, uint32_t value,
                            tssa_dtype *type)
{
    const struct reduction_info *info = &reduction_table[row];
    const tssa_dtype dtype = type_of(maker, value);
    *type = reduction_type(row, dtype);
    struct evaluation e = {.type = *type};
    e.operands[0] = gir_make_as(maker, value, e.type);
    if (info->shift >= 0)
        e.shift = gir_make_reduction(maker, (enum reduction_row)info->shift, e.operands[0], type);
    e.program = info->before;
    const uint32_t element = evaluate(maker, &e);
    e.program = info->identity;
    const uint64_t identity = identity_of(maker, &e, dtype);
    e.combined = gir_make(maker, (struct gir_code){.op = GIR_REDUCE,
                                                   .scalar = (uint8_t)info->combine,
                                                   .type = (uint8_t)e.type,
                                                   .operands = {element},
                                                   .bits = identity});
    e.program = info->after;
    return evaluate(maker, &e);
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* In which it is computed: halves in float. */
static tssa_dtype range_type(const struct ir_op *op)
{
    const tssa_dtype dtype = op->results[0].type->dtype;
    if (!dtype_is_float(dtype) || dtype_in(T_F32F64, dtype))
        return dtype;
    return ir_attr_int(op, "stash_type", TSSA_FLOAT) == TSSA_DOUBLE ? TSSA_DOUBLE : TSSA_FLOAT;
}

uint32_t gir_make_range(struct gir_maker *maker, const struct ir_op *op, uint32_t at,
                        uint32_t start, uint32_t delta)
{
    const tssa_dtype type = range_type(op);
    const uint32_t way = gir_make_scalar(
        maker, SCALAR_MUL, type,
        (uint32_t[]){gir_make_as(maker, at, type), gir_make_as(maker, delta, type)});
    const uint32_t value = gir_make_scalar(maker, SCALAR_ADD, type,
                                           (uint32_t[]){gir_make_as(maker, start, type), way});
    return gir_make_as(maker, value, op->results[0].type->dtype);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static uint32_t make_where(struct gir_maker *maker, const struct ir_op *op,
                           const uint32_t *operands)
{
    /* Elements are moved as they are: bytes of BOOL, too. */
    tssa_dtype type = dtype_of(op, 1);
    if (type == TSSA_BOOL)
        type = TSSA_UINT8;
    if (!gir_computes(SCALAR_SEL, type))
        return refuse(maker, "kernels have no such elements");
    const uint32_t values[] = {gir_make_as(maker, operands[0], TSSA_BOOL),
                               gir_make_as(maker, operands[1], type),
                               gir_make_as(maker, operands[2], type)};
    return gir_make_scalar(maker, SCALAR_SEL, type, values);
}

/* The number that a value is in every run. */
static bool is_number(const struct gir_maker *maker, uint32_t value, double *number)
{
    const struct gir_code *code = &maker->codes[value];
    if (maker->why || code->op != GIR_CONSTANT)
        return false;
    *number = dtype_load_double(code->type, &code->bits);
    return true;
}

static uint32_t make_pow(struct gir_maker *maker, const struct ir_op *op, struct evaluation *e,
                         const uint32_t *operands)
{
    double exponent;
    uint32_t result;
    e->operands[0] = gir_make_as(maker, operands[0], e->type);
    if (maker->why)
        return 0;
    if (dtype_in(T_F32F64, e->type) && is_number(maker, operands[1], &exponent) &&
        make_power(maker, e->operands[0], exponent, &result))
        return result;
    if (dtype_of(op, 0) != dtype_of(op, 1))
        return refuse(maker, "base and exponent have different types");
    e->operands[1] = gir_make_as(maker, operands[1], e->type);
    return evaluate(maker, e);
}

static uint32_t make_fold(struct gir_maker *maker, const struct ir_op *op, struct evaluation *e,
                          const uint32_t *operands)
{
    uint32_t value = gir_make_as(maker, operands[0], e->type);
    for (uint32_t i = 1; i < op->n_operands; i++) {
        e->operands[0] = value;
        e->operands[1] = gir_make_as(maker, operands[i], e->type);
        e->last = i + 1 == op->n_operands;
        value = evaluate(maker, e);
    }
    return value;
}

static uint32_t make_row(struct gir_maker *maker, const struct ir_op *op, const uint32_t *operands)
{
    const struct ew_info *ew = op->info->ew;
    struct evaluation e = {.program = ew->program, .op = op, .last = true};
    struct promotion promotion;
    if (!promote_op(op, &promotion))
        return refuse(maker, "operands have types that it does not take");
    e.type = promotion.alone;
    tssa_status *bad = scalar_params(op, e.params);
    if (bad) {
        tssa_status_free(bad);
        return refuse(maker, "an attribute is wrong");
    }
    if (dtype_is_float(e.type) && !dtype_is_float(promotion.operand))
        return refuse(maker, "integers are computed in double");
    if (ew->result == EW_FIRST)
        return make_pow(maker, op, &e, operands);
    if (op->info->max_operands == IR_VARIADIC)
        return make_fold(maker, op, &e, operands);
    for (uint32_t i = 0; i < 3; i++) {
        const bool present = i < op->n_operands && operands[i] != GIR_NONE;
        e.operands[i] = present ? gir_make_as(maker, operands[i], e.type) : GIR_NONE;
    }
    return evaluate(maker, &e);
}

uint32_t gir_make_op(struct gir_maker *maker, const struct ir_op *op, const uint32_t *operands)
{
    const tssa_dtype result = op->results[0].type->dtype;
    if (maker->why)
        return 0;
    if (ir_quantizes_elements(op))
        return gir_make_quantization(maker, op, operands);
    if (op->opaque || (!op->info->ew && !ir_op_is(op, IR_OP_Cast) && !ir_op_is(op, IR_OP_CastLike)))
        return refuse(maker, "kernels do not compute it");
    if (!dtype_in(T_FLOAT | T_INT | T_BOOL, result))
        return refuse(maker, "kernels have no such elements");
    if (!op->info->ew && dtype_of(op, 0) != TSSA_BOOL)
        return gir_make_as(maker, operands[0], result);
    if (!op->info->ew)
        return gir_make_as(maker, gir_make_as(maker, operands[0], TSSA_BOOL), result);
    if (op->info->ew->result == EW_WHERE)
        return make_where(maker, op, operands);
    const uint32_t value = make_row(maker, op, operands);
    /* What was computed in a wider type is rounded once. */
    return result == TSSA_BOOL ? value : gir_make_as(maker, value, result);
}

void gir_number_values(const struct ir_block *block, uint32_t *first, uint32_t *n)
{
    uint32_t low = UINT32_MAX, high = 0;
    for (uint32_t i = 0; i < block->n_params; i++) {
        const uint32_t id = block->params[i]->id;
        low = id < low ? id : low;
        high = id > high ? id : high;
    }
    for (const struct ir_op *op = block->first; op; op = op->next)
        for (uint32_t i = 0; i < op->n_results; i++) {
            const uint32_t id = op->results[i].id;
            low = id < low ? id : low;
            high = id > high ? id : high;
        }
    *first = low;
    *n = low <= high ? high - low + 1 : 0;
}
