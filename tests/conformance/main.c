/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tssa-conformance: runs the official ONNX test cases of release 1.22.0.
 *
 * A case passes when every output agrees by the official rule (tools/common/compare.h): with the
 * model as it is, optimized, and rewritten by all passes, written as ONNX and loaded again; with
 * --device, by all passes on that device. It is
 * skipped when its session is refused because of an operator that tssa does not have. Anything else
 * fails.
 */
#include <argp.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cases.h"
#include "common/workers.h"
#include "common/xmalloc.h"
#include "device/device.h"
#include "run_case.h"
#include "tally.h"

struct arguments {
    const char *data, *expect, *update, *filter, *device;
    bool operators, verbose;
    int jobs, every;
};

static const struct argp_option options[] = {
    {"expect", 'e', "FILE", 0, "Fail only when a case listed in FILE does not pass", 0},
    {"update", 'u', "FILE", 0, "Write the names of the passing cases to FILE", 0},
    {"filter", 'f', "REGEX", 0, "Run only the cases whose name (node/test_abs) matches", 0},
    {"device", 'd', "NAME", 0, "Run the cases on this device, after all passes", 0},
    {"every", 'n', "N", 0, "Run each Nth case of these, from the first one on", 0},
    {"operators", 'o', NULL, 0, "Print totals per operator", 0},
    {"verbose", 'v', NULL, 0, "Print every case", 0},
    {"jobs", 'j', "N", 0, "Cases at a time (default 2)", 0},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case 'e':
        arguments->expect = argument;
        return 0;
    case 'u':
        arguments->update = argument;
        return 0;
    case 'f':
        arguments->filter = argument;
        return 0;
    case 'd':
        arguments->device = argument;
        return 0;
    case 'n':
        arguments->every = atoi(argument);
        return 0;
    case 'o':
        arguments->operators = true;
        return 0;
    case 'v':
        arguments->verbose = true;
        return 0;
    case 'j':
        arguments->jobs = atoi(argument);
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->data)
            return ARGP_ERR_UNKNOWN;
        arguments->data = argument;
        return 0;
    case ARGP_KEY_END:
        if (!arguments->data)
            argp_error(state, "which folder? onnx/backend/test/data of the onnx package is wanted");
        if (arguments->update && (arguments->filter || arguments->every > 1))
            argp_error(state, "--update wants all cases, not only some");
        if (arguments->every < 1)
            argp_error(state, "--every wants a number from 1 on");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Choosing -------------------------------------------------------------------------------- */

/* Keeps a case where `keeps` says so. */
static void keep(struct case_list *list, bool (*keeps)(const void *how, const char *name, size_t i),
                 const void *how)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct test_case test = list->cases[i];
        const bool kept_too = keeps(how, test.name, i);
        list->cases[i] = list->cases[kept];
        list->cases[kept] = test;
        kept += kept_too;
    }
    for (size_t i = kept; i < list->count; i++) {
        free(list->cases[i].name);
        free(list->cases[i].model);
        free(list->cases[i].folder);
    }
    list->count = kept;
}

static bool matches(const void *regex, const char *name, size_t i)
{
    (void)i;
    return regexec(regex, name, 0, NULL, 0) == 0;
}

static bool is_nth(const void *every, const char *name, size_t i)
{
    (void)name;
    return i % (size_t) * (const int *)every == 0;
}

static bool choose(struct case_list *list, const char *pattern, int every)
{
    regex_t regex;
    if (pattern && regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0) {
        fprintf(stderr, "--filter: '%s' is no regular expression\n", pattern);
        return false;
    }
    if (pattern) {
        keep(list, matches, &regex);
        regfree(&regex);
    }
    keep(list, is_nth, &every);
    return true;
}

static bool connects(const char *name)
{
    struct device_context context;
    const struct device *device = device_find(name);
    if (!device) {
        fprintf(stderr, "there is no device \"%s\"\n", name);
        return false;
    }
    device_context_open(&context, device, &allocator_default, NULL);
    tssa_status *status = device_context_connect(&context);
    if (status)
        printf("%s\n", tssa_status_message(status));
    const bool connected = !status;
    tssa_status_free(status);
    device_context_close(&context);
    return connected;
}

/* A machine need not have every device. Asked in a process of its own: a device may have threads,
 * which the cases' processes would lack. */
