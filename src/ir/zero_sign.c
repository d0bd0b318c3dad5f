/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/zero_sign.h"

#include <math.h>

#include "ir/reduction.h"

/* Values that are looked at for one answer, and elements of a constant. */
#define MAX_VALUES 128
#define MAX_ELEMENTS (1 << 20)

struct search {
    uint32_t n_seen;
};

static bool never(struct search *search, const struct ir_value *value);

bool is_minus_zero(tssa_dtype dtype, const void *element)
{
    double number = dtype_load_double(dtype, element);
    return number == 0 && signbit(number);
}

static bool constant_never(const struct tensor *tensor)
{
    size_t count = tensor_count(tensor), width = dtype_info(tensor->dtype)->size;
    if (count > MAX_ELEMENTS)
        return false;
    for (size_t i = 0; i < count; i++)
        if (is_minus_zero(tensor->dtype, (const char *)tensor->data + i * width))
            return false;
    return true;
}

/* Zeros, or what an attribute says. */
static bool filled_never(const struct ir_op *op)
{
    const struct tensor *value = ir_attr_tensor(op, "value");
    return !value || constant_never(value);
}

static bool all_never(struct search *search, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && !never(search, ir_operand(op, i)))
            return false;
    return true;
}

/* What surrounds is 0.0, or the third operand. */
static bool pad_never(struct search *search, const struct ir_op *op)
{
    return never(search, ir_operand(op, 0)) &&
           (!ir_operand(op, 2) || never(search, ir_operand(op, 2)));
}

/* ---- Programs of scalar operations ----------------------------------------------------------- */

/* What is known of a number: the higher one tells more. NaNs have no sign here. */
enum sign {
    ANY,
    NEVER,   /* no -0.0 */
    POSITIVE /* and nothing negative */
};

struct program {
    struct search *search;
    const struct ir_op *op;
    enum sign combined;   /* A; of a fold, what the operands before come to: X */
    uint32_t next;        /* of a fold, the operand that is Y; else 0 */
    signed char known[3]; /* of operands that were asked for: 1 + sign */
};

static enum sign lesser(enum sign a, enum sign b)
{
    return a < b ? a : b;
}

static enum sign operand_sign(struct program *p, uint32_t index)
{
    const struct ir_value *value = ir_operand(p->op, index);
    if (index < 3 && p->known[index])
        return (enum sign)(p->known[index] - 1);
    enum sign sign = value && never(p->search, value) ? NEVER : ANY;
    if (index < 3)
        p->known[index] = (signed char)(1 + sign);
    return sign;
}

static enum sign leaf_sign(struct program *p, const struct scalar_code *code)
{
    switch (code->id) {
    case SCALAR_X:
        return p->next ? p->combined : operand_sign(p, 0);
    case SCALAR_Y:
        return operand_sign(p, p->next ? p->next : 1);
    case SCALAR_Z:
        return operand_sign(p, 2);
    case SCALAR_A:
        return p->combined;
    case SCALAR_K:
        return signbit(code->number) ? (code->number < 0 ? NEVER : ANY) : POSITIVE;
    case SCALAR_LOWEST:
        return NEVER;
    case SCALAR_HIGHEST:
    case SCALAR_COUNT:
        return POSITIVE;
    default:
        return ANY;
    }
}

/* A leaf times itself. */
static bool is_square(const struct scalar_code *code, const struct scalar_code *program)
{
    return code - program >= 2 && code[-1].id == code[-2].id &&
           scalar_info((enum scalar_id)code[-1].id)->operands == 0 && code[-1].id != SCALAR_P &&
           code[-1].id != SCALAR_K;
}

static enum sign code_sign(const struct program *p, const struct scalar_code *code,
                           const struct scalar_code *program, const enum sign *in)
{
    switch (code->id) {
    case SCALAR_EXP:
    case SCALAR_SIGMOID:
    case SCALAR_ABS:
        return POSITIVE;
    case SCALAR_SQRT:
        return in[0];
    case SCALAR_LOG1P:
        return in[0] == POSITIVE ? POSITIVE : ANY;
    case SCALAR_ADD: /* -0.0 when both terms are */
        if (in[0] == POSITIVE && in[1] == POSITIVE)
            return POSITIVE;
        return in[0] || in[1] ? NEVER : ANY;
    case SCALAR_SUB: /* -0.0 when it is -0.0 - 0.0 */
        return in[0] ? NEVER : ANY;
    case SCALAR_MUL:
        if (is_square(code, program))
            return POSITIVE;
        return in[0] == POSITIVE && in[1] == POSITIVE ? POSITIVE : ANY;
    case SCALAR_DIV:
        return in[0] == POSITIVE && in[1] == POSITIVE ? POSITIVE : ANY;
    case SCALAR_SEL:
        return lesser(in[1], in[2]);
    case SCALAR_OPT:
        return in[ir_operand(p->op, code->index) ? 0 : 1];
    case SCALAR_MIN:
    case SCALAR_MAX:
    case SCALAR_WHEN:
    case SCALAR_LAST:
        return lesser(in[0], in[1]);
    default:
        return ANY;
    }
}

