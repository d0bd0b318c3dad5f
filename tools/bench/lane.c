/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/lane.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "tools/bench/concurrency.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/progress.h"

#define BLOCK_NS 5e6      /* of a block, unless a round through the sets takes longer */
#define CREW_BLOCK_NS 1e8 /* where threads have to be started and waited for */
#define ROUNDS 4          /* of a block, where lanes are compared */
#define LEAST_BLOCKS 10   /* that the calls asked for are divided into */
#define MOST_RESERVED 4e6 /* calls that memory is reserved for at once */
#define FOREVER (UINT64_MAX / 2)

/* ---- Lanes ----------------------------------------------------------------------------------- */

tssa_status *lanes_add(struct lanes *lanes, struct subject *subject, size_t concurrency,
                       size_t baseline)
{
    struct lane *more = reallocarray(lanes->items, lanes->count + 1, sizeof *more);
    TRY_ALLOC(more);
    lanes->items = more;
    struct lane *lane = &more[lanes->count];
    *lane = (struct lane){.subject = subject, .concurrency = concurrency, .baseline = baseline};
    lane->callers = calloc(concurrency, sizeof *lane->callers);
    TRY_ALLOC(lane->callers);
    lanes->count++;
    for (size_t i = 0; i < concurrency; i++)
        TRY(caller_open(&lane->callers[i], subject));
    return NULL;
}

void lanes_free(struct lanes *lanes)
{
    for (size_t i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->items[i];
        for (size_t k = 0; k < lane->concurrency; k++)
            caller_close(&lane->callers[k]);
        free(lane->callers);
        samples_free(&lane->samples);
    }
    free(lanes->items);
    pace_free(&lanes->pace);
    *lanes = (struct lanes){0};
}

/* ---- Calls of one lane ----------------------------------------------------------------------- */

/* On a quiet machine a core is taken away once in a while, too. */
#define PREEMPTIONS_PER_SECOND 20

static bool was_preempted(const struct lanes *lanes, long before, double wall_ns)
{
    double count = (double)(machine_preemptions() - before);
    return !lanes->crowded && count > wall_ns * 1e-9 * PREEMPTIONS_PER_SECOND;
}

/* An end from outside is no error. */
static tssa_status *unless_interrupted(tssa_status *status)
{
    if (!interrupt_came())
        return status;
    tssa_status_free(status);
    return NULL;
}

static tssa_status *note(struct lanes *lanes, struct lane *lane, size_t calls, double wall_ns,
                         double pace, bool preempted)
{
    bool good = pace_note(&lanes->pace, pace);
    if (calls)
        good &= samples_end_block(&lane->samples, calls, wall_ns, pace, preempted);
    return good ? NULL : status_out_of_memory();
}

static tssa_status *run_alone(struct lanes *lanes, struct lane *lane, size_t count)
{
    struct samples *samples = &lane->samples;
    size_t done;
    double before = pace_read();
    long preemptions = machine_preemptions();
    uint64_t start = clock_now();
    tssa_status *status =
        unless_interrupted(measure_calls(&lane->callers[0].callee, samples->count, count, FOREVER,
                                         samples->ns + samples->count, &done));
    double wall_ns = (double)(clock_now() - start);
    bool preempted = was_preempted(lanes, preemptions, wall_ns);
    double after = pace_read();
    tssa_status *noted =
        note(lanes, lane, done, wall_ns, before > after ? before : after, preempted);
    if (status)
        tssa_status_free(noted);
    return status ? status : noted;
}

/* Brings the times of all members together. */
static size_t gather(const struct lane *lane, struct crew_member *members, uint64_t *start,
                     uint64_t *end, double *pace)
{
    double *place = lane->samples.ns + lane->samples.count;
    size_t calls = 0;
    *start = UINT64_MAX;
    *end = 0;
    *pace = 0;
    for (size_t i = 0; i < lane->concurrency; i++) {
        const struct crew_member *member = &members[i];
        if (!member->done)
            continue;
        memmove(place + calls, member->nanoseconds, member->done * sizeof *place);
        calls += member->done;
        *start = member->started < *start ? member->started : *start;
        *end = member->ended > *end ? member->ended : *end;
        *pace = member->pace > *pace ? member->pace : *pace;
    }
    return calls;
}

