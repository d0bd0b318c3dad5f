/* SPDX-License-Identifier: Apache-2.0 */
#include "common/library_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/fake_cuda.h"
#include "common/grid_operands.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/test_alloc.h"
#include "common/test_device.h"
#include "common/xmalloc.h"

static const struct device *cuda(void)
{
    return device_find("cuda");
}

/* ---- As a kernel makes one ------------------------------------------------------------------- */

enum { ROOM = LIBRARY_CALL_MOST * sizeof(float) + 16 };

/* On the device: operands, and the result. */
struct stage {
    struct test_alloc alloc;
    struct device_context context;
    struct device_stream *stream;
    struct library_primitive *made;
    void *memory[3], *scratch;
    size_t scratch_bytes;
};

static struct device_place at(const void *memory, size_t offset)
{
    return (struct device_place){(void *)memory, offset};
}

static tssa_status *make(struct stage *s, const struct library_problem *problem)
{
    TRY(device_context_connect(&s->context));
    TRY(cuda()->stream_open(&s->context, &s->stream));
    for (int i = 0; i < 3; i++) {
        s->memory[i] = cuda()->allocate(s->stream, ROOM);
        TRY_ALLOC(s->memory[i]);
    }
    s->made = cuda()->library->make(&s->context, problem);
    if (!s->made)
        return NULL;
    s->scratch_bytes = s->made->scratch_bytes;
    s->scratch = cuda()->allocate(s->stream, s->scratch_bytes);
    TRY_ALLOC(s->scratch);
    return NULL;
}

static tssa_status *run(struct stage *s, const struct library_scene *scene, size_t offset,
                        float *result, bool *done)
{
    TRY(make(s, &scene->problem));
    if (!s->made)
        return NULL;
    const struct library_call call = {.operands = {at(s->memory[0], offset), at(s->memory[1], 0)},
                                      .result = at(s->memory[2], 0),
                                      .scratch = at(s->scratch, 0)};
    for (int i = 0; i < 2; i++)
        TRY(cuda()->copy(s->stream, DEVICE_COPY_IN, call.operands[i], at(scene->operands[i], 0),
                         scene->n[i] * sizeof(float)));
    *done = s->made->table->run(s->made, s->stream, &call);
    return *done ? cuda()->copy(s->stream, DEVICE_COPY_OUT, at(result, 0), call.result,
                                scene->n_result * sizeof(float))
                 : NULL;
}

static void close_stage(struct stage *s)
{
    if (s->made)
        s->made->table->release(s->made);
    for (int i = 0; s->stream && i < 3; i++)
        cuda()->release(s->stream, s->memory[i], ROOM);
    if (s->stream)
        cuda()->release(s->stream, s->scratch, s->scratch_bytes);
    cuda()->stream_close(s->stream);
    device_context_close(&s->context);
}

tssa_status *library_scene_play(const struct library_scene *scene, size_t offset, bool *done)
{
    struct stage stage = {.stream = NULL};
    float result[LIBRARY_CALL_MOST];
    *done = false;
    test_alloc_init(&stage.alloc);
    device_context_open(&stage.context, cuda(), &stage.alloc.allocator, NULL);
    stage.context.host = test_device();
    tssa_status *status = run(&stage, scene, offset, result, done);
    close_stage(&stage);
    assert_int_equal(stage.alloc.live, 0);
    assert_int_equal(fake_cuda_alive(), 0);
    for (size_t i = 0; !status && *done && i < scene->n_result; i++)
        assert_true(result[i] == scene->wanted[i]);
    return status;
}

void library_scene_lies_badly(const struct library_scene *scene)
{
    bool done;
    no_error(library_scene_play(scene, 16, &done));
    assert_true(done);
    no_error(library_scene_play(scene, 4, &done));
    assert_false(done);
}

