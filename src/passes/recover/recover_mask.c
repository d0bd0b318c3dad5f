/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where with a mask of positions: a constant mask that is true in a box, or comparisons of
 * generated coordinates with numbers. The box is a rule of slices; and TensorScatter, whose region
 * is one slice.
 */
#include <string.h>

#include "ir/infer.h"
#include "ir/scalar.h"
#include "passes/recover/recover.h"

/* One axis of a box: all of it, start, start + step, .. end (exclusive), or one position. */
struct side {
    bool whole;
    int64_t start, end, step;
    struct ir_value *at; /* the one position, when it is no number */
};

struct box {
    int rank;
    const struct dim *const *dims;
    struct element_space space;
    struct side sides[TSSA_MAX_RANK];
};

/* ---- Constant masks -------------------------------------------------------------------------- */

#define MAX_MASK (1 << 22)

/* Finds the true positions of one axis, which must be evenly spaced. Returns how many; 0: they are
 * not. */
static int64_t read_side(const struct tensor *mask, bool negated, int axis, struct side *side)
{
    const unsigned char *bits = mask->data; /* 0 or 1 each */
    int64_t inner = 1, dim = mask->dims[axis], count = 0, last = 0;
    size_t total = tensor_count(mask);
    for (int i = axis + 1; i < mask->rank; i++)
        inner *= mask->dims[i];
    *side = (struct side){.step = 1};
    for (int64_t k = 0; k < dim; k++) {
        bool any = false;
        for (size_t block = (size_t)(k * inner); block < total && !any;
             block += (size_t)(dim * inner))
            any = memchr(bits + block, negated ? 0 : 1, (size_t)inner) != NULL;
        if (!any)
            continue;
        if (count == 0)
            side->start = k;
        else if (count == 1)
            side->step = k - side->start;
        else if (k - last != side->step)
            return 0;
        last = k;
        count++;
    }
    side->end = last + 1;
    side->whole = count == dim;
    return count;
}

static bool read_constant_mask(const struct tensor *mask, bool negated, struct box *box)
{
    int skip = box->rank - mask->rank;
    size_t total = tensor_count(mask), set = 0;
    int64_t expected = 1;
    if (skip < 0 || total == 0 || total > MAX_MASK)
        return false;
    for (int i = 0; i < mask->rank; i++) {
        struct side *side = &box->sides[skip + i];
        if (dim_is(box->dims[skip + i], mask->dims[i])) {
            int64_t count = read_side(mask, negated, i, side);
            if (count == 0)
                return false;
            expected *= count;
        } else if (mask->dims[i] != 1) {
            return false;
        }
    }
    for (size_t i = 0; i < total; i++)
        set += ((const unsigned char *)mask->data)[i] == !negated;
    return set == (size_t)expected;
}

/* ---- Compared coordinates -------------------------------------------------------------------- */

/* Operand `index` of a comparison at the positions of the box. */
static tssa_status *read_operand(struct pass_context *pass, const struct ir_op *op, uint32_t index,
                                 const struct box *box, struct element *element, bool *proven)
{
    struct element at[TSSA_MAX_RANK];
    struct element_doubt doubt;
    struct ir_value *value = ir_operand(op, index);
    *proven = false;
    if (!recover_is_ranked(value) || value->type->rank > box->rank)
        return NULL;
    for (int i = 0; i < value->type->rank; i++) {
        int axis = box->rank - value->type->rank + i;
        bool single = dim_is(value->type->dims[i], 1);
        if (!single && value->type->dims[i] != box->dims[axis])
            return NULL;
        if (single ? !element_number(pass->graph, 0, &at[i])
                   : !element_coordinate(pass->graph, axis, &at[i]))
            return status_out_of_memory();
    }
    return element_read(pass->graph, &box->space, value, at, element, proven, &doubt);
}

/* The axis whose coordinate the element is; -1: it is not just that. */
static int coordinate_of(const struct element *element, int rank)
{
    int axis = -1;
    if (element->scalar || !dim_is(element->offset, 0))
        return -1;
    for (int i = 0; i < rank; i++) {
        if (!element->factors[i])
            continue;
        if (axis >= 0 || !dim_is(element->factors[i], 1))
            return -1;
        axis = i;
    }
    return axis;
}

/* The orders of its operands (ir/scalar.h) in which a row holds whose program compares them, and
 * does no more; 0: it is none. */
