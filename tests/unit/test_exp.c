/* SPDX-License-Identifier: Apache-2.0 */
/* exp_for_float over all magnitudes of float32, against the C library's double. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cpu/exp.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_close),
                                       cmocka_unit_test(special_values)};
    return cmocka_run_group_tests_name("exp", tests, NULL, NULL);
}
