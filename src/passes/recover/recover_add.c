/* SPDX-License-Identifier: Apache-2.0 */
/* Additions of a tensor that zeros surround: of a part, in place. */
#include <string.h>

#include "ir/infer.h"
#include "ir/zero_sign.h"
#include "passes/recover/recover.h"

/* What a Pad puts zeros around, and how many on every axis. */
struct padding {
    struct ir_value *inner;
    int rank;
    int64_t before[TSSA_MAX_RANK], after[TSSA_MAX_RANK];
    bool minus; /* the zeros are -0.0 */
};

static bool is_constant_mode(const struct ir_op *pad)
{
    return strcmp(ir_attr_str(pad, "mode", "constant"), "constant") == 0;
}

/* Zeros around it? *minus: those that change nothing when they are added. */
static bool reads_zero(const struct ir_op *pad, bool *minus)
{
    const struct ir_value *value = ir_operand(pad, 2);
    *minus = false;
    if (!value)
        return true;
    const struct tensor *constant = ir_value_constant(value);
    if (!constant || tensor_count(constant) != 1)
        return false;
    if (dtype_is_integer(constant->dtype))
        return dtype_load_int64(constant->dtype, constant->data) == 0;
    *minus = is_minus_zero(constant->dtype, constant->data);
    return dtype_load_double(constant->dtype, constant->data) == 0;
}

/* The axes that the pads are of: all of them, or those of the fourth operand. */
static bool read_axes(const struct ir_op *pad, int rank, int64_t *axes, size_t *count)
{
    *count = (size_t)rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    if (!ir_operand(pad, 3))
        return true;
    if (!infer_const_ints(pad, 3, axes, count) || *count > (size_t)rank)
        return false;
    for (size_t i = 0; i < *count; i++) {
        axes[i] += axes[i] < 0 ? rank : 0;
        if (axes[i] < 0 || axes[i] >= rank)
            return false;
    }
    return true;
}

static bool read_padding(const struct ir_value *value, struct padding *padding)
{
    const struct ir_op *pad = value->op;
    int64_t pads[IR_KNOWN_MAX], axes[IR_KNOWN_MAX];
    size_t n, n_axes;
    bool pads_any = false;
    if (!pad || !ir_op_is(pad, IR_OP_Pad) || !is_constant_mode(pad) ||
        !recover_is_ranked(ir_operand(pad, 0)))
        return false;
    *padding = (struct padding){.inner = ir_operand(pad, 0)};
    padding->rank = padding->inner->type->rank;
    if (!read_axes(pad, padding->rank, axes, &n_axes) || !infer_const_ints(pad, 1, pads, &n) ||
        n != 2 * n_axes || !reads_zero(pad, &padding->minus))
        return false;
    for (size_t i = 0; i < n_axes; i++) {
        padding->before[axes[i]] = pads[i];
        padding->after[axes[i]] = pads[n_axes + i];
        if (pads[i] < 0 || pads[n_axes + i] < 0)
            return false;
        pads_any |= pads[i] || pads[n_axes + i];
    }
    return pads_any;
}

/* The one axis that zeros are put around; -1: several. */
static int padded_axis(const struct padding *padding)
{
    int axis = -1;
    for (int i = 0; i < padding->rank; i++) {
        if (padding->before[i] == 0 && padding->after[i] == 0)
            continue;
        if (axis >= 0)
            return -1;
        axis = i;
    }
    return axis;
}

/* The slice that the zeros surround; else why no write takes the place of the sum. */
static const char *draft_inner(const struct padding *padding, struct rule_draft *draft)
{
    int axis = padded_axis(padding);
    int64_t size, end = INT64_MAX;
    if (axis < 0)
        return "zeros are put around several axes, and to write a box costs more than to add them";
    if (dim_is_const(padding->inner->type->dims[axis], &size)) {
        end = padding->before[axis] + size;
        if (size > padding->before[axis] + padding->after[axis])
            return "most of the sum has no zero in it";
    } else if (padding->after[axis]) {
        return "only a run can tell where the zeros begin";
    }
    draft_slice(draft, axis, padding->before[axis], end, 1);
    return NULL;
}

/* Do both surround boxes that have no element in common? */
static bool are_apart(const struct padding *a, const struct padding *b)
{
    for (int i = 0; i < a->rank; i++) {
        int64_t size_a, size_b;
        bool known = dim_is_const(a->inner->type->dims[i], &size_a);
        if (known && a->before[i] + size_a <= b->before[i])
            return true;
        known = dim_is_const(b->inner->type->dims[i], &size_b);
        if (known && b->before[i] + size_b <= a->before[i])
            return true;
    }
    return false;
}

/*
 * What is there afterwards: the sum, in the order of the operands; what is added where zeros lie.
 */
static tssa_status *make_source(struct pass_context *pass, struct ir_op *op, uint32_t padded,
                                const struct padding *padding, const struct rule_draft *draft,
                                struct ir_value **source)
{
    struct ir_value *base = ir_operand(op, 1 - padded), *part;
    struct padding other;
    *source = padding->inner;
    if (read_padding(base, &other) && are_apart(padding, &other) &&
        (other.minus || never_minus_zero(padding->inner)))
        return NULL;
    TRY(recover_insert_access(pass, op, base, draft, &part));
    struct ir_op *sum = ir_op_create(pass->graph, op->info, 2, 1);
    TRY_ALLOC(sum);
    sum->version = op->version;
    ir_op_set_operand(sum, padded, padding->inner);
    ir_op_set_operand(sum, 1 - padded, part);
    *source = &sum->results[0];
    TRY(pass_insert(sum, op));
    /* The same sizes, under the symbols that other types already use. */
    (*source)->type = padding->inner->type;
    return NULL;
}

/* Writes the part of operand `1 - padded` that the other one is not zero in; NULL, or why it
 * cannot. */
static tssa_status *write_part(struct pass_context *pass, struct ir_op *op, uint32_t padded,
                               const struct padding *padding, const char **reason)
{
    struct ir_value *base = ir_operand(op, 1 - padded), *source;
    struct rule_draft draft = {0};
    *reason = NULL;
    if (!padding->minus && !never_minus_zero(base))
        *reason = "around it 0.0 is added, which makes 0.0 of the -0.0 that may be there";
    else
        *reason = draft_inner(padding, &draft);
    if (*reason)
        return NULL;
    TRY(make_source(pass, op, padded, padding, &draft, &source));
    return recover_assign(pass, op, base, source, &draft);
}

tssa_status *recover_add(struct pass_context *pass, struct ir_op *op)
{
    const char *missing = NULL, *reason;
    const struct ir_value *blamed = NULL;
    char name[128];
    if (!op->results[0].uses || !recover_is_ranked(&op->results[0]))
        return NULL;
    for (uint32_t padded = 2; padded-- > 0;) {
        const struct ir_value *value = ir_operand(op, padded);
        const struct ir_type *type = op->results[0].type;
        struct padding padding;
        if (!read_padding(value, &padding) || ir_operand(op, 1 - padded)->type != type ||
            value->type != type || value->uses->next)
            continue;
        TRY(write_part(pass, op, padded, &padding, &reason));
        if (!reason)
            return NULL;
        missing = reason;
        blamed = ir_operand(op, 1 - padded);
    }
    if (!missing)
        return NULL;
    return pass_remark(pass, TSSA_REMARK_MISSED, op, "is no write to a part of %s: %s",
                       recover_name(blamed, name, sizeof name), missing);
}
