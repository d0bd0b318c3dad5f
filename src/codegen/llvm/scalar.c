/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar operations as LLVM's instructions: what ir/scalar.def says of each, for every operand. */
#include <math.h>

#include "codegen/llvm/emit.h"

struct operation {
    struct emitter *e;
    enum scalar_id id;
    tssa_dtype type;
    LLVMValue a, b, c;
};

static bool is_float(const struct operation *o)
{
    return o->type == TSSA_FLOAT || o->type == TSSA_DOUBLE;
}

static bool is_signed(const struct operation *o)
{
    return o->type == TSSA_INT8 || o->type == TSSA_INT16 || o->type == TSSA_INT32 ||
           o->type == TSSA_INT64;
}

static unsigned width(const struct operation *o)
{
    switch (o->type) {
    case TSSA_INT8:
    case TSSA_UINT8:
        return 8;
    case TSSA_INT16:
    case TSSA_UINT16:
        return 16;
    case TSSA_INT32:
    case TSSA_UINT32:
        return 32;
    default:
        return 64;
    }
}

static LLVMValue number(const struct operation *o, double value)
{
    return emit_number(o->e, o->type, value);
}

static LLVMValue binary(const struct operation *o, int opcode, LLVMValue a, LLVMValue b)
{
    return emit_binary(o->e, opcode, a, b);
}

static LLVMValue fcmp(const struct operation *o, int predicate, LLVMValue a, LLVMValue b)
{
    return o->e->llvm->LLVMBuildFCmp(o->e->builder, predicate, a, b, "");
}

static LLVMValue icmp(const struct operation *o, int predicate, LLVMValue a, LLVMValue b)
{
    return o->e->llvm->LLVMBuildICmp(o->e->builder, predicate, a, b, "");
}

static LLVMValue choose(const struct operation *o, LLVMValue truth, LLVMValue a, LLVMValue b)
{
    return emit_select(o->e, truth, a, b);
}

static LLVMValue one(const struct operation *o, const char *name)
{
    LLVMType type = emit_type(o->e, o->type);
    LLVMValue a = o->a;
    return emit_intrinsic(o->e, name, &type, 1, &a, 1);
}

/* Of one predicate each: floats, which are false of NaN, signed and unsigned integers. */
static LLVMValue compare(const struct operation *o, int floats, int with_sign, int without)
{
    if (is_float(o))
        return fcmp(o, floats, o->a, o->b);
    return icmp(o, is_signed(o) ? with_sign : without, o->a, o->b);
}

/* NaN where either is; a where they are equal. */
static LLVMValue extreme(const struct operation *o, bool least)
{
    if (is_float(o)) {
        LLVMValue other = fcmp(o, least ? LLVM_OGT : LLVM_OLT, o->a, o->b);
        LLVMValue is_nan = fcmp(o, LLVM_UNO, o->b, o->b);
        return choose(o, binary(o, LLVM_OR, is_nan, other), o->b, o->a);
    }
    LLVMValue a = least ? compare(o, 0, LLVM_SLE, LLVM_ULE) : compare(o, 0, LLVM_SGE, LLVM_UGE);
    return choose(o, a, o->a, o->b);
}

/* Quotient and remainder of integers: by 0 they are 0; by -1 nothing is divided, which could not be
 * represented. */
static LLVMValue divide(const struct operation *o, bool remainder)
{
    LLVMValue zero = number(o, 0), by_zero = icmp(o, LLVM_IEQ, o->b, zero);
    if (!is_signed(o)) {
        LLVMValue safe = choose(o, by_zero, number(o, 1), o->b);
        return choose(o, by_zero, zero, binary(o, remainder ? LLVM_UREM : LLVM_UDIV, o->a, safe));
    }
    LLVMValue by_minus = icmp(o, LLVM_IEQ, o->b, number(o, -1));
    LLVMValue safe = choose(o, binary(o, LLVM_OR, by_zero, by_minus), number(o, 1), o->b);
    LLVMValue result = binary(o, remainder ? LLVM_SREM : LLVM_SDIV, o->a, safe);
    LLVMValue of_minus = remainder ? zero : binary(o, LLVM_SUB, zero, o->a);
    return choose(o, by_zero, zero, choose(o, by_minus, of_minus, result));
}

/* With the divisor's sign. */
static LLVMValue modulo(const struct operation *o)
{
    LLVMValue r = divide(o, true), zero = number(o, 0);
    if (!is_signed(o))
        return r;
    LLVMValue signs = binary(o, LLVM_XOR, r, o->b);
    LLVMValue wrong =
        binary(o, LLVM_AND, icmp(o, LLVM_INE, r, zero), icmp(o, LLVM_SLT, signs, zero));
    return choose(o, wrong, binary(o, LLVM_ADD, r, o->b), r);
}

