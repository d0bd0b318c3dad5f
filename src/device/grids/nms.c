/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/nms.h"

#include <inttypes.h>
#include <string.h>

#include "device/grids/fused.h"
#include "device/grids/grids.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/sizes.h"
#include "device/grids/texts.h"
#include "gir/grid.h"
#include "ir/fuse.h"

/* Each score is compared with all others of its class: of more the host is sooner done. */
#define MOST_BOXES 65536
/* The text counts them in int. */
#define MOST_RANKED (INT32_MAX - 1024)

enum { BOXES, SCORES, MOST, OVERLAP, SCORE };

struct nms {
    bool center_point_box;
    uint32_t n_operands;
    const void *reads; /* what reads the boxes in the same op (grids_fused_launch); NULL: nothing */
};

static tssa_status *prepare_op(const struct ir_op *op, const struct kernel_setup *setup,
                               struct nms **made)
{
    struct nms *nms = ARENA_NEW(setup->arena, struct nms);
    TRY_ALLOC(nms);
    *nms = (struct nms){ir_attr_int(op, "center_point_box", 0) != 0, op->n_operands, NULL};
    *made = nms;
    TRY(grids_text_want(setup->context, GRIDS_TEXT_KEEP, TSSA_UINT8));
    return grids_text_want(setup->context, GRIDS_TEXT_NMS, TSSA_FLOAT);
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct nms *nms;
    TRY(prepare_op(op, setup, &nms));
    *state = nms;
    return NULL;
}

static tssa_status *prepare_read(const struct ir_op *op, const struct kernel_setup *setup,
                                 const void **state)
{
    struct nms *nms;
    TRY(prepare_op(ir_fuse_boxes(op), setup, &nms));
    TRY(grids_fused_prepare_behind(op, setup, &nms->reads));
    *state = nms;
    return NULL;
}

static void release_read(const void *state)
{
    grids_fused_release(((const struct nms *)state)->reads);
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
    return index < ((const struct nms *)args->state)->n_operands && args->inputs[index];
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
    const struct launch_param params[] = {
        grids_memory(job->scores), grids_memory(grids_buffer(job->order)), grids_number(job->all),
        grids_number(job->n),      grids_number(job->all_scores),          bits(job->score)};
    return launch(args, 0, job->all * grids_ranked_blocks(job->n + 1), params,
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
                                          bits(job->overlap),
                                          grids_number(nms->reads != NULL)};
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

/* ---- Boxes ----------------------------------------------------------------------------------- */

static tssa_status *make_buffers(struct kernel_args *args, struct job *job)
{
    int64_t rows, order;
    size_t bytes;
    if (job->n > MOST_RANKED || !i64_mul(job->all, job->n, &rows) ||
        !i64_add(rows, job->all, &order) || !size_mul((size_t)order, 3 * sizeof(int64_t), &bytes))
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

/* ---- With what reads the boxes --------------------------------------------------------------- */

/* Of as many rows as may be kept. */
static tssa_status *make_results(struct kernel_args *args, int64_t rows)
{
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        const struct ir_type *type = args->op->results[i].type;
        int64_t dims[TSSA_MAX_RANK] = {rows};
        struct tensor *tensor;
        for (int k = 1; k < type->rank; k++)
            if (!grids_tell(args, type->dims[k], &dims[k]))
                return ERROR(TSSA_RUNTIME, "dim %d of result %u has no size", k, (unsigned)i);
        TRY(kernel_output(args, i, type->dtype, type->rank, dims, &tensor));
    }
    return NULL;
}

/* The rows are one operand more. */
static tssa_status *launch_read(struct kernel_args *args, const struct job *job)
{
    const tssa_allocator *allocator = args->env->stream->context->allocator;
    const uint32_t n = args->n_inputs;
    const struct buffer *rows = job->rows;
    const struct value kept = {.kind = TSSA_KIND_TENSOR,
                               .tensor = {.dtype = TSSA_INT64,
                                          .rank = 2,
                                          .dims = {job->limit, 3},
                                          .data = rows->data,
                                          .offset = rows->offset}};
    struct kernel_args more = *args;
    const struct value **inputs = allocator_alloc(allocator, (n + 1) * (sizeof *inputs + 1));
    TRY_ALLOC(inputs);
    bool *on_host = (bool *)(inputs + n + 1);
    memcpy(inputs, args->inputs, n * sizeof *inputs);
    memcpy(on_host, args->on_host, n * sizeof *on_host);
    inputs[n] = &kept;
    on_host[n] = false;
    more.inputs = inputs;
    more.on_host = on_host;
    tssa_status *status = grids_fused_launch(&more, ((const struct nms *)args->state)->reads);
    args->scratch_use = more.scratch_use;
    allocator_free(allocator, inputs);
    return status;
}

/* All is launched before the host waits for how many are kept. */
static tssa_status *read_boxes(struct kernel_args *args, struct job *job)
{
    int64_t total = 0;
    if (job->all != 1)
        return ERROR(TSSA_RUNTIME, "there is not one class");
    job->limit = job->limit < 0 ? 0 : job->limit;
    TRY(make_results(args, job->limit));
    if (job->limit == 0)
        return NULL;
    TRY(make_buffers(args, job));
    TRY(kernel_scratch(args, (size_t)job->limit * 3 * sizeof(int64_t), &job->rows));
    job->kept = grids_buffer(job->rows);
    job->counts = grids_counts(args->env->stream);
    TRY(rank_scores(args, job));
    TRY(choose_boxes(args, job));
    TRY(launch_read(args, job));
    TRY(grids_read_counts(args->env->stream, &total, 1));
    for (uint32_t i = 0; i < args->n_outputs; i++)
        if (args->outputs[i])
            args->outputs[i]->tensor.dims[0] = total;
    return NULL;
}

/* ---- All ------------------------------------------------------------------------------------- */

static tssa_status *run_job(struct kernel_args *args,
                            tssa_status *(*run)(struct kernel_args *args, struct job *job))
{
    struct job job = {0};
    TRY(read_sizes(args, &job));
    TRY(read_limits(args, &job));
    tssa_status *status = run(args, &job);
    buffer_release(job.sums);
    buffer_release(job.rows);
    buffer_release(job.order);
    for (int i = 0; i <= SCORES; i++)
        buffer_release(job.buffers[i]);
    return status;
}

static tssa_status *run(struct kernel_args *args)
{
    return run_job(args, suppress);
}

static tssa_status *run_read(struct kernel_args *args)
{
    return run_job(args, read_boxes);
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

static bool takes(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_NonMaxSuppression) && is_float(op, BOXES) && is_float(op, SCORES) &&
           !has_many(ir_operand(op, SCORES)->type);
}

const struct kernel *grids_nms_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run};
    return takes(op) ? &kernel : NULL;
}

/* Is there a grid of what reads the boxes, that may go over more rows than are kept? */
static bool is_read_freely(const struct ir_op *op, const struct ir_op *nms)
{
    struct gir_grid *grid;
    const char *why;
    tssa_status *status = gir_build_grid_behind(op, op->parent->graph->allocator, &grid, &why);
    const bool good = !status && grid && gir_grid_is_free_of(grid, nms->results[0].type->dims[0]);
    tssa_status_free(status);
    gir_grid_free(grid);
    return good;
}

const struct kernel *grids_nms_find_read(const struct ir_op *op)
{
    static const struct kernel kernel = {
        .prepare = prepare_read, .run = run_read, .release = release_read};
    const struct ir_op *nms = ir_fuse_boxes(op);
    return nms && takes(nms) && is_read_freely(op, nms) ? &kernel : NULL;
}
