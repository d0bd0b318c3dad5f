/* SPDX-License-Identifier: Apache-2.0 */
/* ctest-labels: tsan */
/*
 * What asks a library, and as what problem; products by primitives that a step keeps: many shapes
 * and threads on one plan, batches, and every allocation failing once.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/test_alloc.h"
#include "common/test_device.h"
#include "device/library_cache.h"
#include "device/library_op.h"
#include "device/matmul.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

struct program {
    struct device_context context;
    struct ir_graph *graph;
    struct plan *plan;
};

static tssa_status *program_open(struct program *p, const tssa_allocator *allocator,
                                 const char *device, const char *text)
{
    memset(p, 0, sizeof *p);
    device_context_open(&p->context, device_find(device), allocator, NULL);
    if (!p->context.device->is_host)
        p->context.host = test_device();
    TRY(ir_parse(allocator, text, strlen(text), &p->graph));
    TRY(ir_infer_graph(p->graph));
    return plan_create(p->graph, &p->context, &p->plan);
}

static void program_close(struct program *p)
{
    plan_free(p->plan);
    ir_graph_free(p->graph);
    device_context_close(&p->context);
}

/* ---- What asks ------------------------------------------------------------------------------- */

#define GRAPH(parameters, op)                                                                      \
    "graph @g opset(\"\": 22) ir_version(8) (" parameters ") -> (%y) {\n%y = " op                  \
    "\nreturn(%y)\n}\n"

static const struct {
    const char *text;
    uint64_t launches, library_calls;
} asking[] = {
    {GRAPH("%a: f32[2, 3], %b: f32[3, 4]", "MatMul@13(%a, %b)"), 0, 1},
    {GRAPH("%a: f16[5, 2, 3], %b: f16[5, 3, 4]", "MatMul@13(%a, %b)"), 0, 1},
    {GRAPH("%a: f32[5, 2, 3], %b: f32[3, 4]", "MatMul@13(%a, %b)"), 0, 1},
    {GRAPH("%a: f32[3], %b: f32[3]", "MatMul@13(%a, %b)"), 0, 1},
    {GRAPH("%a: f32[5, 1, 2, 3], %b: f32[5, 6, 3, 4]", "MatMul@13(%a, %b)"), 1, 0},
    {GRAPH("%a: i32[2, 3], %b: i32[3, 4]", "MatMul@13(%a, %b)"), 1, 0},
    {GRAPH("%a: f32[3, 2], %b: f32[4, 3]", "Gemm@13(%a, %b) {transA = 1, transB = 1}"), 0, 1},
    {GRAPH("%a: f32[1, 4, 8, 8], %b: f32[2, 4, 3, 3]", "Conv@11(%a, %b)"), 0, 1},
    {GRAPH("%a: f32[1, 1, 2, 2, 2, 2], %b: f32[1, 1, 1, 1, 1, 1]", "Conv@11(%a, %b)"), 1, 0},
    {GRAPH("%a: f32[2, 3], %b: f32[3, 4]", "Einsum@12(%a, %b) {equation = \"ij,jk->ik\"}"), 1, 0},
    {GRAPH("%a: f32[3, 3], %b: f32[]", "Det@11(%a)"), 1, 0},
};

static struct value zeros_of(const struct ir_type *type)
{
    struct value value = {.kind = TSSA_KIND_TENSOR};
    int64_t dims[TSSA_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i]->value;
    no_error(tensor_create(&allocator_default, type->dtype, type->rank, dims, &value.tensor));
    memset(value.tensor.data, 0, tensor_bytes(&value.tensor));
    return value;
}

static void test_what_asks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) {
        struct program p;
        struct run *run;
        struct value operands[2], y = {.kind = TSSA_KIND_NONE};
        const struct value *inputs[] = {&operands[0], &operands[1]};
        no_error(program_open(&p, &allocator_default, "null", asking[i].text));
        no_error(run_create(p.plan, &allocator_default, NULL, false, &run));
        for (int k = 0; k < 2; k++)
            operands[k] = zeros_of(p.graph->body->params[k]->type);
        for (int k = 0; k < 2; k++) {
            no_error(run_execute(run, inputs, &y));
            value_release(&y);
            assert_int_equal(run->counts.launches, asking[i].launches);
            assert_int_equal(run->counts.library_calls, asking[i].library_calls);
        }
        assert_int_equal(p.plan->tally.primitives, asking[i].library_calls); /* made once */
        for (int k = 0; k < 2; k++)
            value_release(&operands[k]);
        run_free(run);
        program_close(&p);
    }
}

