/* SPDX-License-Identifier: Apache-2.0 */
/* The loop over steps, in all directions, and what an iteration computes: as the host's kernels do
 * (docs/numerics.md), in the same order. */
#include <float.h>

#include "ir/infer.h"
#include "passes/lower/expand_recurrent.h"

/* An iteration in one direction. */
struct step {
    struct expansion *e;
    const struct direction *d;
    struct pass_maker m;     /* before the body's return */
    struct ir_value *number; /* of the step, i64[] */
    struct ir_value *h, *c;  /* before it */
};

static struct ir_value *binary(struct step *s, enum ir_op_id id, struct ir_value *a,
                               struct ir_value *b)
{
    return pass_make(&s->m, id, 2, a, b);
}

static struct ir_value *number(struct step *s, double value)
{
    return pass_make_number(&s->m, s->e->dtype, value);
}

/* ---- Activations ----------------------------------------------------------------------------- */

static struct ir_value *clip(struct step *s, struct ir_value *x)
{
    const double bound = s->e->attrs.clip;
    if (!(bound <= (s->e->dtype == TSSA_DOUBLE ? DBL_MAX : (double)FLT_MAX)))
        return x;
    struct ir_value *low = number(s, -bound), *high = number(s, bound);
    return pass_put(&s->m, pass_new_op(&s->m, IR_OP_Clip, 3, x, low, high));
}

static bool set_float(struct ir_graph *graph, struct ir_op *op, const char *name, double value)
{
    const struct ir_attr attr = {
        .name = intern_str(&graph->strings, name), .kind = IR_ATTR_FLOAT, .f = (float)value};
    return attr.name && ir_op_set_attr(graph, op, &attr);
}

static struct ir_value *apply_op(struct step *s, const struct recurrent_function *f,
                                 struct ir_value *x)
{
    const struct recurrent_function_info *info = recurrent_function_info(f->id);
    struct ir_op *op = pass_new_op(&s->m, info->op, 1, x, NULL, NULL);
    if (op && info->has_alpha && !set_float(s->m.graph, op, "alpha", f->alpha))
        op = NULL;
    if (op && info->has_beta && !set_float(s->m.graph, op, "beta", f->beta))
        op = NULL;
    return pass_put(&s->m, op);
}

static struct ir_value *affine(struct step *s, const struct recurrent_function *f,
                               struct ir_value *x)
{
    struct ir_value *scaled = binary(s, IR_OP_Mul, number(s, f->alpha), x);
    return binary(s, IR_OP_Add, scaled, number(s, f->beta));
}

static struct ir_value *scaled_tanh(struct step *s, const struct recurrent_function *f,
                                    struct ir_value *x)
{
    struct ir_value *scaled = binary(s, IR_OP_Mul, number(s, f->beta), x);
    struct ir_value *tanh = pass_make(&s->m, IR_OP_Tanh, 1, scaled, NULL);
    return binary(s, IR_OP_Mul, number(s, f->alpha), tanh);
}

static struct ir_value *thresholded_relu(struct step *s, const struct recurrent_function *f,
                                         struct ir_value *x)
{
    struct ir_value *above = binary(s, IR_OP_GreaterOrEqual, x, number(s, f->alpha));
    return pass_make_where(&s->m, above, x, number(s, 0));
}

static struct ir_value *activate(struct step *s, int which, struct ir_value *x)
{
    const struct recurrent_function *f = &s->d->functions[which];
    switch (f->id) {
    case RECURRENT_Affine:
        return affine(s, f, x);
    case RECURRENT_ScaledTanh:
        return scaled_tanh(s, f, x);
    case RECURRENT_ThresholdedRelu:
        return thresholded_relu(s, f, x);
    default:
        return apply_op(s, f, x);
    }
}

/* What goes into a gate is clipped; the spec's h(Ct) is none. */
static struct ir_value *activate_gate(struct step *s, int which, struct ir_value *x)
{
    return activate(s, which, clip(s, x));
}

/* ---- Gates ----------------------------------------------------------------------------------- */

/* A gate's columns: [N, H]. */
static struct ir_value *columns(struct step *s, struct ir_value *x, int64_t gate)
{
    const int64_t h = s->e->hidden;
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    draft_slice(&draft, 1, gate * h, (gate + 1) * h, 1);
    return expand_access(s->e, &s->m, x, &draft);
}

