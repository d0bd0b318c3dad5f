/* SPDX-License-Identifier: Apache-2.0 */
/* Linear quantization in all forms, against the formula of the standard and a naive index of
 * scales. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

/* ---- Every granularity, type by type --------------------------------------------------------- */

enum granularity { PER_TENSOR, PER_AXIS, BLOCKED };

struct form {
    enum granularity granularity;
    int rank, axis;
    int64_t block;
    int64_t dims[4], scale_dims[4];
    int scale_rank;
};

static struct form random_form(struct random *random)
{
    struct form form = {.granularity = (enum granularity)random_int(random, 0, 2)};
    form.rank = (int)random_int(random, 1, 4);
    form.axis = (int)random_int(random, 0, form.rank - 1);
    form.block = random_int(random, 1, 5);
    for (int i = 0; i < form.rank; i++)
        form.dims[i] = random_int(random, 1, 9);
    if (form.granularity == PER_AXIS) {
        form.scale_rank = 1;
        form.scale_dims[0] = form.dims[form.axis];
    } else if (form.granularity == BLOCKED) {
        form.scale_rank = form.rank;
        memcpy(form.scale_dims, form.dims, sizeof form.dims);
        form.scale_dims[form.axis] = (form.dims[form.axis] + form.block - 1) / form.block;
    }
    return form;
}

static int64_t scale_index(const struct form *form, int64_t element)
{
    int64_t coordinates[TSSA_MAX_RANK];
    unflatten(form->rank, form->dims, element, coordinates);
    if (form->granularity == PER_TENSOR)
        return 0;
    if (form->granularity == PER_AXIS)
        return coordinates[form->axis];
    coordinates[form->axis] /= form->block;
    return flat_index(form->scale_rank, form->scale_dims, coordinates);
}

static void set_form(struct op_run *run, const struct form *form, struct random *random)
{
    op_int(run, "axis", random_int(random, 0, 1) ? form->axis : form->axis - form->rank);
    if (form->granularity == BLOCKED)
        op_int(run, "block_size", form->block);
}

static struct tensor *random_scales(struct op_run *run, const struct form *form,
                                    struct random *random, tssa_dtype dtype)
{
    struct tensor *scale = op_input(run, 1, dtype, form->scale_rank, form->scale_dims);
    for (size_t i = 0; i < tensor_count(scale); i++)
        dtype_store_double(dtype, (char *)scale->data + i * dtype_info(dtype)->size,
                           (double)random_int(random, 1, 40) / 16);
    return scale;
}

static const tssa_dtype quantized[] = {TSSA_UINT8, TSSA_INT8, TSSA_UINT16, TSSA_INT16,
                                       TSSA_UINT4, TSSA_INT4, TSSA_UINT2,  TSSA_INT2};

static void range_of(tssa_dtype dtype, double *low, double *high)
{
    int bits = dtype_info(dtype)->file_bits;
    bool negative = dtype_info(dtype)->cls == DTYPE_CLASS_SIGNED;
    *low = negative ? -ldexp(1, bits - 1) : 0;
    *high = ldexp(1, negative ? bits - 1 : bits) - 1;
}

static double element(const struct tensor *tensor, int64_t i)
{
    return dtype_load_double(tensor->dtype, (const char *)tensor->data +
                                                (size_t)i * dtype_info(tensor->dtype)->size);
}

static void quantize_integers(void **state)
{
    (void)state;
    struct random random = {21};
    for (int round = 0; round < 1500; round++) {
        struct form form = random_form(&random);
        tssa_dtype to = quantized[round % 8];
        bool has_zero = round / 8 % 3 > 0;
        struct op_run run;
        op_open(&run, IR_OP_QuantizeLinear, 3, 1);
        set_form(&run, &form, &random);
        struct tensor *x = op_input(&run, 0, TSSA_FLOAT, form.rank, form.dims);
        for (size_t i = 0; i < tensor_count(x); i++)
            ((float *)x->data)[i] =
                (float)random_int(&random, -4000, 4000) / (round % 2 ? 16 : 1600);
        struct tensor *scale = random_scales(&run, &form, &random, TSSA_FLOAT), *zero = NULL;
        if (has_zero) {
            zero = op_random(&run, 2, &random, to, form.scale_rank, form.scale_dims);
            for (size_t i = 0; i < tensor_count(zero); i++)
                dtype_store_int64(to, (char *)zero->data + i * dtype_info(to)->size,
                                  random_int(&random, -90, 90));
        } else {
            op_int(&run, "output_dtype", to);
        }
        op_go(&run);
        const struct tensor *y = op_output(&run, 0, to, form.rank, form.dims);
        double low, high;
        range_of(to, &low, &high);
        for (int64_t i = 0; i < (int64_t)tensor_count(x); i++) {
            int64_t s = scale_index(&form, i);
            double wanted = rintf((float)element(x, i) / (float)element(scale, s)) +
                            (zero ? element(zero, s) : 0);
            wanted = fmin(fmax(wanted, low), high);
            if (element(y, i) != wanted)
                fail_msg("%s: %.9g / %.9g is %.9g, not %.9g", dtype_info(to)->ir_name,
                         element(x, i), element(scale, s), element(y, i), wanted);
        }
        op_close(&run);
    }
}

