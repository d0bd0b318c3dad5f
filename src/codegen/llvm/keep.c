/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight lanes at a time: their bits name a permutation (codegen_calls.kept), and the register is
 * stored as a whole, so that nothing branches. What of it is not kept is written over by what comes
 * behind it, or lies behind all: so much room there is, since no more is kept than there were
 * elements. Of a vector with a mask, which is the last one, no more is stored than is kept; a
 * single element is stored in any case. How many there are already is in memory: that, too, is
 * there sooner than the next vector. (Instructions of AVX-512 that compress take as long or longer,
 * kernels/cpu/lib/keep.c, and to memory many times that.)
 */
#include "codegen/llvm/keep.h"

#define STEP 8 /* lanes */
#define MOST_BYTES 128

static LLVMType integer(const struct emitter *e, unsigned bits)
{
    return e->llvm->LLVMIntTypeInContext(e->context, bits);
}

static LLVMType vector(const struct emitter *e, unsigned bits, unsigned lanes)
{
    return e->llvm->LLVMVectorType(integer(e, bits), lanes);
}

/* Lanes `first`, ..., each `times` in a row. */
static LLVMValue choose(const struct emitter *e, LLVMValue x, unsigned first, unsigned lanes,
                        unsigned times)
{
    LLVMValue numbers[MOST_BYTES];
    for (unsigned i = 0; i < lanes * times; i++)
        numbers[i] = emit_int(e, 32, first + i / times);
    return e->llvm->LLVMBuildShuffleVector(e->builder, x, x,
                                           e->llvm->LLVMConstVector(numbers, lanes * times), "");
}

/* Lane 0 in all of eight. */
static LLVMValue splat_first(const struct emitter *e, LLVMValue x)
{
    return e->llvm->LLVMBuildShuffleVector(e->builder, x, x,
                                           e->llvm->LLVMConstNull(vector(e, 32, STEP)), "");
}

static LLVMValue behind(const struct emitter *e, LLVMType type, LLVMValue pointer, LLVMValue index)
{
    return e->llvm->LLVMBuildGEP2(e->builder, type, pointer, &index, 1, "");
}

/* ---- How many there are ---------------------------------------------------------------------- */

LLVMValue emit_place_of_kept(const struct emitter *e, uint32_t arg)
{
    return behind(e, integer(e, 64), e->told, emit_int(e, 64, arg));
}

LLVMValue emit_first_position(const struct emitter *e)
{
    return e->llvm->LLVMBuildLoad2(e->builder, integer(e, 64),
                                   emit_place_of_kept(e, e->kernel->n_args), "");
}

LLVMValue emit_count_of_bits(struct emitter *e, LLVMValue bits)
{
    LLVMType word = integer(e, 64);
    return emit_intrinsic(e, "llvm.ctpop", &word, 1, &bits, 1);
}

/* A truth value of so many lanes as a number. */
static LLVMValue bits_of(const struct emitter *e, LLVMValue where, unsigned lanes)
{
    return emit_cast(e, LLVM_ZEXT, emit_cast(e, LLVM_BITCAST, where, integer(e, lanes)),
                     integer(e, 64));
}

LLVMValue emit_bits_of_lanes(const struct emitter *e, LLVMValue where)
{
    return bits_of(e, where, e->lanes);
}

/* ---- Eight lanes ----------------------------------------------------------------------------- */

/* Eight bytes as sixteen, of which the first eight count. */
static LLVMValue widen(const struct emitter *e, LLVMValue x)
{
    LLVMValue numbers[2 * STEP];
    for (unsigned i = 0; i < 2 * STEP; i++)
        numbers[i] = emit_int(e, 32, i % STEP);
    return e->llvm->LLVMBuildShuffleVector(e->builder, x, x,
                                           e->llvm->LLVMConstVector(numbers, 2 * STEP), "");
}

/* Elements of one byte, or of two, whose numbers are those of two bytes each. */
static LLVMValue permute_bytes(struct emitter *e, LLVMValue x, LLVMValue order, unsigned size)
{
    LLVMValue odd[2 * STEP];
    for (unsigned i = 0; i < 2 * STEP; i++)
        odd[i] = emit_int(e, 8, i % 2);
    if (size == 1) {
        order = widen(e, order);
        x = widen(e, x);
    } else {
        order = choose(e, order, 0, STEP, 2);
        order = emit_binary(e, LLVM_ADD, emit_binary(e, LLVM_ADD, order, order),
                            e->llvm->LLVMConstVector(odd, 2 * STEP));
        x = emit_cast(e, LLVM_BITCAST, x, vector(e, 8, 2 * STEP));
    }
    LLVMValue args[] = {x, order};
    return emit_intrinsic(e, "llvm.x86.ssse3.pshuf.b.128", NULL, 0, args, 2);
}

