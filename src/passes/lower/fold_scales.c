/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What multiplies or shifts each channel by a constant becomes part of the weights of the Conv,
 * ConvTranspose, Gemm or MatMul before or behind it:
 *
 *     Conv(x, W, b) * s + t                 ->   Conv(x, W * s, b * s + t)
 *     BatchNormalization(Conv(x, W))        ->   Conv(x, W', b')
 *     Gemm(x * s + t, W, b)                 ->   Gemm(x, s * W, b + t W)
 *     MatMul(x, W) / s                      ->   MatMul(x, W / s)
 *
 * Mul, Div, Add, Sub and BatchNormalization are followed as far as each is the only user of the one
 * before. A shift needs a bias, which MatMul has not, and before a Conv it must not meet padding,
 * which is not shifted; before a ConvTranspose it never may, whose edges see less of the input than
 * its middle. New weights are computed in double and rounded once. They are not made where one
 * would not be finite, nor where others read the old ones and the file would grow too much
 * (pass_file_growth). In FLOAT16 only factors that are powers of two are folded, which round
 * nothing: another one, or a shift, changes results by more than --check tolerates (their error is
 * 1.4 times as large, over convolutions of 8 to 576 products), as ONNX Runtime does when it loads
 * the file. BFLOAT16 stays. Weights that are dequantised are no constants here: such models stay as
 * they are.
 *
 *   needs   constants where they are (fold_constants)
 *   keeps   nothing of the last bits: a product is rounded elsewhere. A zero keeps its sign: a
 *           negative factor without a shift behind it stays
 *   breaks  nothing
 */
#include "passes/lower/scaled_weights.h"

#include <math.h>
#include <string.h>

#include "ir/infer.h"
#include "ir/rebuild.h"

#define MAX_CHAIN 16

/* factor * x + shift, per channel. */
struct affine {
    double *factor, *shift;
    int64_t count;
    bool scales, shifts; /* some factor is not 1, some shift not 0 */
};

/* Ops in a row, and what they do together. */
struct chain {
    struct ir_op *ops[MAX_CHAIN];
    uint32_t count;
    struct ir_value *from; /* what the chain before a product reads */
    struct affine affine;
    /* would have been the next one; NULL: there was none, or it is something else */
    const struct ir_op *stays;
    const char *obstacle;
};

/* ---- Products -------------------------------------------------------------------------------- */

static const struct tensor *float_constant(const struct ir_value *value, int rank)
{
    const struct tensor *tensor = value ? ir_value_constant(value) : NULL;
    bool fits = tensor && (tensor->dtype == TSSA_FLOAT || tensor->dtype == TSSA_DOUBLE ||
                           tensor->dtype == TSSA_FLOAT16);
    return fits && (rank < 0 || tensor->rank == rank) ? tensor : NULL;
}

static bool open_conv(struct ir_op *op, struct product *p)
{
    p->w = float_constant(ir_operand(op, 1), -1);
    p->groups = ir_attr_int(op, "group", 1);
    p->turned = ir_op_is(op, IR_OP_ConvTranspose);
    if (!p->w || p->w->rank < 3 || p->groups < 1 || p->w->dims[0] % p->groups != 0)
        return false;
    int64_t all = p->w->dims[0], of_group = p->w->dims[1];
    p->out = p->turned ? of_group * p->groups : all;
    p->in = p->turned ? all : of_group * p->groups;
    p->inner = 1;
    for (int i = 2; i < p->w->rank; i++)
        p->inner *= p->w->dims[i];
    p->step_in = p->turned ? p->inner * of_group : p->inner;
    p->step_out = p->turned ? p->inner : p->inner * of_group;
    p->rank = p->w->rank;
    p->in_axis = p->out_axis = 1;
    p->has_bias = true;
    return true;
}

