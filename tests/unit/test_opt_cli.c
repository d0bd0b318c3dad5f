/* SPDX-License-Identifier: Apache-2.0 */
/* tssa-opt from outside: what it prints, writes and returns, and its one line per mistake. */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "common/cli.h"
#include "common/onnx_model.h"
#include "common/xmalloc.h"

#define MODELS TSSA_SOURCE_DIR "/models/"
#define GOLDEN TSSA_SOURCE_DIR "/tests/golden/"

static const char tool[] = TSSA_BUILD_DIR "/tssa-opt";
static const char run_tool[] = TSSA_BUILD_DIR "/tssa-run";
static const char start[] = MODELS "get_started_small/model.onnx";
static const char start_data[] = MODELS "get_started_small/test_data_set_0";
static const char ssd[] = MODELS "ssd_loop_small/model.onnx";
static const char lstm[] = MODELS "lstm_small/model.onnx";

#define RUN(...) CLI_RUN(tool, __VA_ARGS__)
#define expect_good cli_expect_good
#define expect_refused(result, status, part) cli_expect_refused(result, "tssa-opt", status, part)

/* ---- Looking --------------------------------------------------------------------------------- */

static void helps(void **state)
{
    (void)state;
    expect_good(RUN("--help"), "Examples:");
    expect_good(RUN("--version"), "tssa-opt " TSSA_VERSION);
    expect_good(RUN("--usage"), "--check");
}

static void lists_passes(void **state)
{
    (void)state;
    expect_good(RUN("--print-passes"), "dead_code  ");
    expect_good(RUN("--print-passes"), "\nlevel 2\n");
    expect_good(RUN("--print-passes=markdown"), "| [`dead_code`](#dead_code) | ");
}

static void inspects(void **state)
{
    (void)state;
    expect_good(RUN(start), "f32[rows, columns]");
    expect_good(RUN(start), "Loop (node \"Loop\")");
    expect_good(RUN(start), "in all");
    expect_good(RUN(ssd), "  If (node \"If");
}

static void inspects_with_fixed_shapes(void **state)
{
    (void)state;
    expect_good(RUN(start, "--input-shape", "a:4,2"), "b                        f32[4, 2]");
    expect_good(RUN(start, "--overwrite-input-shape", "a:4x2"),
                "out                      f32[4, 2]");
    expect_good(RUN(start, "--dim", "rows=7"), "f32[7, columns]");
}

static void shows_remarks_and_stats(void **state)
{
    (void)state;
    expect_good(RUN(start, "-q", "--stats"), "optimized in");
    expect_good(RUN(start, "--remarks=json"), "\"remarks\": [");
    expect_good(RUN(start, "-q", "--remarks"), "");
}

/* Nothing but one object, with --check as well. */
static void writes_remarks_as_json(void **state)
{
    (void)state;
    struct process_result result = RUN(ssd, "--remarks=json", "--check", "1");
    json_t *object = json_loads(result.out, 0, NULL), *row;
    size_t i, operators = 0;
    assert_int_equal(result.status, 0);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "model")), ssd);
    json_array_foreach(json_object_get(object, "operators"), i, row)
    {
        assert_true(json_is_string(json_object_get(row, "operator")));
        operators += (size_t)json_integer_value(json_object_get(row, "before"));
    }
    assert_true(operators > 100);
    json_array_foreach(json_object_get(object, "remarks"), i, row)
    {
        const char *kind = json_string_value(json_object_get(row, "kind"));
        assert_true(strcmp(kind, "applied") == 0 || strcmp(kind, "missed") == 0);
        assert_true(json_is_string(json_object_get(row, "pass")));
        assert_true(json_is_string(json_object_get(row, "op")));
        assert_true(json_is_string(json_object_get(row, "message")));
    }
    json_decref(object);
    process_result_free(&result);
}

/* ---- The graph as text ----------------------------------------------------------------------- */

static void dumps_the_graph(void **state)
{
    char *folder = xprintf("%s/steps", (char *)*state);
    char *first = xprintf("%s/000_before.tir", folder);
    struct process_result result = RUN(start, "-q", "--dump-ir");
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.err, "graph @get_started"));
    process_result_free(&result);
    result = RUN(start, "-q", "--dump-ir=identity", "--passes", "identity");
    assert_non_null(strstr(result.err, "// identity\ngraph @get_started"));
    process_result_free(&result);
    expect_good(RUN(start, "-q", "--dump-ir=all", "--dump-dir", folder), "");
    assert_int_equal(access(first, F_OK), 0);
    free(first);
    free(folder);
}

