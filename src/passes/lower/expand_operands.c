/* SPDX-License-Identifier: Apache-2.0 */
/* What is there before the first step: products with W, weights as steps read them, states. */
#include "passes/lower/expand_recurrent.h"

/* ---- Making ops ------------------------------------------------------------------------------ */

static bool is_of_constants(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && !ir_value_constant(ir_operand(op, i)))
            return false;
    return true;
}

struct ir_value *expand_settle(struct expansion *e, struct ir_value *value)
{
    struct ir_op *op = value ? value->op : NULL;
    struct tensor *tensor = NULL;
    struct pass_context *pass = e->pass;
    if (!op || e->maker.status || !pass->evaluate || ir_value_constant(value) ||
        !is_of_constants(op))
        return value;
    e->maker.status = pass->evaluate(pass->evaluate_user, pass->graph, op, &tensor);
    if (e->maker.status || !tensor)
        return value;
    ir_op_remove(op);
    return pass_put(&e->maker, ir_constant_create(pass->graph, tensor));
}

struct ir_value *expand_access(struct expansion *e, struct pass_maker *m, struct ir_value *x,
                               const struct rule_draft *draft)
{
    struct ir_value *made = pass_make_rule(m, x, draft);
    return m == &e->maker && made != x ? expand_settle(e, made) : made;
}

struct ir_value *expand_cast(struct expansion *e, struct ir_value *x, tssa_dtype to)
{
    if (!x || e->maker.status || x->type->dtype == to)
        return x;
    return expand_settle(e, pass_make_cast(&e->maker, x, to));
}

static struct ir_value *settled(struct expansion *e, enum ir_op_id id, struct ir_value *a,
                                struct ir_value *b)
{
    return expand_settle(e, pass_make(&e->maker, id, 2, a, b));
}

/* ---- Sizes and lengths ----------------------------------------------------------------------- */

/*
 * Lengths that are none fail the run, as they do on the host: they are looked up in a table of
 * 0, 1, ..., T.
 */
static struct ir_value *check_lengths(struct expansion *e, struct ir_value *lengths)
{
    struct pass_maker *m = &e->maker;
    struct ir_value *zero = pass_make_int(m, 0, 0), *one = pass_make_int(m, 0, 1);
    struct ir_value *count = settled(e, IR_OP_Add, e->steps, one);
    struct ir_value *table =
        expand_settle(e, pass_put(m, pass_new_op(m, IR_OP_Range, 3, zero, count, one)));
    struct ir_value *below = settled(e, IR_OP_Less, lengths, zero);
    struct ir_value *places = expand_settle(e, pass_make_where(m, below, count, lengths));
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    draft_step_value(&draft, RULE_GATHER, 0, places);
    return expand_access(e, m, table, &draft);
}

static void read_lengths(struct expansion *e)
{
    struct rule_draft draft;
    struct ir_value *lengths = ir_operand(e->op, RECURRENT_LENGTHS);
    if (!lengths)
        return;
    lengths = check_lengths(e, expand_cast(e, lengths, TSSA_INT64));
    draft_begin(&draft, RULE_EXACT);
    draft_step(&draft, RULE_UNSQUEEZE, 1, (const int64_t[]){1});
    e->lengths = expand_access(e, &e->maker, lengths, &draft);
}

/* ---- Products with W ------------------------------------------------------------------------- */

/* [T * N, I] */
static struct ir_value *input_rows(struct expansion *e)
{
    struct ir_value *x = expand_cast(e, ir_operand(e->op, RECURRENT_X), e->dtype);
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    if (e->attrs.batch_first)
        draft_step(&draft, RULE_PERMUTE, 3, (const int64_t[]){1, 0, 2});
    draft_step(&draft, RULE_RESHAPE, 2, (const int64_t[]){-1, e->input});
    return expand_access(e, &e->maker, x, &draft);
}

/* [I, D * G * H] */
static struct ir_value *input_weights(struct expansion *e)
{
    struct ir_value *w = expand_cast(e, ir_operand(e->op, RECURRENT_W), e->dtype);
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    draft_step(&draft, RULE_RESHAPE, 2,
               (const int64_t[]){e->attrs.directions * e->width, e->input});
    draft_step(&draft, RULE_PERMUTE, 2, (const int64_t[]){1, 0});
    return expand_access(e, &e->maker, w, &draft);
}

void expand_operands(struct expansion *e)
{
    const bool batch_first = e->attrs.batch_first;
    struct rule_draft draft;
    struct ir_value *x = ir_operand(e->op, RECURRENT_X);
    e->steps = pass_make_size(&e->maker, x, batch_first ? 1 : 0);
    e->batch = pass_make_size(&e->maker, x, batch_first ? 0 : 1);
    if (e->maker.status)
        return;
    read_lengths(e);
    struct ir_value *rows = input_rows(e), *weights = input_weights(e);
    struct ir_value *products = pass_make(&e->maker, IR_OP_MatMul, 2, rows, weights);
    draft_begin(&draft, RULE_EXACT);
    draft_sizes(&draft, RULE_RESHAPE, 3, (const int64_t[]){0, 0, e->attrs.directions * e->width},
                (struct ir_value *const[]){e->steps, e->batch, NULL});
    e->sums = expand_access(e, &e->maker, products, &draft);
}

