/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that write the first elements of every row, as many as data says, give the same when whole
 * rows are written, all of them at once: random spellings, with lengths that are negative, too
 * large or zero, and with sources that are slices, single rows and constants. What is no such write
 * stays a loop.
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

#define RAISE "identity fold_shapes fold_constants common_subexpressions recover dead_code "
#define PASSES RAISE "ragged_rows dead_code " RAISE "parallelize dead_code"

struct choices {
    const char *dtype;   /* of the rows */
    const char *length;  /* of the axis that is written */
    const char *packed;  /* rows of the source */
    const char *source;  /* "slice": base[off : off + len], "end": base[-len :], "value" */
    const char *written; /* "first": [0 : len], "behind": [1 : len] */
    int trailing;        /* axes behind */
    bool sum;            /* off is the sum of the lengths before */
};

static char *program(const struct choices *c)
{
    static const char *const behind[] = {"", ", 3", ", 3, 2"}, *const sizes[] = {"", "3", "3, 2"};
    const char *start = strcmp(c->source, "end") == 0 ? "%minus1" : "%off1";
    const char *end = strcmp(c->source, "end") == 0 ? "%max" : "%end1";
    struct text text;
    text_init(&text, &allocator_default);
    text_printf(
        &text,
        "graph (%%flat: %s[%s%s], %%lens: i64[N], %%shift: i64[], %%x: %s[N, %s%s]) -> (%%y) {\n"
        "  %%zero = Constant() {value = i64[] 0}\n"
        "  %%one = Constant() {value = i64[] 1}\n"
        "  %%zero1 = Constant() {value = i64[1] [0]}\n"
        "  %%one1 = Constant() {value = i64[1] [1]}\n"
        "  %%last = Constant() {value = i64[1] [-1]}\n"
        "  %%max = Constant() {value = i64[1] [9223372036854775807]}\n"
        "  %%tail = Constant() {value = i64[%d] [%s]}\n"
        "  %%column = Constant() {value = i64[2] [-1, 1]}\n"
        "  %%value = Constant() {value = %s[] 1}\n"
        "  %%xs = Shape(%%x)\n"
        "  %%n = Gather(%%xs, %%zero)\n"
        "  %%o, %%y = Loop(%%n, _, %%zero, %%x) {\n"
        "    body(%%i: i64[], %%go: bool[], %%off: i64[], %%t: %s[N, %s%s]) {\n",
        c->dtype, c->packed, behind[c->trailing], c->dtype, c->length, behind[c->trailing],
        c->trailing, sizes[c->trailing], strcmp(c->dtype, "bool") ? c->dtype : "i32", c->dtype,
        c->length, behind[c->trailing]);
    text_printf(&text,
                "      %%given = Gather(%%lens, %%i)\n"
                "      %%len = Sub(%%given, %%shift)\n"
                "      %%next = %s\n"
                "      %%end = Add(%%off, %%len)\n"
                "      %%len1 = Unsqueeze(%%len, %%zero1)\n"
                "      %%off1 = Unsqueeze(%%off, %%zero1)\n"
                "      %%end1 = Unsqueeze(%%end, %%zero1)\n"
                "      %%minus1 = Neg(%%len1)\n",
                c->sum ? "Add(%off, %len)" : "Identity(%off)");
    text_printf(&text, "      %%row = Gather(%%t, %%i)\n"
                       "      %%part = Slice(%%row, %%zero1, %%len1, %%zero1)\n"
                       "      %%part_shape = Shape(%%part)\n");
    if (strcmp(c->source, "value") == 0)
        text_printf(&text,
                    "      %%v = Cast(%%value) {to = %s}\n"
                    "      %%fit = Expand(%%v, %%part_shape)\n",
                    strcmp(c->dtype, "bool") == 0  ? "9"
                    : strcmp(c->dtype, "i64") == 0 ? "7"
                                                   : "1");
    else
        text_printf(&text,
                    "      %%piece = Slice(%%flat, %s, %s, %%zero1)\n"
                    "      %%fit = Expand(%%piece, %%part_shape)\n",
                    start, end);
    text_printf(&text,
                "      %%ts = Shape(%%t)\n"
                "      %%length = Gather(%%ts, %%one)\n"
                "      %%iota = Range(%%zero, %%length, %%one)\n"
                "      %%cut = Slice(%%iota, %s, %%len1, %%zero1)\n"
                "      %%i_column = Reshape(%%i, %%column)\n"
                "      %%sum = Add(%%i_column, %%cut)\n"
                "      %%sum_shape = Shape(%%sum)\n"
                "      %%i_all = Expand(%%i_column, %%sum_shape)\n"
                "      %%cut_all = Expand(%%cut, %%sum_shape)\n"
                "      %%i_place = Unsqueeze(%%i_all, %%last)\n"
                "      %%cut_place = Unsqueeze(%%cut_all, %%last)\n"
                "      %%places = Concat(%%i_place, %%cut_place) {axis = -1}\n"
                "      %%u_shape = Concat(%%sum_shape, %%tail) {axis = 0}\n"
                "      %%u = Reshape(%%fit, %%u_shape)\n"
                "      %%w = ScatterND(%%t, %%places, %%u)\n"
                "      return(%%go, %%next, %%w)\n"
                "    }\n"
                "  }\n"
                "  return(%%y)\n"
                "}\n",
                strcmp(c->written, "behind") == 0 ? "%one1" : "%zero1");
    char *copy = strdup(text_string(&text));
    text_free(&text);
    return copy;
}

