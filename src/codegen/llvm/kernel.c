/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function around a kernel's steps:
 *
 *     for each row:
 *         where the arguments have it; steps that are the same for all elements of the row
 *         for i from 0 by lanes, as long as there are so many elements:
 *             the other steps, on vectors
 *         where elements are left:
 *             the other steps on a vector of which only these lanes are loaded and stored (AVX-512), or else, for
 *             each, all steps on one element
 *
 * The stack has room for one vector per operand of a call.
 */
#include "codegen/llvm/kernel.h"

#include <string.h>

enum { ARGS, STEPS, ROWS, LENGTH, FUNCTIONS, N_PARAMS };

struct function {
    struct emitter *e;
    LLVMValue function, params[N_PARAMS];
    LLVMBlock entry, row, body, rest, next, end;
    LLVMValue r, whole; /* the row; elements that whole vectors take */
    unsigned lanes;
    bool masks;
    bool in_rows[GIR_MAX_CODES]; /* the step is the same for all elements of a row */
};

static LLVMType integer(const struct function *f, unsigned bits)
{
    return f->e->llvm->LLVMIntTypeInContext(f->e->context, bits);
}

static LLVMValue number(const struct function *f, uint64_t value)
{
    return emit_int(f->e, 64, value);
}

static LLVMBlock block(const struct function *f, const char *name)
{
    return f->e->llvm->LLVMAppendBasicBlockInContext(f->e->context, f->function, name);
}

static void begin(const struct function *f, LLVMBlock at)
{
    f->e->llvm->LLVMPositionBuilderAtEnd(f->e->builder, at);
}

static LLVMBlock here(const struct function *f)
{
    return f->e->llvm->LLVMGetInsertBlock(f->e->builder);
}

static LLVMValue phi(const struct function *f, LLVMValue first, LLVMBlock from)
{
    LLVMValue value = f->e->llvm->LLVMBuildPhi(f->e->builder, integer(f, 64), "");
    f->e->llvm->LLVMAddIncoming(value, &first, &from, 1);
    return value;
}

/* Adds to a phi, and goes round as long as the sum is below the limit. */
static void loop(const struct function *f, LLVMValue value, uint64_t step, LLVMValue limit,
                 LLVMBlock head, LLVMBlock out)
{
    const struct llvm_api *llvm = f->e->llvm;
    LLVMValue sum = emit_binary(f->e, LLVM_ADD, value, number(f, step));
    LLVMBlock from = here(f);
    llvm->LLVMAddIncoming(value, &sum, &from, 1);
    LLVMValue more = llvm->LLVMBuildICmp(f->e->builder, LLVM_SLT, sum, limit, "");
    llvm->LLVMBuildCondBr(f->e->builder, more, head, out);
}

/* ---- Steps ---------------------------------------------------------------------------------------- */

static void find_rows(struct function *f)
{
    const struct gir_kernel *kernel = f->e->kernel;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        bool same =
            code->op != GIR_STORE && (code->op != GIR_LOAD || !gir_args(kernel)[code->bits].moves);
        for (uint32_t k = 0; k < gir_n_operands(code); k++)
            same &= f->in_rows[code->operands[k]];
        f->in_rows[i] = same;
    }
}

static void emit_steps(const struct function *f, bool in_rows)
{
    for (uint32_t i = 0; i < f->e->kernel->n_codes; i++)
        if (f->in_rows[i] == in_rows)
            emit_step(f->e, i);
}

/* ---- Parts ---------------------------------------------------------------------------------------- */

static void emit_entry(struct function *f)
{
    struct emitter *e = f->e;
    const struct llvm_api *llvm = e->llvm;
    bool calls = false;
    begin(f, f->entry);
    for (uint32_t i = 0; i < e->kernel->n_codes; i++)
        calls |= gir_is_call(&gir_codes(e->kernel)[i]);
    LLVMType room = llvm->LLVMVectorType(integer(f, 64), f->lanes);
    for (int i = 0; calls && i < 3; i++)
        e->rooms[i] = llvm->LLVMBuildAlloca(e->builder, room, "");
    f->whole = emit_binary(e, LLVM_AND, f->params[LENGTH], number(f, ~(uint64_t)(f->lanes - 1)));
    LLVMValue any = llvm->LLVMBuildICmp(e->builder, LLVM_SGT, f->params[ROWS], number(f, 0), "");
    llvm->LLVMBuildCondBr(e->builder, any, f->row, f->end);
}

/* Where the arguments have the row. */
static void emit_places(const struct function *f)
{
    struct emitter *e = f->e;
    const struct llvm_api *llvm = e->llvm;
    LLVMType pointer = llvm->LLVMPointerTypeInContext(e->context, 0), byte = integer(f, 8),
             word = integer(f, 64);
    for (uint32_t i = 0; i < e->kernel->n_args; i++) {
        LLVMValue index = number(f, i);
        LLVMValue at = llvm->LLVMBuildGEP2(e->builder, pointer, f->params[ARGS], &index, 1, "");
        LLVMValue base = llvm->LLVMBuildLoad2(e->builder, pointer, at, "");
        at = llvm->LLVMBuildGEP2(e->builder, word, f->params[STEPS], &index, 1, "");
        LLVMValue step = llvm->LLVMBuildLoad2(e->builder, word, at, "");
        LLVMValue offset = emit_binary(e, LLVM_MUL, step, f->r);
        e->args[i] = llvm->LLVMBuildGEP2(e->builder, byte, base, &offset, 1, "");
    }
}

