/* SPDX-License-Identifier: Apache-2.0 */
/* Level 2 on programs of extreme shape: nested 200 deep, 5,000 ops in a line, a loop of 2^63 - 1
 * trips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/rewrite_check.h"

static void expect_same(struct text *text)
{
    for (int64_t scalar = -1; scalar <= 2; scalar++)
        assert_true(rewrite_check(
            &(const struct rewrite_check){.text = text_string(text), .size = 3, .scalar = scalar}));
    text_free(text);
}

static void branches_nested_200_deep(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, &allocator_default);
    text_puts(&text, "graph (%x: f32[N], %p: bool[], %t0: f32[N]) -> (%r0) {\n");
    for (int i = 0; i < 200; i++)
        text_printf(&text,
                    "%%t%d = Sub(%%t%d, %%x)\n%%r%d = If(%%p) { else_branch() { %%e%d = Add(%%x, "
                    "%%t%d) return(%%e%d) } then_branch() {\n",
                    i + 1, i, i, i, i + 1, i);
    text_puts(&text, "%leaf = Neg(%t200) return(%leaf)\n");
    for (int i = 199; i >= 0; i--)
        text_printf(&text, "} }\nreturn(%%r%d)\n", i);
    text_puts(&text, "}\n");
    expect_same(&text);
}

/* Loops in loops: every level adds what the level above carries. */
static void loops_nested_8_deep(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, &allocator_default);
    text_puts(&text, "graph (%v0: f32[N], %n: i64[]) -> (%r1) {\n");
    for (int i = 1; i <= 8; i++)
        text_printf(
            &text,
            "%%r%d = Loop(%%n, _, %%v%d) { body(%%i%d: i64[], %%c%d: bool[], %%v%d: f32[N]) {\n", i,
            i - 1, i, i, i);
    text_puts(&text, "%s = Add(%v8, %v0) return(%c8, %s) } }\n");
    for (int i = 7; i >= 1; i--)
        text_printf(&text, "%%s%d = Sub(%%r%d, %%v%d) return(%%c%d, %%s%d) } }\n", i, i + 1, i, i,
                    i);
    text_puts(&text, "return(%r1)\n}\n");
    expect_same(&text);
}

static void a_line_of_5000(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, &allocator_default);
    text_puts(&text, "graph (%v0: f32[N], %x: f32[N]) -> (%v5000) {\n");
    for (int i = 0; i < 5000; i++)
        text_printf(&text, "%%v%d = %s(%%v%d, %%x)\n", i + 1, i % 2 ? "Max" : "Sub", i);
    text_puts(&text, "return(%v5000)\n}\n");
    expect_same(&text);
}

static void the_largest_number_of_trips(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, &allocator_default);
    text_puts(
        &text,
        "graph (%x: f32[N], %n: i64[]) -> (%y, %k) {\n"
        " %m = Constant() {value = i64[] 9223372036854775807}\n"
        " %zero = Constant() {value = i64[] 0}\n"
        " %y, %k = Loop(%m, _, %x, %zero) { body(%i: i64[], %c: bool[], %v: f32[N], %j: i64[]) {\n"
        "  %one = Constant() {value = i64[] 1}\n  %next = Add(%j, %one)\n"
        "  %d = Less(%next, %n)\n  %w = Add(%v, %v)\n  return(%d, %w, %next)\n } }\n"
        " return(%y, %k)\n}\n");
    expect_same(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_nested_200_deep), cmocka_unit_test(loops_nested_8_deep),
        cmocka_unit_test(a_line_of_5000), cmocka_unit_test(the_largest_number_of_trips)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
