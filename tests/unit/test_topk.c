/* SPDX-License-Identifier: Apache-2.0 */
/* TopK and NonMaxSuppression against naive searches. */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

/* ---- TopK ------------------------------------------------------------------------------------ */

/* Picks k times the best element that is left; the first of equals. */
static void check_topk(const float *in, int64_t n, int64_t k, bool largest, const float *values,
                       const int64_t *indices, int64_t step)
{
    bool taken[64] = {false};
    for (int64_t i = 0; i < k; i++) {
        int64_t best = -1;
        for (int64_t j = 0; j < n; j++)
            if (!taken[j] && (best < 0 || (largest ? in[j * step] > in[best * step]
                                                   : in[j * step] < in[best * step])))
                best = j;
        taken[best] = true;
        assert_int_equal(indices[i * step], best);
        assert_true(values[i * step] == in[best * step]);
    }
}

static void test_topk(void **state)
{
    (void)state;
    float in[2 * 17 * 3];
    for (int axis = 0; axis < 3; axis++)
        for (int largest = 0; largest < 2; largest++) {
            int64_t dims[3] = {2, 17, 3}, k = axis == 1 ? 9 : 2;
            random_floats(in, 2 * 17 * 3, 7);
            for (int i = 0; i < 2 * 17 * 3; i++)
                in[i] = rintf(in[i] * 4); /* many ties, and -0 */
            struct op_run t;
            op_begin(&t, IR_OP_TopK, 11);
            op_int(&t, "axis", axis - 3);
            op_int(&t, "largest", largest);
            op_add(&t, TSSA_FLOAT, 3, dims, in);
            op_add(&t, TSSA_INT64, 1, (const int64_t[]){1}, &k);
            op_outputs(&t, 2);
            op_go(&t);
            assert_int_equal(t.outputs[0].tensor.dims[axis], k);
            int64_t n = dims[axis], inner = axis == 0 ? 51 : axis == 1 ? 3 : 1;
            int64_t outer = 102 / n / inner;
            for (int64_t o = 0; o < outer; o++)
                for (int64_t i = 0; i < inner; i++)
                    check_topk(in + o * n * inner + i, n, k, largest,
                               (const float *)t.outputs[0].tensor.data + o * k * inner + i,
                               (const int64_t *)t.outputs[1].tensor.data + o * k * inner + i,
                               inner);
            op_close(&t);
        }
}

