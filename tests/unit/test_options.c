/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of tssa.h promise: sizes of structs, allocators, the log, cancelling, wanted
 * outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/model_text.h"
#include "common/no_error.h"
#include "common/test_alloc.h"

static void expect_code(tssa_status *status, tssa_code code, const char *word)
{
    assert_int_equal(tssa_status_code(status), code);
    if (!strstr(tssa_status_message(status), word))
        fail_msg("\"%s\" is not in: %s", word, tssa_status_message(status));
    assert_null(strchr(tssa_status_message(status), '\n'));
    tssa_status_free(status);
}

/* ---- A model in text ------------------------------------------------------------------------- */

struct program {
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    tssa_value *x;
};

static tssa_status *program_open(struct program *p, const tssa_context_options *options,
                                 const char *text)
{
    memset(p, 0, sizeof *p);
    TRY(tssa_context_create(options, &p->context));
    TRY(model_text_load(p->context, text, &p->model));
    TRY(tssa_session_create(p->model, NULL, &p->session));
    TRY(tssa_tensor_create(p->context, TSSA_FLOAT, 1, (const int64_t[]){3}, &p->x));
    for (int i = 0; i < 3; i++)
        ((float *)tssa_tensor_data(p->x))[i] = (float)(i + 1);
    return NULL;
}

static void program_close(struct program *p)
{
    tssa_value_free(p->x);
    tssa_session_free(p->session);
    tssa_model_free(p->model);
    tssa_context_free(p->context);
}

static const tssa_context_options one_thread = {.struct_size = sizeof one_thread, .threads = 1};

/* ---- struct_size ----------------------------------------------------------------------------- */

/* A caller of a later version, whose struct has one member more. */
struct newer_options {
    tssa_context_options known;
    int more;
};

static void test_sizes(void **state)
{
    (void)state;
    tssa_context *context;
    tssa_context_options options = {.threads = 1};
    expect_code(tssa_context_create(&options, &context), TSSA_INVALID_ARGUMENT,
                "sizeof(tssa_context_options)");
    options.struct_size = SIZE_MAX;
    expect_code(tssa_context_create(&options, &context), TSSA_INVALID_ARGUMENT, "struct_size");

    struct newer_options newer = {.known = {.struct_size = sizeof newer, .threads = 1}};
    no_error(tssa_context_create(&newer.known, &context));
    tssa_context_free(context);
    newer.more = 1;
    expect_code(tssa_context_create(&newer.known, &context), TSSA_INVALID_ARGUMENT, "newer");
}

/* Of a caller that ends before memory_limit, nothing behind it is read. */
static void test_older_struct(void **state)
{
    (void)state;
    tssa_context *context;
    tssa_value *value;
    tssa_context_options options = {.struct_size = offsetof(tssa_context_options, memory_limit),
                                    .threads = 1,
                                    .memory_limit = 1};
    no_error(tssa_context_create(&options, &context));
    no_error(tssa_tensor_create(context, TSSA_FLOAT, 1, (const int64_t[]){1000}, &value));
    tssa_value_free(value);
    tssa_context_free(context);
}

/* Every function that takes options looks at their size. */
static void test_every_struct(void **state)
{
    (void)state;
    struct program p;
    tssa_model *model;
    tssa_session *session;
    tssa_value *y = NULL;
    no_error(
        program_open(&p, &one_thread, "graph (%x: f32[N]) -> (%y) { %y = Neg(%x) return(%y) }"));
    expect_code(tssa_model_load_file(p.context, "none.onnx", &(tssa_load_options){0}, &model),
                TSSA_INVALID_ARGUMENT, "tssa_load_options");
    expect_code(tssa_model_load_memory(p.context, "", 0, &(tssa_load_options){0}, &model),
                TSSA_INVALID_ARGUMENT, "tssa_load_options");
    expect_code(tssa_model_optimize(p.model, &(tssa_optimize_options){.level = 2}),
                TSSA_INVALID_ARGUMENT, "tssa_optimize_options");
    expect_code(tssa_model_save_file(p.model, "none.onnx", &(tssa_save_options){0}),
                TSSA_INVALID_ARGUMENT, "tssa_save_options");
    const tssa_session_options never = {.struct_size = sizeof never, .compile = (tssa_compile)7};
    expect_code(tssa_session_create(p.model, &never, &session), TSSA_INVALID_ARGUMENT, "compile");
    expect_code(tssa_session_create(p.model, &(tssa_session_options){0}, &session),
                TSSA_INVALID_ARGUMENT, "tssa_session_options");
    expect_code(tssa_session_run_with(p.session, &(tssa_run_options){0}, 1, &p.x, 1, &y),
                TSSA_INVALID_ARGUMENT, "tssa_run_options");
    assert_null(y);
    program_close(&p);
    assert_string_equal(tssa_version(), TSSA_VERSION);
}

