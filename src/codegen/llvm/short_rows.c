/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a few elements, 32 of them at a time, each a lane:
 *
 *     for each 32 rows, or what is left of them: operands are copied to the stack, so that an
 *         element's values in all of these rows are a vector (row_copies.c) for each pass:
 *             steps that are once for a row, on vectors
 *             for each element: steps; what a reduction combines is put by, combined with the
 *             identity
 *             elements are combined by halves, which is the order of ir/reduction.def for so few;
 *             element k of more than
 *             32 is combined with element k - 32 before, as lanes are
 *         results are copied from the stack
 *
 * Piece by piece (gir_lanes_of) the passes are made for some of the lanes at a time.
 *
 * Lanes without a row compute with whatever is there: nothing traps, and nothing of it is stored.
 */
#include "codegen/llvm/rows.h"

/* Are so many rows enough? */
static LLVMValue are_many(const struct rows *r, LLVMValue rows)
{
    const struct function *f = r->f;
    LLVMValue fewest = function_number(f, r->across.fewest),
              times = emit_binary(r->e, LLVM_MUL, rows, function_number(f, r->across.times));
    return emit_binary(r->e, LLVM_AND, function_compare(f, LLVM_SGE, rows, fewest),
                       function_compare(f, LLVM_SGE, times, f->params[LENGTH]));
}

LLVMValue rows_emit_is_short(const struct rows *r)
{
    const struct function *f = r->f;
    if (!r->across.room)
        return NULL;
    LLVMValue is_short =
        function_compare(f, LLVM_SLE, f->params[LENGTH], function_number(f, r->across.longest));
    LLVMValue fits =
        function_compare(f, LLVM_INE, f->params[LENGTH], function_number(f, r->across.but));
    is_short = emit_binary(r->e, LLVM_AND, is_short, fits);
    return emit_binary(r->e, LLVM_AND, is_short, are_many(r, f->params[ROWS]));
}

/* ---- Passes ---------------------------------------------------------------------------------- */

/* Vector number `index` of some on the stack. */
static LLVMValue vector_at(const struct rows *r, tssa_dtype dtype, LLVMValue memory,
                           LLVMValue index)
{
    LLVMType vector = r->e->llvm->LLVMVectorType(emit_element(r->e, dtype), LANES);
    return row_element_at(r, vector, memory, index);
}

static LLVMValue element_of(const struct rows *r, const struct reduction *one, LLVMValue index)
{
    return vector_at(r, rows_code(r, one->step)->type, r->elements[one->number], index);
}

static LLVMValue load_element(const struct rows *r, const struct reduction *one, LLVMValue index)
{
    LLVMType type = emit_type(r->e, rows_code(r, one->step)->type);
    return r->e->llvm->LLVMBuildLoad2(r->e->builder, type, element_of(r, one, index), "");
}

static void store_element(const struct rows *r, const struct reduction *one, LLVMValue index,
                          LLVMValue value)
{
    r->e->llvm->LLVMBuildStore(r->e->builder, value, element_of(r, one, index));
}

/* What is combined of element `index`, with its identity, or with what is there, and put there. */
static void combine_at(const struct rows *r, LLVMValue index, bool again)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const struct reduction *one = &r->reductions[i];
        LLVMValue value = r->e->values[rows_code(r, one->step)->operands[0]];
        LLVMValue before = again ? load_element(r, one, index) : one->identity;
        store_element(r, one, index, rows_combine(r, one, before, value));
    }
}

/* The steps of element `index`, and what is combined of it: with its identity, or with the element
 * LANES before. */
static void emit_element_steps(const struct rows *r, LLVMValue index)
{
    const struct function *f = r->f;
    rows_emit_steps(r, r->e->index);
    if (!r->n || r->across.room <= LANES) {
        combine_at(r, index, false);
        return;
    }
    LLVMBlock first = function_block(f, "first"), again = function_block(f, "again"),
              combined = function_block(f, "combined");
    LLVMValue all = function_number(f, LANES);
    function_branch(f, function_compare(f, LLVM_SLT, index, all), first, again);
    function_begin(f, first);
    combine_at(r, index, false);
    f->e->llvm->LLVMBuildBr(f->e->builder, combined);
    function_begin(f, again);
    combine_at(r, emit_binary(f->e, LLVM_AND, index, function_number(f, LANES - 1)), true);
    f->e->llvm->LLVMBuildBr(f->e->builder, combined);
    function_begin(f, combined);
}

/* Of no element there is the identity. */
static void begin_elements(const struct rows *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        store_element(r, &r->reductions[i], function_number(r->f, 0), r->reductions[i].identity);
}

