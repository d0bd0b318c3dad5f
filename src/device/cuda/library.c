/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/library.h"

#include <limits.h>
#include <stdio.h>

#include "device/cuda/card.h"
#include "device/cuda/convolution.h"
#include "device/cuda/cublaslt.h"

/*
 * Of fewer multiplications, or of fewer rows or columns, a text takes no longer, or not by enough.
 * On an H200, in a graph, the library takes 2.8 us for [64, 64] by [64, 64] and 12 us for 512 by
 * 512 by 512; a row by [256, 1024], 2.7 us, is what texts that share terms are for.
 */
enum { FEWEST_ROWS = 16, FEWEST_MULTIPLICATIONS = 1 << 22 };

/* What it may use beside them, at most. */
#define MOST_WORKSPACE ((uint64_t)32 << 20)

/* ---- The library ----------------------------------------------------------------------------- */

struct opened {
    struct cublaslt api;
    void *handle;
};

/* In the place of one: it was looked for, and there is none. */
static struct opened not_there;

static tssa_status *create_handle(struct device_context *context, struct opened *opened)
{
    const struct cuda_card *card;
    TRY(cublaslt_open(&opened->api));
    TRY(cuda_enter(context, &card));
    return CUBLASLT(&opened->api, cublasLtCreate, &opened->handle);
}

static void *open_library(struct device_context *context)
{
    struct opened *opened = allocator_calloc(context->allocator, 1, sizeof *opened);
    tssa_status *status = opened ? create_handle(context, opened) : status_out_of_memory();
    if (!status)
        return opened;
    tssa_status_free(status);
    allocator_free(context->allocator, opened);
    return &not_there;
}

/* NULL: there is none. */
static const struct opened *library_of(struct device_context *context)
{
    const struct opened *opened = device_context_once(context, &context->library, open_library);
    return opened == &not_there ? NULL : opened;
}

void cuda_library_close(struct device_context *context)
{
    struct opened *opened = atomic_load_explicit(&context->library, memory_order_acquire);
    if (!opened || opened == &not_there)
        return;
    cuda_enter_anyway(context);
    tssa_status_free(CUBLASLT(&opened->api, cublasLtDestroy, opened->handle));
    allocator_free(context->allocator, opened);
    atomic_store(&context->library, NULL);
}

/* ---- Products -------------------------------------------------------------------------------- */

/* CUBLASLT_*: what is computed in, what factors are, operands, and the result. */
struct types {
    unsigned computed_in, factors, operands, result;
};

/*
 * Matrices are column-major there, so that a row-major one is its own transposed matrix: computed
 * is c' = b' a', with b in the place of its A.
 */
struct primitive {
    struct library_primitive base;
    const tssa_allocator *allocator;
    const struct opened *library;
    struct types types;
    void *description, *a, *b, *c;
    struct cublaslt_algorithm algorithm;
};

static bool lies_well(struct device_place place)
{
    return ((uintptr_t)place.memory + place.offset) % CUDA_OPERAND_ALIGNMENT == 0;
}

static void *address_of(struct device_place place)
{
    return (void *)((uintptr_t)place.memory + place.offset);
}

static tssa_status *multiply(const struct primitive *p, struct device_stream *stream,
                             const struct library_call *call)
{
    static const double doubles[] = {0, 1};
    static const float floats[] = {0, 1};
    const bool wide = p->types.factors == CUBLASLT_64F;
    const void *zero = wide ? (const void *)&doubles[0] : &floats[0],
               *one = wide ? (const void *)&doubles[1] : &floats[1];
    const struct cuda_card *card;
    cuda_stream own;
    void *result = address_of(call->result);
    TRY(cuda_enter_stream(stream, &card, &own));
    return CUBLASLT(&p->library->api, cublasLtMatmul, p->library->handle, p->description, one,
                    address_of(call->operands[1]), p->a, address_of(call->operands[0]), p->b, zero,
                    result, p->c, result, p->c, &p->algorithm, address_of(call->scratch),
                    p->base.scratch_bytes, own);
}

static bool run(const struct library_primitive *primitive, struct device_stream *stream,
                const struct library_call *call)
{
    const struct primitive *p = (const struct primitive *)primitive;
    if (!lies_well(call->operands[0]) || !lies_well(call->operands[1]) || !lies_well(call->result))
        return false;
    tssa_status *status = multiply(p, stream, call);
    const bool good = !status;
    tssa_status_free(status);
    stream->counts.library_calls += good;
    return good;
}

