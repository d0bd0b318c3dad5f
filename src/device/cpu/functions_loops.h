/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of functions.h for one type: T, T_IS_FLOAT and so on as in
 * ir/scalar/ops.h; T_LANES, of the widest vectors; T_BASE, T_V3 and T_V4, the tables. */
#include "base/clones.h"
#include "device/cpu/functions.h"
#include "ir/scalar/ops.h"

#define OF_1(name) name(x[i])
#define OF_2(name) name(x[i], y[i])
#define LOOP_PARAMS (const void *a, const void *b, void *out, int64_t n)

/* A number of times that the compiler knows makes a few vectors. */
#define CALL(name, operands)                                                                       \
    VECTOR_PROCEDURE(loop_##name, LOOP_PARAMS, (a, b, out, n))                                     \
    {                                                                                              \
        const T *restrict x = a, *restrict y = b;                                                  \
        T *restrict o = out;                                                                       \
        (void)y;                                                                                   \
        if (n == T_LANES)                                                                          \
            for (int i = 0; i < T_LANES; i++)                                                      \
                o[i] = OF_##operands(name);                                                        \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                o[i] = OF_##operands(name);                                                        \
    }
#include "gir/calls.def"
#undef CALL

#if defined(__x86_64__)
#define LEVEL(name, level) loop_##name##_##level
#else
#define LEVEL(name, level) loop_##name
#endif
#define CALL(name, operands) [SCALAR_##name] = LEVEL(name, base),
const codegen_function T_BASE[SCALAR_COUNT_OF_IDS] = {
#include "gir/calls.def"
};
#undef CALL
#define CALL(name, operands) [SCALAR_##name] = LEVEL(name, v3),
const codegen_function T_V3[SCALAR_COUNT_OF_IDS] = {
#include "gir/calls.def"
};
#undef CALL
#define CALL(name, operands) [SCALAR_##name] = LEVEL(name, v4),
const codegen_function T_V4[SCALAR_COUNT_OF_IDS] = {
#include "gir/calls.def"
};
#undef CALL
