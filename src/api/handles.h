/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind the opaque handles of tssa.h. */
#ifndef TSSA_API_HANDLES_H
#define TSSA_API_HANDLES_H

#include <stdatomic.h>

#include "base/vec.h"
#include "device/device.h"
#include "device/library.h"
#include "runtime/compile.h"

struct tssa_context {
    tssa_allocator source; /* the caller's */
    /* counts against the limit, then asks `source`; what everything uses */
    tssa_allocator allocator;
    size_t memory_limit;
    atomic_size_t memory_used, memory_peak;
    struct team team;
    struct device_context device;
    void (*log)(void *user, tssa_log_level level, const char *message); /* NULL: silence */
    void *log_user;
    /* it was said that there is none, for problems of a kind */
    atomic_flag library_missed[LIBRARY_KINDS], device_library_missed[LIBRARY_KINDS];
    atomic_flag compile_missed; /* that something could not be compiled */
    atomic_flag cache_missed;   /* that nothing can be kept on disk */
    char *cache;                /* a folder for compiled kernels; NULL: none */
};

/* One line to the caller's log; cut at 512 bytes. */
void context_log(struct tssa_context *context, tssa_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct tssa_value {
    const tssa_allocator *allocator;
    const struct device *device;  /* a tensor in its memory; NULL: the host's */
    char where[DEVICE_NAME_SIZE]; /* its name, with a number */
    struct value value;
};

struct tssa_cancel {
    struct tssa_context *context;
    atomic_bool requested;
};

struct tssa_model {
    struct tssa_context *context;
    atomic_uint references; /* the caller's and one per session */
    atomic_bool shared;     /* sessions were made since the graph was changed */
    struct ir_graph *graph;
    /*
     * What the graph was before rules were lowered, for sessions that fuse, lay out images, look
     * bytes up or relax floats (session_graph_clone).
     * What is fixed or left out since is so in both. NULL: it was not optimized for sessions, or
     * since then for something else.
     */
    struct ir_graph *raised;
    /* What both were while there were sessions, which go on with it. What a copy shares with what
     * it is a copy of comes before the copy. */
    VEC(struct ir_graph *) before;
};

void model_retain(struct tssa_model *model);
void model_release(struct tssa_model *model);
/*
 * Before model->graph is changed: where there are sessions, it becomes a copy of what it was, which
 * they go on with. `raised`: model->raised is changed in the same way, or made by the change; else
 * there is none any more. Must not run while a session is being created.
 */
tssa_status *model_change(struct tssa_model *model, bool raised);

struct session_graph {
    struct ir_graph *own; /* NULL: it is the model's */
    bool raised;          /* its rules are not lowered yet */
    bool differs; /* images are laid out as the device's library wants them, bytes looked up, floats
                   * relaxed, or layers one op */
    bool fuses;   /* the device fuses ops of it */
};

/*
 * What the graph for a session on the device is to be made of. The model outlives it.
 */
tssa_status *session_graph_clone(const struct tssa_model *model, struct device_context *device,
                                 const tssa_session_options *options, struct session_graph *made);
/* Makes what was copied so, where it is raised, a graph to make a plan of. What is one op now goes
 * to options->remark. */
tssa_status *session_graph_finish(struct ir_graph *own, struct device_context *device,
                                  const tssa_session_options *options);
/* Fuses what was copied so. What is fused and what is not goes to options->remark. */
tssa_status *session_graph_fuse(struct ir_graph *own, struct device_context *device,
                                const tssa_session_options *options);
/* Compiles what was fused so, until `stop` (struct device_compiling): then it is nothing to make a
 * plan of. What no kernel was made of goes to options->remark. */
tssa_status *session_graph_compile(struct ir_graph *own, struct device_context *device, int stop,
                                   const tssa_session_options *options,
                                   struct compile_report *report);
/* tssa_session_create on a device that need be in no table. */
tssa_status *session_create_on(struct tssa_model *model, const struct device *device,
                               const tssa_session_options *options, tssa_session **session);

/* Is there a kernel for it, or is it control flow? What is in its blocks is not looked at. */
bool op_is_supported(const struct ir_op *op);

/* A new handle that takes ownership of `value`, also on failure, and freezes it (sequence_freeze).
 */
tssa_status *value_handle(const tssa_allocator *allocator, struct value *value,
                          tssa_value **handle);

#endif
