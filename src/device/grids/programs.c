/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/programs.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/vec.h"
#include "device/grids/grids.h"
#include "device/grids/launcher.h"

#define TEXT_LAUNCHES 16 /* in one text, at most */

struct grids_code {
    struct grids_code *next; /* the one that was added before */
    uint64_t hash;
    uint32_t n;
    struct gir_kernel **kernels; /* copies */
    _Atomic(void *) function;    /* NULL: it waits to be compiled */
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
    /* Functions of each text, which programs have; NULL: it waits to be compiled. */
    _Atomic(void *) texts[GRIDS_TEXT_COUNT][TSSA_DTYPE_COUNT];
    bool wanted[GRIDS_TEXT_COUNT][TSSA_DTYPE_COUNT];
};

/* ---- All of a context ------------------------------------------------------------------------ */

static struct programs *create(const tssa_allocator *allocator)
{
    struct programs *all = allocator_calloc(allocator, 1, sizeof *all);
    if (!all)
        return NULL;
    all->allocator = allocator;
    pthread_mutex_init(&all->lock, NULL);
    vec_init(&all->programs, allocator);
    vec_init(&all->notes, allocator);
    return all;
}

/* NULL: memory ran out. */
static struct programs *programs_of(struct device_context *context)
{
    struct programs *all = atomic_load(&context->compiled);
    if (all)
        return all;
    pthread_mutex_lock(&context->lock);
    all = atomic_load(&context->compiled);
    if (!all) {
        all = create(context->allocator);
        atomic_store(&context->compiled, all);
    }
    pthread_mutex_unlock(&context->lock);
    return all;
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
    bool same = code->hash == hash && code->n == grid->n;
    for (uint32_t i = 0; same && i < grid->n; i++) {
        const struct gir_kernel *kernel = grid->parts[i].kernel;
        same = code->kernels[i]->size == kernel->size &&
               memcmp(code->kernels[i], kernel, kernel->size) == 0;
    }
    return same;
}

/* NULL: memory ran out. */
static struct grids_code *copy_grid(const tssa_allocator *allocator, const struct gir_grid *grid)
{
    struct grids_code *code = allocator_calloc(allocator, 1, sizeof *code);
    if (!code)
        return NULL;
    code->n = grid->n;
    code->kernels = allocator_calloc(allocator, grid->n, sizeof *code->kernels);
    bool good = code->kernels != NULL;
    for (uint32_t i = 0; good && i < grid->n; i++) {
        const struct gir_kernel *kernel = grid->parts[i].kernel;
        code->kernels[i] = allocator_alloc(allocator, kernel->size);
        good = code->kernels[i] != NULL;
        if (good)
            memcpy(code->kernels[i], kernel, kernel->size);
    }
    if (good)
        return code;
    free_code(allocator, code);
    return NULL;
}

/* NULL: memory ran out. */
static struct grids_code *find(struct programs *all, const struct gir_grid *grid)
{
    const uint64_t hash = hash_of(grid);
    struct grids_code *code = all->codes;
    while (code && !is_same(code, grid, hash))
        code = code->next;
    if (code || !(code = copy_grid(all->allocator, grid)))
        return code;
    code->hash = hash;
    code->next = all->codes;
    all->codes = code;
    return code;
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

/* Those of a text: `first`, and as many behind it as wait and have room. */
struct batch {
    uint32_t n;
    struct grids_code *codes[TEXT_LAUNCHES];
};

static void add_waiting(struct batch *batch, struct grids_code *code)
{
    if (!atomic_load(&code->function) && batch->n < TEXT_LAUNCHES)
        batch->codes[batch->n++] = code;
}

static bool print(const struct batch *batch, enum clike_dialect dialect, struct text *text)
{
    dtype_mask types = 0;
    for (uint32_t i = 0; i < batch->n; i++)
        for (uint32_t k = 0; k < batch->codes[i]->n; k++)
            types |= clike_types(batch->codes[i]->kernels[k]);
    bool good = clike_print_prelude(dialect, types, text);
    for (uint32_t i = 0; good && i < batch->n; i++) {
        const struct grids_code *code = batch->codes[i];
        char name[16];
        snprintf(name, sizeof name, "k%u", (unsigned)i);
        good = clike_print_launch((const struct gir_kernel *const *)code->kernels, code->n, dialect,
                                  name, text);
    }
    return good && text_string(text);
}

/* Of a text with `n` functions, which are the program's. */
static tssa_status *build(struct device_context *context, struct programs *all, uint32_t n,
                          struct text *text, void ***functions)
{
    struct program program = {.n = n};
    if (!vec_reserve(&all->programs, 1))
        return status_out_of_memory();
    program.functions = allocator_calloc(all->allocator, n, sizeof *program.functions);
    TRY_ALLOC(program.functions);
    tssa_status *status = context->device->launcher->build(context, text_string(text), n,
                                                           program.functions, &program.handle);
    if (status) {
        allocator_free(all->allocator, program.functions);
        return status;
    }
    vec_push(&all->programs, program);
    *functions = program.functions;
    return NULL;
}

static tssa_status *build_batch(struct device_context *context, struct programs *all,
                                const struct batch *batch, struct text *text)
{
    void **functions;
    if (!print(batch, context->device->launcher->dialect, text))
        return status_out_of_memory();
    TRY(build(context, all, batch->n, text, &functions));
    for (uint32_t i = 0; i < batch->n; i++)
        atomic_store(&batch->codes[i]->function, functions[i]);
    return NULL;
}

static tssa_status *compile(struct device_context *context, struct programs *all,
                            struct grids_code *first)
{
    struct batch batch = {1, {first}};
    struct text text;
    for (struct grids_code *code = all->codes; code; code = code->next)
        if (code != first)
            add_waiting(&batch, code);
    text_init(&text, all->allocator);
    tssa_status *status = build_batch(context, all, &batch, &text);
    text_free(&text);
    return status;
}

tssa_status *grids_code_function(struct device_context *context, struct grids_code *code,
                                 void **function)
{
    struct programs *all = programs_of(context);
    TRY_ALLOC(all);
    *function = atomic_load(&code->function);
    if (*function)
        return NULL;
    pthread_mutex_lock(&all->lock);
    tssa_status *status = atomic_load(&code->function) ? NULL : compile(context, all, code);
    *function = atomic_load(&code->function);
    pthread_mutex_unlock(&all->lock);
    return status;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static tssa_status *compile_text(struct device_context *context, struct programs *all,
                                 enum grids_text id, tssa_dtype dtype)
{
    const struct launcher *launcher = context->device->launcher;
    void **functions;
    struct text text;
    text_init(&text, all->allocator);
    tssa_status *status = grids_print_text(launcher->dialect, launcher->height, id, dtype, &text)
                              ? build(context, all, grids_text_functions(id), &text, &functions)
                              : status_out_of_memory();
    if (!status)
        atomic_store(&all->texts[id][dtype], functions);
    text_free(&text);
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
        status = compile(context, all, code);
    if (!status)
        status = compile_wanted(context, all);
    pthread_mutex_unlock(&all->lock);
    return status;
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
