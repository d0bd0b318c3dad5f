/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tssa-opt: optimizes an ONNX model, proves that it still does the same, and writes it as standard
 * ONNX (docs/tools.md). Without an output it only looks.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "tools/common/fail.h"
#include "tools/common/inspect.h"
#include "tools/common/interrupt.h"
#include "tools/common/place.h"
#include "tools/common/progress.h"
#include "tools/opt/check.h"
#include "tools/opt/hazards.h"
#include "tools/opt/inspect.h"
#include "tools/opt/json.h"
#include "tools/opt/passes.h"
#include "tools/opt/rewrite.h"

static bool is_look(const struct opt_arguments *arguments)
{
    return !arguments->output && !arguments->verify_only && !arguments->common.quiet;
}

/* ---- Before ---------------------------------------------------------------------------------- */

/* Nothing is left out of the new file without a word. */
static enum exit_code note_dropped(const tssa_model *model)
{
    tssa_model_info info;
    tssa_status *status = tssa_model_get_info(model, &info);
    if (status)
        return fail(EXIT_MODEL, status);
    if (info.dropped[0])
        complain("note: this is not kept: %s", info.dropped);
    return EXIT_OK;
}

static enum exit_code open_model(struct rewrite *rewrite)
{
    const struct opt_arguments *arguments = &rewrite->arguments;
    progress("loading %s", arguments->model);
    tssa_status *status =
        model_bytes_read(arguments->model, arguments->common.memory_limit, &rewrite->bytes);
    const tssa_context_options options = {
        .struct_size = sizeof options,
        /* Without a check nothing is run on more than one, and no plugin is missed. */
        .threads = arguments->check ? arguments->common.threads : 1,
        .memory_limit = model_bytes_left(&rewrite->bytes, arguments->common.memory_limit),
        .log = log_note};
    if (!status)
        status = tssa_context_create(&options, &rewrite->context);
    if (!status)
        status = rewrite_load(rewrite, arguments->functions, &rewrite->model);
    if (!status && (is_look(arguments) || arguments->check || arguments->verify_only))
        status = rewrite_load(rewrite, arguments->functions, &rewrite->original);
    if (status)
        return fail(tssa_status_code(status) == TSSA_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_MODEL,
                    status);
    progress_done();
    return note_dropped(rewrite->model);
}

/* ---- Telling --------------------------------------------------------------------------------- */

static tssa_status *print_report(struct rewrite *rewrite)
{
    const struct opt_arguments *arguments = &rewrite->arguments;
    if (arguments->remarks == REMARKS_JSON)
        return json_print(rewrite);
    if (is_look(arguments)) {
        TRY(inspect_signature(rewrite->original));
        TRY(inspect_functions(rewrite->original));
        TRY(inspect_control_flow(rewrite->original, rewrite->model, &rewrite->remarks));
    }
    if (!arguments->common.quiet && !arguments->verify_only)
        TRY(op_table_print(&rewrite->before, &rewrite->after));
    if (arguments->remarks)
        remarks_print(&rewrite->remarks);
    if (arguments->stats)
        stats_print(&rewrite->stats, rewrite->seconds, tssa_context_memory_peak(rewrite->context));
    return NULL;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static enum exit_code save(const struct rewrite *rewrite)
{
    const struct opt_arguments *arguments = &rewrite->arguments;
    struct stat about;
    if (!arguments->output)
        return EXIT_OK;
    progress("writing %s", arguments->output);
    /* A pipe may have no reader, and is not replaced in one step: nothing is gained by waiting. */
    bool direct = stat(arguments->output, &about) == 0 && !S_ISREG(about.st_mode);
    if (!direct)
        interrupt_defer();
    tssa_status *status = rewrite_save(rewrite, arguments->output);
    if (!direct)
        interrupt_resume();
    progress_done();
    if (status)
        return fail(EXIT_RUN, status);
    if (!opt_is_quiet(arguments) && stat(arguments->output, &about) == 0)
        printf("wrote %s, %lld bytes\n", arguments->output, (long long)about.st_size);
    return EXIT_OK;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static enum exit_code run(struct rewrite *rewrite)
{
    enum exit_code code = place_check_file(rewrite->arguments.output);
    if (code == EXIT_OK)
        code = place_check_folder(rewrite->arguments.dump_dir);
    if (code == EXIT_OK)
        code = open_model(rewrite);
    if (code != EXIT_OK)
        return code;
    progress("optimizing %s", rewrite->arguments.model);
    tssa_status *status = rewrite_optimize(rewrite);
    progress_done();
    if (!status)
        status = print_report(rewrite);
    if (status)
        return fail(EXIT_RUN, status_prefix(status, "%s", rewrite->arguments.model));
    code = opt_check(rewrite);
    if (code != EXIT_OK && code != EXIT_UNCHECKED)
        return code;
    enum exit_code saved = save(rewrite);
    return saved == EXIT_OK ? code : saved;
}

static enum exit_code list(const struct opt_arguments *arguments)
{
    tssa_status *status =
        arguments->listing ? passes_print(arguments->listing) : hazards_print(arguments->hazards);
    return status ? fail(EXIT_RUN, status) : EXIT_OK;
}

int main(int argc, char **argv)
{
    struct rewrite rewrite = {.context = NULL};
    enum exit_code code = EXIT_USAGE;
    signal(SIGXFSZ, SIG_IGN);           /* a file that may not grow is an error as any other */
    setenv("OMP_PROC_BIND", "true", 0); /* as tssa-run does, for --check */
    if (opt_arguments_parse(argc, argv, &rewrite.arguments)) {
        progress_start("tssa-opt");
        bool lists = rewrite.arguments.listing || rewrite.arguments.hazards;
        code = lists ? list(&rewrite.arguments) : run(&rewrite);
        progress_stop();
    }
    rewrite_free(&rewrite);
    return end_output(code);
}
