/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs read from files come first, because their dims fix the symbols that the random inputs
 * share with them.
 */
#include "tools/common/inputs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/handles.h"
#include "tools/common/npy.h"
#include "tools/common/npz.h"
#include "tools/common/random.h"
#include "tools/common/value_file.h"

#define RANDOM_SEQUENCE_LENGTH 3
#define GUESS_SMALL 8 /* larger sizes are guessed for the last two dims only: of an image, say */

/* The size that a symbolic dim was found to have. */
struct binding {
    const char *symbol;
    int64_t size;
};

struct maker {
    tssa_context *context;
    const tssa_allocator *allocator;
    struct input_source *source;
    struct binding *bindings;
    size_t binding_count;
    struct text guesses;
    uint64_t guessed; /* how many dims */
};

/* ---- Symbols --------------------------------------------------------------------------------- */

static const struct binding *find_binding(const struct maker *maker, const char *symbol)
{
    for (size_t i = 0; i < maker->binding_count; i++) {
        if (strcmp(maker->bindings[i].symbol, symbol) == 0)
            return &maker->bindings[i];
    }
    return NULL;
}

/* The first one wins. */
static tssa_status *bind(struct maker *maker, const char *symbol, int64_t size)
{
    if (find_binding(maker, symbol))
        return NULL;
    struct binding *more = reallocarray(maker->bindings, maker->binding_count + 1, sizeof *more);
    TRY_ALLOC(more);
    maker->bindings = more;
    more[maker->binding_count++] = (struct binding){symbol, size};
    return NULL;
}

static tssa_status *bind_dims(struct maker *maker, const tssa_value_info *info, int rank,
                              const int64_t *dims)
{
    for (int i = 0; i < info->rank && i < rank; i++) {
        if (info->symbols[i])
            TRY(bind(maker, info->symbols[i], dims[i]));
    }
    return NULL;
}

/* ---- Inputs from files ----------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* The file part of NAME=FILE when NAME is the input's. */
static const char *file_of(const char *text, const char *name)
{
    size_t size = strlen(name);
    return strncmp(text, name, size) == 0 && text[size] == '=' ? text + size + 1 : NULL;
}

/* Of an array in an archive, unless --memory-limit says otherwise. */
#define ARCHIVE_MOST ((size_t)2 << 30)

static tssa_status *read_archive(const struct maker *maker, const char *path,
                                 const tssa_value_info *info, bool *found, struct value *value)
{
    size_t limit = maker->source->memory_limit;
    TRY(npz_read(maker->allocator, path, info->name, limit ? limit : ARCHIVE_MOST, found, value));
    if (*found)
        npy_reinterpret(&value->tensor, info->dtype);
    return NULL;
}

/* From the last --input that names it; *found is false when none does. */
static tssa_status *read_named(struct maker *maker, const tssa_value_info *info, bool *found,
                               struct value *value)
{
    const struct onnx_value_type type = value_file_type(info);
    *found = false;
    for (size_t i = maker->source->input_count; i-- > 0 && !*found;) {
        struct input_argument *argument = &maker->source->inputs[i];
        const char *path = file_of(argument->text, info->name);
        if (path && ends_with(path, ".npz")) {
            argument->used = true;
            TRY(read_archive(maker, path, info, found, value));
            if (!*found)
                return ERROR(TSSA_INVALID_ARGUMENT,
                             "%s: it has several arrays, and none is called %s", path, info->name);
        } else if (path) {
            argument->used = *found = true;
            TRY(value_file_read(maker->allocator, path, &type, value));
        } else if (!strchr(argument->text, '=') && ends_with(argument->text, ".npz")) {
            TRY(read_archive(maker, argument->text, info, found, value));
            argument->used |= *found;
        }
    }
    return NULL;
}

static tssa_status *read_from_data_set(const struct maker *maker, size_t index,
                                       const tssa_value_info *info, bool *found,
                                       struct value *value)
{
    const struct onnx_value_type type = value_file_type(info);
    const char *folder = maker->source->data_set;
    TRY(data_set_read(maker->allocator, folder, "input", index, &type, found, value));
    return *found ? NULL
                  : data_set_read(maker->allocator, folder, "in", index, &type, found, value);
}

