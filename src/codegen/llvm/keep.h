/* SPDX-License-Identifier: Apache-2.0 */
/* Stores of what is kept, one behind the other. */
#ifndef TSSA_CODEGEN_LLVM_KEEP_H
#define TSSA_CODEGEN_LLVM_KEEP_H

#include "codegen/llvm/emit.h"

/* Lanes of a value, where these of a truth value are true. */
void emit_keep(struct emitter *e, const struct gir_code *code, LLVMValue value, LLVMValue where);

/* The position of the first element of the call: an i64. */
LLVMValue emit_first_position(const struct emitter *e);

#endif
