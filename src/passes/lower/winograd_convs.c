/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions that Winograd's algorithm suits may be computed by it:
 *
 *     Conv(x, w, b), or convolve(x, w, b)   ->   convolve(x, w, b) {winograd = 1}
 *
 * with kernels of 3x3 without strides, one group, and weights that are constants, which are
 * transformed once. Whether it takes less time is for the library to say, which knows sizes and
 * processor.
 *
 *   needs   lay_out_convs, append_to_convs; only in sessions whose library computes convolve
 *           (pipeline.convolves) and that allow it
 *   keeps   results but for the last bits, and for NaN and infinities, which reach neighbours
 *   breaks  nothing
 */
#include "passes/lower/convs.h"

#define TAPS 3

static bool are_ones(const struct ir_op *op, const char *name)
{
    size_t n;
    const int64_t *numbers = ir_attr_ints(op, name, &n);
    bool ones = true;
    for (size_t i = 0; numbers && i < n; i++)
        ones &= numbers[i] == 1;
    return ones;
}

static bool suits(const struct ir_op *op)
{
    struct conv_shape shape;
    if (!conv_shape_of(op, &shape) || shape.groups != 1 || !are_ones(op, "strides"))
        return false;
    const struct tensor *w = ir_value_constant(ir_operand(op, CONVOLVE_W));
    return w && w->dims[2] == TAPS && w->dims[3] == TAPS;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    if (!suits(op))
        return NULL;
    struct ir_op *made = conv_create(pass->graph, op);
    if (!made || !conv_set_int(pass->graph, made, CONVOLVE_WINOGRAD, 1))
        return status_out_of_memory();
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op, "the library may use Winograd's algorithm"));
    return pass_replace(pass, op, made);
}

static tssa_status *find_any(void *context, struct ir_op *op)
{
    *(bool *)context |= suits(op);
    return NULL;
}

tssa_status *pass_winograd_convs(struct pass_context *pass)
{
    bool any = false;
    if (!pass_is_for_session(pass))
        return NULL;
    TRY(ir_block_walk(pass->graph->body, find_any, &any));
    return any && conv_is_computed(pass) ? ir_block_walk(pass->graph->body, visit, pass) : NULL;
}
