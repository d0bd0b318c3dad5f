/* SPDX-License-Identifier: Apache-2.0 */
/* exp_for_float and tanh_for_float over all magnitudes of float32, against the C library's double. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/tanh.h"

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* An odd stride meets all exponents, both signs, and many fractions of each. */
static void is_close(void **state)
{
    (void)state;
    double worst = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 9973) {
        double x = (double)float_of((uint32_t)bits);
        if (!(fabs(x) <= 200))
            continue;
        double expected = exp(x), error = fabs(exp_for_float(x) - expected) / expected;
        worst = error > worst ? error : worst;
    }
    assert_true(worst > 0 && worst < 0x1p-50);
}

static void special_values(void **state)
{
    (void)state;
    assert_true(exp_for_float(0) == 1 && exp_for_float(-0.0) == 1);
    assert_true(exp_for_float(FLT_TRUE_MIN) == 1);
    assert_true((float)exp_for_float((double)INFINITY) == INFINITY);
    assert_true((float)exp_for_float((double)FLT_MAX) == INFINITY);
    assert_true((float)exp_for_float((double)-INFINITY) == 0);
    assert_true((float)exp_for_float((double)-FLT_MAX) == 0);
    assert_true(isnan(exp_for_float((double)NAN)));
    /* The last finite and the last results that are not 0. */
    assert_true((float)exp_for_float(88.7228317260742) < INFINITY);
    assert_true((float)exp_for_float(88.72283935546875) == INFINITY);
    assert_true((float)exp_for_float(-103.97207641601562) == FLT_TRUE_MIN);
    assert_true((float)exp_for_float(-103.97208404541016) == 0);
}

static void tanh_is_close(void **state)
{
    (void)state;
    double worst = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 9973) {
        double x = (double)float_of((uint32_t)bits), expected = tanh(x);
        if (isnan(x) || expected == 0)
            continue;
        double error = fabs(tanh_for_float(x) - expected) / fabs(expected);
        worst = error > worst ? error : worst;
    }
    assert_true(worst > 0 && worst < 0x1p-43);
}

static void tanh_of_special_values(void **state)
{
    (void)state;
    assert_true(tanh_for_float(0) == 0 && !signbit(tanh_for_float(0)));
    assert_true(tanh_for_float(-0.0) == 0 && signbit(tanh_for_float(-0.0)));
    assert_true((float)tanh_for_float(FLT_TRUE_MIN) == FLT_TRUE_MIN);
    assert_true(tanh_for_float((double)INFINITY) == 1 && tanh_for_float((double)-INFINITY) == -1);
    assert_true(tanh_for_float((double)FLT_MAX) == 1 && tanh_for_float((double)-FLT_MAX) == -1);
    assert_true(isnan(tanh_for_float((double)NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_close), cmocka_unit_test(special_values),
                                       cmocka_unit_test(tanh_is_close),
                                       cmocka_unit_test(tanh_of_special_values)};
    return cmocka_run_group_tests_name("exp", tests, NULL, NULL);
}
