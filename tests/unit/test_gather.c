/* SPDX-License-Identifier: Apache-2.0 */
/* Gather and scatter kernels against the operators' definitions, element by element. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

#define ROUNDS 400

static const tssa_dtype some_types[] = {TSSA_BOOL,   TSSA_BFLOAT16,   TSSA_FLOAT,
                                        TSSA_DOUBLE, TSSA_COMPLEX128, TSSA_STRING};

static tssa_dtype some_type(struct random *random)
{
    return some_types[random_int(random, 0, 5)];
}

static void some_dims(struct random *random, int rank, int64_t *dims)
{
    int64_t high = random_int(random, 0, 9) == 0 ? 30 : 5;
    for (int i = 0; i < rank; i++)
        dims[i] = random_int(random, random_int(random, 0, 20) == 0 ? 0 : 1, i < 3 ? high : 4);
}

/* In [-limit, limit - 1]; of `runs`, mostly the one behind `*last`. */
static int64_t some_index(struct random *random, int64_t limit, bool runs, int64_t *last)
{
    bool next = runs && *last + 1 < limit && random_int(random, 0, 4) > 0;
    *last = next ? *last + 1 : random_int(random, -limit, limit - 1);
    return *last;
}

/* Fills an index tensor with positions in [-limit, limit - 1]. */
static void some_indices(struct random *random, struct tensor *x, int64_t limit)
{
    size_t size = dtype_info(x->dtype)->size;
    bool runs = random_int(random, 0, 1);
    int64_t last = -1;
    for (size_t i = 0; i < tensor_count(x); i++)
        dtype_store_int64(x->dtype, (char *)x->data + i * size,
                          some_index(random, limit, runs, &last));
}

/* Element `number` of an index tensor, from the front of a dim of `limit`. */
static int64_t index_at(const struct tensor *x, int64_t number, int64_t limit)
{
    int64_t value = dtype_load_int64(x->dtype, (const char *)x->data +
                                                   (size_t)number * dtype_info(x->dtype)->size);
    return value < 0 ? value + limit : value;
}

struct gather {
    const struct tensor *x, *indices;
    int axis; /* or batch_dims */
};

/* ---- Gather ---------------------------------------------------------------------------------- */

static int64_t gather_source(const void *context, const int64_t *at)
{
    const struct gather *g = context;
    int64_t from[TSSA_MAX_RANK];
    int q = g->indices->rank;
    int64_t number = flat_index(q, g->indices->dims, at + g->axis);
    for (int i = 0; i < g->x->rank; i++)
        if (i != g->axis)
            from[i] = i < g->axis ? at[i] : at[i + q - 1];
    from[g->axis] = index_at(g->indices, number, g->x->dims[g->axis]);
    return flat_index(g->x->rank, g->x->dims, from);
}

static void test_gather(void **state)
{
    struct random random = {1};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 1, 4), q = (int)random_int(&random, 0, 3);
        int axis = (int)random_int(&random, 0, rank - 1), n = 0;
        int64_t dims[TSSA_MAX_RANK], shape[TSSA_MAX_RANK], result[TSSA_MAX_RANK];
        some_dims(&random, rank, dims);
        some_dims(&random, q, shape);
        if (dims[axis] == 0)
            dims[axis] = 1;
        for (int i = 0; i < axis; i++)
            result[n++] = dims[i];
        for (int i = 0; i < q; i++)
            result[n++] = shape[i];
        for (int i = axis + 1; i < rank; i++)
            result[n++] = dims[i];
        op_open(&run, IR_OP_Gather, 2, 1);
        op_int(&run, "axis", random_int(&random, 0, 1) ? axis : axis - rank);
        const struct tensor *x = op_random(&run, 0, &random, some_type(&random), rank, dims);
        struct tensor *indices =
            op_input(&run, 1, random_int(&random, 0, 1) ? TSSA_INT32 : TSSA_INT64, q, shape);
        some_indices(&random, indices, dims[axis]);
        op_go(&run);
        op_expect_moved(&run, 0, x, n, result, gather_source, &(struct gather){x, indices, axis},
                        NULL);
        op_close(&run);
    }
}

