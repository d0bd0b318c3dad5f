/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of columns have in common: columns.c, which reduces, and iterations.c. */
#ifndef TSSA_CODEGEN_LLVM_COLUMNS_H
#define TSSA_CODEGEN_LLVM_COLUMNS_H

#include "codegen/llvm/rows.h"

/* Where the arguments are in row 0, and how far from row to row. */
struct columns {
    struct rows *r;
    LLVMValue bases[GIR_MAX_ARGS], steps[GIR_MAX_ARGS];
};

/* Loads them, and says that the arguments are in row 0. */
void columns_find_places(struct columns *columns);
/* Where the arguments are in the row. */
void columns_go_to(const struct rows *r, LLVMValue row);
/* What was loaded of records is that of other columns, of another row, or of none. */
void columns_forget_records(struct emitter *emitter);

/* rows_emit_column_memory and rows_emit_columns where rows are iterations. */
void iterations_emit_memory(struct rows *r);
void iterations_emit(struct rows *r, LLVMBlock end);

#endif
