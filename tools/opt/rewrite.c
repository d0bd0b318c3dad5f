/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/opt/rewrite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/status.h"
#include "base/text.h"
#include "tools/common/keep.h"

/* ---- Loading --------------------------------------------------------------------------------- */

static tssa_status *print_shape(const struct shape_argument *shape, struct text *text)
{
    text_printf(text, "--input-shape %s:", shape->name);
    for (int i = 0; i < shape->rank; i++)
        text_printf(text, "%s%" PRId64, i ? "," : "", shape->dims[i]);
    return text_string(text) ? NULL : status_out_of_memory();
}

static tssa_status *fix_shape(tssa_model *model, const struct shape_argument *shape)
{
    tssa_status *status = tssa_model_set_input_shape(model, shape->name, shape->rank, shape->dims);
    if (!status)
        return NULL;
    struct text text;
    text_init(&text, &allocator_default);
    tssa_status *failed = print_shape(shape, &text);
    if (failed)
        tssa_status_free(failed);
    else
        status = status_prefix(status, "%s", text_string(&text));
    text_free(&text);
    return status;
}

/* The same symbol may not be given two sizes by two options. Symbols are those of the model as it
 * is. */
static tssa_status *check_pair(const tssa_value_info *a, const struct shape_argument *shape_a,
                               const tssa_value_info *b, const struct shape_argument *shape_b)
{
    for (int i = 0; i < a->rank && i < shape_a->rank; i++)
        for (int k = 0; k < b->rank && k < shape_b->rank; k++)
            if (a->symbols[i] && b->symbols[k] && strcmp(a->symbols[i], b->symbols[k]) == 0 &&
                shape_a->dims[i] != shape_b->dims[k])
                return ERROR(TSSA_INVALID_ARGUMENT,
                             "--input-shape: the dim %s would be %" PRId64 " in %s and %" PRId64
                             " in %s",
                             a->symbols[i], shape_a->dims[i], a->name, shape_b->dims[k], b->name);
    return NULL;
}

static tssa_status *find_input(const tssa_model *model, const char *name, tssa_value_info *info)
{
    for (size_t i = 0; i < tssa_model_input_count(model); i++) {
        TRY(tssa_model_input(model, i, info));
        if (strcmp(info->name, name) == 0)
            return NULL;
    }
    *info = (tssa_value_info){.name = name}; /* is refused later */
    return NULL;
}

static tssa_status *check_shapes(const struct input_source *source, const tssa_model *model)
{
    tssa_value_info a, b;
    for (size_t i = 0; i < source->shape_count; i++) {
        TRY(find_input(model, source->shapes[i].name, &a));
        for (size_t k = 0; k < i; k++) {
            TRY(find_input(model, source->shapes[k].name, &b));
            TRY(check_pair(&b, &source->shapes[k], &a, &source->shapes[i]));
        }
    }
    return NULL;
}

/* What the model cannot be with these shapes is a wrong argument, not a wrong model. */
static tssa_status *blame_argument(tssa_status *status)
{
    if (tssa_status_code(status) != TSSA_MALFORMED)
        return status;
    tssa_status *blamed = ERROR(TSSA_INVALID_ARGUMENT, "%s", tssa_status_message(status));
    tssa_status_free(status);
    return blamed;
}

static tssa_status *fix_shapes(const struct input_source *source, tssa_model *model)
{
    TRY(check_shapes(source, model));
    for (size_t i = 0; i < source->shape_count; i++)
        TRY(blame_argument(fix_shape(model, &source->shapes[i])));
    for (size_t i = 0; i < source->dim_count; i++) {
        const struct dim_argument *dim = &source->dims[i];
        TRY(blame_argument(status_prefix(tssa_model_set_dim(model, dim->name, dim->value),
                                         "--dim %s=%" PRId64, dim->name, dim->value)));
    }
    return NULL;
}

tssa_status *rewrite_load(struct rewrite *rewrite, tssa_functions functions, tssa_model **out)
{
    const struct opt_arguments *arguments = &rewrite->arguments;
    const tssa_load_options options = {.struct_size = sizeof options,
                                       .allow_external_links = arguments->common.external_links,
                                       .functions = functions};
    tssa_model *model;
    TRY(model_load(rewrite->context, arguments->model, &rewrite->bytes, &options, &model));
    tssa_status *status = fix_shapes(&arguments->common.source, model);
    if (!status)
        status = keep_outputs(model, arguments->common.outputs, NULL, NULL);
    if (status)
        tssa_model_free(model);
    else
        *out = model;
    return status;
}

/* ---- Optimizing ------------------------------------------------------------------------------ */

