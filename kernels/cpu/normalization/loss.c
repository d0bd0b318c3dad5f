/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NegativeLogLikelihoodLoss-22 and SoftmaxCrossEntropyLoss-13 of ai.onnx. One term per position: minus
 * the log-probability of its target class, times the class's weight; summed in double, in order.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"

enum reduction { REDUCTION_MEAN, REDUCTION_SUM, REDUCTION_NONE };

struct loss {
    enum reduction reduction;
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
            state->reduction = (enum reduction)i;
            return NULL;
        }
    return ERROR(TSSA_MALFORMED, "reduction is \"%s\"", reduction);
}

struct work {
    const struct loss *state;
    const struct tensor *in, *target, *weight; /* weight: NULL when there is none */
    const struct tensor *log_prob;             /* the second result; NULL where not wanted */
    struct lines lines;                        /* batches, classes, positions */
    double *term, *factor;                     /* per position of the batch */
};

static int64_t target_at(const struct work *w, int64_t position)
{
    return dtype_load_int64(w->target->dtype, element_at(w->target, position));
}

static bool ignored(const struct work *w, int64_t target)
{
    return w->state->ignores && target == w->state->ignore_index;
}

static void log_softmax(double *x, int64_t n)
{
    double most = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    sum = log(sum);
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] - most - sum;
}

static void run_positions(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    double *x = scratch;
    int64_t n = w->lines.n, inner = w->lines.inner;
    for (int64_t p = begin; p < end; p++) {
        int64_t offset = p / inner * n * inner + p % inner, target = target_at(w, p);
        if (w->state->softmax) {
            load_doubles(w->in, offset, inner, n, x);
            log_softmax(x, n);
            if (w->log_prob)
                store_doubles(w->log_prob, offset, inner, n, x);
        }
        w->factor[p] = w->term[p] = 0;
        if (ignored(w, target))
            continue;
        w->factor[p] = 1;
        if (w->weight)
            load_doubles(w->weight, target, 1, 1, &w->factor[p]);
        if (!w->state->softmax)
            load_doubles(w->in, offset + target * inner, 1, 1, &x[target]);
        w->term[p] = -x[target] * w->factor[p];
    }
}

static tssa_status *check_targets(const struct work *w, int64_t count)
{
    for (int64_t p = 0; p < count; p++) {
        int64_t target = target_at(w, p);
        if ((target < 0 || target >= w->lines.n) && !ignored(w, target))
            return ERROR(TSSA_RUNTIME, "target %" PRId64 " is not one of %" PRId64 " classes",
                         target, w->lines.n);
    }
    return NULL;
}

static tssa_status *reduce(struct kernel_args *args, const struct work *w, int64_t count)
{
    struct tensor *out;
    if (w->state->reduction == REDUCTION_NONE) {
        TRY(kernel_output(args, 0, w->in->dtype, w->target->rank, w->target->dims, &out));
        if (out)
            store_doubles(out, 0, 1, count, w->term);
        return NULL;
    }
    TRY(kernel_output(args, 0, w->in->dtype, 0, NULL, &out));
    if (!out)
        return NULL;
    double sum = 0, factors = 0;
    for (int64_t p = 0; p < count; p++) {
        sum += w->term[p];
        factors += w->factor[p];
    }
    if (w->state->reduction == REDUCTION_MEAN)
        sum /= factors;
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

static tssa_status *run(struct kernel_args *args)
{
    struct work work = {.state = args->state};
    TRY(check_shapes(args, &work));
    work.lines = lines_along(work.in, 1);
    int64_t count = work.lines.outer * work.lines.inner;
    TRY(check_targets(&work, count));
    struct tensor *log_prob;
    TRY(kernel_output(args, 1, work.in->dtype, work.in->rank, work.in->dims, &log_prob));
    work.log_prob = log_prob;
    size_t bytes, line;
    if (!size_mul((size_t)count, 2 * sizeof(double), &bytes) ||
        !size_mul((size_t)work.lines.n, sizeof(double), &line))
        return ERROR(TSSA_LIMIT, "too many positions");
    struct buffer *buffer;
    TRY(kernel_scratch(args, bytes, &buffer));
    work.term = buffer->data;
    work.factor = work.term + count;
    tssa_status *status = NULL;
    if (work.lines.n > 0)
        status = parts_for(args, count, work.lines.n * 4, line, run_positions, &work);
    else /* every target was ignored */
        memset(buffer->data, 0, bytes);
    if (!status)
        status = reduce(args, &work, count);
    buffer_release(buffer);
    return status;
}

extern const struct kernel cpu_kernel_loss;
const struct kernel cpu_kernel_loss = {.prepare = prepare, .run = run};
