/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/body.h"

#include <stdlib.h>
#include <string.h>

#include "bench/cuda_probe/loop.h"
#include "bench/cuda_probe/record.h"

/* Libraries load and choose kernels at a first call, so that one is not captured. */
static tssa_status *call_outside(struct card *card, struct body_call *call, void *result)
{
    TRY(call->fill(card, card->stream, call->data));
    return card_download(card, call->result, call->size, result);
}

static tssa_status *call_inside(struct card *card, struct body_call *call, struct loop *loop,
                                void *result)
{
    TRY(CARD(card, cuMemsetD32Async, call->result, 0, call->size / 4, card->stream));
    TRY(card_sync(card));
    TRY(loop_make(card, loop));
    TRY(loop_check(card, loop));
    return card_download(card, call->result, call->size, result);
}

static tssa_status *compare(struct card *card, FILE *out, struct body_call *call, void *outside,
                            void *inside)
{
    struct loop loop = {.count = 10, .fill = call->fill, .data = call->data};
    struct timing timing;
    char kinds[256];
    TRY_ALLOC(outside);
    TRY_ALLOC(inside);
    TRY(call_outside(card, call, outside));
    TRY(call_inside(card, call, &loop, inside));
    TRY(graph_kinds(card, loop.body, kinds, sizeof kinds));
    record_fact(out, call->name, "captured: %s (one kernel is the loop's); result %s", kinds,
                memcmp(outside, inside, call->size) == 0 ? "has the same bits" : "DIFFERS");
    TRY(loop_time(card, call->fill, call->data, &timing));
    record_timing(out, timing, "iteration, %s", call->name);
    return NULL;
}

tssa_status *body_ask(struct card *card, FILE *out, struct body_call *call)
{
    void *outside = calloc(call->size, 1), *inside = calloc(call->size, 1);
    tssa_status *status = compare(card, out, call, outside, inside);
    free(outside);
    free(inside);
    return status_prefix(status, "%s", call->name);
}
