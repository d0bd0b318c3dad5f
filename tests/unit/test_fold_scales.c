/* SPDX-License-Identifier: Apache-2.0 */
/* Random rows of factors, shifts, normalizations and padding around products, before and after what
 * folds them. */
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
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/random_programs.h"
#include "common/rewrite_check.h"
#include "ir/clone.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "passes/pipeline.h"

#define PASSES "make_gemms fold_pads fold_scales dead_code"

/* A program that is being written; `at`: the number of the last value. */
struct program {
    struct random random;
    struct text text, body;
    int at, n_constants;
    int channels, rank; /* of the last value */
    const char *dtype;
};

static bool is_half(const char *dtype)
{
    return strcmp(dtype, "f16") == 0;
}

static void put_numbers(struct program *p, const char *shape, int count, int low)
{
    text_printf(&p->text, "  %%c%d = Constant() {value = %s[%s] [", p->n_constants++, p->dtype,
                shape);
    for (int i = 0; i < count; i++) {
        double number = (double)random_int(&p->random, low, 24) / 8;
        text_printf(&p->text, "%s%g", i ? ", " : "", number);
    }
    text_puts(&p->text, "]}\n");
}

static void put_powers(struct program *p, const char *shape, int count)
{
    static const char *const powers[] = {"0.25", "0.5", "1", "2", "4"};
    text_printf(&p->text, "  %%c%d = Constant() {value = %s[%s] [", p->n_constants++, p->dtype,
                shape);
    for (int i = 0; i < count; i++)
        text_printf(&p->text, "%s%s", i ? ", " : "", powers[random_int(&p->random, 0, 4)]);
    text_puts(&p->text, "]}\n");
}

/*
 * A constant per channel, or one for all; its number. Of halves, powers of two for what multiplies.
 */
static int put_channel_constant(struct program *p, int low, bool multiplies)
{
    char shape[64];
    bool one = random_int(&p->random, 0, 3) == 0;
    int behind = p->rank > 2 ? p->rank - 2 : 0,
        size = snprintf(shape, sizeof shape, "%d", one ? 1 : p->channels);
    for (int i = 0; i < behind; i++)
        size += snprintf(shape + size, sizeof shape - (size_t)size, ", 1");
    if (multiplies && is_half(p->dtype))
        put_powers(p, shape, one ? 1 : p->channels);
    else
        put_numbers(p, shape, one ? 1 : p->channels, low);
    return p->n_constants - 1;
}

static void put_affine(struct program *p)
{
    static const char *const ops[] = {"Mul", "Add", "Sub", "Div"};
    int row = (int)random_int(&p->random, 0, 4), x = p->at++;
    if (row == 4) {
        char shape[16];
        int first = p->n_constants;
        snprintf(shape, sizeof shape, "%d", p->channels);
        for (int i = 0; i < 4; i++)
            put_numbers(p, shape, p->channels, i == 3 ? 4 : -16);
        text_printf(&p->body, "  %%v%d = BatchNormalization(%%v%d, %%c%d, %%c%d, %%c%d, %%c%d)\n",
                    p->at, x, first, first + 1, first + 2, first + 3);
        return;
    }
    int c = put_channel_constant(p, row == 3 ? 4 : -16, row == 0 || row == 3);
    bool turned = row < 2 && random_int(&p->random, 0, 1);
    if (turned)
        text_printf(&p->body, "  %%v%d = %s(%%c%d, %%v%d)\n", p->at, ops[row], c, x);
    else
        text_printf(&p->body, "  %%v%d = %s(%%v%d, %%c%d)\n", p->at, ops[row], x, c);
}

static void put_pad(struct program *p)
{
    text_printf(&p->text, "  %%c%d = Constant() {value = i64[6] [0, 0, %d, 0, 0, %d]}\n",
                p->n_constants, (int)random_int(&p->random, 0, 2),
                (int)random_int(&p->random, 0, 2));
    text_printf(&p->body, "  %%v%d = Pad(%%v%d, %%c%d)\n", p->at + 1, p->at, p->n_constants);
    p->n_constants++;
    p->at++;
}

