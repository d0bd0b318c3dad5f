/* SPDX-License-Identifier: Apache-2.0 */
/* What a mask keeps, against the obvious loops. */
/* ctest-isa: v3 base */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "common/xmalloc.h"
#include "kernels/cpu/lib/keep.h"

#define MOST 700
#define GUARD 0x5a

/* Of a thousand. */
static const int densities[] = {0, 3, 100, 500, 950, 1000};
#define N_DENSITIES (int)(sizeof densities / sizeof *densities)

/* Any byte but 0 keeps. */
static int64_t random_mask(struct random *random, int density, uint8_t *mask, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        mask[i] = random_int(random, 0, 999) < density ? (uint8_t)random_int(random, 1, 255) : 0;
        kept += mask[i] != 0;
    }
    return kept;
}

/* Exactly as long as they may be, so that sanitizers see what is read or written behind. */
static void check_rows(struct random *random, size_t size, int density, int64_t n)
{
    uint8_t *mask = xcalloc(1, (size_t)n + 1);
    const int64_t kept = random_mask(random, density, mask, n);
    char *from = xcalloc(1, (size_t)n * size + 1), *to = xcalloc(1, (size_t)kept * size + 1);
    for (size_t i = 0; i < (size_t)n * size; i++)
        from[i] = (char)random_int(random, 0, 255);
    to[(size_t)kept * size] = GUARD;
    assert_int_equal(keep_count(mask, n), kept);
    keep_rows(mask, n, from, size, to, kept);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++)
        if (mask[i])
            assert_memory_equal(to + (size_t)at++ * size, from + (size_t)i * size, size);
    assert_int_equal(to[(size_t)kept * size], GUARD);
    free(to);
    free(from);
    free(mask);
}

static void test_rows(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 4, 8, 12, 16, 32, 100};
    struct random random = {1};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int d = 0; d < N_DENSITIES; d++)
            for (int round = 0; round < 20; round++)
                check_rows(&random, sizes[s], densities[d], random_int(&random, 0, MOST));
}

static void test_numbers(void **state)
{
    struct random random = {2};
    (void)state;
    for (int round = 0; round < 20 * N_DENSITIES; round++) {
        const int64_t n = random_int(&random, 0, MOST), first = random_int(&random, 0, 1) << 40;
        uint8_t *mask = xcalloc(1, (size_t)n + 1);
        const int64_t kept = random_mask(&random, densities[round % N_DENSITIES], mask, n),
                      room = kept + random_int(&random, 0, 1) * random_int(&random, 0, 100);
        int64_t *to = xcalloc(1, (size_t)(room + 1) * sizeof *to), at = 0;
        to[room] = GUARD;
        assert_int_equal(keep_numbers(mask, n, first, to, room), kept);
        for (int64_t i = 0; i < n; i++)
            if (mask[i])
                assert_int_equal(to[at++], first + i);
        assert_int_equal(to[room], GUARD);
        free(to);
        free(mask);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
