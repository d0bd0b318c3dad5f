/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unique-11 of ai.onnx. Its items are the elements of the flattened operand, or the slices along an
 * axis. They are brought into one row each and sorted, stably, by their number; equal neighbours
 * are a group, and the group's first number is the first occurrence. As in numpy, NaN equals NaN
 * and comes last, and -0 equals 0. Many items of few numbers are sorted by the digits of keys.
 */
#include <string.h>

#include "kernels/cpu/gather/gather.h"
#include "kernels/cpu/lib/strided.h"
#include "kernels/cpu/selection/rank.h"

/* ---- Order ----------------------------------------------------------------------------------- */

typedef int (*compare_fn)(const void *a, const void *b);

#define COMPARE_INT(name, type)                                                                    \
    static int compare_##name(const void *a, const void *b)                                        \
    {                                                                                              \
        type x = *(const type *)a, y = *(const type *)b;                                           \
        return (x > y) - (x < y);                                                                  \
    }

/* NaN after everything else. */
#define ORDER_FLOAT(x, y)                                                                          \
    ((x) != (x) || (y) != (y) ? ((x) != (x)) - ((y) != (y)) : ((x) > (y)) - ((x) < (y)))

#define COMPARE_FLOAT(name, type, load)                                                            \
    static int compare_##name(const void *a, const void *b)                                        \
    {                                                                                              \
        double x = load(*(const type *)a), y = load(*(const type *)b);                             \
        return ORDER_FLOAT(x, y);                                                                  \
    }

#define COMPARE_COMPLEX(name, type)                                                                \
    static int compare_##name(const void *a, const void *b)                                        \
    {                                                                                              \
        const type *x = a, *y = b;                                                                 \
        int order = ORDER_FLOAT(x[0], y[0]);                                                       \
        return order ? order : ORDER_FLOAT(x[1], y[1]);                                            \
    }

COMPARE_INT(i8, int8_t)
COMPARE_INT(i16, int16_t)
COMPARE_INT(i32, int32_t)
COMPARE_INT(i64, int64_t)
COMPARE_INT(u8, uint8_t)
COMPARE_INT(u16, uint16_t)
COMPARE_INT(u32, uint32_t)
COMPARE_INT(u64, uint64_t)
COMPARE_FLOAT(f32, float, )
COMPARE_FLOAT(f64, double, )
COMPARE_FLOAT(f16, uint16_t, half_to_float)
COMPARE_FLOAT(bf16, uint16_t, bfloat16_to_float)
COMPARE_COMPLEX(c64, float)
COMPARE_COMPLEX(c128, double)

static int compare_string(const void *a, const void *b)
{
    const tssa_string *x = a, *y = b;
    size_t shared = x->size < y->size ? x->size : y->size;
    int order = shared ? memcmp(x->data, y->data, shared) : 0;
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

static const compare_fn comparators[TSSA_DTYPE_COUNT] = {
    [TSSA_FLOAT] = compare_f32,       [TSSA_DOUBLE] = compare_f64,
    [TSSA_FLOAT16] = compare_f16,     [TSSA_BFLOAT16] = compare_bf16,
    [TSSA_INT8] = compare_i8,         [TSSA_INT16] = compare_i16,
    [TSSA_INT32] = compare_i32,       [TSSA_INT64] = compare_i64,
    [TSSA_UINT8] = compare_u8,        [TSSA_UINT16] = compare_u16,
    [TSSA_UINT32] = compare_u32,      [TSSA_UINT64] = compare_u64,
    [TSSA_BOOL] = compare_u8,         [TSSA_COMPLEX64] = compare_c64,
    [TSSA_COMPLEX128] = compare_c128, [TSSA_STRING] = compare_string,
};

/* ---- Groups ---------------------------------------------------------------------------------- */

/* The items, `width` elements each, and what is found out about them. */
struct items {
    const char *data;
    size_t size, width;
    int64_t count;
    compare_fn compare;
    int64_t *order, *spare;      /* item numbers in ascending order; scratch of the sort */
    uint64_t *keys, *spare_keys; /* in that order; NULL: items are compared */
    int64_t groups;
    int64_t *first, *members; /* per group, in the order of the result */
    int64_t *group_of;        /* per item */
};

static int compare_items(const struct items *items, int64_t a, int64_t b)
{
    const char *x = items->data + (size_t)a * items->width * items->size;
    const char *y = items->data + (size_t)b * items->width * items->size;
    int order = 0;
    for (size_t i = 0; i < items->width && order == 0; i++)
        order = items->compare(x + i * items->size, y + i * items->size);
    return order;
}

/* Bottom-up merge sort of items->order. */
static void sort_items(struct items *items)
{
    int64_t n = items->count;
    for (int64_t i = 0; i < n; i++)
        items->order[i] = i;
    for (int64_t width = 1; width < n; width *= 2) {
        int64_t *from = items->order, *to = items->spare;
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            int64_t middle = begin + width < n ? begin + width : n;
            int64_t end = middle + width < n ? middle + width : n;
            for (int64_t i = begin, j = middle, k = begin; k < end; k++) {
                bool left = j == end || (i < middle && compare_items(items, from[i], from[j]) <= 0);
                to[k] = left ? from[i++] : from[j++];
            }
        }
        items->order = to;
        items->spare = from;
    }
}

