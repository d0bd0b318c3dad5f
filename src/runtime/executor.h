/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor: runs a plan. A `struct run` is the mutable state of one run at a time (the frame,
 * the slab, the pool); sessions keep finished ones for reuse. It belongs to one thread while it
 * runs.
 */
#ifndef TSSA_RUNTIME_EXECUTOR_H
#define TSSA_RUNTIME_EXECUTOR_H

#include "runtime/plan.h"
#include "runtime/slab.h"

struct recorded;

/* Time and count of one step; loop bodies add up. */
struct step_profile {
    uint64_t count, nanoseconds, started; /* `started`: of the latest execution */
};

/* What a run took for its values, besides what the caller gave. Bytes. */
struct run_memory {
    size_t held; /* at most at one time: slab and pool */
    size_t live; /* of these, the most that values needed at one time; 0 without a profile */
};

struct run {
    const struct plan *plan;
    const tssa_allocator *allocator;
    struct value *slots;                        /* plan->n_slots */
    const struct value **inputs;                /* per plan->inputs: the slot's address or NULL */
    struct value **outputs;                     /* per plan->outputs */
    struct kernel_place *places;                /* per plan->outputs */
    struct step_scratch *scratch;               /* per step */
    int64_t *symbols;                           /* per plan->symbols, as far as they were told */
    struct device_stream *streams[SPACE_COUNT]; /* plan->n_spaces of them */
    struct slab slab;
    struct pool pool;
    struct arena strings;
    struct kernel_env env;
    struct pool device_pool; /* where there is a second space */
    struct kernel_env device_env;
    struct kernel_sizes sizes;    /* of this run, for kernels of a device */
    struct device_counts counts;  /* of the latest run */
    struct step_profile *profile; /* per step; NULL: off */
    bool watched;                 /* memory is noted per step, and time where there is a profile */
    struct run_memory memory;     /* of the latest run */
    uint64_t poisoned;            /* bytes written over, by poison.h */
    uint64_t repeated; /* iterations of all runs that were made by calls which were set up before */
    /* Once one of them is true, the run ends with TSSA_LIMIT; NULL: nobody sets it. */
    const atomic_bool *stop, *cancel;
    /*
     * Room for the arguments of run_execute, as the plan has inputs and outputs, for who calls it.
     */
    const struct value **argument_inputs;
    struct value *argument_outputs;
    bool *argument_wanted;
    bool *bound, *given; /* per symbol of the inputs: it has its value; per output: the caller's */
    bool *wanted;        /* the outputs that `needed` was found for; NULL: none yet */
    bool *needed;        /* per step of the body */
    struct recorded *recorded; /* recorded.h; NULL: nothing was yet */
    /* Per input and per graph output: the memory of the device that the caller has for it, set by
     * who calls run_execute; NULL: what is given is the host's. */
    void **inputs_there, **outputs_there;
    const struct value *caller_outputs; /* of the run that is under way */
    void *caller_stream; /* the same: what struct device.stream_follow takes; NULL: none */
};

tssa_status *run_create(const struct plan *plan, const tssa_allocator *allocator,
                        const struct team *team, bool profile, struct run **run);
void run_free(struct run *run);
/* Bytes that it keeps for the values of the next run. */
size_t run_kept(const struct run *run);

/*
 * Runs the graph's body. inputs[i] may be NULL where the graph has a default. outputs[i] has kind
 * NONE, or is a tensor of the caller's to write into. What lies in memory of the device's is in
 * run->inputs_there and run->outputs_there as well. On success every output that was NONE owns
 * its bytes.
 */
tssa_status *run_execute(struct run *run, const struct value *const *inputs, struct value *outputs);
/* Computes the outputs that are wanted, and nothing that only others need; those are NONE. NULL:
 * all. */
tssa_status *run_execute_some(struct run *run, const struct value *const *inputs,
                              struct value *outputs, const bool *wanted);

/* ---- For control flow ------------------------------------------------------------------------ */

/* TSSA_LIMIT when somebody wants the run to end. */
static inline bool executor_is_set(const atomic_bool *flag)
{
    return flag && atomic_load_explicit(flag, memory_order_relaxed);
}
static inline tssa_status *executor_check_stop(const struct run *run)
{
    if (__builtin_expect(executor_is_set(run->stop), 0))
        return ERROR(TSSA_LIMIT, "the run was stopped");
    if (__builtin_expect(executor_is_set(run->cancel), 0))
        return ERROR(TSSA_LIMIT, "the run was cancelled");
    return NULL;
}
/* Executes the steps of a block whose parameters are bound. */
tssa_status *executor_run_block(struct run *run, const struct block_plan *block);
/* The same without what spaces want before and after, and without what parameters tell. */
tssa_status *executor_run_steps(struct run *run, const struct block_plan *block);
/* Forgets what steps of the body have done, which begins again with its inputs. */
tssa_status *executor_begin_again(struct run *run, const struct value *const *inputs);
/* Puts a value into a parameter's slot, or releases it when nobody reads it. Takes ownership. */
void executor_bind(struct run *run, const struct block_plan *block, uint32_t param,
                   struct value *value);
/* Moves or copies the block's i-th return out of its slot. */
void executor_take(struct run *run, const struct block_plan *block, uint32_t index,
                   struct value *value);
/* Has the result the type and the shape of the memory that the caller gives for output `index`? */
tssa_status *executor_check_output(const struct value *result, const struct tensor *wanted,
                                   uint32_t index);
/* What a step's kernel is given, in the environment of its space. */
static inline struct kernel_args executor_args(struct run *run, struct kernel_env *env,
                                               const struct step *step)
{
    return (struct kernel_args){
        .env = env,
        .state = step->state,
        .op = step->op,
        .n_inputs = step->n_inputs,
        .n_outputs = step->n_outputs,
        .inputs = run->inputs + step->first_input,
        .outputs = run->outputs + step->first_output,
        .places = run->places + step->first_output,
        .last_uses = run->plan->last_uses + step->first_input,
        .pieces = run->plan->pieces + step->first_output,
        .on_host = step->on_host,
        .scratch = run->scratch + step->index,
    };
}
static inline tssa_status *executor_call_kernel(struct run *run, struct kernel_env *env,
                                                const struct step *step)
{
    struct kernel_args args = executor_args(run, env, step);
    return step->kernel->run(&args);
}
tssa_status *executor_run_kernel(struct run *run, const struct step *step);
/* The symbols that values in slots tell (bindings.c). */
void bindings_read(struct run *run, const struct plan_bindings *bindings);
/* A step whose results tell symbols. */
tssa_status *executor_run_and_bind(struct run *run, const struct step *step);

uint64_t executor_now(void); /* nanoseconds, monotonic */

#endif