static void put_conv(struct program *p)
{
    int groups = p->channels % 2 == 0 ? (int)random_int(&p->random, 1, 2) : 1;
    int out = groups * (int)random_int(&p->random, 1, 3), in = p->channels / groups;
    char shape[64];
    snprintf(shape, sizeof shape, "%d, %d, 2", out, in);
    int w = p->n_constants;
    put_numbers(p, shape, out * in * 2, -16);
    snprintf(shape, sizeof shape, "%d", out);
    put_numbers(p, shape, out, -16);
    text_printf(&p->body, "  %%v%d = Conv(%%v%d, %%c%d", p->at + 1, p->at, w);
    if (random_int(&p->random, 0, 1))
        text_printf(&p->body, ", %%c%d", w + 1);
    text_printf(&p->body, ") {group = %d, pads = [%d, 1]}\n", groups,
                (int)random_int(&p->random, 0, 1));
    p->at++;
    p->channels = out;
}

static void put_transposed_conv(struct program *p)
{
    int groups = p->channels % 2 == 0 ? (int)random_int(&p->random, 1, 2) : 1;
    int out = (int)random_int(&p->random, 1, 3), stride = (int)random_int(&p->random, 1, 2);
    char shape[64];
    snprintf(shape, sizeof shape, "%d, %d, 2", p->channels, out);
    int w = p->n_constants;
    put_numbers(p, shape, p->channels * out * 2, -16);
    snprintf(shape, sizeof shape, "%d", out * groups);
    put_numbers(p, shape, out * groups, -16);
    text_printf(&p->body, "  %%v%d = ConvTranspose(%%v%d, %%c%d", p->at + 1, p->at, w);
    if (random_int(&p->random, 0, 1))
        text_printf(&p->body, ", %%c%d", w + 1);
    text_printf(&p->body, ") {group = %d, strides = [%d], output_padding = [%d], pads = [%d, 0]}\n",
                groups, stride, stride - 1, (int)random_int(&p->random, 0, 1));
    p->at++;
    p->channels = out * groups;
}

static void put_matrix(struct program *p)
{
    int out = (int)random_int(&p->random, 1, 4), row = (int)random_int(&p->random, 0, 2);
    char shape[64];
    int w = p->n_constants, x = p->at++;
    snprintf(shape, sizeof shape, "%d, %d", row == 2 ? out : p->channels,
             row == 2 ? p->channels : out);
    put_numbers(p, shape, out * p->channels, -16);
    snprintf(shape, sizeof shape, "%d", out);
    put_numbers(p, shape, out, -16);
    p->channels = out;
    if (row == 0) {
        text_printf(&p->body, "  %%v%d = MatMul(%%v%d, %%c%d)\n", p->at, x, w);
        text_printf(&p->body, "  %%v%d = Add(%%v%d, %%c%d)\n", p->at + 1, p->at, w + 1);
        p->at++;
    } else {
        text_printf(&p->body, "  %%v%d = Gemm(%%v%d, %%c%d, %%c%d) {transB = %d}\n", p->at, x, w,
                    w + 1, row == 2);
    }
}

static char *make_program(uint64_t seed, const char *dtype)
{
    struct program p = {.random = {seed * UINT64_C(0x9e3779b97f4a7c15) + 1}, .dtype = dtype};
    p.rank = random_int(&p.random, 0, 1) ? 3 : 2;
    p.channels = (int)random_int(&p.random, 1, 4);
    text_init(&p.text, &allocator_default);
    text_init(&p.body, &allocator_default);
    text_printf(&p.text, "graph (%%v0: %s[2, %d%s]) -> (%%y as \"y\") {\n", dtype, p.channels,
                p.rank == 3 ? ", 5" : "");
    for (int n = (int)random_int(&p.random, 1, 3); n > 0; n--) {
        for (int k = (int)random_int(&p.random, 0, 3); k > 0; k--)
            put_affine(&p);
        if (p.rank == 3 && random_int(&p.random, 0, 1))
            put_pad(&p);
        if (p.rank != 3)
            put_matrix(&p);
        else if (random_int(&p.random, 0, 2) == 0)
            put_transposed_conv(&p);
        else
            put_conv(&p);
        for (int k = (int)random_int(&p.random, 0, 3); k > 0; k--)
            put_affine(&p);
    }
    text_printf(&p.body, "  %%y = Identity(%%v%d)\n  return(%%y)\n}\n", p.at);
    text_puts(&p.text, text_string(&p.body));
    char *copy = strdup(text_string(&p.text));
    text_free(&p.text);
    text_free(&p.body);
    return copy;
}

