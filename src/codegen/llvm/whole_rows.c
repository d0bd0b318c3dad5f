/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that are walked once per pass (gir_find_passes):
 *
 *     for each pass:
 *         steps that are once for the row and wait for what is before the pass
 *         where it reduces:
 *             for every 64 vectors:
 *                 for each of them, as long as there are so many elements: steps, and they are combined, lane by lane
 *                 where these were 64: what they came to is combined in memory by 64, 64 times 64, ...
 *             a vector with a mask of what elements are left
 *             the levels in memory, from the lowest on; then the lanes, by halves
 *         else for each vector the steps, then one with a mask
 *     what is once for the row is stored
 *
 * which is the order of ir/reduction.def: vectors have as many lanes as a step there. What is left of a level that
 * has not been begun is its identity, which changes nothing.
 */
#include <stdlib.h>

#include "codegen/llvm/function.h"
#include "ir/reduction.h"

#define LANES REDUCTION_LANES
#define GROUP (REDUCTION_RADIX * LANES) /* elements of a group of vectors */
#define GROUP_BITS 11
#define RADIX_BITS 6
#define LEVELS 7 /* above the first: enough for 2^53 elements */
_Static_assert(GROUP == 1 << GROUP_BITS && REDUCTION_RADIX == 1 << RADIX_BITS, "powers of two");

struct reduction {
    uint32_t step;
    LLVMValue identity, levels;
    LLVMValue value; /* of the lanes, by now */
};

struct rows {
    struct function *f;
    struct emitter *e;
    uint32_t n_passes, pass;
    uint32_t n; /* reductions of the pass */
    struct reduction reductions[GIR_MAX_REDUCTIONS];
    struct gir_when when[GIR_MAX_CODES];
    bool needed[GIR_MAX_CODES]; /* in the pass */
};

static const struct gir_code *code_of(const struct rows *r, uint32_t step)
{
    return &gir_codes(r->e->kernel)[step];
}

static LLVMValue combine(const struct rows *r, const struct reduction *one, LLVMValue a,
                         LLVMValue b)
{
    const struct gir_code *code = code_of(r, one->step);
    const LLVMValue operands[3] = {a, b, NULL};
    return emit_scalar(r->e, code, code->type, operands);
}

void function_make_levels(struct function *f)
{
    const struct emitter *e = f->e;
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(e->kernel)[i];
        if (code->op != GIR_REDUCE)
            continue;
        LLVMType vector = e->llvm->LLVMVectorType(emit_element(e, code->type), LANES);
        LLVMType levels = e->llvm->LLVMArrayType2(vector, LEVELS);
        f->levels[n++] = e->llvm->LLVMBuildAlloca(e->builder, levels, "");
    }
}

/* ---- Steps ---------------------------------------------------------------------------------------- */

/* Steps that are once for the row. */
static void emit_once(const struct rows *r)
{
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++) {
        const struct gir_code *code = code_of(r, i);
        if (!r->when[i].varies && r->when[i].pass == r->pass && code->op != GIR_REDUCE &&
            code->op != GIR_STORE)
            emit_step(r->e, i);
    }
}

static void emit_stores(const struct rows *r)
{
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++)
        if (!r->when[i].varies && code_of(r, i)->op == GIR_STORE)
            emit_step(r->e, i);
}

/* The pass's reductions, and the steps that are needed for what it makes, once for each element. */
static void find_needed(struct rows *r)
{
    const struct gir_kernel *kernel = r->e->kernel;
    uint32_t all = 0;
    r->n = 0;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = code_of(r, i);
        const bool here = r->when[i].pass == r->pass;
        r->needed[i] = here && r->when[i].varies && code->op == GIR_STORE;
        if (code->op != GIR_REDUCE)
            continue;
        if (here)
            r->reductions[r->n++] =
                (struct reduction){.step = i,
                                   .identity = emit_constant(r->e, code->type, code->bits),
                                   .levels = r->f->levels[all]};
        all++;
    }
    for (uint32_t i = 0; i < r->n; i++)
        r->needed[code_of(r, r->reductions[i].step)->operands[0]] = true;
    for (uint32_t i = kernel->n_codes; i-- > 0;)
        for (uint32_t k = 0; r->needed[i] && k < gir_n_operands(code_of(r, i)); k++)
            r->needed[code_of(r, i)->operands[k]] |= r->when[i].varies;
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        r->needed[i] &= r->when[i].varies;
}

/* The steps of a vector, and its elements combined with what there is. */
static void emit_vector(struct rows *r)
{
    struct emitter *e = r->e;
    for (uint32_t i = 0; i < e->kernel->n_codes; i++)
        if (r->needed[i])
            emit_step(e, i);
    for (uint32_t i = 0; i < r->n; i++) {
        struct reduction *one = &r->reductions[i];
        LLVMValue more = combine(r, one, one->value, e->values[code_of(r, one->step)->operands[0]]);
        one->value = e->mask ? emit_select(e, e->mask, more, one->value) : more;
    }
}