static void test_topk_types(void **state)
{
    (void)state;
    const uint64_t u64[4] = {5, UINT64_MAX, 0, UINT64_MAX - 1};
    const int8_t i8[4] = {5, -128, 127, -1};
    const uint16_t f16[4] = {0x3c00, 0xbc00, 0x7c00, 0x7e00}; /* 1, -1, inf, NaN */
    const struct {
        tssa_dtype dtype;
        const void *data;
        int64_t first, last; /* of largest first */
    } cases[] = {{TSSA_UINT64, u64, 1, 2}, {TSSA_INT8, i8, 2, 1}, {TSSA_FLOAT16, f16, 3, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct op_run t;
        int64_t k = 4;
        op_begin(&t, IR_OP_TopK, 0);
        op_add(&t, cases[i].dtype, 1, &k, cases[i].data);
        op_add(&t, TSSA_INT64, 1, (const int64_t[]){1}, &k);
        op_outputs(&t, 2);
        op_go(&t);
        const int64_t *indices = t.outputs[1].tensor.data;
        assert_int_equal(indices[0], cases[i].first);
        assert_int_equal(indices[3], cases[i].last);
        op_close(&t);
    }
}

/* float32 has code of its own, DOUBLE a heap: the same choice, of lines that are sorted, random,
 * full of equals, NaN and zeros of both signs. */
static void test_topk_floats(void **state)
{
    (void)state;
    enum { MOST = 24000 };
    static float x[MOST];
    static double wide[MOST];
    struct random random = {9};
    for (int round = 0; round < 400; round++) {
        int64_t inner = random_int(&random, 0, 3) ? 1 : 3, outer = random_int(&random, 1, 2);
        int64_t n = random_int(&random, 1, round % 8 ? 150 : MOST / 6), kind = round % 6;
        int64_t dims[3] = {outer, n, inner},
                k = random_int(&random, 1, round % 3 ? (n + 9) / 10 : n);
        random_floats(x, MOST, (uint32_t)round);
        for (int64_t i = 0; i < outer * n * inner; i++) {
            float at = (float)(i / inner % n);
            int64_t special = random_int(&random, 0, 20);
            x[i] = kind == 0                  ? at
                   : kind == 1                ? -at
                   : kind == 2                ? rintf(x[i] * 2)
                   : kind == 3                ? 1
                   : kind == 4 && special < 3 ? (special ? special == 1 ? INFINITY : -0.0f : NAN)
                                              : x[i];
            wide[i] = (double)x[i];
        }
        struct op_run narrow, all;
        for (int i = 0; i < 2; i++) {
            struct op_run *t = i ? &all : &narrow;
            op_begin(t, IR_OP_TopK, 0);
            op_int(t, "axis", 1);
            op_int(t, "largest", round / 6 % 2);
            op_add(t, i ? TSSA_DOUBLE : TSSA_FLOAT, 3, dims, i ? (const void *)wide : x);
            op_add(t, TSSA_INT64, 1, (const int64_t[]){1}, &k);
            op_outputs(t, 2);
            op_go(t);
        }
        const struct tensor *chosen = &narrow.outputs[1].tensor;
        assert_memory_equal(chosen->data, all.outputs[1].tensor.data,
                            tensor_count(chosen) * sizeof(int64_t));
        for (int64_t i = 0; i < (int64_t)tensor_count(chosen); i++) {
            int64_t from = i / (k * inner) * n * inner +
                           ((const int64_t *)chosen->data)[i] * inner + i % inner;
            assert_memory_equal((const float *)narrow.outputs[0].tensor.data + i, x + from,
                                sizeof *x);
        }
        op_close(&narrow);
        op_close(&all);
    }
}

/* Elements whose order is that of `rank`: 0 to 7, the last one a NaN where there is one. */
static void store_ranked(tssa_dtype dtype, void *element, int64_t rank, bool negative_zero)
{
    if (dtype_is_float(dtype))
        dtype_store_double(dtype, element,
                           rank == 7                    ? (double)NAN
                           : rank == 3 && negative_zero ? -0.0
                                                        : (double)(rank - 3));
    else if (dtype == TSSA_UINT64)
        dtype_store_int64(dtype, element, rank == 7 ? -1 : rank);
    else
        dtype_store_int64(dtype, element, (rank - 3) * 30);
}

/* Places of the k best, one after the other; the first of equals. */
static void check_ranked(const int64_t *ranks, int64_t n, int64_t k, bool largest,
                         const int64_t *indices, int64_t step)
{
    bool taken[64] = {false};
    for (int64_t i = 0; i < k; i++) {
        int64_t best = -1;
        for (int64_t j = 0; j < n; j++)
            if (!taken[j] && (best < 0 || (largest ? ranks[j * step] > ranks[best * step]
                                                   : ranks[j * step] < ranks[best * step])))
                best = j;
        taken[best] = true;
        assert_int_equal(indices[i * step], best);
    }
}

/* One and few of lines that lie side by side, more of them than are looked at together and fewer,
 * and of those that do not; lines of NaN alone. */
static void test_topk_few(void **state)
{
    (void)state;
    static const tssa_dtype types[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_INT32,   TSSA_INT64,
                                       TSSA_INT8,  TSSA_UINT64, TSSA_FLOAT16, TSSA_BFLOAT16};
    static const int64_t inners[] = {1, 3, 8, 9, 64, 131};
    enum { MOST = 2 * 40 * 131 };
    static int64_t ranks[MOST];
    static uint64_t x[MOST];
    struct random random = {3};
    for (int round = 0; round < 800; round++) {
        const tssa_dtype dtype = types[round % 8];
        const size_t size = tssa_dtype_size(dtype);
        int64_t inner = inners[random_int(&random, 0, 5)], n = random_int(&random, 1, 40);
        int64_t dims[3] = {random_int(&random, 1, 2), n, inner},
                k = random_int(&random, 0, 2) ? random_int(&random, 1, n < 9 ? n : 9) : 1;
        const bool largest = random_int(&random, 0, 1);
        const int64_t few = round % 5 ? 0 : 6; /* many NaN */
        for (int64_t i = 0; i < dims[0] * n * inner; i++) {
            ranks[i] = random_int(&random, few, 7);
            store_ranked(dtype, (char *)x + (size_t)i * size, ranks[i], random_int(&random, 0, 1));
        }
        struct op_run t;
        op_begin(&t, IR_OP_TopK, 0);
        op_int(&t, "axis", 1);
        op_int(&t, "largest", largest);
        op_add(&t, dtype, 3, dims, x);
        op_add(&t, TSSA_INT64, 1, (const int64_t[]){1}, &k);
        op_outputs(&t, 2);
        op_go(&t);
        const int64_t *indices = t.outputs[1].tensor.data;
        for (int64_t line = 0; line < dims[0] * inner; line++) {
            const int64_t from = line / inner * n * inner + line % inner,
                          to = line / inner * k * inner + line % inner;
            check_ranked(ranks + from, n, k, largest, indices + to, inner);
            for (int64_t i = 0; i < k; i++)
                assert_memory_equal(
                    (const char *)t.outputs[0].tensor.data + (size_t)(to + i * inner) * size,
                    (const char *)x + (size_t)(from + indices[to + i * inner] * inner) * size,
                    size);
        }
        op_close(&t);
    }
}

static void test_topk_bounds(void **state)
{
    (void)state;
    const float in[3] = {1, 2, 3};
    for (int64_t k = -1; k <= 4; k++) {
        struct op_run t;
        op_begin(&t, IR_OP_TopK, 0);
        op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){3}, in);
        op_add(&t, TSSA_INT64, 0, NULL, &k);
        if (k < 0 || k > 3) {
            op_outputs(&t, 2);
            op_fails(&t, "");
        } else {
            op_outputs(&t, 2);
            op_go(&t);
            assert_int_equal(t.outputs[0].tensor.dims[0], k);
        }
        op_close(&t);
    }
}

