/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvTranspose by rows, of constant weights, against what is computed of others: of small whole
 * numbers, whose sums are exact in any order, the bits are the same. Any number of axes, strides,
 * dilations, pads and images; small products and those that a library packs weights for.
 */
/* ctest-isa: v3 base */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/isa.h"
#include "common/op_numbers.h"
#include "common/op_run.h"
#include "kernels/cpu/contraction/conv_transpose_rows.h"

enum { MOST_AXES = 3 };

struct transposed {
    int axes;
    int64_t batch, in, out;
    int64_t size[MOST_AXES], kernel[MOST_AXES], stride[MOST_AXES], dilation[MOST_AXES];
    int64_t pads[2 * MOST_AXES];
    tssa_dtype bias; /* UNDEFINED: there is none */
};

static struct transposed random_case(struct random *random)
{
    static const tssa_dtype biases[] = {TSSA_UNDEFINED, TSSA_FLOAT, TSSA_FLOAT, TSSA_DOUBLE};
    struct transposed t = {.axes = (int)random_int(random, 1, MOST_AXES),
                           .batch = random_int(random, 1, 3),
                           .in = 8 * random_int(random, 4, 12),
                           .out = 8 * random_int(random, 1, 9),
                           .bias = biases[random_int(random, 0, 3)]};
    for (int i = 0; i < t.axes; i++) {
        t.size[i] = random_int(random, 1, t.axes == 1 ? 70 : t.axes == 2 ? 12 : 4);
        t.kernel[i] = random_int(random, 1, t.axes == 3 ? 3 : 4);
        t.stride[i] = random_int(random, 1, 3);
        t.dilation[i] = random_int(random, 1, 2);
        t.pads[i] = random_int(random, 0, (t.kernel[i] - 1) * t.dilation[i] / 2);
        t.pads[t.axes + i] = random_int(random, 0, (t.kernel[i] - 1) * t.dilation[i] / 2);
    }
    return t;
}

static void fill(struct tensor *tensor, struct random *random)
{
    for (size_t i = 0; i < tensor_count(tensor); i++)
        dtype_store_double(tensor->dtype,
                           (char *)tensor->data + i * dtype_info(tensor->dtype)->size,
                           (double)random_int(random, -9, 9));
}

static void open_op(struct op_run *run, const struct transposed *t, struct random *random)
{
    int64_t x[2 + MOST_AXES] = {t->batch, t->in}, w[2 + MOST_AXES] = {t->in, t->out};
    for (int i = 0; i < t->axes; i++) {
        x[2 + i] = t->size[i];
        w[2 + i] = t->kernel[i];
    }
    op_open(run, IR_OP_ConvTranspose, 3, 1);
    op_ints(run, "strides", (size_t)t->axes, t->stride);
    op_ints(run, "dilations", (size_t)t->axes, t->dilation);
    op_ints(run, "pads", 2 * (size_t)t->axes, t->pads);
    fill(op_input(run, 0, TSSA_FLOAT, 2 + t->axes, x), random);
    fill(op_input(run, 1, TSSA_FLOAT, 2 + t->axes, w), random);
    if (t->bias)
        fill(op_input(run, 2, t->bias, 1, &t->out), random);
}

static void test_bits(void **state)
{
    struct random random = {41};
    (void)state;
    for (int round = 0; round < 150; round++) {
        const struct transposed t = random_case(&random);
        struct op_run run;
        struct team team;
        open_op(&run, &t, &random);
        op_threads(&run, &team, (int)random_int(&random, 1, 3));
        op_go(&run);
        const struct tensor *y = &run.outputs[0].tensor;
        const size_t bytes = tensor_bytes(y);
        void *expected = malloc(bytes + 1);
        assert_non_null(expected);
        memcpy(expected, y->data, bytes);
        op_go_known(&run);
        assert_int_equal(tensor_bytes(&run.outputs[0].tensor), bytes);
        assert_memory_equal(run.outputs[0].tensor.data, expected, bytes);
        free(expected);
        op_close(&run);
    }
}

/* Other weights are not for it: few channels, those that fill no vectors, many positions. */
static void test_packs(void **state)
{
    static const struct {
        int64_t dims[4], groups;
        bool packs;
    } cases[] = {
        {{64, 16, 4, 4}, 1, true},  {{64, 16, 4, 4}, 2, false}, {{16, 16, 4, 4}, 1, false},
        {{64, 12, 4, 4}, 1, false}, {{60, 16, 4, 4}, 1, false}, {{64, 16, 13, 5}, 1, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tensor w = {.dtype = TSSA_FLOAT, .rank = 4};
        memcpy(w.dims, cases[i].dims, sizeof cases[i].dims);
        assert_int_equal(conv_transpose_rows_packs(&w, cases[i].groups),
                         cases[i].packs && isa_level() == ISA_V3);
    }
    assert_false(conv_transpose_rows_packs(NULL, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_packs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
