/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scores are computed only where they may exceed a threshold, where nobody reads the others.
 *
 * Of a Softmax rows are computed of which one may:
 *
 *     x = [486, 20, 20], permuted and        near = max(X[:, :80]) - max(X) > log(0.02) - 0.001
 *         reshaped to [2400, 81]       ->    rows = NonZero(near), X = x as [6, 81, 400]
 *     p = Softmax(x)                         p = Softmax(rows of x)
 *     mask = p[:, :80] > 0.02                mask = p[:, :80] > 0.02
 *     NonZero(mask), p[mask]                 rows[NonZero(mask)[0]], NonZero(mask)[1], p[mask]
 *
 * Detectors compute the scores of all classes for thousands of anchors, of which one in seventy
 * shows anything, and keep what exceeds a threshold. Softmax is exp(x - max) times the reciprocal
 * of a sum in which there is a 1, so it is at most exp(x - max): the largest x of a row tells
 * whether there may be such a score, without any function and read from where planes lie, so that
 * nothing is permuted but rows that may pass. The margin is a thousand times what exp is off
 * (docs/numerics.md); what may pass, and be it because of a NaN, is computed and compared as
 * before. Rows keep their order.
 *
 * Of a Sigmoid those elements are computed that may, for it grows with x. There are few of them,
 * but half of the rows hold one:
 *
 *     s = Sigmoid(x)                         places = NonZero(X > log(t / (1 - t)) - 0.001)
 *     mask = s > t                     ->    s = Sigmoid(x[places]), mask = s > t
 *     NonZero(mask), s[mask]                 places[mask], s[mask]
 *
 * Of the largest level SSD takes a fifth of the time, FCOS a half. Where more than an eighth of the
 * rows or a sixteenth of the elements may pass, a branch computes all of them as before. In
 * sessions alone (a file would be twice as long), of devices where more ops take less than that:
 * not where each is a launch.
 *
 *   needs   types, accesses (recover)
 *   keeps   results' bits
 *   breaks  types behind it, where sizes have other names now (infer); what is read no more
 *           (dead_code)
 */
#include "passes/simplify/bound_scores.h"

#include "ir/cost.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "ir/scalar/f64_log.h"
#include "passes/pass.h"

#define LEAST_CALLS 2.5 /* that as many operations as there are elements take as long as */
#define LEAST_THRESHOLD 1e-30f
#define MOST_THRESHOLD 0.99f
#define MARGIN 1e-3

/* ---- Planes ---------------------------------------------------------------------------------- */

/* Of an access of one step of this kind; else NULL. */
static const struct rule_param *params_of(const struct ir_op *op, enum rule_kind kind)
{
    const struct rule *rule = op && !op->opaque && ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    return rule && rule->n_steps == 1 && rule->steps[0].kind == kind ? rule->steps[0].params : NULL;
}

/* How many elements there are, if that is the same in every run and not 0. */
static bool find_sizes(const struct ir_value *value, int64_t *sizes, int64_t *count)
{
    *count = 1;
    for (int i = 0; i < infer_value_rank(value); i++)
        if (!dim_is_const(value->type->dims[i], &sizes[i]) || sizes[i] < 1 ||
            !i64_mul(*count, sizes[i], count))
            return false;
    return infer_value_rank(value) >= 0;
}

/* How many elements the axes have that come first before and last after, if the permutation moves
 * these behind the others and does nothing else; else 0. */
static int64_t count_moved(const struct rule_param *perm, int rank, const int64_t *sizes)
{
    int64_t first = -1, last = -1, count = 1;
    bool behind = false;
    for (int i = 0; i < rank; i++) {
        const int64_t axis = perm[i].value;
        if (sizes[axis] == 1)
            continue;
        if (axis < last && behind)
            return 0;
        behind |= axis < last;
        first = first < 0 ? axis : first;
        count *= behind ? sizes[axis] : 1;
        last = axis;
    }
    return behind && last < first ? count : 0;
}

