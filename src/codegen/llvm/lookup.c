/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison and a branch that is never taken: a block of its own looks for the first lane, and
 * notes which element it is and its number, where nothing is noted yet. Elements come in their
 * order, so that this is the first one of the call.
 */
#include "codegen/llvm/lookup.h"

static LLVMType integer(const struct emitter *e, unsigned bits)
{
    return e->llvm->LLVMIntTypeInContext(e->context, bits);
}

static LLVMValue compare(const struct emitter *e, int predicate, LLVMValue a, LLVMValue b)
{
    return e->llvm->LLVMBuildICmp(e->builder, predicate, a, b, "");
}

/* A number of those that the call tells. */
static LLVMValue place_of(const struct emitter *e, uint32_t number)
{
    LLVMValue index = emit_int(e, 64, number);
    return e->llvm->LLVMBuildGEP2(e->builder, integer(e, 64), e->told, &index, 1, "");
}

static LLVMValue told(const struct emitter *e, uint32_t number)
{
    return e->llvm->LLVMBuildLoad2(e->builder, integer(e, 64), place_of(e, number), "");
}

/* Lanes that are there and whose number is of no row. */
static LLVMValue find_wrong(const struct emitter *e, LLVMValue numbers, LLVMValue size)
{
    LLVMValue least = emit_binary(e, LLVM_SUB, emit_constant(e, TSSA_INT64, 0), size);
    LLVMValue wrong = emit_binary(e, LLVM_OR, compare(e, LLVM_SLT, numbers, least),
                                  compare(e, LLVM_SGE, numbers, size));
    return e->mask ? emit_binary(e, LLVM_AND, wrong, e->mask) : wrong;
}

/* The number of the first lane of `wrong`, an i64. */
static LLVMValue find_lane(struct emitter *e, LLVMValue wrong)
{
    LLVMType word = integer(e, 64);
    LLVMValue bits = emit_cast(e, LLVM_BITCAST, wrong, integer(e, e->lanes));
    LLVMValue args[] = {e->lanes < 64 ? emit_cast(e, LLVM_ZEXT, bits, word) : bits,
                        emit_int(e, 1, 1)};
    return emit_intrinsic(e, "llvm.cttz", &word, 1, args, 2);
}

static void note(struct emitter *e, uint32_t arg, LLVMValue numbers, LLVMValue wrong)
{
    const uint32_t n_args = e->kernel->n_args;
    LLVMValue number = numbers, element = emit_binary(e, LLVM_MUL, e->row, e->length);
    element = emit_binary(e, LLVM_ADD, element, told(e, 2 * n_args));
    if (e->index)
        element = emit_binary(e, LLVM_ADD, element, e->index);
    if (e->lanes > 1) {
        LLVMValue lane = find_lane(e, wrong);
        number = e->llvm->LLVMBuildExtractElement(e->builder, numbers, lane, "");
        element = e->index ? emit_binary(e, LLVM_ADD, element, lane) : element;
    }
    LLVMValue none = compare(e, LLVM_SLT, told(e, arg), emit_int(e, 64, 0));
    element = e->llvm->LLVMBuildSelect(e->builder, none, element, told(e, arg), "");
    number = e->llvm->LLVMBuildSelect(e->builder, none, number, told(e, n_args + arg), "");
    e->llvm->LLVMBuildStore(e->builder, element, place_of(e, arg));
    e->llvm->LLVMBuildStore(e->builder, number, place_of(e, n_args + arg));
}

LLVMValue emit_checked(struct emitter *e, uint32_t arg, LLVMValue numbers)
{
    const struct llvm_api *llvm = e->llvm;
    LLVMValue size = e->lookup_sizes[arg], zero = emit_constant(e, TSSA_INT64, 0);
    if (e->lanes > 1)
        size = emit_splat(e, size, TSSA_INT64);
    LLVMValue wrong = find_wrong(e, numbers, size), any = wrong;
    if (e->lanes > 1) {
        LLVMType bits = integer(e, e->lanes);
        any = compare(e, LLVM_INE, emit_cast(e, LLVM_BITCAST, wrong, bits),
                      llvm->LLVMConstNull(bits));
    }
    LLVMBlock here = llvm->LLVMAppendBasicBlockInContext(e->context, e->function, "wrong"),
              on = llvm->LLVMAppendBasicBlockInContext(e->context, e->function, "looked");
    llvm->LLVMBuildCondBr(e->builder, any, here, on);
    llvm->LLVMPositionBuilderAtEnd(e->builder, here);
    note(e, arg, numbers, wrong);
    llvm->LLVMBuildBr(e->builder, on);
    llvm->LLVMPositionBuilderAtEnd(e->builder, on);
    return emit_select(e, wrong, zero, numbers);
}
