/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lib/gemm_panels.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/cpu/lib/gemm_rows.h"
#include "kernels/cpu/lib/strided.h"

/* Multiplications: of fewer, the first-level cache holds the matrix. */
#define MIN_WORK 32768
/* What a thread should have to do, in multiplications. */
#define GRAIN 65536

/* Of more bytes, nothing is in a cache any more when it is read again. */
#define MAX_WEIGHTS ((size_t)4 << 20)
/* Of two-byte floats, which take twice as many in float32. To widen 4.5 MiB in each run takes 1 to
 * 1.5 ms, a fifth of a product of 128 rows. */
#define MAX_HALVES ((size_t)16 << 20)

struct gemm_panels {
    atomic_uint sweeps; /* that were begun by all runs */
    _Alignas(TENSOR_ALIGNMENT) char data[];
};

static bool is_kept(const struct tensor *weights)
{
    const bool halves = weights->dtype == TSSA_FLOAT16 || weights->dtype == TSSA_BFLOAT16;
    return weights->dtype == TSSA_FLOAT ||
           tensor_bytes(weights) <= (halves ? MAX_HALVES : MAX_WEIGHTS);
}

const struct tensor *gemm_weights(const struct ir_op *op)
{
    const struct ir_value *value = ir_operand(op, 1);
    const struct tensor *weights = ir_value_constant(value);
    return weights && weights->rank == 2 && !value->uses->next && is_kept(weights) ? weights : NULL;
}

static int64_t width_of(tssa_dtype dtype)
{
    return (int64_t)(GEMM_PANEL_BYTES / tssa_dtype_size(dtype));
}

static int64_t panels_of(tssa_dtype dtype, int64_t n)
{
    const int64_t width = width_of(dtype);
    return n / width + (n % width != 0);
}

static bool is_one_row(const struct ir_type *type, struct gemm_transposed transposed)
{
    if (type->kind != TYPE_TENSOR || type->rank < 1)
        return false;
    const int summed = transposed.a ? 0 : type->rank - 1;
    for (int i = 0; i < type->rank; i++)
        if (i != summed && !dim_is(type->dims[i], 1))
            return false;
    return true;
}

/* NULL: it is not worth it. */
static const struct tensor *matrix_of(const struct ir_op *op, struct gemm_transposed transposed)
{
    const struct tensor *matrix = gemm_weights(op);
    return matrix && (matrix->dtype == TSSA_FLOAT || matrix->dtype == TSSA_DOUBLE) &&
                   tensor_bytes(matrix) <= MAX_WEIGHTS &&
                   matrix->dims[!transposed.b] >= width_of(matrix->dtype) &&
                   tensor_count(matrix) >= MIN_WORK &&
                   is_one_row(ir_operand(op, 0)->type, transposed)
               ? matrix
               : NULL;
}

/* Columns behind the last one are zeros. */
static void copy(const struct tensor *matrix, struct gemm gemm, char *panels)
{
    const size_t size = tssa_dtype_size(matrix->dtype);
    const int64_t width = width_of(matrix->dtype), k = gemm.k;
    for (int64_t j = 0; j < gemm.n; j += width) {
        const int64_t n = gemm.n - j < width ? gemm.n - j : width;
        char *panel = panels + (size_t)(j * k) * size;
        struct strided_box box = {0};
        if (n < width)
            memset(panel, 0, (size_t)(k * width) * size);
        strided_push(&box, k, width, gemm.b_row);
        strided_push(&box, n, 1, gemm.b_column);
        strided_copy(NULL, size, &box, panel,
                     (const char *)matrix->data + (size_t)(j * gemm.b_column) * size);
    }
}

tssa_status *gemm_panels_make(const struct kernel_setup *setup, const struct ir_op *op,
                              struct gemm_transposed transposed, struct gemm_panels **panels)
{
    const struct tensor *matrix = matrix_of(op, transposed);
    *panels = NULL;
    if (!matrix)
        return NULL;
    const uint64_t start = clock_monotonic();
    const int64_t row = matrix->dims[1];
    const struct gemm gemm = {.k = matrix->dims[transposed.b],
                              .n = matrix->dims[!transposed.b],
                              .b_row = transposed.b ? 1 : row,
                              .b_column = transposed.b ? row : 1};
    const size_t bytes = (size_t)(panels_of(matrix->dtype, gemm.n) * gemm.k) * GEMM_PANEL_BYTES;
    *panels = allocator_alloc_aligned(setup->context->allocator, sizeof **panels + bytes,
                                      TENSOR_ALIGNMENT);
    TRY_ALLOC(*panels);
    atomic_init(&(*panels)->sweeps, 0);
    copy(matrix, gemm, (*panels)->data);
    ir_graph_forget(setup->graph, matrix->data, tensor_bytes(matrix));
    kernel_tally_packed(setup, bytes, start);
    return NULL;
}

void gemm_panels_hold(struct library_cache *cache, const struct ir_op *op,
                      const struct gemm_panels *panels)
{
    const struct tensor *matrix = ir_value_constant(ir_operand(op, 1));
    if (!matrix || panels)
        return;
    library_cache_hold(cache, matrix);
}

void gemm_panels_drop(struct device_context *context, struct gemm_panels *panels)
{
    allocator_free(context->allocator, panels);
}

void gemm_panels_run(const struct team *team, tssa_dtype dtype, const struct gemm *gemm)
{
    const int64_t grain = GRAIN / (width_of(dtype) * (gemm->k > 0 ? gemm->k : 1));
    const unsigned sweeps =
        atomic_fetch_add_explicit(&gemm->panels->sweeps, 1, memory_order_relaxed);
    struct gemm_sweep sweep = {gemm, gemm->panels->data, sweeps % 2 == 1};
    team_for(team, panels_of(dtype, gemm->n), grain > 0 ? grain : 1,
             dtype == TSSA_FLOAT ? gemm_panels_f32 : gemm_panels_f64, &sweep);
}
