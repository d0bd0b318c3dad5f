/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcublasLt.so.13 for tests. A product by an algorithm that was proposed is computed by a
 * kernel that the stream runs, whose operands must be memory of the card then. Others, which
 * cuda_probe times, do what it can see of the order of things: they fill their result with ones.
 */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cublaslt.h"
#include "ir/scalar/convert.h"
#include "tests/cuda/fake.h"

enum { ONE = 0x3f800000 };

/* ---- cuBLASLt -------------------------------------------------------------------------------- */

enum { MOST_LAYOUTS = 3 };

struct layout {
    unsigned type;
    int64_t rows, columns, leading, batch, batch_step; /* column-major */
};

struct description {
    unsigned type, computed_in;
    int32_t transposed[2];
};

/* All of them are counted. */
static void *make_described(size_t size)
{
    fake_count(1);
    return fake_hold(size);
}

EXPORT const char *cublasLtGetStatusName(unsigned result);
const char *cublasLtGetStatusName(unsigned result)
{
    return result ? "CUBLAS_STATUS_FAKE" : "CUBLAS_STATUS_SUCCESS";
}

FAKE(cublasLtCreate, void **handle)
{
    IN_CONTEXT();
    *handle = make_described(1);
    return FAKE_OK;
}

/* It is gone, whatever the call returns. */
static unsigned destroy(const void *what, unsigned planned)
{
    EXPECT(what);
    fake_count(-1);
    return planned;
}

FAKE(cublasLtDestroy, void *handle)
{
    ENTER();
    return destroy(handle, planned_);
}

FAKE(cublasLtMatmulDescCreate, struct description **description, unsigned compute, unsigned scale)
{
    PLANNED();
    EXPECT((compute == CUBLASLT_COMPUTE_32F && scale == CUBLASLT_32F) ||
           (compute == CUBLASLT_COMPUTE_TF32 && scale == CUBLASLT_32F) ||
           (compute == CUBLASLT_COMPUTE_64F && scale == CUBLASLT_64F));
    *description = make_described(sizeof **description);
    (*description)->type = scale;
    (*description)->computed_in = compute;
    return FAKE_OK;
}

FAKE(cublasLtMatmulDescSetAttribute, struct description *description, unsigned name,
     const void *value, size_t size)
{
    PLANNED();
    EXPECT((name == CUBLASLT_FORM_OF_A || name == CUBLASLT_FORM_OF_B) && size == sizeof(int32_t));
    memcpy(&description->transposed[name - CUBLASLT_FORM_OF_A], value, size);
    return FAKE_OK;
}

FAKE(cublasLtMatmulDescDestroy, struct description *description)
{
    ENTER();
    return destroy(description, planned_);
}

FAKE(cublasLtMatrixLayoutCreate, struct layout **layout, unsigned type, uint64_t rows,
     uint64_t columns, int64_t leading)
{
    PLANNED();
    EXPECT(rows && columns && leading >= (int64_t)rows);
    *layout = make_described(sizeof **layout);
    **layout = (struct layout){type, (int64_t)rows, (int64_t)columns, leading, 1, 0};
    return FAKE_OK;
}

FAKE(cublasLtMatrixLayoutSetAttribute, struct layout *layout, unsigned name, const void *value,
     size_t size)
{
    int32_t count;
    PLANNED();
    EXPECT(size == (name == CUBLASLT_BATCH_COUNT ? sizeof count : sizeof layout->batch_step));
    if (name == CUBLASLT_BATCH_COUNT) {
        memcpy(&count, value, size);
        layout->batch = count;
        return FAKE_OK;
    }
    EXPECT(name == CUBLASLT_BATCH_STEP);
    memcpy(&layout->batch_step, value, size);
    return FAKE_OK;
}

FAKE(cublasLtMatrixLayoutDestroy, struct layout *layout)
{
    ENTER();
    return destroy(layout, planned_);
}

