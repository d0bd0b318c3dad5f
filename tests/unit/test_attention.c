/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, RotaryEmbedding, LinearAttention and CausalConvWithState against their definitions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

/* ---- Attention: 4 heads of queries on 2 of keys, a past, a mask ------------------------------ */

enum { B = 2, HQ = 4, HKV = 2, SQ = 3, SKV = 3, PAST = 2, T = PAST + SKV, D = 5, DV = 3 };

struct data {
    float q[B * HQ * SQ * D], k[B * HKV * SKV * D], v[B * HKV * SKV * DV];
    float past_k[B * HKV * PAST * D], past_v[B * HKV * PAST * DV];
    bool mask[SQ * T];
};

static void fill(struct data *d)
{
    random_floats(d->q, sizeof d->q / sizeof(float), 1);
    random_floats(d->k, sizeof d->k / sizeof(float), 2);
    random_floats(d->v, sizeof d->v / sizeof(float), 3);
    random_floats(d->past_k, sizeof d->past_k / sizeof(float), 4);
    random_floats(d->past_v, sizeof d->past_v / sizeof(float), 5);
    for (int i = 0; i < SQ * T; i++)
        d->mask[i] = i / T != 1 && i % 3 != 1; /* the second query sees nothing */
}

static double key_at(const struct data *d, int b, int h, int p, int i)
{
    if (p < PAST)
        return (double)d->past_k[((b * HKV + h) * PAST + p) * D + i];
    return (double)d->k[((b * HKV + h) * SKV + p - PAST) * D + i];
}

static double value_at(const struct data *d, int b, int h, int p, int i)
{
    if (p < PAST)
        return (double)d->past_v[((b * HKV + h) * PAST + p) * DV + i];
    return (double)d->v[((b * HKV + h) * SKV + p - PAST) * DV + i];
}

static double attended(const struct data *d, int b, int h, int s, int i)
{
    double sum = 0, weights = 0;
    for (int p = 0; p < T; p++) {
        double score = 0;
        if (!d->mask[s * T + p] || p > s + PAST)
            continue;
        for (int k = 0; k < D; k++)
            score += (double)d->q[((b * HQ + h) * SQ + s) * D + k] * key_at(d, b, h / 2, p, k);
        score = exp(2 * tanh(score / sqrt(D) / 2));
        weights += score;
        sum += score * value_at(d, b, h / 2, p, i);
    }
    return weights > 0 ? sum / weights : 0;
}

static void test_attention(void **state)
{
    (void)state;
    struct data d;
    struct op_run t;
    fill(&d);
    op_begin(&t, IR_OP_Attention, 0);
    op_int(&t, "is_causal", 1);
    op_float(&t, "softcap", 2);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){B, HQ, SQ, D}, d.q);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){B, HKV, SKV, D}, d.k);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){B, HKV, SKV, DV}, d.v);
    op_add(&t, TSSA_BOOL, 2, (const int64_t[]){SQ, T}, d.mask);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){B, HKV, PAST, D}, d.past_k);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){B, HKV, PAST, DV}, d.past_v);
    op_outputs(&t, 4);
    op_go(&t);
    for (int i = 0; i < B * HQ * SQ * DV; i++)
        expect_close((double)((const float *)t.outputs[0].tensor.data)[i],
                     attended(&d, i / DV / SQ / HQ, i / DV / SQ % HQ, i / DV % SQ, i % DV), 1e-6,
                     "y", (size_t)i);
    for (int i = 0; i < B * HKV * T * D; i++)
        assert_true((double)((const float *)t.outputs[1].tensor.data)[i] ==
                    key_at(&d, i / D / T / HKV, i / D / T % HKV, i / D % T, i % D));
    op_close(&t);
}

