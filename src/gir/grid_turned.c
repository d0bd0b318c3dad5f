/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookups that are turned (gir.h): from one element of the part to the next their number does not
 * grow by 1, or 0, but along an axis before the last one it does. How it grows is seen in samples,
 * of sizes that nobody knows yet as well: a number that is wrong elsewhere costs time, and nothing
 * else.
 */
#include "gir/grid_maker.h"
#include "gir/grid_reach.h"

/* Of fewer, or less in all, what threads read side by side is little more than they do anyway. */
#define LEAST_ALONG 8
#define LEAST_ELEMENTS 1024

#define UNKNOWN INT64_MIN
/* Elements of the block's memory for each lookup: of codegen/clike/turned.c. */
#define ROOM 1056

/* Sizes for symbols: primes, so that none is the product of others. */
static const int64_t primes[] = {37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103};
#define N_PRIMES (sizeof primes / sizeof *primes)

struct sample {
    const struct dim *symbols[N_PRIMES];
    int64_t numbers[GIR_MAX_NUMBERS];
    int64_t sizes[TSSA_MAX_RANK];
    int64_t strides[TSSA_MAX_RANK]; /* of the part's elements */
    int64_t begin[GIR_MAX_CODES];   /* per step: what it is of an element amidst the part */
    /* how much it grows from there along each axis */
    int64_t grows[TSSA_MAX_RANK][GIR_MAX_CODES];
    struct gir_reach reach;
};

/* ---- Sizes ----------------------------------------------------------------------------------- */

static bool size_of_symbol(void *context, const struct dim *symbol, int64_t *value)
{
    struct sample *s = context;
    size_t i = 0;
    while (i < N_PRIMES && s->symbols[i] && s->symbols[i] != symbol)
        i++;
    if (i == N_PRIMES)
        return false;
    s->symbols[i] = symbol;
    *value = primes[i];
    return true;
}

static bool choose_sizes(struct sample *s, const struct gir_grid *grid,
                         const struct gir_grid_part *part)
{
    int64_t stride = 1;
    for (uint32_t i = 0; i < grid->n_numbers; i++)
        if (!dim_eval(grid->numbers[i], size_of_symbol, s, &s->numbers[i]))
            return false;
    for (int i = part->rank; i-- > 0;) {
        s->strides[i] = stride;
        if (!dim_eval(part->dims[i], size_of_symbol, s, &s->sizes[i]) || s->sizes[i] < 1 ||
            __builtin_mul_overflow(stride, s->sizes[i], &stride))
            return false;
    }
    return true;
}

/* ---- Growth ---------------------------------------------------------------------------------- */

static void evaluate(struct sample *s, const struct gir_kernel *kernel, int64_t element,
                     int64_t *values)
{
    const struct gir_reach_of of = {.positions = {element, element}, .numbers = s->numbers};
    gir_find_reach(kernel, &of, &s->reach);
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_interval range = s->reach.ranges[i];
        values[i] = range.low == range.high ? range.low : UNKNOWN;
    }
}

static void find_growth(struct sample *s, const struct gir_grid_part *part)
{
    const uint32_t n = part->kernel->n_codes;
    int64_t middle = 0;
    for (int i = 0; i < part->rank; i++)
        middle += (s->sizes[i] - 1) / 2 * s->strides[i];
    evaluate(s, part->kernel, middle, s->begin);
    for (int i = 0; i < part->rank; i++) {
        evaluate(s, part->kernel, middle + s->strides[i], s->grows[i]);
        for (uint32_t k = 0; k < n; k++) {
            int64_t *grows = &s->grows[i][k];
            if (*grows != UNKNOWN &&
                (s->begin[k] == UNKNOWN || __builtin_sub_overflow(*grows, s->begin[k], grows)))
                *grows = UNKNOWN;
        }
    }
}

/* ---- Axes ------------------------------------------------------------------------------------ */

/* The last axis that has more than one element; -1: none has. */
static int last_axis(const struct sample *s, int rank)
{
    int axis = rank - 1;
    while (axis >= 0 && s->sizes[axis] == 1)
        axis--;
    return axis;
}

