/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NonMaxSuppression-11 of ai.onnx. Boxes are visited from the highest score down, equal scores by
 * index; one is kept unless its overlap with a kept one of its class exceeds the threshold. They
 * come out in that order, on which the passes narrow_selection and known_order count in a session.
 * A NaN score is never kept. Arithmetic in float, as the operands are.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clones.h"

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/selection/rank.h"

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
    return NULL;
}

/* Corners in order. A box without area, or with a NaN, overlaps nothing. */
struct box {
    float top, left, bottom, right, area;
};

static struct box decode(const float *in, bool center)
{
    struct box box;
    if (center) {
        float x = in[0], y = in[1], half_width = in[2] / 2, half_height = in[3] / 2;
        box = (struct box){y - half_height, x - half_width, y + half_height, x + half_width, 0};
    } else {
        box = (struct box){fminf(in[0], in[2]), fminf(in[1], in[3]), fmaxf(in[0], in[2]),
                           fmaxf(in[1], in[3]), 0};
    }
    box.area = (box.bottom - box.top) * (box.right - box.left);
    return box;
}

/* The kept boxes of a class that have an area: LANES at a time in columns, compared at once. */
#define LANES 16
struct pack {
    float top[LANES], left[LANES], bottom[LANES], right[LANES], area[LANES];
};

static void pack_put(struct pack *packs, int64_t i, const struct box *box)
{
    struct pack *pack = &packs[i / LANES];
    int64_t lane = i % LANES;
    if (lane == 0)
        memset(pack, 0, sizeof *pack); /* an empty box overlaps nothing */
    pack->top[lane] = box->top;
    pack->left[lane] = box->left;
    pack->bottom[lane] = box->bottom;
    pack->right[lane] = box->right;
    pack->area[lane] = box->area;
}

/* Does `a`, which has an area, overlap one of the boxes in the packs by more than the threshold? */
VECTOR_FUNCTION(bool, overlaps,
                (const struct box *a, const struct pack *packs, int64_t n, float threshold),
                (a, packs, n, threshold))
{
    float top = a->top, left = a->left, bottom = a->bottom, right = a->right, area = a->area;
    for (const struct pack *p = packs; p < packs + n; p++) {
        int32_t found = 0;
        for (int i = 0; i < LANES; i++) {
            float height = (bottom < p->bottom[i] ? bottom : p->bottom[i]) -
                           (top > p->top[i] ? top : p->top[i]);
            float width = (right < p->right[i] ? right : p->right[i]) -
                          (left > p->left[i] ? left : p->left[i]);
            float shared = height * width;
            bool over = shared / (area + p->area[i] - shared) > threshold;
            found |= (height > 0) & (width > 0) & (p->area[i] > 0) & over;
        }
        if (found)
            return true;
    }
    return false;
}

struct work {
    int64_t classes, boxes, limit; /* at most `limit` kept per class */
    float iou_threshold, score_threshold;
    bool all_scores; /* no score threshold */
    const float *scores;
    const struct box *decoded;
    int64_t *kept, *n_kept; /* [batches * classes, limit] and [batches * classes] */
};

static void run_classes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    for (int64_t c = begin; c < end; c++) {
        struct ranked *heap = scratch;
        struct pack *packs = (struct pack *)(heap + w->boxes);
        const float *scores = w->scores + c * w->boxes;
        const struct box *boxes = w->decoded + c / w->classes * w->boxes;
        int64_t n = 0, count = 0, packed = 0, *kept = w->kept + c * w->limit;
        for (int64_t i = 0; i < w->boxes; i++)
            if (w->all_scores ? !isnan(scores[i]) : scores[i] > w->score_threshold)
                heap[n++] = (struct ranked){rank_key(TSSA_FLOAT, &scores[i], true), i};
        rank_heapify(heap, n);
        while (n > 0 && count < w->limit) {
            int64_t chosen = rank_pop(heap, &n).index;
            const struct box *box = &boxes[chosen];
            if (box->area > 0) {
                if (overlaps(box, packs, (packed + LANES - 1) / LANES, w->iou_threshold))
                    continue;
                pack_put(packs, packed++, box);
            }
            kept[count++] = chosen;
        }
        w->n_kept[c] = count;
    }
}

