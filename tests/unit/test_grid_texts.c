/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of devices that launch grids, written as text (kernels/grids), on random operands: they
 * give what the CPU gives, the same errors included, on `opencl`, where there is one, and on
 * `cuda`, on a fake driver, in whatever order threads run. NVRTC takes them, and a strict compiler
 * of OpenCL C.
 */
/* ctest-timeout: 600 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/grid_operands.h"
#include "common/grids_run.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/opencl_c.h"
#include "common/shim_cuda.h"
#include "device/cuda/nvrtc.h"
#include "device/grids/texts.h"

#define ROUNDS GRIDS_ROUNDS(60)

/* ---- Elements that are moved ----------------------------------------------------------------- */

/* Of every size that words have. */
static const tssa_dtype moved_types[] = {TSSA_BOOL,   TSSA_INT8,   TSSA_FLOAT16,  TSSA_INT32,
                                         TSSA_DOUBLE, TSSA_UINT64, TSSA_COMPLEX64};
#define MOVED_TYPES (sizeof moved_types / sizeof *moved_types)

/* 1 or so many, at times none. */
static int64_t one_or(struct operands *o, int64_t size)
{
    return random_chance(&o->random, 30) ? 1 : random_chance(&o->random, 3) ? 0 : size;
}

static void test_expand(void **state)
{
    for (size_t t = 0; t < MOVED_TYPES; t++) {
        struct grids_run run;
        struct operands o;
        grids_run_open_typed(
            &run, *state,
            "graph @g opset(\"\": 18) ir_version(8) (%x: @@@[A, B, C], %s: i64[4]) -> (%y) {\n"
            "  %y = Expand@13(%x, %s): @@@[D, E, F, G]\n"
            "  return(%y)\n"
            "}\n",
            dtype_info(moved_types[t])->ir_name);
        operands_open(&o, 11 + t);
        for (int i = 0; i < ROUNDS / 4; i++) {
            const int64_t dims[] = {operands_size(&o), 5, random_int(&o.random, 1, 70)};
            operands_add_bits(
                &o, moved_types[t], 3,
                (const int64_t[]){one_or(&o, dims[0]), one_or(&o, 5), one_or(&o, dims[2])}, 80);
            operands_add_ints(&o, 4,
                              (const int64_t[]){one_or(&o, 3), one_or(&o, dims[0]), one_or(&o, 5),
                                                one_or(&o, dims[2])});
            grids_run_same(&run, o.given);
            operands_clear(&o);
        }
        grids_run_close(&run);
    }
}

static void test_constant_of_shape(void **state)
{
    struct grids_run run;
    struct operands o;
    grids_run_open(&run, *state,
                   "graph @g opset(\"\": 18) ir_version(8) (%s: i64[2]) -> (%a, %b, %c, %d) {\n"
                   "  %a = ConstantOfShape@9(%s) {value = f64[1] [-0.1]}: f64[M, N]\n"
                   "  %b = ConstantOfShape@9(%s) {value = bool[1] [true]}: bool[M, N]\n"
                   "  %c = ConstantOfShape@9(%s): f32[M, N]\n"
                   "  %d = ConstantOfShape@9(%s) {value = i16[1] [-3]}: i16[M, N]\n"
                   "  return(%a, %b, %c, %d)\n"
                   "}\n");
    operands_open(&o, 21);
    for (int i = 0; i < ROUNDS / 4; i++) {
        operands_add_ints(&o, 2, (const int64_t[]){operands_size(&o), operands_size(&o)});
        grids_run_same(&run, o.given);
        operands_clear(&o);
    }
    operands_add_ints(&o, 2, (const int64_t[]){3, -1});
    grids_run_same(&run, o.given);
    operands_clear(&o);
    grids_run_close(&run);
}

/* ---- What is kept ---------------------------------------------------------------------------- */

