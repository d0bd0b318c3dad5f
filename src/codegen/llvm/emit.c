/* SPDX-License-Identifier: Apache-2.0 */
/* Values, constants, conversions; see emit.h. Meanings are those of kernels/cpu/lib/convert.c, bit
 * for bit. */
#include "codegen/llvm/emit.h"

#include <math.h>
#include <string.h>

#include "codegen/llvm/keep.h"
#include "codegen/llvm/lookup.h"
#include "codegen/llvm/memory.h"
#include "gir/form.h"

#define MOST_LANES 64

/* ---- Types and constants --------------------------------------------------------------------- */

static unsigned width_of(tssa_dtype dtype)
{
    return dtype == TSSA_BOOL ? 1 : 8 * gir_width(dtype);
}

static bool is_float(tssa_dtype dtype)
{
    return dtype == TSSA_FLOAT || dtype == TSSA_DOUBLE;
}

static bool is_signed(tssa_dtype dtype)
{
    return dtype == TSSA_INT8 || dtype == TSSA_INT16 || dtype == TSSA_INT32 || dtype == TSSA_INT64;
}

/* f16 and bf16 are their bits. */
LLVMType emit_element(const struct emitter *e, tssa_dtype dtype)
{
    if (dtype == TSSA_FLOAT)
        return e->llvm->LLVMFloatTypeInContext(e->context);
    if (dtype == TSSA_DOUBLE)
        return e->llvm->LLVMDoubleTypeInContext(e->context);
    return e->llvm->LLVMIntTypeInContext(e->context, width_of(dtype));
}

static LLVMType vector_of(const struct emitter *e, LLVMType element)
{
    return e->lanes == 1 ? element : e->llvm->LLVMVectorType(element, e->lanes);
}

LLVMType emit_type(const struct emitter *e, tssa_dtype dtype)
{
    return vector_of(e, emit_element(e, dtype));
}

LLVMValue emit_int(const struct emitter *e, unsigned bits, uint64_t value)
{
    return e->llvm->LLVMConstInt(e->llvm->LLVMIntTypeInContext(e->context, bits), value, 0);
}

LLVMValue emit_constant(const struct emitter *e, tssa_dtype dtype, uint64_t bits)
{
    LLVMValue lanes[MOST_LANES], element = emit_int(e, width_of(dtype), bits);
    if (is_float(dtype))
        element = e->llvm->LLVMConstBitCast(element, emit_element(e, dtype));
    if (e->lanes == 1)
        return element;
    for (unsigned i = 0; i < e->lanes; i++)
        lanes[i] = element;
    return e->llvm->LLVMConstVector(lanes, e->lanes);
}

LLVMValue emit_number(const struct emitter *e, tssa_dtype dtype, double number)
{
    uint64_t bits = 0;
    if (dtype == TSSA_FLOAT) {
        const float narrow = (float)number;
        memcpy(&bits, &narrow, sizeof narrow);
    } else if (dtype == TSSA_DOUBLE) {
        memcpy(&bits, &number, sizeof number);
    } else {
        bits = (uint64_t)(int64_t)number;
        if (width_of(dtype) < 64)
            bits &= (UINT64_C(1) << width_of(dtype)) - 1;
    }
    return emit_constant(e, dtype, bits);
}

/* ---- Instructions ---------------------------------------------------------------------------- */

LLVMValue emit_binary(const struct emitter *e, int opcode, LLVMValue x, LLVMValue y)
{
    return e->llvm->LLVMBuildBinOp(e->builder, opcode, x, y, "");
}

LLVMValue emit_cast(const struct emitter *e, int opcode, LLVMValue x, LLVMType type)
{
    return e->llvm->LLVMBuildCast(e->builder, opcode, x, type, "");
}

LLVMValue emit_select(const struct emitter *e, LLVMValue truth, LLVMValue x, LLVMValue y)
{
    return e->llvm->LLVMBuildSelect(e->builder, truth, x, y, "");
}

LLVMValue emit_splat(const struct emitter *e, LLVMValue x, tssa_dtype dtype)
{
    LLVMType type = emit_type(e, dtype);
    if (e->lanes == 1)
        return x;
    LLVMValue poison = e->llvm->LLVMGetPoison(type);
    x = e->llvm->LLVMBuildInsertElement(e->builder, poison, x, emit_int(e, 32, 0), "");
    return e->llvm->LLVMBuildShuffleVector(e->builder, x, poison,
                                           e->llvm->LLVMConstNull(emit_type(e, TSSA_INT32)), "");
}

