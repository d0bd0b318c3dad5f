/* SPDX-License-Identifier: Apache-2.0 */
/* Results of kernels: what is one of several arguments, what nobody uses when rules are lowered,
 * and what is as large as another. Sessions give the interpreter's bits with and without. */
/* ctest-isa: v3 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/compiling.h"
#include "common/session_pair.h"

static void run(const char *text, int rank, const int64_t *dims, size_t n_outputs)
{
    for (int threads = 1; threads <= 2; threads++) {
        struct session_pair p;
        session_pair_open(&p, text, threads);
        tssa_value *inputs[] = {session_pair_floats(&p, rank, dims, false)};
        for (int i = 0; i < 2; i++)
            session_pair_run(&p, 1, inputs, n_outputs);
        if (compiling_is_possible())
            assert_int_not_equal(p.info.kernels, 0);
        tssa_value_free(inputs[0]);
        session_pair_close(&p);
    }
}

/* Each column of the first piece is an argument of its own, and the result is made once for all:
 * nobody has made it before. */
static void columns_are_one_result(void **state)
{
    static const char text[] = SESSION_MODEL("%x: f32[N, 5]", "%y",
                                             "%a = Neg(%x)\n"
                                             "%y = Concat(%a, %x, %a) {axis = 1}\n");
    (void)state;
    run(text, 2, (int64_t[]){7, 5}, 1);
}

/* All of the Pad is written over, which is known when its rules are lowered: nobody uses %b. */
static void a_result_is_left_over(void **state)
{
    static const char text[] =
        SESSION_MODEL("%x: f32[N, 2]", "%y, %a",
                      "%a = Neg(%x)\n"
                      "%b = Abs(%a)\n"
                      "%pads = Constant() {value = i64[4] [1, 0, 0, 0]}\n"
                      "%p = Pad(%b, %pads)\n"
                      "%two = Constant() {value = i64[] 2}\n"
                      "%one = Constant() {value = i64[1] [1]}\n"
                      "%half = Constant() {value = f32[] 0.5}\n"
                      "%n = Shape(%x) {start = 0, end = 1}\n"
                      "%m = Add(%n, %one)\n"
                      "%y = Loop(%two, _, %p) {\n"
                      "  body(%i: i64[], %more: bool[], %s: f32[K, 2]) {\n"
                      "    %column = Concat(%m, %one) {axis = 0}\n"
                      "    %new = Expand(%half, %column)\n"
                      "    %shape = Shape(%new)\n"
                      "    %at = Expand(%i, %shape)\n"
                      "    %next = ScatterElements(%s, %at, %new) {axis = 1}\n"
                      "    return(%more, %next)\n"
                      "  }\n"
                      "}\n");
    (void)state;
    run(text, 2, (int64_t[]){5, 2}, 2);
}

/* What the columns come to has fewer axes than their elements, and as many elements. */
static void columns_of_one_element(void **state)
{
    static const char text[] = SESSION_MODEL("%x: f32[1, 3, 4]", "%y, %z",
                                             "%axes = Constant() {value = i64[1] [0]}\n"
                                             "%y = ReduceSumSquare(%x, %axes) {keepdims = 0}\n"
                                             "%a = Abs(%x)\n"
                                             "%z = Neg(%a)\n");
    (void)state;
    run(text, 3, (int64_t[]){1, 3, 4}, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_are_one_result),
                                       cmocka_unit_test(a_result_is_left_over),
                                       cmocka_unit_test(columns_of_one_element)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
