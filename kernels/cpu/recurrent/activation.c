/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/recurrent/activation.h"

#include <math.h>
#include <strings.h>

#define ACTIVATION(name, expression)                                                               \
    static double name(double x, double alpha, double beta)                                        \
    {                                                                                              \
        (void)alpha;                                                                               \
        (void)beta;                                                                                \
        return expression;                                                                         \
    }

ACTIVATION(affine, alpha *x + beta)
ACTIVATION(elu, x >= 0 ? x : alpha * expm1(x))
ACTIVATION(hard_sigmoid, fmin(fmax(alpha *x + beta, 0), 1))
ACTIVATION(leaky_relu, x >= 0 ? x : alpha * x)
ACTIVATION(relu, x > 0 ? x : 0)
ACTIVATION(scaled_tanh, alpha *tanh(beta *x))
ACTIVATION(sigmoid, 1 / (1 + exp(-x)))
ACTIVATION(softplus, fmax(x, 0) + log1p(exp(-fabs(x))))
ACTIVATION(softsign, x / (1 + fabs(x)))
ACTIVATION(hyperbolic_tangent, tanh(x))
ACTIVATION(thresholded_relu, x >= alpha ? x : 0)

static const struct {
    const char *name;
    double (*apply)(double x, double alpha, double beta);
    bool has_alpha, has_beta;
    double alpha, beta;
} functions[] = {
    {"Affine", affine, true, true, 1, 0},
    {"Elu", elu, true, false, 1, 0},
    {"HardSigmoid", hard_sigmoid, true, true, 0.2, 0.5},
    {"LeakyRelu", leaky_relu, true, false, 0.01, 0},
    {"Relu", relu, false, false, 0, 0},
    {"ScaledTanh", scaled_tanh, true, true, 1, 1},
    {"Sigmoid", sigmoid, false, false, 0, 0},
    {"Softplus", softplus, false, false, 0, 0},
    {"Softsign", softsign, false, false, 0, 0},
    {"Tanh", hyperbolic_tangent, false, false, 0, 0},
    {"ThresholdedRelu", thresholded_relu, true, false, 1, 0},
};

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
        if (strcasecmp(name, functions[i].name) != 0)
            continue;
        activation->apply = functions[i].apply;
        activation->alpha = parameter(alphas, functions[i].has_alpha, functions[i].alpha);
        activation->beta = parameter(betas, functions[i].has_beta, functions[i].beta);
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