LLVMValue emit_intrinsic(struct emitter *e, const char *name, LLVMType *types, unsigned n_types,
                         LLVMValue *args, unsigned n_args)
{
    const struct llvm_api *llvm = e->llvm;
    const unsigned id = llvm->LLVMLookupIntrinsicID(name, strlen(name));
    if (!id) {
        e->failed = true;
        return args[0];
    }
    return llvm->LLVMBuildCall2(
        e->builder, llvm->LLVMIntrinsicGetType(e->context, id, types, n_types),
        llvm->LLVMGetIntrinsicDeclaration(e->module, id, types, n_types), args, n_args, "");
}

/* ---- Conversions ----------------------------------------------------------------------------- */

static LLVMValue to_half(const struct emitter *e, LLVMValue x)
{
    LLVMType half = vector_of(e, e->llvm->LLVMHalfTypeInContext(e->context));
    return emit_cast(e, LLVM_BITCAST, emit_cast(e, LLVM_FP_TRUNC, x, half),
                     emit_type(e, TSSA_FLOAT16));
}

static LLVMValue from_half(const struct emitter *e, LLVMValue x)
{
    LLVMType half = vector_of(e, e->llvm->LLVMHalfTypeInContext(e->context));
    return emit_cast(e, LLVM_FP_EXT, emit_cast(e, LLVM_BITCAST, x, half), emit_type(e, TSSA_FLOAT));
}

static LLVMValue to_bfloat16(const struct emitter *e, LLVMValue x)
{
    LLVMValue bits = emit_cast(e, LLVM_BITCAST, x, emit_type(e, TSSA_UINT32)),
              is_nan = e->llvm->LLVMBuildFCmp(e->builder, LLVM_UNO, x, x, "");
    LLVMValue sixteen = emit_constant(e, TSSA_UINT32, 16);
    LLVMValue high = emit_binary(e, LLVM_LSHR, bits, sixteen);
    LLVMValue sum = emit_binary(e, LLVM_AND, high, emit_constant(e, TSSA_UINT32, 1));
    sum = emit_binary(e, LLVM_ADD, sum, emit_constant(e, TSSA_UINT32, 0x7fff));
    sum = emit_binary(e, LLVM_ADD, sum, bits);
    LLVMValue rounded = emit_binary(e, LLVM_LSHR, sum, sixteen),
              nan = emit_binary(e, LLVM_OR, high, emit_constant(e, TSSA_UINT32, 0x40));
    return emit_cast(e, LLVM_TRUNC, emit_select(e, is_nan, nan, rounded),
                     emit_type(e, TSSA_BFLOAT16));
}

static LLVMValue from_bfloat16(const struct emitter *e, LLVMValue x)
{
    LLVMValue wide = emit_cast(e, LLVM_ZEXT, x, emit_type(e, TSSA_UINT32));
    return emit_cast(e, LLVM_BITCAST,
                     emit_binary(e, LLVM_SHL, wide, emit_constant(e, TSSA_UINT32, 16)),
                     emit_type(e, TSSA_FLOAT));
}

/* Of a float, where low <= x < -low, or low < x where that is not of the type; else the lowest
 * integer. */
static LLVMValue to_signed(const struct emitter *e, LLVMValue x, tssa_dtype from, tssa_dtype to)
{
    const bool beyond = from == TSSA_DOUBLE && to == TSSA_INT32;
    const double end = to == TSSA_INT32 ? 0x1p31 : 0x1p63, low = beyond ? -0x1p31 - 1 : -end;
    LLVMValue above = e->llvm->LLVMBuildFCmp(e->builder, beyond ? LLVM_OGT : LLVM_OGE, x,
                                             emit_number(e, from, low), "");
    LLVMValue below =
        e->llvm->LLVMBuildFCmp(e->builder, LLVM_OLT, x, emit_number(e, from, end), "");
    LLVMValue fits = emit_binary(e, LLVM_AND, above, below);
    LLVMValue safe = emit_select(e, fits, x, emit_number(e, from, 0));
    return emit_select(e, fits, emit_cast(e, LLVM_FP_TO_SI, safe, emit_type(e, to)),
                       emit_constant(e, to, UINT64_C(1) << (width_of(to) - 1)));
}