static void runs_chosen_passes(void **state)
{
    (void)state;
    expect_good(RUN(start, "-q", "--stats", "--passes", "identity,dead_code"), "dead_code");
    struct process_result result = RUN(start, "-q", "--stats", "--skip-pass", "identity");
    assert_int_equal(result.status, 0);
    assert_null(strstr(result.out, "identity"));
    process_result_free(&result);
    expect_good(RUN(start, "-O", "0"), "Identity                            2        2");
}

/* ---- Writing and checking -------------------------------------------------------------------- */

static void writes_models(void **state)
{
    char *path = xprintf("%s/out.onnx", (char *)*state);
    char *wrote = xprintf("wrote %s, ", path);
    expect_good(RUN(start, path), wrote);
    expect_good(
        process_run((const char *const[]){run_tool, path, start_data, "-c", start_data, NULL}, NULL,
                    NULL, &cli_limits),
        "matches");
    /* Over itself, from standard input, and again: nothing changes any more. */
    expect_good(RUN(path, path, "--check", "1"), "identical");
    const char *const argv[] = {tool, "-", path, "-q", NULL};
    expect_good(process_run(argv, start, NULL, &cli_limits), "");
    expect_good(RUN(path), "in all");
    expect_good(RUN("-o", path, start, "-q", "--opset", "21"), "");
    expect_good(RUN(path), "opset 21");
    assert_int_equal(unlink(path), 0);
    free(wrote);
    free(path);
}

static void writes_external_data(void **state)
{
    char *path = xprintf("%s/weights.onnx", (char *)*state), *data = xprintf("%s.data", path);
    expect_good(RUN(lstm, path, "--save-as-external-data", "--check", "1"), "wrote ");
    assert_int_equal(access(data, F_OK), 0);
    expect_good(RUN(path, "--check", "1"), "identical");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(data), 0);
    free(data);
    free(path);
}

static void checks(void **state)
{
    (void)state;
    expect_good(RUN(ssd, "--check", "2", "--seed", "3"), "  labels                   identical");
    expect_good(RUN(start, "--check", "1", "--rtol", "0", "--atol", "0"),
                "checked on 2 sets of inputs (1 recorded, 1 random, seed 0, dims to ");
    expect_good(RUN(start, "--verify-only"), "well-formed");
    expect_good(RUN(start, "--verify-only", "--check", "1"), "identical");
    expect_good(RUN(start, "--check", "1", "-q"), "");
    expect_good(RUN(MODELS "multiscale_bbox/model.onnx", "--check", "2"), "checked on 3 sets");
}

/* x -> Magic, which tssa cannot run -> Neg */
static void write_magic(const char *path)
{
    struct onnx_model model;
    size_t size;
    model_init(&model, 8, 18);
    model_opset(&model, "com.acme", 1);
    model_input(&model, model.graph, "x", TSSA_FLOAT, "N");
    model_node(&model, model.graph, "Magic", "x", "y")->domain = model_string(&model, "com.acme");
    model_node(&model, model.graph, "Neg", "y", "out");
    model_output(&model, model.graph, "out", TSSA_FLOAT, "N");
    const void *bytes = model_pack(&model, &size);
    assert_null(file_write(&allocator_default, path, bytes, size));
    model_free(&model);
}

/* Of a model with an operator that tssa does not have, the output that does not need it. */
static void writes_chosen_outputs(void **state)
{
    struct onnx_model model;
    size_t size;
    char *path = xprintf("%s/two.onnx", (char *)*state);
    char *part = xprintf("%s/part.onnx", (char *)*state);
    model_init(&model, 8, 18);
    model_opset(&model, "com.acme", 1);
    model_input(&model, model.graph, "x", TSSA_FLOAT, "N");
    model_node(&model, model.graph, "Magic", "x", "y")->domain = model_string(&model, "com.acme");
    model_node(&model, model.graph, "Neg", "x", "z");
    model_output(&model, model.graph, "y", TSSA_FLOAT, "N");
    model_output(&model, model.graph, "z", TSSA_FLOAT, "N");
    const void *bytes = model_pack(&model, &size);
    assert_null(file_write(&allocator_default, path, bytes, size));
    model_free(&model);
    expect_good(RUN(path, part, "--outputs", "z", "--check", "2"),
                "  z                        identical");
    expect_good(CLI_RUN(run_tool, part), "z");
    cli_expect_refused(CLI_RUN(run_tool, part, "--outputs=y"), "tssa-run", 2,
                       "no output is named \"y\"");
    expect_refused(RUN(path, "--outputs", "z,Z"), 2,
                   "no output is named \"Z\"; the model has \"y\", \"z\"");
    expect_refused(RUN(path, "--outputs", "z,z"), 2, "\"z\" is named twice");
    free(path);
    free(part);
}