static void emit_row(struct function *f)
{
    struct emitter *e = f->e;
    const struct llvm_api *llvm = e->llvm;
    begin(f, f->row);
    f->r = phi(f, number(f, 0), f->entry);
    emit_places(f);
    e->lanes = f->lanes;
    emit_steps(f, true);
    LLVMValue any = llvm->LLVMBuildICmp(e->builder, LLVM_SGT, f->whole, number(f, 0), "");
    LLVMBlock from = here(f);
    llvm->LLVMBuildCondBr(e->builder, any, f->body, f->rest);
    begin(f, f->body);
    e->index = phi(f, number(f, 0), from);
    e->mask = NULL;
    emit_steps(f, false);
    loop(f, e->index, f->lanes, f->whole, f->body, f->rest);
}

/* Lanes 0, 1, ... that are less than what is left. */
static LLVMValue emit_mask(const struct function *f)
{
    struct emitter *e = f->e;
    LLVMValue lanes[64];
    LLVMValue left = emit_binary(e, LLVM_SUB, f->params[LENGTH], f->whole);
    for (unsigned i = 0; i < f->lanes; i++)
        lanes[i] = emit_int(e, 32, i);
    LLVMValue all = emit_splat(e, emit_cast(e, LLVM_TRUNC, left, integer(f, 32)), TSSA_INT32);
    return e->llvm->LLVMBuildICmp(e->builder, LLVM_ULT, e->llvm->LLVMConstVector(lanes, f->lanes),
                                  all, "");
}

static void emit_rest(const struct function *f)
{
    struct emitter *e = f->e;
    const struct llvm_api *llvm = e->llvm;
    LLVMBlock tail = block(f, "tail");
    begin(f, f->rest);
    LLVMValue any = llvm->LLVMBuildICmp(e->builder, LLVM_SLT, f->whole, f->params[LENGTH], "");
    llvm->LLVMBuildCondBr(e->builder, any, tail, f->next);
    begin(f, tail);
    if (f->masks) {
        e->index = f->whole;
        e->mask = emit_mask(f);
        emit_steps(f, false);
        llvm->LLVMBuildBr(e->builder, f->next);
        return;
    }
    LLVMBlock single = block(f, "single");
    e->lanes = 1;
    emit_steps(f, true);
    LLVMBlock from = here(f);
    llvm->LLVMBuildBr(e->builder, single);
    begin(f, single);
    e->index = phi(f, f->whole, from);
    emit_steps(f, false);
    loop(f, e->index, 1, f->params[LENGTH], single, f->next);
}

static void make_function(struct function *f)
{
    struct emitter *e = f->e;
    const struct llvm_api *llvm = e->llvm;
    LLVMType pointer = llvm->LLVMPointerTypeInContext(e->context, 0);
    LLVMType params[N_PARAMS] = {[ARGS] = pointer,
                                 [STEPS] = pointer,
                                 [ROWS] = integer(f, 64),
                                 [LENGTH] = integer(f, 64),
                                 [FUNCTIONS] = pointer};
    LLVMType type =
        llvm->LLVMFunctionType(llvm->LLVMVoidTypeInContext(e->context), params, N_PARAMS, 0);
    f->function = llvm->LLVMAddFunction(e->module, CODEGEN_ENTRY, type);
    for (unsigned i = 0; i < N_PARAMS; i++)
        f->params[i] = llvm->LLVMGetParam(f->function, i);
    e->functions = f->params[FUNCTIONS];
    const unsigned nounwind = llvm->LLVMGetEnumAttributeKindForName("nounwind", 8);
    llvm->LLVMAddAttributeAtIndex(f->function, LLVM_OF_FUNCTION,
                                  llvm->LLVMCreateEnumAttribute(e->context, nounwind, 0));
    static const char key[] = "prefer-vector-width", value[] = "512";
    llvm->LLVMAddAttributeAtIndex(
        f->function, LLVM_OF_FUNCTION,
        llvm->LLVMCreateStringAttribute(e->context, key, sizeof key - 1, value, sizeof value - 1));
}

void emit_kernel(struct emitter *e, unsigned lanes, bool masks)
{
    struct function f = {.e = e, .lanes = lanes, .masks = masks};
    make_function(&f);
    find_rows(&f);
    f.entry = block(&f, "entry");
    f.row = block(&f, "row");
    f.body = block(&f, "body");
    f.rest = block(&f, "rest");
    f.next = block(&f, "next");
    f.end = block(&f, "end");
    emit_entry(&f);
    emit_row(&f);
    emit_rest(&f);
    begin(&f, f.next);
    loop(&f, f.r, 1, f.params[ROWS], f.row, f.end);
    begin(&f, f.end);
    e->llvm->LLVMBuildRetVoid(e->builder);
}