static enum sign program_sign(struct program *p, const struct scalar_code *program)
{
    enum sign stack[SCALAR_MAX_STACK];
    int n = 0;
    for (const struct scalar_code *code = program; code->id != SCALAR_END; code++, n++) {
        int operands = scalar_info((enum scalar_id)code->id)->operands;
        n -= operands;
        stack[n] = operands ? code_sign(p, code, program, stack + n) : leaf_sign(p, code);
    }
    return stack[0];
}

/* Narrow floats are rounded after the program: what is negative and small becomes -0.0, but no sum
 * of two elements is that small. */
static bool may_round_to_zero(const struct ir_op *op)
{
    const struct scalar_code *program = op->info->ew->program, *code = program;
    bool sums = false;
    if (dtype_in(T_F32F64, op->results[0].type->dtype))
        return false;
    for (; code->id != SCALAR_END; code++)
        sums |= code->id == SCALAR_ADD || code->id == SCALAR_SUB;
    return sums && code - program > 3;
}

static bool elementwise_never(struct search *search, const struct ir_op *op)
{
    const struct scalar_code *program = op->info->ew->program;
    struct program p = {.search = search, .op = op};
    enum sign sign;
    if (op->info->max_operands == IR_VARIADIC) {
        p.combined = operand_sign(&p, 0);
        for (p.next = 1; p.next < op->n_operands; p.next++)
            p.combined = program_sign(&p, program);
        sign = p.combined;
    } else {
        sign = program_sign(&p, program);
    }
    return sign == POSITIVE || (sign == NEVER && !may_round_to_zero(op));
}

/* Of a sum whose terms may be -0.0, runtimes begin with 0.0 or with the first term. */
static bool reduction_never(struct search *search, const struct ir_op *op)
{
    const struct reduction_info *reduction = op->info->reduction;
    struct program p = {.search = search, .op = op};
    bool adds = reduction->combine == SCALAR_ADD;
    p.combined = lesser(program_sign(&p, reduction->identity), program_sign(&p, reduction->before));
    if (!adds && reduction->combine != SCALAR_MAX && reduction->combine != SCALAR_MIN)
        p.combined = ANY;
    return program_sign(&p, reduction->after) != ANY;
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static bool op_never(struct search *search, const struct ir_op *op)
{
    const struct ir_value *first = ir_operand(op, 0);
    if (op->info->ew)
        return elementwise_never(search, op);
    if (op->info->reduction)
        return reduction_never(search, op);
    if (op->info->flags & IR_MOVES)
        return first && never(search, first);
    switch (op->info->id) {
    case IR_OP_Cast: /* of integers */
        return !dtype_is_float(first->type->dtype) && never(search, first);
    case IR_OP_ConstantOfShape:
        return filled_never(op);
    case IR_OP_Pad:
        return pad_never(search, op);
    case IR_OP_Softmax:
        return true;
    case IR_OP_Concat:
    case IR_OP_assign: /* the operands of its rule are integers */
        return all_never(search, op);
    default:
        return false;
    }
}

static bool never(struct search *search, const struct ir_value *value)
{
    const struct tensor *constant = ir_value_constant(value);
    const struct ir_type *type = value->type;
    if (type->kind != TYPE_TENSOR || type->dtype == TSSA_UNDEFINED || ++search->n_seen > MAX_VALUES)
        return false;
    if (dtype_is_integer(type->dtype) || type->dtype == TSSA_BOOL)
        return true;
    if (!dtype_is_float(type->dtype))
        return false;
    if (constant)
        return constant_never(constant);
    return value->op && op_never(search, value->op);
}

bool never_minus_zero(const struct ir_value *value)
{
    struct search search = {0};
    return never(&search, value);
}
