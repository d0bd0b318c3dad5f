/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that sum give the bits of the reductions that they are made of: those of other
 * operators where there are such, or those of the order of ir/reduction.def, written out here.
 */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "ir/scalar/f32_exp.h"
#include "ir/scalar/f32_wide.h"
#include "ir/scalar/f64_pow.h"

/* What an operator of one operand and these axes (NULL: none are given) makes of floats. */
static void apply(enum ir_op_id id, const char *attribute, int64_t value, int rank,
                  const int64_t *dims, const float *x, int64_t n_axes, const int64_t *axes,
                  float *result, size_t count)
{
    struct op_run t;
    op_begin(&t, id, 0);
    if (attribute)
        op_int(&t, attribute, value);
    op_add(&t, TSSA_FLOAT, rank, dims, x);
    if (axes)
        op_add(&t, TSSA_INT64, 1, &n_axes, axes);
    op_go(&t);
    assert_int_equal(tensor_count(&t.outputs[0].tensor), count);
    memcpy(result, t.outputs[0].tensor.data, count * sizeof(float));
    op_close(&t);
}

static void expect_bits(const void *got, const float *wanted, size_t count)
{
    assert_memory_equal(got, wanted, count * sizeof(float));
}

/* Terms of an axis that is not the innermost one, fewer than 64 * 64. */
static float sum_of(const float *terms, int64_t n)
{
    float groups = 0, rest = 0;
    for (int64_t i = 0; i < n; i++) {
        rest += terms[i];
        if (i % 64 == 63) {
            groups += rest;
            rest = 0;
        }
    }
    return n < 64 ? rest : groups + rest;
}

enum { BATCHES = 3, CLASSES = 70, POSITIONS = 91, TARGETS = BATCHES * POSITIONS };

static void losses(void **state)
{
    (void)state;
    static float x[BATCHES * CLASSES * POSITIONS], log_prob[BATCHES * CLASSES * POSITIONS];
    static int64_t target[TARGETS];
    const int64_t dims[] = {BATCHES, CLASSES, POSITIONS}, flat[] = {TARGETS};
    float terms[TARGETS], sum = 0, mean = 0;
    random_floats(x, sizeof x / sizeof *x, 1);
    for (int i = 0; i < TARGETS; i++)
        target[i] = i * 31 % CLASSES;
    apply(IR_OP_LogSoftmax, "axis", 1, 3, dims, x, 0, NULL, log_prob, sizeof x / sizeof *x);
    for (int i = 0; i < TARGETS; i++)
        terms[i] = -log_prob[(i / POSITIONS * CLASSES + target[i]) * POSITIONS + i % POSITIONS];
    apply(IR_OP_ReduceSum, "keepdims", 0, 1, flat, terms, 1, (const int64_t[]){0}, &sum, 1);
    mean = sum / (float)TARGETS;
    for (int reduction = 0; reduction < 3; reduction++) {
        struct op_run t;
        op_begin(&t, IR_OP_SoftmaxCrossEntropyLoss, 0);
        op_string(&t, "reduction", reduction == 0 ? "none" : reduction == 1 ? "sum" : "mean");
        op_add(&t, TSSA_FLOAT, 3, dims, x);
        op_add(&t, TSSA_INT64, 2, (const int64_t[]){BATCHES, POSITIONS}, target);
        op_outputs(&t, 2);
        op_go(&t);
        expect_bits(t.outputs[0].tensor.data,
                    reduction == 0   ? terms
                    : reduction == 1 ? &sum
                                     : &mean,
                    reduction == 0 ? TARGETS : 1);
        expect_bits(t.outputs[1].tensor.data, log_prob, sizeof x / sizeof *x);
        op_close(&t);
    }
}

/* Columns: few and many side by side, and rows of more than one group. */
static void softmax_of_columns(void **state)
{
    (void)state;
    enum { OUTER = 5, N = 150 };
    static const int64_t inners[] = {2, 3, 7, 16, 33, 700};
    static float x[OUTER * N * 700], y[OUTER * N * 700];
    float exps[N];
    random_floats(x, sizeof x / sizeof *x, 8);
    for (size_t k = 0; k < sizeof inners / sizeof *inners; k++) {
        const int64_t inner = inners[k], dims[] = {OUTER, N, inner}, count = OUTER * N * inner;
        apply(IR_OP_Softmax, "axis", 1, 3, dims, x, 0, NULL, y, (size_t)count);
        for (int64_t column = 0; column < OUTER * inner; column++) {
            const int64_t first = column / inner * N * inner + column % inner;
            float most = -INFINITY;
            for (int64_t i = 0; i < N; i++)
                most = x[first + i * inner] > most ? x[first + i * inner] : most;
            for (int64_t i = 0; i < N; i++)
                exps[i] = f32_exp(x[first + i * inner] - most);
            const float factor = 1 / sum_of(exps, N);
            for (int64_t i = 0; i < N; i++) {
                const float wanted = exps[i] * factor;
                expect_bits(&y[first + i * inner], &wanted, 1);
            }
        }
    }
}

