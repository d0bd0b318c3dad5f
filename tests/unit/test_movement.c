/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data movement kernels against what the operators' definitions say of single elements: for each
 * coordinate of the result, which element of the operand it is. Random shapes, zero-size and scalar
 * ones among them, over element types of every size.
 */
/* ctest-isa: v3 base */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

#define ROUNDS 300

/* Wider than any attribute, so that the definitions need no care. */
__extension__ typedef __int128 wide;

static const tssa_dtype some_types[] = {TSSA_UINT8, TSSA_INT4,       TSSA_FLOAT16, TSSA_FLOAT,
                                        TSSA_INT64, TSSA_COMPLEX128, TSSA_STRING};

static tssa_dtype some_type(struct random *random)
{
    return some_types[random_int(random, 0, sizeof some_types / sizeof *some_types - 1)];
}

/* Mostly small, now and then none, rarely large enough for several threads. */
static void some_dims(struct random *random, int rank, int64_t *dims)
{
    int64_t high = random_int(random, 0, 9) == 0 ? 40 : 5;
    for (int i = 0; i < rank; i++)
        dims[i] = random_int(random, random_int(random, 0, 20) == 0 ? 0 : 1, i < 3 ? high : 4);
}

/* ---- Transpose ------------------------------------------------------------------------------- */

struct transpose {
    const struct tensor *x;
    const int64_t *perm;
};

static int64_t transpose_source(const void *context, const int64_t *at)
{
    const struct transpose *t = context;
    int64_t from[TSSA_MAX_RANK];
    for (int i = 0; i < t->x->rank; i++)
        from[t->perm[i]] = at[i];
    return flat_index(t->x->rank, t->x->dims, from);
}

static void test_transpose(void **state)
{
    struct random random = {1};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 0, 5);
        int64_t dims[TSSA_MAX_RANK], perm[TSSA_MAX_RANK], result[TSSA_MAX_RANK];
        bool given = random_int(&random, 0, 4) > 0;
        some_dims(&random, rank, dims);
        for (int i = 0; i < rank; i++)
            perm[i] = rank - 1 - i;
        for (int i = rank - 1; given && i > 0; i--) {
            int64_t j = random_int(&random, 0, i), swap = perm[i];
            perm[i] = perm[j];
            perm[j] = swap;
        }
        for (int i = 0; i < rank; i++)
            result[i] = dims[perm[i]];
        op_open(&run, IR_OP_Transpose, 1, 1);
        if (given)
            op_ints(&run, "perm", (size_t)rank, perm);
        const struct tensor *x = op_random(&run, 0, &random, some_type(&random), rank, dims);
        op_go(&run);
        op_expect_moved(&run, 0, x, rank, result, transpose_source, &(struct transpose){x, perm},
                        NULL);
        op_close(&run);
    }
}

/* Whole and broken blocks of rows and columns, and rows that share their places in the cache. */
static void test_transpose_of_matrices(void **state)
{
    static const int64_t rows[] = {3, 32, 70};
    struct random random = {2};
    (void)state;
    for (size_t i = 0; i < sizeof some_types / sizeof *some_types; i++) {
        int64_t columns[] = {5, 37, 4096 / (int64_t)tssa_dtype_size(some_types[i])};
        for (int j = 0; j < 18; j++) {
            struct op_run run;
            int64_t a = rows[j % 3], b = columns[j / 3 % 3], perm[] = {0, 2, 1};
            int64_t dims[] = {2, j < 9 ? a : b, j < 9 ? b : a};
            op_open(&run, IR_OP_Transpose, 1, 1);
            op_ints(&run, "perm", 3, perm);
            const struct tensor *x = op_random(&run, 0, &random, some_types[i], 3, dims);
            op_go(&run);
            op_expect_moved(&run, 0, x, 3, (int64_t[]){dims[0], dims[2], dims[1]}, transpose_source,
                            &(struct transpose){x, perm}, NULL);
            op_close(&run);
        }
    }
}

