/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights that lie where no kernel may read them are copied when a model is loaded; once a session
 * keeps them packed and the model's handle is freed, the copies are gone (ir/copies.h). They are
 * counted, and outputs have the bits of a session whose model is there.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/handles.h"
#include "api/session.h"
#include "base/text.h"
#include "common/model_text.h"
#include "common/no_error.h"
#include "common/xmalloc.h"
#include "ir/clone.h"
#include "ir/copies.h"

/* ---- Holders --------------------------------------------------------------------------------- */

enum { SIZE = 32 << 10 };

struct copied {
    struct ir_graph *graph, *clone;
    char *source, *data;
};

static void make_copy(struct copied *c)
{
    c->graph = ir_graph_create(&allocator_default);
    c->source = xcalloc(1, SIZE);
    c->data = arena_alloc_aligned(&c->graph->arena, SIZE, TENSOR_ALIGNMENT);
    memset(c->source, 1, SIZE);
    memcpy(c->data, c->source, SIZE);
    assert_true(ir_copies_add(c->graph, c->data, c->source, SIZE));
    no_error(ir_clone_graph(c->graph, &c->clone));
}

static void free_copy(struct copied *c)
{
    ir_graph_free(c->clone);
    ir_graph_free(c->graph);
    free(c->source);
}

/* A page of it is memory of the system's, so zero, where it is not there. */
static void expect_there(const struct copied *c, bool there)
{
    assert_int_equal(ir_copies_there(c->graph), there ? SIZE : 0);
    assert_int_equal(c->data[SIZE / 2], there);
    for (size_t i = 0; there && i < SIZE; i++)
        assert_int_equal(c->data[i], 1);
}

static void test_holders(void **state)
{
    struct copied c;
    (void)state;
    make_copy(&c);
    expect_there(&c, true);
    assert_true(ir_copies_hold(c.clone, c.data + SIZE - 1)); /* an address in it, in a clone */
    assert_true(ir_copies_hold(c.graph, c.data));
    assert_false(ir_copies_hold(c.graph, c.data + SIZE));
    assert_false(ir_copies_hold(c.graph, c.data - 1));
    ir_copies_leave(c.graph);
    ir_copies_drop(c.graph, c.data);
    expect_there(&c, true);
    ir_copies_drop(c.graph, c.data);
    expect_there(&c, false);
    assert_true(ir_copies_hold(c.clone, c.data));
    expect_there(&c, true);
    ir_copies_drop(c.clone, c.data);
    expect_there(&c, false);
    ir_copies_open(c.clone);
    expect_there(&c, true);
    ir_copies_leave(c.clone);
    expect_there(&c, false);
    free_copy(&c);
}

static void test_open(void **state)
{
    struct copied c;
    (void)state;
    make_copy(&c);
    assert_true(ir_copies_hold(c.graph, c.data));
    ir_copies_drop(c.graph, c.data);
    expect_there(&c, true); /* whoever has the graph open may read it */
    ir_copies_open(c.graph);
    ir_copies_leave(c.graph);
    expect_there(&c, true);
    ir_copies_leave(c.graph);
    expect_there(&c, false);
    free_copy(&c);
}

static void test_none(void **state)
{
    struct ir_graph *graph = ir_graph_create(&allocator_default);
    char small[64];
    (void)state;
    assert_true(ir_copies_add(graph, small, small, sizeof small));
    assert_false(ir_copies_hold(graph, small));
    assert_false(ir_copies_hold(NULL, small));
    ir_copies_leave(graph);
    assert_int_equal(ir_copies_there(graph), 0);
    ir_graph_free(graph);
}

/* ---- Sessions -------------------------------------------------------------------------------- */

/* What becomes of weights. */
enum kept { PACKED_BY_LIBRARY, IN_PANELS, WHERE_THEY_ARE };

struct weights {
    const char *x, *dims, *op, *last; /* what makes the output of the op's result */
    enum kept kept;
    int64_t shapes[3][4]; /* of x, one run after the other */
    size_t bytes;
};

