/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/analysis/of_data.h"

#define MOST_SOURCES 32 /* ops that are looked at */

/* `left`: how many ops may still be looked at. */
static bool comes_of_data(const struct ir_value *value, int *left)
{
    const struct ir_op *op = value->op;
    if (value->known || !op || op->n_blocks || (op->info->flags & IR_SHAPE) || --*left < 0)
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *from = ir_operand(op, i);
        if (from && !ir_value_constant(from) &&
            (dtype_is_float(from->type->dtype) || comes_of_data(from, left)))
            return true;
    }
    return false;
}

bool is_of_data(const struct ir_value *value)
{
    int left = MOST_SOURCES;
    return comes_of_data(value, &left);
}
