/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a kernel as LLVM's instructions, on vectors of some lanes, or on elements where that is
 * one. */
#ifndef TSSA_CODEGEN_LLVM_EMIT_H
#define TSSA_CODEGEN_LLVM_EMIT_H

#include "codegen/codegen.h"
#include "codegen/llvm/api.h"

/* What is there of an argument of records, where vectors of them are loaded or stored. */
struct emitted_records {
    LLVMValue index; /* that they were loaded at */
    LLVMValue fields[GIR_MAX_FIELDS];
    unsigned n_stored;
};

/* A module being made. */
struct emitter {
    const struct llvm_api *llvm;
    const struct gir_kernel *kernel;
    LLVMContext context;
    LLVMModule module;
    LLVMBuilder builder;
    LLVMValue function; /* being made: steps may add blocks to it */
    unsigned lanes;     /* of values being emitted */
    unsigned register_bytes;
    bool has_fma;
    bool failed; /* LLVM lacks an intrinsic */

    /* For loads and stores of what moves: where the elements are, and the lanes that are there,
     * NULL: all. */
    LLVMValue args[GIR_MAX_ARGS];    /* a pointer to element 0 of the row */
    LLVMValue strides[GIR_MAX_ARGS]; /* of what is strided, bytes from an element to the next */
    LLVMValue lookup_strides[GIR_MAX_ARGS]; /* of what is looked up in, from a row to the next */
    LLVMValue lookup_sizes[GIR_MAX_ARGS];   /* and how many there are */
    struct emitted_records records[GIR_MAX_ARGS];
    LLVMValue index, mask; /* index: NULL where all elements of the row are the same */
    bool is_across; /* lanes are rows: what does not move has an element for each lane, too */
    /* then, its number in the row; strides[] are from one to the next of what is strided */
    LLVMValue element;
    LLVMValue row; /* where rows are one after the other */
    /* and the rows that are there of that; NULL: any may be loaded */
    LLVMValue row_masks[GIR_MAX_ARGS];
    LLVMValue length;    /* of a row */
    LLVMValue calls;     /* struct codegen_calls */
    LLVMValue told;      /* of a kernel that keeps, or checks: what `scratch` is */
    LLVMValue kept_room; /* and memory for the records of a vector; NULL: none is computed */
    LLVMValue rooms[3];  /* memory for a, b and out of a call; NULL where nothing is called */
    LLVMValue values[GIR_MAX_CODES];
};

LLVMType emit_type(const struct emitter *e, tssa_dtype dtype);    /* of a value */
LLVMType emit_element(const struct emitter *e, tssa_dtype dtype); /* of one lane */
unsigned emit_size(tssa_dtype dtype);                             /* of one lane, in memory */
LLVMValue emit_int(const struct emitter *e, unsigned bits, uint64_t value);
/* x in all lanes. */
LLVMValue emit_splat(const struct emitter *e, LLVMValue x, tssa_dtype dtype);
/* An entry of an array of pointers. */
LLVMValue emit_entry_of(const struct emitter *e, LLVMValue array, unsigned number);
LLVMValue emit_intrinsic(struct emitter *e, const char *name, LLVMType *types, unsigned n_types,
                         LLVMValue *args, unsigned n_args);
LLVMValue emit_binary(const struct emitter *e, int opcode, LLVMValue x, LLVMValue y);
LLVMValue emit_cast(const struct emitter *e, int opcode, LLVMValue x, LLVMType type);
LLVMValue emit_select(const struct emitter *e, LLVMValue truth, LLVMValue x, LLVMValue y);

/* A constant of a type, its bits in all lanes. */
LLVMValue emit_constant(const struct emitter *e, tssa_dtype dtype, uint64_t bits);
LLVMValue emit_number(const struct emitter *e, tssa_dtype dtype, double number);
LLVMValue emit_convert(struct emitter *e, LLVMValue x, tssa_dtype from, tssa_dtype to);
/* An operation of values of this type (SEL: of what it chooses between). */
LLVMValue emit_scalar(struct emitter *e, const struct gir_code *code, tssa_dtype type,
                      const LLVMValue *x);
/* A function of x in place, without a call; NULL: it is none that is emitted so. */
LLVMValue emit_function(struct emitter *e, const struct gir_code *code, LLVMValue x);
/* Step i of the kernel, into values[i]. */
void emit_step(struct emitter *e, uint32_t i);

#endif
