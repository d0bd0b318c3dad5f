/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records are kept as elements are (keep.c), if registers hold some of them: eight lanes of four or
 * eight bytes, of which a record has several, are permuted and stored as a whole. Others, and those
 * of a vector with a mask, are copied one by one, from where the operand has them, or, if they are
 * computed, from the stack, where those of a vector are stored side by side. Where few of a vector
 * are kept it goes from one of these to the next; else all of it are copied, each to where the one
 * before it lies if that is not kept, so that nothing branches.
 */
#include "codegen/llvm/keep.h"
#include "codegen/llvm/memory.h"

#define FEW 4 /* one of so many */
#define NO_SOURCE UINT32_MAX

/* What is copied. */
struct copied {
    struct emitter *e;
    uint32_t arg;
    LLVMType type;        /* of a record */
    unsigned alignment;   /* of an element, its bytes */
    unsigned bytes;       /* of a record */
    LLVMValue from, bits; /* of the first lane; those that are kept */
};

static LLVMType word(const struct emitter *e)
{
    return e->llvm->LLVMIntTypeInContext(e->context, 64);
}

static LLVMBlock block(const struct emitter *e, const char *name)
{
    return e->llvm->LLVMAppendBasicBlockInContext(e->context, e->function, name);
}

static LLVMType record_type(const struct emitter *e, uint32_t arg)
{
    const struct gir_arg *of = &gir_args(e->kernel)[arg];
    const tssa_dtype dtype = of->dtype == TSSA_BOOL ? TSSA_UINT8 : (tssa_dtype)of->dtype;
    return e->llvm->LLVMVectorType(emit_element(e, dtype), of->fields);
}

static LLVMValue byte_at(const struct emitter *e, LLVMValue base, LLVMValue offset)
{
    return e->llvm->LLVMBuildGEP2(e->builder, e->llvm->LLVMIntTypeInContext(e->context, 8), base,
                                  &offset, 1, "");
}

/* Record `index` from there on. */
static LLVMValue record_at(const struct copied *c, LLVMValue base, LLVMValue index)
{
    return byte_at(c->e, base, emit_binary(c->e, LLVM_MUL, index, emit_int(c->e, 64, c->bytes)));
}

