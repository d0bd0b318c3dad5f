/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/attention/attention_rows.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/lib/gemm_dots.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce_levels.h"
#include "kernels/cpu/lib/strided.h"
#include "kernels/cpu/normalization/softmax.h"

/* Queries that are computed together, whose scores are about so many if there are several; and
 * fewer that would be left over with the last ones. */
#define ROWS 24
#define LEFT_OVER 5
#define SCORES_TOGETHER 32768

#define PANEL GEMM_FUSED_PANEL

/* Neighbouring queries of a head; scores of the first so many positions, beyond which all are
 * masked, in rows that fill vectors; and beyond which each row is. */
struct rows {
    int64_t batch, head, query, n, columns, stride;
    int64_t lengths[ROWS + LEFT_OVER];
};

/* Memory of a part, all of the loops' type. */
struct scratch {
    char *keys, *values;             /* a head's, in panels of lib/gemm_fused.h */
    char *scores, *queries, *result; /* [n][stride], [n][size], [n][size] */
    char *line;                      /* of positions, or some: biases, then exponentials */
    char *sums;                      /* of values, at all levels */
};

/* Rows in memory: the first one, and elements from one to the next. */
struct place {
    char *at;
    int64_t row;
};

/* ---- Memory ---------------------------------------------------------------------------------- */

static int64_t rows_together(const struct attention *a)
{
    const int64_t most = SCORES_TOGETHER / (a->total > 0 ? a->total : 1);
    return most < 1 ? 1 : most < ROWS ? most : ROWS;
}

static int64_t in_panels(int64_t columns)
{
    return (columns + PANEL - 1) / PANEL * PANEL;
}

/*
 * Where there is one query, a key is read once: where it lies, if the loop for such products takes
 * it. By the sizes alone, since its order is another one.
 */
static bool is_dots(const struct attention *a)
{
    const struct gemm gemm = {
        .m = 1, .n = a->total, .k = a->k.size, .a_column = 1, .b_row = 1, .b_column = a->k.size};
    return a->q.length == 1 && a->loops->dtype == TSSA_FLOAT && gemm_dots_takes(&gemm);
}

/* Do values fill vectors where they lie? */
static bool is_whole(const struct attention *a)
{
    return a->v.size % GEMM_FUSED_ALIGNED == 0;
}

static int64_t line_size(const struct attention *a)
{
    const int64_t line = (a->total + SOFTMAX_STEP - 1) / SOFTMAX_STEP * SOFTMAX_STEP;
    return line > SOFTMAX_EXPS ? line : SOFTMAX_EXPS;
}

static struct scratch scratch_of(const struct attention *a, char *memory)
{
    const size_t width = a->loops->width;
    const size_t row = (size_t)(rows_together(a) + LEFT_OVER) * width;
    struct scratch s = {.keys = memory};
    s.values = s.keys + (is_dots(a) ? 0 : (size_t)(in_panels(a->total) * a->k.size) * width);
    s.scores = s.values + (is_whole(a) ? 0 : (size_t)(in_panels(a->v.size) * a->total) * width);
    s.queries = s.scores + (size_t)in_panels(a->total) * row;
    s.result = s.queries + (size_t)a->q.size * row;
    s.line = s.result + (size_t)a->v.size * row;
    s.sums = s.line + (size_t)line_size(a) * width;
    return s;
}

bool attention_rows_bytes(const struct attention *a, size_t *bytes)
{
    int64_t all, keys, values, sums;
    return a->total <= INT64_MAX - PANEL && a->v.size <= INT64_MAX - PANEL &&
           i64_mul(in_panels(a->total), a->k.size, &keys) &&
           i64_mul(in_panels(a->v.size), a->total, &values) &&
           i64_add(in_panels(a->total), a->q.size, &all) && i64_add(all, a->v.size, &all) &&
           i64_mul(all, rows_together(a) + LEFT_OVER, &all) &&
           i64_mul(a->v.size, REDUCE_LEVELS, &sums) && i64_add(all, sums, &all) &&
           i64_add(all, line_size(a), &all) && i64_add(all, keys, &all) &&
           i64_add(all, values, &all) && size_mul((size_t)all, a->loops->width, bytes);
}