static void test_gather_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Gather, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3});
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){0, 2});
    op_fails(&run, "index 2 (number 1) is outside a dim of 2");
    op_input_ints(&run, 1, TSSA_INT32, 1, 2, (int64_t[]){0, -3});
    op_fails(&run, "index -3");
    op_input_ints(&run, 1, TSSA_INT64, 1, 1, (int64_t[]){INT64_MIN});
    op_fails(&run, "index -9223372036854775808");
    op_input_ints(&run, 1, TSSA_INT16, 1, 1, (int64_t[]){0});
    op_fails(&run, "must hold i32 or i64");
    op_int(&run, "axis", -3);
    op_fails(&run, "outside a tensor of rank 2");
    op_close(&run);
}

static void test_array_feature_extractor(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_ArrayFeatureExtractor, 2, 1);
    struct tensor *x = op_input(&run, 0, TSSA_INT32, 2, (int64_t[]){2, 3});
    memcpy(x->data, (int32_t[]){1, 2, 3, 4, 5, 6}, 24);
    int64_t *columns = op_input(&run, 1, TSSA_INT64, 2, (int64_t[]){1, 2})->data;
    columns[0] = 2;
    columns[1] = 0;
    op_go(&run);
    op_expect_ints(&run, 0, 2, (int64_t[]){2, 2}, (int64_t[]){3, 1, 6, 4});
    op_input_ints(&run, 0, TSSA_INT32, 1, 3, (int64_t[]){7, 8, 9});
    op_go(&run);
    op_expect_ints(&run, 0, 2, (int64_t[]){1, 2}, (int64_t[]){9, 7});
    columns[0] = 3;
    op_fails(&run, "index 3");
    op_input(&run, 0, TSSA_INT32, 0, NULL);
    op_fails(&run, "scalar");
    op_close(&run);
}

/* ---- GatherElements -------------------------------------------------------------------------- */

static int64_t gather_elements_source(const void *context, const int64_t *at)
{
    const struct gather *g = context;
    int64_t from[TSSA_MAX_RANK];
    int64_t number = flat_index(g->x->rank, g->indices->dims, at);
    memcpy(from, at, (size_t)g->x->rank * sizeof *from);
    from[g->axis] = index_at(g->indices, number, g->x->dims[g->axis]);
    return flat_index(g->x->rank, g->x->dims, from);
}

/* The dims of indices for `dims`: no larger but along the axis. */
static void element_dims(struct random *random, int rank, int axis, int64_t *dims, int64_t *shape)
{
    some_dims(random, rank, dims);
    if (dims[axis] == 0)
        dims[axis] = 1;
    for (int i = 0; i < rank; i++)
        shape[i] =
            i == axis || random_int(random, 0, 2) == 0 ? random_int(random, 0, dims[i]) : dims[i];
}

static void test_gather_elements(void **state)
{
    struct random random = {2};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 1, 4), axis = (int)random_int(&random, 0, rank - 1);
        int64_t dims[TSSA_MAX_RANK], shape[TSSA_MAX_RANK];
        element_dims(&random, rank, axis, dims, shape);
        op_open(&run, IR_OP_GatherElements, 2, 1);
        op_int(&run, "axis", random_int(&random, 0, 1) ? axis : axis - rank);
        const struct tensor *x = op_random(&run, 0, &random, some_type(&random), rank, dims);
        struct tensor *indices = op_input(&run, 1, TSSA_INT64, rank, shape);
        some_indices(&random, indices, dims[axis]);
        op_go(&run);
        op_expect_moved(&run, 0, x, rank, shape, gather_elements_source,
                        &(struct gather){x, indices, axis}, NULL);
        op_close(&run);
    }
}

static void test_gather_elements_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_GatherElements, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3});
    op_input_ints(&run, 1, TSSA_INT64, 1, 1, (int64_t[]){0});
    op_fails(&run, "indices i64[1] do not fit data f32[2, 3]");
    some_indices(&(struct random){1}, op_input(&run, 1, TSSA_INT64, 2, (int64_t[]){1, 4}), 1);
    op_fails(&run, "do not fit");
    op_close(&run);
}

