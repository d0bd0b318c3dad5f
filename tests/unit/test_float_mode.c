/* SPDX-License-Identifier: Apache-2.0 */
/* A caller that rounds otherwise or flushes denormals gets the results that others get, and its
 * modes back. */
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/float_mode.h"
#include "base/team.h"
#include "common/no_error.h"
#include "common/onnx_model.h"
#include "tssa.h"

#if defined(__SSE__)
#include <pmmintrin.h>

#define N 65536

/* A caller with modes of its own, who is called back. */
struct caller {
    atomic_size_t called, odd; /* how often, and how often in another mode than the usual one */
};

static void note(struct caller *caller)
{
    const bool usual = (_mm_getcsr() & ~FLOAT_MODE_FLAGS) == FLOAT_MODE_DEFAULT &&
                       float_mode_x87() == FLOAT_MODE_X87;
    atomic_fetch_add(&caller->called, 1);
    atomic_fetch_add(&caller->odd, !usual);
}

static void *note_allocate(void *user, size_t size, size_t alignment)
{
    note(user);
    return allocator_default.allocate(NULL, size, alignment);
}

static void note_release(void *user, void *memory)
{
    (void)user;
    allocator_default.release(NULL, memory);
}

static void set_odd(void)
{
    fesetround(FE_UPWARD);
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
}

/* What is odd must be so still. */
static void set_usual(void)
{
    assert_int_equal(_MM_GET_ROUNDING_MODE(), _MM_ROUND_UP);
    assert_int_equal(float_mode_x87(), FLOAT_MODE_X87 | FE_UPWARD);
    assert_int_equal(_MM_GET_FLUSH_ZERO_MODE(), _MM_FLUSH_ZERO_ON);
    assert_int_equal(_MM_GET_DENORMALS_ZERO_MODE(), _MM_DENORMALS_ZERO_ON);
    fesetround(FE_TONEAREST);
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_OFF);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_OFF);
}

static void add_float(struct onnx_model *model, const char *name, float value)
{
    model_initializer(model, model->graph,
                      model_tensor(model, name, TSSA_FLOAT, "", &value, sizeof value));
}

/*
 * y = gelu(exp(x)) / 3 + a * a, where a * a, a denormal, is folded, and a kernel has constants that
 * are no floats; z = rows of three w / 3, where w / 3 is folded; t is the text of the elements.
 */
static const void *make_model(struct onnx_model *model, size_t *size)
{
    static const float w[] = {0.1f, 0.2f, 0.3f};
    model_init(model, 8, 20);
    Onnx__GraphProto *graph = model->graph;
    model_input(model, graph, "x", TSSA_FLOAT, "N");
    model_input(model, graph, "r", TSSA_FLOAT, "M,3");
    model_output(model, graph, "y", TSSA_FLOAT, "N");
    model_output(model, graph, "z", TSSA_FLOAT, "M,1");
    model_output(model, graph, "t", TSSA_STRING, "M,3");
    add_float(model, "a", 1e-20f);
    add_float(model, "b", 3);
    model_initializer(model, graph, model_tensor(model, "w", TSSA_FLOAT, "3,1", w, sizeof w));
    model_node(model, graph, "Exp", "x", "e");
    model_attr_string(model, model_node(model, graph, "Gelu", "e", "g"), "approximate", "tanh");
    model_node(model, graph, "Div", "g,b", "q");
    model_node(model, graph, "Mul", "a,a", "s");
    model_node(model, graph, "Add", "q,s", "y");
    model_node(model, graph, "MatMul", "r,w", "m");
    model_node(model, graph, "Div", "m,b", "z");
    model_attr_int(model, model_node(model, graph, "Cast", "r", "t"), "to", TSSA_STRING);
    return model_pack(model, size);
}

#define M 100

static const tssa_load_options load_options = {.struct_size = sizeof load_options};
static const tssa_optimize_options optimize_options = {
    .struct_size = sizeof optimize_options, .level = 2, .target = TSSA_TARGET_SESSION};
static const tssa_session_options session_options = {.struct_size = sizeof session_options,
                                                     .compile = TSSA_COMPILE_WAIT};