static void test_non_zero(void **state)
{
    for (size_t t = 0; t < MOVED_TYPES; t++) {
        struct grids_run run;
        struct operands o;
        grids_run_open_typed(
            &run, *state,
            "graph @g opset(\"\": 18) ir_version(8) (%x: @@@[A], %y: @@@[A, B, C], %z: @@@[]) "
            "-> (%a, %b, %c) {\n"
            "  %a = NonZero@13(%x)\n"
            "  %b = NonZero@13(%y)\n"
            "  %c = NonZero@13(%z)\n"
            "  return(%a, %b, %c)\n"
            "}\n",
            dtype_info(moved_types[t])->ir_name);
        operands_open(&o, 31 + t);
        for (int i = 0; i < ROUNDS / 4; i++) {
            const int64_t n = operands_length(&o);
            const int percent = (int)random_int(&o.random, 0, 100);
            operands_add_bits(&o, moved_types[t], 1, &n, percent);
            operands_add_bits(
                &o, moved_types[t], 3,
                (const int64_t[]){n, random_int(&o.random, 1, 4), random_int(&o.random, 1, 3)},
                percent);
            operands_add_bits(&o, moved_types[t], 0, &n, percent);
            grids_run_same(&run, o.given);
            operands_clear(&o);
        }
        grids_run_close(&run);
    }
}

/* More than are numbered before they are counted, and more than are counted at once. */
static void test_many(void **state)
{
    static const int64_t lengths[] = {65536, 65537, 262144, 262145, 700000};
    struct grids_run run;
    struct operands o;
    grids_run_open(&run, *state,
                   "graph @g opset(\"\": 18) ir_version(8) (%x: i8[A, B], %y: bool[C]) -> (%a, "
                   "%b, %c) {\n"
                   "  %a = NonZero@13(%x)\n"
                   "  %b = NonZero@13(%y)\n"
                   "  %c = Compress@11(%y, %y) {axis = 0}\n"
                   "  return(%a, %b, %c)\n"
                   "}\n");
    operands_open(&o, 41);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        operands_add_bits(&o, TSSA_INT8, 2, (const int64_t[]){lengths[i] / 500, 1000}, 50);
        operands_add_bits(&o, TSSA_BOOL, 1, &lengths[i], i & 1 ? 50 : 0);
        grids_run_same(&run, o.given);
        operands_clear(&o);
    }
    grids_run_close(&run);
}

static void test_compress(void **state)
{
    for (size_t t = 0; t < MOVED_TYPES; t++) {
        struct grids_run run;
        struct operands o;
        grids_run_open_typed(
            &run, *state,
            "graph @g opset(\"\": 18) ir_version(8) (%x: @@@[A, B, C], %m: bool[N]) -> (%a, %b, "
            "%c, %d) {\n"
            "  %a = Compress@11(%x, %m) {axis = 0}\n"
            "  %b = Compress@11(%x, %m) {axis = 1}\n"
            "  %c = Compress@11(%x, %m) {axis = -1}\n"
            "  %d = Compress@11(%x, %m)\n"
            "  return(%a, %b, %c, %d)\n"
            "}\n",
            dtype_info(moved_types[t])->ir_name);
        operands_open(&o, 51 + t);
        for (int i = 0; i < ROUNDS / 2; i++) {
            const int64_t n = random_int(&o.random, 1, 12), length = operands_length(&o) / 12 + 1;
            const bool behind = random_chance(&o.random, 20); /* an error, unless nothing is true */
            const int64_t masked = behind ? n + 3 : random_int(&o.random, 0, n);
            operands_add_bits(&o, moved_types[t], 3,
                              (const int64_t[]){n + random_int(&o.random, 0, length), n, n + 1},
                              80);
            operands_add_bits(&o, TSSA_BOOL, 1, &masked,
                              (int)random_int(&o.random, 0, behind ? 30 : 100));
            grids_run_same(&run, o.given);
            operands_clear(&o);
        }
        grids_run_close(&run);
    }
}

/* Several lists are one op: small ones, of which a block has each, ones with many units, and more
 * than are numbered before they are counted. */