/* Matrices of more than 2 MiB, which have larger blocks. */
static void test_transpose_of_large(void **state)
{
    static const struct {
        tssa_dtype dtype;
        int64_t rows, columns;
    } cases[] = {{TSSA_FLOAT, 2100, 261},
                 {TSSA_FLOAT, 75, 7100},
                 {TSSA_FLOAT, 7100, 75},
                 {TSSA_DOUBLE, 4050, 66},
                 {TSSA_UINT8, 1100, 2003}};
    static const int64_t perm[] = {1, 0};
    struct random random = {4};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct op_run run;
        op_open(&run, IR_OP_Transpose, 1, 1);
        op_ints(&run, "perm", 2, perm);
        const struct tensor *x = op_random(&run, 0, &random, cases[i].dtype, 2,
                                           (int64_t[]){cases[i].rows, cases[i].columns});
        op_go(&run);
        op_expect_moved(&run, 0, x, 2, (int64_t[]){cases[i].columns, cases[i].rows},
                        transpose_source, &(struct transpose){x, perm}, NULL);
        op_close(&run);
    }
}

static void test_transpose_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Transpose, 1, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3});
    op_ints(&run, "perm", 2, (int64_t[]){1, 1});
    op_fails(&run, "axis 1 twice");
    op_ints(&run, "perm", 2, (int64_t[]){0, 2});
    op_fails(&run, "outside a tensor of rank 2");
    op_ints(&run, "perm", 3, (int64_t[]){0, 2, 1});
    op_fails(&run, "rank 2");
    op_close(&run);
}

/* ---- DepthToSpace and SpaceToDepth ----------------------------------------------------------- */

struct blocks {
    const struct tensor *x;
    int64_t b;
    bool crd;
};

static int64_t depth_to_space_source(const void *context, const int64_t *at)
{
    const struct blocks *k = context;
    int64_t b = k->b, c = k->x->dims[1] / (b * b), row = at[2] % b, column = at[3] % b;
    int64_t depth = k->crd ? (at[1] * b + row) * b + column : (row * b + column) * c + at[1];
    return flat_index(4, k->x->dims, (int64_t[]){at[0], depth, at[2] / b, at[3] / b});
}

static int64_t space_to_depth_source(const void *context, const int64_t *at)
{
    const struct blocks *k = context;
    int64_t b = k->b, c = k->x->dims[1], block = at[1] / c;
    return flat_index(4, k->x->dims,
                      (int64_t[]){at[0], at[1] % c, at[2] * b + block / b, at[3] * b + block % b});
}

static void test_blocks(void **state)
{
    struct random random = {2};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int64_t b = random_int(&random, 1, 3), small[4];
        bool to_space = random_int(&random, 0, 1), crd = random_int(&random, 0, 1);
        some_dims(&random, 4, small);
        if (round % 4 == 0)
            small[3] = random_int(&random, 1, 70); /* several vectors */
        int64_t deep[4] = {small[0], small[1] * b * b, small[2], small[3]};
        int64_t wide[4] = {small[0], small[1], small[2] * b, small[3] * b};
        op_open(&run, to_space ? IR_OP_DepthToSpace : IR_OP_SpaceToDepth, 1, 1);
        op_int(&run, "blocksize", b);
        if (to_space && crd)
            op_string(&run, "mode", "CRD");
        const struct tensor *x =
            op_random(&run, 0, &random, some_type(&random), 4, to_space ? deep : wide);
        op_go(&run);
        op_expect_moved(&run, 0, x, 4, to_space ? wide : deep,
                        to_space ? depth_to_space_source : space_to_depth_source,
                        &(struct blocks){x, b, crd}, NULL);
        op_close(&run);
    }
}

static void test_blocks_refuse(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_DepthToSpace, 1, 1);
    op_input(&run, 0, TSSA_FLOAT, 4, (int64_t[]){1, 6, 2, 2});
    op_int(&run, "blocksize", 2);
    op_fails(&run, "divisible by 4");
    op_int(&run, "blocksize", 0);
    op_fails(&run, "blocksize is 0");
    op_int(&run, "blocksize", INT64_MAX);
    op_fails(&run, "blocksize");
    op_close(&run);
}

/* ---- Slice ----------------------------------------------------------------------------------- */

struct slice {
    const struct tensor *x;
    int64_t first[TSSA_MAX_RANK], step[TSSA_MAX_RANK];
};

static int64_t slice_source(const void *context, const int64_t *at)
{
    const struct slice *s = context;
    int64_t from[TSSA_MAX_RANK];
    for (int i = 0; i < s->x->rank; i++)
        from[i] = s->first[i] + at[i] * s->step[i];
    return flat_index(s->x->rank, s->x->dims, from);
}

