/* SPDX-License-Identifier: Apache-2.0 */
/* Running another program to its end, without a shell. */
#ifndef TSSA_TOOLS_COMMAND_H
#define TSSA_TOOLS_COMMAND_H

#include <stddef.h>

#include "base/status.h"

/*
 * The words of a command, NULL after the last: blanks part them; '...' keeps all that is in it,
 * "..." all but \ before " and \, and a \ outside quotes keeps the character after it. Nothing else
 * has a meaning: no variable, no pattern, no pipe. TSSA_INVALID_ARGUMENT: no word, or a quote that
 * does not end.
 */
tssa_status *command_split(const char *text, char ***words);
void command_free(char **words);
/* Is there such a program, by its path or in $PATH? TSSA_INVALID_ARGUMENT when there is not. */
tssa_status *command_find(const char *word);

enum command_end {
    COMMAND_EXITED,
    COMMAND_SIGNALLED,
    COMMAND_TIMED_OUT,  /* was ended */
    COMMAND_INTERRUPTED /* the same, for interrupt_pending() */
};

struct command_result {
    enum command_end end;
    int number; /* exit status, or signal */
    double seconds;
    size_t memory; /* bytes that it held at most */
};

/*
 * Runs argv[0] (looked for in $PATH) in a process group of its own, which is gone when this
 * returns. Standard input and output are /dev/null, standard error is the file `log`. Call between
 * interrupt_defer and interrupt_resume. An error when it cannot be started.
 */
tssa_status *command_run(char *const *argv, const char *log, double seconds,
                         struct command_result *result);

#endif