static void test_found_lists(void **state)
{
    static const int64_t rows[] = {0, 1, 60, 1000, 3000, 14000};
    struct grids_run run;
    struct operands o;
    grids_run_open(&run, *state,
                   "graph @g opset(\"\": 18) ir_version(8) (%x: bool[A], %y: bool[B, C], "
                   "%z: bool[D, E]) -> (%a, %b, %c) {\n"
                   "  %a, %b, %c = fuse(%x, %y, %z) {\n"
                   "    body(%p: bool[A], %q: bool[B, C], %r: bool[D, E]) {\n"
                   "      %s = NonZero@13(%p)\n"
                   "      %t = NonZero@13(%q)\n"
                   "      %u = NonZero@13(%r)\n"
                   "      return(%s, %t, %u)\n"
                   "    }\n"
                   "  }\n"
                   "  return(%a, %b, %c)\n"
                   "}\n");
    operands_open(&o, 43);
    for (size_t i = 0; i < 3 * sizeof rows / sizeof *rows; i++) {
        const int percent = i % 3 == 0 ? 0 : (int)random_int(&o.random, 1, 100);
        const int64_t n = operands_length(&o);
        operands_add_bits(&o, TSSA_BOOL, 1, &n, percent);
        operands_add_bits(&o, TSSA_BOOL, 2, (const int64_t[]){rows[i / 3], 80}, percent);
        operands_add_bits(&o, TSSA_BOOL, 2, (const int64_t[]){operands_size(&o), operands_size(&o)},
                          50);
        grids_run_same(&run, o.given);
        assert_int_equal(run.counts.waits, 1);
        grids_expect_launches(&run, *state, 2);
        operands_clear(&o);
    }
    grids_run_close(&run);
}

/* ---- Scatter --------------------------------------------------------------------------------- */

/* Indices of dims that are at least 1, counted from the end at times; with `bad`, one that is out
 * of range. */
static void add_indices(struct operands *o, tssa_dtype dtype, int rank, const int64_t *dims,
                        const int64_t *limits, int64_t n_limits, bool bad)
{
    struct tensor *x = operands_add(o, dtype, rank, dims);
    const int64_t count = (int64_t)tensor_count(x), at = random_int(&o->random, 0, count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t limit = limits[i % n_limits];
        int64_t value = random_int(&o->random, -limit, limit - 1);
        if (bad && (i == at || i == count - 1))
            value = limit;
        dtype_store_int64(dtype, (char *)x->data + (size_t)i * tssa_dtype_size(dtype), value);
    }
}

static void expect_out_of_range(struct grids_run *run, const struct operands *o)
{
    tssa_status *status = grids_run_try(run, o->given);
    assert_non_null(strstr(tssa_status_message(status), "an index is out of range"));
    tssa_status_free(status);
}

static void scatter_nd(const char *device, size_t t)
{
    struct grids_run run;
    struct operands o;
    grids_run_open_typed(
        &run, device,
        "graph @g opset(\"\": 18) ir_version(8) (%x: @@@[A, B, C], %i: i64[N, 2], %u: @@@[N, "
        "C]) -> (%y) {\n"
        "  %y = ScatterND@18(%x, %i, %u)\n"
        "  return(%y)\n"
        "}\n",
        dtype_info(moved_types[t])->ir_name);
    operands_open(&o, 71 + t);
    for (int i = 0; i < ROUNDS / 3; i++) {
        const int64_t dims[] = {random_int(&o.random, 1, 9), random_int(&o.random, 1, 9),
                                random_int(&o.random, 0, 40)},
                      n = random_chance(&o.random, 10) ? 0 : operands_size(&o);
        const bool bad = n && random_chance(&o.random, 15);
        operands_add_bits(&o, moved_types[t], 3, dims, 80);
        add_indices(&o, TSSA_INT64, 2, (const int64_t[]){n, 2}, dims, 2, bad);
        operands_add_bits(&o, moved_types[t], 2, (const int64_t[]){n, dims[2]}, 80);
        if (bad)
            expect_out_of_range(&run, &o);
        else
            grids_run_same(&run, o.given);
        operands_clear(&o);
    }
    grids_run_close(&run);
}

static void scatter_elements(const char *device, size_t t, int axis)
{
    struct grids_run run;
    struct operands o;
    char program[400];
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 18) ir_version(8) (%%x: @@@[A, B, C], %%i: i32[D, E, F], %%u: "
             "@@@[D, E, F]) -> (%%y) {\n"
             "  %%y = ScatterElements@18(%%x, %%i, %%u) {axis = %d}\n"
             "  return(%%y)\n"
             "}\n",
             axis);
    grids_run_open_typed(&run, device, program, dtype_info(moved_types[t])->ir_name);
    operands_open(&o, 81 + t);
    for (int i = 0; i < ROUNDS / 3; i++) {
        int64_t dims[3], some[3];
        for (int k = 0; k < 3; k++) {
            dims[k] = random_int(&o.random, 1, 12);
            some[k] = random_int(&o.random, random_chance(&o.random, 5) ? 0 : 1, dims[k]);
        }
        const int at = axis < 0 ? axis + 3 : axis;
        some[at] = random_int(&o.random, 1, 20);
        const bool bad = some[0] * some[1] * some[2] > 0 && random_chance(&o.random, 15);
        operands_add_bits(&o, moved_types[t], 3, dims, 80);
        add_indices(&o, TSSA_INT32, 3, some, &dims[at], 1, bad);
        operands_add_bits(&o, moved_types[t], 3, some, 80);
        if (bad)
            expect_out_of_range(&run, &o);
        else
            grids_run_same(&run, o.given);
        operands_clear(&o);
    }
    grids_run_close(&run);
}

