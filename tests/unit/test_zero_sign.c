/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Add(x, Pad(v)) as a write to a part of x (recover): only where no -0.0 becomes 0.0. Inputs hold
 * zeros of both signs, infinities and NaNs, and every bit is compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

/* What x is computed by, from the inputs %f and %g of one shape and %n of integers; is it never
 * -0.0? */
struct origin {
    const char *ops;
    bool never;
};

static const struct origin origins[] = {
    {"%x = Identity(%f)", false},
    {"%x = Exp(%f)", true},
    {"%x = Sigmoid(%f)", true},
    {"%x = Softmax(%f)", true},
    {"%x = Abs(%f)", true},
    {"%x = Relu(%f)", false},
    {"%a = Exp(%f) %x = Relu(%a)", true},
    {"%x = Softplus(%f)", true},
    {"%x = Sum(%f, %g, %zero)", true},
    {"%x = Sum(%f, %g)", false},
    {"%x = ThresholdedRelu(%f)", false},
    {"%a = Abs(%f) %x = ThresholdedRelu(%a)", true},
    {"%a = Abs(%f) %x = Sqrt(%a)", true},
    {"%a = Abs(%f) %x = Mul(%a, %a)", false},
    {"%s = ReduceSumSquare(%h, %one) %x = Expand(%s, %same)", true},
    {"%s = ReduceL1(%h, %one) %x = Expand(%s, %same)", true},
    {"%s = ReduceSum(%h, %one) %x = Expand(%s, %same)", false},
    {"%s = ReduceMax(%h, %one) %x = Expand(%s, %same)", false},
    {"%a = Abs(%h) %s = ReduceMax(%a, %one) %x = Expand(%s, %same)", true},
    {"%a = Abs(%h) %s = ReduceMean(%a, %one) %x = Expand(%s, %same)", false},
    {"%x = Neg(%f)", false},
    {"%x = Mul(%f, %g)", false},
    {"%x = Sqrt(%f)", false},
    {"%x = Add(%f, %g)", false},
    {"%x = Add(%f, %zero)", true},
    {"%x = Add(%f, %minus)", false},
    {"%x = Sub(%f, %zero)", false},
    {"%x = Sub(%zero, %f)", true},
    {"%x = Sub(%minus, %f)", false},
    {"%a = Abs(%f) %x = Max(%a, %zero)", true},
    {"%a = Abs(%f) %x = Max(%a, %minus)", false},
    {"%x = Max(%f, %zero)", false},
    {"%a = Abs(%f) %x = Clip(%a, %zero, %two)", true},
    {"%x = Clip(%f, %zero, %two)", false},
    {"%x = Cast(%n) {to = 1}", true},
    {"%x = Cast(%d) {to = 1}", false},
    {"%a = Exp(%f) %b = Transpose(%a) {perm = [1, 0]} %x = Transpose(%b) {perm = [1, 0]}", true},
    {"%b = Less(%f, %g) %a = Exp(%f) %x = Where(%b, %a, %zero)", true},
    {"%b = Less(%f, %g) %a = Exp(%f) %x = Where(%b, %a, %g)", false},
    {"%a = Exp(%h) %b = Abs(%h) %x = Concat(%a, %b, %a) {axis = 1}", true},
    {"%a = Exp(%h) %x = Concat(%a, %h, %a) {axis = 1}", false},
    {"%a = Exp(%h) %p = Constant() {value = i64[4] [0, 0, 0, 16]} %x = Pad(%a, %p)", true},
    {"%a = Exp(%h) %p = Constant() {value = i64[4] [0, 0, 0, 16]} %b = Pad(%a, %p, %minus) %x = "
     "Identity(%b)",
     false},
    {"%s = Constant() {value = i64[2] [9, 24]} %x = ConstantOfShape(%s)", true},
    {"%s = Constant() {value = i64[2] [9, 24]} %x = ConstantOfShape(%s) {value = f32[1] [-0.0]}",
     false},
    {"%b = Mul(%f, %f) %x = Expand(%b, %same)", false},
};

#define FRAME                                                                                      \
    "graph (%%f: f32[9, 24], %%g: f32[9, 24], %%h: f32[9, 8], %%n: i32[9, 24], %%d: f64[9, 24]) "  \
    "-> (%%y as \"y\", %%z as \"z\") {\n"                                                          \
    "  %%zero = Constant() {value = f32[] 0.0}\n"                                                  \
    "  %%minus = Constant() {value = f32[] -0.0}\n"                                                \
    "  %%two = Constant() {value = f32[] 2.0}\n"                                                   \
    "  %%same = Constant() {value = i64[2] [9, 24]}\n"                                             \
    "  %%one = Constant() {value = i64[1] [1]}\n"                                                  \
    "  %%pads = Constant() {value = i64[4] [0, %d, 0, %d]}\n"                                      \
    "  %s\n"                                                                                       \
    "  %%padded = Pad(%%h, %%pads%s)\n"                                                            \
    "  %%y = Add(%s)\n"                                                                            \
    "  %%z = Reciprocal(%%y)\n"                                                                    \
    "  return(%%y, %%z)\n"                                                                         \
    "}\n"

