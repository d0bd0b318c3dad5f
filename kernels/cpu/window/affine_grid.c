/* SPDX-License-Identifier: Apache-2.0 */
/* AffineGrid-20 of ai.onnx: each batch's matrix times the homogeneous coordinates of a regular
 * grid. */
#include <inttypes.h>
#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/lib/lines.h"

struct affine_grid {
    bool align_corners;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct affine_grid *state = ARENA_NEW(setup->arena, struct affine_grid);
    TRY_ALLOC(state);
    state->align_corners = ir_attr_int(op, "align_corners", 0) != 0;
    *result = state;
    return NULL;
}

struct work {
    const struct tensor *theta, *out;
    int spatial;
    const int64_t *sizes; /* of the grid: [D,] H, W */
    bool align_corners;
};

/* From -1 to 1: the centers of the first and last element, or their outer edges. */
static double coordinate(int64_t i, int64_t n, bool align_corners)
{
    if (align_corners)
        return n > 1 ? 2 * (double)i / (double)(n - 1) - 1 : -1;
    return (2 * (double)i + 1) / (double)n - 1;
}

/* A row of points along the innermost axis, where nothing but x changes: x times the first column
 * of the matrix, to which the other columns' products are added one by one. */
struct row {
    const double *x;
    double matrix[3][4]; /* but for the first column: times the coordinate */
    int64_t n;
};

#define INLINE static inline __attribute__((always_inline))

INLINE double product(const struct row *row, int axes, int r, int64_t i)
{
    double sum = 0 + row->matrix[r][0] * row->x[i];
    for (int c = 1; c <= axes; c++)
        sum += row->matrix[r][c];
    return sum;
}

#define ROW(name, type)                                                                            \
    VECTOR_PROCEDURE(name, (const struct row *given, int axes, type *restrict y),                  \
                     (given, axes, y))                                                             \
    {                                                                                              \
        const struct row row = *given;                                                             \
        if (axes == 2)                                                                             \
            for (int64_t i = 0; i < row.n; i++) {                                                  \
                y[2 * i] = (type)product(&row, 2, 0, i);                                           \
                y[2 * i + 1] = (type)product(&row, 2, 1, i);                                       \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < row.n; i++) {                                                  \
                y[3 * i] = (type)product(&row, 3, 0, i);                                           \
                y[3 * i + 1] = (type)product(&row, 3, 1, i);                                       \
                y[3 * i + 2] = (type)product(&row, 3, 2, i);                                       \
            }                                                                                      \
    }

ROW(float_row, float)
ROW(double_row, double)

/* Row `number` of all batches' rows; at[] innermost first: x, y, z. */
static void make_row(const struct work *w, int64_t number, struct row *row)
{
    const int n = w->spatial;
    const int64_t rows = dims_product(w->sizes, 0, n - 1);
    double matrix[12];
    int64_t rest = number % rows;
    load_doubles(w->theta, number / rows * n * (n + 1), 1, n * (n + 1), matrix);
    for (int r = 0; r < n; r++)
        for (int c = 0; c <= n; c++)
            row->matrix[r][c] = matrix[r * (n + 1) + c];
    for (int i = n - 2; i >= 0; rest /= w->sizes[i], i--) {
        double at = coordinate(rest % w->sizes[i], w->sizes[i], w->align_corners);
        for (int r = 0; r < n; r++)
            row->matrix[r][n - 1 - i] *= at;
    }
}

/* Indices are rows; scratch has room for the coordinates along one, and for one of results. */
static void run_rows(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const int n = w->spatial;
    const int64_t length = w->sizes[n - 1];
    double *x = scratch, *results = x + length;
    struct row row = {.x = x, .n = length};
    for (int64_t i = 0; i < length; i++)
        x[i] = coordinate(i, length, w->align_corners);
    for (int64_t number = begin; number < end; number++) {
        make_row(w, number, &row);
        if (w->out->dtype == TSSA_FLOAT) {
            float_row(&row, n, (float *)w->out->data + number * length * n);
            continue;
        }
        double_row(&row, n, results);
        store_doubles(w->out, number * length * n, 1, length * n, results);
    }
}

static tssa_status *run(struct kernel_args *args)
{
    const struct affine_grid *state = args->state;
    const struct tensor *theta;
    int64_t size[5], dims[5];
    size_t count;
    TRY(typed_tensor(args, 0, &theta));
    TRY(kernel_ints(args, 1, size, 5, &count));
    int n = (int)count - 2;
    if (n < 2 || theta->rank != 3 || theta->dims[1] != n || theta->dims[2] != n + 1 ||
        theta->dims[0] != size[0])
        return operand_error(0, theta, "one 2 x 3 matrix per batch (3 x 4 for three dims)");
    dims[0] = size[0];
    for (int i = 0; i < n; i++)
        dims[1 + i] = size[2 + i];
    dims[1 + n] = n;
    struct tensor *out;
    TRY(kernel_output(args, 0, theta->dtype, n + 2, dims, &out));
    if (!out || tensor_count(out) == 0)
        return NULL;
    struct work work = {theta, out, n, dims + 1, state->align_corners};
    return parts_for(args, dims_product(dims, 0, n), dims[n] * 8,
                     (size_t)(dims[n] * (n + 1)) * sizeof(double), run_rows, &work);
}

extern const struct kernel cpu_kernel_affine_grid;
const struct kernel cpu_kernel_affine_grid = {.prepare = prepare, .run = run};