static int orders_of(const struct ir_op *op)
{
    const struct scalar_code *code = op->info->ew ? op->info->ew->program : NULL;
    if (!code || code[0].id != SCALAR_X || code[1].id != SCALAR_Y || code[2].id == SCALAR_END ||
        code[3].id != SCALAR_END)
        return 0;
    return scalar_orders((enum scalar_id)code[2].id);
}

/* What is to the left of the number goes to its right. */
static int turned(int orders)
{
    return (orders & ORDER_EQUAL) | (orders & ORDER_LESS ? ORDER_GREATER : 0) |
           (orders & ORDER_GREATER ? ORDER_LESS : 0);
}

/* Where a coordinate lies to the limit in one of these orders, as a side. A slice that goes too far
 * is cut, as a mask is. */
static bool side_of_number(int orders, int64_t limit, struct side *side)
{
    const bool less = orders & ORDER_LESS, equal = orders & ORDER_EQUAL,
               greater = orders & ORDER_GREATER;
    if (limit < 0 || limit >= INT32_MAX || (less && greater) || !orders)
        return false;
    *side = (struct side){
        .step = 1, .start = less ? 0 : limit + !equal, .end = greater ? INT64_MAX : limit + equal};
    return true;
}

static tssa_status *read_comparison(struct pass_context *pass, const struct ir_op *op, bool negated,
                                    struct box *box, bool *proven)
{
    struct element a, b;
    int64_t limit, size;
    int orders = orders_of(op);
    if (negated)
        orders ^= ORDER_ANY;
    TRY(read_operand(pass, op, 0, box, &a, proven));
    if (*proven)
        TRY(read_operand(pass, op, 1, box, &b, proven));
    if (!*proven)
        return NULL;
    *proven = false;
    int axis = coordinate_of(&a, box->rank);
    const struct element *other = &b;
    if (axis < 0) {
        axis = coordinate_of(&b, box->rank);
        other = &a;
        orders = turned(orders);
    }
    if (axis < 0 || !box->sides[axis].whole)
        return NULL;
    struct side *side = &box->sides[axis];
    if (element_is_number(other, &limit)) {
        *proven = side_of_number(orders, limit, side);
        if (*proven && dim_is_const(box->dims[axis], &size)) {
            side->end = side->end > size ? size : side->end;
            side->start = side->start > size ? size : side->start;
        }
    } else if (orders == ORDER_EQUAL && other->witness &&
               element_within(pass->graph, &box->space, other, box->dims[axis])) {
        *side = (struct side){.at = other->witness};
        *proven = true;
    }
    return NULL;
}

/* ---- OneHot ---------------------------------------------------------------------------------- */

/* Are the values that OneHot puts 0 and, in one place, 1? */
static bool is_off_on(const struct tensor *values)
{
    if (!values || tensor_count(values) != 2)
        return false;
    if (values->dtype == TSSA_FLOAT)
        return ((const float *)values->data)[0] == 0 && ((const float *)values->data)[1] == 1;
    if (values->dtype != TSSA_BOOL && !dtype_is_integer(values->dtype))
        return false;
    size_t width = dtype_info(values->dtype)->size;
    return dtype_load_int64(values->dtype, values->data) == 0 &&
           dtype_load_int64(values->dtype, (const char *)values->data + width) == 1;
}

/* OneHot of a single index: one position, which must be there. */
static tssa_status *read_one_hot(struct pass_context *pass, const struct ir_op *op, struct box *box,
                                 bool *proven)
{
    struct element at[TSSA_MAX_RANK], element;
    struct element_doubt doubt;
    struct ir_value *index = ir_operand(op, 0);
    const struct ir_type *type = op->results[0].type;
    int64_t axis = ir_op_axis(op), limit;
    *proven = false;
    if (!recover_is_ranked(index) || !recover_is_ranked(&op->results[0]) ||
        type->rank > box->rank || !ir_operand(op, 2) ||
        !is_off_on(ir_value_constant(ir_operand(op, 2))))
        return NULL;
    axis += axis < 0 ? type->rank : 0;
    int side = box->rank - type->rank + (int)axis;
    if (axis < 0 || axis >= type->rank || type->dims[axis] != box->dims[side] ||
        !box->sides[side].whole)
        return NULL;
    for (int i = 0; i < index->type->rank; i++) {
        if (!dim_is(index->type->dims[i], 1))
            return NULL;
        if (!element_number(pass->graph, 0, &at[i]))
            return status_out_of_memory();
    }
    TRY(element_read(pass->graph, &box->space, index, at, &element, proven, &doubt));
    if (!*proven)
        return NULL;
    if (element_is_number(&element, &limit)) {
        *proven = side_of_number(ORDER_EQUAL, limit, &box->sides[side]);
        return NULL;
    }
    *proven =
        element.witness && element_within(pass->graph, &box->space, &element, box->dims[side]);
    if (*proven)
        box->sides[side] = (struct side){.at = element.witness};
    return NULL;
}

