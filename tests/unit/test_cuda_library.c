/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of the device `cuda` by cuBLASLt, on the fakes (tests/cuda): random sizes against the
 * CPU, turned or not, in batches; what is too small for it, or lies where it is not taken; none
 * installed; and each call failing once.
 */
/* ctest-timeout: 600 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/fake_cuda.h"
#include "common/grids_run.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/onnx_model.h"
#include "common/op_run.h"
#include "common/test_alloc.h"
#include "common/test_card.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "device/device.h"
#include "device/library.h"

static const struct device *cuda(void)
{
    return device_find("cuda");
}

/* ---- As a program calls it ------------------------------------------------------------------- */

static const char *const names[] = {"f32", "f64"};
static const tssa_dtype types[] = {TSSA_FLOAT, TSSA_DOUBLE};

/* Numbers between -1 and 1. */
static void fill(struct value *value, struct arena *arena, struct random *random, tssa_dtype dtype,
                 int rank, const int64_t *dims)
{
    size_t count, bytes;
    assert_null(tensor_layout(dtype, rank, dims, &count, &bytes));
    *value = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = dtype, .rank = rank}};
    memcpy(value->tensor.dims, dims, (size_t)rank * sizeof *dims);
    value->tensor.data = arena_alloc_aligned(arena, bytes, TENSOR_ALIGNMENT);
    for (size_t i = 0; i < count; i++)
        dtype_store_double(dtype, (char *)value->tensor.data + i * tssa_dtype_size(dtype),
                           (double)random_int(random, -1000, 1000) / 1000);
}

static void expect_same(const struct grids_run *run, int t)
{
    const struct tensor *made = &run->made[0].tensor, *wanted = &run->wanted[0].tensor;
    const size_t size = tssa_dtype_size(types[t]);
    assert_int_equal(tensor_count(made), tensor_count(wanted));
    for (size_t i = 0; i < tensor_count(wanted); i++)
        expect_close(dtype_load_double(types[t], (const char *)made->data + i * size),
                     dtype_load_double(types[t], (const char *)wanted->data + i * size),
                     t ? 1e-12 : 1e-4, "result", i);
}

/* Of 2 to 3 matrices, of which the left ones, or the right ones, may be the same one. */
static void matmul(int t, int one, struct random *random)
{
    char program[300];
    struct arena arena;
    struct grids_run run;
    struct value a, b;
    const int64_t batch = random_int(random, 2, 3), m = random_int(random, 90, 130),
                  n = random_int(random, 90, 130), k = random_int(random, 260, 300);
    arena_init(&arena, &allocator_default);
    snprintf(
        program, sizeof program,
        "graph @g opset(\"\": 18) ir_version(8) (%%a: %s[A, M, K], %%b: %s[B, K, N]) -> (%%c) {\n"
        "  %%c = MatMul@13(%%a, %%b)\n"
        "  return(%%c)\n"
        "}\n",
        names[t], names[t]);
    grids_run_open(&run, "cuda", program);
    fill(&a, &arena, random, types[t], 3, (const int64_t[]){one == 1 ? 1 : batch, m, k});
    fill(&b, &arena, random, types[t], 3, (const int64_t[]){one == 2 ? 1 : batch, k, n});
    assert_true(grids_run_go(&run, (const struct value *const[]){&a, &b}));
    assert_int_equal(run.counts.library_calls, 1);
    expect_same(&run, t);
    grids_run_close(&run);
    arena_clear(&arena);
}

static void test_matmul(void **state)
{
    struct random random = {3};
    (void)state;
    for (int t = 0; t < 2; t++)
        for (int one = 0; one < 3; one++)
            matmul(t, one, &random);
}

