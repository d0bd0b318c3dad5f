/* SPDX-License-Identifier: Apache-2.0 */
/* What may be in one kernel, and with what; see fuse.h. */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/quantization.h"
#include "ir/row.h"
#include "ir/rule.h"
#include "ir/update.h"
#include "passes/analysis/of_data.h"
#include "passes/lower/fuse.h"

/* ---- Spaces ---------------------------------------------------------------------------------- */

/* Is every element of `from` broadcast to some of `to`? */
static bool broadcasts(const struct ir_type *from, const struct ir_type *to)
{
    if (from->rank > to->rank)
        return false;
    for (int i = 0; i < from->rank; i++)
        if (!dim_broadcasts(from->dims[i], to->dims[to->rank - from->rank + i]))
            return false;
    return true;
}

static bool is_same_space(const struct ir_type *a, const struct ir_type *b)
{
    return a->rank == b->rank && broadcasts(a, b) && broadcasts(b, a);
}

/* Are the first `n` dims 1? */
static bool are_ones(const struct ir_type *type, int n)
{
    int i = 0;
    while (i < n && dim_is(type->dims[i], 1))
        i++;
    return i == n;
}

/* Has the type an element for each row of `like`, `n` axes of it, with or without axes of one
 * element for these? Of one row a number is that as well. */
static bool is_per_row(const struct ir_type *type, const struct ir_type *like, int n)
{
    const int rows = like->rank - n;
    if (n > 0 && type->rank == 0 && are_ones(like, rows))
        return true;
    if (n == 0 || (type->rank != rows && type->rank != like->rank))
        return false;
    for (int i = 0; i < type->rank; i++)
        if (i < rows ? type->dims[i] != like->dims[i] : !dim_is(type->dims[i], 1))
            return false;
    return true;
}

void fuse_find_column(const struct ir_op *op, struct fuse_open *part)
{
    part->column = 1 + ir_column_axis(op);
    part->column_keeps = !part->column || !ir_column_folds(op) ? FUSE_ANY
                         : ir_attr_int(op, "keepdims", 1) != 0 ? FUSE_KEEPS
                                                               : FUSE_DROPS;
}

bool fuse_join_keeps(const struct fuse_open *a, const struct fuse_open *b, enum fuse_keeps *keeps)
{
    *keeps = a->column_keeps == FUSE_ANY ? b->column_keeps : a->column_keeps;
    return b->column_keeps == FUSE_ANY || b->column_keeps == *keeps;
}

int fuse_scan(const struct ir_op *op)
{
    const int axis = ir_scan_axis(op);
    return axis < 0 ? 0 : 1 + 2 * axis + (ir_attr_int(op, "reverse", 0) != 0);
}

/* Has the type an element for each column of the part, with or without an axis of one element, as
 * its reductions? */
static bool is_per_column(const struct ir_type *type, const struct fuse_open *part)
{
    const struct ir_type *like = part->like;
    const int axis = part->column - 1;
    const bool keeps = part->column_keeps != FUSE_DROPS;
    if (type->rank != like->rank - !keeps)
        return false;
    for (int i = 0; i < like->rank; i++) {
        const struct dim *dim = i == axis && !keeps ? NULL : type->dims[i - (i > axis && !keeps)];
        if (dim && (i == axis ? !dim_is(dim, 1) : dim != like->dims[i]))
            return false;
    }
    return true;
}

#define LONG_COLUMN 4096 /* rows, of which a few columns would be no more in the cache */

/* Is a column walked again as long as it is in the cache, by threads that share no column? */
static bool is_walked_again(const struct fuse_open *part)
{
    return part->like->dims[part->column - 1]->low <= LONG_COLUMN;
}

/* Elements of the columns are computed in each walk of them, or are results. */
static enum fuse_fit fit_columns(const struct fuse_open *a, const struct fuse_open *b)
{
    const struct fuse_open *columns = a->column ? a : b;
    if (a->row || b->row)
        return FUSE_APART;
    enum fuse_keeps keeps;
    if (a->column && b->column)
        return a->column == b->column && fuse_join_keeps(a, b, &keeps) &&
                       is_same_space(a->like, b->like)
                   ? FUSE_SAME
                   : FUSE_APART;
    if (is_same_space(a->like, b->like) && is_walked_again(columns))
        return FUSE_SAME;
    if (b->column)
        return is_per_column(a->like, b) ? FUSE_OVER : FUSE_APART;
    if (is_per_column(b->like, a))
        return FUSE_ROWS;
    return broadcasts(b->like, a->like) ? FUSE_INTO : FUSE_APART;
}

