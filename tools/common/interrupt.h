/* SPDX-License-Identifier: Apache-2.0 */
/* Ending a tool from outside: Ctrl-C, and --timeout. */
#ifndef TSSA_TOOLS_INTERRUPT_H
#define TSSA_TOOLS_INTERRUPT_H

#include <stdbool.h>

#include "tssa.h"

/* From now on SIGINT, and the end of `seconds` (0: none), stop the session's runs. A second SIGINT
 * ends the program at once. */
void interrupt_arm(tssa_session *session, unsigned seconds);
/* Only the end of `seconds` does. */
void interrupt_limit(tssa_session *session, double seconds);
/* Another session takes its place, NULL: none does; the seconds go on. */
void interrupt_switch(tssa_session *session);
/* Before the session is freed. */
void interrupt_disarm(void);
/* The signal that has stopped a run since interrupt_arm, SIGINT or SIGALRM; 0: none has. */
int interrupt_came(void);

/*
 * In between, SIGINT, SIGTERM and SIGHUP wait: what was begun (a file, say) is brought to its end.
 */
void interrupt_defer(void);
/* One of them has come. */
bool interrupt_pending(void);
/* A signal that came ends the program now, as it would have. */
void interrupt_resume(void);

#endif
