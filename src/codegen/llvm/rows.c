/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/llvm/rows.h"

#include <stdlib.h>

/* ---- Steps ----------------------------------------------------------------------------------- */

LLVMValue rows_combine(const struct rows *r, const struct reduction *one, LLVMValue a, LLVMValue b)
{
    const struct gir_code *code = rows_code(r, one->step);
    const LLVMValue operands[3] = {a, b, NULL};
    return emit_scalar(r->e, code, code->type, operands);
}

bool rows_find_nans(const struct rows *r, uint32_t step)
{
    return !rows_have_pieces(r) && gir_finds_extreme(rows_code(r, step));
}

void rows_emit_once(const struct rows *r)
{
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++) {
        const struct gir_code *code = rows_code(r, i);
        if (!r->when[i].varies && r->when[i].pass == r->pass && code->op != GIR_REDUCE &&
            code->op != GIR_LAST && code->op != GIR_STORE)
            emit_step(r->e, i);
    }
}

void rows_emit_stores(const struct rows *r)
{
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++)
        if (!r->when[i].varies && rows_code(r, i)->op == GIR_STORE)
            emit_step(r->e, i);
}

void rows_find_needed(struct rows *r)
{
    const struct gir_kernel *kernel = r->e->kernel;
    uint32_t all = 0;
    r->n = 0;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = rows_code(r, i);
        if (code->op != GIR_REDUCE)
            continue;
        if (r->when[i].pass == r->pass)
            r->reductions[r->n++] = (struct reduction){
                .step = i, .number = all, .identity = emit_constant(r->e, code->type, code->bits)};
        all++;
    }
    gir_find_needed(kernel, r->when, r->pass, r->needed);
}

void rows_emit_steps(const struct rows *r, LLVMValue index)
{
    const struct emitter *e = r->e;
    const struct llvm_api *llvm = e->llvm;
    for (uint32_t i = 0; i < e->kernel->n_codes; i++) {
        const tssa_dtype dtype = rows_code(r, i)->type;
        LLVMValue at = NULL;
        if (!r->needed[i] || rows_code(r, i)->op == GIR_STATE || rows_code(r, i)->op == GIR_NEXT)
            continue; /* who walks the rows has a state, and makes it the next one */
        if (r->when[i].kept_in)
            at = llvm->LLVMBuildGEP2(e->builder, emit_element(e, dtype), r->kept[i], &index, 1, "");
        if (rows_has(r, i)) {
            r->e->values[i] = llvm->LLVMBuildLoad2(e->builder, emit_type(e, dtype), at, "");
            llvm->LLVMSetAlignment(e->values[i], emit_size(dtype));
            continue;
        }
        emit_step(r->e, i);
        if (at)
            llvm->LLVMSetAlignment(llvm->LLVMBuildStore(e->builder, e->values[i], at),
                                   emit_size(dtype));
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

tssa_dtype rows_type_of(const struct gir_arg *arg)
{
    return arg->dtype == TSSA_BOOL ? TSSA_UINT8 : (tssa_dtype)arg->dtype;
}

LLVMValue rows_make_memory(const struct rows *r, tssa_dtype dtype, uint64_t n)
{
    const struct llvm_api *llvm = r->e->llvm;
    const unsigned lanes = r->e->kernel->whole_rows ? LANES : r->e->lanes;
    LLVMType vector = llvm->LLVMVectorType(emit_element(r->e, dtype), lanes);
    return llvm->LLVMBuildAlloca(r->e->builder, llvm->LLVMArrayType2(vector, n), "");
}

/* How many elements there are of what is kept: of a long row as many as vectors have, of columns a
 * vector for each row. */
static LLVMValue count_kept(const struct rows *r)
{
    const struct function *f = r->f;
    if (r->e->kernel->columns)
        return emit_binary(r->e, LLVM_MUL, f->params[ROWS], function_number(f, f->lanes));
    LLVMValue more = emit_binary(r->e, LLVM_ADD, f->params[LENGTH], function_number(f, LANES - 1));
    return emit_binary(r->e, LLVM_AND, more, function_number(f, ~(uint64_t)(LANES - 1)));
}

void rows_find_kept(struct rows *r)
{
    const struct function *f = r->f;
    const struct emitter *e = r->e;
    LLVMValue length = count_kept(r);
    uint64_t before = 0;
    for (uint32_t i = 0; i < e->kernel->n_codes; i++) {
        if (!r->when[i].kept_in)
            continue;
        LLVMValue offset = emit_binary(e, LLVM_MUL, length, function_number(f, before));
        r->long_kept[i] = e->llvm->LLVMBuildGEP2(e->builder, function_integer(f, 8),
                                                 f->params[SCRATCH], &offset, 1, "");
        before += emit_size(rows_code(r, i)->type);
    }
}

void rows_emit_memory(struct rows *r)
{
    const struct gir_kernel *kernel = r->e->kernel;
    uint32_t n = 0;
    rows_find_kept(r);
    r->across = gir_find_across(kernel, r->when, r->e->register_bytes);
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = rows_code(r, i);
        if (r->across.room && r->when[i].kept_in)
            r->short_kept[i] = rows_make_memory(r, code->type, r->across.room);
        if (code->op != GIR_REDUCE)
            continue;
        r->levels[n] = rows_make_memory(r, code->type, LONG_LEVELS);
        if (rows_find_nans(r, i))
            r->nans[n] = rows_make_memory(r, TSSA_UINT8, 1);
        if (rows_have_pieces(r))
            r->pieces[n] = rows_make_memory(r, code->type, 1);
        if (r->across.room)
            r->elements[n] = rows_make_memory(r, code->type, LANES);
        n++;
    }
    for (uint32_t i = 0; r->across.room && i < kernel->n_args; i++) {
        const struct gir_arg *arg = &gir_args(kernel)[i];
        r->args[i] = rows_make_memory(r, rows_type_of(arg), arg->moves ? r->across.room : 1);
    }
}

struct rows *rows_open(struct function *f)
{
    struct rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return NULL;
    rows->f = f;
    rows->e = f->e;
    rows->n_passes = gir_find_passes(f->e->kernel, rows->when);
    return rows;
}

void rows_close(struct rows *rows)
{
    free(rows);
}
