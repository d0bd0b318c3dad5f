/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/status.h"

#define MS_PER_NS 1e-6

/* ---- One lane --------------------------------------------------------------------------------------- */

/* Those of one set: every so many-th. `room` has a place for each call. */
static double set_median(const struct samples *samples, size_t set, size_t sets, double *room)
{
    size_t count = 0;
    for (size_t i = set; i < samples->count; i += sets)
        room[count++] = samples->ns[i] * MS_PER_NS;
    statistics_sort(room, count);
    return count ? statistics_median(room, count) : 0;
}

static tssa_status *find_set_medians(struct result *result, double *room)
{
    size_t sets = result->lane->subject->set_count;
    if (sets < 2 || result->lane->concurrency > 1)
        return NULL;
    result->set_medians = calloc(sets, sizeof *result->set_medians);
    TRY_ALLOC(result->set_medians);
    for (size_t i = 0; i < sets; i++)
        result->set_medians[i] = set_median(&result->lane->samples, i, sets, room);
    return NULL;
}

static void find_quiet(struct result *result, double limit, double *room)
{
    const struct samples *samples = &result->lane->samples;
    size_t count = 0;
    for (size_t i = 0; i < samples->block_count; i++) {
        const struct block *block = &samples->blocks[i];
        bool quiet = block->pace <= limit && !block->preempted;
        for (size_t k = 0; k < block->count && quiet; k++)
            room[count++] = samples->ns[block->first + k] * MS_PER_NS;
    }
    statistics_sort(room, count);
    result->quiet = (double)count / (double)samples->count;
    result->quiet_median = count ? statistics_median(room, count) : 0;
}

static tssa_status *find_result(struct result *result, const struct results *results)
{
    const struct samples *samples = &result->lane->samples;
    const struct bench_arguments *arguments = results->arguments;
    if (!samples->count)
        return NULL;
    double *room = reallocarray(NULL, samples->count, sizeof *room);
    TRY_ALLOC(room);
    for (size_t i = 0; i < samples->count; i++)
        room[i] = samples->ns[i] * MS_PER_NS;
    statistics_sort(room, samples->count);
    result->of = statistics_of(room, samples->count);
    for (size_t i = 0; i < arguments->percentile_count; i++)
        result->percentiles[i] =
            statistics_percentile(room, samples->count, arguments->percentiles[i]);
    result->throughput = (double)samples->count / (samples->wall_ns * 1e-9);
    find_quiet(result, PACE_TOLERANCE * results->pace_quiet, room);
    tssa_status *status = find_set_medians(result, room);
    free(room);
    return status;
}

/* ---- Two lanes -------------------------------------------------------------------------------------- */

/* Of the calls of a block, a typical time: for each set the median, and of these the mean. What disturbs a few
 * calls does not count. `room` has a place for each call. */
static double block_typical(const struct lane *lane, const struct block *block, double *room)
{
    size_t sets = lane->concurrency > 1 ? 1 : lane->subject->set_count, seen = 0;
    double sum = 0;
    for (size_t set = 0; set < sets && set < block->count; set++, seen++) {
        size_t count = 0;
        for (size_t i = set; i < block->count; i += sets)
            room[count++] = lane->samples.ns[block->first + i];
        statistics_sort(room, count);
        sum += statistics_median(room, count);
    }
    return sum / (double)seen;
}

/* Without the last block where it is less than a round, unless it is the only one. */
static size_t whole_blocks(const struct lane *lane)
{
    const struct samples *samples = &lane->samples;
    size_t count = samples->block_count;
    return count > 1 && samples->blocks[count - 1].count < lane->subject->set_count ? count - 1
                                                                                    : count;
}

static tssa_status *find_ratio(struct result *result, const struct lanes *lanes)
{
    const struct lane *lane = result->lane, *baseline = &lanes->items[lane->baseline];
    size_t pairs = whole_blocks(lane), others = whole_blocks(baseline);
    if (others < pairs)
        pairs = others;
    if (baseline == lane || !pairs)
        return NULL;
    size_t most = lane->samples.count > baseline->samples.count ? lane->samples.count
                                                                : baseline->samples.count;
    double *ratios = reallocarray(NULL, pairs + most, sizeof *ratios);
    TRY_ALLOC(ratios);
    for (size_t i = 0; i < pairs; i++)
        ratios[i] = block_typical(baseline, &baseline->samples.blocks[i], ratios + pairs) /
                    block_typical(lane, &lane->samples.blocks[i], ratios + pairs);
    statistics_sort(ratios, pairs);
    result->ratio = (struct ratio){.pairs = pairs,
                                   .median = statistics_median(ratios, pairs),
                                   .low = statistics_percentile(ratios, pairs, 25),
                                   .high = statistics_percentile(ratios, pairs, 75)};
    free(ratios);
    return NULL;
}

/* ---- All of them ------------------------------------------------------------------------------------ */

static void find_pace(struct results *results, const struct pace *pace)
{
    double *sorted = pace->count ? reallocarray(NULL, pace->count, sizeof *sorted) : NULL;
    if (!sorted)
        return;
    memcpy(sorted, pace->readings, pace->count * sizeof *sorted);
    statistics_sort(sorted, pace->count);
    results->pace_quiet = pace_quiet(pace);
    results->pace_median = statistics_median(sorted, pace->count);
    results->pace_worst = sorted[pace->count - 1];
    free(sorted);
}

tssa_status *results_make(const struct lanes *lanes, const struct bench_arguments *arguments,
                          struct results *results)
{
    struct rusage usage;
    *results = (struct results){.lanes = lanes, .arguments = arguments};
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        results->rss_peak = (size_t)usage.ru_maxrss << 10;
    find_pace(results, &lanes->pace);
    results->others = machine_others(&lanes->before, &lanes->after);
    results->items = calloc(lanes->count + 1, sizeof *results->items);
    TRY_ALLOC(results->items);
    for (size_t i = 0; i < lanes->count; i++) {
        struct result *result = &results->items[results->count++];
        result->lane = &lanes->items[i];
        TRY(find_result(result, results));
        TRY(find_ratio(result, lanes));
    }
    return NULL;
}

void results_free(struct results *results)
{
    for (size_t i = 0; i < results->count; i++)
        free(results->items[i].set_medians);
    free(results->items);
    *results = (struct results){0};
}

bool results_are_table(const struct results *results)
{
    return results->arguments->size_count > 0 || results->arguments->concurrency_count > 1;
}

void result_set_name(const struct input_set *set, char *text, size_t size)
{
    if (!set->data_set) {
        snprintf(text, size, "seed %" PRIu64, set->seed);
        return;
    }
    const char *path = set->data_set;
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    snprintf(text, size, "%.*s", (int)(end - start), path + start);
}
