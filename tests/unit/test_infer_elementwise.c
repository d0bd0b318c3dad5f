/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of element-wise ops and conversions: types, and integers through shape arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/infer.h"
#include "ir/parser.h"

/* %s is Shape of f32[N, 4, M]; %n its first element as a scalar, %a a vector of four constants. */
#define PRELUDE                                                                                    \
    "graph opset(\"\": 26) (%x: f32[N, 4, M], %f: f32[N, 1], %h: f16[4], %b: bool[], %u: ?, "      \
    "%i: i64[3], %h5: f16[5], %q: u8[N, 4]) -> (%r as \"r\") {\n"                                  \
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

static tssa_status *infer(const char *statement, struct ir_graph **graph)
{
    char text[4096];
    snprintf(text, sizeof text, "%s  %s\n  return(%%r)\n}\n", PRELUDE, statement);
    TRY(ir_parse(&allocator_default, text, strlen(text), graph));
    return ir_infer_graph(*graph);
}

/* The type of %r, then its elements where some are known. */
static void gives(const char *statement, const char *wanted)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = infer(statement, &graph);
    if (status)
        fail_msg("%s: %s", statement, tssa_status_message(status));
    const struct ir_value *r = ir_operand(ir_block_return(graph->body), 0);
    struct text text;
    text_init(&text, &allocator_default);
    type_print(r->type, &text);
    if (r->known) {
        text_puts(&text, " =");
        for (size_t i = 0; i < r->known->count; i++) {
            text_putc(&text, ' ');
            if (r->known->elements[i])
                dim_print(r->known->elements[i], &text);
            else
                text_putc(&text, '?');
        }
    }
    if (strcmp(text_string(&text), wanted) != 0)
        fail_msg("%s: %s, not %s", statement, text_string(&text), wanted);
    text_free(&text);
    ir_graph_free(graph);
}

static void refused(const char *statement, const char *why)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = infer(statement, &graph);
    if (!status || !strstr(tssa_status_message(status), why))
        fail_msg("%s: \"%s\" does not say \"%s\"", statement, tssa_status_message(status), why);
    tssa_status_free(status);
    ir_graph_free(graph);
}

static void types(void **state)
{
    (void)state;
    gives("%r = Add(%x, %k)", "f32[N, 4, M]");
    gives("%r = Mul(%f, %f)", "f32[N, 1]");
    gives("%r = Less(%x, %k)", "bool[N, 4, M]");
    gives("%r = Relu(%u)", "undefined[*]");
    gives("%r = Add(%u, %k)", "f32[*]");
    gives("%r = Pow(%h, %one)", "f16[4]");
    gives("%r = Where(%b, %h, %h)", "f16[4]");
    gives("%r = Where(%t, %one, %two)", "i64[3] = 1 2 1");
    gives("%r = Max(%k, %x, %f)", "f32[N, 4, M]"); /* 4 against N: 4, or no run succeeds */
    gives("%r = Clip(%x, _, %k)", "f32[N, 4, M]");
    gives("%r = Cast(%x) {to = 7}", "i64[N, 4, M]");
    gives("%r = CastLike(%x, %h)", "f16[N, 4, M]");
    gives("%r = BitCast(%x) {to = 6}", "i32[N, 4, M]");
    gives("%r = Identity(%u)", "?");
    gives("%r = QuantizeLinear(%x, %k)", "u8[N, 4, M]");
    gives("%r = QuantizeLinear(%x, %k) {output_dtype = 22}", "i4[N, 4, M]");
    gives("%r = DequantizeLinear(%q, %k)", "f32[N, 4]");
    gives("%r = DequantizeLinear(%q, %k) {output_dtype = 10}", "f16[N, 4]");
    gives("_, %r = DynamicQuantizeLinear(%x)", "f32[]");
}

static void contradictions(void **state)
{
    (void)state;
    refused("%r = Add(%x, %one)", "operand 1 is i64 where others are f32");
    refused("%r = Add(%b, %b)", "operand 0 cannot be bool");
    refused("%r = Not(%k)", "operand 0 cannot be f32");
    refused("%r = Add(%h, %h5)", "do not broadcast");
    refused("%r = Where(%k, %k, %k)", "operand 0 must be bool, not f32");
    refused("%r = Where(%b, %k, %one)", "operand 2 is i64 where others are f32");
    refused("%r = Pow(%b, %k)", "operand 0 cannot be bool");
    refused("%r = Cast(%x)", "\"to\" is missing");
    refused("%r = Cast(%x) {to = 14}", "\"to\" is 14");
    refused("%r = BitCast(%x) {to = 7}", "f32 and i64 differ in width");
    refused("%r = QuantizeLinear(%x, %k) {output_dtype = 1}", "\"output_dtype\" is 1");
    refused("%r = DequantizeLinear(%x, %k)", "operand 0 cannot be f32");
}

