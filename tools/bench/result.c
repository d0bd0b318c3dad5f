/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define MS_PER_NS 1e-6
#define LEAST_PAIRS 10 /* of quiet blocks; else all pairs count */

/* ---- One lane -------------------------------------------------------------------------------- */

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

/* `limit`: of the pace. */
static bool block_is_quiet(const struct block *block, double limit)
{
    return block->pace <= limit && !block->preempted;
}

static void find_quiet(struct result *result, double limit, double *room)
{
    const struct samples *samples = &result->lane->samples;
    size_t count = 0;
    for (size_t i = 0; i < samples->block_count; i++) {
        const struct block *block = &samples->blocks[i];
        for (size_t k = 0; k < block->count && block_is_quiet(block, limit); k++)
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

/* ---- Two lanes ------------------------------------------------------------------------------- */

/*
 * Of the calls of a block, a typical time: for each set the lower quartile, and of these the mean.
 * What disturbs some calls does not count: on a loud machine that may be half of a block. `room`
 * has a place for each call.
 */
static double block_typical(const struct lane *lane, const struct block *block, double *room)
{
    size_t sets = lane->concurrency > 1 ? 1 : lane->subject->set_count, seen = 0;
    double sum = 0;
    for (size_t set = 0; set < sets && set < block->count; set++, seen++) {
        size_t count = 0;
        for (size_t i = set; i < block->count; i += sets)
            room[count++] = lane->samples.ns[block->first + i];
        statistics_sort(room, count);
        sum += statistics_percentile(room, count, 25);
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

/* The ratios of the first `pairs` pairs of blocks, or of those of them that were quiet. */
static size_t find_ratios(const struct lane *lane, const struct lane *baseline, size_t pairs,
                          double limit, double *ratios)
{
    size_t count = 0;
    double *room = ratios + pairs;
    for (size_t i = 0; i < pairs; i++) {
        const struct block *own = &lane->samples.blocks[i], *other = &baseline->samples.blocks[i];
        if (limit > 0 && !(block_is_quiet(own, limit) && block_is_quiet(other, limit)))
            continue;
        ratios[count++] = block_typical(baseline, other, room) / block_typical(lane, own, room);
    }
    statistics_sort(ratios, count);
    return count;
}

static tssa_status *find_ratio(struct result *result, const struct results *results)
{
    const struct lane *lane = result->lane, *baseline = &results->lanes->items[lane->baseline];
    size_t pairs = whole_blocks(lane), others = whole_blocks(baseline);
    if (others < pairs)
        pairs = others;
    if (baseline == lane || !pairs)
        return NULL;
    size_t most = lane->samples.count > baseline->samples.count ? lane->samples.count
                                                                : baseline->samples.count;
    double *ratios = reallocarray(NULL, pairs + most, sizeof *ratios);
    TRY_ALLOC(ratios);
    size_t count = find_ratios(lane, baseline, pairs, PACE_TOLERANCE * results->pace_quiet, ratios);
    result->ratio.quiet = count >= LEAST_PAIRS;
    if (!result->ratio.quiet)
        count = find_ratios(lane, baseline, pairs, 0, ratios);
    result->ratio.pairs = count;
    result->ratio.median = statistics_median(ratios, count);
    result->ratio.low = statistics_percentile(ratios, count, 25);
    result->ratio.high = statistics_percentile(ratios, count, 75);
    free(ratios);
    return NULL;
}

/* ---- All of them ----------------------------------------------------------------------------- */

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

/* Without the tool's own samples. */
static size_t rss_peak(const struct lanes *lanes)
{
    size_t peak = machine_rss_peak(), own = 0;
    for (size_t i = 0; i < lanes->count; i++)
        own += lanes->items[i].samples.capacity * sizeof *lanes->items[i].samples.ns;
    peak -= own < peak ? own : peak;
    return peak > lanes->rss_before ? peak : lanes->rss_before;
}

tssa_status *results_make(const struct lanes *lanes, const struct bench_arguments *arguments,
                          struct results *results)
{
    *results = (struct results){.lanes = lanes, .arguments = arguments};
    results->rss_peak = rss_peak(lanes);
    find_pace(results, &lanes->pace);
    results->others = machine_others(&lanes->before, &lanes->after);
    results->items = calloc(lanes->count + 1, sizeof *results->items);
    TRY_ALLOC(results->items);
    for (size_t i = 0; i < lanes->count; i++) {
        struct result *result = &results->items[results->count++];
        result->lane = &lanes->items[i];
        TRY(find_result(result, results));
        TRY(find_ratio(result, results));
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