/* ---- Bits ------------------------------------------------------------------------------------ */

/* What a program makes of the model. */
struct results {
    float y[N], z[M];
    char texts[3 * M][16];
    char printed[8192], saved[8192];
    size_t printed_size, saved_size;
};

static void print(void *user, const char *text, size_t size)
{
    struct results *results = user;
    assert_true(results->printed_size + size <= sizeof results->printed);
    memcpy(results->printed + results->printed_size, text, size);
    results->printed_size += size;
}

static void save(void *user, const void *data, size_t size)
{
    struct results *results = user;
    assert_true(results->saved_size + size <= sizeof results->saved);
    memcpy(results->saved + results->saved_size, data, size);
    results->saved_size += size;
}

static void keep(struct results *results, tssa_value *const *outputs)
{
    memcpy(results->y, tssa_tensor_data(outputs[0]), sizeof results->y);
    memcpy(results->z, tssa_tensor_data(outputs[1]), sizeof results->z);
    const tssa_string *texts = tssa_tensor_data(outputs[2]);
    for (int i = 0; i < 3 * M; i++) {
        assert_true(texts[i].size < sizeof results->texts[i]);
        memcpy(results->texts[i], texts[i].data, texts[i].size);
    }
}

static void make_results(const float *x, struct results *results)
{
    const tssa_context_options options = {.struct_size = sizeof options, .threads = 2};
    struct onnx_model model;
    size_t size;
    const void *bytes = make_model(&model, &size);
    tssa_context *context;
    tssa_model *loaded;
    tssa_session *session;
    tssa_value *inputs[2], *outputs[3] = {NULL};
    memset(results, 0, sizeof *results);
    no_error(tssa_context_create(&options, &context));
    no_error(tssa_model_load_memory(context, bytes, size, &load_options, &loaded));
    no_error(tssa_model_optimize(loaded, &optimize_options));
    no_error(tssa_model_print(loaded, print, results));
    no_error(tssa_model_save_memory(loaded, NULL, save, results));
    no_error(tssa_session_create(loaded, &session_options, &session));
    no_error(tssa_tensor_create(context, TSSA_FLOAT, 1, (const int64_t[]){N}, &inputs[0]));
    no_error(tssa_tensor_create(context, TSSA_FLOAT, 2, (const int64_t[]){M, 3}, &inputs[1]));
    memcpy(tssa_tensor_data(inputs[0]), x, N * sizeof *x);
    memcpy(tssa_tensor_data(inputs[1]), x, 3 * M * sizeof *x);
    no_error(tssa_session_run(session, 2, inputs, 3, outputs));
    keep(results, outputs);
    for (int i = 0; i < 3; i++)
        tssa_value_free(outputs[i]);
    tssa_value_free(inputs[0]);
    tssa_value_free(inputs[1]);
    tssa_session_free(session);
    tssa_model_free(loaded);
    tssa_context_free(context);
    model_free(&model);
}

static void results_are_alike(void **state)
{
    (void)state;
    static float x[N];
    static struct results usual, odd;
    for (int i = 0; i < N; i++)
        x[i] = (float)i * -0.0016f; /* to where exp gives denormals */
    make_results(x, &usual);
    assert_true(usual.y[N - 1] > 0 && usual.y[N - 1] < 0x1p-126f);
    set_odd();
    make_results(x, &odd);
    set_usual();
    assert_memory_equal(usual.y, odd.y, sizeof usual.y);
    assert_memory_equal(usual.z, odd.z, sizeof usual.z);
    assert_memory_equal(usual.texts, odd.texts, sizeof usual.texts);
    assert_memory_equal(usual.printed, odd.printed, sizeof usual.printed);
    assert_memory_equal(usual.saved, odd.saved, sizeof usual.saved);
}

/* ---- Functions ------------------------------------------------------------------------------- */

static struct caller caller;

/* The function has called back, and in the usual modes alone. */
static void check(const char *function, tssa_status *status)
{
    set_usual();
    no_error(status);
    if (!caller.called || caller.odd)
        fail_msg("%s: called back %zu times, %zu in modes of the caller", function,
                 (size_t)caller.called, (size_t)caller.odd);
    atomic_store(&caller.called, 0);
}

