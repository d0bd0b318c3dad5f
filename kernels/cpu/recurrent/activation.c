/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/recurrent/activation.h"

#include <strings.h>

#include "base/clones.h"
#include "ir/scalar/f32_exp.h"
#include "ir/scalar/f64_exp.h"

/* ---- Functions that no operator is ----------------------------------------------------------- */

#define OWN_PARAMS                                                                                 \
    (const struct ew_uniform *uniform, int64_t n, void *out, int64_t out_step,                     \
     const void *const *in, const int64_t *in_step)
#define OWN_LOOP(T, expression)                                                                    \
    const T alpha = (T)uniform->params[0], beta = (T)uniform->params[1], *from = in[0];            \
    T *to = out;                                                                                   \
    (void)beta;                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                              \
        const T x = from[i * in_step[0]];                                                          \
        to[i * out_step] = expression;                                                             \
    }
#define OWN(name, narrow, wide)                                                                    \
    VECTOR_PROCEDURE(name##_f32, OWN_PARAMS, (uniform, n, out, out_step, in, in_step)){            \
        OWN_LOOP(float, narrow)} VECTOR_PROCEDURE(name##_f64, OWN_PARAMS,                          \
                                                  (uniform, n, out, out_step, in, in_step))        \
    {                                                                                              \
        OWN_LOOP(double, wide)                                                                     \
    }

OWN(affine, alpha *x + beta, alpha *x + beta)
OWN(scaled_tanh, alpha *f32_tanh(beta *x), alpha *f64_tanh(beta *x))
/* The operator of this name leaves x = alpha out. */
OWN(thresholded_relu, x >= alpha ? x : 0, x >= alpha ? x : 0)

/* ---- All of them ----------------------------------------------------------------------------- */

struct function {
    const char *name;
    enum ir_op_id row; /* of the element-wise operator that it is */
    ew_loop own_f32, own_f64;
    bool has_alpha, has_beta;
    double alpha, beta;
};

#define SAME(name, ...)                                                                            \
    {                                                                                              \
#name, IR_OP_##name, NULL, NULL, __VA_ARGS__                                               \
    }
#define DIFFERENT(name, loop, ...)                                                                 \
    {                                                                                              \
#name, IR_OP_COUNT, loop##_f32, loop##_f64, __VA_ARGS__                                    \
    }

static const struct function functions[] = {
    DIFFERENT(Affine, affine, true, true, 1, 0),
    SAME(Elu, true, false, 1, 0),
    SAME(HardSigmoid, true, true, 0.2f, 0.5),
    SAME(LeakyRelu, true, false, 0.01f, 0),
    SAME(Relu, false, false, 0, 0),
    DIFFERENT(ScaledTanh, scaled_tanh, true, true, 1, 1),
    SAME(Sigmoid, false, false, 0, 0),
    SAME(Softplus, false, false, 0, 0),
    SAME(Softsign, false, false, 0, 0),
    SAME(Tanh, false, false, 0, 0),
    DIFFERENT(ThresholdedRelu, thresholded_relu, true, false, 1, 0),
};

/* ---- Attributes ------------------------------------------------------------------------------ */

struct parameters {
    const float *values;
    size_t count, next;
};

static struct parameters parameters_of(const struct ir_op *op, const char *name)
{
    const struct ir_attr *attr = ir_attr(op, name);
    if (!attr || attr->kind != IR_ATTR_FLOATS)
        return (struct parameters){NULL, 0, 0};
    return (struct parameters){attr->floats, attr->count, 0};
}

static double parameter(struct parameters *list, bool used, double fallback)
{
    return used && list->next < list->count ? (double)list->values[list->next++] : fallback;
}

static tssa_status *activation_named(const char *name, struct parameters *alphas,
                                     struct parameters *betas, struct activation *activation)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const struct function *f = &functions[i];
        if (strcasecmp(name, f->name) != 0)
            continue;
        *activation = (struct activation){
            .loop_f32 = f->own_f32 ? f->own_f32 : ew_loops_f32[f->row],
            .loop_f64 = f->own_f64 ? f->own_f64 : ew_loops_f64[f->row],
            .uniform.params = {parameter(alphas, f->has_alpha, f->alpha),
                               parameter(betas, f->has_beta, f->beta)},
        };
        return NULL;
    }
    return ERROR(TSSA_UNSUPPORTED, "the activation \"%s\" is unknown", name);
}

tssa_status *activations_decode(const struct ir_op *op, const char *const *defaults,
                                size_t per_direction, size_t directions,
                                struct activation *activations)
{
    const struct ir_attr *names = ir_attr(op, "activations");
    struct parameters alphas = parameters_of(op, "activation_alpha");
    struct parameters betas = parameters_of(op, "activation_beta");
    size_t count = per_direction * directions;
    if (names && (names->kind != IR_ATTR_STRINGS || names->count != count))
        return ERROR(TSSA_MALFORMED, "activations must name %zu functions", count);
    for (size_t i = 0; i < count; i++) {
        const char *name = names ? names->strings[i].data : defaults[i % per_direction];
        TRY(activation_named(name, &alphas, &betas, &activations[i]));
    }
    return NULL;
}