/* ---- NonMaxSuppression ----------------------------------------------------------------------- */

#define BOXES 40

static float naive_iou(const float *a, const float *b)
{
    float top = fmaxf(fminf(a[0], a[2]), fminf(b[0], b[2])),
          left = fmaxf(fminf(a[1], a[3]), fminf(b[1], b[3]));
    float bottom = fminf(fmaxf(a[0], a[2]), fmaxf(b[0], b[2]));
    float right = fminf(fmaxf(a[1], a[3]), fmaxf(b[1], b[3]));
    float shared = fmaxf(bottom - top, 0) * fmaxf(right - left, 0);
    float area_a = fabsf((a[2] - a[0]) * (a[3] - a[1])),
          area_b = fabsf((b[2] - b[0]) * (b[3] - b[1]));
    return shared / (area_a + area_b - shared);
}

/* Marks, from the highest score down, what is left; returns how many were kept. */
static int naive_nms(const float *boxes, const float *scores, int most, float iou, float score,
                     int64_t *kept)
{
    bool gone[BOXES] = {false};
    int n = 0;
    while (n < most) {
        int best = -1;
        for (int i = 0; i < BOXES; i++)
            if (!gone[i] && scores[i] > score && (best < 0 || scores[i] > scores[best]))
                best = i;
        if (best < 0)
            break;
        kept[n++] = best;
        for (int i = 0; i < BOXES; i++)
            if (naive_iou(boxes + 4 * i, boxes + 4 * best) > iou)
                gone[i] = true;
        gone[best] = true;
    }
    return n;
}

