/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/programs.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/vec.h"
#include "device/grids/grids.h"
#include "device/grids/stored.h"

struct grids_code {
    struct grids_code *next; /* the one that was added before */
    uint64_t hash;
    uint32_t n;
    struct gir_kernel **kernels; /* copies */
    enum clike_width width;
    _Atomic(struct grids_code *) wide; /* of a narrow one, the same; NULL: no call wanted it */
    _Atomic(void *) function;          /* NULL: it waits to be compiled */
    bool looked, is_stored;            /* for it on disk; it is there: where */
    struct stored_place place;
};

struct program {
    void *handle;
    uint32_t n;
    void **functions;
};

/* device_context.compiled. */
struct programs {
    const tssa_allocator *allocator;
    pthread_mutex_t lock; /* of all of it */
    struct grids_code *codes;
    VEC(struct program) programs;
    VEC(char *) notes;
    struct stored stored;
    struct device_compiled made;
    /* Functions of each text, which programs have; NULL: it waits to be compiled. */
    _Atomic(void *) texts[GRIDS_TEXT_COUNT][TSSA_DTYPE_COUNT];
    bool wanted[GRIDS_TEXT_COUNT][TSSA_DTYPE_COUNT];
};

/* ---- All of a context ------------------------------------------------------------------------ */

static void note_problem(struct device_context *context, const struct programs *all)
{
    if (all->stored.problem[0])
        atomic_store(&context->keeps_not, true);
}

static void *create(struct device_context *context)
{
    const tssa_allocator *allocator = context->allocator;
    struct programs *all = allocator_calloc(allocator, 1, sizeof *all);
    if (!all)
        return NULL;
    all->allocator = allocator;
    pthread_mutex_init(&all->lock, NULL);
    vec_init(&all->programs, allocator);
    vec_init(&all->notes, allocator);
    stored_open(&all->stored, context);
    note_problem(context, all);
    return all;
}

/* NULL: memory ran out. */
static struct programs *programs_of(struct device_context *context)
{
    return device_context_once(context, &context->compiled, create);
}

static void free_code(const tssa_allocator *allocator, struct grids_code *code)
{
    for (uint32_t i = 0; code->kernels && i < code->n; i++)
        allocator_free(allocator, code->kernels[i]);
    allocator_free(allocator, code->kernels);
    allocator_free(allocator, code);
}

void grids_close(struct device_context *context)
{
    struct programs *all = atomic_load(&context->compiled);
    if (!all)
        return;
    for (size_t i = 0; i < all->programs.count; i++) {
        const struct program *program = &all->programs.data[i];
        context->device->launcher->release(context, program->handle, program->n,
                                           program->functions);
        allocator_free(all->allocator, program->functions);
    }
    for (struct grids_code *code = all->codes, *next; code; code = next) {
        next = code->next;
        free_code(all->allocator, code);
    }
    for (size_t i = 0; i < all->notes.count; i++)
        allocator_free(all->allocator, all->notes.data[i]);
    vec_free(&all->notes);
    vec_free(&all->programs);
    stored_close(&all->stored);
    pthread_mutex_destroy(&all->lock);
    allocator_free(all->allocator, all);
    atomic_store(&context->compiled, NULL);
}

/* ---- Launches -------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct gir_grid *grid)
{
    uint64_t hash = grid->n;
    for (uint32_t i = 0; i < grid->n; i++)
        hash = hash_bytes(grid->parts[i].kernel, grid->parts[i].kernel->size, hash);
    return hash;
}

static bool is_same(const struct grids_code *code, const struct gir_grid *grid, uint64_t hash)
{
    bool same = code->hash == hash && code->n == grid->n && code->width == CLIKE_NARROW;
    for (uint32_t i = 0; same && i < grid->n; i++) {
        const struct gir_kernel *kernel = grid->parts[i].kernel;
        same = code->kernels[i]->size == kernel->size &&
               memcmp(code->kernels[i], kernel, kernel->size) == 0;
    }
    return same;
}

/* The first of all, of copies. NULL: memory ran out. */
static struct grids_code *add_code(struct programs *all, const struct gir_kernel *const *kernels,
                                   uint32_t n, enum clike_width width)
{
    struct grids_code *code = allocator_calloc(all->allocator, 1, sizeof *code);
    if (!code)
        return NULL;
    code->n = n;
    code->width = width;
    code->kernels = allocator_calloc(all->allocator, n, sizeof *code->kernels);
    bool good = code->kernels != NULL;
    for (uint32_t i = 0; good && i < n; i++) {
        code->kernels[i] = allocator_alloc(all->allocator, kernels[i]->size);
        good = code->kernels[i] != NULL;
        if (good)
            memcpy(code->kernels[i], kernels[i], kernels[i]->size);
    }
    if (!good) {
        free_code(all->allocator, code);
        return NULL;
    }
    code->next = all->codes;
    all->codes = code;
    return code;
}