static struct tensor shaped(int rank, const int64_t *dims)
{
    struct tensor tensor = {.dtype = TSSA_FLOAT, .rank = rank};
    memcpy(tensor.dims, dims, (size_t)rank * sizeof *dims);
    return tensor;
}

static void expect_matmul(const struct tensor *a, const struct tensor *b,
                          struct matmul_problem wanted)
{
    struct library_problem problem = {.kind = LIBRARY_MATMUL, .dtype = TSSA_FLOAT}, same = problem;
    bool one;
    no_error(matmul_problem(a, b, &problem.matmul, &one));
    assert_true(one);
    same.matmul = wanted;
    assert_true(library_same_problem(&problem, &same));
    same.matmul.n++;
    assert_false(library_same_problem(&problem, &same));
}

static void test_problems(void **state)
{
    const struct tensor a = shaped(3, (const int64_t[]){5, 2, 3}),
                        one = shaped(3, (const int64_t[]){1, 2, 3}),
                        b = shaped(3, (const int64_t[]){5, 3, 4}),
                        flat = shaped(2, (const int64_t[]){3, 4});
    const struct matmul_problem plain = {
        .batch = 5, .m = 2, .n = 4, .k = 3, .a_row = 3, .a_column = 1, .b_row = 4, .b_column = 1};
    struct matmul_problem wanted = plain;
    (void)state;
    wanted.a_batch = 6, wanted.b_batch = 12;
    expect_matmul(&a, &b, wanted);
    wanted.a_batch = 0;
    expect_matmul(&one, &b, wanted);
    wanted = plain;
    wanted.batch = 1, wanted.m = 10; /* one matrix for all: more rows */
    expect_matmul(&a, &flat, wanted);
}

/* Sizes whose product overflows, in operands or in the result, and the last one, which fits. */
static const char *const sizes[] = {
    GRAPH("%a: f32[4, 9223372036854775807, 1, 3], %b: f32[3, 4]", "MatMul@13(%a, %b)"),
    GRAPH("%a: f32[3, 3], %b: f32[3, 9223372036854775807]", "MatMul@13(%a, %b)"),
    GRAPH("%a: f32[1099511627776, 1], %b: f32[1, 1099511627776]", "MatMul@13(%a, %b)"),
    GRAPH("%a: f32[4294967296, 1, 1, 0], %b: f32[4294967296, 1, 0, 1]", "MatMul@13(%a, %b)"),
    GRAPH("%a: f32[1099511627776, 1], %b: f32[1, 2]", "MatMul@13(%a, %b)"),
};

static void test_sizes_beyond_memory(void **state)
{
    const size_t n = sizeof sizes / sizeof *sizes;
    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct library_problem problem;
        struct program p;
        no_error(program_open(&p, &allocator_default, "cpu", sizes[i]));
        const struct ir_op *op = p.graph->body->first;
        assert_int_equal(library_op_known(op, &problem), i == n - 1 || i == n - 2);
        program_close(&p);
    }

    const struct tensor a = shaped(4, (const int64_t[]){INT64_C(1) << 40, 1, 0, 1}),
                        b = shaped(4, (const int64_t[]){1, INT64_C(1) << 40, 1, 0});
    struct matmul mm;
    tssa_status *status = matmul_resolve(&a, &b, &mm);
    assert_non_null(status);
    assert_int_equal(tssa_status_code(status), TSSA_LIMIT);
    tssa_status_free(status);
}

/* ---- Primitives that a step keeps ------------------------------------------------------------ */

/* More shapes than a step keeps, and as many threads as may hold one each. */
#define SHAPES (LIBRARY_PROBLEMS + 3)
#define THREADS 4
#define ROUNDS 5
#define K 16
#define N 15 /* that fill no vectors: else such products are too small for a library */
#define BATCHES 2
#define MOST (BATCHES * (16 + SHAPES) * K)

