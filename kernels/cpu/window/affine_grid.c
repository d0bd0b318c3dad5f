/* SPDX-License-Identifier: Apache-2.0 */
/* AffineGrid-20 of ai.onnx: each batch's matrix times the homogeneous coordinates of a regular grid. */
#include <inttypes.h>
#include <string.h>

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

static void run_points(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    (void)scratch;
    int n = w->spatial;
    int64_t per_batch = dims_product(w->sizes, 0, n);
    for (int64_t point = begin; point < end; point++) {
        double matrix[12], at[4], result[3];
        int64_t rest = point % per_batch;
        load_doubles(w->theta, point / per_batch * n * (n + 1), 1, n * (n + 1), matrix);
        /* Coordinates come innermost first: x, y, z, 1. */
        for (int i = n - 1; i >= 0; rest /= w->sizes[i], i--)
            at[n - 1 - i] = coordinate(rest % w->sizes[i], w->sizes[i], w->align_corners);
        at[n] = 1;
        for (int r = 0; r < n; r++) {
            result[r] = 0;
            for (int c = 0; c <= n; c++)
                result[r] += matrix[r * (n + 1) + c] * at[c];
        }
        store_doubles(w->out, point * n, 1, n, result);
    }
}

static tssa_status *run(struct kernel_args *args)
{
    const struct affine_grid *state = args->state;
    const struct tensor *theta;
    int64_t size[5], dims[5], points;
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
    points = dims_product(dims, 0, n + 1);
    struct work work = {theta, out, n, dims + 1, state->align_corners};
    return parts_for(args, points, 32, 0, run_points, &work);
}

extern const struct kernel cpu_kernel_affine_grid;
const struct kernel cpu_kernel_affine_grid = {.prepare = prepare, .run = run};
