/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/recurrent/activation.h"

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

struct own {
    ew_loop f32, f64;
};

static struct own own_loops(enum recurrent_function_id id)
{
    switch (id) {
    case RECURRENT_Affine:
        return (struct own){affine_f32, affine_f64};
    case RECURRENT_ScaledTanh:
        return (struct own){scaled_tanh_f32, scaled_tanh_f64};
    default:
        return (struct own){thresholded_relu_f32, thresholded_relu_f64};
    }
}

struct activation activation_of(const struct recurrent_function *function)
{
    const enum ir_op_id row = recurrent_function_info(function->id)->op;
    const struct own own = own_loops(function->id);
    return (struct activation){
        .loop_f32 = row == IR_OP_COUNT ? own.f32 : ew_loops_f32[row],
        .loop_f64 = row == IR_OP_COUNT ? own.f64 : ew_loops_f64[row],
        .uniform.params = {function->alpha, function->beta},
    };
}
