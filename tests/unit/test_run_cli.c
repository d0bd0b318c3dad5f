/* SPDX-License-Identifier: Apache-2.0 */
/* tssa-run from outside: what it prints, writes and returns, and its one line per mistake. */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "base/file.h"
#include "common/cli.h"
#include "common/xmalloc.h"
#include "tools/common/npy.h"

#define MODELS TSSA_SOURCE_DIR "/models/"

static const char tool[] = TSSA_BUILD_DIR "/tssa-run";
static const char softmax[] = MODELS "ssd_loop_small/model.onnx";
static const char start[] = MODELS "get_started_small/model.onnx";
static const char start_data[] = MODELS "get_started_small/test_data_set_0";
static const char ssd[] = MODELS "ssd_loop_small/model.onnx";
static const char ssd_data[] = MODELS "ssd_loop_small/test_data_set_0";

#define RUN(...) CLI_RUN(tool, __VA_ARGS__)
#define expect_good cli_expect_good
#define expect_refused(result, status, part) cli_expect_refused(result, "tssa-run", status, part)

/* ---- Looking --------------------------------------------------------------------------------- */

static void helps(void **state)
{
    (void)state;
    expect_good(RUN("--help"), "Examples:");
    expect_good(RUN("--version"), "tssa-run " TSSA_VERSION);
    expect_good(RUN("--usage"), "--compare");
}

static void inspects(void **state)
{
    (void)state;
    expect_good(RUN(start, "--inspect"), "f32[rows, columns]");
    expect_good(RUN(start, "--inspect"), "1  ScatterND");
    expect_good(RUN(start, "--dump-ir"), "= assign(");
    expect_good(RUN(start, "--dump-ir", "-O", "1"), "= Loop@");
    expect_good(RUN(start, "--dump-ir", "-O", "0"), "= Identity@");
    expect_good(RUN(start, "--dump-ir=graph"), "= assign(");
    expect_good(RUN(softmax, "--dump-ir=session"), "graph @");
    expect_good(RUN(softmax, "--dump-ir=gir"), "reduce MAX from -inf");
    expect_good(RUN(softmax, "--dump-ir=cuda"), "KERNEL kernel_0(");
    struct process_result nothing = RUN(softmax, "--dump-ir=gir", "-O0");
    assert_int_equal(nothing.status, 0);
    assert_string_equal(nothing.out, "");
    assert_non_null(strstr(nothing.err, "the session fuses nothing"));
    process_result_free(&nothing);
    expect_refused(RUN(start, "--dump-ir=llvm"), 2, "graph, session, gir, cuda or opencl");
    expect_refused(RUN(start, "--dump-ir=gir", "--dump-ir=llvm"), 2, "--dump-ir");
}

/* ---- Running --------------------------------------------------------------------------------- */

static void runs_recorded_data(void **state)
{
    (void)state;
    expect_good(RUN(start, start_data, "--compare", start_data), "matches");
    expect_good(RUN(start, start_data, "--poison", "--compare", start_data), "matches");
    expect_good(RUN(start, start_data, "--allow-tf32", "--compare", start_data), "matches");
    expect_good(RUN(start, start_data, "--no-winograd", "--compare", start_data), "matches");
    expect_good(RUN(start, start_data), "f32[16, 8]");
    expect_good(RUN(ssd, ssd_data, "--boxes"), "7 detections");
    expect_good(RUN(start, start_data, "--repeat", "3", "-q", "-t", "1"), "3 runs: min");
}

