/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TSSA_OPT_CHECK_H
#define TSSA_OPT_CHECK_H

#include "tools/opt/rewrite.h"

/* What --check and --verify-only ask for. EXIT_UNCHECKED, with a line on standard error: no
 * difference was found because nothing could be compared. */
enum exit_code opt_check(struct rewrite *rewrite);

#endif
