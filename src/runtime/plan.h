/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan: a graph compiled for running, once per session. Immutable and shared by all runs, from
 * the first one on: what only runs need is added before (plan_place).
 *
 * Every value of the graph has a slot, its id: blocks do not recurse, so one flat frame serves the
 * whole graph, and a captured value is simply read from its slot. A block is an array of steps; a
 * step is one kernel call, or one control-flow op with the plans of its blocks. A fuse op that no
 * kernel takes is a step with a block, of which the values have the slots of those outside: a
 * parameter that of its operand, a result that of what is returned as it (plan_value). Nothing is
 * handed over.
 *
 * A value that is used in two spaces (spaces.h) has a second slot, its mirror, behind those of all
 * values. It is filled by a copy before the first step that needs it, and emptied where the value's
 * slot is, and before the block that makes the value runs again.
 *
 * A step releases the slots whose last use it is. What a block returns is moved out of its slot
 * where the return is the last use, and shared otherwise. A step that updates a tensor whose last
 * use it is takes it out of its slot, and so does a Loop with what it carries: then the memory is
 * its own.
 */
#ifndef TSSA_RUNTIME_PLAN_H
#define TSSA_RUNTIME_PLAN_H

#include "device/device.h"
#include "runtime/spaces.h"

#define SLOT_NONE UINT32_MAX

struct repeat;
struct run;
struct step;
struct block_plan;

typedef tssa_status *(*step_run)(struct run *run, const struct step *step);

/* A symbol that a value tells, once it is there. */
struct plan_binding {
    uint32_t symbol; /* index into plan->symbols */
    uint32_t slot;
    uint32_t index;  /* of the axis, or of the element */
    bool is_element; /* the value of an integer, not the length of an axis */
};

struct plan_bindings {
    const struct plan_binding *items;
    uint32_t count;
};

/* A value that is copied into its mirror, if it is not there yet. */
struct plan_copy {
    uint32_t from, to; /* slots */
    enum space space;  /* of `to` */
    bool release;      /* nobody else needs `from` any more */
};

struct plan_copies {
    const struct plan_copy *items;
    uint32_t count;
};

/* What a block does because of spaces. */
struct plan_crossing {
    struct plan_copies entered;  /* when its parameters are bound, for the symbols that they tell */
    struct plan_copies returned; /* before it returns */
    const uint32_t *mirrors;     /* slots to be emptied before it runs */
    uint32_t n_mirrors;
};

struct step {
    step_run run;
    /* the same, before copies and before the symbols that the results tell are bound */
    step_run compute;
    const struct ir_op *op;
    const struct kernel *kernel; /* NULL for control flow */
    const void *state;           /* the kernel's or the control flow's own */
    uint32_t index;              /* dense over the plan; a control step follows its blocks' steps */
    uint32_t n_inputs, n_outputs;
    uint32_t first_input, first_output; /* into plan->inputs, plan->outputs and the run's tables */
    uint32_t n_release, n_blocks, n_turns;
    const uint32_t *release;           /* slots */
    struct block_plan *const *blocks;  /* in control_block's order; none where a kernel does what
                                          the op's blocks say */
    const struct plan_bindings *binds; /* what the results tell; NULL: nothing */
    const uint32_t *turns; /* of a loop: entries of plan->placed that have two places in turn */
    struct plan_copies before, after; /* after: for the symbols that the results tell */
    /* of a Loop: no iteration leaves its number, or its condition, to what comes later */
    bool lends[2];
    const bool *on_host; /* of a device's kernel, as in struct kernel_args */
    /* the same while it is recorded, where it reads the number of an iteration that the device
     * counts (control_recorded.h); NULL: no other */
    const bool *on_host_recorded;
    bool is_recorded; /* control flow over which the device decides, once it is recorded */
    /* of a Loop: how iterations are made that differ in addresses alone (repeat.h); else NULL, and
     * `why` says why, in one line, if anybody has asked */
    const struct repeat *repeat;
    const char *why;
};

struct plan_return {
    uint32_t slot;
    bool move; /* the last use: the slot is emptied */
};

