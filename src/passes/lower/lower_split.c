/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices that cut an axis into parts, all of it and nothing twice, are one Split:
 *
 *     x[.., 0:2], x[.., 2:4], x[.., 4:9]   ->   Split(x, [2, 2, 5])
 *
 * `recover` takes an exporter's Split apart, so that its parts can be followed; here they are put
 * together again. A write that is put together from pieces may complete the parts as well. A part
 * that nobody reads is one of the Split, too, where copying it takes less time than a Slice of each
 * of the others. A Gather of one row among them is a part without the axis.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "ir/infer.h"
#include "passes/lower/lower.h"

#define MAX_PARTS 256
#define MAX_USES 1024 /* of a base, that are looked at */

struct slice {
    struct ir_op *op;
    int64_t start, end;
    uint32_t part;
    bool single; /* a Gather: its result does not have the axis */
};

struct split {
    struct pass_context *pass;
    struct ir_value *base;
    int64_t axis;
    VEC(struct slice) slices;
    int64_t sizes[MAX_PARTS]; /* of the parts */
    uint32_t n_parts, n_gaps; /* parts that are no slice */
};

/* A number of a Slice of one axis; `fallback` where it is left out. */
static bool find_number(const struct ir_op *op, uint32_t index, int64_t fallback, int64_t *number)
{
    int64_t values[IR_KNOWN_MAX];
    size_t count = 0;
    *number = fallback;
    if (!ir_operand(op, index))
        return true;
    bool found = infer_const_ints(op, index, values, &count) && count == 1;
    *number = found ? values[0] : fallback;
    return found;
}

static int64_t place_of(int64_t index, int64_t size)
{
    index += index < 0 ? size : 0;
    return index < 0 ? 0 : index > size ? size : index;
}

/* Every element of a constant part of an axis of `size`. */
static bool find_range(struct ir_op *op, int64_t size, struct slice *slice)
{
    int64_t start, end, step;
    slice->op = op;
    slice->single = ir_op_is(op, IR_OP_Gather);
    if (slice->single) {
        if (lower_rank(ir_operand(op, 1)) != 0 || !find_number(op, 1, 0, &start))
            return false;
        slice->start = start < 0 ? start + size : start;
        slice->end = slice->start + 1;
        return slice->start >= 0 && slice->end <= size;
    }
    if (!find_number(op, 1, 0, &start) || !find_number(op, 2, 0, &end) ||
        !find_number(op, 4, 1, &step) || step != 1)
        return false;
    slice->start = place_of(start, size);
    slice->end = place_of(end, size);
    return slice->start < slice->end;
}

/* Shapes are left to the operators that all runtimes follow when they infer shapes. What only a
 * write read that was just put together is no slice any more. */
static bool find_slice(struct ir_op *op, int64_t *axis, struct slice *slice)
{
    int64_t size;
    if ((!ir_op_is(op, IR_OP_Slice) && !ir_op_is(op, IR_OP_Gather)) || !op->results[0].uses)
        return false;
    const struct ir_value *base = ir_operand(op, 0);
    if (lower_rank(base) < 1 || base->known || op->results[0].known ||
        lower_rank(&op->results[0]) < 0)
        return false;
    *axis = ir_op_axis(op);
    if (ir_op_is(op, IR_OP_Slice) && !find_number(op, 3, 0, axis))
        return false;
    *axis += *axis < 0 ? lower_rank(base) : 0;
    return *axis >= 0 && *axis < lower_rank(base) && dim_is_const(base->type->dims[*axis], &size) &&
           find_range(op, size, slice);
}

