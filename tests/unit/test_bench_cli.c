/* SPDX-License-Identifier: Apache-2.0 */
/* tssa-bench from outside: what it measures, prints and writes, and its one line per mistake. */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "common/cli.h"
#include "common/xmalloc.h"

#define MODELS TSSA_SOURCE_DIR "/models/"

static const char tool[] = TSSA_BUILD_DIR "/tssa-bench";
static const char start[] = MODELS "get_started_small/model.onnx";
static const char start_folder[] = MODELS "get_started_small";
static const char normal[] = MODELS "normalize_small/model.onnx";
static const char ssd[] = MODELS "ssd_loop_small/model.onnx";
static const char ssd_folder[] = MODELS "ssd_loop_small";
static const char ssd_data[] = MODELS "ssd_loop_small/test_data_set_0";

/* Short, and the same on every machine. */
#define RUN(...) CLI_RUN(tool, "-w", "0", "-t", "1", __VA_ARGS__)
#define expect_good cli_expect_good
#define expect_refused(result, status, part) cli_expect_refused(result, "tssa-bench", status, part)

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Of a run that ended well; to be decref'd. */
static json_t *parse(struct process_result result)
{
    json_error_t error;
    if (result.status != 0)
        print_error("status %d\n%s", result.status, result.err);
    assert_int_equal(result.status, 0);
    json_t *root = json_loads(result.out, 0, &error);
    if (!root)
        print_error("line %d: %s\n", error.line, error.text);
    assert_non_null(root);
    process_result_free(&result);
    return root;
}