LLVMValue emit_order_of_bits(const struct emitter *e, LLVMValue bits)
{
    LLVMValue table = emit_entry_of(e, e->calls, CODEGEN_CALLS_KEPT);
    LLVMValue order = e->llvm->LLVMBuildLoad2(e->builder, vector(e, 8, STEP),
                                              behind(e, integer(e, 64), table, bits), "");
    e->llvm->LLVMSetAlignment(order, 8);
    return order;
}

/* x, eight integers of so many bytes, those first of which the bits are set. */
static LLVMValue permute(struct emitter *e, LLVMValue x, LLVMValue bits, unsigned size)
{
    LLVMValue order = emit_order_of_bits(e, bits);
    if (size < 4)
        return permute_bytes(e, x, order, size);
    LLVMValue args[] = {x, emit_cast(e, LLVM_ZEXT, order, vector(e, 32, STEP))};
    return emit_intrinsic(e, "llvm.x86.avx2.permd", NULL, 0, args, 2);
}

/* Elements of eight bytes are two of four. */
static void keep_vector(struct emitter *e, const struct gir_code *code, LLVMValue value,
                        LLVMValue where)
{
    const unsigned width = emit_size(code->type), times = width == 8 ? 2 : 1, size = width / times,
                   lanes = e->lanes * times;
    LLVMValue place = emit_place_of_kept(e, gir_arg_of(code)),
              step = emit_int(e, 64, (1u << STEP) - 1);
    LLVMValue at = e->llvm->LLVMBuildLoad2(e->builder, integer(e, 64), place, "");
    value = emit_cast(e, LLVM_BITCAST, value, vector(e, 8 * size, lanes));
    LLVMValue all = bits_of(e, times > 1 ? choose(e, where, 0, e->lanes, times) : where, lanes);
    for (unsigned i = 0; i < lanes; i += STEP) {
        LLVMValue bits = emit_binary(e, LLVM_LSHR, all, emit_int(e, 64, i));
        bits = emit_binary(e, LLVM_AND, bits, step);
        LLVMValue kept = permute(e, choose(e, value, i, STEP, 1), bits, size);
        if (size == 1)
            kept = choose(e, kept, 0, STEP, 1);
        LLVMValue to = behind(e, integer(e, 8 * width), e->args[gir_arg_of(code)], at);
        e->llvm->LLVMSetAlignment(e->llvm->LLVMBuildStore(e->builder, kept, to), width);
        LLVMValue n = emit_count_of_bits(e, bits);
        if (times > 1)
            n = emit_binary(e, LLVM_LSHR, n, emit_int(e, 64, 1));
        at = emit_binary(e, LLVM_ADD, at, n);
    }
    e->llvm->LLVMBuildStore(e->builder, at, place);
}

/* Positions, of which the permutation itself says how far they are behind the first of eight. */
static void keep_positions(struct emitter *e, const struct gir_code *code, LLVMValue where)
{
    LLVMType words = vector(e, 64, STEP);
    LLVMValue place = emit_place_of_kept(e, gir_arg_of(code)),
              step = emit_int(e, 64, (1u << STEP) - 1);
    LLVMValue at = e->llvm->LLVMBuildLoad2(e->builder, integer(e, 64), place, "");
    LLVMValue first = emit_binary(e, LLVM_ADD, e->index, emit_first_position(e)),
              all = bits_of(e, where, e->lanes);
    for (unsigned i = 0; i < e->lanes; i += STEP) {
        LLVMValue bits = emit_binary(e, LLVM_LSHR, all, emit_int(e, 64, i));
        bits = emit_binary(e, LLVM_AND, bits, step);
        LLVMValue one = emit_binary(e, LLVM_ADD, first, emit_int(e, 64, i));
        one = e->llvm->LLVMBuildInsertElement(e->builder, e->llvm->LLVMGetPoison(words), one,
                                              emit_int(e, 32, 0), "");
        LLVMValue numbers = emit_cast(e, LLVM_ZEXT, emit_order_of_bits(e, bits), words);
        numbers = emit_binary(e, LLVM_ADD, numbers, splat_first(e, one));
        LLVMValue to = behind(e, integer(e, 64), e->args[gir_arg_of(code)], at);
        e->llvm->LLVMSetAlignment(e->llvm->LLVMBuildStore(e->builder, numbers, to), 8);
        at = emit_binary(e, LLVM_ADD, at, emit_count_of_bits(e, bits));
    }
    e->llvm->LLVMBuildStore(e->builder, at, place);
}

