/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_session: a plan, and the run states that its concurrent runs take turns with. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/options.h"
#include "api/session.h"
#include "api/session_dump.h"
#include "api/session_notes.h"
#include "base/clock.h"
#include "base/float_mode.h"
#include "base/hash.h"
#include "runtime/ready.h"

/* How long a session may take to be made besides, for what its first run would make. */
#define READY_NANOSECONDS UINT64_C(40000000)

static const tssa_allocator *allocator_of(const struct tssa_session *session)
{
    return &session->model->context->allocator;
}

static struct generation_extras extras_of(const tssa_session_options *options)
{
    return (struct generation_extras){options->profile != 0, options->poison != 0};
}

/* Somebody wants to know what is fused, while the session is made. */
static bool is_told(const tssa_session_options *options)
{
    return options->remark || options->dump;
}

static void start_background(struct tssa_session *session, struct tssa_context *context,
                             struct ir_graph *graph, const tssa_session_options *options)
{
    struct background *background =
        background_start(graph, is_told(options), session->device, extras_of(options));
    atomic_init(&session->background, background);
    if (!background && !atomic_flag_test_and_set(&context->compile_missed))
        context_log(context, TSSA_LOG_WARNING,
                    "session: there is no thread to compile in: operators are run one by one");
}

static bool is_later(const struct tssa_session *session, const tssa_session_options *options)
{
    return options->compile == TSSA_COMPILE_BACKGROUND && session->device->device->compile;
}

/* What is done of it before the session is there. */
static tssa_status *prepare_graph(struct tssa_session *session, struct tssa_context *context,
                                  struct ir_graph *own, const tssa_session_options *options)
{
    const bool later = is_later(session, options);
    if (!later || is_told(options))
        TRY(session_graph_fuse(own, session->device, options));
    if (options->dump)
        TRY(session_dump_kernels(own, session->device->device, options));
    TRY(session_remark_kernels(own, session->device, options));
    if (later)
        return NULL;
    TRY(session_graph_compile(own, session->device, -1, options, &session->report));
    session_note_fused(context, own);
    return NULL;
}

/* Which loops repeat is known when the plan is placed. */
static tssa_status *remark_loops(struct generation *generation, const tssa_session_options *options)
{
    if (!options->remark)
        return NULL;
    TRY(generation_place(generation));
    session_remark_loops(generation->plan->body, options);
    session_remark_recording(generation->plan, options);
    return NULL;
}

/* Where a session is to be compiled before its first run. */
static tssa_status *compile_waiting(const struct tssa_session *session,
                                    const tssa_session_options *options)
{
    const struct device *device = session->device->device;
    if (!device->compile_waiting || options->compile != TSSA_COMPILE_WAIT)
        return NULL;
    return device->compile_waiting(session->device);
}

static tssa_status *finish_graph(const struct tssa_session *session,
                                 const struct session_graph *made,
                                 const tssa_session_options *options)
{
    return made->own && made->raised ? session_graph_finish(made->own, session->device, options)
                                     : NULL;
}

/* What runs meanwhile is laid out and relaxed, too. It is a copy of the model's, and not of what is
 * compiled, which ends before it does. */
static tssa_status *make_first(const struct tssa_session *session, const struct tssa_model *model,
                               const tssa_session_options *options, struct session_graph *first)
{
    const tssa_session_options quiet = {.struct_size = sizeof quiet,
                                        .compile = TSSA_COMPILE_OFF,
                                        .precision = options->precision,
                                        .no_winograd = options->no_winograd};
    TRY(session_graph_clone(model, session->device, &quiet, first));
    return finish_graph(session, first, &quiet);
}

/* *own: of the session from the beginning, NULL: the model's; *second: what is compiled later,
 * NULL: nothing is. */
static tssa_status *make_graphs(struct tssa_session *session, const struct tssa_model *model,
                                const tssa_session_options *options, struct ir_graph **own,
                                struct ir_graph **second)
{
    struct session_graph made, first = {.own = NULL};
    *own = *second = NULL;
    TRY(session_graph_clone(model, session->device, options, &made));
    const bool later = made.fuses && is_later(session, options);
    tssa_status *status =
        later && made.differs ? make_first(session, model, options, &first) : NULL;
    if (!status && made.own)
        status = made.fuses ? prepare_graph(session, model->context, made.own, options)
                            : finish_graph(session, &made, options);
    if (status) {
        ir_graph_free(first.own);
        ir_graph_free(made.own);
        return status;
    }
    *own = later ? first.own : made.own;
    *second = later ? made.own : NULL;
    return NULL;
}

