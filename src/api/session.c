/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_session: a plan, and the run states that its concurrent runs take turns with. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/handles.h"
#include "api/options.h"
#include "base/vec.h"
#include "device/library.h"
#include "ir/fuse.h"
#include "runtime/executor.h"
#include "runtime/profile.h"

struct tssa_session {
    struct tssa_model *model;
    struct device_context own;     /* of a device other than the context's */
    struct device_context *device; /* that or the context's */
    struct ir_graph *graph;        /* the plan's, where it is not the model's */
    struct plan *plan;
    bool profiled;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards what follows */
    VEC(struct run *) idle;
    struct step_profile *profile; /* sums over finished runs; NULL: off */
    struct run_memory last;       /* of the run that ended last */
    struct device_counts counts;  /* of the same */
    size_t peak;                  /* the most that one held */
};

static const tssa_allocator *allocator_of(const struct tssa_session *session)
{
    return &session->model->context->allocator;
}

/* Once per context: its sessions all miss the same. */
static void note_library(struct tssa_context *context, const struct plan *plan)
{
    const struct device_library *library = plan->host->device->library;
    if (context->log && plan->asks_library && library->is_there && !library->is_there() &&
        !atomic_flag_test_and_set(&context->library_missed))
        context_miss_plugin(context, library->plugin, library->missed);
}

struct fused_count {
    unsigned ops, kernels;
};

static tssa_status *count_fused(void *user, struct ir_op *op)
{
    struct fused_count *count = user;
    const struct ir_block *body = ir_fuse_body(op);
    count->kernels += body != NULL;
    for (const struct ir_op *inner = body ? body->first : NULL; inner; inner = inner->next)
        count->ops += !ir_op_is(inner, IR_OP_Constant) && !ir_op_is(inner, IR_OP_return);
    return NULL;
}

static tssa_status *note_fused(struct tssa_context *context, const struct ir_graph *graph)
{
    struct fused_count count = {0, 0};
    TRY(ir_block_walk(graph->body, count_fused, &count));
    if (count.kernels)
        context_log(context, TSSA_LOG_INFO, "session: %u operators are fused into %u kernels",
                    count.ops, count.kernels);
    return NULL;
}

/* That nothing can be compiled here, once per context. */
static void note_compiled(struct tssa_context *context, const struct compile_report *report)
{
    if (report->compiled)
        context_log(context, TSSA_LOG_INFO, "session: %u fused operators are compiled kernels",
                    (unsigned)report->compiled);
    if (report->refused && !atomic_flag_test_and_set(&context->compile_missed))
        context_log(context, TSSA_LOG_WARNING, "session: %u fused operators are run one by one: %s",
                    (unsigned)report->refused, report->why);
}

static tssa_status *fill_session(struct tssa_session *session, const struct tssa_model *model,
                                 const tssa_session_options *options)
{
    const tssa_allocator *allocator = &model->context->allocator;
    const struct ir_graph *graph;
    struct compile_report report = {0};
    TRY(session_graph_make(model, session->device, options, &report, &session->graph, &graph));
    note_compiled(model->context, &report);
    if (session->graph)
        TRY(note_fused(model->context, session->graph));
    TRY(plan_create(graph, session->device, &session->plan));
    if (!options->profile)
        return NULL;
    session->profile =
        allocator_calloc(allocator, session->plan->n_steps + 1u, sizeof *session->profile);
    TRY_ALLOC(session->profile);
    return NULL;
}

