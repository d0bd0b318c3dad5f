/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/product.h"

#include <string.h>

#include "device/grids/multiply.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/library_cache.h"
#include "device/library_op.h"

/* ---- The library ----------------------------------------------------------------------------- */

struct primitive {
    struct library_primitive base;
    const tssa_allocator *allocator;
    struct product product;
};

static bool run_primitive(const struct library_primitive *primitive, struct device_stream *stream,
                          const struct library_call *call)
{
    tssa_status *status = multiply(stream, &((const struct primitive *)primitive)->product, call);
    const bool good = !status;
    tssa_status_free(status);
    return good;
}

static void release_primitive(struct library_primitive *primitive)
{
    allocator_free(((struct primitive *)primitive)->allocator, primitive);
}

static struct library_primitive *make(struct device_context *context,
                                      const struct library_problem *problem)
{
    static const struct primitive_table table = {.run = run_primitive,
                                                 .release = release_primitive};
    struct primitive *made = NULL;
    if (problem->kind == LIBRARY_MATMUL && dtype_in(MULTIPLY_TYPES, (tssa_dtype)problem->dtype))
        made = allocator_alloc(context->allocator, sizeof *made);
    if (!made)
        return NULL;
    *made = (struct primitive){.base = {.table = &table, .name = "grids"},
                               .allocator = context->allocator,
                               .product = {.problem = problem->matmul,
                                           .dtype = (tssa_dtype)problem->dtype,
                                           .finish = FINISH_NOTHING}};
    return &made->base;
}

const struct device_library grids_library = {.types = MULTIPLY_TYPES, .make = make};

/* ---- The kernel ------------------------------------------------------------------------------ */

struct state {
    struct library_op op;
    struct library_cache library;
    bool asks;            /* a library that is no text */
    struct finish finish; /* but for c, which a call has */
};

/* What a call computes. */
struct job {
    const struct tensor *a, *b, *c; /* c NULL: none */
    struct tensor *y;
    struct buffer *buffers[LIBRARY_OPERANDS];
    struct device_place places[LIBRARY_OPERANDS];
};

static bool is_worth_it(const struct device_library *library, const struct library_problem *problem)
{
    return !library->is_worth_it || library->is_worth_it(problem);
}

/* What computes what another library declines, or is not asked for; not before that has. */
static tssa_status *want_texts(const struct ir_op *op, const struct state *state,
                               struct device_context *context)
{
    static const enum grids_text all[] = {GRIDS_TEXT_PRODUCT_ROW, GRIDS_TEXT_PRODUCT_ROWS,
                                          GRIDS_TEXT_PRODUCT_SMALL, GRIDS_TEXT_PRODUCT};
    const tssa_dtype dtype = op->results[0].type->dtype;
    struct library_problem problem;
    const bool known = library_op_known(op, &problem);
    if (state->asks && ir_op_is(op, IR_OP_Gemm))
        TRY(grids_text_want(context, GRIDS_TEXT_SCALE, dtype));
    if (known && state->asks && is_worth_it(context->device->library, &problem))
        return NULL;
    if (known)
        return grids_text_want(context, multiply_text(context, &problem.matmul), dtype);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        TRY(grids_text_want(context, all[i], dtype));
    return NULL;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    const struct device *device = setup->context->device;
    struct state *made = ARENA_NEW(setup->arena, struct state);
    TRY_ALLOC(made);
    TRY(library_op_decode(op, &made->op));
    made->asks = device->library != &grids_library && library_asks(device, op);
    made->finish = FINISH_NOTHING;
    if (made->op.form == LIBRARY_OP_GEMM) {
        made->finish.alpha = ir_attr_float(op, "alpha", 1);
        made->finish.beta = ir_attr_float(op, "beta", 1);
    }
    TRY(want_texts(op, made, setup->context));
    library_cache_open(&made->library, setup, false);
    *state = made;
    return NULL;
}

static void release(const void *state)
{
    library_cache_close(&((struct state *)state)->library);
}

/* Matrices that lie in no one step: each of them a launch. */
static tssa_status *multiply_each(struct kernel_args *args, const struct job *job)
{
    const int64_t size = (int64_t)tssa_dtype_size(job->y->dtype);
    struct matmul mm;
    TRY(matmul_resolve(job->a, job->b, &mm));
    const struct product product = {
        .problem = matmul_of_batch(&mm),
        .dtype = job->y->dtype,
        .finish = FINISH_NOTHING,
    };
    for (int64_t i = 0; i < mm.batches; i++) {
        struct library_call call = {.operands = {job->places[0], job->places[1]},
                                    .result = grids_place(job->y)};
        int64_t a, b;
        matmul_batch(&mm, i, &a, &b);
        call.operands[0].offset += (size_t)(a * size);
        call.operands[1].offset += (size_t)(b * size);
        call.result.offset += (size_t)(i * product.problem.m * product.problem.n * size);
        TRY(multiply(args->env->stream, &product, &call));
    }
    return NULL;
}

