/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of the device `cuda` by cuDNN, on the fakes (tests/cuda), whose engine with tensor
 * cores would not pass: random ones against the CPU, turned or not, with groups and a bias; what is
 * too small for it, or lies where it is not taken; none installed; and each call failing once.
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

struct convolution {
    int rank, type;
    bool turned, biased;
    int64_t groups, stride, dilation;
};

/* Of `rank` spatial axes: "[A0, A1, ...]". */
static void print_dims(char *text, size_t size, char name, int rank)
{
    size_t at = (size_t)snprintf(text, size, "[%c, %c%c", name, name, name);
    for (int i = 0; i < rank; i++)
        at += (size_t)snprintf(text + at, size - at, ", %c%d", name, i);
    snprintf(text + at, size - at, "]");
}

static void print_all(char *text, size_t size, int64_t value, int n)
{
    size_t at = 0;
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%d", i ? ", " : "", (int)value);
}

static void open_convolution(struct grids_run *run, const struct convolution *c)
{
    char program[900], x[60], w[60], strides[20], dilations[20], pads[40];
    print_dims(x, sizeof x, 'X', c->rank);
    print_dims(w, sizeof w, 'W', c->rank);
    print_all(strides, sizeof strides, c->stride, c->rank);
    print_all(dilations, sizeof dilations, c->dilation, c->rank);
    print_all(pads, sizeof pads, 1, 2 * c->rank);
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 22) ir_version(10) (%%x: %s%s, %%w: %s%s, %%b: %s[F]) -> (%%y) "
             "{\n"
             "  %%y = %s@22(%%x, %%w%s) {group = %d, strides = [%s], dilations = [%s], pads = "
             "[%s]}\n"
             "  return(%%y)\n"
             "}\n",
             names[c->type], x, names[c->type], w, names[c->type],
             c->turned ? "ConvTranspose" : "Conv", c->biased ? ", %b" : "", (int)c->groups, strides,
             dilations, pads);
    grids_run_open(run, "cuda", program);
}

/* Library calls, of one that is large enough. */
static uint64_t convolve(const struct convolution *c, struct operands *o)
{
    static const int64_t sides[] = {1900, 27, 7};
    enum { CHANNELS = 24, FILTERS = 32 };
    struct grids_run run;
    int64_t x[5] = {2, CHANNELS}, w[5];
    const int64_t bias = FILTERS;
    w[0] = c->turned ? CHANNELS : FILTERS;
    w[1] = (c->turned ? FILTERS : CHANNELS) / c->groups;
    for (int i = 0; i < c->rank; i++) {
        x[2 + i] = sides[c->rank - 1] + random_int(&o->random, 0, 2) +
                   (c->turned ? 0 : sides[c->rank - 1] * (c->stride - 1));
        w[2 + i] = 3;
    }
    open_convolution(&run, c);
    operands_add_numbers(o, types[c->type], c->rank + 2, x);
    operands_add_numbers(o, types[c->type], c->rank + 2, w);
    operands_add_numbers(o, types[c->type], 1, &bias);
    assert_true(grids_run_go(&run, o->given));
    operands_expect_close(&run, 0, tolerances[c->type]);
    const uint64_t calls = run.counts.library_calls;
    operands_clear(o);
    grids_run_close(&run);
    return calls;
}

static void test_convolutions(void **state)
{
    struct operands o;
    (void)state;
    operands_open(&o, 3);
    for (int i = 0; i < 12 * TYPES; i++) {
        const struct convolution c = {.rank = i % 3 + 1,
                                      .type = i / 3 % TYPES,
                                      .turned = i / (3 * TYPES) % 2,
                                      .biased = i / (6 * TYPES) % 2,
                                      .groups = i % 4 == 3 ? 2 : 1,
                                      .stride = i % 5 == 0 ? 2 : 1,
                                      .dilation = i % 7 == 0 ? 2 : 1};
        /* a launch behind the call would add the bias to what is rounded */
        const bool declined = c.turned && c.biased && tssa_dtype_size(types[c.type]) == 2;
        assert_int_equal(convolve(&c, &o), !declined);
    }
}