FAKE(cublasLtMatmulPreferenceCreate, void **preference)
{
    PLANNED();
    *preference = make_described(1);
    return FAKE_OK;
}

FAKE(cublasLtMatmulPreferenceSetAttribute, void *preference, unsigned name, const void *value,
     size_t size)
{
    PLANNED();
    EXPECT(preference && value);
    EXPECT(size == (name == CUBLASLT_MOST_WORKSPACE ? sizeof(uint64_t) : sizeof(uint32_t)));
    return FAKE_OK;
}

FAKE(cublasLtMatmulPreferenceDestroy, void *preference)
{
    ENTER();
    return destroy(preference, planned_);
}

/* Operands are of one type, and so is the result, but for sums of two-byte floats that are not
 * rounded. */
static bool types_fit(const struct description *d, const struct layout *a, const struct layout *b,
                      const struct layout *c)
{
    const bool is_half = a->type == CUBLASLT_16F || a->type == CUBLASLT_16BF;
    if (a->type != b->type || (is_half && d->computed_in != CUBLASLT_COMPUTE_32F))
        return false;
    return is_half ? d->type == CUBLASLT_32F && (c->type == a->type || c->type == d->type)
                   : a->type == d->type && c->type == d->type;
}

/* Of the first operand, as it is computed with, and of the others, that they fit. */
static bool fit(const struct description *d, const struct layout *a, const struct layout *b,
                const struct layout *c)
{
    const int64_t m = d->transposed[0] ? a->columns : a->rows,
                  k = d->transposed[0] ? a->rows : a->columns,
                  n = d->transposed[1] ? b->rows : b->columns;
    return types_fit(d, a, b, c) && c->rows == m && c->columns == n &&
           (d->transposed[1] ? b->columns : b->rows) == k && a->batch == c->batch &&
           b->batch == c->batch;
}

enum { FAKE_WORKSPACE = 1000 };

FAKE(cublasLtMatmulAlgoGetHeuristic, void *handle, const struct description *description,
     const struct layout *a, const struct layout *b, const struct layout *c, const struct layout *d,
     void *preference, int wanted, struct cublaslt_proposal *proposals, int *found)
{
    PLANNED();
    EXPECT(handle && preference && wanted == 1 && c == d && fit(description, a, b, c));
    *proposals = (struct cublaslt_proposal){.algorithm = {{1}}, .workspace = FAKE_WORKSPACE};
    *found = 1;
    return FAKE_OK;
}

/* What a product is, when it is computed. */
struct given {
    int64_t a, b, c, workspace;
    struct description description;
    struct layout layouts[MOST_LAYOUTS];
};

static int64_t size_of(unsigned type)
{
    switch (type) {
    case CUBLASLT_64F:
        return 8;
    case CUBLASLT_32F:
        return 4;
    default:
        return 2;
    }
}

/* All elements of a matrix; NULL: they are not all in memory of the card. */
static void *matrix(int64_t address, const struct layout *layout)
{
    const int64_t last = (layout->batch - 1) * layout->batch_step +
                         (layout->columns - 1) * layout->leading + layout->rows;
    return fake_bytes((cuda_address)address, (size_t)(last * size_of(layout->type)));
}

static double load(const void *from, const struct layout *layout, unsigned computed_in, int64_t i,
                   int64_t row, int64_t column)
{
    const int64_t at = i * layout->batch_step + column * layout->leading + row;
    switch (layout->type) {
    case CUBLASLT_64F:
        return ((const double *)from)[at];
    case CUBLASLT_16F:
        return (double)f32_of_f16(((const uint16_t *)from)[at]);
    case CUBLASLT_16BF:
        return (double)f32_of_bf16(((const uint16_t *)from)[at]);
    default:
        break;
    }
    const float value = ((const float *)from)[at];
    return (double)(computed_in == CUBLASLT_COMPUTE_TF32 ? fake_tf32(value) : value);
}

