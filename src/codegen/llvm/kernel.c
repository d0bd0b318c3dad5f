/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function around a kernel's steps:
 *
 *     for each row:
 *         where the arguments have it; steps that are the same for all elements of the row
 *         for i from 0 by lanes, as long as there are so many elements:
 *             the other steps, on vectors
 *         where elements are left: the other steps on a vector of which only these lanes are loaded
 *             and stored (AVX-512), or else, for each, all steps on one element
 *
 * The stack has room for one vector per operand of a call. Of kernels with reductions rows are as
 * in long_rows.c, or columns.c.
 */
#include "codegen/llvm/kernel.h"

#include <string.h>

#include "codegen/llvm/function.h"
#include "codegen/llvm/keep.h"

struct function_parts {
    struct function f;
    LLVMBlock body, rest;
    bool in_rows[GIR_MAX_CODES]; /* the step is the same for all elements of a row */
    bool behind[GIR_MAX_CODES];  /* only what is kept needs it */
};

LLVMType function_integer(const struct function *f, unsigned bits)
{
    return f->e->llvm->LLVMIntTypeInContext(f->e->context, bits);
}

LLVMValue function_number(const struct function *f, uint64_t value)
{
    return emit_int(f->e, 64, value);
}

LLVMBlock function_block(const struct function *f, const char *name)
{
    return f->e->llvm->LLVMAppendBasicBlockInContext(f->e->context, f->function, name);
}

void function_begin(const struct function *f, LLVMBlock at)
{
    f->e->llvm->LLVMPositionBuilderAtEnd(f->e->builder, at);
}

LLVMBlock function_here(const struct function *f)
{
    return f->e->llvm->LLVMGetInsertBlock(f->e->builder);
}

LLVMValue function_phi(const struct function *f, LLVMType type, LLVMValue first, LLVMBlock from)
{
    LLVMValue value = f->e->llvm->LLVMBuildPhi(f->e->builder, type, "");
    f->e->llvm->LLVMAddIncoming(value, &first, &from, 1);
    return value;
}

void function_again(const struct function *f, LLVMValue phi, LLVMValue value)
{
    LLVMBlock from = function_here(f);
    f->e->llvm->LLVMAddIncoming(phi, &value, &from, 1);
}

void function_branch(const struct function *f, LLVMValue truth, LLVMBlock yes, LLVMBlock no)
{
    f->e->llvm->LLVMBuildCondBr(f->e->builder, truth, yes, no);
}

LLVMValue function_compare(const struct function *f, int predicate, LLVMValue a, LLVMValue b)
{
    return f->e->llvm->LLVMBuildICmp(f->e->builder, predicate, a, b, "");
}

void function_loop(const struct function *f, LLVMValue value, uint64_t step, LLVMValue limit,
                   LLVMBlock head, LLVMBlock out)
{
    LLVMValue sum = emit_binary(f->e, LLVM_ADD, value, function_number(f, step));
    function_again(f, value, sum);
    function_branch(f, function_compare(f, LLVM_SLT, sum, limit), head, out);
}

static LLVMValue index_phi(const struct function *f, LLVMValue first, LLVMBlock from)
{
    return function_phi(f, function_integer(f, 64), first, from);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void find_rows(struct function_parts *p)
{
    const struct gir_kernel *kernel = p->f.e->kernel;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        bool same = !gir_has_effect(code) && code->op != GIR_POSITION &&
                    ((code->op != GIR_LOAD && code->op != GIR_LOOKUP) ||
                     !gir_args(kernel)[gir_arg_of(code)].moves);
        for (uint32_t k = 0; k < gir_n_operands(code); k++)
            same &= p->in_rows[code->operands[k]];
        p->in_rows[i] = same;
    }
}

static void find_behind(struct function_parts *p)
{
    const struct gir_kernel *kernel = p->f.e->kernel;
    if (!gir_keeps(kernel))
        return;
    keep_find_behind(kernel, p->behind);
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        p->behind[i] &= !p->in_rows[i];
}

