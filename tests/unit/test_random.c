/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors: the same bits everywhere, and what they promise about their distribution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/dtype.h"
#include "tools/common/random.h"

enum { COUNT = 20000 };

/* Computed with an independent implementation in Python. */
static void bits_are_the_same_everywhere(void **state)
{
    (void)state;
    static const uint64_t wanted[3] = {0x5e33b300c3172c69u, 0x46a4330b64116790u,
                                       0x888cb84aebe03dabu};
    static const double normals[3] = {0x1.7e31f91a00000p-1, -0x1.cfc895fa00000p-1,
                                      0x1.e4120d6000000p-2};
    struct random random;
    double elements[3] = {0};
    struct tensor tensor = {.dtype = TSSA_DOUBLE, .rank = 1, .dims = {3}, .data = elements};
    random_seed(&random, 7, 2);
    for (int i = 0; i < 3; i++)
        assert_true(random_next(&random) == wanted[i]);
    random_seed(&random, 7, 2);
    random_fill(&random, &tensor);
    for (int i = 0; i < 3; i++)
        assert_true(elements[i] == normals[i]);
}

static void floats_are_near_to_normal(void **state)
{
    (void)state;
    static float elements[COUNT];
    struct tensor tensor = {.dtype = TSSA_FLOAT, .rank = 1, .dims = {COUNT}, .data = elements};
    struct random random;
    double sum = 0, squares = 0;
    size_t beyond = 0;
    random_seed(&random, 0, 0);
    random_fill(&random, &tensor);
    for (int i = 0; i < COUNT; i++) {
        assert_true(fabsf(elements[i]) <= 6);
        sum += elements[i];
        squares += (double)elements[i] * elements[i];
        beyond += fabsf(elements[i]) > 2;
    }
    assert_true(fabs(sum / COUNT) < 0.03);
    assert_true(fabs(squares / COUNT - 1) < 0.05);
    assert_true(beyond > COUNT * 0.035 &&
                beyond < COUNT * 0.055); /* 4.6 % of a normal distribution */
}

static void integers_are_small(void **state)
{
    (void)state;
    for (int dtype = 1; dtype < TSSA_DTYPE_COUNT; dtype++) {
        int64_t storage[200 * 2];
        size_t counts[RANDOM_INTEGERS] = {0};
        struct tensor tensor = {
            .dtype = (tssa_dtype)dtype, .rank = 1, .dims = {200}, .data = storage};
        struct random random;
        if (!dtype_is_integer((tssa_dtype)dtype) && dtype != TSSA_BOOL)
            continue;
        random_seed(&random, 3, (uint64_t)dtype);
        random_fill(&random, &tensor);
        for (size_t i = 0; i < 200; i++) {
            int64_t x = dtype_load_int64(tensor.dtype, (const char *)storage +
                                                           i * dtype_info(tensor.dtype)->size);
            assert_true(x >= 0 && x < RANDOM_INTEGERS);
            counts[x]++;
        }
        assert_true(counts[0] > 20 && counts[1] > 20);
        if (dtype == TSSA_BOOL || dtype == TSSA_INT2)
            assert_int_equal(counts[2] + counts[3], 0);
        else
            assert_true(counts[2] > 20 && counts[3] > 20);
    }
}

static void streams_differ(void **state)
{
    (void)state;
    struct random a, b, c;
    random_seed(&a, 1, 0);
    random_seed(&b, 1, 1);
    random_seed(&c, 0, 1);
    uint64_t x = random_next(&a), y = random_next(&b), z = random_next(&c);
    assert_true(x != y && y != z && x != z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_same_everywhere),
        cmocka_unit_test(floats_are_near_to_normal),
        cmocka_unit_test(integers_are_small),
        cmocka_unit_test(streams_differ),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
