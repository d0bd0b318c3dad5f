/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/nms.h"

#include <inttypes.h>
#include <string.h>

#include "device/grids/grids.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/texts.h"

/* Each score is compared with all others of its class: of more the host is sooner done. */
#define MOST_BOXES 65536

enum { BOXES, SCORES, MOST, OVERLAP, SCORE };

struct nms {
    bool center_point_box;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct nms *nms = ARENA_NEW(setup->arena, struct nms);
    TRY_ALLOC(nms);
    nms->center_point_box = ir_attr_int(op, "center_point_box", 0) != 0;
    *state = nms;
    TRY(grids_text_want(setup->context, GRIDS_TEXT_KEEP, TSSA_UINT8));
    return grids_text_want(setup->context, GRIDS_TEXT_NMS, TSSA_FLOAT);
}

/* ---- What a call is about -------------------------------------------------------------------- */

struct job {
    int64_t all, classes, n, limit; /* batches * classes, boxes, kept of a class at most */
    float overlap, score;
    bool all_scores; /* no threshold */
    struct device_place boxes, scores, kept, counts;
    struct buffer *buffers[2], *order, *sums, *rows;
};

static tssa_status *unlike(uint32_t index, const struct tensor *tensor, const char *wanted)
{
    char text[160];
    tensor_describe(tensor, text, sizeof text);
    return ERROR(TSSA_RUNTIME, "operand %" PRIu32 " is %s, not %s", index, text, wanted);
}

static tssa_status *read_sizes(const struct kernel_args *args, struct job *job)
{
    const struct tensor *boxes, *scores;
    TRY(kernel_tensor(args, BOXES, &boxes));
    TRY(kernel_tensor(args, SCORES, &scores));
    if (boxes->rank != 3 || boxes->dims[2] != 4)
        return unlike(BOXES, boxes, "boxes of shape [batches, boxes, 4]");
    if (scores->rank != 3 || scores->dims[0] != boxes->dims[0] || scores->dims[2] != boxes->dims[1])
        return unlike(SCORES, scores, "scores of shape [batches, classes, boxes]");
    job->classes = scores->dims[1];
    job->n = boxes->dims[1];
    return i64_mul(boxes->dims[0], job->classes, &job->all)
               ? NULL
               : ERROR(TSSA_LIMIT, "too many boxes and classes");
}

static bool is_given(const struct kernel_args *args, uint32_t index)
{
    return index < args->n_inputs && args->inputs[index];
}

static tssa_status *read_limits(const struct kernel_args *args, struct job *job)
{
    job->all_scores = !is_given(args, SCORE);
    if (is_given(args, MOST))
        TRY(grids_int(args, MOST, &job->limit));
    if (is_given(args, OVERLAP))
        TRY(grids_float(args, OVERLAP, &job->overlap));
    if (is_given(args, SCORE))
        TRY(grids_float(args, SCORE, &job->score));
    if (job->limit > job->n)
        job->limit = job->n;
    return NULL;
}

/* ---- Launches -------------------------------------------------------------------------------- */

static struct launch_param bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return grids_number(bits);
}

static tssa_status *launch(struct kernel_args *args, uint32_t function, int64_t blocks,
                           const struct launch_param *params, uint32_t n)
{
    return grids_launch_text(args->env->stream, GRIDS_TEXT_NMS, TSSA_FLOAT, function, blocks,
                             params, n);
}

static tssa_status *rank_scores(struct kernel_args *args, const struct job *job)
{
    const int64_t threads = grids_threads(args->env->stream->context);
    const struct launch_param params[] = {
        grids_memory(job->scores), grids_memory(grids_buffer(job->order)), grids_number(job->all),
        grids_number(job->n),      grids_number(job->all_scores),          bits(job->score)};
    return launch(args, 0, job->all * (job->n / threads + 1), params,
                  sizeof params / sizeof *params);
}

static tssa_status *choose_boxes(struct kernel_args *args, const struct job *job)
{
    const struct nms *nms = args->state;
    const struct launch_param params[] = {grids_memory(job->boxes),
                                          grids_memory(grids_buffer(job->order)),
                                          grids_memory(job->kept),
                                          grids_memory(job->counts),
                                          grids_number(job->all),
                                          grids_number(job->classes),
                                          grids_number(job->n),
                                          grids_number(job->limit),
                                          grids_number(nms->center_point_box),
                                          bits(job->overlap)};
    return launch(args, 1, job->all, params, sizeof params / sizeof *params);
}