static void pass_done(void *user, const tssa_pass_run *run)
{
    struct rewrite *rewrite = user;
    stats_add(&rewrite->stats, run);
    remarks_pass_done(&rewrite->remarks, run->pass);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static tssa_status *run_passes(struct rewrite *rewrite)
{
    const struct opt_arguments *arguments = &rewrite->arguments;
    static const char *const no_passes[] = {NULL};
    const char *dump_pass = arguments->dump_pass;
    bool dumps_all = dump_pass && strcmp(dump_pass, "all") == 0;
    tssa_optimize_options options = {.struct_size = sizeof options,
                                     .level = arguments->common.level,
                                     .verify_after_passes = arguments->verify_only,
                                     .remark = remarks_add,
                                     .remark_user = &rewrite->remarks,
                                     .skipped = arguments->skipped.names,
                                     .n_skipped = arguments->skipped.count,
                                     .file_growth = arguments->file_growth,
                                     .pass_done = pass_done,
                                     .pass_done_user = rewrite};
    if (arguments->passes_given) {
        options.passes = arguments->passes.count ? arguments->passes.names : no_passes;
        options.n_passes = arguments->passes.count;
    }
    if (dump_pass) {
        options.dump_pass = dumps_all ? NULL : dump_pass;
        options.dump = dump_write;
        options.dump_user = &rewrite->dump;
    }
    double start = now();
    tssa_status *status = tssa_model_optimize(rewrite->model, &options);
    rewrite->seconds = now() - start;
    return status;
}

tssa_status *rewrite_optimize(struct rewrite *rewrite)
{
    rewrite->dump.arguments = &rewrite->arguments;
    TRY(op_table_read(rewrite->model, &rewrite->before));
    dump_before(&rewrite->dump, rewrite->model);
    TRY(run_passes(rewrite));
    dump_result(&rewrite->dump, rewrite->model);
    if (rewrite->dump.status) {
        tssa_status *status = rewrite->dump.status;
        rewrite->dump.status = NULL;
        return status;
    }
    if (rewrite->stats.failed)
        return status_out_of_memory();
    TRY(remarks_settle(&rewrite->remarks, rewrite->model));
    return op_table_read(rewrite->model, &rewrite->after);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static tssa_save_options save_options(const struct rewrite *rewrite)
{
    return (tssa_save_options){.struct_size = sizeof(tssa_save_options),
                               .opset = rewrite->arguments.opset,
                               .save_as_external_data = rewrite->arguments.external_data,
                               .kept_hazards = rewrite->arguments.kept_hazards.names,
                               .n_kept_hazards = rewrite->arguments.kept_hazards.count};
}

static void add_bytes(void *user, const void *data, size_t size)
{
    text_append(user, data, size);
}

static tssa_status *inline_original(struct rewrite *rewrite)
{
    tssa_model_info info;
    TRY(tssa_model_get_info(rewrite->original, &info));
    if (info.kept_function_count == 0)
        return NULL;
    tssa_model_free(rewrite->original);
    rewrite->original = NULL;
    return rewrite_load(rewrite, TSSA_FUNCTIONS_INLINE, &rewrite->original);
}

tssa_status *rewrite_reload(struct rewrite *rewrite)
{
    static const tssa_load_options inlined = {.struct_size = sizeof inlined,
                                              .functions = TSSA_FUNCTIONS_INLINE};
    tssa_save_options options = save_options(rewrite);
    struct text text;
    TRY(inline_original(rewrite));
    text_init(&text, &allocator_default);
    options.save_as_external_data = 0;
    tssa_status *status = tssa_model_save_memory(rewrite->model, &options, add_bytes, &text);
    if (!status && text.failed)
        status = status_out_of_memory();
    if (status) {
        text_free(&text);
        return status_prefix(status, "cannot write the model");
    }
    rewrite->written_bytes = (struct model_bytes){text.data, text.size}; /* of malloc */
    status =
        tssa_model_load_memory(rewrite->context, text.data, text.size, &inlined, &rewrite->written);
    return status_prefix(status, "the rewritten model does not load");
}

tssa_status *rewrite_save(const struct rewrite *rewrite, const char *path)
{
    tssa_save_options options = save_options(rewrite);
    return tssa_model_save_file(rewrite->model, path, &options);
}

void rewrite_free(struct rewrite *rewrite)
{
    tssa_status_free(rewrite->dump.status);
    dump_free(&rewrite->dump);
    stats_free(&rewrite->stats);
    remarks_free(&rewrite->remarks);
    op_table_free(&rewrite->before);
    op_table_free(&rewrite->after);
    tssa_model_free(rewrite->model);
    tssa_model_free(rewrite->original);
    tssa_model_free(rewrite->written);
    tssa_context_free(rewrite->context);
    model_bytes_free(&rewrite->bytes);
    model_bytes_free(&rewrite->written_bytes);
    opt_arguments_free(&rewrite->arguments);
}
