/* SPDX-License-Identifier: Apache-2.0 */
/* ctest-labels: tsan */
/*
 * The public interface on committed models: one session run from several threads at once, outputs
 * in the caller's memory, arguments that are wrong, and every allocation failing once.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "base/file.h"
#include "base/text.h"
#include "common/no_error.h"
#include "common/test_alloc.h"
#include "onnx/tensor_proto.h"

#define MODEL_DIR TSSA_SOURCE_DIR "/models/ssd_loop_small"
#define UNROLLED TSSA_SOURCE_DIR "/models/ssd_unrolled_small/model.onnx" /* takes the same */
#define MAX_VALUES 32
#define THREADS 4
#define RUNS 10

/* ---- A model and its inputs ------------------------------------------------------------------ */

struct fixture {
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    size_t n_in, n_out;
    tssa_value *inputs[MAX_VALUES];
};

static tssa_status *read_input(tssa_context *context, size_t index, tssa_value **value)
{
    char path[512];
    struct file_map map;
    struct value read;
    const struct onnx_value_type expected = {.kind = TSSA_KIND_TENSOR};
    snprintf(path, sizeof path, "%s/test_data_set_0/input_%zu.pb", MODEL_DIR, index);
    TRY(file_map_open(path, &map));
    tssa_status *status =
        onnx_read_value(&context->allocator, map.data, map.size, &expected, &read);
    file_map_close(&map);
    TRY(status);
    return value_handle(&context->allocator, &read, value);
}

static tssa_status *fixture_open(struct fixture *f, const tssa_context_options *options)
{
    memset(f, 0, sizeof *f);
    TRY(tssa_context_create(options, &f->context));
    TRY(tssa_model_load_file(f->context, MODEL_DIR "/model.onnx", NULL, &f->model));
    TRY(tssa_model_optimize(f->model, NULL));
    TRY(tssa_session_create(f->model, NULL, &f->session));
    f->n_in = tssa_model_input_count(f->model);
    f->n_out = tssa_model_output_count(f->model);
    for (size_t i = 0; i < f->n_in; i++)
        TRY(read_input(f->context, i, &f->inputs[i]));
    return NULL;
}

/* In an order that nobody would choose: it must not matter. */
static void fixture_close(struct fixture *f)
{
    tssa_model_free(f->model);
    tssa_session_free(f->session);
    for (size_t i = 0; i < f->n_in; i++)
        tssa_value_free(f->inputs[i]);
    tssa_context_free(f->context);
}

static const tssa_context_options one_thread = {.struct_size = sizeof one_thread, .threads = 1};

static bool same_value(const tssa_value *a, const tssa_value *b)
{
    size_t bytes = tssa_value_count(a) * tssa_dtype_size(tssa_value_dtype(a));
    return tssa_value_count(a) == tssa_value_count(b) &&
           tssa_value_dtype(a) == tssa_value_dtype(b) &&
           (bytes == 0 || memcmp(tssa_tensor_data(a), tssa_tensor_data(b), bytes) == 0);
}

/* ---- Threads --------------------------------------------------------------------------------- */

struct worker {
    struct fixture *fixture;
    tssa_value *const *expected;
    int mismatches, errors;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct fixture *f = worker->fixture;
    for (int i = 0; i < RUNS; i++) {
        tssa_value *outputs[MAX_VALUES] = {NULL};
        tssa_status *status = tssa_session_run(f->session, f->n_in, f->inputs, f->n_out, outputs);
        worker->errors += status != NULL;
        tssa_status_free(status);
        for (size_t o = 0; o < f->n_out; o++) {
            worker->mismatches += !outputs[o] || !same_value(outputs[o], worker->expected[o]);
            tssa_value_free(outputs[o]);
        }
    }
    return NULL;
}

/* The first of them, too, for which the session is made ready. */
static void test_concurrent_runs(void **state)
{
    (void)state;
    struct fixture f;
    tssa_value *expected[MAX_VALUES] = {NULL};
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    tssa_session *other;
    no_error(fixture_open(&f, &one_thread));
    no_error(tssa_session_create(f.model, NULL, &other));
    no_error(tssa_session_run(other, f.n_in, f.inputs, f.n_out, expected));
    tssa_session_free(other);
    assert_true(tssa_value_count(expected[0]) > 0);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.fixture = &f, .expected = expected};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].errors, 0);
        assert_int_equal(workers[i].mismatches, 0);
    }
    for (size_t o = 0; o < f.n_out; o++)
        tssa_value_free(expected[o]);
    fixture_close(&f);
}

