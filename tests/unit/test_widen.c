/* SPDX-License-Identifier: Apache-2.0 */
/* widen, split_columns, pack_matmuls, fold_lookups and sink_permutes compute what was computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/rewrite_check.h"

/* Parts of a and b along an axis, combined in a shuffled order. */
static void one_axis(int axis)
{
    static const int order[] = {2, 0, 3, 1};
    struct text text;
    text_init(&text, &allocator_default);
    text_puts(&text, "graph (%a: f32[4, 4, 4, N], %b: f32[4, 4, 4, N], %s: f32[]) -> (%y, %z) {\n");
    for (int i = 0; i < 4; i++) {
        int k = order[i];
        text_printf(&text, " %%a%d = access(%%a) {rule = [select(%d, %d)]}\n", k, axis, k);
        text_printf(&text, " %%b%d = access(%%b) {rule = [select(%d, %d)]}\n", k, axis, k);
        text_printf(&text, " %%c%d = Sub(%%b%d, %%a%d)\n", k, k, k);
        text_printf(&text, " %%d%d = LeakyRelu(%%c%d) {alpha = 0.5}\n", k, k);
        text_printf(&text, " %%e%d = Max(%%d%d, %%s, %%a%d)\n", k, k, k);
    }
    text_puts(
        &text,
        " %y = Concat(%e0, %e1, %e2, %e3) {axis = 0}\n %z = Add(%c1, %d2)\n return(%y, %z)\n}\n");
    for (int64_t size = 0; size < 3; size++)
        assert_true(rewrite_check(&(const struct rewrite_check){
            .text = text_string(&text), .passes = "widen widen widen dead_code", .size = size}));
    assert_int_equal(rewrite_count(text_string(&text), "widen widen widen dead_code", "Sub@"), 1);
    assert_int_equal(rewrite_count(text_string(&text), "widen widen widen dead_code", "Max@"), 1);
    text_free(&text);
}

static void every_axis(void **state)
{
    (void)state;
    for (int axis = 0; axis < 3; axis++)
        one_axis(axis);
}

static void rows_times_matrices(void **state)
{
    (void)state;
    static const char *const rows[] = {"1, 2", "1, 1, 2", "N, 1, 1, 2", "3, N, 1, 1, 2", "N, 2"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text text;
        text_init(&text, &allocator_default);
        text_printf(&text,
                    "graph (%%a: f32[%s]) -> (%%y) {\n %%w = Constant() {value = f32[2, 2, 3] "
                    "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}\n %%y = MatMul(%%a, %%w)\n "
                    "return(%%y)\n}\n",
                    rows[i]);
        for (int64_t size = 0; size < 3; size++)
            rewrite_check(&(const struct rewrite_check){.text = text_string(&text),
                                                        .passes = "pack_matmuls",
                                                        .size = size,
                                                        .tolerance = 1e-6});
        assert_int_equal(rewrite_count(text_string(&text), "pack_matmuls", "Reshape@"), i < 4);
        text_free(&text);
    }
}

/* Writes of every form into every permutation. */
static void permuted_writes(void **state)
{
    (void)state;
    static const char *const permutations[] = {"0, 1, 2", "0, 2, 1", "1, 0, 2",
                                               "1, 2, 0", "2, 0, 1", "2, 1, 0"};
    static const char *const rules[] = {"[select(0, 1)]",
                                        "[select(1, $0), slice(1, 0, 9, 2)]",
                                        "[slice(2, -1, -9, -1), select(0, $0)]",
                                        "[slice(0, 0, 2, 1), reshape(-1)]",
                                        "steps[]",
                                        "[select(2, 0), permute(1, 0)]"};
    for (size_t p = 0; p < sizeof permutations / sizeof *permutations; p++)
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
            struct text text;
            text_init(&text, &allocator_default);
            text_printf(
                &text,
                "graph (%%x: f32[N, N, N], %%s: f32[], %%i: i64[]) -> (%%y) {\n %%t = "
                "access(%%x) {rule = [permute(%s)]}\n %%a = assign(%%t, %%s%s) {rule = %s}\n "
                "%%y = assign(%%a, %%s) {rule = [select(0, 0), select(1, 1)]}\n "
                "return(%%y)\n}\n",
                permutations[p], strchr(rules[r], '$') ? ", %i" : "", rules[r]);
            for (int64_t size = 2; size < 4; size++)
                assert_true(rewrite_check(&(const struct rewrite_check){
                    .text = text_string(&text), .passes = "sink_permutes", .size = size}));
            text_free(&text);
        }
}

static void looked_up_products(void **state)
{
    (void)state;
    const char *text =
        "graph (%t: i64[], %u: i64[2, 3], %v: i64[1]) -> (%a, %b, %c) {\n"
        " %e = Constant() {value = f32[4, 2] [1, 2, 3, 4, 5, 6, 7, 8]}\n"
        " %w = Constant() {value = f32[2, 3] [1, 0, 2, 3, 1, 1]}\n"
        " %r = access(%e, %t) {rule = [select(0, $0)]}\n %a = MatMul(%r, %w)\n"
        " %s = access(%e, %u) {rule = [gather(0, $0)]}\n %b = MatMul(%s, %w)\n"
        " %q = access(%e, %v) {rule = [select(0, $0), unsqueeze(0)]}\n %c = MatMul(%q, %w)\n"
        " return(%a, %b, %c)\n}\n";
    for (int64_t scalar = -5; scalar < 6; scalar++)
        rewrite_check(&(const struct rewrite_check){
            .text = text, .passes = "fold_lookups", .scalar = scalar, .tolerance = 1e-6});
    assert_int_equal(rewrite_count(text, "fold_lookups dead_code", "MatMul@"), 0);
}

/* Pairs of rows, in every shape that broadcasts. */
static void pairs_of_rows(void **state)
{
    (void)state;
    static const char *const shapes[] = {"N, 1, 2", "1, N, 2",   "64, 64, 2", "2",
                                         "N, 2",    "64, 64, 1", "1, 1, 1"};
    const size_t n = sizeof shapes / sizeof *shapes;
    int split = 0;
    for (size_t i = 0; i < n * n; i++) {
        struct text text;
        text_init(&text, &allocator_default);
        text_printf(
            &text,
            "graph (%%a: f32[%s], %%b: f32[%s], %%c: f32[64, 64, 2], %%s: f32[]) -> (%%y, %%z) "
            "{\n %%m = Max(%%a, %%b, %%s)\n %%d = Sub(%%c, %%m)\n %%e = Clip(%%d, %%s)\n "
            "%%p = access(%%e) {rule = [select(2, 0)]}\n %%q = access(%%e) {rule = [select(2, "
            "1), permute(1, 0)]}\n %%y = Mul(%%p, %%q)\n %%z = access(%%d) {rule = "
            "[select(2, 1)]}\n return(%%y, %%z)\n}\n",
            shapes[i / n], shapes[i % n]);
        for (int64_t size = 1; size <= 64; size += 63)
            rewrite_check(&(const struct rewrite_check){
                .text = text_string(&text), .passes = "split_columns", .size = size});
        split += rewrite_count(text_string(&text), "split_columns dead_code", "Sub@") == 2;
        text_free(&text);
    }
    assert_true(split > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_axis), cmocka_unit_test(rows_times_matrices),
        cmocka_unit_test(permuted_writes), cmocka_unit_test(pairs_of_rows),
        cmocka_unit_test(looked_up_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