static void emit_steps(const struct function_parts *p, bool in_rows)
{
    struct emitter *e = p->f.e;
    for (uint32_t i = 0; i < e->kernel->n_codes; i++)
        if (p->in_rows[i] == in_rows && !p->behind[i])
            emit_step(e, i);
    if (!in_rows && gir_keeps(e->kernel))
        emit_steps_behind(e, p->behind);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static void emit_entry(struct function *f, struct rows *rows)
{
    struct emitter *e = f->e;
    const struct llvm_api *llvm = e->llvm;
    bool calls = false;
    function_begin(f, f->entry);
    for (uint32_t i = 0; i < e->kernel->n_codes; i++)
        calls |= gir_is_call(&gir_codes(e->kernel)[i]);
    LLVMType room = llvm->LLVMVectorType(function_integer(f, 64), f->lanes);
    for (int i = 0; calls && i < 3; i++)
        e->rooms[i] = llvm->LLVMBuildAlloca(e->builder, room, "");
    if (gir_keeps(e->kernel))
        emit_keep_memory(e);
    const bool columns = e->kernel->columns;
    if (columns)
        rows_emit_column_memory(rows);
    else if (rows)
        rows_emit_memory(rows);
    e->length = f->params[columns ? ROWS : LENGTH];
    f->whole =
        emit_binary(e, LLVM_AND, f->params[LENGTH], function_number(f, ~(uint64_t)(f->lanes - 1)));
    LLVMBlock some = function_block(f, "some");
    LLVMValue count = f->params[columns ? LENGTH : ROWS]; /* of no rows there is a result, too */
    function_branch(f, function_compare(f, LLVM_SGT, count, function_number(f, 0)), some, f->end);
    function_begin(f, some);
}

/* Entry number `list` of those that the steps have of the argument. */
static LLVMValue step_of(const struct function *f, uint32_t list, uint32_t arg)
{
    const struct emitter *e = f->e;
    LLVMValue index = function_number(f, (uint64_t)list * e->kernel->n_args + arg);
    LLVMType word = function_integer(f, 64);
    LLVMValue at = e->llvm->LLVMBuildGEP2(e->builder, word, f->params[STEPS], &index, 1, "");
    return e->llvm->LLVMBuildLoad2(e->builder, word, at, "");
}

void function_places(const struct function *f)
{
    struct emitter *e = f->e;
    const struct llvm_api *llvm = e->llvm;
    LLVMType pointer = llvm->LLVMPointerTypeInContext(e->context, 0), byte = function_integer(f, 8);
    for (uint32_t i = 0; i < e->kernel->n_args; i++) {
        const struct gir_arg *arg = &gir_args(e->kernel)[i];
        LLVMValue index = function_number(f, i);
        LLVMValue at = llvm->LLVMBuildGEP2(e->builder, pointer, f->params[ARGS], &index, 1, "");
        LLVMValue base = llvm->LLVMBuildLoad2(e->builder, pointer, at, "");
        LLVMValue offset = emit_binary(e, LLVM_MUL, step_of(f, 0, i), f->r);
        e->args[i] = llvm->LLVMBuildGEP2(e->builder, byte, base, &offset, 1, "");
        if (arg->moves == GIR_STRIDED)
            e->strides[i] = step_of(f, 1, i);
        if (!arg->is_looked_up)
            continue;
        e->lookup_strides[i] = step_of(f, 2, i);
        e->lookup_sizes[i] = step_of(f, 3, i);
    }
}

static void emit_row(struct function_parts *p)
{
    struct function *f = &p->f;
    struct emitter *e = f->e;
    e->index = NULL;
    emit_steps(p, true);
    LLVMBlock from = function_here(f);
    function_branch(f, function_compare(f, LLVM_SGT, f->whole, function_number(f, 0)), p->body,
                    p->rest);
    function_begin(f, p->body);
    e->index = index_phi(f, function_number(f, 0), from);
    e->mask = NULL;
    emit_steps(p, false);
    function_loop(f, e->index, f->lanes, f->whole, p->body, p->rest);
}

LLVMValue function_mask(const struct function *f)
{
    struct emitter *e = f->e;
    LLVMValue lanes[64];
    LLVMValue left = emit_binary(e, LLVM_SUB, f->params[LENGTH], f->whole);
    for (unsigned i = 0; i < f->lanes; i++)
        lanes[i] = emit_int(e, 32, i);
    LLVMValue all =
        emit_splat(e, emit_cast(e, LLVM_TRUNC, left, function_integer(f, 32)), TSSA_INT32);
    return e->llvm->LLVMBuildICmp(e->builder, LLVM_ULT, e->llvm->LLVMConstVector(lanes, f->lanes),
                                  all, "");
}

static void emit_rest(const struct function_parts *p)
{
    const struct function *f = &p->f;
    struct emitter *e = f->e;
    LLVMBlock tail = function_block(f, "tail");
    function_begin(f, p->rest);
    function_branch(f, function_compare(f, LLVM_SLT, f->whole, f->params[LENGTH]), tail, f->next);
    function_begin(f, tail);
    if (f->masks) {
        e->index = f->whole;
        e->mask = function_mask(f);
        emit_steps(p, false);
        e->llvm->LLVMBuildBr(e->builder, f->next);
        return;
    }
    LLVMBlock single = function_block(f, "single");
    e->lanes = 1;
    e->index = NULL;
    emit_steps(p, true);
    LLVMBlock from = function_here(f);
    e->llvm->LLVMBuildBr(e->builder, single);
    function_begin(f, single);
    e->index = index_phi(f, f->whole, from);
    emit_steps(p, false);
    function_loop(f, e->index, 1, f->params[LENGTH], single, f->next);
}

static void make_function(struct function *f)
{
    struct emitter *e = f->e;
    const struct llvm_api *llvm = e->llvm;
    LLVMType pointer = llvm->LLVMPointerTypeInContext(e->context, 0);
    LLVMType params[N_PARAMS] = {[ARGS] = pointer,
                                 [STEPS] = pointer,
                                 [ROWS] = function_integer(f, 64),
                                 [LENGTH] = function_integer(f, 64),
                                 [CALLS] = pointer,
                                 [SCRATCH] = pointer};
    LLVMType type =
        llvm->LLVMFunctionType(llvm->LLVMVoidTypeInContext(e->context), params, N_PARAMS, 0);
    f->function = llvm->LLVMAddFunction(e->module, CODEGEN_ENTRY, type);
    e->function = f->function;
    for (unsigned i = 0; i < N_PARAMS; i++)
        f->params[i] = llvm->LLVMGetParam(f->function, i);
    e->calls = f->params[CALLS];
    e->told = f->params[SCRATCH];
    const unsigned nounwind = llvm->LLVMGetEnumAttributeKindForName("nounwind", 8);
    llvm->LLVMAddAttributeAtIndex(f->function, LLVM_OF_FUNCTION,
                                  llvm->LLVMCreateEnumAttribute(e->context, nounwind, 0));
    static const char key[] = "prefer-vector-width", value[] = "512";
    llvm->LLVMAddAttributeAtIndex(
        f->function, LLVM_OF_FUNCTION,
        llvm->LLVMCreateStringAttribute(e->context, key, sizeof key - 1, value, sizeof value - 1));
}

/* Rows that may come in parts. */
static void emit_parts(struct function_parts *p)
{
    find_rows(p);
    find_behind(p);
    p->body = function_block(&p->f, "body");
    p->rest = function_block(&p->f, "rest");
    emit_row(p);
    emit_rest(p);
}

/* The rows one after the other, from where the function is now. */
static void emit_rows(struct function_parts *parts, struct rows *rows)
{
    struct function *f = &parts->f;
    LLVMBlock from = function_here(f), across = function_block(f, "across");
    f->row = function_block(f, "row");
    f->next = function_block(f, "next");
    LLVMValue is_short = rows ? rows_emit_is_short(rows) : NULL;
    if (is_short)
        function_branch(f, is_short, across, f->row);
    else
        f->e->llvm->LLVMBuildBr(f->e->builder, f->row);
    function_begin(f, f->row);
    f->e->row = f->r = index_phi(f, function_number(f, 0), from);
    function_places(f);
    if (rows)
        rows_emit_long(rows);
    else
        emit_parts(parts);
    function_begin(f, f->next);
    function_loop(f, f->r, 1, f->params[ROWS], f->row, f->end);
    function_begin(f, across);
    if (is_short)
        rows_emit_short(rows, across);
    else
        f->e->llvm->LLVMBuildBr(f->e->builder, f->end);
}

void emit_kernel(struct emitter *e, unsigned lanes, bool masks)
{
    struct function_parts parts = {.f = {.e = e, .lanes = lanes, .masks = masks}};
    struct function *f = &parts.f;
    const bool whole = e->kernel->whole_rows || e->kernel->columns;
    struct rows *rows = whole ? rows_open(f) : NULL;
    if (whole && !rows) {
        e->failed = true;
        return;
    }
    make_function(f);
    f->entry = function_block(f, "entry");
    f->end = function_block(f, "end");
    e->lanes = lanes;
    emit_entry(f, rows);
    if (e->kernel->columns)
        rows_emit_columns(rows, f->end);
    else
        emit_rows(&parts, rows);
    function_begin(f, f->end);
    e->llvm->LLVMBuildRetVoid(e->builder);
    rows_close(rows);
}
