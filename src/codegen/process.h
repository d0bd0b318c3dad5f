/* SPDX-License-Identifier: Apache-2.0 */
/* A process that compiles kernels, seen from who has started it. One thread at a time. */
#ifndef TSSA_CODEGEN_PROCESS_H
#define TSSA_CODEGEN_PROCESS_H

#include "codegen/client.h"

/* `processors` as in struct codegen_share. NULL: it cannot be started, and why is in `message`. */
struct codegen_process *codegen_process_start(const tssa_allocator *allocator,
                                              const cpu_set_t *processors, char *message,
                                              size_t size);
/* Ends it, whatever it is doing, and says how it ended where it had done so by itself. NULL is
 * accepted; so is what a process has that was forked since: the other one goes on. */
void codegen_process_end(struct codegen_process *process, char *message, size_t size);
/* Has it been started by this process, and not by the one that it was forked from? */
bool codegen_process_is_ours(const struct codegen_process *process);
/* What to wait for, to read. */
int codegen_process_descriptor(const struct codegen_process *process);

/* False: it has ended. */
bool codegen_process_ask(struct codegen_process *process, const struct gir_kernel *kernel,
                         enum codegen_level level);
/* Reads an answer that has begun to arrive. False: it has ended. */
bool codegen_process_hear(struct codegen_process *process, const tssa_allocator *allocator,
                          struct codegen_job *job);

#endif