/* All that is computed has an element in each place of running sums, which wait for those before:
 * it is that of the same place. */
static enum fuse_fit fit_scans(const struct fuse_open *a, const struct fuse_open *b)
{
    if (a->row || b->row || a->column || b->column || a->keeps || b->keeps || a->pieces ||
        b->pieces || (a->scan && b->scan && a->scan != b->scan))
        return FUSE_APART;
    if (is_same_space(a->like, b->like))
        return FUSE_SAME;
    return !b->scan && broadcasts(b->like, a->like) ? FUSE_INTO : FUSE_APART;
}

/* Are there as many rows, whatever is in them, `n` axes? */
static bool has_rows_of(const struct ir_type *type, const struct ir_type *like, int n)
{
    bool same = n > 0 && type->rank == like->rank;
    for (int i = 0; same && i < like->rank - n; i++)
        same = type->dims[i] == like->dims[i];
    return same;
}

enum fuse_fit fuse_fit(const struct ir_fusion *fusion, const struct fuse_open *a,
                       const struct fuse_open *b)
{
    if (a->scan || b->scan)
        return fit_scans(a, b);
    if (a->column || b->column)
        return fit_columns(a, b);
    const bool both = a->row && b->row;
    if (is_same_space(a->like, b->like))
        return both && a->row != b->row ? FUSE_APART : FUSE_SAME;
    if (!both && is_per_row(b->like, a->like, a->row))
        return FUSE_ROWS;
    if (!both && is_per_row(a->like, b->like, b->row))
        return FUSE_OVER;
    if (fusion->row_parts && (!both || a->row == b->row) && has_rows_of(a->like, b->like, b->row))
        return FUSE_SAME;
    if (b->row)
        return FUSE_APART;
    return broadcasts(b->like, a->like) ? FUSE_INTO : FUSE_APART;
}

bool fuse_is_row_view(const struct ir_op *op, const struct fuse_open *part)
{
    return ir_op_is(op, IR_OP_access) && rule_keeps_order(rule_of(op)) && part->row &&
           is_per_row(ir_operand(op, 0)->type, part->like, part->row) &&
           is_per_row(op->results[0].type, part->like, part->row);
}

bool fuse_is_row_part(const struct ir_op *op, const struct fuse_open *part)
{
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    if (!rule || rule->n_operands || !is_same_space(ir_operand(op, 0)->type, part->like) ||
        !has_rows_of(op->results[0].type, part->like, part->row))
        return false;
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind != RULE_SLICE ||
            rule->steps[i].params[0].value < part->like->rank - part->row)
            return false;
    return true;
}

/* So many columns are computed together. */
#define FEW 8

bool fuse_repeats_in_row(const struct ir_op *op)
{
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    if (!rule || rule->n_steps != 1 || rule->steps[0].kind != RULE_EXPAND)
        return false;
    const struct ir_type *from = ir_operand(op, 0)->type, *to = op->results[0].type;
    if (from->rank != to->rank || to->rank == 0 || to->dims[to->rank - 1]->high > FEW)
        return false;
    for (int i = 0; i + 1 < to->rank; i++)
        if (from->dims[i] != to->dims[i])
            return false;
    return true;
}

/* ---- What may be in a part ------------------------------------------------------------------- */

static bool has_rows(const struct ir_op *op)
{
    return op->info->cls == IR_CLASS_REDUCTION || op->info->cls == IR_CLASS_NORMALIZATION;
}

static bool gathers(const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind == RULE_GATHER)
            return true;
    return false;
}

/* Are the indices of a gather computed, element by element, for nobody else? */
static bool computes_indices(const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        if (rule->steps[i].kind != RULE_GATHER)
            continue;
        const struct ir_value *indices = rule_param_value(op, &rule->steps[i].params[1]);
        return indices->op && indices->op->info->cls == IR_CLASS_ELEMENTWISE &&
               !indices->op->n_blocks && indices->uses && !indices->uses->next;
    }
    return false;
}

