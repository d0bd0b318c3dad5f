/* SPDX-License-Identifier: Apache-2.0 */
/* FLOAT16 in vectors: all halves, and floats around each, have the bits that one by one have. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "ir/scalar/convert.h"
#include "ir/scalar/exact.h"
#include "kernels/cpu/lib/halves.h"

#define HALVES 65536

static void test_widen(void **state)
{
    static uint16_t halves[HALVES];
    static float wide[HALVES];
    (void)state;
    for (int i = 0; i < HALVES; i++)
        halves[i] = (uint16_t)i;
    halves_widen(HALVES, halves, wide);
    for (int i = 0; i < HALVES; i++) {
        const float expected = f32_of_f16((uint16_t)i);
        if (isnan(expected))
            assert_true(isnan(wide[i]));
        else
            assert_int_equal(f32_bits(wide[i]), f32_bits(expected));
    }
}

static void expect_narrow(const float *values, int n)
{
    uint16_t narrow[64];
    halves_narrow(n, values, narrow);
    for (int i = 0; i < n; i++) {
        if (isnan(values[i]))
            assert_true(isnan(f32_of_f16(narrow[i])));
        else
            assert_int_equal(narrow[i], f16_of_f32(values[i]));
    }
}

/* Each half, what lies half-way to the next, and one to both sides of these. */
static void test_narrow(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < HALVES; i++) {
        const uint32_t bits = f32_bits(f32_of_f16((uint16_t)i)),
                       middle = bits + (UINT32_C(1) << 12);
        const float values[] = {f32_of(bits),      f32_of(bits + 1),   f32_of(bits - 1),
                                f32_of(middle),    f32_of(middle + 1), f32_of(middle - 1),
                                f32_of(bits * 3u), f32_of(~bits),      f32_of(bits >> 1)};
        expect_narrow(values, sizeof values / sizeof *values);
    }
}

/* Of any length, and any bits. */
static void test_any(void **state)
{
    struct random random = {3};
    (void)state;
    for (int i = 0; i < 20000; i++) {
        float values[40];
        const int n = (int)random_int(&random, 0, 40);
        for (int k = 0; k < n; k++)
            values[k] = f32_of((uint32_t)random_bits(&random));
        expect_narrow(values, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_widen), cmocka_unit_test(test_narrow),
                                       cmocka_unit_test(test_any)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