static bool open_matrix(struct ir_op *op, struct product *p)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    bool turned = ir_op_is(op, IR_OP_Gemm) && ir_attr_int(op, "transB", 0) != 0;
    p->w = float_constant(ir_operand(op, 1), 2);
    p->has_bias = ir_op_is(op, IR_OP_Gemm);
    if (!p->w || type->kind != TYPE_TENSOR || type->rank < 2 ||
        (p->has_bias &&
         (ir_attr_int(op, "transA", 0) != 0 ||
          !(ir_attr_float(op, "alpha", 1) == 1 && ir_attr_float(op, "beta", 1) == 1))))
        return false;
    p->groups = p->inner = 1;
    p->in = p->w->dims[turned];
    p->out = p->w->dims[!turned];
    p->step_in = turned ? 1 : p->out;
    p->step_out = turned ? p->in : 1;
    p->rank = type->rank;
    p->in_axis = p->out_axis = type->rank - 1;
    return true;
}

bool product_open(struct ir_op *op, struct product *p)
{
    *p = (struct product){.op = op};
    if (!ir_operand(op, 0))
        return false;
    bool known = ir_op_is(op, IR_OP_Conv) || ir_op_is(op, IR_OP_ConvTranspose) ? open_conv(op, p)
                 : ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm)      ? open_matrix(op, p)
                                                                               : false;
    if (!known || p->in < 1 || p->out < 1 || p->inner < 1)
        return false;
    struct ir_value *bias = p->has_bias ? ir_operand(op, 2) : NULL;
    p->bias = float_constant(bias, 1);
    return !bias || (p->bias && p->bias->dtype == p->w->dtype && p->bias->dims[0] == p->out);
}

double product_number(const struct tensor *tensor, int64_t index)
{
    if (tensor->dtype == TSSA_FLOAT)
        return (double)((const float *)tensor->data)[index];
    return tensor->dtype == TSSA_DOUBLE
               ? ((const double *)tensor->data)[index]
               : (double)half_to_float(((const uint16_t *)tensor->data)[index]);
}

/* ---- One op of a chain ----------------------------------------------------------------------- */