static bool find_planes(struct scores *s)
{
    struct ir_value *x = ir_operand(s->score, 0);
    s->flattens = x->op;
    s->turns = params_of(x->op, RULE_RESHAPE) ? ir_operand(x->op, 0)->op : NULL;
    const struct rule_param *perm = params_of(s->turns, RULE_PERMUTE);
    int64_t sizes[TSSA_MAX_RANK], shape[TSSA_MAX_RANK], count, moved;
    if (!perm || infer_value_rank(x) != 2 || !find_sizes(x, shape, &s->elements))
        return false;
    s->planes = ir_operand(s->turns, 0);
    if (!find_sizes(s->planes, sizes, &count))
        return false;
    moved = count_moved(perm, infer_value_rank(s->planes), sizes);
    s->columns = shape[1];
    s->groups = moved / s->columns;
    s->cells = moved ? count / moved : 0;
    return moved && moved % s->columns == 0;
}

/* ---- Scores ---------------------------------------------------------------------------------- */

static const struct ir_value *scored(const struct scores *s)
{
    return &s->score->results[0];
}

/* What is compared. */
static const struct ir_value *compared(const struct scores *s)
{
    return s->slice ? &s->slice->results[0] : scored(s);
}

static const struct ir_value *mask_of(const struct scores *s)
{
    return &s->compare->results[0];
}

/* Columns in a row, which begin with the first or end with the last one. */
static bool find_columns(struct scores *s)
{
    const struct rule_param *slice = s->slice ? params_of(s->slice, RULE_SLICE) : NULL;
    int64_t sizes[TSSA_MAX_RANK], count;
    s->from = 0;
    s->to = s->columns;
    if (!s->slice)
        return true;
    if (slice[0].value != 1 || slice[1].is_operand || slice[1].value < 0 || slice[3].is_operand ||
        slice[3].value != 1 || !find_sizes(compared(s), sizes, &count))
        return false;
    s->from = slice[1].value;
    s->to = s->from + sizes[1];
    return s->from == 0 || s->to == s->columns;
}

static bool find_bound(struct scores *s)
{
    const struct tensor *number = ir_value_constant(ir_operand(s->compare, 1));
    if (!number || number->dtype != TSSA_FLOAT || tensor_count(number) != 1 || number->rank > 1)
        return false;
    const float threshold = *(const float *)number->data;
    const double t = (double)threshold;
    if (!(threshold >= LEAST_THRESHOLD) || threshold > MOST_THRESHOLD)
        return false;
    s->bound = (float)(f64_log(s->is_by_element ? t / (1 - t) : t) - MARGIN);
    return true;
}

/* A Softmax of rows of which not all columns are compared (the largest of all of them passes), or a
 * Sigmoid. */
static bool is_bounded(struct scores *s)
{
    int axis;
    s->is_by_element = ir_op_is(s->score, IR_OP_Sigmoid);
    return !s->score->opaque && s->score->parent == s->compare->parent &&
           (s->is_by_element ||
            (ir_op_is(s->score, IR_OP_Softmax) && s->to - s->from < s->columns &&
             infer_find_axis(ir_op_axis(s->score), 2, &axis) && axis == 1));
}

static bool find_scores(struct ir_op *op, struct scores *s)
{
    if ((!ir_op_is(op, IR_OP_Greater) && !ir_op_is(op, IR_OP_GreaterOrEqual)) || op->opaque ||
        infer_value_rank(&op->results[0]) != 2)
        return false;
    *s = (struct scores){.compare = op, .score = ir_operand(op, 0)->op};
    if (params_of(s->score, RULE_SLICE)) {
        s->slice = s->score;
        s->score = ir_operand(s->slice, 0)->op;
    }
    return s->score && s->score->n_operands == 1 && scored(s)->type->dtype == TSSA_FLOAT &&
           find_planes(s) && find_columns(s) && is_bounded(s) && find_bound(s);
}

/* More ops take their time, too: of few elements what they save, and on a GPU, where each is a
 * launch, more than that of all detectors. */
static bool is_worth(const struct pass_context *pass, const struct scores *s)
{
    const struct cost_machine *machine = pass->fusion ? pass->fusion->machine : &cost_cpu;
    return (double)s->elements * machine->operation >= LEAST_CALLS * machine->call;
}

