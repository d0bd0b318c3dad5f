/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison rule, at its edges. The expectations are numpy.testing.assert_allclose's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "tools/common/compare.h"

static const struct compare_rule official = {.rtol = 1e-3, .atol = 1e-7};
static const struct compare_rule strict = {.rtol = 1e-3, .atol = 1e-5, .exact_integers = true};

static struct value vector(tssa_dtype dtype, void *data, int64_t count)
{
    return (struct value){.kind = TSSA_KIND_TENSOR,
                          .tensor = {.dtype = dtype, .rank = 1, .dims = {count}, .data = data}};
}

static bool same(const struct compare_rule *rule, tssa_dtype dtype, void *actual, void *expected,
                 int64_t count)
{
    struct compare_report report;
    struct value a = vector(dtype, actual, count), e = vector(dtype, expected, count);
    bool equal = compare_values(&a, &e, rule, &report);
    assert_int_equal(equal, report.equal);
    assert_int_equal(equal, report.why[0] == '\0');
    return equal;
}

static bool same_float(float actual, float expected)
{
    return same(&official, TSSA_FLOAT, &actual, &expected, 1);
}

static void floats_have_a_tolerance(void **state)
{
    (void)state;
    assert_true(same_float(1.0005f, 1.0f));
    assert_false(same_float(1.002f, 1.0f));
    assert_true(same_float(-1.0005f, -1.0f));
    assert_false(same_float(1.0f, -1.0f));
    assert_true(same_float(5e-8f, 0.0f));
    assert_false(same_float(2e-7f, 0.0f));
    assert_true(same_float(-0.0f, 0.0f));
}

/* Zeros of unlike sign are one thing where nothing else differs, and none where something was
 * rounded. */
static void zero_signs_differ_alone(void **state)
{
    (void)state;
    const struct compare_rule rule = {.rtol = 1e-3, .atol = 1e-5, .zero_signs = true};
    float zeros[] = {1, 0.0f, 0.0f}, signs[] = {1, -0.0f, 0.0f}, rounded[] = {1.0000001f, -0.0f, 0},
          tiny[] = {1, 0.0f, -1e-30f}, nans[] = {NAN, 0.0f, 0.0f};
    double parts[] = {1, 0.0}, other_parts[] = {1, -0.0};
    assert_true(same(&rule, TSSA_FLOAT, zeros, zeros, 3));
    assert_true(same(&rule, TSSA_FLOAT, signs, signs, 3));
    assert_false(same(&rule, TSSA_FLOAT, signs, zeros, 3));
    assert_false(same(&rule, TSSA_FLOAT, zeros, signs, 3));
    assert_true(same(&strict, TSSA_FLOAT, zeros, signs, 3)); /* who does not ask for it */
    assert_true(same(&rule, TSSA_FLOAT, rounded, zeros, 3));
    assert_true(same(&rule, TSSA_FLOAT, tiny, zeros, 3)); /* the tolerance's to judge */
    assert_false(same(&rule, TSSA_FLOAT, nans, zeros, 3));
    assert_false(same(&rule, TSSA_FLOAT, zeros, nans, 3));
    assert_true(same(&rule, TSSA_FLOAT, nans, nans, 3));
    assert_false(same(&rule, TSSA_COMPLEX128, parts, other_parts, 1));
    struct value a = vector(TSSA_FLOAT, signs, 3), e = vector(TSSA_FLOAT, zeros, 3);
    struct compare_report report;
    assert_false(compare_values(&a, &e, &rule, &report));
    assert_string_equal(report.why,
                        "1 of 3 elements differ in the sign of zero alone, the first at [1]");
    a = vector(TSSA_FLOAT, rounded, 3);
    assert_true(compare_values(&a, &e, &rule, &report));
    assert_int_equal(report.zero_signs, 1);
}

static void nan_and_infinity(void **state)
{
    (void)state;
    assert_true(same_float(NAN, NAN));
    assert_true(same_float(-NAN, NAN));
    assert_false(same_float(NAN, 1.0f));
    assert_false(same_float(1.0f, NAN));
    assert_true(same_float(INFINITY, INFINITY));
    assert_false(same_float(-INFINITY, INFINITY));
    assert_false(same_float(3e38f, INFINITY));
    assert_false(same_float(INFINITY, 3e38f));
    assert_false(same_float(NAN, INFINITY));
}

/* In half precision 0.001 * 1 is 0.0010004, and one unit in the last place of 1 is 0.00097656. */
static void half_is_compared_in_half(void **state)
{
    (void)state;
    uint16_t one = 0x3c00, next = 0x3c01, second = 0x3c02;
    assert_true(same(&official, TSSA_FLOAT16, &next, &one, 1));
    assert_false(same(&official, TSSA_FLOAT16, &second, &one, 1));
    /* Two units of 1.5 are 0.00195, more than 0.0015. */
    uint16_t x = 0x3e00, y = 0x3e02;
    assert_false(same(&official, TSSA_FLOAT16, &y, &x, 1));
    /* 1e-7 rounds up to two of the smallest steps. */
    uint16_t zero = 0, two_steps = 2, three_steps = 3;
    assert_true(same(&official, TSSA_FLOAT16, &two_steps, &zero, 1));
    assert_false(same(&official, TSSA_FLOAT16, &three_steps, &zero, 1));
    uint16_t nan = 0x7e00, inf = 0x7c00, minus_inf = 0xfc00;
    assert_true(same(&official, TSSA_FLOAT16, &nan, &nan, 1));
    assert_true(same(&official, TSSA_FLOAT16, &inf, &inf, 1));
    assert_false(same(&official, TSSA_FLOAT16, &minus_inf, &inf, 1));
}