static tssa_status *run_crew(struct lanes *lanes, struct lane *lane, size_t count,
                             uint64_t nanoseconds)
{
    uint64_t start, end;
    double pace;
    size_t n = lane->concurrency;
    struct crew_member *members = calloc(n, sizeof *members);
    TRY_ALLOC(members);
    for (size_t i = 0; i < n; i++)
        members[i] =
            (struct crew_member){.callee = &lane->callers[i].callee,
                                 .first = lane->samples.count + i,
                                 .nanoseconds = lane->samples.ns + lane->samples.count + i * count};
    long preemptions = machine_preemptions();
    tssa_status *status = unless_interrupted(crew_run(members, n, count, nanoseconds));
    size_t calls = gather(lane, members, &start, &end, &pace);
    double wall_ns = calls ? (double)(end - start) : 0;
    bool preempted = was_preempted(lanes, preemptions, wall_ns);
    tssa_status *noted = calls ? note(lanes, lane, calls, wall_ns, pace, preempted) : NULL;
    free(members);
    if (status)
        tssa_status_free(noted);
    return status ? status : noted;
}

/* `count` calls for each thread; a crew's end after `nanoseconds`, too. */
static tssa_status *run_block(struct lanes *lanes, struct lane *lane, size_t count,
                              uint64_t nanoseconds)
{
    if (!samples_reserve(&lane->samples, count * lane->concurrency))
        return status_out_of_memory();
    interrupt_switch(lane->subject->session);
    tssa_status *status = lane->concurrency == 1 ? run_alone(lanes, lane, count)
                                                 : run_crew(lanes, lane, count, nanoseconds);
    return status_prefix(status, "cannot run %s", lane->subject->target->name);
}

/* ---- Warming up ------------------------------------------------------------------------------ */

/* What is measured here is thrown away, but for how long a call takes. */
static tssa_status *warm_up(struct lanes *lanes, struct lane *lane, double milliseconds)
{
    size_t sets = lane->subject->set_count, count = sets;
    uint64_t start = clock_now();
    lane->expected_ns = lane->subject->first_ms * 1e6;
    while (clock_ms_since(start) < milliseconds && !interrupt_came()) {
        TRY(run_block(lanes, lane, count, (uint64_t)CREW_BLOCK_NS));
        struct samples *samples = &lane->samples;
        if (samples->block_count && block_mean(samples, &samples->blocks[0]) < lane->expected_ns)
            lane->expected_ns = block_mean(samples, &samples->blocks[0]);
        samples->count = samples->block_count = 0;
        samples->wall_ns = 0;
        if ((double)count * lane->expected_ns < BLOCK_NS)
            count *= 2;
    }
    return NULL;
}

/* ---- Taking turns ---------------------------------------------------------------------------- */

/* How long a block is: some rounds through the sets of the slowest, so that what disturbs one does
 * not tell; one where the measurement would have too few blocks. */
static double block_ns(const struct lanes *lanes, const struct bench_arguments *arguments)
{
    double most = BLOCK_NS, limit = arguments->duration * 1e9 / LEAST_BLOCKS;
    for (size_t i = 0; i < lanes->count; i++) {
        const struct lane *lane = &lanes->items[i];
        double round = lane->expected_ns * (double)lane->subject->set_count;
        double wanted = lanes->count > 1 ? ROUNDS * round : round;
        if (limit > 0 && wanted > limit)
            wanted = limit;
        if (wanted < round)
            wanted = round;
        if (lane->concurrency > 1 && wanted < CREW_BLOCK_NS)
            wanted = CREW_BLOCK_NS;
        if (wanted > most)
            most = wanted;
    }
    return most;
}

static bool is_done(const struct lane *lane, const struct bench_arguments *arguments)
{
    const struct samples *samples = &lane->samples;
    return samples->wall_ns >= arguments->duration * 1e9 &&
           samples->count >= (size_t)arguments->iterations;
}

/* Calls of the next block, for each thread: whole rounds through the sets, but not more than is
 * asked for. */
