/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Einsum (ai.onnx 12). Two operands whose labels are batch, row, column and inner ones are a batch of
 * matrix products; everything else is summed as it is written: DOUBLE in double, narrower floats in float32, integers
 * exactly.
 */
#include "ir/einsum.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/gemm.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce_levels.h"
#include "kernels/cpu/lib/strided.h"

struct einsum_state {
    struct library_cache *library;
    struct einsum equation;
};

static tssa_status *einsum_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct einsum_state *made = ARENA_NEW(setup->arena, struct einsum_state);
    TRY_ALLOC(made);
    TRY(einsum_parse(ir_attr_str(op, "equation", ""), &made->equation));
    made->library = ARENA_NEW(setup->arena, struct library_cache);
    TRY_ALLOC(made->library);
    library_cache_open(made->library, setup, false);
    *state = made;
    return NULL;
}

static void einsum_release(const void *state)
{
    library_cache_close(((const struct einsum_state *)state)->library);
}

struct job {
    int n_operands;
    const struct tensor *operands[EINSUM_MAX_OPERANDS];
    struct tensor *out;
    struct einsum_axes axes;
    int64_t sizes[EINSUM_MAX_LABELS];
    /* Per label, in elements; 0 where the operand lacks it or has size 1. */
    int64_t strides[EINSUM_MAX_OPERANDS][EINSUM_MAX_LABELS], out_strides[EINSUM_MAX_LABELS];
    bool kept[EINSUM_MAX_LABELS];
};

/* ---- Shapes --------------------------------------------------------------------------------------- */

static tssa_status *size_labels(struct job *job)
{
    for (int l = 0; l < job->axes.n_labels; l++)
        job->sizes[l] = 1;
    for (int i = 0; i < job->n_operands; i++) {
        const struct tensor *x = job->operands[i];
        for (int d = 0; d < x->rank; d++) {
            int64_t *size = &job->sizes[job->axes.operands[i][d]];
            if (*size != 1 && x->dims[d] != 1 && *size != x->dims[d])
                return ERROR(TSSA_RUNTIME,
                             "axis %d of operand %d has %" PRId64 " elements, its label %" PRId64,
                             d, i, x->dims[d], *size);
            *size = *size == 1 ? x->dims[d] : *size;
        }
    }
    return NULL;
}

/* A label that an operand has twice walks its diagonal. */
static void find_strides(struct job *job)
{
    for (int i = 0; i < job->n_operands; i++) {
        const struct tensor *x = job->operands[i];
        int64_t strides[TSSA_MAX_RANK];
        tensor_strides(x->rank, x->dims, strides);
        for (int d = 0; d < x->rank; d++)
            if (x->dims[d] != 1)
                job->strides[i][job->axes.operands[i][d]] += strides[d];
    }
}

static tssa_status *open_job(struct kernel_args *args, struct job *job)
{
    const struct einsum_state *state = args->state;
    int ranks[EINSUM_MAX_OPERANDS];
    int64_t dims[TSSA_MAX_RANK], strides[TSSA_MAX_RANK];
    if (args->n_inputs > EINSUM_MAX_OPERANDS)
        return ERROR(TSSA_RUNTIME, "%" PRIu32 " operands", args->n_inputs);
    job->n_operands = (int)args->n_inputs;
    for (uint32_t i = 0; i < args->n_inputs; i++) {
        TRY(kernel_tensor(args, i, &job->operands[i]));
        ranks[i] = job->operands[i]->rank;
        if (!dtype_in(args->op->info->types, job->operands[i]->dtype) ||
            job->operands[i]->dtype != job->operands[0]->dtype)
            return ERROR(TSSA_RUNTIME, "the operands must be of one numeric type");
    }
    TRY(einsum_resolve(&state->equation, job->n_operands, ranks, &job->axes));
    TRY(size_labels(job));
    for (int d = 0; d < job->axes.out_rank; d++)
        dims[d] = job->sizes[job->axes.out[d]];
    TRY(kernel_output(args, 0, job->operands[0]->dtype, job->axes.out_rank, dims, &job->out));
    if (!job->out || tensor_count(job->out) == 0)
        return NULL;
    find_strides(job);
    tensor_strides(job->axes.out_rank, dims, strides);
    for (int d = 0; d < job->axes.out_rank; d++) {
        job->out_strides[job->axes.out[d]] = strides[d];
        job->kept[job->axes.out[d]] = true;
    }
    return NULL;
}

/* ---- As written ----------------------------------------------------------------------------------- */

/* The summed labels as an odometer over all operands' offsets, but for the last one, `inner` elements with their
 * steps. */
struct odometer {
    int rank;
    int64_t inner, steps[EINSUM_MAX_OPERANDS];
    int64_t sizes[EINSUM_MAX_LABELS], at[EINSUM_MAX_LABELS];
    int labels[EINSUM_MAX_LABELS];
};

static void odometer_init(const struct job *job, struct odometer *o)
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
static bool odometer_next(const struct job *job, struct odometer *o, int64_t *offsets)
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
static void start_offsets(const struct job *job, int64_t index, int64_t *offsets)
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
    const struct job *job;
    bool empty; /* a summed label has size 0 */
    const void *wide[EINSUM_MAX_OPERANDS];
    void *sums;
};

/* Output elements [begin, end) with all operands of type T: terms in the order of ir/reduction.def for an axis that is
 * not the innermost one. */
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
        const struct job *job = direct->job;                                                       \
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

static tssa_status *sum_directly(struct kernel_args *args, const struct job *job)
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

/* ---- As matrix products --------------------------------------------------------------------------- */

