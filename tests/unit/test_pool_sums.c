/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AveragePool and LpPool give the bits of their order, written out here: each row of a window from
 * left to right, then its rows; of windows that are the whole input, those of reductions. For
 * random windows, and any number of threads.
 */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/op_numbers.h"
#include "ir/scalar/f32_wide.h"
#include "ir/scalar/f64_pow.h"

enum { RANK = 3 };

struct geometry {
    int rank, p; /* p 0: AveragePool */
    int64_t kernel[RANK], strides[RANK], dilations[RANK], pads[2 * RANK];
    bool include_pad, ceil_mode;
    int64_t dims[2 + RANK];
};

static void some_geometry(struct random *random, struct geometry *g)
{
    const bool large = random_int(random, 0, 9) == 0;
    g->rank = (int)random_int(random, 1, RANK);
    g->p = (int)random_int(random, 0, 3);
    g->include_pad = random_int(random, 0, 1);
    g->ceil_mode = random_int(random, 0, 1);
    g->dims[0] = 1;
    g->dims[1] = random_int(random, 0, 3) ? random_int(random, 1, 3) : random_int(random, 8, 20);
    for (int i = 0; i < g->rank; i++) {
        g->kernel[i] =
            large ? random_int(random, 1, g->rank == 1 ? 90 : 12) : random_int(random, 1, 4);
        g->strides[i] = random_int(random, 1, 3);
        g->dilations[i] = random_int(random, 1, 2);
        int64_t extent = (g->kernel[i] - 1) * g->dilations[i] + 1;
        g->pads[i] = random_int(random, 0, extent - 1);
        g->pads[g->rank + i] = random_int(random, 0, extent - 1);
        g->dims[2 + i] = extent + random_int(random, 0, g->rank == 3 ? 6 : 40);
    }
}

/* Of an element. */
static double raised(const struct geometry *g, tssa_dtype dtype, double x)
{
    if (g->p < 2)
        return g->p ? fabs(x) : x;
    if (g->p == 2)
        return op_rounded(dtype, x * x);
    return dtype == TSSA_DOUBLE ? f64_pow(fabs(x), g->p)
                                : (double)f32_pow((float)fabs(x), (float)g->p);
}

static double rooted(const struct geometry *g, tssa_dtype dtype, double sum)
{
    return op_rounded(dtype, g->p == 2 ? sqrt(sum) : g->p == 3 ? f64_pow(sum, 1.0 / 3) : sum);
}

/* The element that tap `k` of window `o` reads along an axis; padded: is it in the padding, or the
 * input? */
static int64_t position(const struct geometry *g, int i, int64_t o, int64_t k, bool *inside,
                        bool *padded)
{
    int64_t at = o * g->strides[i] + k * g->dilations[i] - g->pads[i], n = g->dims[2 + i];
    *inside &= at >= 0 && at < n;
    *padded &= at >= -g->pads[i] && at < n + g->pads[g->rank + i];
    return at;
}

static double window(const struct geometry *g, const struct tensor *x, int64_t plane,
                     const int64_t *o)
{
    const int last = g->rank - 1;
    double sum = 0, line = 0;
    int64_t taps = 1, count = 0, padded_count = 0;
    for (int i = 0; i < g->rank; i++)
        taps *= g->kernel[i];
    for (int64_t t = 0; t < taps; t++) {
        int64_t k[RANK], at = plane;
        bool inside = true, padded = true;
        unflatten(g->rank, g->kernel, t, k);
        for (int i = 0; i < g->rank; i++)
            at = at * g->dims[2 + i] + position(g, i, o[i], k[i], &inside, &padded);
        if (inside)
            line = op_rounded(x->dtype, line + raised(g, x->dtype, op_number(x, at)));
        count += inside;
        padded_count += padded;
        if (k[last] == g->kernel[last] - 1) {
            sum = op_rounded(x->dtype, sum + line);
            line = 0;
        }
    }
    if (g->p)
        return rooted(g, x->dtype, sum);
    count = g->include_pad ? padded_count : count;
    return count ? op_rounded(x->dtype, sum / (double)count) : 0;
}

static void begin(struct op_run *t, enum ir_op_id id, const struct geometry *g)
{
    const size_t rank = (size_t)g->rank;
    op_begin(t, id, 0);
    op_ints(t, "kernel_shape", rank, g->kernel);
    op_ints(t, "strides", rank, g->strides);
    op_ints(t, "dilations", rank, g->dilations);
    op_ints(t, "pads", 2 * rank, g->pads);
    op_int(t, "count_include_pad", g->include_pad);
    op_int(t, "ceil_mode", g->ceil_mode);
    op_int(t, "p", g->p ? g->p : 2);
}

static bool whole(const struct geometry *g, const struct tensor *y)
{
    bool all = true;
    for (int i = 0; i < g->rank; i++)
        all &= g->kernel[i] == g->dims[2 + i] && g->dilations[i] == 1 && g->pads[i] == 0 &&
               g->pads[g->rank + i] == 0 && y->dims[2 + i] == 1;
    return all && g->p < 3;
}

static void test_order(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT, TSSA_FLOAT16, TSSA_DOUBLE,
                                        TSSA_BFLOAT16};
    struct random random = {3};
    (void)state;
    for (int round = 0; round < 700; round++) {
        struct geometry g;
        struct team team;
        struct op_run t;
        some_geometry(&random, &g);
        begin(&t, g.p ? IR_OP_LpPool : IR_OP_AveragePool, &g);
        op_threads(&t, &team, (int)random_int(&random, 1, 3));
        const struct tensor *x =
            op_add_numbers(&t, &random, dtypes[random_int(&random, 0, 4)], g.rank + 2, g.dims);
        op_go(&t);
        const struct tensor *y = &t.outputs[0].tensor;
        int64_t count = (int64_t)tensor_count(y), each = count / g.dims[1];
        for (int64_t i = 0; i < count && !whole(&g, y); i++) {
            int64_t o[RANK];
            unflatten(g.rank, y->dims + 2, i % each, o);
            op_expect_number(y, i, window(&g, x, i / each, o));
        }
        op_close(&t);
    }
}

/* The whole input: the global operators, which reduce. */
static void test_whole(void **state)
{
    const struct {
        enum ir_op_id windows, global;
        int p;
    } pairs[] = {{IR_OP_AveragePool, IR_OP_GlobalAveragePool, 0},
                 {IR_OP_LpPool, IR_OP_GlobalLpPool, 1},
                 {IR_OP_LpPool, IR_OP_GlobalLpPool, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const struct geometry g = {.rank = 2,
                                   .p = pairs[i].p,
                                   .kernel = {37, 50},
                                   .strides = {1, 1},
                                   .dilations = {1, 1},
                                   .dims = {2, 3, 37, 50}};
        struct random random = {9};
        struct op_run a, b;
        begin(&a, pairs[i].windows, &g);
        const struct tensor *x = op_add_numbers(&a, &random, TSSA_FLOAT, 4, g.dims);
        op_go(&a);
        op_begin(&b, pairs[i].global, 0);
        op_int(&b, "p", g.p ? g.p : 2);
        op_add(&b, TSSA_FLOAT, 4, g.dims, x->data);
        op_go(&b);
        assert_memory_equal(a.outputs[0].tensor.data, b.outputs[0].tensor.data, 6 * sizeof(float));
        op_close(&a);
        op_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