/* What the inputs have added to the gates of this step. */
static struct ir_value *input_gates(struct step *s)
{
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    draft_step_value(&draft, RULE_SELECT, 0, s->number);
    return expand_access(s->e, &s->m, s->d->inputs, &draft);
}

static struct ir_value *recur(struct step *s, struct ir_value *x, int part)
{
    return binary(s, IR_OP_MatMul, x, s->d->recurrent[part]);
}

/* What goes into all gates, but for GRU's. */
static struct ir_value *sum_gates(struct step *s)
{
    struct ir_value *inputs = input_gates(s), *past = recur(s, s->h, 0);
    return binary(s, IR_OP_Add, inputs, past);
}

static void rnn_step(struct step *s)
{
    s->h = activate_gate(s, 0, sum_gates(s));
}

/* Of the gate: from inputs; from states. `past`: products of all gates; NULL: each has its own. */
static struct ir_value *gru_sum(struct step *s, struct ir_value *inputs, struct ir_value *past,
                                int gate)
{
    struct ir_value *in = columns(s, inputs, gate);
    past = past ? columns(s, past, gate) : recur(s, s->h, gate);
    return binary(s, IR_OP_Add, in, past);
}

/* What R makes of the past goes into the candidates: before or after it is reset. */
static struct ir_value *gru_candidates(struct step *s, struct ir_value *inputs,
                                       struct ir_value *past, struct ir_value *reset)
{
    struct ir_value *in = columns(s, inputs, 2);
    if (!past) {
        past = recur(s, binary(s, IR_OP_Mul, reset, s->h), 2);
        return binary(s, IR_OP_Add, in, past);
    }
    past = columns(s, past, 2);
    if (s->d->past_bias)
        past = binary(s, IR_OP_Add, past, s->d->past_bias);
    return binary(s, IR_OP_Add, in, binary(s, IR_OP_Mul, reset, past));
}

/* Gates z, r, h. */
static void gru_step(struct step *s)
{
    struct ir_value *inputs = input_gates(s), *past = NULL;
    if (s->e->attrs.linear_before_reset)
        past = recur(s, s->h, 0);
    struct ir_value *update = activate_gate(s, 0, gru_sum(s, inputs, past, 0));
    struct ir_value *reset = activate_gate(s, 0, gru_sum(s, inputs, past, 1));
    struct ir_value *candidate = activate_gate(s, 1, gru_candidates(s, inputs, past, reset));
    struct ir_value *rest = binary(s, IR_OP_Sub, number(s, 1), update);
    struct ir_value *new = binary(s, IR_OP_Mul, rest, candidate);
    struct ir_value *old = binary(s, IR_OP_Mul, update, s->h);
    s->h = binary(s, IR_OP_Add, new, old);
}

/* The gate's sum, and what a peephole, -1: none, adds to it. */
static struct ir_value *lstm_gate(struct step *s, int function, struct ir_value *sums, int gate,
                                  int peephole)
{
    struct ir_value *sum = columns(s, sums, gate);
    struct ir_value *weights = peephole < 0 ? NULL : s->d->peepholes[peephole];
    if (weights)
        sum = binary(s, IR_OP_Add, sum, binary(s, IR_OP_Mul, weights, s->c));
    return activate_gate(s, function, sum);
}

/* Gates i, o, f, c; peepholes i, o, f, of which o sees the new state. */
static void lstm_step(struct step *s)
{
    struct ir_value *sums = sum_gates(s), *in = lstm_gate(s, 0, sums, 0, 0);
    struct ir_value *forget = s->e->attrs.input_forget ? binary(s, IR_OP_Sub, number(s, 1), in)
                                                       : lstm_gate(s, 0, sums, 2, 2);
    struct ir_value *candidate = lstm_gate(s, 1, sums, 3, -1);
    struct ir_value *old = binary(s, IR_OP_Mul, forget, s->c);
    struct ir_value *new = binary(s, IR_OP_Mul, in, candidate);
    s->c = binary(s, IR_OP_Add, old, new);
    struct ir_value *out = lstm_gate(s, 0, sums, 1, 1);
    s->h = binary(s, IR_OP_Mul, out, activate(s, 2, s->c));
}

/* ---- The loop -------------------------------------------------------------------------------- */