static void check(const char *text)
{
    static const char *const passes[] = {"recover", "recover lower_rules", NULL};
    for (uint64_t seed = 0; seed < 9; seed++)
        assert_true(rewrite_check(&(const struct rewrite_check){
            .text = text, .passes = passes[seed % 3], .seed = seed, .size = 3}));
}

static void test_origins(void **state)
{
    static const int before[] = {0, 3, 16};
    char text[2048];
    (void)state;
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++)
        for (int b = 0; b < 3; b++)
            for (int form = 0; form < 3; form++) {
                snprintf(text, sizeof text, FRAME, before[b], 16 - before[b], origins[i].ops,
                         form == 2 ? ", %minus" : "", form == 1 ? "%padded, %x" : "%x, %padded");
                if (rewrite_count(text, "recover", "assign(") != (origins[i].never || form == 2))
                    fail_msg("%s", text);
                check(text);
            }
}

/* Integers, and two paddings, apart from each other or not. */
static void test_paddings(void **state)
{
    static const char *const dtypes[] = {"i32", "i64", "u8", "f32", "f16", "f64"};
    static const char *const ops[] = {"Identity", "Abs"};
    static const struct {
        int begins, ends; /* of the second one, of 12 columns */
        int size;
    } second[] = {{7, 2, 3}, {0, 9, 3}, {3, 6, 3}, {1, 5, 6}, {9, 0, 3}};
    char text[2048];
    (void)state;
    for (int d = 0; d < 6; d++)
        for (int o = 0; o < 2; o++)
            for (size_t k = 0; k < sizeof second / sizeof *second; k++) {
                bool unsigned_abs = d == 2 && o == 1;
                snprintf(text, sizeof text,
                         "graph (%%a: %s[N, 3], %%b: %s[N, %d]) -> (%%y as \"y\") {\n"
                         "  %%p = Constant() {value = i64[2] [3, 6]}\n"
                         "  %%q = Constant() {value = i64[2] [%d, %d]}\n"
                         "  %%axis = Constant() {value = i64[1] [-1]}\n"
                         "  %%c = %s(%%a)\n"
                         "  %%d = %s(%%b)\n"
                         "  %%e = Pad(%%c, %%p, _, %%axis)\n"
                         "  %%g = Pad(%%d, %%q, _, %%axis)\n"
                         "  %%y = Add(%%e, %%g)\n"
                         "  return(%%y)\n"
                         "}\n",
                         dtypes[d], dtypes[d], second[k].size, second[k].begins, second[k].ends,
                         ops[o && !unsigned_abs], ops[o && !unsigned_abs]);
                assert_int_equal(rewrite_count(text, "recover", "assign("), d < 3 || o);
                check(text);
            }
}

/*
 * Nothing to write to: zeros that are no zeros, or that only a run tells, or shapes that broadcast.
 */
static void test_near_misses(void **state)
{
    /* The pads, and the sum. */
    static const char *const sums[][2] = {
        {"0, 3, 0, 13", "%q = Pad(%h, %p, %two) %y = Add(%x, %q)"},
        {"0, 3, 0, 13", "%q = Pad(%h, %p) {mode = \"edge\"} %y = Add(%x, %q)"},
        {"0, 3, 0, 13", "%q = Pad(%h, %p) %y = Add(%q, %one_row)"},
        {"0, -3, 0, 19", "%q = Pad(%h, %p) %y = Add(%x, %q)"},
        {"1, 3, -1, 13", "%q = Pad(%h, %p) %y = Add(%x, %q)"},
        {"0, 3, 0, 13", "%q = Pad(%h, %p) %y = Add(%x, %q)"},
    };
    char text[2048];
    (void)state;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        snprintf(text, sizeof text,
                 "graph (%%f: f32[9, 24], %%h: f32[9, 8], %%row: f32[1, 24]) -> (%%y as \"y\") {\n"
                 "  %%two = Constant() {value = f32[] 2.0}\n"
                 "  %%p = Constant() {value = i64[4] [%s]}\n"
                 "  %%x = Exp(%%f)\n"
                 "  %%one_row = Exp(%%row)\n"
                 "  %s\n"
                 "  return(%%y)\n"
                 "}\n",
                 sums[i][0], sums[i][1]);
        assert_int_equal(rewrite_count(text, "recover", "assign("),
                         i == sizeof sums / sizeof *sums - 1);
        check(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_paddings),
        cmocka_unit_test(test_near_misses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