/* ---- A direction ----------------------------------------------------------------------------- */

/* Elements of a direction's row of an operand: [D, any] to [count]. */
static struct ir_value *slice_row(struct expansion *e, struct ir_value *x, int64_t number,
                                  int64_t from, int64_t count)
{
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    draft_select(&draft, 0, number);
    draft_slice(&draft, 0, from, from + count, 1);
    return expand_access(e, &e->maker, x, &draft);
}

static bool resets_product(const struct expansion *e)
{
    return e->cell->kind == RECURRENT_GRU && e->attrs.linear_before_reset;
}

/* Both biases; of a gate that is reset with its product, the first alone. NULL: there are none. */
static struct ir_value *biases(struct expansion *e, int64_t number)
{
    struct ir_value *b = expand_cast(e, ir_operand(e->op, RECURRENT_B), e->dtype);
    const int64_t both = resets_product(e) ? 2 * e->hidden : e->width;
    if (!b)
        return NULL;
    struct ir_value *of_w = slice_row(e, b, number, 0, both);
    struct ir_value *of_r = slice_row(e, b, number, e->width, both);
    struct ir_value *sum = settled(e, IR_OP_Add, of_w, of_r);
    if (both == e->width)
        return sum;
    of_w = slice_row(e, b, number, both, e->width - both);
    return expand_settle(e, pass_make_with(&e->maker, IR_OP_Concat, sum, of_w, "axis", 0));
}

/* Its columns, with biases, the first step first. */
static struct ir_value *inputs_of(struct expansion *e, int64_t number, bool reversed)
{
    struct ir_value *bias = biases(e, number), *inputs = e->sums;
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    if (e->attrs.directions > 1)
        draft_slice(&draft, 2, number * e->width, (number + 1) * e->width, 1);
    if (reversed)
        draft_slice(&draft, 0, -1, INT64_MIN, -1);
    inputs = expand_access(e, &e->maker, inputs, &draft);
    return bias ? pass_make(&e->maker, IR_OP_Add, 2, inputs, bias) : inputs;
}

/* Columns of R's, turned: [H, count]. */
static struct ir_value *recurrent_part(struct expansion *e, int64_t number, int64_t from,
                                       int64_t count)
{
    struct ir_value *r = expand_cast(e, ir_operand(e->op, RECURRENT_R), e->dtype);
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    draft_select(&draft, 0, number);
    if (count < e->width)
        draft_slice(&draft, 0, from, from + count, 1);
    draft_step(&draft, RULE_PERMUTE, 2, (const int64_t[]){1, 0});
    return expand_access(e, &e->maker, r, &draft);
}

static void read_weights(struct expansion *e, int64_t number, struct direction *d)
{
    const int parts = e->cell->kind == RECURRENT_GRU && !resets_product(e) ? 3 : 1;
    const int64_t columns = e->width / parts;
    struct ir_value *b = expand_cast(e, ir_operand(e->op, RECURRENT_B), e->dtype);
    struct ir_value *p = e->cell->kind == RECURRENT_LSTM
                             ? expand_cast(e, ir_operand(e->op, RECURRENT_P), e->dtype)
                             : NULL;
    for (int i = 0; i < parts; i++)
        d->recurrent[i] = recurrent_part(e, number, i * columns, columns);
    if (resets_product(e) && b)
        d->past_bias = slice_row(e, b, number, e->width + 2 * e->hidden, e->hidden);
    for (int i = 0; p && i < 3; i++)
        d->peepholes[i] = slice_row(e, p, number, i * e->hidden, e->hidden);
}

/* [N, H]: what is given, or zeros. */
static struct ir_value *state_of(struct expansion *e, struct ir_value *given, int64_t number)
{
    struct ir_value *from = expand_cast(e, given, e->dtype);
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    if (from) {
        draft_select(&draft, e->attrs.batch_first ? 1 : 0, number);
        return expand_access(e, &e->maker, from, &draft);
    }
    draft_sizes(&draft, RULE_EXPAND, 2, (const int64_t[]){0, e->hidden},
                (struct ir_value *const[]){e->batch, NULL});
    return expand_access(e, &e->maker, pass_make_number(&e->maker, e->dtype, 0), &draft);
}

void expand_direction(struct expansion *e, int64_t number, struct direction *d)
{
    const bool is_lstm = e->cell->kind == RECURRENT_LSTM;
    *d = (struct direction){.functions = e->attrs.functions + (size_t)number * e->cell->n_functions,
                            .reversed = number == 1 || e->attrs.reverse};
    d->inputs = inputs_of(e, number, d->reversed);
    read_weights(e, number, d);
    d->h = state_of(e, ir_operand(e->op, RECURRENT_H0), number);
    if (is_lstm)
        d->c = state_of(e, ir_operand(e->op, RECURRENT_C0), number);
    if (e->lengths)
        d->bound = d->reversed ? settled(e, IR_OP_Sub, e->steps, e->lengths) : e->lengths;
}
