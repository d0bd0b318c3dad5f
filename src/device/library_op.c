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
    if (decoded->form == LIBRARY_OP_CONV)
        return conv_decode(op, &decoded->conv);
    return decoded->form == LIBRARY_OP_CONV_TRANSPOSE
               ? conv_transpose_decode(op, &decoded->conv_transpose)
               : NULL;
}

/* ---- Of operands ----------------------------------------------------------------------------- */

/* NULL: absent. */
typedef const struct tensor *operands[LIBRARY_OPERANDS];

static tssa_status *problem_of_conv(const struct library_op *op, operands given,
                                    struct library_problem *problem, bool *one)
{
    struct conv_job job = {.x = given[0], .w = given[1], .bias = given[2]};
    int64_t dims[TSSA_MAX_RANK];
    if (op->form == LIBRARY_OP_CONV) {
        TRY(conv_resolve(&op->conv, &job, dims));
        *one = conv_problem(&job, job.x->dtype, problem);
        return NULL;
    }
    TRY(conv_transpose_resolve(&op->conv_transpose, &job, dims));
    *one = conv_transpose_problem(&job, job.x->dtype, problem);
    return NULL;
}

static tssa_status *problem_of(const struct library_op *op, operands given,
                               struct library_problem *problem, bool *one)
{
    if (op->form == LIBRARY_OP_CONV || op->form == LIBRARY_OP_CONV_TRANSPOSE)
        return problem_of_conv(op, given, problem, one);
    problem->kind = LIBRARY_MATMUL;
    problem->dtype = given[0]->dtype;
    problem->threads = 0;
    if (op->form == LIBRARY_OP_MATMUL)
        return matmul_problem(given[0], given[1], &problem->matmul, one);
    *one = true;
    return gemm_problem(given[0], given[1], op->gemm, &problem->matmul);
}

tssa_status *library_op_problem(const struct library_op *op, const struct kernel_args *args,
                                struct library_problem *problem, bool *one)
{
    operands given = {NULL};
    *one = false;
    if (op->form == LIBRARY_NONE)
        return NULL;
    TRY(kernel_tensor(args, 0, &given[0]));
    TRY(kernel_tensor(args, 1, &given[1]));
    TRY(kernel_optional_tensor(args, 2, &given[2]));
    return problem_of(op, given, problem, one);
}

/* ---- Of types -------------------------------------------------------------------------------- */

bool library_op_dims(const struct ir_value *value, struct tensor *tensor)
{
    const struct ir_type *type = value->type;
    size_t count, bytes;
    *tensor = (struct tensor){.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &tensor->dims[i]))
            return false;
    if (type->rank < 0)
        return false;
    tssa_status *status = tensor_layout(type->dtype, type->rank, tensor->dims, &count, &bytes);
    const bool exists = !status;
    tssa_status_free(status);
    return exists;
}

bool library_op_known(const struct ir_op *op, struct library_problem *problem)
{
    struct tensor tensors[LIBRARY_OPERANDS], result;
    operands given = {NULL};
    struct library_op decoded;
    bool one = false;
    if (form_of(op) == LIBRARY_NONE || !library_op_dims(&op->results[0], &result))
        return false;
    for (uint32_t i = 0; i < op->n_operands && i < LIBRARY_OPERANDS; i++) {
        const struct ir_value *value = ir_operand(op, i);
        given[i] = value ? &tensors[i] : NULL;
        if (value && !library_op_dims(value, &tensors[i]))
            return false;
    }
    if (!given[0] || !given[1])
        return false;
    memset(problem, 0, sizeof *problem);
    tssa_status *status = library_op_decode(op, &decoded);
    if (!status)
        status = problem_of(&decoded, given, problem, &one);
    const bool known = !status && one;
    tssa_status_free(status);
    return known;
}