/* The standard's rule, element by element: how many of start, start + step, ... are before the end.
 * A start is clamped to elements, if there are any; an end may be in front of them all. */
static int64_t slice_count(int64_t dim, int64_t start, int64_t end, int64_t step, int64_t *first)
{
    wide s = start, e = end, low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    s += s < 0 ? dim : 0;
    e += e < 0 ? dim : 0;
    const wide first_low = dim ? 0 : low;
    s = s < first_low ? first_low : s > high ? high : s;
    e = e < low ? low : e > high ? high : e;
    int64_t count = 0;
    *first = (int64_t)s;
    for (wide i = s; step > 0 ? i < e : i > e; i += step)
        count++;
    return count;
}

static int64_t some_bound(struct random *random, int64_t dim)
{
    static const int64_t far[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT32_MIN, INT32_MAX};
    return random_int(random, 0, 5) == 0 ? far[random_int(random, 0, 4)]
                                         : random_int(random, -dim - 2, dim + 2);
}

static void test_slice(void **state)
{
    static const int64_t far_steps[] = {INT64_MIN, INT64_MAX, 1000, -1000};
    struct random random = {3};
    (void)state;
    for (int round = 0; round < 4 * ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 1, 4), n = 0;
        int64_t dims[TSSA_MAX_RANK], result[TSSA_MAX_RANK];
        int64_t starts[4], ends[4], axes[4], steps[4];
        bool with_axes = random_int(&random, 0, 3) > 0, with_steps = random_int(&random, 0, 3) > 0;
        struct slice slice = {0};
        some_dims(&random, rank, dims);
        if (round % 4 == 0)
            dims[rank - 1] = random_int(&random, 1, 150); /* several vectors */
        for (int i = 0; i < rank; i++) {
            result[i] = dims[i];
            slice.step[i] = 1;
            if (with_axes && random_int(&random, 0, 2) == 0)
                continue;
            starts[n] = some_bound(&random, dims[i]);
            ends[n] = some_bound(&random, dims[i]);
            axes[n] = random_int(&random, 0, 1) ? i : i - rank;
            steps[n] = random_int(&random, 1, 3) * (random_int(&random, 0, 1) ? 1 : -1);
            if (random_int(&random, 0, 9) == 0)
                steps[n] = far_steps[random_int(&random, 0, 3)];
            slice.step[i] = with_steps ? steps[n] : 1;
            result[i] = slice_count(dims[i], starts[n], ends[n], slice.step[i], &slice.first[i]);
            n++;
        }
        op_open(&run, IR_OP_Slice, 5, 1);
        slice.x = op_random(&run, 0, &random, some_type(&random), rank, dims);
        op_input_ints(&run, 1, TSSA_INT64, 1, n, starts);
        op_input_ints(&run, 2, TSSA_INT64, 1, n, ends);
        if (with_axes)
            op_input_ints(&run, 3, TSSA_INT32, 1, n, axes);
        if (with_steps)
            op_input_ints(&run, 4, TSSA_INT64, 1, n, steps);
        op_go(&run);
        op_expect_moved(&run, 0, slice.x, rank, result, slice_source, &slice, NULL);
        op_close(&run);
    }
}

static void test_slice_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Slice, 5, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3});
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){0, 0});
    op_input_ints(&run, 2, TSSA_INT64, 1, 1, (int64_t[]){1});
    op_fails(&run, "starts has 2 elements but operand 2 has 1");
    op_input_ints(&run, 2, TSSA_INT64, 1, 2, (int64_t[]){1, 1});
    op_input_ints(&run, 3, TSSA_INT64, 1, 2, (int64_t[]){1, -1});
    op_fails(&run, "axis 1 is sliced twice");
    op_input_ints(&run, 3, TSSA_INT64, 1, 2, (int64_t[]){0, 2});
    op_fails(&run, "outside a tensor of rank 2");
    op_input_ints(&run, 3, TSSA_INT64, 1, 2, (int64_t[]){0, 1});
    op_input_ints(&run, 4, TSSA_INT64, 1, 2, (int64_t[]){1, 0});
    op_fails(&run, "step of axis 1 is 0");
    op_close(&run);
}

