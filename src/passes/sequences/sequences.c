/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes sequences apart whose elements are known one by one: SequenceConstruct, SequenceEmpty,
 * SplitToSequence with known parts, and what SequenceInsert and SequenceErase make of them.
 *
 *     SequenceAt             the element, or a Slice of what was split; of parts of one row each,
 *                            however many there are, a Gather of the row
 *     SequenceLength         a constant
 *     ConcatFromSequence     Concat, with Unsqueeze in front of it for a new axis
 *     SequenceInsert, Erase  SequenceConstruct, where another op wants the sequence itself
 *     OptionalGetElement     the element
 *
 *   needs   known elements, for positions
 *   keeps   values; sequences that something else wants
 *   breaks  nothing; the ops that made the sequences stay (dead_code removes them)
 *
 * Positions that are out of range are left alone, so that the run fails as before.
 */
#include "base/vec.h"
#include "ir/infer.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"

/* Longer sequences are left alone: looking an element up takes time linear in the length. */
#define MAX_LENGTH 1024

/* An element: a value, or a part of a value that is split. */
struct item {
    struct ir_value *value;
    const struct ir_op *split; /* the SplitToSequence, or NULL */
    const struct dim *start, *end;
};

struct items {
    VEC(struct item) list;
    bool known; /* false: the elements cannot be told */
};

/* ---- What a sequence consists of ------------------------------------------------------------- */

/*
 * The position that an operand names, counted from the front; `limit` itself counts when `at_end`.
 */
static bool position(const struct ir_op *op, uint32_t index, size_t length, bool at_end, size_t *at)
{
    int64_t value, limit = (int64_t)length;
    if (!loop_known_int(ir_operand(op, index), &value))
        return false;
    if (value < 0)
        value += limit;
    if (value < 0 || value >= limit + (at_end ? 1 : 0))
        return false;
    *at = (size_t)value;
    return true;
}

static bool push_values(struct items *items, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!vec_push(&items->list, (struct item){.value = op->operands[i].value}))
            return false;
    return true;
}

/* The sizes of the parts; *count is 0 when they cannot be told. */
static tssa_status *part_sizes(const struct ir_op *op, const struct dim **sizes, size_t *count)
{
    struct dim_table *dims = &op->parent->graph->dims;
    const struct ir_known *split = infer_known(op, 1);
    int64_t whole, size = 1;
    int rank = infer_rank(op, 0), axis;
    *count = 0;
    if (!infer_find_axis(ir_op_axis(op), rank, &axis))
        return NULL;
    if (infer_rank(op, 1) == 1) {
        for (size_t i = 0; split && i < split->count; i++)
            if (!(sizes[i] = split->elements[i]) || sizes[i]->low < 0)
                return NULL;
        *count = split ? split->count : 0;
        return NULL;
    }
    if ((ir_operand(op, 1) && !loop_known_int(ir_operand(op, 1), &size)) || size < 1 ||
        !dim_is_const(infer_dim(op, 0, axis), &whole) || (whole + size - 1) / size > IR_KNOWN_MAX)
        return NULL;
    for (int64_t done = 0; done < whole; done += size) {
        sizes[*count] = dim_const(dims, whole - done < size ? whole - done : size);
        TRY_ALLOC(sizes[*count]);
        ++*count;
    }
    return NULL;
}

static tssa_status *push_parts(struct items *items, const struct ir_op *op)
{
    struct dim_table *dims = &op->parent->graph->dims;
    const struct dim *sizes[IR_KNOWN_MAX], *at = dim_const(dims, 0);
    size_t count;
    items->known = infer_rank(op, 0) > 0;
    if (!items->known)
        return NULL;
    TRY(part_sizes(op, sizes, &count));
    items->known = count > 0;
    for (size_t i = 0; i < count; i++) {
        struct item item = {.value = ir_operand(op, 0), .split = op, .start = at};
        item.end = at = dim_add(dims, at, sizes[i]);
        TRY_ALLOC(at);
        if (!vec_push(&items->list, item))
            return status_out_of_memory();
    }
    return NULL;
}

static bool insert(struct items *items, const struct ir_op *op)
{
    size_t at = items->list.count;
    if (ir_operand(op, 2) && !position(op, 2, items->list.count, true, &at)) {
        items->known = false;
        return true;
    }
    if (!vec_push(&items->list, (struct item){0}))
        return false;
    for (size_t i = items->list.count - 1; i > at; i--)
        items->list.data[i] = items->list.data[i - 1];
    items->list.data[at] = (struct item){.value = ir_operand(op, 1)};
    return true;
}

