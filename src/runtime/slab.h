/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slab of a run: one piece of memory per space in which the plan places results (placement.h).
 * It is laid out between runs, never while one is under way, so that addresses stay the same from
 * run to run, and for as long as nothing says that the layout is wrong:
 *
 * - The inputs' symbols are those of the run that begins.
 * - What a run tells only on its way (the number of boxes that are left) counts with the most that
 *   runs told before. A result that turns out larger takes its memory from the pool, this once.
 * - So does the scratch memory that steps needed (base/scratch.h). Before the first run it is what
 *   their kernels expected to need when they got ready (ready.h).
 * - When several runs need the same layout, time is taken for one that needs less memory; and where
 *   the memory that is there is too small for one that is quick, but not for what is in use at one
 *   time.
 * - Now and then the layout is compared with what was really needed, and shrinks to that when it is
 *   more than twice as much.
 *
 * Belongs to one run state.
 */
#ifndef TSSA_RUNTIME_SLAB_H
#define TSSA_RUNTIME_SLAB_H

#include "runtime/placement.h"

struct slab_part {
    void *memory; /* as struct device's */
    size_t size;
    struct layout layout;
};

struct slab {
    struct slab_part parts[SPACE_COUNT]; /* plan->n_spaces of them */
    int64_t *symbols;                    /* that the layout is for */
    int64_t *most;   /* per plan->symbols: the most that was told lately; -1: it was not told */
    size_t *wanted;  /* per entry of plan->placed: bytes that it was too small for, or 0 */
    size_t *scratch; /* per step: bytes that the layout has for it */
    bool fitted;     /* scratch memory was made as small as runs with these inputs need it */
    uint32_t runs;   /* since `most` was compared with the layout */
    uint32_t alike;  /* runs in a row that the layout was for */
    bool placed, thorough; /* there is a layout; one that took its time */
    bool early;            /* it was made before any run */
    uint32_t layouts;      /* how many there were */
};

/* Of a run whose tables are there. */
bool slab_init(struct run *run);
/* Before the streams of the run are closed. */
void slab_free(struct run *run);
/* Bytes held. */
size_t slab_size(const struct slab *slab);
/* Bytes in use during a step. */
size_t slab_live(const struct slab *slab, uint32_t step);
/* Can the slab of the first run be laid out before it? Where no input has a symbol, and the host is
 * the only space. */
bool slab_is_known(const struct plan *plan);
/*
 * Before the first run of a plan of which it is known: what slab_prepare would do then.
 * The system is asked for the pages as well. Where that is more than a few MiB, the first run does
 * it, and where there is no memory, it reports that.
 */
void slab_get_ready(struct run *run);
/* Before a run whose inputs are bound: run->places are valid. */
tssa_status *slab_prepare(struct run *run);
/* After that: what the run takes from the pool is to be noted, per step. */
bool slab_watches(const struct run *run);
/* Then: what leaves the run has a place if the caller gives memory for it; on a device it has its
 * own in any case. */
void slab_offer(struct run *run, const struct value *outputs);
/* May all that is made on the device where graph output `exit` lies be made in memory of this size
 * instead? It may not, where there is no such place. */
bool slab_can_bind(const struct run *run, uint32_t exit, size_t size);
/* Then: from now on it is made in this memory of the device's; NULL: in the slab, as before. */
void slab_bind(struct run *run, uint32_t exit, void *memory, size_t size);
/* Between iterations of a loop: results that it carries go to the other one of their two places. */
void slab_take_turns(struct run *run, const struct step *loop);

#endif
