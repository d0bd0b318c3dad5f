/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of element-wise ops and conversions: types, and integers through shape arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/infer_text.h"

#define INPUTS                                                                                     \
    "%x: f32[N, 4, M], %f: f32[N, 1], %h: f16[4], %b: bool[], %u: ?, %i: i64[3], %h5: f16[5], "    \
    "%q: u8[N, 4]"
/* %s is Shape of f32[N, 4, M]; %n its first element as a scalar, %c a vector of constants. */
#define PRELUDE                                                                                    \
    "  %s = Shape(%x)\n"                                                                           \
    "  %zero = Constant() {value = i64[] 0}\n"                                                     \
    "  %one = Constant() {value = i64[] 1}\n"                                                      \
    "  %two = Constant() {value = i64[] 2}\n"                                                      \
    "  %minus = Constant() {value = i64[] -7}\n"                                                   \
    "  %n = Gather(%s, %zero)\n"                                                                   \
    "  %c = Constant() {value = i64[3] [-1, 0, 5]}\n"                                              \
    "  %t = Constant() {value = bool[3] [true, false, true]}\n"                                    \
    "  %big = Constant() {value = i32[] 2000000000}\n"                                             \
    "  %k = Constant() {value = f32[] 1}\n"

#define gives(ops, result) infer_gives(INPUTS, PRELUDE ops, result)
#define refused(ops, why) infer_refuses(INPUTS, PRELUDE ops, TSSA_MALFORMED, why)

static void types(void **state)
{
    (void)state;
    gives("%y = Add(%x, %k)", "f32[N, 4, M]");
    gives("%y = Mul(%f, %f)", "f32[N, 1]");
    gives("%y = Less(%x, %k)", "bool[N, 4, M]");
    gives("%y = Relu(%u)", "undefined[*]");
    gives("%y = Add(%u, %k)", "f32[*]");
    gives("%y = Pow(%h, %one)", "f16[4]");
    gives("%y = Where(%b, %h, %h)", "f16[4]");
    gives("%y = Where(%t, %one, %two)", "i64[3] [1, 2, 1]");
    gives("%y = Max(%k, %x, %f)", "f32[N, 4, M]"); /* 4 against N: 4, or no run succeeds */
    gives("%y = Clip(%x, _, %k)", "f32[N, 4, M]");
    gives("%y = Cast(%x) {to = 7}", "i64[N, 4, M]");
    gives("%y = CastLike(%x, %h)", "f16[N, 4, M]");
    gives("%y = BitCast(%x) {to = 6}", "i32[N, 4, M]");
    gives("%y = Identity(%u)", "?");
    gives("%y = QuantizeLinear(%x, %k)", "u8[N, 4, M]");
    gives("%y = QuantizeLinear(%x, %k) {output_dtype = 22}", "i4[N, 4, M]");
    gives("%y = DequantizeLinear(%q, %k)", "f32[N, 4]");
    gives("%y = DequantizeLinear(%q, %k) {output_dtype = 10}", "f16[N, 4]");
    gives("_, %y = DynamicQuantizeLinear(%x)", "f32[]");
}

static void contradictions(void **state)
{
    (void)state;
    refused("%y = Add(%x, %one)", "operand 1 is i64 where others are f32");
    refused("%y = Add(%b, %b)", "operand 0 cannot be bool");
    refused("%y = Not(%k)", "operand 0 cannot be f32");
    refused("%y = Add(%h, %h5)", "do not broadcast");
    refused("%y = Where(%k, %k, %k)", "operand 0 must be bool, not f32");
    refused("%y = Where(%b, %k, %one)", "operand 2 is i64 where others are f32");
    refused("%y = Pow(%b, %k)", "operand 0 cannot be bool");
    refused("%y = Cast(%x)", "\"to\" is missing");
    refused("%y = Cast(%x) {to = 14}", "\"to\" is 14");
    refused("%y = BitCast(%x) {to = 7}", "f32 and i64 differ in width");
    refused("%y = QuantizeLinear(%x, %k) {output_dtype = 1}", "\"output_dtype\" is 1");
    refused("%y = DequantizeLinear(%x, %k)", "operand 0 cannot be f32");
}

