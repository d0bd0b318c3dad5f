/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/recorded.h"

#include <string.h>

#include "runtime/crossing.h"
#include "runtime/recording.h"

#define TRIES 4 /* in a row that may fail, for want of a settled pool mostly */

/*
 * A recording takes the time of some runs. So the first one is made at once, and as many as there
 * may be when others are wanted soon; later ones are paid for by runs, of which each earns 1: who
 * has ever other addresses gets few, and goes on with one for which all is copied.
 */
enum { PRICE = 64, MOST_EARNED = RECORDINGS * PRICE };

bool recorded_replayed(const struct run *run)
{
    return run->recorded && run->recorded->replayed;
}

/*
 * The first one in a layout leaves the pool to be made as small as it wants it, be it that it must
 * be made again then; from there on the pool only grows, or they would chase each other, and runs
 * without a recording in between.
 */
bool recorded_keeps_pool(const struct run *run)
{
    return run->recorded && recording_any(run->recorded) && !run->recorded->fits_pool &&
           run->device_pool.apart_bytes == 0;
}

void recorded_free(struct run *run)
{
    recording_close(run);
}

void recorded_begin(struct run *run)
{
    if (run->recorded)
        run->recorded->replayed = run->recorded->fits_pool = false;
}

/* ---- Which one ------------------------------------------------------------------------------- */

static bool may_record(const struct run *run)
{
    const struct recorded *recorded = run->recorded;
    for (uint32_t i = 0; i < run->plan->body->n_params; i++) {
        const uint32_t slot = run->plan->body->params[i];
        if (slot != SLOT_NONE && run->slots[slot].kind != TSSA_KIND_TENSOR)
            return false;
    }
    return run->slab.thorough && !run->watched && !run->plan->poisoned && !recorded->refused &&
           recorded->tries < TRIES;
}

/* Of those that this run may replay, the one for which least is copied; NULL: there is none. */
static struct recording *find_fitting(const struct run *run)
{
    struct recording *best = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < RECORDINGS; i++) {
        struct recording *one = &run->recorded->recordings[i];
        if (!one->made || !bound_fits(run, one->bound))
            continue;
        if (bound_is_all(run, one->bound))
            return one;
        const uint32_t count = bound_count(run, one->bound);
        if (!best || count > most) {
            best = one;
            most = count;
        }
    }
    return best;
}

/* One that is free, or was not used for longest. */
static struct recording *find_room(const struct run *run)
{
    struct recording *recordings = run->recorded->recordings, *oldest = recordings;
    for (uint32_t i = 0; i < RECORDINGS; i++) {
        if (!recordings[i].made)
            return &recordings[i];
        if (recordings[i].used < oldest->used)
            oldest = &recordings[i];
    }
    return oldest;
}

/* Those of other shapes, or whose memory is gone, are of no use. */
static void forget_others(struct run *run)
{
    struct recorded *recorded = run->recorded;
    if (recording_any(recorded) && !recording_fits(run))
        recording_drop_all(run);
    if (!recording_any(recorded))
        recorded->earned = MOST_EARNED;
    else if (recorded->earned < MOST_EARNED)
        recorded->earned++;
}

/* What there is for the run; *makes: another one shall be made, for what is wanted. */
static struct recording *choose(struct run *run, bool *makes)
{
    struct recorded *recorded = run->recorded;
    struct recording *fitting = find_fitting(run);
    *makes = false;
    if (fitting && bound_is_all(run, fitting->bound))
        return fitting;
    bound_find(run, recorded->seen, recorded->wanted);
    *makes = may_record(run) && !(fitting && bound_has_all(run, fitting->bound, recorded->wanted));
    if (*makes && recorded->earned < PRICE) {
        *makes = !fitting; /* all is copied for it: it will do for all that come */
        memset(recorded->wanted, 0, bound_arguments(run) * sizeof *recorded->wanted);
    }
    return fitting;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static void note_made(struct run *run)
{
    struct recorded *recorded = run->recorded;
    recorded->earned -= recorded->earned < PRICE ? recorded->earned : PRICE;
    recorded->tries = 0;
    recorded->fits_pool = recorded->fitted != run->slab.layouts;
    recorded->fitted = run->slab.layouts;
}

/*
 * Nothing of it has been done yet, so that whatever goes wrong can be done as if nobody had tried.
 */
static tssa_status *try_to_record(struct run *run, const struct value *const *inputs,
                                  struct recording **made)
{
    struct recorded *recorded = run->recorded;
    struct recording *recording = find_room(run);
    *made = NULL;
    recording_drop(run, recording);
    tssa_status *status = recording_make(run, recording);
    if (!status) {
        note_made(run);
        *made = recording;
        return NULL;
    }
    recorded->refused = tssa_status_code(status) == TSSA_UNSUPPORTED;
    recorded->tries++;
    tssa_status_free(status);
    return executor_begin_again(run, inputs);
}

static bool is_ready(struct run *run)
{
    if (!run->recorded)
        tssa_status_free(recording_open(run)); /* without memory, without a recording */
    return run->recorded != NULL;
}

tssa_status *recorded_run_body(struct run *run, const struct value *const *inputs)
{
    struct recording *recording;
    bool makes;
    if (run->plan->driven || run->profile || !is_ready(run))
        return executor_run_block(run, run->plan->body);
    struct recorded *recorded = run->recorded;
    recorded->runs++;
    forget_others(run);
    recording = choose(run, &makes);
    if (makes) {
        TRY(try_to_record(run, inputs, &recording));
    } else if (recording) {
        recording_set_returns(run, recording);
        recorded->replayed = true;
    }
    if (!recording)
        return executor_run_block(run, run->plan->body);
    recording->used = recorded->runs;
    TRY(recording_replay(run, recording));
    return crossing_leave(run, run->plan->body->crossing);
}
