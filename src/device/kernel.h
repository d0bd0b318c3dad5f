/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel is: how one op is run on concrete values.
 *
 * A kernel is a constant table of functions, which a device finds for an op (device/device.h). It
 * belongs to a step of a plan: `prepare` runs once, when a session is made, and decodes attributes
 * into a state of the step's own; `run` runs many times, from many threads, and must not look up
 * attributes by name or keep pointers; `release` runs once, when the plan goes. What `run` changes
 * in the state (a cache) is behind a lock in it.
 *
 * `run` reads args->inputs[i] (NULL when absent), computes the shape of every wanted output, gets
 * its memory with kernel_output, and fills it. It must check everything that inference cannot
 * promise (ranks, dtypes, indices, sizes): a model is hostile until shown otherwise. Inputs alias
 * outputs only where the kernel shares or takes them; but an output may lie where an input lies if
 * ir/memory.h, or the kernel itself (may_lie_on), says so.
 */
#ifndef TSSA_DEVICE_KERNEL_H
#define TSSA_DEVICE_KERNEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/pool.h"
#include "base/scratch.h"
#include "base/team.h"
#include "base/value.h"
#include "ir/ir.h"

struct device_context;
struct device_stream;

/* Where an output may be placed by the memory plan; data NULL: not planned. */
struct kernel_place {
    void *data;
    size_t offset; /* as in struct tensor */
    size_t size;
    /* bytes that were asked for and not there, at most; NULL: nobody plans this one */
    size_t *wanted;
};

/* What a run knows of sizes, lent to kernels of devices that have memory of their own. */
struct kernel_sizes {
    /* False: this dim is told by what the step computes, or by nothing. */
    bool (*dim)(const struct kernel_sizes *sizes, const struct dim *dim, int64_t *value);
};

/* What a run lends its kernels. */
struct kernel_env {
    struct pool *pool;
    /* bytes of STRING elements; lives until the run's outputs are detached */
    struct arena *strings;
    const struct team *team;
    struct device_stream *stream;     /* where the device's own memory is worked on; else NULL */
    const struct kernel_sizes *sizes; /* the same */
    /* a place or a step's scratch memory was too small; whoever lays them out clears it */
    bool missed;
};

struct kernel_args {
    struct kernel_env *env;
    const void *state;      /* what prepare made */
    const struct ir_op *op; /* for messages and version; not for attributes */
    uint32_t n_inputs, n_outputs;
    const struct value *const *inputs; /* NULL: absent */
    struct value *const *outputs;      /* NULL: not wanted */
    const struct kernel_place *places; /* per output; NULL: none planned */
    const bool *last_uses;             /* per input: kernel_take may have it; NULL: none of them */
    const bool *pieces; /* per output: kernel_share_piece may share operand 0; NULL: none of them */
    /* Per input of a device with memory of its own: it is small and in the host's, an argument of
     * the launch; NULL: none is, as on the host itself. */
    const bool *on_host;
    bool guessed;                 /* of get_ready: some shapes are not those of runs */
    bool only_packs;              /* then: for them nothing but weights is to be made */
    struct step_scratch *scratch; /* of the step; NULL: scratch memory comes from the pool */
    struct scratch_use scratch_use;
};

/* What a plan's kernels have made with a library; grows as the plan runs. */
struct kernel_tally {
    atomic_uint_least64_t primitives;  /* made so far */
    atomic_uint_least64_t nanoseconds; /* that took, the packing of weights included */
    atomic_size_t packed_bytes;        /* held now */
};

/* What steps of a plan have packed of constants that several of them read: device/library_cache.h.
 */
struct library_shelf {
    pthread_mutex_t lock;
    struct library_packed *first;
};

/* What `prepare` is lent. */
struct kernel_setup {
    struct arena *arena;            /* for the state; lives as long as the step */
    struct device_context *context; /* outlives the step */
    struct kernel_tally *tally;     /* as long as the step; NULL: nobody asks */
    const struct ir_graph *graph;   /* outlives the step; NULL: nobody knows where constants lie */
    struct library_shelf *shelf;    /* outlives the step; NULL: there is none */
};