/* The axis along which the number grows by 1; -1: there is none, or it is good as it is. */
static int turned_axis(const struct sample *s, uint32_t number, int last)
{
    const int64_t grows = s->grows[last][number];
    int axis = last - 1;
    if (grows == UNKNOWN || (grows >= -1 && grows <= 1))
        return -1;
    while (axis >= 0 && (s->sizes[axis] == 1 || s->grows[axis][number] != 1))
        axis--;
    return axis;
}

/* The first of the axes that are one for the number: each goes on where the next one ends. */
static int first_axis(const struct sample *s, uint32_t number, int axis)
{
    int64_t size = s->sizes[axis];
    while (axis > 0 && (s->sizes[axis - 1] == 1 || s->grows[axis - 1][number] == size))
        size *= s->sizes[--axis];
    return axis;
}

/* May it be worth while, for all that is known? */
static bool is_enough(const struct gir_grid_part *part, int from, int to)
{
    int64_t along, inner;
    const bool is_along = grid_known_count(part->dims + from, to - from, &along),
               is_inner = grid_known_count(part->dims + to, part->rank - to, &inner);
    return (!is_along || along >= LEAST_ALONG) && (!is_inner || inner >= LEAST_ALONG) &&
           (!is_along || !is_inner || along >= LEAST_ELEMENTS / inner);
}

/* ---- Lookups --------------------------------------------------------------------------------- */

/* Does all that is stored lie as the part's elements do? */
static bool stores_in_order(const struct sample *s, const struct gir_kernel *kernel, int last)
{
    const struct gir_code *codes = gir_codes(kernel);
    bool good = true;
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        if (codes[i].op == GIR_STORE_AT)
            good &= s->grows[last][codes[i].operands[1]] == 1;
    return good;
}

/* Bytes of an element of each lookup: beside what other parts of the launch have of the block. */
static bool has_room(const struct grid_maker *m, uint32_t bytes)
{
    return bytes <= GIR_MAX_TURNED && m->of_block + (size_t)bytes * ROOM <= GRID_MOST_OF_BLOCK;
}

/* The first lookup says along which axes: others are turned if they go along the same. */
static void mark(const struct sample *s, const struct grid_maker *m, struct gir_grid_part *part,
                 int last)
{
    struct gir_kernel *kernel = part->kernel;
    struct gir_code *codes = (struct gir_code *)gir_codes(kernel); /* the kernel is being made */
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const uint32_t number = codes[i].operands[0];
        const int axis = codes[i].op == GIR_LOOKUP ? turned_axis(s, number, last) : -1;
        if (axis < 0 || (part->turned_to && part->turned_to != axis + 1))
            continue;
        const uint32_t size = dtype_info((tssa_dtype)codes[i].type)->size;
        const int own = first_axis(s, number, axis),
                  from = part->turned_from > own ? part->turned_from : own;
        if (!has_room(m, bytes + size) || !is_enough(part, from, axis + 1))
            continue;
        bytes += size;
        part->turned_from = from;
        part->turned_to = axis + 1;
        codes[i].bits = gir_bits(gir_arg_of(&codes[i]), GIR_TURNED);
    }
}

/* Is something looked up that is not simply where the element is? */
static bool looks_elsewhere(const struct gir_kernel *kernel)
{
    const struct gir_code *codes = gir_codes(kernel);
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        if (codes[i].op == GIR_LOOKUP && codes[codes[i].operands[0]].op == GIR_SCALAR)
            return true;
    return false;
}

static bool has_elements(const struct grid_maker *m, const struct gir_grid_part *part)
{
    return !m->loop && !m->n_cuts && !part->sums && part->row == 0 && part->column < 0 &&
           part->rank > 1;
}

void grid_find_turned(struct grid_maker *m, struct gir_grid_part *part)
{
    if (!has_elements(m, part) || !looks_elsewhere(part->kernel))
        return;
    struct sample *s = allocator_calloc(m->grid->allocator, 1, sizeof *s);
    if (!s) {
        m->status = status_out_of_memory();
        return;
    }
    if (choose_sizes(s, m->grid, part)) {
        const int last = last_axis(s, part->rank);
        find_growth(s, part);
        if (last > 0 && stores_in_order(s, part->kernel, last))
            mark(s, m, part, last);
    }
    allocator_free(m->grid->allocator, s);
}