static bool is_there(const char *name)
{
    int status = 1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const bool connected = connects(name);
        fflush(stdout);
        _exit(!connected);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* ---- Running --------------------------------------------------------------------------------- */

struct results {
    const struct case_list *list;
    const char *device; /* NULL: the ways of the CPU */
    enum outcome *outcomes;
    char **whys;
    struct tally tally;
    bool verbose;
};

static int run_job(void *context, size_t index, struct text *report)
{
    const struct results *results = context;
    return run_case(&results->list->cases[index], results->device, report);
}

static void finish_job(void *context, size_t index, int result, const char *report, size_t size,
                       double seconds)
{
    static const char *const words[] = {"pass", "FAIL", "skip"};
    struct results *results = context;
    (void)size;
    enum outcome outcome = result < 0 ? OUTCOME_FAIL : (enum outcome)result;
    const char *end = strchr(report, '\n');
    int length = end ? (int)(end - report) : (int)strlen(report);
    results->outcomes[index] = outcome;
    results->whys[index] = xprintf("%.*s", length, report);
    tally_add(&results->tally, end ? end + 1 : "", outcome);
    if (results->verbose)
        printf("%s %s (%.2f s)%s%s\n", words[outcome], results->list->cases[index].name, seconds,
               length ? ": " : "", results->whys[index]);
}

/* ---- Reporting ------------------------------------------------------------------------------- */

static void print_failures(const struct results *results)
{
    for (size_t i = 0; i < results->list->count; i++) {
        if (results->outcomes[i] == OUTCOME_FAIL)
            printf("FAIL %s: %s\n", results->list->cases[i].name, results->whys[i]);
    }
}

/* How many cases that must pass do not. A listed case that --filter leaves out is not looked at. */
static size_t check_expected(const struct results *results, const char *path, bool filtered)
{
    struct name_list expected;
    size_t broken = 0, met = 0;
    if (!names_read(path, &expected))
        return 1;
    for (size_t i = 0; i < results->list->count; i++) {
        const char *name = results->list->cases[i].name;
        bool listed = names_contain(&expected, name);
        met += listed;
        if (!listed || results->outcomes[i] == OUTCOME_PASS)
            continue;
        broken++;
        printf("NO LONGER PASSES %s: %s\n", name, results->whys[i]);
    }
    if (!filtered && met < expected.count) {
        printf("%s lists %zu cases that are not there\n", path, expected.count - met);
        broken += expected.count - met;
    }
    names_free(&expected);
    return broken;
}

static bool write_passing(const struct results *results, const char *path)
{
    struct text text;
    text_init(&text, &allocator_default);
    text_puts(&text, "# Official cases that pass; written by tssa-conformance --update.\n");
    for (size_t i = 0; i < results->list->count; i++) {
        if (results->outcomes[i] == OUTCOME_PASS)
            text_printf(&text, "%s\n", results->list->cases[i].name);
    }
    tssa_status *status = text.failed ? status_out_of_memory()
                                      : file_write(&allocator_default, path, text.data, text.size);
    if (status)
        fprintf(stderr, "%s\n", tssa_status_message(status));
    text_free(&text);
    bool written = !status;
    tssa_status_free(status);
    return written;
}

static int report(const struct results *results, const struct arguments *arguments,
                  int bad_children)
{
    size_t counts[OUTCOME_COUNT] = {0};
    int status = 0;
    for (size_t i = 0; i < results->list->count; i++)
        counts[results->outcomes[i]]++;
    print_failures(results);
    tally_print(&results->tally, arguments->operators);
    if (arguments->update && !write_passing(results, arguments->update))
        status = 1;
    if (arguments->expect)
        status |= check_expected(results, arguments->expect,
                                 arguments->filter || arguments->every > 1) != 0;
    else
        status |= counts[OUTCOME_FAIL] != 0;
    if (bad_children) {
        printf("%d processes ended badly after their cases: leaks?\n", bad_children);
        status = 1;
    }
    printf("%zu passed, %zu failed, %zu skipped\n", counts[OUTCOME_PASS], counts[OUTCOME_FAIL],
           counts[OUTCOME_SKIP]);
    return status;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.jobs = 2, .every = 1};
    const struct argp argp = {options,
                              parse,
                              "DIR",
                              "Runs the official ONNX test cases below DIR, which is "
                              "onnx/backend/test/data of the onnx package, release 1.22.0.",
                              NULL,
                              NULL,
                              NULL};
    struct case_list list;
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    if (arguments.device && !is_there(arguments.device)) {
        puts("0 passed, 0 failed, 1 skipped");
        return device_find(arguments.device) ? 0 : 2;
    }
    if (!cases_find(arguments.data, &list))
        return 2;
    if (!choose(&list, arguments.filter, arguments.every)) {
        cases_free(&list);
        return 2;
    }
    struct results results = {.list = &list,
                              .device = arguments.device,
                              .outcomes = xcalloc(list.count, sizeof(enum outcome)),
                              .whys = xcalloc(list.count, sizeof(char *)),
                              .verbose = arguments.verbose};
    const struct workers_options workers = {.workers = arguments.jobs,
                                            .timeout_seconds = 60,
                                            .job = run_job,
                                            .done = finish_job,
                                            .context = &results};
    int bad = workers_run(&workers, list.count), status = 2;
    if (bad >= 0)
        status = report(&results, &arguments, bad);
    else
        perror("cannot start a process");
    for (size_t i = 0; i < list.count; i++)
        free(results.whys[i]);
    free(results.whys);
    free(results.outcomes);
    tally_free(&results.tally);
    cases_free(&list);
    return status;
}