/* The matrix of so many terms and columns whose element (0, 0) is at `from`, to panels. */
static void pack(const struct attention *a, const char *from, int64_t terms, int64_t term_step,
                 int64_t columns, int64_t column_step, char *to)
{
    const int64_t whole = columns / PANEL, rest = columns % PANEL;
    const size_t width = a->loops->width, panel = (size_t)(terms * PANEL) * width;
    struct strided_box panels = {0}, last = {0};
    strided_push(&panels, whole, terms * PANEL, PANEL * column_step);
    strided_push(&panels, terms, PANEL, term_step);
    strided_push(&panels, PANEL, 1, column_step);
    strided_copy(NULL, width, &panels, to, from);
    if (rest == 0)
        return;
    to += (size_t)whole * panel;
    memset(to, 0, panel);
    strided_push(&last, terms, PANEL, term_step);
    strided_push(&last, rest, 1, column_step);
    strided_copy(NULL, width, &last, to, from + (size_t)(whole * PANEL * column_step) * width);
}

/* ---- Scores ---------------------------------------------------------------------------------- */

/* Positions from here on are masked for query `query`. */
static int64_t masked_from(const struct attention *a, int64_t batch, int64_t query)
{
    int64_t end = a->total, before = a->past;
    if (a->lengths) {
        int64_t valid = ((const int64_t *)a->lengths->data)[batch];
        end = valid < end ? valid : end;
        before = valid < 0 ? INT64_MIN / 2 : valid - a->q.length;
    }
    if (a->attrs->causal && query + before < end)
        end = query + before + 1;
    if (a->mask.tensor && a->mask.length < end)
        end = a->mask.length;
    return end < 0 ? 0 : end;
}

static void mask_scores(const struct attention *a, const struct rows *rows, int64_t row,
                        const struct scratch *s)
{
    const struct attention_loops *loops = a->loops;
    const struct mask *m = &a->mask;
    const int64_t query = rows->query + row, end = rows->lengths[row];
    char *scores = s->scores + (size_t)(row * rows->stride) * loops->width;
    if (m->tensor) {
        load_elements(m->tensor,
                      rows->batch * m->steps[0] + rows->head * m->steps[1] + query * m->steps[2], 1,
                      end, loops->dtype, s->line);
        loops->add_bias(scores, s->line, end, m->tensor->dtype == TSSA_BOOL);
    }
    loops->fill(scores + (size_t)end * loops->width, rows->columns - end, -INFINITY);
}

/* Then all positions have scores. */
static void store_scores(const struct attention *a, const struct rows *rows, enum scores_mode mode,
                         const struct scratch *s)
{
    const int64_t first = (rows->batch * a->q.heads + rows->head) * a->q.length + rows->query;
    if (!a->out[SCORES] || a->attrs->scores != mode)
        return;
    for (int64_t i = 0; i < rows->n; i++)
        store_elements(a->out[SCORES], (first + i) * a->total, 1, a->total, a->loops->dtype,
                       s->scores + (size_t)(i * rows->stride) * a->loops->width);
}

static void softmax_rows(const struct attention *a, const struct rows *rows,
                         const struct scratch *s)
{
    const struct attention_loops *loops = a->loops;
    const int64_t n = rows->columns, stride = rows->stride;
    int64_t lengths[ROWS + LEFT_OVER];
    for (int64_t i = 0; i < rows->n; i++) {
        const char *scores = s->scores + (size_t)(i * stride) * loops->width;
        lengths[i] = loops->all_masked(scores, rows->lengths[i]) ? 0 : rows->lengths[i];
    }
    softmax_of_lines(loops->dtype, s->scores, s->line, rows->n, stride, lengths);
    for (int64_t i = 0; i < rows->n; i++)
        loops->fill(s->scores + (size_t)(i * stride + lengths[i]) * loops->width, n - lengths[i],
                    0);
}