static int loops_left(const struct choices *c)
{
    char *text = program(c);
    int count = rewrite_count(text, PASSES, "Loop@");
    free(text);
    return count;
}

static const struct choices padded = {.dtype = "f32",
                                      .length = "3",
                                      .packed = "16",
                                      .source = "slice",
                                      .written = "first",
                                      .trailing = 1,
                                      .sum = true};

static void what_becomes_rows(void **state)
{
    struct choices c = padded;
    (void)state;
    assert_int_equal(loops_left(&c), 0);
    c.dtype = "bool";
    assert_int_equal(loops_left(&c), 0);
    c.source = "value";
    c.trailing = 0;
    assert_int_equal(loops_left(&c), 0);
    c = padded;
    c.source = "end";
    assert_int_equal(loops_left(&c), 0);
    c.packed = "T"; /* there may be no row to read */
    assert_int_equal(loops_left(&c), 0);
    c.length = "L";
    assert_int_equal(loops_left(&c), 0);
}

static void what_stays(void **state)
{
    struct choices c = padded;
    (void)state;
    c.written = "behind"; /* the part does not begin with the row */
    assert_int_equal(loops_left(&c), 1);
    c = padded;
    c.dtype = "f16"; /* of which not every runtime can select */
    assert_int_equal(loops_left(&c), 1);
}

/* Returns whether the runs ended well. */
static int run_seed(uint64_t seed, bool print)
{
    static const char *const dtypes[] = {"f32", "i64", "bool"}, *const lengths[] = {"3", "5", "L"},
                             *const packed[] = {"16", "T", "1", "0"},
                             *const sources[] = {"slice", "slice", "end", "value"};
    struct random random = {seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    struct choices c = {.dtype = dtypes[random_int(&random, 0, 2)],
                        .length = lengths[random_int(&random, 0, 2)],
                        .packed = packed[random_int(&random, 0, 3)],
                        .source = sources[random_int(&random, 0, 3)],
                        .written = random_int(&random, 0, 9) ? "first" : "behind",
                        .trailing = (int)random_int(&random, 0, 2),
                        .sum = random_int(&random, 0, 1)};
    char *text = program(&c);
    int ran = 0;
    if (print)
        fputs(text, stderr);
    for (int64_t size = 0; size < 6; size++)
        for (int64_t shift = -1; shift <= 4; shift++)
            ran += rewrite_check(&(const struct rewrite_check){.text = text,
                                                               .passes = seed % 2 ? PASSES : NULL,
                                                               .lenient = true,
                                                               .size = size,
                                                               .scalar = shift,
                                                               .seed = seed});
    free(text);
    return ran;
}

static void rows_are_the_same(void **state)
{
    uint64_t seed;
    int ran = 0, count = (int)programs_count(100);
    (void)state;
    if (programs_seed(&seed)) {
        run_seed(seed, true);
        return;
    }
    for (int i = 1; i <= count; i++)
        ran += run_seed((uint64_t)i, false);
    assert_true(ran > 10 * count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_becomes_rows),
                                       cmocka_unit_test(what_stays),
                                       cmocka_unit_test(rows_are_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