static tssa_status *fill_session(struct tssa_session *session, const struct tssa_model *model,
                                 const tssa_session_options *options)
{
    struct tssa_context *context = model->context;
    struct ir_graph *own, *second;
    const uint64_t start = clock_monotonic();
    TRY(make_graphs(session, model, options, &own, &second));
    session->compile_ns = clock_monotonic() - start;
    session_note_compiled(context, &session->report);
    tssa_status *status = generation_create(own ? own : model->graph, own, session->device,
                                            extras_of(options), &session->now);
    if (!status && options->dump)
        status = session_dump_graph(session->now->plan->graph, options);
    if (!status)
        status = remark_loops(session->now, options);
    if (!status)
        status = compile_waiting(session, options);
    if (!status)
        status = plan_get_ready(session->now->plan, READY_NANOSECONDS);
    if (!status && !second)
        status = generation_get_ready(session->now, &context->team, &session->stop);
    if (status) {
        ir_graph_free(second);
        return status;
    }
    session->n_inputs = session->now->plan->body->n_params;
    session->n_outputs = session->now->plan->body->n_returns;
    if (second)
        start_background(session, context, second, options);
    return NULL;
}

static tssa_status *open_device(struct tssa_session *session, struct tssa_context *context,
                                const struct device *device, const tssa_session_options *options)
{
    session->device = &context->device;
    if (device == context->device.device)
        return NULL;
    device_context_open(&session->own, device, &context->allocator, &context->team);
    session->own.number = device_number(options->device);
    session->own.cache = context->cache;
    if (!device->is_host)
        session->own.host = &context->device;
    if (options->data_share > 0)
        session->own.data_share = options->data_share;
    session->device = &session->own;
    TRY(device_context_connect(&session->own));
    session->own.allow_tf32 = options->allow_tf32 != 0;
    if (options->profile && device->ranges_open)
        session->own.has_ranges = device->ranges_open(&session->own);
    if (session->own.gives_up)
        context_log(context, TSSA_LOG_WARNING, "device %s: %s", device->name,
                    session->own.gives_up);
    return NULL;
}

static void close_device(struct tssa_session *session)
{
    if (session->device == &session->own)
        device_context_close(&session->own);
}

static tssa_status *refuse_device(const char *name)
{
    char names[256];
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; device_at(i) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 device_at(i)->name);
    return ERROR(TSSA_UNSUPPORTED, "there is no device \"%s\": this build has %s", name, names);
}

tssa_status *session_create_on(struct tssa_model *model, const struct device *device,
                               const tssa_session_options *options, tssa_session **out)
{
    const tssa_allocator *allocator = &model->context->allocator;
    struct tssa_session *session = allocator_calloc(allocator, 1, sizeof *session);
    TRY_ALLOC(session);
    tssa_status *status = open_device(session, model->context, device, options);
    if (!status)
        status = fill_session(session, model, options);
    if (status) {
        generation_free(session->now);
        close_device(session);
        allocator_free(allocator, session);
        return status;
    }
    session->profiled = options->profile != 0;
    session->model = model;
    model_retain(model);
    pthread_mutex_init(&session->lock, NULL);
    session_note_library(model->context, session->now->plan);
    session_note_kept(model->context, session->device);
    session_note_lacked(model->context, session->now->plan, options);
    context_log(model->context, TSSA_LOG_INFO, "session: %u steps",
                (unsigned)session->now->plan->n_steps);
    *out = session;
    return NULL;
}