/* A constant that is one number, or one for each channel; other dims are 1. */
static const struct tensor *channel_constant(const struct ir_value *value, tssa_dtype dtype,
                                             int rank, int axis, int64_t count)
{
    const struct tensor *c = float_constant(value, -1);
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
        step->normal[i] = float_constant(ir_operand(op, i + 1), 1);
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

static tssa_status *chain_create(struct pass_context *pass, int64_t count, struct chain *chain)
{
    *chain = (struct chain){.affine.count = count};
    chain->affine.factor = allocator_calloc(pass->graph->allocator, (size_t)count, sizeof(double));
    chain->affine.shift = allocator_calloc(pass->graph->allocator, (size_t)count, sizeof(double));
    TRY_ALLOC(chain->affine.factor);
    TRY_ALLOC(chain->affine.shift);
    for (int64_t i = 0; i < count; i++)
        chain->affine.factor[i] = 1;
    return NULL;
}

static void chain_free(struct pass_context *pass, struct chain *chain)
{
    allocator_free(pass->graph->allocator, chain->affine.factor);
    allocator_free(pass->graph->allocator, chain->affine.shift);
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

static void apply(struct chain *chain, struct ir_op *op, const struct step *step, bool after)
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

static void follow_after(const struct product *p, struct chain *chain)
{
    const struct ir_value *value = &p->op->results[0];
    struct step step;
    while (chain->count < MAX_CHAIN && value->uses && !value->uses->next) {
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

static void follow_before(const struct product *p, struct chain *chain)
{
    bool may_shift =
        p->has_bias && !p->turned && !(ir_op_is(p->op, IR_OP_Conv) && is_padded(p->op));
    struct step step;
    chain->from = ir_operand(p->op, 0);
    while (chain->count < MAX_CHAIN && chain->from->op && !chain->from->uses->next) {
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

/* ---- Weights --------------------------------------------------------------------------------- */

static struct tensor *create_tensor(struct ir_graph *graph, const struct tensor *like, int rank,
                                    const int64_t *dims)
{
    struct tensor *tensor = ARENA_NEW(&graph->arena, struct tensor);
    if (!tensor)
        return NULL;
    *tensor = (struct tensor){.dtype = like->dtype, .rank = rank};
    memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
    tensor->data = arena_alloc_aligned(&graph->arena, tensor_bytes(tensor), TENSOR_ALIGNMENT);
    return tensor->data ? tensor : NULL;
}

#define NOT_FINITE "weights would not be finite"

/* NULL, or why it cannot be said. */
static const char *put_number(struct tensor *tensor, int64_t index, double value)
{
    if (tensor->dtype == TSSA_FLOAT)
        ((float *)tensor->data)[index] = (float)value;
    else if (tensor->dtype == TSSA_DOUBLE)
        ((double *)tensor->data)[index] = value;
    else
        ((uint16_t *)tensor->data)[index] = double_to_half(value);
    double stored = product_number(tensor, index);
    if (!isfinite(stored))
        return NOT_FINITE;
    return tensor->dtype == TSSA_FLOAT16 && stored != value
               ? "weights would be so small that FLOAT16 has fewer bits for them"
               : NULL;
}

/* Of output o's group, among all input channels. */
static int64_t first_input(const struct product *p, int64_t o)
{
    return o / (p->out / p->groups) * (p->in / p->groups);
}

/* The first weight of output o and of input 0 of its group. */
static int64_t place_of(const struct product *p, int64_t o)
{
    return p->turned ? first_input(p, o) * p->step_in + o % (p->out / p->groups) * p->step_out
                     : o * p->step_out;
}

/* Outputs that are visited together, weight by weight: those of a matrix lie side by side, and to
 * go down its columns one by one reads a line of the cache for each element. */
#define TOGETHER 16

struct outputs {
    int64_t first, n;
    int64_t inputs[TOGETHER], places[TOGETHER]; /* input 0 of each one's group, and its weights */
};

static struct outputs some_outputs(const struct product *p, int64_t first)
{
    struct outputs some = {.first = first,
                           .n = p->out - first < TOGETHER ? p->out - first : TOGETHER};
    for (int64_t o = 0; o < some.n; o++) {
        some.inputs[o] = first_input(p, first + o);
        some.places[o] = place_of(p, first + o);
    }
    return some;
}

/* Do they lie side by side, of float32, with one weight for each input, as those of a matrix do? */
static bool are_a_row(const struct product *p, const struct outputs *some)
{
    bool row = p->w->dtype == TSSA_FLOAT && p->inner == 1;
    for (int64_t o = 1; o < some->n; o++)
        row &= some->places[o] == some->places[0] + o && some->inputs[o] == some->inputs[0];
    return row;
}

/* As scale_rows. */
static const char *scale_a_row(const struct product *p, const struct affine *in,
                               const struct affine *out, const struct outputs *some,
                               struct tensor *w)
{
    bool finite = true;
    for (int64_t i = 0; i < p->in / p->groups; i++) {
        const int64_t place = some->places[0] + i * p->step_in;
        const float *from = (const float *)p->w->data + place;
        float *to = (float *)w->data + place;
        const double factor = in->factor[some->inputs[0] + i];
        for (int64_t o = 0; o < some->n; o++) {
            to[o] = (float)((double)from[o] * (out->factor[some->first + o] * factor));
            finite &= isfinite(to[o]);
        }
    }
    return finite ? NULL : NOT_FINITE;
}

/* Scales their weights. NULL, or why these cannot be said. */
static const char *scale_rows(const struct product *p, const struct affine *in,
                              const struct affine *out, const struct outputs *some,
                              struct tensor *w)
{
    if (are_a_row(p, some))
        return scale_a_row(p, in, out, some, w);
    for (int64_t i = 0; i < p->in / p->groups; i++)
        for (int64_t o = 0; o < some->n; o++) {
            const double factor = out->factor[some->first + o] * in->factor[some->inputs[o] + i];
            const int64_t place = some->places[o] + i * p->step_in;
            for (int64_t k = 0; k < p->inner; k++) {
                const double number = product_number(p->w, place + k) * factor;
                const char *obstacle = put_number(w, place + k, number);
                if (obstacle)
                    return obstacle;
            }
        }
    return NULL;
}

/* What the shifts of the inputs add to them. */
static void shift_rows(const struct product *p, const struct affine *in, const struct outputs *some,
                       double *sums)
{
    for (int64_t i = 0; i < p->in / p->groups; i++)
        for (int64_t o = 0; o < some->n; o++)
            for (int64_t k = 0; k < p->inner; k++)
                sums[o] += product_number(p->w, some->places[o] + i * p->step_in + k) *
                           in->shift[some->inputs[o] + i];
}

/* Weights and biases of some outputs, of which either may be NULL. */
static const char *make_rows(const struct product *p, const struct affine *in,
                             const struct affine *out, const struct outputs *some, struct tensor *w,
                             struct tensor *bias)
{
    double shifts[TOGETHER] = {0};
    const char *obstacle = w ? scale_rows(p, in, out, some, w) : NULL;
    if (in->shifts)
        shift_rows(p, in, some, shifts);
    for (int64_t o = some->first; o < some->first + some->n && bias && !obstacle; o++) {
        const double b = (p->bias ? product_number(p->bias, o) : 0) + shifts[o - some->first];
        obstacle = put_number(bias, o, b * out->factor[o] + out->shift[o]);
    }
    return obstacle;
}

/* Both may be NULL where nothing changes; *obstacle: why they cannot be said, or NULL. */
static tssa_status *make_weights(struct ir_graph *graph, const struct product *p,
                                 const struct affine *in, const struct affine *out,
                                 const struct tensor **w, struct tensor **bias,
                                 const char **obstacle)
{
    const struct scales by = {in->factor, out->factor};
    const bool scales = in->scales || out->scales;
    struct tensor *made = NULL;
    *w = scales ? scaled_weights_find(graph, p, &by) : NULL;
    *bias = NULL;
    *obstacle = NULL;
    if (scales && !*w) {
        *w = made = create_tensor(graph, p->w, p->w->rank, p->w->dims);
        TRY_ALLOC(made);
    }
    if (in->shifts || out->shifts || (p->bias && out->scales)) {
        *bias = create_tensor(graph, p->w, 1, &p->out);
        TRY_ALLOC(*bias);
    }
    for (int64_t o = 0; o < p->out && !*obstacle; o += TOGETHER) {
        const struct outputs some = some_outputs(p, o);
        *obstacle = make_rows(p, in, out, &some, made, *bias);
    }
    return made && !*obstacle ? scaled_weights_add(graph, p, &by, made) : NULL;
}

/* ---- The budget ------------------------------------------------------------------------------ */

static int64_t freed(const struct ir_value *value)
{
    const struct tensor *constant = value ? ir_value_constant(value) : NULL;
    return constant && value->uses && !value->uses->next ? (int64_t)tensor_bytes(constant) : 0;
}

static int64_t freed_by(const struct chain *chain)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < chain->count; k++)
        for (uint32_t i = 0; i < chain->ops[k]->n_operands; i++)
            bytes += freed(ir_operand(chain->ops[k], i));
    return bytes;
}

/* Also counts what is made. */
static bool is_affordable(struct pass_context *pass, const struct product *p,
                          const struct chain *before, const struct chain *after, int64_t *more)
{
    bool scales = before->affine.scales || after->affine.scales;
    int64_t size = (int64_t)dtype_info(p->w->dtype)->size;
    *more = p->out * size - freed_by(before) - freed_by(after);
    if (p->bias)
        *more -= freed(ir_operand(p->op, 2));
    if (scales)
        *more += (int64_t)tensor_bytes(p->w) - freed(ir_operand(p->op, 1));
    if (*more <= 0 || pass_is_for_session(pass))
        return true;
    if (pass->graph->folded_growth + *more > pass_file_growth(pass))
        return false;
    pass->graph->folded_growth += *more;
    return true;
}

/* ---- The pass -------------------------------------------------------------------------------- */

static tssa_status *put_constant(struct ir_graph *graph, struct ir_op *op, uint32_t index,
                                 const struct tensor *tensor)
{
    if (!tensor)
        return NULL;
    struct ir_op *constant = ir_constant_create(graph, tensor);
    TRY(pass_insert(constant, op));
    if (index >= op->n_operands) {
        struct ir_value *const all[] = {ir_operand(op, 0), ir_operand(op, 1),
                                        &constant->results[0]};
        return ir_op_set_operands(op, 3, all) ? NULL : status_out_of_memory();
    }
    ir_op_set_operand(op, index, &constant->results[0]);
    return NULL;
}

/* The product takes the place of the chains. */
static void take_place(struct product *p, const struct chain *before, const struct chain *after)
{
    struct ir_value *result = &p->op->results[0];
    if (before->count)
        ir_op_set_operand(p->op, 0, before->from);
    for (uint32_t i = 0; i < before->count; i++) /* the nearest one first */
        ir_op_remove(before->ops[i]);
    if (!after->count)
        return;
    struct ir_value *last = &after->ops[after->count - 1]->results[0];
    result->type = last->type;
    result->name = last->name;
    result->declared = last->declared;
    last->name = NULL;
    ir_value_replace(last, result);
    for (uint32_t i = after->count; i-- > 0;)
        ir_op_remove(after->ops[i]);
}

static tssa_status *fold(struct pass_context *pass, struct product *p, const struct chain *before,
                         const struct chain *after)
{
    const struct tensor *w;
    struct tensor *bias;
    const char *obstacle;
    int64_t more;
    if (!is_affordable(pass, p, before, after, &more))
        return pass_remark(pass, TSSA_REMARK_MISSED, p->op,
                           "factors beside it stay: its weights have other users, and the file "
                           "would be %lld bytes larger",
                           (long long)more);
    TRY(make_weights(pass->graph, p, &before->affine, &after->affine, &w, &bias, &obstacle));
    if (obstacle)
        return pass_remark(pass, TSSA_REMARK_MISSED, p->op, "factors beside it stay: %s", obstacle);
    ir_graph_forget(pass->graph, p->w->data, tensor_bytes(p->w));
    TRY(put_constant(pass->graph, p->op, 1, w));
    TRY(put_constant(pass->graph, p->op, 2, bias));
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, p->op, "its weights have taken in %u ops",
                    (unsigned)(before->count + after->count)));
    take_place(p, before, after);
    pass->changed = true;
    return NULL;
}

static tssa_status *explain(struct pass_context *pass, const struct chain *chain)
{
    if (!chain->stays)
        return NULL;
    return pass_remark(pass, TSSA_REMARK_MISSED, chain->stays,
                       "does not become part of the weights beside it: %s", chain->obstacle);
}

static tssa_status *follow(struct pass_context *pass, struct product *p, struct chain *before,
                           struct chain *after)
{
    TRY(chain_create(pass, p->in, before));
    TRY(chain_create(pass, p->out, after));
    follow_before(p, before);
    follow_after(p, after);
    TRY(explain(pass, before));
    TRY(explain(pass, after));
    return before->count || after->count ? fold(pass, p, before, after) : NULL;
}

/* Looked at before anything is allocated: most products have nothing beside them. */
static bool has_neighbour(const struct product *p)
{
    const struct ir_op *before = ir_operand(p->op, 0)->op;
    const struct ir_use *use = p->op->results[0].uses;
    struct step step;
    return (before && open_step((struct ir_op *)before, p, NULL, p->in_axis, p->in, &step)) ||
           (use && !use->next &&
            open_step(use->user, p, &p->op->results[0], p->out_axis, p->out, &step));
}

static tssa_status *visit_block(struct pass_context *pass, struct ir_block *block)
{
    struct product p;
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(visit_block(pass, op->blocks[i]));
        if (!product_open(op, &p) || !has_neighbour(&p))
            continue;
        struct chain before = {0}, after = {0};
        tssa_status *status = follow(pass, &p, &before, &after);
        chain_free(pass, &before);
        chain_free(pass, &after);
        TRY(status);
    }
    return NULL;
}

tssa_status *pass_fold_scales(struct pass_context *pass)
{
    return visit_block(pass, pass->graph->body);
}