/* Input `index` from a file, if there is one for it. */
static tssa_status *make_from_file(struct maker *maker, size_t index, const tssa_value_info *info,
                                   tssa_value **out)
{
    struct value value;
    bool found;
    TRY(read_named(maker, info, &found, &value));
    if (!found && maker->source->data_set)
        TRY(read_from_data_set(maker, index, info, &found, &value));
    if (!found)
        return NULL;
    tssa_status *status = NULL;
    if (value.kind == TSSA_KIND_TENSOR && info->kind == TSSA_KIND_TENSOR)
        status = bind_dims(maker, info, value.tensor.rank, value.tensor.dims);
    if (status) {
        value_release(&value);
        return status;
    }
    return value_handle(maker->allocator, &value, out);
}

/* ---- Random inputs --------------------------------------------------------------------------- */

static const struct shape_argument *find_shape(struct maker *maker, const char *name)
{
    for (size_t i = maker->source->shape_count; i-- > 0;) {
        struct shape_argument *shape = &maker->source->shapes[i];
        if (strcmp(shape->name, name) == 0) {
            shape->used = true;
            return shape;
        }
    }
    return NULL;
}

/* Nothing says how large a dim is: it is guessed, and the user is told. */
static tssa_status *guess_size(struct maker *maker, const tssa_value_info *info, int axis, int rank,
                               const char *symbol, int64_t *size)
{
    const struct size_guess *guess = &maker->source->guess;
    struct random random;
    random_seed(&random, maker->source->seed, UINT64_MAX - maker->guessed++);
    uint64_t least = guess->least ? guess->least : 1;
    *size = guess->spread ? (int64_t)(least + random_next(&random) % (guess->spread - least + 1))
                          : guess->size;
    if (*size == 0 || (*size > GUESS_SMALL && axis < rank - 2))
        *size = 1;
    text_puts(&maker->guesses, maker->guesses.size ? ", " : "");
    if (symbol)
        text_printf(&maker->guesses, "%s (of %s)", symbol, info->name);
    else
        text_printf(&maker->guesses, "dim %d of %s", axis, info->name);
    if (guess->spread || guess->size)
        text_printf(&maker->guesses, " = %" PRId64, *size);
    return symbol ? bind(maker, symbol, *size) : NULL;
}

/* The elements of a sequence need not agree in a dim that the model has no name for: "dim#1". */
static const char *symbol_of(const tssa_value_info *info, int axis)
{
    const char *symbol = info->rank < 0 ? NULL : info->symbols[axis];
    bool own = symbol && info->kind == TSSA_KIND_SEQUENCE && strchr(symbol, '#');
    return own ? NULL : symbol;
}

/* The size of one dim that no --shape tells. */
static tssa_status *choose_size(struct maker *maker, const tssa_value_info *info, int axis,
                                int rank, int64_t *size)
{
    const char *symbol = symbol_of(info, axis);
    const struct binding *binding = symbol ? find_binding(maker, symbol) : NULL;
    *size = info->rank < 0 ? -1 : info->dims[axis];
    if (binding)
        *size = binding->size;
    return *size < 0 ? guess_size(maker, info, axis, rank, symbol, size) : NULL;
}

/* The dims of a random tensor: those of --shape, or the model's with its symbols replaced. */
static tssa_status *choose_dims(struct maker *maker, const tssa_value_info *info, int *rank,
                                int64_t *dims)
{
    const struct shape_argument *shape = find_shape(maker, info->name);
    *rank = shape ? shape->rank : info->rank;
    if (*rank < 0)
        *rank = maker->source->guess.rank;
    if (*rank == 0 && info->rank < 0 && !shape)
        return ERROR(
            TSSA_INVALID_ARGUMENT,
            "input %s: the model does not tell its shape; say --shape %s:1x3x4, or --input",
            info->name, info->name);
    for (int i = 0; i < *rank; i++) {
        if (shape)
            dims[i] = shape->dims[i];
        else
            TRY(choose_size(maker, info, i, *rank, &dims[i]));
    }
    return NULL;
}

static tssa_status *random_tensor(struct maker *maker, const tssa_value_info *info,
                                  struct random *random, struct value *value)
{
    int64_t dims[TSSA_MAX_RANK];
    int rank;
    TRY(choose_dims(maker, info, &rank, dims));
    *value = (struct value){.kind = TSSA_KIND_TENSOR};
    TRY(status_prefix(tensor_create(maker->allocator, info->dtype, rank, dims, &value->tensor),
                      "input %s", info->name));
    random_fill_style(random, &maker->source->style, &value->tensor);
    return NULL;
}

