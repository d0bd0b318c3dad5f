/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/concurrency.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tools/bench/pace.h"
#include "tools/common/clock.h"

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t waiting;     /* members that are there */
    bool go, cancelled; /* what they wait for */
    size_t count;       /* calls of each */
    uint64_t nanoseconds;
};

struct worker {
    struct crew *crew;
    struct crew_member *member;
    pthread_t thread;
    tssa_status *status;
};

/* False: there is nothing to do. */
static bool wait_for_go(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->waiting++;
    pthread_cond_broadcast(&crew->changed);
    while (!crew->go && !crew->cancelled)
        pthread_cond_wait(&crew->changed, &crew->lock);
    bool go = !crew->cancelled;
    pthread_mutex_unlock(&crew->lock);
    return go;
}

static void *work(void *user)
{
    struct worker *worker = user;
    struct crew_member *member = worker->member;
    double before = pace_read();
    if (!wait_for_go(worker->crew))
        return NULL;
    member->started = clock_now();
    worker->status = measure_calls(member->callee, member->first, worker->crew->count,
                                   member->started + worker->crew->nanoseconds, member->nanoseconds,
                                   &member->done);
    member->ended = clock_now();
    double after = pace_read();
    member->pace = before > after ? before : after;
    return NULL;
}

/* Signals go to the thread that waits for the others. */
static bool start(struct worker *worker)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool good = pthread_create(&worker->thread, NULL, work, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return good;
}

static void release(struct crew *crew, size_t started, bool cancelled)
{
    pthread_mutex_lock(&crew->lock);
    while (crew->waiting < started)
        pthread_cond_wait(&crew->changed, &crew->lock);
    crew->go = !cancelled;
    crew->cancelled = cancelled;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
}

/* The first error; the others are dropped. */
static tssa_status *join(struct worker *workers, size_t n)
{
    tssa_status *first = NULL;
    for (size_t i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
        if (first)
            tssa_status_free(workers[i].status);
        else
            first = workers[i].status;
    }
    return first;
}

tssa_status *crew_run(struct crew_member *members, size_t n, size_t count, uint64_t nanoseconds)
{
    struct crew crew = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER,
                        .count = count,
                        .nanoseconds = nanoseconds};
    struct worker *workers = calloc(n, sizeof *workers);
    TRY_ALLOC(workers);
    size_t started = 0;
    for (; started < n; started++) {
        members[started].done = 0;
        workers[started] = (struct worker){.crew = &crew, .member = &members[started]};
        if (!start(&workers[started]))
            break;
    }
    release(&crew, started, started < n);
    tssa_status *status = join(workers, started);
    free(workers);
    if (!status && started < n)
        status = ERROR(TSSA_LIMIT, "only %zu of %zu threads could be started", started, n);
    return status;
}
