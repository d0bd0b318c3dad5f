/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fusing_device.h"

#include <pthread.h>

#include "ir/cost.h"
#include "ir/fuse.h"

#define MOST_OPERANDS 64

const struct ir_fusion fusing_takes_all = {.classes = IR_FUSES_ALL,
                                           .machine = &cost_cpu,
                                           .most_operands = 8,
                                           .moves_inside = true,
                                           .row_parts = true,
                                           .side_by_side = true};

/* An op of the block; its results are values `first` and so on. */
struct inner {
    const struct ir_op *op;
    const struct kernel *kernel; /* NULL: a constant */
    const void *state;
    uint32_t first;
};

/* Values are numbered: parameters, then results. */
struct fused {
    const struct ir_block *body;
    struct inner *ops;
    uint32_t n_ops, n_values;
    const tssa_allocator *allocator;
};

static uint32_t number_of(const struct fused *fused, const struct ir_value *value)
{
    if (value->block)
        return value->index;
    for (uint32_t i = 0; i < fused->n_ops; i++)
        if (fused->ops[i].op == value->op)
            return fused->ops[i].first + value->index;
    return UINT32_MAX; /* the verifier has seen that it is there */
}

static void release_state(const void *state)
{
    const struct fused *fused = state;
    for (uint32_t i = 0; i < fused->n_ops; i++)
        if (fused->ops[i].kernel)
            kernel_release(fused->ops[i].kernel, fused->ops[i].state);
}

static tssa_status *add_op(struct fused *fused, const struct ir_op *op,
                           const struct kernel_setup *setup)
{
    struct inner *inner = &fused->ops[fused->n_ops];
    *inner = (struct inner){.op = op, .first = fused->n_values};
    if (!ir_op_is(op, IR_OP_Constant)) {
        const struct kernel *kernel = device_find(NULL)->find_kernel(op);
        if (!kernel || op->n_operands > MOST_OPERANDS || op->n_results > MOST_OPERANDS)
            return ERROR(TSSA_UNSUPPORTED, "%s in a fuse op", op->info->name);
        TRY(kernel_prepare(kernel, op, setup, &inner->state));
        inner->kernel = kernel;
    }
    fused->n_values += op->n_results;
    fused->n_ops++;
    return NULL;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct fused *fused = ARENA_NEW(setup->arena, struct fused);
    uint32_t n = 0;
    tssa_status *status = NULL;
    TRY_ALLOC(fused);
    fused->body = ir_fuse_body(op);
    fused->n_values = fused->body->n_params;
    fused->allocator = setup->context->allocator;
    for (const struct ir_op *inner = fused->body->first; inner; inner = inner->next)
        n++;
    fused->ops = ARENA_ARRAY(setup->arena, struct inner, n);
    TRY_ALLOC(fused->ops);
    for (const struct ir_op *inner = fused->body->first; inner->next && !status;
         inner = inner->next)
        status = add_op(fused, inner, setup);
    if (status)
        release_state(fused);
    else
        *state = fused;
    return status;
}

static tssa_status *run_op(const struct kernel_args *args, const struct inner *inner,
                           struct value *values)
{
    const struct fused *fused = args->state;
    const struct value *inputs[MOST_OPERANDS];
    struct value *outputs[MOST_OPERANDS];
    const struct ir_op *op = inner->op;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *operand = ir_operand(op, i);
        const uint32_t number = operand ? number_of(fused, operand) : 0;
        inputs[i] = !operand                  ? NULL
                    : number < args->n_inputs ? args->inputs[number]
                                              : &values[number];
    }
    for (uint32_t i = 0; i < op->n_results; i++)
        outputs[i] = op->results[i].wanted ? &values[inner->first + i] : NULL;
    struct kernel_args own = {.env = args->env,
                              .state = inner->state,
                              .op = op,
                              .n_inputs = op->n_operands,
                              .n_outputs = op->n_results,
                              .inputs = inputs,
                              .outputs = outputs};
    if (inner->kernel)
        return inner->kernel->run(&own);
    values[inner->first] =
        (struct value){.kind = TSSA_KIND_TENSOR, .tensor = *ir_value_constant(&op->results[0])};
    return NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    const struct fused *fused = args->state;
    const struct ir_op *ret = ir_block_return(fused->body);
    tssa_status *status = NULL;
    struct value *values = allocator_calloc(fused->allocator, fused->n_values + 1u, sizeof *values);
    TRY_ALLOC(values);
    for (uint32_t i = 0; i < fused->n_ops && !status; i++)
        status = run_op(args, &fused->ops[i], values);
    for (uint32_t i = 0; i < args->n_outputs && !status; i++) {
        const uint32_t number = number_of(fused, ir_operand(ret, i));
        if (args->outputs[i])
            value_copy(args->outputs[i],
                       number < args->n_inputs ? args->inputs[number] : &values[number]);
    }
    for (uint32_t i = 0; i < fused->n_ops; i++)
        for (uint32_t k = 0; k < fused->ops[i].op->n_results && fused->ops[i].kernel; k++)
            value_release(&values[fused->ops[i].first + k]);
    allocator_free(fused->allocator, values);
    return status;
}

/* ---- The table ------------------------------------------------------------------------------- */

static const struct kernel *find_kernel(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run, .release = release_state};
    return ir_fuse_body(op) ? &kernel : device_find(NULL)->find_kernel(op);
}

static const struct kernel *find_some_kernels(const struct ir_op *op)
{
    return ir_fuse_body(op) && op->id % 2 ? NULL : find_kernel(op);
}

static const struct ir_fusion *lend(struct device_context *context)
{
    (void)context;
    return &fusing_takes_all;
}

static struct device devices[2];

static void make_devices(void)
{
    devices[0] = *device_find(NULL);
    devices[0].name = "fusing";
    devices[0].find_kernel = find_kernel;
    devices[0].fusion = lend;
    devices[0].compile = NULL;
    devices[1] = devices[0];
    devices[1].find_kernel = find_some_kernels;
}

const struct device *fusing_device(bool refuses)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_devices);
    return &devices[refuses];
}
