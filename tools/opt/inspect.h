/* SPDX-License-Identifier: Apache-2.0 */
/* What a model's functions are, and why each of its loops and branches is what it is. */
#ifndef TSSA_OPT_INSPECT_H
#define TSSA_OPT_INSPECT_H

#include "tools/common/remarks.h"

/* Prints nothing when there are no functions. */
tssa_status *inspect_functions(const tssa_model *model);

/* `optimized`: the same model after optimization, which gave the remarks. Prints nothing when there
 * are neither loops nor branches. */
tssa_status *inspect_control_flow(const tssa_model *model, const tssa_model *optimized,
                                  const struct remark_list *remarks);

#endif
