/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/conversion/version_name.h"

#include <stdio.h>

bool version_name(struct ir_graph *graph, struct ir_value *to, const struct ir_value *from,
                  const char *what, uint32_t number)
{
    char name[200], digits[12] = "";
    if (!from->name)
        return false;
    if (number)
        snprintf(digits, sizeof digits, "%u", (unsigned)number);
    int length = snprintf(name, sizeof name, "%s_%s%s", from->name, what, digits);
    if (length >= (int)sizeof name || intern_find(&graph->strings, name))
        return false;
    to->name = intern_str(&graph->strings, name);
    return true;
}

struct ir_op *update_create(struct ir_graph *graph, struct ir_value *new_value,
                            struct ir_value *old_value)
{
    struct ir_op *op = ir_op_create(graph, ir_op_info(IR_OP_update), 2, 0);
    if (!op)
        return NULL;
    ir_op_set_operand(op, 0, new_value);
    ir_op_set_operand(op, 1, old_value);
    return op;
}
