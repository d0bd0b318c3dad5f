/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Einsum in pairs: the first operand with the second, what comes of them with the third, and so on.
 * Labels that nobody else has, and the result has not, are summed before, as ReduceSum sums them.
 * What two have in common and nobody needs later is the inner axis of a matrix product
 * (lib/gemm.h), or of a batch of them; where there is nothing of that kind, the two are multiplied.
 * What is left is put in the result's order. DOUBLE is computed in double, narrower floats in
 * float32 until the end; integers wrap.
 */
#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/contraction/einsum.h"
#include "kernels/cpu/lib/gemm.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/lib/strided.h"

#define LABELS EINSUM_MAX_LABELS

/* An operand, or what has come of some. */
struct term {
    const void *data;
    struct buffer *buffer; /* that the data is in, where it is the term's own */
    /* in elements; 0: it has not got the label, or with one element only */
    int64_t strides[LABELS];
};

struct pairs {
    struct kernel_args *args;
    const struct einsum_job *job;
    tssa_dtype dtype; /* that is computed in */
    size_t width;
    bool done; /* the last pair's result lies where it belongs */
};

/* Labels, outermost first. */
struct labels {
    int n, at[LABELS];
};

static int64_t count_of(const struct pairs *p, const struct labels *labels)
{
    int64_t count = 1;
    for (int i = 0; i < labels->n; i++)
        count *= p->job->sizes[labels->at[i]];
    return count;
}

/* Those of the term that are marked, by descending stride, behind what is in the list. */
static void add_labels(const struct pairs *p, const struct term *term, const bool *marked,
                       struct labels *labels)
{
    const int first = labels->n;
    for (int l = 0; l < p->job->axes.n_labels; l++) {
        if (!marked[l] || term->strides[l] == 0)
            continue;
        int at = labels->n++;
        for (; at > first && term->strides[labels->at[at - 1]] < term->strides[l]; at--)
            labels->at[at] = labels->at[at - 1];
        labels->at[at] = l;
    }
}

/* Those of the result that are marked, in its order. */
static void add_result_labels(const struct pairs *p, const bool *marked, struct labels *labels)
{
    for (int d = 0; d < p->job->axes.out_rank; d++)
        if (marked[p->job->axes.out[d]])
            labels->at[labels->n++] = p->job->axes.out[d];
}

static void append(struct labels *to, const struct labels *from)
{
    memcpy(to->at + to->n, from->at, (size_t)from->n * sizeof *from->at);
    to->n += from->n;
}

/* Do the term's elements lie in this order, without gaps? */
static bool is_dense(const struct pairs *p, const int64_t *strides, const struct labels *labels)
{
    int64_t stride = 1;
    for (int i = labels->n - 1; i >= 0; i--) {
        if (strides[labels->at[i]] != stride)
            return false;
        stride *= p->job->sizes[labels->at[i]];
    }
    return true;
}

/* Room for a term of these labels in this order. */
static tssa_status *make_term(const struct pairs *p, const struct labels *labels, struct term *term)
{
    int64_t stride = 1;
    size_t bytes;
    memset(term, 0, sizeof *term);
    for (int i = labels->n - 1; i >= 0; i--) {
        term->strides[labels->at[i]] = stride;
        stride *= p->job->sizes[labels->at[i]];
    }
    if (!size_mul((size_t)stride, p->width, &bytes))
        return status_out_of_memory();
    TRY(kernel_scratch(p->args, bytes, &term->buffer));
    term->data = term->buffer->data;
    return NULL;
}

/* Elements of these labels from where the term has them to where `strides` say. */
static void copy_term(const struct pairs *p, const struct term *from, const struct labels *labels,
                      const int64_t *strides, void *to)
{
    struct strided_box box = {0};
    for (int i = 0; i < labels->n; i++) {
        const int l = labels->at[i];
        strided_push(&box, p->job->sizes[l], strides[l], from->strides[l]);
    }
    strided_copy(p->args->env->team, p->width, &box, to, from->data);
}

/* ---- What nobody else has -------------------------------------------------------------------- */

