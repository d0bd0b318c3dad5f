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
#include "common/grid_operands.h"
#include "common/library_calls.h"
#include "common/test_card.h"
#include "device/device.h"
#include "device/library.h"

static const struct device *cuda(void)
{
    return device_find("cuda");
}

/* ---- As a program calls it ------------------------------------------------------------------- */

enum { TYPES = 4 };
static const char *const names[] = {"f32", "f64", "f16", "bf16"};
static const tssa_dtype types[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16, TSSA_BFLOAT16};
/* Of two-byte floats: sums that lie between two of them are rounded to either. */
static const double tolerances[] = {1e-4, 1e-12, 1e-3, 8e-3};

/* Of 2 to 3 matrices, of which the left ones, or the right ones, may be the same one. */
static void matmul(int t, int one, struct operands *o)
{
    char program[300];
    struct grids_run run;
    const int64_t batch = random_int(&o->random, 2, 3), m = random_int(&o->random, 90, 130),
                  n = random_int(&o->random, 90, 130), k = random_int(&o->random, 260, 300);
    snprintf(
        program, sizeof program,
        "graph @g opset(\"\": 18) ir_version(8) (%%a: %s[A, M, K], %%b: %s[B, K, N]) -> (%%c) {\n"
        "  %%c = MatMul@13(%%a, %%b)\n"
        "  return(%%c)\n"
        "}\n",
        names[t], names[t]);
    grids_run_open(&run, "cuda", program);
    operands_add_numbers(o, types[t], 3, (const int64_t[]){one == 1 ? 1 : batch, m, k});
    operands_add_numbers(o, types[t], 3, (const int64_t[]){one == 2 ? 1 : batch, k, n});
    assert_true(grids_run_go(&run, o->given));
    assert_int_equal(run.counts.library_calls, 1);
    operands_expect_close(&run, 0, tolerances[t]);
    grids_run_close(&run);
    operands_clear(o);
}

static void test_matmul(void **state)
{
    struct operands o;
    (void)state;
    operands_open(&o, 3);
    for (int t = 0; t < TYPES; t++)
        for (int one = 0; one < 3; one++)
            matmul(t, one, &o);
}

/* Library calls, of a Gemm with factors and a C. */
static uint64_t gemm(int t, bool turn_a, bool turn_b, struct operands *o)
{
    char program[400];
    struct grids_run run;
    const int64_t m = random_int(&o->random, 100, 200), n = random_int(&o->random, 150, 200),
                  k = random_int(&o->random, 280, 300);
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 18) ir_version(8) (%%a: %s[P, Q], %%b: %s[R, S], %%c: %s[N]) -> "
             "(%%y) {\n"
             "  %%y = Gemm@13(%%a, %%b, %%c) {transA = %d, transB = %d, alpha = 1.5, beta = -0.3}\n"
             "  return(%%y)\n"
             "}\n",
             names[t], names[t], names[t], turn_a, turn_b);
    grids_run_open(&run, "cuda", program);
    operands_add_numbers(o, types[t], 2, (const int64_t[]){turn_a ? k : m, turn_a ? m : k});
    operands_add_numbers(o, types[t], 2, (const int64_t[]){turn_b ? n : k, turn_b ? k : n});
    operands_add_numbers(o, types[t], 1, &n);
    assert_true(grids_run_go(&run, o->given));
    operands_expect_close(&run, 0, tolerances[t]);
    const uint64_t calls = run.counts.library_calls;
    grids_run_close(&run);
    operands_clear(o);
    return calls;
}

static void test_gemm(void **state)
{
    struct operands o;
    (void)state;
    operands_open(&o, 4);
    for (int i = 0; i < 4 * TYPES; i++)
        assert_int_equal(gemm(i >> 2, i & 1, i >> 1 & 1, &o), 1);
}

