/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that round where chains of float16 end (tssa_session_options.precision): beside others
 * of one model, which round after each operator, with kernels and without, at each level.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "common/model_text.h"
#include "common/no_error.h"
#include "tssa.h"

/* (1 + 2^-10)^2 is 1 + 2^-9 + 2^-20, of which float16 has no last term. The product is returned as
 * well, so that it is where one chain ends and another goes on. */
static const char program[] = "graph (%x: f16[N]) -> (%y as \"y\", %p as \"p\") {\n"
                              "  %b = Constant() {value = f16[] 1.001953125}\n"
                              "  %p = Mul(%x, %x)\n"
                              "  %y = Sub(%p, %b)\n"
                              "  return(%y, %p)\n}\n";

enum { N = 100 };

struct scene {
    tssa_context *context;
    tssa_model *model;
    tssa_value *x;
};

static void open_scene(struct scene *s, const char *program, int rank, const int64_t *dims,
                       int level, int threads)
{
    const tssa_context_options options = {.struct_size = sizeof options, .threads = threads};
    const tssa_optimize_options passes = {
        .struct_size = sizeof passes, .level = level, .target = TSSA_TARGET_SESSION};
    no_error(tssa_context_create(&options, &s->context));
    no_error(model_text_load(s->context, program, &s->model));
    if (level)
        no_error(tssa_model_optimize(s->model, &passes));
    no_error(tssa_tensor_create(s->context, TSSA_FLOAT16, rank, dims, &s->x));
    for (size_t i = 0; i < tssa_value_count(s->x); i++)
        dtype_store_double(TSSA_FLOAT16, (char *)tssa_tensor_data(s->x) + 2 * i, 1 + 0x1p-10);
}

static void close_scene(struct scene *s)
{
    tssa_value_free(s->x);
    tssa_model_free(s->model);
    tssa_context_free(s->context);
}

static tssa_session *make(const struct scene *s, tssa_compile compile, tssa_precision precision)
{
    const tssa_session_options options = {
        .struct_size = sizeof options, .compile = compile, .precision = precision};
    tssa_session *session;
    no_error(tssa_session_create(s->model, &options, &session));
    return session;
}

/* Until there is nothing to compile any more, so that later runs are of what was. */
static void wait_for(tssa_session *session)
{
    tssa_compile_info info;
    do {
        usleep(1000);
        no_error(tssa_session_compiled(session, &info));
    } while (info.pending);
}

static void expect(const struct scene *s, tssa_session *session, double difference)
{
    tssa_value *outputs[2] = {NULL};
    no_error(tssa_session_run(session, 1, &s->x, 2, outputs));
    for (size_t i = 0; i < N; i++) {
        const char *y = tssa_tensor_data(outputs[0]), *p = tssa_tensor_data(outputs[1]);
        assert_true(dtype_load_double(TSSA_FLOAT16, y + 2 * i) == difference);
        assert_true(dtype_load_double(TSSA_FLOAT16, p + 2 * i) == 1 + 0x1p-9);
    }
    tssa_value_free(outputs[0]);
    tssa_value_free(outputs[1]);
}

static void test_sessions(void **state)
{
    static const tssa_compile compiles[] = {TSSA_COMPILE_OFF, TSSA_COMPILE_WAIT,
                                            TSSA_COMPILE_BACKGROUND};
    (void)state;
    for (int level = 0; level <= 2; level++)
        for (int threads = 1; threads <= 2; threads++) {
            struct scene s;
            tssa_session *exact[3], *relaxed[3];
            open_scene(&s, program, 1, (const int64_t[]){N}, level, threads);
            for (int i = 0; i < 3; i++) {
                exact[i] = make(&s, compiles[i], TSSA_PRECISION_EXACT);
                relaxed[i] = make(&s, compiles[i], TSSA_PRECISION_RELAXED);
            }
            for (int round = 0; round < 3; round++)
                for (int i = 0; i < 3; i++) {
                    expect(&s, exact[i], 0);
                    expect(&s, relaxed[i], 0x1p-20);
                    wait_for(exact[i]);
                    wait_for(relaxed[i]);
                }
            for (int i = 0; i < 3; i++) {
                tssa_session_free(relaxed[i]);
                expect(&s, exact[i], 0);
                tssa_session_free(exact[i]);
            }
            close_scene(&s);
        }
}

/* Images, which a session's graph lays out as well. */
static const char images[] = "graph (%x: f16[2, 8, 9, 9]) -> (%y as \"y\") {\n"
                             "  %c = Constant() {value = f16[1] [0.0625]}\n"
                             "  %s = Constant() {value = i64[4] [8, 8, 3, 3]}\n"
                             "  %w = Expand(%c, %s)\n"
                             "  %a = Conv(%x, %w) {pads = [1, 1, 1, 1]}\n"
                             "  %b = Relu(%a)\n"
                             "  %d = Conv(%b, %w) {pads = [1, 1, 1, 1]}\n"
                             "  %e = Add(%d, %b)\n"
                             "  %y = Mul(%e, %e)\n"
                             "  return(%y)\n}\n";