static void release(struct library_primitive *primitive)
{
    struct primitive *p = (struct primitive *)primitive;
    const struct cublaslt *api = &p->library->api;
    void *const layouts[] = {p->a, p->b, p->c};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            tssa_status_free(CUBLASLT(api, cublasLtMatrixLayoutDestroy, layouts[i]));
    if (p->description)
        tssa_status_free(CUBLASLT(api, cublasLtMatmulDescDestroy, p->description));
    allocator_free(p->allocator, p);
}

/* ---- Making one ------------------------------------------------------------------------------ */

/* A matrix of so many rows and columns, column-major, and whether it is what is there. */
struct form {
    int64_t rows, columns, leading, batch_step;
    int32_t transposed;
};

/* Of the transposed matrix, by its steps: columns of it lie side by side, or rows. */
static bool find_form(int64_t rows, int64_t columns, int64_t row_step, int64_t column_step,
                      int64_t batch_step, struct form *form)
{
    *form = (struct form){rows, columns, column_step, batch_step, CUBLASLT_AS_IT_IS};
    if (row_step == 1 && column_step >= rows)
        return true;
    *form = (struct form){columns, rows, row_step, batch_step, CUBLASLT_TRANSPOSED};
    return column_step == 1 && row_step >= columns;
}

static tssa_status *make_layout(const struct primitive *p, unsigned type, const struct form *form,
                                int64_t batch, void **layout)
{
    const struct cublaslt *api = &p->library->api;
    const int32_t count = (int32_t)batch;
    TRY(CUBLASLT(api, cublasLtMatrixLayoutCreate, layout, type, (uint64_t)form->rows,
                 (uint64_t)form->columns, form->leading));
    if (batch == 1)
        return NULL;
    TRY(CUBLASLT(api, cublasLtMatrixLayoutSetAttribute, *layout, CUBLASLT_BATCH_COUNT, &count,
                 sizeof count));
    return CUBLASLT(api, cublasLtMatrixLayoutSetAttribute, *layout, CUBLASLT_BATCH_STEP,
                    &form->batch_step, sizeof form->batch_step);
}

static struct types types_of(const struct device_context *context,
                             const struct library_problem *problem)
{
    const bool wide = problem->matmul.wide != 0;
    switch (problem->dtype) {
    case TSSA_DOUBLE:
        return (struct types){CUBLASLT_COMPUTE_64F, CUBLASLT_64F, CUBLASLT_64F, CUBLASLT_64F};
    case TSSA_FLOAT16:
        return (struct types){CUBLASLT_COMPUTE_32F, CUBLASLT_32F, CUBLASLT_16F,
                              wide ? CUBLASLT_32F : CUBLASLT_16F};
    case TSSA_BFLOAT16:
        return (struct types){CUBLASLT_COMPUTE_32F, CUBLASLT_32F, CUBLASLT_16BF,
                              wide ? CUBLASLT_32F : CUBLASLT_16BF};
    default:
        return (struct types){context->allow_tf32 ? CUBLASLT_COMPUTE_TF32 : CUBLASLT_COMPUTE_32F,
                              CUBLASLT_32F, CUBLASLT_32F, CUBLASLT_32F};
    }
}

static tssa_status *describe(struct primitive *p, const struct form *a, const struct form *b,
                             const struct form *c, int64_t batch)
{
    const struct cublaslt *api = &p->library->api;
    TRY(CUBLASLT(api, cublasLtMatmulDescCreate, &p->description, p->types.computed_in,
                 p->types.factors));
    TRY(CUBLASLT(api, cublasLtMatmulDescSetAttribute, p->description, CUBLASLT_FORM_OF_A,
                 &a->transposed, sizeof a->transposed));
    TRY(CUBLASLT(api, cublasLtMatmulDescSetAttribute, p->description, CUBLASLT_FORM_OF_B,
                 &b->transposed, sizeof b->transposed));
    TRY(make_layout(p, p->types.operands, a, batch, &p->a));
    TRY(make_layout(p, p->types.operands, b, batch, &p->b));
    return make_layout(p, p->types.result, c, batch, &p->c);
}

static tssa_status *prefer(const struct cublaslt *api, void *preference)
{
    const uint64_t workspace = MOST_WORKSPACE;
    const uint32_t alignment = CUDA_OPERAND_ALIGNMENT;
    TRY(CUBLASLT(api, cublasLtMatmulPreferenceSetAttribute, preference, CUBLASLT_MOST_WORKSPACE,
                 &workspace, sizeof workspace));
    for (unsigned i = 0; i < 4; i++)
        TRY(CUBLASLT(api, cublasLtMatmulPreferenceSetAttribute, preference,
                     CUBLASLT_ALIGNMENT_OF_A + i, &alignment, sizeof alignment));
    return NULL;
}