/* 2049 is no f16, but the sum is not rounded before C is added. */
static void test_sums_of_halves_are_rounded_once(void **state)
{
    static const int64_t dims[][2] = {{50, 2049}, {2049, 60}, {1, 1}};
    struct operands o;
    struct grids_run run;
    (void)state;
    grids_run_open(&run, "cuda",
                   "graph @g opset(\"\": 18) ir_version(8) (%a: f16[M, K], %b: f16[K, N], %c: "
                   "f16[1, 1]) -> (%y) {\n"
                   "  %y = Gemm@13(%a, %b, %c)\n"
                   "  return(%y)\n"
                   "}\n");
    operands_open(&o, 14);
    for (int i = 0; i < 3; i++) {
        struct tensor *operand = operands_add(&o, TSSA_FLOAT16, 2, dims[i]);
        for (size_t k = 0; k < tensor_count(operand); k++)
            dtype_store_double(TSSA_FLOAT16, (uint16_t *)operand->data + k, i == 2 ? -2048 : 1);
    }
    grids_run_same(&run, o.given);
    assert_int_equal(run.counts.library_calls, 1);
    assert_true(dtype_load_double(TSSA_FLOAT16, run.made[0].tensor.data) == 1);
    operands_clear(&o);
    grids_run_close(&run);
}

/* Texts compute it then. */
static void expect_texts_with(const char *name, const char *value)
{
    struct operands o;
    operands_open(&o, 5);
    setenv(name, value, 1);
    assert_int_equal(gemm(0, false, true, &o), 0);
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

static const int64_t dims[2][4] = {{64, 512}, {512, 256}};

static void make_model(struct onnx_model *model)
{
    model_init(model, 8, 18);
    model_input(model, model->graph, "a", TSSA_FLOAT, "64,512");
    model_input(model, model->graph, "b", TSSA_FLOAT, "512,256");
    model_node(model, model->graph, "MatMul", "a,b", "c");
    model_output(model, model->graph, "c", TSSA_FLOAT, "64,256");
}

static void run_session(char said[LIBRARY_SAID])
{
    struct onnx_model model;
    tssa_session_work work;
    make_model(&model);
    library_session_run(&model, 2, dims, "cuBLASLt", said, &work);
    assert_int_equal(work.library_calls, said[0] ? 0 : 1);
}

static void test_sessions(void **state)
{
    char said[LIBRARY_SAID];
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

static void test_tf32(void **state)
{
    (void)state;
    for (int allowed = 0; allowed < 2; allowed++) {
        struct onnx_model model;
        make_model(&model);
        assert_true(library_session_first(&model, 2, dims, allowed) ==
                    (allowed ? 512 : 512 + 512 * 0x1p-12f));
    }
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

enum { SIDE = 20 };

static void make_scene(struct library_scene *scene)
{
    *scene = (struct library_scene){.problem = problem_of(SIDE, SIDE, SIDE),
                                    .n = {SIDE * SIDE, SIDE * SIDE},
                                    .n_result = SIDE * SIDE};
    for (int i = 0; i < SIDE * SIDE; i++) {
        scene->operands[0][i] = (float)(i % 7);
        scene->operands[1][i] = (float)(i % 5);
        for (int k = 0; k < SIDE; k++)
            scene->wanted[i] += (float)((i / SIDE * SIDE + k) % 7 * ((k * SIDE + i % SIDE) % 5));
    }
}

static void test_alignment(void **state)
{
    struct library_scene scene;
    (void)state;
    make_scene(&scene);
    library_scene_lies_badly(&scene);
}

static void test_each_call_fails_once(void **state)
{
    struct library_scene scene;
    (void)state;
    make_scene(&scene);
    library_scene_fails_once(&scene, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matmul), cmocka_unit_test(test_gemm),
                                       cmocka_unit_test(test_sums_of_halves_are_rounded_once),
                                       cmocka_unit_test(test_alignment)},
                            fakes[] = {cmocka_unit_test(test_what_fails_is_computed_by_texts),
                                       cmocka_unit_test(test_sessions), cmocka_unit_test(test_tf32),
                                       cmocka_unit_test(test_what_is_worth_it),
                                       cmocka_unit_test(test_each_call_fails_once)};
    fake_cuda_use(true);
    const int failed = test_card() ? 0 : cmocka_run_group_tests(fakes, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL) + failed;
}
