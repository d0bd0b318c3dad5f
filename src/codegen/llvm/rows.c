/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/llvm/rows.h"

#include <stdlib.h>

/* ---- Steps ---------------------------------------------------------------------------------------- */

LLVMValue rows_combine(const struct rows *r, const struct reduction *one, LLVMValue a, LLVMValue b)
{
    const struct gir_code *code = rows_code(r, one->step);
    const LLVMValue operands[3] = {a, b, NULL};
    return emit_scalar(r->e, code, code->type, operands);
}

bool rows_find_nans(const struct rows *r, uint32_t step)
{
    const struct gir_code *code = rows_code(r, step);
    return (code->scalar == SCALAR_MAX || code->scalar == SCALAR_MIN) &&
           (code->type == TSSA_FLOAT || code->type == TSSA_DOUBLE);
}

void rows_emit_once(const struct rows *r)
{
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++) {
        const struct gir_code *code = rows_code(r, i);
        if (!r->when[i].varies && r->when[i].pass == r->pass && code->op != GIR_REDUCE &&
            code->op != GIR_STORE)
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
        const bool here = r->when[i].pass == r->pass;
        r->needed[i] = here && r->when[i].varies && code->op == GIR_STORE;
        if (code->op != GIR_REDUCE)
            continue;
        if (here)
            r->reductions[r->n++] = (struct reduction){
                .step = i, .number = all, .identity = emit_constant(r->e, code->type, code->bits)};
        all++;
    }
    for (uint32_t i = 0; i < r->n; i++)
        r->needed[rows_code(r, r->reductions[i].step)->operands[0]] = true;
    for (uint32_t i = kernel->n_codes; i-- > 0;) {
        r->needed[i] &= r->when[i].varies;
        for (uint32_t k = 0; r->needed[i] && !rows_has(r, i) && k < gir_n_operands(rows_code(r, i));
             k++)
            r->needed[rows_code(r, i)->operands[k]] = true;
    }
}

/* Finds the values that take long and are needed in several passes. */
static void find_kept(struct rows *r)
{
    const uint32_t n = r->e->kernel->n_codes;
    uint16_t first[GIR_MAX_CODES] = {0};
    for (r->pass = 0; r->pass < r->n_passes; r->pass++) {
        rows_find_needed(r);
        for (uint32_t i = 0; i < n; i++) {
            if (!r->needed[i] || !gir_is_call(rows_code(r, i)))
                continue;
            if (first[i])
                r->kept_in[i] = first[i];
            else
                first[i] = (uint16_t)(r->pass + 1);
        }
    }
}

/* ---- Memory --------------------------------------------------------------------------------------- */

#define MOST_BYTES (96 * 1024) /* of the stack, for rows as lanes */

static tssa_dtype type_of_arg(const struct gir_arg *arg)
{
    return arg->dtype == TSSA_BOOL ? TSSA_UINT8 : (tssa_dtype)arg->dtype;
}

/* So many vectors. */
static LLVMValue make_memory(const struct rows *r, tssa_dtype dtype, uint64_t n)
{
    const struct llvm_api *llvm = r->e->llvm;
    LLVMType vector = llvm->LLVMVectorType(emit_element(r->e, dtype), LANES);
    return llvm->LLVMBuildAlloca(r->e->builder, llvm->LLVMArrayType2(vector, n), "");
}

/* Of rows as lanes, whose vectors lie on the stack: how many bytes that takes. */
static size_t short_bytes(const struct rows *r)
{
    const struct gir_kernel *kernel = r->e->kernel;
    size_t bytes = 0;
    for (uint32_t i = 0; i < kernel->n_args; i++)
        bytes += (size_t)emit_size(type_of_arg(&gir_args(kernel)[i])) *
                 (gir_args(kernel)[i].moves ? SHORT_ROW : 1);
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const size_t width = emit_size(rows_code(r, i)->type);
        bytes += rows_code(r, i)->op == GIR_REDUCE ? width * LANES : 0;
        bytes += r->kept_in[i] ? width * SHORT_ROW : 0;
    }
    return bytes * LANES;
}

void rows_emit_memory(struct rows *r)
{
    const struct gir_kernel *kernel = r->e->kernel;
    uint32_t n = 0;
    r->e->lanes = LANES;
    find_kept(r);
    r->has_short = short_bytes(r) <= MOST_BYTES;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = rows_code(r, i);
        if (r->has_short && r->kept_in[i])
            r->kept[i] = make_memory(r, code->type, SHORT_ROW);
        if (code->op != GIR_REDUCE)
            continue;
        r->levels[n] = make_memory(r, code->type, LONG_LEVELS);
        if (rows_find_nans(r, i))
            r->nans[n] = make_memory(r, TSSA_UINT8, 1);
        if (r->has_short)
            r->elements[n] = make_memory(r, code->type, LANES);
        n++;
    }
    for (uint32_t i = 0; r->has_short && i < kernel->n_args; i++) {
        const struct gir_arg *arg = &gir_args(kernel)[i];
        r->args[i] = make_memory(r, type_of_arg(arg), arg->moves ? SHORT_ROW : 1);
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