struct block_plan {
    const struct ir_block *block;
    const struct step *steps;
    uint32_t n_steps;
    uint32_t n_params;
    const uint32_t *params; /* slots; SLOT_NONE for parameters nobody uses */
    uint32_t n_returns;
    const struct plan_return *returns;
    const struct plan_bindings *binds;    /* what the parameters tell; NULL: nothing */
    const struct plan_crossing *crossing; /* NULL: all is in one space */
};

struct plan_constant {
    uint32_t slot;
    const struct tensor *tensor;
};

/* A result of which symbols tell the size, to be placed in the run's slab; or a step's scratch
 * memory, of which earlier runs do. */
struct plan_placed {
    uint32_t output;  /* index into plan->outputs; SLOT_NONE: scratch memory */
    uint32_t scratch; /* the step whose scratch memory it is */
    /* Step indices between which the memory is in use, both included; plan->n_steps: to the end of
     * the run. */
    uint32_t first, last;
    const struct ir_type *type; /* NULL: scratch memory */
    uint32_t exit;
    bool leaves, several; /* it may be that of graph output `exit`, and of others */
    uint8_t space;        /* enum space */
    /* its memory is that of the entry so many before, whose place it takes; 0: its own */
    uint32_t back;
    uint32_t part; /* its number in plan->parts, plus 1; 0: it is in none */
    /* the loop in whose iterations two places take turns; NULL: one place */
    const struct step *turns;
};

/* An operand that may be computed where it belongs in what a step makes of all its operands
 * (is_joined in device/kernel.h): the step is the last that reads it. */
struct plan_part {
    uint32_t entry, whole; /* of plan->placed: where the operand lies, and the result */
    const struct step *step;
    uint32_t operand;
};

/*
 * A placed result that may be graph output `exit`, or in whose place one is made that may be. It
 * has its place where the caller gives memory for the output: in that memory, if nothing else may
 * be the output. Else it comes from the pool, and leaves the run as it is. Of a device's memory it
 * has its place always, and in memory of the caller's while a run is recorded (bound.h).
 */
struct plan_leaving {
    uint32_t entry; /* of plan->placed */
    uint32_t exit;
    bool there;
};

/* A step's output that is a graph output, and may be computed in the caller's memory. */
struct plan_result {
    uint32_t result; /* number of the graph output */
    uint32_t output; /* index into plan->outputs */
};

/* A step whose kernel is to be released. */
struct plan_held {
    const struct plan_held *next;
    const struct kernel *kernel;
    const void *state;
};

/* A constant's mirror. */
struct plan_upload {
    const struct plan_upload *next;
    void *memory;
    size_t size;
};

struct plan {
    struct arena arena;
    struct device_context *device; /* where it runs */
    struct device_context *host;   /* where the rest runs; the same when there is no other space */
    struct spaces spaces;
    uint32_t n_spaces;
    struct device_stream *stream; /* of the uploads; NULL: there is one space */
    const struct plan_upload *uploads;
    const struct plan_held *held;
    const struct plan_held_copy *copies; /* that it holds (held_constants.h) */
    const struct ir_graph *graph;
    const struct block_plan *body;
    uint32_t n_values, n_slots, n_steps; /* values: when the plan was made */
    const uint32_t *inputs,
        *outputs; /* slots of all steps' operands and results, SLOT_NONE: absent */
    uint32_t n_inputs, n_outputs;
    const bool *last_uses; /* per plan->inputs: the step may take the value out of its slot */
    const struct plan_constant *constants;
    uint32_t n_constants;
    const struct tensor *const *defaults; /* per graph input; NULL where the caller must give one */
    const struct plan_placed *placed;     /* by ascending `first` */
    uint32_t n_placed;
    const struct plan_leaving *leaving;
    uint32_t n_leaving;
    const struct plan_part *parts; /* by step, those of one in the order of its operands */
    uint32_t n_parts;
    const bool *sized; /* per plan->outputs: a run knows its size before the step computes it */
    bool *pieces; /* per plan->outputs: it shares the memory of its step's operand 0 (pieces.h) */
    const bool *told; /* per plan->outputs: symbols tell its size, be they bound by it */
    const struct dim *const *symbols; /* that a run binds, those of the inputs first */
    uint32_t n_symbols, n_input_symbols;
    const uint32_t *symbol_numbers; /* per dim id: the symbol's index in `symbols` + 1, or 0 */
    uint32_t n_symbol_numbers;      /* dims made after the plan have higher ids */
    const struct plan_result *results;
    uint32_t n_results;
    const bool *host_reads; /* per graph input: its elements; NULL: there is one space */
    /* Why runs of the same shapes are not recorded (recorded.h); NULL: they may be. */
    const char *driven;
    /* Per step: bytes of scratch memory that it is expected to need, 0: nobody knows (ready.h). */
    size_t *scratch;
    bool runs_fused;          /* there is a fuse op that no kernel takes: values have two names */
    const step_run *poisoned; /* what the steps do besides (poison.h); NULL: they do nothing else */
    /* The two things that change while the plan runs. */
    struct kernel_tally tally;
    struct library_shelf shelf;
};

