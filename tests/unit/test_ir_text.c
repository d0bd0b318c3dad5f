/* SPDX-License-Identifier: Apache-2.0 */
/* Printer and parser: what is printed parses back and prints the same; errors say where. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"

static struct ir_graph *parse(const char *text)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = ir_parse(&allocator_default, text, strlen(text), &graph);
    if (status) {
        print_error("%s\n", tssa_status_message(status));
        tssa_status_free(status);
        fail();
    }
    return graph;
}

/* Parses, verifies, prints, parses that, and compares with `expected`. */
static void round_trip(const char *text, const char *expected)
{
    struct text printed;
    struct ir_graph *graph = parse(text);
    tssa_status *status = ir_verify(graph);
    assert_string_equal(tssa_status_message(status), "");
    tssa_status_free(status);
    text_init(&printed, &allocator_default);
    ir_print_graph(graph, true, &printed);
    assert_string_equal(text_string(&printed), expected);
    ir_graph_free(graph);

    graph = parse(text_string(&printed));
    text_clear(&printed);
    ir_print_graph(graph, true, &printed);
    assert_string_equal(text_string(&printed), expected);
    ir_graph_free(graph);
    text_free(&printed);
}

static void same(const char *text)
{
    round_trip(text, text);
}

static void whole_graphs(void **state)
{
    (void)state;
    same("graph () -> () {\n  return()\n}\n");
    same("graph @g opset(\"\": 18, \"ai.onnx.ml\": 3) ir_version(8) model_version(-1) "
         "producer(\"p\") producer_version(\"1\") domain(\"d\") doc(\"two\\nlines\") "
         "metadata(\"k\": \"v\", \"\": \"\") "
         "(%x: f32[N, 4], %n: i64[] = i64[] 3) -> (%y as \"out\", %x as \"x\") {\n"
         "  %one = Constant@13() {value = f32[] 1}: f32[]\n"
         "  %cond = Constant@13() {value = bool[] true}: bool[]\n"
         "  %y, _ = Loop@16(%n, _, %x) @\"the loop\": f32[N, 4] {\n"
         "    body(%i: i64[], %c: bool[], %v: f32[N, 4]) {\n"
         "      %s = Add@14(%v, %one): f32[N, 4]\n"
         "      return(%c, %s, %i)\n"
         "    }\n"
         "  }\n"
         "  return(%y, %x)\n"
         "}\n");
    same("graph @\"a name\" (%c: bool[]) -> (%0 as \"y\") {\n"
         "  %0 = If@16(%c): ? {\n"
         "    then_branch() {\n"
         "      %1 = opaque(\"com.acme\", \"Magic\", 1)(): seq(f32[*])\n"
         "      return(%1)\n"
         "    }\n"
         "    else_branch() {\n"
         "      %\"odd name\" = opaque(\"com.acme\", \"Magic\", 2, \"over\")(_, %c): map(i64, "
         "f32[])\n"
         "      return(%\"odd name\")\n"
         "    }\n"
         "  }\n"
         "  return(%0)\n"
         "}\n");
}

static void opaque_ops_have_blocks(void **state)
{
    (void)state;
    same("graph (%x: f32[N]) -> () {\n"
         "  opaque(\"d\", \"Side\", 1)(%x) @node {a = 1} {\n"
         "    \"a block\"() {\n"
         "      return()\n"
         "    }\n"
         "    b(%p: opaque) {\n"
         "      return(%p)\n"
         "    }\n"
         "  }\n"
         "  opaque(\"d\", \"Side\", 1)(%x) {\n"
         "    c() {\n"
         "      return()\n"
         "    }\n"
         "  }\n"
         "  return()\n"
         "}\n");
}

static void what_may_be_left_out(void **state)
{
    (void)state;
    /* Versions come from the opset, types stay unknown, values are renumbered, output names
     * default. */
    round_trip("// a comment\n"
               "graph opset(\"\": 13)(%x:f32[4])->(%7, %x){%7=Neg(%x) return(%7,%x)} // end",
               "graph opset(\"\": 13) (%x: f32[4]) -> (%0 as \"output_0\", %x as \"x\") {\n"
               "  %0 = Neg@13(%x): ?\n"
               "  return(%0, %x)\n"
               "}\n");
}