static json_t *lane(const json_t *root, size_t index)
{
    json_t *item = json_array_get(json_object_get(root, "results"), index);
    assert_non_null(item);
    return item;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        print_error("%s is no number\n", key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static const char *string(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    assert_non_null(value);
    return value;
}

static void expect_ordered_latency(const json_t *latency)
{
    const json_t *percentiles = json_object_get(latency, "percentiles");
    double p50 = number(percentiles, "50"), p90 = number(percentiles, "90"),
           p99 = number(percentiles, "99.9"), min = number(latency, "min");
    assert_true(min > 0);
    assert_true(min <= p50 && p50 <= number(latency, "median"));
    assert_true(number(latency, "median") <= p90 && p90 <= p99);
    assert_true(p99 <= number(latency, "max"));
    assert_true(min <= number(latency, "mean") &&
                number(latency, "mean") <= number(latency, "max"));
    assert_true(number(latency, "deviation") >= 0);
}

static void expect_operators(const json_t *result)
{
    const json_t *operators = json_object_get(result, "operators");
    double share = 0;
    size_t nested = 0;
    assert_true(json_array_size(operators) > 5);
    for (size_t i = 0; i < json_array_size(operators); i++) {
        const json_t *row = json_array_get(operators, i);
        share += number(row, "share");
        nested += string(row, "in")[0] != '\0';
        assert_non_null(string(row, "operator"));
        assert_true(number(row, "calls") > 0);
        assert_float_equal(number(row, "total_ms"),
                           number(row, "mean_us") * number(row, "calls") * 1e-3, 1e-6);
    }
    assert_true(share > 0 && share <= 1.0001);
    assert_true(nested > 0);
    assert_true(number(result, "profiled_runs") > 0);
}

/* The schema of docs/tools.md, whole. */
static void writes_json(void **state)
{
    (void)state;
    json_t *root = parse(RUN(ssd_folder, "-n", "31", "--percentile", "50,90,99.9", "--json", "-"));
    assert_non_null(strstr(string(root, "tool"), "tssa-bench " TSSA_VERSION));
    assert_true(json_is_true(json_object_get(root, "complete")));
    const json_t *options = json_object_get(root, "options");
    assert_true(number(options, "iterations") == 31 && number(options, "warmup_ms") == 0 &&
                number(options, "duration_s") == 0 && number(options, "kernel_threads") == 1 &&
                number(options, "seed") == 0);
    const json_t *machine = json_object_get(root, "machine");
    assert_true(number(machine, "cores") >= 1 && number(machine, "peak_rss") > 0);
    assert_true(number(machine, "pace_quiet_us") <= number(machine, "pace_median_us"));
    assert_true(number(machine, "pace_median_us") <= number(machine, "pace_worst_us"));
    assert_true(number(machine, "others_cores") >= 0 && number(machine, "pace_tolerance") > 1);

    assert_int_equal(json_array_size(json_object_get(root, "results")), 1);
    const json_t *result = lane(root, 0);
    assert_string_equal(string(result, "name"), ssd_folder);
    assert_string_equal(string(result, "model"), ssd);
    assert_true(number(result, "level") == 2 && number(result, "concurrency") == 1);
    assert_true(number(result, "runs") == 31 && number(result, "seconds") > 0);
    assert_float_equal(number(result, "runs_per_second") * number(result, "seconds"), 31, 1e-3);
    assert_true(number(result, "load_ms") > 0 && number(result, "optimize_ms") > 0 &&
                number(result, "session_ms") > 0 && number(result, "first_run_ms") > 0);
    assert_true(number(result, "quiet") >= 0 && number(result, "quiet") <= 1);
    assert_true(json_is_null(json_object_get(result, "sweep")));
    assert_true(json_is_null(json_object_get(result, "ratio")));
    assert_true(json_is_null(json_object_get(result, "device_work")));
    const json_t *library = json_object_get(result, "library");
    assert_true(json_is_integer(json_object_get(library, "primitives")));
    assert_true(json_is_real(json_object_get(library, "made_ms")));
    assert_true(json_is_integer(json_object_get(library, "packed_bytes")));
    const json_t *memory = json_object_get(result, "memory");
    assert_true(number(memory, "model") > 0);
    assert_true(number(memory, "session") >= number(memory, "model"));
    assert_true(number(memory, "run_peak") > 0 && number(memory, "prepare_peak") > 0);
    assert_true(number(memory, "values_live") > 0);
    assert_true(number(memory, "values_held") >= number(memory, "values_live"));
    const json_t *sets = json_object_get(result, "sets");
    assert_int_equal(json_array_size(sets), 2);
    assert_string_equal(string(json_array_get(sets, 1), "name"), "test_data_set_1");
    assert_true(number(json_array_get(sets, 1), "median_ms") > 0);
    expect_ordered_latency(json_object_get(result, "latency_ms"));
    expect_operators(result);
    json_decref(root);
}

static void writes_json_to_a_file(void **state)
{
    char *path = xprintf("%s/x.json", (char *)*state);
    expect_good(RUN(start, "-n", "1", "-q", "--json", path), "1 in ");
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    assert_true(number(lane(root, 0), "runs") == 1);
    json_decref(root);
    free(path);
}

/* ---- What is measured ------------------------------------------------------------------------ */

static void helps(void **state)
{
    (void)state;
    expect_good(CLI_RUN(tool, "--help"), "post-processing");
    expect_good(CLI_RUN(tool, "--version"), "tssa-bench " TSSA_VERSION);
    expect_good(CLI_RUN(tool, "--usage"), "--concurrency");
}

static void measures_a_model(void **state)
{
    (void)state;
    expect_good(RUN(ssd, ssd_data, "-n", "20"), "20 in ");
    expect_good(RUN(ssd, ssd_data, "-n", "20"), "NonMaxSuppression");
    expect_good(RUN(ssd, ssd_data, "-n", "20", "--layers"), "NonMaxSuppression (node \"");
    expect_good(RUN(ssd, ssd_data, "-n", "3", "-O", "0"), " in Loop (node \"");
    expect_good(RUN(ssd_folder, "-d", "0.01", "-q"), "2 data sets in turn");
    expect_good(RUN(ssd_folder, ssd_data, "-d", "0.01", "-q"), "inputs      test_data_set_0");
    expect_good(RUN(ssd_folder, "-n", "1", "-q"), "medians     test_data_set_0");
    expect_good(RUN(normal, "-n", "9", "-q"), "random sets in turn, seed 0 to seed 3");
    expect_good(RUN(normal, "-n", "9", "-q", "--sets", "1", "--seed", "5"), "random, seed 5");
    expect_good(RUN(normal, "-n", "9", "--percentile", "50,99.99"), "P99.99 ");
    const char *const argv[] = {tool, "-", "-n", "3", "-w", "0", NULL};
    expect_good(process_run(argv, start, NULL, &cli_limits), "3 in ");
}

static void counts_on_a_device(void **state)
{
    (void)state;
    expect_good(RUN(ssd_folder, "--device", "null", "-n", "10", "-q"), " library calls, ");
    json_t *root = parse(RUN(ssd_folder, "--device", "null", "-n", "10", "-q", "--json", "-"));
    const json_t *work = json_object_get(lane(root, 0), "device_work");
    assert_true(number(work, "launches") > 0 && number(work, "bytes") > 0);
    assert_true(number(work, "copies") > 0 && number(work, "copied_bytes") > 0);
    assert_true(number(work, "allocations") == 0 && number(work, "library_calls") == 0);
    json_decref(root);
    expect_refused(RUN(start, "--device", "abacus"), 2, "cpu, null, emulated");
    expect_good(RUN(ssd_folder, "--device", "null", "--share", "0.5", "-n", "10", "-q"),
                " launches, ");
    expect_refused(RUN(start, "--device", "null", "--share", "0"), 2, "above 0 and up to 1");
    expect_refused(RUN(start, "--share", "half"), 2, "above 0 and up to 1");
}

static void says_when_the_machine_was_loud(void **state)
{
    (void)state;
    struct process_result result = RUN(ssd_folder, "-d", "0.15", "-q");
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.out, "machine: "));
    assert_non_null(strstr(result.out, " of the runs were quiet"));
    assert_null(strstr(result.out, "share"));
    process_result_free(&result);
}

