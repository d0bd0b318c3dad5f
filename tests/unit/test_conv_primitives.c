/* SPDX-License-Identifier: Apache-2.0 */
/* ctest-labels: tsan */
/*
 * Convolutions by primitives that a step keeps: many shapes and threads on one plan, weights that
 * are constants and weights that are not, halves, and every allocation failing once. Against plain
 * loops.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/no_error.h"
#include "common/test_alloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "kernels/cpu/contraction/conv_library.h"
#include "kernels/cpu/lib/convert.h"
#include "runtime/executor.h"

#define CHANNELS 16
#define KERNEL 3
#define WEIGHTS (CHANNELS * CHANNELS * KERNEL * KERNEL)
#define MOST_PIXELS 400

/* More shapes than a step keeps, and as many threads as may hold one each. */
#define SHAPES (LIBRARY_PROBLEMS + 3)
#define THREADS 4
#define ROUNDS 3

static float weight_of(int64_t i)
{
    return (float)(i * 7 % 31 - 15) / 8;
}

static float pixel_of(int64_t i)
{
    return (float)(i * 11 % 29 - 14) / 8;
}

static int64_t height_of(int shape)
{
    return 5 + shape;
}

static int64_t width_of(int shape)
{
    return 20 - shape;
}

/* y = Conv(x, w), padded, with w a constant or a parameter; computed twice, the mean of both. */
static void write_program(struct text *text, const char *dtype, bool constant, bool twice)
{
    static const char conv[] = "Conv@11(%x, %w) {pads = [1, 1, 1, 1]}\n";
    text_printf(text, "graph @g opset(\"\": 18) ir_version(8) (%%x: %s[1, %d, H, W]", dtype,
                CHANNELS);
    if (!constant)
        text_printf(text, ", %%w: %s[%d, %d, 3, 3]", dtype, CHANNELS, CHANNELS);
    text_printf(text, ") -> (%%y) {\n");
    if (constant)
        text_printf(text, "%%w = Constant() {value = %s[%d, %d, 3, 3] [", dtype, CHANNELS,
                    CHANNELS);
    for (int64_t i = 0; constant && i < WEIGHTS; i++)
        text_printf(text, "%s%g", i ? ", " : "", (double)weight_of(i));
    text_printf(text, "%s", constant ? "]}\n" : "");
    if (twice)
        text_printf(text,
                    "%%a = %s%%b = %s%%c = Add@14(%%a, %%b)\n"
                    "%%half = Constant() {value = %s[] 0.5}\n%%y = Mul@14(%%c, %%half)\n",
                    conv, conv, dtype);
    else
        text_printf(text, "%%y = %s", conv);
    text_printf(text, "return(%%y)\n}\n");
}

struct program {
    struct device_context context;
    struct ir_graph *graph;
    struct plan *plan;
};

static tssa_status *program_open_as(struct program *p, const tssa_allocator *allocator,
                                    const char *dtype, bool constant, bool twice)
{
    struct text text;
    memset(p, 0, sizeof *p);
    device_context_open(&p->context, device_find(NULL), allocator, NULL);
    text_init(&text, &allocator_default);
    write_program(&text, dtype, constant, twice);
    tssa_status *status = ir_parse(allocator, text_string(&text), text.size, &p->graph);
    text_free(&text);
    if (!status)
        status = ir_infer_graph(p->graph);
    if (!status)
        status = plan_create(p->graph, &p->context, &p->plan);
    return status;
}

static tssa_status *program_open(struct program *p, const tssa_allocator *allocator,
                                 const char *dtype, bool constant)
{
    return program_open_as(p, allocator, dtype, constant, false);
}

static void program_close(struct program *p)
{
    plan_free(p->plan);
    ir_graph_free(p->graph);
    device_context_close(&p->context);
}

static double expected_at(int shape, int64_t o, int64_t row, int64_t column, const float *w)
{
    int64_t height = height_of(shape), width = width_of(shape);
    double sum = 0;
    for (int64_t c = 0; c < CHANNELS; c++)
        for (int64_t k = 0; k < KERNEL * KERNEL; k++) {
            int64_t y = row + k / KERNEL - 1, x = column + k % KERNEL - 1;
            if (y >= 0 && y < height && x >= 0 && x < width)
                sum += (double)pixel_of((c * height + y) * width + x) *
                       (double)w[(o * CHANNELS + c) * KERNEL * KERNEL + k];
        }
    return sum;
}

