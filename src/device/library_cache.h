/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step keeps of its device's library: primitives, made at the first use of a problem or
 * before (library_get_ready), and weights that are constants, packed once, for all steps of the
 * plan that want them so. Thread-safe.
 */
#ifndef TSSA_DEVICE_LIBRARY_CACHE_H
#define TSSA_DEVICE_LIBRARY_CACHE_H

#include <pthread.h>

#include "device/device.h"
#include "device/library.h"

/* Constant weights in the layout of one or more primitives, on a shelf. */
struct library_packed {
    struct library_packed *next;
    const void *weights;        /* as the graph has them; NULL: one step's alone */
    struct library_made *users; /* the last one of them */
    size_t bytes;
    void *data;
};

/*
 * A primitive and the problem that it was made for. Who runs it is counted, and it stays as it is
 * meanwhile; who fills it does so under the lock, and adds LIBRARY_FILLING when nobody runs it.
 */
struct library_made {
    struct library_problem problem;
    struct library_primitive *primitive; /* NULL: the library declined */
    struct library_packed *packed;       /* NULL: packed in each run, or not at all */
    struct library_made *before;         /* who used that before; under the shelf's lock */
    atomic_uint runs;
    atomic_uint_least64_t used; /* when last; 0: never, the entry is free */
};
#define LIBRARY_FILLING 0x80000000u

/* As many problems are kept; of more, those used last. */
#define LIBRARY_PROBLEMS 8

struct library_cache {
    struct device_context *context;
    struct kernel_tally *tally;   /* NULL: nobody asks */
    const struct ir_graph *graph; /* as in struct kernel_setup */
    /* every run has the same weights; on the host alone, whose memory they are packed in */
    bool constant;
    const struct tensor *weights; /* a copy (ir/copies.h) that the step holds itself; else NULL */
    const void *known;            /* weights that other steps may read, too; else NULL */
    struct library_shelf own, *plan_shelf; /* the latter may be NULL */
    struct library_shelf *shelf;           /* that it uses: of known weights the plan's */
    pthread_mutex_t lock;
    bool held;             /* the weights, now */
    _Atomic(bool) in_need; /* they stay held: somebody reads them in runs */
    uint64_t clock;
    struct library_made guess; /* of library_get_ready: holds packed weights until the first run */
    struct library_made *made; /* LIBRARY_PROBLEMS of them; NULL until the first use */
    _Atomic(struct library_made *) latest; /* one of them, which is tried without the lock */
};

/* Nothing is on it when it is closed. */
void library_shelf_open(struct library_shelf *shelf);
void library_shelf_close(struct library_shelf *shelf);

/* May not be moved afterwards; the context's device has a library. */
void library_cache_open(struct library_cache *cache, const struct kernel_setup *setup,
                        bool constant);
/* NULL is accepted. */
void library_cache_close(struct library_cache *cache);

/*
 * Of a step that holds its weights, a constant, itself (kernel.packs): they are held, if they are a
 * copy, until the library has packed them, and again whenever it packs them for another problem.
 */
void library_cache_hold(struct library_cache *cache, const struct tensor *weights);
/* The same of weights that the kernel has packed in an order of its own: no other step shares what
 * is made of them. */
void library_cache_hold_own(struct library_cache *cache, const struct tensor *weights);
/* Before the kernel reads these weights itself, in a run or in all: from now on they are there. */
void library_cache_need(struct library_cache *cache);

/* The weights of a problem that may want them packed. */
struct library_weights {
    const struct tensor *tensor;
    size_t widened_bytes; /* of the weights in the problem's type; 0: they are of that type */
    /* Into that type. */
    void (*widen)(const struct tensor *tensor, void *to);
};

/*
 * Runs the problem's primitive; the call's scratch memory, and its weights where they are packed,
 * are filled in. `weights` NULL: they are an operand like the others. *done stays false where the
 * library declines.
 */
tssa_status *library_compute(struct kernel_args *args, struct library_cache *cache,
                             const struct library_problem *problem,
                             const struct library_weights *weights, struct library_call *call,
                             bool *done);

/*
 * For many calls of one primitive: what was made for the problem, kept, or in *own where all that
 * are kept are in use. primitive NULL: declined. Given back with library_give.
 */
tssa_status *library_take(struct kernel_args *args, struct library_cache *cache,
                          const struct library_problem *problem,
                          const struct library_weights *weights, struct library_made *own,
                          struct library_made **made);
void library_give(struct library_cache *cache, struct library_made *own, struct library_made *made);

/*
 * For kernel.get_ready: makes and keeps what library_compute would first make of the problem; no
 * threads are started. Where packing the weights would start some, they are packed by the first
 * run: then, and where args->guessed, nothing is kept but the code that was compiled, by a library
 * that keeps it, and in the latter case packed weights until a run has its problem: they are its
 * where it wants them so. args->scratch is told what a run of it will need. *made: it was not
 * declined.
 */
tssa_status *library_get_ready(struct kernel_args *args, struct library_cache *cache,
                               const struct library_problem *problem,
                               const struct library_weights *weights, bool *made);

#endif
