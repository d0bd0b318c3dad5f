/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a grid's kernel, and what is known of them when it is made; see grid_maker.h. */
#include <string.h>

#include "gir/grid_maker.h"

uint32_t grid_refuse(struct grid_maker *m, const char *why)
{
    if (!m->maker.why)
        m->maker.why = why;
    return 0;
}

uint32_t grid_constant(struct grid_maker *m, int64_t value)
{
    return gir_make(
        &m->maker,
        (struct gir_code){.op = GIR_CONSTANT, .type = TSSA_INT64, .bits = (uint64_t)value});
}

bool grid_is_constant(const struct grid_maker *m, uint32_t step, int64_t *value)
{
    if (m->maker.why || m->maker.codes[step].op != GIR_CONSTANT)
        return false;
    *value = (int64_t)m->maker.codes[step].bits;
    return true;
}

static bool is(const struct grid_maker *m, uint32_t step, int64_t number)
{
    int64_t value;
    return grid_is_constant(m, step, &value) && value == number;
}

uint32_t grid_dim(struct grid_maker *m, const struct dim *dim)
{
    int64_t value;
    if (dim_is_const(dim, &value))
        return grid_constant(m, value);
    dim = grid_told(m, dim);
    if (!dim)
        return grid_refuse(m, "nobody tells how much there is of what it computes");
    uint32_t i = 0;
    while (i < m->grid->n_numbers && m->grid->numbers[i] != dim)
        i++;
    if (i == GIR_MAX_NUMBERS)
        return grid_refuse(m, "it has more dims than kernels may be told");
    m->grid->numbers[i] = dim;
    m->grid->n_numbers += i == m->grid->n_numbers;
    return gir_make(&m->maker, (struct gir_code){.op = GIR_NUMBER, .type = TSSA_INT64, .bits = i});
}

static uint32_t make(struct grid_maker *m, enum scalar_id id, uint32_t a, uint32_t b)
{
    return gir_make_scalar(&m->maker, id, TSSA_INT64, (uint32_t[]){a, b});
}

/* The sum of a number that is not known and one that is. */
static bool is_sum(const struct grid_maker *m, uint32_t step, uint32_t *rest, int64_t *known)
{
    const struct gir_code *code = &m->maker.codes[step];
    if (m->maker.why || code->op != GIR_SCALAR || code->scalar != SCALAR_ADD ||
        !grid_is_constant(m, code->operands[1], known))
        return false;
    *rest = code->operands[0];
    return true;
}

static bool is_of(const struct grid_maker *m, uint32_t step, enum scalar_id id, uint32_t operand)
{
    const struct gir_code *code = &m->maker.codes[step];
    return code->op == GIR_SCALAR && code->scalar == id && code->operands[1] == operand;
}

/* x % c and x / c * c: the number that was taken apart. */
static bool is_split(const struct grid_maker *m, uint32_t rest, uint32_t product, uint32_t *whole)
{
    const struct gir_code *codes = m->maker.codes;
    if (m->maker.why || codes[rest].op != GIR_SCALAR || codes[rest].scalar != SCALAR_FMOD ||
        codes[product].op != GIR_SCALAR || codes[product].scalar != SCALAR_MUL)
        return false;
    const uint32_t by = codes[rest].operands[1], quotient = codes[product].operands[0];
    *whole = codes[rest].operands[0];
    return is_of(m, product, SCALAR_MUL, by) && is_of(m, quotient, SCALAR_DIV, by) &&
           codes[quotient].operands[0] == *whole;
}

