/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/ready.h"

#include "base/clock.h"
#include "device/library_op.h"

/* Kernels that get ready have fewer. */
#define MOST_OPERANDS 16

/*
 * Bytes of a step's operands and results, without constants. To compute what is larger takes longer
 * than to make it; and a size that a model only claims shall not ask for memory.
 */
#define MOST_BYTES ((size_t)64 << 20)

/*
 * What an axis of unknown length is taken to have: the first one, of batches, one element, which is
 * likely; others so many. What code a library compiles for images of other sizes is other code, but
 * after some of it it does nothing for the first time any more: so it is asked for some. Weights it
 * mostly wants packed in one way, whatever the size.
 */
#define LIKELY_BATCH 1
#define UNLIKELY_SIDE 32
#define UNLIKELY_STEPS 8

struct walk {
    const struct plan *plan;
    const struct tensor **constants; /* per slot; NULL: it holds none */
    size_t *scratch;                 /* plan->scratch */
    struct kernel_env env;
    uint64_t start, nanoseconds;
    uint32_t unlikely; /* steps so far */
};

/* What there is to be said of some shapes. */
struct shapes {
    size_t bytes; /* of all */
    bool guessed, unlikely;
};

/* A step's. */
struct operands {
    struct value values[MOST_OPERANDS];
    const struct value *inputs[MOST_OPERANDS];
    struct shapes shapes; /* of those that are no constants */
    bool only_packs;
};

static tssa_status *walk_open(struct walk *walk, struct pool *pool)
{
    const struct plan *plan = walk->plan;
    walk->constants =
        allocator_calloc(pool->allocator, plan->n_slots + 1u, sizeof *walk->constants);
    TRY_ALLOC(walk->constants);
    for (uint32_t i = 0; i < plan->n_constants; i++)
        walk->constants[plan->constants[i].slot] = plan->constants[i].tensor;
    walk->env = (struct kernel_env){.pool = pool, .team = plan->host->team};
    return NULL;
}

static bool guess_dims(struct shapes *shapes, const struct ir_type *type, struct tensor *tensor)
{
    size_t count, bytes;
    shapes->guessed = true;
    shapes->unlikely |= type->rank < 0;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    *tensor = (struct tensor){.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &tensor->dims[i])) {
            tensor->dims[i] = i == 0 ? LIKELY_BATCH : UNLIKELY_SIDE;
            shapes->unlikely |= i > 0;
        }
    tssa_status *status = tensor_layout(type->dtype, type->rank, tensor->dims, &count, &bytes);
    const bool exists = !status;
    tssa_status_free(status);
    return exists;
}

/* The shape alone; NONE where there is not even a guess. */
static struct value describe(struct shapes *shapes, const struct ir_value *value)
{
    struct value described = {.kind = TSSA_KIND_TENSOR};
    if (!library_op_dims(value, &described.tensor) &&
        !guess_dims(shapes, value->type, &described.tensor))
        return (struct value){.kind = TSSA_KIND_NONE};
    if (!size_add(shapes->bytes, tensor_bytes(&described.tensor), &shapes->bytes))
        shapes->bytes = SIZE_MAX;
    return described;
}

static struct value describe_input(const struct walk *walk, const struct step *step, uint32_t i,
                                   struct shapes *shapes)
{
    const struct tensor *constant = walk->constants[walk->plan->inputs[step->first_input + i]];
    struct value value = {.kind = TSSA_KIND_TENSOR};
    if (!constant)
        return describe(shapes, ir_operand(step->op, i));
    value.tensor = *constant;
    value.tensor.owner = NULL; /* the plan's */
    return value;
}

static void describe_inputs(const struct walk *walk, const struct step *step,
                            struct operands *operands)
{
    for (uint32_t i = 0; i < step->n_inputs; i++) {
        operands->inputs[i] = NULL;
        if (walk->plan->inputs[step->first_input + i] == SLOT_NONE)
            continue;
        operands->values[i] = describe_input(walk, step, i, &operands->shapes);
        operands->inputs[i] = &operands->values[i];
    }
}

static bool is_small(const struct step *step, const struct operands *operands)
{
    struct shapes shapes = operands->shapes;
    for (uint32_t i = 0; i < step->n_outputs; i++)
        describe(&shapes, &step->op->results[i]);
    return shapes.bytes <= MOST_BYTES;
}

static tssa_status *call_kernel(struct walk *walk, const struct step *step,
                                const struct operands *operands)
{
    struct step_scratch scratch = {.memory = NULL};
    struct kernel_args args = {.env = &walk->env,
                               .state = step->state,
                               .op = step->op,
                               .n_inputs = step->n_inputs,
                               .inputs = operands->inputs,
                               .guessed = operands->shapes.guessed,
                               .only_packs = operands->only_packs,
                               .scratch = &scratch};
    tssa_status *status = step->kernel->get_ready(&args);
    if (tssa_status_code(status) == TSSA_OUT_OF_MEMORY)
        return status;
    tssa_status_free(status); /* the run's to report */
    walk->scratch[step->index] = operands->shapes.unlikely ? 0 : scratch.most;
    return NULL;
}

static tssa_status *get_step_ready(struct walk *walk, const struct step *step)
{
    struct operands operands = {.shapes = {.bytes = 0}};
    if (step->n_inputs > MOST_OPERANDS)
        return NULL;
    describe_inputs(walk, step, &operands);
    if (!is_small(step, &operands))
        return NULL;
    operands.only_packs = operands.shapes.unlikely && walk->unlikely++ >= UNLIKELY_STEPS;
    return call_kernel(walk, step, &operands);
}

static bool is_over(const struct walk *walk)
{
    return clock_monotonic() - walk->start >= walk->nanoseconds;
}

static tssa_status *get_block_ready(struct walk *walk, const struct block_plan *block)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        const struct step *step = &block->steps[i];
        if (step->kernel && step->kernel->get_ready && !is_over(walk))
            TRY(get_step_ready(walk, step));
        for (uint32_t k = 0; k < step->n_blocks; k++)
            TRY(get_block_ready(walk, step->blocks[k]));
    }
    return NULL;
}

tssa_status *plan_get_ready(struct plan *plan, uint64_t nanoseconds)
{
    struct walk walk = {.plan = plan,
                        .scratch = plan->scratch,
                        .start = clock_monotonic(),
                        .nanoseconds = nanoseconds};
    struct pool pool;
    pool_init(&pool, plan->arena.allocator);
    tssa_status *status = walk_open(&walk, &pool);
    if (!status)
        status = get_block_ready(&walk, plan->body);
    allocator_free(pool.allocator, walk.constants);
    pool_clear(&pool);
    return status;
}
