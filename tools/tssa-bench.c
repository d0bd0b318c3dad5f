/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tssa-bench: measures how fast models run, where the time goes, and how they compare
 * (docs/tools.md).
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tools/bench/export.h"
#include "tools/bench/report.h"
#include "tools/common/fail.h"
#include "tools/common/interrupt.h"
#include "tools/common/progress.h"

#define PROFILE_SECONDS 0.5

struct job {
    struct bench_arguments arguments;
    struct targets targets;
    struct model_bytes bytes;
    struct subject *subjects; /* size by size, in each the targets */
    size_t subject_count;
    struct lanes lanes;
    struct results results;
};

/* ---- Getting ready --------------------------------------------------------------------------- */

static bool is_sweep(const struct job *job)
{
    return job->arguments.size_count > 0;
}

/* What a data set holds has its size; a sweep needs another at each step. */
static enum exit_code check_sweep(const struct job *job)
{
    for (size_t i = 0; is_sweep(job) && i < job->targets.count; i++)
        if (job->targets.items[i].data_set_count) {
            complain("%s: a data set has one size; several sizes need random inputs (name the "
                     "model file, and no folder)",
                     job->targets.items[i].data_sets[0]);
            return EXIT_USAGE;
        }
    return EXIT_OK;
}

static enum exit_code read_standard_input(struct job *job)
{
    tssa_status *status = NULL;
    for (size_t i = 0; i < job->targets.count && !status && !job->bytes.data; i++)
        status = model_bytes_read(job->targets.items[i].path, job->arguments.common.memory_limit,
                                  &job->bytes);
    return status ? fail(EXIT_MODEL, status) : EXIT_OK;
}

static const tssa_model *lender_of(const struct job *job, const struct subject *subject)
{
    for (size_t i = 0; i < job->subject_count; i++)
        if (job->subjects[i].target == subject->target->lender)
            return job->subjects[i].model;
    return NULL;
}

static enum exit_code open_subjects(struct job *job)
{
    size_t sizes = is_sweep(job) ? job->arguments.size_count : 1;
    enum exit_code code = EXIT_OK;
    job->subjects = calloc(sizes * job->targets.count, sizeof *job->subjects);
    if (!job->subjects)
        return fail(EXIT_RUN, status_out_of_memory());
    for (size_t s = 0; s < sizes; s++)
        for (size_t t = 0; t < job->targets.count && code == EXIT_OK; t++)
            code = subject_open(&job->subjects[job->subject_count++], &job->arguments,
                                &job->targets.items[t],
                                is_sweep(job) ? job->arguments.sizes[s] : -1, &job->bytes);
    for (size_t i = 0; i < job->subject_count && code == EXIT_OK; i++)
        code = subject_make_inputs(&job->subjects[i], &job->arguments,
                                   lender_of(job, &job->subjects[i]));
    return code;
}

/* Lanes that differ in the model alone are beside each other. */
static tssa_status *make_lanes(struct job *job)
{
    size_t group = job->targets.count;
    job->lanes.group = group;
    for (size_t s = 0; s < job->subject_count; s += group)
        for (size_t c = 0; c < job->arguments.concurrency_count; c++) {
            size_t baseline = job->lanes.count;
            for (size_t t = 0; t < group; t++)
                TRY(lanes_add(&job->lanes, &job->subjects[s + t],
                              (size_t)job->arguments.concurrency[c], baseline));
        }
    return NULL;
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static enum exit_code run_failed(const struct subject *subject, tssa_status *status)
{
    bool wrong_input = tssa_status_code(status) == TSSA_SHAPE_MISMATCH;
    return fail(wrong_input ? EXIT_USAGE : EXIT_RUN,
                status_prefix(status, "cannot run %s", subject->target->name));
}

static const struct subject *subject_that_refuses(struct subject *subjects, size_t n, size_t set,
                                                  tssa_status **status)
{
    for (size_t i = 0; i < n && !interrupt_came(); i++) {
        if (set >= subjects[i].set_count)
            continue;
        progress("running %s", subjects[i].target->name);
        *status = subject_try_set(&subjects[i], set);
        if (*status && !interrupt_came())
            return &subjects[i];
        tssa_status_free(*status);
    }
    return NULL;
}

static void drop_random_set(struct subject *subjects, size_t n, size_t set)
{
    for (size_t i = 0; i < n; i++)
        if (!subjects[i].recorded && subjects[i].set_count > 1 && set < subjects[i].set_count)
            subject_drop_set(&subjects[i], set);
}

static size_t most_sets(const struct subject *subjects, size_t n)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = subjects[i].set_count > most ? subjects[i].set_count : most;
    return most;
}

/* Each set once, with all models that are compared. Not every random set suits a model: what one of
 * them refuses is left out of all, as long as others remain. */
