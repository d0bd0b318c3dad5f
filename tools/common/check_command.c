/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/handles.h"
#include "base/file.h"
#include "tools/common/check_engine.h"
#include "tools/common/command.h"
#include "tools/common/value_file.h"

/* With these a command says that it cannot run the model at all, as the tools of tssa do. */
static bool is_hopeless(int number)
{
    return number == EXIT_MODEL || number == EXIT_UNSUPPORTED;
}

/* ---- Folders --------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about;
    (void)kind;
    (void)place;
    remove(path);
    return 0; /* what cannot go stays, the rest goes */
}

static void remove_all(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static tssa_status *name_in(const struct command_engine *engine, const char *name, char **path)
{
    return asprintf(path, "%s/%s", engine->folder, name) < 0 ? status_out_of_memory() : NULL;
}

static tssa_status *make_folder(const char *path)
{
    if (mkdir(path, 0700) != 0)
        return ERROR(TSSA_IO, "cannot make the folder %s: %s", path, strerror(errno));
    return NULL;
}

/* ---- Inputs and outputs ---------------------------------------------------------------------- */

static tssa_status *write_inputs(const struct command_engine *engine, const char *folder,
                                 const struct run_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        tssa_value_info info;
        char *path = NULL;
        if (!inputs->values[i])
            continue;
        TRY(tssa_model_input(engine->model, i, &info));
        if (asprintf(&path, "%s/input_%zu.pb", folder, i) < 0)
            return status_out_of_memory();
        tssa_status *status =
            value_file_write(&engine->context->allocator, path, &inputs->values[i]->value, &info);
        free(path);
        TRY(status);
    }
    return NULL;
}

static tssa_status *read_output(const struct command_engine *engine, const char *folder,
                                size_t index, tssa_value **output)
{
    const tssa_allocator *allocator = &engine->context->allocator;
    tssa_value_info info;
    char *path = NULL;
    struct value value;
    TRY(tssa_model_output(engine->model, index, &info));
    if (asprintf(&path, "%s/output_%zu.pb", folder, index) < 0)
        return status_out_of_memory();
    const struct onnx_value_type type = value_file_type(&info);
    tssa_status *status =
        access(path, F_OK) == 0
            ? value_file_read(allocator, path, &type, &value)
            : ERROR(TSSA_RUNTIME, "it wrote no output_%zu.pb for the output %s", index, info.name);
    free(path);
    TRY(status);
    return value_handle(allocator, &value, output);
}

static tssa_status *read_outputs(const struct command_engine *engine, const char *folder,
                                 tssa_value **outputs)
{
    for (size_t i = 0; i < tssa_model_output_count(engine->model); i++)
        TRY(read_output(engine, folder, i, &outputs[i]));
    return NULL;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* The last line that is not empty, or nothing. */
static void read_last_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t capacity = 0;
    line[0] = '\0';
    while (file && getline(&text, &capacity, file) > 0) {
        text[strcspn(text, "\r\n")] = '\0';
        if (text[strspn(text, " \t")])
            snprintf(line, size, ": %s", text);
    }
    free(text);
    if (file)
        fclose(file);
}

static tssa_status *judge_end(const struct command_result *result, const char *log)
{
    char line[400];
    read_last_line(log, line, sizeof line);
    switch (result->end) {
    case COMMAND_TIMED_OUT:
    case COMMAND_INTERRUPTED:
        return ERROR(TSSA_LIMIT, "it did not end in time");
    case COMMAND_SIGNALLED:
        return ERROR(TSSA_RUNTIME, "ended by signal %d (%s)%s", result->number,
                     strsignal(result->number), line);
    case COMMAND_EXITED:
        break;
    }
    if (result->number == 0)
        return NULL;
    return ERROR(is_hopeless(result->number) ? TSSA_UNSUPPORTED : TSSA_RUNTIME, "status %d%s",
                 result->number, line);
}

/* A file that is not what it should be is the command's fault, not the disk's. */
static tssa_status *blame_command(const struct command_engine *engine, tssa_status *status)
{
    if (!status || tssa_status_code(status) == TSSA_OUT_OF_MEMORY)
        return status;
    tssa_status *blamed =
        ERROR(TSSA_RUNTIME, "%s: %s", engine->engine.name, tssa_status_message(status));
    tssa_status_free(status);
    return blamed;
}

/* `in` and `out` are there. */
static tssa_status *run_there(const struct command_engine *engine, enum check_side side, char *in,
                              char *out, const struct run_inputs *inputs, double seconds,
                              tssa_value **outputs, struct engine_cost *cost)
{
    struct command_result result;
    char *log = NULL;
    size_t count = 0;
    while (engine->words[count])
        count++;
    TRY(write_inputs(engine, in, inputs));
    char **argv = calloc(count + 4, sizeof *argv);
    TRY_ALLOC(argv);
    memcpy(argv, engine->words, count * sizeof *argv);
    argv[count] = engine->paths[side];
    argv[count + 1] = in;
    argv[count + 2] = out;
    tssa_status *status = name_in(engine, "log", &log);
    if (!status)
        status = command_run(argv, log, seconds, &result);
    if (!status) {
        *cost = (struct engine_cost){result.seconds, result.memory};
        status = status_prefix(judge_end(&result, log), "%s", engine->engine.name);
    }
    if (!status)
        status = blame_command(engine, read_outputs(engine, out, outputs));
    free(log);
    free(argv);
    return status;
}

static tssa_status *run(struct check_engine *base, enum check_side side,
                        const struct run_inputs *inputs, const struct engine_limits *limits,
                        tssa_value **outputs, struct engine_cost *cost)
{
    const struct command_engine *engine = (const struct command_engine *)base;
    char *in = NULL, *out = NULL;
    tssa_status *status = name_in(engine, "in", &in);
    if (!status)
        status = name_in(engine, "out", &out);
    if (!status)
        status = make_folder(in);
    if (!status)
        status = make_folder(out);
    if (!status)
        status = run_there(engine, side, in, out, inputs, limits->seconds, outputs, cost);
    if (in)
        remove_all(in);
    if (out)
        remove_all(out);
    free(in);
    free(out);
    return status;
}

tssa_status *command_engine_init(struct command_engine *engine, const char *text,
                                 tssa_context *context, const tssa_model *model)
{
    const char *where = getenv("TMPDIR");
    *engine = (struct command_engine){
        .engine = {.name = text, .run = run}, .context = context, .model = model};
    TRY(command_split(text, &engine->words));
    if (!where || !where[0])
        where = "/tmp";
    if (asprintf(&engine->folder, "%s/tssa-check-XXXXXX", where) < 0) {
        engine->folder = NULL;
        return status_out_of_memory();
    }
    if (!mkdtemp(engine->folder)) {
        int error = errno;
        free(engine->folder);
        engine->folder = NULL;
        return ERROR(TSSA_IO, "cannot make a temporary folder in %s: %s", where, strerror(error));
    }
    return NULL;
}

void command_engine_free(struct command_engine *engine)
{
    if (engine->folder)
        remove_all(engine->folder);
    free(engine->folder);
    free(engine->paths[CHECK_OLD]);
    free(engine->paths[CHECK_NEW]);
    command_free(engine->words);
    *engine = (struct command_engine){.words = NULL};
}