/* Counts what `prepare` has packed of a constant since then (clock_monotonic). */
void kernel_tally_packed(const struct kernel_setup *setup, size_t bytes, uint64_t since);

/*
 * A call that was set up and may be made many times, with memory that lies elsewhere each time:
 * what iterations of a loop do that differ in addresses alone. It is the first member of what a
 * kernel keeps of the call; all of that is the caller's memory, and holds nothing.
 */
struct kernel_call {
    void (*make)(struct kernel_call *call); /* NULL: there is nothing to be done */
    char **data; /* what is read and written begins there: for the caller to move */
    uint32_t n_data;
    const struct team *team;
    /* Do both do the same, but elsewhere? NULL: they do where they are made by one function. */
    bool (*is_same)(const struct kernel_call *a, const struct kernel_call *b);
};

struct kernel {
    /* May be NULL. *state stays NULL when there is nothing to keep. On failure nothing is held. */
    tssa_status *(*prepare)(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state);
    tssa_status *(*run)(struct kernel_args *args);
    /*
     * Makes what `run` would first make of operands of these shapes with a library, and keeps it
     * (library_get_ready), before a session's first run (runtime/ready.h). Of operands that are no
     * constants it is given shapes without elements, data NULL. Where args->guessed, shapes may be
     * others than those of runs: then nothing is kept but what the library itself keeps, and
     * packed weights until the first run has told how it wants them. An operand of which nobody
     * knows the rank is a value that is no tensor. Outputs are not wanted. It computes nothing and
     * starts no threads, and notes in args->scratch what scratch memory `run` will need, as far as
     * it knows (scratch_expect); there is none yet. An error says no more than that nothing was
     * made: `run` makes it, or reports what is wrong. NULL: there is nothing to be made.
     */
    tssa_status *(*get_ready)(struct kernel_args *args);
    /* Gives back what the state holds outside of the arena; NULL where that is nothing. Called once
     * after a `prepare` that succeeded and left a state. */
    void (*release)(const void *state);
    /* The operand of which the kernel, where it is a constant, holds the elements itself, as long
     * as it reads them (ir/copies.h): a plan need not. 0: none. */
    uint32_t packs;
    /* May the result lie where the operand lies, of as many elements that are as long, which nobody
     * reads after the step? NULL: where the op's row says so (ir/memory.h). */
    bool (*may_lie_on)(const struct ir_op *op, uint32_t result, uint32_t operand);
    /* Of an op of which the row does not say so: the operand whose memory the kernel takes for the
     * result (kernel_take), to change it in place. UINT32_MAX: none. NULL: it takes none. */
    uint32_t (*updates)(const struct ir_op *op, uint32_t result);
    /* Is the result one stretch of operand 0, element after element, wherever in it that begins?
     * Then a plan may have it be a name of that memory (kernel_share_piece). NULL: no result is. */
    bool (*is_piece)(const struct ir_op *op, uint32_t result);
    /* Is result 0 the operands, element after element, one behind the other, and is what of them
     * lies where it belongs left there? Then a plan may have them be computed in the result's
     * memory. NULL: it is not. */
    bool (*is_joined)(const struct ir_op *op);
    /*
     * Sets up what `run` would do with operands and results of these shapes, and computes nothing;
     * NULL: it cannot. Of operands with known[k] false only the place of the elements is told, not
     * the elements. Outputs are made as by `run`, but own nothing; one that `run` would change in
     * place is operand 0 (kernel_take). Between two sets of integers for which it says yes with the
     * same shapes, each address is an affine function of them. False: it cannot be done like this,
     * or `run` would fail; an output may be in the pool then.
     */
    bool (*set_up)(struct kernel_args *args, const bool *known, struct kernel_call *call);
    size_t call_size; /* bytes that `call` is the first of */
    bool names;       /* set up, output 0 is a name of operand 0's memory */
    bool hands_on;    /* outputs are handles that an operand has: they need no memory */
};