/* ---- A model that is changed ----------------------------------------------------------------- */

static void expect_run(struct fixture *f, tssa_session *session, tssa_value *const *expected)
{
    tssa_value *outputs[MAX_VALUES] = {NULL};
    no_error(tssa_session_run(session, f->n_in, f->inputs, f->n_out, outputs));
    for (size_t o = 0; o < f->n_out; o++) {
        assert_true(same_value(outputs[o], expected[o]));
        tssa_value_free(outputs[o]);
    }
}

/* In all ways; *session, if wanted, is made on the way. */
static void change(tssa_model *model, const tssa_session_options *options, tssa_session **session)
{
    const tssa_optimize_options sessions = {.struct_size = sizeof sessions,
                                            .level = 2,
                                            .target = TSSA_TARGET_SESSION},
                                files = {.struct_size = sizeof files, .level = 2};
    tssa_value_info output;
    no_error(tssa_model_optimize(model, &sessions));
    if (session)
        no_error(tssa_session_create(model, options, session));
    no_error(tssa_model_verify(model));
    no_error(tssa_model_optimize(model, &files));
    no_error(tssa_model_output(model, 0, &output));
    no_error(tssa_model_keep_outputs(model, 1, &output.name));
}

static void add_bytes(void *user, const void *data, size_t size)
{
    text_append(user, data, size);
}

static void save(const struct fixture *f, const tssa_model *model, struct text *text)
{
    text_init(text, &f->context->allocator);
    no_error(tssa_model_save_memory(model, NULL, add_bytes, text));
}

/* Sessions go on with what the model was, with and without kernels; it becomes what it would
 * without them. */
static void test_changed_model(void **state)
{
    (void)state;
    struct fixture f;
    tssa_model *changed, *plain;
    tssa_value *expected[MAX_VALUES] = {NULL};
    tssa_session *early, *fused, *alone;
    struct text a, b;
    const tssa_session_options wait = {.struct_size = sizeof wait, .compile = TSSA_COMPILE_WAIT};
    no_error(fixture_open(&f, &one_thread));
    no_error(tssa_model_load_file(f.context, UNROLLED, NULL, &plain));
    no_error(tssa_session_create(plain, NULL, &alone));
    no_error(tssa_session_run(alone, f.n_in, f.inputs, f.n_out, expected));
    tssa_session_free(alone);
    change(plain, NULL, NULL);

    no_error(tssa_model_load_file(f.context, UNROLLED, NULL, &changed));
    no_error(tssa_session_create(changed, NULL, &early)); /* its first run comes afterwards */
    change(changed, &wait, &fused);
    expect_run(&f, early, expected);
    expect_run(&f, fused, expected);
    save(&f, changed, &a);
    save(&f, plain, &b);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    text_free(&a);
    text_free(&b);
    tssa_session_free(fused);
    tssa_model_free(changed);
    tssa_session_free(early);
    tssa_model_free(plain);
    for (size_t o = 0; o < f.n_out; o++)
        tssa_value_free(expected[o]);
    fixture_close(&f);
}

/* ---- Profiles -------------------------------------------------------------------------------- */

struct profile_sums {
    uint64_t calls, top, own;
    int depth;
};

static void add_step(void *user, const tssa_step_profile *step)
{
    struct profile_sums *sums = user;
    assert_true(step->calls > 0);
    assert_true(step->nested_nanoseconds <= step->nanoseconds);
    assert_true((step->around[0] == '\0') == (step->depth == 0));
    assert_non_null(strstr(step->node, step->op));
    sums->calls += step->calls;
    sums->own += step->nanoseconds - step->nested_nanoseconds;
    if (step->depth == 0)
        sums->top += step->nanoseconds;
    if (step->depth > sums->depth)
        sums->depth = step->depth;
}

static struct profile_sums read_profile(tssa_session *session)
{
    struct profile_sums sums = {0};
    no_error(tssa_session_profile_steps(session, add_step, &sums));
    return sums;
}

static void run_and_drop(struct fixture *f, tssa_session *session)
{
    tssa_value *outputs[MAX_VALUES] = {NULL};
    no_error(tssa_session_run(session, f->n_in, f->inputs, f->n_out, outputs));
    for (size_t o = 0; o < f->n_out; o++)
        tssa_value_free(outputs[o]);
}

