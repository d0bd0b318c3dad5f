/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identities of arithmetic and of rearrangements, one row of a table each: neutral constants, an op
 * that undoes or repeats the one before it, and rearrangements in a row. Only what keeps every bit
 * is here: x + 0.0 is not x (of -0.0 it makes 0.0), x - 0.0 is.
 *
 *   needs   types, known elements
 *   keeps   types, known elements, order
 *   breaks  nothing
 */
#include <math.h>

#include "ir/infer.h"
#include "ir/rebuild.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"
#include "passes/simplify/algebra.h"

/* What an op's only result is to be replaced by: an operand, or something further back. NULL:
 * nothing. */
typedef struct ir_value *(*identity_fn)(const struct ir_op *op);
/* The same where that is a new op's result, which is put before it; *value is NULL at first. */
typedef tssa_status *(*replace_fn)(struct ir_graph *graph, struct ir_op *op,
                                   struct ir_value **value);
/* Changes the op; sets *changed. */
typedef tssa_status *(*rewrite_fn)(struct ir_graph *graph, struct ir_op *op, bool *changed);

/* ---- Reading --------------------------------------------------------------------------------- */

/* The value has the type of the op's result, shape included, in every run. */
static bool has_result_type(const struct ir_op *op, const struct ir_value *value)
{
    const struct ir_type *type = op->results[0].type;
    return value && value->type == type && type->kind == TYPE_TENSOR && type->rank >= 0 &&
           type->dtype != TSSA_UNDEFINED;
}

/* ---- Neutral constants ----------------------------------------------------------------------- */

enum side { LEFT = 1, RIGHT = 2, BOTH = 3 };

struct neutral {
    enum ir_op_id op;
    enum side side;
    dtype_mask types; /* of the constant */
    double number;    /* its sign counts, even of a zero */
};

static const struct neutral neutrals[] = {
    {IR_OP_Add, BOTH, T_INT, 0},        {IR_OP_Add, BOTH, T_FLOAT, -0.0},
    {IR_OP_Sub, RIGHT, T_INT, 0},       {IR_OP_Sub, RIGHT, T_FLOAT, 0.0},
    {IR_OP_Mul, BOTH, T_NUMERIC, 1},    {IR_OP_Div, RIGHT, T_NUMERIC, 1},
    {IR_OP_Pow, RIGHT, T_NUMERIC, 1},   {IR_OP_And, BOTH, T_BOOL, 1},
    {IR_OP_Or, BOTH, T_BOOL, 0},        {IR_OP_Xor, BOTH, T_BOOL, 0},
    {IR_OP_BitwiseOr, BOTH, T_INT, 0},  {IR_OP_BitwiseXor, BOTH, T_INT, 0},
    {IR_OP_BitShift, RIGHT, T_UINT, 0},
};

#define MAX_COMPARED 4096 /* elements of a constant */

/* All elements are this number. */
static bool is_filled(const struct tensor *tensor, double number)
{
    size_t count = tensor_count(tensor), size = tssa_dtype_size(tensor->dtype);
    if (count > MAX_COMPARED)
        return false;
    for (size_t i = 0; i < count; i++) {
        double element = dtype_load_double(tensor->dtype, (const char *)tensor->data + i * size);
        if (element != number || !signbit(element) != !signbit(number))
            return false;
    }
    return count > 0;
}

static bool is_neutral(const struct neutral *neutral, const struct ir_op *op, uint32_t constant)
{
    const struct tensor *tensor = ir_value_constant(ir_operand(op, constant));
    const struct ir_value *other = ir_operand(op, 1 - constant);
    if (!tensor || !other || other->type->kind != TYPE_TENSOR ||
        !dtype_in(neutral->types, tensor->dtype))
        return false;
    if (ir_op_is(op, IR_OP_Pow) && !dtype_in(T_FLOAT, other->type->dtype))
        return false; /* integers may go through a double */
    if (!has_result_type(op, other) &&
        (tensor->rank != 0 || other->type->dtype != op->results[0].type->dtype ||
         other->type->dtype == TSSA_UNDEFINED))
        return false;
    return is_filled(tensor, neutral->number);
}

static struct ir_value *without_neutral(const struct ir_op *op)
{
    if (op->n_operands != 2)
        return NULL;
    for (size_t i = 0; i < sizeof neutrals / sizeof *neutrals; i++) {
        if (neutrals[i].op != op->info->id)
            continue;
        if ((neutrals[i].side & RIGHT) && is_neutral(&neutrals[i], op, 1))
            return ir_operand(op, 0);
        if ((neutrals[i].side & LEFT) && is_neutral(&neutrals[i], op, 0))
            return ir_operand(op, 1);
    }
    return NULL;
}