/* The Loop, whose body returns nothing yet. */
static struct ir_op *make_loop(struct expansion *e, uint32_t n_carried, uint32_t n_results)
{
    struct pass_maker *m = &e->maker;
    struct ir_graph *graph = m->graph;
    if (m->status)
        return NULL;
    struct ir_op *op = ir_op_create(graph, ir_op_info(IR_OP_Loop), 2 + n_carried, n_results);
    struct ir_op *ret = ir_op_create(graph, ir_op_info(IR_OP_return), 1 + n_results, 0);
    struct ir_block *body = NULL;
    if (op && ret && ir_op_set_blocks(graph, op, 1))
        body = ir_block_create(graph, op, 2 + n_carried);
    if (!body) {
        m->status = status_out_of_memory();
        return NULL;
    }
    op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    op->name = ret->name = e->op->name;
    op->blocks[0] = body;
    op->block_names[0] = intern_str(&graph->strings, "body");
    if (!op->block_names[0])
        m->status = status_out_of_memory();
    ir_op_append(body, ret);
    ir_op_insert_before(op, m->at);
    ir_op_set_operand(op, 0, e->steps);
    ir_op_set_operand(ret, 0, body->params[1]);
    return op;
}

static struct ir_value *choose(struct step *s, struct ir_value *taken, struct ir_value *then,
                               struct ir_value *otherwise)
{
    return taken ? pass_make_where(&s->m, taken, then, otherwise) : then;
}

/* Sequences that have ended, or not begun yet, keep their states. */
static struct ir_value *taken_of(struct step *s)
{
    const enum ir_op_id id = s->d->reversed ? IR_OP_GreaterOrEqual : IR_OP_Less;
    return s->d->bound ? binary(s, id, s->number, s->d->bound) : NULL;
}

/* A value that is carried: its number counts from 0. */
static struct ir_value *carry(struct ir_op *loop, uint32_t k, struct ir_value *initial)
{
    struct ir_value *param = loop->blocks[0]->params[2 + k];
    ir_op_set_operand(loop, 2 + k, initial);
    param->type = initial->type;
    return param;
}

/* Where results of a direction are among the loop's. */
struct places {
    uint32_t h, c, y;
};

static void take_step(struct step *s, struct ir_op *loop, const struct places *at, bool stacks)
{
    static void (*const steps[])(struct step *) = {
        [RECURRENT_RNN] = rnn_step, [RECURRENT_GRU] = gru_step, [RECURRENT_LSTM] = lstm_step};
    struct ir_op *ret = ir_block_return(loop->blocks[0]);
    struct ir_value *h = s->h = carry(loop, at->h, s->d->h);
    struct ir_value *c = s->c = s->d->c ? carry(loop, at->c, s->d->c) : NULL;
    steps[s->e->cell->kind](s);
    struct ir_value *taken = taken_of(s);
    ir_op_set_operand(ret, 1 + at->h, choose(s, taken, s->h, h));
    if (c)
        ir_op_set_operand(ret, 1 + at->c, choose(s, taken, s->c, c));
    if (stacks)
        ir_op_set_operand(ret, 1 + at->y, choose(s, taken, s->h, taken ? number(s, 0) : NULL));
}

static void set_scalars(struct expansion *e, const struct ir_block *body)
{
    struct type_table *types = &e->maker.graph->types;
    body->params[0]->type = type_tensor(types, TSSA_INT64, 0, NULL);
    body->params[1]->type = type_tensor(types, TSSA_BOOL, 0, NULL);
    if (!body->params[0]->type || !body->params[1]->type)
        e->maker.status = status_out_of_memory();
}

void expand_loop(struct expansion *e, const struct direction *directions, struct last *last)
{
    const bool stacks = e->op->results[0].wanted && e->op->results[0].uses;
    const uint32_t states = directions->c ? 2 : 1, n = (uint32_t)e->attrs.directions;
    struct ir_op *op = make_loop(e, n * states, n * (states + stacks));
    if (op)
        set_scalars(e, op->blocks[0]);
    for (uint32_t i = 0; i < n && !e->maker.status; i++) {
        const struct places at = {i * states, i * states + 1, n * states + i};
        struct step s = {
            .e = e,
            .d = &directions[i],
            .m = {.at = ir_block_return(op->blocks[0]), .graph = e->maker.graph},
            .number = op->blocks[0]->params[0],
        };
        take_step(&s, op, &at, stacks);
        e->maker.status = s.m.status;
        last[i] = (struct last){.y = stacks ? &op->results[at.y] : NULL,
                                .h = &op->results[at.h],
                                .c = directions->c ? &op->results[at.c] : NULL};
    }
    if (!e->maker.status)
        e->maker.status = ir_infer_op_lenient(op);
}