/* What a session fuses, what keeps the rest apart, and what the device lacks. */
static void tells_what_is_fused(void **state)
{
    (void)state;
    expect_good(RUN(ssd, "--device", "null", "--remarks", "-q"), ": one kernel of ");
    expect_good(RUN(ssd, "--device", "null", "--remarks", "-q"),
                "NonZero (node \"NonZero\"): there is room for all that may be kept");
    expect_good(RUN(ssd, ssd_data, "--remarks", "-q"), "no remarks");
    expect_good(RUN(ssd, ssd_data, "--remarks=gir", "-q"), "rows across lanes, ");
    expect_good(RUN(ssd, ssd_data, "--remarks=gir", "-q"), " bound by ");
    expect_good(RUN(ssd, ssd_data, "--remarks=layout", "-q"), "no remarks");
    expect_good(RUN(ssd, ssd_data, "--remarks", "-q", "--compile", "wait"), ": one kernel of ");
    expect_good(RUN(ssd, "--device", "emulated", "-O", "0", "--remarks", "-q"),
                ": device emulated has no kernel for it: it runs on cpu, with copies");
}

static void expect_silent(struct process_result result)
{
    process_drop_announcements(&result);
    assert_int_equal(result.status, 0);
    assert_string_equal(result.err, "");
    process_result_free(&result);
}

/*
 * Slow, and it is said, once; who asks for one thread misses no team, and who only looks nothing.
 */
static void notes_missing_plugins(void **state)
{
    (void)state;
    static const char lstm[] = MODELS "lstm_small/model.onnx";
    static const char *const names[] = {"tssa-openmp.so", "tssa-onednn.so"};
    const char *before = getenv("TSSA_PLUGIN_DIR");
    setenv("TSSA_PLUGIN_DIR", "/nonexistent", 1);
    for (int threads = 1; threads <= 2; threads++) {
        struct process_result result = RUN(lstm, "-t", threads == 1 ? "1" : "2", "-q");
        assert_int_equal(result.status, 0);
        for (int i = 0; i < 2; i++) {
            const char *note = strstr(result.err, names[i]);
            assert_int_equal(note != NULL, i == 1 || threads == 2);
            assert_true(!note || !strstr(note + 1, names[i]));
        }
        process_result_free(&result);
    }
    expect_silent(RUN(lstm, "-t", "2", "--inspect"));
    setenv("TSSA_PLUGIN_DIR", before ? before : TSSA_BUILD_DIR, 1);
}

static void reads_a_model_from_standard_input(void **state)
{
    (void)state;
    const char *const argv[] = {tool, "-", start_data, NULL};
    expect_good(process_run(argv, start, NULL, &cli_limits), "f32[16, 8]");
}

/* A pipe that does not end, and a model that is larger than it may be. */
static void standard_input_has_a_bound(void **state)
{
    (void)state;
    const char *const argv[] = {tool, "-", "--memory-limit", "16", NULL};
    expect_refused(process_run(argv, "/dev/zero", NULL, &cli_limits), 3,
                   "16 MiB of --memory-limit");
}

static void random_inputs_have_a_seed(void **state)
{
    (void)state;
    struct process_result a = RUN(start, "--shape", "a:4x2", "--seed", "5");
    struct process_result b = RUN(start, "--shape", "a:[4,2]", "--seed", "5");
    struct process_result c = RUN(start, "--shape", "a:4,2", "--seed", "6");
    struct process_result d = RUN(start, "--dim", "rows=4", "--dim", "columns=2", "--seed", "5");
    const char *outputs[4];
    const struct process_result *const all[4] = {&a, &b, &c, &d};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(all[i]->status, 0);
        outputs[i] = strstr(all[i]->out, "outputs");
        assert_non_null(outputs[i]);
        assert_non_null(strstr(outputs[i], "f32[4, 2]"));
    }
    assert_string_equal(outputs[0], outputs[1]);
    assert_string_not_equal(outputs[0], outputs[2]);
    assert_string_equal(outputs[0], outputs[3]);
    process_result_free(&a);
    process_result_free(&b);
    process_result_free(&c);
    process_result_free(&d);
}

static void tells_what_it_guesses(void **state)
{
    (void)state;
    struct process_result result = RUN(start);
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.err, "rows (of a), columns (of a)"));
    process_result_free(&result);
}

