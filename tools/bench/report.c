/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)
#define LOUD_BELOW 0.9  /* share of quiet runs */
#define LOUD_ABOVE 0.25 /* cores that others had */
#define LEAST_SECONDS 0.1
#define SHOWN_SETS 16

/* ---- A page for a lane ----------------------------------------------------------------------- */

static void print_inputs(const struct subject *subject)
{
    char first[200], last[200];
    result_set_name(&subject->sets[0], first, sizeof first);
    result_set_name(&subject->sets[subject->set_count - 1], last, sizeof last);
    if (subject->set_count == 1)
        printf("  inputs      %s%s\n", subject->recorded ? "" : "random, ", first);
    else
        printf("  inputs      %zu %s sets in turn, %s to %s\n", subject->set_count,
               subject->recorded ? "data" : "random", first, last);
}

static void print_preparation(const struct subject *subject)
{
    printf("  ready       loaded in %.2f ms, optimized in %.2f ms, session made in %.2f ms, first "
           "run %.3f ms\n",
           subject->load_ms, subject->optimize_ms, subject->session_ms, subject->first_ms);
    if (subject->kernels.kernels > 0)
        printf("  kernels     %zu, %zu of them from disk, ready after %.2f ms\n",
               subject->kernels.kernels, subject->kernels.cached,
               (double)subject->kernels.nanoseconds * 1e-6);
    if (subject->library.primitives > 0)
        printf(
            "  library     %zu primitives made in %.2f ms of the first runs; they hold %.2f MiB of "
            "packed weights\n",
            subject->library.primitives, (double)subject->library.nanoseconds * 1e-6,
            (double)subject->library.packed_bytes / MIB);
    printf(
        "  memory      peak %.2f MiB in runs, %.2f MiB before; the model holds %.2f MiB, with its "
        "session %.2f MiB\n",
        (double)subject->run_peak / MIB, (double)subject->prepare_peak / MIB,
        (double)subject->model_bytes / MIB, (double)subject->session_bytes / MIB);
}

static void print_values(const struct subject *subject)
{
    const tssa_memory_use *use = &subject->use;
    printf("  values      a run holds %.3f MiB at most", (double)use->last / MIB);
    if (use->live)
        printf(", of which %.3f MiB are in use at one time", (double)use->live / MIB);
    printf("\n");
}

static void print_work(const struct subject *subject)
{
    const tssa_session_work *work = &subject->work;
    if (!subject->counted)
        return;
    printf("  device      %" PRIu64 " launches, %" PRIu64 " library calls, %.3f MiB read and "
           "written, %" PRIu64 " allocations, %" PRIu64 " copies of %.3f MiB, %" PRIu64
           " waits%s\n",
           work->launches, work->library_calls, (double)work->bytes / MIB, work->allocations,
           work->copies, (double)work->copied_bytes / MIB, work->waits,
           work->replays ? ", replayed" : "");
}

static void print_latency(const struct result *result, const struct bench_arguments *arguments)
{
    const struct statistics *of = &result->of;
    printf("  latency ms  min %.4f, mean %.4f, median %.4f", of->min, of->mean, of->median);
    for (size_t i = 0; i < arguments->percentile_count; i++)
        printf(", P%g %.4f", arguments->percentiles[i], result->percentiles[i]);
    printf(", max %.4f\n", of->max);
}

static void print_sets(const struct result *result)
{
    const struct subject *subject = result->lane->subject;
    char name[200];
    if (!result->set_medians || subject->set_count > SHOWN_SETS)
        return;
    printf("  medians    ");
    for (size_t i = 0; i < subject->set_count && result->set_medians[i] > 0; i++) {
        result_set_name(&subject->sets[i], name, sizeof name);
        printf("%s %s %.4f", i ? "," : "", name, result->set_medians[i]);
    }
    printf("\n");
}

static void print_page(const struct result *result, const struct bench_arguments *arguments)
{
    const struct lane *lane = result->lane;
    printf("%s\n", lane->subject->target->name);
    print_inputs(lane->subject);
    print_preparation(lane->subject);
    print_values(lane->subject);
    print_work(lane->subject);
    if (!result->of.count) {
        printf("  no run was measured\n");
        return;
    }
    printf("  runs        %zu in %.2f s", result->of.count, lane->samples.wall_ns * 1e-9);
    if (lane->concurrency > 1)
        printf(" by %zu threads", lane->concurrency);
    printf(", %.1f per second\n", result->throughput);
    print_latency(result, arguments);
    print_sets(result);
}

static void print_pages(const struct results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct subject *subject = results->items[i].lane->subject;
        print_page(&results->items[i], results->arguments);
        if (!results->arguments->common.quiet)
            profile_table_print(&subject->profile, subject->profiled_runs, subject->profiled_ns);
        printf("\n");
    }
}

/* ---- A table --------------------------------------------------------------------------------- */

