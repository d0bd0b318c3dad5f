/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What masks keep: which bytes are no kernel of that, and sessions, which give the interpreter's
 * bits with and without kernels, also where they compute before a mask what the model computes
 * behind it. Random fuse ops that keep are in test_kernels.c.
 */
/* ctest-isa: v3 v2 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/gir_build.h"
#include "common/no_error.h"
#include "gir/gir.h"
#include "tssa.h"

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* Records of two, where the first field is a number. */
struct small {
    struct gir_kernel kernel;
    struct gir_arg args[2];
    struct gir_code codes[6];
};

static const struct small good = {
    .kernel = {.magic = GIR_MAGIC, .size = sizeof good, .n_args = 2, .n_codes = 6},
    .args = {{.dtype = TSSA_FLOAT, .moves = GIR_SIDE_BY_SIDE, .fields = 2},
             {.dtype = TSSA_FLOAT,
              .is_result = 1,
              .moves = GIR_SIDE_BY_SIDE,
              .fields = 2,
              .is_kept = 1}},
    .codes = {
        {.op = GIR_LOAD, .type = TSSA_FLOAT},
        {.op = GIR_LOAD, .type = TSSA_FLOAT, .bits = UINT64_C(1) << 32},
        {.op = GIR_SCALAR, .scalar = SCALAR_ISNAN, .type = TSSA_BOOL},
        {.op = GIR_SCALAR, .scalar = SCALAR_ISNAN, .type = TSSA_BOOL, .operands = {1}},
        {.op = GIR_KEEP, .type = TSSA_FLOAT, .operands = {0, 2}, .bits = 1},
        {.op = GIR_KEEP, .type = TSSA_FLOAT, .operands = {1, 2}, .bits = 1 | UINT64_C(1) << 32}}};

static void wrong_bytes(void **state)
{
    (void)state;
    struct small bad;
    no_error(gir_check(&good, sizeof good));
    bad = good;
    bad.codes[5].operands[1] = 3;
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 5: fields are kept of different records");
    bad = good;
    bad.codes[5].operands[1] = 1;
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 5: what says what is kept is no truth value");
    bad = good;
    bad.codes[5].bits = 1;
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 5: the argument is stored twice");
    bad = good;
    bad.codes[5] = bad.codes[3];
    gir_expect_wrong(&bad, sizeof bad, "kernel: a result is not stored");
    bad = good;
    bad.args[1].is_kept = 0;
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 4: it does not suit the argument");
    bad = good;
    bad.args[1].moves = GIR_STRIDED;
    gir_expect_wrong(&bad, sizeof bad, "kernel: argument 1 is none");
}

/* ---- Sessions -------------------------------------------------------------------------------- */

#define MAX_VALUES 6

struct pair {
    tssa_context *context;
    tssa_model *model;
    tssa_session *kernels, *plain;
    tssa_compile_info info;
};

static void open_pair(struct pair *p, const char *text, int threads)
{
    char path[] = "/tmp/tssa_kernel_keeps_XXXXXX.tir";
    const tssa_context_options context = {.struct_size = sizeof context, .threads = threads};
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    const tssa_session_options compile = {.struct_size = sizeof compile,
                                          .compile = TSSA_COMPILE_WAIT};
    const int file = mkstemps(path, 4);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    no_error(tssa_context_create(&context, &p->context));
    tssa_status *status = tssa_model_load_file(p->context, path, NULL, &p->model);
    unlink(path);
    no_error(status);
    no_error(tssa_model_optimize(p->model, &optimize));
    no_error(tssa_session_create(p->model, NULL, &p->plain));
    no_error(tssa_session_create(p->model, &compile, &p->kernels));
    no_error(tssa_session_compiled(p->kernels, &p->info));
}

static void close_pair(struct pair *p)
{
    tssa_session_free(p->kernels);
    tssa_session_free(p->plain);
    tssa_model_free(p->model);
    tssa_context_free(p->context);
}

/* Numbers of [-1, 1), or as many of which one in 100 is more than 0.9. */
static tssa_value *make_floats(const struct pair *p, int rank, const int64_t *dims, bool few)
{
    tssa_value *value;
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    no_error(tssa_tensor_create(p->context, TSSA_FLOAT, rank, dims, &value));
    for (int64_t i = 0; i < n; i++) {
        const float x = (float)((i * 73 + rank) % 1009) / 505 - 1;
        ((float *)tssa_tensor_data(value))[i] = few && i % 100 ? x / 2 : x;
    }
    return value;
}

static size_t size_of(const tssa_value *value)
{
    return tssa_value_dtype(value) == TSSA_INT64 ? sizeof(int64_t) : sizeof(float);
}

static void compare(tssa_value *a, tssa_value *b)
{
    size_t n = size_of(a);
    assert_int_equal(tssa_value_dtype(a), tssa_value_dtype(b));
    assert_int_equal(tssa_tensor_rank(a), tssa_tensor_rank(b));
    for (int i = 0; i < tssa_tensor_rank(a); i++) {
        assert_int_equal(tssa_tensor_dims(a)[i], tssa_tensor_dims(b)[i]);
        n *= (size_t)tssa_tensor_dims(a)[i];
    }
    if (n)
        assert_memory_equal(tssa_tensor_data(a), tssa_tensor_data(b), n);
}