/* Library calls, of a Gemm with factors and a C. */
static uint64_t gemm(int t, bool turn_a, bool turn_b, struct random *random)
{
    char program[400];
    struct arena arena;
    struct grids_run run;
    struct value a, b, c;
    const int64_t m = random_int(random, 100, 200), n = random_int(random, 150, 200),
                  k = random_int(random, 280, 300);
    arena_init(&arena, &allocator_default);
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 18) ir_version(8) (%%a: %s[P, Q], %%b: %s[R, S], %%c: %s[N]) -> "
             "(%%y) {\n"
             "  %%y = Gemm@13(%%a, %%b, %%c) {transA = %d, transB = %d, alpha = 1.5, beta = -0.3}\n"
             "  return(%%y)\n"
             "}\n",
             names[t], names[t], names[t], turn_a, turn_b);
    grids_run_open(&run, "cuda", program);
    fill(&a, &arena, random, types[t], 2, (const int64_t[]){turn_a ? k : m, turn_a ? m : k});
    fill(&b, &arena, random, types[t], 2, (const int64_t[]){turn_b ? n : k, turn_b ? k : n});
    fill(&c, &arena, random, types[t], 1, &n);
    assert_true(grids_run_go(&run, (const struct value *const[]){&a, &b, &c}));
    expect_same(&run, t);
    const uint64_t calls = run.counts.library_calls;
    grids_run_close(&run);
    arena_clear(&arena);
    return calls;
}

static void test_gemm(void **state)
{
    struct random random = {4};
    (void)state;
    for (int i = 0; i < 8; i++)
        assert_int_equal(gemm(i >> 2, i & 1, i >> 1 & 1, &random), 1);
}

/* Texts compute it then. */
static void expect_texts_with(const char *name, const char *value)
{
    struct random random = {5};
    setenv(name, value, 1);
    assert_int_equal(gemm(0, false, true, &random), 0);
    unsetenv(name);
    fake_cuda_use(true);
}

static void test_what_fails_is_computed_by_texts(void **state)
{
    (void)state;
    expect_texts_with("TSSA_CUDA_LIBRARIES", TSSA_BUILD_DIR "/tests/fake_cuda_old"); /* has none */
    expect_texts_with("FAKE_CUDA_FAIL", "cublasLtCreate:1");
    expect_texts_with("FAKE_CUDA_FAIL", "cublasLtMatmulAlgoGetHeuristic:15");
    expect_texts_with("FAKE_CUDA_FAIL", "cublasLtMatmul:13");
    assert_int_equal(fake_cuda_alive(), 0);
}

/* ---- As a session has it --------------------------------------------------------------------- */

static void note(void *user, tssa_log_level level, const char *message)
{
    (void)level;
    if (strstr(message, "cuBLASLt"))
        snprintf(user, 300, "%s", message);
}

/* [64, 512] by [512, 256] in a few runs, the later of which are recorded, with the same bits. What
 * was said of the library, in `said`. */
static void run_session(char said[300])
{
    enum { RUNS = 5 };
    struct onnx_model model;
    struct model_run run = {.input_count = 2, .output_count = 1};
    struct random random = {6};
    struct arena arena;
    size_t size;
    float first[64 * 256];
    const tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .log = note, .log_user = said};
    const tssa_session_options on_card = {.struct_size = sizeof on_card, .device = "cuda"};
    said[0] = '\0';
    model_init(&model, 8, 18);
    model_input(&model, model.graph, "a", TSSA_FLOAT, "64,512");
    model_input(&model, model.graph, "b", TSSA_FLOAT, "512,256");
    model_node(&model, model.graph, "MatMul", "a,b", "c");
    model_output(&model, model.graph, "c", TSSA_FLOAT, "64,256");
    const void *bytes = model_pack(&model, &size);
    no_error(tssa_context_create(&options, &run.context));
    no_error(tssa_model_load_memory(run.context, bytes, size, NULL, &run.model));
    no_error(tssa_session_create(run.model, &on_card, &run.session));
    run.inputs = xcalloc(2, sizeof(tssa_value *));
    run.outputs = xcalloc(1, sizeof(tssa_value *));
    arena_init(&arena, &allocator_default);
    for (size_t i = 0; i < 2; i++) {
        struct value value;
        fill(&value, &arena, &random, TSSA_FLOAT, 2,
             (const int64_t[]){i ? 512 : 64, i ? 256 : 512});
        no_error(model_run_set_input(&run, i, &value));
    }
    for (int i = 0; i < RUNS; i++) {
        no_error(model_run_execute(&run));
        const struct tensor *made = &model_run_output(&run, 0)->tensor;
        assert_int_equal(tensor_bytes(made), sizeof first);
        if (i == 0)
            memcpy(first, made->data, sizeof first);
        assert_memory_equal(made->data, first, sizeof first);
        tssa_value_free(run.outputs[0]);
        run.outputs[0] = NULL;
    }
    tssa_session_work work;
    no_error(tssa_session_counts(run.session, &work));
    assert_int_equal(work.library_calls, said[0] ? 0 : 1);
    model_run_close(&run);
    model_free(&model);
    arena_clear(&arena);
}