static void attributes(void **state)
{
    (void)state;
    same("graph () -> () {\n"
         "  opaque(\"\", \"X\", 1)() {a = 1, b = -9223372036854775808, c = 1.0, d = -inf, e = nan, "
         "f = \"s\\\"\\\\\\n\\t\\r\\x00\\xff\", g = 1.4013e-45, h = 3.4028235e+38, i = 0.1, j = "
         "-0.0, "
         "k = type optional(seq(f32[N, nonzero#3 + 1])), \"l m\" = f32[2] [1, 2.5]}\n"
         "  opaque(\"\", \"X\", 1)() {a = [1, -2], b = [1.0, inf], c = [\"x\", \"\"], "
         "d = [type f32[], type ?], e = [i64[] 1, str[2] [\"a\", \"b\"]], f = ints [], g = floats "
         "[], "
         "h = strings [], i = types [], j = tensors []}\n"
         "  return()\n"
         "}\n");
}

static void dims_in_types(void **state)
{
    (void)state;
    same("graph (%a: f32[*], %b: undefined[*], %c: f32[2*M*N + N - 1, ceildiv(N, 3), min(10, N), "
         "max(0, -M + N), mod(N, M), x#7 + floordiv(M, N), \"odd dim\", -9223372036854775808]) -> "
         "() {\n"
         "  return()\n"
         "}\n");
    round_trip("graph (%a: f32[(N + 1)*(N - 1), N*2]) -> () { return() }",
               "graph (%a: f32[N*N - 1, 2*N]) -> () {\n  return()\n}\n");
}

static void every_dtype(void **state)
{
    (void)state;
    same("graph () -> () {\n"
         "  opaque(\"\", \"X\", 1)() {"
         "f32 = f32[3] [0.1, -0, 16777216], u8 = u8[2] [0, 255], i8 = i8[2] [-128, 127], "
         "u16 = u16[1] [65535], i16 = i16[2] [-32768, 32767], "
         "i32 = i32[2] [-2147483648, 2147483647], "
         "i64 = i64[2] [-9223372036854775808, 9223372036854775807], str = str[] \"a\\x00b\", "
         "b = bool[2] [true, false], f16 = f16[4] [65504, 5.9604645e-08, inf, nan], "
         "f64 = f64[3] [0.1, 1e-300, 2.2250738585072014e-308], u32 = u32[1] [4294967295], "
         "u64 = u64[1] [18446744073709551615], c64 = c64[1] [(1, -2.5)], c128 = c128[] (0.1, nan), "
         "bf16 = bf16[2] [3.3895314e+38, -1], e4m3fn = f8e4m3fn[2] [448, nan], "
         "e4m3fnuz = f8e4m3fnuz[2] [240, 0.0009765625], e5m2 = f8e5m2[2] [57344, -inf], "
         "e5m2fnuz = f8e5m2fnuz[1] [57344], u4 = u4[2] [0, 15], i4 = i4[2] [-8, 7], "
         "e2m1 = f4e2m1[3] [6, -0.5, 0], e8m0 = f8e8m0[2] [1.7014118e+38, 5.877472e-39], "
         "u2 = u2[1] [3], i2 = i2[2] [-2, 1], empty = f32[0, 3] [], scalar = i64[] 3}\n"
         "  return()\n"
         "}\n");
}

/* Random bits of every numeric type survive printing and parsing; NaNs stay NaNs. */
static void random_elements_round_trip(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int dtype = 1; dtype < TSSA_DTYPE_COUNT; dtype++) {
        size_t size = tssa_dtype_size((tssa_dtype)dtype);
        uint8_t *bytes = calloc(4096, size);
        if (dtype == TSSA_STRING)
            goto next;
        for (size_t i = 0; i < 4096 * size; i++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            bytes[i] = (uint8_t)(random >> 56);
        }
        for (size_t i = 0; i < 4096; i++) /* only codes that the type has */
            if (dtype_info((tssa_dtype)dtype)->file_bits < 8 || dtype == TSSA_BOOL)
                dtype_store_int64((tssa_dtype)dtype, bytes + i, bytes[i] % 2);
        struct tensor tensor = {
            .dtype = (tssa_dtype)dtype, .rank = 1, .dims = {4096}, .data = bytes};
        struct ir_graph *graph = ir_graph_create(&allocator_default);
        struct ir_op *constant = ir_constant_create(graph, &tensor);
        ir_op_append(graph->body, constant);
        ir_op_append(graph->body, ir_op_create(graph, ir_op_info(IR_OP_return), 0, 0));
        struct text printed, again;
        text_init(&printed, &allocator_default);
        text_init(&again, &allocator_default);
        ir_print_graph(graph, true, &printed);
        struct ir_graph *copy = parse(text_string(&printed));
        ir_print_graph(copy, true, &again);
        assert_string_equal(text_string(&again), text_string(&printed));
        const struct tensor *read = ir_value_constant(&copy->body->first->results[0]);
        assert_non_null(read);
        for (size_t i = 0; i < 4096; i++) {
            double before = dtype_load_double((tssa_dtype)dtype, bytes + i * size);
            double after = dtype_load_double((tssa_dtype)dtype, (char *)read->data + i * size);
            assert_true(memcmp((char *)read->data + i * size, bytes + i * size, size) == 0 ||
                        (isnan(before) && isnan(after)) ||
                        dtype_info((tssa_dtype)dtype)->cls == DTYPE_CLASS_COMPLEX);
        }
        text_free(&printed);
        text_free(&again);
        ir_graph_free(copy);
        ir_graph_free(graph);
    next:
        free(bytes);
    }
}