static size_t block_calls(const struct lane *lane, const struct bench_arguments *arguments,
                          double nanoseconds)
{
    size_t sets = lane->subject->set_count;
    double expected = lane->expected_ns > 1 ? lane->expected_ns : 1,
           wanted = nanoseconds / expected;
    if (lane->concurrency > 1)
        wanted *= 4; /* the clock ends it */
    if (arguments->iterations && wanted > (double)arguments->iterations / LEAST_BLOCKS)
        wanted = (double)arguments->iterations / LEAST_BLOCKS;
    size_t rounds = (size_t)(wanted / (double)sets), count = (rounds ? rounds : 1) * sets;
    if (arguments->duration == 0) {
        size_t left = (size_t)arguments->iterations - lane->samples.count;
        left = (left + lane->concurrency - 1) / lane->concurrency;
        count = count < left ? count : left;
    }
    return count;
}

/* Another lane's data is in the caches when a lane's turn begins: that call does not count. */
static tssa_status *settle(const struct lanes *lanes, const struct lane *lane)
{
    double nanoseconds;
    size_t done;
    if (lanes->count == 1 || lane->expected_ns > BLOCK_NS)
        return NULL;
    interrupt_switch(lane->subject->session);
    return unless_interrupted(measure_calls(&lane->callers[0].callee, lane->samples.count, 1,
                                            FOREVER, &nanoseconds, &done));
}

static tssa_status *take_turn(struct lanes *lanes, struct lane *lane,
                              const struct bench_arguments *arguments, double nanoseconds)
{
    TRY(settle(lanes, lane));
    if (interrupt_came())
        return NULL;
    return run_block(lanes, lane, block_calls(lane, arguments, nanoseconds), (uint64_t)nanoseconds);
}

static tssa_status *reserve(const struct lanes *lanes, const struct bench_arguments *arguments)
{
    for (size_t i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->items[i];
        double calls = (double)arguments->iterations;
        double expected = lane->expected_ns > 1 ? lane->expected_ns : 1;
        if (calls < arguments->duration * 1e9 / expected * (double)lane->concurrency)
            calls = arguments->duration * 1e9 / expected * (double)lane->concurrency;
        if (!samples_reserve(&lane->samples,
                             (size_t)(calls < MOST_RESERVED ? calls : MOST_RESERVED)))
            return status_out_of_memory();
    }
    return NULL;
}

/* There and back again, so that no lane is always the one after some other. */
static tssa_status *take_turns(struct lanes *lanes, const struct bench_arguments *arguments)
{
    double nanoseconds = block_ns(lanes, arguments);
    bool back = false;
    for (bool all_done = false; !all_done; back = !back) {
        all_done = true;
        for (size_t i = 0; i < lanes->count; i++) {
            struct lane *lane = &lanes->items[back ? lanes->count - 1 - i : i];
            if (interrupt_came())
                return NULL;
            if (is_done(lane, arguments))
                continue;
            all_done = false;
            TRY(take_turn(lanes, lane, arguments, nanoseconds));
        }
    }
    return NULL;
}

/* Will the threads of some lane get into each other's way? */
static bool is_crowded(const struct lanes *lanes, const struct bench_arguments *arguments)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), threads = arguments->common.threads;
    if (threads == 0)
        threads = cores;
    for (size_t i = 0; i < lanes->count; i++)
        if ((long)lanes->items[i].concurrency * threads > cores)
            return true;
    return false;
}

tssa_status *lanes_measure(struct lanes *lanes, const struct bench_arguments *arguments)
{
    TRY_ALLOC(pace_learn(&lanes->pace) ? lanes : NULL);
    lanes->crowded = is_crowded(lanes, arguments);
    progress("warming up");
    for (size_t i = 0; i < lanes->count && !interrupt_came(); i++)
        TRY(warm_up(lanes, &lanes->items[i], arguments->warmup_ms));
    lanes->rss_before = machine_rss_peak();
    TRY(reserve(lanes, arguments));
    progress("measuring");
    lanes->before = machine_read();
    tssa_status *status = take_turns(lanes, arguments);
    lanes->after = machine_read();
    progress_done();
    return status;
}
