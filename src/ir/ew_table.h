/* SPDX-License-Identifier: Apache-2.0 */
/* What the element-wise rows of the op table have besides: in a file of its own, since it takes
 * programs to write. */
#ifndef TSSA_IR_EW_TABLE_H
#define TSSA_IR_EW_TABLE_H

#include "ir/ops.h"

enum ew_index {
#define OP(...)
#define EW(id_, ...) EW_INDEX_##id_,
#include "ir/ops.def"
#undef OP
#undef EW
    EW_COUNT
};

extern const struct ew_info ew_table[EW_COUNT];

#endif
