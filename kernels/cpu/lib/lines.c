/* SPDX-License-Identifier: Apache-2.0 */
/* Operand checks, lines and parallel loops with scratch memory; see lines.h. */
#include "kernels/cpu/lib/lines.h"

#include <inttypes.h>

tssa_status *operand_error(uint32_t index, const struct tensor *tensor, const char *wanted)
{
    char text[160];
    tensor_describe(tensor, text, sizeof text);
    return ERROR(TSSA_RUNTIME, "operand %" PRIu32 " is %s, not %s", index, text, wanted);
}

static tssa_status *check_type(const struct kernel_args *args, uint32_t index,
                               const struct tensor *tensor)
{
    if (dtype_in(args->op->info->types, tensor->dtype))
        return NULL;
    return ERROR(TSSA_RUNTIME, "operand %" PRIu32 " cannot be %s", index,
                 dtype_info(tensor->dtype)->ir_name);
}

tssa_status *typed_tensor(const struct kernel_args *args, uint32_t index,
                          const struct tensor **tensor)
{
    TRY(kernel_tensor(args, index, tensor));
    return check_type(args, index, *tensor);
}

tssa_status *typed_vector(const struct kernel_args *args, uint32_t index, int64_t n, bool optional,
                          const struct tensor **tensor)
{
    TRY((optional ? kernel_optional_tensor : kernel_tensor)(args, index, tensor));
    if (!*tensor)
        return NULL;
    TRY(check_type(args, index, *tensor));
    if ((*tensor)->rank == 1 && (*tensor)->dims[0] == n)
        return NULL;
    char text[160];
    tensor_describe(*tensor, text, sizeof text);
    return ERROR(TSSA_RUNTIME, "operand %" PRIu32 " is %s, not a vector of %" PRId64, index, text,
                 n);
}

struct lines lines_along(const struct tensor *tensor, int axis)
{
    return (struct lines){.outer = dims_product(tensor->dims, 0, axis),
                          .n = tensor->dims[axis],
                          .inner = dims_product(tensor->dims, axis + 1, tensor->rank)};
}

tssa_status *elements_of(struct kernel_args *args, const struct tensor *tensor, tssa_dtype dtype,
                         struct buffer **buffer)
{
    *buffer = NULL;
    if (!tensor)
        return NULL;
    size_t count = tensor_count(tensor), bytes;
    if (!size_mul(count, tssa_dtype_size(dtype), &bytes))
        return ERROR(TSSA_LIMIT, "a tensor of %zu elements is too large", count);
    TRY(kernel_scratch(args, bytes, buffer));
    load_elements(tensor, 0, 1, (int64_t)count, dtype, (*buffer)->data);
    return NULL;
}

tssa_status *elements_as(struct kernel_args *args, const struct tensor *tensor, tssa_dtype dtype,
                         const void **elements, struct buffer **buffer)
{
    *buffer = NULL;
    *elements = tensor->data;
    if (tensor->dtype == dtype)
        return NULL;
    TRY(elements_of(args, tensor, dtype, buffer));
    *elements = (*buffer)->data;
    return NULL;
}

/* ---- Parallel loops -------------------------------------------------------------------------- */

/* Below this many steps per thread, starting threads costs more than it brings. */
#define STEPS_PER_PART 16384

struct parts {
    parts_body body;
    void *context;
    char *scratch;
    size_t scratch_size;
    int64_t count, parts;
};

static void run_parts(void *context, int64_t begin, int64_t end)
{
    const struct parts *p = context;
    int64_t each = p->count / p->parts, rest = p->count % p->parts;
    for (int64_t part = begin; part < end; part++) {
        int64_t first = part * each + (part < rest ? part : rest);
        p->body(p->context, p->scratch + (size_t)part * p->scratch_size, first,
                first + each + (part < rest));
    }
}

tssa_status *parts_for(struct kernel_args *args, int64_t count, int64_t cost, size_t scratch,
                       parts_body body, void *context)
{
    if (count <= 0)
        return NULL;
    const struct team *team = args->env->team;
    int64_t grain = cost < STEPS_PER_PART ? STEPS_PER_PART / (cost > 0 ? cost : 1) : 1;
    int64_t parts = team && team->threads > 1 ? count / grain : 1;
    if (team && parts > team->threads)
        parts = team->threads;
    if (parts < 1)
        parts = 1;
    size_t size, total;
    if (!size_add(scratch, TENSOR_ALIGNMENT, &size) ||
        !size_mul(size / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT, (size_t)parts, &total))
        return ERROR(TSSA_LIMIT, "scratch memory of %zu bytes is too large", scratch);
    struct buffer *buffer;
    TRY(kernel_scratch(args, total, &buffer));
    struct parts p = {body, context, buffer->data, total / (size_t)parts, count, parts};
    team_for(team, parts, 1, run_parts, &p);
    buffer_release(buffer);
    return NULL;
}