static void run_pair(const struct pair *p, size_t n, tssa_value *const *inputs, size_t n_outputs)
{
    tssa_value *made[MAX_VALUES] = {NULL}, *wanted[MAX_VALUES] = {NULL};
    no_error(tssa_session_run(p->kernels, n, inputs, n_outputs, made));
    no_error(tssa_session_run(p->plain, n, inputs, n_outputs, wanted));
    for (size_t i = 0; i < n_outputs; i++) {
        compare(made[i], wanted[i]);
        tssa_value_free(made[i]);
        tssa_value_free(wanted[i]);
    }
}

#define MODEL(inputs, outputs, ops)                                                                \
    "graph @g opset(\"\": 21) ir_version(10) (" inputs ") -> (" outputs ") {\n" ops                \
    "return(" outputs ")\n}\n"

static const char detector[] = MODEL("%s: f32[N], %c: f32[N], %b: f32[N, 4], %w: f32[1, N, 11]",
                                     "%product, %root, %boxes, %given, %rows, %places",
                                     "%t = Constant() {value = f32[] 0.7}\n"
                                     "%two = Constant() {value = f32[1] [2]}\n"
                                     "%m = Greater(%s, %t)\n"
                                     "%sm = Compress(%s, %m) {axis = 0}\n"
                                     "%cm = Compress(%c, %m) {axis = 0}\n"
                                     "%p = Mul(%sm, %cm)\n"
                                     "%product = Sub(%two, %p)\n"
                                     "%cn = Compress(%c, %m) {axis = 0}\n"
                                     "%d = Div(%cn, %t)\n"
                                     "%root = Sigmoid(%d)\n"
                                     "%e = Neg(%b)\n"
                                     "%f = Add(%e, %b)\n"
                                     "%boxes = Compress(%f, %m) {axis = 0}\n"
                                     "%given = Compress(%b, %m) {axis = 0}\n"
                                     "%rows = Compress(%w, %m) {axis = 1}\n"
                                     "%places = NonZero(%m)\n");

/* The same by numbers, of which some are wanted; what is longer, and what is computed of numbers,
 * is read by these. */
static const char numbers[] = MODEL("%s: f32[N], %c: f32[N], %b: f32[N, 4], %w: f32[1, N, 11]",
                                    "%product, %root, %boxes, %given, %rows, %places",
                                    "%t = Constant() {value = f32[] 0.7}\n"
                                    "%one = Constant() {value = i64[1] [1]}\n"
                                    "%flat = Constant() {value = i64[1] [-1]}\n"
                                    "%m = Greater(%s, %t)\n"
                                    "%n = NonZero(%m)\n"
                                    "%k = Transpose(%n) {perm = [1, 0]}\n"
                                    "%places = Squeeze(%k, %one)\n"
                                    "%l = Reshape(%n, %flat)\n"
                                    "%sm = GatherND(%s, %k)\n"
                                    "%cm = Gather(%c, %places)\n"
                                    "%product = Mul(%sm, %cm)\n"
                                    "%d = Div(%c, %t)\n"
                                    "%dn = Gather(%d, %l)\n"
                                    "%root = Sigmoid(%dn)\n"
                                    "%e = Neg(%b)\n"
                                    "%f = Add(%e, %b)\n"
                                    "%boxes = Gather(%f, %l)\n"
                                    "%bb = Concat(%b, %b) {axis = 0}\n"
                                    "%given = GatherND(%bb, %k)\n"
                                    "%rows = Gather(%w, %l) {axis = 1}\n");

/* Few and many, none of them as well, with one thread and two, which have slices of the longest. */
static void run_sizes(const char *model)
{
    static const int64_t sizes[] = {0, 1, 15, 33, 64, 1000, 4099, 70001};
    for (int threads = 1; threads <= 2; threads++) {
        struct pair p;
        open_pair(&p, model, threads);
        for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
            const int64_t n = sizes[i / 2], rows[] = {n, 4}, wide[] = {1, n, 11};
            tssa_value *inputs[] = {
                make_floats(&p, 1, rows, i % 2), make_floats(&p, 1, rows, false),
                make_floats(&p, 2, rows, false), make_floats(&p, 3, wide, false)};
            for (int again = 0; again < 2; again++)
                run_pair(&p, 4, inputs, 6);
            for (int v = 0; v < 4; v++)
                tssa_value_free(inputs[v]);
        }
        close_pair(&p);
    }
}

static void sessions(void **state)
{
    (void)state;
    run_sizes(detector);
}

static void by_numbers(void **state)
{
    (void)state;
    run_sizes(numbers);
}

/* A caller who has a few elements holds no memory for all of which they were kept. */
static void few_take_little(void **state)
{
    static const char list[] = MODEL("%x: f32[N]", "%y",
                                     "%t = Constant() {value = f32[] 0.9}\n"
                                     "%m = Greater(%x, %t)\n"
                                     "%n = Neg(%x)\n"
                                     "%y = Compress(%n, %m) {axis = 0}\n");
    static const int64_t sizes[] = {1 << 20, 1 << 16};
    struct pair p;
    (void)state;
    open_pair(&p, list, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tssa_value *input = make_floats(&p, 1, &sizes[i], true), *output = NULL;
        no_error(tssa_session_run(p.kernels, 1, &input, 1, &output));
        const size_t with = tssa_context_memory_used(p.context);
        assert_in_range(tssa_tensor_dims(output)[0], 1, sizes[i] / 100);
        tssa_value_free(output);
        assert_true(with - tssa_context_memory_used(p.context) <
                    (size_t)sizes[i] * sizeof(float) / 10);
        tssa_value_free(input);
    }
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_bytes), cmocka_unit_test(sessions),
                                       cmocka_unit_test(by_numbers),
                                       cmocka_unit_test(few_take_little)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