static void large_constants_are_hashed(void **state)
{
    (void)state;
    int64_t values[65] = {0};
    struct ir_graph *graph = ir_graph_create(&allocator_default);
    struct text text;
    text_init(&text, &allocator_default);
    ir_op_append(graph->body, ir_constant_ints(graph, 1, 64, values));
    ir_op_append(graph->body, ir_constant_ints(graph, 1, 65, values));
    ir_op_append(graph->body, ir_op_create(graph, ir_op_info(IR_OP_return), 0, 0));
    ir_print_op_line(graph->body->first, &text);
    assert_non_null(strstr(text_string(&text), "i64[64] [0, 0,"));
    text_clear(&text);
    ir_print_op_line(graph->body->first->next, &text);
    assert_non_null(strstr(text_string(&text), "%1 = "));
    assert_non_null(strstr(text_string(&text), "i64[65] <"));
    assert_null(strchr(text_string(&text), '\n'));
    text_clear(&text);
    ir_print_graph(graph, false, &text);
    struct ir_graph *copy = NULL;
    tssa_status *status = ir_parse(&allocator_default, text.data, text.size, &copy);
    assert_non_null(strstr(tssa_status_message(status), "were not printed"));
    tssa_status_free(status);
    ir_graph_free(graph);
    text_free(&text);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

#define OPEN "graph () -> () {\n"
#define CLOSE "\n return() }"

static const struct {
    const char *text, *message;
} errors[] = {
    {"", "line 1, column 1: expected 'graph', found the end of the text"},
    {"graph ()", "line 1, column 9: expected '->', found the end of the text"},
    {"graph () -> () {", "line 1, column 17: expected an operator, found the end of the text"},
    {"graph () -> () { return() } x", "line 1, column 29: expected the end of the text, found 'x'"},
    {"graph () -> () {}", "expected a return of as many values"},
    {OPEN " %a = Nope()" CLOSE, "line 2, column 7: unknown operator 'Nope'"},
    {OPEN " %a = tssa.return()" CLOSE, "unknown operator 'tssa.return'"},
    {OPEN " %a = Neg(%b)" CLOSE, "line 2, column 11: the value is not defined before its use"},
    {OPEN " %a = Neg(%a)" CLOSE, "not defined before its use"},
    {OPEN " %a = Neg@999(%a)" CLOSE, "no such version"},
    {"graph opset(\"\": 1) () -> () { %a = Mish(_) return() }", "newer than the imported opset"},
    {OPEN " %a = Constant() %a = Constant()" CLOSE,
     "line 2, column 18: the value is defined twice"},
    {OPEN " %1, %1 = opaque(\"\", \"X\", 1)()" CLOSE, "the value is defined twice"},
    {OPEN " %a = Constant() {value = f32[2] [1]}" CLOSE, "expected ',', found ']'"},
    {OPEN " %a = Constant() {value = f32[99999999] [1]}" CLOSE, "fewer elements than the shape"},
    {OPEN " %a = Constant() {value = f32[-1] [1]}" CLOSE, "line 2, column 27"},
    {OPEN " %a = Constant() {value = f32[4294967296, 4294967296] []}" CLOSE, "line 2, column 27"},
    {OPEN " %a = Constant() {value = i8[] 128}" CLOSE, "does not fit its element type"},
    {OPEN " %a = Constant() {value = u4[] -1}" CLOSE, "does not fit its element type"},
    {OPEN " %a = Constant() {value = u64[] 18446744073709551616}" CLOSE, "does not fit"},
    {OPEN " %a = Constant() {value = bool[] 1}" CLOSE, "expected true or false"},
    {OPEN " %a = Constant() {value = 9223372036854775808}" CLOSE, "does not fit in 64 bits"},
    {OPEN " %a = Constant() {v = [1, 2.0]}" CLOSE, "a list holds items of one kind"},
    {OPEN " %a = Constant() {v = 1, v = 2}" CLOSE, "the attribute is there twice"},
    {OPEN " %a = Constant() {v = \"\\q\"}" CLOSE, "line 2, column 25: unknown escape"},
    {OPEN " %a = Constant() {v = \"x\n\"}" CLOSE, "a string does not end on its line"},
    {OPEN " %a = Constant() {v = \"", "a string does not end on its line"},
    {OPEN " %\"a\\x00b\" = Constant()" CLOSE, "a name holds a NUL character"},
    {OPEN " %a = Constant(): f32[N N]" CLOSE, "expected ']', found 'N'"},
    {OPEN " %a = Constant(): f32[mod(N)]" CLOSE, "expected a second argument"},
    {OPEN " %a = Constant(): f32[mod(N, 2, 3)]" CLOSE, "expected two arguments"},
    {OPEN " %a = Constant(): f32[d#0]" CLOSE, "no such fresh dim"},
    {OPEN " %a = Constant(): f32[d#99999999999]" CLOSE, "no such fresh dim"},
    {OPEN " %a = Constant(): f33[]" CLOSE, "expected a type, found 'f33'"},
    {OPEN " %a = Constant(): f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]" CLOSE, "too many dims"},
    {OPEN " !" CLOSE, "line 2, column 2: unexpected character"},
    {OPEN " % " CLOSE, "a name is expected after %"},
    {"graph () -> (%x) { return() }", "a return of as many values"},
    {"graph (%x: f32[], %y: f32[]) -> (%x) { return(%y) }", "the graph returns another value"},
};

static void errors_say_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct ir_graph *graph = NULL;
        tssa_status *status =
            ir_parse(&allocator_default, errors[i].text, strlen(errors[i].text), &graph);
        if (!strstr(tssa_status_message(status), errors[i].message))
            print_error("%s\n  gives: %s\n", errors[i].text, tssa_status_message(status));
        assert_int_equal(tssa_status_code(status), TSSA_MALFORMED);
        assert_non_null(strstr(tssa_status_message(status), errors[i].message));
        assert_non_null(strstr(tssa_status_message(status), "line "));
        assert_null(graph);
        tssa_status_free(status);
    }
}

