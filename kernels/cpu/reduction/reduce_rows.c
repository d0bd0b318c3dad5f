/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/reduction/reduce_rows.h"

#include <string.h>

#include "base/clones.h"

#define ROW_PART 1024 /* elements of a row that stay in the first-level cache */
#define SHORTEST_ROW 16

/* a[i] with x[i]. */
typedef void (*fold_fn)(void *restrict a, const void *restrict x, int64_t n);

#define ROWS(name, type, each)                                                                     \
    VECTOR_PROCEDURE(name, (void *restrict a_, const void *restrict x_, int64_t n), (a_, x_, n))   \
    {                                                                                              \
        type *restrict a = a_;                                                                     \
        const type *restrict x = x_;                                                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            a[i] = each(a[i], x[i]);                                                               \
    }

#define PLUS(a, x) ((a) + (x))
#define TIMES(a, x) ((a) * (x))
#define LARGER(a, x) ((x) > (a) ? (x) : (a))
#define SMALLER(a, x) ((x) < (a) ? (x) : (a))
/* A NaN, once met, stays. */
#define LARGER_FLOAT(a, x) ((x) > (a) || (x) != (x) ? (x) : (a))
#define SMALLER_FLOAT(a, x) ((x) < (a) || (x) != (x) ? (x) : (a))

/* Unsigned arithmetic wraps. */
ROWS(sum_32, uint32_t, PLUS)
ROWS(sum_64, uint64_t, PLUS)
ROWS(product_32, uint32_t, TIMES)
ROWS(product_64, uint64_t, TIMES)
ROWS(max_32, int32_t, LARGER)
ROWS(max_64, int64_t, LARGER)
ROWS(min_32, int32_t, SMALLER)
ROWS(min_64, int64_t, SMALLER)
ROWS(max_float, float, LARGER_FLOAT)
ROWS(min_float, float, SMALLER_FLOAT)

static fold_fn find_fold(enum row_fold fold, tssa_dtype dtype)
{
    static const fold_fn folds_32[] = {
        [ROW_SUM] = sum_32, [ROW_PRODUCT] = product_32, [ROW_MAX] = max_32, [ROW_MIN] = min_32};
    static const fold_fn folds_64[] = {
        [ROW_SUM] = sum_64, [ROW_PRODUCT] = product_64, [ROW_MAX] = max_64, [ROW_MIN] = min_64};
    static const fold_fn folds_float[] = {[ROW_MAX] = max_float, [ROW_MIN] = min_float};
    return dtype == TSSA_INT32   ? folds_32[fold]
           : dtype == TSSA_INT64 ? folds_64[fold]
           : dtype == TSSA_FLOAT ? folds_float[fold]
                                 : NULL;
}

struct rows {
    fold_fn fold;
    const struct tensor *in;
    struct tensor *out;
    const struct axis_nest *kept, *reduced;
    int64_t run; /* outputs side by side, whose elements are too */
};

static int64_t parts_of_row(const struct rows *r)
{
    return (r->run + ROW_PART - 1) / ROW_PART;
}

/* Part i % parts_of_row() of the i / parts_of_row()-th row of outputs: one row of the operand after the other. */
static void fold_parts(void *context, int64_t begin, int64_t end)
{
    const struct rows *r = context;
    int64_t parts = parts_of_row(r);
    size_t width = tssa_dtype_size(r->in->dtype);
    for (int64_t i = begin; i < end; i++) {
        int64_t skip = i % parts * ROW_PART, first = i / parts * r->run + skip;
        int64_t n = r->run - skip < ROW_PART ? r->run - skip : ROW_PART;
        const char *in =
            (const char *)r->in->data + (size_t)axis_nest_offset(r->kept, first) * width;
        char *out = (char *)r->out->data + (size_t)first * width;
        memcpy(out, in, (size_t)n * width);
        for (int64_t j = 1; j < r->reduced->count; j++)
            r->fold(out, in + (size_t)axis_nest_offset(r->reduced, j) * width, n);
    }
}

int64_t reduce_grain(int64_t reduced)
{
    int64_t grain = 32768 / (reduced > 0 ? reduced : 1);
    return grain > 0 ? grain : 1;
}

bool reduce_rows(const struct team *team, enum row_fold fold, const struct tensor *in,
                 struct tensor *out, const struct axis_nest *kept, const struct axis_nest *reduced)
{
    struct rows r = {
        .fold = find_fold(fold, in->dtype), .in = in, .out = out, .kept = kept, .reduced = reduced};
    if (!r.fold || reduced->count == 0 || kept->count == 0 || kept->rank == 0 ||
        kept->strides[kept->rank - 1] != 1 || kept->sizes[kept->rank - 1] < SHORTEST_ROW)
        return false;
    r.run = kept->sizes[kept->rank - 1];
    int64_t parts = parts_of_row(&r), grain = reduce_grain(reduced->count) / (r.run / parts);
    team_for(team, kept->count / r.run * parts, grain > 0 ? grain : 1, fold_parts, &r);
    return true;
}