/* How many are kept before each class, and, behind the last one, in all. */
static tssa_status *add_up(struct kernel_args *args, const struct job *job)
{
    const struct launch_param params[] = {grids_memory(job->counts),
                                          grids_memory(grids_counts(args->env->stream)),
                                          grids_number(job->all)};
    return grids_launch_text(args->env->stream, GRIDS_TEXT_KEEP, TSSA_UINT8, 1, 1, params,
                             sizeof params / sizeof *params);
}

static tssa_status *join_rows(struct kernel_args *args, const struct job *job,
                              const struct tensor *y)
{
    const struct launch_param params[] = {grids_memory(job->kept), grids_memory(job->counts),
                                          grids_memory(grids_place(y)), grids_number(job->all),
                                          grids_number(job->limit)};
    return grids_launch_each(args->env->stream, GRIDS_TEXT_NMS, TSSA_FLOAT, 2,
                             job->all * job->limit * 3, params, sizeof params / sizeof *params);
}

/* ---- All ------------------------------------------------------------------------------------- */

static tssa_status *make_buffers(struct kernel_args *args, struct job *job)
{
    int64_t rows, order;
    size_t bytes;
    if (!i64_mul(job->all, job->n, &rows) || !i64_add(rows, job->all, &order) ||
        !size_mul((size_t)order, 3 * sizeof(int64_t), &bytes))
        return ERROR(TSSA_LIMIT, "too many boxes and classes");
    TRY(kernel_scratch(args, (size_t)order * sizeof(int64_t), &job->order));
    TRY(grids_operand(args, BOXES, &job->buffers[BOXES], &job->boxes));
    return grids_operand(args, SCORES, &job->buffers[SCORES], &job->scores);
}

/* Waits for how many boxes are kept. */
static tssa_status *choose(struct kernel_args *args, const struct job *job, int64_t *total)
{
    TRY(rank_scores(args, job));
    TRY(choose_boxes(args, job));
    if (job->all > 1)
        TRY(add_up(args, job));
    return grids_read_counts(args->env->stream, total, 1);
}

/* The rows are where they belong, in a result that has room for more. */
static tssa_status *suppress_one(struct kernel_args *args, struct job *job)
{
    int64_t total;
    struct tensor *y;
    TRY(kernel_output(args, 0, TSSA_INT64, 2, (const int64_t[]){job->limit, 3}, &y));
    if (!y)
        return NULL;
    job->kept = grids_place(y);
    job->counts = grids_counts(args->env->stream);
    TRY(choose(args, job, &total));
    y->dims[0] = total;
    return NULL;
}

static tssa_status *suppress_all(struct kernel_args *args, struct job *job)
{
    const size_t rows = (size_t)(job->all * job->limit); /* not more than scores */
    int64_t total;
    struct tensor *y;
    TRY(kernel_scratch(args, rows * 3 * sizeof(int64_t), &job->rows));
    TRY(kernel_scratch(args, ((size_t)job->all + 1) * sizeof(int64_t), &job->sums));
    job->kept = grids_buffer(job->rows);
    job->counts = grids_buffer(job->sums);
    TRY(choose(args, job, &total));
    TRY(kernel_output(args, 0, TSSA_INT64, 2, (const int64_t[]){total, 3}, &y));
    return y && total ? join_rows(args, job, y) : NULL;
}

static tssa_status *suppress(struct kernel_args *args, struct job *job)
{
    struct tensor *y;
    if (job->all == 0 || job->limit <= 0)
        return kernel_output(args, 0, TSSA_INT64, 2, (const int64_t[]){0, 3}, &y);
    TRY(make_buffers(args, job));
    return job->all == 1 ? suppress_one(args, job) : suppress_all(args, job);
}

static tssa_status *run(struct kernel_args *args)
{
    struct job job = {0};
    TRY(read_sizes(args, &job));
    TRY(read_limits(args, &job));
    tssa_status *status = suppress(args, &job);
    buffer_release(job.sums);
    buffer_release(job.rows);
    buffer_release(job.order);
    for (int i = 0; i <= SCORES; i++)
        buffer_release(job.buffers[i]);
    return status;
}

static bool is_float(const struct ir_op *op, uint32_t index)
{
    const struct ir_value *value = index < op->n_operands ? ir_operand(op, index) : NULL;
    return value && value->type->dtype == TSSA_FLOAT;
}

static bool has_many(const struct ir_type *scores)
{
    int64_t n;
    return scores->rank == 3 && dim_is_const(scores->dims[2], &n) && n > MOST_BOXES;
}

const struct kernel *grids_nms_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run};
    if (!ir_op_is(op, IR_OP_NonMaxSuppression) || !is_float(op, BOXES) || !is_float(op, SCORES) ||
        has_many(ir_operand(op, SCORES)->type))
        return NULL;
    return &kernel;
}