static void local_response(void **state)
{
    (void)state;
    enum { C = 100, INNER = 300 };
    static float x[C * INNER], y[C * INNER];
    random_floats(x, C * INNER, 2);
    for (int64_t size = 1; size < 90; size += 42) {
        for (int64_t i = 0; i < C * INNER; i++) {
            float squares[C];
            int64_t c = i / INNER, n = 0;
            for (int64_t k = c - (size - 1) / 2; k <= c + size / 2; k++)
                if (k >= 0 && k < C)
                    squares[n++] = x[k * INNER + i % INNER] * x[k * INNER + i % INNER];
            float factor = (float)((double)0.3f / (double)size);
            y[i] = x[i] / f32_pow(2.0f + factor * sum_of(squares, n), 0.6f);
        }
        struct op_run t;
        op_begin(&t, IR_OP_LRN, 13);
        op_int(&t, "size", size);
        op_float(&t, "alpha", 0.3f);
        op_float(&t, "beta", 0.6f);
        op_float(&t, "bias", 2);
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, C, INNER}, x);
        op_go(&t);
        expect_bits(t.outputs[0].tensor.data, y, C * INNER);
        op_close(&t);
    }
}

/* Trained on one item, an item is normalized as an instance; its mean is that of ReduceMean. */
static void batch_statistics(void **state)
{
    (void)state;
    enum { C = 3, SIZE = 5000 };
    static float x[2 * C * SIZE], y[C * SIZE];
    const float scale[C] = {1, 2.5f, -3}, bias[C] = {0.5f, 0, 7}, zeros[C] = {0};
    float means[C];
    random_floats(x, 2 * C * SIZE, 3);
    for (int64_t batches = 1; batches < 3; batches++) {
        const int64_t dims[] = {batches, C, SIZE}, each = C;
        struct op_run t;
        if (batches == 1) {
            op_begin(&t, IR_OP_InstanceNormalization, 0);
            op_add(&t, TSSA_FLOAT, 3, dims, x);
            op_add(&t, TSSA_FLOAT, 1, &each, scale);
            op_add(&t, TSSA_FLOAT, 1, &each, bias);
            op_go(&t);
            memcpy(y, t.outputs[0].tensor.data, sizeof y);
            op_close(&t);
        }
        apply(IR_OP_ReduceMean, "keepdims", 0, 3, dims, x, 2, (const int64_t[]){0, 2}, means, C);
        op_begin(&t, IR_OP_BatchNormalization, 15);
        op_int(&t, "training_mode", 1);
        op_float(&t, "momentum", 0);
        op_add(&t, TSSA_FLOAT, 3, dims, x);
        op_add(&t, TSSA_FLOAT, 1, &each, scale);
        op_add(&t, TSSA_FLOAT, 1, &each, bias);
        op_add(&t, TSSA_FLOAT, 1, &each, zeros);
        op_add(&t, TSSA_FLOAT, 1, &each, zeros);
        op_outputs(&t, 3);
        op_go(&t);
        if (batches == 1)
            expect_bits(t.outputs[0].tensor.data, y, C * SIZE);
        expect_bits(t.outputs[1].tensor.data, means, C);
        op_close(&t);
    }
}

static void global_norms(void **state)
{
    (void)state;
    enum { C = 2, SIZE = 3333 };
    static float x[C * SIZE], raised[C * SIZE];
    const int64_t dims[] = {1, C, SIZE}, axes[] = {2};
    float wanted[C], got[C];
    random_floats(x, C * SIZE, 4);
    for (int64_t p = 1; p <= 3; p++) {
        apply(IR_OP_GlobalLpPool, "p", p, 3, dims, x, 0, NULL, got, C);
        for (int i = 0; i < C * SIZE; i++)
            raised[i] = f32_pow(fabsf(x[i]), (float)p);
        apply(p == 3   ? IR_OP_ReduceSum
              : p == 2 ? IR_OP_ReduceL2
                       : IR_OP_ReduceL1,
              "keepdims", 0, 3, dims, p == 3 ? raised : x, 1, axes, wanted, C);
        for (int i = 0; p == 3 && i < C; i++)
            wanted[i] = (float)f64_pow((double)wanted[i], 1.0 / 3);
        expect_bits(got, wanted, C);
    }
}

