/* SPDX-License-Identifier: Apache-2.0 */
/* What is read by places that a branch gives is the same where it is read in the branch, and what
 * cannot be read fails there as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

#define PASSES "infer sink_reads infer dead_code"

/* Places are 0 to 3. */
#define READS(rows)                                                                                \
    "graph (%x: f32[" rows ", 4], %i: i64[5], %j: i64[3], %n: i64[]) -> (%y as \"y\", %z as "      \
    "\"z\") {\n"                                                                                   \
    "  %one = Constant() {value = i64[] 1}\n"                                                      \
    "  %c = Greater(%n, %one)\n"                                                                   \
    "  %p, %z = If(%c) {\n"                                                                        \
    "    then_branch() {\n"                                                                        \
    "      %a = Neg(%x)\n"                                                                         \
    "      return(%i, %a)\n"                                                                       \
    "    }\n"                                                                                      \
    "    else_branch() {\n"                                                                        \
    "      return(%j, %x)\n"                                                                       \
    "    }\n"                                                                                      \
    "  }\n"                                                                                        \
    "  %y = Gather(%x, %p) {axis = 0}\n"                                                           \
    "  return(%y, %z)\n"                                                                           \
    "}\n"

static bool check(const char *text, int64_t n, uint64_t seed)
{
    return rewrite_check(
        &(struct rewrite_check){.text = text, .passes = PASSES, .scalar = n, .seed = seed});
}

static void test_reads(void **state)
{
    (void)state;
    assert_int_equal(rewrite_count(READS("4"), PASSES, "Gather@"), 2); /* one in each */
    for (uint64_t seed = 1; seed <= 10; seed++) {
        assert_true(check(READS("4"), 2, seed));
        assert_true(check(READS("4"), 1, seed));
    }
}

/* Of a row that is not there. */
static void test_failures(void **state)
{
    int failed = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++)
        failed += !check(READS("3"), 2, seed) + !check(READS("3"), 1, seed);
    assert_in_range(failed, 1, 19);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reads),
                                       cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
