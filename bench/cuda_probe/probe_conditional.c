/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes: whether their kernels load, and what they cost against a loop that the host
 * drives. */
#include <stdlib.h>

#include "bench/cuda_probe/loop.h"
#include "bench/cuda_probe/probe.h"

/* ---- Loading --------------------------------------------------------------------------------- */

/* In two probes: what goes wrong with one kind leaves the other alone. */
static tssa_status *load_and_run(struct card *card, FILE *out, image_kind kind)
{
    struct loop loop = {.count = 3};
    double start = stopwatch_now();
    TRY(card_load(card, KERNELS_CONDITION, kind));
    record_figure(out, (stopwatch_now() - start) * 1e3, "ms", "compile and load");
    record_fact(out, "loads", "yes");
    TRY(loop_make(card, &loop));
    TRY(loop_check(card, &loop));
    record_fact(out, "runs a WHILE node", "yes, 3 iterations");
    return NULL;
}

tssa_status *probe_conditional_cubin(struct card *card, FILE *out)
{
    return load_and_run(card, out, IMAGE_CUBIN);
}

tssa_status *probe_conditional_ptx(struct card *card, FILE *out)
{
    return load_and_run(card, out, IMAGE_PTX);
}

/* ---- Costs ----------------------------------------------------------------------------------- */

struct kernels {
    cuda_function kernel;
    int count;
};

static tssa_status *fill_kernels(struct card *card, cuda_stream stream, void *data)
{
    struct kernels *kernels = data;
    for (int i = 0; i < kernels->count; i++)
        TRY(CARD_LAUNCH(card, stream, kernels->kernel, 1, 1, NULL));
    return NULL;
}

/* A loop whose condition the host reads: what it launches in an iteration, and the number it then
 * reads. */
struct driven {
    cuda_function step;
    cuda_address left;
    int *read; /* pinned */
    struct kernels body;
    bool as_graph; /* the body is launched as this graph */
    struct graph graph;
};

enum { DRIVEN_COUNT = 100 };

static tssa_status *drive(struct card *card, void *data)
{
    struct driven *driven = data;
    for (int i = 0; i < DRIVEN_COUNT; i++) {
        if (driven->as_graph)
            TRY(CARD(card, cuGraphLaunch, driven->graph.exec, card->stream));
        else
            TRY(fill_kernels(card, card->stream, &driven->body));
        TRY(CARD_LAUNCH(card, card->stream, driven->step, 1, 1, &driven->left));
        TRY(CARD(card, cuMemcpyDtoHAsync_v2, driven->read, driven->left, sizeof(int),
                 card->stream));
        TRY(card_sync(card));
    }
    return NULL;
}

/* The same without reading: a trip count that the host knows. */
static tssa_status *drive_blindly(struct card *card, void *data)
{
    struct driven *driven = data;
    for (int i = 0; i < DRIVEN_COUNT; i++) {
        TRY(fill_kernels(card, card->stream, &driven->body));
        TRY(CARD_LAUNCH(card, card->stream, driven->step, 1, 1, &driven->left));
    }
    return card_sync(card);
}

static tssa_status *prepare(struct card *card, struct driven *driven)
{
    void *read;
    TRY(card_kernel(card, KERNELS_BASIC, "step", &driven->step));
    TRY(card_kernel(card, KERNELS_BASIC, "empty", &driven->body.kernel));
    TRY(card_zeros(card, sizeof(int), &driven->left));
    TRY(CARD(card, cuMemAllocHost_v2, &read, sizeof(int)));
    driven->read = read;
    return NULL;
}

static tssa_status *time_host_loops(struct card *card, FILE *out, struct driven *driven)
{
    int kernels = driven->body.count + 1;
    struct timing timing;
    TRY(stopwatch_time(card, drive, driven, DRIVEN_COUNT, &timing));
    record_timing(out, timing, "host, reads the condition, %d kernels", kernels);
    TRY(stopwatch_time(card, drive_blindly, driven, DRIVEN_COUNT, &timing));
    record_timing(out, timing, "host, knows the trip count, %d kernels", kernels);
    if (driven->body.count == 0)
        return NULL;
    TRY(graph_make(card, fill_kernels, &driven->body, &driven->graph));
    driven->as_graph = true;
    TRY(stopwatch_time(card, drive, driven, DRIVEN_COUNT, &timing));
    driven->as_graph = false;
    record_timing(out, timing, "host, a graph per iteration, %d kernels", kernels);
    return NULL;
}

static tssa_status *time_loops(struct card *card, FILE *out, struct driven *driven)
{
    static const int counts[] = {0, 1, 9};
    struct timing timing;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        driven->body.count = counts[i];
        TRY(loop_time(card, fill_kernels, &driven->body, &timing));
        record_timing(out, timing, "WHILE node, %d kernels", counts[i] + 1);
        TRY(time_host_loops(card, out, driven));
    }
    return NULL;
}

tssa_status *probe_while_loop(struct card *card, FILE *out)
{
    struct driven driven = {0};
    TRY(prepare(card, &driven));
    tssa_status *status = time_loops(card, out, &driven);
    tssa_status_free(CARD(card, cuMemFreeHost, driven.read));
    return status;
}

/* ---- A branch in the body -------------------------------------------------------------------- */

struct branch {
    cuda_function decide;
    cuda_address number;
    int period; /* taken when the number is no multiple of it */
    struct kernels body;
};

static tssa_status *fill_branch(struct card *card, cuda_stream stream, void *data)
{
    struct branch *branch = data;
    cuda_condition condition;
    cuda_graph body;
    TRY(graph_condition(card, stream, &condition));
    TRY(CARD_LAUNCH(card, stream, branch->decide, 1, 1, &condition, &branch->number,
                    &branch->period));
    return graph_conditional(card, stream, CUDA_CONDITION_IF, condition, fill_kernels,
                             &branch->body, &body);
}

tssa_status *probe_nested_if(struct card *card, FILE *out)
{
    static const struct {
        const char *name;
        int period;
    } cases[] = {{"never taken", 1}, {"always taken", 2}};
    struct branch branch = {.body.count = 1};
    struct kernels base = {.count = 2};
    struct timing without, with;
    int number = 1;
    TRY(card_kernel(card, KERNELS_BASIC, "empty", &base.kernel));
    TRY(card_kernel(card, KERNELS_CONDITION, "branch", &branch.decide));
    TRY(card_upload(card, &number, sizeof number, &branch.number));
    branch.body.kernel = base.kernel;
    TRY(loop_time(card, fill_kernels, &base, &without));
    record_timing(out, without, "iteration, 2 kernels and no IF");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        branch.period = cases[i].period;
        TRY(loop_time(card, fill_branch, &branch, &with));
        record_timing(out, with, "iteration, a kernel, IF with a kernel, %s", cases[i].name);
        record_figure(out, with.median - without.median, "us", "the IF itself, %s", cases[i].name);
    }
    return NULL;
}
