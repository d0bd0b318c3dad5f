/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/subject.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tools/common/clock.h"
#include "tools/common/fail.h"
#include "tools/common/interrupt.h"
#include "tools/common/kernel_cache.h"
#include "tools/common/progress.h"

/* ---- Loading --------------------------------------------------------------------------------- */

static tssa_status *load(struct subject *subject, const struct bench_arguments *arguments,
                         const struct model_bytes *bytes)
{
    const size_t limit = arguments->common.memory_limit;
    char cache[PATH_MAX];
    const tssa_context_options context_options = {
        .struct_size = sizeof context_options,
        .threads = arguments->common.threads,
        .memory_limit = model_bytes_left(bytes, limit),
        .log = log_note,
        .kernel_cache = kernel_cache_folder(arguments->common.kernel_cache, cache, sizeof cache)};
    const tssa_load_options options = {.struct_size = sizeof options,
                                       .allow_external_links = arguments->common.external_links,
                                       .functions = TSSA_FUNCTIONS_INLINE};
    TRY(tssa_context_create(&context_options, &subject->context));
    uint64_t start = clock_now();
    TRY(model_load(subject->context, subject->target->path, bytes, &options, &subject->model));
    subject->load_ms = clock_ms_since(start);
    subject->model_bytes = tssa_context_memory_used(subject->context);
    return NULL;
}

/* The first dim of the first input that has a symbolic one; NULL: none has. As long as the model
 * lives. */
static const char *batch_dim(const tssa_model *model)
{
    for (size_t i = 0; i < tssa_model_input_count(model); i++) {
        tssa_value_info info;
        tssa_status *status = tssa_model_input(model, i, &info);
        if (!status && info.kind == TSSA_KIND_TENSOR && info.rank > 0 && info.symbols[0])
            return info.symbols[0];
        tssa_status_free(status);
    }
    return NULL;
}

static tssa_status *fix_swept_dim(struct subject *subject, const struct bench_arguments *arguments)
{
    const char *name = arguments->sweep ? arguments->sweep : batch_dim(subject->model);
    if (!name)
        return ERROR(TSSA_INVALID_ARGUMENT,
                     "--batch-sweep: no input has a symbolic first dim; see --dim");
    subject->dim = strdup(name);
    TRY_ALLOC(subject->dim);
    return status_prefix(tssa_model_set_dim(subject->model, subject->dim, subject->size),
                         "%s %s=%" PRId64, arguments->sweep ? "--dim" : "--batch-sweep",
                         subject->dim, subject->size);
}

/* The dims of the command line, and that of the sweep. */
static tssa_status *fix_dims(struct subject *subject, const struct bench_arguments *arguments)
{
    const struct input_source *source = &arguments->common.source;
    if (subject->size >= 0)
        TRY(fix_swept_dim(subject, arguments));
    for (size_t i = 0; i < source->dim_count; i++) {
        const struct dim_argument *dim = &source->dims[i];
        TRY(status_prefix(tssa_model_set_dim(subject->model, dim->name, dim->value),
                          "--dim %s=%" PRId64, dim->name, dim->value));
    }
    return NULL;
}

static tssa_status *optimize(struct subject *subject)
{
    const tssa_optimize_options options = {.struct_size = sizeof options,
                                           .level = subject->target->level,
                                           .target = TSSA_TARGET_SESSION};
    uint64_t start = clock_now();
    TRY(tssa_model_optimize(subject->model, &options));
    subject->optimize_ms = clock_ms_since(start);
    return NULL;
}

static tssa_status *make_session(struct subject *subject, bool profile)
{
    /* Of a profile all runs are to be the same. */
    const tssa_compile compile = profile && subject->compile == TSSA_COMPILE_BACKGROUND
                                     ? TSSA_COMPILE_WAIT
                                     : subject->compile;
    const tssa_session_options options = {.struct_size = sizeof options,
                                          .device = subject->device,
                                          .profile = profile,
                                          .compile = compile,
                                          .data_share = subject->share,
                                          .precision = subject->precision,
                                          .allow_tf32 = subject->allow_tf32,
                                          .no_winograd = subject->no_winograd};
    return tssa_session_create(subject->model, &options, &subject->session);
}

