/* SPDX-License-Identifier: Apache-2.0 */
/* The table of reductions, from the rows of reduction.def. */
#include "ir/reduction.h"

#include "ir/promotion.h"
#include "ir/scalar_postfix.h"

#define SHIFT_NONE REDUCTION_SHIFT_NONE
#define SHIFT_GIVEN REDUCTION_SHIFT_GIVEN
#define SHIFT_Max REDUCTION_Max

#define PROGRAM(...) ((const struct scalar_code[]){__VA_ARGS__{.id = SCALAR_END}})

const struct reduction_info reduction_table[REDUCTION_ROWS] = {
#define REDUCTION(row_, types_, shift_, identity_, before_, combine_, after_)                      \
    [REDUCTION_##row_] = {.row = REDUCTION_##row_,                                                 \
                          .name = #row_,                                                           \
                          .types = types_,                                                         \
                          .shift = SHIFT_##shift_,                                                 \
                          .combine = SCALAR_##combine_,                                            \
                          .identity = PROGRAM(identity_),                                          \
                          .before = PROGRAM(before_),                                              \
                          .after = PROGRAM(after_)},
#include "ir/reduction.def"
#undef REDUCTION
};

static bool reads_count(const struct scalar_code *program)
{
    for (const struct scalar_code *code = program; code->id != SCALAR_END; code++)
        if (code->id == SCALAR_COUNT)
            return true;
    return false;
}

tssa_dtype reduction_type(enum reduction_row row, tssa_dtype dtype)
{
    const dtype_mask types = reduction_table[row].types;
    if (dtype_is_float(dtype))
        return computed_in(dtype);
    if (dtype == TSSA_UINT64)
        return dtype_in(types, dtype) ? dtype : TSSA_DOUBLE;
    if (!dtype_in(types, TSSA_INT64))
        return TSSA_DOUBLE;
    return dtype == TSSA_INT32 && !reads_count(reduction_table[row].after) ? TSSA_INT32
                                                                           : TSSA_INT64;
}
