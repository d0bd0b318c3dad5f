/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/unique.h"

#include "base/alloc.h"
#include "device/device.h"
#include "device/grids/keep.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/texts.h"

/* As kernels/grids/unique.h has them. */
#define MERGED 4
enum { WITH_FIRST = 1, WITH_GROUPS = 2, WITH_MEMBERS = 4 };

struct unique {
    bool flat, sorted; /* flat: no axis, elements of the flattened operand */
    int64_t axis;
};

/* What the text is for: complex numbers are lists of two elements. TSSA_UNDEFINED: there is none.
 */
static tssa_dtype compared_as(tssa_dtype dtype)
{
    switch (dtype) {
    case TSSA_BOOL:
        return TSSA_UINT8;
    case TSSA_COMPLEX64:
        return TSSA_FLOAT;
    case TSSA_COMPLEX128:
        return TSSA_DOUBLE;
    default:
        return grids_text_takes(grids_computed_in(dtype)) ? dtype : TSSA_UNDEFINED;
    }
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    const tssa_dtype type = compared_as(ir_operand(op, 0)->type->dtype);
    struct unique *unique = ARENA_NEW(setup->arena, struct unique);
    TRY_ALLOC(unique);
    unique->flat = !ir_attr(op, "axis");
    unique->axis = ir_op_axis(op);
    unique->sorted = ir_attr_int(op, "sorted", 1) != 0;
    *state = unique;
    TRY(grids_text_want(setup->context, GRIDS_TEXT_UNIQUE, type));
    TRY(grids_text_want(setup->context, GRIDS_TEXT_KEEP, TSSA_UINT8));
    return grids_text_want(setup->context, GRIDS_TEXT_SPREAD, grids_word(type));
}

/* ---- Items ----------------------------------------------------------------------------------- */

struct items {
    const struct tensor *x;
    tssa_dtype type;
    int rank, axis;
    int64_t dims[TSSA_MAX_RANK];   /* of the first result; that of the axis is not known */
    int64_t outer, count, inner;   /* the operand's elements, as the text has them */
    struct buffer *own, *memory;   /* of an operand that the host has; of the places below */
    struct device_place from;      /* the operand */
    struct device_place order, to; /* numbers of items; to: of the launch that merges next */
    struct device_place begins;    /* where groups begin */
};

static tssa_status *find_items(struct kernel_args *args, struct items *items)
{
    const struct unique *unique = args->state;
    TRY(kernel_tensor(args, 0, &items->x));
    const struct tensor *x = items->x;
    items->type = compared_as(x->dtype);
    items->rank = 1;
    items->outer = 1;
    items->inner = 1;
    items->count = (int64_t)tensor_count(x);
    if (items->count) /* slices of nothing may be longer than there are numbers */
        items->inner = (int64_t)(tssa_dtype_size(x->dtype) / tssa_dtype_size(items->type));
    if (unique->flat)
        return NULL;
    TRY(kernel_axis(unique->axis, x->rank, &items->axis));
    items->rank = x->rank;
    items->count = x->dims[items->axis];
    for (int i = 0; i < x->rank; i++) {
        items->dims[i] = x->dims[i];
        items->outer *= i < items->axis ? x->dims[i] : 1;
        items->inner *= i > items->axis ? x->dims[i] : 1;
    }
    return NULL;
}