/* The queries, in their tensor if they are of the loops' type. */
static struct place load_queries(const struct attention *a, const struct rows *rows,
                                 const struct scratch *s)
{
    const struct heads *q = &a->q;
    const int64_t from =
        rows->batch * q->batch_step + rows->head * q->head_step + rows->query * q->length_step;
    if (q->tensor->dtype == a->loops->dtype)
        return (struct place){element_at(q->tensor, from), q->length_step};
    for (int64_t k = 0; k < rows->n; k++)
        load_elements(q->tensor, from + k * q->length_step, 1, q->size, a->loops->dtype,
                      s->queries + (size_t)(k * q->size) * a->loops->width);
    return (struct place){s->queries, q->size};
}

static void multiply_keys(const struct attention *a, const struct rows *rows,
                          const struct scratch *s, const char *keys)
{
    const struct place queries = load_queries(a, rows, s);
    const int64_t size = a->q.size;
    if (is_dots(a)) {
        struct gemm dots = {.m = 1, .n = rows->columns, .k = size, .a_column = 1, .b_row = 1};
        dots.a = queries.at;
        dots.b = keys;
        dots.b_column = size;
        dots.c = s->scores;
        gemm_dots_f32(&dots, 0, rows->columns);
        a->loops->scale(s->scores, rows->columns, a->scale);
        return;
    }
    const struct gemm_fused gemm = {.m = rows->n,
                                    .n = rows->columns,
                                    .k = size,
                                    .a = queries.at,
                                    .a_row = queries.row,
                                    .b = s->keys,
                                    .b_row = PANEL,
                                    .b_panel = PANEL * size,
                                    .c = s->scores,
                                    .c_row = rows->stride,
                                    .c_is_whole = true,
                                    .factor = a->scale};
    a->loops->multiply(&gemm);
}

static void score(const struct attention *a, const struct rows *rows, const struct scratch *s,
                  const char *keys)
{
    multiply_keys(a, rows, s, keys);
    store_scores(a, rows, SCORES_RAW, s);
    if (a->attrs->softcap > 0)
        for (int64_t i = 0; i < rows->n; i++)
            a->loops->cap(s->scores + (size_t)(i * rows->stride) * a->loops->width, rows->columns,
                          a->attrs->softcap);
    store_scores(a, rows, SCORES_CAPPED, s);
    for (int64_t i = 0; i < rows->n; i++)
        mask_scores(a, rows, i, s);
    store_scores(a, rows, SCORES_MASKED, s);
    softmax_rows(a, rows, s);
    store_scores(a, rows, SCORES_SOFTMAX, s);
}

/* ---- Values ---------------------------------------------------------------------------------- */

const void *attention_weighed_sum(const struct attention_loops *loops, const void *values,
                                  const void *weights, int64_t rows, int64_t n, bool skips,
                                  void *memory)
{
    struct reduce_levels levels;
    void (*weigh)(const void *, const void *, int64_t, int64_t, void *) =
        skips ? loops->weigh_some : loops->weigh;
    reduce_levels_begin(&levels, reduce_loops_of(REDUCTION_Sum, loops->dtype), loops->width, n,
                        memory);
    for (int64_t row = 0, count; row < rows; row += count) {
        count = reduce_levels_room(&levels, rows - row);
        weigh((const char *)values + (size_t)(row * n) * loops->width,
              (const char *)weights + (size_t)row * loops->width, count, n, levels.memory);
        reduce_levels_add(&levels, count);
    }
    return reduce_levels_end(&levels);
}

/* Query `row` of them in Y, whose rows are those of heads or of all heads together. */
static struct place result_of(const struct attention *a, const struct rows *rows, int64_t row)
{
    const struct tensor *y = a->out[Y];
    const struct heads *q = &a->q;
    const int64_t query = rows->query + row, head = rows->batch * q->heads + rows->head;
    const int64_t at = y->rank == 4 ? head * q->length + query
                                    : (rows->batch * q->length + query) * q->heads + rows->head;
    return (struct place){element_at(y, at * a->v.size), (y->rank == 4 ? 1 : q->heads) * a->v.size};
}