static void test_nms(void **state)
{
    (void)state;
    float boxes[2 * BOXES * 4], scores[2 * 3 * BOXES];
    random_floats(boxes, 2 * BOXES * 4, 1);
    random_floats(scores, 2 * 3 * BOXES, 2);
    int64_t most = 6;
    float iou = 0.3f, score = -0.2f;
    struct op_run t;
    op_begin(&t, IR_OP_NonMaxSuppression, 11);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){2, BOXES, 4}, boxes);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){2, 3, BOXES}, scores);
    op_add(&t, TSSA_INT64, 1, (const int64_t[]){1}, &most);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){1}, &iou);
    op_add(&t, TSSA_FLOAT, 1, (const int64_t[]){1}, &score);
    op_go(&t);
    const int64_t *row = t.outputs[0].tensor.data;
    int64_t rows = 0;
    for (int b = 0; b < 2; b++)
        for (int c = 0; c < 3; c++) {
            int64_t kept[BOXES];
            int n = naive_nms(boxes + b * BOXES * 4, scores + (b * 3 + c) * BOXES, (int)most, iou,
                              score, kept);
            assert_true(n > 1);
            for (int i = 0; i < n; i++, rows++, row += 3) {
                assert_true(rows < t.outputs[0].tensor.dims[0]);
                assert_int_equal(row[0], b);
                assert_int_equal(row[1], c);
                assert_int_equal(row[2], kept[i]);
            }
        }
    assert_int_equal(t.outputs[0].tensor.dims[0], rows);
    op_close(&t);
}

/* The same boxes by corners and by center give the same choice; the threshold itself does not
 * suppress. */
static void test_nms_center(void **state)
{
    (void)state;
    const float corners[3 * 4] = {0, 0, 2, 2, 0, 1, 2, 3, 4, 4, 5, 5};
    const float centers[3 * 4] = {1, 1, 2, 2, 2, 1, 2, 2, 4.5f, 4.5f, 1, 1};
    const float scores[3] = {0.5f, 0.9f, 0.9f};
    const int64_t most = 10;
    for (int center = 0; center < 2; center++)
        for (int exact = 0; exact < 2; exact++) {
            float iou = exact ? 2.0f / 6.0f : 0.33f;
            struct op_run t;
            op_begin(&t, IR_OP_NonMaxSuppression, 11);
            op_int(&t, "center_point_box", center);
            op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 3, 4}, center ? centers : corners);
            op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 3}, scores);
            op_add(&t, TSSA_INT64, 0, NULL, &most);
            op_add(&t, TSSA_FLOAT, 0, NULL, &iou);
            op_go(&t);
            const int64_t *rows = t.outputs[0].tensor.data;
            assert_int_equal(t.outputs[0].tensor.dims[0], exact ? 3 : 2);
            assert_int_equal(rows[2], 1);
            assert_int_equal(rows[5], 2);
            op_close(&t);
        }
}

static void test_nms_nothing(void **state)
{
    (void)state;
    const float boxes[4] = {0, 0, 1, 1}, scores[1] = {1};
    struct op_run t;
    op_begin(&t, IR_OP_NonMaxSuppression, 11);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 4}, boxes);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 1, 1}, scores);
    op_go(&t);
    assert_int_equal(t.outputs[0].tensor.dims[0], 0);
    assert_int_equal(t.outputs[0].tensor.dims[1], 3);
    op_close(&t);
}

static void test_nms_refuses(void **state)
{
    (void)state;
    const float boxes[8] = {0}, scores[2] = {1};
    const int64_t most = 1;
    struct op_run t;
    op_begin(&t, IR_OP_NonMaxSuppression, 11);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 2, 4}, boxes);
    op_add(&t, TSSA_FLOAT, 3, (const int64_t[]){1, 2, 1}, scores);
    op_add(&t, TSSA_INT64, 0, NULL, &most);
    op_fails(&t, "");
    op_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topk),        cmocka_unit_test(test_topk_types),
        cmocka_unit_test(test_topk_floats), cmocka_unit_test(test_topk_bounds),
        cmocka_unit_test(test_topk_few),    cmocka_unit_test(test_nms),
        cmocka_unit_test(test_nms_center),  cmocka_unit_test(test_nms_nothing),
        cmocka_unit_test(test_nms_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
