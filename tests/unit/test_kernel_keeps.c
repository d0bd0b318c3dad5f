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

#include <cmocka.h>

#include "common/gir_build.h"
#include "common/no_error.h"
#include "common/session_pair.h"
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

static const char detector[] =
    SESSION_MODEL("%s: f32[N], %c: f32[N], %b: f32[N, 4], %w: f32[1, N, 11]",
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
static const char numbers[] =
    SESSION_MODEL("%s: f32[N], %c: f32[N], %b: f32[N, 4], %w: f32[1, N, 11]",
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
        struct session_pair p;
        session_pair_open(&p, model, threads);
        for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
            const int64_t n = sizes[i / 2], rows[] = {n, 4}, wide[] = {1, n, 11};
            tssa_value *inputs[] = {
                session_pair_floats(&p, 1, rows, i % 2), session_pair_floats(&p, 1, rows, false),
                session_pair_floats(&p, 2, rows, false), session_pair_floats(&p, 3, wide, false)};
            for (int again = 0; again < 2; again++)
                session_pair_run(&p, 4, inputs, 6);
            for (int v = 0; v < 4; v++)
                tssa_value_free(inputs[v]);
        }
        session_pair_close(&p);
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
    static const char list[] = SESSION_MODEL("%x: f32[N]", "%y",
                                             "%t = Constant() {value = f32[] 0.9}\n"
                                             "%m = Greater(%x, %t)\n"
                                             "%n = Neg(%x)\n"
                                             "%y = Compress(%n, %m) {axis = 0}\n");
    static const int64_t sizes[] = {1 << 20, 1 << 16};
    struct session_pair p;
    (void)state;
    session_pair_open(&p, list, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tssa_value *input = session_pair_floats(&p, 1, &sizes[i], true), *output = NULL;
        no_error(tssa_session_run(p.kernels, 1, &input, 1, &output));
        const size_t with = tssa_context_memory_used(p.context);
        assert_in_range(tssa_tensor_dims(output)[0], 1, sizes[i] / 100);
        tssa_value_free(output);
        assert_true(with - tssa_context_memory_used(p.context) <
                    (size_t)sizes[i] * sizeof(float) / 10);
        tssa_value_free(input);
    }
    session_pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_bytes), cmocka_unit_test(sessions),
                                       cmocka_unit_test(by_numbers),
                                       cmocka_unit_test(few_take_little)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
