/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/product.h"

#include <string.h>

#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/texts.h"
#include "device/library_cache.h"
#include "device/library_op.h"

#define PRODUCT_TYPES (DTYPE_BIT(TSSA_FLOAT) | DTYPE_BIT(TSSA_DOUBLE))

/* ---- A launch -------------------------------------------------------------------------------- */

struct product {
    struct matmul_problem problem;
    tssa_dtype dtype;
    int64_t c_row, c_column;
    bool turned; /* the operands are in each other's place */
};

/* What a block computes at a time, by the text's own defines. */
enum { LARGE_ROWS = 8, LARGE_COLUMNS = 64, SMALL_COLUMNS = 32 };
#define ENOUGH_TILES 32 /* for large ones: fewer leave most of a card idle */

static int64_t count_tiles(const struct matmul_problem *p, int64_t rows, int64_t columns)
{
    return p->batch * ((p->m + rows - 1) / rows) * ((p->n + columns - 1) / columns);
}

/* Of the transposed matrices. */
static void turn(struct product *product)
{
    struct matmul_problem *p = &product->problem;
    const struct matmul_problem old = *p;
    const int64_t row = product->c_row;
    p->m = old.n;
    p->n = old.m;
    p->a_batch = old.b_batch;
    p->a_row = old.b_column;
    p->a_column = old.b_row;
    p->b_batch = old.a_batch;
    p->b_row = old.a_column;
    p->b_column = old.a_row;
    product->c_row = product->c_column;
    product->c_column = row;
    product->turned = true;
}

static enum grids_text choose_tiles(const struct device_context *context, struct product *product,
                                    int64_t *tiles)
{
    const struct matmul_problem *p = &product->problem;
    const int64_t warps = context->device->launcher->height, rows = LARGE_ROWS * warps;
    *tiles = count_tiles(p, rows, LARGE_COLUMNS);
    if (p->m >= rows / 2 && p->n >= LARGE_COLUMNS / 2 && *tiles >= ENOUGH_TILES)
        return GRIDS_TEXT_PRODUCT;
    if (p->n < SMALL_COLUMNS && p->m > p->n)
        turn(product);
    *tiles = count_tiles(p, warps, SMALL_COLUMNS);
    return GRIDS_TEXT_PRODUCT_SMALL;
}

static tssa_status *multiply(struct device_stream *stream, const struct product *product,
                             const struct library_call *call)
{
    struct product turned = *product;
    const struct matmul_problem *p = &turned.problem;
    int64_t tiles;
    const enum grids_text text = choose_tiles(stream->context, &turned, &tiles);
    const struct launch_param params[] = {grids_memory(call->operands[turned.turned]),
                                          grids_memory(call->operands[!turned.turned]),
                                          grids_memory(call->result),
                                          grids_number(p->batch),
                                          grids_number(p->m),
                                          grids_number(p->n),
                                          grids_number(p->k),
                                          grids_number(p->a_batch),
                                          grids_number(p->a_row),
                                          grids_number(p->a_column),
                                          grids_number(p->b_batch),
                                          grids_number(p->b_row),
                                          grids_number(p->b_column),
                                          grids_number(turned.c_row),
                                          grids_number(turned.c_column)};
    return grids_launch_text(stream, text, product->dtype, 0, tiles, params,
                             sizeof params / sizeof *params);
}

static struct product product_of(const struct matmul_problem *problem, tssa_dtype dtype)
{
    return (struct product){
        .problem = *problem, .dtype = dtype, .c_row = problem->n, .c_column = 1};
}

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
    if (problem->kind == LIBRARY_MATMUL && dtype_in(PRODUCT_TYPES, (tssa_dtype)problem->dtype))
        made = allocator_alloc(context->allocator, sizeof *made);
    if (!made)
        return NULL;
    *made = (struct primitive){.base = {.table = &table, .name = "grids"},
                               .allocator = context->allocator,
                               .product = product_of(&problem->matmul, (tssa_dtype)problem->dtype)};
    return &made->base;
}

const struct device_library grids_library = {.types = PRODUCT_TYPES, .make = make};

/* ---- The kernel ------------------------------------------------------------------------------ */

struct state {
    struct library_op op;
    struct library_cache library;
    bool asks; /* the library */
    float alpha, beta;
};

/* What a call computes. */
struct job {
    const struct tensor *a, *b, *c; /* c NULL: none */
    struct tensor *y;
    struct buffer *buffers[LIBRARY_OPERANDS];
    struct device_place places[LIBRARY_OPERANDS];
};