/* Own times add up to the time of the main graph's steps; a cleared profile starts anew. */
static void test_profile_has_steps(void **state)
{
    (void)state;
    struct fixture f;
    tssa_session *session;
    const tssa_session_options options = {.struct_size = sizeof options, .profile = 1};
    no_error(fixture_open(&f, &one_thread));
    no_error(tssa_session_create(f.model, &options, &session));
    assert_int_equal(read_profile(session).calls, 0);
    run_and_drop(&f, session);
    struct profile_sums one = read_profile(session);
    assert_true(one.calls > 0 && one.depth > 0);
    assert_int_equal(one.own, one.top);
    run_and_drop(&f, session);
    assert_int_equal(read_profile(session).calls, 2 * one.calls);
    no_error(tssa_session_profile_clear(session));
    assert_int_equal(read_profile(session).calls, 0);
    run_and_drop(&f, session);
    assert_int_equal(read_profile(session).calls, one.calls);
    tssa_session_free(session);

    struct profile_sums sums = {0};
    tssa_status *status = tssa_session_profile_steps(f.session, add_step, &sums);
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    tssa_status_free(status);
    tssa_library_info library;
    no_error(tssa_session_library(f.session, &library));
    assert_int_equal(library.primitives, 0); /* there is no convolution in it */
    status = tssa_session_library(f.session, NULL);
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    tssa_status_free(status);
    status = tssa_session_profile_clear(f.session);
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    tssa_status_free(status);
    fixture_close(&f);
}

static void test_memory_peak_restarts(void **state)
{
    (void)state;
    struct fixture f;
    no_error(fixture_open(&f, &one_thread));
    size_t used = tssa_context_memory_used(f.context), peak = tssa_context_memory_peak(f.context);
    assert_true(used > 0 && used < peak);
    tssa_context_memory_restart_peak(f.context);
    assert_int_equal(tssa_context_memory_peak(f.context), used);
    run_and_drop(&f, f.session);
    assert_true(tssa_context_memory_peak(f.context) > used);
    fixture_close(&f);
    assert_int_equal(tssa_context_memory_used(NULL), 0);
}