/* Packed heads give what separate ones give. */
static void test_packed(void **state)
{
    (void)state;
    struct data d;
    struct op_run t, packed;
    float q[B * SQ * HQ * D], k[B * SKV * HKV * D], v[B * SKV * HKV * DV];
    fill(&d);
    for (int i = 0; i < B * SQ * HQ * D; i++)
        q[i] = d.q[((i / D / HQ / SQ * HQ + i / D % HQ) * SQ + i / D / HQ % SQ) * D + i % D];
    for (int i = 0; i < B * SKV * HKV * D; i++)
        k[i] = d.k[((i / D / HKV / SKV * HKV + i / D % HKV) * SKV + i / D / HKV % SKV) * D + i % D];
    for (int i = 0; i < B * SKV * HKV * DV; i++)
        v[i] = d.v[((i / DV / HKV / SKV * HKV + i / DV % HKV) * SKV + i / DV / HKV % SKV) * DV +
                   i % DV];
    op_begin(&t, IR_OP_Attention, 0);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){B, HQ, SQ, D}, d.q);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){B, HKV, SKV, D}, d.k);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){B, HKV, SKV, DV}, d.v);
    op_go(&t);
    op_begin(&packed, IR_OP_Attention, 0);
    op_int(&packed, "q_num_heads", HQ);
    op_int(&packed, "kv_num_heads", HKV);
    op_add(&packed, TSSA_FLOAT, 3, (const int64_t[]){B, SQ, HQ * D}, q);
    op_add(&packed, TSSA_FLOAT, 3, (const int64_t[]){B, SKV, HKV * D}, k);
    op_add(&packed, TSSA_FLOAT, 3, (const int64_t[]){B, SKV, HKV * DV}, v);
    op_go(&packed);
    const float *y = packed.outputs[0].tensor.data;
    for (int i = 0; i < B * SQ * HQ * DV; i++)
        assert_true(
            y[i] ==
            ((const float *)t.outputs[0].tensor.data)
                [((i / DV / HQ / SQ * HQ + i / DV % HQ) * SQ + i / DV / HQ % SQ) * DV + i % DV]);
    op_close(&t);
    op_close(&packed);
}

/* ---- Attention: what is masked counts for nothing, whatever it is ---------------------------- */

enum { LENGTH = 29, INFINITE = 20, COLUMN = 3, KEY_SIZE = 5, VALUE_SIZE = 9 };

/* One head, causal; asked for the scores, too, all positions are computed. */
static void causal_attention(const float *q, const float *k, const float *v, bool scores, float *y)
{
    struct op_run t;
    op_begin(&t, IR_OP_Attention, 0);
    op_int(&t, "is_causal", 1);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, LENGTH, KEY_SIZE}, q);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, LENGTH, KEY_SIZE}, k);
    op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, 1, LENGTH, VALUE_SIZE}, v);
    op_outputs(&t, scores ? 4 : 1);
    op_go(&t);
    memcpy(y, t.outputs[0].tensor.data, LENGTH * VALUE_SIZE * sizeof *y);
    op_close(&t);
}

static void test_masked(void **state)
{
    (void)state;
    float q[LENGTH * KEY_SIZE], k[LENGTH * KEY_SIZE], v[LENGTH * VALUE_SIZE];
    float wanted[LENGTH * VALUE_SIZE], y[LENGTH * VALUE_SIZE];
    random_floats(q, LENGTH * KEY_SIZE, 1);
    random_floats(k, LENGTH * KEY_SIZE, 2);
    random_floats(v, LENGTH * VALUE_SIZE, 3);
    causal_attention(q, k, v, false, wanted);
    causal_attention(q, k, v, true, y);
    assert_memory_equal(y, wanted, sizeof y);
    for (int i = 0; i < VALUE_SIZE; i++) /* the first query sees the first position alone */
        assert_true(wanted[i] == v[i]);
    v[INFINITE * VALUE_SIZE + COLUMN] = INFINITY;
    causal_attention(q, k, v, false, y);
    for (int i = 0; i < LENGTH * VALUE_SIZE; i++)
        assert_true(i / VALUE_SIZE >= INFINITE && i % VALUE_SIZE == COLUMN ? isinf(y[i])
                                                                           : y[i] == wanted[i]);
}

