/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/export.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

/* ---- Files ----------------------------------------------------------------------------------- */

static bool is_standard_output(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* A file that is made beside the target and removed again shows it; a pipe or a device is not
 * touched. */
static tssa_status *check_file(const char *path)
{
    struct stat about;
    struct file_writer writer;
    if (!path || is_standard_output(path))
        return NULL;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode))
        return NULL;
    TRY(file_writer_open(&allocator_default, path, &writer));
    file_writer_abort(&writer);
    return NULL;
}

tssa_status *export_check(const struct bench_arguments *arguments)
{
    TRY(check_file(arguments->json));
    return check_file(arguments->times);
}

static tssa_status *write_file(const char *path, const void *data, size_t size)
{
    if (!is_standard_output(path))
        return file_write(&allocator_default, path, data, size);
    fwrite(data, 1, size, stdout);
    return NULL;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Any part may be NULL, for want of memory: what it becomes part of is then, too. */
static json_t *percentiles_json(const struct result *result,
                                const struct bench_arguments *arguments)
{
    json_t *object = json_object();
    for (size_t i = 0; object && i < arguments->percentile_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%g", arguments->percentiles[i]);
        if (json_object_set_new(object, name, json_real(result->percentiles[i])) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

static json_t *append(json_t *array, json_t *item)
{
    if (array && json_array_append_new(array, item) == 0)
        return array;
    if (!array)
        json_decref(item);
    json_decref(array);
    return NULL;
}

static json_t *sets_json(const struct result *result)
{
    const struct subject *subject = result->lane->subject;
    json_t *array = json_array();
    for (size_t i = 0; array && i < subject->set_count; i++) {
        char name[200];
        result_set_name(&subject->sets[i], name, sizeof name);
        bool known = result->set_medians && result->set_medians[i] > 0;
        json_t *median = known ? json_real(result->set_medians[i]) : json_null();
        array = append(array, json_pack("{s:s, s:b, s:o}", "name", name, "recorded",
                                        (int)subject->recorded, "median_ms", median));
    }
    return array;
}

static json_t *operators_json(const struct subject *subject)
{
    const struct profile_table *table = &subject->profile;
    json_t *array = json_array();
    for (size_t i = 0; array && i < table->count; i++) {
        const struct profile_row *row = &table->rows[i];
        double own = (double)row->nanoseconds;
        array = append(array, json_pack("{s:s, s:s*, s:s, s:I, s:f, s:f, s:f, s:f}", "operator",
                                        row->op, "node", row->node, "in", row->around, "calls",
                                        (json_int_t)row->calls, "total_ms", own * 1e-6, "share",
                                        own / subject->profiled_ns, "mean_us",
                                        own / (double)row->calls * 1e-3, "subgraphs_ms",
                                        (double)row->nested * 1e-6));
    }
    return array;
}

static json_t *latency_json(const struct result *result, const struct bench_arguments *arguments)
{
    const struct statistics *of = &result->of;
    if (!of->count)
        return json_null();
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:o}", "min", of->min, "mean", of->mean, "median",
                     of->median, "max", of->max, "deviation", of->deviation, "percentiles",
                     percentiles_json(result, arguments));
}

static json_t *ratio_json(const struct result *result, const struct results *results)
{
    const struct ratio *ratio = &result->ratio;
    if (!ratio->pairs)
        return json_null();
    const struct lane *baseline = &results->lanes->items[result->lane->baseline];
    return json_pack("{s:s, s:f, s:f, s:f, s:I, s:b}", "baseline", baseline->subject->target->name,
                     "median", ratio->median, "low", ratio->low, "high", ratio->high, "pairs",
                     (json_int_t)ratio->pairs, "quiet", (int)ratio->quiet);
}

static json_t *memory_json(const struct subject *subject)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "model", (json_int_t)subject->model_bytes,
                     "session", (json_int_t)subject->session_bytes, "prepare_peak",
                     (json_int_t)subject->prepare_peak, "run_peak", (json_int_t)subject->run_peak,
                     "values_held", (json_int_t)subject->use.last, "values_live",
                     (json_int_t)subject->use.live);
}

static json_t *library_json(const struct subject *subject)
{
    const tssa_library_info *library = &subject->library;
    return json_pack("{s:I, s:f, s:I}", "primitives", (json_int_t)library->primitives, "made_ms",
                     (double)library->nanoseconds * 1e-6, "packed_bytes",
                     (json_int_t)library->packed_bytes);
}

static json_t *kernels_json(const struct subject *subject)
{
    const tssa_compile_info *kernels = &subject->kernels;
    return json_pack("{s:I, s:I, s:I, s:f}", "count", (json_int_t)kernels->kernels, "cached",
                     (json_int_t)kernels->cached, "refused", (json_int_t)kernels->refused,
                     "ready_ms", (double)kernels->nanoseconds * 1e-6);
}

/* Null of devices that compute. */
static json_t *device_json(const struct subject *subject)
{
    const tssa_session_work *work = &subject->work;
    if (!subject->counted)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "launches",
                     (json_int_t)work->launches, "library_calls", (json_int_t)work->library_calls,
                     "bytes", (json_int_t)work->bytes, "allocations", (json_int_t)work->allocations,
                     "copies", (json_int_t)work->copies, "copied_bytes",
                     (json_int_t)work->copied_bytes, "replays", (json_int_t)work->replays, "waits",
                     (json_int_t)work->waits);
}

static json_t *size_json(const struct subject *subject)
{
    if (subject->size < 0)
        return json_null();
    return json_pack("{s:s, s:I}", "dim", subject->dim, "size", (json_int_t)subject->size);
}

