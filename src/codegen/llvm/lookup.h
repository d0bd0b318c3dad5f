/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of rows that are looked up and may not be there. */
#ifndef TSSA_CODEGEN_LLVM_LOOKUP_H
#define TSSA_CODEGEN_LLVM_LOOKUP_H

#include "codegen/llvm/emit.h"

/* The numbers, but 0 in place of those of which the argument has no row, the first of which the
 * call tells. */
LLVMValue emit_checked(struct emitter *e, uint32_t arg, LLVMValue numbers);

#endif
