/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/lower/scale_chains.h"

#include <math.h>
#include <string.h>

#include "ir/infer.h"
#include "ir/rebuild.h"

/* ---- One op of a chain ----------------------------------------------------------------------- */

/* A constant that is one number, or one for each channel; other dims are 1. */
static const struct tensor *channel_constant(const struct ir_value *value, tssa_dtype dtype,
                                             int rank, int axis, int64_t count)
{
    const struct tensor *c = product_constant(value, -1);
    if (!c || c->dtype != dtype || c->rank > rank)
        return NULL;
    for (int i = 0; i < c->rank; i++)
        if (c->dims[i] != 1 && (i != axis - (rank - c->rank) || c->dims[i] != count))
            return NULL;
    return c;
}

static double channel_number(const struct tensor *c, int64_t channel)
{
    return product_number(c, tensor_count(c) == 1 ? 0 : channel);
}

/* One step of a chain: y = factor * x + shift. */
struct step {
    struct ir_value *x;
    const struct tensor *c;         /* of Mul, Div, Add, Sub */
    const struct tensor *normal[4]; /* of BatchNormalization: scale, bias, mean, variance */
    double epsilon;
};

static bool open_normalization(struct ir_op *op, int axis, int64_t count, struct step *step)
{
    if (axis != 1 || ir_attr_int(op, "training_mode", 0) != 0 || ir_attr_int(op, "spatial", 1) == 0)
        return false;
    for (uint32_t i = 1; i < op->n_results; i++)
        if (op->results[i].uses || op->results[i].wanted)
            return false;
    for (uint32_t i = 0; i < 4; i++) {
        step->normal[i] = product_constant(ir_operand(op, i + 1), 1);
        if (!step->normal[i] || step->normal[i]->dims[0] != count)
            return false;
    }
    step->x = ir_operand(op, 0);
    step->epsilon = (double)ir_attr_float(op, "epsilon", 1e-5f);
    return true;
}

/* `x`: the operand that is no constant, or NULL: whichever. */
static bool open_step(struct ir_op *op, const struct product *p, const struct ir_value *x, int axis,
                      int64_t count, struct step *step)
{
    bool either = ir_op_is(op, IR_OP_Mul) || ir_op_is(op, IR_OP_Add);
    *step = (struct step){0};
    if (ir_op_is(op, IR_OP_BatchNormalization))
        return (!x || x == ir_operand(op, 0)) && open_normalization(op, axis, count, step);
    if (!either && !ir_op_is(op, IR_OP_Div) && !ir_op_is(op, IR_OP_Sub))
        return false;
    for (uint32_t i = 0; i < (either ? 2U : 1U) && !step->c; i++) {
        step->x = ir_operand(op, i);
        if (!x || x == step->x)
            step->c = channel_constant(ir_operand(op, 1 - i), p->w->dtype, p->rank, axis, count);
    }
    return step->c != NULL;
}

static void step_numbers(const struct ir_op *op, const struct step *step, int64_t channel,
                         double *factor, double *shift)
{
    *factor = 1;
    *shift = 0;
    if (!step->c) {
        double variance = product_number(step->normal[3], channel) + step->epsilon;
        *factor = product_number(step->normal[0], channel) / sqrt(variance);
        *shift = product_number(step->normal[1], channel) -
                 product_number(step->normal[2], channel) * *factor;
        return;
    }
    double c = channel_number(step->c, channel);
    if (ir_op_is(op, IR_OP_Mul))
        *factor = c;
    else if (ir_op_is(op, IR_OP_Div))
        *factor = 1 / c;
    else
        *shift = ir_op_is(op, IR_OP_Add) ? c : -c;
}

/* ---- Chains ---------------------------------------------------------------------------------- */

tssa_status *scale_chain_create(const tssa_allocator *allocator, int64_t count,
                                struct scale_chain *chain)
{
    *chain = (struct scale_chain){.affine.count = count};
    chain->affine.factor = allocator_calloc(allocator, (size_t)count, sizeof(double));
    chain->affine.shift = allocator_calloc(allocator, (size_t)count, sizeof(double));
    TRY_ALLOC(chain->affine.factor);
    TRY_ALLOC(chain->affine.shift);
    for (int64_t i = 0; i < count; i++)
        chain->affine.factor[i] = 1;
    return NULL;
}

void scale_chain_free(const tssa_allocator *allocator, struct scale_chain *chain)
{
    allocator_free(allocator, chain->affine.factor);
    allocator_free(allocator, chain->affine.shift);
}