/* ---- Ops that return an operand -------------------------------------------------------------- */

/* f(f(x)) is x. */
static struct ir_value *undone(const struct ir_op *op)
{
    const struct ir_op *before = algebra_producer(op, 0);
    return before && before->info == op->info ? ir_operand(before, 0) : NULL;
}

/* f(f(x)) is f(x). */
static struct ir_value *repeated(const struct ir_op *op)
{
    const struct ir_op *before = algebra_producer(op, 0);
    return before && before->info == op->info ? ir_operand(op, 0) : NULL;
}

/* Max, Min, And, Or of a value and itself; of a value alone. */
static struct ir_value *of_itself(const struct ir_op *op)
{
    struct ir_value *value = ir_operand(op, 0);
    for (uint32_t i = 1; i < op->n_operands; i++)
        if (ir_operand(op, i) != value)
            return NULL;
    return value;
}

static struct ir_value *alone(const struct ir_op *op)
{
    return op->n_operands == 1 ? ir_operand(op, 0) : NULL;
}

static struct ir_value *chosen(const struct ir_op *op)
{
    const struct tensor *condition = ir_value_constant(ir_operand(op, 0));
    struct ir_value *yes = ir_operand(op, 1), *no = ir_operand(op, 2), *value = NULL;
    if (yes == no)
        value = yes;
    else if (condition && is_filled(condition, 1))
        value = yes;
    else if (condition && is_filled(condition, 0))
        value = no;
    return has_result_type(op, value) ? value : NULL;
}

/* Dropout outside of training, whose mask nobody uses. */
static struct ir_value *kept(const struct ir_op *op)
{
    const bool training = op->version < 7 || ir_operand(op, 2),
               masks = op->n_results > 1 && op->results[1].uses;
    return training || masks ? NULL : ir_operand(op, 0);
}

#define MAX_CHAIN 16

/* Reshapes in a row that come back to the shape they began with. */
static struct ir_value *reshaped_back(const struct ir_op *op)
{
    const struct ir_op *at = op;
    for (int i = 0; at && ir_op_keeps_order(at) && i < MAX_CHAIN; i++) {
        struct ir_value *from = ir_operand(at, 0);
        if (at != op && has_result_type(op, from))
            return from;
        at = from ? from->op : NULL;
    }
    return NULL;
}

/* What is reduced by axes of one element, which stay. */
static struct ir_value *reduced_in_place(const struct ir_op *op)
{
    return has_result_type(op, ir_operand(op, 0)) ? ir_operand(op, 0) : NULL;
}

/* The number of an iteration, or what is counted by it, modulo a size that none of them reaches. */
static struct ir_value *below_divisor(const struct ir_op *op)
{
    struct ir_value *number = ir_operand(op, 0);
    const struct ir_value *size = ir_operand(op, 1);
    const bool known = number->known && number->known->count == 1 && size->known &&
                       size->known->count == 1 && has_result_type(op, number);
    return known && loop_counts_within(op, number->known->elements[0], size->known->elements[0])
               ? number
               : NULL;
}

static const struct {
    enum ir_op_id op;
    identity_fn find;
} identities[] = {
    {IR_OP_Add, without_neutral},
    {IR_OP_Sub, without_neutral},
    {IR_OP_Mul, without_neutral},
    {IR_OP_Div, without_neutral},
    {IR_OP_Pow, without_neutral},
    {IR_OP_And, without_neutral},
    {IR_OP_Or, without_neutral},
    {IR_OP_Xor, without_neutral},
    {IR_OP_BitwiseOr, without_neutral},
    {IR_OP_BitwiseXor, without_neutral},
    {IR_OP_BitShift, without_neutral},
    {IR_OP_Not, undone},
    {IR_OP_Neg, undone},
    {IR_OP_BitwiseNot, undone},
    {IR_OP_Abs, repeated},
    {IR_OP_Relu, repeated},
    {IR_OP_Floor, repeated},
    {IR_OP_Ceil, repeated},
    {IR_OP_Round, repeated},
    {IR_OP_Sign, repeated},
    {IR_OP_And, of_itself},
    {IR_OP_Or, of_itself},
    {IR_OP_Max, of_itself},
    {IR_OP_Min, of_itself},
    {IR_OP_BitwiseAnd, of_itself},
    {IR_OP_BitwiseOr, of_itself},
    {IR_OP_Mod, below_divisor},
    {IR_OP_Sum, alone},
    {IR_OP_Mean, alone},
    {IR_OP_Where, chosen},
    {IR_OP_Dropout, kept},
    {IR_OP_ReduceMax, reduced_in_place},
    {IR_OP_ReduceMin, reduced_in_place},
    {IR_OP_ReduceProd, reduced_in_place},
};