static uint32_t class_of(const struct ir_op *op)
{
    if (ir_fuse_keeps(op))
        return IR_FUSES_KEEPS;
    if (ir_op_is(op, IR_OP_access) && gathers(rule_of(op)))
        return computes_indices(op) ? IR_FUSES_INDICES : IR_FUSES_GATHERS;
    if (ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_assign))
        return IR_FUSES_RULES;
    if (ir_op_is(op, IR_OP_Concat))
        return IR_FUSES_CONCATS;
    if (op->info->cls == IR_CLASS_GATHER)
        return IR_FUSES_GATHERS;
    if (op->info->cls == IR_CLASS_ELEMENTWISE || ir_quantizes_elements(op))
        return IR_FUSES_ELEMENTWISE;
    if (ir_op_is(op, IR_OP_Trilu) || ir_op_is(op, IR_OP_Range))
        return IR_FUSES_POSITIONS;
    if (ir_column_axis(op) >= 0)
        return IR_FUSES_COLUMNS;
    if (ir_scan_axis(op) >= 0)
        return IR_FUSES_SCANS;
    return has_rows(op) ? IR_FUSES_ROWS : 0;
}

bool fuse_is_candidate(const struct fuse_plan *plan, const struct ir_op *op)
{
    return (class_of(op) & plan->fusion->classes) != 0;
}

bool fuse_is_view(const struct fuse_plan *plan, const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_access) && cost_step(op, false, &plan->sizes).calls == 0;
}

bool fuse_updates(const struct fuse_plan *plan, const struct ir_op *op)
{
    if (!plan->fusion->updates || !ir_updates_carried(op))
        return false;
    /* What might be computed of the whole in the same kernel must not wait for another one. */
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next)
        if (use->user->parent == op->parent && fuse_is_candidate(plan, use->user))
            return false;
    return true;
}

const struct ir_type *fuse_space(const struct fuse_plan *plan, const struct ir_op *op)
{
    if (fuse_updates(plan, op))
        return ir_operand(op, 1)->type;
    if (ir_fuse_keeps(op))
        return ir_fuse_mask(op)->type;
    return has_rows(op) ? ir_operand(op, 0)->type : op->results[0].type;
}

/* Does it come to one number, as two scales do? */
static bool multiplies_numbers(const struct ir_op *op)
{
    const struct ir_type *type = op->results[0].type;
    bool one = ir_op_is(op, IR_OP_Mul) && type->kind == TYPE_TENSOR && type->dtype == TSSA_FLOAT;
    for (int i = 0; one && i < type->rank; i++)
        one = dim_is(type->dims[i], 1);
    return one;
}

/* Is it a scale? Each layer of a quantized network has others, and may have the same kernels. */
static bool is_scale(const struct ir_op *op, uint32_t operand)
{
    return (operand > 0 && ir_quantizes_elements(op)) || multiplies_numbers(op);
}

bool fuse_is_inner(const struct ir_op *op, uint32_t operand)
{
    const struct tensor *tensor = ir_value_constant(ir_operand(op, operand));
    return tensor && !is_scale(op, operand) &&
           (tensor_count(tensor) == 1 || (operand > 0 && op->info->cls == IR_CLASS_REDUCTION));
}

/* Conditions, numbers of iterations, indices and shapes are told before anything is launched, but
 * for those that only data tells. */
static bool is_told(const struct ir_value *value)
{
    return value->known ||
           (value->type->rank == 0 &&
            (dtype_is_integer(value->type->dtype) || value->type->dtype == TSSA_BOOL) &&
            !is_of_data(value));
}

/* Is it told before anything is launched how long the Range is? */
static bool is_told_range(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_known *known = infer_known(op, i);
        if (!ir_value_constant(ir_operand(op, i)) &&
            (!known || known->count != 1 || !known->elements[0]))
            return false;
    }
    return true;
}

static bool is_of_known_shape(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    return value->wanted && type->kind == TYPE_TENSOR && type->rank >= 0 &&
           type->dtype != TSSA_UNDEFINED;
}

#define FEW_ELEMENTS 65536 /* of which a second thread would be worth nothing */

static bool has_few_elements(const struct ir_type *type)
{
    int64_t count = 1, dim;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dim) || !i64_mul(count, dim, &count))
            return false;
    return count <= FEW_ELEMENTS;
}