void library_scene_fails_once(const struct library_scene *scene, unsigned declined)
{
    const unsigned long before = fake_cuda_calls();
    unsigned told = 0, not_done = 0;
    bool done;
    no_error(library_scene_play(scene, 0, &done));
    const unsigned long calls = fake_cuda_calls() - before;
    for (unsigned long i = 0; i < calls; i++) {
        fake_cuda_fail_at(fake_cuda_calls() + i, 999);
        tssa_status *status = library_scene_play(scene, 0, &done);
        if (status)
            assert_null(strchr(tssa_status_message(status), '\n'));
        told += status != NULL;
        not_done += !status && !done;
        tssa_status_free(status);
    }
    fake_cuda_fail_at(-1ul, 0);
    assert_true(told > 5 && not_done >= declined);
    no_error(library_scene_play(scene, 0, &done));
    assert_true(done);
}

/* ---- As a session does ----------------------------------------------------------------------- */

struct listener {
    const char *library;
    char *said;
};

static void listen(void *user, tssa_log_level level, const char *message)
{
    const struct listener *listener = user;
    (void)level;
    if (strstr(message, listener->library))
        snprintf(listener->said, LIBRARY_SAID, "%s", message);
}

static void open_run(struct model_run *run, struct onnx_model *model,
                     const tssa_context_options *options, bool allow_tf32)
{
    const tssa_session_options on_card = {
        .struct_size = sizeof on_card, .device = "cuda", .allow_tf32 = allow_tf32};
    size_t size;
    const void *bytes = model_pack(model, &size);
    no_error(tssa_context_create(options, &run->context));
    no_error(tssa_model_load_memory(run->context, bytes, size, NULL, &run->model));
    no_error(tssa_session_create(run->model, &on_card, &run->session));
    run->inputs = xcalloc(2, sizeof(tssa_value *));
    run->outputs = xcalloc(1, sizeof(tssa_value *));
}

static void run_again(struct model_run *run, void **first)
{
    no_error(model_run_execute(run));
    const struct tensor *made = &model_run_output(run, 0)->tensor;
    if (!*first) {
        *first = xcalloc(1, tensor_bytes(made));
        memcpy(*first, made->data, tensor_bytes(made));
    }
    assert_memory_equal(made->data, *first, tensor_bytes(made));
    tssa_value_free(run->outputs[0]);
    run->outputs[0] = NULL;
}

void library_session_run(struct onnx_model *model, int rank, const int64_t dims[2][4],
                         const char *library, char said[LIBRARY_SAID], tssa_session_work *work)
{
    enum { RUNS = 5 };
    struct model_run run = {.input_count = 2, .output_count = 1};
    struct listener listener = {library, said};
    const tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .log = listen, .log_user = &listener};
    struct operands o;
    void *first = NULL;
    said[0] = '\0';
    open_run(&run, model, &options, false);
    operands_open(&o, 6);
    for (size_t i = 0; i < 2; i++) {
        operands_add_numbers(&o, TSSA_FLOAT, rank, dims[i]);
        no_error(model_run_set_input(&run, i, &o.values[i]));
    }
    for (int i = 0; i < RUNS; i++)
        run_again(&run, &first);
    no_error(tssa_session_counts(run.session, work));
    free(first);
    model_run_close(&run);
    model_free(model);
    operands_clear(&o);
}

float library_session_first(struct onnx_model *model, int rank, const int64_t dims[2][4],
                            bool allow_tf32)
{
    const tssa_context_options options = {.struct_size = sizeof options, .threads = 1};
    struct model_run run = {.input_count = 2, .output_count = 1};
    struct operands o;
    float first;
    open_run(&run, model, &options, allow_tf32);
    operands_open(&o, 6);
    for (size_t i = 0; i < 2; i++) {
        struct tensor *input = operands_add(&o, TSSA_FLOAT, rank, dims[i]);
        for (size_t k = 0; k < tensor_count(input); k++)
            ((float *)input->data)[k] = i ? 1 : 1 + 0x1p-12f;
        no_error(model_run_set_input(&run, i, &o.values[i]));
    }
    no_error(model_run_execute(&run));
    memcpy(&first, model_run_output(&run, 0)->tensor.data, sizeof first);
    model_run_close(&run);
    model_free(model);
    operands_clear(&o);
    return first;
}