/* ---- Conversions in a row -------------------------------------------------------------------- */

/* What a number format holds exactly. */
struct format {
    int bits;     /* of an integer's magnitude, or of a float's mantissa, the hidden one included */
    int exponent; /* of a float, its range; 0: an integer */
    bool negative;
};

static bool format_of(tssa_dtype dtype, struct format *format)
{
    static const struct format formats[TSSA_DTYPE_COUNT] = {
        [TSSA_BOOL] = {1, 0, false},    [TSSA_UINT8] = {8, 0, false},
        [TSSA_UINT16] = {16, 0, false}, [TSSA_UINT32] = {32, 0, false},
        [TSSA_UINT64] = {64, 0, false}, [TSSA_INT8] = {7, 0, true},
        [TSSA_INT16] = {15, 0, true},   [TSSA_INT32] = {31, 0, true},
        [TSSA_INT64] = {63, 0, true},   [TSSA_FLOAT16] = {11, 5, true},
        [TSSA_BFLOAT16] = {8, 8, true}, [TSSA_FLOAT] = {24, 8, true},
        [TSSA_DOUBLE] = {53, 11, true},
    };
    if ((unsigned)dtype >= TSSA_DTYPE_COUNT || !formats[dtype].bits)
        return false;
    *format = formats[dtype];
    return true;
}

/* Every number of `from` is one of `to`. */
static bool holds(const struct format *to, const struct format *from)
{
    if (from->exponent) /* a float, its zeros, infinities and NaNs */
        return to->exponent >= from->exponent && to->bits >= from->bits;
    if (from->negative && !to->negative)
        return false;
    /* The largest integer of b bits needs an exponent of b. */
    return to->bits >= from->bits && (!to->exponent || (1 << (to->exponent - 1)) > from->bits);
}

/* Cast(Cast(x)) is one conversion when the first loses nothing, and the second does the same to
 * both formats: rounds once, or cuts bits off integers. */
static tssa_status *merge_casts(struct ir_graph *graph, struct ir_op *op, bool *changed)
{
    (void)graph;
    const struct ir_op *before = algebra_producer(op, 0);
    struct format from, middle, to;
    if (!before || !ir_op_is(before, IR_OP_Cast) || op->version < 6 ||
        !format_of(infer_dtype(before, 0), &from) ||
        !format_of((tssa_dtype)ir_attr_int(before, "to", 0), &middle) ||
        !format_of((tssa_dtype)ir_attr_int(op, "to", 0), &to) || !holds(&middle, &from))
        return NULL;
    bool same_kind = !from.exponent == !middle.exponent && !from.exponent == !to.exponent;
    bool one_bit = to.bits == 1 || middle.bits == 1 || from.bits == 1;
    if (!holds(&to, &from) && (!same_kind || one_bit))
        return NULL;
    ir_op_set_operand(op, 0, ir_operand(before, 0));
    *changed = true;
    return NULL;
}

/* ---- Sums and products of integers ----------------------------------------------------------- */

/* The number of the operand that is a Constant, when the other is not. */
static bool find_constant(const struct ir_op *op, uint32_t *index)
{
    bool left = ir_value_constant(ir_operand(op, 0)), right = ir_value_constant(ir_operand(op, 1));
    *index = right ? 1 : 0;
    return left != right;
}

/* (x + 2) + 3 is x + (2 + 3), wrapping around or not; the constants are folded later. */
static tssa_status *merge_constants(struct ir_graph *graph, struct ir_op *op, bool *changed)
{
    uint32_t outer, inner;
    if (!dtype_in(T_INT, infer_dtype(op, 0)) || !find_constant(op, &outer))
        return NULL;
    const struct ir_op *before = algebra_producer(op, 1 - outer);
    if (!before || before->info != op->info || !algebra_used_once(before) ||
        before->parent != op->parent || !find_constant(before, &inner) || op->version < 7 ||
        before->version < 7)
        return NULL;
    struct ir_op *both = ir_op_create(graph, op->info, 2, 1);
    TRY_ALLOC(both);
    both->version = op->version;
    both->name = op->name;
    ir_op_set_operand(both, 0, ir_operand(before, inner));
    ir_op_set_operand(both, 1, ir_operand(op, outer));
    ir_op_insert_before(both, op);
    TRY(ir_infer_op_lenient(both));
    ir_op_set_operand(op, 1 - outer, ir_operand(before, 1 - inner));
    ir_op_set_operand(op, outer, &both->results[0]);
    *changed = true;
    return NULL;
}