/* Threads are for --check: without it no plugin is missed. */
static void misses_no_plugins(void **state)
{
    char *before = xprintf("%s", getenv("TSSA_PLUGIN_DIR") ? getenv("TSSA_PLUGIN_DIR") : "");
    setenv("TSSA_PLUGIN_DIR", *state, 1);
    struct process_result looks = RUN(ssd, "-q"), checks = RUN(ssd, "-q", "--check", "1");
    if (before[0])
        setenv("TSSA_PLUGIN_DIR", before, 1);
    else
        unsetenv("TSSA_PLUGIN_DIR");
    process_drop_announcements(&looks);
    assert_string_equal(looks.err, "");
    const char *note = strstr(checks.err, "note: there is no tssa-openmp.so");
    assert_non_null(note);
    assert_null(strstr(note + 1, "note: there is no tssa-openmp.so"));
    process_result_free(&looks);
    process_result_free(&checks);
    free(before);
}

/* 48 KB of zeros are made where the file may grow by as much. */
static void bounds_the_file(void **state)
{
    static const char program[] = "graph @g opset(\"\": 18) (%x: f32[12000]) -> (%y as \"y\") {\n"
                                  "  %shape = Constant() {value = i64[1] [12000]}\n"
                                  "  %zeros = ConstantOfShape(%shape)\n"
                                  "  %y = Add(%x, %zeros)\n"
                                  "  return(%y)\n"
                                  "}\n";
    char *path = xprintf("%s/zeros.tir", (char *)*state);
    assert_null(file_write(&allocator_default, path, program, sizeof program - 1));
    expect_good(RUN(path, "--passes", "fold_constants", "--remarks", "--file-growth", "10"),
                "not folded: 48000 bytes");
    expect_good(RUN(path, "--passes", "fold_constants", "--remarks", "--file-growth=0"),
                "not folded: 48000 bytes");
    struct process_result result =
        RUN(path, "--passes", "fold_constants", "--remarks", "--file-growth", "47");
    assert_null(strstr(result.out, "not folded"));
    process_result_free(&result);
    expect_refused(RUN(path, "--file-growth", "-1"), 2, "--file-growth -1");
    free(path);
}

/* What no memory has room for is no want of time, though it is a limit as well. */
static void tells_what_is_too_large(void **state)
{
    static const char program[] = "graph @g opset(\"\": 18) (%x: i64[]) -> (%y as \"y\") {\n"
                                  "  %zero = Constant() {value = i64[] 0}\n"
                                  "  %one = Constant() {value = i64[] 1}\n"
                                  "  %end = Constant() {value = i64[] 4611686018427387904}\n"
                                  "  %numbers = Range(%zero, %end, %one)\n"
                                  "  %y = Mul(%x, %numbers)\n"
                                  "  return(%y)\n"
                                  "}\n";
    char *path = xprintf("%s/large.tir", (char *)*state);
    assert_null(file_write(&allocator_default, path, program, sizeof program - 1));
    struct process_result result = RUN(path, "-q", "--check", "1");
    assert_int_equal(result.status, 7);
    assert_non_null(strstr(result.err, "not checked: 1 set on which the original itself failed, "
                                       "the last time: "));
    assert_non_null(strstr(result.err, "is larger than the address space"));
    process_result_free(&result);
    free(path);
}

/* Shapes that the recorded inputs do not have: these are counted, and random ones are used. */
static void checks_with_fixed_shapes(void **state)
{
    (void)state;
    expect_good(RUN(start, "--input-shape", "a:5,3", "--check", "2"), "checked on 2 sets");
    expect_good(RUN(start, "--input-shape", "a:5,3", "--check", "2"),
                "; not compared: 1 set on which the original itself failed, the last time: ");
}

