/* SPDX-License-Identifier: Apache-2.0 */
/* The reference matrix product: rows of the result in blocks of columns; and when a library is
 * asked instead. */
#include "kernels/cpu/lib/gemm.h"

#include "base/clones.h"
#include "device/cpu/provider.h"
#include "kernels/cpu/lib/gemm_dots.h"
#include "kernels/cpu/lib/gemm_panels.h"
#include "kernels/cpu/lib/gemm_rows.h"
#include "kernels/cpu/lib/gemm_streams.h"
#include "kernels/cpu/lib/lines.h"

#define COLUMNS 128

/* Below this many multiplications the call into a library costs more than it saves; below more of
 * them where there is one row, for which a matrix is read that then is in a cache, or where results
 * sum what lies side by side. */
#define LIBRARY_MIN_WORK 2048
#define LIBRARY_MIN_ROW 32768
#define LIBRARY_MIN_DOTS 8192
/* Or where columns fill vectors, or halves of them, and terms are not few: of 16 x 16 x 16 the
 * library takes twice as long, of 32 x 32 x 32 as long. */
#define LIBRARY_MIN_FULL 24576

/* Up to so many columns are computed one by one, in several rows at once. */
#define NARROW 4
#define ROWS 8

/*
 * Rows [begin, end) of c in the unsigned type T: integers wrap, and the order makes no difference.
 */