/* ---- Expand and Tile ------------------------------------------------------------------------- */

/* Coordinates modulo the operand's dims, right-aligned. */
static int64_t wrapped_source(const void *context, const int64_t *at)
{
    const struct tensor *x = ((const void *const *)context)[0];
    const int *rank = ((const void *const *)context)[1];
    int64_t from[TSSA_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        from[i] = at[*rank - x->rank + i] % x->dims[i];
    return flat_index(x->rank, x->dims, from);
}

static void test_expand(void **state)
{
    struct random random = {4};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 0, 5), own = (int)random_int(&random, 0, rank);
        int given = own < rank ? rank : (int)random_int(&random, 0, rank);
        int64_t result[TSSA_MAX_RANK], dims[TSSA_MAX_RANK] = {0}, shape[TSSA_MAX_RANK];
        some_dims(&random, rank, result);
        for (int i = 0; i < own; i++) {
            int r = rank - own + i;
            bool one = r >= rank - given && random_int(&random, 0, 1);
            dims[i] = one ? 1 : result[r];
        }
        for (int i = 0; i < given; i++) {
            int r = rank - given + i, x = own - given + i;
            shape[i] = x >= 0 && dims[x] == result[r] && random_int(&random, 0, 1) ? 1 : result[r];
        }
        op_open(&run, IR_OP_Expand, 2, 1);
        const struct tensor *x = op_random(&run, 0, &random, some_type(&random), own, dims);
        op_input_ints(&run, 1, TSSA_INT64, 1, given, shape);
        op_go(&run);
        op_expect_moved(&run, 0, x, rank, result, wrapped_source, (const void *[]){x, &rank}, NULL);
        op_close(&run);
    }
}

static void test_tile(void **state)
{
    struct random random = {5};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 0, 5);
        int64_t dims[TSSA_MAX_RANK], repeats[TSSA_MAX_RANK], result[TSSA_MAX_RANK];
        some_dims(&random, rank, dims);
        for (int i = 0; i < rank; i++) {
            repeats[i] = random_int(&random, round % 20 == 0 ? 0 : 1, 3);
            result[i] = dims[i] * repeats[i];
        }
        op_open(&run, IR_OP_Tile, 2, 1);
        const struct tensor *x = op_random(&run, 0, &random, some_type(&random), rank, dims);
        op_input_ints(&run, 1, TSSA_INT64, 1, rank, repeats);
        op_go(&run);
        op_expect_moved(&run, 0, x, rank, result, wrapped_source, (const void *[]){x, &rank}, NULL);
        op_close(&run);
    }
}

static void test_tile_of_highest_rank(void **state)
{
    struct random random = {6};
    struct op_run run;
    int rank = TSSA_MAX_RANK;
    int64_t dims[TSSA_MAX_RANK], repeats[TSSA_MAX_RANK], result[TSSA_MAX_RANK];
    (void)state;
    for (int i = 0; i < rank; i++) {
        dims[i] = i % 2 ? 2 : 1;
        repeats[i] = i % 3 ? 1 : 2;
        result[i] = dims[i] * repeats[i];
    }
    op_open(&run, IR_OP_Tile, 2, 1);
    const struct tensor *x = op_random(&run, 0, &random, TSSA_INT16, rank, dims);
    op_input_ints(&run, 1, TSSA_INT64, 1, rank, repeats);
    op_go(&run);
    op_expect_moved(&run, 0, x, rank, result, wrapped_source, (const void *[]){x, &rank}, NULL);
    op_close(&run);
}

static void test_expand_and_tile_refuse(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Expand, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3});
    op_input_ints(&run, 1, TSSA_INT64, 1, 1, (int64_t[]){4});
    op_fails(&run, "cannot expand f32[2, 3]");
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){2, -1});
    op_fails(&run, "would become -1");
    op_input_ints(&run, 1, TSSA_INT64, 1, 4, (int64_t[]){INT64_MAX, INT64_MAX, 1, 1});
    op_fails(&run, "larger");
    op_close(&run);
    op_open(&run, IR_OP_Tile, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3});
    op_input_ints(&run, 1, TSSA_INT64, 1, 1, (int64_t[]){4});
    op_fails(&run, "repeats has 1 elements");
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){1, INT64_MAX});
    op_fails(&run, "cannot repeat");
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){1, -1});
    op_fails(&run, "cannot repeat");
    op_close(&run);
}