static void erase(struct items *items, const struct ir_op *op)
{
    size_t at = items->list.count - 1;
    if (items->list.count == 0 ||
        (ir_operand(op, 1) && !position(op, 1, items->list.count, false, &at))) {
        items->known = false;
        return;
    }
    for (size_t i = at; i + 1 < items->list.count; i++)
        items->list.data[i] = items->list.data[i + 1];
    items->list.count--;
}

/* One step of a chain: what its op does to the elements before it. */
static tssa_status *apply(struct items *items, const struct ir_op *op)
{
    bool done = true;
    switch (op->info->id) {
    case IR_OP_SequenceEmpty:
        break;
    case IR_OP_SequenceConstruct:
        done = push_values(items, op);
        break;
    case IR_OP_SplitToSequence:
        return push_parts(items, op);
    case IR_OP_SequenceInsert:
        done = insert(items, op);
        break;
    case IR_OP_SequenceErase:
        erase(items, op);
        break;
    default:
        items->known = false;
    }
    return done ? NULL : status_out_of_memory();
}

static bool is_chained(const struct ir_op *op)
{
    return op && (ir_op_is(op, IR_OP_SequenceInsert) || ir_op_is(op, IR_OP_SequenceErase));
}

/* Fills the items of a sequence; items->known says whether it could. */
static tssa_status *read_chain(struct items *items, const struct ir_value *sequence)
{
    VEC(const struct ir_op *) chain = VEC_INIT(items->list.allocator);
    tssa_status *status = NULL;
    const struct ir_op *op = sequence ? sequence->op : NULL;
    for (; is_chained(op) && chain.count <= MAX_LENGTH; op = ir_operand(op, 0)->op)
        if (!vec_push(&chain, op))
            goto out_of_memory;
    items->known = op && chain.count <= MAX_LENGTH;
    if (items->known)
        TRY_GOTO(status, apply(items, op), done);
    for (size_t i = chain.count; items->known && i-- > 0;)
        TRY_GOTO(status, apply(items, chain.data[i]), done);
done:
    vec_free(&chain);
    return status;
out_of_memory:
    vec_free(&chain);
    return status_out_of_memory();
}

/* ---- Replacements ---------------------------------------------------------------------------- */

static bool set_int(struct ir_op *op, const char *name, int64_t value)
{
    struct ir_graph *graph = op->parent->graph;
    struct ir_attr attr = {
        .name = intern_str(&graph->strings, name), .kind = IR_ATTR_INT, .i = value};
    return attr.name && ir_op_set_attr(graph, op, &attr);
}

/* `by`, which may be an outer value, takes the place and, when it has none, the name of op's
 * result. */
static void replace(struct pass_context *pass, struct ir_op *op, struct ir_value *by)
{
    loop_replace(&op->results[0], by);
    pass->changed = true;
}

/* The element as a value: a part becomes a Slice, without the axis where the split drops it. *value
 * is NULL for a part whose ends are not constants. */
static tssa_status *element_value(struct ir_op *at, const struct item *item,
                                  struct ir_value **value)
{
    int64_t ends[2], axis;
    bool known; /* as the ends are */
    struct ir_value *bounds[3];
    *value = item->value;
    if (!item->split)
        return NULL;
    *value = NULL;
    if (!dim_is_const(item->start, &ends[0]) || !dim_is_const(item->end, &ends[1]))
        return NULL;
    axis = ir_op_axis(item->split);
    for (int i = 0; i < 2; i++)
        TRY(loop_make_int(at, 1, ends[i], &bounds[i]));
    TRY(loop_make_int(at, 1, axis, &bounds[2]));
    struct ir_op *slice = loop_make_op(at, IR_OP_Slice, 4);
    TRY_ALLOC(slice);
    ir_op_set_operand(slice, 0, item->value);
    for (uint32_t i = 0; i < 3; i++)
        ir_op_set_operand(slice, i + 1, bounds[i]);
    TRY(ir_infer_op_lenient(slice));
    *value = &slice->results[0];
    if (infer_split_keeps_axis(item->split, &known))
        return NULL;
    struct ir_op *squeeze = loop_make_op(at, IR_OP_Squeeze, 2);
    TRY_ALLOC(squeeze);
    ir_op_set_operand(squeeze, 0, &slice->results[0]);
    ir_op_set_operand(squeeze, 1, bounds[2]);
    *value = &squeeze->results[0];
    return ir_infer_op_lenient(squeeze);
}

