/* SPDX-License-Identifier: Apache-2.0 */
/* How a tool ends. */
#ifndef TSSA_TOOLS_FAIL_H
#define TSSA_TOOLS_FAIL_H

#include "tools/common/arguments.h"

/*
 * Prints the one line of an error, which it consumes. The exit status is `code`, unless the error
 * says more: the model needs what tssa does not have, or a file of a run or a rewrite cannot be
 * read or written.
 */
enum exit_code fail(enum exit_code code, tssa_status *status);

/* What was printed may still fail to be written: `code`, or EXIT_FILE after a line. */
enum exit_code end_output(enum exit_code code);

#endif
