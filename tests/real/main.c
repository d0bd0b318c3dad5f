/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tssa-real: runs models that other people published against recorded outputs of ONNX Runtime.
 *
 * A data set passes when all outputs agree (rtol 1e-3, atol 1e-5, integers exactly; outputs of
 * quantized models within a quantisation step, or in the largest element of each row). It is
 * skipped when the session is refused for want of an operator. A wrong answer, a crash or anything
 * else is a failure.
 */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/workers.h"
#include "common/xmalloc.h"
#include "run_real.h"

struct arguments {
    const char *folder, *filter;
    int jobs;
};

static const struct argp_option options[] = {
    {"filter", 'f', "REGEX", 0, "Run only the models whose name matches", 0},
    {"jobs", 'j', "N", 0, "Data sets at a time (default 1: they are timed)", 0},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case 'f':
        arguments->filter = argument;
        return 0;
    case 'j':
        arguments->jobs = atoi(argument);
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->folder)
            return ARGP_ERR_UNKNOWN;
        arguments->folder = argument;
        return 0;
    case ARGP_KEY_END:
        if (!arguments->folder)
            argp_error(state, "which folder of models?");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

struct results {
    const struct real_case **cases;
    size_t count;
    enum outcome *outcomes;
    struct real_report *reports;
};

static int run_job(void *context, size_t index, struct text *report)
{
    const struct results *results = context;
    return run_real(results->cases[index], report);
}

static void finish_job(void *context, size_t index, int result, const char *report, size_t size,
                       double seconds)
{
    struct results *results = context;
    struct real_report *mine = &results->reports[index];
    (void)seconds;
    results->outcomes[index] = result < 0 ? OUTCOME_FAIL : (enum outcome)result;
    if (result >= 0 && size == sizeof *mine)
        memcpy(mine, report, sizeof *mine);
    else
        snprintf(mine->text, sizeof mine->text, "%s", report);
}

/* ---- The table ------------------------------------------------------------------------------- */

static void print_row(const struct real_case *test, enum outcome outcome,
                      const struct real_report *report)
{
    static const char *const words[] = {"pass", "FAIL", "skip"};
    printf("%s  %-38s %-16s", words[outcome], test->model, test->set ? test->set : "");
    if (outcome == OUTCOME_PASS && test->set)
        printf(" %9.2g %9.2g", report->max_abs, report->max_rel);
    else
        printf(" %9s %9s", "", "");
    if (outcome == OUTCOME_PASS)
        printf(" %9.3f", report->milliseconds);
    else
        printf(" %9s", "");
    if (outcome == OUTCOME_PASS && test->reference_ms > 0)
        printf(" %9.3f", test->reference_ms);
    else
        printf(" %9s", "");
    printf("%s%s\n", report->text[0] ? "  " : "", report->text);
}

/* Models all of whose data sets pass, of the models with data sets. */
static void print_models(const struct results *results)
{
    size_t models = 0, matching = 0;
    for (size_t i = 0; i < results->count;) {
        const char *model = results->cases[i]->model;
        bool has_sets = results->cases[i]->set != NULL, all = true;
        for (; i < results->count && strcmp(results->cases[i]->model, model) == 0; i++)
            all &= results->outcomes[i] == OUTCOME_PASS;
        models += has_sets;
        matching += has_sets && all;
    }
    printf("%zu of %zu models with data run and match\n", matching, models);
}

static int print_results(const struct results *results, int bad_children)
{
    size_t counts[OUTCOME_COUNT] = {0};
    printf("      %-38s %-16s %9s %9s %9s %9s\n", "model", "data set", "max abs", "max rel", "ms",
           "ORT ms");
    for (size_t i = 0; i < results->count; i++) {
        print_row(results->cases[i], results->outcomes[i], &results->reports[i]);
        counts[results->outcomes[i]]++;
    }
    print_models(results);
    if (bad_children)
        printf("%d processes ended badly after their models: leaks?\n", bad_children);
    printf("%zu passed, %zu failed, %zu skipped\n", counts[OUTCOME_PASS], counts[OUTCOME_FAIL],
           counts[OUTCOME_SKIP]);
    return counts[OUTCOME_FAIL] || bad_children ? 1 : 0;
}

/* Cases whose model matches. */
static bool choose(const struct catalog *catalog, const char *pattern, struct results *results)
{
    regex_t regex;
    if (regcomp(&regex, pattern ? pattern : "", REG_EXTENDED | REG_NOSUB) != 0) {
        fprintf(stderr, "--filter: '%s' is no regular expression\n", pattern);
        return false;
    }
    results->cases = xcalloc(catalog->count, sizeof *results->cases);
    for (size_t i = 0; i < catalog->count; i++) {
        if (regexec(&regex, catalog->cases[i].model, 0, NULL, 0) == 0)
            results->cases[results->count++] = &catalog->cases[i];
    }
    regfree(&regex);
    if (results->count == 0) {
        fprintf(stderr, "tssa-real: there is no such model: none is run\n");
        return false;
    }
    results->outcomes = xcalloc(results->count, sizeof *results->outcomes);
    results->reports = xcalloc(results->count, sizeof *results->reports);
    return true;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.jobs = 1};
    const struct argp argp = {
        options,
        parse,
        "DIR",
        "Runs published models on recorded data: DIR/NAME/model.onnx, meta.json and "
        "data sets, and DIR/micro-loops/NAME.onnx without data.",
        NULL,
        NULL,
        NULL};
    struct catalog catalog;
    struct results results = {0};
    int status = 2;
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    if (access(arguments.folder, R_OK | X_OK) != 0) {
        fprintf(stderr, "tssa-real: %s: %s\n", arguments.folder, strerror(errno));
        return status;
    }
    if (catalog_read(arguments.folder, &catalog) && choose(&catalog, arguments.filter, &results)) {
        const struct workers_options workers = {.workers = arguments.jobs,
                                                .timeout_seconds = 120,
                                                .job = run_job,
                                                .done = finish_job,
                                                .context = &results};
        int bad = workers_run(&workers, results.count);
        if (bad >= 0)
            status = print_results(&results, bad);
        else
            perror("cannot start a process");
    }
    free(results.cases);
    free(results.outcomes);
    free(results.reports);
    catalog_free(&catalog);
    return status;
}