/* ---- Levels --------------------------------------------------------------------------------------- */

static LLVMType vector_of(const struct rows *r, const struct reduction *one)
{
    return emit_type(r->e, code_of(r, one->step)->type);
}

static LLVMValue level_at(const struct rows *r, const struct reduction *one, LLVMValue level)
{
    return r->e->llvm->LLVMBuildGEP2(r->e->builder, vector_of(r, one), one->levels, &level, 1, "");
}

static LLVMValue load_level(const struct rows *r, const struct reduction *one, LLVMValue level)
{
    return r->e->llvm->LLVMBuildLoad2(r->e->builder, vector_of(r, one), level_at(r, one, level),
                                      "");
}

static void store_level(const struct rows *r, const struct reduction *one, LLVMValue level,
                        LLVMValue value)
{
    r->e->llvm->LLVMBuildStore(r->e->builder, value, level_at(r, one, level));
}

/* Values of the lanes that come from block `from`; `values` NULL: as they are by now. */
static void begin_values(struct rows *r, LLVMBlock from, bool identity)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct reduction *one = &r->reductions[i];
        one->value =
            function_phi(r->f, vector_of(r, one), identity ? one->identity : one->value, from);
    }
}

/* Every level is begun. */
static void begin_levels(const struct rows *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        for (uint64_t level = 0; level < LEVELS; level++)
            store_level(r, &r->reductions[i], function_number(r->f, level),
                        r->reductions[i].identity);
}

/* A group is complete, the `count`th one: goes up, to the first level that is not complete. */
static void emit_carry(struct rows *r, LLVMValue count, LLVMBlock out)
{
    const struct function *f = r->f;
    struct emitter *e = r->e;
    LLVMType word = function_integer(f, 64);
    LLVMBlock from = function_here(f), carry = function_block(f, "carry");
    LLVMValue sums[GIR_MAX_REDUCTIONS];
    e->llvm->LLVMBuildBr(e->builder, carry);
    function_begin(f, carry);
    LLVMValue level = function_phi(f, word, function_number(f, 0), from),
              groups = function_phi(f, word, count, from);
    begin_values(r, from, false);
    LLVMValue radix = function_number(f, REDUCTION_RADIX - 1);
    LLVMValue rest = emit_binary(e, LLVM_AND, groups, radix);
    LLVMValue full = function_compare(f, LLVM_IEQ, rest, function_number(f, 0));
    for (uint32_t i = 0; i < r->n; i++) {
        const struct reduction *one = &r->reductions[i];
        sums[i] = combine(r, one, load_level(r, one, level), one->value);
        store_level(r, one, level, emit_select(e, full, one->identity, sums[i]));
    }
    for (uint32_t i = 0; i < r->n; i++)
        function_again(f, r->reductions[i].value, sums[i]);
    function_again(f, level, emit_binary(e, LLVM_ADD, level, function_number(f, 1)));
    function_again(f, groups, emit_binary(e, LLVM_LSHR, groups, function_number(f, RADIX_BITS)));
    function_branch(f, full, carry, out);
}

/* What the levels come to with the lanes. */
static void join_levels(struct rows *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct reduction *one = &r->reductions[i];
        for (uint64_t level = 0; level < LEVELS; level++)
            one->value =
                combine(r, one, load_level(r, one, function_number(r->f, level)), one->value);
    }
}

/* ---- Lanes ---------------------------------------------------------------------------------------- */

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
    const tssa_dtype dtype = code_of(r, one->step)->type;
    LLVMValue value = one->value;
    for (unsigned half = LANES / 2; half > 0; half /= 2) {
        LLVMType type = emit_type(e, dtype);
        LLVMValue low = some_lanes(e, value, 0, half, type),
                  high = some_lanes(e, value, half, half, type);
        e->lanes = half;
        value = combine(r, one, low, high);
    }
    e->lanes = LANES;
    return emit_splat(e, value, dtype);
}

/* ---- Passes --------------------------------------------------------------------------------------- */

/* The vectors that are all there, by groups; behind block `out` the values are those of block `none`, where there were
 * no such vectors, of a group that is not complete, or, behind one that is, identities. */
