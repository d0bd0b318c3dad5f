/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "codegen/process.h"

#define MOST_LANES 8
#define MOST_TRIES 2
/* So long a kernel may take. */
#define MOST_MS 60000

/* A process, and what it has been asked for. */
struct lane {
    struct codegen_process *process; /* NULL: none yet */
    struct codegen_job *job;         /* NULL: nothing */
    uint64_t since;
};

struct batch {
    const tssa_allocator *allocator;
    struct codegen_job *jobs;
    uint32_t n, next; /* next: the first that nobody was asked for */
    enum codegen_level level;
    const cpu_set_t *processors;
    int n_lanes;
    struct lane lanes[MOST_LANES];
};

/* ---- One lane -------------------------------------------------------------------------------- */

/* Its process has ended: what it was asked for is asked of another one, once. */
static void end(struct lane *lane)
{
    char why[64] = "";
    codegen_process_end(lane->process, why, sizeof why);
    lane->process = NULL;
    if (lane->job && (lane->job->message[0] || lane->job->tries == MOST_TRIES)) {
        if (!lane->job->message[0])
            memcpy(lane->job->message, why, sizeof why);
        lane->job = NULL;
    }
}

static void ask(const struct batch *b, struct lane *lane)
{
    struct codegen_job *job = lane->job;
    while (lane->job) {
        if (!lane->process &&
            !(lane->process = codegen_process_start(b->allocator, b->processors, job->message,
                                                    sizeof job->message))) {
            lane->job = NULL;
            return;
        }
        job->tries++;
        lane->since = clock_monotonic();
        if (codegen_process_ask(lane->process, job->kernel, b->level))
            return;
        end(lane);
    }
}

static void hear(const struct batch *b, struct lane *lane)
{
    if (codegen_process_hear(lane->process, b->allocator, lane->job)) {
        lane->job = NULL;
        return;
    }
    end(lane);
    ask(b, lane);
}

static void end_late(struct lane *lane)
{
    if (!lane->job || (clock_monotonic() - lane->since) / 1000000 < MOST_MS)
        return;
    snprintf(lane->job->message, sizeof lane->job->message, "it takes more than %d seconds",
             MOST_MS / 1000);
    end(lane);
}

/* ---- All lanes ------------------------------------------------------------------------------- */

/* False: there is nothing left to wait for. */
static bool occupy(struct batch *b)
{
    bool busy = false;
    for (int i = 0; i < b->n_lanes; i++) {
        struct lane *lane = &b->lanes[i];
        while (!lane->job && b->next < b->n) {
            lane->job = &b->jobs[b->next++];
            ask(b, lane);
        }
        busy |= lane->job != NULL;
    }
    return busy;
}

/* False: stop. */
static bool step(struct batch *b, int stop)
{
    struct pollfd wait[MOST_LANES + 1] = {{.fd = stop, .events = POLLIN}};
    for (int i = 0; i < b->n_lanes; i++)
        wait[i + 1] = (struct pollfd){
            .fd = b->lanes[i].job ? codegen_process_descriptor(b->lanes[i].process) : -1,
            .events = POLLIN};
    const int n = poll(wait, (nfds_t)b->n_lanes + 1, 1000);
    if (n < 0 && errno != EINTR)
        return false;
    if (n > 0 && wait[0].revents)
        return false;
    for (int i = 0; i < b->n_lanes; i++)
        if (n > 0 && wait[i + 1].revents)
            hear(b, &b->lanes[i]);
        else
            end_late(&b->lanes[i]);
    return true;
}

/* ---- Entry ----------------------------------------------------------------------------------- */

/* The idle process is one for the first who comes. One that was inherited is nobody's here. */
static struct codegen_process *take_idle(struct codegen_client *client)
{
    char message[64];
    struct codegen_process *idle = atomic_exchange(&client->idle, NULL);
    if (idle && !codegen_process_is_ours(idle)) {
        codegen_process_end(idle, message, sizeof message);
        idle = NULL;
    }
    return idle;
}

static void give_idle(struct codegen_client *client, struct codegen_process *process)
{
    char message[64];
    codegen_process_end(atomic_exchange(&client->idle, process), message, sizeof message);
}

bool codegen_compile(struct codegen_client *client, const tssa_allocator *allocator,
                     struct codegen_job *jobs, uint32_t n, enum codegen_level level,
                     struct codegen_share share, int stop)
{
    struct batch b = {.allocator = allocator,
                      .jobs = jobs,
                      .n = n,
                      .level = level,
                      .processors = share.processors};
    bool go_on = true;
    b.n_lanes = share.processes < 1            ? 1
                : share.processes > MOST_LANES ? MOST_LANES
                                               : share.processes;
    b.lanes[0].process = take_idle(client);
    while (go_on && occupy(&b))
        go_on = step(&b, stop);
    for (int i = b.n_lanes - 1; i >= 0; i--) {
        struct lane *lane = &b.lanes[i];
        if (i == 0 && go_on && lane->process) {
            give_idle(client, lane->process);
            break;
        }
        lane->job = NULL;
        end(lane);
    }
    return go_on;
}

void codegen_client_close(struct codegen_client *client)
{
    give_idle(client, NULL);
}