static json_t *lane_json(const struct result *result, const struct results *results)
{
    const struct lane *lane = result->lane;
    const struct subject *subject = lane->subject;
    const struct bench_arguments *arguments = results->arguments;
    return json_pack(
        "{s:s, s:s, s:i, s:o, s:I, s:o, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:I, s:f, s:o, "
        "s:f, "
        "s:f, s:f, s:o, "
        "s:I, s:f, s:o}",
        "name", subject->target->name, "model", subject->target->path, "level",
        subject->target->level, "sweep", size_json(subject), "concurrency",
        (json_int_t)lane->concurrency, "sets", sets_json(result), "load_ms", subject->load_ms,
        "optimize_ms", subject->optimize_ms, "session_ms", subject->session_ms, "first_run_ms",
        subject->first_ms, "library", library_json(subject), "kernels", kernels_json(subject),
        "memory", memory_json(subject), "device_work", device_json(subject), "runs",
        (json_int_t)result->of.count, "seconds", lane->samples.wall_ns * 1e-9, "latency_ms",
        latency_json(result, arguments), "runs_per_second", result->throughput, "quiet",
        result->quiet, "quiet_median_ms", result->quiet_median, "ratio",
        ratio_json(result, results), "profiled_runs", (json_int_t)subject->profiled_runs,
        "profiled_ms", subject->profiled_ns * 1e-6, "operators", operators_json(subject));
}

static json_t *options_json(const struct bench_arguments *arguments)
{
    return json_pack("{s:f, s:f, s:I, s:i, s:I}", "warmup_ms", arguments->warmup_ms, "duration_s",
                     arguments->duration, "iterations", (json_int_t)arguments->iterations,
                     "kernel_threads", arguments->common.threads, "seed",
                     (json_int_t)arguments->common.source.seed);
}

static json_t *machine_json(const struct results *results)
{
    return json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:I}", "cores",
                     (int)sysconf(_SC_NPROCESSORS_ONLN), "pace_quiet_us", results->pace_quiet,
                     "pace_median_us", results->pace_median, "pace_worst_us", results->pace_worst,
                     "pace_tolerance", PACE_TOLERANCE, "others_cores", results->others, "peak_rss",
                     (json_int_t)results->rss_peak);
}

static json_t *results_json(const struct results *results)
{
    json_t *lanes = json_array();
    for (size_t i = 0; lanes && i < results->count; i++)
        lanes = append(lanes, lane_json(&results->items[i], results));
    return json_pack("{s:s, s:b, s:o, s:o, s:o}", "tool", "tssa-bench " TSSA_VERSION, "complete",
                     (int)(results->stopped == 0), "options", options_json(results->arguments),
                     "machine", machine_json(results), "results", lanes);
}

tssa_status *export_json(const struct results *results, const char *path)
{
    json_t *object = results_json(results);
    char *text = object ? json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(object);
    TRY_ALLOC(text);
    size_t size = strlen(text);
    text[size] = '\n'; /* in the place of the NUL */
    tssa_status *status = write_file(path, text, size + 1);
    free(text);
    return status;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

#define FLUSH_AT (64 << 10)

/* Millions of lines go out piece by piece. */
struct sink {
    struct file_writer *file; /* NULL: standard output */
    struct text text;
};

static tssa_status *flush(struct sink *sink)
{
    if (sink->text.failed)
        return status_out_of_memory();
    if (sink->file)
        TRY(file_writer_write(sink->file, sink->text.data, sink->text.size));
    else
        fwrite(sink->text.data, 1, sink->text.size, stdout);
    text_clear(&sink->text);
    return NULL;
}

/* A field that may hold commas. */
static void put_quoted(struct text *text, const char *field)
{
    text_putc(text, '"');
    for (; *field; field++) {
        if (*field == '"')
            text_putc(text, '"');
        text_putc(text, *field);
    }
    text_putc(text, '"');
}

static void put_run(struct text *text, const struct lane *lane, const struct block *block,
                    size_t index)
{
    const struct subject *subject = lane->subject;
    char name[200] = "";
    if (lane->concurrency == 1)
        result_set_name(&subject->sets[index % subject->set_count], name, sizeof name);
    put_quoted(text, subject->target->name);
    text_putc(text, ',');
    if (subject->size >= 0)
        text_printf(text, "%" PRId64, subject->size);
    text_printf(text, ",%zu,%zu,", lane->concurrency, index);
    put_quoted(text, name);
    text_printf(text, ",%.6f,%.3f\n", lane->samples.ns[index] * 1e-6, block->pace);
}

static tssa_status *put_lane(struct sink *sink, const struct lane *lane)
{
    const struct samples *samples = &lane->samples;
    for (size_t b = 0; b < samples->block_count; b++) {
        const struct block *block = &samples->blocks[b];
        for (size_t i = block->first; i < block->first + block->count; i++) {
            put_run(&sink->text, lane, block, i);
            if (sink->text.size >= FLUSH_AT)
                TRY(flush(sink));
        }
    }
    return NULL;
}

static tssa_status *put_times(struct sink *sink, const struct results *results)
{
    text_puts(&sink->text, "model,size,concurrency,run,set,ms,pace_us\n");
    for (size_t i = 0; i < results->count; i++)
        TRY(put_lane(sink, results->items[i].lane));
    return flush(sink);
}

tssa_status *export_times(const struct results *results, const char *path)
{
    struct file_writer writer;
    struct sink sink = {.file = is_standard_output(path) ? NULL : &writer};
    if (sink.file)
        TRY(file_writer_open(&allocator_default, path, &writer));
    text_init(&sink.text, &allocator_default);
    tssa_status *status = put_times(&sink, results);
    text_free(&sink.text);
    if (!sink.file)
        return status;
    if (!status)
        return file_writer_commit(&writer);
    file_writer_abort(&writer);
    return status;
}