/* Every prefix of a text is an error, not a crash. */
static void truncated_texts(void **state)
{
    (void)state;
    static const char text[] =
        "graph @g opset(\"\": 18) doc(\"x\") (%x: f32[N + 1, mod(N, 2)] = f32[1] [1.5]) -> (%y as "
        "\"o\") "
        "{ %y, _ = Loop@16(%x, _) @n {a = [1, 2], b = \"\\x41\"}: seq(f32[*]) { body(%i: i64[]) { "
        "return(%i) } } return(%y) }";
    for (size_t size = 0; size < sizeof text - 1; size++) {
        char *copy = malloc(size + 1); /* exactly as large: a sanitizer sees any read beyond it */
        memcpy(copy, text, size);
        struct ir_graph *graph = NULL;
        tssa_status *status = ir_parse(&allocator_default, copy, size, &graph);
        assert_int_equal(tssa_status_code(status), TSSA_MALFORMED);
        tssa_status_free(status);
        free(copy);
    }
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    static const char *const openers[] = {"opaque(\"\", \"X\", 1)() { b() { ",
                                          "%a = Constant(): seq(", "%a = Constant(): f32[("};
    static const char *const repeated[] = {"opaque(\"\", \"X\", 1)() { b() { ", "seq(", "("};
    for (int kind = 0; kind < 3; kind++) {
        struct text text;
        struct ir_graph *graph = NULL;
        text_init(&text, &allocator_default);
        text_puts(&text, OPEN);
        text_puts(&text, openers[kind]);
        for (int i = 0; i < 20000; i++)
            text_puts(&text, repeated[kind]);
        tssa_status *status = ir_parse(&allocator_default, text.data, text.size, &graph);
        assert_non_null(strstr(tssa_status_message(status), "nested too deeply"));
        tssa_status_free(status);
        text_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_graphs),
        cmocka_unit_test(opaque_ops_have_blocks),
        cmocka_unit_test(what_may_be_left_out),
        cmocka_unit_test(attributes),
        cmocka_unit_test(dims_in_types),
        cmocka_unit_test(every_dtype),
        cmocka_unit_test(random_elements_round_trip),
        cmocka_unit_test(large_constants_are_hashed),
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(truncated_texts),
        cmocka_unit_test(deep_nesting_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