/* ---- GatherND -------------------------------------------------------------------------------- */

static int64_t gather_nd_source(const void *context, const int64_t *at)
{
    const struct gather *g = context;
    int64_t from[TSSA_MAX_RANK];
    int outer = g->indices->rank - 1, depth = (int)g->indices->dims[outer], first = g->axis + depth;
    int64_t tuple = flat_index(outer, g->indices->dims, at) * depth;
    for (int i = 0; i < g->axis; i++)
        from[i] = at[i];
    for (int i = 0; i < depth; i++)
        from[g->axis + i] = index_at(g->indices, tuple + i, g->x->dims[g->axis + i]);
    for (int i = first; i < g->x->rank; i++)
        from[i] = at[outer + i - first];
    return flat_index(g->x->rank, g->x->dims, from);
}

/* Tuples of `depth` indices into dims [first, first + depth). */
static void some_tuples(struct random *random, struct tensor *x, const int64_t *limits, int depth)
{
    bool runs = random_int(random, 0, 1);
    int64_t last[TSSA_MAX_RANK];
    for (int i = 0; i < depth; i++)
        last[i] = -1;
    for (size_t i = 0; i < tensor_count(x); i++) {
        size_t d = i % (size_t)depth;
        ((int64_t *)x->data)[i] = some_index(random, limits[d], runs, &last[d]);
    }
}

static void test_gather_nd(void **state)
{
    struct random random = {3};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 1, 4), batch = (int)random_int(&random, 0, rank - 1);
        int depth = (int)random_int(&random, 0, rank - batch);
        int q = batch + 1 + (int)random_int(&random, 0, 2), n = 0;
        int64_t dims[TSSA_MAX_RANK], shape[TSSA_MAX_RANK], result[TSSA_MAX_RANK];
        some_dims(&random, rank, dims);
        some_dims(&random, q, shape);
        for (int i = batch; i < batch + depth; i++)
            dims[i] += dims[i] == 0;
        for (int i = 0; i < batch; i++)
            shape[i] = dims[i];
        shape[q - 1] = depth;
        for (int i = 0; i < q - 1; i++)
            result[n++] = shape[i];
        for (int i = batch + depth; i < rank; i++)
            result[n++] = dims[i];
        op_open(&run, IR_OP_GatherND, 2, 1);
        op_int(&run, "batch_dims", batch);
        const struct tensor *x = op_random(&run, 0, &random, some_type(&random), rank, dims);
        struct tensor *indices = op_input(&run, 1, TSSA_INT64, q, shape);
        some_tuples(&random, indices, dims + batch, depth);
        op_go(&run);
        op_expect_moved(&run, 0, x, n, result, gather_nd_source,
                        &(struct gather){x, indices, batch}, NULL);
        op_close(&run);
    }
}

static void test_gather_nd_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_GatherND, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3});
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){1, 3});
    op_fails(&run, "index 3 (number 1) is outside a dim of 3");
    op_input_ints(&run, 1, TSSA_INT64, 1, 3, (int64_t[]){0, 0, 0});
    op_fails(&run, "do not fit data f32[2, 3]");
    op_input_ints(&run, 1, TSSA_INT64, 0, 1, (int64_t[]){0});
    op_fails(&run, "do not fit");
    op_input_ints(&run, 1, TSSA_INT64, 1, 1, (int64_t[]){0});
    op_int(&run, "batch_dims", 1);
    op_fails(&run, "batch_dims 1");
    op_int(&run, "batch_dims", -1);
    op_fails(&run, "batch_dims -1");
    op_close(&run);
}

/* ---- Scatter: none --------------------------------------------------------------------------- */

/* Writes element `from` of the updates to element `to` of the expected result. */
typedef void (*write_fn)(struct tensor *expected, int64_t to, const struct tensor *updates,
                         int64_t from);

static void overwrite(struct tensor *expected, int64_t to, const struct tensor *updates,
                      int64_t from)
{
    size_t size = dtype_info(expected->dtype)->size;
    memcpy((char *)expected->data + (size_t)to * size,
           (const char *)updates->data + (size_t)from * size, size);
}

