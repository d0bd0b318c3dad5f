/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over blocks that become one kernel give what the loop gives, and fail where it does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

/* Row i of what is carried, of N rows, and of x, of four, become one row. */
#define PROGRAM(row)                                                                               \
    "graph (%b: f32[N, 3], %x: f32[4, 3], %w: f32[3], %u: f32[N], %n: i64[]) -> (%y) {\n"          \
    "  %y = Loop(%n, _, %b) {\n    body(%i: i64[], %c: bool[], %v: f32[N, 3]) {\n"                 \
    "      %one = Constant() {value = i64[] 1}\n      %j = Add(%i, %one)\n"                        \
    "      %p = access(%v, %i) {rule = [select(0, $0)]}\n" row                                     \
    "      %t = assign(%v, %s, %i) {rule = [select(0, $0)]}\n      return(%c, %t)\n"               \
    "    }\n  }\n  return(%y)\n}\n"

static const struct {
    const char *text;
    bool goes;
} programs[] = {
    {PROGRAM("      %s = Mul(%p, %w)\n"), true},
    {PROGRAM("      %q = access(%x, %i) {rule = [select(0, $0)]}\n      %s = Add(%p, %q)\n"), true},
    {PROGRAM("      %q = access(%x, %j) {rule = [select(0, $0)]}\n      %s = Add(%p, %q)\n"), true},
    {PROGRAM("      %s = Neg(%w)\n"), true},
    /* What is not computed element by element, or is put into another shape. */
    {PROGRAM("      %m = ReduceMax(%p) {keepdims = 1}\n      %s = Sub(%p, %m)\n"), false},
    {PROGRAM("      %q = access(%u, %i) {rule = [select(0, $0)]}\n      %s = Mul(%p, %q)\n"),
     false},
};

static const char passes[] = "infer hoist parallelize infer identity fold_shapes fold_constants "
                             "common_subexpressions hoist dead_code one_block infer dead_code";

static void test_blocks(void **state)
{
    static const struct pass_batching some[] = {{.block = 2}, {.block_bytes = 64}};
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        for (int b = 0; b < 2; b++) {
            const int loops = rewrite_count_batched(programs[i].text, passes, some[b], "Loop@");
            assert_int_equal(loops, !programs[i].goes);
            for (int64_t size = 1; size < 6; size++)
                for (int64_t n = -1; n < 7; n++)
                    rewrite_check(&(const struct rewrite_check){.text = programs[i].text,
                                                                .passes = passes,
                                                                .size = size,
                                                                .scalar = n,
                                                                .batching = some[b],
                                                                .seed = i});
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