#define FEW 256  /* fewer are merged */
#define WIDEST 8 /* numbers of an item: comparing more ends at the first that differs */
#define DIGITS 256
#define KEY_DIGITS 8

static bool have_keys(const struct items *items, tssa_dtype dtype)
{
    return items->width > 0 && items->width <= WIDEST && items->count >= FEW &&
           items->count <= UINT32_MAX && (dtype_is_float(dtype) || dtype_is_integer(dtype)) &&
           items->size <= sizeof(uint64_t);
}

/* Moves all so that digit `d` of the keys ascends, and what has the same one stays in order;
 * counts: how many have which. */
static void order_by_digit(struct items *items, int d, const uint32_t *counts)
{
    uint32_t places[DIGITS], sum = 0;
    uint64_t *keys = items->spare_keys;
    int64_t *order = items->spare;
    for (int i = 0; i < DIGITS; i++) {
        places[i] = sum;
        sum += counts[i];
    }
    for (int64_t i = 0; i < items->count; i++) {
        const uint32_t at = places[items->keys[i] >> 8 * d & (DIGITS - 1)]++;
        keys[at] = items->keys[i];
        order[at] = items->order[i];
    }
    items->spare_keys = items->keys;
    items->spare = items->order;
    items->keys = keys;
    items->order = order;
}

static void sort_by_column(struct items *items, tssa_dtype dtype, size_t column)
{
    uint32_t counts[KEY_DIGITS][DIGITS] = {0};
    const size_t row = items->width * items->size;
    const char *data = items->data + column * items->size;
    for (int64_t i = 0; i < items->count; i++) {
        const uint64_t key = rank_key(dtype, data + (size_t)items->order[i] * row, false);
        for (int d = 0; d < KEY_DIGITS; d++)
            counts[d][key >> 8 * d & (DIGITS - 1)]++;
        items->keys[i] = key;
    }
    for (int d = 0; d < KEY_DIGITS; d++)
        if (counts[d][items->keys[0] >> 8 * d & (DIGITS - 1)] != items->count) /* not all have it */
            order_by_digit(items, d, counts[d]);
}

/* The last column first. */
static void sort_by_keys(struct items *items, tssa_dtype dtype)
{
    for (int64_t i = 0; i < items->count; i++)
        items->order[i] = i;
    for (size_t column = items->width; column-- > 0;)
        sort_by_column(items, dtype, column);
}

/* Whether number i of the sorted ones, i > 0, is as the one before it. */
static bool is_repeated(const struct items *items, int64_t i)
{
    if (items->keys && items->width == 1)
        return items->keys[i] == items->keys[i - 1];
    return compare_items(items, items->order[i - 1], items->order[i]) == 0;
}

static void group_items(struct items *items)
{
    for (int64_t i = 0; i < items->count; i++) {
        int64_t item = items->order[i];
        if (i == 0 || !is_repeated(items, i)) {
            items->first[items->groups] = item;
            items->members[items->groups++] = 0;
        }
        items->group_of[item] = items->groups - 1;
        items->members[items->groups - 1]++;
    }
}

/* Renumbers the groups by their first occurrence. */
static void unsort_groups(struct items *items)
{
    int64_t *renumbered = items->order, *members = items->spare, next = 0;
    for (int64_t item = 0; item < items->count; item++) {
        int64_t group = items->group_of[item];
        if (items->first[group] == item) {
            renumbered[group] = next;
            members[next++] = items->members[group];
        }
    }
    for (int64_t item = items->count - 1; item >= 0; item--) {
        items->group_of[item] = renumbered[items->group_of[item]];
        items->first[items->group_of[item]] = item;
    }
    for (int64_t g = 0; g < items->groups; g++)
        items->members[g] = members[g];
}