static void naive_scatter_elements(struct tensor *expected, const struct tensor *indices,
                                   const struct tensor *updates, int axis, write_fn write)
{
    for (int64_t i = 0; i < (int64_t)tensor_count(indices); i++) {
        int64_t at[TSSA_MAX_RANK];
        unflatten(indices->rank, indices->dims, i, at);
        at[axis] = index_at(indices, i, expected->dims[axis]);
        write(expected, flat_index(expected->rank, expected->dims, at), updates, i);
    }
}

static void naive_scatter_nd(struct tensor *expected, const struct tensor *indices,
                             const struct tensor *updates, write_fn write)
{
    int outer = indices->rank - 1, depth = (int)indices->dims[outer];
    for (int64_t i = 0; i < (int64_t)tensor_count(updates); i++) {
        int64_t at[2 * TSSA_MAX_RANK], to[TSSA_MAX_RANK];
        unflatten(updates->rank, updates->dims, i, at);
        int64_t tuple = flat_index(outer, indices->dims, at) * depth;
        for (int d = 0; d < expected->rank; d++)
            to[d] =
                d < depth ? index_at(indices, tuple + d, expected->dims[d]) : at[outer + d - depth];
        write(expected, flat_index(expected->rank, expected->dims, to), updates, i);
    }
}

static struct tensor copy_of(struct op_run *run, const struct tensor *x)
{
    struct tensor copy = *x;
    copy.data = arena_alloc_aligned(&run->arena, tensor_bytes(x) + 1, TENSOR_ALIGNMENT);
    assert_non_null(copy.data);
    memcpy(copy.data, x->data, tensor_bytes(x));
    return copy;
}

static void expect_equal(struct op_run *run, const struct tensor *expected)
{
    const struct tensor *y = op_output(run, 0, expected->dtype, expected->rank, expected->dims);
    assert_memory_equal(y->data, expected->data, tensor_bytes(expected));
}

static void test_scatter_elements(void **state)
{
    struct random random = {4};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 1, 4), axis = (int)random_int(&random, 0, rank - 1);
        int64_t dims[TSSA_MAX_RANK], shape[TSSA_MAX_RANK];
        tssa_dtype dtype = some_type(&random);
        element_dims(&random, rank, axis, dims, shape);
        op_open(&run, IR_OP_ScatterElements, 3, 1);
        op_int(&run, "axis", random_int(&random, 0, 1) ? axis : axis - rank);
        struct tensor expected = copy_of(&run, op_random(&run, 0, &random, dtype, rank, dims));
        struct tensor *indices =
            op_input(&run, 1, random_int(&random, 0, 1) ? TSSA_INT32 : TSSA_INT64, rank, shape);
        some_indices(&random, indices, dims[axis]);
        const struct tensor *updates = op_random(&run, 2, &random, dtype, rank, shape);
        op_go(&run);
        naive_scatter_elements(&expected, indices, updates, axis, overwrite);
        expect_equal(&run, &expected);
        op_close(&run);
    }
}

static void test_scatter_nd(void **state)
{
    struct random random = {5};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 1, 4), depth = (int)random_int(&random, 0, rank);
        int outer = (int)random_int(&random, 0, 2);
        int64_t dims[TSSA_MAX_RANK], shape[TSSA_MAX_RANK], update[TSSA_MAX_RANK];
        tssa_dtype dtype = some_type(&random);
        some_dims(&random, rank, dims);
        some_dims(&random, outer, shape);
        shape[outer] = depth;
        for (int i = 0; i < depth; i++)
            dims[i] += dims[i] == 0;
        for (int i = 0; i < outer + rank - depth; i++)
            update[i] = i < outer ? shape[i] : dims[depth + i - outer];
        op_open(&run, IR_OP_ScatterND, 3, 1);
        struct tensor expected = copy_of(&run, op_random(&run, 0, &random, dtype, rank, dims));
        struct tensor *indices = op_input(&run, 1, TSSA_INT64, outer + 1, shape);
        some_tuples(&random, indices, dims, depth);
        const struct tensor *updates =
            op_random(&run, 2, &random, dtype, outer + rank - depth, update);
        op_go(&run);
        naive_scatter_nd(&expected, indices, updates, overwrite);
        expect_equal(&run, &expected);
        op_close(&run);
    }
}