static enum exit_code try_sets(struct subject *subjects, size_t n)
{
    size_t most = most_sets(subjects, n), left_out = 0;
    tssa_status *first = NULL;
    for (size_t set = 0; set + left_out < most;) {
        tssa_status *status = NULL;
        const struct subject *refusing = subject_that_refuses(subjects, n, set, &status);
        if (refusing && (refusing->recorded || refusing->set_count == 1)) {
            tssa_status_free(first);
            return run_failed(refusing, status);
        }
        if (!refusing) {
            set++;
            continue;
        }
        drop_random_set(subjects, n, set);
        tssa_status_free(left_out++ ? status : NULL);
        first = first ? first : status;
    }
    progress_done();
    if (first)
        complain("note: %zu of %zu sets of random inputs do not suit and are left out: %s",
                 left_out, most, tssa_status_message(first));
    tssa_status_free(first);
    return EXIT_OK;
}

static enum exit_code run_first(struct job *job)
{
    enum exit_code code = EXIT_OK;
    size_t group = job->targets.count;
    for (size_t i = 0; i < job->subject_count && code == EXIT_OK; i += group)
        code = try_sets(&job->subjects[i], group);
    return code;
}

static tssa_status *profile(struct job *job)
{
    double seconds = job->arguments.duration > 0 && job->arguments.duration < PROFILE_SECONDS
                         ? job->arguments.duration
                         : PROFILE_SECONDS;
    bool wanted = job->arguments.json || !job->arguments.common.quiet;
    if (is_sweep(job) || !wanted)
        return NULL;
    progress("profiling");
    for (size_t i = 0; i < job->subject_count && !interrupt_came(); i++)
        TRY(subject_profile(&job->subjects[i], seconds, job->arguments.layers));
    progress_done();
    return NULL;
}

static enum exit_code measure(struct job *job)
{
    enum exit_code code = run_first(job);
    if (code != EXIT_OK)
        return code;
    tssa_status *status = make_lanes(job);
    if (!status)
        status = lanes_measure(&job->lanes, &job->arguments);
    progress_done();
    for (size_t i = 0; i < job->subject_count; i++) {
        job->subjects[i].run_peak = tssa_context_memory_peak(job->subjects[i].context);
        if (!status)
            status = subject_read_memory(&job->subjects[i]);
        if (!status)
            status = subject_read_work(&job->subjects[i]);
        if (!status)
            status = tssa_session_compiled(job->subjects[i].session, &job->subjects[i].kernels);
    }
    if (!status)
        status = results_make(&job->lanes, &job->arguments, &job->results);
    if (!status && !interrupt_came())
        status = profile(job);
    if (status && interrupt_came()) {
        tssa_status_free(status); /* of a profile that was cut short */
        status = NULL;
    }
    job->results.stopped = interrupt_came();
    return status ? fail(EXIT_RUN, status) : EXIT_OK;
}

/* ---- Telling --------------------------------------------------------------------------------- */

static enum exit_code tell(struct job *job)
{
    const struct bench_arguments *arguments = &job->arguments;
    const char *json = arguments->json, *times = arguments->times;
    tssa_status *status = NULL;
    bool alone = (json && strcmp(json, "-") == 0) || (times && strcmp(times, "-") == 0);
    if (!alone)
        report_print(&job->results);
    if (json)
        status = export_json(&job->results, json);
    if (!status && times)
        status = export_times(&job->results, times);
    if (status)
        return fail(EXIT_FILE, status);
    switch (job->results.stopped) {
    case 0:
        return EXIT_OK;
    case SIGALRM:
        complain("--timeout: ended before all was measured");
        return EXIT_RUN;
    default:
        complain("interrupted: ended before all was measured");
        return EXIT_INTERRUPTED;
    }
}

static enum exit_code run(struct job *job)
{
    enum exit_code code = EXIT_OK;
    tssa_status *status = export_check(&job->arguments);
    if (status)
        return fail(EXIT_FILE, status);
    code = targets_make(&job->arguments, &job->targets);
    if (code == EXIT_OK)
        code = check_sweep(job);
    if (code == EXIT_OK)
        code = read_standard_input(job);
    if (code == EXIT_OK)
        code = open_subjects(job);
    if (code != EXIT_OK)
        return code;
    interrupt_arm(job->subjects[0].session, job->arguments.common.timeout);
    code = measure(job);
    interrupt_disarm();
    return code == EXIT_OK ? tell(job) : code;
}

static void job_free(struct job *job)
{
    results_free(&job->results);
    lanes_free(&job->lanes);
    for (size_t i = 0; i < job->subject_count; i++)
        subject_close(&job->subjects[i]);
    free(job->subjects);
    model_bytes_free(&job->bytes);
    targets_free(&job->targets);
    bench_arguments_free(&job->arguments);
}

int main(int argc, char **argv)
{
    struct job job = {.subjects = NULL};
    enum exit_code code = EXIT_USAGE;
    signal(SIGXFSZ, SIG_IGN);           /* a file that may not grow is an error as any other */
    setenv("OMP_PROC_BIND", "true", 0); /* as tssa-run does */
    if (bench_arguments_parse(argc, argv, &job.arguments)) {
        progress_start("tssa-bench");
        code = run(&job);
        progress_stop();
    }
    job_free(&job);
    return end_output(code);
}