/* Of an op that has columns. */
static const char *column_refusal(const struct ir_op *op)
{
    const struct dim *length = ir_operand(op, 0)->type->dims[ir_column_axis(op)];
    return op->info->reduction || length->low <= LONG_COLUMN
               ? NULL
               : "its columns are too long to walk them again";
}

/* Of an op that has rows. Where one row is all there is no threads could share it. */
static const char *row_refusal(const struct ir_op *op)
{
    const struct ir_type *type = ir_operand(op, 0)->type, *result = op->results[0].type;
    const int n = ir_row_axes(op);
    for (uint32_t i = 1; i < op->n_results; i++)
        if (op->results[i].wanted && op->results[i].uses)
            return "it computes more than one result";
    if (ir_column_axis(op) >= 0)
        return column_refusal(op);
    if (ir_scan_axis(op) >= 0)
        return NULL;
    if (n == 0)
        return "its rows are not the last axes";
    if (n == type->rank && !(ir_row_folds(op) && has_few_elements(type)))
        return "it makes one row of all elements";
    /* By its type nobody could tell then whether a value is one of each row, or one of each element
     * of a row. */
    bool ones = true;
    for (int i = 0; i < result->rank; i++)
        ones &= dim_is(result->dims[i], 1);
    if (ir_row_folds(op) && result->rank < type->rank && broadcasts(result, type) && !ones)
        return "there are as many rows as a row has elements";
    return NULL;
}

bool fuse_is_read_in_place(const struct ir_value *value)
{
    for (const struct ir_use *use = value->uses; use; use = use->next)
        if (!use->user->info->ew && !has_rows(use->user))
            return false;
    return value->uses != NULL;
}

static bool permutes(const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind == RULE_PERMUTE)
            return true;
    return false;
}

/* Where kernels refuse it, it may be planes that they read. */
static const char *kernel_refusal(const struct fuse_plan *plan, const struct ir_op *op)
{
    const struct ir_fusion *fusion = plan->fusion;
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    const char *why = fusion->refuses ? fusion->refuses(fusion->user, op) : NULL;
    if (!why || !fusion->refuses_planes || !rule || !permutes(rule))
        return why;
    return fuse_is_read_in_place(&op->results[0]) ? fusion->refuses_planes(fusion->user, op)
                                                  : "what it permutes is moved once more";
}

const char *fuse_refusal(const struct fuse_plan *plan, const struct ir_op *op)
{
    const struct ir_value *result = &op->results[0];
    const struct rule *rule = rule_of(op);
    if (!is_of_known_shape(result))
        return "the shape of what it computes is not known";
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && ir_operand(op, i)->type->kind == TYPE_TENSOR &&
            ir_operand(op, i)->type->dtype == TSSA_STRING)
            return "it is about strings";
    if (result->type->dtype == TSSA_STRING)
        return "it is about strings";
    if (op->n_operands > plan->fusion->most_operands || op->n_operands > FUSE_OPERANDS)
        return "it has too many operands";
    if (ir_op_is(op, IR_OP_Range) && !is_told_range(op))
        return "data tells how long it is";
    if (is_told(result))
        return "it computes what is told before a launch: a shape, an index, a condition";
    for (uint32_t i = 0; rule && !ir_fuse_keeps(op) && i < rule->n_steps; i++)
        if (rule->steps[i].kind == RULE_MASK)
            return "how much it moves depends on data";
    const char *why = has_rows(op) ? is_of_known_shape(ir_operand(op, 0))
                                         ? row_refusal(op)
                                         : "the shape of what it reads is not known"
                                   : NULL;
    return why ? why : kernel_refusal(plan, op);
}

const char *fuse_outside(const struct ir_op *op)
{
    if (op->n_results && (op->results[0].known || (op->info->flags & IR_SHAPE)))
        return "it computes what is told before a launch: a shape, an index, a condition";
    if (class_of(op))
        return "no kernel has code for it";
    switch (op->info->cls) {
    case IR_CLASS_CONTRACTION:
        return "a product has a kernel of its own";
    case IR_CLASS_WINDOW:
        return "it needs the neighbours of each element";
    case IR_CLASS_SELECTION:
        return "what it chooses, and how much, depends on data";
    case IR_CLASS_SCATTER:
        return "where it writes depends on data";
    default:
        return "only element-wise ops, accesses, assigns, concats, gathers, and what is computed "
               "row by row are put together";
    }
}