/* NULL: memory ran out. */
static struct grids_code *find(struct programs *all, const struct gir_grid *grid)
{
    const struct gir_kernel *kernels[GIR_GRID_MAX_PARTS];
    const uint64_t hash = hash_of(grid);
    struct grids_code *code = all->codes;
    while (code && !is_same(code, grid, hash))
        code = code->next;
    if (code)
        return code;
    for (uint32_t i = 0; i < grid->n; i++)
        kernels[i] = grid->parts[i].kernel;
    code = add_code(all, kernels, grid->n, CLIKE_NARROW);
    if (code)
        code->hash = hash;
    return code;
}

/* Of a narrow one. NULL: memory ran out. */
static struct grids_code *find_wide(struct programs *all, struct grids_code *code)
{
    struct grids_code *wide = atomic_load(&code->wide);
    if (!wide)
        wide = add_code(all, (const struct gir_kernel *const *)code->kernels, code->n, CLIKE_WIDE);
    atomic_store(&code->wide, wide);
    return wide;
}

tssa_status *grids_code_find(struct device_context *context, const struct gir_grid *grid,
                             struct grids_code **code)
{
    struct programs *all = programs_of(context);
    TRY_ALLOC(all);
    pthread_mutex_lock(&all->lock);
    *code = find(all, grid);
    pthread_mutex_unlock(&all->lock);
    return *code ? NULL : status_out_of_memory();
}

/* ---- Programs -------------------------------------------------------------------------------- */

static tssa_status *begin(struct programs *all, uint32_t n, struct program *program)
{
    *program = (struct program){.n = n};
    if (!vec_reserve(&all->programs, 1))
        return status_out_of_memory();
    program->functions = allocator_calloc(all->allocator, n, sizeof *program->functions);
    return program->functions ? NULL : status_out_of_memory();
}

/* It is one of them, unless it failed. */
static tssa_status *finish(struct programs *all, const struct program *program, tssa_status *status)
{
    if (status)
        allocator_free(all->allocator, program->functions);
    else
        vec_push(&all->programs, *program);
    return status;
}

/* Of a text with `n` functions, which are the program's; and an image to be kept, which is freed.
 */
static tssa_status *build(struct device_context *context, struct programs *all, uint32_t n,
                          struct text *text, void ***functions, struct launcher_image *image)
{
    struct program program;
    TRY(begin(all, n, &program));
    *image = (struct launcher_image){.data = NULL};
    tssa_status *status =
        context->device->launcher->build(context, text_string(text), n, program.functions,
                                         &program.handle, context->cache ? image : NULL);
    TRY(finish(all, &program, status));
    *functions = program.functions;
    all->made.kernels += n;
    return NULL;
}

/* Of what was kept. NULL: the device does not take it. */
static void **load(struct device_context *context, struct programs *all, uint32_t n,
                   const void *image, size_t size)
{
    struct program program;
    tssa_status *status = begin(all, n, &program);
    if (!status)
        status = finish(all, &program,
                        context->device->launcher->load(context, image, size, n, program.functions,
                                                        &program.handle));
    const bool loaded = status == NULL;
    tssa_status_free(status);
    return loaded ? program.functions : NULL;
}

/* ---- Launches on disk ------------------------------------------------------------------------ */

static struct stored_launch launch_of(const struct grids_code *code)
{
    return (struct stored_launch){(const struct gir_kernel *const *)code->kernels, code->n,
                                  code->width};
}

/* Looks once. */
static bool is_stored(const struct programs *all, struct grids_code *code)
{
    const struct stored_launch launch = launch_of(code);
    if (!code->looked)
        code->is_stored = stored_find(&all->stored, &launch, &code->place);
    code->looked = true;
    return code->is_stored;
}

static bool is_in(struct programs *all, struct grids_code *code, const uint64_t group[2])
{
    return !atomic_load(&code->function) && is_stored(all, code) &&
           memcmp(code->place.group, group, sizeof code->place.group) == 0;
}

/* All launches that wait for the group get its functions, or else are not on disk. */
static void take_group(struct programs *all, const struct stored_group *group, void **functions,
                       const uint64_t key[2])
{
    for (struct grids_code *code = all->codes; code; code = code->next) {
        const struct stored_launch launch = launch_of(code);
        if (!is_in(all, code, key))
            continue;
        code->is_stored = functions && stored_has(&all->stored, group, code->place.index, &launch);
        if (!code->is_stored)
            continue;
        atomic_store(&code->function, functions[code->place.index]);
        all->made.kernels++;
        all->made.cached++;
    }
}