static void test_stopped_session_refuses(void **state)
{
    (void)state;
    struct fixture f;
    tssa_value *outputs[MAX_VALUES] = {NULL};
    no_error(fixture_open(&f, &one_thread));
    tssa_session_stop(f.session);
    tssa_status *status = tssa_session_run(f.session, f.n_in, f.inputs, f.n_out, outputs);
    assert_int_equal(tssa_status_code(status), TSSA_LIMIT);
    tssa_status_free(status);
    assert_null(outputs[0]);
    fixture_close(&f);
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static void expect_code(tssa_status *status, tssa_code code, const char *word)
{
    assert_int_equal(tssa_status_code(status), code);
    assert_non_null(strstr(tssa_status_message(status), word));
    assert_null(strchr(tssa_status_message(status), '\n'));
    tssa_status_free(status);
}

static void test_wrong_inputs(void **state)
{
    (void)state;
    struct fixture f;
    tssa_value *outputs[MAX_VALUES] = {NULL}, *wrong;
    no_error(fixture_open(&f, &one_thread));
    expect_code(tssa_session_run(f.session, 0, NULL, f.n_out, outputs), TSSA_INVALID_ARGUMENT,
                "inputs");

    tssa_value *kept = f.inputs[0];
    f.inputs[0] = NULL;
    expect_code(tssa_session_run(f.session, f.n_in, f.inputs, f.n_out, outputs),
                TSSA_INVALID_ARGUMENT, "missing");

    no_error(tssa_tensor_create(f.context, TSSA_INT32, 1, (const int64_t[]){4}, &wrong));
    f.inputs[0] = wrong;
    expect_code(tssa_session_run(f.session, f.n_in, f.inputs, f.n_out, outputs),
                TSSA_SHAPE_MISMATCH, "INT32");
    tssa_value_free(wrong);

    no_error(tssa_tensor_create(f.context, TSSA_FLOAT, 1, (const int64_t[]){4}, &wrong));
    f.inputs[0] = wrong;
    expect_code(tssa_session_run(f.session, f.n_in, f.inputs, f.n_out, outputs),
                TSSA_SHAPE_MISMATCH, "rank");
    tssa_value_free(wrong);
    f.inputs[0] = kept;
    assert_null(outputs[0]);
    fixture_close(&f);
}

static void test_tensor_arguments(void **state)
{
    (void)state;
    tssa_context *context;
    tssa_value *value;
    float data[4] = {1, 2, 3, 4};
    no_error(tssa_context_create(&one_thread, &context));
    expect_code(
        tssa_tensor_borrow(context, TSSA_FLOAT, 1, (const int64_t[]){5}, data, sizeof data, &value),
        TSSA_INVALID_ARGUMENT, "bytes");
    expect_code(tssa_tensor_borrow(context, TSSA_FLOAT, 1, (const int64_t[]){1}, (char *)data + 1,
                                   8, &value),
                TSSA_INVALID_ARGUMENT, "aligned");
    expect_code(tssa_tensor_create(context, TSSA_FLOAT, 1, (const int64_t[]){-1}, &value),
                TSSA_INVALID_ARGUMENT, "-1");
    no_error(tssa_tensor_borrow(context, TSSA_FLOAT, 2, (const int64_t[]){2, 2}, data, sizeof data,
                                &value));
    assert_ptr_equal(tssa_tensor_data(value), data);
    assert_int_equal(tssa_tensor_rank(value), 2);
    tssa_value_free(value);
    tssa_context_free(context);
}

/* Sequences and maps hand their elements out again. */
static void test_containers(void **state)
{
    (void)state;
    tssa_context *context;
    tssa_value *keys, *values, *map, *sequence, *element;
    const tssa_string names[2] = {{"a", 1}, {"b\0c", 3}};
    no_error(tssa_context_create(&one_thread, &context));
    no_error(tssa_tensor_create_strings(context, 1, (const int64_t[]){2}, names, &keys));
    no_error(tssa_tensor_create(context, TSSA_FLOAT, 1, (const int64_t[]){2}, &values));
    no_error(tssa_map_create(context, keys, values, &map));
    assert_int_equal(tssa_value_count(map), 2);
    no_error(tssa_value_element(map, 0, &element));
    const tssa_string *strings = tssa_tensor_data(element);
    assert_int_equal(strings[1].size, 3);
    assert_memory_equal(strings[1].data, "b\0c", 3);
    tssa_value_free(element);
    no_error(tssa_sequence_create(context, TSSA_FLOAT, 2, (tssa_value *const[]){values, values},
                                  &sequence));
    tssa_value_free(values);
    no_error(tssa_value_element(sequence, 1, &element));
    assert_int_equal(tssa_value_dtype(element), TSSA_FLOAT);
    tssa_value_free(element);
    expect_code(tssa_value_element(sequence, 2, &element), TSSA_INVALID_ARGUMENT, "2");
    tssa_value_free(sequence);
    tssa_value_free(map);
    tssa_value_free(keys);
    tssa_context_free(context);
}

/* What a run appends to a sequence of the caller's lies in an array of its own: it is the run's,
 * and the caller's may be freed after it. */
static void test_sequences_stay_as_they_are(void **state)
{
    (void)state;
    tssa_context *context;
    tssa_value *tensor, *handle;
    struct value empty, with_room, longer;
    no_error(tssa_context_create(&one_thread, &context));
    no_error(tssa_tensor_create(context, TSSA_FLOAT, 1, (const int64_t[]){2}, &tensor));
    no_error(sequence_create(&context->allocator, TSSA_FLOAT, &empty));
    no_error(sequence_insert(&empty, 0, &tensor->value, &with_room));
    value_release(&empty);
    no_error(value_handle(&context->allocator, &with_room, &handle));
    no_error(sequence_insert(&handle->value, 1, &tensor->value, &longer));
    assert_ptr_not_equal(sequence_element(longer.sequence, 0),
                         sequence_element(handle->value.sequence, 0));
    value_release(&longer);
    tssa_value_free(handle);
    tssa_value_free(tensor);
    tssa_context_free(context);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void test_memory_limit(void **state)
{
    (void)state;
    struct fixture f;
    tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .memory_limit = 1 << 16};
    tssa_status *status = fixture_open(&f, &options);
    expect_code(status, TSSA_OUT_OF_MEMORY, "memory");
    fixture_close(&f);
}

static tssa_status *load_and_run(const tssa_allocator *allocator)
{
    struct fixture f;
    tssa_value *outputs[MAX_VALUES] = {NULL};
    tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .allocator = allocator};
    tssa_status *status = fixture_open(&f, &options);
    if (!status)
        status = tssa_session_run(f.session, f.n_in, f.inputs, f.n_out, outputs);
    for (size_t o = 0; o < MAX_VALUES; o++)
        tssa_value_free(outputs[o]);
    fixture_close(&f);
    return status;
}

