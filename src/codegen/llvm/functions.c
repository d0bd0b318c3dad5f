/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of float32 that are so frequent that they are emitted in place: a call costs more than
 * they do. Operation by operation they are those of src/ir/scalar/f32_exp.h and f32_log.h, where it
 * says why; tests/unit/test_kernels.c compares bits.
 */
#include <math.h>

#include "codegen/llvm/emit.h"

#define INFINITE_BITS 0x7f800000
#define NAN_BITS 0x7fc00000
#define SIGN_BIT 0x80000000
#define NEAR_BITS 0x42ae0000 /* of 87 */

static LLVMValue number(const struct emitter *e, float x)
{
    return emit_number(e, TSSA_FLOAT, (double)x);
}

static LLVMValue word(const struct emitter *e, uint32_t bits)
{
    return emit_constant(e, TSSA_UINT32, bits);
}

static LLVMValue bits_of(const struct emitter *e, LLVMValue x)
{
    return emit_cast(e, LLVM_BITCAST, x, emit_type(e, TSSA_UINT32));
}

static LLVMValue of_bits(const struct emitter *e, LLVMValue x)
{
    return emit_cast(e, LLVM_BITCAST, x, emit_type(e, TSSA_FLOAT));
}

static LLVMValue add(const struct emitter *e, LLVMValue a, LLVMValue b)
{
    return emit_binary(e, LLVM_FADD, a, b);
}

static LLVMValue subtract(const struct emitter *e, LLVMValue a, LLVMValue b)
{
    return emit_binary(e, LLVM_FSUB, a, b);
}

static LLVMValue negative(const struct emitter *e, LLVMValue x)
{
    return e->llvm->LLVMBuildFNeg(e->builder, x, "");
}

static LLVMValue multiply(const struct emitter *e, LLVMValue a, LLVMValue b)
{
    return emit_binary(e, LLVM_FMUL, a, b);
}

static LLVMValue wide(const struct emitter *e, LLVMValue x)
{
    return emit_cast(e, LLVM_FP_EXT, x, emit_type(e, TSSA_DOUBLE));
}

/*
 * Without the instruction: in double the product is exact, and of the sum what it lacks is known
 * (Knuth's two-sum). Where it lacks something the sum becomes what is odd of its two neighbours, so
 * that it is no middle of two floats and is rounded as the exact one is (Boldo and Melquiond). What
 * lacks NaN, of infinities and NaN, stays as it is.
 */
static LLVMValue fma_by_double(const struct emitter *e, LLVMValue a, LLVMValue b, LLVMValue c)
{
    LLVMType words = emit_type(e, TSSA_UINT64);
    LLVMValue product = multiply(e, wide(e, a), wide(e, b)), addend = wide(e, c);
    LLVMValue sum = add(e, product, addend), rest = subtract(e, sum, product);
    LLVMValue lacks =
        add(e, subtract(e, product, subtract(e, sum, rest)), subtract(e, addend, rest));
    LLVMValue bits = emit_cast(e, LLVM_BITCAST, sum, words);
    LLVMValue beyond = emit_binary(e, LLVM_XOR, bits, emit_cast(e, LLVM_BITCAST, lacks, words));
    beyond = emit_binary(e, LLVM_LSHR, beyond, emit_constant(e, TSSA_UINT64, 63));
    LLVMValue odd = emit_binary(e, LLVM_OR, emit_binary(e, LLVM_SUB, bits, beyond),
                                emit_constant(e, TSSA_UINT64, 1));
    LLVMValue inexact =
        e->llvm->LLVMBuildFCmp(e->builder, LLVM_ONE, lacks, emit_constant(e, TSSA_DOUBLE, 0), "");
    LLVMValue rounded = emit_cast(e, LLVM_BITCAST, odd, emit_type(e, TSSA_DOUBLE));
    return emit_cast(e, LLVM_FP_TRUNC, emit_select(e, inexact, rounded, sum),
                     emit_type(e, TSSA_FLOAT));
}

static LLVMValue fma_of(struct emitter *e, LLVMValue a, LLVMValue b, LLVMValue c)
{
    LLVMType type = emit_type(e, TSSA_FLOAT);
    if (!e->has_fma)
        return fma_by_double(e, a, b, c);
    return emit_intrinsic(e, "llvm.fma", &type, 1, (LLVMValue[]){a, b, c}, 3);
}