static void arithmetic(void **state)
{
    (void)state;
    gives("%y = Add(%s, %one)", "i64[3] [N + 1, 5, M + 1]");
    gives("%y = Sub(%s, %n)", "i64[3] [0, -N + 4, M - N]");
    gives("%y = Mul(%s, %two)", "i64[3] [2*N, 8, 2*M]");
    gives("%y = Mul(%i, %zero)", "i64[3] [0, 0, 0]");
    gives("%y = Add(%i, %zero)", "i64[3]");
    gives("%y = Div(%s, %two)", "i64[3] [floordiv(N, 2), 2, floordiv(M, 2)]");
    gives("%y = Div(%minus, %two)", "i64[] [-3]");
    gives("%y = Div(%two, %zero)", "i64[]");
    gives("%y = Div(%two, %n)", "i64[]");                    /* N may be 0 */
    gives("%d = Sub(%n, %two) %y = Div(%d, %two)", "i64[]"); /* may be negative: not rounded down */
    gives("%y = Mod(%s, %two)", "i64[3] [mod(N, 2), 0, mod(M, 2)]");
    gives("%y = Mod(%minus, %two)", "i64[] [1]");
    gives("%y = Mod(%minus, %two) {fmod = 1}", "i64[]");
    gives("%y = Neg(%s)", "i64[3] [-N, -4, -M]");
    gives("%y = Abs(%c)", "i64[3] [1, 0, 5]");
    gives("%y = Abs(%s)", "i64[3] [N, 4, M]");
    gives("%y = Min(%s, %two, %one)", "i64[3] [min(1, N), 1, min(1, M)]");
    gives("%y = Max(%c)", "i64[3] [-1, 0, 5]");
    gives("%y = Clip(%c, %zero, %two)", "i64[3] [0, 0, 2]");
    gives("%y = Clip(%c, _, %n)", "i64[3] [-1, 0, min(5, N)]");
    gives("%y = Add(%big, %big)", "i32[]"); /* wraps */
}

/* What may wrap is not known, unless a bound proves that it cannot (ir/wrap.h). */
static void wrapping(void **state)
{
    (void)state;
    gives("%w = Constant() {value = i64[] 4294967295} %y = Mul(%n, %w)", "i64[] [4294967295*N]");
    gives("%w = Constant() {value = i64[] 9223372036854775807} %y = Mul(%n, %w)", "i64[]");
    gives("%w = Constant() {value = i64[] 9223372036854775807} %y = Add(%n, %w)", "i64[]");
    gives("%w = Constant() {value = i64[] 9223372036854775807} %y = Max(%w, %n)",
          "i64[] [max(9223372036854775807, N)]");
    gives("%w = Constant() {value = i64[] -9223372036854775808} %y = Neg(%w)", "i64[]");
    gives("%w = Constant() {value = i64[] -9223372036854775808} %y = Abs(%w)", "i64[]");
    gives("%w = Cast(%s) {to = 6} %y = Sub(%w, %big)",
          "i32[3] [N - 2000000000, -1999999996, M - 2000000000]");
    gives("%w = Cast(%s) {to = 6} %y = Add(%w, %w)", "i32[3] [?, 8, ?]");
    gives("%w = Cast(%s) {to = 6} %y = Neg(%w)", "i32[3] [-N, -4, -M]");
    gives("%w = Constant() {value = i32[] -2147483648} %m = Constant() {value = i32[] -1} "
          "%y = Div(%w, %m)",
          "i32[]");
    gives("%w = Mul(%n, %two) %y = Cast(%w) {to = 6}", "i32[] [?]");
    gives("%w = Constant() {value = u64[] 18446744073709551615} %y = Identity(%w)", "u64[] [?]");
    gives("%a = Constant() {value = i32[] 2147483646} %l = Constant() {value = i32[] 2147483647} "
          "%d = Constant() {value = i32[] 1} %y = Range(%a, %l, %d)",
          "i32[1] [2147483646]");
    /* The product of two sizes fits; of three where they are axes of one tensor, whose elements are
     * in memory. */
    gives("%m = Size(%f) %y = Mul(%m, %n)", "i64[] [N*N]");
    gives("%m = Mul(%n, %n) %y = Mul(%m, %n)", "i64[]");
    infer_gives("%x: f32[A, B + 1, 3*C]", "%y = Size(%x)", "i64[] [3*A*B*C + 3*A*C]");
    infer_gives("%x: f32[A, B, 8, C]",
                "%s = Shape(%x) %m, %n, %o, %p = Split(%s) {num_outputs = 4} "
                "%q = Mul(%m, %n) %r = Mul(%p, %q) %y = Mul(%r, %o)",
                "i64[1] [8*A*B*C]");
    infer_gives("%x: f32[A, B], %z: f32[C, B]",
                "%s = Shape(%x) %a = Size(%x) %t = Shape(%z) %m, %n = Split(%t) {num_outputs = 2} "
                "%y = Mul(%a, %m)",
                "i64[1]");
}