static LLVMValue sign(const struct operation *o)
{
    LLVMValue zero = number(o, 0), plus = number(o, 1);
    if (is_float(o)) {
        LLVMValue is_zero = fcmp(o, LLVM_OEQ, o->a, zero);
        LLVMValue rest = choose(o, is_zero, zero, o->a);
        LLVMValue low = choose(o, fcmp(o, LLVM_OLT, o->a, zero), number(o, -1), rest);
        return choose(o, fcmp(o, LLVM_OGT, o->a, zero), plus, low);
    }
    if (!is_signed(o))
        return choose(o, icmp(o, LLVM_INE, o->a, zero), plus, zero);
    LLVMValue low = choose(o, icmp(o, LLVM_SLT, o->a, zero), number(o, -1), zero);
    return choose(o, icmp(o, LLVM_SGT, o->a, zero), plus, low);
}

static LLVMValue magnitude(const struct operation *o)
{
    if (is_float(o))
        return one(o, "llvm.fabs");
    if (!is_signed(o))
        return o->a;
    LLVMValue zero = number(o, 0);
    return choose(o, icmp(o, LLVM_SLT, o->a, zero), binary(o, LLVM_SUB, zero, o->a), o->a);
}

/* 0 where the distance is the width or more. */
static LLVMValue shift(const struct operation *o, int opcode)
{
    LLVMValue zero = number(o, 0), fits = icmp(o, LLVM_ULT, o->b, number(o, width(o)));
    return choose(o, fits, binary(o, opcode, o->a, choose(o, fits, o->b, zero)), zero);
}

static LLVMValue equal(const struct operation *o)
{
    return is_float(o) ? fcmp(o, LLVM_OEQ, o->a, o->b) : icmp(o, LLVM_IEQ, o->a, o->b);
}

static LLVMValue complement(const struct operation *o)
{
    const uint64_t all = width(o) < 64 ? (UINT64_C(1) << width(o)) - 1 : UINT64_MAX;
    return binary(o, LLVM_XOR, o->a, emit_constant(o->e, o->type, o->type == TSSA_BOOL ? 1 : all));
}

LLVMValue emit_scalar(struct emitter *e, const struct gir_code *code, tssa_dtype type,
                      const LLVMValue *x)
{
    const struct operation o = {
        .e = e, .id = code->scalar, .type = type, .a = x[0], .b = x[1], .c = x[2]};
    const bool floats = is_float(&o);
    switch (o.id) {
    case SCALAR_SEL:
        return choose(&o, o.a, o.b, o.c);
    case SCALAR_ADD:
        return binary(&o, floats ? LLVM_FADD : LLVM_ADD, o.a, o.b);
    case SCALAR_SUB:
        return binary(&o, floats ? LLVM_FSUB : LLVM_SUB, o.a, o.b);
    case SCALAR_MUL:
        return binary(&o, floats ? LLVM_FMUL : LLVM_MUL, o.a, o.b);
    case SCALAR_DIV:
        return floats ? binary(&o, LLVM_FDIV, o.a, o.b) : divide(&o, false);
    case SCALAR_FMOD:
        return divide(&o, true);
    case SCALAR_MOD:
        return modulo(&o);
    case SCALAR_MIN:
    case SCALAR_MAX:
        return extreme(&o, o.id == SCALAR_MIN);
    case SCALAR_NEG:
        return floats ? e->llvm->LLVMBuildFNeg(e->builder, o.a, "")
                      : binary(&o, LLVM_SUB, number(&o, 0), o.a);
    case SCALAR_ABS:
        return magnitude(&o);
    case SCALAR_SIGN:
        return sign(&o);
    case SCALAR_FLOOR:
        return one(&o, "llvm.floor");
    case SCALAR_CEIL:
        return one(&o, "llvm.ceil");
    case SCALAR_ROUND:
        return one(&o, "llvm.roundeven");
    case SCALAR_SQRT:
        return one(&o, "llvm.sqrt");
    case SCALAR_LT:
        return compare(&o, LLVM_OLT, LLVM_SLT, LLVM_ULT);
    case SCALAR_LE:
        return compare(&o, LLVM_OLE, LLVM_SLE, LLVM_ULE);
    case SCALAR_GT:
        return compare(&o, LLVM_OGT, LLVM_SGT, LLVM_UGT);
    case SCALAR_GE:
        return compare(&o, LLVM_OGE, LLVM_SGE, LLVM_UGE);
    case SCALAR_EQ:
        return equal(&o);
    case SCALAR_ISNAN:
        return fcmp(&o, LLVM_UNO, o.a, o.a);
    case SCALAR_AND:
    case SCALAR_BAND:
        return binary(&o, LLVM_AND, o.a, o.b);
    case SCALAR_OR:
    case SCALAR_BOR:
        return binary(&o, LLVM_OR, o.a, o.b);
    case SCALAR_XOR:
    case SCALAR_BXOR:
        return binary(&o, LLVM_XOR, o.a, o.b);
    case SCALAR_NOT:
    case SCALAR_BNOT:
        return complement(&o);
    case SCALAR_SHL:
        return shift(&o, LLVM_SHL);
    case SCALAR_SHR:
        return shift(&o, LLVM_LSHR);
    default: /* calls and leaves, which are no operations here */
        e->failed = true;
        return o.a;
    }
}
