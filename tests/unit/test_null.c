/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs of the committed models would ask of a device, by number: on the device `null`, in a
 * run like the ones before it. tests/golden/null.txt is the table of level 2, null_0.txt and
 * null_1.txt are those of the others, which TSSA_UPDATE_GOLDEN=1 in the environment has written
 * anew.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/committed_models.h"
#include "common/model_run.h"
#include "common/no_error.h"

#define GOLDEN TSSA_SOURCE_DIR "/tests/golden/"
#define RUNS 8 /* sizes are learnt, and the layout has taken its time */
#define LEVELS 3

static const char *const files[LEVELS] = {GOLDEN "null_0.txt", GOLDEN "null_1.txt",
                                          GOLDEN "null.txt"};
static struct text tables[LEVELS]; /* as found now, one line per model */

static const char *name_of(const char *path)
{
    const char *end = strrchr(path, '/'), *start = end - 1;
    while (start > path && start[-1] != '/')
        start--;
    return start;
}

static void drop_outputs(struct model_run *run)
{
    for (size_t i = 0; i < run->output_count; i++) {
        tssa_value_free(run->outputs[i]);
        run->outputs[i] = NULL;
    }
}

/* Every output has a value, of the rank that the model declares, if it does. */
static void check_outputs(const struct model_run *run)
{
    for (size_t i = 0; i < run->output_count; i++) {
        tssa_value_info info;
        assert_non_null(run->outputs[i]);
        no_error(tssa_model_output(run->model, i, &info));
        if (info.kind == TSSA_KIND_TENSOR && info.rank >= 0)
            assert_int_equal(model_run_output(run, i)->tensor.rank, info.rank);
    }
}

static void open_model(struct model_run *run, const char *path, int level, double share)
{
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = level, .target = TSSA_TARGET_SESSION};
    const tssa_session_options options = {
        .struct_size = sizeof options, .device = "null", .data_share = share};
    no_error(model_run_open(run, path, 0));
    no_error(tssa_model_optimize(run->model, &optimize));
    no_error(model_run_read_inputs(run, path));
    no_error(tssa_session_create(run->model, &options, &run->session));
}

static void run_model(const char *path, int level, tssa_session_work *work)
{
    struct model_run run = {0};
    open_model(&run, path, level, 0);
    no_error(tssa_session_counts(run.session, work));
    assert_true(work->launches == 0 && work->allocations == 0);
    tssa_session_work before;
    for (int i = 0; i < RUNS; i++) {
        before = *work;
        drop_outputs(&run);
        no_error(model_run_execute(&run));
        no_error(tssa_session_counts(run.session, work));
        check_outputs(&run);
    }
    assert_int_equal(work->launches, before.launches);
    assert_int_equal(work->library_calls, before.library_calls);
    assert_int_equal(work->bytes, before.bytes);
    assert_int_equal(work->copies, before.copies);
    assert_int_equal(work->copied_bytes, before.copied_bytes);
    model_run_close(&run);
}

static void add_line(const char *path, struct text *table, const tssa_session_work *work)
{
    const char *name = name_of(path);
    text_printf(table,
                "%-28.*s %8" PRIu64 " %8" PRIu64 " %12" PRIu64 " %8" PRIu64 " %8" PRIu64
                " %12" PRIu64 "\n",
                (int)strcspn(name, "/"), name, work->launches, work->library_calls, work->bytes,
                work->allocations, work->copies, work->copied_bytes);
}

static void count_model(const char *path, int level)
{
    tssa_session_work work;
    run_model(path, level, &work);
    add_line(path, &tables[level], &work);
}

/* As they are loaded, sequences leave many values without a rank, and the CPU computes on the zeros
 * that it gets for them. */
static void one_model_as_it_is(void **state)
{
    count_model(*state, 0);
}

static void one_model_quickly(void **state)
{
    count_model(*state, 1);
}

static void one_model(void **state)
{
    count_model(*state, 2);
}

/* ---- A share --------------------------------------------------------------------------------- */

/* What one run writes and reads where NonZero finds this share. */
static uint64_t bytes_with_share(double share)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/solov2_small/model.onnx";
    struct model_run run = {0};
    tssa_session_work work;
    open_model(&run, path, 2, share);
    no_error(model_run_execute(&run));
    no_error(tssa_session_counts(run.session, &work));
    model_run_close(&run);
    return work.bytes;
}

