/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/run/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/handles.h"
#include "base/file.h"
#include "tools/common/compare.h"
#include "tools/common/npy.h"
#include "tools/common/value_file.h"

/* ---- Writing --------------------------------------------------------------------------------- */

static tssa_status *write_npy(const tssa_allocator *allocator, const char *path,
                              const struct tensor *tensor)
{
    struct file_writer writer;
    TRY(file_writer_open(allocator, path, &writer));
    tssa_status *status = npy_write(tensor, &writer);
    if (!status)
        return file_writer_commit(&writer);
    file_writer_abort(&writer);
    return status_prefix(status, "%s", path);
}

/* The elements of a sequence. Files of a longer one from an earlier run would be taken for its
 * rest, so they are removed. */
static tssa_status *write_elements(const tssa_allocator *allocator, const char *folder,
                                   size_t index, const struct value *sequence)
{
    size_t length = sequence_length(sequence->sequence);
    tssa_status *status = NULL;
    bool stale = true;
    for (size_t i = 0; (i < length || stale) && !status; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/output_%zu_%zu.npy", folder, index, i) < 0)
            return status_out_of_memory();
        if (i >= length) {
            stale = unlink(path) == 0;
        } else {
            const struct value *element = sequence_element(sequence->sequence, i);
            status = element->kind == TSSA_KIND_TENSOR
                         ? write_npy(allocator, path, &element->tensor)
                         : ERROR(TSSA_UNSUPPORTED, "%s: only tensors fit into .npy files", path);
        }
        free(path);
    }
    return status;
}

static tssa_status *write_output(const tssa_allocator *allocator, const struct arguments *arguments,
                                 size_t index, const struct value *value,
                                 const tssa_value_info *info)
{
    const char *folder = arguments->output_dir;
    char *path = NULL;
    tssa_status *status = NULL;
    const bool pb = arguments->output_format == OUTPUT_PB;
    if (!pb && value->kind == TSSA_KIND_SEQUENCE)
        return write_elements(allocator, folder, index, value);
    if (asprintf(&path, "%s/output_%zu.%s", folder, index, pb ? "pb" : "npy") < 0)
        return status_out_of_memory();
    if (pb)
        status = value_file_write(allocator, path, value, info);
    else if (value->kind == TSSA_KIND_TENSOR)
        status = write_npy(allocator, path, &value->tensor);
    else
        status = ERROR(TSSA_UNSUPPORTED,
                       "%s: the output %s is no tensor; --output-format pb can hold it", path,
                       info->name);
    free(path);
    return status;
}

tssa_status *outputs_write(tssa_context *context, const tssa_model *model,
                           const struct arguments *arguments, const struct run_outputs *outputs)
{
    if (mkdir(arguments->output_dir, 0777) != 0 && errno != EEXIST)
        return ERROR(TSSA_IO, "cannot make the folder %s: %s", arguments->output_dir,
                     strerror(errno));
    for (size_t i = 0; i < outputs->count; i++) {
        tssa_value_info info;
        TRY(tssa_model_output(model, i, &info));
        TRY(write_output(&context->allocator, arguments, outputs->numbers[i],
                         &outputs->values[i]->value, &info));
    }
    return NULL;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static bool compare_one(const struct arguments *arguments, const char *name,
                        const struct value *actual, const struct value *expected)
{
    const struct compare_rule rule = {
        .rtol = arguments->common.rtol, .atol = arguments->common.atol, .exact_integers = true};
    struct compare_report report;
    bool same = compare_values(actual, expected, &rule, &report);
    printf("  %-12s %s", name, same ? "matches" : "DIFFERS");
    if (!same)
        printf(": %s", report.why);
    if (report.where[0])
        printf("; max abs %.3g at %s, max rel %.3g", report.max_abs, report.where, report.max_rel);
    else if (same)
        printf(" exactly");
    printf("\n");
    return same;
}

static tssa_status *read_expected(const tssa_allocator *allocator, const char *folder, size_t index,
                                  const struct onnx_value_type *type, bool *found,
                                  struct value *value)
{
    TRY(data_set_read(allocator, folder, "output", index, type, found, value));
    return *found ? NULL : data_set_read(allocator, folder, "out", index, type, found, value);
}

/* Whether the folder has an output more than the model: then it is that of another model. */
static tssa_status *check_surplus(const char *folder, size_t count, bool *same)
{
    static const char *const extensions[] = {"pb", "npy"};
    for (int i = 0; i < 2; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/output_%zu.%s", folder, count, extensions[i]) < 0)
            return status_out_of_memory();
        if (access(path, F_OK) == 0) {
            printf("  DIFFERS: the model has %zu outputs, but there is a %s\n", count, path);
            *same = false;
        }
        free(path);
    }
    return NULL;
}

tssa_status *outputs_compare(tssa_context *context, const tssa_model *model,
                             const struct arguments *arguments, const struct run_outputs *outputs,
                             bool *same)
{
    const char *folder = arguments->compare_dir;
    *same = true;
    printf("compared with %s (rtol %g, atol %g, integers exactly)\n", folder,
           arguments->common.rtol, arguments->common.atol);
    for (size_t i = 0; i < outputs->count; i++) {
        struct value expected;
        size_t number = outputs->numbers[i];
        tssa_value_info info;
        bool found;
        TRY(tssa_model_output(model, i, &info));
        const struct onnx_value_type type = value_file_type(&info);
        TRY(read_expected(&context->allocator, folder, number, &type, &found, &expected));
        if (!found)
            return ERROR(TSSA_IO, "%s holds no output_%zu.pb or .npy for the output %s", folder,
                         number, info.name);
        *same &= compare_one(arguments, info.name, &outputs->values[i]->value, &expected);
        value_release(&expected);
    }
    return check_surplus(folder, outputs->all, same);
}
