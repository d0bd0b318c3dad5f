/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of columns: reductions are of the same element in all rows of a call.
 *
 *     for each vector of columns, the last one with a mask:
 *         for each pass:
 *             steps that are once for a column and wait for what is before the pass
 *             where it reduces: for each row, by 64: steps, and they are combined, column by column
 *             else for each row the steps
 *         what is once for a column is stored
 *
 * A step of the order in ir/reduction.def is one row, and each column a lane of its own. What does
 * not move from row to row is loaded, and computed with, once. What takes long and later passes
 * need, too, is kept, a vector for each row.
 * Where rows are iterations it is as in iterations.c.
 */
#include <math.h>

#include "codegen/llvm/columns.h"
#include "codegen/llvm/reduce.h"

static LLVMValue entry_of(const struct function *f, unsigned param, LLVMType type, uint64_t number)
{
    const struct emitter *e = f->e;
    LLVMValue index = function_number(f, number);
    LLVMValue at = e->llvm->LLVMBuildGEP2(e->builder, type, f->params[param], &index, 1, "");
    return e->llvm->LLVMBuildLoad2(e->builder, type, at, "");
}

void columns_find_places(struct columns *c)
{
    const struct function *f = c->r->f;
    struct emitter *e = f->e;
    LLVMType pointer = e->llvm->LLVMPointerTypeInContext(e->context, 0),
             word = function_integer(f, 64);
    for (uint32_t i = 0; i < e->kernel->n_args; i++) {
        c->bases[i] = e->args[i] = entry_of(f, ARGS, pointer, i);
        c->steps[i] = entry_of(f, STEPS, word, i);
        if (gir_args(e->kernel)[i].moves == GIR_STRIDED)
            e->strides[i] = entry_of(f, STEPS, word, e->kernel->n_args + i);
    }
}

void columns_forget_records(struct emitter *e)
{
    for (uint32_t i = 0; i < e->kernel->n_args; i++)
        e->records[i].index = NULL;
}

void columns_go_to(const struct rows *r, LLVMValue row)
{
    const struct columns *c = r->columns;
    struct emitter *e = r->e;
    e->row = row;
    columns_forget_records(e);
    for (uint32_t i = 0; i < e->kernel->n_args; i++) {
        if (gir_args(e->kernel)[i].per_column)
            continue;
        LLVMValue offset = emit_binary(e, LLVM_MUL, c->steps[i], row);
        e->args[i] = e->llvm->LLVMBuildGEP2(e->builder, function_integer(r->f, 8), c->bases[i],
                                            &offset, 1, "");
    }
}

/* NaN where a row had one. */
static LLVMValue value_of(const struct rows *r, const struct reduction *one)
{
    const tssa_dtype dtype = rows_code(r, one->step)->type;
    if (!rows_find_nans(r, one->step))
        return one->value;
    return emit_select(r->e, one->nans, emit_number(r->e, dtype, (double)NAN), one->value);
}

#define LINE 64 /* bytes, of a cache */
/* As LLVM tells what is fetched, and how close it shall be. To fetch what will be written for that
 * takes longer. */
#define TO_READ 0
#define SECOND_CACHE 2
#define IS_DATA 1

/* The vector behind the one at hand of what the step loads or stores. In the first cache rows that
 * are a power of two apart would drive each other out. */
static void fetch_next(const struct rows *r, const struct gir_code *code)
{
    struct emitter *e = r->e;
    const unsigned size = emit_size(code->type);
    LLVMType type = e->llvm->LLVMPointerTypeInContext(e->context, 0);
    for (unsigned line = 0; line < e->lanes * size; line += LINE) {
        LLVMValue index =
            emit_binary(e, LLVM_ADD, e->index, function_number(r->f, e->lanes + line / size));
        LLVMValue at = e->llvm->LLVMBuildGEP2(e->builder, emit_element(e, code->type),
                                              e->args[gir_arg_of(code)], &index, 1, "");
        LLVMValue args[] = {at, emit_int(e, 32, TO_READ), emit_int(e, 32, SECOND_CACHE),
                            emit_int(e, 32, IS_DATA)};
        emit_intrinsic(e, "llvm.prefetch", &type, 1, args, 4);
    }
}