/* The axes of labels that are in order of their strides, neighbours merged. */
static struct axis_nest nest_of(const struct pairs *p, const struct term *term,
                                const struct labels *labels)
{
    struct axis_nest nest = {.count = count_of(p, labels)};
    for (int i = 0; i < labels->n; i++) {
        const int64_t size = p->job->sizes[labels->at[i]], stride = term->strides[labels->at[i]];
        if (nest.rank && nest.strides[nest.rank - 1] == size * stride) {
            nest.sizes[nest.rank - 1] *= size;
            nest.strides[nest.rank - 1] = stride;
        } else {
            nest.sizes[nest.rank] = size;
            nest.strides[nest.rank++] = stride;
        }
    }
    return nest;
}

/* Neighbours that are reduced, or kept, are computed together: of a diagonal, which has none, a
 * copy. */
static tssa_status *make_neighbours(const struct pairs *p, const struct labels *keep,
                                    const struct labels *sum, struct term *term)
{
    struct labels all = *keep;
    struct term copy;
    append(&all, sum);
    for (int i = 0; i < all.n; i++)
        if (term->strides[all.at[i]] == 1)
            return NULL;
    TRY(make_term(p, &all, &copy));
    copy_term(p, term, &all, copy.strides, copy.buffer->data);
    buffer_release(term->buffer);
    *term = copy;
    return NULL;
}

/* Sums over the labels that are not kept, if the term has any. */
static tssa_status *sum_term(const struct pairs *p, const bool *kept, struct term *term)
{
    bool summed[LABELS];
    struct labels keep = {0}, sum = {0};
    struct term made;
    for (int l = 0; l < p->job->axes.n_labels; l++)
        summed[l] = !kept[l];
    add_labels(p, term, kept, &keep);
    add_labels(p, term, summed, &sum);
    if (sum.n == 0)
        return NULL;
    TRY(make_neighbours(p, &keep, &sum, term));
    const struct axis_nest outer = nest_of(p, term, &keep), inner = nest_of(p, term, &sum);
    TRY(make_term(p, &keep, &made));
    const struct tensor from = {.dtype = p->dtype, .data = (void *)term->data};
    struct tensor to = {.dtype = p->dtype, .data = made.buffer->data};
    reduce_tensor(p->args->env->team, REDUCTION_Sum, &from, &outer, &inner, NULL, &to);
    buffer_release(term->buffer);
    *term = made;
    return NULL;
}

/* ---- Products without a sum ------------------------------------------------------------------ */

/* Rows of `n` elements; a step of an operand from one to the next is 0, 1 or anything. */
struct scaling {
    int rank; /* of what the rows are in */
    int64_t sizes[LABELS], a_strides[LABELS], b_strides[LABELS];
    int64_t n, a_step, b_step;
    const char *a, *b;
    char *to;
};

#define SCALE_ROW(name, T, product)                                                                \
    VECTOR_PROCEDURE(                                                                              \
        name, (const T *a, int64_t a_step, const T *b, int64_t b_step, int64_t n, T *restrict to), \
        (a, a_step, b, b_step, n, to))                                                             \
    {                                                                                              \
        if (a_step == 1 && b_step == 1)                                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = product(T, a[i], b[i]);                                                    \
        else if (a_step == 1 && b_step == 0)                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = product(T, a[i], *b);                                                      \
        else if (a_step == 0 && b_step == 1)                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = product(T, *a, b[i]);                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = product(T, a[i * a_step], b[i * b_step]);                                  \
    }                                                                                              \
    static void name##s(void *context, int64_t begin, int64_t end)                                 \
    {                                                                                              \
        const struct scaling *s = context;                                                         \
        for (int64_t row = begin; row < end; row++) {                                              \
            int64_t a = 0, b = 0, rest = row;                                                      \
            for (int d = s->rank - 1; d >= 0; d--) {                                               \
                a += rest % s->sizes[d] * s->a_strides[d];                                         \
                b += rest % s->sizes[d] * s->b_strides[d];                                         \
                rest /= s->sizes[d];                                                               \
            }                                                                                      \
            name((const T *)(const void *)s->a + a, s->a_step, (const T *)(const void *)s->b + b,  \
                 s->b_step, s->n, (T *)(void *)s->to + row * s->n);                                \
        }                                                                                          \
    }

#define TIMES(T, a, b) ((a) * (b))
#define TIMES_WRAPPED(T, a, b) ((T)((uint64_t)(a) * (uint64_t)(b)))
SCALE_ROW(scale_float, float, TIMES)
SCALE_ROW(scale_double, double, TIMES)
SCALE_ROW(scale_u8, uint8_t, TIMES_WRAPPED)
SCALE_ROW(scale_u16, uint16_t, TIMES_WRAPPED)
SCALE_ROW(scale_u32, uint32_t, TIMES_WRAPPED)
SCALE_ROW(scale_u64, uint64_t, TIMES_WRAPPED)