static void writes_a_profile(void **state)
{
    char *path = xprintf("%s/trace.json", (char *)*state);
    expect_good(RUN(start, start_data, "--profile", path), "outputs");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fgetc(file), '[');
    fclose(file);
    expect_good(RUN(start, start_data, "-q", "--profile=-"), "assign");
    expect_good(RUN(start, start_data, "-r", "9", "-q", "--profile=-"), "in 10 profiled runs");
    free(path);
}

/* Ctrl-C and --timeout end a run in the same way, and are told apart. */
static void tells_why_a_run_ended(void **state)
{
    (void)state;
    /* --foreground: else the signal comes twice, and the second one ends the program at once. */
    const char *const interrupted[] = {"/usr/bin/timeout",
                                       "--foreground",
                                       "--preserve-status",
                                       "-s",
                                       "INT",
                                       "2",
                                       tool,
                                       start,
                                       start_data,
                                       "-q",
                                       "--repeat",
                                       "50000000",
                                       NULL};
    struct process_result result = process_run(interrupted, NULL, NULL, &cli_limits);
    process_drop_announcements(&result);
    assert_int_equal(result.status, 130);
    assert_string_equal(result.err, "tssa-run: interrupted\n");
    process_result_free(&result);
    expect_refused(RUN(start, start_data, "-q", "--repeat", "50000000", "--timeout", "1"), 5,
                   "it did not end in 1 s (--timeout)");
}

/* A run without an end, killed after a while, has said what it is at. */
static void announces_what_takes_long(void **state)
{
    (void)state;
    const struct process_limits patience = {.seconds = 3};
    const char *const argv[] = {tool, start, start_data, "--repeat", "50000000", NULL};
    struct process_result result = process_run(argv, NULL, NULL, &patience);
    assert_int_equal(result.status, 128 + SIGKILL);
    assert_string_equal(result.err, "tssa-run: running it 50000000 times ...\n");
    process_result_free(&result);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void writes_and_compares_outputs(void **state)
{
    char *folder = xprintf("%s/out", (char *)*state);
    expect_good(RUN(start, start_data, "-o", folder), "outputs");
    expect_good(RUN(start, start_data, "-c", folder), "matches exactly");
    expect_good(RUN(start, start_data, "-o", folder, "--output-format", "pb"), "outputs");
    expect_good(RUN(start, start_data, "-c", folder), "matches exactly");
    free(folder);
}

/* Of two outputs the second: it keeps its number. */
static void computes_chosen_outputs(void **state)
{
    char *folder = xprintf("%s/chosen", (char *)*state);
    char *absent = xprintf("%s/output_0.npy", folder);
    struct process_result result = RUN(ssd, ssd_data, "--outputs=labels", "-o", folder);
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.out, "labels"));
    assert_null(strstr(result.out, "dets"));
    process_result_free(&result);
    assert_int_equal(access(absent, F_OK), -1);
    expect_good(RUN(ssd, ssd_data, "--outputs", "labels", "-c", folder), "matches exactly");
    expect_good(RUN(ssd, ssd_data, "--outputs", "labels", "-c", ssd_data), "matches exactly");
    expect_good(RUN(ssd, ssd_data, "--outputs", "labels,dets", "-c", ssd_data, "-O", "0"),
                "matches");
    expect_good(RUN(ssd, "--outputs", "labels", "--inspect"), "labels");
    expect_refused(RUN(ssd, "--outputs", "labels,boxes"), 2,
                   "--outputs: no output is named \"boxes\"; the model has \"dets\", \"labels\"");
    expect_refused(RUN(ssd, "--outputs", "dets,labels,dets"), 2, "\"dets\" is named twice");
    expect_refused(RUN(ssd, "--outputs="), 2, "no output is named \"\"");
    expect_refused(RUN(ssd, "--outputs=dets", "--outputs=labels"), 2,
                   "--outputs: it is given twice");
    free(absent);
    free(folder);
}