/* ---- ReverseSequence and Trilu --------------------------------------------------------------- */

struct reverse {
    const struct tensor *x;
    int64_t batch, time;
    const int64_t *lengths;
};

static int64_t reverse_source(const void *context, const int64_t *at)
{
    const struct reverse *r = context;
    int64_t from[TSSA_MAX_RANK], length = r->lengths[at[r->batch]];
    memcpy(from, at, (size_t)r->x->rank * sizeof *from);
    if (at[r->time] < length)
        from[r->time] = length - 1 - at[r->time];
    return flat_index(r->x->rank, r->x->dims, from);
}

static void test_reverse_sequence(void **state)
{
    struct random random = {7};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 2, 4);
        int64_t dims[TSSA_MAX_RANK], lengths[64], batch = random_int(&random, 0, 1);
        some_dims(&random, rank, dims);
        for (int64_t i = 0; i < dims[batch]; i++)
            lengths[i] = random_int(&random, 0, dims[1 - batch]);
        op_open(&run, IR_OP_ReverseSequence, 2, 1);
        op_int(&run, "batch_axis", batch);
        op_int(&run, "time_axis", 1 - batch);
        const struct tensor *x = op_random(&run, 0, &random, some_type(&random), rank, dims);
        op_input_ints(&run, 1, TSSA_INT64, 1, dims[batch], lengths);
        op_go(&run);
        op_expect_moved(&run, 0, x, rank, dims, reverse_source,
                        &(struct reverse){x, batch, 1 - batch, lengths}, NULL);
        op_close(&run);
    }
}

static void test_reverse_sequence_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_ReverseSequence, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){3, 2});
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){1, 4});
    op_fails(&run, "sequence_lens[1] is 4");
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){-1, 1});
    op_fails(&run, "sequence_lens[0] is -1");
    op_input_ints(&run, 1, TSSA_INT64, 1, 3, (int64_t[]){1, 1, 1});
    op_fails(&run, "must be i64[2]");
    op_close(&run);
}

struct trilu {
    const struct tensor *x;
    int64_t k;
    bool upper;
};

static int64_t trilu_source(const void *context, const int64_t *at)
{
    const struct trilu *t = context;
    int rank = t->x->rank;
    wide diagonal = (wide)at[rank - 2] + t->k;
    bool kept = t->upper ? at[rank - 1] >= diagonal : at[rank - 1] <= diagonal;
    return kept ? flat_index(rank, t->x->dims, at) : -1;
}

static void test_trilu(void **state)
{
    static const int64_t far[] = {INT64_MIN, INT64_MAX, 100, -100};
    struct random random = {8};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 2, 4);
        int64_t dims[TSSA_MAX_RANK];
        tssa_dtype dtype = round % 2 ? TSSA_DOUBLE : TSSA_BOOL;
        bool with_k = random_int(&random, 0, 3) > 0;
        struct trilu trilu = {.upper = random_int(&random, 0, 1)};
        if (with_k)
            trilu.k = random_int(&random, 0, 9) ? random_int(&random, -6, 6)
                                                : far[random_int(&random, 0, 3)];
        some_dims(&random, rank, dims);
        op_open(&run, IR_OP_Trilu, 2, 1);
        op_int(&run, "upper", trilu.upper);
        trilu.x = op_random(&run, 0, &random, dtype, rank, dims);
        if (with_k)
            op_input_ints(&run, 1, TSSA_INT64, 0, 1, &trilu.k);
        op_go(&run);
        op_expect_moved(&run, 0, trilu.x, rank, dims, trilu_source, &trilu, (char[16]){0});
        op_close(&run);
    }
}

/* ---- Concat and Split ------------------------------------------------------------------------ */

/* Finds element `at` of the whole in one of the parts along the axis. */
static void expect_part(const struct tensor *whole, const struct tensor *part, int axis,
                        int64_t begin)
{
    size_t size = dtype_info(whole->dtype)->size;
    assert_int_equal(part->dtype, whole->dtype);
    for (size_t i = 0; i < tensor_count(part); i++) {
        int64_t at[TSSA_MAX_RANK];
        unflatten(part->rank, part->dims, (int64_t)i, at);
        at[axis] += begin;
        int64_t from = flat_index(whole->rank, whole->dims, at);
        assert_memory_equal((const char *)part->data + i * size,
                            (const char *)whole->data + (size_t)from * size, size);
    }
}

