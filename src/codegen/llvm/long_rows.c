/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that are walked once per pass (gir_find_passes):
 *
 *     for each pass:
 *         steps that are once for the row and wait for what is before the pass
 *         where it reduces:
 *             for every 64 vectors: for each of them, as long as there are so many elements: steps,
 *                 and they are combined, lane by lane where these were 64: what they came to is
 *                 combined in memory by 64, 64 times 64, ...
 *             a vector with a mask of what elements are left
 *             the levels in memory, from the lowest on; then the lanes, by halves
 *         else for each vector the steps, then one with a mask
 *     what is once for the row is stored
 *
 * Piece by piece (gir_lanes_of) a vector is a part of a step: lanes are in memory meanwhile, and
 * only the last piece of a row has a mask.
 *
 * It is the order of ir/reduction.def: vectors have as many lanes as a step there. What is left
 * of a level that has not been begun is its identity, which changes nothing. Of the highest and the
 * lowest NaNs are looked for apart: any NaN equals any other.
 */
#include <math.h>

#include "codegen/llvm/reduce.h"

#define LANE_BITS 5
_Static_assert(LANES == 1 << LANE_BITS, "a power of two");

/* What the steps of a piece have computed, combined with its lanes in memory. */
static void combine_piece(struct rows *r)
{
    const struct emitter *e = r->e;
    LLVMValue lane = emit_binary(e, LLVM_AND, e->index, function_number(r->f, LANES - 1));
    for (uint32_t i = 0; i < r->n; i++) {
        const struct reduction *one = &r->reductions[i];
        const struct gir_code *code = rows_code(r, one->step);
        LLVMType type = emit_type(e, code->type);
        LLVMValue at = row_element_at(r, emit_element(e, code->type), r->pieces[one->number], lane);
        LLVMValue before = e->llvm->LLVMBuildLoad2(e->builder, type, at, "");
        LLVMValue more = rows_combine(r, one, before, e->values[code->operands[0]]);
        e->llvm->LLVMBuildStore(e->builder, e->mask ? emit_select(e, e->mask, more, before) : more,
                                at);
    }
}

/* The steps of a vector, and its elements combined with what there is. */
static void emit_vector(struct rows *r)
{
    r->e->lanes = r->f->lanes;
    rows_emit_steps(r, r->e->index);
    if (rows_have_pieces(r))
        combine_piece(r);
    else
        reduce_combine(r);
    r->e->lanes = LANES;
}

static void emit_whole(struct rows *r, LLVMValue index)
{
    r->e->index = index;
    r->e->mask = NULL;
    emit_vector(r);
}

/* ---- Lanes ----------------------------------------------------------------------------------- */

/* n lanes, from lane `first` on. */
static LLVMValue some_lanes(const struct emitter *e, LLVMValue vector, unsigned first, unsigned n,
                            LLVMType type)
{
    LLVMValue lanes[LANES];
    if (n == 1)
        return e->llvm->LLVMBuildExtractElement(e->builder, vector, emit_int(e, 32, first), "");
    for (unsigned i = 0; i < n; i++)
        lanes[i] = emit_int(e, 32, first + i);
    return e->llvm->LLVMBuildShuffleVector(e->builder, vector, e->llvm->LLVMGetPoison(type),
                                           e->llvm->LLVMConstVector(lanes, n), "");
}

/* One for the row, in all lanes. */
static LLVMValue halve_lanes(struct rows *r, const struct reduction *one)
{
    struct emitter *e = r->e;
    const tssa_dtype dtype = rows_code(r, one->step)->type;
    LLVMValue value = one->value;
    e->lanes = LANES;
    for (unsigned half = LANES / 2; half > 0; half /= 2) {
        LLVMType type = emit_type(e, dtype);
        LLVMValue low = some_lanes(e, value, 0, half, type),
                  high = some_lanes(e, value, half, half, type);
        e->lanes = half;
        value = reduce_two(r, one, low, high);
    }
    e->lanes = r->f->lanes;
    value = emit_splat(e, value, dtype);
    if (!rows_find_nans(r, one->step))
        return value;
    LLVMValue nans = emit_cast(e, LLVM_BITCAST, one->nans, function_integer(r->f, LANES));
    LLVMValue any = function_compare(r->f, LLVM_INE, nans, emit_int(e, LANES, 0));
    return emit_select(e, any, emit_number(e, dtype, (double)NAN), value);
}

/* ---- Passes ---------------------------------------------------------------------------------- */

/* What is left behind the vectors. */
static void emit_tail(struct pass *p)
{
    const struct function *f = p->r->f;
    struct emitter *e = p->r->e;
    LLVMBlock from = function_here(f), tail = function_block(f, "tail"),
              done = function_block(f, "done");
    LLVMValue before[2 * GIR_MAX_REDUCTIONS], behind[2 * GIR_MAX_REDUCTIONS];
    pass_get_slots(p, before);
    function_branch(f, function_compare(f, LLVM_SLT, f->whole, f->params[LENGTH]), tail, done);
    function_begin(f, tail);
    if (rows_have_pieces(p->r))
        reduce_put_pieces(p->r);
    e->lanes = f->lanes;
    e->index = f->whole;
    e->mask = function_mask(f);
    emit_vector(p->r);
    if (rows_have_pieces(p->r))
        reduce_get_pieces(p->r);
    pass_get_slots(p, behind);
    LLVMBlock here = function_here(f);
    e->llvm->LLVMBuildBr(e->builder, done);
    function_begin(f, done);
    for (uint32_t i = 0; i < p->n; i++)
        *p->slots[i].value = before[i];
    pass_begin_slots(p, from, false);
    pass_come_from(p, here, behind);
}

static void emit_reducing(struct rows *r)
{
    const struct function *f = r->f;
    struct pass pass = {.r = r,
                        .step_bits = LANE_BITS,
                        .stride = f->lanes,
                        .whole = f->whole,
                        .length = f->params[LENGTH],
                        .emit_step = emit_whole,
                        .emit_tail = emit_tail};
    reduce_all(&pass);
    for (uint32_t i = 0; i < r->n; i++)
        r->e->values[r->reductions[i].step] = halve_lanes(r, &r->reductions[i]);
}

/* Nothing is reduced. */
static void emit_plain(struct rows *r)
{
    const struct function *f = r->f;
    struct emitter *e = r->e;
    LLVMBlock from = function_here(f), body = function_block(f, "body"),
              rest = function_block(f, "rest");
    function_branch(f, function_compare(f, LLVM_SGT, f->whole, function_number(f, 0)), body, rest);
    function_begin(f, body);
    e->index = function_phi(f, function_integer(f, 64), function_number(f, 0), from);
    e->mask = NULL;
    emit_vector(r);
    function_loop(f, e->index, f->lanes, f->whole, body, rest);
    function_begin(f, rest);
    emit_tail(&(struct pass){.r = r});
}

void rows_emit_long(struct rows *r)
{
    r->kept = r->long_kept;
    for (r->pass = 0; r->pass < r->n_passes; r->pass++) {
        rows_emit_once(r);
        r->e->lanes = LANES; /* of reductions */
        rows_find_needed(r);
        if (r->n)
            emit_reducing(r);
        else
            emit_plain(r);
        r->e->lanes = r->f->lanes;
    }
    rows_emit_once(r);
    rows_emit_stores(r);
    r->e->llvm->LLVMBuildBr(r->e->builder, r->f->next);
}