static void open_device(struct tssa_session *session, struct tssa_context *context,
                        const struct device *device, double data_share)
{
    session->device = &context->device;
    if (device == context->device.device)
        return;
    device_context_open(&session->own, device, &context->allocator, &context->team);
    if (!device->is_host)
        session->own.host = &context->device;
    if (data_share > 0)
        session->own.data_share = data_share;
    session->device = &session->own;
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

/* What runs elsewhere than was asked for. */
static void note_lacked(struct tssa_context *context, const struct plan *plan)
{
    char text[256];
    if (!plan->spaces.n_lacked)
        return;
    ir_op_describe(plan->spaces.lacked, text, sizeof text);
    context_log(context, TSSA_LOG_INFO,
                "session: device %s lacks %u operators, which run on %s: the first is %s",
                plan->device->device->name, (unsigned)plan->spaces.n_lacked,
                plan->host->device->name, text);
}

tssa_status *session_create_on(struct tssa_model *model, const struct device *device,
                               const tssa_session_options *options, tssa_session **out)
{
    const tssa_allocator *allocator = &model->context->allocator;
    struct tssa_session *session = allocator_calloc(allocator, 1, sizeof *session);
    TRY_ALLOC(session);
    open_device(session, model->context, device, options->data_share);
    tssa_status *status = fill_session(session, model, options);
    if (status) {
        plan_free(session->plan);
        ir_graph_free(session->graph);
        close_device(session);
        allocator_free(allocator, session);
        return status;
    }
    session->profiled = options->profile != 0;
    session->model = model;
    model_retain(model);
    vec_init(&session->idle, allocator);
    pthread_mutex_init(&session->lock, NULL);
    note_library(model->context, session->plan);
    note_lacked(model->context, session->plan);
    context_log(model->context, TSSA_LOG_INFO, "session: %u steps",
                (unsigned)session->plan->n_steps);
    *out = session;
    return NULL;
}

tssa_status *tssa_session_create(tssa_model *model, const tssa_session_options *given,
                                 tssa_session **out)
{
    tssa_session_options options;
    if (!model || !out)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_create: an argument is NULL");
    TRY(OPTIONS_READ(tssa_session_options, given, &options));
    if (options.compile != TSSA_COMPILE_OFF && options.compile != TSSA_COMPILE_WAIT)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_create: there is no such `compile`");
    const struct device *device = device_find(options.device);
    if (!device)
        return refuse_device(options.device);
    if (!(options.data_share >= 0 && options.data_share <= 1))
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_create: data_share is not from 0 to 1");
    if (options.data_share > 0 && !device->counts_only)
        return ERROR(TSSA_INVALID_ARGUMENT,
                     "tssa_session_create: device %s computes, and takes no data_share",
                     device->name);
    return session_create_on(model, device, &options, out);
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
    ir_graph_free(session->graph);
    close_device(session);
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
    session->last = run->memory;
    session->counts = run->counts;
    if (run->memory.held > session->peak)
        session->peak = run->memory.held;
    bool kept = vec_push(&session->idle, run);
    pthread_mutex_unlock(&session->lock);
    if (!kept)
        run_free(run);
}

/* ---- Running -------------------------------------------------------------------------------------- */

/* Arguments as the executor wants them, in the room that the run state has for them. */
struct call {
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

static tssa_status *call_open(const struct call *call, size_t n_inputs, tssa_value *const *inputs)
{
    struct run *run = call->run;
    TRY(call_choose(call));
    for (size_t i = 0; i < n_inputs; i++)
        run->argument_inputs[i] = inputs[i] ? &inputs[i]->value : NULL;
    for (size_t i = 0; i < run->plan->body->n_returns; i++)
        run->argument_outputs[i].kind = TSSA_KIND_NONE;
    for (size_t i = 0; i < call->n_given; i++) {
        const tssa_value *given = call->given[i];
        if (!given)
            continue;
        if (given->value.kind != TSSA_KIND_TENSOR)
            return ERROR(TSSA_INVALID_ARGUMENT, "output %zu is given but is no tensor", i);
        run->argument_outputs[number_of(call, i)] = given->value; /* not counted again */
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
    const struct block_plan *body = session->plan->body;
    if (n_inputs == body->n_params && (wanted || n_outputs == body->n_returns))
        return NULL;
    return ERROR(TSSA_INVALID_ARGUMENT, "the model has %u inputs and %u outputs, not %zu and %zu",
                 (unsigned)body->n_params, (unsigned)body->n_returns, n_inputs, n_outputs);
}

static tssa_status *execute(const struct tssa_session *session, const tssa_run_options *options,
                            const struct call *call, tssa_value **outputs)
{
    struct run *run = call->run;
    run->cancel = options->cancel ? &options->cancel->requested : NULL;
    tssa_status *status = run_execute_some(run, run->argument_inputs, run->argument_outputs,
                                           call->numbers ? run->argument_wanted : NULL);
    run->cancel = NULL;
    if (!status)
        status = wrap_outputs(session, call, outputs);
    call_close(call);
    return status;
}

static tssa_status *run_session(struct tssa_session *session, const tssa_run_options *options,
                                size_t input_count, tssa_value *const *inputs, size_t output_count,
                                tssa_value **outputs)
{
    if (!session || (input_count && !inputs) || (output_count && !outputs))
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_run: an argument is NULL");
    TRY(check_counts(session, input_count, output_count, options->wanted));
    struct call call = {.n_given = output_count, .given = outputs, .numbers = options->wanted};
    TRY(take_run(session, &call.run));
    tssa_status *status = call_open(&call, input_count, inputs);
    if (!status)
        status = execute(session, options, &call, outputs);
    give_run(session, call.run);
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

tssa_status *tssa_session_library(const tssa_session *session, tssa_library_info *info)
{
    if (!session || !info)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_library: an argument is NULL");
    const struct kernel_tally *tally = &session->plan->tally;
    *info = (tssa_library_info){
        .primitives = (size_t)atomic_load_explicit(&tally->primitives, memory_order_relaxed),
        .nanoseconds = atomic_load_explicit(&tally->nanoseconds, memory_order_relaxed),
        .packed_bytes = atomic_load_explicit(&tally->packed_bytes, memory_order_relaxed)};
    return NULL;
}

tssa_status *tssa_session_memory(tssa_session *session, tssa_memory_use *use)
{
    if (!session || !use)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_memory: an argument is NULL");
    *use = (tssa_memory_use){0};
    pthread_mutex_lock(&session->lock);
    use->peak = session->peak;
    use->last = session->last.held;
    use->live = session->last.live;
    for (size_t i = 0; i < session->idle.count; i++)
        use->kept += run_kept(session->idle.data[i]);
    pthread_mutex_unlock(&session->lock);
    return NULL;
}

tssa_status *tssa_session_counts(tssa_session *session, tssa_session_work *work)
{
    if (!session || !work)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_counts: an argument is NULL");
    const struct device *device = session->device->device;
    if (!device->counts_only)
        return ERROR(TSSA_UNSUPPORTED, "the session's device, %s, computes and does not count",
                     device->name);
    pthread_mutex_lock(&session->lock);
    const struct device_counts counts = session->counts;
    pthread_mutex_unlock(&session->lock);
    *work = (tssa_session_work){.launches = counts.launches,
                                .library_calls = counts.library_calls,
                                .bytes = counts.bytes,
                                .allocations = counts.allocations,
                                .copies = counts.copies,
                                .copied_bytes = counts.copied_bytes};
    return NULL;
}

const char *tssa_device_name(size_t index)
{
    const struct device *device = device_at(index);
    return device ? device->name : NULL;
}

/* ---- Profiles ------------------------------------------------------------------------------------- */

static tssa_status *check_profile(const struct tssa_session *session, bool complete,
                                  const char *function)
{
    if (!session || !complete)
        return ERROR(TSSA_INVALID_ARGUMENT, "%s: an argument is NULL", function);
    if (!session->profile)
        return ERROR(TSSA_INVALID_ARGUMENT, "the session was made without `profile`");
    return NULL;
}

tssa_status *tssa_session_profile(tssa_session *session,
                                  void (*write)(void *, const char *, size_t), void *user)
{
    TRY(check_profile(session, write, "tssa_session_profile"));
    pthread_mutex_lock(&session->lock);
    tssa_status *status = profile_write(session->plan, session->profile, write, user);
    pthread_mutex_unlock(&session->lock);
    return status;
}

/* Hands profile entries on in the form of tssa.h. */
struct step_reader {
    void (*visit)(void *user, const tssa_step_profile *step);
    void *user;
};

static tssa_status *read_step(void *user, const struct profile_entry *entry)
{
    const struct step_reader *reader = user;
    char node[256], around[256] = "";
    tssa_step_profile step = {.op = entry->op->info->name,
                              .node = node,
                              .around = around,
                              .calls = entry->time->count,
                              .nanoseconds = entry->time->nanoseconds,
                              .nested_nanoseconds = entry->nested};
    ir_op_describe(entry->op, node, sizeof node);
    if (entry->around)
        ir_op_describe(entry->around->op, around, sizeof around);
    for (const struct profile_entry *outer = entry->around; outer; outer = outer->around)
        step.depth++;
    reader->visit(reader->user, &step);
    return NULL;
}

tssa_status *tssa_session_profile_steps(tssa_session *session,
                                        void (*visit)(void *user, const tssa_step_profile *step),
                                        void *user)
{
    TRY(check_profile(session, visit, "tssa_session_profile_steps"));
    struct step_reader reader = {visit, user};
    pthread_mutex_lock(&session->lock);
    tssa_status *status = profile_visit(session->plan, session->profile, read_step, &reader);
    pthread_mutex_unlock(&session->lock);
    return status;
}

tssa_status *tssa_session_profile_clear(tssa_session *session)
{
    TRY(check_profile(session, true, "tssa_session_profile_clear"));
    pthread_mutex_lock(&session->lock);
    memset(session->profile, 0, (session->plan->n_steps + 1u) * sizeof *session->profile);
    pthread_mutex_unlock(&session->lock);
    return NULL;
}