/* TSSA_UNSUPPORTED when an op has no kernel: the message names node, operator and version. Graph
 * and device outlive the plan, whose memory is the device's allocator's. */
tssa_status *plan_compile(const struct ir_graph *graph, struct device_context *device,
                          struct plan **plan);
/* What only runs need: where results lie, which loops repeat. Before the first run, by one thread;
 * after TSSA_OUT_OF_MEMORY it may be tried again. */
tssa_status *plan_place(struct plan *plan);
/* Both. */
tssa_status *plan_create(const struct ir_graph *graph, struct device_context *device,
                         struct plan **plan);
void plan_free(struct plan *plan);

/* ---- Fuse ops that no kernel takes: fused.c -------------------------------------------------- */

/* Of a fuse op, as plan_fused. */
struct ir_block *plan_fused_body(const struct plan *plan, const struct ir_op *fuse);
/* As plan_value, where there are names. */
const struct ir_value *plan_named(const struct plan *plan, const struct ir_value *value);
/* The block that holds the op, or the fuse op that it is in. */
const struct ir_block *plan_home(const struct plan *plan, const struct ir_op *op);

/* The block that is run of a fuse op; NULL: it has a kernel, or is no fuse op. */
static inline struct ir_block *plan_fused(const struct plan *plan, const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_fuse) ? plan_fused_body(plan, op) : NULL;
}
/* The value whose slot the value is in: itself, or what it is another name of. */
static inline const struct ir_value *plan_value(const struct plan *plan,
                                                const struct ir_value *value)
{
    return plan->runs_fused ? plan_named(plan, value) : value;
}

/* ---- Questions ------------------------------------------------------------------------------- */

/* Which steps of the body the wanted outputs need: needed[i] for step i. */
tssa_status *plan_needed(const struct plan *plan, const bool *wanted, const tssa_allocator *scratch,
                         bool *needed);

/* The slot of the value that a slot holds, or a mirror of. */
static inline uint32_t plan_home_slot(const struct plan *plan, uint32_t slot)
{
    return slot >= plan->n_values && slot != SLOT_NONE ? slot - plan->n_values : slot;
}
/* The slot of a value's mirror. */
static inline uint32_t plan_mirror(const struct plan *plan, const struct ir_value *value)
{
    return plan->n_values + plan_value(plan, value)->id;
}
/* Where it lies. */
static inline enum space plan_space(const struct plan *plan, const struct ir_value *value)
{
    return plan->spaces.of_value ? (enum space)plan->spaces.of_value[plan_value(plan, value)->id]
                                 : SPACE_HOST;
}

/* Index of a symbol in plan->symbols, or -1. */
int plan_symbol(const struct plan *plan, const struct dim *symbol);
/* A dim's value under one binding of the first `count` of plan->symbols (less than 0: not bound);
 * false when these do not determine it. */
bool plan_dim(const struct plan *plan, const int64_t *symbols, uint32_t count,
              const struct dim *dim, int64_t *value);
/* Bytes of a type by the first `count` symbols; SIZE_MAX: they do not tell, or it overflows. */
size_t plan_type_size(const struct plan *plan, const int64_t *symbols, uint32_t count,
                      const struct ir_type *type);

#endif