/* ---- Masks ----------------------------------------------------------------------------------- */

/* The box in which the mask is true (negated: false). */
static tssa_status *read_mask(struct pass_context *pass, struct ir_value *mask, bool negated,
                              struct box *box, int depth, bool *proven)
{
    const struct tensor *table = ir_value_constant(mask);
    *proven = false;
    if (table && table->dtype == TSSA_BOOL) {
        for (int i = 0; i < box->rank; i++) /* a constant is not combined with other masks */
            if (!box->sides[i].whole)
                return NULL;
        *proven = read_constant_mask(table, negated, box);
        return NULL;
    }
    if (!mask->op || depth > 8)
        return NULL;
    if (orders_of(mask->op))
        return read_comparison(pass, mask->op, negated, box, proven);
    if (ir_op_is(mask->op, IR_OP_Cast) && ir_operand(mask->op, 0)->op) /* of 0 and 1 */
        mask = ir_op_is(ir_operand(mask->op, 0)->op, IR_OP_OneHot) ? ir_operand(mask->op, 0) : mask;
    if (ir_op_is(mask->op, IR_OP_OneHot) && !negated)
        return read_one_hot(pass, mask->op, box, proven);
    if (ir_op_is(mask->op, IR_OP_Not))
        return read_mask(pass, ir_operand(mask->op, 0), !negated, box, depth + 1, proven);
    if (!ir_op_is(mask->op, negated ? IR_OP_Or : IR_OP_And))
        return NULL;
    TRY(read_mask(pass, ir_operand(mask->op, 0), negated, box, depth + 1, proven));
    return *proven ? read_mask(pass, ir_operand(mask->op, 1), negated, box, depth + 1, proven)
                   : NULL;
}

/* ---- Where ----------------------------------------------------------------------------------- */

/* One position that is a number, and there. */
static bool is_position(const struct side *side, const struct dim *dim)
{
    return !side->whole && !side->at && side->step == 1 && side->end == side->start + 1 &&
           dim->low > side->start;
}

/* The box as steps on a tensor that broadcasts to it; axes of size one stay as they are. */
static void draft_box(const struct box *box, const struct ir_type *type, struct rule_draft *draft)
{
    int skip = box->rank - type->rank, region_axis = 0;
    for (int i = 0; i < type->rank; i++) {
        const struct side *side = &box->sides[skip + i];
        bool single = dim_is(type->dims[i], 1) && !dim_is(box->dims[skip + i], 1);
        bool position = is_position(side, box->dims[skip + i]);
        if (position || side->at) {
            if (single)
                draft_step(draft, RULE_SQUEEZE, 1, (const int64_t[]){region_axis});
            else if (position)
                draft_select(draft, region_axis, side->start);
            else
                draft_step_value(draft, RULE_SELECT, region_axis, side->at);
            continue;
        }
        if (!side->whole && !single)
            draft_slice(draft, region_axis, side->start, side->end, side->step);
        region_axis++;
    }
}

/* Is the box what a Pad with constants surrounded? Then what it was given is what lies there. */
static struct ir_value *before_pad(const struct box *box, const struct ir_value *source)
{
    const struct ir_op *pad = source->op;
    int64_t pads[IR_KNOWN_MAX];
    size_t n;
    if (!pad || !ir_op_is(pad, IR_OP_Pad) || ir_operand(pad, 3) ||
        source->type->rank != box->rank || !recover_is_ranked(ir_operand(pad, 0)) ||
        !infer_const_ints(pad, 1, pads, &n) || n != 2 * (size_t)box->rank)
        return NULL;
    struct ir_value *inner = ir_operand(pad, 0);
    for (int i = 0; i < box->rank; i++) {
        const struct side *side = &box->sides[i];
        int64_t before = pads[i], after = pads[box->rank + i], size;
        if (side->whole && before == 0 && after == 0)
            continue;
        if (side->whole || side->at || side->step != 1 || side->start != before || before < 0 ||
            after < 0 || !dim_is_const(inner->type->dims[i], &size) || side->end != before + size)
            return NULL;
    }
    return inner;
}