/* An image of one pixel is too little work for a library: its weights are read where they lie. */
static const struct weights all[] = {
    {"1, 32, H, W",
     "32, 32, 3, 3",
     "Conv",
     "Identity",
     PACKED_BY_LIBRARY,
     {{1, 32, 8, 8}, {1, 32, 20, 9}, {1, 32, 8, 8}},
     36864},
    {"1, 16, H, W",
     "32, 16, 3, 3",
     "Conv",
     "Identity",
     PACKED_BY_LIBRARY,
     {{1, 16, 8, 8}, {1, 16, 1, 1}, {1, 16, 9, 9}},
     18432},
    {"1, 16, H, W",
     "32, 16, 3, 3",
     "Conv",
     "Relu",
     PACKED_BY_LIBRARY,
     {{1, 16, 8, 8}, {1, 16, 1, 1}, {1, 16, 9, 9}},
     18432},
    {"1, 32, 14, 14",
     "64, 32, 3, 3",
     "Conv",
     "Relu",
     PACKED_BY_LIBRARY,
     {{1, 32, 14, 14}, {1, 32, 14, 14}, {1, 32, 14, 14}},
     73728},
    {"1, 512", "512, 64", "MatMul", "Relu", IN_PANELS, {{1, 512}, {1, 512}, {1, 512}}, 131072},
    {"M, 256",
     "256, 256",
     "MatMul",
     "Relu",
     PACKED_BY_LIBRARY,
     {{64, 256}, {1, 256}, {90, 256}},
     262144},
    {"M, 256",
     "256, 256",
     "Gemm",
     "Relu",
     PACKED_BY_LIBRARY,
     {{64, 256}, {3, 256}, {90, 256}},
     262144},
    {"M, 128", "128, 64", "MatMul", "Relu", WHERE_THEY_ARE, {{9, 128}, {1, 128}, {40, 128}}, 32768},
};

static void append(void *user, const void *data, size_t size)
{
    text_append(user, data, size);
}

static void save(const struct weights *w, struct text *bytes)
{
    struct text text;
    tssa_context *context;
    tssa_model *model;
    text_init(&text, &allocator_default);
    text_printf(&text, "graph @g opset(\"\": 18) ir_version(8) (%%x: f32[%s]) -> (%%y) {\n", w->x);
    text_printf(&text, "%%w = Constant() {value = f32[%s] [", w->dims);
    for (size_t i = 0; i < w->bytes / sizeof(float); i++)
        text_printf(&text, "%s%d", i ? ", " : "", (int)(i * 7 % 11) - 5);
    text_printf(&text, "]}\n%%s = %s(%%x, %%w)%s\n%%y = %s(%%s)\nreturn(%%y)\n}\n", w->op,
                strcmp(w->op, "Conv") == 0 ? " {pads = [1, 1, 1, 1]}" : "", w->last);
    no_error(tssa_context_create(NULL, &context));
    no_error(model_text_load(context, text_string(&text), &model));
    no_error(tssa_model_save_memory(model, NULL, append, bytes));
    tssa_model_free(model);
    tssa_context_free(context);
    text_free(&text);
}

static tssa_value *input_of(tssa_context *context, const struct weights *w, const int64_t *dims)
{
    tssa_value *x;
    no_error(tssa_tensor_create(context, TSSA_FLOAT, strcmp(w->op, "Conv") == 0 ? 4 : 2, dims, &x));
    float *data = tssa_tensor_data(x);
    for (size_t i = 0; i < tssa_value_count(x); i++)
        data[i] = (float)((int)(i % 13) - 6) / 3;
    return x;
}

static tssa_value *run(tssa_session *session, tssa_value *x)
{
    tssa_value *y = NULL;
    no_error(tssa_session_run(session, 1, &x, 1, &y));
    return y;
}

/* The same bits from both sessions. */
static void compare(tssa_context *context, const struct weights *w, const int64_t *dims,
                    tssa_session *a, tssa_session *b)
{
    tssa_value *x = input_of(context, w, dims), *of_a = run(a, x), *of_b = run(b, x);
    assert_int_equal(tssa_value_count(of_a), tssa_value_count(of_b));
    assert_memory_equal(tssa_tensor_data(of_a), tssa_tensor_data(of_b),
                        tssa_value_count(of_a) * sizeof(float));
    tssa_value_free(of_b);
    tssa_value_free(of_a);
    tssa_value_free(x);
}

static void wait_for(tssa_session *session)
{
    tssa_compile_info info;
    do {
        usleep(1000);
        no_error(tssa_session_compiled(session, &info));
    } while (info.pending);
}

static void expect_kept(const struct weights *w, const tssa_session *session)
{
    const bool packed = session->now->plan->tally.packed_bytes > 0;
    if (w->kept == IN_PANELS)
        assert_true(packed);
    const bool there = w->kept == WHERE_THEY_ARE || !packed; /* without the library */
    assert_int_equal(ir_copies_there(session->model->graph), there ? w->bytes : 0);
}