static LLVMValue to_uint64(const struct emitter *e, LLVMValue x, tssa_dtype from)
{
    LLVMValue half = emit_number(e, from, 0x1p63);
    LLVMValue high = e->llvm->LLVMBuildFCmp(e->builder, LLVM_OGE, x, half, "");
    LLVMValue rest = emit_select(e, high, emit_binary(e, LLVM_FSUB, x, half), x);
    LLVMValue integer = to_signed(e, rest, from, TSSA_INT64);
    LLVMValue top = emit_constant(e, TSSA_UINT64, UINT64_C(1) << 63);
    return emit_select(e, high, emit_binary(e, LLVM_XOR, integer, top), integer);
}

static LLVMValue float_to_integer(const struct emitter *e, LLVMValue x, tssa_dtype from,
                                  tssa_dtype to)
{
    if (to == TSSA_UINT64)
        return to_uint64(e, x, from);
    const tssa_dtype by = to == TSSA_INT64 || to == TSSA_UINT32 ? TSSA_INT64 : TSSA_INT32;
    x = to_signed(e, x, from, by);
    return width_of(to) == width_of(by) ? x : emit_cast(e, LLVM_TRUNC, x, emit_type(e, to));
}

static LLVMValue integer_to_integer(const struct emitter *e, LLVMValue x, tssa_dtype from,
                                    tssa_dtype to)
{
    if (width_of(from) == width_of(to))
        return x;
    const int widen = is_signed(from) ? LLVM_SEXT : LLVM_ZEXT;
    return emit_cast(e, width_of(to) < width_of(from) ? LLVM_TRUNC : widen, x, emit_type(e, to));
}

/* Is the step SEL(y compares bound, y, bound), of an integer of two bytes at most? */
static bool is_held(const struct emitter *e, uint32_t step, enum scalar_id compares)
{
    const struct gir_code *codes = gir_codes(e->kernel), *code = &codes[step];
    if (code->op != GIR_SCALAR || code->scalar != SCALAR_SEL)
        return false;
    const struct gir_code *test = &codes[code->operands[0]], *bound = &codes[code->operands[2]];
    if (test->op != GIR_SCALAR || test->scalar != compares ||
        test->operands[0] != code->operands[1] || test->operands[1] != code->operands[2] ||
        bound->op != GIR_CONVERT)
        return false;
    bound = &codes[bound->operands[0]];
    return bound->op == GIR_CONSTANT && width_of(bound->type) <= 16;
}

/* Of a float that is held between the bounds of integers of two bytes at most, as quantizing does.
 * NULL: it is not. */
static LLVMValue emit_held(const struct emitter *e, const struct gir_code *code, LLVMValue x)
{
    const uint32_t from = code->operands[0];
    const struct gir_code *high = &gir_codes(e->kernel)[from];
    if (high->type != TSSA_FLOAT || width_of(code->type) > 16 || code->type == TSSA_BOOL ||
        code->type == TSSA_FLOAT16 || code->type == TSSA_BFLOAT16 || !is_held(e, from, SCALAR_LT) ||
        !is_held(e, high->operands[1], SCALAR_GT))
        return NULL;
    LLVMValue whole = emit_cast(e, LLVM_FP_TO_SI, x, emit_type(e, TSSA_INT32));
    return emit_cast(e, LLVM_TRUNC, whole, emit_type(e, code->type));
}

LLVMValue emit_convert(struct emitter *e, LLVMValue x, tssa_dtype from, tssa_dtype to)
{
    if (from == TSSA_FLOAT16 || from == TSSA_BFLOAT16)
        return from == TSSA_FLOAT16 ? from_half(e, x) : from_bfloat16(e, x);
    if (to == TSSA_FLOAT16 || to == TSSA_BFLOAT16)
        return to == TSSA_FLOAT16 ? to_half(e, x) : to_bfloat16(e, x);
    if (to == TSSA_BOOL && is_float(from))
        return e->llvm->LLVMBuildFCmp(e->builder, LLVM_UNE, x, emit_constant(e, from, 0), "");
    if (to == TSSA_BOOL)
        return e->llvm->LLVMBuildICmp(e->builder, LLVM_INE, x, emit_constant(e, from, 0), "");
    if (is_float(from) && is_float(to))
        return emit_cast(e, to == TSSA_DOUBLE ? LLVM_FP_EXT : LLVM_FP_TRUNC, x, emit_type(e, to));
    if (is_float(from))
        return float_to_integer(e, x, from, to);
    if (is_float(to))
        return emit_cast(e, is_signed(from) ? LLVM_SI_TO_FP : LLVM_UI_TO_FP, x, emit_type(e, to));
    return integer_to_integer(e, x, from, to);
}

