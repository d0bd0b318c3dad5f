/* SPDX-License-Identifier: Apache-2.0 */
/* --print-passes */
#ifndef TSSA_OPT_PASSES_H
#define TSSA_OPT_PASSES_H

#include "tools/opt/arguments.h"

tssa_status *passes_print(enum listing listing);

#endif