static void test_scatter(void **state)
{
    for (size_t t = 0; t < MOVED_TYPES; t++) {
        scatter_nd(*state, t);
        scatter_elements(*state, t, (int)(t % 4) - 1);
    }
}

/* Shapes that do not fit say what they are, as the CPU does. */
static void test_scatter_of_unlike_shapes(void **state)
{
    struct grids_run run;
    struct operands o;
    grids_run_open(&run, *state,
                   "graph @g opset(\"\": 18) ir_version(8) (%x: f32[A, B], %i: i64[N, 1], %u: "
                   "f32[M, C]) -> (%y) {\n"
                   "  %y = ScatterND@18(%x, %i, %u)\n"
                   "  return(%y)\n"
                   "}\n");
    operands_open(&o, 91);
    operands_add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){3, 4});
    add_indices(&o, TSSA_INT64, 2, (const int64_t[]){2, 1}, (const int64_t[]){3}, 1, false);
    operands_add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){2, 5});
    assert_false(grids_run_go(&run, o.given));
    operands_clear(&o);
    grids_run_close(&run);
}

/* ---- NonMaxSuppression ----------------------------------------------------------------------- */

/* Corners of a few places, so that many boxes are the same or have no area, or anywhere; one of the
 * numbers is no number, or none that ends. */
static void add_boxes(struct operands *o, int64_t batches, int64_t n)
{
    const int64_t places = random_chance(&o->random, 50) ? 6 : 2000, dims[] = {batches, n, 4};
    struct tensor *x = operands_add(o, TSSA_FLOAT, 3, dims);
    float *corners = x->data;
    for (size_t i = 0; i < tensor_count(x); i++) {
        corners[i] = (float)random_int(&o->random, -places, places) / 7;
        if (i % 4 == 2 && random_chance(&o->random, 60)) /* a small box */
            corners[i] = corners[i - 2] + (float)random_int(&o->random, 0, places) / 20;
        if (random_chance(&o->random, 1))
            corners[i] = random_chance(&o->random, 50) ? NAN : INFINITY;
    }
}

/* Few of them, so that many are equal, or many; NaN and zeros of both signs among them. */
static void add_scores(struct operands *o, int64_t batches, int64_t classes, int64_t n)
{
    static const float odd[] = {NAN, -NAN, 0, -0.0f, INFINITY, -INFINITY};
    const int64_t most = random_chance(&o->random, 30) ? 5 : 100000, dims[] = {batches, classes, n};
    struct tensor *x = operands_add(o, TSSA_FLOAT, 3, dims);
    float *scores = x->data;
    for (size_t i = 0; i < tensor_count(x); i++) {
        scores[i] = (float)random_int(&o->random, -most, most) / (float)most;
        if (random_chance(&o->random, 3))
            scores[i] = odd[random_int(&o->random, 0, 5)];
    }
}

static void add_float(struct operands *o, float value)
{
    const int64_t one = 1;
    struct tensor *x = operands_add(o, TSSA_FLOAT, 1, &one);
    *(float *)x->data = value;
}

static void nms(struct grids_run *run, struct operands *o, bool many)
{
    const int64_t batches = random_int(&o->random, many ? 1 : 0, 3),
                  classes = random_int(&o->random, many ? 1 : 0,
                                       random_chance(&o->random, 20) && !many ? 40 : 2),
                  n = many ? random_int(&o->random, 250, 800) : operands_size(o);
    add_boxes(o, batches, n);
    add_scores(o, batches, classes, n);
    operands_add_ints(o, 1,
                      (const int64_t[]){random_chance(&o->random, 40)
                                            ? INT64_MAX
                                            : random_int(&o->random, -1, many ? 300 : 9)});
    add_float(o, (float)random_int(&o->random, -1, 10) / 10);
    add_float(o, (float)random_int(&o->random, -10, 10) / 10);
    grids_run_same(run, o->given);
    operands_clear(o);
}