static void dequantize_integers(void **state)
{
    (void)state;
    struct random random = {22};
    static const tssa_dtype results[] = {TSSA_FLOAT, TSSA_FLOAT16, TSSA_BFLOAT16};
    for (int round = 0; round < 1500; round++) {
        struct form form = random_form(&random);
        tssa_dtype from = round % 9 == 8 ? TSSA_INT32 : quantized[round % 9],
                   to = results[round % 3];
        struct op_run run;
        op_open(&run, IR_OP_DequantizeLinear, 3, 1);
        set_form(&run, &form, &random);
        struct tensor *x = op_input(&run, 0, from, form.rank, form.dims);
        for (size_t i = 0; i < tensor_count(x); i++)
            dtype_store_int64(from, (char *)x->data + i * dtype_info(from)->size,
                              random_int(&random, -200, 200));
        struct tensor *scale = random_scales(&run, &form, &random, to), *zero = NULL;
        if (round / 9 % 2) {
            zero = op_input(&run, 2, from, form.scale_rank, form.scale_dims);
            for (size_t i = 0; i < tensor_count(zero); i++)
                dtype_store_int64(from, (char *)zero->data + i * dtype_info(from)->size,
                                  random_int(&random, -50, 50));
        }
        op_go(&run);
        const struct tensor *y = op_output(&run, 0, to, form.rank, form.dims);
        for (int64_t i = 0; i < (int64_t)tensor_count(x); i++) {
            int64_t s = scale_index(&form, i);
            float exact =
                (float)(element(x, i) - (zero ? element(zero, s) : 0)) * (float)element(scale, s);
            uint64_t rounded = 0;
            dtype_store_double(to, &rounded, exact);
            assert_memory_equal((const char *)y->data + (size_t)i * dtype_info(to)->size, &rounded,
                                dtype_info(to)->size);
        }
        op_close(&run);
    }
}

/* More elements than a chunk, in parts that begin anywhere. */
static void large_tensors_in_parts(void **state)
{
    (void)state;
    static const int64_t dims[] = {7, 101, 53};
    struct op_run run;
    op_open(&run, IR_OP_DequantizeLinear, 2, 1);
    struct tensor *x = op_input(&run, 0, TSSA_INT16, 3, dims);
    struct tensor *scale = op_input(&run, 1, TSSA_FLOAT, 1, &dims[1]);
    for (size_t i = 0; i < tensor_count(x); i++)
        ((int16_t *)x->data)[i] = (int16_t)(i % 997);
    for (int64_t i = 0; i < dims[1]; i++)
        ((float *)scale->data)[i] = (float)(i + 1);
    op_go(&run);
    const float *y = op_output(&run, 0, TSSA_FLOAT, 3, dims)->data;
    for (size_t i = 0; i < tensor_count(x); i++)
        assert_true(y[i] == (float)(i % 997) * (float)(i / 53 % 101 + 1));
    op_close(&run);
}

/* ---- Floats of 8 and 4 bits, precision, edges ------------------------------------------------ */

static void quantize_one(tssa_dtype to, int64_t saturate, float x, float scale, uint8_t wanted)
{
    struct op_run run;
    op_open(&run, IR_OP_QuantizeLinear, 2, 1);
    op_int(&run, "output_dtype", to);
    op_int(&run, "saturate", saturate);
    *(float *)op_input(&run, 0, TSSA_FLOAT, 0, NULL)->data = x;
    *(float *)op_input(&run, 1, TSSA_FLOAT, 0, NULL)->data = scale;
    op_go(&run);
    assert_int_equal(*(const uint8_t *)op_output(&run, 0, to, 0, NULL)->data, wanted);
    op_close(&run);
}

static void to_small_floats(void **state)
{
    (void)state;
    quantize_one(TSSA_FLOAT8E4M3FN, 1, 2, 2, 0x38);
    quantize_one(TSSA_FLOAT8E4M3FN, 1, 1e6f, 2, 0x7e);
    quantize_one(TSSA_FLOAT8E4M3FN, 0, 1e6f, 2, 0x7f);
    quantize_one(TSSA_FLOAT8E5M2, 0, -1e6f, 2, 0xfc);
    quantize_one(TSSA_FLOAT4E2M1, 1, 100, 2, 7);
    quantize_one(TSSA_FLOAT4E2M1, 1, -3, 2, 0x0b);
}

static void ties_infinities_and_nan(void **state)
{
    (void)state;
    quantize_one(TSSA_UINT8, 1, 2.5f, 1, 2);
    quantize_one(TSSA_UINT8, 1, 3.5f, 1, 4);
    quantize_one(TSSA_UINT8, 1, -1, 1, 0);
    quantize_one(TSSA_UINT8, 1, INFINITY, 1, 255);
    quantize_one(TSSA_INT8, 1, -INFINITY, 1, 0x80);
    quantize_one(TSSA_INT8, 1, NAN, 1, 0x80);
    quantize_one(TSSA_UINT8, 1, 1, 0, 255);
}

