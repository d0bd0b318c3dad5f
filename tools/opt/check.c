/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/opt/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "tools/common/check.h"
#include "tools/common/fail.h"
#include "tools/common/interrupt.h"
#include "tools/common/progress.h"

/* ---- What the graph says --------------------------------------------------------------------- */

/* The model, as its file would be, is well-formed and takes and gives what it did. */
static tssa_status *check_structure(struct rewrite *rewrite)
{
    progress("checking the rewritten model");
    TRY(status_prefix(tssa_model_verify(rewrite->model), "the rewritten graph"));
    tssa_status *status = rewrite_reload(rewrite);
    if (tssa_status_code(status) == TSSA_LIMIT) {
        complain("note: too large to be written to memory: the graph is checked, not its file");
        tssa_status_free(status);
        return check_signatures(rewrite->original, rewrite->model);
    }
    TRY(status);
    return check_signatures(rewrite->original, rewrite->written);
}

/* ---- What tssa's own sessions say ------------------------------------------------------------ */

static tssa_model *rewritten_of(const struct rewrite *rewrite)
{
    return rewrite->written ? rewrite->written : rewrite->model;
}

/* False when a session cannot be made of one of the models; result->why says it. */
static tssa_status *check_sessions(struct rewrite *rewrite, const struct check_options *options,
                                   bool *runs, struct check_result *result)
{
    struct session_engine engine;
    tssa_status *status =
        session_engine_init(&engine, rewrite->context, rewrite->original, rewritten_of(rewrite));
    *runs = tssa_status_code(status) != TSSA_UNSUPPORTED;
    if (!*runs) {
        result->verdict = CHECK_NOTHING;
        snprintf(result->why, sizeof result->why, "%s", tssa_status_message(status));
        tssa_status_free(status);
        return NULL;
    }
    TRY(status);
    return check_models(rewrite->context, rewrite->original, &engine.engine, options, result);
}

static void add_reason(struct check_result *result, const char *why)
{
    char first[sizeof result->why / 2];
    snprintf(first, sizeof first, "%.*s", (int)sizeof first - 1, result->why);
    snprintf(result->why, sizeof result->why, "%s; %.*s", first, (int)sizeof first - 4, why);
}

/* Takes what cannot be run out of both. False when nothing is left that can be compared. */
static bool cut_models(struct rewrite *rewrite, size_t *count)
{
    size_t counts[2] = {0};
    if (!rewrite->written)
        return false; /* what is to be written must stay whole */
    tssa_status *status = tssa_model_cut_unsupported(rewrite->original, &counts[0]);
    if (!status)
        status = tssa_model_cut_unsupported(rewrite->written, &counts[1]);
    if (!status)
        status = check_signatures(rewrite->original, rewrite->written);
    bool good = !status && counts[0] == counts[1];
    tssa_status_free(status);
    *count = counts[0];
    return good;
}

/* The models without what cannot be run. A difference there is one of the whole; that there is none
 * proves nothing of the whole, which stays unchecked. */
static tssa_status *check_parts(struct rewrite *rewrite, const struct check_options *options,
                                struct check_result *result)
{
    struct check_result part = {.verdict = CHECK_NOTHING};
    struct check_options parts = *options;
    size_t count;
    bool runs = cut_models(rewrite, &count);
    parts.path = "-"; /* recorded inputs are those of the whole */
    if (runs && !options->quiet)
        fprintf(options->out, "without the %zu operator%s that cannot be run:\n", count,
                count == 1 ? "" : "s");
    if (runs)
        TRY(check_sessions(rewrite, &parts, &runs, &part));
    if (part.verdict == CHECK_DIFFERS)
        *result = part;
    else if (part.verdict == CHECK_SAME)
        add_reason(result, "what is left without such operators gives the same");
    else
        add_reason(result,
                   "what is left without such operators cannot be run, either: its graph and "
                   "signature were checked");
    return NULL;
}

/* ---- What another runtime says --------------------------------------------------------------- */

/* The file of the original as it is, where there is one that still says what is to be checked. */
static tssa_status *place_original(const struct rewrite *rewrite, struct command_engine *engine)
{
    const char *model = rewrite->arguments.model, *dot = strrchr(model, '.');
    const struct common_arguments *common = &rewrite->arguments.common;
    bool text = dot && strcmp(dot, ".tir") == 0, piped = strcmp(model, "-") == 0;
    bool changed = common->source.shape_count || common->outputs;
    if (!piped && !text && !changed) {
        engine->paths[CHECK_OLD] = realpath(model, NULL);
        return engine->paths[CHECK_OLD] ? NULL : ERROR(TSSA_IO, "%s: %s", model, strerror(errno));
    }
    if (asprintf(&engine->paths[CHECK_OLD], "%s/original.onnx", engine->folder) < 0) {
        engine->paths[CHECK_OLD] = NULL;
        return status_out_of_memory();
    }
    if (piped && !changed)
        return file_write(&allocator_default, engine->paths[CHECK_OLD], rewrite->bytes.data,
                          rewrite->bytes.size);
    return tssa_model_save_file(rewrite->original, engine->paths[CHECK_OLD], NULL);
}