static void test_nms(void **state)
{
    for (int center = 0; center < 2; center++) {
        struct grids_run run;
        struct operands o;
        char program[700];
        snprintf(
            program, sizeof program,
            "graph @g opset(\"\": 18) ir_version(8) (%%b: f32[B, N, 4], %%s: f32[B, C, N], %%m: "
            "i64[1], %%o: f32[1], %%t: f32[1]) -> (%%x, %%y, %%z) {\n"
            "  %%x = NonMaxSuppression@11(%%b, %%s, %%m, %%o, %%t) {center_point_box = %d}\n"
            "  %%y = NonMaxSuppression@11(%%b, %%s, %%m, %%o) {center_point_box = %d}\n"
            "  %%z = NonMaxSuppression@11(%%b, %%s, %%m)\n"
            "  return(%%x, %%y, %%z)\n"
            "}\n",
            center, center);
        grids_run_open(&run, *state, program);
        operands_open(&o, 101 + (uint64_t)center);
        for (int i = 0; i < ROUNDS / 3; i++)
            nms(&run, &o, i % 3 == 0);
        grids_run_close(&run);
    }
}

/* What reads the boxes is launched before anybody knows how many are kept. */
static void test_nms_with_what_reads_it(void **state)
{
    struct grids_run run;
    struct operands o;
    grids_run_open(&run, *state,
                   "graph @g opset(\"\": 18) ir_version(8) (%b: f32[1, N, 4], %s: f32[1, 1, N], "
                   "%m: i64[1], %o: f32[1], %t: f32[1], %x: f32[N, 3], %y: i64[N]) -> (%r, %l) {\n"
                   "  %r, %l = fuse(%b, %s, %m, %o, %t, %x, %y): f32[D, 3], i64[D] {\n"
                   "    body(%c: f32[1, N, 4], %d: f32[1, 1, N], %e: i64[1], %f: f32[1], "
                   "%g: f32[1], %h: f32[N, 3], %i: i64[N]) {\n"
                   "      %j = NonMaxSuppression@11(%c, %d, %e, %f, %g): i64[D, 3]\n"
                   "      %k = access(%j) {rule = [select(1, 2)]}: i64[D]\n"
                   "      %n = access(%h, %k) {rule = [gather(0, $0)]}: f32[D, 3]\n"
                   "      %p = Neg@13(%n): f32[D, 3]\n"
                   "      %q = access(%i, %k) {rule = [gather(0, $0)]}: i64[D]\n"
                   "      return(%p, %q)\n"
                   "    }\n"
                   "  }\n"
                   "  return(%r, %l)\n"
                   "}\n");
    operands_open(&o, 107);
    for (int i = 0; i < ROUNDS / 2; i++) {
        const int64_t n = i % 3 ? operands_size(&o) : random_int(&o.random, 250, 800);
        add_boxes(&o, 1, n);
        add_scores(&o, 1, 1, n);
        operands_add_ints(&o, 1,
                          (const int64_t[]){random_chance(&o.random, 40)
                                                ? INT64_MAX
                                                : random_int(&o.random, -1, 300)});
        add_float(&o, (float)random_int(&o.random, -1, 10) / 10);
        add_float(&o, (float)random_int(&o.random, -10, 10) / 10);
        operands_add_bits(&o, TSSA_FLOAT, 2, (const int64_t[]){n, 3}, 50);
        operands_add_bits(&o, TSSA_INT64, 1, &n, 50);
        grids_run_same(&run, o.given);
        assert_true(run.counts.waits <= 3); /* two of them for thresholds */
        grids_expect_launches(&run, *state, 3);
        operands_clear(&o);
    }
    grids_run_close(&run);
}

/* As the CPU says it. */
static void test_nms_of_unlike_shapes(void **state)
{
    struct grids_run run;
    struct operands o;
    grids_run_open(&run, *state,
                   "graph @g opset(\"\": 18) ir_version(8) (%b: f32[A, N, D], %s: f32[B, C, M]) "
                   "-> (%x) {\n"
                   "  %x = NonMaxSuppression@11(%b, %s)\n"
                   "  return(%x)\n"
                   "}\n");
    operands_open(&o, 111);
    operands_add_numbers(&o, TSSA_FLOAT, 3, (const int64_t[]){1, 3, 5});
    add_scores(&o, 1, 2, 3);
    assert_false(grids_run_go(&run, o.given));
    operands_clear(&o);
    add_boxes(&o, 1, 3);
    add_scores(&o, 1, 2, 4);
    assert_false(grids_run_go(&run, o.given));
    operands_clear(&o);
    grids_run_close(&run);
}