static int count_wrong(const struct tensor *y, int shape, const float *w, double tolerance)
{
    int64_t height = height_of(shape), width = width_of(shape);
    int wrong = tensor_count(y) != (size_t)(CHANNELS * height * width);
    for (int64_t i = 0; !wrong && i < CHANNELS * height * width; i++) {
        double expected = expected_at(shape, i / width / height, i / width % height, i % width, w);
        double actual = dtype_load_double(y->dtype, (const char *)y->data +
                                                        (size_t)i * tssa_dtype_size(y->dtype));
        wrong += !(fabs(actual - expected) <= tolerance * (1 + fabs(expected)));
    }
    return wrong;
}

/* One run with an image of the shape; the number of wrong elements in *wrong. */
static tssa_status *convolve(struct run *run, tssa_dtype dtype, int shape, const float *w,
                             bool given, int *wrong)
{
    static const float zero;
    float pixels[CHANNELS * MOST_PIXELS], image[CHANNELS * MOST_PIXELS], weights[WEIGHTS];
    int64_t count = CHANNELS * height_of(shape) * width_of(shape);
    for (int64_t i = 0; i < count; i++)
        pixels[i] = pixel_of(i);
    convert_elements(count, TSSA_FLOAT, pixels, 1, dtype, image, 1, &convert_default);
    convert_elements(WEIGHTS, TSSA_FLOAT, w ? w : &zero, w ? 1 : 0, dtype, weights, 1,
                     &convert_default);
    struct value x = {.kind = TSSA_KIND_TENSOR,
                      .tensor = {.dtype = dtype,
                                 .rank = 4,
                                 .dims = {1, CHANNELS, height_of(shape), width_of(shape)},
                                 .data = image}},
                 v = {.kind = TSSA_KIND_TENSOR,
                      .tensor = {.dtype = dtype,
                                 .rank = 4,
                                 .dims = {CHANNELS, CHANNELS, KERNEL, KERNEL},
                                 .data = weights}},
                 y = {.kind = TSSA_KIND_NONE};
    const struct value *inputs[] = {&x, given ? &v : NULL};
    TRY(run_execute(run, inputs, &y));
    *wrong = count_wrong(&y.tensor, shape, w, dtype == TSSA_FLOAT16 ? 1e-3 : 1e-5);
    value_release(&y);
    return NULL;
}

