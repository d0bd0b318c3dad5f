/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products by constant matrices, of which copies are kept: of one row the bits are those of the
 * documented order (numerics.md), on any number of threads; of more rows, what a library gives.
 */
/* ctest-isa: v3 base */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/no_error.h"
#include "common/op_numbers.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

/* Rows may be an axis of the left operand, or of its transposed. */
struct product {
    tssa_dtype dtype;
    int64_t m, k, n;
    const char *rows, *op, *attributes;
    bool turned, copied; /* the matrix; it is, for one row */
};

static const char *name_of(tssa_dtype dtype)
{
    return dtype == TSSA_FLOAT ? "f32" : "f64";
}

static void put_matrix(struct text *text, const struct tensor *w)
{
    text_printf(text, "Constant() {value = %s[%d, %d] [", name_of(w->dtype), (int)w->dims[0],
                (int)w->dims[1]);
    for (int64_t i = 0; i < (int64_t)tensor_count(w); i++)
        text_printf(text, "%s%.17g", i ? ", " : "", op_number(w, i));
    text_printf(text, "]}\n");
}

static char *text_of(const struct product *p, const struct tensor *w)
{
    struct text text;
    text_init(&text, &allocator_default);
    text_printf(&text, "graph @g opset(\"\": 18) ir_version(8) (%%x: %s[%s]) -> (%%y) {\n%%w = ",
                name_of(p->dtype), p->rows);
    put_matrix(&text, w);
    text_printf(&text, "%%y = %s(%%x, %%w)%s\nreturn(%%y)\n}\n", p->op, p->attributes);
    char *copy = xprintf("%s", text_string(&text));
    text_free(&text);
    return copy;
}

static struct value some_matrix(struct random *random, tssa_dtype dtype, int64_t rows,
                                int64_t columns, double *memory)
{
    struct value value = {
        .kind = TSSA_KIND_TENSOR,
        .tensor = {.dtype = dtype, .rank = 2, .dims = {rows, columns}, .data = memory}};
    op_numbers(&value.tensor, random);
    return value;
}

/* One row, in the documented order. */
static void multiply(const struct product *p, const struct tensor *x, const struct tensor *w,
                     struct tensor *y)
{
    double *terms = xcalloc((size_t)p->k, sizeof *terms);
    for (int64_t at = 0; at < p->n; at++) {
        for (int64_t i = 0; i < p->k; i++)
            terms[i] = op_rounded(p->dtype, op_number(x, i) * op_number(w, i * p->n + at));
        dtype_store_double(p->dtype, (char *)y->data + (size_t)at * tssa_dtype_size(p->dtype),
                           op_sum(p->dtype, terms, p->k));
    }
    free(terms);
}

static void expect_product(const struct product *p, const struct tensor *x, const struct tensor *w,
                           const struct tensor *y)
{
    double *terms = xcalloc((size_t)p->k, sizeof *terms);
    assert_int_equal(tensor_count(y), p->m * p->n);
    for (int64_t at = 0; at < p->m * p->n; at++) {
        double exact = 0;
        for (int64_t i = 0; i < p->k; i++) {
            const double a = op_number(x, at / p->n * p->k + i),
                         b = op_number(w, p->turned ? at % p->n * p->k + i : i * p->n + at % p->n);
            terms[i] = op_rounded(p->dtype, a * b);
            exact += a * b;
        }
        if (p->m == 1)
            op_expect_number(y, at, op_sum(p->dtype, terms, p->k));
        else
            expect_close(op_number(y, at), exact, 1e-4, "y", (size_t)at);
    }
    free(terms);
}

static void check(const struct product *p, struct random *random)
{
    double *memory = xcalloc((size_t)(p->m * p->k + p->k * p->n), sizeof *memory);
    const struct value w =
        some_matrix(random, p->dtype, p->turned ? p->n : p->k, p->turned ? p->k : p->n, memory);
    struct value x = some_matrix(random, p->dtype, p->m, p->k, memory + p->k * p->n);
    const struct value *inputs[] = {&x};
    char *text = text_of(p, &w.tensor);
    struct ir_graph *graph;
    struct plan *plan;
    no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(ir_infer_graph(graph));
    no_error(plan_create(graph, test_device(), &plan));
    assert_int_equal(plan->tally.packed_bytes > 0, p->copied);
    x.tensor.rank = graph->body->params[0]->type->rank;
    for (int i = 0; i < x.tensor.rank; i++)
        assert_true(dim_is_const(graph->body->params[0]->type->dims[i], &x.tensor.dims[i]));
    for (int threads = 1; threads <= 3; threads++) {
        struct op_run lent; /* has the team */
        struct team team;
        struct run *run;
        struct value y = {.kind = TSSA_KIND_NONE};
        op_threads(&lent, &team, threads);
        no_error(run_create(plan, &allocator_default, &team, false, &run));
        for (int i = 0; i < 2; i++) {
            no_error(run_execute(run, inputs, &y));
            expect_product(p, &x.tensor, &w.tensor, &y.tensor);
            value_release(&y);
        }
        run_free(run);
    }
    plan_free(plan);
    ir_graph_free(graph);
    free(text);
    free(memory);
}