static void arithmetic(void **state)
{
    (void)state;
    gives("%r = Add(%s, %one)", "i64[3] = N + 1 5 M + 1");
    gives("%r = Sub(%s, %n)", "i64[3] = 0 -N + 4 M - N");
    gives("%r = Mul(%s, %two)", "i64[3] = 2*N 8 2*M");
    gives("%r = Mul(%i, %zero)", "i64[3] = 0 0 0");
    gives("%r = Add(%i, %zero)", "i64[3]");
    gives("%r = Div(%s, %two)", "i64[3] = floordiv(N, 2) 2 floordiv(M, 2)");
    gives("%r = Div(%minus, %two)", "i64[] = -3");
    gives("%r = Div(%two, %zero)", "i64[]");
    gives("%r = Div(%two, %n)", "i64[]");                    /* N may be 0 */
    gives("%d = Sub(%n, %two) %r = Div(%d, %two)", "i64[]"); /* may be negative: not rounded down */
    gives("%r = Mod(%s, %two)", "i64[3] = mod(N, 2) 0 mod(M, 2)");
    gives("%r = Mod(%minus, %two)", "i64[] = 1");
    gives("%r = Mod(%minus, %two) {fmod = 1}", "i64[]");
    gives("%r = Neg(%s)", "i64[3] = -N -4 -M");
    gives("%r = Abs(%c)", "i64[3] = 1 0 5");
    gives("%r = Abs(%s)", "i64[3] = N 4 M");
    gives("%r = Min(%s, %two, %one)", "i64[3] = min(1, N) 1 min(1, M)");
    gives("%r = Max(%c)", "i64[3] = -1 0 5");
    gives("%r = Clip(%c, %zero, %two)", "i64[3] = 0 0 2");
    gives("%r = Clip(%c, _, %n)", "i64[3] = -1 0 min(5, N)");
    gives("%r = Add(%big, %big)", "i32[]"); /* wraps */
}

static void comparisons(void **state)
{
    (void)state;
    gives("%r = Equal(%s, %n)", "bool[3] = 1 ? ?");
    gives("%r = Equal(%s, %minus)", "bool[3] = 0 0 0"); /* no size is negative */
    gives("%r = Less(%s, %zero)", "bool[3] = 0 0 0");
    gives("%r = GreaterOrEqual(%s, %zero)", "bool[3] = 1 1 1");
    gives("%r = Greater(%s, %zero)", "bool[3] = ? 1 ?");
    gives("%r = LessOrEqual(%s, %zero)", "bool[3] = ? 0 ?");
    gives("%m = Add(%n, %one) %r = Less(%n, %m)", "bool[] = 1");
    gives("%m = Add(%n, %one) %r = GreaterOrEqual(%n, %m)", "bool[] = 0");
    gives("%e = Equal(%s, %n) %r = And(%e, %t)", "bool[3] = 1 0 ?");
    gives("%e = Equal(%s, %n) %r = Or(%e, %t)", "bool[3] = 1 ? 1");
    gives("%r = Not(%t)", "bool[3] = 0 1 0");
    /* How exporters write Expand: -1 keeps the dim. */
    gives("%e = Equal(%c, %minus) %r = Where(%e, %s, %c)", "i64[3] = -1 0 5");
    gives("%m = Constant() {value = i64[] -1} %e = Equal(%c, %m) %r = Where(%e, %s, %c)",
          "i64[3] = N 0 5");
    gives("%r = Where(%b, %s, %s)", "i64[3] = N 4 M");
}

static void casts(void **state)
{
    (void)state;
    gives("%r = Cast(%s) {to = 6}", "i32[3] = N 4 M");
    gives("%r = Cast(%c) {to = 9}", "bool[3] = 1 0 1");
    gives("%r = Cast(%t) {to = 7}", "i64[3] = 1 0 1");
    gives("%r = Cast(%s) {to = 9}", "bool[3] = ? 1 ?");
    gives("%r = Cast(%s) {to = 1}", "f32[3]");
    gives("%r = CastLike(%s, %big)", "i32[3] = N 4 M");
    gives("%l = Mul(%two, %two) %l2 = Mul(%l, %l) %l3 = Mul(%l2, %l2) %l4 = Mul(%l3, %l3) "
          "%l5 = Mul(%l4, %l3) %l6 = Mul(%l5, %l2) %r = Cast(%l6) {to = 6}",
          "i32[] = 268435456");
    gives("%r = Identity(%s)", "i64[3] = N 4 M");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),      cmocka_unit_test(contradictions),
        cmocka_unit_test(arithmetic), cmocka_unit_test(comparisons),
        cmocka_unit_test(casts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