/* What has weight 0 is left out, whatever it is: all other products add to what is finite as well.
 */
static void leave_out(const struct attention *a, const struct rows *rows, const struct scratch *s,
                      const char *values, struct place result)
{
    const size_t width = a->loops->width, size = (size_t)a->v.size * width;
    for (int64_t i = 0; i < rows->n; i++) {
        char *sums = result.at + (size_t)(i * result.row) * width;
        const char *weights = s->scores + (size_t)(i * rows->stride) * width;
        if (!a->loops->all_finite(sums, a->v.size))
            memcpy(sums,
                   attention_weighed_sum(a->loops, values, weights, rows->columns, a->v.size, true,
                                         s->sums),
                   size);
    }
}

static void weigh_values(const struct attention *a, const struct rows *rows,
                         const struct scratch *s, const char *values)
{
    const bool direct = a->out[Y]->dtype == a->loops->dtype;
    const struct place result =
        direct ? result_of(a, rows, 0) : (struct place){s->result, a->v.size};
    const struct gemm_fused gemm = {.m = rows->n,
                                    .n = a->v.size,
                                    .k = rows->columns,
                                    .a = s->scores,
                                    .a_row = rows->stride,
                                    .b = is_whole(a) ? values : s->values,
                                    .b_row = is_whole(a) ? a->v.size : PANEL,
                                    .b_panel = is_whole(a) ? PANEL : PANEL * a->total,
                                    .c = result.at,
                                    .c_row = result.row,
                                    .factor = 1};
    a->loops->multiply(&gemm);
    if (result.row != a->v.size || !a->loops->all_finite(result.at, rows->n * a->v.size))
        leave_out(a, rows, s, values, result);
    for (int64_t i = 0; !direct && i < rows->n; i++)
        convert_elements(a->v.size, a->loops->dtype,
                         s->result + (size_t)(i * a->v.size) * a->loops->width, 1, a->out[Y]->dtype,
                         result_of(a, rows, i).at, 1, &convert_default);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* From query i of all on: of one head, and before `end`. */
static struct rows rows_from(const struct attention *a, int64_t i, int64_t end)
{
    const struct heads *q = &a->q;
    const int64_t most = rows_together(a);
    struct rows rows = {.batch = i / q->length / q->heads,
                        .head = i / q->length % q->heads,
                        .query = i % q->length,
                        .n = q->length - i % q->length,
                        .columns = a->out[SCORES] ? a->total : 0};
    rows.n = rows.n < end - i ? rows.n : end - i;
    rows.n = rows.n <= most + LEFT_OVER ? rows.n : most;
    for (int64_t row = 0; row < rows.n; row++) {
        const int64_t length = masked_from(a, rows.batch, rows.query + row);
        rows.lengths[row] = length;
        rows.columns = length > rows.columns ? length : rows.columns;
    }
    rows.stride = in_panels(rows.columns);
    return rows;
}

void attention_rows(void *context, void *memory, int64_t begin, int64_t end)
{
    const struct attention *a = context;
    const struct scratch s = scratch_of(a, memory);
    const int64_t key = a->k.size, value = a->v.size, width = (int64_t)a->loops->width;
    struct rows rows;
    int64_t packed = -1;
    for (int64_t i = begin; i < end; i += rows.n) {
        rows = rows_from(a, i, end);
        const int64_t group = rows.batch * a->k.heads + rows.head / (a->q.heads / a->k.heads);
        const char *keys = a->keys + group * a->total * key * width;
        const char *values = a->values + group * a->total * value * width;
        if (group != packed && !is_dots(a))
            pack(a, keys, key, 1, a->total, key, s.keys);
        if (group != packed && !is_whole(a))
            pack(a, values, a->total, value, value, 1, s.values);
        packed = group;
        score(a, &rows, &s, keys);
        if (a->out[Y])
            weigh_values(a, &rows, &s, values);
    }
}
