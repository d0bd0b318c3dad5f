/* SPDX-License-Identifier: Apache-2.0 */
/* The function of a kernel (codegen_run) being made: its parameters and blocks, and what its parts
 * are made of. */
#ifndef TSSA_CODEGEN_LLVM_FUNCTION_H
#define TSSA_CODEGEN_LLVM_FUNCTION_H

#include "codegen/llvm/emit.h"

enum { ARGS, STEPS, ROWS, LENGTH, CALLS, SCRATCH, N_PARAMS };

struct function {
    struct emitter *e;
    LLVMValue function, params[N_PARAMS];
    LLVMBlock entry, row, next, end; /* next: a row is done */
    LLVMValue r, whole;              /* the row; elements that whole vectors take */
    unsigned lanes;
    bool masks;
    /* of each reduction, in the kernel's order: memory for what is left over */
    LLVMValue levels[GIR_MAX_REDUCTIONS];
};

LLVMType function_integer(const struct function *f, unsigned bits);
LLVMValue function_number(const struct function *f, uint64_t value);
LLVMBlock function_block(const struct function *f, const char *name);
/* What is made comes behind the block's last instruction. */
void function_begin(const struct function *f, LLVMBlock at);
LLVMBlock function_here(const struct function *f);
/* A number that is `first` when control comes from the block. */
LLVMValue function_phi(const struct function *f, LLVMType type, LLVMValue first, LLVMBlock from);
/* What it is when control comes from where the function is now. */
void function_again(const struct function *f, LLVMValue phi, LLVMValue value);
/* Adds to a phi, and goes round as long as the sum is below the limit. */
void function_loop(const struct function *f, LLVMValue value, uint64_t step, LLVMValue limit,
                   LLVMBlock head, LLVMBlock out);
void function_branch(const struct function *f, LLVMValue truth, LLVMBlock yes, LLVMBlock no);
LLVMValue function_compare(const struct function *f, int predicate, LLVMValue a, LLVMValue b);

/* Where the arguments have the row. */
void function_places(const struct function *f);
/* Lanes 0, 1, ... that are less than what whole vectors leave. */
LLVMValue function_mask(const struct function *f);

/* Rows of a kernel that wants whole ones, or of one of columns. */
struct rows;
struct rows *rows_open(struct function *f); /* NULL: memory ran out */
void rows_close(struct rows *rows);
/* Memory on the stack: where the function begins. */
void rows_emit_memory(struct rows *rows);
/* Are there few elements in a row, and rows enough that these are the lanes? NULL: there is no such
 * code. */
LLVMValue rows_emit_is_short(const struct rows *rows);
/* One row, each element a lane: from where its places are known to block `next`. */
void rows_emit_long(struct rows *rows);
/* All rows, each a lane: from block `from` to block `end`. */
void rows_emit_short(struct rows *rows, LLVMBlock from);
/* The same two of a kernel of columns: all rows, from where the function is to block `end`. */
void rows_emit_column_memory(struct rows *rows);
void rows_emit_columns(struct rows *rows, LLVMBlock end);

#endif
