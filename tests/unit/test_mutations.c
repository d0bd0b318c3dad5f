/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damaged models: seeded mutations of every committed model are loaded, optimized, compiled and
 * run. Whatever comes out, it must not crash, hang, leak or take much memory, and an error is one
 * line.
 *
 * TSSA_MUTATIONS sets how many there are per model: 10000 for the full test. TSSA_MUTATION=MODEL:N
 * runs number N of one model in this process, for a debugger. No cmocka: its signal handlers would
 * be in the way.
 */
/* ctest-timeout: 1200 */
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "api/handles.h"
#include "base/file.h"
#include "common/proto_mutate.h"
#include "common/test_alloc.h"
#include "common/workers.h"
#include "common/xmalloc.h"
#include "tools/common/random.h"
#include "tools/common/value_file.h"

#ifdef __SANITIZE_ADDRESS__
#define DEFAULT_MUTATIONS 100
#define ADDRESS_SPACE 0
#else
#define DEFAULT_MUTATIONS 1000
#define ADDRESS_SPACE ((size_t)2 << 30)
#endif
#define MEMORY_LIMIT ((size_t)256 << 20)
/*
 * What loading and compiling may take: folding constants has a budget, tables grow with the file.
 */
#define LOAD_MEMORY(size) ((64u << 20) + 100 * (size))
/* A loop whose trip count became large runs for as long: its run is ended, which is no failure. */
#define RUN_MILLISECONDS 200
#define EXIT_LONG_RUN 77
#define MAX_INPUTS 32

struct model {
    char *name;
    struct file_map file;
    size_t input_count;
    struct value inputs[MAX_INPUTS];
};

struct mutations {
    struct model *models;
    size_t model_count, per_model;
    size_t counts[4]; /* refused at loading, at making the session, at running; ran */
    size_t long_runs, failures;
};

enum stage { STAGE_LOAD, STAGE_SESSION, STAGE_RUN, STAGE_DONE, STAGE_BROKEN };

/* ---- Mutations ------------------------------------------------------------------------------- */

static size_t position(struct random *random, size_t size)
{
    return (size_t)(random_next(random) % size);
}

static size_t mutate_bytes(struct random *random, unsigned char *bytes, size_t size)
{
    static const unsigned char interesting[] = {0, 1, 2, 3, 0x7f, 0x80, 0xfe, 0xff};
    uint64_t kind = random_next(random) % 20;
    if (kind < 3)
        return position(random, size); /* cut off */
    if (kind < 5) {                    /* cut out */
        size_t at = position(random, size), length = position(random, size - at) % 64;
        memmove(bytes + at, bytes + at + length, size - at - length);
        return size - length;
    }
    size_t times = 1 + (size_t)(random_next(random) % 4);
    for (size_t i = 0; i < times; i++) {
        size_t at = position(random, size);
        if (kind < 13)
            bytes[at] ^= (unsigned char)(1u << (random_next(random) % 8));
        else if (kind < 16)
            bytes[at] = interesting[random_next(random) % sizeof interesting];
        else
            bytes[at] = (unsigned char)random_next(random);
    }
    return size;
}

/* Two of three are valid messages. */
static void *mutate(struct random *random, const struct model *model, size_t *size)
{
    struct arena arena;
    unsigned char *bytes;
    if (random_next(random) % 3 == 0) {
        bytes = xcalloc(model->file.size, 1);
        memcpy(bytes, model->file.data, model->file.size);
        *size = mutate_bytes(random, bytes, model->file.size);
        return xrealloc(bytes, *size); /* exact, so that a sanitizer sees a read behind the end */
    }
    arena_init(&arena, &allocator_default);
    const void *packed = proto_mutate(&arena, random, model->file.data, model->file.size, size);
    bytes = xcalloc(*size, 1);
    memcpy(bytes, packed, *size);
    arena_clear(&arena);
    return bytes;
}

/* ---- One mutated model ----------------------------------------------------------------------- */

static void give_up(int signal)
{
    (void)signal;
    _exit(EXIT_LONG_RUN);
}