/* Modulo 2^n, signed and unsigned products have the same bits. */
static team_body scale_rows(tssa_dtype dtype)
{
    if (dtype == TSSA_FLOAT || dtype == TSSA_DOUBLE)
        return dtype == TSSA_FLOAT ? scale_floats : scale_doubles;
    switch (tssa_dtype_size(dtype)) {
    case 1:
        return scale_u8s;
    case 2:
        return scale_u16s;
    case 4:
        return scale_u32s;
    default:
        return scale_u64s;
    }
}

/* to[labels] = a * b. */
static void scale(const struct pairs *p, const struct term *a, const struct term *b,
                  const struct labels *labels, void *to)
{
    struct scaling s = {.n = 1, .a = a->data, .b = b->data, .to = to};
    int64_t rows = 1;
    for (int i = 0; i < labels->n; i++) {
        const int l = labels->at[i];
        const int64_t size = p->job->sizes[l];
        const bool merges = s.rank && s.a_strides[s.rank - 1] == size * a->strides[l] &&
                            s.b_strides[s.rank - 1] == size * b->strides[l];
        const int at = merges ? s.rank - 1 : s.rank++;
        s.sizes[at] = merges ? s.sizes[at] * size : size;
        s.a_strides[at] = a->strides[l];
        s.b_strides[at] = b->strides[l];
    }
    if (s.rank) {
        s.n = s.sizes[--s.rank];
        s.a_step = s.a_strides[s.rank];
        s.b_step = s.b_strides[s.rank];
    }
    for (int d = 0; d < s.rank; d++)
        rows *= s.sizes[d];
    team_for(p->args->env->team, rows, 32768 / s.n + 1, scale_rows(p->dtype), &s);
}

/* ---- Products of matrices -------------------------------------------------------------------- */

enum group { BATCH, ROW, COLUMN, INNER, GROUPS };

struct batches {
    const struct gemm *first;
    const struct gemm_loop *loop;
    size_t width;
};

static struct gemm gemm_of_batch(const struct gemm *first, size_t width, int64_t i)
{
    struct gemm gemm = *first;
    gemm.a = (const char *)gemm.a + (size_t)(i * gemm.m * gemm.k) * width;
    gemm.b = (const char *)gemm.b + (size_t)(i * gemm.k * gemm.n) * width;
    gemm.c = (char *)gemm.c + (size_t)(i * gemm.m * gemm.n) * width;
    return gemm;
}

static void run_batches(void *context, int64_t begin, int64_t end)
{
    const struct batches *batches = context;
    for (int64_t i = begin; i < end; i++) {
        const struct gemm gemm = gemm_of_batch(batches->first, batches->width, i);
        gemm_loop_run(batches->loop, &gemm);
    }
}

/* Products below this many multiplications are too small to be worth all threads. */
#define SMALL_WORK (INT64_C(1) << 22)
/* What a thread should have to do, in multiplications. */
#define BATCH_GRAIN 65536

static tssa_status *multiply_batches(const struct pairs *p, const struct gemm *gemm, int64_t count)
{
    const int64_t work = gemm_work(gemm), grain = BATCH_GRAIN / (work > 0 ? work : 1);
    if (count > 1 && work < SMALL_WORK && gemm_has_loop(p->dtype)) {
        struct gemm_loop loop;
        struct batches batches = {gemm, &loop, p->width};
        TRY(gemm_loop_open(p->args, p->job->library, p->dtype, gemm, &loop));
        team_for(p->args->env->team, count, grain > 0 ? grain : 1, run_batches, &batches);
        gemm_loop_close(&loop);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) {
        const struct gemm one = gemm_of_batch(gemm, p->width, i);
        TRY(gemm_compute(p->args, p->job->library, p->dtype, &one));
    }
    return NULL;
}

/* A batch of matrices with these rows and columns: as the term has them, turned or not, or as a
 * copy. *turned: columns are outermost. */
static tssa_status *matrices(const struct pairs *p, const struct term *term,
                             const struct labels *batch, const struct labels *rows,
                             const struct labels *columns, struct term *made, bool *turned)
{
    struct labels plain = *batch, other = *batch;
    append(&plain, rows);
    append(&plain, columns);
    append(&other, columns);
    append(&other, rows);
    *made = *term;
    made->buffer = NULL;
    *turned = false;
    if (is_dense(p, term->strides, &plain))
        return NULL;
    *turned = is_dense(p, term->strides, &other);
    if (*turned)
        return NULL;
    TRY(make_term(p, &plain, made));
    copy_term(p, term, &plain, made->strides, made->buffer->data);
    return NULL;
}