/* 2049 is no half: with that precision it is 2048 before it is divided. */
static void precision(void **state)
{
    (void)state;
    for (int narrow = 0; narrow < 2; narrow++) {
        struct op_run run;
        op_open(&run, IR_OP_QuantizeLinear, 2, 1);
        op_int(&run, "output_dtype", TSSA_UINT16);
        if (narrow)
            op_int(&run, "precision", TSSA_FLOAT16);
        *(float *)op_input(&run, 0, TSSA_FLOAT, 0, NULL)->data = 2049;
        *(float *)op_input(&run, 1, TSSA_FLOAT, 0, NULL)->data = 1;
        op_go(&run);
        assert_int_equal(*(const uint16_t *)op_output(&run, 0, TSSA_UINT16, 0, NULL)->data,
                         narrow ? 2048 : 2049);
        op_close(&run);
    }
}

static void empty(void **state)
{
    (void)state;
    struct op_run run;
    static const int64_t dims[] = {0, 3}, scales = 3;
    op_open(&run, IR_OP_QuantizeLinear, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, dims);
    op_input(&run, 1, TSSA_FLOAT, 1, &scales);
    op_go(&run);
    op_output(&run, 0, TSSA_UINT8, 2, dims);
    op_close(&run);
}

static void refusals(void **state)
{
    (void)state;
    struct op_run run;
    static const int64_t dims[] = {4, 6}, five = 5, blocks[] = {4, 2};
    op_open(&run, IR_OP_QuantizeLinear, 3, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, dims);
    op_input(&run, 1, TSSA_FLOAT, 1, &five);
    op_fails(&run, "scales f32[5] do not fit f32[4, 6]");
    op_int(&run, "axis", 2);
    op_fails(&run, "axis 2 is outside");
    op_int(&run, "axis", 1);
    op_int(&run, "block_size", 4);
    op_input(&run, 1, TSSA_FLOAT, 2, blocks);
    op_input(&run, 2, TSSA_INT8, 1, &five);
    op_fails(&run, "differ in shape");
    op_int(&run, "block_size", 2);
    op_fails(&run, "do not fit");
    op_int(&run, "block_size", -1);
    op_fails(&run, "\"block_size\" is negative");
    op_int(&run, "block_size", 0);
    op_int(&run, "output_dtype", TSSA_FLOAT);
    op_fails(&run, "\"output_dtype\" is 1");
    op_int(&run, "output_dtype", TSSA_UINT8);
    op_fails(&run, "cannot be quantized");
    op_close(&run);

    op_open(&run, IR_OP_DequantizeLinear, 3, 1);
    op_input(&run, 0, TSSA_INT8, 2, dims);
    op_input(&run, 1, TSSA_FLOAT, 0, NULL);
    op_input(&run, 2, TSSA_UINT8, 0, NULL);
    op_fails(&run, "cannot be dequantized");
    op_close(&run);
}

/* ---- DynamicQuantizeLinear ------------------------------------------------------------------- */

static void dynamic(void **state)
{
    (void)state;
    static const struct {
        float x[4];
        float scale;
        uint8_t zero, y[4];
    } cases[] = {
        {{0, 2, -3, -2.5f}, 5.0f / 255, 153, {153, 255, 0, 26}},
        {{-1, -2.1f, -1.3f, -2.5f}, 2.5f / 255, 255, {153, 41, 122, 0}},
        {{1, 2.1f, 1.3f, 2.5f}, 2.5f / 255, 0, {102, 214, 133, 255}},
        {{0, 0, 0, 0}, 1.0f / 255, 0, {0, 0, 0, 0}},
    };
    const int64_t n = 4;
    for (size_t i = 0; i < 4; i++) {
        struct op_run run;
        op_open(&run, IR_OP_DynamicQuantizeLinear, 1, 3);
        memcpy(op_input(&run, 0, TSSA_FLOAT, 1, &n)->data, cases[i].x, sizeof cases[i].x);
        op_go(&run);
        assert_memory_equal(op_output(&run, 0, TSSA_UINT8, 1, &n)->data, cases[i].y, 4);
        assert_true(*(const float *)op_output(&run, 1, TSSA_FLOAT, 0, NULL)->data ==
                    cases[i].scale);
        assert_int_equal(*(const uint8_t *)op_output(&run, 2, TSSA_UINT8, 0, NULL)->data,
                         cases[i].zero);
        op_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantize_integers),
        cmocka_unit_test(dequantize_integers),
        cmocka_unit_test(large_tensors_in_parts),
        cmocka_unit_test(to_small_floats),
        cmocka_unit_test(ties_infinities_and_nan),
        cmocka_unit_test(precision),
        cmocka_unit_test(empty),
        cmocka_unit_test(refusals),
        cmocka_unit_test(dynamic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