/* The bits do not depend on when it is compiled. */
static void test_images(void **state)
{
    static const tssa_compile compiles[] = {TSSA_COMPILE_OFF, TSSA_COMPILE_WAIT,
                                            TSSA_COMPILE_BACKGROUND, TSSA_COMPILE_BACKGROUND};
    (void)state;
    for (int i = 0; i < 6; i++) {
        const int level = i % 3;
        tssa_value *first = NULL;
        struct scene s;
        open_scene(&s, images, 4, (const int64_t[]){2, 8, 9, 9}, level, 2);
        for (int k = 0; k < 4; k++) {
            tssa_value *y = NULL;
            tssa_session *session =
                make(&s, compiles[k], i < 3 ? TSSA_PRECISION_EXACT : TSSA_PRECISION_RELAXED);
            if (k == 3) /* what was compiled, else what runs meanwhile */
                wait_for(session);
            no_error(tssa_session_run(session, 1, &s.x, 1, &y));
            first = first ? first : y;
            assert_memory_equal(tssa_tensor_data(y), tssa_tensor_data(first),
                                2 * tssa_value_count(y));
            if (y != first)
                tssa_value_free(y);
            tssa_session_free(session);
        }
        tssa_value_free(first);
        close_scene(&s);
    }
}

/* Sums that are exact in any order, of which float16 rounds most: what reads them reads them
 * rounded, at each level, with channels last or first. */
static const char rounded[] =
    "graph (%x: f16[2, 8, 9, 9]) -> (%y as \"y\", %g as \"g\", %v as \"v\") {\n"
    "  %k = Constant() {value = f16[8, 1, 1, 1] [0.5, 1.5, -1, 3, 0.75, -2, 1.25, 1]}\n"
    "  %s = Constant() {value = i64[4] [8, 8, 3, 3]}\n"
    "  %s1 = Constant() {value = i64[4] [8, 1, 3, 3]}\n"
    "  %low = Constant() {value = f16[] -30}\n"
    "  %high = Constant() {value = f16[] 60}\n"
    "  %w = Expand(%k, %s)\n"
    "  %d = Expand(%k, %s1)\n"
    "  %a = Conv(%x, %w) {pads = [1, 1, 1, 1]}\n"
    "  %b = Clip(%a, %low, %high)\n"
    "  %c = Conv(%b, %d) {group = 8, pads = [1, 1, 1, 1]}\n"
    "  %r = Relu(%c)\n"
    "  %e = Add(%r, %b)\n"
    "  %p = MaxPool(%e) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}\n"
    "  %j = Concat(%p, %e) {axis = 1}\n"
    "  %g = GlobalAveragePool(%j)\n"
    "  %m = Mul(%j, %g)\n"
    "  %h = Sigmoid(%m)\n"
    "  %y = Mul(%m, %h)\n"
    "  %q = Conv(%x, %w) {dilations = [2, 2], pads = [2, 2, 2, 2]}\n"
    "  %v = MaxPool(%q) {kernel_shape = [2, 2]}\n"
    "  return(%y, %g, %v)\n}\n";

enum { ROUNDED_OUTPUTS = 3 };

static void expect_same(tssa_session *session, tssa_value *x, tssa_value **first)
{
    tssa_value *outputs[ROUNDED_OUTPUTS] = {NULL};
    no_error(tssa_session_run(session, 1, &x, ROUNDED_OUTPUTS, outputs));
    for (int i = 0; i < ROUNDED_OUTPUTS; i++) {
        if (!first[i]) {
            first[i] = outputs[i];
            continue;
        }
        assert_memory_equal(tssa_tensor_data(outputs[i]), tssa_tensor_data(first[i]),
                            2 * tssa_value_count(outputs[i]));
        tssa_value_free(outputs[i]);
    }
}

static void test_rounded(void **state)
{
    static const tssa_compile compiles[] = {TSSA_COMPILE_OFF, TSSA_COMPILE_WAIT};
    tssa_value *first[ROUNDED_OUTPUTS] = {NULL};
    struct scene scenes[3];
    (void)state;
    for (int level = 0; level <= 2; level++) {
        struct scene *s = &scenes[level];
        open_scene(s, rounded, 4, (const int64_t[]){2, 8, 9, 9}, level, 1 + level % 2);
        for (size_t i = 0; i < tssa_value_count(s->x); i++)
            dtype_store_double(TSSA_FLOAT16, (char *)tssa_tensor_data(s->x) + 2 * i,
                               (double)(i * 37 % 101) / 64 - 0.5);
        for (int k = 0; k < 2; k++) {
            tssa_session *session = make(s, compiles[k], TSSA_PRECISION_EXACT);
            expect_same(session, s->x, first);
            tssa_session_free(session);
        }
    }
    for (int i = 0; i < ROUNDED_OUTPUTS; i++)
        tssa_value_free(first[i]);
    for (int level = 0; level <= 2; level++)
        close_scene(&scenes[level]);
}

static void test_refused(void **state)
{
    struct scene s;
    tssa_session *session;
    const tssa_session_options options = {.struct_size = sizeof options,
                                          .precision = (tssa_precision)2};
    (void)state;
    open_scene(&s, program, 1, (const int64_t[]){N}, 0, 1);
    tssa_status *status = tssa_session_create(s.model, &options, &session);
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    tssa_status_free(status);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sessions), cmocka_unit_test(test_images),
        cmocka_unit_test(test_rounded), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
