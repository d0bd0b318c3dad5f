/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of the sums of a convolution, as oneDNN is told of it. */
#include "device/cpu/onednn/conv_attrs.h"

#include <string.h>

#include "ir/convolve.h"

const struct library_quantizer *onednn_quantizer(const struct conv_problem *c)
{
    return (const struct library_quantizer *)(intptr_t)c->quantizer;
}

#define PER_CHANNEL 2 /* a mask of axes */

/* Rounded before the zero point is added, as halves are rounded to even. */
static bool append_zero(dnnl_primitive_attr_t attr, int64_t zero)
{
    dnnl_post_ops_t ops = NULL;
    const bool set =
        dnnl_post_ops_create(&ops) == dnnl_success &&
        dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_round, 0, 0) == dnnl_success &&
        dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_linear, 1, (float)zero) == dnnl_success &&
        dnnl_primitive_attr_set_post_ops(attr, ops) == dnnl_success;
    dnnl_post_ops_destroy(ops);
    return set;
}

static bool set_quantizer(dnnl_primitive_attr_t attr, const struct conv_problem *c)
{
    const struct library_quantizer *quantizer = onednn_quantizer(c);
#if DNNL_VERSION_MAJOR >= 3
    (void)attr;
    return !quantizer; /* scales would be operands there */
#else
    return !quantizer ||
           (dnnl_primitive_attr_set_output_scales(attr, c->out_channels, PER_CHANNEL,
                                                  quantizer->factors) == dnnl_success &&
            (quantizer->zero == 0 || append_zero(attr, quantizer->zero)));
#endif
}

/* What becomes of sums, by enum convolve_after: all that oneDNN computes while it has them. */
static const dnnl_alg_kind_t afters[AFTER_COUNT] = {
    [AFTER_relu] = dnnl_eltwise_relu,       [AFTER_clip] = dnnl_eltwise_clip,
    [AFTER_leaky_relu] = dnnl_eltwise_relu, [AFTER_hard_swish] = dnnl_eltwise_hardswish,
    [AFTER_swish] = dnnl_eltwise_swish,
};

float onednn_number_of(int64_t bits)
{
    const int32_t low = (int32_t)bits;
    float number;
    memcpy(&number, &low, sizeof number);
    return number;
}

/* The numbers of the algorithm where those of the op are others. */
static void find_numbers(const struct conv_problem *c, float *alpha, float *beta)
{
    *alpha = onednn_number_of(c->a);
    *beta = onednn_number_of(c->b);
    if (c->after == AFTER_relu)
        *alpha = 0;
    if (c->after == AFTER_swish)
        *alpha = 1;
    if (c->after == AFTER_hard_swish) { /* oneDNN 2 reads none */
        *alpha = 1.0F / 6;
        *beta = 0.5F;
    }
}

static bool append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha, float beta)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(ops, kind, alpha, beta) == dnnl_success;
#else
    return dnnl_post_ops_append_eltwise(ops, 1, kind, alpha, beta) == dnnl_success;
#endif
}

static bool append_sum(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef) == dnnl_success;
#else
    return dnnl_post_ops_append_sum(ops, 1) == dnnl_success;
#endif
}

static bool set_after(dnnl_primitive_attr_t attr, const struct conv_problem *c)
{
    dnnl_post_ops_t ops = NULL;
    float alpha, beta;
    if (!c->added && c->after == AFTER_NOTHING)
        return true;
    find_numbers(c, &alpha, &beta);
    const bool set =
        dnnl_post_ops_create(&ops) == dnnl_success && (!c->added || append_sum(ops)) &&
        (c->after == AFTER_NOTHING || append_eltwise(ops, afters[c->after], alpha, beta)) &&
        dnnl_primitive_attr_set_post_ops(attr, ops) == dnnl_success;
    dnnl_post_ops_destroy(ops);
    return set;
}

dnnl_primitive_desc_t onednn_after_desc(const struct onednn_engine *engine,
                                        const struct conv_problem *c, desc_view elements)
{
    dnnl_primitive_desc_t made = NULL;
    float alpha, beta;
    find_numbers(c, &alpha, &beta);
#if DNNL_VERSION_MAJOR >= 3
    dnnl_eltwise_forward_primitive_desc_create(&made, engine->engine, dnnl_forward_inference,
                                               afters[c->after], elements, elements, alpha, beta,
                                               NULL);
#else
    dnnl_eltwise_desc_t desc;
    if (dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference, afters[c->after], elements,
                                       alpha, beta) == dnnl_success)
        dnnl_primitive_desc_create(&made, &desc, NULL, engine->engine, NULL);
#endif
    return made;
}

static bool set_zero(dnnl_primitive_attr_t attr, int64_t zero)
{
#if DNNL_VERSION_MAJOR >= 3
    (void)attr;
    return zero == 0; /* it would be an operand there */
#else
    const int32_t zeros[1] = {(int32_t)zero};
    return zero == 0 ||
           dnnl_primitive_attr_set_zero_points(attr, DNNL_ARG_SRC, 1, 0, zeros) == dnnl_success;
#endif
}

static bool make_attr(dnnl_primitive_attr_t *attr)
{
    return dnnl_primitive_attr_create(attr) == dnnl_success &&
           dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user) ==
               dnnl_success;
}

bool onednn_conv_attrs(const struct conv_problem *c, struct onednn_attrs *attrs)
{
    return make_attr(&attrs->conv) && make_attr(&attrs->reorder) &&
           set_zero(attrs->conv, c->x_zero) && set_quantizer(attrs->conv, c) &&
           set_after(attrs->conv, c);
}