static void print_header(const struct results *results)
{
    const struct bench_arguments *arguments = results->arguments;
    char name[40];
    if (arguments->size_count)
        printf("%10s ", results->items[0].lane->subject->dim);
    printf("%11s %10s %10s %10s", "concurrency", "min ms", "mean ms", "median ms");
    for (size_t i = 0; i < arguments->percentile_count; i++) {
        snprintf(name, sizeof name, "P%g ms", arguments->percentiles[i]);
        printf(" %10s", name);
    }
    printf(" %11s", "runs/s");
    if (arguments->sweep_batch)
        printf(" %11s", "items/s");
    printf(" %10s%s\n", "peak MiB", results->lanes->group > 1 ? "   ratio" : "");
}

static void print_row(const struct result *result, const struct bench_arguments *arguments)
{
    const struct lane *lane = result->lane;
    const struct statistics *of = &result->of;
    if (arguments->size_count)
        printf("%10" PRId64 " ", lane->subject->size);
    printf("%11zu", lane->concurrency);
    if (!of->count) {
        printf(" no run was measured\n");
        return;
    }
    printf(" %10.4f %10.4f %10.4f", of->min, of->mean, of->median);
    for (size_t i = 0; i < arguments->percentile_count; i++)
        printf(" %10.4f", result->percentiles[i]);
    printf(" %11.1f", result->throughput);
    if (arguments->sweep_batch)
        printf(" %11.1f", result->throughput * (double)lane->subject->size);
    printf(" %10.2f", (double)lane->subject->run_peak / MIB);
    if (result->ratio.pairs)
        printf(" %7.3f", result->ratio.median);
    printf("\n");
}

static void print_table(const struct results *results)
{
    size_t group = results->lanes->group;
    for (size_t t = 0; t < group; t++) {
        const struct subject *subject = results->items[t].lane->subject;
        printf("%s\n", subject->target->name);
        print_inputs(subject);
        print_header(results);
        for (size_t i = t; i < results->count; i += group)
            print_row(&results->items[i], results->arguments);
        printf("\n");
    }
}

/* ---- Beside each other ----------------------------------------------------------------------- */

static void print_place(const struct results *results, const struct lane *lane)
{
    const struct bench_arguments *arguments = results->arguments;
    if (arguments->size_count)
        printf(", %s %" PRId64, arguments->sweep ? arguments->sweep : "batch", lane->subject->size);
    if (arguments->concurrency_count > 1)
        printf(", concurrency %zu", lane->concurrency);
}

static void print_ratios(const struct results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct lane *lane = results->items[i].lane;
        const struct ratio *ratio = &results->items[i].ratio;
        if (!ratio->pairs)
            continue;
        printf("%s", lane->subject->target->name);
        print_place(results, lane);
        printf(": %.3f times as fast as %s (median of %zu %spair%s of blocks, the middle half %.3f "
               "to %.3f)\n",
               ratio->median, results->lanes->items[lane->baseline].subject->target->name,
               ratio->pairs, ratio->quiet ? "quiet " : "", ratio->pairs == 1 ? "" : "s", ratio->low,
               ratio->high);
    }
}

/* ---- The machine ----------------------------------------------------------------------------- */

static double quiet_share(const struct results *results)
{
    double quiet = 0, all = 0;
    for (size_t i = 0; i < results->count; i++) {
        quiet += results->items[i].quiet * (double)results->items[i].of.count;
        all += (double)results->items[i].of.count;
    }
    return all > 0 ? quiet / all : 1;
}

static void print_quiet_medians(const struct results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct result *result = &results->items[i];
        printf("  %s", result->lane->subject->target->name);
        print_place(results, result->lane);
        if (result->quiet_median > 0)
            printf(": median of the %.0f %% quiet runs %.4f ms\n", 100 * result->quiet,
                   result->quiet_median);
        else
            printf(": no run was quiet\n");
    }
}

static void print_machine(const struct results *results)
{
    double share = quiet_share(results);
    bool loud = share < LOUD_BELOW || results->others > LOUD_ABOVE;
    if (results->lanes->after.wall - results->lanes->before.wall < LEAST_SECONDS) {
        printf("machine: too little was measured to tell how loud it was; peak RSS %.1f MiB\n",
               (double)results->rss_peak / MIB);
        return;
    }
    printf("machine: %s; %.0f %% of the runs were quiet, others had %.2f cores, pace %.2f us at "
           "best, median %.2f, worst %.2f; peak RSS %.1f MiB\n",
           loud ? "LOUD" : "quiet", 100 * share, results->others, results->pace_quiet,
           results->pace_median, results->pace_worst, (double)results->rss_peak / MIB);
    if (loud)
        print_quiet_medians(results);
}

void report_print(const struct results *results)
{
    if (results_are_table(results))
        print_table(results);
    else
        print_pages(results);
    print_ratios(results);
    print_machine(results);
}