static void test_scatter_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_ScatterND, 3, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3});
    op_input_ints(&run, 1, TSSA_INT64, 1, 1, (int64_t[]){2});
    op_input(&run, 2, TSSA_FLOAT, 1, (int64_t[]){3});
    op_fails(&run, "index 2 (number 0) is outside a dim of 2");
    op_input(&run, 2, TSSA_FLOAT, 1, (int64_t[]){2});
    op_fails(&run, "updates f32[2] do not fit");
    op_input(&run, 2, TSSA_DOUBLE, 1, (int64_t[]){3});
    op_fails(&run, "do not fit");
    op_input_ints(&run, 1, TSSA_INT64, 1, 3, (int64_t[]){0, 0, 0});
    op_fails(&run, "do not fit");
    op_string(&run, "reduction", "sub");
    op_fails(&run, "reduction is \"sub\"");
    op_close(&run);

    op_open(&run, IR_OP_ScatterElements, 3, 1);
    op_input(&run, 0, TSSA_STRING, 1, (int64_t[]){2});
    op_input_ints(&run, 1, TSSA_INT64, 1, 1, (int64_t[]){-3});
    op_input(&run, 2, TSSA_STRING, 1, (int64_t[]){1});
    op_fails(&run, "index -3");
    op_string(&run, "reduction", "max");
    op_fails(&run, "reduction \"max\" does not exist for str");
    op_string(&run, "reduction", "none");
    op_input(&run, 2, TSSA_STRING, 1, (int64_t[]){2});
    op_fails(&run, "do not fit");
    op_close(&run);
}

/* ---- Scatter: reductions --------------------------------------------------------------------- */

static const char *const reductions[] = {"add", "mul", "min", "max"};
static int reduction; /* of the naive implementation below */

static double reduce(double a, double b)
{
    if (reduction == 0)
        return a + b;
    if (reduction == 1)
        return a * b;
    if (isnan(a) || isnan(b))
        return NAN;
    return reduction == 2 ? fmin(a, b) : fmax(a, b);
}

static void accumulate(struct tensor *expected, int64_t to, const struct tensor *updates,
                       int64_t from)
{
    size_t size = dtype_info(expected->dtype)->size;
    void *element = (char *)expected->data + (size_t)to * size;
    const void *update = (const char *)updates->data + (size_t)from * size;
    double a = dtype_load_double(expected->dtype, element),
           b = dtype_load_double(updates->dtype, update);
    dtype_store_double(expected->dtype, element, reduce(a, b));
}

/* Small whole numbers, so that the operations are exact in a double; now and then NaN. */
static void small_values(struct random *random, struct tensor *x)
{
    size_t size = dtype_info(x->dtype)->size;
    int64_t low = dtype_info(x->dtype)->cls == DTYPE_CLASS_UNSIGNED ? 0 : -3;
    for (size_t i = 0; i < tensor_count(x); i++) {
        double value = (double)random_int(random, low, 3);
        if (dtype_is_float(x->dtype) && random_int(random, 0, 19) == 0)
            value = NAN;
        dtype_store_double(x->dtype, (char *)x->data + i * size, value);
    }
}

static void expect_same_numbers(struct op_run *run, const struct tensor *expected)
{
    const struct tensor *y = op_output(run, 0, expected->dtype, expected->rank, expected->dims);
    size_t size = dtype_info(y->dtype)->size;
    for (size_t i = 0; i < tensor_count(y); i++) {
        double a = dtype_load_double(y->dtype, (const char *)y->data + i * size);
        double b = dtype_load_double(y->dtype, (const char *)expected->data + i * size);
        assert_true(a == b || (isnan(a) && isnan(b)));
    }
}

