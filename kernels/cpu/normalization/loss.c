/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NegativeLogLikelihoodLoss-22 and SoftmaxCrossEntropyLoss-13 of ai.onnx. One term per position:
 * minus the log-probability of its target class, times the class's weight. DOUBLE is computed in
 * double, narrower types in float32, operation by operation as ir/composition.def has it.
 */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/normalization/softmax.h"

enum loss_reduction { LOSS_MEAN, LOSS_SUM, LOSS_NONE };

struct loss {
    enum loss_reduction reduction;
    bool softmax; /* the input is scores; else log-probabilities */
    bool ignores;
    int64_t ignore_index;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    static const char *const names[] = {"mean", "sum", "none"};
    struct loss *state = ARENA_NEW(setup->arena, struct loss);
    TRY_ALLOC(state);
    *result = state;
    state->softmax = ir_op_is(op, IR_OP_SoftmaxCrossEntropyLoss);
    state->ignores = ir_attr(op, "ignore_index") != NULL;
    state->ignore_index = ir_attr_int(op, "ignore_index", 0);
    const char *reduction = ir_attr_str(op, "reduction", "mean");
    for (size_t i = 0; i < 3; i++)
        if (strcmp(reduction, names[i]) == 0) {
            state->reduction = (enum loss_reduction)i;
            return NULL;
        }
    return ERROR(TSSA_MALFORMED, "reduction is \"%s\"", reduction);
}

struct work {
    const struct loss *state;
    const struct tensor *in, *target, *weight; /* weight: NULL when there is none */
    const struct tensor *log_prob;             /* the second result; NULL where not wanted */
    const int64_t *targets;                    /* per position */
    const void *weights;                       /* per class, of the type that is computed in */
    struct lines lines;                        /* batches, classes, positions */
    tssa_dtype dtype;                          /* that is computed in */
    size_t width;
    char *term, *factor; /* per position of the batch, of that type */
};

static bool ignored(const struct work *w, int64_t target)
{
    return w->state->ignores && target == w->state->ignore_index;
}

/* Element i of values of the type that is computed in. */
static double get(const struct work *w, const char *values, int64_t i)
{
    return dtype_load_double(w->dtype, values + (size_t)i * w->width);
}

/* Neighbouring positions, one line after the other, or, where they are columns, row by row; and
 * back. */
static void load_lines(const struct work *w, int64_t offset, int64_t lines, char *x)
{
    const int64_t n = w->lines.n, inner = w->lines.inner;
    if (inner == 1)
        load_elements(w->in, offset, 1, lines * n, w->dtype, x);
    for (int64_t c = 0; inner > 1 && c < n; c++)
        load_elements(w->in, offset + c * inner, 1, lines, w->dtype,
                      x + (size_t)(c * lines) * w->width);
}

static void store_lines(const struct work *w, int64_t offset, int64_t lines, const char *x)
{
    const int64_t n = w->lines.n, inner = w->lines.inner;
    if (inner == 1)
        store_elements(w->log_prob, offset, 1, lines * n, w->dtype, x);
    for (int64_t c = 0; inner > 1 && c < n; c++)
        store_elements(w->log_prob, offset + c * inner, 1, lines, w->dtype,
                       x + (size_t)(c * lines) * w->width);
}

/* Terms and factors of `count` positions from p on. The log-probability of class c of the i-th of
 * them is at x[i * step + c * class_step]. */
#define TERMS(name, T)                                                                             \
    static void name(const struct work *w, int64_t p, int64_t count, const T *x, int64_t step,     \
                     int64_t class_step)                                                           \
    {                                                                                              \
        const T *weights = w->weights;                                                             \
        T *term = (T *)(void *)w->term + p, *factor = (T *)(void *)w->factor + p;                  \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const int64_t target = w->targets[p + i];                                              \
            const bool counts = !ignored(w, target);                                               \
            factor[i] = !counts ? 0 : weights ? weights[target] : 1;                               \
            term[i] = counts ? -x[i * step + target * class_step] * factor[i] : 0;                 \
        }                                                                                          \
    }
TERMS(terms_of_floats, float)
TERMS(terms_of_doubles, double)

static void find_terms(const struct work *w, int64_t p, int64_t count, const void *x, int64_t step,
                       int64_t class_step)
{
    if (w->dtype == TSSA_FLOAT)
        terms_of_floats(w, p, count, x, step, class_step);
    else
        terms_of_doubles(w, p, count, x, step, class_step);
}