static void compares_models(void **state)
{
    (void)state;
    json_t *root = parse(RUN(ssd, ssd_data, "-n", "40", "--baseline", "O0", "--json", "-"));
    const json_t *ratio = json_object_get(lane(root, 1), "ratio");
    assert_true(json_is_null(json_object_get(lane(root, 0), "ratio")));
    assert_true(number(lane(root, 0), "level") == 0 && number(lane(root, 1), "level") == 2);
    assert_true(number(ratio, "pairs") > 1);
    assert_true(number(ratio, "low") <= number(ratio, "median"));
    assert_true(number(ratio, "median") <= number(ratio, "high"));
    assert_string_equal(string(ratio, "baseline"), string(lane(root, 0), "name"));
    assert_string_equal(string(json_array_get(json_object_get(lane(root, 0), "sets"), 0), "name"),
                        "test_data_set_0");
    json_decref(root);
    expect_good(RUN(start_folder, ssd_folder, "-n", "5", "-q"), " times as fast as ");
    expect_good(RUN(ssd, "--baseline", ssd_folder, "-n", "5", "-q"), "2 data sets in turn");
}

/* Some random sets do not suit a model, whose trip count is one of its inputs. */
static void leaves_out_what_a_model_refuses(void **state)
{
    (void)state;
    struct process_result result = RUN(start, "-n", "4", "-q", "--dim", "rows=2");
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.err, "of 4 sets of random inputs"));
    process_result_free(&result);
    expect_refused(
        RUN(start, "-n", "4", "--dim", "rows=2", "--dim", "columns=1", "--sets=1", "--seed=3"), 5,
        "cannot run");
}

/* What takes other inputs gets random ones, and it is said. */
static void models_may_have_different_inputs(void **state)
{
    (void)state;
    struct process_result result = RUN(start_folder, ssd, "-n", "4", "-q");
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.err, "takes other inputs than"));
    assert_non_null(strstr(result.out, "random sets"));
    process_result_free(&result);
}

static void sweeps_through_sizes(void **state)
{
    (void)state;
    json_t *root =
        parse(RUN(normal, "--dim", "height=2,40,3", "--dim", "width=8", "-n", "6", "--json", "-"));
    assert_int_equal(json_array_size(json_object_get(root, "results")), 3);
    const json_t *sweep = json_object_get(lane(root, 1), "sweep");
    assert_string_equal(string(sweep, "dim"), "height");
    assert_true(number(sweep, "size") == 40);
    json_decref(root);
    expect_good(RUN(normal, "--dim", "height=2,40", "--dim", "width=8", "-n", "6"), "runs/s");
    expect_good(RUN(normal, "--batch-sweep=1,3", "-n", "4"), "items/s");
    expect_refused(RUN(start_folder, "--dim", "rows=2,40", "-n", "1"), 2, "random inputs");
    expect_refused(RUN(start, "--dim", "nothing=2,40", "-n", "1"), 2, "nothing");
}