static void attention_refused(int64_t q_heads, int64_t kv_heads, int64_t size, const int64_t *mask)
{
    float x[64] = {0};
    struct op_run t;
    op_begin(&t, IR_OP_Attention, 0);
    op_int(&t, "q_num_heads", q_heads);
    op_int(&t, "kv_num_heads", kv_heads);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 2, size}, x);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 2, size}, x);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 2, size}, x);
    if (mask)
        op_add(&t, TSSA_FLOAT, 2, mask, x);
    op_fails(&t, "");
    op_close(&t);
}

static void test_attention_refuses(void **state)
{
    (void)state;
    attention_refused(0, 1, 6, NULL);
    attention_refused(-1, 1, 6, NULL);
    attention_refused(4, 4, 6, NULL);
    attention_refused(2, 3, 6, NULL);
    attention_refused(INT64_MAX, INT64_MAX, 0, NULL);
    attention_refused(2, 2, 6, (const int64_t[]){2, 3});
    attention_refused(2, 2, 6, (const int64_t[]){3, 2});
}

/* ---- RotaryEmbedding ------------------------------------------------------------------------- */

static void test_rotary(void **state)
{
    (void)state;
    enum { LENGTH = 3, HEADS = 2, SIZE = 6, TURNED = 4, ROWS = 5 };
    static const int64_t positions[LENGTH] = {4, 0, 2}, outside[LENGTH] = {0, 0, ROWS};
    float x[HEADS * LENGTH * SIZE], c[ROWS * TURNED / 2], s[ROWS * TURNED / 2];
    random_floats(x, sizeof x / sizeof *x, 1);
    random_floats(c, sizeof c / sizeof *c, 2);
    random_floats(s, sizeof s / sizeof *s, 3);
    for (int kind = 0; kind < 3; kind++) {
        struct op_run t;
        op_begin(&t, IR_OP_RotaryEmbedding, 0);
        op_int(&t, "interleaved", kind);
        op_int(&t, "rotary_embedding_dim", TURNED);
        op_add(&t, TSSA_FLOAT, 4, (const int64_t[]){1, HEADS, LENGTH, SIZE}, x);
        op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){ROWS, TURNED / 2}, c);
        op_add(&t, TSSA_FLOAT, 2, (const int64_t[]){ROWS, TURNED / 2}, s);
        op_add(&t, TSSA_INT64, 2, (const int64_t[]){1, LENGTH}, kind < 2 ? positions : outside);
        if (kind == 2) {
            op_fails(&t, "");
            op_close(&t);
            continue;
        }
        op_go(&t);
        const float *y = t.outputs[0].tensor.data;
        for (int i = 0; i < HEADS * LENGTH; i++)
            for (int k = 0; k < TURNED / 2; k++) {
                int first = i * SIZE + (kind ? 2 * k : k);
                int second = i * SIZE + (kind ? 2 * k + 1 : k + TURNED / 2);
                int64_t at = positions[i % LENGTH] * TURNED / 2 + k;
                double a = (double)x[first], b = (double)x[second];
                expect_close((double)y[first], (double)c[at] * a - (double)s[at] * b, 1e-7, "y",
                             (size_t)first);
                expect_close((double)y[second], (double)s[at] * a + (double)c[at] * b, 1e-7, "y",
                             (size_t)second);
                assert_true(y[i * SIZE + TURNED + k] == x[i * SIZE + TURNED + k]);
            }
        op_close(&t);
    }
}

/* ---- CausalConvWithState --------------------------------------------------------------------- */