static tssa_status *multiply_matrices(const struct pairs *p, const struct term *a,
                                      const struct term *b, const struct labels *groups, void *to)
{
    struct term left, right = {.buffer = NULL};
    bool left_turned, right_turned;
    const int64_t m = count_of(p, &groups[ROW]), n = count_of(p, &groups[COLUMN]),
                  k = count_of(p, &groups[INNER]);
    TRY(matrices(p, a, &groups[BATCH], &groups[ROW], &groups[INNER], &left, &left_turned));
    tssa_status *status =
        matrices(p, b, &groups[BATCH], &groups[INNER], &groups[COLUMN], &right, &right_turned);
    if (!status) {
        const struct gemm gemm = {.m = m,
                                  .n = n,
                                  .k = k,
                                  .a = left.data,
                                  .a_row = left_turned ? 1 : k,
                                  .a_column = left_turned ? m : 1,
                                  .b = right.data,
                                  .b_row = right_turned ? 1 : n,
                                  .b_column = right_turned ? k : 1,
                                  .c = to};
        status = multiply_batches(p, &gemm, count_of(p, &groups[BATCH]));
    }
    buffer_release(right.buffer);
    buffer_release(left.buffer);
    return status;
}

/* ---- A pair ---------------------------------------------------------------------------------- */

/* The labels of each group; those of the last pair in the result's order. */
static void group_labels(const struct pairs *p, const struct term *a, const struct term *b,
                         const bool *later, bool last, struct labels *groups)
{
    bool marked[GROUPS][LABELS] = {{false}};
    memset(groups, 0, GROUPS * sizeof *groups);
    for (int l = 0; l < p->job->axes.n_labels; l++) {
        const bool in_a = a->strides[l] != 0, in_b = b->strides[l] != 0;
        marked[BATCH][l] = in_a && in_b && later[l];
        marked[INNER][l] = in_a && in_b && !later[l];
        marked[ROW][l] = in_a && !in_b;
        marked[COLUMN][l] = in_b && !in_a;
    }
    for (int g = 0; g < GROUPS; g++)
        if (last && g != INNER)
            add_result_labels(p, marked[g], &groups[g]);
        else
            add_labels(p, g == COLUMN ? b : a, marked[g], &groups[g]);
}

/* All labels of the pair's result: the last one's in its order, if there is nothing to sum. */
static struct labels labels_of_pair(const struct pairs *p, const struct labels *groups, bool last)
{
    struct labels labels = {0};
    bool all[LABELS] = {false};
    for (int g = BATCH; g <= COLUMN; g++)
        append(&labels, &groups[g]);
    if (!last || groups[INNER].n)
        return labels;
    for (int i = 0; i < labels.n; i++)
        all[labels.at[i]] = true;
    labels.n = 0;
    add_result_labels(p, all, &labels);
    return labels;
}

/*
 * Elements of the largest operand and of the result: on the way there may be as many, but for few.
 */
#define FEW 65536
static bool is_too_large(const struct pairs *p, const struct labels *labels)
{
    const struct einsum_job *job = p->job;
    size_t most = tensor_count(job->out) + FEW;
    int64_t count = 1;
    for (int i = 0; i < job->n_operands; i++)
        most += tensor_count(job->operands[i]);
    for (int i = 0; i < labels->n; i++)
        if (!i64_mul(count, job->sizes[labels->at[i]], &count))
            return true;
    return labels->n > TSSA_MAX_RANK || (size_t)count > most;
}

/* Does what comes of the last pair lie in the result as the product makes it? */
static bool goes_straight(const struct pairs *p, const struct labels *groups, bool last)
{
    const struct labels labels = labels_of_pair(p, groups, last);
    return last && p->dtype == p->job->out->dtype && is_dense(p, p->job->out_strides, &labels);
}