/* In a context of its own: how many bytes were copied. */
static size_t check(const struct weights *w, const char *bytes, size_t size, tssa_compile compile)
{
    const tssa_session_options options = {.struct_size = sizeof options, .compile = compile};
    const tssa_optimize_options passes = {
        .struct_size = sizeof passes, .level = 2, .target = TSSA_TARGET_SESSION};
    tssa_context *context;
    tssa_model *models[2];
    tssa_session *sessions[2];
    no_error(tssa_context_create(NULL, &context));
    for (int i = 0; i < 2; i++) {
        no_error(tssa_model_load_memory(context, bytes, size, NULL, &models[i]));
        no_error(tssa_model_optimize(models[i], &passes));
        no_error(tssa_session_create(models[i], &options, &sessions[i]));
    }
    const size_t copied = ir_copies_there(models[0]->graph);
    tssa_model_free(models[0]);
    if (compile == TSSA_COMPILE_BACKGROUND)
        for (int i = 0; i < 2; i++)
            wait_for(sessions[i]);
    for (int i = 0; i < 3; i++) {
        compare(context, w, w->shapes[i], sessions[0], sessions[1]);
        if (i == 0 && copied)
            expect_kept(w, sessions[0]);
    }
    assert_int_equal(ir_copies_there(models[1]->graph), copied);
    for (int i = 0; i < 2; i++)
        tssa_session_free(sessions[i]);
    tssa_model_free(models[1]);
    tssa_context_free(context);
    return copied;
}

/* At every alignment of the weights: three are copied of four. */
static void test_sessions(void **state)
{
    static const tssa_compile ways[] = {TSSA_COMPILE_OFF, TSSA_COMPILE_WAIT,
                                        TSSA_COMPILE_BACKGROUND};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct text bytes;
        text_init(&bytes, &allocator_default);
        save(&all[i], &bytes);
        char *memory = xcalloc(1, bytes.size + 3);
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            size_t copied = 0;
            for (size_t shift = 0; shift < 4; shift++) {
                memcpy(memory + shift, bytes.data, bytes.size);
                copied += check(&all[i], memory + shift, bytes.size, ways[k]);
            }
            assert_int_equal(copied, 3 * all[i].bytes);
        }
        free(memory);
        text_free(&bytes);
    }
}

/* ---- Threads --------------------------------------------------------------------------------- */

enum { RUNNERS = 4, RUNS = 12 };

struct runner {
    pthread_t thread;
    tssa_session *session;
    tssa_value *const *inputs, *const *expected;
    int first, wrong;
};

static void *run_many(void *context)
{
    struct runner *runner = context;
    for (int i = 0; i < RUNS; i++) {
        const int shape = (runner->first + i) % 3;
        tssa_value *x = runner->inputs[shape], *y = NULL, *expected = runner->expected[shape];
        tssa_status *status = tssa_session_run(runner->session, 1, &x, 1, &y);
        runner->wrong += status || memcmp(tssa_tensor_data(y), tssa_tensor_data(expected),
                                          tssa_value_count(expected) * sizeof(float)) != 0;
        tssa_status_free(status);
        tssa_value_free(y);
    }
    return NULL;
}

/* Some pack the weights while others read them where they lie. */
static void run_at_once(tssa_session *session, tssa_value *const *inputs,
                        tssa_value *const *expected)
{
    struct runner runners[RUNNERS];
    for (int i = 0; i < RUNNERS; i++) {
        runners[i] =
            (struct runner){.session = session, .inputs = inputs, .expected = expected, .first = i};
        assert_int_equal(pthread_create(&runners[i].thread, NULL, run_many, &runners[i]), 0);
    }
    for (int i = 0; i < RUNNERS; i++) {
        pthread_join(runners[i].thread, NULL);
        assert_int_equal(runners[i].wrong, 0);
    }
}

static void check_threads(const struct weights *w, const char *bytes, size_t size)
{
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    tssa_value *inputs[3], *expected[3];
    no_error(tssa_context_create(NULL, &context));
    no_error(tssa_model_load_memory(context, bytes, size, NULL, &model));
    no_error(tssa_session_create(model, NULL, &session));
    for (int i = 0; i < 3; i++) {
        inputs[i] = input_of(context, w, w->shapes[i]);
        expected[i] = run(session, inputs[i]);
    }
    tssa_session_free(session);
    no_error(tssa_session_create(model, NULL, &session));
    tssa_model_free(model);
    run_at_once(session, inputs, expected);
    for (int i = 0; i < 3; i++) {
        tssa_value_free(inputs[i]);
        tssa_value_free(expected[i]);
    }
    tssa_session_free(session);
    tssa_context_free(context);
}

static void test_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct text bytes;
        text_init(&bytes, &allocator_default);
        save(&all[i], &bytes);
        char *memory = xcalloc(1, bytes.size + 3);
        for (size_t shift = 0; shift < 4; shift++) {
            memcpy(memory + shift, bytes.data, bytes.size);
            check_threads(&all[i], memory + shift, bytes.size);
        }
        free(memory);
        text_free(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_holders), cmocka_unit_test(test_open),
                                       cmocka_unit_test(test_none), cmocka_unit_test(test_sessions),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