static void writes_sequences(void **state)
{
    char *folder = xprintf("%s/sequence", (char *)*state);
    char *stale = xprintf("%s/output_0_3.npy", folder);
    const char *model = MODELS "multiscale_bbox/model.onnx";
    const char *data = MODELS "multiscale_bbox/test_data_set_0";
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_null(file_write(&allocator_default, stale, "of a longer one", 15));
    expect_good(RUN(model, data, "-o", folder), "seq<f32>(3)");
    assert_int_equal(access(stale, F_OK), -1);
    expect_good(RUN(model, data, "-c", folder), "matches");
    expect_good(RUN(model, data, "-o", folder, "--output-format", "pb"), "seq<");
    expect_good(RUN(model, data, "-c", folder), "matches");
    free(stale);
    free(folder);
}

static void says_where_outputs_differ(void **state)
{
    char *folder = xprintf("%s/other", (char *)*state);
    expect_good(RUN(start, "--shape", "a:16x8", "-o", folder), "outputs");
    struct process_result result = RUN(start, start_data, "-c", folder);
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "DIFFERS"));
    assert_non_null(strstr(result.out, " at ["));
    process_result_free(&result);
    expect_good(RUN(start, start_data, "-c", folder, "--atol", "100"), "matches");
    free(folder);
}

/* Arrays of an archive go to the inputs of their names. */
static void reads_archives(void **state)
{
    char *path = xprintf("%s/x.npz", (char *)*state), *named = xprintf("a=%s", path);
    int code;
    static const char array[] =
        "\x93NUMPY\1\0\x39\0{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}"
        "\0\0\x80\x3f\0\0\0\x40";
    zip_t *archive = zip_open(path, ZIP_CREATE, &code);
    assert_non_null(archive);
    for (int i = 0; i < 2; i++) {
        zip_source_t *source = zip_source_buffer(archive, array, sizeof array - 1, 0);
        assert_true(zip_file_add(archive, i ? "other.npy" : "b.npy", source, 0) >= 0);
    }
    assert_int_equal(zip_close(archive), 0);
    expect_good(RUN(start, "-i", path), "f32[1, 2]");
    expect_refused(RUN(start, "-i", named), 2, "none is called a");
    free(path);
    free(named);
}