/* Not where another library may compute all of it. */
static tssa_status *want_texts(const struct ir_op *op, struct device_context *context)
{
    const tssa_dtype dtype = op->results[0].type->dtype;
    if (context->device->library && context->device->library != &grids_library)
        return NULL;
    TRY(grids_text_want(context, GRIDS_TEXT_PRODUCT, dtype));
    TRY(grids_text_want(context, GRIDS_TEXT_PRODUCT_SMALL, dtype));
    return ir_op_is(op, IR_OP_Gemm) ? grids_text_want(context, GRIDS_TEXT_SCALE, dtype) : NULL;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct state *made = ARENA_NEW(setup->arena, struct state);
    TRY_ALLOC(made);
    TRY(library_op_decode(op, &made->op));
    made->asks = library_asks(setup->context->device, op);
    made->alpha = ir_attr_float(op, "alpha", 1);
    made->beta = ir_attr_float(op, "beta", 1);
    TRY(want_texts(op, setup->context));
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
    const int64_t m = mm.a_dims[mm.a_rank - 2], k = mm.a_dims[mm.a_rank - 1],
                  n = mm.b_dims[mm.b_rank - 1];
    const struct matmul_problem problem = {
        .batch = 1, .m = m, .n = n, .k = k, .a_row = k, .a_column = 1, .b_row = n, .b_column = 1};
    const struct product product = product_of(&problem, job->y->dtype);
    for (int64_t i = 0; i < mm.batches; i++) {
        struct library_call call = {.operands = {job->places[0], job->places[1]},
                                    .result = grids_place(job->y)};
        int64_t left = i;
        for (int axis = mm.batch_rank - 1; axis >= 0; axis--) {
            const int64_t at = left % mm.batch[axis];
            left /= mm.batch[axis];
            call.operands[0].offset += (size_t)(at * mm.a_step[axis] * size);
            call.operands[1].offset += (size_t)(at * mm.b_step[axis] * size);
        }
        call.result.offset += (size_t)(i * m * n * size);
        TRY(multiply(args->env->stream, &product, &call));
    }
    return NULL;
}

static tssa_status *multiply_all(struct kernel_args *args, const struct job *job)
{
    struct state *state = (void *)args->state; /* what changes is behind the library's lock */
    struct library_problem problem;
    struct library_call call = {.operands = {job->places[0], job->places[1]},
                                .result = grids_place(job->y)};
    bool one, done = false;
    memset(&problem, 0, sizeof problem);
    TRY(library_op_problem(&state->op, args, &problem, &one));
    if (!one)
        return multiply_each(args, job);
    if (state->asks)
        TRY(library_compute(args, &state->library, &problem, NULL, &call, &done));
    const struct product product = product_of(&problem.matmul, job->y->dtype);
    return done ? NULL : multiply(args->env->stream, &product, &call);
}

static int64_t bits_of(tssa_dtype dtype, float factor)
{
    int64_t bits = 0;
    dtype_store_double(dtype, &bits, (double)factor);
    return bits;
}

static tssa_status *scale_and_add(struct kernel_args *args, const struct job *job)
{
    const struct state *state = args->state;
    const int64_t count = (int64_t)tensor_count(job->y);
    int64_t row = 0, column = 0;
    if (state->alpha == 1 && state->beta == 1 && !job->c)
        return NULL;
    if (job->c)
        TRY(gemm_bias_steps(job->c, job->y->dims[0], job->y->dims[1], &row, &column));
    const struct device_place y = grids_place(job->y);
    const struct launch_param params[] = {grids_memory(y),
                                          grids_memory(job->c ? job->places[2] : y),
                                          grids_number(count),
                                          grids_number(job->y->dims[1]),
                                          grids_number(row),
                                          grids_number(column),
                                          grids_number(job->c != NULL),
                                          grids_number(bits_of(job->y->dtype, state->alpha)),
                                          grids_number(bits_of(job->y->dtype, state->beta))};
    return grids_launch_each(args->env->stream, GRIDS_TEXT_SCALE, job->y->dtype, 0, count, params,
                             sizeof params / sizeof *params);
}

static tssa_status *compute(struct kernel_args *args, struct job *job)
{
    for (uint32_t i = 0; i < args->n_inputs && i < LIBRARY_OPERANDS; i++)
        if (args->inputs[i])
            TRY(grids_operand(args, i, &job->buffers[i], &job->places[i]));
    TRY(multiply_all(args, job));
    return scale_and_add(args, job);
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
                   dtype_in(PRODUCT_TYPES, op->results[0].type->dtype)
               ? &kernel
               : NULL;
}