static tssa_status *replace_at(struct pass_context *pass, struct ir_op *op, struct items *items)
{
    size_t at;
    struct ir_value *value;
    if (!position(op, 1, items->list.count, false, &at))
        return NULL;
    TRY(element_value(op, &items->list.data[at], &value));
    if (value)
        replace(pass, op, value);
    return NULL;
}

static tssa_status *replace_length(struct pass_context *pass, struct ir_op *op, struct items *items)
{
    struct ir_value *length;
    TRY(loop_make_int(op, 0, (int64_t)items->list.count, &length));
    replace(pass, op, length);
    return NULL;
}

/* All items as values; false in *all when there is one that is none. */
static tssa_status *all_values(struct ir_op *at, struct items *items, bool *all)
{
    *all = true;
    for (size_t i = 0; i < items->list.count && *all; i++) {
        struct ir_value *value;
        TRY(element_value(at, &items->list.data[i], &value));
        items->list.data[i] = (struct item){.value = value};
        *all = value != NULL;
    }
    return NULL;
}

/* The parts of one split, all of them and in order, along the axis along which it was split. */
static struct ir_value *joined_again(const struct ir_op *op, const struct items *items)
{
    const struct ir_op *split = items->list.data[0].split;
    int axis, split_axis, rank = split ? infer_rank(split, 0) : -1;
    bool known;
    if (!split || rank < 0 || ir_attr_int(op, "new_axis", 0) != 0 ||
        ir_operand(op, 0)->op != split || !infer_split_keeps_axis(split, &known))
        return NULL;
    axis = (int)ir_op_axis(op);
    split_axis = (int)ir_op_axis(split);
    axis += axis < 0 ? rank : 0;
    split_axis += split_axis < 0 ? rank : 0;
    return axis == split_axis ? ir_operand(split, 0) : NULL;
}

static tssa_status *unsqueeze_all(struct ir_op *op, struct items *items)
{
    struct ir_value *axis;
    TRY(loop_make_int(op, 1, ir_op_axis(op), &axis));
    for (size_t i = 0; i < items->list.count; i++) {
        struct ir_op *unsqueeze = loop_make_op(op, IR_OP_Unsqueeze, 2);
        TRY_ALLOC(unsqueeze);
        ir_op_set_operand(unsqueeze, 0, items->list.data[i].value);
        ir_op_set_operand(unsqueeze, 1, axis);
        TRY(ir_infer_op_lenient(unsqueeze));
        items->list.data[i].value = &unsqueeze->results[0];
    }
    return NULL;
}

static tssa_status *replace_concat(struct pass_context *pass, struct ir_op *op, struct items *items)
{
    bool all;
    if (items->list.count == 0)
        return NULL; /* fails in every run */
    struct ir_value *whole = joined_again(op, items);
    if (whole) {
        replace(pass, op, whole);
        return NULL;
    }
    TRY(all_values(op, items, &all));
    if (!all)
        return NULL;
    if (ir_attr_int(op, "new_axis", 0) != 0)
        TRY(unsqueeze_all(op, items));
    struct ir_op *concat = loop_make_op(op, IR_OP_Concat, (uint32_t)items->list.count);
    TRY_ALLOC(concat);
    for (size_t i = 0; i < items->list.count; i++)
        ir_op_set_operand(concat, (uint32_t)i, items->list.data[i].value);
    if (!set_int(concat, "axis", ir_op_axis(op)))
        return status_out_of_memory();
    TRY(ir_infer_op_lenient(concat));
    replace(pass, op, &concat->results[0]);
    return NULL;
}

/* Does an op want the sequence that is not replaced itself when the elements are known? */
static bool is_wanted_whole(const struct ir_value *sequence)
{
    for (const struct ir_use *use = sequence->uses; use; use = use->next)
        switch (use->user->info->id) {
        case IR_OP_SequenceAt:
        case IR_OP_SequenceLength:
        case IR_OP_SequenceInsert:
        case IR_OP_SequenceErase:
        case IR_OP_ConcatFromSequence:
            break;
        default:
            return true;
        }
    return false;
}

static tssa_status *replace_chain(struct pass_context *pass, struct ir_op *op, struct items *items)
{
    bool all;
    if (items->list.count == 0 || !is_wanted_whole(&op->results[0]))
        return NULL;
    TRY(all_values(op, items, &all));
    if (!all)
        return NULL;
    struct ir_op *construct =
        loop_make_op(op, IR_OP_SequenceConstruct, (uint32_t)items->list.count);
    TRY_ALLOC(construct);
    for (size_t i = 0; i < items->list.count; i++)
        ir_op_set_operand(construct, (uint32_t)i, items->list.data[i].value);
    TRY(ir_infer_op_lenient(construct));
    replace(pass, op, &construct->results[0]);
    return NULL;
}

