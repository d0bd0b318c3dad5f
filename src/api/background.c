/* SPDX-License-Identifier: Apache-2.0 */
#include "api/background.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "ir/copies.h"

struct background {
    const tssa_allocator *allocator;
    struct device_context *device;
    struct ir_graph *graph;    /* until it is the result's */
    const struct ir_graph *of; /* which it is a copy of, and open meanwhile; NULL: of none */
    bool fused;
    struct generation_extras extras;
    int stop; /* can be read: end */
    pid_t owner;
    pthread_t thread;
    uint64_t start;
    atomic_bool done; /* the result is there */
    struct background_result result;
};

static tssa_status *make(struct background *b)
{
    struct ir_graph *graph = b->graph;
    static const tssa_session_options quiet = {.struct_size = sizeof quiet};
    if (!b->fused)
        TRY(session_graph_fuse(graph, b->device, &quiet));
    TRY(session_graph_compile(graph, b->device, b->stop, &quiet, &b->result.report));
    if (!b->result.report.compiled || b->result.report.stopped)
        return NULL;
    b->graph = NULL;
    struct generation *made;
    TRY(generation_create(graph, graph, b->device, b->extras, &made));
    tssa_status *status = generation_place(made); /* no run is to wait for that */
    if (status)
        generation_free(made);
    else
        b->result.generation = made;
    return status;
}

static void *work(void *context)
{
    struct background *b = context;
    b->result.status = make(b);
    b->result.nanoseconds = clock_monotonic() - b->start;
    atomic_store_explicit(&b->done, true, memory_order_release);
    return NULL;
}

/* No signal of the program's is handled by it. It inherits the floating-point mode, which is the
 * usual one here. */
static bool start_thread(struct background *b)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before))
        return false;
    const bool good = pthread_create(&b->thread, NULL, work, b) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

static void release(struct background *b)
{
    if (b->stop >= 0)
        close(b->stop);
    ir_copies_leave(b->of);
    ir_graph_free(b->graph);
    allocator_free(b->allocator, b);
}

struct background *background_start(struct ir_graph *graph, bool fused,
                                    struct device_context *device, struct generation_extras extras)
{
    struct background *b = allocator_calloc(device->allocator, 1, sizeof *b);
    if (!b) {
        ir_graph_free(graph);
        return NULL;
    }
    b->allocator = device->allocator;
    b->device = device;
    b->graph = graph;
    b->of = graph->source;
    ir_copies_open(b->of);
    b->fused = fused;
    b->extras = extras;
    b->owner = getpid();
    b->start = clock_monotonic();
    b->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (b->stop >= 0 && start_thread(b))
        return b;
    release(b);
    return NULL;
}

bool background_is_done(const struct background *background)
{
    return atomic_load_explicit(&background->done, memory_order_acquire);
}

void background_take(struct background *b, struct background_result *result)
{
    if (b->owner == getpid())
        pthread_join(b->thread, NULL);
    *result = b->result;
    release(b);
}

void background_stop(struct background *b)
{
    struct background_result result;
    if (!b)
        return;
    if (!background_is_done(b)) {
        if (b->owner != getpid())
            return;
        eventfd_write(b->stop, 1);
        pthread_join(b->thread, NULL);
        b->owner = 0;
    }
    background_take(b, &result);
    generation_free(result.generation);
    tssa_status_free(result.status);
}