/* The same where the operand has log-probabilities, from `offset` on. */
static void find_given_terms(const struct work *w, int64_t p, int64_t offset, int64_t count,
                             char *x)
{
    const int64_t inner = w->lines.inner, step = inner > 1 ? 1 : w->lines.n;
    if (w->in->dtype == w->dtype) {
        find_terms(w, p, count, element_at(w->in, offset), step, inner);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        if (!ignored(w, w->targets[p + i]))
            load_elements(w->in, offset + i * step + w->targets[p + i] * inner, 1, 1, w->dtype,
                          x + (size_t)i * w->width);
    find_terms(w, p, count, x, 1, 0);
}

/* How many positions are computed together, at most. */
static int64_t most_positions(const struct work *w)
{
    return w->lines.inner > 1 ? softmax_columns(w->lines.n) : softmax_lines(w->lines.n);
}

static void run_positions(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    int64_t n = w->lines.n, inner = w->lines.inner, most = most_positions(w);
    char *x = scratch, *exps = x + (size_t)(most * n) * w->width;
    for (int64_t p = begin, lines; p < end; p += lines) {
        int64_t offset = p / inner * n * inner + p % inner;
        lines = end - p < most ? end - p : most;
        if (inner > 1 && inner - p % inner < lines)
            lines = inner - p % inner;
        if (!w->state->softmax) {
            find_given_terms(w, p, offset, lines, x);
            continue;
        }
        load_lines(w, offset, lines, x);
        if (inner > 1)
            log_softmax_of_columns(w->dtype, x, exps, lines, n);
        else
            log_softmax_of_lines(w->dtype, x, exps, lines, n);
        if (w->log_prob)
            store_lines(w, offset, lines, x);
        find_terms(w, p, lines, x, inner > 1 ? 1 : n, inner > 1 ? lines : 1);
    }
}

static tssa_status *check_targets(const struct work *w, int64_t count)
{
    for (int64_t p = 0; p < count; p++) {
        int64_t target = w->targets[p];
        if ((target < 0 || target >= w->lines.n) && !ignored(w, target))
            return ERROR(TSSA_RUNTIME, "target %" PRId64 " is not one of %" PRId64 " classes",
                         target, w->lines.n);
    }
    return NULL;
}

static double sum_of(const struct kernel_args *args, const struct work *w, char *values,
                     int64_t count)
{
    const bool marked[1] = {true};
    const struct tensor in = {.dtype = w->dtype, .rank = 1, .dims = {count}, .data = values};
    char sum[sizeof(double)];
    struct tensor out = {.dtype = w->dtype, .data = sum};
    struct axis_nest kept, reduced;
    axis_nest_init(&kept, &in, marked, false);
    axis_nest_init(&reduced, &in, marked, true);
    reduce_tensor(args->env->team, REDUCTION_Sum, &in, &kept, &reduced, NULL, &out);
    return get(w, sum, 0);
}

static tssa_status *reduce(struct kernel_args *args, const struct work *w, int64_t count)
{
    struct tensor *out;
    if (w->state->reduction == LOSS_NONE) {
        TRY(kernel_output(args, 0, w->in->dtype, w->target->rank, w->target->dims, &out));
        if (out)
            store_elements(out, 0, 1, count, w->dtype, w->term);
        return NULL;
    }
    TRY(kernel_output(args, 0, w->in->dtype, 0, NULL, &out));
    if (!out)
        return NULL;
    double sum = sum_of(args, w, w->term, count);
    if (w->state->reduction == LOSS_MEAN)
        sum = rounded_to(w->dtype, sum / sum_of(args, w, w->factor, count));
    store_doubles(out, 0, 1, 1, &sum);
    return NULL;
}

static tssa_status *check_shapes(struct kernel_args *args, struct work *w)
{
    TRY(typed_tensor(args, 0, &w->in));
    TRY(kernel_tensor(args, 1, &w->target));
    const struct tensor *in = w->in, *target = w->target;
    if (in->rank < 2)
        return operand_error(0, in, "a tensor of batches and classes");
    bool fits = target->rank == in->rank - 1 && target->dims[0] == in->dims[0] &&
                dtype_is_integer(target->dtype);
    for (int i = 1; fits && i < target->rank; i++)
        fits = target->dims[i] == in->dims[i + 1];
    if (!fits)
        return operand_error(1, target, "one class for each position of operand 0");
    return typed_vector(args, 2, in->dims[1], true, &w->weight);
}

static tssa_status *run_all(struct kernel_args *args, struct work *work)
{
    const int64_t count = work->lines.outer * work->lines.inner, n = work->lines.n;
    struct tensor *log_prob;
    TRY(check_targets(work, count));
    TRY(kernel_output(args, 1, work->in->dtype, work->in->rank, work->in->dims, &log_prob));
    work->log_prob = log_prob;
    size_t bytes, line;
    if (!size_mul((size_t)count, 2 * work->width, &bytes) ||
        !size_mul((size_t)n, (size_t)(n > 0 ? most_positions(work) : 1) * 2 * work->width, &line))
        return ERROR(TSSA_LIMIT, "too many positions");
    struct buffer *buffer;
    TRY(kernel_scratch(args, bytes, &buffer));
    work->term = buffer->data;
    work->factor = work->term + (size_t)count * work->width;
    tssa_status *status = NULL;
    if (n > 0)
        status = parts_for(args, count, n * 4, line, run_positions, work);
    else /* every target was ignored */
        memset(buffer->data, 0, bytes);
    if (!status)
        status = reduce(args, work, count);
    buffer_release(buffer);
    return status;
}

static tssa_status *run(struct kernel_args *args)
{
    struct work work = {.state = args->state};
    struct buffer *targets = NULL, *weights = NULL;
    const void *elements = NULL;
    TRY(check_shapes(args, &work));
    work.lines = lines_along(work.in, 1);
    work.dtype = computed_in(work.in->dtype);
    work.width = tssa_dtype_size(work.dtype);
    tssa_status *status = elements_as(args, work.target, TSSA_INT64, &elements, &targets);
    work.targets = elements;
    if (!status && work.weight)
        status = elements_as(args, work.weight, work.dtype, &work.weights, &weights);
    if (!status)
        status = run_all(args, &work);
    buffer_release(weights);
    buffer_release(targets);
    return status;
}

extern const struct kernel cpu_kernel_loss;
const struct kernel cpu_kernel_loss = {.prepare = prepare, .run = run};