static void test_sessions(void **state)
{
    char said[300];
    (void)state;
    run_session(said);
    assert_string_equal(said, "");
    setenv("TSSA_CUDA_LIBRARIES", TSSA_BUILD_DIR "/tests/fake_cuda_old", 1);
    run_session(said);
    assert_string_equal(said, "no cuBLASLt: libcublasLt.so.13 does not open in " TSSA_BUILD_DIR
                              "/tests/fake_cuda_old, which TSSA_CUDA_LIBRARIES names: large "
                              "matrix products run on built-in kernels, which are slower");
    fake_cuda_use(true);
    assert_int_equal(fake_cuda_alive(), 0);
}

/* ---- As a kernel calls it -------------------------------------------------------------------- */

static struct library_problem problem_of(int64_t m, int64_t n, int64_t k)
{
    struct library_problem problem;
    memset(&problem, 0, sizeof problem);
    problem.kind = LIBRARY_MATMUL;
    problem.dtype = TSSA_FLOAT;
    problem.matmul = (struct matmul_problem){
        .batch = 1, .m = m, .n = n, .k = k, .a_row = k, .a_column = 1, .b_row = n, .b_column = 1};
    return problem;
}

static void test_what_is_worth_it(void **state)
{
    static const struct {
        int64_t m, n, k;
        bool worth;
    } cases[] = {{1, 2048, 256, false}, {1, 1 << 20, 512, false}, {4096, 4096, 0, false},
                 {64, 64, 64, false},   {50, 1024, 256, true},    {512, 512, 512, true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct library_problem problem = problem_of(cases[i].m, cases[i].n, cases[i].k);
        assert_int_equal(cuda()->library->is_worth_it(&problem), cases[i].worth);
    }
}

/* Two products, the second of which lies at `offset` bytes. */
enum { SIDE = 20, BYTES = SIDE * SIDE * sizeof(float), ROOM = BYTES + 16 };

struct scene {
    struct test_alloc alloc;
    struct device_context context;
    struct device_stream *stream;
    struct library_primitive *made;
    void *a, *b, *c, *scratch;
    size_t scratch_bytes;
};

static struct device_place at(void *memory, size_t offset)
{
    return (struct device_place){memory, offset};
}

/* *done: the library has computed it. */
static tssa_status *run_scene(struct scene *s, size_t offset, float *c, bool *done)
{
    const struct library_problem problem = problem_of(SIDE, SIDE, SIDE);
    float a[SIDE * SIDE], b[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) {
        a[i] = (float)(i % 7);
        b[i] = (float)(i % 5);
    }
    TRY(device_context_connect(&s->context));
    TRY(cuda()->stream_open(&s->context, &s->stream));
    s->a = cuda()->allocate(s->stream, ROOM);
    s->b = cuda()->allocate(s->stream, ROOM);
    s->c = cuda()->allocate(s->stream, ROOM);
    if (!s->a || !s->b || !s->c)
        return status_out_of_memory();
    s->made = cuda()->library->make(&s->context, &problem);
    if (!s->made)
        return NULL;
    s->scratch_bytes = s->made->scratch_bytes;
    s->scratch = cuda()->allocate(s->stream, s->scratch_bytes);
    TRY_ALLOC(s->scratch);
    TRY(cuda()->copy(s->stream, DEVICE_COPY_IN, at(s->a, offset), at(a, 0), BYTES));
    TRY(cuda()->copy(s->stream, DEVICE_COPY_IN, at(s->b, 0), at(b, 0), BYTES));
    const struct library_call call = {.operands = {at(s->a, offset), at(s->b, 0)},
                                      .result = at(s->c, 0),
                                      .scratch = at(s->scratch, 0)};
    *done = s->made->table->run(s->made, s->stream, &call);
    return *done ? cuda()->copy(s->stream, DEVICE_COPY_OUT, at(c, 0), at(s->c, 0), BYTES) : NULL;
}

static void close_scene(struct scene *s)
{
    if (s->made)
        s->made->table->release(s->made);
    if (s->stream) {
        cuda()->release(s->stream, s->a, ROOM);
        cuda()->release(s->stream, s->b, ROOM);
        cuda()->release(s->stream, s->c, ROOM);
        cuda()->release(s->stream, s->scratch, s->scratch_bytes);
    }
    cuda()->stream_close(s->stream);
    device_context_close(&s->context);
}

/* From beginning to end, after which nothing is left. */
static tssa_status *play(size_t offset, bool *done)
{
    struct scene scene = {0};
    float c[SIDE * SIDE];
    *done = false;
    test_alloc_init(&scene.alloc);
    device_context_open(&scene.context, cuda(), &scene.alloc.allocator, NULL);
    scene.context.host = test_device();
    tssa_status *status = run_scene(&scene, offset, c, done);
    close_scene(&scene);
    assert_int_equal(scene.alloc.live, 0);
    assert_int_equal(fake_cuda_alive(), 0);
    for (int i = 0; !status && *done && i < SIDE * SIDE; i++) {
        float sum = 0;
        for (int k = 0; k < SIDE; k++)
            sum += (float)((i / SIDE * SIDE + k) % 7 * ((k * SIDE + i % SIDE) % 5));
        assert_true(c[i] == sum);
    }
    return status;
}

/* What does not lie as it was promised is declined. */
static void test_alignment(void **state)
{
    bool done;
    (void)state;
    no_error(play(16, &done));
    assert_true(done);
    no_error(play(4, &done));
    assert_false(done);
}

/* It is an error of one line, or the library has not computed it, or nothing needed the call. */
static void test_each_call_fails_once(void **state)
{
    const unsigned long before = fake_cuda_calls();
    unsigned told = 0, declined = 0;
    bool done;
    (void)state;
    no_error(play(0, &done));
    const unsigned long calls = fake_cuda_calls() - before;
    for (unsigned long i = 0; i < calls; i++) {
        fake_cuda_fail_at(fake_cuda_calls() + i, 999);
        tssa_status *status = play(0, &done);
        if (status)
            assert_null(strchr(tssa_status_message(status), '\n'));
        told += status != NULL;
        declined += !status && !done;
        tssa_status_free(status);
    }
    fake_cuda_fail_at(-1ul, 0);
    assert_true(told > 5 && declined > 15);
    no_error(play(0, &done));
    assert_true(done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matmul), cmocka_unit_test(test_gemm),
                                       cmocka_unit_test(test_alignment)},
                            fakes[] = {cmocka_unit_test(test_what_fails_is_computed_by_texts),
                                       cmocka_unit_test(test_sessions),
                                       cmocka_unit_test(test_what_is_worth_it),
                                       cmocka_unit_test(test_each_call_fails_once)};
    fake_cuda_use(true);
    const int failed = test_card() ? 0 : cmocka_run_group_tests(fakes, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL) + failed;
}