/* a x + b, of numbers; then again with what that is, as long as there are numbers. */
static LLVMValue polynomial(struct emitter *e, LLVMValue x, const float *numbers, unsigned n)
{
    LLVMValue p = number(e, numbers[0]);
    for (unsigned i = 1; i < n; i++)
        p = i == 1 ? fma_of(e, x, p, number(e, numbers[1]))
                   : fma_of(e, p, x, number(e, numbers[i]));
    return p;
}

static LLVMValue compare(const struct emitter *e, int predicate, LLVMValue a, LLVMValue b)
{
    return e->llvm->LLVMBuildFCmp(e->builder, predicate, a, b, "");
}

/* The lower or the higher of two words. */
static LLVMValue bound(const struct emitter *e, int predicate, LLVMValue a, LLVMValue b)
{
    return emit_select(e, e->llvm->LLVMBuildICmp(e->builder, predicate, a, b, ""), b, a);
}

/* ---- exp, sigmoid, tanh, erf ----------------------------------------------------------------- */

#define LOG2_E 0x1.715476p+0f
#define ROUNDER 0x1.8p+23f

/* x - n ln(2) */
static LLVMValue rest_of(struct emitter *e, LLVMValue x, LLVMValue n)
{
    return fma_of(e, n, number(e, 0x1.05c61p-29f), fma_of(e, n, number(e, -0x1.62e43p-1f), x));
}

static LLVMValue exp_reduced(struct emitter *e, LLVMValue r)
{
    static const float numbers[] = {
        0x1.6a4d6p-10f, 0x1.12398ep-7f, 0x1.5558bp-5f, 0x1.555492p-3f, 0x1.fffffcp-2f, 1, 1};
    return polynomial(e, r, numbers, sizeof numbers / sizeof *numbers);
}

static LLVMValue shift_left(const struct emitter *e, LLVMValue x)
{
    return emit_binary(e, LLVM_SHL, x, word(e, 23));
}

static LLVMValue exp_far(struct emitter *e, LLVMValue x)
{
    const uint32_t zero = 0x4b40007e;
    LLVMValue rounder = number(e, ROUNDER + 126.0f);
    LLVMValue bits = bits_of(e, fma_of(e, x, number(e, LOG2_E), rounder));
    bits = bound(e, LLVM_UGT, bits, word(e, zero + 129));
    LLVMValue p = exp_reduced(e, rest_of(e, x, subtract(e, of_bits(e, bits), rounder)));
    LLVMValue normal = bound(e, LLVM_ULT, bits, word(e, zero - 124));
    LLVMValue rest = shift_left(e, emit_binary(e, LLVM_SUB, bits, normal));
    rest = of_bits(e, emit_binary(e, LLVM_ADD, rest, word(e, 0x40000000)));
    LLVMValue y = multiply(e, multiply(e, p, of_bits(e, shift_left(e, normal))), rest);
    return emit_select(e, compare(e, LLVM_OLT, x, number(e, -104)), number(e, 0), y);
}

/* p 2^n of a normal p, where that is normal, too; n is in the lowest bits. */
static LLVMValue times_power(struct emitter *e, LLVMValue p, LLVMValue n)
{
    return of_bits(e, emit_binary(e, LLVM_ADD, bits_of(e, p), shift_left(e, bits_of(e, n))));
}

/* The same bits where all lanes are between -87 and 87. */
static LLVMValue exp_near(struct emitter *e, LLVMValue x)
{
    LLVMValue rounder = number(e, ROUNDER);
    LLVMValue shifted = fma_of(e, x, number(e, LOG2_E), rounder);
    LLVMValue p = exp_reduced(e, rest_of(e, x, subtract(e, shifted, rounder)));
    return times_power(e, p, shifted);
}

/* Is it true in all lanes? */
static LLVMValue all_of(const struct emitter *e, LLVMValue truth)
{
    if (e->lanes == 1)
        return truth;
    LLVMType word_type = e->llvm->LLVMIntTypeInContext(e->context, e->lanes);
    LLVMValue bits = emit_cast(e, LLVM_BITCAST, truth, word_type);
    return e->llvm->LLVMBuildICmp(e->builder, LLVM_IEQ, bits,
                                  e->llvm->LLVMConstInt(word_type, UINT64_MAX, 0), "");
}

static LLVMValue sigmoid_far(struct emitter *e, LLVMValue x)
{
    LLVMValue low = compare(e, LLVM_OLT, x, number(e, -87)), one = number(e, 1);
    LLVMValue y = exp_far(e, emit_select(e, low, x, negative(e, x)));
    return emit_binary(e, LLVM_FDIV, emit_select(e, low, y, one), add(e, one, y));
}