/* Its first proposal: it is asked once for each problem. */
static tssa_status *choose(struct primitive *p)
{
    const struct cublaslt *api = &p->library->api;
    struct cublaslt_proposal proposal = {.result = 0};
    void *preference;
    int found = 0;
    TRY(CUBLASLT(api, cublasLtMatmulPreferenceCreate, &preference));
    tssa_status *status = prefer(api, preference);
    if (!status)
        status = CUBLASLT(api, cublasLtMatmulAlgoGetHeuristic, p->library->handle, p->description,
                          p->a, p->b, p->c, p->c, preference, 1, &proposal, &found);
    tssa_status_free(CUBLASLT(api, cublasLtMatmulPreferenceDestroy, preference));
    if (!status && (found < 1 || proposal.result != 0))
        status = ERROR(TSSA_UNSUPPORTED, "cuBLASLt proposes nothing");
    p->algorithm = proposal.algorithm;
    p->base.scratch_bytes = proposal.workspace;
    return status;
}

static tssa_status *make_all(struct device_context *context, struct primitive *p,
                             const struct matmul_problem *problem)
{
    const struct cuda_card *card;
    struct form a, b;
    const struct form c = {problem->n, problem->m, problem->n, problem->m * problem->n,
                           CUBLASLT_AS_IT_IS};
    if (!find_form(problem->n, problem->k, problem->b_column, problem->b_row, problem->b_batch,
                   &a) ||
        !find_form(problem->k, problem->m, problem->a_column, problem->a_row, problem->a_batch, &b))
        return ERROR(TSSA_UNSUPPORTED, "neither rows nor columns lie side by side");
    TRY(cuda_enter(context, &card));
    TRY(describe(p, &a, &b, &c, problem->batch));
    return choose(p);
}

static bool is_worth_it(const struct library_problem *problem)
{
    const struct matmul_problem *p = &problem->matmul;
    if (problem->kind == LIBRARY_CONV)
        return cuda_convolution_is_worth_it(&problem->conv);
    return p->m >= FEWEST_ROWS && p->n >= FEWEST_ROWS && p->k > 0 && p->batch > 0 &&
           p->batch <= INT_MAX &&
           (double)p->batch * (double)p->m * (double)p->n * (double)p->k >= FEWEST_MULTIPLICATIONS;
}

static struct library_primitive *make_product(struct device_context *context,
                                              const struct library_problem *problem)
{
    static const struct primitive_table table = {.run = run, .release = release};
    const struct opened *library = library_of(context);
    struct primitive *made = library ? allocator_calloc(context->allocator, 1, sizeof *made) : NULL;
    if (!made)
        return NULL;
    made->base = (struct library_primitive){.table = &table, .name = "cuBLASLt"};
    made->allocator = context->allocator;
    made->library = library;
    made->types = types_of(context, problem);
    tssa_status *status = make_all(context, made, &problem->matmul);
    if (!status)
        return &made->base;
    tssa_status_free(status);
    release(&made->base);
    return NULL;
}

#define TYPES                                                                                      \
    (DTYPE_BIT(TSSA_FLOAT) | DTYPE_BIT(TSSA_DOUBLE) | DTYPE_BIT(TSSA_FLOAT16) |                    \
     DTYPE_BIT(TSSA_BFLOAT16))

static struct library_primitive *make(struct device_context *context,
                                      const struct library_problem *problem)
{
    if (!dtype_in(TYPES, (tssa_dtype)problem->dtype))
        return NULL;
    return problem->kind == LIBRARY_CONV ? cuda_convolution_make(context, problem)
                                         : make_product(context, problem);
}

static bool is_there(enum library_kind kind, char *why, size_t size)
{
    if (kind == LIBRARY_CONV)
        return cuda_convolution_is_there(why, size);
    struct cublaslt api;
    tssa_status *status = cublaslt_open(&api);
    const bool there = !status;
    snprintf(why, size, "%s", there ? "" : tssa_status_message(status));
    tssa_status_free(status);
    return there;
}

const struct device_library cuda_library = {
    .missed = {[LIBRARY_MATMUL] = "large matrix products run on built-in kernels, which are slower",
               [LIBRARY_CONV] = "large convolutions run on built-in kernels, which are slower"},
    .is_there = is_there,
    .types = TYPES,
    .is_worth_it = is_worth_it,
    .make = make,
};