static void store(void *to, const struct layout *layout, int64_t i, int64_t row, int64_t column,
                  double value)
{
    const int64_t at = i * layout->batch_step + column * layout->leading + row;
    if (layout->type == CUBLASLT_64F)
        ((double *)to)[at] = value;
    else if (layout->type == CUBLASLT_32F)
        ((float *)to)[at] = (float)value;
    else
        ((uint16_t *)to)[at] =
            layout->type == CUBLASLT_16F ? f16_of_f32((float)value) : bf16_of_f32((float)value);
}

static void run_product(const int64_t *arguments)
{
    struct given g;
    memcpy(&g, arguments, sizeof g);
    const struct layout *a = &g.layouts[0], *b = &g.layouts[1], *c = &g.layouts[2];
    const void *of_a = matrix(g.a, a), *of_b = matrix(g.b, b);
    void *of_c = matrix(g.c, c), *workspace = fake_bytes((cuda_address)g.workspace, FAKE_WORKSPACE);
    const bool turn_a = g.description.transposed[0], turn_b = g.description.transposed[1];
    const int64_t terms = turn_a ? a->rows : a->columns;
    const unsigned in = g.description.computed_in;
    if (!of_a || !of_b || !of_c || !workspace) {
        fake_break(FAKE_ILLEGAL_ADDRESS);
        return;
    }
    memset(workspace, 0x5a, FAKE_WORKSPACE);
    for (int64_t i = 0; i < c->batch; i++)
        for (int64_t y = 0; y < c->rows; y++)
            for (int64_t x = 0; x < c->columns; x++) {
                double sum = 0;
                for (int64_t k = 0; k < terms; k++)
                    sum += load(of_a, a, in, i, turn_a ? k : y, turn_a ? y : k) *
                           load(of_b, b, in, i, turn_b ? x : k, turn_b ? k : x);
                store(of_c, c, i, y, x, sum);
            }
}

/* Where the factors are 1 and 0. */
static bool is_plain(unsigned type, const void *alpha, const void *beta)
{
    return type == CUBLASLT_64F ? *(const double *)alpha == 1 && *(const double *)beta == 0
                                : *(const float *)alpha == 1 && *(const float *)beta == 0;
}

FAKE(cublasLtMatmul, void *handle, const struct description *description, const void *alpha,
     const void *a, const struct layout *a_layout, const void *b, const struct layout *b_layout,
     const void *beta, const void *c, const struct layout *c_layout, void *d,
     const struct layout *d_layout, const struct cublaslt_algorithm *algorithm, void *workspace,
     size_t size, cuda_stream stream)
{
    static struct CUfunc_st kernel = {.name = "product", .run = run_product};
    IN_CONTEXT();
    EXPECT(handle && alpha && beta && workspace && size >= FAKE_WORKSPACE);
    if (!algorithm)
        return cuMemsetD32Async((cuda_address)d, ONE, (size_t)(d_layout->rows * d_layout->columns),
                                stream);
    EXPECT(algorithm->data[0] == 1);
    EXPECT(c == d && c_layout == d_layout && fit(description, a_layout, b_layout, c_layout));
    EXPECT(is_plain(description->type, alpha, beta));
    const struct given given = {(int64_t)a,   (int64_t)b,
                                (int64_t)d,   (int64_t)workspace,
                                *description, {*a_layout, *b_layout, *c_layout}};
    EXPECT(matrix(given.a, a_layout) && matrix(given.b, b_layout) && matrix(given.c, c_layout));
    EXPECT(fake_bytes((cuda_address)workspace, size));
    struct fake_work work = {.kind = FAKE_LAUNCH, .kernel = &kernel};
    work.arguments = malloc(sizeof given);
    if (!work.arguments)
        abort();
    memcpy(work.arguments, &given, sizeof given);
    return fake_push(stream, &work);
}
