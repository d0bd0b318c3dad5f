/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of TensorSSA conversion share: updates, and names for versions. */
#ifndef TSSA_PASSES_CONVERSION_VERSION_NAME_H
#define TSSA_PASSES_CONVERSION_VERSION_NAME_H

#include "ir/ir.h"

/* Names `to` after `from`, "b_2" or "b_in3", when that name is free and true is returned; a number
 * of 0 is left out. Without memory there is no name. */
bool version_name(struct ir_graph *graph, struct ir_value *to, const struct ir_value *from,
                  const char *what, uint32_t number);
/* update(new_value, old_value), in no block yet; NULL when memory runs out. */
struct ir_op *update_create(struct ir_graph *graph, struct ir_value *new_value,
                            struct ir_value *old_value);

#endif