/* Elements k and k + half, for each k of which there are both, of `count`; how many are left. */
static LLVMValue combine_halves(const struct rows *r, LLVMValue count, uint64_t half)
{
    const struct function *f = r->f;
    LLVMValue distance = function_number(f, half);
    LLVMValue pairs = emit_binary(r->e, LLVM_SUB, count, distance);
    struct row_loop loop = row_loop_begin(r, function_number(f, 0), pairs, 1);
    LLVMValue other = emit_binary(r->e, LLVM_ADD, loop.index, distance);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct reduction *one = &r->reductions[i];
        store_element(
            r, one, loop.index,
            rows_combine(r, one, load_element(r, one, loop.index), load_element(r, one, other)));
    }
    row_loop_end(r, &loop);
    LLVMValue fewer = function_compare(f, LLVM_SLT, count, distance);
    return emit_select(r->e, fewer, count, distance);
}

static void emit_pass(struct rows *r)
{
    const struct function *f = r->f;
    struct emitter *e = r->e;
    LLVMValue zero = function_number(f, 0), count = f->params[LENGTH];
    rows_emit_once(r);
    rows_find_needed(r);
    begin_elements(r);
    struct row_loop loop = row_loop_begin(r, zero, count, 1);
    e->element = loop.index;
    e->index = emit_binary(e, LLVM_MUL, loop.index, function_number(f, LANES));
    emit_element_steps(r, loop.index);
    row_loop_end(r, &loop);
    if (r->n && r->across.room > LANES) {
        LLVMValue most = function_number(f, LANES);
        count = emit_select(e, function_compare(f, LLVM_SLT, count, most), count, most);
    }
    for (uint64_t half = LANES / 2; r->n && half > 0; half /= 2)
        count = combine_halves(r, count, half);
    for (uint32_t i = 0; i < r->n; i++)
        e->values[r->reductions[i].step] = load_element(r, &r->reductions[i], zero);
}

/* Lanes `lane` and those behind it are computed with: where they are in all memory. */
static void go_to_lanes(struct rows *r, LLVMValue lane)
{
    struct emitter *e = r->e;
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->kernel->n_args; i++) {
        const struct gir_arg *arg = &gir_args(e->kernel)[i];
        e->args[i] = row_element_at(r, emit_element(e, rows_type_of(arg)), e->args[i], lane);
    }
    for (uint32_t i = 0; i < e->kernel->n_codes; i++) {
        LLVMType type = emit_element(e, rows_code(r, i)->type);
        if (r->short_kept[i])
            r->short_kept[i] = row_element_at(r, type, r->short_kept[i], lane);
        if (rows_code(r, i)->op != GIR_REDUCE)
            continue;
        r->elements[n] = row_element_at(r, type, r->elements[n], lane);
        n++;
    }
}

/* All that is computed, of the vector of rows from lane `lane` on. */
static void emit_passes(struct rows *r, LLVMValue lane)
{
    for (uint32_t i = 0; i < r->e->kernel->n_args; i++)
        if (r->there[i])
            r->e->row_masks[i] = rows_mask_below(r, emit_binary(r->e, LLVM_SUB, r->there[i], lane));
    for (r->pass = 0; r->pass < r->n_passes; r->pass++)
        emit_pass(r);
    rows_emit_once(r);
    rows_emit_stores(r);
}

/* The next rows, as long as there are enough; what is left goes on in block `row`. */
static void emit_next(const struct rows *r, LLVMValue first, LLVMBlock rows)
{
    const struct function *f = r->f;
    LLVMBlock done = function_block(f, "lanes_done");
    LLVMValue next = emit_binary(f->e, LLVM_ADD, first, function_number(f, LANES));
    LLVMValue left = emit_binary(f->e, LLVM_SUB, f->params[ROWS], next);
    function_again(f, first, next);
    function_branch(f, are_many(r, left), rows, done);
    function_begin(f, done);
    function_again(f, f->r, next);
    function_branch(f, function_compare(f, LLVM_SGT, left, function_number(f, 0)), f->row, f->end);
}

void rows_emit_short(struct rows *r, LLVMBlock from)
{
    const struct function *f = r->f;
    struct emitter *e = f->e;
    LLVMBlock rows = function_block(f, "rows");
    e->lanes = f->lanes;
    e->llvm->LLVMBuildBr(e->builder, rows);
    function_begin(f, rows);
    LLVMValue first = function_phi(f, function_integer(f, 64), function_number(f, 0), from);
    LLVMValue count = emit_binary(e, LLVM_SUB, f->params[ROWS], first);
    LLVMValue all = function_number(f, LANES);
    count = emit_select(e, function_compare(f, LLVM_SLT, count, all), count, all);
    for (uint32_t i = 0; i < e->kernel->n_args; i++)
        e->args[i] = r->args[i];
    rows_emit_copies(r, false, first, count);
    e->mask = NULL;
    e->is_across = true;
    r->kept = r->short_kept;
    if (rows_have_pieces(r)) {
        struct row_loop loop = row_loop_begin(r, function_number(f, 0), count, f->lanes);
        go_to_lanes(r, loop.index);
        emit_passes(r, loop.index);
        row_loop_end(r, &loop);
    } else {
        emit_passes(r, function_number(f, 0));
    }
    rows_emit_copies(r, true, first, count);
    emit_next(r, first, rows);
}
