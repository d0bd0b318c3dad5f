/* SPDX-License-Identifier: Apache-2.0 */
/* split_tables computes what was computed, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

#define PASSES "infer split_tables dead_code"

/* Programs, and how many products there are in the end. */
static const struct {
    const char *text;
    int products;
} programs[] = {
    /* Heads, a mask that all read and a bias for each of them. */
    {"graph (%q: f32[1, 3, 512, 4], %k: f32[1, 3, 4, 513], %v: f32[1, 3, 513, 5], %m: f32[512, "
     "513], %b: f32[3, 1, 513]) -> (%y) {\n"
     " %s = MatMul(%q, %k)\n %t = Sub(%m, %s)\n %u = Add(%t, %b)\n %w = Softmax(%u) {axis = -1}\n"
     " %y = MatMul(%w, %v)\n return(%y)\n}\n",
     6},
    /* Batches of heads, which share one matrix. */
    {"graph (%q: f32[2, 2, 520, 3], %k: f32[2, 3, 520], %v: f32[520, 2]) -> (%y) {\n"
     " %s = MatMul(%q, %k)\n %w = Softmax(%s) {axis = 3}\n %y = MatMul(%w, %v)\n return(%y)\n}\n",
     8},
    /* One operand is both, and products follow one another. */
    {"graph (%x: f32[2, 512, 512]) -> (%z) {\n"
     " %y = MatMul(%x, %x)\n %z = MatMul(%y, %x)\n return(%z)\n}\n",
     4},
    /* What lies between is used elsewhere, or no rows of its own. */
    {"graph (%x: f32[2, 512, 512]) -> (%y, %z) {\n"
     " %y = MatMul(%x, %x)\n %z = MatMul(%y, %x)\n return(%y, %z)\n}\n",
     2},
    {"graph (%x: f32[2, 512, 512]) -> (%z) {\n"
     " %y = MatMul(%x, %x)\n %w = Softmax(%y) {axis = 0}\n %z = MatMul(%w, %x)\n return(%z)\n}\n",
     2},
    /* As the second operand: parts of the columns are not rows of it. */
    {"graph (%x: f32[2, 512, 512]) -> (%z) {\n"
     " %y = MatMul(%x, %x)\n %w = Relu(%y)\n %z = MatMul(%x, %w)\n return(%z)\n}\n",
     2},
};

static void bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        assert_true(rewrite_check(
            &(const struct rewrite_check){.text = programs[i].text, .passes = PASSES}));
        assert_int_equal(rewrite_count(programs[i].text, PASSES, "MatMul@"), programs[i].products);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
