/* SPDX-License-Identifier: Apache-2.0 */
#include "device/library.h"

#include <string.h>

#include "device/device.h"

bool library_same_problem(const struct library_problem *a, const struct library_problem *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->threads != b->threads)
        return false;
    return a->kind == LIBRARY_CONV ? memcmp(&a->conv, &b->conv, sizeof a->conv) == 0
                                   : memcmp(&a->matmul, &b->matmul, sizeof a->matmul) == 0;
}

bool library_computes(const struct ir_op *op)
{
    static const bool rows[IR_OP_COUNT] = {
#define LIBRARY_OP(id, form) [IR_OP_##id] = true,
#include "device/library.def"
#undef LIBRARY_OP
    };
    return !op->opaque && rows[op->info->id];
}

bool library_asks(const struct device *device, const struct ir_op *op)
{
    return device->library && library_computes(op) && op->n_results > 0 &&
           dtype_in(device->library->types, op->results[0].type->dtype);
}
