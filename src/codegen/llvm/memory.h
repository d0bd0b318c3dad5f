/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of arguments whose elements are not side by side in a row. */
#ifndef TSSA_CODEGEN_LLVM_MEMORY_H
#define TSSA_CODEGEN_LLVM_MEMORY_H

#include "codegen/llvm/emit.h"

/* Of records: whole vectors of them are loaded once for all fields that are read, and stored once
 * all fields are there. */
LLVMValue emit_load_field(struct emitter *e, const struct gir_code *code);
void emit_store_field(struct emitter *e, const struct gir_code *code, LLVMValue value);
/* The value is a field of a record: are all there now? */
bool emit_has_all_fields(struct emitter *e, const struct gir_code *code, LLVMValue value);
/* Then, stores the records of all lanes, from that place on. */
void emit_store_all(struct emitter *e, const struct gir_code *code, LLVMValue where);
/* Or makes the vectors that would be stored, of so many elements each: there are as many elements
 * as the records have together. */
unsigned emit_join_all(struct emitter *e, const struct gir_code *code, LLVMValue *vectors);

LLVMValue emit_load_strided(struct emitter *e, const struct gir_code *code);
/* Bytes behind an argument's first element, at each lane's offset; and where the rows of these
 * numbers are. */
LLVMValue emit_load_at(struct emitter *e, const struct gir_code *code, LLVMValue offsets);
LLVMValue emit_lookup_offsets(const struct emitter *e, uint32_t arg, LLVMValue number);
void emit_store_strided(struct emitter *e, const struct gir_code *code, LLVMValue value);

#endif