static void test_products(void **state)
{
    static const struct product products[] = {
        {TSSA_FLOAT, 1, 512, 64, "1, 512", "MatMul", "", false, true},
        {TSSA_FLOAT, 1, 300, 129, "300", "MatMul", "", false, true},
        {TSSA_FLOAT, 1, 33, 1030, "1, 1, 33", "MatMul", "", false, true},
        {TSSA_FLOAT, 1, 4500, 65, "1, 4500", "MatMul", "", false, true},
        {TSSA_FLOAT, 1, 3000, 345, "1, 3000", "MatMul", "", false, true},
        {TSSA_FLOAT, 1, 256, 500, "1, 256", "Gemm", " {transB = 1}", true, true},
        {TSSA_FLOAT, 1, 600, 70, "600, 1", "Gemm", " {transA = 1}", false, true},
        {TSSA_DOUBLE, 1, 1100, 37, "1, 1100", "MatMul", "", false, true},
        {TSSA_DOUBLE, 1, 130, 300, "1, 130", "MatMul", "", false, true},
        {TSSA_DOUBLE, 1, 400, 100, "1, 400", "Gemm", " {transB = 1}", true, true},
        {TSSA_FLOAT, 1, 100, 200, "1, 100", "MatMul", "", false, false},
        {TSSA_FLOAT, 9, 65, 1024, "9, 65", "MatMul", "", false, false},
        {TSSA_FLOAT, 17, 65, 512, "17, 65", "Gemm", "", false, false},
    };
    struct random random = {47};
    (void)state;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        check(&products[i], &random);
}

/* h = h * w again and again: iterations are set up once (runtime/repeat.h), and give the same. */
static void test_recurrence(void **state)
{
    enum { N = 192, TRIPS = 12 };
    const struct product p = {TSSA_FLOAT, 1, N, N, "", "", "", false, true};
    struct random random = {53};
    double *memory = xcalloc(N * N + 2 * N, sizeof *memory);
    const struct value w = some_matrix(&random, TSSA_FLOAT, N, N, memory);
    struct value h = some_matrix(&random, TSSA_FLOAT, 1, N, memory + N * N), y = {0};
    struct value after = some_matrix(&random, TSSA_FLOAT, 1, N, memory + N * N + N);
    const struct value *inputs[] = {&h};
    struct text text;
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
    (void)state;
    text_init(&text, &allocator_default);
    text_printf(&text, "graph @g opset(\"\": 21) ir_version(10) (%%x: f32[1, %d]) -> (%%y) {\n", N);
    text_printf(&text, "%%trips = Constant() {value = i64[] %d}: i64[]\n%%w = ", TRIPS);
    put_matrix(&text, &w.tensor);
    text_printf(&text,
                "%%y = Loop(%%trips, _, %%x) {\nbody(%%i: i64[], %%c: bool[], %%h: f32[1, %d]) "
                "{\n%%r = MatMul(%%h, %%w)\nreturn(%%c, %%r)\n}\n}\nreturn(%%y)\n}\n",
                N);
    no_error(ir_parse(&allocator_default, text_string(&text), text.size, &graph));
    no_error(ir_infer_graph(graph));
    no_error(plan_create(graph, test_device(), &plan));
    no_error(run_create(plan, &allocator_default, NULL, false, &run));
    no_error(run_execute(run, inputs, &y));
    assert_int_equal(run->repeated, TRIPS - 1);
    for (int i = 0; i < TRIPS; i++) {
        multiply(&p, &h.tensor, &w.tensor, &after.tensor);
        memcpy(h.tensor.data, after.tensor.data, N * sizeof(float));
    }
    assert_memory_equal(y.tensor.data, h.tensor.data, N * sizeof(float));
    value_release(&y);
    run_free(run);
    plan_free(plan);
    ir_graph_free(graph);
    text_free(&text);
    free(memory);
}

/* A step that is run with several numbers of rows, of which some may have a copy of the matrix
 * (device/cpu/onednn/gemm.c), and others read it where it is. */
static void test_rows_vary(void **state)
{
    enum { K = 256, N = 1024, MOST = 100 };
    static const int64_t rows[] = {64, MOST, 9, 64, 2};
    struct random random = {59};
    double *memory = xcalloc(K * N + MOST * K, sizeof *memory);
    const struct value w = some_matrix(&random, TSSA_FLOAT, K, N, memory);
    struct value x = some_matrix(&random, TSSA_FLOAT, MOST, K, memory + K * N), y = {0};
    const struct value *inputs[] = {&x};
    struct product p = {TSSA_FLOAT, MOST, K, N, "M, 256", "MatMul", "", false, true};
    char *text = text_of(&p, &w.tensor);
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
    (void)state;
    no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(ir_infer_graph(graph));
    no_error(plan_create(graph, test_device(), &plan));
    no_error(run_create(plan, &allocator_default, NULL, false, &run));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        x.tensor.dims[0] = p.m = rows[i];
        no_error(run_execute(run, inputs, &y));
        expect_product(&p, &x.tensor, &w.tensor, &y.tensor);
        value_release(&y);
    }
    run_free(run);
    plan_free(plan);
    ir_graph_free(graph);
    free(text);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_recurrence),
                                       cmocka_unit_test(test_rows_vary)};
    return cmocka_run_group_tests_name("constant_weights", tests, NULL, NULL);
}