static void copy(const struct copied *c, LLVMValue from, LLVMValue to)
{
    const struct emitter *e = c->e;
    LLVMValue x = e->llvm->LLVMBuildLoad2(e->builder, c->type, record_at(c, c->from, from), "");
    e->llvm->LLVMSetAlignment(x, c->alignment);
    LLVMValue where = record_at(c, e->args[c->arg], to);
    e->llvm->LLVMSetAlignment(e->llvm->LLVMBuildStore(e->builder, x, where), c->alignment);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static LLVMValue phi_of(const struct emitter *e, LLVMValue first, LLVMBlock from)
{
    LLVMValue phi = e->llvm->LLVMBuildPhi(e->builder, word(e), "");
    e->llvm->LLVMAddIncoming(phi, &first, &from, 1);
    return phi;
}

/* From bit to bit, of which there is one; returns where the next one goes. */
static LLVMValue copy_few(const struct copied *c, LLVMValue at, LLVMBlock next)
{
    struct emitter *e = c->e;
    const struct llvm_api *llvm = e->llvm;
    LLVMType type = word(e);
    LLVMBlock from = llvm->LLVMGetInsertBlock(e->builder), loop = block(e, "bit");
    llvm->LLVMBuildBr(e->builder, loop);
    llvm->LLVMPositionBuilderAtEnd(e->builder, loop);
    LLVMValue left = phi_of(e, c->bits, from), to = phi_of(e, at, from);
    LLVMValue args[] = {left, emit_int(e, 1, 1)};
    copy(c, emit_intrinsic(e, "llvm.cttz", &type, 1, args, 2), to);
    LLVMValue less = emit_binary(e, LLVM_SUB, left, emit_int(e, 64, 1));
    LLVMValue rest = emit_binary(e, LLVM_AND, left, less),
              behind = emit_binary(e, LLVM_ADD, to, emit_int(e, 64, 1));
    llvm->LLVMAddIncoming(left, &rest, &loop, 1);
    llvm->LLVMAddIncoming(to, &behind, &loop, 1);
    llvm->LLVMBuildCondBr(e->builder,
                          llvm->LLVMBuildICmp(e->builder, LLVM_INE, rest, emit_int(e, 64, 0), ""),
                          loop, next);
    return behind;
}

static LLVMValue copy_all(const struct copied *c, LLVMValue at, LLVMBlock next)
{
    const struct emitter *e = c->e;
    for (unsigned i = 0; i < e->lanes; i++) {
        copy(c, emit_int(e, 64, i), at);
        LLVMValue bit = emit_binary(e, LLVM_LSHR, c->bits, emit_int(e, 64, i));
        at = emit_binary(e, LLVM_ADD, at, emit_binary(e, LLVM_AND, bit, emit_int(e, 64, 1)));
    }
    e->llvm->LLVMBuildBr(e->builder, next);
    return at;
}

/* Those of all lanes. */
static void copy_kept(const struct copied *c)
{
    struct emitter *e = c->e;
    const struct llvm_api *llvm = e->llvm;
    LLVMBlock few = block(e, "few"), next = block(e, "copied"), ends[2];
    LLVMValue place = emit_place_of_kept(e, c->arg), behind[2];
    LLVMValue at = llvm->LLVMBuildLoad2(e->builder, word(e), place, "");
    LLVMBlock all = e->mask ? NULL : block(e, "all");
    if (all)
        llvm->LLVMBuildCondBr(e->builder,
                              llvm->LLVMBuildICmp(e->builder, LLVM_ULT,
                                                  emit_count_of_bits(e, c->bits),
                                                  emit_int(e, 64, e->lanes / FEW), ""),
                              few, all);
    else
        llvm->LLVMBuildBr(e->builder, few);
    llvm->LLVMPositionBuilderAtEnd(e->builder, few);
    behind[0] = copy_few(c, at, next);
    ends[0] = llvm->LLVMGetInsertBlock(e->builder);
    if (all) {
        llvm->LLVMPositionBuilderAtEnd(e->builder, all);
        behind[1] = copy_all(c, at, next);
        ends[1] = all;
    }
    llvm->LLVMPositionBuilderAtEnd(e->builder, next);
    LLVMValue n = llvm->LLVMBuildPhi(e->builder, word(e), "");
    llvm->LLVMAddIncoming(n, behind, ends, all ? 2 : 1);
    llvm->LLVMBuildStore(e->builder, n, place);
}

/* ---- Where they are -------------------------------------------------------------------------- */

/* The operand of which the argument's records are, as they are; NO_SOURCE: they are computed. */
static uint32_t source_of(const struct gir_kernel *kernel, uint32_t arg)
{
    uint32_t source = NO_SOURCE;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i],
                              *of = &gir_codes(kernel)[code->operands[0]];
        if (code->op != GIR_KEEP || gir_arg_of(code) != arg)
            continue;
        if (of->op != GIR_LOAD || gir_field_of(of) != gir_field_of(code) ||
            (source != NO_SOURCE && gir_arg_of(of) != source))
            return NO_SOURCE;
        source = gir_arg_of(of);
    }
    const struct gir_arg *args = gir_args(kernel);
    return source != NO_SOURCE && args[source].moves == GIR_SIDE_BY_SIDE &&
                   args[source].fields == args[arg].fields
               ? source
               : NO_SOURCE;
}

bool keep_copies(const struct gir_kernel *kernel, uint32_t step)
{
    const struct gir_code *codes = gir_codes(kernel);
    if (codes[step].op != GIR_LOAD)
        return false;
    for (uint32_t i = step + 1; i < kernel->n_codes; i++)
        for (uint32_t k = 0; k < gir_n_operands(&codes[i]); k++)
            if (codes[i].operands[k] == step &&
                (codes[i].op != GIR_KEEP || gir_args(kernel)[gir_arg_of(&codes[i])].fields == 1 ||
                 source_of(kernel, gir_arg_of(&codes[i])) == NO_SOURCE))
                return false;
    return true;
}