static const float *constant_weights(void)
{
    static float weights[WEIGHTS];
    for (int64_t i = 0; i < WEIGHTS; i++)
        weights[i] = weight_of(i);
    return weights;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

struct worker {
    const struct program *program;
    const float *weights;
    int number, wrong, errors;
};

/* All shapes, in an order of its own. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    struct run *run;
    tssa_status *status = run_create(worker->program->plan, &allocator_default, NULL, false, &run);
    for (int i = 0; !status && i < SHAPES * ROUNDS; i++) {
        int wrong = 0, shape = (i * (2 * worker->number + 1) + worker->number) % SHAPES;
        status = convolve(run, TSSA_FLOAT, shape, worker->weights, false, &wrong);
        worker->wrong += wrong;
    }
    worker->errors = status != NULL;
    tssa_status_free(status);
    run_free(run);
    return NULL;
}

static void test_threads_and_shapes(void **state)
{
    (void)state;
    struct program p;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    const float *weights = constant_weights();
    no_error(program_open(&p, &allocator_default, "f32", true));
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.program = &p, .weights = weights, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].errors, 0);
        assert_int_equal(workers[i].wrong, 0);
    }
    program_close(&p);
}

/* What is packed for one run must not be used by the next. */
static void test_weights_that_change(void **state)
{
    (void)state;
    struct program p;
    struct run *run;
    float weights[WEIGHTS];
    no_error(program_open(&p, &allocator_default, "f32", false));
    no_error(run_create(p.plan, &allocator_default, NULL, false, &run));
    for (int round = 0; round < 4; round++) {
        int wrong;
        for (int64_t i = 0; i < WEIGHTS; i++)
            weights[i] = weight_of(i + round);
        no_error(convolve(run, TSSA_FLOAT, 2, weights, true, &wrong));
        assert_int_equal(wrong, 0);
    }
    run_free(run);
    program_close(&p);
}

static void test_halves(void **state)
{
    (void)state;
    for (int constant = 0; constant <= 1; constant++) {
        struct program p;
        struct run *run;
        int wrong;
        no_error(program_open(&p, &allocator_default, "f16", constant));
        no_error(run_create(p.plan, &allocator_default, NULL, false, &run));
        for (int round = 0; round < 3; round++) {
            no_error(convolve(run, TSSA_FLOAT16, 4, constant_weights(), !constant, &wrong));
            assert_int_equal(wrong, 0);
        }
        run_free(run);
        program_close(&p);
    }
}

/* What is told of it: a primitive per shape, and one copy of the weights for all that want one
 * layout. */
static void test_tally(void **state)
{
    (void)state;
    struct program p;
    struct run *run;
    int wrong;
    no_error(program_open(&p, &allocator_default, "f32", true));
    no_error(run_create(p.plan, &allocator_default, NULL, false, &run));
    for (int i = 0; i < 4; i++)
        no_error(convolve(run, TSSA_FLOAT, i % 2, constant_weights(), false, &wrong));
    const struct kernel_tally *tally = &p.plan->tally;
    assert_int_equal(tally->primitives, TSSA_HAVE_ONEDNN ? 2 : 0);
    assert_int_equal(tally->nanoseconds > 0, TSSA_HAVE_ONEDNN);
    assert_int_equal(tally->packed_bytes, TSSA_HAVE_ONEDNN ? WEIGHTS * sizeof(float) : 0);
    run_free(run);
    program_close(&p);
}

/* Steps that read the same constant have one copy of it in a layout, as long as one of them is
 * there: of more shapes than a step keeps, in turn, all are forgotten and made again. */
static void test_readers_share(void **state)
{
    (void)state;
    struct program p;
    struct run *run;
    int wrong;
    no_error(program_open_as(&p, &allocator_default, "f32", true, true));
    no_error(run_create(p.plan, &allocator_default, NULL, false, &run));
    for (int i = 0; i < 2 * SHAPES; i++) {
        no_error(convolve(run, TSSA_FLOAT, i % SHAPES, constant_weights(), false, &wrong));
        assert_int_equal(wrong, 0);
        assert_int_equal(p.plan->tally.packed_bytes,
                         TSSA_HAVE_ONEDNN ? WEIGHTS * sizeof(float) : 0);
    }
    run_free(run);
    program_close(&p);
}

/* After the first run of a shape no memory is taken for it but that of the result. */
static void test_packed_once(void **state)
{
    (void)state;
    struct test_alloc counter;
    struct program p;
    struct run *run;
    int wrong;
    long counts[8]; /* the slab is still growing in the first ones */
    test_alloc_init(&counter);
    no_error(program_open(&p, &counter.allocator, "f32", true));
    no_error(run_create(p.plan, &counter.allocator, NULL, false, &run));
    for (int i = 0; i < 8; i++) {
        long before = counter.count;
        no_error(convolve(run, TSSA_FLOAT, 1, constant_weights(), false, &wrong));
        assert_int_equal(wrong, 0);
        counts[i] = counter.count - before;
    }
    assert_true(counts[7] < counts[0]);
    assert_int_equal(counts[7], counts[6]);
    run_free(run);
    program_close(&p);
    assert_int_equal(counter.live, 0);
}

static tssa_status *make_and_run(const tssa_allocator *allocator)
{
    struct program p;
    struct run *run = NULL;
    int wrong = 0;
    tssa_status *status = program_open(&p, allocator, "f32", true);
    if (!status)
        status = run_create(p.plan, allocator, NULL, false, &run);
    for (int shape = 0; !status && shape < 2; shape++) {
        status = convolve(run, TSSA_FLOAT, shape, constant_weights(), false, &wrong);
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
        cmocka_unit_test(test_threads_and_shapes),
        cmocka_unit_test(test_weights_that_change),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_tally),
        cmocka_unit_test(test_readers_share),
        cmocka_unit_test(test_packed_once),
        cmocka_unit_test(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