/* With all that lie beside it. */
static void load_group(struct device_context *context, struct programs *all,
                       const struct grids_code *code)
{
    const uint64_t key[2] = {code->place.group[0], code->place.group[1]};
    struct stored_group group = stored_read(&all->stored, key);
    void **functions =
        group.bytes ? load(context, all, group.n, group.image, group.image_size) : NULL;
    take_group(all, &group, functions, key);
    stored_release(&all->stored, &group);
}

/* ---- Launches that are compiled -------------------------------------------------------------- */

/* Those of a text: `first`, and as many behind it as wait, are not on disk, and have room. */
struct batch {
    uint32_t n;
    struct grids_code *codes[STORED_LAUNCHES];
    struct stored_launch launches[STORED_LAUNCHES];
};

static void add(struct batch *batch, struct grids_code *code)
{
    batch->launches[batch->n] = launch_of(code);
    batch->codes[batch->n++] = code;
}

static void add_waiting(struct programs *all, struct batch *batch, struct grids_code *code)
{
    if (batch->n < STORED_LAUNCHES && !atomic_load(&code->function) && !is_stored(all, code))
        add(batch, code);
}

static tssa_status *build_batch(struct device_context *context, struct programs *all,
                                const struct batch *batch, struct stored_text *text)
{
    struct launcher_image image;
    void **functions;
    if (!stored_print(context->device->launcher->dialect, batch->launches, batch->n, text))
        return status_out_of_memory();
    TRY(build(context, all, batch->n, &text->text, &functions, &image));
    for (uint32_t i = 0; i < batch->n; i++)
        atomic_store(&batch->codes[i]->function, functions[i]);
    stored_write(&all->stored, text, batch->launches, &image);
    allocator_free(all->allocator, image.data);
    return NULL;
}

static tssa_status *compile(struct device_context *context, struct programs *all,
                            struct grids_code *first)
{
    struct batch batch = {.n = 0};
    struct stored_text text;
    add(&batch, first);
    for (struct grids_code *code = all->codes; code; code = code->next)
        if (code != first)
            add_waiting(all, &batch, code);
    text_init(&text.text, all->allocator);
    tssa_status *status = build_batch(context, all, &batch, &text);
    text_free(&text.text);
    return status;
}

/* From disk, or compiled. */
static tssa_status *get(struct device_context *context, struct programs *all,
                        struct grids_code *code)
{
    const uint64_t start = clock_monotonic();
    if (is_stored(all, code))
        load_group(context, all, code);
    tssa_status *status = atomic_load(&code->function) ? NULL : compile(context, all, code);
    all->made.nanoseconds += clock_monotonic() - start;
    note_problem(context, all);
    return status;
}

/* By who has the lock. */
static tssa_status *get_function(struct device_context *context, struct programs *all,
                                 struct grids_code *code, enum clike_width width, void **function)
{
    if (width == CLIKE_WIDE)
        code = find_wide(all, code);
    TRY_ALLOC(code);
    if (!atomic_load(&code->function))
        TRY(get(context, all, code));
    *function = atomic_load(&code->function);
    return NULL;
}