static void runs_threads_on_one_session(void **state)
{
    (void)state;
    json_t *root = parse(RUN(ssd_folder, "--concurrency", "1,3", "-n", "30", "--json", "-"));
    assert_int_equal(json_array_size(json_object_get(root, "results")), 2);
    assert_true(number(lane(root, 1), "concurrency") == 3);
    assert_true(number(lane(root, 1), "runs") == 30);
    json_decref(root);
    expect_good(RUN(ssd_folder, "--concurrency", "3", "-d", "0.1", "-q"), "by 3 threads");
    expect_good(RUN(ssd_folder, "--concurrency", "1,2", "-n", "9"), "concurrency ");
}

static void exports_times(void **state)
{
    char *path = xprintf("%s/times.csv", (char *)*state);
    struct file_map map;
    expect_good(RUN(ssd_folder, "-n", "17", "-q", "--export-times", path), "17 in ");
    assert_null(file_map_open(path, &map));
    size_t lines = 0;
    for (size_t i = 0; i < map.size; i++)
        lines += ((const char *)map.data)[i] == '\n';
    assert_int_equal(lines, 18);
    assert_memory_equal(map.data, "model,size,concurrency,run,set,ms,pace_us\n", 42);
    file_map_close(&map);
    free(path);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* Ctrl-C after so many seconds. */
static struct process_result interrupted_after(const char *seconds, const char *path)
{
    const char *const argv[] = {"/usr/bin/timeout",
                                "--foreground",
                                "--preserve-status",
                                "-s",
                                "INT",
                                seconds,
                                tool,
                                ssd_folder,
                                "-d",
                                "1000",
                                "--json",
                                path,
                                NULL};
    return process_run(argv, NULL, NULL, &cli_limits);
}

/* What was measured is printed and written. Where a loud machine has measured nothing yet, it gets
 * more time. */
static void can_be_interrupted(void **state)
{
    static const char *const seconds[] = {"1", "3", "9", "27"};
    char *path = xprintf("%s/interrupted.json", (char *)*state);
    bool measured = false;
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds && !measured; i++) {
        struct process_result result = interrupted_after(seconds[i], path);
        json_t *root = json_load_file(path, 0, NULL);
        measured = json_array_size(json_object_get(root, "results")) > 0 &&
                   number(lane(root, 0), "runs") > 0;
        assert_int_equal(result.status, 130);
        if (measured) {
            assert_non_null(strstr(result.err, "interrupted"));
            assert_non_null(strstr(result.out, "per second"));
            assert_true(json_is_false(json_object_get(root, "complete")));
        }
        json_decref(root);
        process_result_free(&result);
    }
    assert_true(measured);
    free(path);
}