#define CHECK(function, ...)                                                                       \
    do {                                                                                           \
        set_odd();                                                                                 \
        check(#function, function(__VA_ARGS__));                                                   \
    } while (0)

static void note_text(void *user, const char *text, size_t size)
{
    (void)text, (void)size;
    note(user);
}

static void note_data(void *user, const void *data, size_t size)
{
    (void)data, (void)size;
    note(user);
}

static void check_changes(tssa_context *context, const char *path)
{
    static const char *const y[] = {"y"};
    tssa_model *model;
    size_t count;
    CHECK(tssa_model_load_file, context, path, NULL, &model);
    CHECK(tssa_model_verify, model);
    CHECK(tssa_model_cut_unsupported, model, &count);
    CHECK(tssa_model_keep_outputs, model, 1, y);
    CHECK(tssa_model_save_file, model, path, NULL);
    tssa_model_free(model);
}

static void check_sessions(tssa_context *context, const void *bytes, size_t size)
{
    tssa_session_options options = session_options;
    tssa_compile_info info;
    tssa_model *model;
    tssa_session *session;
    tssa_value *inputs[2], *outputs[3] = {NULL};
    CHECK(tssa_model_load_memory, context, bytes, size, NULL, &model);
    CHECK(tssa_model_optimize, model, &optimize_options);
    CHECK(tssa_model_print, model, note_text, &caller);
    CHECK(tssa_model_save_memory, model, NULL, note_data, &caller);
    no_error(tssa_tensor_create(context, TSSA_FLOAT, 1, (const int64_t[]){N}, &inputs[0]));
    no_error(tssa_tensor_create(context, TSSA_FLOAT, 2, (const int64_t[]){M, 3}, &inputs[1]));
    options.profile = 1;
    options.compile = TSSA_COMPILE_BACKGROUND;
    CHECK(tssa_session_create, model, &options, &session);
    CHECK(tssa_session_run, session, 2, inputs, 3, outputs);
    CHECK(tssa_session_profile, session, note_text, &caller);
    do
        no_error(tssa_session_compiled(session, &info));
    while (info.pending);
    assert_int_equal(caller.odd, 0);
    for (int i = 0; i < 3; i++)
        tssa_value_free(outputs[i]);
    tssa_value_free(inputs[0]);
    tssa_value_free(inputs[1]);
    tssa_session_free(session);
    tssa_model_free(model);
}

/* Also in the thread that compiles in the background. */
static void functions_are_alike(void **state)
{
    (void)state;
    const tssa_allocator allocator = {&caller, note_allocate, note_release};
    const tssa_context_options options = {
        .struct_size = sizeof options, .allocator = &allocator, .threads = 2};
    char path[] = "/tmp/tssa_float_mode_XXXXXX.onnx";
    struct onnx_model model;
    size_t size;
    const void *bytes = make_model(&model, &size);
    tssa_context *context;
    const int file = mkstemps(path, 5);
    assert_true(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    close(file);
    no_error(tssa_context_create(&options, &context));
    check_changes(context, path);
    check_sessions(context, bytes, size);
    tssa_context_free(context);
    model_free(&model);
    unlink(path);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void note_mode(void *context, int64_t begin, int64_t end)
{
    unsigned *modes = context;
    for (int64_t i = begin; i < end; i++)
        modes[i] = _mm_getcsr() & ~FLOAT_MODE_FLAGS;
}

/* Each thread of a team, the calling one included. */
static void team_is_alike(void **state)
{
    (void)state;
    struct team team;
    team_open(&team, 2);
    if (!team.parallel_for)
        skip();
    unsigned modes[8];
    set_odd();
    team_for(&team, 8, 1, note_mode, modes);
    set_usual();
    for (int i = 0; i < 8; i++)
        assert_int_equal(modes[i], FLOAT_MODE_DEFAULT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_alike),
        cmocka_unit_test(functions_are_alike),
        cmocka_unit_test(team_is_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