enum group { BATCH, ROW, COLUMN, INNER, GROUPS };

/* The labels of each group, in the output's order, inner ones in the left operand's. */
struct product {
    int count[GROUPS];
    int labels[GROUPS][EINSUM_MAX_LABELS];
    int64_t size[GROUPS];
    bool overflow;
};

static void add_label(const struct job *job, struct product *p, enum group group, int label)
{
    p->labels[group][p->count[group]++] = label;
    p->overflow |= !i64_mul(p->size[group], job->sizes[label], &p->size[group]);
}

/* false when some label is in one operand only and not in the output, or the sizes are absurd. */
static bool group_labels(const struct job *job, struct product *p)
{
    bool has[2][EINSUM_MAX_LABELS] = {{false}};
    memset(p, 0, sizeof *p);
    for (int g = 0; g < GROUPS; g++)
        p->size[g] = 1;
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < job->operands[i]->rank; d++)
            has[i][job->axes.operands[i][d]] = true;
    for (int d = 0; d < job->axes.out_rank; d++) {
        int label = job->axes.out[d];
        add_label(job, p,
                  has[0][label] && has[1][label] ? BATCH
                  : has[0][label]                ? ROW
                                                 : COLUMN,
                  label);
    }
    for (int l = 0; l < job->axes.n_labels; l++)
        if (!job->kept[l]) {
            if (!has[0][l] || !has[1][l])
                return false;
            add_label(job, p, INNER, l);
        }
    return !p->overflow;
}

/* Copies between [group][group]...[group] without gaps and the strides of a tensor. */
static void copy_groups(struct kernel_args *args, const struct job *job, const struct product *p,
                        const enum group *groups, int n_groups, const int64_t *strides, bool pack,
                        void *to, const void *from)
{
    struct strided_box box = {0};
    int64_t dense = 1;
    for (int g = 0; g < n_groups; g++)
        for (int i = 0; i < p->count[groups[g]]; i++) {
            int label = p->labels[groups[g]][i];
            if (job->sizes[label] != 1)
                strided_push(&box, job->sizes[label], 0, strides[label]);
        }
    for (int d = box.rank - 1; d >= 0; d--) {
        box.to[d] = dense;
        dense *= box.dims[d];
        if (!pack) {
            int64_t other = box.from[d];
            box.from[d] = box.to[d];
            box.to[d] = other;
        }
    }
    strided_copy(args->env->team, tssa_dtype_size(job->out->dtype), &box, to, from);
}

static tssa_status *multiply(struct kernel_args *args, const struct job *job,
                             const struct product *p, const char *a, const char *b, char *c)
{
    const struct einsum_state *state = args->state;
    tssa_dtype dtype = job->out->dtype;
    int64_t width = (int64_t)tssa_dtype_size(dtype), m = p->size[ROW], n = p->size[COLUMN],
            k = p->size[INNER];
    for (int64_t i = 0; i < p->size[BATCH]; i++) {
        struct gemm gemm = {.m = m,
                            .n = n,
                            .k = k,
                            .a_row = k,
                            .a_column = 1,
                            .b_row = n,
                            .b_column = 1,
                            .a = a + i * m * k * width,
                            .b = b + i * k * n * width,
                            .c = c + i * m * n * width};
        TRY(gemm_compute(args, state->library, dtype, &gemm));
    }
    return NULL;
}

static tssa_status *pack_size(const struct job *job, const int64_t *sizes, size_t *bytes)
{
    size_t count;
    return tensor_layout(job->out->dtype, 3, sizes, &count, bytes);
}

static tssa_status *sum_products(struct kernel_args *args, const struct job *job,
                                 const struct product *p)
{
    static const enum group a_order[] = {BATCH, ROW, INNER}, b_order[] = {BATCH, INNER, COLUMN},
                            c_order[] = {BATCH, ROW, COLUMN};
    struct buffer *a = NULL, *b = NULL, *c = NULL;
    size_t a_bytes, b_bytes;
    const int64_t *s = p->size;
    TRY(pack_size(job, (const int64_t[]){s[BATCH], s[ROW], s[INNER]}, &a_bytes));
    TRY(pack_size(job, (const int64_t[]){s[BATCH], s[INNER], s[COLUMN]}, &b_bytes));
    tssa_status *status;
    TRY_GOTO(status, kernel_scratch(args, a_bytes, &a), done);
    TRY_GOTO(status, kernel_scratch(args, b_bytes, &b), done);
    TRY_GOTO(status, kernel_scratch(args, tensor_bytes(job->out), &c), done);
    copy_groups(args, job, p, a_order, 3, job->strides[0], true, a->data, job->operands[0]->data);
    copy_groups(args, job, p, b_order, 3, job->strides[1], true, b->data, job->operands[1]->data);
    TRY_GOTO(status, multiply(args, job, p, a->data, b->data, c->data), done);
    copy_groups(args, job, p, c_order, 3, job->out_strides, false, job->out->data, c->data);
done:
    buffer_release(a);
    buffer_release(b);
    buffer_release(c);
    return status;
}

static tssa_status *run_Einsum(struct kernel_args *args)
{
    struct job job = {0};
    struct product product;
    TRY(open_job(args, &job));
    if (!job.out || tensor_count(job.out) == 0)
        return NULL;
    if (job.n_operands == 2 && group_labels(&job, &product))
        return sum_products(args, &job, &product);
    return sum_directly(args, &job);
}

const struct kernel cpu_kernel_Einsum = {
    .prepare = einsum_prepare, .run = run_Einsum, .release = einsum_release};