/* A machine that is busy may need longer for the first run alone: then there is nothing to say. */
static void ends_at_the_timeout(void **state)
{
    (void)state;
    static const char *const seconds[] = {"1", "5", "25"};
    bool measured = false;
    for (size_t i = 0; !measured && i < sizeof seconds / sizeof *seconds; i++) {
        struct process_result result = RUN(ssd_folder, "-d", "1000", "--timeout", seconds[i]);
        process_drop_announcements(&result);
        assert_int_equal(result.status, 5);
        assert_non_null(strstr(result.err, "--timeout"));
        measured = strstr(result.out, "per second") != NULL;
        process_result_free(&result);
    }
    assert_true(measured);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void refuses_wrong_arguments(void **state)
{
    (void)state;
    expect_refused(CLI_RUN(tool, "-n", "1"), 2, "which model");
    expect_refused(RUN("--unknown"), 2, "--unknown");
    expect_refused(RUN(start, "-n", "0"), 2, "--iterations 0");
    expect_refused(RUN(start, "-n", "-1"), 2, "--iterations -1");
    expect_refused(RUN(start, "-d", "0"), 2, "--duration 0");
    expect_refused(RUN(start, "-d", "x"), 2, "--duration x");
    expect_refused(RUN(start, "-d", "-3"), 2, "--duration -3");
    expect_refused(CLI_RUN(tool, start, "--warmup", "nan"), 2, "--warmup nan");
    expect_refused(RUN(start, "--warmup", "1"), 2, "--warmup: it is given twice");
    expect_refused(RUN(start, "--percentile", "101"), 2, "--percentile 101");
    expect_refused(RUN(start, "--percentile", "50,,90"), 2, "--percentile");
    expect_refused(RUN(start, "--concurrency", "0"), 2, "--concurrency 0");
    expect_refused(RUN(start, "--sets", "0"), 2, "--sets 0");
    expect_refused(RUN(start, "--dim", "rows=1,x"), 2, "--dim x");
    expect_refused(RUN(start, "--dim", "rows=1,2", "--batch-sweep"), 2, "one dim");
    expect_refused(RUN(start, "--batch-sweep=0,"), 2, "--batch-sweep");
    expect_refused(RUN(start, "--baseline", "O2"), 2, "level");
    expect_refused(RUN(start, "--shape", "nothing:3", "-n", "1"), 2, "nothing");
    expect_refused(RUN(start, "--shape", "a:3x4x5", "-n", "1"), 2, "rank");
    expect_refused(RUN(ssd, "--batch-sweep", "-n", "1"), 2, "symbolic");
    expect_refused(RUN(start, ""), 2, "empty");
    expect_refused(RUN(start, "--json", "-", "--export-times", "-"), 2, "standard output");
}

static void refuses_missing_files(void **state)
{
    (void)state;
    expect_refused(RUN("/nowhere/model.onnx"), 3, "/nowhere/model.onnx");
    expect_refused(RUN("/tmp"), 3, "model.onnx");
    expect_refused(RUN("-"), 3, "standard input");
    expect_refused(RUN(start, "/nowhere.onnx"), 3, "/nowhere.onnx");
    expect_refused(RUN(start, "--baseline", "/nowhere.onnx"), 3, "/nowhere.onnx");
    expect_refused(RUN(start, "/nowhere"), 6, "no such data set or model");
    expect_refused(RUN(start, "/tmp"), 2, "input_0");
    expect_refused(RUN(start, "-i", "b=/nowhere.npy"), 6, "/nowhere.npy");
}

static void refuses_damaged_models(void **state)
{
    cli_expect_damaged_refused(tool, "tssa-bench", start, *state);
}

/* Before anything is measured: these would take 1000 s. */
static void refuses_unwritable_places_first(void **state)
{
    char *folder = xprintf("%s/folder", (char *)*state);
    assert_int_equal(mkdir(folder, 0777), 0);
    expect_refused(RUN(start, "-d", "1000", "--json", "/nowhere/x.json"), 6, "/nowhere/x.json");
    expect_refused(RUN(start, "-d", "1000", "--export-times", "/proc/x"), 6, "/proc/x");
    expect_refused(RUN(start, "-d", "1000", "--json", folder), 6, "folder");
    free(folder);
}

static void tells_what_cannot_be_written(void **state)
{
    (void)state;
    expect_refused(RUN(start_folder, "-n", "1", "-q", "--json", "/dev/full"), 6, "/dev/full");
    const char *const argv[] = {tool, ssd_folder, "-n", "1", "-q", NULL};
    expect_refused(process_run(argv, NULL, "/dev/full", &cli_limits), 6, "standard output");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(helps),
        cmocka_unit_test(measures_a_model),
        cmocka_unit_test(counts_on_a_device),
        cmocka_unit_test(says_when_the_machine_was_loud),
        cmocka_unit_test(writes_json),
        cmocka_unit_test(writes_json_to_a_file),
        cmocka_unit_test(compares_models),
        cmocka_unit_test(leaves_out_what_a_model_refuses),
        cmocka_unit_test(models_may_have_different_inputs),
        cmocka_unit_test(sweeps_through_sizes),
        cmocka_unit_test(runs_threads_on_one_session),
        cmocka_unit_test(exports_times),
        cmocka_unit_test(can_be_interrupted),
        cmocka_unit_test(ends_at_the_timeout),
        cmocka_unit_test(refuses_wrong_arguments),
        cmocka_unit_test(refuses_missing_files),
        cmocka_unit_test(refuses_damaged_models),
        cmocka_unit_test(refuses_unwritable_places_first),
        cmocka_unit_test(tells_what_cannot_be_written),
    };
    return cmocka_run_group_tests_name("bench_cli", tests, cli_make_folder, cli_remove_folder);
}