static void test_scatter_reductions(void **state)
{
    static const tssa_dtype types[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16, TSSA_BFLOAT16,
                                       TSSA_INT8,  TSSA_INT16,  TSSA_INT32,   TSSA_INT64,
                                       TSSA_UINT8, TSSA_UINT16, TSSA_UINT32,  TSSA_UINT64};
    struct random random = {6};
    (void)state;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        struct op_run run;
        tssa_dtype dtype = types[round % 12];
        bool nd = random_int(&random, 0, 1);
        /* Four updates at most per element: products stay below 3^5. */
        int64_t dims[2] = {random_int(&random, 1, 4), random_int(&random, 1, 3)};
        int64_t shape[2] = {nd ? 4 : random_int(&random, 1, 4), nd ? 1 : dims[1]};
        int64_t update[2] = {shape[0], dims[1]};
        reduction = (int)random_int(&random, 0, 3);
        if (dtype == TSSA_INT8 || dtype == TSSA_UINT8)
            shape[0] = update[0] = 2;
        op_open(&run, nd ? IR_OP_ScatterND : IR_OP_ScatterElements, 3, 1);
        op_string(&run, "reduction", reductions[reduction]);
        struct tensor *x = op_input(&run, 0, dtype, 2, dims);
        small_values(&random, x);
        struct tensor expected = copy_of(&run, x);
        struct tensor *indices = op_input(&run, 1, TSSA_INT64, 2, shape);
        some_indices(&random, indices, dims[0]);
        struct tensor *updates = op_input(&run, 2, dtype, 2, update);
        small_values(&random, updates);
        op_go(&run);
        if (nd)
            naive_scatter_nd(&expected, indices, updates, accumulate);
        else
            naive_scatter_elements(&expected, indices, updates, 0, accumulate);
        expect_same_numbers(&run, &expected);
        op_close(&run);
    }
}

static void test_scatter_wraps_and_rounds(void **state)
{
    struct op_run run;
    (void)state;
    /* Integers wrap around. */
    op_open(&run, IR_OP_ScatterElements, 3, 1);
    op_string(&run, "reduction", "mul");
    op_input_ints(&run, 0, TSSA_INT64, 1, 1, (int64_t[]){INT64_MAX});
    op_input_ints(&run, 1, TSSA_INT64, 1, 1, (int64_t[]){0});
    op_input_ints(&run, 2, TSSA_INT64, 1, 1, (int64_t[]){2});
    op_go(&run);
    op_expect_ints(&run, 0, 1, (int64_t[]){1}, (int64_t[]){-2});
    op_input_ints(&run, 0, TSSA_UINT16, 1, 1, (int64_t[]){65535});
    op_input_ints(&run, 2, TSSA_UINT16, 1, 1, (int64_t[]){65535});
    op_go(&run);
    op_expect_ints(&run, 0, 1, (int64_t[]){1}, (int64_t[]){1});
    op_close(&run);
    /* Half precision rounds after every addition: 2048 + 1 + 1 stays 2048. */
    op_open(&run, IR_OP_ScatterElements, 3, 1);
    op_string(&run, "reduction", "add");
    *(uint16_t *)op_input(&run, 0, TSSA_FLOAT16, 1, (int64_t[]){1})->data = float_to_half(2048);
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){0, 0});
    uint16_t *ones = op_input(&run, 2, TSSA_FLOAT16, 1, (int64_t[]){2})->data;
    ones[0] = ones[1] = float_to_half(1);
    op_go(&run);
    assert_true(half_to_float(*(uint16_t *)run.outputs[0].tensor.data) == 2048);
    /* bool: or, and. Complex numbers: no order. */
    ((bool *)op_input(&run, 0, TSSA_BOOL, 1, (int64_t[]){1})->data)[0] = true;
    bool *both = op_input(&run, 2, TSSA_BOOL, 1, (int64_t[]){2})->data;
    both[0] = true;
    both[1] = false;
    op_go(&run);
    op_expect_ints(&run, 0, 1, (int64_t[]){1}, (int64_t[]){1});
    op_string(&run, "reduction", "min");
    op_go(&run);
    op_expect_ints(&run, 0, 1, (int64_t[]){1}, (int64_t[]){0});
    float *x = op_input(&run, 0, TSSA_COMPLEX64, 1, (int64_t[]){1})->data;
    float *u = op_input(&run, 2, TSSA_COMPLEX64, 1, (int64_t[]){2})->data;
    x[0] = 1, x[1] = 2, u[0] = 0, u[1] = 1, u[2] = 3, u[3] = 0;
    op_fails(&run, "does not exist for c64");
    op_string(&run, "reduction", "mul");
    op_go(&run);
    const float *y = run.outputs[0].tensor.data;
    assert_true(y[0] == -6 && y[1] == 3);
    op_close(&run);
}