static void test_concat(void **state)
{
    struct random random = {9};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 1, 4), axis = (int)random_int(&random, 0, rank - 1);
        uint32_t n = (uint32_t)random_int(&random, 1, round % 10 == 0 ? OP_RUN_MAX : 4);
        int64_t dims[TSSA_MAX_RANK], begin = 0;
        tssa_dtype dtype = some_type(&random);
        some_dims(&random, rank, dims);
        op_open(&run, IR_OP_Concat, n, 1);
        op_int(&run, "axis", random_int(&random, 0, 1) ? axis : axis - rank);
        int64_t total = 0;
        for (uint32_t i = 0; i < n; i++) {
            dims[axis] = random_int(&random, 0, 4);
            total += dims[axis];
            op_random(&run, i, &random, dtype, rank, dims);
        }
        op_go(&run);
        dims[axis] = total;
        const struct tensor *y = op_output(&run, 0, dtype, rank, dims);
        for (uint32_t i = 0; i < n; i++) {
            expect_part(y, &run.inputs[i].tensor, axis, begin);
            begin += run.inputs[i].tensor.dims[axis];
        }
        op_close(&run);
    }
}

static void test_concat_refuses_and_skips(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Concat, 2, 1);
    op_int(&run, "axis", 0);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3});
    op_input(&run, 1, TSSA_FLOAT, 2, (int64_t[]){2, 4});
    op_fails(&run, "cannot concatenate f32[2, 3] and f32[2, 4] along axis 0");
    op_input(&run, 1, TSSA_INT32, 2, (int64_t[]){2, 3});
    op_fails(&run, "cannot concatenate");
    op_input(&run, 1, TSSA_FLOAT, 1, (int64_t[]){3});
    op_fails(&run, "cannot concatenate");
    /* The accumulator that PyTorch starts with. */
    op_input(&run, 1, TSSA_FLOAT, 1, (int64_t[]){0});
    op_go(&run);
    op_output(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3});
    op_int(&run, "axis", 2);
    op_fails(&run, "outside a tensor of rank 2");
    op_close(&run);
}

static void test_split(void **state)
{
    struct random random = {10};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 1, 4), axis = (int)random_int(&random, 0, rank - 1);
        uint32_t n = (uint32_t)random_int(&random, 1, 5);
        int64_t dims[TSSA_MAX_RANK], sizes[5], begin = 0;
        tssa_dtype dtype = some_type(&random);
        bool given = random_int(&random, 0, 1);
        some_dims(&random, rank, dims);
        if (given) {
            dims[axis] = 0;
            for (uint32_t i = 0; i < n; i++)
                dims[axis] += sizes[i] = random_int(&random, 0, 4);
        } else {
            int64_t even = (dims[axis] + n - 1) / n, left = dims[axis];
            for (uint32_t i = 0; i < n; i++) {
                sizes[i] = even < left ? even : left;
                left -= sizes[i];
            }
        }
        op_open(&run, IR_OP_Split, 2, n);
        op_int(&run, "axis", axis);
        const struct tensor *x = op_random(&run, 0, &random, dtype, rank, dims);
        if (given)
            op_input_ints(&run, 1, TSSA_INT64, 1, n, sizes);
        else if (random_int(&random, 0, 1))
            op_int(&run, "num_outputs", n);
        uint32_t unwanted = round % 3 == 0 ? 0 : n;
        if (unwanted < n)
            run.op->results[unwanted].wanted = false;
        op_go(&run);
        for (uint32_t i = 0; i < n; i++) {
            dims[axis] = sizes[i];
            if (i != unwanted)
                expect_part(x, op_output(&run, i, dtype, rank, dims), axis, begin);
            begin += sizes[i];
        }
        op_close(&run);
    }
}

