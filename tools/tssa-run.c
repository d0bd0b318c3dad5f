/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tssa-run: runs an ONNX model and shows, writes, compares or times what comes out (docs/tools.md).
 */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handles.h"
#include "base/file.h"
#include "base/text.h"
#include "tools/common/clock.h"
#include "tools/common/fail.h"
#include "tools/common/inputs.h"
#include "tools/common/inspect.h"
#include "tools/common/interrupt.h"
#include "tools/common/keep.h"
#include "tools/common/kernel_cache.h"
#include "tools/common/load.h"
#include "tools/common/place.h"
#include "tools/common/profile_table.h"
#include "tools/common/progress.h"
#include "tools/common/remarks.h"
#include "tools/common/statistics.h"
#include "tools/run/outputs.h"
#include "tools/run/summary.h"

struct job {
    struct arguments arguments;
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    struct model_bytes bytes;
    struct run_inputs inputs;
    size_t output_count, all_outputs; /* that are computed; of the model */
    size_t *numbers;                  /* of those that are computed, among all */
    tssa_value **outputs;
    double load_ms, session_ms, run_ms;
    uint64_t runs; /* that were made, and what they took together */
    double all_ms;
};

static bool dumps_graph(const struct arguments *arguments)
{
    return arguments->dump_stage && strcmp(arguments->dump_stage, DUMP_GRAPH) == 0;
}

/* ---- Loading --------------------------------------------------------------------------------- */

static tssa_status *load(struct job *job)
{
    const bool looks = job->arguments.inspect || dumps_graph(&job->arguments);
    size_t limit = job->arguments.common.memory_limit;
    char cache[PATH_MAX];
    uint64_t start = clock_now();
    TRY(model_bytes_read(job->arguments.model, limit, &job->bytes));
    const tssa_context_options context_options = {
        .struct_size = sizeof context_options,
        .threads = job->arguments.common.threads,
        .memory_limit = model_bytes_left(&job->bytes, limit),
        .log = looks ? NULL : log_note,
        .kernel_cache =
            kernel_cache_folder(job->arguments.common.kernel_cache, cache, sizeof cache)};
    const tssa_load_options options = {.struct_size = sizeof options,
                                       .allow_external_links = job->arguments.common.external_links,
                                       .functions = TSSA_FUNCTIONS_INLINE};
    TRY(tssa_context_create(&context_options, &job->context));
    TRY(model_load(job->context, job->arguments.model, &job->bytes, &options, &job->model));
    job->load_ms = clock_ms_since(start);
    return NULL;
}

/* Loads, and fixes dims. */
static enum exit_code open_model(struct job *job)
{
    progress("loading %s", job->arguments.model);
    tssa_status *status = load(job);
    if (status)
        return fail(EXIT_MODEL, status);
    for (size_t i = 0; i < job->arguments.common.source.dim_count && !status; i++) {
        const struct dim_argument *dim = &job->arguments.common.source.dims[i];
        status = tssa_model_set_dim(job->model, dim->name, dim->value);
        if (status)
            return fail(EXIT_USAGE,
                        status_prefix(status, "--dim %s=%" PRId64, dim->name, dim->value));
    }
    job->all_outputs = tssa_model_output_count(job->model);
    status = keep_outputs(job->model, job->arguments.common.outputs, &job->numbers, NULL);
    if (status)
        return fail(EXIT_USAGE, status);
    progress_done();
    return EXIT_OK;
}

static void print_text(void *user, const char *text, size_t size)
{
    fwrite(text, 1, size, user);
}

static tssa_status *optimize(struct job *job)
{
    const tssa_optimize_options options = {.struct_size = sizeof options,
                                           .level = job->arguments.common.level,
                                           .target = TSSA_TARGET_SESSION};
    return tssa_model_optimize(job->model, &options);
}

/* The stage that is looked for. */
struct stage_printer {
    const char *stage;
    bool found;
};

static void print_stage(void *user, const char *stage, const char *text, size_t size)
{
    struct stage_printer *printer = user;
    if (strcmp(stage, printer->stage) != 0)
        return;
    printer->found = true;
    fwrite(text, 1, size, stdout);
}

static tssa_status *dump_session(struct job *job)
{
    struct stage_printer printer = {.stage = job->arguments.dump_stage};
    const tssa_session_options options = {.struct_size = sizeof options,
                                          .device = job->arguments.common.device,
                                          .compile = TSSA_COMPILE_WAIT,
                                          .dump = print_stage,
                                          .dump_user = &printer,
                                          .precision = job->arguments.common.precision,
                                          .no_winograd = job->arguments.common.no_winograd};
    TRY(tssa_session_create(job->model, &options, &job->session));
    if (!printer.found)
        complain("note: --dump-ir=%s: the session fuses nothing, so there are no kernels",
                 printer.stage);
    return NULL;
}

static tssa_status *dump_stage(struct job *job)
{
    TRY(optimize(job));
    return dumps_graph(&job->arguments) ? tssa_model_print(job->model, print_text, stdout)
                                        : dump_session(job);
}