/* Does the source have, on every axis, the box's size or size one? */
static bool broadcasts(const struct box *box, const struct ir_type *source)
{
    int skip = box->rank - source->rank;
    for (int i = 0; i < source->rank; i++)
        if (source->dims[i] != box->dims[skip + i] && !dim_is(source->dims[i], 1))
            return false;
    return true;
}

static tssa_status *write_box(struct pass_context *pass, struct ir_op *op, const struct box *box,
                              struct ir_value *base, struct ir_value *source)
{
    struct rule_draft write = {0}, read = {0};
    struct ir_value *inner = before_pad(box, source);
    draft_box(box, op->results[0].type, &write);
    draft_box(box, source->type, &read);
    if (write.full || read.full || write.n_steps == 0)
        return NULL;
    if (inner)
        source = inner;
    else
        TRY(recover_insert_access(pass, op, source, &read, &source));
    return recover_assign(pass, op, base, source, &write);
}

tssa_status *recover_where(struct pass_context *pass, struct ir_op *op)
{
    struct ir_value *mask = ir_operand(op, 0);
    const struct ir_type *type = op->results[0].type;
    if (!op->results[0].uses || !recover_is_ranked(&op->results[0]) || !recover_is_ranked(mask))
        return NULL;
    /* What stays is where the mask is false, or where it is true. */
    for (uint32_t kept = 2; kept >= 1; kept--) {
        struct ir_value *base = ir_operand(op, kept), *source = ir_operand(op, 3 - kept);
        struct box box = {.rank = type->rank, .dims = type->dims, .space = {.rank = type->rank}};
        bool proven;
        if (base->type != type || !recover_is_ranked(source) || !broadcasts(&box, source->type))
            continue;
        for (int i = 0; i < type->rank; i++) {
            box.space.extents[i] = type->dims[i];
            box.sides[i].whole = true;
        }
        TRY(read_mask(pass, mask, kept == 1, &box, 0, &proven));
        if (proven)
            return write_box(pass, op, &box, base, source);
    }
    return NULL;
}

/* ---- TensorScatter --------------------------------------------------------------------------- */

/* Where all batches are written to: one number. */
static tssa_status *read_start(struct pass_context *pass, const struct ir_op *op, int64_t *start,
                               bool *proven)
{
    struct ir_value *indices = ir_operand(op, 2);
    struct element_space space = {.rank = 1};
    struct element at, element;
    struct element_doubt doubt;
    *start = 0;
    *proven = true;
    if (!indices)
        return NULL;
    *proven = false;
    if (!recover_is_ranked(indices) || indices->type->rank != 1)
        return NULL;
    space.extents[0] = indices->type->dims[0];
    if (!element_coordinate(pass->graph, 0, &at))
        return status_out_of_memory();
    TRY(element_read(pass->graph, &space, indices, &at, &element, proven, &doubt));
    if (dim_is(space.extents[0], 1))
        element.factors[0] = NULL;
    *proven = *proven && element_is_number(&element, start);
    return NULL;
}

tssa_status *recover_tensor_scatter(struct pass_context *pass, struct ir_op *op)
{
    struct rule_draft draft = {0};
    struct ir_value *base = ir_operand(op, 0), *source = ir_operand(op, 1);
    int64_t axis = ir_op_axis(op), start, length, size;
    bool proven;
    if (!recover_is_ranked(base) || !recover_is_ranked(source) ||
        base->type->rank != source->type->rank)
        return NULL;
    axis += axis < 0 ? base->type->rank : 0;
    if (axis < 1 || axis >= base->type->rank)
        return NULL;
    for (int i = 0; i < base->type->rank; i++)
        if (i != axis && base->type->dims[i] != source->type->dims[i])
            return NULL;
    TRY(read_start(pass, op, &start, &proven));
    /* Around the end a circular cache goes on at its beginning: that is no slice. */
    if (!proven || start < 0 || !dim_is_const(source->type->dims[axis], &length) ||
        !dim_is_const(base->type->dims[axis], &size) || start > size - length)
        return pass_remark(pass, TSSA_REMARK_MISSED, op,
                           "stays a scatter: where it writes is not known to be one range");
    draft_slice(&draft, axis, start, start + length, 1);
    return recover_assign(pass, op, base, source, &draft);
}