tssa_status *tssa_session_create(tssa_model *model, const tssa_session_options *given,
                                 tssa_session **out)
{
    FLOAT_MODE_ENTER();
    tssa_session_options options;
    if (!model || !out)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_create: an argument is NULL");
    TRY(OPTIONS_READ(tssa_session_options, given, &options));
    if (options.compile != TSSA_COMPILE_OFF && options.compile != TSSA_COMPILE_WAIT &&
        options.compile != TSSA_COMPILE_BACKGROUND)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_create: there is no such `compile`");
    if (options.precision != TSSA_PRECISION_EXACT && options.precision != TSSA_PRECISION_RELAXED)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_create: there is no such `precision`");
    const struct device *device = device_find(options.device);
    if (!device)
        return refuse_device(options.device);
    if (!(options.data_share >= 0 && options.data_share <= 1))
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_create: data_share is not from 0 to 1");
    if (options.data_share > 0 && !device->computes_nothing)
        return ERROR(TSSA_INVALID_ARGUMENT,
                     "tssa_session_create: device %s computes, and takes no data_share",
                     device->name);
    return session_create_on(model, device, &options, out);
}

/* ---- What is compiled in the background ------------------------------------------------------ */

/* Under the lock, where it is known to be done: from now on runs begin with what it made. What
 * nobody needs any more is returned. */
static struct generation *change(struct tssa_session *session,
                                 const struct background_result *result)
{
    struct generation *old = session->now;
    session->report = result->report;
    session->compile_ns = result->nanoseconds;
    if (!result->generation)
        return NULL;
    session->now = result->generation;
    old->retired = true;
    return old->out ? NULL : old;
}

/* Whoever comes first after it is done: in a run, before it begins. */
static void collect(struct tssa_session *session)
{
    struct background *background =
        atomic_load_explicit(&session->background, memory_order_acquire);
    struct background_result result;
    if (!background)
        return;
    pthread_mutex_lock(&session->lock);
    background = atomic_load_explicit(&session->background, memory_order_relaxed);
    const bool done = background && background_is_done(background);
    struct generation *old = NULL;
    if (done) {
        background_take(background, &result);
        old = change(session, &result);
        atomic_store_explicit(&session->background, NULL, memory_order_release);
    }
    pthread_mutex_unlock(&session->lock);
    generation_free(old);
    if (done)
        session_note_background(session->model->context, &result);
}

void tssa_session_free(tssa_session *session)
{
    if (!session)
        return;
    const tssa_allocator *allocator = allocator_of(session);
    struct tssa_model *model = session->model;
    collect(session);
    background_stop(atomic_load_explicit(&session->background, memory_order_relaxed));
    pthread_mutex_destroy(&session->lock);
    generation_free(session->now);
    close_device(session);
    allocator_free(allocator, session);
    model_release(model);
}

tssa_status *tssa_session_compiled(tssa_session *session, tssa_compile_info *info)
{
    struct device_compiled later = {.kernels = 0};
    if (!session || !info)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_compiled: an argument is NULL");
    collect(session);
    if (session->device->device->compiled)
        session->device->device->compiled(session->device, &later);
    pthread_mutex_lock(&session->lock);
    *info = (tssa_compile_info){
        .pending = atomic_load_explicit(&session->background, memory_order_relaxed) != NULL,
        .kernels = session->report.compiled + later.kernels,
        .cached = session->report.cached + later.cached,
        .refused = session->report.refused,
        .nanoseconds = session->compile_ns + later.nanoseconds};
    pthread_mutex_unlock(&session->lock);
    return NULL;
}

/* ---- Run states ------------------------------------------------------------------------------ */

/* A run of the generation has ended; `run`: its state, to be kept, or NULL. */
static void leave(struct tssa_session *session, struct generation *generation, struct run *run,
                  uint64_t shapes)
{
    pthread_mutex_lock(&session->lock);
    const bool kept = run && !generation->retired && generation_give(generation, run, shapes);
    if (run && !kept) { /* before the plan may go, which it reads */
        pthread_mutex_unlock(&session->lock);
        run_free(run);
        pthread_mutex_lock(&session->lock);
    }
    const bool last = --generation->out == 0 && generation->retired;
    pthread_mutex_unlock(&session->lock);
    if (last)
        generation_free(generation);
}

static tssa_status *take_run(struct tssa_session *session, uint64_t shapes,
                             struct generation **generation, struct run **run)
{
    *run = NULL;
    collect(session);
    pthread_mutex_lock(&session->lock);
    struct generation *now = *generation = session->now;
    now->out++;
    tssa_status *status = generation_place(now);
    *run = generation_take(now, shapes);
    pthread_mutex_unlock(&session->lock);
    if (*run)
        return NULL;
    if (!status)
        status = run_create(now->plan, allocator_of(session), &session->model->context->team,
                            session->profiled, run);
    if (status)
        leave(session, now, NULL, 0);
    else
        (*run)->stop = &session->stop;
    return status;
}

