/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops split by their recurrences compute what they computed: random bodies of products, sums and
 * carried values, for several numbers of iterations.
 *
 * TSSA_SEED=N runs one of them and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/op_run.h"
#include "common/random_programs.h"
#include "common/rewrite_check.h"

#define CARRIED 4

/* A value of the body made before op `at`: a carried one, the row of x, or a result. */
static void put_operand(struct random *random, struct text *text, int at)
{
    int64_t pick = random_int(random, -CARRIED - 1, at - 1);
    if (pick < -1)
        text_printf(text, "%%h%d", (int)(-pick - 2));
    else if (pick < 0)
        text_puts(text, "%row");
    else
        text_printf(text, "%%v%d", (int)pick);
}

static void put_op(struct random *random, struct text *text, int at)
{
    static const char *const binary[] = {"Add", "Sub", "Max"};
    int64_t kind = random_int(random, 0, 6);
    if (kind < 3) {
        text_printf(text, "  %%v%d = MatMul(", at);
        put_operand(random, text, at);
        text_printf(text, ", %%w%d)\n", (int)random_int(random, 0, 1));
    } else if (kind < 6) {
        text_printf(text, "  %%v%d = %s(", at, binary[random_int(random, 0, 2)]);
        put_operand(random, text, at);
        text_puts(text, ", ");
        put_operand(random, text, at);
        text_puts(text, ")\n");
    } else {
        text_printf(text, "  %%v%d = If(%%flag) { then_branch() { %%t%d = Tanh(", at, at);
        put_operand(random, text, at);
        text_printf(text, ") return(%%t%d) } else_branch() { %%e%d = Neg(", at, at);
        put_operand(random, text, at);
        text_printf(text, ") return(%%e%d) } }\n", at);
    }
}

/* A loop over the rows of x with four carried matrices and two stacked outputs. */
static char *make_program(uint64_t seed)
{
    struct random random = {seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    struct text text;
    int n_ops = (int)random_int(&random, 3, 14);
    text_init(&text, &allocator_default);
    text_puts(&text,
              "graph (%n: i64[], %x: f32[R, 2, 3], %w0: f32[3, 3], %w1: f32[3, 3], %flag: bool[], "
              "%a: f32[2, 3]) -> (%r0, %r1, %r2, %r3, %s0, %s1) {\n"
              " %r0, %r1, %r2, %r3, %s0, %s1 = Loop(%n, _, %a, %a, %a, %a) { body(%i: i64[], "
              "%c: bool[], %h0: f32[2, 3], %h1: f32[2, 3], %h2: f32[2, 3], %h3: f32[2, 3]) {\n"
              "  %row = Gather(%x, %i) {axis = 0}\n");
    for (int i = 0; i < n_ops; i++)
        put_op(&random, &text, i);
    text_puts(&text, "  return(%c");
    for (int i = 0; i < CARRIED + 2; i++)
        text_printf(&text, ", %%v%d", (int)random_int(&random, 0, n_ops - 1));
    text_puts(&text, ")\n } }\n return(%r0, %r1, %r2, %r3, %s0, %s1)\n}\n");
    char *copy = strdup(text_string(&text));
    text_free(&text);
    return copy;
}

/* As it costs, and in blocks of one, two or three iterations. */
static const struct pass_batching ways[] = {{0}, {.block = 1}, {.block = 2}, {.block = 3}};

/* Returns 1 when the loop was split, in each way. */
static int run_seed(uint64_t seed, bool print)
{
    char *text = make_program(seed);
    if (print)
        fputs(text, stderr);
    bool split = true;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (int64_t trips = -1; trips <= 4; trips++)
            rewrite_check(&(const struct rewrite_check){.text = text,
                                                        .passes = "distribute",
                                                        .size = 4,
                                                        .scalar = trips,
                                                        .batching = ways[i],
                                                        .seed = seed + 1});
        int loops = rewrite_count_batched(text, "distribute", ways[i], "Loop@");
        split &= loops > (ways[i].block > 0 ? 2 : 1);
    }
    free(text);
    return split;
}

static void split_loops_compute_the_same(void **state)
{
    (void)state;
    uint64_t seed;
    if (programs_seed(&seed)) {
        run_seed(seed, true);
        return;
    }
    int count = (int)programs_count(300), split = 0;
    for (int i = 1; i <= count; i++)
        split += run_seed((uint64_t)i, false);
    assert_true(split > count / 20); /* or the test would test nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(split_loops_compute_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