/* ---- CUDA C and OpenCL C --------------------------------------------------------------------- */

static size_t count_of(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

/* A kernel that did not wait for others would read what they are about to write. */
static void expect_waits(const char *text, enum grids_text id)
{
    const char *kernels = strstr(text, CLIKE_PRELUDE_END);
    assert_non_null(kernels);
    assert_int_equal(count_of(kernels, ")\n{\n    AFTER_OTHERS;\n"), grids_text_functions(id));
}

/* Architectures: the oldest one that NVRTC 13 knows, and a newer one. Skipped where there is none.
 */
static void compile_as_cuda(enum grids_text id, tssa_dtype dtype, bool *is_there)
{
    static const int architectures[] = {75, 90};
    struct text text;
    text_init(&text, &allocator_default);
    assert_true(grids_print_text(CLIKE_CUDA, 8, id, dtype, &text));
    expect_waits(text_string(&text), id);
    for (size_t i = 0; i < 2 && *is_there; i++) {
        const struct nvrtc_source source = {.text = text_string(&text),
                                            .name = "text",
                                            .options = {CLIKE_CUDA_OPTIONS, "--ptxas-options=-v"},
                                            .keeps_log = true};
        struct image image = {0};
        tssa_status *status =
            nvrtc_compile(&allocator_default, &source, architectures[i], IMAGE_CUBIN, &image);
        *is_there = tssa_status_code(status) != TSSA_UNSUPPORTED;
        if (*is_there) {
            no_error(status);
            expect_no_spills(image.log);
        } else
            tssa_status_free(status);
        allocator_free(&allocator_default, image.data);
        allocator_free(&allocator_default, image.log);
    }
    text_free(&text);
}

static const struct {
    enum grids_text id;
    tssa_dtype dtype;
} texts[] = {{GRIDS_TEXT_PRODUCT, TSSA_FLOAT},
             {GRIDS_TEXT_PRODUCT, TSSA_FLOAT16},
             {GRIDS_TEXT_PRODUCT, TSSA_DOUBLE},
             {GRIDS_TEXT_PRODUCT_ROW, TSSA_FLOAT},
             {GRIDS_TEXT_PRODUCT_ROW, TSSA_BFLOAT16},
             {GRIDS_TEXT_PRODUCT_ROW, TSSA_DOUBLE},
             {GRIDS_TEXT_PRODUCT_ROWS, TSSA_FLOAT},
             {GRIDS_TEXT_PRODUCT_ROWS, TSSA_FLOAT16},
             {GRIDS_TEXT_PRODUCT_ROWS, TSSA_DOUBLE},
             {GRIDS_TEXT_PRODUCT_SMALL, TSSA_FLOAT},
             {GRIDS_TEXT_PRODUCT_SMALL, TSSA_FLOAT16},
             {GRIDS_TEXT_PRODUCT_SMALL, TSSA_DOUBLE},
             {GRIDS_TEXT_SCALE, TSSA_FLOAT},
             {GRIDS_TEXT_SCALE, TSSA_FLOAT16},
             {GRIDS_TEXT_SCALE, TSSA_DOUBLE},
             {GRIDS_TEXT_SPREAD, TSSA_UINT8},
             {GRIDS_TEXT_KEEP, TSSA_UINT64},
             {GRIDS_TEXT_TOPK, TSSA_FLOAT},
             {GRIDS_TEXT_TOPK, TSSA_DOUBLE},
             {GRIDS_TEXT_TOPK, TSSA_INT8},
             {GRIDS_TEXT_TOPK, TSSA_UINT32},
             {GRIDS_TEXT_UNIQUE, TSSA_FLOAT},
             {GRIDS_TEXT_UNIQUE, TSSA_DOUBLE},
             {GRIDS_TEXT_UNIQUE, TSSA_FLOAT16},
             {GRIDS_TEXT_UNIQUE, TSSA_INT8},
             {GRIDS_TEXT_UNIQUE, TSSA_UINT64},
             {GRIDS_TEXT_SCATTER, TSSA_UINT16},
             {GRIDS_TEXT_NMS, TSSA_FLOAT},
             {GRIDS_TEXT_EXTREME, TSSA_DOUBLE},
             {GRIDS_TEXT_EXTREME, TSSA_UINT8},
             {GRIDS_TEXT_CONV, TSSA_FLOAT},
             {GRIDS_TEXT_CONV, TSSA_FLOAT16},
             {GRIDS_TEXT_CONV, TSSA_DOUBLE},
             {GRIDS_TEXT_CONV_SMALL, TSSA_FLOAT},
             {GRIDS_TEXT_CONV_SMALL, TSSA_BFLOAT16},
             {GRIDS_TEXT_CONV_SMALL, TSSA_DOUBLE},
             {GRIDS_TEXT_CONV_EACH, TSSA_FLOAT},
             {GRIDS_TEXT_CONV_EACH, TSSA_FLOAT16},
             {GRIDS_TEXT_CONV_EACH, TSSA_DOUBLE},
             {GRIDS_TEXT_BIAS, TSSA_FLOAT},
             {GRIDS_TEXT_POOL, TSSA_FLOAT},
             {GRIDS_TEXT_POOL, TSSA_DOUBLE},
             {GRIDS_TEXT_POOL, TSSA_INT8},
             {GRIDS_TEXT_AVERAGE, TSSA_FLOAT},
             {GRIDS_TEXT_PLANES, TSSA_FLOAT},
             {GRIDS_TEXT_PLANES, TSSA_DOUBLE},
             {GRIDS_TEXT_NEAREST, TSSA_UINT8},
             {GRIDS_TEXT_ROI, TSSA_FLOAT},
             {GRIDS_TEXT_ROI, TSSA_DOUBLE},
             {GRIDS_TEXT_RESAMPLE, TSSA_FLOAT},
             {GRIDS_TEXT_RESAMPLE, TSSA_DOUBLE},
             {GRIDS_TEXT_GRID_SAMPLE_NEAREST, TSSA_FLOAT},
             {GRIDS_TEXT_GRID_SAMPLE_NEAREST, TSSA_FLOAT16},
             {GRIDS_TEXT_GRID_SAMPLE_NEAREST, TSSA_DOUBLE},
             {GRIDS_TEXT_GRID_SAMPLE_LINEAR, TSSA_FLOAT},
             {GRIDS_TEXT_GRID_SAMPLE_LINEAR, TSSA_FLOAT16},
             {GRIDS_TEXT_GRID_SAMPLE_LINEAR, TSSA_DOUBLE},
             {GRIDS_TEXT_GRID_SAMPLE_CUBIC, TSSA_FLOAT},
             {GRIDS_TEXT_GRID_SAMPLE_CUBIC, TSSA_FLOAT16},
             {GRIDS_TEXT_GRID_SAMPLE_CUBIC, TSSA_DOUBLE}};

static void test_cuda(void **state)
{
    bool is_there = true;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && is_there; i++)
        compile_as_cuda(texts[i].id, texts[i].dtype, &is_there);
    if (!is_there)
        skip();
}