static tssa_status *write_rows(struct kernel_args *args, const struct work *w, int64_t batches)
{
    int64_t total = 0, n = batches * w->classes;
    for (int64_t c = 0; c < n; c++)
        total += w->n_kept[c];
    struct tensor *out;
    TRY(kernel_output(args, 0, TSSA_INT64, 2, (const int64_t[]){total, 3}, &out));
    if (!out)
        return NULL;
    int64_t *row = out->data;
    for (int64_t c = 0; c < n; c++)
        for (int64_t i = 0; i < w->n_kept[c]; i++, row += 3) {
            row[0] = c / w->classes;
            row[1] = c % w->classes;
            row[2] = w->kept[c * w->limit + i];
        }
    return NULL;
}

/* Scratch: decoded boxes, counts, kept boxes. */
static tssa_status *suppress(struct kernel_args *args, struct work *w, const struct tensor *boxes)
{
    const struct nms *nms = args->state;
    int64_t batches = boxes->dims[0], n_boxes = batches * w->boxes, n_classes, n_kept;
    size_t box_bytes, kept_bytes, count_bytes, bytes;
    if (!i64_mul(batches, w->classes, &n_classes) || !i64_mul(n_classes, w->limit, &n_kept) ||
        !size_mul((size_t)n_boxes, sizeof(struct box), &box_bytes) ||
        !size_mul((size_t)n_kept, sizeof(int64_t), &kept_bytes) ||
        !size_mul((size_t)n_classes, sizeof(int64_t), &count_bytes) ||
        !size_add(kept_bytes, count_bytes, &bytes) || !size_add(bytes, box_bytes, &bytes))
        return ERROR(TSSA_LIMIT, "too many boxes and classes");
    struct buffer *scratch;
    TRY(kernel_scratch(args, bytes, &scratch));
    w->kept = scratch->data;
    w->n_kept = w->kept + n_kept;
    struct box *decoded = (struct box *)(w->n_kept + n_classes);
    const float *corners = boxes->data;
    for (int64_t i = 0; i < n_boxes; i++)
        decoded[i] = decode(corners + 4 * i, nms->center_point_box);
    w->decoded = decoded;
    /* Smaller than the counts above: no overflow. */
    size_t own = (size_t)w->boxes * sizeof(struct ranked) +
                 (size_t)(w->limit / LANES + 1) * sizeof(struct pack);
    tssa_status *status = parts_for(args, n_classes, w->boxes * 4, own, run_classes, w);
    if (!status)
        status = write_rows(args, w, batches);
    buffer_release(scratch);
    return status;
}

static tssa_status *optional_float(struct kernel_args *args, uint32_t index, float *value)
{
    const struct tensor *tensor;
    TRY(kernel_optional_tensor(args, index, &tensor));
    if (!tensor)
        return NULL;
    double number;
    TRY(kernel_scalar_double(args, index, &number));
    *value = (float)number;
    return NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    const struct tensor *boxes, *scores, *most;
    TRY(typed_tensor(args, 0, &boxes));
    TRY(typed_tensor(args, 1, &scores));
    if (boxes->rank != 3 || boxes->dims[2] != 4)
        return operand_error(0, boxes, "boxes of shape [batches, boxes, 4]");
    if (scores->rank != 3 || scores->dims[0] != boxes->dims[0] || scores->dims[2] != boxes->dims[1])
        return operand_error(1, scores, "scores of shape [batches, classes, boxes]");
    struct work work = {.classes = scores->dims[1],
                        .boxes = boxes->dims[1],
                        .all_scores = args->n_inputs < 5 || !args->inputs[4],
                        .scores = scores->data};
    TRY(kernel_optional_tensor(args, 2, &most));
    if (most)
        TRY(kernel_scalar_int(args, 2, &work.limit));
    TRY(optional_float(args, 3, &work.iou_threshold));
    TRY(optional_float(args, 4, &work.score_threshold));
    if (work.limit > work.boxes)
        work.limit = work.boxes;
    if (work.limit <= 0) {
        struct tensor *out;
        return kernel_output(args, 0, TSSA_INT64, 2, (const int64_t[]){0, 3}, &out);
    }
    return suppress(args, &work, boxes);
}

extern const struct kernel cpu_kernel_non_max_suppression;
const struct kernel cpu_kernel_non_max_suppression = {.prepare = prepare, .run = run};