static void comparisons(void **state)
{
    (void)state;
    gives("%y = Equal(%s, %n)", "bool[3] [1, ?, ?]");
    gives("%y = Equal(%s, %minus)", "bool[3] [0, 0, 0]"); /* no size is negative */
    gives("%y = Less(%s, %zero)", "bool[3] [0, 0, 0]");
    gives("%y = GreaterOrEqual(%s, %zero)", "bool[3] [1, 1, 1]");
    gives("%y = Greater(%s, %zero)", "bool[3] [?, 1, ?]");
    gives("%y = LessOrEqual(%s, %zero)", "bool[3] [?, 0, ?]");
    gives("%m = Add(%n, %one) %y = Less(%n, %m)", "bool[] [1]");
    gives("%m = Add(%n, %one) %y = GreaterOrEqual(%n, %m)", "bool[] [0]");
    gives("%e = Equal(%s, %n) %y = And(%e, %t)", "bool[3] [1, 0, ?]");
    gives("%e = Equal(%s, %n) %y = Or(%e, %t)", "bool[3] [1, ?, 1]");
    gives("%y = Not(%t)", "bool[3] [0, 1, 0]");
    /* How exporters write Expand: -1 keeps the dim. */
    gives("%e = Equal(%c, %minus) %y = Where(%e, %s, %c)", "i64[3] [-1, 0, 5]");
    gives("%m = Constant() {value = i64[] -1} %e = Equal(%c, %m) %y = Where(%e, %s, %c)",
          "i64[3] [N, 0, 5]");
    gives("%y = Where(%b, %s, %s)", "i64[3] [N, 4, M]");
}

static void casts(void **state)
{
    (void)state;
    gives("%y = Cast(%s) {to = 6}", "i32[3] [N, 4, M]");
    gives("%y = Cast(%c) {to = 9}", "bool[3] [1, 0, 1]");
    gives("%y = Cast(%t) {to = 7}", "i64[3] [1, 0, 1]");
    gives("%y = Cast(%s) {to = 9}", "bool[3] [?, 1, ?]");
    gives("%y = Cast(%s) {to = 1}", "f32[3]");
    gives("%y = CastLike(%s, %big)", "i32[3] [N, 4, M]");
    gives("%l = Mul(%two, %two) %l2 = Mul(%l, %l) %l3 = Mul(%l2, %l2) %l4 = Mul(%l3, %l3) "
          "%l5 = Mul(%l4, %l3) %l6 = Mul(%l5, %l2) %y = Cast(%l6) {to = 6}",
          "i32[] [268435456]");
    gives("%y = Identity(%s)", "i64[3] [N, 4, M]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),      cmocka_unit_test(contradictions),
        cmocka_unit_test(arithmetic), cmocka_unit_test(comparisons),
        cmocka_unit_test(casts),      cmocka_unit_test(wrapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