static void bfloat16_is_exact_in_effect(void **state)
{
    (void)state;
    uint16_t one = 0x3f80, next = 0x3f81;
    assert_true(same(&official, TSSA_BFLOAT16, &one, &one, 1));
    assert_false(same(&official, TSSA_BFLOAT16, &next, &one, 1));
}

static void integers(void **state)
{
    (void)state;
    int64_t a = 1000, b = 1001, big = INT64_MAX, near = INT64_MAX - 1;
    assert_true(same(&official, TSSA_INT64, &b, &a, 1));
    assert_false(same(&strict, TSSA_INT64, &b, &a, 1));
    assert_false(same(&strict, TSSA_INT64, &near, &big, 1));
    uint8_t zero = 0, one = 1;
    assert_false(same(&official, TSSA_UINT8, &one, &zero, 1));
    assert_false(same(&official, TSSA_BOOL, &one, &zero, 1));
    int8_t minus = -8;
    assert_true(same(&official, TSSA_INT4, &minus, &minus, 1));
}

static void doubles_and_complex(void **state)
{
    (void)state;
    double a = 1 + 1e-4, e = 1;
    assert_true(same(&official, TSSA_DOUBLE, &a, &e, 1));
    float p[2] = {3, 4.004f}, q[2] = {3, 4}, r[2] = {3, 4.01f};
    assert_true(same(&official, TSSA_COMPLEX64, p, q, 1));
    assert_false(same(&official, TSSA_COMPLEX64, r, q, 1));
}

static void strings_are_exact(void **state)
{
    (void)state;
    tssa_string a = {"ab", 2}, b = {"abc", 3}, c = {"ab", 2}, empty = {NULL, 0};
    assert_true(same(&official, TSSA_STRING, &a, &c, 1));
    assert_false(same(&official, TSSA_STRING, &a, &b, 1));
    assert_true(same(&official, TSSA_STRING, &empty, &empty, 1));
}

static void types_and_shapes_are_exact(void **state)
{
    (void)state;
    float data[2] = {1, 2};
    struct compare_report report;
    struct value two = vector(TSSA_FLOAT, data, 2), one = vector(TSSA_FLOAT, data, 1);
    struct value other = vector(TSSA_INT32, data, 1), scalar = one, none = {.kind = TSSA_KIND_NONE};
    scalar.tensor.rank = 0;
    assert_false(compare_values(&two, &one, &official, &report));
    assert_string_equal(report.why, "f32[2] instead of f32[1]");
    assert_false(compare_values(&scalar, &one, &official, &report));
    assert_false(compare_values(&other, &one, &official, &report));
    assert_false(compare_values(&none, &one, &official, &report));
    assert_true(compare_values(&none, &none, &official, &report));
}

static struct value pair(struct value *first, struct value *second)
{
    struct value empty, one, both;
    assert_null(sequence_create(&allocator_default, TSSA_FLOAT, &empty));
    assert_null(sequence_insert(&empty, 0, first, &one));
    value_release(&empty);
    if (!second)
        return one;
    assert_null(sequence_insert(&one, 1, second, &both));
    value_release(&one);
    return both;
}

static void sequences(void **state)
{
    (void)state;
    float data[2] = {1, 2}, changed[2] = {1, 3};
    struct compare_report report;
    struct value x = vector(TSSA_FLOAT, data, 2), y = vector(TSSA_FLOAT, changed, 2);
    struct value xx = pair(&x, &x), xy = pair(&x, &y), only = pair(&x, NULL);
    assert_true(compare_values(&xx, &xx, &official, &report));
    assert_int_equal(report.compared, 4);
    assert_false(compare_values(&xy, &xx, &official, &report));
    assert_non_null(strstr(report.why, "element 1: 1 of 2"));
    assert_false(compare_values(&only, &xx, &official, &report)); /* too short */
    assert_false(compare_values(&xx, &only, &official, &report));
    assert_false(compare_values(&x, &only, &official, &report));
    value_release(&xx);
    value_release(&xy);
    value_release(&only);
}

static void the_report_names_the_worst_element(void **state)
{
    (void)state;
    float actual[4] = {1, 2.1f, 3, 5}, expected[4] = {1, 2, 3, 4};
    struct compare_report report;
    struct value a = vector(TSSA_FLOAT, actual, 4), e = vector(TSSA_FLOAT, expected, 4);
    a.tensor.rank = e.tensor.rank = 2;
    a.tensor.dims[0] = a.tensor.dims[1] = e.tensor.dims[0] = e.tensor.dims[1] = 2;
    assert_false(compare_values(&a, &e, &official, &report));
    assert_string_equal(report.why, "2 of 4 elements differ, the most at [1, 1]: 5 instead of 4");
    assert_int_equal(report.differing, 2);
    assert_true(report.max_abs == 1 && report.max_rel == 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_have_a_tolerance),
        cmocka_unit_test(zero_signs_differ_alone),
        cmocka_unit_test(nan_and_infinity),
        cmocka_unit_test(half_is_compared_in_half),
        cmocka_unit_test(bfloat16_is_exact_in_effect),
        cmocka_unit_test(integers),
        cmocka_unit_test(doubles_and_complex),
        cmocka_unit_test(strings_are_exact),
        cmocka_unit_test(types_and_shapes_are_exact),
        cmocka_unit_test(sequences),
        cmocka_unit_test(the_report_names_the_worst_element),
    };
    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}