/*
 * Nothing is proven of a model that cannot be run, and that is a status of its own; it is written.
 */
static void tells_what_is_not_checked(void **state)
{
    char *path = xprintf("%s/magic.onnx", (char *)*state),
         *out = xprintf("%s/out.onnx", (char *)*state);
    static const char *const options[] = {"-q", "--stats", "--remarks=json"};
    write_magic(path);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct process_result result = RUN(path, out, "--check", "1", options[i]);
        assert_int_equal(result.status, 7);
        assert_non_null(strstr(result.err, "tssa-opt: not checked: Magic"));
        assert_non_null(strstr(result.err, "what is left without such operators gives the same"));
        assert_non_null(strstr(result.err, "; unchecked, it goes to "));
        process_result_free(&result);
        assert_int_equal(unlink(out), 0);
    }
    assert_int_equal(unlink(path), 0);
    free(out);
    free(path);
}

/* ---- Another runtime ------------------------------------------------------------------------- */

/* What a script for --check-runtime does, before and instead of running the model with tssa-run. */
#define RUN_IT RUN_TOOL " -q \"$1\" \"$2\" --output-dir \"$3\" --output-format pb >/dev/null\n"
#define RUN_TOOL TSSA_BUILD_DIR "/tssa-run"
#define WHERE_NEW "case $1 in */rewritten.onnx) "

static const struct {
    const char *text, *part; /* of what is printed, errors included */
    int status;
} scripts[] = {
    {RUN_IT, "  out                      identical", 0},
    {"touch \"$0.was\"\n" RUN_IT, "checked with ", 0},
    {WHERE_NEW "echo no such thing >&2; echo >&2; exit 5;; esac\n" RUN_IT,
     "the new model fails: ", 1},
    {WHERE_NEW "echo no such thing >&2; echo >&2; exit 5;; esac\n" RUN_IT, "5: no such thing", 1},
    {WHERE_NEW "kill -9 $$;; esac\n" RUN_IT, "ended by signal 9 (Killed)", 1},
    {WHERE_NEW "exit 0;; esac\n" RUN_IT, "it wrote no output_0.pb for the output out", 1},
    {RUN_IT WHERE_NEW "printf abc > \"$3/output_0.pb\";; esac\n", "the new model fails: ", 1},
    {RUN_IT WHERE_NEW "cp \"$2/input_0.pb\" \"$3/output_0.pb\";; esac\n", "DIFFERS: ", 1},
    {"exit 0\n", "the last time: ", 7},
    {"echo it is broken >&2; exit 5\n", "it is broken", 7},
    {"echo nothing here; exit 4\n", "status 4", 7},
    {"kill -11 $$\n", "ended by signal 11", 7},
    {"sleep 100\n", "for which 1 s were too short (--timeout)", 7},
    {"trap '' TERM; sleep 100 & sleep 100\n", "too short", 7},
};

static char *write_script(const char *folder, const char *name, const char *text)
{
    char *path = xprintf("%s/%s", folder, name), *content = xprintf("#!/bin/sh\n%s", text);
    assert_null(file_write(&allocator_default, path, content, strlen(content)));
    assert_int_equal(chmod(path, 0755), 0);
    free(content);
    return path;
}

/* The tool's temporary files go into a folder of their own, which must be empty in the end. */
static char *make_temporary(const char *folder)
{
    char *path = xprintf("%s/tmp", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(setenv("TMPDIR", path, 1), 0);
    return path;
}

static void end_temporary(char *path)
{
    assert_int_equal(unsetenv("TMPDIR"), 0);
    assert_int_equal(rmdir(path), 0);
    free(path);
}

static void checks_with_another_runtime(void **state)
{
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char *temporary = make_temporary(*state);
        char *script = write_script(*state, "it's a script", scripts[i].text);
        char *command = xprintf("\"%s\"", script);
        struct process_result result =
            RUN(start, "--check", "1", "--timeout", strstr(scripts[i].text, "sleep") ? "1" : "60",
                "--check-runtime", command);
        char *all = xprintf("%s%s", result.out, result.err);
        if (result.status != scripts[i].status || !strstr(all, scripts[i].part))
            fail_msg("%s: status %d: %s", scripts[i].text, result.status, all);
        process_result_free(&result);
        end_temporary(temporary);
        assert_int_equal(unlink(script), 0);
        free(all);
        free(command);
        free(script);
    }
}