static LLVMValue sigmoid_near(struct emitter *e, LLVMValue x)
{
    LLVMValue one = number(e, 1);
    return emit_binary(e, LLVM_FDIV, one, add(e, one, exp_near(e, negative(e, x))));
}

typedef LLVMValue (*form)(struct emitter *e, LLVMValue x);

/* A form where all lanes are near 0, and another one of the same bits. */
static LLVMValue emit_near_or_far(struct emitter *e, LLVMValue x, form near_form, form far_form)
{
    const struct llvm_api *llvm = e->llvm;
    LLVMBlock near = llvm->LLVMAppendBasicBlockInContext(e->context, e->function, "near"),
              far = llvm->LLVMAppendBasicBlockInContext(e->context, e->function, "far"),
              end = llvm->LLVMAppendBasicBlockInContext(e->context, e->function, "end");
    LLVMValue magnitude = emit_binary(e, LLVM_AND, bits_of(e, x), word(e, ~SIGN_BIT));
    LLVMValue is_near =
        llvm->LLVMBuildICmp(e->builder, LLVM_ULE, magnitude, word(e, NEAR_BITS), "");
    llvm->LLVMBuildCondBr(e->builder, all_of(e, is_near), near, far);
    llvm->LLVMPositionBuilderAtEnd(e->builder, near);
    LLVMValue values[2] = {near_form(e, x)};
    llvm->LLVMBuildBr(e->builder, end);
    llvm->LLVMPositionBuilderAtEnd(e->builder, far);
    values[1] = far_form(e, x);
    llvm->LLVMBuildBr(e->builder, end);
    llvm->LLVMPositionBuilderAtEnd(e->builder, end);
    LLVMValue result = llvm->LLVMBuildPhi(e->builder, emit_type(e, TSSA_FLOAT), "");
    llvm->LLVMAddIncoming(result, values, (LLVMBlock[]){near, far}, 2);
    return result;
}

static LLVMValue magnitude_of(const struct emitter *e, LLVMValue x)
{
    return of_bits(e, emit_binary(e, LLVM_AND, bits_of(e, x), word(e, ~SIGN_BIT)));
}

/* The sign of x is added to a number that has none. */
static LLVMValue with_sign(const struct emitter *e, LLVMValue y, LLVMValue x)
{
    LLVMValue sign = emit_binary(e, LLVM_AND, bits_of(e, x), word(e, SIGN_BIT));
    return of_bits(e, emit_binary(e, LLVM_OR, bits_of(e, y), sign));
}

/* NaN stays NaN. */
static LLVMValue at_most(const struct emitter *e, LLVMValue x, float most)
{
    LLVMValue limit = number(e, most);
    return emit_select(e, compare(e, LLVM_OGT, x, limit), limit, x);
}

static LLVMValue emit_tanh(struct emitter *e, LLVMValue x)
{
    static const float numbers[] = {-0x1.68a188p-5f, 0x1.122ee2p-3f, -0x1.555ae2p-2f,
                                    0x1.55549ep-1f, -0x1.fffff8p-1f};
    LLVMValue a = at_most(e, magnitude_of(e, x), 9.02f), rounder = number(e, ROUNDER);
    LLVMValue shifted = fma_of(e, a, number(e, -2 * LOG2_E), rounder);
    LLVMValue r = fma_of(e, subtract(e, shifted, rounder), number(e, 0x1.62e43p-2f), a);
    LLVMValue p = polynomial(e, r, numbers, sizeof numbers / sizeof *numbers);
    LLVMValue q = fma_of(e, multiply(e, r, r), p, r);
    LLVMValue power = times_power(e, number(e, 1), shifted);
    LLVMValue half = times_power(e, number(e, 0.5f), shifted), middle = number(e, 0.5f);
    LLVMValue above = fma_of(e, power, q, subtract(e, middle, half));
    LLVMValue below = fma_of(e, negative(e, power), q, add(e, middle, half));
    return with_sign(e, emit_binary(e, LLVM_FDIV, above, below), x);
}