static int by_place(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/*
 * What ONNX Runtime takes, in tenths of a nanosecond: 1.31.1, one thread, ratios over 20 shapes and
 * six element types. A row is what one index of the axes before names. Single elements it splits
 * off in a loop of their own.
 */
#define SLICE_ROW 42
#define SPLIT_ROW 25
#define SPLIT_ELEMENT 5
#define COPY_BYTES(bytes) ((bytes)*9 / 20)
#define NODE 5000
#define MANY_ROWS 1000 /* where nobody knows how many */
#define MAX_BYTES ((int64_t)1 << 40)

/* Elements of the axes from `begin` to before `end`; `unknown` when there is one whose size is not
 * known. */
static int64_t count_elements(const struct ir_type *type, int begin, int end, int64_t unknown)
{
    int64_t count = 1, size;
    for (int i = begin; i < end; i++) {
        if (!dim_is_const(type->dims[i], &size))
            return unknown;
        count = size > 0 && count < MAX_BYTES / size ? count * size : MAX_BYTES;
    }
    return count;
}

static bool add_part(struct split *split, int64_t size)
{
    if (split->n_parts == MAX_PARTS)
        return false;
    split->sizes[split->n_parts++] = size;
    return true;
}

/* As single elements, if that takes less time. */
static bool add_gap(struct split *split, int64_t size, int64_t inner)
{
    bool single = inner == 1 && size * SPLIT_ELEMENT < SPLIT_ROW;
    split->n_gaps += single ? (uint32_t)size : 1;
    for (int64_t i = 0; single && i < size - 1; i++)
        if (!add_part(split, 1))
            return false;
    return add_part(split, single ? 1 : size);
}

/* Numbers the parts. */
static bool find_parts(struct split *split, int64_t size, int64_t inner)
{
    struct slice *slices = split->slices.data;
    int64_t at = 0;
    for (size_t i = 0; i < split->slices.count; i++) {
        bool same =
            i > 0 && slices[i].start == slices[i - 1].start && slices[i].end == slices[i - 1].end;
        if (!same && (slices[i].start < at ||
                      (slices[i].start > at && !add_gap(split, slices[i].start - at, inner)) ||
                      !add_part(split, slices[i].end - slices[i].start)))
            return false;
        at = slices[i].end;
        slices[i].part = split->n_parts - 1;
    }
    return at == size || add_gap(split, size - at, inner);
}

/* Copies of what nobody reads, too, instead of so many slices. */
static bool is_faster(const struct split *split, int64_t size, int64_t inner)
{
    const struct ir_type *type = split->base->type;
    int64_t rows = count_elements(type, 0, (int)split->axis, MANY_ROWS), bytes, read = 0;
    uint32_t n_slices = split->n_parts - split->n_gaps;
    if (type->dtype == TSSA_STRING || rows >= MAX_BYTES || inner >= MAX_BYTES)
        return false;
    for (size_t i = 0; i < split->slices.count; i++)
        if (i == 0 || split->slices.data[i].part != split->slices.data[i - 1].part)
            read += split->sizes[split->slices.data[i].part];
    if (size - read >= MAX_BYTES / inner)
        return false;
    bytes = (size - read) * inner * (int64_t)dtype_info(type->dtype)->size;
    int64_t row = COPY_BYTES(bytes);
    for (uint32_t i = 0; i < split->n_parts; i++)
        row += split->sizes[i] * inner == 1 ? SPLIT_ELEMENT : SPLIT_ROW;
    return (double)rows * (double)row + NODE < n_slices * ((double)rows * SLICE_ROW + NODE);
}

static bool is_partition(struct split *split)
{
    int64_t size = 0, inner = count_elements(split->base->type, (int)split->axis + 1,
                                             split->base->type->rank, MAX_BYTES);
    qsort(split->slices.data, split->slices.count, sizeof *split->slices.data, by_place);
    dim_is_const(split->base->type->dims[split->axis], &size);
    split->n_parts = split->n_gaps = 0;
    return find_parts(split, size, inner) && split->n_parts - split->n_gaps > 1 &&
           (split->n_gaps == 0 || is_faster(split, size, inner));
}

/* ---- The Split ------------------------------------------------------------------------------- */

/* The slices of the same axis of the same base, in the same block; and its rows. */
static tssa_status *collect(struct split *split, const struct ir_op *first, bool with_rows)
{
    struct slice slice;
    int64_t axis;
    int looked_at = 0;
    split->slices.count = 0;
    for (const struct ir_use *use = split->base->uses; use && looked_at < MAX_USES;
         use = use->next, looked_at++)
        if (use == &use->user->operands[0] && use->user->parent == first->parent &&
            find_slice(use->user, &axis, &slice) && axis == split->axis &&
            (with_rows || !slice.single) && !vec_push(&split->slices, slice))
            return status_out_of_memory();
    return NULL;
}

/* Several, with a slice among them. */
static bool has_slices(const struct split *split)
{
    bool found = false;
    for (size_t i = 0; i < split->slices.count && !found; i++)
        found = !split->slices.data[i].single;
    return found && split->slices.count > 1;
}

static tssa_status *insert_split(struct split *split, struct ir_op *before, struct ir_op **result)
{
    struct ir_graph *graph = split->pass->graph;
    struct ir_op *list = ir_constant_ints(graph, 1, split->n_parts, split->sizes);
    struct ir_op *op = ir_op_create(graph, ir_op_info(IR_OP_Split), 2, split->n_parts);
    const struct ir_attr axis = {
        .name = intern_str(&graph->strings, "axis"), .kind = IR_ATTR_INT, .i = split->axis};
    TRY(pass_insert(list, before));
    if (!op || !axis.name || !ir_op_set_attr(graph, op, &axis))
        return status_out_of_memory();
    op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    ir_op_set_operand(op, 0, split->base);
    ir_op_set_operand(op, 1, &list->results[0]);
    *result = op;
    return pass_insert(op, before);
}

/* The part in the place of the Gather, without the axis. */
static tssa_status *put_row(const struct split *split, struct ir_op *gather, struct ir_value *part)
{
    struct ir_graph *graph = split->pass->graph;
    struct ir_op *axes = ir_constant_ints(graph, 1, 1, &split->axis);
    struct ir_op *op = ir_op_create(graph, ir_op_info(IR_OP_Squeeze), 2, 1);
    TRY(pass_insert(axes, gather));
    TRY_ALLOC(op);
    op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    ir_op_set_operand(op, 0, part);
    ir_op_set_operand(op, 1, &axes->results[0]);
    return pass_replace(split->pass, gather, op);
}

static void put_part(struct ir_op *slice, struct ir_value *part)
{
    struct ir_value *old = &slice->results[0];
    part->type = old->type; /* the same sizes, under the symbols that other types already use */
    if (!part->name) {
        part->name = old->name;
        old->name = NULL;
    }
    ir_value_replace(old, part);
    ir_op_remove(slice);
}

/*
 * In the place of the slices, of which *first is the first one in the block; then it is the Split.
 */
static tssa_status *make_split(struct split *split, struct ir_op **first)
{
    struct ir_op *op = NULL;
    TRY(insert_split(split, *first, &op));
    TRY(pass_remark(split->pass, TSSA_REMARK_APPLIED, *first, "%u slices are one Split",
                    (unsigned)(split->n_parts - split->n_gaps)));
    for (size_t i = 0; i < split->slices.count; i++) {
        const struct slice *slice = &split->slices.data[i];
        if (slice->single)
            TRY(put_row(split, slice->op, &op->results[slice->part]));
        else
            put_part(slice->op, &op->results[slice->part]);
    }
    *first = op;
    split->pass->changed = true;
    return NULL;
}

static tssa_status *visit_block(struct split *split, struct ir_block *block)
{
    struct slice slice;
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(visit_block(split, op->blocks[i]));
        if (!find_slice(op, &split->axis, &slice))
            continue;
        split->base = ir_operand(op, 0);
        bool found = false;
        for (int with_rows = 1; with_rows >= 0 && !found; with_rows--) {
            if (slice.single && !with_rows)
                break;
            TRY(collect(split, op, with_rows));
            found = has_slices(split) && is_partition(split);
        }
        if (found)
            TRY(make_split(split, &op)); /* op is the Split then */
    }
    return NULL;
}

tssa_status *lower_splits(struct pass_context *pass)
{
    struct split split = {.pass = pass, .slices = VEC_INIT(pass->graph->allocator)};
    tssa_status *status = visit_block(&split, pass->graph->body);
    vec_free(&split.slices);
    return status;
}
