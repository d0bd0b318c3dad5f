/* SPDX-License-Identifier: Apache-2.0 */
/* --print-hazards */
#ifndef TSSA_OPT_HAZARDS_H
#define TSSA_OPT_HAZARDS_H

#include "tools/opt/arguments.h"

tssa_status *hazards_print(enum listing listing);

#endif