tssa_status *grids_code_function(struct device_context *context, struct grids_code *code,
                                 enum clike_width width, void **function)
{
    struct programs *all = programs_of(context);
    TRY_ALLOC(all);
    const struct grids_code *own = width == CLIKE_WIDE ? atomic_load(&code->wide) : code;
    *function = own ? atomic_load(&own->function) : NULL;
    if (*function)
        return NULL;
    pthread_mutex_lock(&all->lock);
    tssa_status *status = get_function(context, all, code, width, function);
    pthread_mutex_unlock(&all->lock);
    return status;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static void **load_text(struct device_context *context, struct programs *all, uint32_t n,
                        struct text *text)
{
    size_t size = 0;
    void *image = stored_read_text(&all->stored, text, &size);
    void **functions = image ? load(context, all, n, image, size) : NULL;
    allocator_free(all->allocator, image);
    if (functions) {
        all->made.kernels += n;
        all->made.cached += n;
    }
    return functions;
}

static tssa_status *build_text(struct device_context *context, struct programs *all, uint32_t n,
                               struct text *text, void ***functions)
{
    struct launcher_image image;
    *functions = load_text(context, all, n, text);
    if (*functions)
        return NULL;
    TRY(build(context, all, n, text, functions, &image));
    stored_write_text(&all->stored, text, &image);
    allocator_free(all->allocator, image.data);
    return NULL;
}

static tssa_status *compile_text(struct device_context *context, struct programs *all,
                                 enum grids_text id, tssa_dtype dtype)
{
    const struct launcher *launcher = context->device->launcher;
    const uint64_t start = clock_monotonic();
    void **functions;
    struct text text;
    text_init(&text, all->allocator);
    tssa_status *status =
        grids_print_text(launcher->dialect, launcher->height, id, dtype, &text)
            ? build_text(context, all, grids_text_functions(id), &text, &functions)
            : status_out_of_memory();
    if (!status)
        atomic_store(&all->texts[id][dtype], functions);
    text_free(&text);
    all->made.nanoseconds += clock_monotonic() - start;
    note_problem(context, all);
    return status;
}

tssa_status *grids_text_function(struct device_context *context, enum grids_text id,
                                 tssa_dtype dtype, uint32_t index, void **function)
{
    struct programs *all = programs_of(context);
    tssa_status *status = NULL;
    TRY_ALLOC(all);
    void **functions = atomic_load(&all->texts[id][dtype]);
    if (!functions) {
        pthread_mutex_lock(&all->lock);
        if (!atomic_load(&all->texts[id][dtype]))
            status = compile_text(context, all, id, dtype);
        functions = atomic_load(&all->texts[id][dtype]);
        pthread_mutex_unlock(&all->lock);
    }
    *function = functions ? functions[index] : NULL;
    return status;
}

tssa_status *grids_text_want(struct device_context *context, enum grids_text id, tssa_dtype dtype)
{
    struct programs *all = programs_of(context);
    TRY_ALLOC(all);
    pthread_mutex_lock(&all->lock);
    all->wanted[id][dtype] = true;
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* ---- What waits ------------------------------------------------------------------------------ */

static struct grids_code *find_waiting(struct programs *all)
{
    struct grids_code *code = all->codes;
    while (code && atomic_load(&code->function))
        code = code->next;
    return code;
}

static tssa_status *compile_wanted(struct device_context *context, struct programs *all)
{
    for (int id = 0; id < GRIDS_TEXT_COUNT; id++)
        for (int dtype = 0; dtype < TSSA_DTYPE_COUNT; dtype++)
            if (all->wanted[id][dtype] && !atomic_load(&all->texts[id][dtype]))
                TRY(compile_text(context, all, (enum grids_text)id, (tssa_dtype)dtype));
    return NULL;
}

tssa_status *grids_compile_waiting(struct device_context *context)
{
    struct programs *all = programs_of(context);
    struct grids_code *code;
    tssa_status *status = NULL;
    TRY_ALLOC(all);
    pthread_mutex_lock(&all->lock);
    while (!status && (code = find_waiting(all)))
        status = get(context, all, code);
    if (!status)
        status = compile_wanted(context, all);
    pthread_mutex_unlock(&all->lock);
    return status;
}

void grids_compiled(struct device_context *context, struct device_compiled *made)
{
    struct programs *all = atomic_load(&context->compiled);
    *made = (struct device_compiled){.kernels = 0};
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    *made = all->made;
    memcpy(made->cache_problem, all->stored.problem, sizeof made->cache_problem);
    pthread_mutex_unlock(&all->lock);
}

/* ---- Notes ----------------------------------------------------------------------------------- */

static bool add_note(struct programs *all, const char *name, uint32_t *note)
{
    const size_t size = strlen(name) + 1;
    *note = GRIDS_NOTES - 1;
    if (all->notes.count >= GRIDS_NOTES - 1)
        return true;
    char *copy = allocator_alloc(all->allocator, size);
    if (!copy)
        return false;
    memcpy(copy, name, size);
    *note = (uint32_t)all->notes.count;
    if (vec_push(&all->notes, copy))
        return true;
    allocator_free(all->allocator, copy);
    return false;
}

tssa_status *grids_add_note(struct device_context *context, const char *name, uint32_t *note)
{
    struct programs *all = programs_of(context);
    TRY_ALLOC(all);
    pthread_mutex_lock(&all->lock);
    const bool added = add_note(all, name ? name : "", note);
    pthread_mutex_unlock(&all->lock);
    return added ? NULL : status_out_of_memory();
}

const char *grids_note_name(struct device_context *context, uint32_t note)
{
    struct programs *all = programs_of(context);
    const char *name = "";
    if (!all)
        return name;
    pthread_mutex_lock(&all->lock);
    if (note < all->notes.count)
        name = all->notes.data[note];
    pthread_mutex_unlock(&all->lock);
    return name;
}
