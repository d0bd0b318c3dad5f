/* SPDX-License-Identifier: Apache-2.0 */
#include "gir/grid_reach.h"

#include "base/integers.h"

static const struct gir_interval all = {INT64_MIN, INT64_MAX};

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool is_one(struct gir_interval range)
{
    return range.low == range.high;
}

static struct gir_interval meet(struct gir_interval a, struct gir_interval b)
{
    return (struct gir_interval){most(a.low, b.low), least(a.high, b.high)};
}

static struct gir_interval join(struct gir_interval a, struct gir_interval b)
{
    return (struct gir_interval){least(a.low, b.low), most(a.high, b.high)};
}

/* ---- Operations ------------------------------------------------------------------------------ */

static struct gir_interval add(struct gir_interval a, struct gir_interval b)
{
    struct gir_interval sum = {0, 0};
    return __builtin_add_overflow(a.low, b.low, &sum.low) ||
                   __builtin_add_overflow(a.high, b.high, &sum.high)
               ? all
               : sum;
}

static struct gir_interval subtract(struct gir_interval a, struct gir_interval b)
{
    struct gir_interval rest = {0, 0};
    return __builtin_sub_overflow(a.low, b.high, &rest.low) ||
                   __builtin_sub_overflow(a.high, b.low, &rest.high)
               ? all
               : rest;
}

static struct gir_interval multiply(struct gir_interval a, struct gir_interval b)
{
    int64_t ends[4];
    if (__builtin_mul_overflow(a.low, b.low, &ends[0]) ||
        __builtin_mul_overflow(a.low, b.high, &ends[1]) ||
        __builtin_mul_overflow(a.high, b.low, &ends[2]) ||
        __builtin_mul_overflow(a.high, b.high, &ends[3]))
        return all;
    return (struct gir_interval){least(least(ends[0], ends[1]), least(ends[2], ends[3])),
                                 most(most(ends[0], ends[1]), most(ends[2], ends[3]))};
}

/* By 0, where there is nothing: 0, or the number itself, as it is printed. */
static struct gir_interval by_none(struct gir_interval a)
{
    return join(a, (struct gir_interval){0, 0});
}

/* By one size. */
static struct gir_interval divide(struct gir_interval a, struct gir_interval b)
{
    if (!is_one(b) || b.low < 0)
        return all;
    if (b.low == 0)
        return by_none(a);
    return (struct gir_interval){a.low / b.low, a.high / b.low};
}

static struct gir_interval rest(struct gir_interval a, struct gir_interval b)
{
    if (!is_one(b) || b.low < 0)
        return all;
    if (b.low == 0)
        return by_none(a);
    if (a.low >= 0 && a.low / b.low == a.high / b.low)
        return (struct gir_interval){a.low % b.low, a.high % b.low};
    return (struct gir_interval){a.low < 0 ? most(a.low, 1 - b.low) : 0,
                                 a.high > 0 ? least(a.high, b.low - 1) : 0};
}

static struct gir_interval of_scalar(const struct gir_code *code, const struct gir_interval *ranges)
{
    const struct gir_interval a = ranges[code->operands[0]], b = ranges[code->operands[1]];
    switch ((enum scalar_id)code->scalar) {
    case SCALAR_ADD:
        return add(a, b);
    case SCALAR_SUB:
        return subtract(a, b);
    case SCALAR_MUL:
        return multiply(a, b);
    case SCALAR_DIV:
        return divide(a, b);
    case SCALAR_FMOD:
        return rest(a, b);
    case SCALAR_MIN:
        return (struct gir_interval){least(a.low, b.low), least(a.high, b.high)};
    case SCALAR_MAX:
        return (struct gir_interval){most(a.low, b.low), most(a.high, b.high)};
    case SCALAR_SEL:
        return join(b, ranges[code->operands[2]]);
    default:
        return all;
    }
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static struct gir_interval of_number(int64_t number)
{
    return (struct gir_interval){number, number};
}

static struct gir_interval of_step(const struct gir_code *code, const struct gir_interval *ranges,
                                   const struct gir_reach_of *of)
{
    if (code->type != TSSA_INT64)
        return all;
    switch ((enum gir_op)code->op) {
    case GIR_CONSTANT:
        return of_number((int64_t)code->bits);
    case GIR_NUMBER:
        return of->numbers ? of_number(of->numbers[code->bits]) : all;
    case GIR_ROW:
        return of->rows;
    case GIR_POSITION:
        return of->positions;
    case GIR_TRIP:
        return of->trips;
    case GIR_SCALAR:
        return of_scalar(code, ranges);
    default:
        return all;
    }
}

static bool is_constant(const struct gir_code *code)
{
    return code->op == GIR_CONSTANT && code->type == TSSA_INT64;
}

/* What is true tells of numbers that are compared with constants. */
static void check(const struct gir_code *codes, uint32_t truth, struct gir_interval *checked)
{
    const struct gir_code *code = &codes[truth];
    const uint32_t a = code->operands[0], b = code->operands[1];
    if (code->op != GIR_SCALAR)
        return;
    if (code->scalar == SCALAR_AND) {
        check(codes, a, checked);
        check(codes, b, checked);
    } else if ((code->scalar == SCALAR_GE || code->scalar == SCALAR_LT) && is_constant(&codes[b])) {
        const int64_t bound = (int64_t)codes[b].bits;
        if (code->scalar == SCALAR_GE)
            checked[a] = meet(checked[a], (struct gir_interval){bound, INT64_MAX});
        else if (bound > INT64_MIN)
            checked[a] = meet(checked[a], (struct gir_interval){INT64_MIN, bound - 1});
    }
}

void gir_find_ranges(const struct gir_kernel *kernel, const struct gir_reach_of *of,
                     struct gir_interval *ranges)
{
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        ranges[i] = of_step(&gir_codes(kernel)[i], ranges, of);
}

void gir_find_reach(const struct gir_kernel *kernel, const struct gir_reach_of *of,
                    struct gir_reach *reach)
{
    const struct gir_code *codes = gir_codes(kernel);
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        reach->checked[i] = all;
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        if (codes[i].op == GIR_CHECK)
            check(codes, codes[i].operands[0], reach->checked);
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        reach->ranges[i] = meet(of_step(&codes[i], reach->ranges, of), reach->checked[i]);
}
