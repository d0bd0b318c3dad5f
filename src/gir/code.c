/* SPDX-License-Identifier: Apache-2.0 */
/* What generators of code ask of a step, too: nothing here needs the rest of the library. */
#include "gir/gir.h"

bool gir_is_call(const struct gir_code *code)
{
    if (code->op != GIR_SCALAR || !dtype_in(T_F32F64, code->type))
        return false;
    switch ((enum scalar_id)code->scalar) {
#define CALL(name, operands) case SCALAR_##name:
#include "gir/calls.def"
#undef CALL
        return true;
    default:
        return false;
    }
}

uint32_t gir_n_operands(const struct gir_code *code)
{
    static const uint8_t operands[SCALAR_COUNT_OF_IDS] = {
#define SCALAR(name, n, kind, work, meaning) [SCALAR_##name] = (n),
#include "ir/scalar.def"
#undef SCALAR
    };
    if (code->op == GIR_SCALAR)
        return operands[code->scalar];
    return code->op == GIR_CONVERT || code->op == GIR_STORE;
}
