/* SPDX-License-Identifier: Apache-2.0 */
/* Why each loop and branch of a model is what it is. */
#ifndef TSSA_OPT_INSPECT_H
#define TSSA_OPT_INSPECT_H

#include "tools/opt/remarks.h"

/* `optimized`: the same model after optimization, which gave the remarks. Prints nothing when there are
 * neither loops nor branches. */
tssa_status *inspect_control_flow(const tssa_model *model, const tssa_model *optimized,
                                  const struct remark_list *remarks);

#endif