/* ---- The operator ---------------------------------------------------------------------------- */

struct unique {
    bool flat, sorted;
    int64_t axis;
};

static tssa_status *unique_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct unique *unique = ARENA_NEW(setup->arena, struct unique);
    TRY_ALLOC(unique);
    unique->flat = !ir_attr(op, "axis");
    unique->axis = ir_op_axis(op);
    unique->sorted = ir_attr_int(op, "sorted", 1) != 0;
    *state = unique;
    return NULL;
}

static tssa_status *write_list(struct kernel_args *args, uint32_t index, const int64_t *values,
                               int64_t count)
{
    struct tensor *y;
    TRY(kernel_output(args, index, TSSA_INT64, 1, &count, &y));
    if (y && count > 0)
        memcpy(y->data, values, (size_t)count * sizeof *values);
    return NULL;
}

/* x as [outer, items, inner]; `rows` is room for x with the items in front. */
static tssa_status *find_unique(struct kernel_args *args, const struct unique *unique,
                                const struct tensor *x, int axis, struct items *items, void *rows)
{
    int64_t outer = 1, inner = 1, dims[TSSA_MAX_RANK] = {0};
    int rank = unique->flat ? 1 : x->rank;
    if (!unique->flat) {
        outer = dims_product(x->dims, 0, axis);
        inner = dims_product(x->dims, axis + 1, x->rank);
        for (int i = 0; i < rank; i++)
            dims[i] = x->dims[i];
    }
    items->data = x->data;
    if (outer > 1) {
        struct strided_box box = {.rank = 3,
                                  .dims = {items->count, outer, inner},
                                  .to = {outer * inner, inner, 1},
                                  .from = {inner, items->count * inner, 1}};
        strided_copy(args->env->team, items->size, &box, rows, x->data);
        items->data = rows;
    }
    if (items->keys)
        sort_by_keys(items, x->dtype);
    else
        sort_items(items);
    group_items(items);
    if (!unique->sorted)
        unsort_groups(items);

    struct tensor *y;
    dims[axis] = items->groups;
    TRY(kernel_output(args, 0, x->dtype, rank, dims, &y));
    if (y && tensor_count(y) > 0) {
        struct gather_job job = {.from = x->data,
                                 .to = y->data,
                                 .block = (size_t)inner * items->size,
                                 .per_batch = items->groups,
                                 .x_batch = items->count,
                                 .offsets = items->first};
        gather_blocks(args->env->team, &job, outer);
    }
    TRY(write_list(args, 1, items->first, items->groups));
    TRY(write_list(args, 2, items->group_of, items->count));
    return write_list(args, 3, items->members, items->groups);
}

static tssa_status *unique_run(struct kernel_args *args)
{
    const struct unique *unique = args->state;
    const struct tensor *x;
    struct buffer *scratch, *rows;
    size_t bytes;
    int axis = 0;
    TRY(kernel_tensor(args, 0, &x));
    if (!unique->flat)
        TRY(kernel_axis(unique->axis, x->rank, &axis));
    struct items items = {.size = dtype_info(x->dtype)->size,
                          .count = unique->flat ? (int64_t)tensor_count(x) : x->dims[axis],
                          .compare = comparators[x->dtype]};
    if (!items.compare)
        return ERROR(TSSA_UNSUPPORTED, "%s has no order", dtype_info(x->dtype)->ir_name);
    items.width = unique->flat ? 1
                               : (size_t)dims_product(x->dims, 0, axis) *
                                     (size_t)dims_product(x->dims, axis + 1, x->rank);
    const bool keys = have_keys(&items, x->dtype);
    /* Slices without elements are all equal; they can be many. */
    if (!size_mul((size_t)items.count, (keys ? 7 : 5) * sizeof(int64_t), &bytes))
        return status_out_of_memory();
    TRY(kernel_scratch(args, bytes, &scratch));
    items.order = scratch->data;
    items.spare = items.order + items.count;
    items.first = items.spare + items.count;
    items.members = items.first + items.count;
    items.group_of = items.members + items.count;
    if (keys) {
        items.keys = (uint64_t *)(items.group_of + items.count);
        items.spare_keys = items.keys + items.count;
    }
    tssa_status *status = kernel_scratch(args, tensor_bytes(x), &rows);
    if (!status) {
        status = find_unique(args, unique, x, axis, &items, rows->data);
        buffer_release(rows);
    }
    buffer_release(scratch);
    return status;
}

const struct kernel cpu_kernel_unique = {.prepare = unique_prepare, .run = unique_run};