static LLVMValue emit_conversion(struct emitter *e, const struct gir_code *code, LLVMValue x,
                                 tssa_dtype from)
{
    LLVMValue held = emit_held(e, code, x);
    return held ? held : emit_convert(e, x, from, code->type);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

unsigned emit_size(tssa_dtype dtype)
{
    return gir_width(dtype);
}

static LLVMValue address(const struct emitter *e, const struct gir_code *code)
{
    LLVMValue index = e->index;
    return e->llvm->LLVMBuildGEP2(e->builder, emit_element(e, code->type),
                                  e->args[gir_arg_of(code)], &index, 1, "");
}

/* Where lanes are rows: an element of all that are there. */
static LLVMValue emit_load_plane(struct emitter *e, const struct gir_code *code)
{
    const uint32_t arg = gir_arg_of(code);
    LLVMType type = emit_type(e, code->type),
             types[] = {type, e->llvm->LLVMPointerTypeInContext(e->context, 0)};
    LLVMValue offset = emit_binary(e, LLVM_MUL, e->element, e->strides[arg]);
    LLVMValue where = e->llvm->LLVMBuildGEP2(
        e->builder, e->llvm->LLVMIntTypeInContext(e->context, 8), e->args[arg], &offset, 1, "");
    LLVMValue args[] = {where, emit_int(e, 32, emit_size(code->type)), e->row_masks[arg],
                        e->llvm->LLVMConstNull(type)};
    if (e->row_masks[arg])
        return emit_intrinsic(e, "llvm.masked.load", types, 2, args, 4);
    LLVMValue value = e->llvm->LLVMBuildLoad2(e->builder, type, where, "");
    e->llvm->LLVMSetAlignment(value, emit_size(code->type));
    return value;
}

/* `first` and the numbers behind it, in each lane. */
static LLVMValue emit_numbers(const struct emitter *e, LLVMValue first, tssa_dtype dtype)
{
    LLVMValue numbers[MOST_LANES];
    first = emit_splat(e, first, dtype);
    if (e->lanes == 1)
        return first;
    for (unsigned i = 0; i < e->lanes; i++)
        numbers[i] = emit_int(e, width_of(dtype), i);
    return emit_binary(e, LLVM_ADD, first, e->llvm->LLVMConstVector(numbers, e->lanes));
}

/* What the address tells, of an argument that is no memory. */
static LLVMValue emit_place(struct emitter *e, const struct gir_code *code)
{
    const struct gir_arg *arg = &gir_args(e->kernel)[gir_arg_of(code)];
    const uint64_t shift = emit_size(code->type) == 8 ? 3 : 2;
    LLVMValue where = arg->moves ? address(e, code) : e->args[gir_arg_of(code)],
              at = emit_cast(e, LLVM_PTR_TO_INT, where, emit_element(e, TSSA_INT64));
    at = emit_binary(e, LLVM_SUB, at, emit_int(e, 64, GIR_POSITIONS_AT));
    at = emit_binary(e, LLVM_LSHR, at, emit_int(e, 64, shift));
    if (shift < 3)
        at = emit_cast(e, LLVM_TRUNC, at, emit_element(e, code->type));
    return arg->moves ? emit_numbers(e, at, code->type) : emit_splat(e, at, code->type);
}

static LLVMValue emit_load(struct emitter *e, const struct gir_code *code)
{
    const struct gir_arg *arg = &gir_args(e->kernel)[gir_arg_of(code)];
    const bool moves = arg->moves != GIR_STAYS, is_vector = moves || e->is_across;
    if (arg->is_position)
        return emit_place(e, code);
    if (arg->fields > 1)
        return emit_load_field(e, code);
    if (arg->moves == GIR_STRIDED && e->is_across)
        return emit_load_plane(e, code);
    if (arg->moves == GIR_STRIDED)
        return emit_load_strided(e, code);
    LLVMType type = is_vector ? emit_type(e, code->type) : emit_element(e, code->type);
    LLVMValue where = moves ? address(e, code) : e->args[gir_arg_of(code)];
    if (moves && e->mask) {
        LLVMType types[] = {type, e->llvm->LLVMPointerTypeInContext(e->context, 0)};
        LLVMValue args[] = {where, emit_int(e, 32, emit_size(code->type)), e->mask,
                            e->llvm->LLVMConstNull(type)};
        return emit_intrinsic(e, "llvm.masked.load", types, 2, args, 4);
    }
    LLVMValue value = e->llvm->LLVMBuildLoad2(e->builder, type, where, "");
    e->llvm->LLVMSetAlignment(value, emit_size(code->type));
    return is_vector ? value : emit_splat(e, value, code->type);
}

/* Of the row of this number. */
static LLVMValue emit_lookup(struct emitter *e, const struct gir_code *code, LLVMValue number)
{
    const uint32_t arg = gir_arg_of(code);
    if (e->kernel->checks)
        number = emit_checked(e, arg, number);
    LLVMValue offsets = emit_lookup_offsets(e, arg, number);
    if (gir_args(e->kernel)[arg].moves == GIR_STAYS)
        return emit_load_at(e, code, offsets);
    LLVMValue base = e->args[arg];
    if (e->lanes > 1)
        offsets = e->llvm->LLVMBuildExtractElement(e->builder, offsets, emit_int(e, 32, 0), "");
    e->args[arg] = e->llvm->LLVMBuildGEP2(e->builder, e->llvm->LLVMIntTypeInContext(e->context, 8),
                                          base, &offsets, 1, "");
    LLVMValue value = emit_load(e, code);
    e->args[arg] = base;
    return value;
}

/* Of what does not move, lane 0: the others are the same, unless lanes are rows. */
static void emit_store_one(struct emitter *e, const struct gir_code *code)
{
    LLVMValue value = e->values[code->operands[0]];
    if (!e->is_across)
        value = e->llvm->LLVMBuildExtractElement(e->builder, value, emit_int(e, 32, 0), "");
    e->llvm->LLVMSetAlignment(e->llvm->LLVMBuildStore(e->builder, value, e->args[gir_arg_of(code)]),
                              emit_size(code->type));
}

static void emit_store(struct emitter *e, const struct gir_code *code)
{
    const struct gir_arg *arg = &gir_args(e->kernel)[gir_arg_of(code)];
    LLVMValue value = e->values[code->operands[0]];
    if (arg->moves == GIR_STAYS) {
        emit_store_one(e, code);
        return;
    }
    if (arg->fields > 1) {
        emit_store_field(e, code, value);
        return;
    }
    if (arg->moves == GIR_STRIDED && !e->is_across) {
        emit_store_strided(e, code, value);
        return;
    }
    LLVMValue where = address(e, code);
    if (e->mask) {
        LLVMType types[] = {emit_type(e, code->type),
                            e->llvm->LLVMPointerTypeInContext(e->context, 0)};
        LLVMValue args[] = {value, where, emit_int(e, 32, emit_size(code->type)), e->mask};
        emit_intrinsic(e, "llvm.masked.store", types, 2, args, 4);
        return;
    }
    e->llvm->LLVMSetAlignment(e->llvm->LLVMBuildStore(e->builder, value, where),
                              emit_size(code->type));
}

/* ---- Calls ----------------------------------------------------------------------------------- */

LLVMValue emit_entry_of(const struct emitter *e, LLVMValue array, unsigned number)
{
    LLVMType pointer = e->llvm->LLVMPointerTypeInContext(e->context, 0);
    LLVMValue index = emit_int(e, 64, number);
    LLVMValue at = e->llvm->LLVMBuildGEP2(e->builder, pointer, array, &index, 1, "");
    return e->llvm->LLVMBuildLoad2(e->builder, pointer, at, "");
}

/* By memory: values go there, all lanes of them, and the result comes from there. */
static LLVMValue emit_call(struct emitter *e, const struct gir_code *code)
{
    const struct llvm_api *llvm = e->llvm;
    LLVMType pointer = llvm->LLVMPointerTypeInContext(e->context, 0);
    LLVMType params[] = {pointer, pointer, pointer, llvm->LLVMIntTypeInContext(e->context, 64)};
    LLVMType type = llvm->LLVMFunctionType(llvm->LLVMVoidTypeInContext(e->context), params, 4, 0);
    for (uint32_t i = 0; i < gir_n_operands(code); i++)
        llvm->LLVMSetAlignment(
            llvm->LLVMBuildStore(e->builder, e->values[code->operands[i]], e->rooms[i]), 8);
    LLVMValue table = emit_entry_of(e, e->calls, code->type == TSSA_DOUBLE);
    LLVMValue function = emit_entry_of(e, table, code->scalar);
    LLVMValue args[] = {e->rooms[0], e->rooms[1], e->rooms[2], emit_int(e, 64, e->lanes)};
    llvm->LLVMBuildCall2(e->builder, type, function, args, 4, "");
    LLVMValue result = llvm->LLVMBuildLoad2(e->builder, emit_type(e, code->type), e->rooms[2], "");
    llvm->LLVMSetAlignment(result, 8);
    return result;
}

static LLVMValue emit_function_or_call(struct emitter *e, const struct gir_code *code, LLVMValue x)
{
    LLVMValue value = emit_function(e, code, x);
    return value ? value : emit_call(e, code);
}

/* How many elements a row has, in all lanes. */
static LLVMValue emit_length(const struct emitter *e, tssa_dtype dtype)
{
    LLVMType element = emit_element(e, dtype);
    LLVMValue length = e->length;
    if (is_float(dtype))
        length = emit_cast(e, LLVM_SI_TO_FP, length, element);
    else if (width_of(dtype) < 64)
        length = emit_cast(e, LLVM_TRUNC, length, element);
    return emit_splat(e, length, dtype);
}

static LLVMValue emit_row(const struct emitter *e, tssa_dtype dtype)
{
    LLVMValue row =
        width_of(dtype) < 64 ? emit_cast(e, LLVM_TRUNC, e->row, emit_element(e, dtype)) : e->row;
    return emit_splat(e, row, dtype);
}

/* Which element of the row it is: the same one in all lanes, where these are rows. */
static LLVMValue emit_position(const struct emitter *e, tssa_dtype dtype)
{
    LLVMValue first = e->is_across ? e->element : e->index;
    if (gir_keeps(e->kernel))
        first = emit_binary(e, LLVM_ADD, first, emit_first_position(e));
    if (width_of(dtype) < 64)
        first = emit_cast(e, LLVM_TRUNC, first, emit_element(e, dtype));
    return e->is_across ? emit_splat(e, first, dtype) : emit_numbers(e, first, dtype);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

void emit_step(struct emitter *e, uint32_t i)
{
    const struct gir_code *codes = gir_codes(e->kernel), *code = &codes[i];
    LLVMValue operands[3] = {NULL, NULL, NULL}, value = NULL;
    tssa_dtype type = code->type;
    for (uint32_t k = 0; k < gir_n_operands(code); k++) {
        operands[k] = e->values[code->operands[k]];
        type = codes[code->operands[k]].type; /* of the last one */
    }
    if (code->op == GIR_STORE)
        emit_store(e, code);
    else if (code->op == GIR_KEEP)
        emit_keep(e, code, operands[0], operands[1]);
    else if (code->op == GIR_LOAD)
        value = emit_load(e, code);
    else if (code->op == GIR_LOOKUP)
        value = emit_lookup(e, code, operands[0]);
    else if (code->op == GIR_LENGTH)
        value = emit_length(e, code->type);
    else if (code->op == GIR_POSITION)
        value = emit_position(e, code->type);
    else if (code->op == GIR_ROW)
        value = emit_row(e, code->type);
    else if (code->op == GIR_CONSTANT)
        value = emit_constant(e, code->type, code->bits);
    else if (code->op == GIR_CONVERT)
        value = emit_conversion(e, code, operands[0], type);
    else if (gir_is_call(code))
        value = emit_function_or_call(e, code, operands[0]);
    else
        value = emit_scalar(e, code, type, operands);
    e->values[i] = value;
}
