/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/conv.h"

#include <string.h>

#include "device/device.h"
#include "device/grids/convolve.h"
#include "device/grids/operands.h"
#include "device/grids/product.h"
#include "device/grids/programs.h"
#include "device/library_cache.h"
#include "device/library_op.h"
#include "ir/fuse.h"

struct state {
    struct library_op op;
    struct library_cache library;
    bool asks; /* a library that is no text */
    /* What follows the convolution (ir_fuse_convolves): of its own operands there are so many. */
    struct ir_fuse_convolution followed;
    uint32_t n_operands;
};

static bool is_worth_it(const struct device_library *library, const struct library_problem *problem)
{
    return !library->is_worth_it || library->is_worth_it(problem);
}

/* Are sums of the type rounded before a launch could add a bias to them? */
static bool rounds_before_bias(const struct library_problem *problem)
{
    const tssa_dtype dtype = (tssa_dtype)problem->dtype;
    return problem->conv.turned && problem->conv.biased && grids_computed_in(dtype) != dtype;
}

/* What computes what a library declines, or is not asked for; not before that has. */
static tssa_status *want_texts(const struct ir_op *op, const struct state *state,
                               struct device_context *context)
{
    static const enum grids_text all[] = {GRIDS_TEXT_CONV, GRIDS_TEXT_CONV_SMALL,
                                          GRIDS_TEXT_CONV_EACH};
    const tssa_dtype dtype = op->results[0].type->dtype;
    struct library_problem problem;
    const bool known = library_op_known(op, &problem);
    if (state->asks && state->op.form == LIBRARY_OP_CONV_TRANSPOSE && op->n_operands > 2 &&
        grids_computed_in(dtype) == dtype)
        TRY(grids_text_want(context, GRIDS_TEXT_BIAS, dtype));
    if (state->followed.adds || state->followed.clips)
        TRY(grids_text_want(context, GRIDS_TEXT_BIAS, dtype));
    if (known && state->asks && !rounds_before_bias(&problem) &&
        is_worth_it(context->device->library, &problem))
        return NULL;
    if (known)
        return grids_text_want(context, convolve_text(context, &problem.conv), dtype);
    for (size_t i = state->op.form == LIBRARY_OP_CONV_TRANSPOSE ? 2 : 0;
         i < sizeof all / sizeof *all; i++)
        TRY(grids_text_want(context, all[i], dtype));
    return NULL;
}

static tssa_status *prepare_one(const struct ir_op *op, const struct kernel_setup *setup,
                                const struct ir_fuse_convolution *followed, const void **state)
{
    const struct device *device = setup->context->device;
    struct state *made = ARENA_NEW(setup->arena, struct state);
    TRY_ALLOC(made);
    made->followed = *followed;
    made->n_operands = op->n_operands;
    made->asks = device->library != &grids_library && library_asks(device, op);
    TRY(library_op_decode(op, &made->op));
    TRY(want_texts(op, made, setup->context));
    library_cache_open(&made->library, setup, false);
    *state = made;
    return NULL;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    return prepare_one(op, setup, &(struct ir_fuse_convolution){.conv = op}, state);
}

static tssa_status *prepare_followed(const struct ir_op *op, const struct kernel_setup *setup,
                                     const void **state)
{
    struct ir_fuse_convolution followed;
    ir_fuse_convolves(op, &followed);
    return prepare_one(followed.conv, setup, &followed, state);
}

static void release(const void *state)
{
    library_cache_close(&((struct state *)state)->library);
}

/* The part of it that is asked for, and then what is left: of a convolution that is turned no
 * library adds a bias, and nothing follows one without. */
static tssa_status *ask_in_parts(struct kernel_args *args, const struct library_problem *problem,
                                 struct library_call *call, bool *done)
{
    struct state *state = (void *)args->state; /* what changes is behind the library's lock */
    const struct conv_problem *p = &problem->conv;
    const tssa_dtype dtype = (tssa_dtype)problem->dtype;
    struct library_problem asked = *problem;
    asked.conv.adds = asked.conv.clips = 0;
    asked.conv.biased &= !p->turned;
    TRY(library_compute(args, &state->library, &asked, NULL, call, done));
    if (!*done)
        return NULL;
    if (p->biased && p->turned)
        TRY(convolve_add_bias(args->env->stream, p, dtype, call));
    return convolve_follow(args->env->stream, p, dtype, call);
}