/* A Conv of 24 channels, with what follows it; library calls and launches are told. */
static void follow(struct operands *o, int type, bool biased, bool adds, bool clips,
                   struct device_counts *counts)
{
    static const int64_t x[] = {2, 24, 27, 28}, w[] = {32, 24, 3, 3}, y[] = {2, 32, 25, 26},
                         bias = 32;
    const char *name = names[type];
    char program[1200];
    struct grids_run run;
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 22) ir_version(10) (%%x: %s[2, 24, 27, 28], %%w: %s[32, 24, 3, "
             "3], %%b: %s[32], %%z: %s[2, 32, 25, 26]) -> (%%y) {\n"
             "  %%y = fuse(%%x, %%w%s, %%z) {\n"
             "    body(%%x1: %s[2, 24, 27, 28], %%w1: %s[32, 24, 3, 3]%s%s%s, %%z1: %s[2, 32, 25, "
             "26]) {\n"
             "      %%c = Conv@22(%%x1, %%w1%s)\n%s%s"
             "      return(%s)\n    }\n  }\n  return(%%y)\n}\n",
             name, name, name, name, biased ? ", %b" : "", name, name, biased ? ", %b1: " : "",
             biased ? name : "", biased ? "[32]" : "", name, biased ? ", %b1" : "",
             adds ? "%s = Add@14(%c, %z1)\n" : "",
             clips ? (adds ? "%r = Relu@14(%s)\n" : "%r = Relu@14(%c)\n") : "",
             clips ? "%r" : "%s");
    grids_run_open(&run, "cuda", program);
    operands_add_numbers(o, types[type], 4, x);
    operands_add_numbers(o, types[type], 4, w);
    operands_add_numbers(o, types[type], 1, &bias);
    operands_add_numbers(o, types[type], 4, y);
    assert_true(grids_run_go(&run, o->given));
    operands_expect_close(&run, 0, 2 * tolerances[type]);
    *counts = run.counts;
    operands_clear(o);
    grids_run_close(&run);
}

/* One call where there is a bias, else a launch behind it. */
static void test_what_follows(void **state)
{
    struct operands o;
    (void)state;
    operands_open(&o, 8);
    for (int i = 0; i < 6 * TYPES; i++) {
        struct device_counts counts;
        const bool biased = i / TYPES % 2;
        follow(&o, i % TYPES, biased, i / TYPES / 2 != 1, i / TYPES / 2 != 2, &counts);
        assert_int_equal(counts.library_calls, 1);
        assert_int_equal(counts.launches, !biased);
    }
}

/* Texts compute it then. */
static void expect_texts_with(const char *name, const char *value)
{
    const struct convolution c = {
        .rank = 2, .biased = true, .groups = 1, .stride = 1, .dilation = 1};
    struct operands o;
    operands_open(&o, 5);
    setenv(name, value, 1);
    assert_int_equal(convolve(&c, &o), 0);
    unsetenv(name);
    fake_cuda_use(true);
}

static void test_what_fails_is_computed_by_texts(void **state)
{
    (void)state;
    expect_texts_with("TSSA_CUDA_LIBRARIES", TSSA_BUILD_DIR "/tests/fake_cuda_old"); /* has none */
    expect_texts_with("FAKE_CUDA_FAIL", "cudnnCreate:1001");
    expect_texts_with("FAKE_CUDA_FAIL", "cudnnBackendFinalize:2000");
    expect_texts_with("FAKE_CUDA_FAIL", "cudnnBackendExecute:3000");
    assert_int_equal(fake_cuda_alive(), 0);
}

/* ---- As a session calls it ------------------------------------------------------------------- */

static const int64_t dims[2][4] = {{1, 32, 28, 28}, {32, 32, 3, 3}};

static void make_model(struct onnx_model *model)
{
    model_init(model, 8, 18);
    model_input(model, model->graph, "x", TSSA_FLOAT, "1,32,28,28");
    model_input(model, model->graph, "w", TSSA_FLOAT, "32,32,3,3");
    model_attr_ints(model, model_node(model, model->graph, "Conv", "x,w", "y"), "pads", "1,1,1,1");
    model_output(model, model->graph, "y", TSSA_FLOAT, "1,32,28,28");
}

static void run_session(char said[LIBRARY_SAID])
{
    struct onnx_model model;
    tssa_session_work work;
    make_model(&model);
    library_session_run(&model, 4, dims, "cuDNN", said, &work);
    assert_int_equal(work.library_calls, said[0] ? 0 : 1);
    assert_int_equal(work.replays, 1);
}

static void test_sessions(void **state)
{
    char said[LIBRARY_SAID];
    (void)state;
    run_session(said);
    assert_string_equal(said, "");
    setenv("TSSA_CUDA_LIBRARIES", TSSA_BUILD_DIR "/tests/fake_cuda_old", 1);
    run_session(said);
    assert_string_equal(said, "no cuDNN: libcudnn.so.9 does not open in " TSSA_BUILD_DIR
                              "/tests/fake_cuda_old, which TSSA_CUDA_LIBRARIES names: large "
                              "convolutions run on built-in kernels, which are slower");
    fake_cuda_use(true);
    assert_int_equal(fake_cuda_alive(), 0);
}