void emit_keep_memory(struct emitter *e)
{
    const struct llvm_api *llvm = e->llvm;
    uint64_t most = 0;
    for (uint32_t k = 0; k < e->kernel->n_args; k++) {
        const struct gir_arg *arg = &gir_args(e->kernel)[k];
        const uint64_t bytes = (uint64_t)e->lanes * arg->fields * emit_size(arg->dtype);
        if (arg->is_kept && arg->fields > 1 && source_of(e->kernel, k) == NO_SOURCE && bytes > most)
            most = bytes;
    }
    if (!most)
        return;
    LLVMType bytes = llvm->LLVMArrayType2(llvm->LLVMIntTypeInContext(e->context, 8), most);
    e->kept_room = llvm->LLVMBuildAlloca(e->builder, bytes, "");
    llvm->LLVMSetAlignment(e->kept_room, 64);
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

#define PIECE 8 /* lanes */
#define BITS 64
#define MOST_VECTORS 64

/* How records are permuted: eight lanes of so many bytes, of which a record has `times`. */
struct pieces {
    unsigned size, times;
    unsigned n_lanes;                /* of a vector */
    LLVMValue vectors[MOST_VECTORS]; /* in lanes; of what is loaded none */
};

/* Bytes of a lane; 0: records do not come in such pieces. A vector is of at least one. */
static unsigned piece_size(const struct emitter *e, const struct copied *c)
{
    const unsigned most = e->register_bytes, all = e->lanes * c->alignment,
                   vector = all < most ? all : most,
                   size = vector >= 8 * PIECE && c->bytes >= 8 ? 8 : 4;
    const bool whole = !(c->bytes & (c->bytes - 1)) && c->bytes >= size &&
                       c->bytes <= size * PIECE && vector >= size * PIECE;
    return whole ? size : 0;
}

/* The bits of lanes of records from number `first` on, each `times` in a row: 64 of them. */
static LLVMValue spread_bits(struct emitter *e, const struct copied *c, LLVMValue where,
                             unsigned first, unsigned times)
{
    unsigned lanes = BITS / times;
    LLVMValue numbers[BITS];
    if (times == 1 || e->register_bytes < BITS) {
        lanes = lanes < e->lanes ? lanes : e->lanes;
        for (unsigned i = 0; i < lanes * times; i++)
            numbers[i] = emit_int(e, 32, first + i / times);
        where = e->llvm->LLVMBuildShuffleVector(
            e->builder, where, where, e->llvm->LLVMConstVector(numbers, lanes * times), "");
        LLVMType all = e->llvm->LLVMIntTypeInContext(e->context, lanes * times);
        where = emit_cast(e, LLVM_BITCAST, where, all);
        return lanes * times == BITS ? where : emit_cast(e, LLVM_ZEXT, where, word(e));
    }
    LLVMValue bits = emit_binary(e, LLVM_LSHR, c->bits, emit_int(e, 64, first));
    const uint64_t ones = (UINT64_C(1) << times) - 1;
    LLVMValue args[] = {bits, emit_int(e, 64, UINT64_MAX / ones)};
    bits = emit_intrinsic(e, "llvm.x86.bmi.pdep.64", NULL, 0, args, 2);
    return emit_binary(e, LLVM_MUL, bits, emit_int(e, 64, ones));
}

static LLVMType piece_type(const struct emitter *e, unsigned size)
{
    return e->llvm->LLVMVectorType(e->llvm->LLVMIntTypeInContext(e->context, 8 * size), PIECE);
}

static LLVMValue piece_of(const struct copied *c, const struct pieces *p, unsigned number)
{
    const struct emitter *e = c->e;
    LLVMValue numbers[PIECE];
    if (!p->n_lanes) {
        LLVMValue from = byte_at(e, c->from, emit_int(e, 64, number * p->size * PIECE));
        LLVMValue x = e->llvm->LLVMBuildLoad2(e->builder, piece_type(e, p->size), from, "");
        e->llvm->LLVMSetAlignment(x, c->alignment);
        return x;
    }
    const unsigned first = number * PIECE % p->n_lanes;
    LLVMValue vector = p->vectors[number * PIECE / p->n_lanes];
    for (unsigned i = 0; i < PIECE; i++)
        numbers[i] = emit_int(e, 32, first + i);
    return e->llvm->LLVMBuildShuffleVector(e->builder, vector, vector,
                                           e->llvm->LLVMConstVector(numbers, PIECE), "");
}

static LLVMValue permute(struct emitter *e, LLVMValue x, LLVMValue order, unsigned size)
{
    const char *name = size == 8 ? "llvm.x86.avx512.permvar.di.512" : "llvm.x86.avx2.permd";
    LLVMValue args[] = {x, emit_cast(e, LLVM_ZEXT, order, piece_type(e, size))};
    return emit_intrinsic(e, name, NULL, 0, args, 2);
}

/* The vectors of the records, in lanes of pieces. */
static void find_vectors(const struct copied *c, const struct gir_code *code, struct pieces *p)
{
    struct emitter *e = c->e;
    const unsigned width = emit_join_all(e, code, p->vectors),
                   n = e->lanes * c->bytes / (width * c->alignment);
    p->n_lanes = width * c->alignment / p->size;
    LLVMType type =
        e->llvm->LLVMVectorType(e->llvm->LLVMIntTypeInContext(e->context, 8 * p->size), p->n_lanes);
    for (unsigned i = 0; i < n; i++)
        p->vectors[i] = emit_cast(e, LLVM_BITCAST, p->vectors[i], type);
}

/* Those of all lanes. Where they go is counted in bytes: bits of lanes are as many. */
static void keep_pieces(const struct copied *c, const struct pieces *p, LLVMValue where)
{
    struct emitter *e = c->e;
    const struct llvm_api *llvm = e->llvm;
    const unsigned n = e->lanes * p->times / PIECE;
    LLVMValue place = emit_place_of_kept(e, c->arg), bits = NULL, size = emit_int(e, 64, p->size);
    LLVMValue at = llvm->LLVMBuildLoad2(e->builder, word(e), place, "");
    at = emit_binary(e, LLVM_MUL, at, emit_int(e, 64, c->bytes));
    for (unsigned i = 0; i < n; i++) {
        const unsigned first = i * PIECE % BITS;
        if (first == 0)
            bits = spread_bits(e, c, where, i * PIECE / p->times, p->times);
        LLVMValue own = emit_binary(e, LLVM_LSHR, bits, emit_int(e, 64, first));
        own = emit_binary(e, LLVM_AND, own, emit_int(e, 64, (1u << PIECE) - 1));
        LLVMValue kept = permute(e, piece_of(c, p, i), emit_order_of_bits(e, own), p->size);
        LLVMValue to = byte_at(e, e->args[c->arg], at);
        llvm->LLVMSetAlignment(llvm->LLVMBuildStore(e->builder, kept, to), c->alignment);
        at = emit_binary(e, LLVM_ADD, at,
                         emit_binary(e, LLVM_MUL, emit_count_of_bits(e, own), size));
    }
    at = emit_binary(e, LLVM_LSHR, at, emit_int(e, 64, (unsigned)__builtin_ctz(c->bytes)));
    llvm->LLVMBuildStore(e->builder, at, place);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

/* A record of one lane, field by field. */
static void keep_single(struct emitter *e, const struct copied *c, LLVMValue where)
{
    const struct llvm_api *llvm = e->llvm;
    LLVMValue place = emit_place_of_kept(e, c->arg);
    LLVMValue at = llvm->LLVMBuildLoad2(e->builder, word(e), place, "");
    LLVMValue to = record_at(c, e->args[c->arg], at);
    for (unsigned f = 0; f < gir_args(e->kernel)[c->arg].fields; f++) {
        LLVMValue index = emit_int(e, 64, (uint64_t)f * c->alignment);
        LLVMValue field = llvm->LLVMBuildGEP2(e->builder, llvm->LLVMIntTypeInContext(e->context, 8),
                                              to, &index, 1, "");
        LLVMValue store = llvm->LLVMBuildStore(e->builder, e->records[c->arg].fields[f], field);
        llvm->LLVMSetAlignment(store, c->alignment);
    }
    at = emit_binary(e, LLVM_ADD, at, emit_cast(e, LLVM_ZEXT, where, word(e)));
    llvm->LLVMBuildStore(e->builder, at, place);
}

/* By copies, of a vector of which some are kept. */
static void keep_copied(struct copied *c, const struct gir_code *code, bool computed)
{
    struct emitter *e = c->e;
    const struct llvm_api *llvm = e->llvm;
    LLVMBlock some = block(e, "some"), none = block(e, "none");
    LLVMValue any = llvm->LLVMBuildICmp(e->builder, LLVM_INE, c->bits, emit_int(e, 64, 0), "");
    llvm->LLVMBuildCondBr(e->builder, any, some, none);
    llvm->LLVMPositionBuilderAtEnd(e->builder, some);
    if (computed) {
        emit_store_all(e, code, e->kept_room);
        c->from = e->kept_room;
    }
    copy_kept(c);
    llvm->LLVMBuildBr(e->builder, none);
    llvm->LLVMPositionBuilderAtEnd(e->builder, none);
}

void emit_keep_field(struct emitter *e, const struct gir_code *code, LLVMValue value,
                     LLVMValue where)
{
    const uint32_t arg = gir_arg_of(code), source = source_of(e->kernel, arg);
    const unsigned size = emit_size(code->type);
    struct copied c = {.e = e,
                       .arg = arg,
                       .type = record_type(e, arg),
                       .alignment = size,
                       .bytes = size * gir_args(e->kernel)[arg].fields};
    struct pieces pieces = {.size = piece_size(e, &c)};
    if (!emit_has_all_fields(e, code, value))
        return;
    if (e->lanes == 1) {
        keep_single(e, &c, where);
        return;
    }
    c.bits = emit_bits_of_lanes(e, e->mask ? emit_binary(e, LLVM_AND, where, e->mask) : where);
    if (source != NO_SOURCE)
        c.from = record_at(&c, e->args[source], e->index);
    if (e->mask || !pieces.size) {
        keep_copied(&c, code, source == NO_SOURCE);
        return;
    }
    pieces.times = c.bytes / pieces.size;
    if (source == NO_SOURCE)
        find_vectors(&c, code, &pieces);
    keep_pieces(&c, &pieces, where);
}
