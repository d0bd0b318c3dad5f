/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recordings of a run state: making one, replaying it, giving it back. Which are made, and when
 * one is replayed, recorded.c decides.
 *
 * All of a state's are of the same shapes, and work in the same slab and the same memory of the
 * pool. What differs is which memory of the caller's they are bound to (bound.h): inputs that are
 * not bound are copied, before each replay, to where all recordings read them.
 */
#ifndef TSSA_RUNTIME_RECORDING_H
#define TSSA_RUNTIME_RECORDING_H

#include "runtime/bound.h"

/* So many a state has at most: an argument may take turns between as many addresses, and one is for
 * those that are new. */
#define RECORDINGS (BOUND_SEEN + 1)

struct recording {
    struct device_recording *made; /* NULL: there is none */
    struct bound *bound;           /* per argument */
    struct value *returns;         /* per return of the body: of the device's memory, or owned */
    uint64_t used;                 /* the number of the latest run that replayed it */
};

/* Where an input is copied to. */
struct recorded_input {
    struct tensor tensor; /* of the device's memory; data NULL: no recording wants it copied */
    struct tensor shape;  /* of the input; no data */
    size_t size;
};

struct recorded {
    struct recording recordings[RECORDINGS];
    struct recorded_input *inputs; /* per parameter of the body */
    struct bound_seen *seen;       /* per argument */
    struct bound *wanted;          /* per argument: by the run that is under way */
    int64_t *symbols;
    uint32_t layouts; /* that of the slab, and the pool's memory, they were made in */
    const void *chunk;
    size_t chunk_size;
    uint64_t runs;
    uint32_t tries;  /* in a row that failed */
    uint32_t earned; /* what recordings of other addresses are paid with */
    uint32_t fitted; /* the layout for which the pool was made as small as a recording needs it */
    bool refused;    /* something in the run cannot be recorded */
    bool replayed;   /* the latest run was a replay */
    bool fits_pool;  /* the latest run has made the first recording of a layout */
};

/* run->recorded, without recordings. */
tssa_status *recording_open(struct run *run);
/* NULL is accepted. */
void recording_close(struct run *run);

/* Is there one? */
bool recording_any(const struct recorded *recorded);
/* Are those that there are of this run's shapes, and is their memory still there? */
bool recording_fits(const struct run *run);
/* Makes one, which is bound to what is wanted; nothing of it has been done. On failure there is
 * none. */
tssa_status *recording_make(struct run *run, struct recording *recording);
/* What the run returns of a replay. */
void recording_set_returns(struct run *run, const struct recording *recording);
tssa_status *recording_replay(struct run *run, const struct recording *recording);
/* When replays are done, which it waits for. */
void recording_drop(struct run *run, struct recording *recording);
/* All of them, and the memory of their inputs. */
void recording_drop_all(struct run *run);

#endif