static void test_split_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Split, 2, 2);
    op_input(&run, 0, TSSA_FLOAT, 1, (int64_t[]){4});
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){5, -1});
    op_fails(&run, "add up to 4");
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){1, 2});
    op_fails(&run, "add up to 4");
    op_input_ints(&run, 1, TSSA_INT64, 1, 3, (int64_t[]){1, 2, 1});
    op_fails(&run, "must be i64[2]");
    op_int(&run, "num_outputs", 3);
    op_fails(&run, "there are 2 outputs");
    op_close(&run);
}

/* ---- Pad and CenterCropPad ------------------------------------------------------------------- */

enum mode { CONSTANT, REFLECT, EDGE, WRAP };

struct pad {
    const struct tensor *x;
    enum mode mode;
    int64_t before[TSSA_MAX_RANK], after[TSSA_MAX_RANK];
};

/* Which element of [0, n) is at `i`, walking there step by step. */
static int64_t walk(enum mode mode, int64_t n, int64_t i)
{
    if (mode == EDGE || n == 1)
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    int64_t at = 0, step = i < 0 ? -1 : 1;
    for (int64_t left = i < 0 ? -i : i, turn = step; left > 0; left--) {
        if (mode == REFLECT && (at + turn < 0 || at + turn >= n))
            turn = -turn;
        at += turn;
        if (mode == WRAP)
            at = (at + n) % n;
    }
    return at;
}

static int64_t pad_source(const void *context, const int64_t *at)
{
    const struct pad *p = context;
    int64_t from[TSSA_MAX_RANK];
    for (int i = 0; i < p->x->rank; i++) {
        int64_t low = p->before[i] < 0 ? -p->before[i] : 0;
        int64_t high = p->x->dims[i] + (p->after[i] < 0 ? p->after[i] : 0);
        int64_t where = at[i] - p->before[i];
        if (where < low || where >= high) {
            if (p->mode == CONSTANT)
                return -1;
            where = low + walk(p->mode, high - low, where - low);
        }
        from[i] = where;
    }
    return flat_index(p->x->rank, p->x->dims, from);
}

static void test_pad(void **state)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    struct random random = {11};
    (void)state;
    for (int round = 0; round < 4 * ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 0, 4), n = 0;
        int64_t dims[TSSA_MAX_RANK], result[TSSA_MAX_RANK], pads[2 * TSSA_MAX_RANK];
        int64_t axes[TSSA_MAX_RANK], chosen[TSSA_MAX_RANK] = {0};
        bool with_axes = random_int(&random, 0, 1);
        struct pad pad = {.mode = (enum mode)random_int(&random, 0, 3)};
        some_dims(&random, rank, dims);
        for (int i = 0; i < rank; i++) {
            result[i] = dims[i];
            if (with_axes && random_int(&random, 0, 1))
                continue;
            /* Negative pads leave at least one element where that is repeated. */
            int64_t spare = pad.mode == CONSTANT || dims[i] == 0 ? dims[i] : dims[i] - 1;
            int64_t most = dims[i] == 0 && pad.mode != CONSTANT ? 0 : 7;
            pad.before[i] = random_int(&random, -spare, most);
            spare += pad.before[i] < 0 ? pad.before[i] : 0;
            pad.after[i] = random_int(&random, -spare, most);
            result[i] += pad.before[i] + pad.after[i];
            chosen[n] = i;
            axes[n++] = random_int(&random, 0, 1) ? i : i - rank;
        }
        for (int i = 0; i < n; i++) {
            pads[i] = pad.before[chosen[i]];
            pads[n + i] = pad.after[chosen[i]];
        }
        op_open(&run, IR_OP_Pad, 4, 1);
        op_string(&run, "mode", names[pad.mode]);
        tssa_dtype dtype = some_type(&random);
        pad.x = op_random(&run, 0, &random, dtype, rank, dims);
        op_input_ints(&run, 1, TSSA_INT64, 1, 2 * n, pads);
        const struct tensor *value = op_random(&run, 2, &random, dtype, 0, NULL);
        if (with_axes)
            op_input_ints(&run, 3, TSSA_INT32, 1, n, axes);
        op_go(&run);
        op_expect_moved(&run, 0, pad.x, rank, result, pad_source, &pad, value->data);
        op_close(&run);
    }
}