static bool stores_elements(const struct rows *r)
{
    bool any = false;
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++)
        any |= r->needed[i] && rows_code(r, i)->op == GIR_STORE;
    return any;
}

/* A vector has a few bytes of each row, so that machines do not see what comes next. One walk alone
 * that only reads is so short that they need not. */
static void fetch_row(const struct rows *r)
{
    const bool any = !r->e->mask && (r->n_passes > 1 || stores_elements(r));
    for (uint32_t i = 0; any && i < r->e->kernel->n_codes; i++) {
        const struct gir_code *code = rows_code(r, i);
        const struct gir_arg *arg = &gir_args(r->e->kernel)[gir_arg_of(code)];
        if (r->needed[i] && !rows_has(r, i) && (code->op == GIR_LOAD || code->op == GIR_STORE) &&
            arg->moves == GIR_SIDE_BY_SIDE && arg->fields == 1)
            fetch_next(r, code);
    }
}

static void emit_row(struct rows *r, LLVMValue row)
{
    columns_go_to(r, row);
    fetch_row(r);
    rows_emit_steps(r, emit_binary(r->e, LLVM_MUL, row, function_number(r->f, r->f->lanes)));
    reduce_combine(r);
}

static void emit_reducing(struct rows *r)
{
    struct pass pass = {.r = r,
                        .stride = 1,
                        .whole = r->f->params[ROWS],
                        .length = r->f->params[ROWS],
                        .emit_step = emit_row};
    reduce_all(&pass);
    for (uint32_t i = 0; i < r->n; i++)
        r->e->values[r->reductions[i].step] = value_of(r, &r->reductions[i]);
}

/* Nothing is reduced. */
static void emit_plain(struct rows *r)
{
    const struct row_loop loop = row_loop_begin(r, function_number(r->f, 0), r->f->params[ROWS], 1);
    emit_row(r, loop.index);
    row_loop_end(r, &loop);
}

/* A vector of columns, from column e->index on. */
static void emit_vector(struct rows *r)
{
    struct emitter *e = r->e;
    for (r->pass = 0; r->pass < r->n_passes; r->pass++) {
        rows_emit_once(r);
        rows_find_needed(r);
        if (r->n)
            emit_reducing(r);
        else
            emit_plain(r);
        columns_forget_records(e);
    }
    rows_emit_once(r);
    rows_emit_stores(r);
}

/* From where the function is to block `end`. */
static void emit_reductions(struct rows *r, LLVMBlock end)
{
    const struct function *f = r->f;
    struct emitter *e = f->e;
    LLVMBlock body = function_block(f, "columns"), rest = function_block(f, "rest"),
              tail = function_block(f, "tail");
    LLVMBlock from = function_here(f);
    function_branch(f, function_compare(f, LLVM_SGT, f->whole, function_number(f, 0)), body, rest);
    function_begin(f, body);
    LLVMValue index = function_phi(f, function_integer(f, 64), function_number(f, 0), from);
    e->index = index;
    e->mask = NULL;
    emit_vector(r);
    function_loop(f, index, f->lanes, f->whole, body, rest);
    function_begin(f, rest);
    function_branch(f, function_compare(f, LLVM_SLT, f->whole, f->params[LENGTH]), tail, end);
    function_begin(f, tail);
    e->index = f->whole;
    e->mask = function_mask(f);
    emit_vector(r);
    e->llvm->LLVMBuildBr(e->builder, end);
}

void rows_emit_columns(struct rows *r, LLVMBlock end)
{
    struct columns columns = {.r = r};
    r->columns = &columns;
    r->kept = r->long_kept;
    columns_find_places(&columns);
    if (gir_iterates(r->e->kernel))
        iterations_emit(r, end);
    else
        emit_reductions(r, end);
    r->columns = NULL;
}

void rows_emit_column_memory(struct rows *r)
{
    const struct gir_kernel *kernel = r->e->kernel;
    uint32_t n = 0;
    if (gir_iterates(kernel))
        iterations_emit_memory(r);
    else
        rows_find_kept(r);
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        if (rows_code(r, i)->op != GIR_REDUCE)
            continue;
        r->levels[n] = rows_make_memory(r, rows_code(r, i)->type, LONG_LEVELS);
        if (rows_find_nans(r, i))
            r->nans[n] = rows_make_memory(r, TSSA_UINT8, 1);
        n++;
    }
}