/* Two halves, the state carried from one to the other, are the whole. */
static void test_causal_conv(void **state)
{
    (void)state;
    enum { C = 3, LENGTH = 7, HALF = 2, K = 4 };
    float x[C * LENGTH], w[C * K], halves[2][C * LENGTH];
    random_floats(x, C * LENGTH, 1);
    random_floats(w, C * K, 2);
    for (int i = 0; i < C * LENGTH; i++) {
        int c = i / LENGTH, p = i % LENGTH;
        halves[p >= HALF][p < HALF ? c * HALF + p : c * (LENGTH - HALF) + p - HALF] = x[i];
    }
    struct op_run whole, part[2];
    for (int i = 0; i < 3; i++) {
        struct op_run *t = i < 2 ? &part[i] : &whole;
        const int64_t length = i == 0 ? HALF : i == 1 ? LENGTH - HALF : LENGTH;
        op_begin(t, IR_OP_CausalConvWithState, 0);
        op_string(t, "activation", "silu");
        op_add(t, TSSA_FLOAT, 3, (const int64_t[]){1, C, length}, i < 2 ? halves[i] : x);
        op_add(t, TSSA_FLOAT, 3, (const int64_t[]){C, 1, K}, w);
        op_absent(t);
        if (i == 1)
            op_add(t, TSSA_FLOAT, 3, (const int64_t[]){1, C, K - 1},
                   part[0].outputs[1].tensor.data);
        op_outputs(t, 2);
        op_go(t);
    }
    for (int i = 0; i < C * LENGTH; i++) {
        int c = i / LENGTH, p = i % LENGTH, which = p >= HALF;
        double sum = 0;
        for (int k = 0; k < K; k++)
            if (p + k >= K - 1)
                sum += (double)w[c * K + k] * (double)x[c * LENGTH + p + k - K + 1];
        float y = ((const float *)whole.outputs[0].tensor.data)[i];
        expect_close((double)y, sum / (1 + exp(-sum)), 1e-7, "y", (size_t)i);
        assert_true(y == ((const float *)part[which]
                              .outputs[0]
                              .tensor.data)[which ? c * (LENGTH - HALF) + p - HALF : c * HALF + p]);
    }
    assert_memory_equal(whole.outputs[1].tensor.data, part[1].outputs[1].tensor.data,
                        C * (K - 1) * sizeof(float));
    op_close(&whole);
    op_close(&part[0]);
    op_close(&part[1]);
}

/* ---- LinearAttention ------------------------------------------------------------------------- */

/* With "linear", the output is the causal sum of values weighted by the keys' products. */
static void test_linear_attention(void **state)
{
    (void)state;
    enum { LENGTH = 4, HEADS = 2, SIZE = 3 };
    float q[LENGTH * HEADS * SIZE], k[LENGTH * SIZE], v[LENGTH * SIZE];
    random_floats(q, sizeof q / sizeof *q, 1);
    random_floats(k, sizeof k / sizeof *k, 2);
    random_floats(v, sizeof v / sizeof *v, 3);
    for (int rule = 0; rule < 2; rule++) {
        struct op_run t;
        op_begin(&t, IR_OP_LinearAttention, 0);
        op_string(&t, "update_rule", rule ? "gated" : "linear");
        op_int(&t, "q_num_heads", HEADS);
        op_int(&t, "kv_num_heads", 1);
        op_float(&t, "scale", 0.5f);
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, LENGTH, HEADS * SIZE}, q);
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, LENGTH, SIZE}, k);
        op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, LENGTH, SIZE}, v);
        if (rule) { /* without a decay */
            op_outputs(&t, 2);
            op_fails(&t, "");
            op_close(&t);
            continue;
        }
        op_outputs(&t, 2);
        op_go(&t);
        for (int i = 0; i < LENGTH * HEADS * SIZE; i++) {
            double sum = 0;
            for (int p = 0; p <= i / SIZE / HEADS; p++)
                for (int d = 0; d < SIZE; d++)
                    sum += 0.5 * (double)q[i / SIZE * SIZE + d] * (double)k[p * SIZE + d] *
                           (double)v[p * SIZE + i % SIZE];
            expect_close((double)((const float *)t.outputs[0].tensor.data)[i], sum, 1e-6, "y",
                         (size_t)i);
        }
        op_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention),        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_masked),           cmocka_unit_test(test_attention_refuses),
        cmocka_unit_test(test_rotary),           cmocka_unit_test(test_causal_conv),
        cmocka_unit_test(test_linear_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
