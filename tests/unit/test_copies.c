/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between rows and vectors whose lanes are rows: of all sizes of elements, of rows and
 * elements of all small numbers, wherever these lie; and nothing else is written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/isa.h"
#include "common/xmalloc.h"
#include "device/cpu/copies.h"

#define MOST_ELEMENTS 45
#define EDGE 64 /* bytes around */
#define UNTOUCHED 0xa5

struct shape {
    int64_t size, step, between, elements, n;
};

/* Where rows and vectors have an element of a row. */
static int64_t in_rows(const struct shape *s, int64_t row, int64_t element)
{
    return EDGE + row * s->step + element * s->between;
}

static int64_t in_vectors(const struct shape *s, int64_t row, int64_t element)
{
    return EDGE + (element * CODEGEN_ROWS + row) * s->size;
}

static void fill(unsigned char *bytes, size_t size)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)((x = x * 1664525 + 1013904223) >> 24);
}

struct copies {
    const codegen_copy *in, *out;
};

static void check(const struct copies *copies, const struct shape *s, unsigned which)
{
    const size_t rows_size = (size_t)in_rows(s, CODEGEN_ROWS, s->elements + 1) + EDGE,
                 vectors_size = (size_t)in_vectors(s, 0, s->elements) + EDGE;
    unsigned char *rows = xrealloc(NULL, rows_size), *vectors = xrealloc(NULL, vectors_size),
                  *wanted = xrealloc(NULL, rows_size);
    fill(rows, rows_size);
    memset(vectors, UNTOUCHED, vectors_size);
    copies->in[which](rows + EDGE, s->step, s->between, vectors + EDGE, s->elements, s->n);
    for (int64_t e = 0; e < s->elements; e++)
        for (int64_t r = 0; r < s->n; r++)
            assert_memory_equal(vectors + in_vectors(s, r, e), rows + in_rows(s, r, e), s->size);
    for (int64_t i = 0; i < EDGE; i++) {
        assert_int_equal(vectors[i], UNTOUCHED);
        assert_int_equal(vectors[(int64_t)vectors_size - 1 - i], UNTOUCHED);
    }
    fill(vectors, vectors_size);
    memset(rows, UNTOUCHED, rows_size);
    memset(wanted, UNTOUCHED, rows_size);
    for (int64_t e = 0; e < s->elements; e++)
        for (int64_t r = 0; r < s->n; r++)
            memcpy(wanted + in_rows(s, r, e), vectors + in_vectors(s, r, e), (size_t)s->size);
    if (s->step)
        copies->out[which](rows + EDGE, s->step, s->between, vectors + EDGE, s->elements, s->n);
    if (s->step)
        assert_memory_equal(rows, wanted, rows_size);
    free(rows);
    free(vectors);
    free(wanted);
}

static void check_shapes(const struct copies *copies)
{
    for (unsigned which = 0; which < CODEGEN_SIZES; which++)
        for (int64_t elements = 0; elements <= MOST_ELEMENTS; elements++)
            for (int64_t n = 1; n <= CODEGEN_ROWS; n++) {
                const int64_t size = (int64_t)1 << which, row = (elements + 1) * size;
                const int64_t lies[][2] = {
                    {elements * size, size},   /* rows behind each other */
                    {row + 2 * size, size},    /* parts of longer ones */
                    {size, 40 * size},         /* planes */
                    {0, size},                 /* one row for all */
                    {3 * size, 3 * size * 40}, /* neither lies side by side */
                    {row * 2 * size, 2 * size},
                };
                for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
                    const struct shape shape = {size, lies[i][0], lies[i][1], elements, n};
                    check(copies, &shape, which);
                }
            }
}

static void base(void **state)
{
    (void)state;
    check_shapes(&(struct copies){cpu_copies_in_base, cpu_copies_out_base});
}

static void v3(void **state)
{
    (void)state;
    if (isa_level() < ISA_V3)
        skip();
    check_shapes(&(struct copies){cpu_copies_in_v3, cpu_copies_out_v3});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(base), cmocka_unit_test(v3)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