#define GEMM_ROWS(name, T)                                                                         \
    static void name##_narrow(const struct gemm *g, int64_t begin, int64_t end)                    \
    {                                                                                              \
        for (int64_t j = 0; j < g->n; j++)                                                         \
            for (int64_t i = begin; i < end; i += ROWS) {                                          \
                int64_t rows = end - i < ROWS ? end - i : ROWS;                                    \
                const T *a = (const T *)g->a + i * g->a_row;                                       \
                const T *b = (const T *)g->b + j * g->b_column;                                    \
                uint64_t sums[ROWS] = {0};                                                         \
                for (int64_t k = 0; k < g->k; k++, a += g->a_column, b += g->b_row) {              \
                    if (rows == ROWS)                                                              \
                        for (int r = 0; r < ROWS; r++)                                             \
                            sums[r] += (uint64_t)a[r * g->a_row] * (uint64_t)*b;                   \
                    else                                                                           \
                        for (int64_t r = 0; r < rows; r++)                                         \
                            sums[r] += (uint64_t)a[r * g->a_row] * (uint64_t)*b;                   \
                }                                                                                  \
                for (int64_t r = 0; r < rows; r++)                                                 \
                    ((T *)g->c)[(i + r) * g->n + j] = (T)sums[r];                                  \
            }                                                                                      \
    }                                                                                              \
    VECTOR_PROCEDURE(name, (void *context, int64_t begin, int64_t end), (context, begin, end))     \
    {                                                                                              \
        const struct gemm *g = context;                                                            \
        if (g->n <= NARROW) {                                                                      \
            name##_narrow(g, begin, end);                                                          \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = begin; i < end; i++)                                                      \
            for (int64_t j0 = 0; j0 < g->n; j0 += COLUMNS) {                                       \
                int64_t width = g->n - j0 < COLUMNS ? g->n - j0 : COLUMNS;                         \
                uint64_t sums[COLUMNS] = {0};                                                      \
                for (int64_t k = 0; k < g->k; k++) {                                               \
                    uint64_t a = ((const T *)g->a)[i * g->a_row + k * g->a_column];                \
                    const T *b = (const T *)g->b + k * g->b_row + j0 * g->b_column;                \
                    if (g->b_column == 1)                                                          \
                        for (int64_t j = 0; j < width; j++)                                        \
                            sums[j] += a * (uint64_t)b[j];                                         \
                    else                                                                           \
                        for (int64_t j = 0; j < width; j++)                                        \
                            sums[j] += a * (uint64_t)b[j * g->b_column];                           \
                }                                                                                  \
                T *c = (T *)g->c + i * g->n + j0;                                                  \
                for (int64_t j = 0; j < width; j++)                                                \
                    c[j] = (T)sums[j];                                                             \
            }                                                                                      \
    }

GEMM_ROWS(rows_u8, uint8_t)
GEMM_ROWS(rows_u16, uint16_t)
GEMM_ROWS(rows_u32, uint32_t)
GEMM_ROWS(rows_u64, uint64_t)

static const struct {
    tssa_dtype dtype;
    team_body rows;
} row_loops[] = {
    {TSSA_FLOAT, gemm_rows_f32},
    {TSSA_DOUBLE, gemm_rows_f64},
    /* Modulo 2^n, signed and unsigned products have the same bits. */
    {TSSA_UINT8, rows_u8},
    {TSSA_INT8, rows_u8},
    {TSSA_UINT16, rows_u16},
    {TSSA_INT16, rows_u16},
    {TSSA_UINT32, rows_u32},
    {TSSA_INT32, rows_u32},
    {TSSA_UINT64, rows_u64},
    {TSSA_INT64, rows_u64},
};

static team_body find_rows(tssa_dtype dtype)
{
    for (size_t i = 0; i < sizeof row_loops / sizeof *row_loops; i++)
        if (row_loops[i].dtype == dtype)
            return row_loops[i].rows;
    return NULL;
}

/* What is computed without a library: `count` parts of a result, rows or single elements. */
struct own_loop {
    team_body body;
    int64_t count;
};

/* Results which sum what lies side by side. The smallest ones have the order of all other rows. */
static bool is_dots(tssa_dtype dtype, const struct gemm *gemm)
{
    return dtype == TSSA_FLOAT && gemm_dots_takes(gemm) && gemm_work(gemm) >= LIBRARY_MIN_WORK &&
           gemm_work(gemm) < LIBRARY_MIN_DOTS;
}

/* `body` is NULL where the type has no loop. */
static struct own_loop find_loop(tssa_dtype dtype, const struct gemm *gemm)
{
    return is_dots(dtype, gemm) ? (struct own_loop){gemm_dots_f32, gemm->m * gemm->n}
                                : (struct own_loop){find_rows(dtype), gemm->m};
}

/* Without a library, of a type that has a loop. */
static void run_own(const struct team *team, tssa_dtype dtype, const struct gemm *gemm)
{
    if (gemm_streams_takes(dtype, gemm)) {
        gemm_streams_run(team, gemm);
        return;
    }
    const struct own_loop loop = find_loop(dtype, gemm);
    const int64_t work = gemm->m * gemm->n / loop.count * gemm->k;
    const int64_t grain = 65536 / (work > 0 ? work : 1);
    team_for(team, loop.count, grain > 0 ? grain : 1, loop.body, (void *)gemm);
}

int64_t gemm_work(const struct gemm *gemm)
{
    int64_t work;
    return i64_mul(gemm->m, gemm->n, &work) && i64_mul(work, gemm->k, &work) ? work : INT64_MAX;
}

/* ---- By a library ---------------------------------------------------------------------------- */

static void make_problem(const struct gemm *gemm, tssa_dtype dtype, struct library_problem *problem)
{
    problem->kind = LIBRARY_MATMUL;
    problem->dtype = dtype;
    problem->threads = 0;
    problem->matmul = (struct matmul_problem){.batch = 1,
                                              .m = gemm->m,
                                              .n = gemm->n,
                                              .k = gemm->k,
                                              .a_row = gemm->a_row,
                                              .a_column = gemm->a_column,
                                              .b_row = gemm->b_row,
                                              .b_column = gemm->b_column};
}

/* So many multiplications are worth a call. */
static int64_t least_work(const struct gemm *gemm)
{
    const bool full = gemm->n >= 8 && gemm->n % 4 == 0 && gemm->k >= 8;
    if (gemm->b_column != 1)
        return LIBRARY_MIN_WORK;
    return gemm->m == 1 ? LIBRARY_MIN_ROW : full ? LIBRARY_MIN_FULL : LIBRARY_MIN_WORK;
}

/* False: there is none, or it is not worth it. `keeps_wide`: who asks has the library keep b in
 * float32, which would be widened in each run without it. */
static bool asks_library(struct library_cache *library, tssa_dtype dtype, const struct gemm *gemm,
                         const struct team *team, bool keeps_wide, struct library_problem *problem)
{
    const int64_t work = gemm_work(gemm);
    if (!library || dtype != TSSA_FLOAT || is_dots(dtype, gemm) ||
        (gemm_streams_takes(dtype, gemm) && !keeps_wide) || work < least_work(gemm))
        return false;
    make_problem(gemm, dtype, problem);
    problem->threads = cpu_library_threads(library->context, team, work);
    return problem->threads > 0;
}

static struct library_call call_of(const struct gemm *gemm)
{
    return (struct library_call){.operands = {{(void *)gemm->a, 0}, {(void *)gemm->b, 0}},
                                 .result = {gemm->c, 0}};
}

/* As asks_library. `weights` NULL: b is another one in each run. */
static bool find_problem(const struct kernel_args *args, struct library_cache *library,
                         tssa_dtype dtype, const struct gemm *gemm,
                         const struct library_weights *weights, struct library_problem *problem)
{
    const struct team *team = args->env->team;
    if (!asks_library(library, dtype, gemm, team, weights && weights->widened_bytes, problem))
        return false;
    problem->matmul.b_constant = weights != NULL;
    return true;
}

static tssa_status *by_library(struct kernel_args *args, struct library_cache *library,
                               tssa_dtype dtype, const struct gemm *gemm,
                               const struct library_weights *weights, bool *done)
{
    struct library_problem problem;
    struct library_call call = call_of(gemm);
    *done = false;
    if (!find_problem(args, library, dtype, gemm, weights, &problem))
        return NULL;
    return library_compute(args, library, &problem, weights, &call, done);
}

/* ---- FLOAT16 and BFLOAT16: in float32, rounded once ------------------------------------------ */

struct widened {
    struct gemm gemm; /* in float32 */
    struct buffer *a, *b, *c;
};

static bool is_turned(int64_t row, int64_t column)
{
    return row == 1 && column != 1;
}

/* Of a matrix of rows or of columns the steps in a dense copy. */
static void find_dense(int64_t rows, int64_t columns, int64_t *row, int64_t *column)
{
    const bool turned = is_turned(*row, *column);
    *row = turned ? 1 : columns;
    *column = turned ? rows : 1;
}

/* Such a matrix, dense and in float32; its steps become the copy's. */
static tssa_status *widen(struct kernel_args *args, tssa_dtype dtype, const void *from,
                          int64_t rows, int64_t columns, int64_t *row, int64_t *column,
                          struct buffer **out)
{
    const bool turned = is_turned(*row, *column);
    const int64_t lines = turned ? columns : rows, length = turned ? rows : columns,
                  step = turned ? *column : *row, apart = turned ? 1 : *column;
    size_t count, bytes, width = tssa_dtype_size(dtype);
    TRY(tensor_layout(TSSA_FLOAT, 2, (const int64_t[]){rows, columns}, &count, &bytes));
    TRY(kernel_scratch(args, bytes, out));
    for (int64_t i = 0; i < lines; i++)
        convert_elements(length, dtype, (const char *)from + (size_t)(i * step) * width, apart,
                         TSSA_FLOAT, (float *)(*out)->data + i * length, 1, &convert_default);
    find_dense(rows, columns, row, column);
    return NULL;
}

static void widen_weights(const struct tensor *from, void *to)
{
    convert_elements((int64_t)tensor_count(from), from->dtype, from->data, 1, TSSA_FLOAT, to, 1,
                     &convert_default);
}

static struct library_weights wide_weights(const struct tensor *tensor)
{
    return (struct library_weights){.tensor = tensor,
                                    .widened_bytes =
                                        tensor ? tensor_count(tensor) * sizeof(float) : 0,
                                    .widen = widen_weights};
}

/* Constant weights are widened once, for the library; others, or for no library, in each run. */
static tssa_status *multiply_widened(struct kernel_args *args, struct library_cache *library,
                                     tssa_dtype dtype, const struct gemm *gemm, struct widened *w)
{
    const struct tensor *tensor = gemm->weights;
    const struct library_weights weights = wide_weights(tensor);
    bool done = false;
    if (tensor)
        TRY(by_library(args, library, TSSA_FLOAT, &w->gemm, &weights, &done));
    if (done)
        return NULL;
    if (library)
        library_cache_need(library);
    TRY(widen(args, dtype, gemm->b, gemm->k, gemm->n, &w->gemm.b_row, &w->gemm.b_column, &w->b));
    w->gemm.b = w->b->data;
    return gemm_compute(args, tensor ? NULL : library, TSSA_FLOAT, &w->gemm);
}

static tssa_status *compute_widened(struct kernel_args *args, struct library_cache *library,
                                    tssa_dtype dtype, const struct gemm *gemm, struct widened *w)
{
    size_t count, bytes;
    w->gemm = *gemm;
    w->gemm.weights = NULL;
    TRY(widen(args, dtype, gemm->a, gemm->m, gemm->k, &w->gemm.a_row, &w->gemm.a_column, &w->a));
    w->gemm.a = w->a->data;
    TRY(tensor_layout(TSSA_FLOAT, 2, (const int64_t[]){gemm->m, gemm->n}, &count, &bytes));
    TRY(kernel_scratch(args, bytes, &w->c));
    w->gemm.c = w->c->data;
    TRY(multiply_widened(args, library, dtype, gemm, w));
    convert_elements(gemm->m * gemm->n, TSSA_FLOAT, w->c->data, 1, dtype, gemm->c, 1,
                     &convert_default);
    return NULL;
}

static tssa_status *gemm_widened(struct kernel_args *args, struct library_cache *library,
                                 tssa_dtype dtype, const struct gemm *gemm)
{
    struct widened w = {.a = NULL};
    tssa_status *status = compute_widened(args, library, dtype, gemm, &w);
    buffer_release(w.a);
    buffer_release(w.b);
    buffer_release(w.c);
    return status;
}

/* ---- Before the first run -------------------------------------------------------------------- */

void gemm_get_ready_unknown(struct library_cache *library, tssa_dtype dtype,
                            const struct gemm_panels *panels)
{
    if (!panels && dtype == TSSA_FLOAT)
        cpu_library_get_ready(library->context);
}

static tssa_status *make_ready(struct kernel_args *args, struct library_cache *library,
                               const struct gemm *gemm, const struct library_weights *weights)
{
    struct library_problem problem;
    bool made;
    if (!find_problem(args, library, TSSA_FLOAT, gemm, weights, &problem))
        return NULL;
    cpu_library_get_ready(library->context);
    return library_get_ready(args, library, &problem, weights, &made);
}

/* As multiply_widened has it. */
static tssa_status *make_widened_ready(struct kernel_args *args, struct library_cache *library,
                                       const struct gemm *gemm)
{
    const struct library_weights weights = wide_weights(gemm->weights);
    struct gemm wide = *gemm;
    find_dense(gemm->m, gemm->k, &wide.a_row, &wide.a_column);
    if (!gemm->weights)
        find_dense(gemm->k, gemm->n, &wide.b_row, &wide.b_column);
    return make_ready(args, library, &wide, gemm->weights ? &weights : NULL);
}

tssa_status *gemm_get_ready(struct kernel_args *args, struct library_cache *library,
                            tssa_dtype dtype, const struct gemm *gemm)
{
    const struct library_weights weights = {.tensor = gemm->weights};
    if (gemm->m == 0 || gemm->n == 0 || gemm->panels)
        return NULL;
    if (dtype == TSSA_FLOAT16 || dtype == TSSA_BFLOAT16)
        return make_widened_ready(args, library, gemm);
    return dtype == TSSA_FLOAT ? make_ready(args, library, gemm, gemm->weights ? &weights : NULL)
                               : NULL;
}

/* ---- All ------------------------------------------------------------------------------------- */

bool gemm_has_loop(tssa_dtype dtype)
{
    return find_rows(dtype) != NULL;
}

tssa_status *gemm_loop_open(struct kernel_args *args, struct library_cache *library,
                            tssa_dtype dtype, const struct gemm *gemm, struct gemm_loop *loop)
{
    struct library_problem problem;
    loop->dtype = dtype;
    loop->library = library;
    loop->made = NULL;
    if (!asks_library(library, dtype, gemm, NULL, false, &problem))
        return NULL;
    return library_take(args, library, &problem, NULL, &loop->own, &loop->made);
}

tssa_status *gemm_loop_get_ready(struct kernel_args *args, struct library_cache *library,
                                 tssa_dtype dtype, const struct gemm *gemm)
{
    struct gemm_loop loop;
    TRY(gemm_loop_open(args, library, dtype, gemm, &loop));
    if (loop.made)
        cpu_library_get_ready(library->context);
    gemm_loop_close(&loop);
    return NULL;
}

void gemm_loop_close(struct gemm_loop *loop)
{
    if (loop->made)
        library_give(loop->library, &loop->own, loop->made);
}

void gemm_loop_run(const struct gemm_loop *loop, const struct gemm *gemm)
{
    const struct library_primitive *primitive = loop->made ? loop->made->primitive : NULL;
    struct library_call call = call_of(gemm);
    if (gemm->m > 0 && gemm->n > 0 && !(primitive && primitive->table->run(primitive, NULL, &call)))
        run_own(NULL, loop->dtype, gemm);
}

bool gemm_is_direct(struct library_cache *library, tssa_dtype dtype, const struct gemm *gemm,
                    const struct team *team)
{
    struct library_problem problem;
    if (gemm->m == 0 || gemm->n == 0 || !find_rows(dtype))
        return false;
    return gemm->panels || !asks_library(library, dtype, gemm, team, false, &problem);
}

void gemm_run_direct(const struct team *team, tssa_dtype dtype, const struct gemm *gemm)
{
    if (gemm->panels)
        gemm_panels_run(team, dtype, gemm);
    else
        run_own(team, dtype, gemm);
}

void gemm_place(const struct gemm *gemm, char **data)
{
    data[GEMM_LEFT] = (char *)gemm->a;
    data[GEMM_RIGHT] = (char *)gemm->b;
    data[GEMM_RESULT] = gemm->c;
}

void gemm_move(struct gemm *gemm, char *const *data)
{
    gemm->a = data[GEMM_LEFT];
    gemm->b = data[GEMM_RIGHT];
    gemm->c = data[GEMM_RESULT];
}

tssa_status *gemm_compute(struct kernel_args *args, struct library_cache *library, tssa_dtype dtype,
                          const struct gemm *gemm)
{
    bool done;
    if (gemm->m == 0 || gemm->n == 0)
        return NULL;
    if (!gemm->panels) {
        const struct library_weights weights = {.tensor = gemm->weights};
        TRY(by_library(args, library, dtype, gemm, gemm->weights ? &weights : NULL, &done));
        if (done)
            return NULL;
    }
    if (library && find_rows(dtype))
        library_cache_need(library);
    if (find_rows(dtype))
        gemm_run_direct(args->env->team, dtype, gemm);
    else if (dtype == TSSA_FLOAT16 || dtype == TSSA_BFLOAT16)
        return gemm_widened(args, library, dtype, gemm);
    else
        return ERROR(TSSA_RUNTIME, "there is no product of matrices of type %s",
                     tssa_dtype_name(dtype));
    return NULL;
}