static void test_share(void **state)
{
    (void)state;
    const uint64_t all = bytes_with_share(0), half = bytes_with_share(0.5);
    assert_int_equal(bytes_with_share(1), all);
    assert_true(half < all && bytes_with_share(0.25) < half);
}

/* However little is found, every size fits the others. */
static void one_model_of_little(void **state)
{
    for (int level = 0; level < LEVELS; level++) {
        struct model_run run = {0};
        open_model(&run, *state, level, 0.01);
        no_error(model_run_execute(&run));
        check_outputs(&run);
        model_run_close(&run);
    }
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void expect(tssa_status *status, tssa_code code, const char *message)
{
    assert_int_equal(tssa_status_code(status), code);
    assert_non_null(strstr(tssa_status_message(status), message));
    tssa_status_free(status);
}

static void test_refusals(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/get_started_small/model.onnx";
    struct model_run run = {0};
    tssa_session_options options = {.struct_size = sizeof options, .device = "abacus"};
    tssa_session_work work;
    (void)state;
    no_error(model_run_open(&run, path, 0));
    expect(tssa_session_create(run.model, &options, &run.session), TSSA_UNSUPPORTED,
           "there is no device \"abacus\": this build has cpu, null");
    options.device = tssa_device_name(0);
    no_error(tssa_session_create(run.model, &options, &run.session));
    expect(tssa_session_counts(run.session, &work), TSSA_UNSUPPORTED, "cpu, computes");
    tssa_session_free(run.session);
    run.session = NULL;
    options.data_share = 0.5;
    expect(tssa_session_create(run.model, &options, &run.session), TSSA_INVALID_ARGUMENT,
           "device cpu computes");
    options.data_share = 1.5;
    expect(tssa_session_create(run.model, &options, &run.session), TSSA_INVALID_ARGUMENT, "0 to 1");
    options.data_share = 0;
    no_error(tssa_session_create(run.model, &options, &run.session));
    expect(tssa_session_counts(run.session, NULL), TSSA_INVALID_ARGUMENT, "NULL");
    expect(tssa_session_counts(NULL, &work), TSSA_INVALID_ARGUMENT, "NULL");
    assert_null(tssa_device_name(99));
    model_run_close(&run);
}

/* ---- The table ------------------------------------------------------------------------------- */

static const char *const heading =
    "# What a run asks of a device (docs/tools.md); TSSA_UPDATE_GOLDEN=1 test_null writes it.\n"
    "# model                       launches  library        bytes   allocs   copies "
    "copied_bytes\n";

static char *read_table(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    if (file) {
        text[fread(text, 1, (1 << 16) - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

/* Prints the lines that differ. */
static int compare(const char *found, const char *wanted)
{
    int differ = 0;
    while (*found || *wanted) {
        const size_t n = strcspn(found, "\n"), m = strcspn(wanted, "\n");
        if (n != m || memcmp(found, wanted, n) != 0) {
            print_error("found  %.*s\nwanted %.*s\n", (int)n, found, (int)m, wanted);
            differ++;
        }
        found += n + (found[n] == '\n');
        wanted += m + (wanted[m] == '\n');
    }
    if (differ)
        print_error("where that is meant: TSSA_UPDATE_GOLDEN=1 test_null\n");
    return differ;
}

static int write_table(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool good = file && fputs(text, file) >= 0;
    good = file && fclose(file) == 0 && good;
    if (!good)
        print_error("cannot write %s\n", path);
    return !good;
}

static int check_table(int level, bool update)
{
    const char *found = text_string(&tables[level]);
    if (update)
        return write_table(files[level], found);
    char *wanted = read_table(files[level]);
    const int differ = compare(found, wanted);
    free(wanted);
    return differ;
}

int main(void)
{
    for (int i = 0; i < LEVELS; i++) {
        text_init(&tables[i], &allocator_default);
        text_puts(&tables[i], heading);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_share)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL) + committed_models_test(one_model) +
                 committed_models_test(one_model_quickly) +
                 committed_models_test(one_model_as_it_is) +
                 committed_models_test(one_model_of_little);
    const bool update = !failed && getenv("TSSA_UPDATE_GOLDEN");
    for (int i = 0; i < LEVELS; i++) {
        failed += check_table(i, update);
        text_free(&tables[i]);
    }
    return failed;
}