/* ---- The allocator --------------------------------------------------------------------------- */

static void *no_memory(void *user, size_t size, size_t alignment)
{
    (void)user, (void)size, (void)alignment;
    return NULL;
}

static void test_half_an_allocator(void **state)
{
    (void)state;
    tssa_context *context;
    tssa_allocator allocator = {0};
    tssa_context_options options = {.struct_size = sizeof options, .allocator = &allocator};
    expect_code(tssa_context_create(&options, &context), TSSA_INVALID_ARGUMENT, "allocate");
    allocator.allocate = no_memory;
    expect_code(tssa_context_create(&options, &context), TSSA_INVALID_ARGUMENT, "release");
}

/* ---- The log --------------------------------------------------------------------------------- */

struct lines {
    int warnings, infos;
    char warning[600];
};

static void add_line(void *user, tssa_log_level level, const char *message)
{
    struct lines *lines = user;
    assert_null(strchr(message, '\n'));
    if (level == TSSA_LOG_WARNING)
        snprintf(lines->warning, sizeof lines->warning, "%s", message);
    *(level == TSSA_LOG_WARNING ? &lines->warnings : &lines->infos) += 1;
}

/*
 * Where there are no plugins: what multiplies no matrices misses none, and what does says so once.
 */
static void test_log(void **state)
{
    (void)state;
    static const char product[] =
        "graph (%x: f32[N, N]) -> (%y) { %y = MatMul(%x, %x) return(%y) }";
    struct lines lines = {0};
    struct program p;
    tssa_session *session;
    tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .log = add_line, .log_user = &lines};
    setenv("TSSA_PLUGIN_DIR", "/nonexistent", 1);
    no_error(program_open(&p, &options, "graph (%x: f32[N]) -> (%y) { %y = Neg(%x) return(%y) }"));
    program_close(&p);
    assert_int_equal(lines.warnings, 0);
    assert_true(lines.infos >= 2); /* loaded, compiled */

    no_error(program_open(&p, &options, product));
    assert_int_equal(lines.warnings, 1);
    assert_non_null(strstr(lines.warning, "tssa-onednn.so"));
    assert_non_null(strstr(lines.warning, "/nonexistent"));
    no_error(tssa_session_create(p.model, NULL, &session));
    assert_int_equal(lines.warnings, 1);
    tssa_session_free(session);
    program_close(&p);

    options.threads = 2;
    no_error(tssa_context_create(&options, &p.context));
    assert_int_equal(lines.warnings, 2);
    assert_non_null(strstr(lines.warning, "tssa-openmp.so"));
    tssa_context_free(p.context);
    unsetenv("TSSA_PLUGIN_DIR");
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

static void test_cancel(void **state)
{
    (void)state;
    struct program p;
    tssa_cancel *one, *other;
    tssa_value *y = NULL;
    no_error(
        program_open(&p, &one_thread, "graph (%x: f32[N]) -> (%y) { %y = Neg(%x) return(%y) }"));
    no_error(tssa_cancel_create(p.context, &one));
    no_error(tssa_cancel_create(p.context, &other));
    const tssa_run_options first = {.struct_size = sizeof first, .cancel = one},
                           second = {.struct_size = sizeof second, .cancel = other};
    tssa_cancel_request(one);
    expect_code(tssa_session_run_with(p.session, &first, 1, &p.x, 1, &y), TSSA_LIMIT, "cancelled");
    assert_null(y);
    no_error(tssa_session_run_with(p.session, &second, 1, &p.x, 1, &y));
    tssa_value_free(y);
    y = NULL;
    no_error(tssa_session_run(p.session, 1, &p.x, 1, &y));
    tssa_value_free(y);
    y = NULL;
    tssa_cancel_reset(one);
    no_error(tssa_session_run_with(p.session, &first, 1, &p.x, 1, &y));
    tssa_value_free(y);
    tssa_cancel_free(one);
    tssa_cancel_free(other);
    tssa_cancel_free(NULL);
    program_close(&p);
}

/* ---- Wanted outputs -------------------------------------------------------------------------- */