static void guard_run(bool on)
{
    const struct itimerval timer = {.it_value = {.tv_usec = on ? RUN_MILLISECONDS * 1000 : 0}};
    const struct sigaction action = {.sa_handler = on ? give_up : SIG_DFL};
    sigaction(SIGVTALRM, &action, NULL);
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

static tssa_status *run_session(tssa_context *context, tssa_session *session,
                                const struct model *model, size_t output_count)
{
    tssa_value *inputs[MAX_INPUTS] = {NULL};
    tssa_value **outputs = xcalloc(output_count, sizeof *outputs);
    tssa_status *status = NULL;
    for (size_t i = 0; i < model->input_count && !status; i++) {
        struct value copy;
        value_copy(&copy, &model->inputs[i]);
        status = value_handle(&context->allocator, &copy, &inputs[i]);
    }
    guard_run(true);
    if (!status)
        status = tssa_session_run(session, model->input_count, inputs, output_count, outputs);
    guard_run(false);
    for (size_t i = 0; i < output_count; i++)
        tssa_value_free(outputs[i]);
    for (size_t i = 0; i < model->input_count; i++)
        tssa_value_free(inputs[i]);
    free(outputs);
    return status;
}

/* How far it came, and the status that stopped it. */
static enum stage go_far(tssa_context *context, const struct model *model, const void *bytes,
                         size_t size, tssa_status **status)
{
    tssa_model *loaded = NULL;
    tssa_session *session = NULL;
    enum stage stage = STAGE_LOAD;
    *status = tssa_model_load_memory(context, bytes, size, NULL, &loaded);
    if (!*status) {
        stage = STAGE_SESSION;
        *status = tssa_model_optimize(loaded, NULL);
    }
    if (!*status)
        *status = tssa_session_create(loaded, NULL, &session);
    if (!*status) {
        stage = STAGE_RUN;
        if (tssa_model_input_count(loaded) == model->input_count)
            *status = run_session(context, session, model, tssa_model_output_count(loaded));
    }
    tssa_session_free(session);
    tssa_model_free(loaded);
    return *status ? stage : STAGE_DONE;
}

static bool is_one_line(const char *message)
{
    return message[0] && !strpbrk(message, "\r\n") && strlen(message) < 2000;
}

static enum stage try_mutation(const struct model *model, size_t number, struct text *report)
{
    struct random random;
    struct test_alloc alloc;
    tssa_context *context;
    tssa_status *status = NULL;
    random_seed(&random, number, model->file.size);
    size_t size;
    void *bytes = mutate(&random, model, &size);
    test_alloc_init(&alloc);
    const tssa_context_options options = {.struct_size = sizeof options,
                                          .allocator = &alloc.allocator,
                                          .threads = 1,
                                          .memory_limit = MEMORY_LIMIT};
    enum stage stage = STAGE_BROKEN;
    if (tssa_context_create(&options, &context) == NULL) {
        stage = go_far(context, model, bytes, size, &status);
        size_t peak = tssa_context_memory_peak(context);
        tssa_context_free(context);
        if (stage <= STAGE_SESSION && peak > LOAD_MEMORY(model->file.size)) {
            text_printf(report, "loading took %zu bytes", peak);
            stage = STAGE_BROKEN;
        }
    }
    if (status &&
        (tssa_status_code(status) == TSSA_INTERNAL || !is_one_line(tssa_status_message(status)))) {
        text_printf(report, "%s", tssa_status_message(status));
        stage = STAGE_BROKEN;
    }
    if (alloc.live) {
        text_printf(report, "%ld allocations leaked", alloc.live);
        stage = STAGE_BROKEN;
    }
    tssa_status_free(status);
    free(bytes);
    return stage;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static int job(void *context, size_t index, struct text *report)
{
    const struct mutations *mutations = context;
    return (int)try_mutation(&mutations->models[index / mutations->per_model],
                             index % mutations->per_model, report);
}

static void done(void *context, size_t index, int result, const char *report, size_t size,
                 double seconds)
{
    struct mutations *mutations = context;
    (void)size;
    (void)seconds;
    if (result == WORKER_EXITED(EXIT_LONG_RUN)) {
        mutations->long_runs++;
    } else if (result < 0 || result == STAGE_BROKEN) {
        mutations->failures++;
        printf("TSSA_MUTATION=%s:%zu %s\n", mutations->models[index / mutations->per_model].name,
               index % mutations->per_model, report);
    } else {
        mutations->counts[result]++;
    }
}

static void check(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s\n", what);
        exit(2);
    }
}

static void read_model(const char *path, struct model *model)
{
    const struct onnx_value_type tensor = {.kind = TSSA_KIND_TENSOR};
    char *data = xprintf("%.*s/test_data_set_0", (int)(strrchr(path, '/') - path), path);
    bool found = true;
    check(file_map_open(path, &model->file) == NULL, path);
    model->name = xprintf("%.*s", (int)(strrchr(path, '/') - path), path);
    memmove(model->name, strrchr(model->name, '/') + 1, strlen(strrchr(model->name, '/')));
    for (model->input_count = 0; found && model->input_count < MAX_INPUTS;) {
        size_t i = model->input_count;
        tssa_status *status =
            data_set_read(&allocator_default, data, "input", i, &tensor, &found, &model->inputs[i]);
        found &= !status; /* sequences do not read as tensors: such a model is only loaded */
        tssa_status_free(status);
        model->input_count += found;
    }
    free(data);
}

static void release_models(struct mutations *mutations)
{
    for (size_t i = 0; i < mutations->model_count; i++) {
        struct model *model = &mutations->models[i];
        for (size_t k = 0; k < model->input_count; k++)
            value_release(&model->inputs[k]);
        file_map_close(&model->file);
        free(model->name);
    }
    free(mutations->models);
}

static void read_models(struct mutations *mutations)
{
    glob_t paths;
    check(glob(TSSA_SOURCE_DIR "/models/*/model.onnx", 0, NULL, &paths) == 0, "no models");
    mutations->models = xcalloc(paths.gl_pathc, sizeof *mutations->models);
    for (size_t i = 0; i < paths.gl_pathc; i++)
        read_model(paths.gl_pathv[i], &mutations->models[mutations->model_count++]);
    globfree(&paths);
}

/* False when it goes wrong in a way that does not end the process. */
static bool run_one(const struct mutations *mutations, const char *which)
{
    const char *colon = strchr(which, ':');
    struct text report;
    bool good = true;
    check(colon != NULL, "TSSA_MUTATION is MODEL:N");
    text_init(&report, &allocator_default);
    for (size_t i = 0; i < mutations->model_count; i++) {
        const struct model *model = &mutations->models[i];
        size_t length = (size_t)(colon - which);
        if (strncmp(model->name, which, length) == 0 && model->name[length] == '\0')
            good &= try_mutation(model, (size_t)atol(colon + 1), &report) != STAGE_BROKEN;
    }
    text_puts(&report, "\n");
    fwrite(report.data, 1, report.size, stderr);
    text_free(&report);
    return good;
}

static bool run_all(struct mutations *mutations)
{
    const struct workers_options options = {.workers = (int)sysconf(_SC_NPROCESSORS_ONLN),
                                            .timeout_seconds = 20,
                                            .address_space = ADDRESS_SPACE,
                                            .job = job,
                                            .done = done,
                                            .context = mutations};
    int bad = workers_run(&options, mutations->model_count * mutations->per_model);
    printf("%zu models: %zu mutations refused at loading, %zu at making a session, %zu at running, "
           "%zu ran, %zu ran too long\n",
           mutations->model_count, mutations->counts[STAGE_LOAD], mutations->counts[STAGE_SESSION],
           mutations->counts[STAGE_RUN], mutations->counts[STAGE_DONE], mutations->long_runs);
    return bad == 0 && mutations->failures == 0;
}

int main(void)
{
    const char *wanted = getenv("TSSA_MUTATIONS"), *one = getenv("TSSA_MUTATION");
    struct mutations mutations = {.per_model = wanted ? (size_t)atol(wanted) : DEFAULT_MUTATIONS};
    check(mutations.per_model > 0, "TSSA_MUTATIONS is no number");
    read_models(&mutations);
    bool good = one ? run_one(&mutations, one) : run_all(&mutations);
    release_models(&mutations);
    return good ? 0 : 1;
}