static void test_opencl(void **state)
{
    bool is_there = true;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && is_there; i++) {
        struct text text;
        text_init(&text, &allocator_default);
        assert_true(grids_print_text(CLIKE_OPENCL, 8, texts[i].id, texts[i].dtype, &text));
        is_there = opencl_c_check(text_string(&text));
        text_free(&text);
    }
    if (!is_there)
        skip();
}

/* ---------------------------------------------------------------------------------------------- */

#define OF_DEVICE(test) cmocka_unit_test_prestate(test, (void *)device)

static int run_on(const char *device)
{
    const struct CMUnitTest tests[] = {OF_DEVICE(test_expand),
                                       OF_DEVICE(test_constant_of_shape),
                                       OF_DEVICE(test_non_zero),
                                       OF_DEVICE(test_many),
                                       OF_DEVICE(test_compress),
                                       OF_DEVICE(test_found_lists),
                                       OF_DEVICE(test_scatter),
                                       OF_DEVICE(test_scatter_of_unlike_shapes),
                                       OF_DEVICE(test_nms),
                                       OF_DEVICE(test_nms_with_what_reads_it),
                                       OF_DEVICE(test_nms_of_unlike_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest compiled[] = {cmocka_unit_test(test_cuda),
                                          cmocka_unit_test(test_opencl)};
    return cmocka_run_group_tests(compiled, NULL, NULL) + grids_run_on_each(run_on);
}
