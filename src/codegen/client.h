/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles kernels in processes of their own (codegen/process), several at once, which end when
 * they have had nothing to do for a second. docs/kernels.md says why it is not a thread.
 *
 * Threads: any. What is here has no locks, so a process that was forked in the midst of it may use
 * it as well.
 */
#ifndef TSSA_CODEGEN_CLIENT_H
#define TSSA_CODEGEN_CLIENT_H

#include <sched.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "codegen/codegen.h"
#include "codegen/protocol.h"

/* A kernel to be compiled, and what has become of it. */
struct codegen_job {
    const struct gir_kernel *kernel; /* that gir_check accepts */
    void *object; /* of the allocator; NULL: there is none, and why is in `message` */
    size_t size;
    struct codegen_maker maker;
    char message[160];
    unsigned tries;
};

struct codegen_process;

/* A process that has nothing to do yet. All zero at first. */
struct codegen_client {
    _Atomic(struct codegen_process *) idle;
};

/* What it may take. */
struct codegen_share {
    int processes;               /* at most */
    const cpu_set_t *processors; /* NULL: those of who asks */
};

/*
 * Compiles all of them. `stop`: a descriptor that can be read as soon as that shall end; -1: none.
 * False: it was stopped, and some have neither an object nor a message.
 */
bool codegen_compile(struct codegen_client *client, const tssa_allocator *allocator,
                     struct codegen_job *jobs, uint32_t n, enum codegen_level level,
                     struct codegen_share share, int stop);

/* Ends what is idle. When nobody compiles. */
void codegen_client_close(struct codegen_client *client);

#endif