static void emit_groups(struct rows *r, LLVMBlock out)
{
    const struct function *f = r->f;
    struct emitter *e = r->e;
    LLVMType word = function_integer(f, 64);
    LLVMBlock group = function_block(f, "group"), body = function_block(f, "body"),
              full = function_block(f, "full"), none = function_here(f),
              grouped = function_block(f, "grouped"), carried = function_block(f, "carried");
    function_branch(f, function_compare(f, LLVM_SGT, f->whole, function_number(f, 0)), group, out);
    function_begin(f, group);
    LLVMValue begin = function_phi(f, word, function_number(f, 0), none);
    LLVMValue end = emit_binary(e, LLVM_ADD, begin, function_number(f, GROUP));
    LLVMValue is_full = function_compare(f, LLVM_SLE, end, f->whole);
    LLVMValue limit = emit_select(e, is_full, end, f->whole);
    e->llvm->LLVMBuildBr(e->builder, body);
    function_begin(f, body);
    LLVMValue phis[GIR_MAX_REDUCTIONS];
    e->index = function_phi(f, word, begin, group);
    begin_values(r, group, true);
    for (uint32_t i = 0; i < r->n; i++)
        phis[i] = r->reductions[i].value;
    e->mask = NULL;
    emit_vector(r);
    for (uint32_t i = 0; i < r->n; i++)
        function_again(f, phis[i], r->reductions[i].value);
    function_loop(f, e->index, LANES, limit, body, grouped);
    function_begin(f, grouped);
    LLVMValue partial[GIR_MAX_REDUCTIONS];
    for (uint32_t i = 0; i < r->n; i++)
        partial[i] = r->reductions[i].value;
    function_branch(f, is_full, full, out);
    function_begin(f, full);
    emit_carry(r, emit_binary(e, LLVM_LSHR, end, function_number(f, GROUP_BITS)), carried);
    function_begin(f, carried);
    function_again(f, begin, end);
    function_branch(f, function_compare(f, LLVM_SLT, end, f->whole), group, out);
    function_begin(f, out);
    begin_values(r, none, true);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct reduction *one = &r->reductions[i];
        LLVMValue one_partial = partial[i], identity = one->identity;
        e->llvm->LLVMAddIncoming(one->value, &one_partial, &grouped, 1);
        e->llvm->LLVMAddIncoming(one->value, &identity, &carried, 1);
    }
}

/* What is left behind the vectors. */
static void emit_tail(struct rows *r)
{
    const struct function *f = r->f;
    LLVMBlock from = function_here(f), tail = function_block(f, "tail"),
              done = function_block(f, "done");
    LLVMValue before[GIR_MAX_REDUCTIONS];
    for (uint32_t i = 0; i < r->n; i++)
        before[i] = r->reductions[i].value;
    function_branch(f, function_compare(f, LLVM_SLT, f->whole, f->params[LENGTH]), tail, done);
    function_begin(f, tail);
    r->e->index = f->whole;
    r->e->mask = function_mask(f);
    emit_vector(r);
    LLVMBlock here = function_here(f);
    r->e->llvm->LLVMBuildBr(r->e->builder, done);
    function_begin(f, done);
    for (uint32_t i = 0; i < r->n; i++) {
        struct reduction *one = &r->reductions[i];
        LLVMValue phi = function_phi(f, vector_of(r, one), before[i], from);
        r->e->llvm->LLVMAddIncoming(phi, &one->value, &here, 1);
        one->value = phi;
    }
}

static void emit_reducing(struct rows *r)
{
    const struct function *f = r->f;
    struct emitter *e = r->e;
    LLVMBlock many = function_block(f, "many"), start = function_block(f, "start"),
              rest = function_block(f, "rest"), join = function_block(f, "join"),
              joined = function_block(f, "joined");
    LLVMValue has_many =
        function_compare(f, LLVM_SGE, f->params[LENGTH], function_number(f, GROUP));
    function_branch(f, has_many, many, start);
    function_begin(f, many);
    begin_levels(r);
    e->llvm->LLVMBuildBr(e->builder, start);
    function_begin(f, start);
    emit_groups(r, rest);
    emit_tail(r);
    LLVMBlock from = function_here(f);
    LLVMValue before[GIR_MAX_REDUCTIONS];
    for (uint32_t i = 0; i < r->n; i++)
        before[i] = r->reductions[i].value;
    function_branch(f, has_many, join, joined);
    function_begin(f, join);
    join_levels(r);
    e->llvm->LLVMBuildBr(e->builder, joined);
    function_begin(f, joined);
    for (uint32_t i = 0; i < r->n; i++) {
        struct reduction *one = &r->reductions[i];
        LLVMValue phi = function_phi(f, vector_of(r, one), before[i], from);
        e->llvm->LLVMAddIncoming(phi, &one->value, &join, 1);
        one->value = phi;
    }
    for (uint32_t i = 0; i < r->n; i++)
        e->values[r->reductions[i].step] = halve_lanes(r, &r->reductions[i]);
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
    function_loop(f, e->index, LANES, f->whole, body, rest);
    function_begin(f, rest);
    emit_tail(r);
}

static void emit_passes(struct rows *r)
{
    for (r->pass = 0; r->pass < r->n_passes; r->pass++) {
        emit_once(r);
        find_needed(r);
        if (r->n)
            emit_reducing(r);
        else
            emit_plain(r);
    }
    emit_once(r);
    emit_stores(r);
    r->e->llvm->LLVMBuildBr(r->e->builder, r->f->next);
}

void function_whole_row(struct function *f)
{
    struct rows *rows = calloc(1, sizeof *rows);
    if (!rows) {
        f->e->failed = true;
        return;
    }
    rows->f = f;
    rows->e = f->e;
    rows->n_passes = gir_find_passes(f->e->kernel, rows->when);
    emit_passes(rows);
    free(rows);
}