/* What becomes of sums, by the call's c. */
static tssa_status *find_finish(const struct state *state, const struct job *job,
                                struct finish *finish)
{
    *finish = state->finish;
    finish->with_c = job->c != NULL;
    return job->c ? gemm_bias_steps(job->c, job->y->dims[0], job->y->dims[1], &finish->c_row,
                                    &finish->c_column)
                  : NULL;
}

/*
 * By the library. Sums that something is done with are not rounded before: those of FLOAT16 and
 * BFLOAT16 are FLOAT, in memory of their own.
 */
static tssa_status *ask(struct kernel_args *args, struct library_problem *problem,
                        const struct product *product, struct library_call *call, bool *done)
{
    struct state *state = (void *)args->state; /* what changes is behind the library's lock */
    const struct device_place result = call->result;
    const tssa_dtype computed_in = grids_computed_in(product->dtype);
    struct buffer *sums = NULL;
    problem->matmul.wide = computed_in != product->dtype && multiply_finishes(product);
    if (problem->matmul.wide) {
        const struct matmul_problem *p = &problem->matmul;
        TRY(kernel_scratch(args, (size_t)(p->batch * p->m * p->n) * tssa_dtype_size(computed_in),
                           &sums));
        call->result = grids_buffer(sums);
    }
    tssa_status *status = library_compute(args, &state->library, problem, NULL, call, done);
    if (!status && *done)
        status = multiply_finish(args->env->stream, product, call, result);
    call->result = result;
    buffer_release(sums);
    return status;
}

static tssa_status *multiply_all(struct kernel_args *args, const struct job *job)
{
    const struct state *state = args->state;
    struct device_stream *stream = args->env->stream;
    struct library_problem problem;
    struct library_call call = {.operands = {job->places[0], job->places[1], job->places[2]},
                                .result = grids_place(job->y)};
    struct product product = {.dtype = job->y->dtype};
    bool one, done = false;
    memset(&problem, 0, sizeof problem);
    TRY(library_op_problem(&state->op, args, &problem, &one));
    if (!one)
        return multiply_each(args, job);
    product.problem = problem.matmul;
    TRY(find_finish(state, job, &product.finish));
    if (state->asks && is_worth_it(stream->context->device->library, &problem))
        TRY(ask(args, &problem, &product, &call, &done));
    return done ? NULL : multiply(stream, &product, &call);
}

static tssa_status *compute(struct kernel_args *args, struct job *job)
{
    for (uint32_t i = 0; i < args->n_inputs && i < LIBRARY_OPERANDS; i++)
        if (args->inputs[i])
            TRY(grids_operand(args, i, &job->buffers[i], &job->places[i]));
    return multiply_all(args, job);
}

/* The result, of operands that are checked. */
static tssa_status *make_result(struct kernel_args *args, struct job *job)
{
    const struct state *state = args->state;
    int64_t dims[TSSA_MAX_RANK];
    int rank = 2;
    TRY(kernel_tensor(args, 0, &job->a));
    TRY(kernel_tensor(args, 1, &job->b));
    TRY(kernel_optional_tensor(args, 2, &job->c));
    if (job->a->dtype != job->b->dtype || (job->c && job->c->dtype != job->a->dtype))
        return ERROR(TSSA_RUNTIME, "the operands must be matrices of one type");
    if (state->op.form == LIBRARY_OP_GEMM) {
        struct matmul_problem problem;
        int64_t row, column;
        TRY(gemm_problem(job->a, job->b, state->op.gemm, &problem));
        dims[0] = problem.m;
        dims[1] = problem.n;
        if (job->c)
            TRY(gemm_bias_steps(job->c, problem.m, problem.n, &row, &column));
    } else {
        TRY(matmul_shape(job->a, job->b, &rank, dims));
    }
    return kernel_output(args, 0, job->a->dtype, rank, dims, &job->y);
}

static tssa_status *run(struct kernel_args *args)
{
    struct job job = {0};
    TRY(make_result(args, &job));
    if (!job.y || tensor_count(job.y) == 0)
        return NULL;
    tssa_status *status = compute(args, &job);
    for (int i = 0; i < LIBRARY_OPERANDS; i++)
        buffer_release(job.buffers[i]);
    return status;
}

const struct kernel *grids_product_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run, .release = release};
    return (ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm)) &&
                   dtype_in(MULTIPLY_TYPES, op->results[0].type->dtype)
               ? &kernel
               : NULL;
}