/* ---- Reductions ------------------------------------------------------------------------------ */

/* Are the dims those of the operand, but for some that are 1? */
static bool lacks_ones(const struct ir_type *type, const struct ir_type *operand)
{
    int at = 0;
    if (type->kind != TYPE_TENSOR || operand->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    for (int i = 0; i < operand->rank; i++)
        if (at < type->rank && operand->dims[i] == type->dims[at])
            at++;
        else if (!dim_is(operand->dims[i], 1))
            return false;
    return at == type->rank && type->rank < operand->rank;
}

/* What is reduced by axes of one element, which go. (A sum is not what it is of: of -0.0 it is
 * 0.0.) */
static tssa_status *squeeze_reduction(struct ir_graph *graph, struct ir_op *op,
                                      struct ir_value **value)
{
    const struct tensor *axes = ir_value_constant(ir_operand(op, 1));
    const bool all = !ir_operand(op, 1) && !ir_attr_int(op, "noop_with_empty_axes", 0);
    if ((!all && (!axes || tensor_count(axes) == 0)) ||
        !lacks_ones(op->results[0].type, ir_operand(op, 0)->type))
        return NULL;
    struct ir_op *squeeze = ir_op_create(graph, ir_op_info(IR_OP_Squeeze), all ? 1 : 2, 1);
    TRY_ALLOC(squeeze);
    squeeze->version = ir_op_bind(squeeze->info, IR_NEWEST_OPSET);
    squeeze->name = op->name;
    for (uint32_t i = 0; i < squeeze->n_operands; i++)
        ir_op_set_operand(squeeze, i, ir_operand(op, i));
    ir_op_insert_before(squeeze, op);
    *value = &squeeze->results[0];
    return ir_infer_op_lenient(squeeze);
}

static const struct {
    enum ir_op_id op;
    replace_fn replace;
} replacements[] = {
    {IR_OP_ReduceMax, squeeze_reduction},
    {IR_OP_ReduceMin, squeeze_reduction},
    {IR_OP_ReduceProd, squeeze_reduction},
};

static const struct {
    enum ir_op_id op;
    rewrite_fn rewrite;
} rewrites[] = {
    {IR_OP_Transpose, algebra_merge_transposes},
    {IR_OP_Reshape, algebra_merge_reshapes},
    {IR_OP_Cast, merge_casts},
    {IR_OP_Concat, algebra_merge_concats},
    {IR_OP_Add, merge_constants},
    {IR_OP_Mul, merge_constants},
};

/* ---- The walk -------------------------------------------------------------------------------- */

static struct ir_value *find_identity(const struct ir_op *op)
{
    struct ir_value *value = ir_op_keeps_order(op) ? reshaped_back(op) : NULL;
    for (size_t i = 0; i < sizeof identities / sizeof *identities && !value; i++)
        if (identities[i].op == op->info->id)
            value = identities[i].find(op);
    return value;
}

static void replace(struct ir_op *op, struct ir_value *value)
{
    struct ir_value *result = &op->results[0];
    ir_value_replace(result, value);
    if (!value->name) {
        value->name = result->name;
        result->name = NULL;
    }
    ir_op_remove(op);
}

static tssa_status *rewrite(struct ir_graph *graph, struct ir_op *op, bool *changed)
{
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++)
        if (rewrites[i].op == op->info->id)
            TRY(rewrites[i].rewrite(graph, op, changed));
    return algebra_drop_broadcasts(graph, op, changed);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    bool changed = false;
    if (op->n_results == 0 || !(op->info->flags & IR_PURE) || op->n_blocks ||
        pass_is_pinned(pass, op))
        return NULL;
    struct ir_value *value = find_identity(op);
    for (size_t i = 0; i < sizeof replacements / sizeof *replacements && !value; i++)
        if (replacements[i].op == op->info->id)
            TRY(replacements[i].replace(pass->graph, op, &value));
    if (value) {
        replace(op, value);
        pass->changed = true;
        return NULL;
    }
    TRY(rewrite(pass->graph, op, &changed));
    if (!changed)
        return NULL;
    pass->changed = true;
    return ir_infer_op_lenient(op);
}

tssa_status *pass_algebra(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
