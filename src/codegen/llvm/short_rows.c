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
 * Piece by piece (gir_piece_of) the passes are made for some of the lanes at a time.
 *
 * Lanes without a row compute with whatever is there: nothing traps, and nothing of it is stored.
 */
#include "codegen/llvm/rows.h"

LLVMValue rows_emit_is_short(const struct rows *r)
{
    const struct function *f = r->f;
    if (!r->across.room)
        return NULL;
    LLVMValue is_short =
        function_compare(f, LLVM_SLE, f->params[LENGTH], function_number(f, r->across.longest));
    LLVMValue fewest = function_number(f, r->across.fewest);
    LLVMValue many = function_compare(f, LLVM_SGE, f->params[ROWS], fewest);
    return emit_binary(r->e, LLVM_AND, is_short, many);
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

/* The steps of element `index`, and what is combined of it: with its identity, or with the element
 * LANES before. */
static void emit_element_steps(const struct rows *r, LLVMValue index)
{
    struct emitter *e = r->e;
    const bool again = r->across.room > LANES;
    LLVMValue slot =
        again ? emit_binary(e, LLVM_AND, index, function_number(r->f, LANES - 1)) : index;
    rows_emit_steps(r, e->index);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct reduction *one = &r->reductions[i];
        LLVMValue value = e->values[rows_code(r, one->step)->operands[0]];
        LLVMValue before = again ? load_element(r, one, slot) : one->identity;
        store_element(r, one, slot, rows_combine(r, one, before, value));
    }
}

/* Nothing is combined yet: of one element at least, which is what there is of none. */
static void begin_elements(const struct rows *r)
{
    const uint64_t n = r->across.room > LANES ? LANES : 1;
    for (uint32_t i = 0; i < r->n; i++)
        for (uint64_t k = 0; k < n; k++)
            store_element(r, &r->reductions[i], function_number(r->f, k),
                          r->reductions[i].identity);
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

/* All that is computed, of a vector of rows. */
static void emit_passes(struct rows *r)
{
    for (r->pass = 0; r->pass < r->n_passes; r->pass++)
        emit_pass(r);
    rows_emit_once(r);
    rows_emit_stores(r);
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
        emit_passes(r);
        row_loop_end(r, &loop);
    } else {
        emit_passes(r);
    }
    rows_emit_copies(r, true, first, count);
    function_loop(f, first, LANES, f->params[ROWS], rows, f->end);
}