/* ---- Others ---------------------------------------------------------------------------------- */

static void keep_masked(struct emitter *e, const struct gir_code *code, LLVMValue value,
                        LLVMValue where)
{
    LLVMType type = emit_type(e, code->type);
    LLVMValue place = emit_place_of_kept(e, gir_arg_of(code));
    LLVMValue at = e->llvm->LLVMBuildLoad2(e->builder, integer(e, 64), place, "");
    where = emit_binary(e, LLVM_AND, where, e->mask);
    LLVMValue to = behind(e, emit_element(e, code->type), e->args[gir_arg_of(code)], at);
    LLVMValue args[] = {value, to, where};
    emit_intrinsic(e, "llvm.masked.compressstore", &type, 1, args, 3);
    at = emit_binary(e, LLVM_ADD, at, emit_count_of_bits(e, bits_of(e, where, e->lanes)));
    e->llvm->LLVMBuildStore(e->builder, at, place);
}

static void keep_one(const struct emitter *e, const struct gir_code *code, LLVMValue value,
                     LLVMValue where)
{
    LLVMValue place = emit_place_of_kept(e, gir_arg_of(code));
    LLVMValue at = e->llvm->LLVMBuildLoad2(e->builder, integer(e, 64), place, "");
    LLVMValue to = behind(e, emit_element(e, code->type), e->args[gir_arg_of(code)], at);
    e->llvm->LLVMSetAlignment(e->llvm->LLVMBuildStore(e->builder, value, to),
                              emit_size(code->type));
    at = emit_binary(e, LLVM_ADD, at, emit_cast(e, LLVM_ZEXT, where, integer(e, 64)));
    e->llvm->LLVMBuildStore(e->builder, at, place);
}

void emit_keep(struct emitter *e, const struct gir_code *code, LLVMValue value, LLVMValue where)
{
    const struct gir_code *of = &gir_codes(e->kernel)[code->operands[0]];
    if (gir_args(e->kernel)[gir_arg_of(code)].fields > 1)
        emit_keep_field(e, code, value, where);
    else if (e->lanes == 1)
        keep_one(e, code, value, where);
    else if (e->mask)
        keep_masked(e, code, value, where);
    else if (of->op == GIR_POSITION && code->type == TSSA_INT64)
        keep_positions(e, code, where);
    else
        keep_vector(e, code, value, where);
}

/* ---- What is behind the masks ---------------------------------------------------------------- */

void keep_find_behind(const struct gir_kernel *kernel, bool *behind)
{
    bool before[GIR_MAX_CODES] = {false};
    for (uint32_t i = kernel->n_codes; i-- > 0;) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        const bool keeps = code->op == GIR_KEEP;
        before[i] |= gir_has_effect(code) && !keeps;
        behind[i] = !before[i];
        for (uint32_t k = 0; k < gir_n_operands(code); k++)
            before[code->operands[k]] |= before[i] || (keeps && k == 1);
    }
}

/* Of all lanes, is anything kept? */
static LLVMValue keeps_any(struct emitter *e)
{
    LLVMValue all = NULL;
    uint32_t last = GIR_MAX_CODES;
    for (uint32_t i = 0; i < e->kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(e->kernel)[i];
        if (code->op != GIR_KEEP || code->operands[1] == last)
            continue;
        last = code->operands[1];
        all = all ? emit_binary(e, LLVM_OR, all, e->values[last]) : e->values[last];
    }
    if (e->mask)
        all = emit_binary(e, LLVM_AND, all, e->mask);
    return e->llvm->LLVMBuildICmp(e->builder, LLVM_INE, emit_bits_of_lanes(e, all),
                                  emit_int(e, 64, 0), "");
}

void emit_steps_behind(struct emitter *e, const bool *behind)
{
    const struct llvm_api *llvm = e->llvm;
    LLVMBlock none = NULL;
    if (e->lanes > 1) {
        LLVMBlock some = llvm->LLVMAppendBasicBlockInContext(e->context, e->function, "some_kept");
        none = llvm->LLVMAppendBasicBlockInContext(e->context, e->function, "none_kept");
        llvm->LLVMBuildCondBr(e->builder, keeps_any(e), some, none);
        llvm->LLVMPositionBuilderAtEnd(e->builder, some);
    }
    for (uint32_t i = 0; i < e->kernel->n_codes; i++)
        if (behind[i] && !(e->lanes > 1 && keep_copies(e->kernel, i)))
            emit_step(e, i);
    if (!none)
        return;
    llvm->LLVMBuildBr(e->builder, none);
    llvm->LLVMPositionBuilderAtEnd(e->builder, none);
}