/* ---- Attention ------------------------------------------------------------------------------- */

enum { QUERIES = 31, TOTAL = 150, SIZE = 70, VALUES = 25 };

/* Products of a[i] and b[i * step], added by fused multiply-adds: fewer than 64 * 64. */
static float fused_sum_of(const float *a, const float *b, int64_t step, int64_t n)
{
    float groups = 0, rest = 0;
    for (int64_t i = 0; i < n; i++) {
        rest = f32_fma(a[i], b[i * step], rest);
        if (i % 64 == 63) {
            groups += rest;
            rest = 0;
        }
    }
    return n < 64 ? rest : groups + rest;
}

/* 32 to 64 products as of an innermost axis, a multiple of 8. */
static float dot_of(const float *a, const float *b, int64_t n)
{
    float lanes[32] = {0};
    for (int64_t i = 0; i < n; i++)
        lanes[i % 32] += a[i] * b[i];
    for (int half = 16; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            lanes[k] += lanes[k + half];
    return lanes[0];
}

/* One item and one head. */
struct sizes {
    int64_t queries, total, size, values;
};

static void attention_as(int64_t mode, const struct sizes *n, const float *q, const float *k,
                         const float *v, float *y, float *scores)
{
    struct op_run t;
    op_begin(&t, IR_OP_Attention, 23);
    op_int(&t, "qk_matmul_output_mode", mode);
    op_float(&t, "scale", 0.3f);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, n->queries, n->size}, q);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, n->total, n->size}, k);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, n->total, n->values}, v);
    op_outputs(&t, 4);
    op_go(&t);
    memcpy(y, t.outputs[0].tensor.data, (size_t)(n->queries * n->values) * sizeof(float));
    memcpy(scores, t.outputs[3].tensor.data, (size_t)(n->queries * n->total) * sizeof(float));
    op_close(&t);
}

static void check_attention(struct sizes n, bool dots)
{
    static float q[QUERIES * SIZE], k[TOTAL * SIZE], v[TOTAL * SIZE];
    static float raw[QUERIES * TOTAL], weights[QUERIES * TOTAL], got[QUERIES * TOTAL];
    static float y[QUERIES * SIZE], sums[QUERIES * SIZE];
    const int64_t dims[] = {n.queries, n.total};
    const size_t scores = (size_t)(n.queries * n.total);
    random_floats(q, (size_t)(n.queries * n.size), 5);
    random_floats(k, (size_t)(n.total * n.size), 6);
    random_floats(v, (size_t)(n.total * n.values), 7);
    for (int64_t i = 0; i < n.queries; i++)
        for (int64_t p = 0; p < n.total; p++) {
            const float *query = q + i * n.size, *key = k + p * n.size;
            raw[i * n.total + p] =
                0.3f * (dots ? dot_of(query, key, n.size) : fused_sum_of(query, key, 1, n.size));
        }
    apply(IR_OP_Softmax, "axis", 1, 2, dims, raw, 0, NULL, weights, scores);
    for (int64_t i = 0; i < n.queries * n.values; i++)
        sums[i] =
            fused_sum_of(weights + i / n.values * n.total, v + i % n.values, n.values, n.total);
    attention_as(0, &n, q, k, v, y, got);
    expect_bits(got, raw, scores);
    expect_bits(y, sums, (size_t)(n.queries * n.values));
    attention_as(3, &n, q, k, v, y, got);
    expect_bits(got, weights, scores);
}

/* Tiles of all heights, columns that fill vectors and that do not, and a query alone. */
static void attention(void **state)
{
    (void)state;
    for (int64_t queries = 1; queries <= QUERIES; queries++)
        check_attention((struct sizes){queries, TOTAL, SIZE, VALUES}, false);
    for (int64_t queries = 2; queries <= 14; queries += 3)
        for (int64_t values = 15; values <= 49; values++)
            check_attention((struct sizes){queries, 79 + values, 64, values}, false);
    check_attention((struct sizes){1, TOTAL, 64, 64}, true);
    check_attention((struct sizes){1, 5, 40, 17}, true);
    check_attention((struct sizes){1, TOTAL, 24, 32}, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses),           cmocka_unit_test(local_response),
        cmocka_unit_test(batch_statistics), cmocka_unit_test(global_norms),
        cmocka_unit_test(attention),        cmocka_unit_test(softmax_of_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