/* A small Conv, which is a text's, and a Relu are one launch. */
static void test_a_relu_follows(void **state)
{
    static const int64_t small[2][4] = {{1, 2, 8, 8}, {3, 2, 3, 3}};
    struct onnx_model model;
    char said[LIBRARY_SAID];
    tssa_session_work work;
    (void)state;
    model_init(&model, 8, 18);
    model_input(&model, model.graph, "x", TSSA_FLOAT, "1,2,8,8");
    model_input(&model, model.graph, "w", TSSA_FLOAT, "3,2,3,3");
    model_node(&model, model.graph, "Conv", "x,w", "c");
    model_node(&model, model.graph, "Relu", "c", "y");
    model_output(&model, model.graph, "y", TSSA_FLOAT, "1,3,6,6");
    library_session_run(&model, 4, small, "cuDNN", said, &work);
    assert_int_equal(work.launches, 1);
    assert_int_equal(work.library_calls, 0);
    assert_int_equal(fake_cuda_alive(), 0);
}

/* A corner meets 2 by 2 elements of each channel. */
static void test_tf32(void **state)
{
    (void)state;
    for (int allowed = 0; allowed < 2; allowed++) {
        struct onnx_model model;
        make_model(&model);
        assert_true(library_session_first(&model, 4, dims, allowed) ==
                    (allowed ? 128 : 128 + 128 * 0x1p-12f));
    }
    assert_int_equal(fake_cuda_alive(), 0);
}

/* ---- As a kernel calls it -------------------------------------------------------------------- */

/* Of sides that a kernel of 3 by 3 leaves as they are. */
static struct library_problem problem_of(int64_t channels, int64_t filters, int64_t side)
{
    struct library_problem problem;
    memset(&problem, 0, sizeof problem);
    problem.kind = LIBRARY_CONV;
    problem.dtype = TSSA_FLOAT;
    problem.conv = (struct conv_problem){.rank = 2,
                                         .batch = 1,
                                         .groups = 1,
                                         .in_channels = channels,
                                         .out_channels = filters,
                                         .in = {side, side},
                                         .out = {side, side},
                                         .kernel = {3, 3},
                                         .stride = {1, 1},
                                         .dilation = {1, 1},
                                         .pad_begin = {1, 1},
                                         .pad_end = {1, 1}};
    return problem;
}

static void test_what_is_worth_it(void **state)
{
    static const struct {
        int64_t channels, filters, side;
        bool worth;
    } cases[] = {{3, 8, 20, false},
                 {0, 512, 300, false},
                 {64, 64, 0, false},
                 {64, 64, 56, true},
                 {3, 32, 112, true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct library_problem problem =
            problem_of(cases[i].channels, cases[i].filters, cases[i].side);
        assert_int_equal(cuda()->library->is_worth_it(&problem), cases[i].worth);
    }
}

enum { SIDE = 12 };

/* What is around an element. */
static float sum_around(int i)
{
    float sum = 0;
    for (int row = i / SIDE - 1; row <= i / SIDE + 1; row++)
        for (int column = i % SIDE - 1; column <= i % SIDE + 1; column++)
            if (row >= 0 && row < SIDE && column >= 0 && column < SIDE)
                sum += (float)((row * SIDE + column) % 7);
    return sum;
}

/* A channel of each. */
static void make_scene(struct library_scene *scene)
{
    *scene = (struct library_scene){
        .problem = problem_of(1, 1, SIDE), .n = {SIDE * SIDE, 9}, .n_result = SIDE * SIDE};
    for (int i = 0; i < 9; i++)
        scene->operands[1][i] = 1;
    for (int i = 0; i < SIDE * SIDE; i++) {
        scene->operands[0][i] = (float)(i % 7);
        scene->wanted[i] = sum_around(i);
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
    library_scene_fails_once(&scene, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_convolutions),
                                       cmocka_unit_test(test_what_follows),
                                       cmocka_unit_test(test_alignment)},
                            fakes[] = {cmocka_unit_test(test_what_fails_is_computed_by_texts),
                                       cmocka_unit_test(test_sessions),
                                       cmocka_unit_test(test_a_relu_follows),
                                       cmocka_unit_test(test_tf32),
                                       cmocka_unit_test(test_what_is_worth_it),
                                       cmocka_unit_test(test_each_call_fails_once)};
    fake_cuda_use(true);
    const int failed = test_card() ? 0 : cmocka_run_group_tests(fakes, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL) + failed;
}