static void test_pad_default_values(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Pad, 2, 1);
    ((tssa_string *)op_input(&run, 0, TSSA_STRING, 1, (int64_t[]){1})->data)[0] =
        (tssa_string){"x", 1};
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){1, 0});
    op_go(&run);
    const tssa_string *y = op_output(&run, 0, TSSA_STRING, 1, (int64_t[]){2})->data;
    assert_int_equal(y[0].size, 0);
    assert_non_null(y[0].data);
    assert_int_equal(y[1].size, 1);
    op_input_ints(&run, 0, TSSA_INT32, 1, 2, (int64_t[]){7, 8});
    op_go(&run);
    op_expect_ints(&run, 0, 1, (int64_t[]){3}, (int64_t[]){0, 7, 8});
    op_close(&run);
}

static void test_pad_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Pad, 4, 1);
    op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){2, 3});
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){1, 1});
    op_fails(&run, "not two for each of 2 axes");
    op_input_ints(&run, 1, TSSA_INT64, 1, 4, (int64_t[]){0, -2, 0, -2});
    op_fails(&run, "cannot pad axis 1");
    op_input_ints(&run, 1, TSSA_INT64, 1, 4, (int64_t[]){0, INT64_MIN, 0, INT64_MAX});
    op_fails(&run, "cannot pad axis 1");
    op_input_ints(&run, 1, TSSA_INT64, 1, 4, (int64_t[]){INT64_MAX, 0, INT64_MAX, 0});
    op_fails(&run, "cannot pad axis 0");
    op_input_ints(&run, 2, TSSA_INT64, 0, 1, (int64_t[]){0});
    op_fails(&run, "constant_value must be one f32");
    op_close(&run);
    op_open(&run, IR_OP_Pad, 4, 1);
    op_string(&run, "mode", "edge");
    op_input(&run, 0, TSSA_FLOAT, 1, (int64_t[]){0});
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){1, 1});
    op_fails(&run, "no element that could be repeated");
    op_input(&run, 0, TSSA_FLOAT, 1, (int64_t[]){3});
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){-3, 2});
    op_fails(&run, "no element that could be repeated");
    op_input_ints(&run, 3, TSSA_INT64, 1, 2, (int64_t[]){0, 0});
    op_input_ints(&run, 1, TSSA_INT64, 1, 4, (int64_t[]){0, 0, 0, 0});
    op_fails(&run, "padded twice");
    op_string(&run, "mode", "mirror");
    op_fails(&run, "mode is \"mirror\"");
    op_close(&run);
}

static void test_center_crop_pad(void **state)
{
    struct random random = {12};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 1, 4);
        int64_t dims[TSSA_MAX_RANK], result[TSSA_MAX_RANK], shape[TSSA_MAX_RANK];
        struct pad pad = {.mode = CONSTANT};
        some_dims(&random, rank, dims);
        for (int i = 0; i < rank; i++) {
            result[i] = shape[i] = random_int(&random, 0, 8);
            int64_t crop = dims[i] - shape[i], grow = shape[i] - dims[i];
            pad.before[i] = crop > 0 ? -(crop / 2) : grow / 2;
            pad.after[i] = shape[i] - dims[i] - pad.before[i];
        }
        op_open(&run, IR_OP_CenterCropPad, 2, 1);
        pad.x = op_random(&run, 0, &random, some_types[round % 6], rank, dims);
        op_input_ints(&run, 1, TSSA_INT64, 1, rank, shape);
        op_go(&run);
        op_expect_moved(&run, 0, pad.x, rank, result, pad_source, &pad, (char[16]){0});
        op_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_transpose_of_matrices),
        cmocka_unit_test(test_transpose_of_large),
        cmocka_unit_test(test_transpose_refuses),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_blocks_refuse),
        cmocka_unit_test(test_slice),
        cmocka_unit_test(test_slice_refuses),
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_tile),
        cmocka_unit_test(test_tile_of_highest_rank),
        cmocka_unit_test(test_expand_and_tile_refuse),
        cmocka_unit_test(test_reverse_sequence),
        cmocka_unit_test(test_reverse_sequence_refuses),
        cmocka_unit_test(test_trilu),
        cmocka_unit_test(test_concat),
        cmocka_unit_test(test_concat_refuses_and_skips),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_split_refuses),
        cmocka_unit_test(test_pad),
        cmocka_unit_test(test_pad_default_values),
        cmocka_unit_test(test_pad_refuses),
        cmocka_unit_test(test_center_crop_pad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