/* *a becomes what comes of the two; *too_large: nothing has. */
static tssa_status *multiply(struct pairs *p, struct term *a, const struct term *b,
                             const bool *later, bool last, bool *too_large)
{
    struct labels groups[GROUPS];
    group_labels(p, a, b, later, last, groups);
    const struct labels labels = labels_of_pair(p, groups, last);
    *too_large = is_too_large(p, &labels);
    if (*too_large)
        return NULL;
    struct term made = {.data = p->job->out->data};
    const struct labels turned[GROUPS] = {groups[BATCH], groups[COLUMN], groups[ROW],
                                          groups[INNER]};
    const bool turns = goes_straight(p, turned, last), straight = goes_straight(p, groups, last);
    if (!straight && !turns)
        TRY(make_term(p, &labels, &made));
    tssa_status *status = NULL;
    if (groups[INNER].n == 0)
        scale(p, a, b, &labels, (void *)made.data);
    else if (turns)
        status = multiply_matrices(p, b, a, turned, (void *)made.data);
    else
        status = multiply_matrices(p, a, b, groups, (void *)made.data);
    p->done = straight || turns;
    if (p->done)
        return status;
    buffer_release(a->buffer);
    *a = made;
    return status;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* Which labels operands from `first` on have, and the result. */
static void needed_from(const struct pairs *p, const struct term *terms, int first, bool *needed)
{
    for (int l = 0; l < p->job->axes.n_labels; l++) {
        needed[l] = p->job->kept[l];
        for (int i = first; i < p->job->n_operands; i++)
            needed[l] |= terms[i].strides[l] != 0;
    }
}

static void mark_own(const struct pairs *p, const struct term *term, bool *marked)
{
    for (int l = 0; l < p->job->axes.n_labels; l++)
        marked[l] |= term->strides[l] != 0;
}

/* What is left, in the result's order and type. */
static tssa_status *store(const struct pairs *p, const struct term *term)
{
    const struct einsum_job *job = p->job;
    bool all[LABELS] = {false};
    struct labels labels = {0};
    struct term wide;
    mark_own(p, term, all);
    add_result_labels(p, all, &labels);
    if (p->dtype == job->out->dtype) {
        copy_term(p, term, &labels, job->out_strides, job->out->data);
        return NULL;
    }
    TRY(make_term(p, &labels, &wide));
    copy_term(p, term, &labels, wide.strides, wide.buffer->data);
    convert_elements((int64_t)tensor_count(job->out), p->dtype, wide.data, 1, job->out->dtype,
                     job->out->data, 1, &convert_default);
    buffer_release(wide.buffer);
    return NULL;
}

static tssa_status *sum_pairs(struct pairs *p, struct term *terms, bool *too_large)
{
    const int n = p->job->n_operands;
    bool later[LABELS], needed[LABELS];
    struct term *all = &terms[0];
    for (int i = 1; i < n && !*too_large; i++) {
        needed_from(p, terms, i, needed);
        TRY(sum_term(p, needed, all));
        needed_from(p, terms, i + 1, later);
        memcpy(needed, later, sizeof needed);
        mark_own(p, all, needed);
        TRY(sum_term(p, needed, &terms[i]));
        TRY(multiply(p, all, &terms[i], later, i == n - 1, too_large));
    }
    if (*too_large || p->done)
        return NULL;
    needed_from(p, terms, n, needed);
    TRY(sum_term(p, needed, all));
    return store(p, all);
}

/* Operand i as a term of the type that is computed in. */
static tssa_status *open_term(const struct pairs *p, int i, struct term *term)
{
    const struct einsum_job *job = p->job;
    TRY(elements_as(p->args, job->operands[i], p->dtype, &term->data, &term->buffer));
    memcpy(term->strides, job->strides[i], sizeof term->strides);
    return NULL;
}

tssa_status *einsum_pairs(struct kernel_args *args, const struct einsum_job *job, bool *done)
{
    const tssa_dtype dtype = job->out->dtype;
    struct term terms[EINSUM_MAX_OPERANDS];
    struct pairs p = {.args = args, .job = job};
    bool too_large = false;
    tssa_status *status = NULL;
    memset(terms, 0, (size_t)job->n_operands * sizeof *terms);
    p.dtype = dtype_is_float(dtype) ? computed_in(dtype) : dtype;
    p.width = tssa_dtype_size(p.dtype);
    for (int i = 0; i < job->n_operands && !status; i++)
        status = open_term(&p, i, &terms[i]);
    if (!status)
        status = sum_pairs(&p, terms, &too_large);
    for (int i = job->n_operands - 1; i >= 0; i--)
        buffer_release(terms[i].buffer);
    *done = !status && !too_large;
    return status;
}