static tssa_status *prepare(struct subject *subject)
{
    TRY(optimize(subject));
    uint64_t start = clock_now();
    TRY(make_session(subject, false));
    subject->session_ms = clock_ms_since(start);
    subject->session_bytes = tssa_context_memory_used(subject->context);
    subject->output_count = tssa_model_output_count(subject->model);
    return NULL;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

/* Do borrowed data sets fit? They do when the lender's model takes inputs of the same names. */
static bool same_inputs(const tssa_model *a, const tssa_model *b)
{
    size_t count = tssa_model_input_count(a);
    bool same = count == tssa_model_input_count(b);
    for (size_t i = 0; same && i < count; i++) {
        tssa_value_info x, y;
        tssa_status *status = tssa_model_input(a, i, &x), *other = tssa_model_input(b, i, &y);
        same = !status && !other && strcmp(x.name, y.name) == 0;
        tssa_status_free(status);
        tssa_status_free(other);
    }
    return same;
}

static tssa_status *make_set(struct subject *subject, const struct input_source *source,
                             size_t index)
{
    struct input_source own = *source;
    struct input_set *set = &subject->sets[index];
    own.data_set = set->data_set = subject->recorded ? subject->target->data_sets[index] : NULL;
    own.seed = set->seed = source->seed + index;
    for (size_t i = 0; i < own.input_count; i++)
        own.inputs[i].used = false; /* by another model */
    for (size_t i = 0; i < own.shape_count; i++)
        own.shapes[i].used = false;
    return inputs_make(subject->context, subject->model, &own, &set->inputs);
}

static tssa_status *make_inputs(struct subject *subject, const struct bench_arguments *arguments)
{
    size_t count = (size_t)arguments->sets;
    if (subject->recorded)
        count = subject->target->data_set_count;
    subject->sets = calloc(count, sizeof *subject->sets);
    TRY_ALLOC(subject->sets);
    for (size_t i = 0; i < count; i++) {
        subject->set_count = i + 1;
        TRY(make_set(subject, &arguments->common.source, i));
    }
    const char *guesses = subject->sets[0].inputs.guesses;
    if (guesses && guesses[0] && (subject->size < 0 || subject->size == arguments->sizes[0]))
        complain("note: %s: nothing fixes these dims, they are 1 now (see --dim and --shape): %s",
                 subject->target->name, guesses);
    return NULL;
}

static enum exit_code inputs_code(const tssa_status *status)
{
    switch (tssa_status_code(status)) {
    case TSSA_INVALID_ARGUMENT:
    case TSSA_LIMIT:
        return EXIT_USAGE;
    case TSSA_OUT_OF_MEMORY:
        return EXIT_RUN;
    default:
        return EXIT_FILE;
    }
}

/* ---- Opening and closing --------------------------------------------------------------------- */

enum exit_code subject_open(struct subject *subject, const struct bench_arguments *arguments,
                            const struct target *target, int64_t size,
                            const struct model_bytes *bytes)
{
    *subject = (struct subject){.target = target,
                                .size = size,
                                .device = arguments->common.device,
                                .compile = arguments->common.compile,
                                .precision = arguments->common.precision,
                                .share = arguments->share,
                                .allow_tf32 = arguments->common.allow_tf32,
                                .no_winograd = arguments->common.no_winograd};
    progress("loading %s", target->name);
    tssa_status *status = load(subject, arguments, bytes);
    if (status)
        return fail(EXIT_MODEL, status);
    status = fix_dims(subject, arguments);
    if (status)
        return fail(EXIT_USAGE, status_prefix(status, "%s", target->name));
    progress("preparing the session of %s", target->name);
    status = prepare(subject);
    progress_done();
    return status ? fail(EXIT_MODEL, status_prefix(status, "cannot run %s", target->name))
                  : EXIT_OK;
}

enum exit_code subject_make_inputs(struct subject *subject, const struct bench_arguments *arguments,
                                   const tssa_model *lender)
{
    const struct target *target = subject->target;
    subject->recorded = target->data_set_count > 0;
    if (target->lender && lender && !same_inputs(subject->model, lender)) {
        subject->recorded = false;
        complain("note: %s takes other inputs than %s: its own are random", target->name,
                 target->lender->name);
    }
    progress("reading inputs");
    tssa_status *status = make_inputs(subject, arguments);
    progress_done();
    subject->prepare_peak = tssa_context_memory_peak(subject->context);
    tssa_context_memory_restart_peak(subject->context);
    if (!status)
        return EXIT_OK;
    enum exit_code code = inputs_code(status);
    return fail(code, status_prefix(status, "%s", target->name));
}

static void close_session(struct subject *subject)
{
    interrupt_switch(NULL);
    tssa_session_free(subject->session);
    subject->session = NULL;
}

void subject_close(struct subject *subject)
{
    close_session(subject);
    profile_table_free(&subject->profile);
    for (size_t i = 0; i < subject->set_count; i++)
        inputs_free(&subject->sets[i].inputs);
    free(subject->sets);
    free(subject->dim);
    tssa_model_free(subject->model);
    tssa_context_free(subject->context);
    *subject = (struct subject){0};
}

/* ---- Callers --------------------------------------------------------------------------------- */

static tssa_status *call(void *user, size_t set)
{
    struct caller *caller = user;
    const struct run_inputs *inputs = &caller->subject->sets[set].inputs;
    return tssa_session_run(caller->subject->session, inputs->count, inputs->values,
                            caller->subject->output_count, caller->outputs);
}

static void free_outputs(void *user)
{
    struct caller *caller = user;
    for (size_t i = 0; i < caller->subject->output_count; i++) {
        tssa_value_free(caller->outputs[i]);
        caller->outputs[i] = NULL;
    }
}

tssa_status *caller_open(struct caller *caller, struct subject *subject)
{
    caller->subject = subject;
    caller->outputs = calloc(subject->output_count + 1, sizeof(tssa_value *));
    TRY_ALLOC(caller->outputs);
    caller->callee = (struct callee){call, free_outputs, caller, subject->set_count};
    return NULL;
}

void caller_close(struct caller *caller)
{
    free((void *)caller->outputs);
    *caller = (struct caller){0};
}

/* ---- The first runs, and a profile ----------------------------------------------------------- */

/*
 * Rounds through all sets, of `seconds` or one. *calls and *nanoseconds: what they were together.
 */
static tssa_status *run_rounds(struct subject *subject, double seconds, uint64_t *calls,
                               double *nanoseconds)
{
    struct caller caller = {0};
    double times[64];
    size_t done;
    *calls = 0;
    *nanoseconds = 0;
    uint64_t start = clock_now();
    tssa_status *status = caller_open(&caller, subject);
    while (!status && !interrupt_came()) {
        size_t set = *calls % subject->set_count, left = subject->set_count - set;
        status =
            measure_calls(&caller.callee, set, left < 64 ? left : 64, UINT64_MAX, times, &done);
        *calls += done;
        for (size_t i = 0; i < done; i++)
            *nanoseconds += times[i];
        if (*calls % subject->set_count == 0 && clock_ms_since(start) >= seconds * 1e3)
            break;
    }
    caller_close(&caller);
    return status;
}

tssa_status *subject_try_set(struct subject *subject, size_t set)
{
    struct caller caller = {0};
    double nanoseconds;
    size_t done;
    tssa_status *status = caller_open(&caller, subject);
    interrupt_switch(subject->session);
    if (!status)
        status = measure_calls(&caller.callee, set, 1, UINT64_MAX, &nanoseconds, &done);
    if (!status && subject->first_ms == 0)
        subject->first_ms = nanoseconds * 1e-6;
    if (!status)
        status = tssa_session_library(subject->session, &subject->library);
    caller_close(&caller);
    return status;
}

void subject_drop_set(struct subject *subject, size_t set)
{
    inputs_free(&subject->sets[set].inputs);
    subject->set_count--;
    memmove(&subject->sets[set], &subject->sets[set + 1],
            (subject->set_count - set) * sizeof *subject->sets);
}

tssa_status *subject_read_memory(struct subject *subject)
{
    return tssa_session_memory(subject->session, &subject->use);
}

tssa_status *subject_read_work(struct subject *subject)
{
    tssa_status *status = tssa_session_counts(subject->session, &subject->work);
    subject->counted = !status;
    if (tssa_status_code(status) != TSSA_UNSUPPORTED)
        return status;
    tssa_status_free(status); /* it computes */
    return NULL;
}

tssa_status *subject_profile(struct subject *subject, double seconds, bool layers)
{
    uint64_t calls;
    double nanoseconds;
    close_session(subject); /* memory for one is enough */
    TRY(make_session(subject, true));
    interrupt_switch(subject->session);
    TRY(run_rounds(subject, seconds / 10, &calls, &nanoseconds));
    TRY(tssa_session_profile_clear(subject->session));
    TRY(run_rounds(subject, seconds, &subject->profiled_runs, &subject->profiled_ns));
    TRY(subject_read_memory(subject));
    return profile_table_read(subject->session, layers, &subject->profile);
}
