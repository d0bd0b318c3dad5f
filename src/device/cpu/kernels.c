/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/kernels.h"

#define OP(id, domain, name, versions, min_in, max_in, min_out, max_out, cls, flags, types, infer, \
           kernel)                                                                                 \
    extern const struct cpu_kernel cpu_kernel_##kernel;
#define EW(id, ...) extern const struct cpu_kernel cpu_kernel_##id;
#include "ir/ops.def"
#undef OP
#undef EW

/* Rows that name NONE. */
const struct cpu_kernel cpu_kernel_NONE = {NULL, NULL};

static const struct cpu_kernel *const kernel_table[IR_OP_COUNT] = {
#define OP(id, domain, name, versions, min_in, max_in, min_out, max_out, cls, flags, types, infer, \
           kernel)                                                                                 \
    [IR_OP_##id] = &cpu_kernel_##kernel,
#define EW(id, ...) [IR_OP_##id] = &cpu_kernel_##id,
#include "ir/ops.def"
#undef OP
#undef EW
};

const struct cpu_kernel *cpu_kernel_find(const struct ir_op *op)
{
    const struct cpu_kernel *kernel = kernel_table[op->info->id];
    return kernel->run ? kernel : NULL;
}

bool cpu_kernel_asks_provider(const struct ir_op *op)
{
    return op->n_results > 0 && op->results[0].type->dtype == TSSA_FLOAT &&
           (ir_op_is(op, IR_OP_Conv) || ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm) ||
            ir_op_is(op, IR_OP_Einsum));
}