/* By the library. */
static tssa_status *ask(struct kernel_args *args, const struct library_problem *problem,
                        struct library_call *call, bool *done)
{
    struct state *state = (void *)args->state; /* as above */
    const struct conv_problem *p = &problem->conv;
    if ((p->adds || p->clips) && p->biased)
        TRY(library_compute(args, &state->library, problem, NULL, call, done));
    return *done ? NULL : ask_in_parts(args, problem, call, done);
}

static tssa_status *compute(struct kernel_args *args, const struct library_problem *problem,
                            struct library_call *call, struct buffer **buffers)
{
    const struct state *state = args->state;
    struct device_stream *stream = args->env->stream;
    bool done = false;
    for (uint32_t i = 0; i < state->n_operands; i++)
        if (args->inputs[i])
            TRY(grids_operand(args, i, &buffers[i], &call->operands[i]));
    if (problem->conv.adds)
        TRY(grids_operand(args, state->followed.added, &buffers[LIBRARY_ADDED],
                          &call->operands[LIBRARY_ADDED]));
    if (state->asks && !rounds_before_bias(problem) &&
        is_worth_it(stream->context->device->library, problem))
        TRY(ask(args, problem, call, &done));
    return done ? NULL : convolve(stream, &problem->conv, (tssa_dtype)problem->dtype, call);
}

static tssa_status *check_added(const struct kernel_args *args, uint32_t operand,
                                const struct tensor *x, const int64_t *dims)
{
    const struct tensor *added;
    TRY(kernel_tensor(args, operand, &added));
    if (added->dtype != x->dtype || added->rank != x->rank ||
        memcmp(added->dims, dims, (size_t)x->rank * sizeof *dims) != 0)
        return ERROR(TSSA_RUNTIME, "what is added is not of the convolution's shape");
    return NULL;
}

/* Of operands that are checked. */
static tssa_status *make_result(struct kernel_args *args, struct library_problem *problem,
                                struct tensor **y)
{
    const struct state *state = args->state;
    const struct conv_problem *p = &problem->conv;
    const struct tensor *x, *w, *bias;
    int64_t dims[TSSA_MAX_RANK];
    bool one;
    struct kernel_args own = *args;
    own.n_inputs = state->n_operands;
    TRY(kernel_tensor(&own, 0, &x));
    TRY(kernel_tensor(&own, 1, &w));
    TRY(kernel_optional_tensor(&own, 2, &bias));
    if (!dtype_in(CONVOLVE_TYPES, x->dtype) || w->dtype != x->dtype ||
        (bias && bias->dtype != x->dtype))
        return ERROR(TSSA_RUNTIME, "the operands must be of one float type");
    memset(problem, 0, sizeof *problem);
    TRY(library_op_problem(&state->op, &own, problem, &one));
    if (!one)
        return ERROR(TSSA_RUNTIME, "a convolution of %d axes", x->rank - 2);
    dims[0] = p->batch;
    dims[1] = p->out_channels;
    memcpy(dims + 2, p->out, (size_t)p->rank * sizeof *dims);
    problem->conv.adds = state->followed.adds;
    problem->conv.clips = state->followed.clips;
    if (p->adds)
        TRY(check_added(args, state->followed.added, x, dims));
    return kernel_output(args, 0, x->dtype, x->rank, dims, y);
}

static tssa_status *run(struct kernel_args *args)
{
    struct library_problem problem;
    struct library_call call = {0};
    struct buffer *buffers[LIBRARY_OPERANDS] = {NULL};
    struct tensor *y;
    TRY(make_result(args, &problem, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    call.result = grids_place(y);
    tssa_status *status = compute(args, &problem, &call, buffers);
    for (int i = 0; i < LIBRARY_OPERANDS; i++)
        buffer_release(buffers[i]);
    return status;
}

const struct kernel *grids_conv_find_followed(const struct ir_op *op)
{
    static const struct kernel kernel = {
        .prepare = prepare_followed, .run = run, .release = release};
    struct ir_fuse_convolution followed;
    return ir_fuse_convolves(op, &followed) && grids_conv_find(followed.conv) ? &kernel : NULL;
}

const struct kernel *grids_conv_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run, .release = release};
    if ((!ir_op_is(op, IR_OP_Conv) && !ir_op_is(op, IR_OP_ConvTranspose)) || !ir_operand(op, 0))
        return NULL;
    const struct ir_type *type = ir_operand(op, 0)->type;
    return dtype_in(CONVOLVE_TYPES, type->dtype) && type->rank <= CONV_MAX_RANK + 2 ? &kernel
                                                                                    : NULL;
}