/* Ctrl-C in the middle of a run: nothing is written, nothing left, and the status is that of a
 * program that it ended. */
static void ends_another_runtime(void **state)
{
    char *temporary = make_temporary(*state), *out = xprintf("%s/out.onnx", (char *)*state);
    char *script = write_script(*state, "script", "kill -INT $PPID; sleep 100\n");
    struct process_result result = RUN(start, out, "-q", "--check", "3", "--check-runtime", script);
    assert_int_equal(result.status, 128 + 2);
    assert_int_equal(access(out, F_OK), -1);
    process_result_free(&result);
    assert_int_equal(unlink(script), 0);
    end_temporary(temporary);
    free(script);
    free(out);
}

static void needs_room_for_another_runtime(void **state)
{
    const struct process_limits full = {.seconds = 60, .file_size = 200};
    char *temporary = make_temporary(*state);
    const char *const argv[] = {tool, start, "-q", "--check", "1", "--check-runtime", "true", NULL};
    expect_refused(process_run(argv, NULL, NULL, &full), 6, "rewritten.onnx");
    end_temporary(temporary);
    assert_int_equal(setenv("TMPDIR", "/nowhere", 1), 0);
    expect_refused(process_run(argv, NULL, NULL, &cli_limits), 6, "/nowhere");
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

/* What no file of ONNX can hold no other runtime can run. */
static void needs_a_file_for_another_runtime(void **state)
{
    (void)state;
    struct process_result result = RUN(GOLDEN "tensorssa_get_started_5_simplified.tir", "-q",
                                       "--check", "1", "--check-runtime", "true");
    assert_int_equal(result.status, 7);
    assert_non_null(strstr(result.err, "tssa-opt: not checked: "));
    assert_non_null(strstr(result.err, "has no form in ONNX"));
    process_result_free(&result);
}

static void refuses_what_is_no_command(void **state)
{
    (void)state;
    static const char *const lines[][2] = {
        {"", "no command is named"},    {"  ", "no command is named"},
        {"''", "no command is named"},  {"'python x", "a quote"},
        {"x\\", "x\\: No such file"},   {"/nowhere/x y", "/nowhere/x: No"},
        {"no-such-program", "No such"}, {"/tmp", "/tmp: "},
        {"/etc/passwd", "Permission"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        expect_refused(RUN(start, "--check", "1", "--check-runtime", lines[i][0]), 2, lines[i][1]);
    expect_refused(RUN(start, "--check-runtime", "true"), 2, "without --check N");
}

/*
 * A program in text is written as a model, whose loop is gone; one that cannot be converted is not.
 */
static void reads_text(void **state)
{
    char *path = xprintf("%s/text.onnx", (char *)*state);
    expect_good(RUN(GOLDEN "tensorssa_get_started_5_simplified.tir", path), "wrote");
    struct process_result result = RUN(path);
    assert_null(strstr(result.out, "Loop"));
    expect_good(result, "f32[1024, 1024]");
    expect_refused(RUN(GOLDEN "tensorssa_missed.tir", path, "-q"), 4, "has no form in ONNX");
    expect_refused(RUN(GOLDEN "error_broadcast.tir"), 3, "error_broadcast.tir: ");
    unlink(path);
    free(path);
}

/* What nobody wrote is not there, and what was there before is as it was. */
static void expect_left(const char *path, const char *folder)
{
    struct file_map map;
    assert_null(file_map_open(path, &map));
    assert_int_equal(map.size, 3);
    file_map_close(&map);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void leaves_nothing_half_written(void **state)
{
    char *folder = xprintf("%s/full", (char *)*state), *path = xprintf("%s/out.onnx", folder);
    const struct process_limits full = {.seconds = 60, .file_size = 200};
    const char *const argv[] = {tool, start, path, "-q", NULL};
    const char *const external[] = {tool, lstm, path, "-q", "--save-as-external-data", NULL};
    assert_int_equal(mkdir(folder, 0777), 0);
    expect_refused(process_run(argv, NULL, NULL, &full), 6, "out.onnx");
    expect_refused(process_run(external, NULL, NULL, &full), 6, "out.onnx");
    assert_int_equal(rmdir(folder), 0); /* it is empty */
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_null(file_write(&allocator_default, path, "old", 3));
    expect_refused(process_run(argv, NULL, NULL, &full), 6, "out.onnx");
    expect_refused(process_run(external, NULL, NULL, &full), 6, "out.onnx");
    expect_left(path, folder);
    free(path);
    free(folder);
}

/* A pipe that nobody reads is waited for, but not for ever. */
static void waiting_for_a_pipe_can_be_interrupted(void **state)
{
    char *pipe = xprintf("%s/pipe", (char *)*state);
    const char *const argv[] = {tool, start, pipe, "-q", NULL};
    const struct timespec second = {.tv_sec = 1}, moment = {.tv_nsec = 10000000};
    int how = 0, ended = 0;
    pid_t child;
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(posix_spawn(&child, tool, NULL, NULL, (char *const *)argv, environ), 0);
    nanosleep(&second, NULL);
    kill(child, SIGTERM); /* SIGINT may be ignored, in a background job */
    for (int i = 0; i < 2000 && !ended; i++) {
        nanosleep(&moment, NULL);
        ended = waitpid(child, &how, WNOHANG) == child;
    }
    kill(child, SIGKILL);
    assert_true(ended);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
    unlink(pipe);
    free(pipe);
}

static void refuses_unwritable_places(void **state)
{
    char *file = xprintf("%s/file", (char *)*state), *below = xprintf("%s/out.onnx", file);
    assert_null(file_write(&allocator_default, file, "x", 1));
    expect_refused(RUN(start, *state), 6, "folder");
    expect_refused(RUN(start, below), 6, "out.onnx");
    expect_refused(RUN(start, "/proc/nowhere/out.onnx"), 6, "/proc/nowhere");
    expect_refused(RUN(start, "/dev/full"), 6, "/dev/full");
    expect_refused(RUN(start, "-q", "/proc/out.onnx"), 6, "cannot write /proc/out.onnx");
    expect_refused(RUN(start, "-q", "--dump-ir", "--dump-dir", file), 6, "file: it is no folder");
    expect_refused(RUN("no.onnx", "--dump-ir", "--dump-dir", "/no/where"), 6, /* before it reads */
                   "cannot make the folder /no/where: ");
    const char *const argv[] = {tool, start, NULL};
    expect_refused(process_run(argv, NULL, "/dev/full", &cli_limits), 6, "standard output");
    assert_int_equal(unlink(file), 0);
    free(below);
    free(file);
}

static void refuses_what_an_opset_cannot_say(void **state)
{
    char *path = xprintf("%s/old.onnx", (char *)*state);
    expect_refused(RUN(ssd, path, "-q", "--opset", "9"), 4, "opset 9");
    assert_int_equal(access(path, F_OK), -1);
    free(path);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void refuses_wrong_arguments(void **state)
{
    (void)state;
    expect_refused(process_run((const char *const[]){tool, NULL}, NULL, NULL, &cli_limits), 2,
                   "which model");
    expect_refused(RUN("--unknown"), 2, "--unknown");
    expect_refused(RUN(start, "a", "b"), 2, "b: ");
    expect_refused(RUN(start, "a", "-o", "b"), 2, "a: ");
    expect_refused(RUN(start, "-o", "-"), 2, "/dev/stdout");
    expect_refused(RUN(start, "-O", "3"), 2, "--optimize 3");
    expect_refused(RUN(start, "--passes", "identity,nothing"), 2, "nothing");
    expect_refused(RUN(start, "--skip-pass", "nothing"), 2, "nothing");
    expect_refused(RUN(start, "--passes", ""), 2, "--passes: no pass is named; -O 0 runs none");
    expect_refused(RUN(start, "--skip-pass", " , "), 2, "--skip-pass: no pass is named");
    expect_refused(RUN(start, "--keep-hazard="), 2, "--keep-hazard: no hazard is named");
    expect_refused(RUN(start, "-O", "1", "--optimize", "1"), 2, "--optimize: it is given twice");
    expect_refused(RUN(start, "--check", "1", "--check", "2"), 2, "--check: it is given twice");
    expect_refused(RUN(start, "--dim", "rows=1", "--dim", "rows=2"), 2, "rows is given twice");
    expect_refused(RUN(start, "--input-shape", "a:1,1", "--input-shapes", "a:1,1"), 2,
                   "--input-shape a:1,1: a is given twice");
    expect_refused(RUN(start, "--dump-ir=nothing"), 2, "nothing");
    expect_refused(RUN(start, "--dump-dir", "x"), 2, "--dump-ir");
    expect_refused(RUN(start, "--remarks=xml"), 2, "xml");
    expect_refused(RUN(start, "--print-passes=xml"), 2, "xml");
    expect_refused(RUN(start, "--check", "0"), 2, "--check 0");
    expect_refused(RUN(start, "--check", "-3"), 2, "--check -3");
    expect_refused(RUN(start, "--check", "1e3"), 2, "--check 1e3");
    expect_refused(RUN(start, "--check", "99999999999999999999"), 2, "--check 9999");
    expect_refused(RUN(start, "--timeout", "-1"), 2, "--timeout -1");
    expect_refused(RUN(start, "--seed", "x"), 2, "--seed x");
    expect_refused(RUN(start, "--rtol", "nan"), 2, "--rtol nan");
    expect_refused(RUN(start, "--opset", "0"), 2, "--opset 0");
    expect_refused(RUN(start, "x.onnx", "--opset", "99"), 2, "--opset 99: an opset from 7 to");
    expect_refused(RUN(start, "--dim", "z=-1"), 2, "--dim z=-1");
    expect_refused(RUN(start, "--keep-functions=some"), 2, "--keep-functions some");
    expect_refused(RUN(start, ""), 2, "empty");
    expect_refused(RUN(""), 2, "empty");
    expect_refused(RUN(start, "-"), 2, "/dev/stdout");
    expect_refused(RUN(start, "--input-shape", "a:1xx2"), 2, "a:1xx2");
    expect_refused(RUN(start, "--input-shape", "a:1"), 2, "a has 2 dims, not 1");
    expect_refused(RUN(start, "--input-shape", "z:1"), 2, "z");
    expect_refused(RUN(start, "--input-shape", "a:2,3", "--input-shape", "b:3,3"), 2, "rows");
    expect_refused(RUN(lstm, "--input-shape", "x:1,1,1"), 2, "--input-shape x:1,1,1");
    expect_refused(RUN(start, "--timeout", "0"), 2, "--timeout 0");
    expect_refused(RUN(start, "--dim", "z=1"), 2, "\"z\"");
    expect_refused(RUN(start, "x.onnx", "--verify-only"), 2, "--verify-only");
}

static void refuses_missing_models(void **state)
{
    (void)state;
    expect_refused(RUN("/nowhere/model.onnx"), 3, "/nowhere/model.onnx");
    expect_refused(RUN("/tmp"), 3, "/tmp");
    expect_refused(RUN("-"), 3, "standard input");
}

static void refuses_damaged_models(void **state)
{
    cli_expect_damaged_refused(tool, "tssa-opt", start, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(helps),
        cmocka_unit_test(lists_passes),
        cmocka_unit_test(inspects),
        cmocka_unit_test(inspects_with_fixed_shapes),
        cmocka_unit_test(shows_remarks_and_stats),
        cmocka_unit_test(writes_remarks_as_json),
        cmocka_unit_test(dumps_the_graph),
        cmocka_unit_test(runs_chosen_passes),
        cmocka_unit_test(writes_models),
        cmocka_unit_test(writes_external_data),
        cmocka_unit_test(checks),
        cmocka_unit_test(tells_what_is_too_large),
        cmocka_unit_test(checks_with_fixed_shapes),
        cmocka_unit_test(writes_chosen_outputs),
        cmocka_unit_test(bounds_the_file),
        cmocka_unit_test(misses_no_plugins),
        cmocka_unit_test(tells_what_is_not_checked),
        cmocka_unit_test(checks_with_another_runtime),
        cmocka_unit_test(ends_another_runtime),
        cmocka_unit_test(needs_room_for_another_runtime),
        cmocka_unit_test(needs_a_file_for_another_runtime),
        cmocka_unit_test(refuses_what_is_no_command),
        cmocka_unit_test(reads_text),
        cmocka_unit_test(leaves_nothing_half_written),
        cmocka_unit_test(waiting_for_a_pipe_can_be_interrupted),
        cmocka_unit_test(refuses_unwritable_places),
        cmocka_unit_test(refuses_what_an_opset_cannot_say),
        cmocka_unit_test(refuses_wrong_arguments),
        cmocka_unit_test(refuses_missing_models),
        cmocka_unit_test(refuses_damaged_models),
    };
    return cmocka_run_group_tests(tests, cli_make_folder, cli_remove_folder);
}