/* How many of the products have taken in what is beside them must be worth a test. */
static void check_rows(const char *dtype, double tolerance)
{
    static const char *const products[] = {"Conv@", "ConvTranspose@", "Gemm@"};
    unsigned long count = programs_count(500);
    const char *word = is_half(dtype) ? " = Mul@" : "BatchNormalization@";
    int folded[3] = {0}, ran = 0;
    for (unsigned long i = 1; i <= count; i++) {
        char *text = make_program(i, dtype);
        ran += rewrite_check(&(const struct rewrite_check){
            .text = text, .passes = PASSES, .size = 3, .seed = i, .tolerance = tolerance});
        bool fewer = rewrite_count(text, PASSES, word) < rewrite_count(text, "dead_code", word);
        for (int k = 0; k < 3; k++)
            folded[k] += fewer && rewrite_count(text, PASSES, products[k]) > 0;
        free(text);
    }
    assert_true(ran > (int)count / 2);
    for (int k = 0; k < 3; k++)
        assert_true(folded[k] > (int)count / 100);
}

static void test_random_rows(void **state)
{
    (void)state;
    check_rows("f32", 1e-4);
}

/* Every bit stays. */
static void test_random_half_rows(void **state)
{
    (void)state;
    check_rows("f16", 0);
}

/* Weights that others read are not made again where the file would grow too much. */
static void test_shared_weights(void **state)
{
    (void)state;
    static const char *const counts[] = {"60", "100"}; /* twice 14 KB, twice 40 KB */
    for (size_t i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "graph (%%x: f32[2, %s]) -> (%%a as \"a\", %%b as \"b\") {\n"
                 "  %%shape = Constant() {value = i64[2] [%s, %s]}\n"
                 "  %%r = ConstantOfShape(%%shape)\n"
                 "  %%w = EyeLike(%%r)\n"
                 "  %%half = Constant() {value = f32[] 0.5}\n"
                 "  %%a0 = MatMul(%%x, %%w)\n"
                 "  %%a = Mul(%%a0, %%half)\n"
                 "  %%b = MatMul(%%x, %%w)\n"
                 "  return(%%a, %%b)\n}\n",
                 counts[i], counts[i], counts[i]);
        static const char passes[] = "fold_constants fold_scales dead_code";
        assert_int_equal(rewrite_count(text, passes, " = Mul@"), i == 0 ? 0 : 1);
    }
}

/* The weights of the k-th product, after the pass. */
static const float *weights_of(const struct ir_graph *graph, int k)
{
    const struct ir_op *op = graph->body->first;
    while (!ir_op_is(op, IR_OP_MatMul) || k-- > 0)
        op = op->next;
    return ir_value_constant(ir_operand(op, 1))->data;
}

/* What a copy of the graph takes the same factors into is there once, and so is what two products
 * do; other factors make other weights. */
static void test_found_again(void **state)
{
    static const char text[] =
        "graph (%x: f32[2, 3]) -> (%a as \"a\", %b as \"b\", %c as \"c\") {\n"
        "  %w = Constant() {value = f32[3, 2] [1, 2, 3, 4, 5, 6]}\n"
        "  %half = Constant() {value = f32[] 0.5}\n"
        "  %two = Constant() {value = f32[] 2}\n"
        "  %a0 = MatMul(%x, %w)\n"
        "  %a = Mul(%a0, %half)\n"
        "  %b0 = MatMul(%x, %w)\n"
        "  %b = Mul(%b0, %half)\n"
        "  %c0 = MatMul(%x, %w)\n"
        "  %c = Mul(%c0, %two)\n"
        "  return(%a, %b, %c)\n}\n";
    static const char *const passes[] = {"fold_scales"};
    const struct pipeline pipeline = {.options = NULL};
    struct ir_graph *graph, *copy;
    (void)state;
    no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(ir_infer_graph(graph));
    no_error(ir_clone_graph(graph, &copy));
    no_error(pipeline_run_passes(graph, passes, 1, &pipeline));
    no_error(pipeline_run_passes(copy, passes, 1, &pipeline));
    const float *w = weights_of(graph, 0), *other = weights_of(graph, 2);
    assert_ptr_equal(w, weights_of(graph, 1));
    assert_ptr_not_equal(w, other);
    for (int i = 0; i < 6; i++) {
        assert_true(w[i] == (float)(i + 1) / 2);
        assert_true(other[i] == (float)(i + 1) * 2);
    }
    for (int k = 0; k < 3; k++)
        assert_ptr_equal(weights_of(copy, k), weights_of(graph, k));
    ir_graph_free(copy);
    ir_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_rows), cmocka_unit_test(test_random_half_rows),
        cmocka_unit_test(test_shared_weights), cmocka_unit_test(test_found_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