static void give_run(struct tssa_session *session, struct generation *generation, struct run *run,
                     uint64_t shapes)
{
    pthread_mutex_lock(&session->lock);
    if (generation->profile)
        profile_add(generation->plan, generation->profile, run->profile);
    session->last = run->memory;
    session->counts = run->counts;
    if (run->memory.held > session->peak)
        session->peak = run->memory.held;
    pthread_mutex_unlock(&session->lock);
    leave(session, generation, run, shapes);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Arguments as the executor wants them, in the room that the run state has for them. */
struct call {
    struct generation *generation;
    struct run *run;
    size_t n_given; /* outputs that the caller wants */
    tssa_value *const *given;
    const size_t *numbers; /* which these are; NULL: all, in order */
};

static size_t number_of(const struct call *call, size_t given)
{
    return call->numbers ? call->numbers[given] : given;
}

static tssa_status *call_choose(const struct call *call)
{
    const size_t n = call->run->plan->body->n_returns;
    bool *wanted = call->run->argument_wanted;
    if (!call->numbers)
        return NULL;
    memset(wanted, 0, n * sizeof *wanted);
    for (size_t i = 0; i < call->n_given; i++) {
        size_t number = call->numbers[i];
        if (number >= n)
            return ERROR(TSSA_INVALID_ARGUMENT,
                         "output %zu is wanted of a model that has %zu, from 0 on", number, n);
        if (wanted[number])
            return ERROR(TSSA_INVALID_ARGUMENT, "output %zu is wanted twice", number);
        wanted[number] = true;
    }
    return NULL;
}

/* The caller's memory of the session's device; *there NULL: it is the host's. */
static tssa_status *find_memory(const struct run *run, const tssa_value *value, void **there)
{
    *there = NULL;
    if (!value || !value->device)
        return NULL;
    const struct device_context *own = run->plan->device;
    char name[DEVICE_NAME_SIZE];
    device_print_name(own->device, own->number, name);
    if (strcmp(value->where, name) != 0)
        return ERROR(TSSA_INVALID_ARGUMENT,
                     "a tensor lies in memory of %s, and the session is on %s", value->where, name);
    *there = value->value.tensor.data;
    return NULL;
}

static tssa_status *call_open(const struct call *call, size_t n_inputs, tssa_value *const *inputs)
{
    struct run *run = call->run;
    TRY(call_choose(call));
    for (size_t i = 0; i < n_inputs; i++) {
        run->argument_inputs[i] = inputs[i] ? &inputs[i]->value : NULL;
        TRY(find_memory(run, inputs[i], &run->inputs_there[i]));
    }
    for (size_t i = 0; i < run->plan->body->n_returns; i++) {
        run->argument_outputs[i].kind = TSSA_KIND_NONE;
        run->outputs_there[i] = NULL;
    }
    for (size_t i = 0; i < call->n_given; i++) {
        const tssa_value *given = call->given[i];
        if (!given)
            continue;
        if (given->value.kind != TSSA_KIND_TENSOR)
            return ERROR(TSSA_INVALID_ARGUMENT, "output %zu is given but is no tensor", i);
        run->argument_outputs[number_of(call, i)] = given->value; /* not counted again */
        TRY(find_memory(run, given, &run->outputs_there[number_of(call, i)]));
    }
    return NULL;
}

/* What the run made and nobody took. */
static void call_close(const struct call *call)
{
    for (size_t i = 0; i < call->n_given; i++)
        if (!call->given[i])
            value_release(&call->run->argument_outputs[number_of(call, i)]);
}

static bool all_given(const struct call *call)
{
    for (size_t i = 0; i < call->n_given; i++)
        if (!call->given[i])
            return false;
    return true;
}

/* Wraps what the run made; all handles or none. */
static tssa_status *wrap_outputs(const struct tssa_session *session, const struct call *call,
                                 tssa_value **outputs)
{
    tssa_status *status = NULL;
    if (all_given(call))
        return NULL;
    tssa_value **made = allocator_calloc(allocator_of(session), call->n_given + 1, sizeof *made);
    TRY_ALLOC(made);
    for (size_t i = 0; !status && i < call->n_given; i++)
        if (!outputs[i])
            status = value_handle(allocator_of(session),
                                  &call->run->argument_outputs[number_of(call, i)], &made[i]);
    for (size_t i = 0; i < call->n_given; i++) {
        if (status)
            tssa_value_free(made[i]);
        else if (made[i])
            outputs[i] = made[i];
    }
    allocator_free(allocator_of(session), made);
    return status;
}

static tssa_status *check_counts(const struct tssa_session *session, size_t n_inputs,
                                 size_t n_outputs, const size_t *wanted)
{
    if (n_inputs == session->n_inputs && (wanted || n_outputs == session->n_outputs))
        return NULL;
    return ERROR(TSSA_INVALID_ARGUMENT, "the model has %u inputs and %u outputs, not %zu and %zu",
                 (unsigned)session->n_inputs, (unsigned)session->n_outputs, n_inputs, n_outputs);
}

static tssa_status *execute(const struct tssa_session *session, const tssa_run_options *options,
                            const struct call *call, tssa_value **outputs)
{
    struct run *run = call->run;
    run->caller_stream = options->stream;
    run->cancel = options->cancel ? &options->cancel->requested : NULL;
    tssa_status *status = run_execute_some(run, run->argument_inputs, run->argument_outputs,
                                           call->numbers ? run->argument_wanted : NULL);
    run->cancel = NULL;
    run->caller_stream = NULL;
    if (!status)
        status = wrap_outputs(session, call, outputs);
    call_close(call);
    return status;
}

/* A hash of the shapes of inputs, where it matters which state a run has; not 0. */
static uint64_t shapes_of(const struct tssa_session *session, size_t n, tssa_value *const *inputs)
{
    uint64_t hash = 1;
    if (!session->device->device->record_begin)
        return hash;
    for (size_t i = 0; i < n; i++) {
        const struct value *value = inputs[i] ? &inputs[i]->value : NULL;
        if (!value || value->kind != TSSA_KIND_TENSOR) {
            hash++;
            continue;
        }
        const struct tensor *tensor = &value->tensor;
        hash = hash_bytes(tensor->dims, (size_t)tensor->rank * sizeof *tensor->dims,
                          hash + (uint64_t)tensor->dtype);
    }
    return hash ? hash : 1;
}

static tssa_status *run_session(struct tssa_session *session, const tssa_run_options *options,
                                size_t input_count, tssa_value *const *inputs, size_t output_count,
                                tssa_value **outputs)
{
    FLOAT_MODE_ENTER();
    if (!session || (input_count && !inputs) || (output_count && !outputs))
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_run: an argument is NULL");
    TRY(check_counts(session, input_count, output_count, options->wanted));
    if (options->stream && !session->device->device->stream_follow)
        return ERROR(TSSA_UNSUPPORTED, "a session on %s takes no stream of the caller's",
                     session->device->device->name);
    struct call call = {.n_given = output_count, .given = outputs, .numbers = options->wanted};
    const uint64_t shapes = shapes_of(session, input_count, inputs);
    TRY(take_run(session, shapes, &call.generation, &call.run));
    tssa_status *status = call_open(&call, input_count, inputs);
    if (!status)
        status = execute(session, options, &call, outputs);
    give_run(session, call.generation, call.run, shapes);
    session_note_kept(session->model->context, session->device);
    return status;
}

tssa_status *tssa_session_run(tssa_session *session, size_t input_count, tssa_value *const *inputs,
                              size_t output_count, tssa_value **outputs)
{
    static const tssa_run_options defaults = {.struct_size = sizeof defaults};
    return run_session(session, &defaults, input_count, inputs, output_count, outputs);
}

tssa_status *tssa_session_run_with(tssa_session *session, const tssa_run_options *given,
                                   size_t input_count, tssa_value *const *inputs,
                                   size_t output_count, tssa_value **outputs)
{
    tssa_run_options options;
    TRY(OPTIONS_READ(tssa_run_options, given, &options));
    return run_session(session, &options, input_count, inputs, output_count, outputs);
}

void tssa_session_stop(tssa_session *session)
{
    if (session)
        atomic_store_explicit(&session->stop, true, memory_order_relaxed);
}