/* What docs/architecture.md says of runs after the first, where the caller gives the outputs'
 * memory. */
static void test_later_runs_allocate_nothing(void **state)
{
    (void)state;
    struct test_alloc counter;
    struct fixture f;
    tssa_value *outputs[MAX_VALUES] = {NULL}; /* from the second run on, memory to write into */
    long counts[8];                           /* sizes are learnt, and the layout takes its time */
    test_alloc_init(&counter);
    tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .allocator = &counter.allocator};
    no_error(fixture_open(&f, &options));
    for (int i = 0; i < 8; i++) {
        long before = counter.count;
        no_error(tssa_session_run(f.session, f.n_in, f.inputs, f.n_out, outputs));
        counts[i] = counter.count - before;
    }
    size_t peak = tssa_context_memory_peak(f.context);
    no_error(tssa_session_run(f.session, f.n_in, f.inputs, f.n_out, outputs));
    assert_int_equal(tssa_context_memory_peak(f.context), peak);
    assert_true(counts[0] > 0);
    assert_int_equal(counts[6] + counts[7], 0);
    for (size_t o = 0; o < MAX_VALUES; o++)
        tssa_value_free(outputs[o]);
    fixture_close(&f);
    assert_int_equal(counter.live, 0);
}

/* The last allocations of making a session: some of them are for its first run. */
#define LAST_MADE 40

/* Of a session which is made and then runs. True: it did not come to the allocation that fails. */
static bool fail_one(struct fixture *f, struct test_alloc *failing, long number)
{
    tssa_value *outputs[MAX_VALUES] = {NULL};
    failing->fail_at = failing->count + number;
    tssa_status *status = tssa_session_create(f->model, NULL, &f->session);
    if (!status)
        status = tssa_session_run(f->session, f->n_in, f->inputs, f->n_out, outputs);
    const bool through = failing->count <= failing->fail_at;
    failing->fail_at = -1;
    if (status)
        expect_code(status, TSSA_OUT_OF_MEMORY, "memory");
    for (size_t o = 0; o < f->n_out; o++)
        tssa_value_free(outputs[o]);
    return through;
}

/* Where there was no memory for a first run, or what is made for it before, the next one is the
 * first. */
static void test_first_run_is_tried_again(void **state)
{
    (void)state;
    struct test_alloc failing;
    struct fixture f;
    tssa_value *expected[MAX_VALUES] = {NULL};
    long failed = 0;
    test_alloc_init(&failing);
    tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .allocator = &failing.allocator};
    no_error(fixture_open(&f, &options));
    no_error(tssa_session_run(f.session, f.n_in, f.inputs, f.n_out, expected));
    const long before = failing.count;
    tssa_session_free(f.session);
    no_error(tssa_session_create(f.model, NULL, &f.session));
    const long first = failing.count - before - LAST_MADE;
    assert_true(first > 0);
    for (bool through = false; !through; failed++) {
        tssa_session_free(f.session);
        f.session = NULL;
        through = fail_one(&f, &failing, first + failed);
        if (!f.session)
            no_error(tssa_session_create(f.model, NULL, &f.session));
        expect_run(&f, f.session, expected);
    }
    assert_true(failed > LAST_MADE);
    for (size_t o = 0; o < f.n_out; o++)
        tssa_value_free(expected[o]);
    fixture_close(&f);
    assert_int_equal(failing.live, 0);
}

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(load_and_run) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concurrent_runs),
        cmocka_unit_test(test_changed_model),
        cmocka_unit_test(test_profile_has_steps),
        cmocka_unit_test(test_memory_peak_restarts),
        cmocka_unit_test(test_stopped_session_refuses),
        cmocka_unit_test(test_wrong_inputs),
        cmocka_unit_test(test_tensor_arguments),
        cmocka_unit_test(test_containers),
        cmocka_unit_test(test_sequences_stay_as_they_are),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_later_runs_allocate_nothing),
        cmocka_unit_test(test_first_run_is_tried_again),
        cmocka_unit_test(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
