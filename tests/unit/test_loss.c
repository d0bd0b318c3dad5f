/* SPDX-License-Identifier: Apache-2.0 */
/* The losses against their definitions, for every reduction, with and without weights and ignored
 * targets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_numbers.h"

#define BATCHES 2
#define CLASSES 4
#define POSITIONS 3

static const char *const reductions[] = {"mean", "sum", "none"};

static double naive_log_prob(const float *x, bool softmax, int b, int c, int p)
{
    double sum = 0, own = (double)x[(b * CLASSES + c) * POSITIONS + p];
    for (int k = 0; k < CLASSES; k++)
        sum += exp((double)x[(b * CLASSES + k) * POSITIONS + p]);
    return softmax ? own - log(sum) : own;
}

static void check(enum ir_op_id id, int reduction, bool weighted, bool ignoring)
{
    bool softmax = id == IR_OP_SoftmaxCrossEntropyLoss;
    float x[BATCHES * CLASSES * POSITIONS], weight[CLASSES];
    const int32_t target[BATCHES * POSITIONS] = {0, 3, ignoring ? -7 : 1, 2, 2, ignoring ? -7 : 0};
    random_floats(x, BATCHES * CLASSES * POSITIONS, 3);
    random_floats(weight, CLASSES, 4);
    struct op_run t;
    op_begin(&t, id, 0);
    op_string(&t, "reduction", reductions[reduction]);
    if (ignoring)
        op_int(&t, "ignore_index", -7);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){BATCHES, CLASSES, POSITIONS}, x);
    op_add(&t, TSSA_INT32, 2, (const int64_t[]){BATCHES, POSITIONS}, target);
    if (weighted)
        op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){CLASSES}, weight);
    op_outputs(&t, softmax ? 2 : 1);
    op_go(&t);
    double sum = 0, weights = 0;
    for (int i = 0; i < BATCHES * POSITIONS; i++) {
        double w = target[i] < 0 ? 0 : weighted ? (double)weight[target[i]] : 1;
        double term = target[i] < 0 ? 0
                                    : -w * naive_log_prob(x, softmax, i / POSITIONS, target[i],
                                                          i % POSITIONS);
        if (reduction == 2)
            expect_close((double)((const float *)t.outputs[0].tensor.data)[i], term, 1e-6, "loss",
                         (size_t)i);
        sum += term;
        weights += w;
    }
    if (reduction != 2) {
        assert_int_equal(t.outputs[0].tensor.rank, 0);
        expect_close((double)*(const float *)t.outputs[0].tensor.data,
                     reduction ? sum : sum / weights, 1e-5, "loss", 0);
    }
    for (int i = 0; softmax && i < BATCHES * CLASSES * POSITIONS; i++)
        expect_close((double)((const float *)t.outputs[1].tensor.data)[i],
                     naive_log_prob(x, true, i / POSITIONS / CLASSES, i / POSITIONS % CLASSES,
                                    i % POSITIONS),
                     1e-6, "log_prob", (size_t)i);
    op_close(&t);
}

static void test_losses(void **state)
{
    (void)state;
    for (int reduction = 0; reduction < 3; reduction++)
        for (int flags = 0; flags < 4; flags++) {
            check(IR_OP_NegativeLogLikelihoodLoss, reduction, flags & 1, flags & 2);
            check(IR_OP_SoftmaxCrossEntropyLoss, reduction, flags & 1, flags & 2);
        }
}

/* Terms of given log-probabilities are a product each, rounded to what the type is computed in and
 * to the type. */
static void check_given(struct random *random, tssa_dtype dtype, bool planes, bool weighted)
{
    enum { ITEMS = 3, MANY = 11, PLACES = 83, IGNORED = 4 };
    const int64_t dims[] = {planes ? ITEMS : PLACES, MANY, PLACES}, each = MANY;
    const int64_t places[] = {dims[0], PLACES}, inner = planes ? PLACES : 1;
    int64_t target[ITEMS * PLACES];
    struct op_run t;
    for (int i = 0; i < ITEMS * PLACES; i++)
        target[i] = random_int(random, 0, MANY - 1);
    op_begin(&t, IR_OP_NegativeLogLikelihoodLoss, 0);
    op_string(&t, "reduction", "none");
    op_int(&t, "ignore_index", IGNORED);
    const struct tensor *x = op_add_numbers(&t, random, dtype, planes ? 3 : 2, dims),
                        *weight = NULL;
    op_add(&t, TSSA_INT64, planes ? 2 : 1, places, target);
    if (weighted)
        weight = op_add_numbers(&t, random, dtype, 1, &each);
    op_go(&t);
    for (int64_t i = 0; i < dims[0] * inner; i++) {
        const int64_t at = (i / inner * MANY + target[i]) * inner + i % inner;
        const double factor = weight ? op_number(weight, target[i]) : 1;
        op_expect_number(&t.outputs[0].tensor, i,
                         target[i] == IGNORED ? 0 : op_rounded(dtype, -op_number(x, at) * factor));
    }
    op_close(&t);
}

static void test_given(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16, TSSA_BFLOAT16};
    struct random random = {7};
    (void)state;
    for (int i = 0; i < 16; i++)
        check_given(&random, dtypes[i / 4], i & 1, i & 2);
}

static void refuse(int64_t target, int64_t positions, const char *reduction)
{
    const float x[2] = {0};
    struct op_run t;
    op_begin(&t, IR_OP_NegativeLogLikelihoodLoss, 0);
    op_string(&t, "reduction", reduction);
    op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){1, 2}, x);
    op_add(&t, TSSA_INT64, 1, &positions, (const int64_t[]){target, 0});
    op_fails(&t, "");
    op_close(&t);
}

static void test_refuses(void **state)
{
    (void)state;
    refuse(2, 1, "sum");
    refuse(-1, 1, "sum");
    refuse(0, 2, "sum");
    refuse(0, 1, "average");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
