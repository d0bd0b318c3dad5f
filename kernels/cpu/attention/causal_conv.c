/* SPDX-License-Identifier: Apache-2.0 */
/* CausalConvWithState (ai.onnx 27): a depth-wise 1-D convolution of what came before and the input. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"

struct causal_attrs {
    bool silu;
};

static tssa_status *causal_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct causal_attrs *attrs = ARENA_NEW(setup->arena, struct causal_attrs);
    TRY_ALLOC(attrs);
    const char *activation = ir_attr_str(op, "activation", "none");
    attrs->silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (!attrs->silu && strcmp(activation, "none") != 0)
        return ERROR(TSSA_MALFORMED, "the activation is \"%s\"", activation);
    *state = attrs;
    return NULL;
}

struct causal {
    bool silu;
    const struct tensor *x, *w, *bias, *past; /* bias and past may be NULL */
    struct tensor *y, *present;
    int64_t channels, length, kernel;
};

/* Indices are (batch, channel) pairs. Scratch: the weights, then past and input in a row. */
static void convolve(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct causal *c = context;
    int64_t before = c->kernel - 1;
    double *weights = scratch, *line = weights + c->kernel;
    for (int64_t i = begin; i < end; i++) {
        int64_t channel = i % c->channels;
        double start = 0;
        memset(line, 0, (size_t)before * sizeof *line);
        load_doubles(c->w, channel * c->kernel, 1, c->kernel, weights);
        if (c->past)
            load_doubles(c->past, i * before, 1, before, line);
        load_doubles(c->x, i * c->length, 1, c->length, line + before);
        if (c->present)
            store_doubles(c->present, i * before, 1, before, line + c->length);
        if (c->bias)
            load_doubles(c->bias, channel, 1, 1, &start);
        for (int64_t p = 0; c->y && p < c->length; p++) {
            double sum = start;
            for (int64_t k = 0; k < c->kernel; k++)
                sum += weights[k] * line[p + k];
            if (c->silu)
                sum /= 1 + exp(-sum);
            store_doubles(c->y, i * c->length + p, 1, 1, &sum);
        }
    }
}

static tssa_status *open_operands(struct kernel_args *args, struct causal *c)
{
    TRY(typed_tensor(args, 0, &c->x));
    TRY(typed_tensor(args, 1, &c->w));
    TRY(kernel_optional_tensor(args, 3, &c->past));
    if (c->x->rank != 3)
        return operand_error(0, c->x, "of rank 3");
    c->channels = c->x->dims[1];
    c->length = c->x->dims[2];
    if (c->w->rank != 3 || c->w->dims[0] != c->channels || c->w->dims[1] != 1 || c->w->dims[2] < 1)
        return operand_error(1, c->w, "a kernel per channel");
    c->kernel = c->w->dims[2];
    TRY(typed_vector(args, 2, c->channels, true, &c->bias));
    if (c->past &&
        (c->past->dtype != c->x->dtype || c->past->rank != 3 || c->past->dims[0] != c->x->dims[0] ||
         c->past->dims[1] != c->channels || c->past->dims[2] != c->kernel - 1))
        return operand_error(3, c->past, "the state before");
    return NULL;
}

static tssa_status *run_CausalConvWithState(struct kernel_args *args)
{
    const struct causal_attrs *attrs = args->state;
    struct causal c = {.silu = attrs->silu};
    int64_t doubles, cost;
    size_t bytes;
    TRY(open_operands(args, &c));
    const int64_t state[] = {c.x->dims[0], c.channels, c.kernel - 1};
    TRY(kernel_output(args, 0, c.x->dtype, 3, c.x->dims, &c.y));
    TRY(kernel_output(args, 1, c.x->dtype, 3, state, &c.present));
    if (!i64_mul(c.kernel, 2, &doubles) || !i64_add(c.length, doubles, &doubles) ||
        !size_mul((size_t)doubles, sizeof(double), &bytes))
        return ERROR(TSSA_RUNTIME, "the input is too long");
    if (!i64_mul(c.length, c.kernel, &cost))
        cost = INT64_MAX;
    return parts_for(args, c.x->dims[0] * c.channels, cost, bytes, convolve, &c);
}

const struct kernel cpu_kernel_CausalConvWithState = {.prepare = causal_prepare,
                                                      .run = run_CausalConvWithState};