/* `prepare` and `release` where a kernel has them. */
tssa_status *kernel_prepare(const struct kernel *kernel, const struct ir_op *op,
                            const struct kernel_setup *setup, const void **state);
void kernel_release(const struct kernel *kernel, const void *state);

/* Makes output `index` a tensor of this shape, in its planned place when that is large enough, else
 * from the pool. Not zeroed. *tensor is NULL when the output is not wanted. */
tssa_status *kernel_output(struct kernel_args *args, uint32_t index, tssa_dtype dtype, int rank,
                           const int64_t *dims, struct tensor **tensor);
/* Makes output `index` share input `from`'s storage under new dims (as many elements). */
tssa_status *kernel_share(struct kernel_args *args, uint32_t index, uint32_t from, int rank,
                          const int64_t *dims);
/* Makes output `index` the elements of operand 0 from `first` on, under its dims, where the plan
 * wants that: they are all there. Else false, and nothing has happened. */
bool kernel_share_piece(struct kernel_args *args, uint32_t index, int64_t first, int rank,
                        const int64_t *dims);
/* Are the axes of operand 0 before this one, which may be any number, of one element each, in every
 * run? */
bool kernel_leads_with_ones(const struct ir_op *op, int64_t axis);
/*
 * Makes output `index` input `from`, to be changed in place: where nobody uses the input after this
 * op, and nobody else its memory. Else false, and nothing has happened. A taken input is gone for
 * everybody but the kernel that took it, which may still read its dims.
 */
bool kernel_take(struct kernel_args *args, uint32_t index, uint32_t from, struct tensor **tensor);
/* Sets up a kernel that names operand 0's memory: runs it, and has its output own nothing. All
 * other operands must be known. */
bool kernel_set_up_name(struct kernel_args *args, const bool *known, struct kernel_call *call,
                        tssa_status *(*run)(struct kernel_args *args));
/* The same of one whose output is a piece of operand 0. */
bool kernel_set_up_piece(struct kernel_args *args, const bool *known, struct kernel_call *call,
                         tssa_status *(*run)(struct kernel_args *args));
/* Scratch memory, released with buffer_release before the kernel ends: it is no memory for outputs.
 * For the calling thread alone, which may lend it to others. */
tssa_status *kernel_scratch(struct kernel_args *args, size_t size, struct buffer **buffer);

/* Input `index` as a tensor: an error when it is absent or no tensor. */
tssa_status *kernel_tensor(const struct kernel_args *args, uint32_t index,
                           const struct tensor **tensor);
/* The same, NULL when absent. */
tssa_status *kernel_optional_tensor(const struct kernel_args *args, uint32_t index,
                                    const struct tensor **tensor);
/* For kernel.get_ready: has every operand that there is a shape? Is it that of runs? Has the
 * operand elements, or is it absent? */
bool kernel_has_shapes(const struct kernel_args *args);
bool kernel_knows_shapes(const struct kernel_args *args);
bool kernel_has_elements(const struct kernel_args *args, uint32_t index);
/* The same: an error where `run` could have no such result, so that nobody multiplies its dims. */
tssa_status *kernel_check_result(tssa_dtype dtype, int rank, const int64_t *dims);
/* An integer tensor's elements as int64: at most `capacity`, else an error. */
tssa_status *kernel_ints(const struct kernel_args *args, uint32_t index, int64_t *values,
                         size_t capacity, size_t *count);
/* One integer or float from a tensor with exactly one element. */
tssa_status *kernel_scalar_int(const struct kernel_args *args, uint32_t index, int64_t *value);
tssa_status *kernel_scalar_double(const struct kernel_args *args, uint32_t index, double *value);
/* Normalises an axis; an error when it is not in [-rank, rank), so always for a scalar. */
tssa_status *kernel_axis(int64_t axis, int rank, int *result);

#endif