static LLVMValue expm1_bounded(struct emitter *e, LLVMValue x)
{
    static const float numbers[] = {0x1.9e738p-13f, 0x1.6d3a4ap-10f, 0x1.1112d8p-7f,
                                    0x1.5554f8p-5f, 0x1.555554p-3f,  0.5f};
    LLVMValue rounder = number(e, ROUNDER), one = number(e, 1);
    LLVMValue shifted = fma_of(e, x, number(e, LOG2_E), rounder);
    LLVMValue r = rest_of(e, x, subtract(e, shifted, rounder));
    LLVMValue p = polynomial(e, r, numbers, sizeof numbers / sizeof *numbers);
    LLVMValue reduced = fma_of(e, multiply(e, r, r), p, r);
    LLVMValue power = times_power(e, one, shifted);
    return fma_of(e, power, reduced, subtract(e, power, one));
}

static LLVMValue emit_erf(struct emitter *e, LLVMValue x)
{
    static const float numbers[] = {-0x1.36dad4p-17f, 0x1.edba4p-14f,   -0x1.4bed7ap-11f,
                                    0x1.b52190p-10f,  -0x1.516f96p-13f, -0x1.39cc9cp-6f,
                                    0x1.a4fa4ap-4f,   0x1.45f2fap-1f,   -0x1.d0e254p-25f};
    LLVMValue a = at_most(e, magnitude_of(e, x), 3.93f);
    LLVMValue h = polynomial(e, a, numbers, sizeof numbers / sizeof *numbers);
    LLVMValue y = fma_of(e, a, number(e, 0x1.20dd76p+0f), multiply(e, a, h));
    return with_sign(e, magnitude_of(e, expm1_bounded(e, negative(e, y))), x);
}

/* ---- log ------------------------------------------------------------------------------------- */

static LLVMValue log_reduced(struct emitter *e, LLVMValue exponent, LLVMValue f)
{
    static const float numbers[] = {
        0x1.e97cd8p-4f,  -0x1.06d2f2p-3f, 0x1.b9347p-4f,   -0x1.f3a83ap-4f, 0x1.24ea8cp-3f,
        -0x1.5597dcp-3f, 0x1.9997f4p-3f,  -0x1.ffff16p-3f, 0x1.555556p-2f,  -0.5f};
    LLVMValue p = polynomial(e, f, numbers, sizeof numbers / sizeof *numbers);
    LLVMValue tail =
        fma_of(e, exponent, number(e, -0x1.05c61p-29f), multiply(e, multiply(e, f, f), p));
    return fma_of(e, exponent, number(e, 0x1.62e43p-1f), add(e, f, tail));
}

static LLVMValue emit_log(struct emitter *e, LLVMValue x)
{
    LLVMValue tiny = compare(e, LLVM_OLT, x, number(e, 0x1p-126f)), zero = number(e, 0);
    LLVMValue normal = emit_select(e, tiny, multiply(e, x, number(e, 0x1p+23f)), x);
    LLVMValue bits = bits_of(e, normal);
    LLVMValue exponent = emit_binary(e, LLVM_SUB, bits, word(e, 0x3f2aaaab));
    exponent = emit_binary(e, LLVM_ASHR, exponent, word(e, 23));
    LLVMValue f = of_bits(e, emit_binary(e, LLVM_SUB, bits, shift_left(e, exponent)));
    f = subtract(e, f, number(e, 1));
    LLVMValue power = emit_cast(e, LLVM_SI_TO_FP, exponent, emit_type(e, TSSA_FLOAT));
    power = subtract(e, power, emit_select(e, tiny, number(e, 23), zero));
    LLVMValue y = log_reduced(e, power, f);
    LLVMValue infinite = of_bits(e, word(e, INFINITE_BITS));
    y = emit_select(e, compare(e, LLVM_OLT, x, infinite), y, x);
    y = emit_select(e, compare(e, LLVM_OLT, x, zero), of_bits(e, word(e, NAN_BITS)), y);
    LLVMValue lowest = of_bits(e, word(e, INFINITE_BITS | SIGN_BIT));
    return emit_select(e, compare(e, LLVM_OEQ, x, zero), lowest, y);
}

LLVMValue emit_function(struct emitter *e, const struct gir_code *code, LLVMValue x)
{
    if (code->type != TSSA_FLOAT)
        return NULL;
    switch ((enum scalar_id)code->scalar) {
    case SCALAR_EXP:
        return emit_near_or_far(e, x, exp_near, exp_far);
    case SCALAR_SIGMOID:
        return emit_near_or_far(e, x, sigmoid_near, sigmoid_far);
    case SCALAR_TANH:
        return emit_tanh(e, x);
    case SCALAR_ERF:
        return emit_erf(e, x);
    case SCALAR_LOG:
        return emit_log(e, x);
    default:
        return NULL;
    }
}