static tssa_status *place_models(const struct rewrite *rewrite, struct command_engine *engine)
{
    TRY(place_original(rewrite, engine));
    if (asprintf(&engine->paths[CHECK_NEW], "%s/rewritten.onnx", engine->folder) < 0) {
        engine->paths[CHECK_NEW] = NULL;
        return status_out_of_memory();
    }
    return rewrite_save(rewrite, engine->paths[CHECK_NEW]);
}

/* An original that has no form in ONNX (a program in text that writes into views) cannot be checked
 * so. */
static tssa_status *refuse_original(tssa_status *status, struct check_result *result)
{
    if (tssa_status_code(status) != TSSA_UNSUPPORTED)
        return status;
    *result = (struct check_result){.verdict = CHECK_NOTHING};
    snprintf(result->why, sizeof result->why, "%s", tssa_status_message(status));
    tssa_status_free(status);
    return NULL;
}

/* Signals wait until the command is gone and its folder removed. */
static tssa_status *check_command(const struct rewrite *rewrite,
                                  const struct check_options *options, struct check_result *result)
{
    struct command_engine engine = {.folder = NULL};
    interrupt_defer();
    tssa_status *status = command_engine_init(&engine, rewrite->arguments.check_runtime,
                                              rewrite->context, rewrite->original);
    if (!status)
        status = place_models(rewrite, &engine);
    if (status)
        status = refuse_original(status, result);
    else
        status = check_models(rewrite->context, rewrite->original, &engine.engine, options, result);
    command_engine_free(&engine);
    interrupt_resume();
    return status_prefix(status, "--check-runtime");
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* Of all that was asked for: one difference is enough, and the other runtime has the last word on
 * what tssa cannot run. *deciding is the one to be told of. */
static tssa_status *check_all(struct rewrite *rewrite, const struct check_options *options,
                              struct check_result *deciding)
{
    struct check_result other = {.verdict = CHECK_NOTHING};
    bool runs;
    TRY(check_sessions(rewrite, options, &runs, deciding));
    if (rewrite->arguments.check_runtime && deciding->verdict != CHECK_DIFFERS) {
        TRY(check_command(rewrite, options, &other));
        if (runs || other.verdict != CHECK_NOTHING)
            *deciding = other;
        else
            add_reason(deciding, other.why);
    }
    return runs || deciding->verdict != CHECK_NOTHING ? NULL
                                                      : check_parts(rewrite, options, deciding);
}

static enum exit_code check_runs(struct rewrite *rewrite)
{
    const struct opt_arguments *arguments = &rewrite->arguments;
    const struct common_arguments *common = &arguments->common;
    const struct check_options options = {
        .path = arguments->model,
        .sets = arguments->check,
        .source = &common->source,
        .rule = {.rtol = common->rtol,
                 .atol = common->atol,
                 .exact_integers = true,
                 .zero_signs = true},
        .seconds = common->timeout ? common->timeout : CHECK_TIMEOUT,
        .quiet = opt_is_quiet(arguments),
        .out = arguments->remarks == REMARKS_JSON ? stderr : stdout};
    struct check_result result = {.verdict = CHECK_NOTHING};
    tssa_status *status = check_all(rewrite, &options, &result);
    progress_done();
    if (status)
        return fail(EXIT_RUN, status_prefix(status, "--check"));
    switch (result.verdict) {
    case CHECK_SAME:
        return EXIT_OK;
    case CHECK_DIFFERS:
        complain("the rewritten model does not do what %s does%s", arguments->model,
                 arguments->output ? "; nothing was written" : "");
        return EXIT_DIFFERS;
    case CHECK_NOTHING:
        break;
    }
    complain("not checked: %s%s%s", result.why, arguments->output ? "; unchecked, it goes to " : "",
             arguments->output ? arguments->output : "");
    return EXIT_UNCHECKED;
}

enum exit_code opt_check(struct rewrite *rewrite)
{
    const struct opt_arguments *arguments = &rewrite->arguments;
    if (!arguments->check && !arguments->verify_only)
        return EXIT_OK;
    tssa_status *status = check_structure(rewrite);
    if (status)
        return fail(EXIT_RUN, status);
    if (arguments->verify_only && !opt_is_quiet(arguments))
        printf("%s: well-formed, after every pass and written and read again, too\n",
               arguments->model);
    return arguments->check ? check_runs(rewrite) : EXIT_OK;
}