static bool is_power_of_two(double number)
{
    int exponent;
    return fabs(frexp(number, &exponent)) == 0.5;
}

/*
 * Why what a step would make of the chain cannot be said with weights of this type; NULL: it can.
 */
static const char *find_obstacle(const struct ir_op *op, const struct step *step,
                                 const struct affine *a, tssa_dtype dtype, bool after,
                                 bool may_shift)
{
    for (int64_t i = 0; i < a->count; i++) {
        double f, g;
        step_numbers(op, step, i, &f, &g);
        double factor = f * a->factor[i];
        double shift = after ? f * a->shift[i] + g : a->factor[i] * g + a->shift[i];
        if (!isfinite(factor) || !isfinite(shift))
            return "its numbers would not be finite";
        if (dtype == TSSA_FLOAT16 && (shift != 0 || !is_power_of_two(factor)))
            return "FLOAT16 would be rounded elsewhere, unless by a factor that is a power of two";
        if (shift != 0 && !may_shift)
            return "what it adds needs a bias, and the same inputs for every output";
        if (after && factor < 0 && shift == 0)
            return "a negative factor alone would change the sign of zeros";
    }
    return NULL;
}

static void apply(struct scale_chain *chain, struct ir_op *op, const struct step *step, bool after)
{
    struct affine *a = &chain->affine;
    for (int64_t i = 0; i < a->count; i++) {
        double f, g;
        step_numbers(op, step, i, &f, &g);
        a->shift[i] = after ? f * a->shift[i] + g : a->factor[i] * g + a->shift[i];
        a->factor[i] *= f;
        a->scales |= a->factor[i] != 1;
        a->shifts |= a->shift[i] != 0;
    }
    chain->ops[chain->count++] = op;
}

void scale_chain_follow(const struct product *p, struct scale_chain *chain)
{
    const struct ir_value *value = &p->op->results[0];
    struct step step;
    while (chain->count < SCALE_CHAIN_MAX && value->uses && !value->uses->next) {
        struct ir_op *op = value->uses->user;
        if (op->parent != p->op->parent || !open_step(op, p, value, p->out_axis, p->out, &step))
            return;
        chain->obstacle = find_obstacle(op, &step, &chain->affine, p->w->dtype, true, p->has_bias);
        if (chain->obstacle) {
            chain->stays = op;
            return;
        }
        apply(chain, op, &step, true);
        value = &op->results[0];
    }
}

static bool is_padded(const struct ir_op *conv)
{
    size_t count = 0;
    const int64_t *pads = ir_attr_ints(conv, "pads", &count);
    const char *mode = ir_attr_str(conv, "auto_pad", "NOTSET");
    for (size_t i = 0; i < count; i++)
        if (pads[i] != 0)
            return true;
    return strcmp(mode, "NOTSET") != 0 && strcmp(mode, "VALID") != 0;
}

static bool has_channels(const struct ir_value *x, const struct product *p)
{
    return x && x->type->kind == TYPE_TENSOR && x->type->rank == p->rank &&
           dim_is(x->type->dims[p->in_axis], p->in);
}

void scale_chain_precede(const struct product *p, struct scale_chain *chain)
{
    bool may_shift =
        p->has_bias && !p->turned && !(ir_op_is(p->op, IR_OP_Conv) && is_padded(p->op));
    struct step step;
    chain->from = ir_operand(p->op, 0);
    while (chain->count < SCALE_CHAIN_MAX && chain->from->op && !chain->from->uses->next) {
        struct ir_op *op = chain->from->op;
        if (op->parent != p->op->parent || !open_step(op, p, NULL, p->in_axis, p->in, &step) ||
            !has_channels(step.x, p))
            return;
        chain->obstacle = find_obstacle(op, &step, &chain->affine, p->w->dtype, false, may_shift);
        if (chain->obstacle) {
            chain->stays = op;
            return;
        }
        apply(chain, op, &step, false);
        chain->from = step.x;
    }
}

bool scale_chain_exists(const struct product *p)
{
    const struct ir_op *before = ir_operand(p->op, 0)->op;
    const struct ir_use *use = p->op->results[0].uses;
    struct step step;
    return (before && open_step((struct ir_op *)before, p, NULL, p->in_axis, p->in, &step)) ||
           (use && !use->next &&
            open_step(use->user, p, &p->op->results[0], p->out_axis, p->out, &step));
}