/* Slices without elements can be more than there is memory for. */
static tssa_status *take_memory(struct kernel_args *args, struct items *items)
{
    const size_t each = 2 * (sizeof(int64_t) + sizeof(uint8_t));
    size_t bytes;
    if (!size_mul((size_t)items->count, each, &bytes))
        return status_out_of_memory();
    TRY(kernel_scratch(args, bytes, &items->memory));
    const size_t numbers = (size_t)items->count * sizeof(int64_t);
    items->order = items->to = items->begins = grids_buffer(items->memory);
    items->to.offset += numbers;
    items->begins.offset += 2 * numbers;
    return NULL;
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* Of a function that is given the items, and what is behind them in `params`. */
static tssa_status *launch(struct kernel_args *args, const struct items *items, uint32_t function,
                           struct launch_param *params, uint32_t n)
{
    params[0] = grids_memory(items->from);
    params[1] = grids_number(items->outer);
    params[2] = grids_number(items->count);
    params[3] = grids_number(items->inner);
    return grids_launch_each(args->env->stream, GRIDS_TEXT_UNIQUE, items->type, function,
                             items->count, params, n);
}

static tssa_status *sort_items(struct kernel_args *args, struct items *items)
{
    struct launch_param params[7] = {[4] = grids_memory(items->order)};
    TRY(launch(args, items, 0, params, 5));
    for (int64_t run = grids_threads(args->env->stream->context); run < items->count;
         run *= MERGED) {
        const struct device_place sorted = items->to;
        params[4] = grids_memory(items->order);
        params[5] = grids_memory(sorted);
        params[6] = grids_number(run);
        TRY(launch(args, items, 1, params, 7));
        items->to = items->order;
        items->order = sorted;
    }
    return NULL;
}

/* Which places groups begin at, and how many groups there are. */
static tssa_status *find_groups(struct kernel_args *args, struct items *items,
                                struct grids_kept *kept, struct buffer **begins, int64_t *groups)
{
    const struct unique *unique = args->state;
    struct launch_param params[7] = {[4] = grids_memory(items->order),
                                     [5] = grids_memory(items->begins),
                                     [6] = grids_number(unique->sorted)};
    TRY(launch(args, items, 2, params, 7));
    kept->word = TSSA_UINT8;
    kept->bits = UINT8_MAX;
    kept->count = unique->sorted ? items->count : 2 * items->count;
    kept->from = items->begins;
    TRY(grids_keep_numbers(args, kept, begins));
    *groups = unique->sorted ? kept->found : kept->found / 2;
    return NULL;
}

/* ---- Results --------------------------------------------------------------------------------- */

/* NULL: not wanted. `own` has the first items where no result is them. */
struct results {
    struct tensor *y, *firsts, *group_of, *members;
    struct buffer *own;
};

static tssa_status *make_results(struct kernel_args *args, struct items *items, int64_t groups,
                                 struct results *r)
{
    items->dims[items->axis] = groups;
    TRY(kernel_output(args, 0, items->x->dtype, items->rank, items->dims, &r->y));
    TRY(kernel_output(args, 1, TSSA_INT64, 1, &groups, &r->firsts));
    TRY(kernel_output(args, 2, TSSA_INT64, 1, &items->count, &r->group_of));
    TRY(kernel_output(args, 3, TSSA_INT64, 1, &groups, &r->members));
    return r->firsts || groups == 0
               ? NULL
               : kernel_scratch(args, (size_t)groups * sizeof(int64_t), &r->own);
}

static struct launch_param place_or(const struct tensor *tensor, struct device_place other)
{
    return grids_memory(tensor ? grids_place(tensor) : other);
}

static tssa_status *tell_groups(struct kernel_args *args, const struct items *items,
                                const struct buffer *begins, int64_t groups,
                                const struct results *r, struct device_place firsts)
{
    const struct unique *unique = args->state;
    const int64_t with =
        WITH_FIRST | (r->group_of ? WITH_GROUPS : 0) | (r->members ? WITH_MEMBERS : 0);
    const struct launch_param params[] = {grids_memory(items->order),
                                          grids_memory(grids_buffer(begins)),
                                          grids_memory(firsts),
                                          place_or(r->group_of, firsts),
                                          place_or(r->members, firsts),
                                          grids_number(items->count),
                                          grids_number(groups),
                                          grids_number(unique->sorted),
                                          grids_number(with)};
    return grids_launch_each(args->env->stream, GRIDS_TEXT_UNIQUE, items->type, 3, items->count,
                             params, sizeof params / sizeof *params);
}

static tssa_status *move_items(struct kernel_args *args, const struct items *items, int64_t groups,
                               const struct tensor *y, struct device_place firsts)
{
    const int64_t count = items->outer * groups * items->inner;
    const struct launch_param params[] = {grids_memory(items->from),    grids_memory(firsts),
                                          grids_memory(grids_place(y)), grids_number(count),
                                          grids_number(groups),         grids_number(items->count),
                                          grids_number(items->inner)};
    return grids_launch_each(args->env->stream, GRIDS_TEXT_SPREAD, grids_word(items->type), 2,
                             count, params, sizeof params / sizeof *params);
}

/* Of at least one item. */
static tssa_status *fill_results(struct kernel_args *args, struct items *items,
                                 const struct buffer *begins, int64_t groups)
{
    struct results r = {0};
    tssa_status *status = make_results(args, items, groups, &r);
    if (!status) {
        const struct device_place firsts = r.firsts ? grids_place(r.firsts) : grids_buffer(r.own);
        status = tell_groups(args, items, begins, groups, &r, firsts);
        if (!status && r.y)
            status = move_items(args, items, groups, r.y, firsts);
    }
    buffer_release(r.own);
    return status;
}

static tssa_status *find_unique(struct kernel_args *args, struct items *items)
{
    struct grids_kept kept = {0};
    struct buffer *begins = NULL;
    int64_t groups = 0;
    TRY(grids_operand(args, 0, &items->own, &items->from));
    TRY(take_memory(args, items));
    TRY(sort_items(args, items));
    tssa_status *status = find_groups(args, items, &kept, &begins, &groups);
    if (!status)
        status = fill_results(args, items, begins, groups);
    buffer_release(begins);
    grids_kept_close(&kept);
    return status;
}

static tssa_status *run(struct kernel_args *args)
{
    struct items items = {0};
    struct results none = {0};
    TRY(find_items(args, &items));
    if (items.count == 0)
        return make_results(args, &items, 0, &none);
    tssa_status *status = find_unique(args, &items);
    buffer_release(items.memory);
    buffer_release(items.own);
    return status;
}

const struct kernel *grids_unique_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run};
    const bool is_it = ir_op_is(op, IR_OP_Unique) && op->n_operands == 1 && ir_operand(op, 0);
    return is_it && compared_as(ir_operand(op, 0)->type->dtype) != TSSA_UNDEFINED ? &kernel : NULL;
}
