/* SPDX-License-Identifier: Apache-2.0 */
/* ctest-timeout: 300 */
/* A thread with TSSA_STACK_SIZE of stack gets the deepest and the longest models through all that
 * there is. */
#include <pthread.h>
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
#include "base/file.h"
#include "base/text.h"
#include "common/no_error.h"

/* Instrumented frames are larger. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_FACTOR 16
#else
#define STACK_FACTOR 1
#endif

/* A model in text of inputs %x: f32[N], %p: bool[], and what became of it. */
struct job {
    const char *path;
    tssa_status *load, *rest;
    size_t written;
};

static void count_bytes(void *user, const void *data, size_t size)
{
    (void)data;
    *(size_t *)user += size;
}

static tssa_status *run_model(tssa_context *context, tssa_model *model)
{
    tssa_session *session = NULL;
    tssa_value *inputs[2] = {NULL}, *outputs[1] = {NULL};
    TRY(tssa_session_create(model, NULL, &session));
    tssa_status *status =
        tssa_tensor_create(context, TSSA_FLOAT, 1, (const int64_t[]){3}, &inputs[0]);
    if (!status)
        status = tssa_tensor_create(context, TSSA_BOOL, 0, NULL, &inputs[1]);
    if (!status) {
        *(uint8_t *)tssa_tensor_data(inputs[1]) = 1;
        status = tssa_session_run(session, 2, inputs, 1, outputs);
    }
    tssa_value_free(outputs[0]);
    tssa_value_free(inputs[0]);
    tssa_value_free(inputs[1]);
    tssa_session_free(session);
    return status;
}

static void *work(void *argument)
{
    struct job *job = argument;
    tssa_context *context = NULL;
    tssa_model *model = NULL;
    const tssa_context_options options = {.struct_size = sizeof options, .threads = 1};
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .verify_after_passes = 1};
    job->load = tssa_context_create(&options, &context);
    if (!job->load)
        job->load = tssa_model_load_file(context, job->path, NULL, &model);
    if (!job->load)
        job->rest = tssa_model_optimize(model, &optimize);
    if (!job->load && !job->rest)
        job->rest = tssa_model_save_memory(model, NULL, count_bytes, &job->written);
    if (!job->load && !job->rest)
        job->rest = run_model(context, model);
    tssa_model_free(model);
    tssa_context_free(context);
    return NULL;
}

static struct job work_on_small_stack(struct text *text)
{
    char path[] = "/tmp/tssa_stack_XXXXXX.tir";
    struct job job = {.path = path};
    pthread_attr_t attributes;
    pthread_t thread;
    int descriptor = mkstemps(path, 4);
    assert_true(descriptor >= 0);
    close(descriptor);
    no_error(file_write(&allocator_default, path, text_string(text), text->size));
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)TSSA_STACK_SIZE * STACK_FACTOR),
                     0);
    assert_int_equal(pthread_create(&thread, &attributes, work, &job), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    unlink(path);
    text_free(text);
    return job;
}

/* Each level has an If of its own in both branches' way. */
static void print_branches(struct text *text, int depth)
{
    text_init(text, &allocator_default);
    text_puts(text, "graph (%x: f32[N], %p: bool[]) -> (%r0) {\n%t0 = Neg(%x)\n");
    for (int i = 0; i < depth; i++)
        text_printf(text,
                    "%%t%d = Sub(%%t%d, %%x)\n%%r%d = If(%%p) { else_branch() { %%e%d = Add(%%x, "
                    "%%t%d) return(%%e%d) } then_branch() {\n",
                    i + 1, i, i, i, i + 1, i);
    text_printf(text, "%%leaf = Neg(%%t%d) return(%%leaf)\n", depth);
    for (int i = depth - 1; i >= 0; i--)
        text_printf(text, "} }\nreturn(%%r%d)\n", i);
    text_puts(text, "}\n");
}

/* The deepest that is taken, found by halving. */
static void the_deepest_model(void **state)
{
    (void)state;
    struct text text;
    int taken = 32, refused = 4096;
    while (refused - taken > 1) {
        int depth = taken + (refused - taken) / 2;
        print_branches(&text, depth);
        struct job job = work_on_small_stack(&text);
        no_error(job.rest);
        if (job.load) /* not for what else may be wrong with it */
            assert_non_null(strstr(tssa_status_message(job.load), "deep"));
        *(job.load ? &refused : &taken) = depth;
        tssa_status_free(job.load);
    }
    print_message("models nest up to %d deep\n", taken);
    assert_true(taken >= 64);
}

/* Chains of 5,000 steps, each of the one before. */
static void long_models(void **state)
{
    (void)state;
    static const char *const steps[] = {"Sub", "Max", "Mul", "Add"};
    struct text text;
    for (int mixed = 0; mixed < 2; mixed++) {
        text_init(&text, &allocator_default);
        text_puts(&text, "graph (%x: f32[N], %p: bool[]) -> (%v5000) {\n%v0 = Identity(%x)\n");
        for (int i = 0; i < 5000; i++)
            text_printf(&text, "%%v%d = %s(%%v%d, %%x)\n", i + 1, steps[mixed * i % 4], i);
        text_puts(&text, "return(%v5000)\n}\n");
        struct job job = work_on_small_stack(&text);
        no_error(job.load);
        no_error(job.rest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_deepest_model),
        cmocka_unit_test(long_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