/* --inspect and --dump-ir */
static enum exit_code look(struct job *job)
{
    tssa_status *status = NULL;
    if (job->arguments.inspect)
        status = inspect_model(job->model);
    if (!status && job->arguments.dump_stage)
        status = dump_stage(job);
    return status ? fail(EXIT_MODEL, status) : EXIT_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */

static void free_outputs(struct job *job)
{
    for (size_t i = 0; i < job->output_count && job->outputs; i++) {
        tssa_value_free(job->outputs[i]);
        job->outputs[i] = NULL;
    }
}

static tssa_status *run_once(struct job *job, double *milliseconds)
{
    free_outputs(job);
    uint64_t start = clock_now();
    TRY(tssa_session_run(job->session, job->inputs.count, job->inputs.values, job->output_count,
                         job->outputs));
    *milliseconds = clock_ms_since(start);
    job->all_ms += *milliseconds;
    job->runs++;
    return NULL;
}

/* Of kernels, and of what became none; of layouts; or of all but what kernels take. */
static void print_remarks(struct remark_list *remarks, enum remark_choice choice)
{
    if (choice == REMARKS_GIR) {
        remarks_keep_kernels(remarks);
        remarks_print_kernels(remarks);
    } else if (choice == REMARKS_LAYOUT) {
        remarks_keep_layouts(remarks);
        remarks_print(remarks);
    } else if (choice == REMARKS_SESSION) {
        remarks_drop_kernels(remarks);
        remarks_print(remarks);
    }
}

/* --remarks: what the session says of itself. */
static tssa_status *make_session(struct job *job)
{
    struct remark_list remarks = {0};
    const tssa_session_options options = {.struct_size = sizeof options,
                                          .device = job->arguments.common.device,
                                          .profile = job->arguments.profile != NULL,
                                          .compile = job->arguments.common.compile,
                                          .remark = job->arguments.remarks ? remarks_add : NULL,
                                          .remark_user = &remarks,
                                          .poison = job->arguments.poison,
                                          .precision = job->arguments.common.precision,
                                          .allow_tf32 = job->arguments.common.allow_tf32,
                                          .no_winograd = job->arguments.common.no_winograd};
    tssa_status *status = tssa_session_create(job->model, &options, &job->session);
    if (!status)
        status = remarks_settle(&remarks, job->model);
    if (!status)
        print_remarks(&remarks, job->arguments.remarks);
    remarks_free(&remarks);
    return status;
}

static enum exit_code prepare(struct job *job)
{
    uint64_t start = clock_now();
    progress("preparing the session");
    tssa_status *status = optimize(job);
    if (!status)
        status = make_session(job);
    job->session_ms = clock_ms_since(start);
    if (status)
        return fail(EXIT_MODEL, status_prefix(status, "cannot run %s", job->arguments.model));
    job->output_count = tssa_model_output_count(job->model);
    job->outputs = calloc(job->output_count ? job->output_count : 1, sizeof(tssa_value *));
    if (!job->outputs)
        return fail(EXIT_RUN, status_out_of_memory());
    progress("reading inputs");
    status = inputs_make(job->context, job->model, &job->arguments.common.source, &job->inputs);
    if (!status && job->inputs.guesses && job->inputs.guesses[0])
        complain("note: nothing fixes these dims, they are 1 now (see --dim and --shape): %s",
                 job->inputs.guesses);
    if (!status)
        return EXIT_OK;
    switch (tssa_status_code(status)) {
    case TSSA_INVALID_ARGUMENT:
    case TSSA_LIMIT:
        return fail(EXIT_USAGE, status);
    case TSSA_OUT_OF_MEMORY:
        return fail(EXIT_RUN, status);
    default:
        return fail(EXIT_FILE, status);
    }
}

static void print_times(double *times, size_t count)
{
    statistics_sort(times, count);
    struct statistics of = statistics_of(times, count);
    printf("%zu runs: min %.4f ms, median %.4f ms, mean %.4f ms, P99 %.4f ms\n", count, of.min,
           of.median, of.mean, statistics_percentile(times, count, 99));
}

static tssa_status *repeat(struct job *job)
{
    size_t count = (size_t)job->arguments.repeat;
    double *times = count ? calloc(count, sizeof *times) : NULL;
    tssa_status *status = NULL;
    if (!count)
        return NULL;
    TRY_ALLOC(times);
    progress("running it %zu times", count);
    for (size_t i = 0; i < count && !status; i++)
        status = run_once(job, &times[i]);
    progress_done();
    if (!status)
        print_times(times, count);
    free(times);
    return status;
}

/* A run that Ctrl-C or --timeout ended, which the session does not tell apart. */
static enum exit_code tell_end(const struct job *job, tssa_status *status)
{
    bool signalled = interrupt_came() == SIGINT;
    tssa_status_free(status);
    if (signalled)
        complain("interrupted");
    else
        complain("cannot run %s: it did not end in %u s (--timeout)", job->arguments.model,
                 job->arguments.common.timeout);
    return signalled ? EXIT_INTERRUPTED : EXIT_RUN;
}

static tssa_status *print_kernels(const struct job *job)
{
    tssa_compile_info info;
    TRY(tssa_session_compiled(job->session, &info));
    if (info.pending)
        printf("kernels: not compiled yet\n");
    else if (info.kernels)
        printf("kernels: %zu, %zu of them from disk, ready after %.2f ms\n", info.kernels,
               info.cached, (double)info.nanoseconds * 1e-6);
    return NULL;
}

static enum exit_code run(struct job *job)
{
    progress("running %s", job->arguments.model);
    interrupt_arm(job->session, job->arguments.common.timeout);
    tssa_status *status = run_once(job, &job->run_ms);
    progress_done();
    if (!status) {
        printf("loaded in %.2f ms, session made in %.2f ms, first run %.3f ms\n", job->load_ms,
               job->session_ms, job->run_ms);
        status = repeat(job);
    }
    if (!status)
        status = print_kernels(job);
    interrupt_disarm();
    if (!status)
        return EXIT_OK;
    if (tssa_status_code(status) == TSSA_LIMIT && interrupt_came())
        return tell_end(job, status);
    bool wrong_input = tssa_status_code(status) == TSSA_SHAPE_MISMATCH;
    return fail(wrong_input ? EXIT_USAGE : EXIT_RUN,
                status_prefix(status, "cannot run %s", job->arguments.model));
}

/* ---- Afterwards ------------------------------------------------------------------------------ */

static tssa_status *print_outputs(const struct job *job)
{
    printf("outputs\n");
    for (size_t i = 0; i < job->output_count; i++) {
        tssa_value_info info;
        TRY(tssa_model_output(job->model, i, &info));
        summary_value(info.name, &job->outputs[i]->value);
    }
    return NULL;
}

static void add_text(void *user, const char *text, size_t size)
{
    text_append(user, text, size);
}

static tssa_status *print_profile(const struct job *job)
{
    struct profile_table table;
    tssa_status *status = profile_table_read(job->session, false, &table);
    if (!status)
        profile_table_print(&table, job->runs, job->all_ms * 1e6);
    profile_table_free(&table);
    return status;
}

static tssa_status *write_profile(const struct job *job)
{
    struct text text;
    if (strcmp(job->arguments.profile, "-") == 0)
        return print_profile(job);
    text_init(&text, &allocator_default);
    tssa_status *status = tssa_session_profile(job->session, add_text, &text);
    if (!status && text.failed)
        status = status_out_of_memory();
    if (!status)
        status = file_write(&allocator_default, job->arguments.profile, text.data, text.size);
    text_free(&text);
    return status;
}

static enum exit_code finish(struct job *job)
{
    const struct arguments *arguments = &job->arguments;
    const struct run_outputs outputs = {job->output_count, job->all_outputs, job->numbers,
                                        job->outputs};
    tssa_status *status = NULL;
    bool same = true;
    if (arguments->boxes) {
        if (!summary_boxes(job->output_count, job->outputs)) {
            complain("--boxes: no two outputs are boxes (K,5) and labels (K)");
            return EXIT_USAGE;
        }
    } else if (!arguments->common.quiet) {
        status = print_outputs(job);
    }
    progress("writing outputs");
    if (!status && arguments->output_dir)
        status = outputs_write(job->context, job->model, arguments, &outputs);
    if (!status && arguments->profile)
        status = write_profile(job);
    if (!status && arguments->compare_dir)
        status = outputs_compare(job->context, job->model, arguments, &outputs, &same);
    progress_done();
    if (status)
        return fail(EXIT_FILE, status);
    return same ? EXIT_OK : EXIT_DIFFERS;
}

static enum exit_code run_job(struct job *job)
{
    const char *profile = job->arguments.profile;
    enum exit_code code = place_check_folder(job->arguments.output_dir);
    if (code == EXIT_OK && profile && strcmp(profile, "-") != 0)
        code = place_check_file(profile);
    if (code == EXIT_OK)
        code = open_model(job);
    if (code == EXIT_OK && (job->arguments.inspect || job->arguments.dump_stage))
        return look(job);
    if (code == EXIT_OK)
        code = prepare(job);
    if (code == EXIT_OK)
        code = run(job);
    if (code == EXIT_OK)
        code = finish(job);
    return code;
}

static void job_free(struct job *job)
{
    free_outputs(job);
    free(job->outputs);
    free(job->numbers);
    inputs_free(&job->inputs);
    tssa_session_free(job->session);
    tssa_model_free(job->model);
    tssa_context_free(job->context);
    model_bytes_free(&job->bytes);
    arguments_free(&job->arguments);
}

int main(int argc, char **argv)
{
    struct job job = {.session = NULL};
    enum exit_code code = EXIT_USAGE;
    /* Threads that are bound to cores start at once; see base/team.h. */
    setenv("OMP_PROC_BIND", "true", 0);
    if (arguments_parse(argc, argv, &job.arguments)) {
        progress_start("tssa-run");
        code = run_job(&job);
        progress_stop();
    }
    job_free(&job);
    return end_output(code);
}