static int64_t wrapped(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

uint32_t grid_add(struct grid_maker *m, uint32_t a, uint32_t b)
{
    int64_t x, y;
    uint32_t rest;
    if (grid_is_constant(m, a, &x)) {
        if (grid_is_constant(m, b, &y))
            return grid_constant(m, wrapped(x, y));
        return grid_add(m, b, a);
    }
    if (is(m, b, 0))
        return a;
    if (is_split(m, a, b, &rest))
        return rest;
    if (grid_is_constant(m, b, &y) && is_sum(m, a, &rest, &x))
        return grid_add(m, rest, grid_constant(m, wrapped(x, y)));
    return make(m, SCALAR_ADD, a, b);
}

uint32_t grid_sub(struct grid_maker *m, uint32_t a, uint32_t b)
{
    int64_t y;
    if (grid_is_constant(m, b, &y))
        return grid_add(m, a, grid_constant(m, wrapped(0, -y)));
    return a == b ? grid_constant(m, 0) : make(m, SCALAR_SUB, a, b);
}

uint32_t grid_mul(struct grid_maker *m, uint32_t a, uint32_t b)
{
    int64_t x, y;
    if (grid_is_constant(m, a, &x) && grid_is_constant(m, b, &y))
        return grid_constant(m, (int64_t)((uint64_t)x * (uint64_t)y));
    if (is(m, a, 0) || is(m, b, 0))
        return grid_constant(m, 0);
    return is(m, a, 1) ? b : is(m, b, 1) ? a : make(m, SCALAR_MUL, a, b);
}

uint32_t grid_div(struct grid_maker *m, uint32_t a, uint32_t b)
{
    int64_t x, y;
    if (grid_is_constant(m, a, &x) && grid_is_constant(m, b, &y) && y > 0)
        return grid_constant(m, x / y);
    return is(m, b, 1) ? a : make(m, SCALAR_DIV, a, b);
}

uint32_t grid_rest(struct grid_maker *m, uint32_t a, uint32_t b)
{
    int64_t x, y;
    if (grid_is_constant(m, a, &x) && grid_is_constant(m, b, &y) && y > 0)
        return grid_constant(m, x % y);
    return is(m, b, 1) ? grid_constant(m, 0) : make(m, SCALAR_FMOD, a, b);
}

uint32_t grid_min(struct grid_maker *m, uint32_t a, uint32_t b)
{
    int64_t x, y;
    if (grid_is_constant(m, a, &x) && grid_is_constant(m, b, &y))
        return x < y ? a : b;
    return make(m, SCALAR_MIN, a, b);
}

uint32_t grid_max(struct grid_maker *m, uint32_t a, uint32_t b)
{
    int64_t x, y;
    if (grid_is_constant(m, a, &x) && grid_is_constant(m, b, &y))
        return x < y ? b : a;
    return make(m, SCALAR_MAX, a, b);
}

uint32_t grid_test(struct grid_maker *m, enum scalar_id id, uint32_t a, uint32_t b)
{
    return gir_make_scalar(&m->maker, id, TSSA_BOOL, (uint32_t[]){a, b});
}

uint32_t grid_both(struct grid_maker *m, uint32_t a, uint32_t b)
{
    if (a == GIR_NONE || b == GIR_NONE || a == b)
        return a == GIR_NONE ? b : a;
    return grid_test(m, SCALAR_AND, a, b);
}

uint32_t grid_choose(struct grid_maker *m, uint32_t truth, uint32_t a, uint32_t b)
{
    if (m->maker.why || a == b)
        return a;
    return gir_make_scalar(&m->maker, SCALAR_SEL, (tssa_dtype)m->maker.codes[a].type,
                           (uint32_t[]){truth, a, b});
}

/* Is it not negative, where an element is? */
static bool is_natural(const struct grid_maker *m, uint32_t number)
{
    int64_t value;
    if (m->maker.why)
        return false;
    const struct gir_code *code = &m->maker.codes[number];
    if (code->op == GIR_SCALAR && code->scalar == SCALAR_ADD)
        return is_natural(m, code->operands[0]) && is_natural(m, code->operands[1]);
    return code->op == GIR_ROW || code->op == GIR_POSITION ||
           (grid_is_constant(m, number, &value) && value >= 0 && value <= INT32_MAX);
}

uint32_t grid_from_end(struct grid_maker *m, uint32_t number, uint32_t count)
{
    int64_t value;
    if (is_natural(m, number))
        return number;
    if (grid_is_constant(m, number, &value))
        return value < 0 ? grid_add(m, count, number) : number;
    const uint32_t zero = grid_constant(m, 0);
    return grid_choose(m, grid_test(m, SCALAR_LT, number, zero), grid_add(m, number, count),
                       number);
}

void grid_check(struct grid_maker *m, uint32_t number, uint32_t count)
{
    int64_t value, most;
    if (grid_is_constant(m, number, &value) && grid_is_constant(m, count, &most) && value >= 0 &&
        value < most)
        return;
    if (m->in_term) {
        grid_refuse(m, "each term would be checked");
        return;
    }
    uint32_t holds = grid_test(m, SCALAR_LT, number, count);
    if (!is_natural(m, number))
        holds = grid_both(m, grid_test(m, SCALAR_GE, number, grid_constant(m, 0)), holds);
    uint32_t active = m->active;
    if (m->walks && !m->maker.why &&
        !grid_varies(m, holds)) /* it is made without an iteration, too */
        active = grid_both(m, active, grid_loop_runs(m));
    if (active != GIR_NONE) {
        const uint32_t other = gir_make_scalar(&m->maker, SCALAR_NOT, TSSA_BOOL, &active);
        holds = grid_test(m, SCALAR_OR, other, holds);
    }
    gir_make(&m->maker, (struct gir_code){.op = GIR_CHECK, .type = TSSA_BOOL, .operands = {holds}});
}

static bool is_space(const struct grid_maker *m, const struct grid_place *place,
                     const struct dim *const *dims)
{
    bool same = m->number != GIR_NONE && place->rank == m->space.rank;
    for (int i = 0; same && i < place->rank; i++)
        same = place->at[i] == m->space.at[i] && dims[i] == m->part->dims[i];
    return same;
}

uint32_t grid_flatten(struct grid_maker *m, const struct grid_place *place,
                      const struct dim *const *dims)
{
    if (is_space(m, place, dims))
        return m->number;
    uint32_t number = grid_constant(m, 0), step = grid_constant(m, 1);
    for (int i = place->rank; i-- > 0;) {
        number = grid_add(m, number, grid_mul(m, place->at[i], step));
        step = i > 0 ? grid_mul(m, step, grid_dim(m, dims[i])) : step;
    }
    if (grid_is_inside(m, place, dims))
        grid_know_below(m, number, grid_count(m, dims, place->rank));
    return number;
}

void grid_unflatten(struct grid_maker *m, uint32_t number, int rank, const struct dim *const *dims,
                    struct grid_place *place)
{
    const bool inside = grid_is_below(m, number, grid_count(m, dims, rank));
    place->rank = rank;
    for (int i = rank; i-- > 0;) {
        bool leads = true;
        for (int k = 0; k < i; k++)
            leads &= dim_is(dims[k], 1);
        const uint32_t size = grid_dim(m, dims[i]),
                       next = leads ? number : grid_div(m, number, size);
        place->at[i] = dim_is(dims[i], 1) ? grid_constant(m, 0)
                       : leads            ? number
                                          : grid_rest(m, number, size);
        number = next;
    }
    if (inside)
        grid_know_inside(m, place, dims);
}

void grid_insert(struct grid_place *place, int64_t axis, uint32_t at)
{
    memmove(&place->at[axis + 1], &place->at[axis],
            (size_t)(place->rank - axis) * sizeof *place->at);
    place->at[axis] = at;
    place->rank++;
}