/* A value that is no optional, or the one that an Optional was made of. */
static void replace_optional(struct pass_context *pass, struct ir_op *op)
{
    struct ir_value *optional = ir_operand(op, 0);
    if (!optional)
        return;
    if (optional->type->kind == TYPE_TENSOR || optional->type->kind == TYPE_SEQUENCE)
        replace(pass, op, optional);
    else if (optional->op && ir_op_is(optional->op, IR_OP_Optional) && ir_operand(optional->op, 0))
        replace(pass, op, ir_operand(optional->op, 0));
}

/* ---- The pass -------------------------------------------------------------------------------- */

typedef tssa_status *(*replace_fn)(struct pass_context *pass, struct ir_op *op,
                                   struct items *items);

static replace_fn replacement(enum ir_op_id id)
{
    switch (id) {
    case IR_OP_SequenceAt:
        return replace_at;
    case IR_OP_SequenceLength:
        return replace_length;
    case IR_OP_ConcatFromSequence:
        return replace_concat;
    case IR_OP_SequenceInsert:
    case IR_OP_SequenceErase:
        return replace_chain;
    default:
        return NULL;
    }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* The SplitToSequence whose parts are one row each; NULL: it is none, or of an unknown rank. */
static const struct ir_op *rows_of(const struct ir_value *sequence, int *axis)
{
    int64_t size = 1;
    const struct ir_op *op = sequence ? sequence->op : NULL;
    if (!op || !ir_op_is(op, IR_OP_SplitToSequence) || infer_rank(op, 0) < 1 ||
        (ir_operand(op, 1) &&
         (infer_rank(op, 1) != 0 || !loop_known_int(ir_operand(op, 1), &size))))
        return NULL;
    return size == 1 && infer_find_axis(ir_op_axis(op), infer_rank(op, 0), axis) ? op : NULL;
}

static tssa_status *make_gather(struct ir_op *at, struct ir_value *from, struct ir_value *index,
                                int axis, struct ir_value **value)
{
    struct ir_op *gather = loop_make_op(at, IR_OP_Gather, 2);
    TRY_ALLOC(gather);
    ir_op_set_operand(gather, 0, from);
    ir_op_set_operand(gather, 1, index);
    if (!set_int(gather, "axis", axis))
        return status_out_of_memory();
    *value = &gather->results[0];
    return ir_infer_op_lenient(gather);
}

/* Element i is row i, from the end where i is negative, and an error where there is none. */
static tssa_status *replace_row(struct pass_context *pass, struct ir_op *op)
{
    int axis;
    bool known; /* as the size of the parts is */
    struct ir_value *index = ir_operand(op, 1), *value;
    const struct ir_op *split = rows_of(ir_operand(op, 0), &axis);
    if (!split || !index || infer_rank(op, 1) != 0)
        return NULL;
    if (infer_split_keeps_axis(split, &known))
        TRY(loop_make_unsqueeze(op, index, 0, &index));
    TRY(make_gather(op, ir_operand(split, 0), index, axis, &value));
    replace(pass, op, value);
    return NULL;
}

static tssa_status *replace_row_count(struct pass_context *pass, struct ir_op *op)
{
    int axis;
    struct ir_value *index, *value;
    const struct ir_op *split = rows_of(ir_operand(op, 0), &axis);
    if (!split)
        return NULL;
    struct ir_op *shape = loop_make_op(op, IR_OP_Shape, 1);
    TRY_ALLOC(shape);
    ir_op_set_operand(shape, 0, ir_operand(split, 0));
    TRY(ir_infer_op_lenient(shape));
    TRY(loop_make_int(op, 0, axis, &index));
    TRY(make_gather(op, &shape->results[0], index, 0, &value));
    replace(pass, op, value);
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    replace_fn fn = replacement(op->info->id);
    if (ir_op_is(op, IR_OP_OptionalGetElement) && op->results[0].uses)
        replace_optional(pass, op);
    if (!fn || !op->results[0].uses)
        return NULL;
    struct items items = {.list = VEC_INIT(pass->graph->allocator)};
    tssa_status *status =
        read_chain(&items, fn == replace_chain ? &op->results[0] : ir_operand(op, 0));
    if (!status && items.known)
        status = fn(pass, op, &items);
    else if (!status && fn == replace_at)
        status = replace_row(pass, op);
    else if (!status && fn == replace_length)
        status = replace_row_count(pass, op);
    vec_free(&items.list);
    return status;
}

tssa_status *pass_sequences(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