static const char products[] =
    "graph @g opset(\"\": 18) ir_version(8) (%a: f32[B, M, K], %b: f32[B, K, N]) -> (%y, %z) {\n"
    "  %y = MatMul@13(%a, %b)\n"
    "  %z = Einsum@12(%a, %b) {equation = \"bij,bjk->bik\"}\n"
    "  return(%y, %z)\n}\n";

static float small(int64_t i)
{
    return (float)(i * 7 % 11 - 5);
}

/* Small integers, whose sums are exact. */
static int count_wrong(const struct tensor *y, int64_t rows)
{
    int wrong = tensor_count(y) != (size_t)(BATCHES * rows * N);
    for (int64_t i = 0; !wrong && i < BATCHES * rows * N; i++) {
        const int64_t batch = i / N / rows;
        float sum = 0;
        for (int64_t k = 0; k < K; k++)
            sum += small(i / N * K + k) * small((batch * K + k) * N + i % N);
        wrong += ((const float *)y->data)[i] != sum;
    }
    return wrong;
}

static tssa_status *multiply(struct run *run, int shape, int *wrong)
{
    float a[MOST], b[MOST];
    const int64_t rows = 16 + shape;
    for (int64_t i = 0; i < MOST; i++)
        a[i] = b[i] = small(i);
    struct value
        x = {.kind = TSSA_KIND_TENSOR,
             .tensor = {.dtype = TSSA_FLOAT, .rank = 3, .dims = {BATCHES, rows, K}, .data = a}},
        w = {.kind = TSSA_KIND_TENSOR,
             .tensor = {.dtype = TSSA_FLOAT, .rank = 3, .dims = {BATCHES, K, N}, .data = b}},
        y[2] = {{.kind = TSSA_KIND_NONE}, {.kind = TSSA_KIND_NONE}};
    const struct value *inputs[] = {&x, &w};
    TRY(run_execute(run, inputs, y));
    *wrong = count_wrong(&y[0].tensor, rows) + count_wrong(&y[1].tensor, rows);
    value_release(&y[0]);
    value_release(&y[1]);
    return NULL;
}

struct thread {
    pthread_t thread;
    const struct plan *plan;
    int first, wrong;
};

static void *work(void *context)
{
    struct thread *t = context;
    struct run *run;
    tssa_status *status = run_create(t->plan, &allocator_default, NULL, false, &run);
    for (int i = 0; !status && i < ROUNDS * SHAPES; i++) {
        int wrong = 0;
        status = multiply(run, (t->first + i) % SHAPES, &wrong);
        t->wrong += wrong;
    }
    t->wrong += status != NULL;
    tssa_status_free(status);
    run_free(run);
    return NULL;
}

static void test_threads_and_shapes(void **state)
{
    struct program p;
    struct thread threads[THREADS];
    (void)state;
    no_error(program_open(&p, &allocator_default, NULL, products));
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.plan = p.plan, .first = 3 * i};
        assert_int_equal(pthread_create(&threads[i].thread, NULL, work, &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        assert_int_equal(threads[i].wrong, 0);
    }
    if (TSSA_HAVE_ONEDNN)
        assert_true(p.plan->tally.primitives >= 2 * SHAPES);
    program_close(&p);
}

static tssa_status *make_and_run(const tssa_allocator *allocator)
{
    struct program p;
    struct run *run = NULL;
    int wrong = 0;
    tssa_status *status = program_open(&p, allocator, NULL, products);
    if (!status)
        status = run_create(p.plan, allocator, NULL, false, &run);
    for (int shape = 0; !status && shape < 2; shape++) {
        status = multiply(run, shape, &wrong);
        assert_int_equal(wrong, 0);
    }
    run_free(run);
    program_close(&p);
    return status;
}

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(make_and_run) > 20);
}

int main(void)
{
    /* Beside the tests' folder; see base/plugin.h. */
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_asks),
        cmocka_unit_test(test_problems),
        cmocka_unit_test(test_sizes_beyond_memory),
        cmocka_unit_test(test_threads_and_shapes),
        cmocka_unit_test(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
