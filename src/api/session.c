/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_session: a plan, and the run states that its concurrent runs take turns with. */
#include <pthread.h>
#include <string.h>

#include "api/handles.h"
#include "base/vec.h"
#include "runtime/executor.h"
#include "runtime/profile.h"

struct tssa_session {
    struct tssa_model *model;
    struct plan *plan;
    bool profiled;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards what follows */
    VEC(struct run *) idle;
    struct step_profile *profile; /* sums over finished runs; NULL: off */
};

static const tssa_allocator *allocator_of(const struct tssa_session *session)
{
    return &session->model->context->allocator;
}

tssa_status *tssa_session_create(tssa_model *model, const tssa_session_options *options,
                                 tssa_session **out)
{
    const tssa_session_options defaults = {0};
    if (!model || !out)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_create: an argument is NULL");
    if (!options)
        options = &defaults;
    if (options->device && strcmp(options->device, "cpu") != 0)
        return ERROR(TSSA_UNSUPPORTED, "device \"%s\": this build runs models on \"cpu\" only",
                     options->device);
    const tssa_allocator *allocator = &model->context->allocator;
    struct tssa_session *session = allocator_calloc(allocator, 1, sizeof *session);
    TRY_ALLOC(session);
    tssa_status *status = plan_create(model->graph, allocator, &session->plan);
    if (!status && options->profile) {
        session->profile =
            allocator_calloc(allocator, session->plan->n_steps + 1u, sizeof *session->profile);
        status = session->profile ? NULL : status_out_of_memory();
    }
    if (status) {
        plan_free(session->plan);
        allocator_free(allocator, session);
        return status;
    }
    session->profiled = options->profile != 0;
    session->model = model;
    model_retain(model);
    vec_init(&session->idle, allocator);
    pthread_mutex_init(&session->lock, NULL);
    *out = session;
    return NULL;
}

void tssa_session_free(tssa_session *session)
{
    if (!session)
        return;
    const tssa_allocator *allocator = allocator_of(session);
    struct tssa_model *model = session->model;
    for (size_t i = 0; i < session->idle.count; i++)
        run_free(session->idle.data[i]);
    vec_free(&session->idle);
    pthread_mutex_destroy(&session->lock);
    plan_free(session->plan);
    allocator_free(allocator, session->profile);
    allocator_free(allocator, session);
    model_release(model);
}

/* ---- Run states ----------------------------------------------------------------------------------- */

static tssa_status *take_run(struct tssa_session *session, struct run **run)
{
    *run = NULL;
    pthread_mutex_lock(&session->lock);
    if (session->idle.count)
        *run = session->idle.data[--session->idle.count];
    pthread_mutex_unlock(&session->lock);
    if (*run)
        return NULL;
    TRY(run_create(session->plan, allocator_of(session), &session->model->context->team,
                   session->profiled, run));
    (*run)->stop = &session->stop;
    return NULL;
}

static void give_run(struct tssa_session *session, struct run *run)
{
    pthread_mutex_lock(&session->lock);
    if (session->profile)
        profile_add(session->plan, session->profile, run->profile);
    bool kept = vec_push(&session->idle, run);
    pthread_mutex_unlock(&session->lock);
    if (!kept)
        run_free(run);
}

/* ---- Running -------------------------------------------------------------------------------------- */

/* Arguments as the executor wants them. */
struct call {
    const struct value **inputs;
    struct value *outputs;
    size_t n_outputs;
    tssa_value *const *given;
};

static tssa_status *call_open(const struct tssa_session *session, size_t n_inputs,
                              tssa_value *const *inputs, size_t n_outputs, tssa_value **outputs,
                              struct call *call)
{
    const tssa_allocator *a = allocator_of(session);
    call->inputs = allocator_calloc(a, n_inputs + 1, sizeof *call->inputs);
    call->outputs = allocator_calloc(a, n_outputs + 1, sizeof *call->outputs);
    call->n_outputs = n_outputs;
    call->given = outputs;
    if (!call->inputs || !call->outputs)
        return status_out_of_memory();
    for (size_t i = 0; i < n_inputs; i++)
        call->inputs[i] = inputs[i] ? &inputs[i]->value : NULL;
    for (size_t i = 0; i < n_outputs; i++) {
        if (!outputs[i])
            continue;
        if (outputs[i]->value.kind != TSSA_KIND_TENSOR)
            return ERROR(TSSA_INVALID_ARGUMENT, "output %zu is given but is no tensor", i);
        call->outputs[i] = outputs[i]->value; /* the caller's reference, not counted again */
    }
    return NULL;
}

static void call_close(const struct tssa_session *session, struct call *call)
{
    for (size_t i = 0; call->outputs && i < call->n_outputs; i++)
        if (!call->given[i])
            value_release(&call->outputs[i]);
    allocator_free(allocator_of(session), (void *)call->inputs);
    allocator_free(allocator_of(session), call->outputs);
}

/* Wraps what the run made; all handles or none. */
static tssa_status *wrap_outputs(const struct tssa_session *session, struct call *call,
                                 tssa_value **outputs)
{
    tssa_status *status = NULL;
    tssa_value **made = allocator_calloc(allocator_of(session), call->n_outputs + 1, sizeof *made);
    TRY_ALLOC(made);
    for (size_t i = 0; !status && i < call->n_outputs; i++)
        if (!outputs[i])
            status = value_handle(allocator_of(session), &call->outputs[i], &made[i]);
    for (size_t i = 0; i < call->n_outputs; i++) {
        if (status)
            tssa_value_free(made[i]);
        else if (made[i])
            outputs[i] = made[i];
    }
    allocator_free(allocator_of(session), made);
    return status;
}

tssa_status *tssa_session_run(tssa_session *session, size_t input_count, tssa_value *const *inputs,
                              size_t output_count, tssa_value **outputs)
{
    if (!session || (input_count && !inputs) || (output_count && !outputs))
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_run: an argument is NULL");
    const struct block_plan *body = session->plan->body;
    if (input_count != body->n_params || output_count != body->n_returns)
        return ERROR(
            TSSA_INVALID_ARGUMENT, "the model has %u inputs and %u outputs, not %zu and %zu",
            (unsigned)body->n_params, (unsigned)body->n_returns, input_count, output_count);
    struct run *run;
    TRY(take_run(session, &run));
    struct call call = {0};
    tssa_status *status = call_open(session, input_count, inputs, output_count, outputs, &call);
    if (!status)
        status = run_execute(run, call.inputs, call.outputs);
    give_run(session, run);
    if (!status)
        status = wrap_outputs(session, &call, outputs);
    call_close(session, &call);
    return status;
}

void tssa_session_stop(tssa_session *session)
{
    if (session)
        atomic_store_explicit(&session->stop, true, memory_order_relaxed);
}

tssa_status *tssa_session_profile(tssa_session *session,
                                  void (*write)(void *, const char *, size_t), void *user)
{
    if (!session || !write)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_profile: an argument is NULL");
    if (!session->profile)
        return ERROR(TSSA_INVALID_ARGUMENT, "the session was made without `profile`");
    pthread_mutex_lock(&session->lock);
    tssa_status *status = profile_write(session->plan, session->profile, write, user);
    pthread_mutex_unlock(&session->lock);
    return status;
}