/* An input from a .npy file: b of get_started_small, all twos. */
static void reads_inputs(void **state)
{
    char *path = xprintf("%s/b.npy", (char *)*state), *argument = xprintf("b=%s", path);
    float elements[6] = {2, 2, 2, 2, 2, 2};
    struct tensor tensor = {.dtype = TSSA_FLOAT, .rank = 2, .dims = {3, 2}, .data = elements};
    struct file_writer writer;
    assert_null(file_writer_open(&allocator_default, path, &writer));
    assert_null(npy_write(&tensor, &writer));
    assert_null(file_writer_commit(&writer));
    expect_good(RUN(start, "-i", argument), "f32[3, 2]");
    expect_refused(RUN(start, "-i", argument, "-s", "b:3x2"), 2, "no such random input");
    expect_refused(RUN(start, "-i", argument, "-s", "a:4x4"), 2, "rows");
    free(path);
    free(argument);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

/* Whatever there is to compile with: it runs, and ends well in the midst of it. */
static void compiles(void **state)
{
    char file[512];
    struct stat info;
    snprintf(file, sizeof file, "%s/kernels", (const char *)*state);
    expect_good(RUN(ssd, ssd_data, "--compile", "background", "--kernel-cache", "off", "-q"),
                "kernels: ");
    expect_good(RUN(ssd, ssd_data, "--compile", "wait", "--kernel-cache", file, "-q"), "kernels: ");
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    expect_good(RUN(ssd, ssd_data, "--compile", "background", "--kernel-cache", file, "--compare",
                    ssd_data, "-q"),
                "kernels: ");
}

static void refuses_wrong_arguments(void **state)
{
    (void)state;
    expect_refused(process_run((const char *const[]){tool, NULL}, NULL, NULL, &cli_limits), 2,
                   "which model");
    expect_refused(RUN(""), 2, "the name of a file is empty");
    expect_refused(RUN(start, ""), 2, "the name of a file is empty");
    expect_refused(RUN("--unknown"), 2, "--unknown");
    expect_refused(RUN(start, "--shape"), 2, "argument");
    expect_refused(RUN(start, "a", "b"), 2, "b: ");
    expect_refused(RUN(start, "--shape", "a:1xx2"), 2, "a:1xx2");
    expect_refused(RUN(start, "--shape", "a:-1"), 2, "a:-1");
    expect_refused(RUN(start, "--shape", "nothing:3"), 2, "nothing");
    expect_refused(RUN(start, "--dim", "rows"), 2, "NAME=SIZE");
    expect_refused(RUN(start, "--dim", "nothing=3"), 2, "nothing");
    expect_refused(RUN(start, "--input", "nothing=x.npy"), 2, "nothing");
    expect_refused(RUN(start, "--threads", "0"), 2, "--threads 0");
    expect_refused(RUN(start, "--repeat", "-1"), 2, "--repeat -1");
    expect_refused(RUN(start, "--repeat", "1", "-r", "2"), 2, "--repeat: it is given twice");
    expect_refused(RUN(start, "--shape", "a:1x1", "-s", "a:2x2"), 2, "a is given twice");
    expect_refused(RUN("no.onnx", "--output-dir", "/no/where"), 6,
                   "cannot make the folder /no/where: ");
    expect_refused(RUN("no.onnx", "--output-dir", start), 6, "model.onnx: it is no folder");
    expect_refused(RUN("no.onnx", "--profile", "/no/where"), 6, "cannot write /no/where: ");
    expect_refused(RUN(start, "--seed", "x"), 2, "--seed x");
    expect_refused(RUN(start, "--rtol", "nan"), 2, "--rtol nan");
    expect_refused(RUN(start, "--device", "abacus"), 2, "cpu, null, emulated");
    expect_refused(RUN(start, "--compile", "later"), 2, "off, wait or background is wanted");
    expect_refused(RUN(start, "--output-format", "raw"), 2, "npy or pb");
    expect_refused(RUN(start, start_data, "--boxes"), 2, "--boxes");
    expect_refused(RUN(start, "--shape", "a:4611686018427387904x8"), 2, "input a");
}

static void refuses_missing_files(void **state)
{
    (void)state;
    expect_refused(RUN("/nowhere/model.onnx"), 3, "/nowhere/model.onnx");
    expect_refused(RUN("/tmp"), 3, "/tmp");
    expect_refused(RUN("-"), 3, "standard input");
    expect_refused(RUN(start, "/nowhere"), 6, "/nowhere");
    expect_refused(RUN(start, start), 6, "folder");
    expect_refused(RUN(start, "/tmp"), 2, "input_0");
    expect_refused(RUN(start, "-i", "b=/nowhere.npy"), 6, "/nowhere.npy");
    expect_refused(RUN(start, "-i", "b=/nowhere.npz"), 6, "/nowhere.npz");
    expect_refused(RUN(start, start_data, "-c", "/nowhere"), 6, "/nowhere");
}

static void refuses_damaged_models(void **state)
{
    cli_expect_damaged_refused(tool, "tssa-run", start, *state);
    char *path = xprintf("%s/array.onnx", (char *)*state);
    assert_null(file_write(&allocator_default, path, "\x93NUMPY", 6));
    expect_refused(RUN(path), 3, "array.onnx");
    free(path);
}

static void refuses_damaged_inputs(void **state)
{
    char *folder = *state, *empty = xprintf("b=%s/empty.npy", folder);
    char *text = xprintf("b=%s/text.npy", folder), *zip = xprintf("b=%s/zip.npz", folder);
    char *pb = xprintf("b=%s/x.pb", folder), *other = xprintf("b=%s/x.txt", folder);
    assert_null(file_write(&allocator_default, empty + 2, "", 0));
    assert_null(file_write(&allocator_default, text + 2, "hello", 5));
    assert_null(file_write(&allocator_default, zip + 2, "PK\3\4damaged", 11));
    assert_null(file_write(&allocator_default, pb + 2, "\xff\xff\xff", 3));
    expect_refused(RUN(start, "-i", empty), 6, "empty.npy");
    expect_refused(RUN(start, "-i", text), 6, "text.npy");
    expect_refused(RUN(start, "-i", zip), 6, "zip.npz");
    expect_refused(RUN(start, "-i", pb), 6, "x.pb");
    expect_refused(RUN(start, "-i", other), 2, ".npy");
    free(empty);
    free(text);
    free(zip);
    free(pb);
    free(other);
}

static void refuses_wrong_shapes(void **state)
{
    (void)state;
    expect_refused(RUN(start, "-s", "a:3x4x5"), 2, "rank");
    expect_refused(RUN(start, "-s", "a:3x4", "-s", "b:5x4"), 2, "rows");
}

/* Nothing is left of an output that could not be written whole. */
static void leaves_nothing_half_written(void **state)
{
    char *folder = xprintf("%s/full", (char *)*state), *path = xprintf("%s/output_0.npy", folder);
    const struct process_limits full = {.seconds = 60, .file_size = 200};
    const char *const argv[] = {tool, start, start_data, "-q", "-o", folder, NULL};
    expect_refused(process_run(argv, NULL, NULL, &full), 6, "output_0.npy");
    assert_int_equal(rmdir(folder), 0); /* it is empty */
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_null(file_write(&allocator_default, path, "old", 3));
    expect_refused(process_run(argv, NULL, NULL, &full), 6, "output_0.npy");
    struct file_map map;
    assert_null(file_map_open(path, &map));
    assert_int_equal(map.size, 3);
    file_map_close(&map);
    free(path);
    free(folder);
}

static void refuses_unwritable_places(void **state)
{
    char *file = xprintf("%s/file", (char *)*state);
    assert_null(file_write(&allocator_default, file, "x", 1));
    expect_refused(RUN(start, start_data, "-o", file), 6, "file");
    expect_refused(RUN(start, start_data, "-o", "/proc/nowhere"), 6, "/proc/nowhere");
    expect_refused(RUN(start, start_data, "--profile", "/dev/full"), 6, "/dev/full");
    const char *const argv[] = {tool, start, start_data, NULL};
    expect_refused(process_run(argv, NULL, "/dev/full", &cli_limits), 6, "standard output");
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(helps),
        cmocka_unit_test(inspects),
        cmocka_unit_test(runs_recorded_data),
        cmocka_unit_test(tells_what_is_fused),
        cmocka_unit_test(notes_missing_plugins),
        cmocka_unit_test_setup_teardown(compiles, cli_make_folder, cli_remove_folder),
        cmocka_unit_test(reads_a_model_from_standard_input),
        cmocka_unit_test(standard_input_has_a_bound),
        cmocka_unit_test(random_inputs_have_a_seed),
        cmocka_unit_test(tells_what_it_guesses),
        cmocka_unit_test(writes_a_profile),
        cmocka_unit_test(tells_why_a_run_ended),
        cmocka_unit_test(announces_what_takes_long),
        cmocka_unit_test(writes_and_compares_outputs),
        cmocka_unit_test(computes_chosen_outputs),
        cmocka_unit_test(writes_sequences),
        cmocka_unit_test(says_where_outputs_differ),
        cmocka_unit_test(reads_inputs),
        cmocka_unit_test(reads_archives),
        cmocka_unit_test(refuses_wrong_arguments),
        cmocka_unit_test(refuses_missing_files),
        cmocka_unit_test(refuses_damaged_models),
        cmocka_unit_test(refuses_damaged_inputs),
        cmocka_unit_test(refuses_wrong_shapes),
        cmocka_unit_test(leaves_nothing_half_written),
        cmocka_unit_test(refuses_unwritable_places),
    };
    return cmocka_run_group_tests_name("run_cli", tests, cli_make_folder, cli_remove_folder);
}
