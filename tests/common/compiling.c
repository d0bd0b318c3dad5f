/* SPDX-License-Identifier: Apache-2.0 */
#include "common/compiling.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/model_text.h"
#include "common/no_error.h"

#define N 1000
#define M 500

static const char program[] = "graph (%x: f32[N, 50], %w: f64[M, 50]) -> (%y, %z) {\n"
                              "  %e = Exp(%x) %f = Mul(%e, %x) %y = Add(%f, %x)\n"
                              "  %c = Mul(%w, %w) %d = Add(%c, %w) %z = Neg(%d)\n"
                              "  return(%y, %z) }\n";

static const char program_of_rows[] = "graph (%x: f32[N, 50], %w: f64[M, 50]) -> (%y, %z) {\n"
                                      "  %a = Mul(%x, %x) %y = Softmax(%a) {axis = -1}\n"
                                      "  %b = Mul(%w, %w) %z = Softmax(%b) {axis = -1}\n"
                                      "  return(%y, %z) }\n";

static void add_line(void *user, tssa_log_level level, const char *message)
{
    struct compiling *c = user;
    const size_t used = strlen(c->warnings);
    if (level != TSSA_LOG_WARNING)
        return;
    c->n_warnings++;
    snprintf(c->warnings + used, sizeof c->warnings - used, "%s\n", message);
}

bool compiling_is_possible(void)
{
    struct compiling c;
    compiling_fake(NULL);
    compiling_open(&c, TSSA_COMPILE_WAIT, NULL);
    const tssa_compile_info info = compiling_finish(&c);
    if (!info.kernels)
        print_message("nothing is compiled here: %s", c.warnings);
    compiling_close(&c);
    return info.kernels != 0;
}

void compiling_fake(const char *what)
{
    setenv("TSSA_PLUGIN_DIR", what ? TSSA_BUILD_DIR "/tests/fake_codegen" : TSSA_BUILD_DIR, 1);
    setenv("TSSA_REAL", TSSA_BUILD_DIR "/tssa-llvm.so", 1);
    setenv("TSSA_FAKE", what ? what : "", 1);
}

static void load(struct compiling *c, const char *text)
{
    const tssa_optimize_options options = {
        .struct_size = sizeof options, .level = 2, .target = TSSA_TARGET_SESSION};
    no_error(model_text_load(c->context, text, &c->model));
    no_error(tssa_model_optimize(c->model, &options));
}

void compiling_again(struct compiling *c, tssa_compile compile)
{
    const tssa_session_options options = {.struct_size = sizeof options, .compile = compile};
    tssa_session_free(c->session);
    no_error(tssa_session_create(c->model, &options, &c->session));
}

static void open_context(struct compiling *c, const char *text, const char *cache, int threads)
{
    const tssa_context_options options = {.struct_size = sizeof options,
                                          .threads = threads,
                                          .log = add_line,
                                          .log_user = c,
                                          .kernel_cache = cache};
    *c = (struct compiling){0};
    no_error(tssa_context_create(&options, &c->context));
    load(c, text);
    no_error(tssa_tensor_create(c->context, TSSA_FLOAT, 2, (const int64_t[]){N / 50, 50},
                                &c->inputs[0]));
    no_error(tssa_tensor_create(c->context, TSSA_DOUBLE, 2, (const int64_t[]){M / 50, 50},
                                &c->inputs[1]));
    for (int i = 0; i < N; i++)
        ((float *)tssa_tensor_data(c->inputs[0]))[i] = (float)(i - N / 2) / 16;
    for (int i = 0; i < M; i++)
        ((double *)tssa_tensor_data(c->inputs[1]))[i] = i / 3.0;
}

void compiling_open(struct compiling *c, tssa_compile compile, const char *cache)
{
    open_context(c, program, cache, 1);
    compiling_again(c, compile);
}

void compiling_open_two(struct compiling *c)
{
    open_context(c, program_of_rows, NULL, 2);
    compiling_again(c, TSSA_COMPILE_WAIT);
}

static void run(tssa_session *session, tssa_value *const *inputs, tssa_value **outputs)
{
    outputs[0] = outputs[1] = NULL;
    no_error(tssa_session_run(session, 2, inputs, 2, outputs));
}

void compiling_run(struct compiling *c)
{
    tssa_session *other;
    tssa_value *made[2], *wanted[2];
    no_error(tssa_session_create(c->model, NULL, &other));
    run(c->session, c->inputs, made);
    run(other, c->inputs, wanted);
    assert_memory_equal(tssa_tensor_data(made[0]), tssa_tensor_data(wanted[0]), N * sizeof(float));
    assert_memory_equal(tssa_tensor_data(made[1]), tssa_tensor_data(wanted[1]), M * sizeof(double));
    for (int i = 0; i < 2; i++) {
        tssa_value_free(made[i]);
        tssa_value_free(wanted[i]);
    }
    tssa_session_free(other);
}

tssa_compile_info compiling_finish(struct compiling *c)
{
    tssa_compile_info info = {.pending = 1};
    for (int i = 0; i < 20000 && info.pending; i++) {
        compiling_run(c);
        no_error(tssa_session_compiled(c->session, &info));
        if (info.pending)
            usleep(1000);
    }
    assert_int_equal(info.pending, 0);
    compiling_run(c);
    return info;
}

void compiling_close(struct compiling *c)
{
    for (int i = 0; i < 2; i++)
        tssa_value_free(c->inputs[i]);
    tssa_session_free(c->session);
    tssa_model_free(c->model);
    tssa_context_free(c->context);
}