static tssa_status *random_sequence(struct maker *maker, const tssa_value_info *info,
                                    struct random *random, struct value *value)
{
    TRY(sequence_create(maker->allocator, info->dtype, value));
    for (size_t i = 0; i < RANDOM_SEQUENCE_LENGTH; i++) {
        struct value element, longer;
        tssa_status *status = random_tensor(maker, info, random, &element);
        if (!status) {
            status = sequence_insert(value, i, &element, &longer);
            value_release(&element);
        }
        if (status) {
            value_release(value);
            return status;
        }
        value_release(value);
        *value = longer;
    }
    return NULL;
}

static tssa_status *make_random(struct maker *maker, size_t index, const tssa_value_info *info,
                                tssa_value **out)
{
    struct random random;
    struct value value;
    random_seed(&random, maker->source->seed, index);
    if (info->kind == TSSA_KIND_TENSOR)
        TRY(random_tensor(maker, info, &random, &value));
    else if (info->kind == TSSA_KIND_SEQUENCE && info->dtype != TSSA_UNDEFINED)
        TRY(random_sequence(maker, info, &random, &value));
    else
        return ERROR(TSSA_INVALID_ARGUMENT, "input %s: a value of its type must come from a file",
                     info->name);
    return value_handle(maker->allocator, &value, out);
}

/* ---- All inputs ------------------------------------------------------------------------------ */

/* An --input or --shape that names no input is a mistake, not something to pass over. */
static tssa_status *check_names(const struct input_source *source)
{
    for (size_t i = 0; i < source->input_count; i++) {
        if (!source->inputs[i].used)
            return ERROR(TSSA_INVALID_ARGUMENT, "--input %s: the model has no such input",
                         source->inputs[i].text);
    }
    for (size_t i = 0; i < source->shape_count; i++) {
        if (!source->shapes[i].used)
            return ERROR(TSSA_INVALID_ARGUMENT, "--shape %s: the model has no such random input",
                         source->shapes[i].name);
    }
    return NULL;
}

static tssa_status *check_data_set(const char *folder)
{
    struct stat about;
    if (folder && (stat(folder, &about) != 0 || !S_ISDIR(about.st_mode)))
        return ERROR(TSSA_IO, "%s: there is no such folder of inputs", folder);
    return NULL;
}

static tssa_status *make_all(struct maker *maker, const tssa_model *model,
                             struct run_inputs *inputs)
{
    bool recorded = maker->source->data_set != NULL;
    tssa_value_info info;
    for (size_t i = 0; i < inputs->count; i++) {
        TRY(tssa_model_input(model, i, &info));
        TRY(make_from_file(maker, i, &info, &inputs->values[i]));
        const struct shape_argument *shape =
            inputs->values[i] ? NULL : find_shape(maker, info.name);
        if (shape)
            TRY(bind_dims(maker, &info, shape->rank, shape->dims));
    }
    TRY(check_names(maker->source));
    for (size_t i = 0; i < inputs->count; i++) {
        TRY(tssa_model_input(model, i, &info));
        if (inputs->values[i] || info.has_default)
            continue;
        if (recorded)
            return ERROR(TSSA_INVALID_ARGUMENT, "%s holds no input_%zu.pb or .npy for the input %s",
                         maker->source->data_set, i, info.name);
        TRY(make_random(maker, i, &info, &inputs->values[i]));
    }
    return NULL;
}

tssa_status *inputs_make(tssa_context *context, const tssa_model *model,
                         struct input_source *source, struct run_inputs *inputs)
{
    struct maker maker = {.context = context, .allocator = &context->allocator, .source = source};
    inputs->count = tssa_model_input_count(model);
    inputs->values = calloc(inputs->count ? inputs->count : 1, sizeof(tssa_value *));
    TRY_ALLOC(inputs->values);
    TRY(check_data_set(source->data_set));
    text_init(&maker.guesses, &allocator_default);
    tssa_status *status = NULL;
    for (size_t i = 0; i < source->dim_count && !status; i++)
        status = bind(&maker, source->dims[i].name, source->dims[i].value);
    if (!status)
        status = make_all(&maker, model, inputs);
    const char *guesses = text_string(&maker.guesses);
    inputs->guesses = guesses ? strdup(guesses) : NULL;
    text_free(&maker.guesses);
    free(maker.bindings);
    return status;
}

void inputs_free(struct run_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count && inputs->values; i++)
        tssa_value_free(inputs->values[i]);
    free(inputs->values);
    free(inputs->guesses);
    *inputs = (struct run_inputs){0};
}