/* %bad cannot be computed of three elements; %z is, in a branch, from what %y is made of too. */
static const char branches[] =
    "graph (%x: f32[N], %p: bool[]) -> (%y, %bad, %z) {\n"
    " %shape = Constant() {value = i64[1] [7]}\n"
    " %n = Neg(%x)\n %y = Exp(%n)\n %bad = Reshape(%x, %shape)\n"
    " %z = If(%p) { else_branch() { %a = Abs(%n) return(%a) } then_branch() { %b = Mul(%n, %x) "
    "return(%b) } }\n"
    " return(%y, %bad, %z)\n}\n";

static void test_wanted(void **state)
{
    (void)state;
    struct program p;
    no_error(program_open(&p, &one_thread, branches));
    tssa_value *inputs[2] = {p.x}, *outputs[3] = {NULL};
    no_error(tssa_tensor_create(p.context, TSSA_BOOL, 0, NULL, &inputs[1]));
    expect_code(tssa_session_run(p.session, 2, inputs, 3, outputs), TSSA_RUNTIME, "Reshape");

    const size_t numbers[] = {2, 0};
    tssa_run_options options = {.struct_size = sizeof options, .wanted = numbers};
    for (int round = 0; round < 2; round++) {
        no_error(tssa_session_run_with(p.session, &options, 2, inputs, 2, outputs));
        const float *z = tssa_tensor_data(outputs[0]), *y = tssa_tensor_data(outputs[1]);
        assert_true(z[2] == 3 && y[0] > 0.367f && y[0] < 0.368f);
        tssa_value_free(outputs[0]);
        tssa_value_free(outputs[1]);
        outputs[0] = outputs[1] = NULL;
    }
    options.wanted = &numbers[0]; /* another choice, into memory of the caller's */
    no_error(tssa_tensor_create(p.context, TSSA_FLOAT, 1, (const int64_t[]){3}, &outputs[0]));
    no_error(tssa_session_run_with(p.session, &options, 2, inputs, 1, outputs));
    assert_true(((float *)tssa_tensor_data(outputs[0]))[1] == 2);
    tssa_value_free(outputs[0]);
    outputs[0] = NULL;
    no_error(tssa_session_run_with(p.session, &options, 2, inputs, 0, NULL));
    tssa_value_free(inputs[1]);
    program_close(&p);
}

static void test_wrong_choices(void **state)
{
    (void)state;
    struct program p;
    no_error(program_open(&p, &one_thread, branches));
    tssa_value *inputs[2] = {p.x}, *outputs[3] = {NULL};
    no_error(tssa_tensor_create(p.context, TSSA_BOOL, 0, NULL, &inputs[1]));
    tssa_run_options options = {.struct_size = sizeof options, .wanted = (const size_t[]){0, 3}};
    expect_code(tssa_session_run_with(p.session, &options, 2, inputs, 2, outputs),
                TSSA_INVALID_ARGUMENT, "output 3");
    options.wanted = (const size_t[]){2, 0, 2};
    expect_code(tssa_session_run_with(p.session, &options, 2, inputs, 3, outputs),
                TSSA_INVALID_ARGUMENT, "twice");
    options.wanted = (const size_t[]){1};
    expect_code(tssa_session_run_with(p.session, &options, 2, inputs, 1, outputs), TSSA_RUNTIME,
                "Reshape");
    for (int i = 0; i < 3; i++)
        assert_null(outputs[i]);
    tssa_value_free(inputs[1]);
    program_close(&p);
}

static tssa_status *choose_and_run(const tssa_allocator *allocator)
{
    struct program p;
    tssa_value *inputs[2] = {NULL}, *outputs[2] = {NULL};
    tssa_cancel *cancel = NULL;
    tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .allocator = allocator};
    tssa_run_options run = {.struct_size = sizeof run, .wanted = (const size_t[]){2, 0}};
    tssa_status *status = program_open(&p, &options, branches);
    inputs[0] = p.x;
    if (!status)
        status = tssa_tensor_create(p.context, TSSA_BOOL, 0, NULL, &inputs[1]);
    if (!status)
        status = tssa_cancel_create(p.context, &cancel);
    run.cancel = cancel;
    if (!status)
        status = tssa_session_run_with(p.session, &run, 2, inputs, 2, outputs);
    tssa_value_free(outputs[0]);
    tssa_value_free(outputs[1]);
    tssa_value_free(inputs[1]);
    tssa_cancel_free(cancel);
    program_close(&p);
    return status;
}

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(choose_and_run) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_older_struct),
        cmocka_unit_test(test_every_struct),
        cmocka_unit_test(test_half_an_allocator),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_wrong_choices),
        cmocka_unit_test(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
