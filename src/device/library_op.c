/* SPDX-License-Identifier: Apache-2.0 */
#include "device/library_op.h"

#include <string.h>

static enum library_form form_of(const struct ir_op *op)
{
    static const enum library_form forms[IR_OP_COUNT] = {
#define LIBRARY_OP(id, form) [IR_OP_##id] = LIBRARY_##form,
#include "device/library.def"
#undef LIBRARY_OP
    };
    return forms[op->info->id];
}

tssa_status *library_op_decode(const struct ir_op *op, struct library_op *decoded)
{
    decoded->form = form_of(op);
    if (decoded->form == LIBRARY_OP_GEMM)
        decoded->gemm = gemm_transposed_of(op);
    return decoded->form == LIBRARY_OP_CONV ? conv_decode(op, &decoded->conv) : NULL;
}

static tssa_status *problem_of_conv(const struct conv_attrs *attrs, const struct kernel_args *args,
                                    struct library_problem *problem, bool *one)
{
    struct conv_job job = {0};
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &job.x));
    TRY(kernel_tensor(args, 1, &job.w));
    TRY(kernel_optional_tensor(args, 2, &job.bias));
    TRY(conv_resolve(attrs, &job, dims));
    *one = conv_problem(&job, job.x->dtype, problem);
    return NULL;
}

tssa_status *library_op_problem(const struct library_op *op, const struct kernel_args *args,
                                struct library_problem *problem, bool *one)
{
    const struct tensor *a, *b;
    *one = false;
    if (op->form == LIBRARY_NONE)
        return NULL;
    if (op->form == LIBRARY_OP_CONV)
        return problem_of_conv(&op->conv, args, problem, one);
    TRY(kernel_tensor(args, 0, &a));
    TRY(kernel_tensor(args, 1, &b));
    problem->kind = LIBRARY_MATMUL;
    problem->dtype = a->dtype;
    problem->threads = 0;
    if (op->form == LIBRARY_OP_MATMUL)
        return matmul_problem(a, b, &problem->matmul, one);
    *one = true;
    return gemm_problem(a, b, op->gemm, &problem->matmul);
}

bool library_op_dims(const struct ir_value *value, struct tensor *tensor)
{
    const struct ir_type *type = value->type;
    *tensor = (struct tensor){.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &tensor->dims[i]))
            return false;
    return type->rank >= 0;
}

bool library_op_known(const struct ir_op *op, struct library_problem *problem)
{
    const enum library_form form = form_of(op);
    struct tensor a, b;
    bool one = true;
    if ((form != LIBRARY_OP_MATMUL && form != LIBRARY_OP_GEMM) ||
        !library_op_dims(ir_operand(op, 0), &a) || !library_op_dims(ir_operand(op, 1), &b))
        return false;
    memset(problem, 0, sizeof *problem);
    problem->kind = LIBRARY_MATMUL;
    problem->dtype = a.dtype;
    tssa_status *status = form == LIBRARY_OP_GEMM
                              ? gemm_problem(&a, &b, gemm_transposed_of(op), &problem->matmul)
                              : matmul_problem(&a, &b, &problem->matmul, &one);
    const bool known = !status && one;
    tssa_status_free(status);
    return known;
}