/* ---- TensorScatter --------------------------------------------------------------------------- */

static void test_tensor_scatter(void **state)
{
    struct random random = {7};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 2, 4), axis = (int)random_int(&random, 1, rank - 1);
        int64_t dims[TSSA_MAX_RANK], shape[TSSA_MAX_RANK], starts[64];
        bool circular = random_int(&random, 0, 1), given = random_int(&random, 0, 3) > 0;
        tssa_dtype dtype = some_type(&random);
        some_dims(&random, rank, dims);
        memcpy(shape, dims, sizeof shape);
        shape[axis] = random_int(&random, 0, dims[axis]);
        for (int64_t b = 0; b < dims[0]; b++)
            starts[b] = !given     ? 0
                        : circular ? random_int(&random, -9, 99)
                                   : random_int(&random, 0, dims[axis] - shape[axis]);
        op_open(&run, IR_OP_TensorScatter, 3, 1);
        op_int(&run, "axis", axis - rank);
        op_string(&run, "mode", circular ? "circular" : "linear");
        struct tensor expected = copy_of(&run, op_random(&run, 0, &random, dtype, rank, dims));
        const struct tensor *updates = op_random(&run, 1, &random, dtype, rank, shape);
        if (given)
            op_input_ints(&run, 2, TSSA_INT64, 1, dims[0], starts);
        op_go(&run);
        for (int64_t i = 0; i < (int64_t)tensor_count(updates); i++) {
            int64_t at[TSSA_MAX_RANK];
            unflatten(rank, shape, i, at);
            at[axis] += starts[at[0]];
            if (circular)
                at[axis] = (at[axis] % dims[axis] + dims[axis]) % dims[axis];
            overwrite(&expected, flat_index(rank, dims, at), updates, i);
        }
        expect_equal(&run, &expected);
        op_close(&run);
    }
}

static void test_tensor_scatter_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_TensorScatter, 3, 1);
    op_input(&run, 0, TSSA_FLOAT, 3, (int64_t[]){2, 4, 1});
    op_input(&run, 1, TSSA_FLOAT, 3, (int64_t[]){2, 2, 1});
    op_input_ints(&run, 2, TSSA_INT64, 1, 2, (int64_t[]){2, 3});
    op_fails(&run, "write_indices[1] is 3");
    op_input_ints(&run, 2, TSSA_INT64, 1, 2, (int64_t[]){2, -1});
    op_fails(&run, "write_indices[1] is -1");
    op_input_ints(&run, 2, TSSA_INT64, 1, 1, (int64_t[]){0});
    op_fails(&run, "must be i64[2]");
    op_input(&run, 1, TSSA_FLOAT, 3, (int64_t[]){2, 5, 1});
    op_fails(&run, "cannot write f32[2, 5, 1]");
    op_int(&run, "axis", 0);
    op_fails(&run, "cannot write");
    op_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_gather_refuses),
        cmocka_unit_test(test_array_feature_extractor),
        cmocka_unit_test(test_gather_elements),
        cmocka_unit_test(test_gather_elements_refuses),
        cmocka_unit_test(test_gather_nd),
        cmocka_unit_test(test_gather_nd_refuses),
        cmocka_unit_test(test_scatter_elements),
        cmocka_unit_test(test_scatter_nd),
        cmocka_unit_test(test_scatter_refuses),
        cmocka_unit_test(test_scatter_reductions),
        cmocka_unit_test(test_scatter_wraps_and_rounds),
        cmocka_unit_test(test_tensor_scatter),
        cmocka_unit_test(test_tensor_scatter_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