/* ---- Who reads them -------------------------------------------------------------------------- */

static bool is_list_of(const struct ir_value *list, const struct ir_value *value)
{
    return list && params_of(list->op, RULE_RESHAPE) && infer_value_rank(list) == 1 &&
           ir_operand(list->op, 0) == value;
}

/* The compared scores for which the mask is true, in order. */
static bool takes_masked(const struct ir_op *op, const struct scores *s)
{
    const struct rule_param *params = params_of(op, RULE_MASK);
    return params && is_list_of(ir_operand(op, 0), compared(s)) &&
           is_list_of(rule_param_value(op, &params[1]), mask_of(s));
}

/* The same by the places. */
static bool takes_places(const struct ir_op *op, const struct scores *s)
{
    if (!ir_op_is(op, IR_OP_GatherND) || op->opaque || ir_attr_int(op, "batch_dims", 0) != 0)
        return false;
    const struct ir_value *x = ir_operand(op, 0);
    const struct ir_op *turned = ir_operand(op, 1)->op;
    const struct rule_param *perm = params_of(turned, RULE_PERMUTE);
    const struct ir_op *finds = perm && perm[0].value == 1 ? ir_operand(turned, 0)->op : NULL;
    return finds && ir_op_is(finds, IR_OP_NonZero) && ir_operand(finds, 0) == mask_of(s) &&
           (x == compared(s) || (x == scored(s) && s->from == 0));
}

static bool is_known_reader(const struct ir_op *op, const struct scores *s)
{
    if (op == s->compare || op == s->slice || takes_places(op, s) ||
        (ir_op_is(op, IR_OP_NonZero) && !op->opaque))
        return true;
    if (!params_of(op, RULE_RESHAPE))
        return false;
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next)
        if (!takes_masked(use->user, s))
            return false;
    return true;
}

static bool have_known_readers(const struct scores *s)
{
    const struct ir_value *const values[] = {scored(s), compared(s), mask_of(s)};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        for (const struct ir_use *use = values[i]->uses; use; use = use->next)
            if (!is_known_reader(use->user, s) ||
                (ir_op_is(use->user, IR_OP_NonZero) && values[i] != mask_of(s)))
                return false;
    return true;
}

static void replace(struct ir_op *op, struct ir_value *by)
{
    ir_value_replace(&op->results[0], by);
}

/* Of the values that readers are found at: ops that are read no more stay. */
static void replace_readers(const struct scores *s, const struct passed *passed)
{
    const struct ir_value *const values[] = {scored(s), compared(s)};
    for (size_t i = 0; i < 2; i++)
        for (const struct ir_use *use = values[i]->uses; use; use = use->next) {
            if (takes_places(use->user, s))
                replace(use->user, passed->scores);
            else if (params_of(use->user, RULE_RESHAPE))
                for (const struct ir_use *of = use->user->results[0].uses; of; of = of->next)
                    replace(of->user, passed->scores);
        }
    for (const struct ir_use *use = mask_of(s)->uses; use; use = use->next)
        if (ir_op_is(use->user, IR_OP_NonZero))
            replace(use->user, passed->places);
}

static tssa_status *visit(struct pass_context *pass, struct ir_cloner *cloner,
                          struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        struct scores s;
        struct passed passed = {0};
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque; i++)
            TRY(visit(pass, cloner, op->blocks[i]));
        if (!find_scores(op, &s) || !is_worth(pass, &s) || !have_known_readers(&s))
            continue;
        TRY(bound_scores_make(&s, cloner, &passed));
        replace_readers(&s, &passed);
        pass->changed = true;
        TRY(pass_remark(pass, TSSA_REMARK_APPLIED, passed.branch,
                        "is computed only where it may exceed the threshold, if that is rare"));
    }
    return NULL;
}

tssa_status *pass_bound_scores(struct pass_context *pass)
{
    struct ir_cloner cloner;
    if (!pass_is_for_session(pass))
        return NULL;
    ir_cloner_init(&cloner, pass->graph);
    tssa_status *status = visit(pass, &cloner, pass->graph->body);
    ir_cloner_free(&cloner);
    return status;
}
