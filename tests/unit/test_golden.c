/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden tests: every tests/golden/NAME.tir is parsed, verified and inferred, goes through the
 * passes that its first line names (`// run: dead_code identity`, or as for a session `// session:
 * dead_code`), and must then print as NAME.expected says.
 *
 * With TSSA_UPDATE_GOLDEN=1 in the environment the expected files are written instead; look at the
 * difference before committing it.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"

#define FOLDER TSSA_SOURCE_DIR "/tests/golden"
#define MAX_PASSES 16

/* The whole file, NUL-terminated; NULL when it cannot be read. */
static char *read_file(const char *path)
{
    struct text text;
    char chunk[4096];
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    text_init(&text, &allocator_default);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        text_append(&text, chunk, n);
    fclose(file);
    char *copy = strdup(text_string(&text));
    text_free(&text);
    return copy;
}

static void print_remark(void *user, const tssa_remark *remark)
{
    text_printf(user, "// %s: %s: %s: %s\n", remark->pass,
                remark->kind == TSSA_REMARK_APPLIED ? "applied" : "missed", remark->op,
                remark->message);
}

static bool has_library(void)
{
    return true;
}

/* Runs the passes of the first line, if it is one. */
static tssa_status *run_passes(struct ir_graph *graph, const char *source, struct text *remarks)
{
    char line[256], *rest = NULL;
    const char *names[MAX_PASSES];
    size_t count = 0, length = strcspn(source, "\n");
    const bool session = strncmp(source, "// session:", 11) == 0;
    if (!session && strncmp(source, "// run:", 7) != 0)
        return NULL;
    if (length >= sizeof line)
        return ERROR(TSSA_INVALID_ARGUMENT, "the line of passes is too long");
    memcpy(line, source, length);
    line[length] = '\0';
    for (char *name = strtok_r(strchr(line, ':') + 1, " ,", &rest); name;
         name = strtok_r(NULL, " ,", &rest)) {
        if (count == MAX_PASSES)
            return ERROR(TSSA_INVALID_ARGUMENT, "too many passes");
        names[count++] = name;
    }
    const tssa_optimize_options options = {.target =
                                               session ? TSSA_TARGET_SESSION : TSSA_TARGET_ONNX,
                                           .verify_after_passes = 1,
                                           .remark = print_remark,
                                           .remark_user = remarks};
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph->allocator);
    const struct pipeline pipeline = {.options = &options,
                                      .evaluate = evaluator_run,
                                      .evaluate_user = &evaluator,
                                      .convolves = has_library};
    tssa_status *status = pipeline_run_passes(graph, names, count, &pipeline);
    evaluator_free(&evaluator);
    return status;
}

/* What the source comes to, or the error, as text. */
static void process(const char *source, struct text *out)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = ir_parse(&allocator_default, source, strlen(source), &graph);
    if (!status)
        status = ir_verify(graph);
    if (!status)
        status = ir_infer_graph(graph);
    if (!status)
        status = run_passes(graph, source, out);
    if (!status)
        status = ir_verify(graph);
    if (status)
        text_printf(out, "error: %s\n", tssa_status_message(status));
    else
        ir_print_graph(graph, false, out);
    tssa_status_free(status);
    ir_graph_free(graph);
}

/* Errors are expected in files named error_*, and only there. */
static void compare(const char *name, struct text *got, const char *expected_path)
{
    bool error = strncmp(text_string(got), "error: ", 7) == 0;
    if (error != (strncmp(name, "error_", 6) == 0))
        fail_msg("%s: %s", name, text_string(got));
    if (getenv("TSSA_UPDATE_GOLDEN")) {
        FILE *file = fopen(expected_path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(got->data, 1, got->size, file), got->size);
        assert_int_equal(fclose(file), 0);
        return;
    }
    char *expected = read_file(expected_path);
    if (!expected || strcmp(expected, text_string(got)) != 0)
        print_error("%s gives\n%s\nnot\n%s\n", name, text_string(got),
                    expected ? expected : "(no file)");
    assert_non_null(expected);
    assert_string_equal(text_string(got), expected);
    free(expected);
}

static void one_golden(void **state)
{
    const char *name = *state;
    char path[4096], expected[4096];
    struct text got;
    int stem = (int)strlen(name) - 4;
    snprintf(path, sizeof path, FOLDER "/%s", name);
    snprintf(expected, sizeof expected, FOLDER "/%.*s.expected", stem, name);
    char *source = read_file(path);
    assert_non_null(source);
    text_init(&got, &allocator_default);
    process(source, &got);
    compare(name, &got, expected);
    text_free(&got);
    free(source);
}

static int is_golden(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && strcmp(entry->d_name + length - 4, ".tir") == 0;
}

int main(void)
{
    struct dirent **entries = NULL;
    int count = scandir(FOLDER, &entries, is_golden, alphasort);
    if (count <= 0) {
        fprintf(stderr, "no golden tests in %s: %s\n", FOLDER, strerror(errno));
        return 1;
    }
    struct CMUnitTest *tests = calloc((size_t)count, sizeof *tests);
    if (!tests)
        return 1;
    for (int i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){.name = entries[i]->d_name,
                                       .test_func = one_golden,
                                       .initial_state = entries[i]->d_name};
    int failed = _cmocka_run_group_tests("golden", tests, (size_t)count, NULL, NULL);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    free(tests);
    return failed;
}
