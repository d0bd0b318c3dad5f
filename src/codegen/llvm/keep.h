/* SPDX-License-Identifier: Apache-2.0 */
/* Stores of what is kept, one behind the other. */
#ifndef TSSA_CODEGEN_LLVM_KEEP_H
#define TSSA_CODEGEN_LLVM_KEEP_H

#include "codegen/llvm/emit.h"

/* Lanes of a value, where these of a truth value are true. */
void emit_keep(struct emitter *e, const struct gir_code *code, LLVMValue value, LLVMValue where);

/* Marks the steps that only what is kept needs: of a vector of which nothing is, none of them is
 * made. */
void keep_find_behind(const struct gir_kernel *kernel, bool *behind);
void emit_steps_behind(struct emitter *e, const bool *behind);

/* The position of the first element of the call: an i64. */
LLVMValue emit_first_position(const struct emitter *e);

/* Where it is told how many elements or records are kept in the argument. */
LLVMValue emit_place_of_kept(const struct emitter *e, uint32_t arg);
/* A truth value of all lanes as a number of so many bits, an i64; and how many of these are set. */
LLVMValue emit_bits_of_lanes(const struct emitter *e, LLVMValue where);
LLVMValue emit_count_of_bits(struct emitter *e, LLVMValue bits);
/* The numbers of those that are, of eight, a byte each, and then zeros. */
LLVMValue emit_order_of_bits(const struct emitter *e, LLVMValue bits);

/* ---- keep_records.c -------------------------------------------------------------------------- */

/* A field of records: the last one of them keeps them. */
void emit_keep_field(struct emitter *e, const struct gir_code *code, LLVMValue value,
                     LLVMValue where);
/* Memory on the stack for a vector's records, where the function begins. */
void emit_keep_memory(struct emitter *e);
/* Is the step a load of which only records have need that are kept as they are? */
bool keep_copies(const struct gir_kernel *kernel, uint32_t step);

#endif
