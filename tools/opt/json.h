/* SPDX-License-Identifier: Apache-2.0 */
/* --remarks=json */
#ifndef TSSA_OPT_JSON_H
#define TSSA_OPT_JSON_H

#include "tools/opt/rewrite.h"

/* One object: model, operators before and after, and the remarks. */
tssa_status *json_print(const struct rewrite *rewrite);

#endif
