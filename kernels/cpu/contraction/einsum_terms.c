/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Einsum as it is written: all operands' terms, one after the other, operands from the left, labels
 * in the order in which they first appear, the last one fastest. DOUBLE in double, narrower floats
 * in float32, integers exactly.
 */
#include <string.h>

#include "kernels/cpu/contraction/einsum.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce_levels.h"

/* The summed labels as an odometer over all operands' offsets, but for the last one, `inner`
 * elements with their steps. */
struct odometer {
    int rank;
    int64_t inner, steps[EINSUM_MAX_OPERANDS];
    int64_t sizes[EINSUM_MAX_LABELS], at[EINSUM_MAX_LABELS];
    int labels[EINSUM_MAX_LABELS];
};

static void odometer_init(const struct einsum_job *job, struct odometer *o)
{
    memset(o, 0, sizeof *o);
    for (int l = 0; l < job->axes.n_labels; l++)
        if (!job->kept[l]) {
            o->sizes[o->rank] = job->sizes[l];
            o->labels[o->rank++] = l;
        }
    o->inner = 1;
    if (o->rank == 0)
        return;
    o->inner = o->sizes[--o->rank];
    for (int i = 0; i < job->n_operands; i++)
        o->steps[i] = job->strides[i][o->labels[o->rank]];
}

/* One step on; false after the last. Offsets follow. */
static bool odometer_next(const struct einsum_job *job, struct odometer *o, int64_t *offsets)
{
    for (int d = o->rank - 1; d >= 0; d--) {
        bool carry = ++o->at[d] == o->sizes[d];
        int64_t steps = carry ? 1 - o->sizes[d] : 1;
        for (int i = 0; i < job->n_operands; i++)
            offsets[i] += steps * job->strides[i][o->labels[d]];
        if (!carry)
            return true;
        o->at[d] = 0;
    }
    return false;
}

/* Where each operand starts for output element `index`. */
static void start_offsets(const struct einsum_job *job, int64_t index, int64_t *offsets)
{
    memset(offsets, 0, (size_t)job->n_operands * sizeof *offsets);
    for (int d = job->axes.out_rank - 1; d >= 0; d--) {
        int label = job->axes.out[d];
        for (int i = 0; i < job->n_operands; i++)
            offsets[i] += index % job->sizes[label] * job->strides[i][label];
        index /= job->sizes[label];
    }
}

struct direct {
    const struct einsum_job *job;
    bool empty; /* a summed label has size 0 */
    const void *wide[EINSUM_MAX_OPERANDS];
    void *sums;
};

/* Output elements [begin, end) with all operands of type T: terms in the order of ir/reduction.def
 * for an axis that is not the innermost one. */
#define SUM_RANGE(name, T, T_DTYPE)                                                                \
    /* Terms [at, end) of the odometer's inner elements. */                                        \
    static void name##_terms(const struct direct *direct, const struct odometer *odometer,         \
                             const int64_t *offsets, int64_t at, int64_t end, T *to)               \
    {                                                                                              \
        const int n = direct->job->n_operands;                                                     \
        const T *x = (const T *)direct->wide[0] + offsets[0], *y = NULL;                           \
        T sum = *to;                                                                               \
        if (n > 1)                                                                                 \
            y = (const T *)direct->wide[1] + offsets[1];                                           \
        for (; at < end; at++) {                                                                   \
            T product = x[at * odometer->steps[0]];                                                \
            if (n > 1)                                                                             \
                product *= y[at * odometer->steps[1]];                                             \
            for (int i = 2; i < n; i++)                                                            \
                product *= ((const T *)direct->wide[i])[offsets[i] + at * odometer->steps[i]];     \
            sum += product;                                                                        \
        }                                                                                          \
        *to = sum;                                                                                 \
    }                                                                                              \
    static void name(void *context, int64_t begin, int64_t end)                                    \
    {                                                                                              \
        const struct direct *direct = context;                                                     \
        const struct einsum_job *job = direct->job;                                                \
        const struct reduce_loops *loops = reduce_loops_of(REDUCTION_Sum, T_DTYPE);                \
        int64_t offsets[EINSUM_MAX_OPERANDS];                                                      \
        struct odometer odometer;                                                                  \
        odometer_init(job, &odometer);                                                             \
        for (int64_t at = begin; at < end; at++) {                                                 \
            T sums[REDUCE_LEVELS];                                                                 \
            struct reduce_levels levels;                                                           \
            start_offsets(job, at, offsets);                                                       \
            reduce_levels_begin(&levels, loops, sizeof(T), 1, sums);                               \
            for (bool more = !direct->empty; more; more = odometer_next(job, &odometer, offsets))  \
                for (int64_t i = 0, count; i < odometer.inner; i += count) {                       \
                    count = reduce_levels_room(&levels, odometer.inner - i);                       \
                    name##_terms(direct, &odometer, offsets, i, i + count, sums);                  \
                    reduce_levels_add(&levels, count);                                             \
                }                                                                                  \
            ((T *)direct->sums)[at] = *(const T *)reduce_levels_end(&levels);                      \
        }                                                                                          \
    }

SUM_RANGE(sum_floats, float, TSSA_FLOAT)
SUM_RANGE(sum_doubles, double, TSSA_DOUBLE)
SUM_RANGE(sum_integers, uint64_t, TSSA_UINT64)

tssa_status *einsum_terms(struct kernel_args *args, const struct einsum_job *job)
{
    bool floats = dtype_is_float(job->out->dtype);
    tssa_dtype wide = floats ? computed_in(job->out->dtype) : TSSA_INT64;
    struct buffer *buffers[EINSUM_MAX_OPERANDS + 1] = {NULL};
    struct direct direct = {.job = job};
    int64_t summed = 1, count = (int64_t)tensor_count(job->out);
    tssa_status *status = NULL;
    for (int l = 0; l < job->axes.n_labels; l++)
        if (!job->kept[l] && !i64_mul(summed, job->sizes[l], &summed))
            summed = INT64_MAX;
    direct.empty = summed == 0;
    for (int i = 0; i < job->n_operands && !status; i++) {
        status = elements_of(args, job->operands[i], wide, &buffers[i]);
        direct.wide[i] = status ? NULL : buffers[i]->data;
    }
    if (!status)
        status = kernel_scratch(args, (size_t)count * 8, &buffers[job->n_operands]);
    if (!status) {
        direct.sums = buffers[job->n_operands]->data;
        team_for(args->env->team, count, summed < 32768 ? 1 + 32768 / (summed + 1) : 1,
                 wide == TSSA_FLOAT    ? sum_floats
                 : wide == TSSA_DOUBLE ? sum_doubles
                                       : sum_integers,
                 &direct);
        convert_elements(count, wide, direct.sums, 1, job->out->dtype, job->out->data, 1,
                         &convert_default);
    }
    for (int i = 0; i <= job->n_operands; i++)
        buffer_release(buffers[i]);
    return status;
}
