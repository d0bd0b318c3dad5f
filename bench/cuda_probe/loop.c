/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/loop.h"

/* What one capture needs. */
struct plan {
    struct loop *loop;
    cuda_function start, next;
    cuda_condition condition;
};

static tssa_status *fill_body(struct card *card, cuda_stream stream, void *data)
{
    struct plan *plan = data;
    if (plan->loop->fill)
        TRY(plan->loop->fill(card, stream, plan->loop->data));
    return CARD_LAUNCH(card, stream, plan->next, 1, 1, &plan->condition, &plan->loop->left);
}

static tssa_status *fill_loop(struct card *card, cuda_stream stream, void *data)
{
    struct plan *plan = data;
    struct loop *loop = plan->loop;
    TRY(graph_condition(card, stream, &plan->condition));
    TRY(CARD_LAUNCH(card, stream, plan->start, 1, 1, &plan->condition, &loop->left, &loop->count));
    return graph_conditional(card, stream, CUDA_CONDITION_WHILE, plan->condition, fill_body, plan,
                             &loop->body);
}

tssa_status *loop_make(struct card *card, struct loop *loop)
{
    struct plan plan = {.loop = loop};
    TRY(card_kernel(card, KERNELS_CONDITION, "loop_start", &plan.start));
    TRY(card_kernel(card, KERNELS_CONDITION, "loop_next", &plan.next));
    TRY(card_zeros(card, sizeof(int), &loop->left));
    return graph_make(card, fill_loop, &plan, &loop->graph);
}

tssa_status *loop_check(struct card *card, struct loop *loop)
{
    int left = -1;
    TRY(graph_run(card, &loop->graph));
    TRY(card_download(card, loop->left, sizeof left, &left));
    if (left != 0)
        return ERROR(TSSA_RUNTIME, "a WHILE of %d iterations ended with %d left", loop->count,
                     left);
    return NULL;
}

static tssa_status *time_count(struct card *card, int count, graph_fill *fill, void *data,
                               struct timing *timing)
{
    struct loop loop = {.count = count, .fill = fill, .data = data};
    TRY(loop_make(card, &loop));
    TRY(loop_check(card, &loop));
    return stopwatch_time(card, graph_run, &loop.graph, 1, timing);
}

tssa_status *loop_time(struct card *card, graph_fill *fill, void *data, struct timing *timing)
{
    enum { SHORT = 10, LONG = 1010 };
    struct timing few, many;
    TRY(time_count(card, SHORT, fill, data, &few));
    TRY(time_count(card, LONG, fill, data, &many));
    timing->median = (many.median - few.median) / (LONG - SHORT);
    timing->least = (many.least - few.least) / (LONG - SHORT);
    return NULL;
}
