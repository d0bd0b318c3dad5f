/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices that cut an axis into parts, all of it and nothing twice, are one Split:
 *
 *     x[.., 0:2], x[.., 2:4], x[.., 4:9]   ->   Split(x, [2, 2, 5])
 *
 * `recover` takes an exporter's Split apart, so that its parts can be followed; here they are put together again.
 * A write that is put together from pieces may complete the parts as well.
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
};

struct split {
    struct pass_context *pass;
    struct ir_value *base;
    int64_t axis;
    VEC(struct slice) slices;
    uint32_t n_parts;
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

/* Every element of a constant part of a constant axis. Shapes are left to the operators that all runtimes follow
 * when they infer shapes. */
static bool find_slice(struct ir_op *op, int64_t *axis, struct slice *slice)
{
    int64_t start, end, step, size;
    const struct ir_value *base = ir_operand(op, 0);
    if (!ir_op_is(op, IR_OP_Slice) || lower_rank(base) < 1 || base->known || op->results[0].known ||
        lower_rank(&op->results[0]) < 0 || !find_number(op, 1, 0, &start) ||
        !find_number(op, 2, 0, &end) || !find_number(op, 3, 0, axis) ||
        !find_number(op, 4, 1, &step))
        return false;
    *axis += *axis < 0 ? lower_rank(base) : 0;
    if (step != 1 || *axis < 0 || *axis >= lower_rank(base) ||
        !dim_is_const(base->type->dims[*axis], &size))
        return false;
    *slice = (struct slice){.op = op, .start = place_of(start, size), .end = place_of(end, size)};
    return slice->start < slice->end;
}

static int by_place(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Numbers the parts. */
static bool is_partition(struct split *split)
{
    struct slice *slices = split->slices.data;
    size_t count = split->slices.count;
    qsort(slices, count, sizeof *slices, by_place);
    int64_t size = 0;
    dim_is_const(split->base->type->dims[split->axis], &size);
    split->n_parts = 0;
    if (slices[0].start != 0 || slices[count - 1].end != size)
        return false;
    for (size_t i = 1; i < count; i++) {
        bool same = slices[i].start == slices[i - 1].start && slices[i].end == slices[i - 1].end;
        if (!same && slices[i].start != slices[i - 1].end)
            return false;
        split->n_parts += !same;
        slices[i].part = split->n_parts;
    }
    split->n_parts++;
    return split->n_parts > 1 && split->n_parts <= MAX_PARTS;
}

/* The slices of the same axis of the same base, in the same block. */
static tssa_status *collect(struct split *split, const struct ir_op *first)
{
    struct slice slice;
    int64_t axis;
    int looked_at = 0;
    split->slices.count = 0;
    for (const struct ir_use *use = split->base->uses; use && looked_at < MAX_USES;
         use = use->next, looked_at++)
        if (use == &use->user->operands[0] && use->user->parent == first->parent &&
            find_slice(use->user, &axis, &slice) && axis == split->axis &&
            !vec_push(&split->slices, slice))
            return status_out_of_memory();
    return NULL;
}

static tssa_status *insert_split(struct split *split, struct ir_op *before, struct ir_op **result)
{
    struct ir_graph *graph = split->pass->graph;
    int64_t sizes[MAX_PARTS];
    for (size_t i = 0; i < split->slices.count; i++) {
        const struct slice *slice = &split->slices.data[i];
        sizes[slice->part] = slice->end - slice->start;
    }
    struct ir_op *list = ir_constant_ints(graph, 1, split->n_parts, sizes);
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

/* In the place of the slices, of which *first is the first one in the block; then it is the Split. */
static tssa_status *make_split(struct split *split, struct ir_op **first)
{
    struct ir_op *op = NULL;
    TRY(insert_split(split, *first, &op));
    TRY(pass_remark(split->pass, TSSA_REMARK_APPLIED, *first, "%u slices are one Split",
                    (unsigned)split->n_parts));
    for (size_t i = 0; i < split->slices.count; i++) {
        const struct slice *slice = &split->slices.data[i];
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
        TRY(collect(split, op));
        if (split->slices.count > 1 && is_partition(split))
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
