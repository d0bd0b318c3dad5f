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
 * has not been begun is its identity, which changes nothing. Of the highest and the lowest NaNs are looked for apart: any
 * NaN equals any other.
 */
#include <math.h>

#include "codegen/llvm/rows.h"

#define GROUP (REDUCTION_RADIX * LANES) /* elements of a group of vectors */
#define GROUP_BITS 11
#define RADIX_BITS 6
#define LEVELS LONG_LEVELS
_Static_assert(GROUP == 1 << GROUP_BITS && REDUCTION_RADIX == 1 << RADIX_BITS, "powers of two");

/* What goes round in the loops of a pass: the lanes of its reductions, and where they were NaN. */
struct slot {
    LLVMValue *value, identity;
    LLVMType type;
};

struct pass {
    struct rows *r;
    uint32_t n;
    struct slot slots[2 * GIR_MAX_REDUCTIONS];
};

static LLVMType vector_of(const struct rows *r, const struct reduction *one)
{
    return emit_type(r->e, rows_code(r, one->step)->type);
}

static void add_slot(struct pass *p, LLVMValue *value, LLVMType type, LLVMValue identity)
{
    p->slots[p->n++] = (struct slot){value, identity, type};
}

static void find_slots(struct pass *p)
{
    struct rows *r = p->r;
    for (uint32_t i = 0; i < r->n; i++) {
        struct reduction *one = &r->reductions[i];
        add_slot(p, &one->value, vector_of(r, one), one->identity);
        if (!rows_find_nans(r, one->step))
            continue;
        LLVMType truths = emit_type(r->e, TSSA_BOOL);
        add_slot(p, &one->nans, truths, r->e->llvm->LLVMConstNull(truths));
    }
}

/* From here on they come from block `from`, as they are by now or as at first. */
static void begin_slots(const struct pass *p, LLVMBlock from, bool at_first)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const struct slot *slot = &p->slots[i];
        *slot->value =
            function_phi(p->r->f, slot->type, at_first ? slot->identity : *slot->value, from);
    }
}

static void get_slots(const struct pass *p, LLVMValue *values)
{
    for (uint32_t i = 0; i < p->n; i++)
        values[i] = *p->slots[i].value;
}

/* The values too, where control comes from the block; NULL: as at first. */
static void come_from(const struct pass *p, LLVMBlock from, const LLVMValue *values)
{
    for (uint32_t i = 0; i < p->n; i++) {
        LLVMValue value = values ? values[i] : p->slots[i].identity;
        p->r->e->llvm->LLVMAddIncoming(*p->slots[i].value, &value, &from, 1);
    }
}

/* ---- Vectors -------------------------------------------------------------------------------------- */

static LLVMValue combine(const struct rows *r, const struct reduction *one, LLVMValue a,
                         LLVMValue b)
{
    const struct emitter *e = r->e;
    if (!rows_find_nans(r, one->step))
        return rows_combine(r, one, a, b);
    const bool least = rows_code(r, one->step)->scalar == SCALAR_MIN;
    LLVMValue other = e->llvm->LLVMBuildFCmp(e->builder, least ? LLVM_OGT : LLVM_OLT, a, b, "");
    return emit_select(e, other, b, a);
}

static void find_nans(const struct rows *r, struct reduction *one, LLVMValue x)
{
    const struct emitter *e = r->e;
    LLVMValue found = e->llvm->LLVMBuildFCmp(e->builder, LLVM_UNO, x, x, "");
    if (e->mask)
        found = emit_binary(e, LLVM_AND, found, e->mask);
    one->nans = emit_binary(e, LLVM_OR, one->nans, found);
}

/* The steps of a vector, and its elements combined with what there is. */
static void emit_vector(struct rows *r)
{
    struct emitter *e = r->e;
    rows_emit_steps(r, e->index);
    for (uint32_t i = 0; i < r->n; i++) {
        struct reduction *one = &r->reductions[i];
        LLVMValue x = e->values[rows_code(r, one->step)->operands[0]];
        LLVMValue more = combine(r, one, one->value, x);
        if (rows_find_nans(r, one->step))
            find_nans(r, one, x);
        one->value = e->mask ? emit_select(e, e->mask, more, one->value) : more;
    }
}

/* ---- Levels --------------------------------------------------------------------------------------- */

static LLVMValue level_at(const struct rows *r, const struct reduction *one, LLVMValue level)
{
    return r->e->llvm->LLVMBuildGEP2(r->e->builder, vector_of(r, one), r->levels[one->number],
                                     &level, 1, "");
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

/* Where there were NaNs in the groups, too. */
static LLVMValue nans_of_groups(const struct rows *r, const struct reduction *one)
{
    const struct llvm_api *llvm = r->e->llvm;
    LLVMValue all =
        llvm->LLVMBuildLoad2(r->e->builder, emit_type(r->e, TSSA_BOOL), r->nans[one->number], "");
    return emit_binary(r->e, LLVM_OR, all, one->nans);
}

static void store_nans(const struct rows *r, const struct reduction *one, LLVMValue nans)
{
    r->e->llvm->LLVMBuildStore(r->e->builder, nans, r->nans[one->number]);
}

/* Every level is begun. */
static void begin_levels(const struct rows *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const struct reduction *one = &r->reductions[i];
        for (uint64_t level = 0; level < LEVELS; level++)
            store_level(r, one, function_number(r->f, level), one->identity);
        if (rows_find_nans(r, one->step))
            store_nans(r, one, r->e->llvm->LLVMConstNull(emit_type(r->e, TSSA_BOOL)));
    }
}

/* A group is complete, the `count`th one: goes up, to the first level that is not complete. */
static void emit_carry(const struct pass *p, LLVMValue count, LLVMBlock out)
{
    struct rows *r = p->r;
    const struct function *f = r->f;
    struct emitter *e = r->e;
    LLVMType word = function_integer(f, 64);
    LLVMBlock from = function_here(f), carry = function_block(f, "carry");
    LLVMValue sums[GIR_MAX_REDUCTIONS], phis[GIR_MAX_REDUCTIONS];
    for (uint32_t i = 0; i < r->n; i++)
        if (rows_find_nans(r, r->reductions[i].step))
            store_nans(r, &r->reductions[i], nans_of_groups(r, &r->reductions[i]));
    e->llvm->LLVMBuildBr(e->builder, carry);
    function_begin(f, carry);
    LLVMValue level = function_phi(f, word, function_number(f, 0), from),
              groups = function_phi(f, word, count, from);
    for (uint32_t i = 0; i < r->n; i++)
        phis[i] = function_phi(f, vector_of(r, &r->reductions[i]), r->reductions[i].value, from);
    LLVMValue radix = function_number(f, REDUCTION_RADIX - 1);
    LLVMValue rest = emit_binary(e, LLVM_AND, groups, radix);
    LLVMValue full = function_compare(f, LLVM_IEQ, rest, function_number(f, 0));
    for (uint32_t i = 0; i < r->n; i++) {
        const struct reduction *one = &r->reductions[i];
        sums[i] = combine(r, one, load_level(r, one, level), phis[i]);
        store_level(r, one, level, emit_select(e, full, one->identity, sums[i]));
    }
    for (uint32_t i = 0; i < r->n; i++)
        function_again(f, phis[i], sums[i]);
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
        if (rows_find_nans(r, one->step))
            one->nans = nans_of_groups(r, one);
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
    const tssa_dtype dtype = rows_code(r, one->step)->type;
    LLVMValue value = one->value;
    for (unsigned half = LANES / 2; half > 0; half /= 2) {
        LLVMType type = emit_type(e, dtype);
        LLVMValue low = some_lanes(e, value, 0, half, type),
                  high = some_lanes(e, value, half, half, type);
        e->lanes = half;
        value = combine(r, one, low, high);
    }
    e->lanes = LANES;
    value = emit_splat(e, value, dtype);
    if (!rows_find_nans(r, one->step))
        return value;
    LLVMValue nans = emit_cast(e, LLVM_BITCAST, one->nans, function_integer(r->f, LANES));
    LLVMValue any = function_compare(r->f, LLVM_INE, nans, emit_int(e, LANES, 0));
    return emit_select(e, any, emit_number(e, dtype, (double)NAN), value);
}

/* ---- Passes --------------------------------------------------------------------------------------- */

/* The vectors that are all there, by groups; behind block `out` the values are of a group that is not complete, or as
 * at first, where there is none. */
static void emit_groups(struct pass *p, LLVMBlock out)
{
    const struct function *f = p->r->f;
    struct emitter *e = p->r->e;
    LLVMType word = function_integer(f, 64);
    LLVMBlock group = function_block(f, "group"), body = function_block(f, "body"),
              full = function_block(f, "full"), none = function_here(f),
              grouped = function_block(f, "grouped"), carried = function_block(f, "carried");
    LLVMValue phis[2 * GIR_MAX_REDUCTIONS], values[2 * GIR_MAX_REDUCTIONS];
    function_branch(f, function_compare(f, LLVM_SGT, f->whole, function_number(f, 0)), group, out);
    function_begin(f, group);
    LLVMValue begin = function_phi(f, word, function_number(f, 0), none);
    LLVMValue end = emit_binary(e, LLVM_ADD, begin, function_number(f, GROUP));
    LLVMValue is_full = function_compare(f, LLVM_SLE, end, f->whole);
    LLVMValue limit = emit_select(e, is_full, end, f->whole);
    e->llvm->LLVMBuildBr(e->builder, body);
    function_begin(f, body);
    e->index = function_phi(f, word, begin, group);
    begin_slots(p, group, true);
    get_slots(p, phis);
    e->mask = NULL;
    emit_vector(p->r);
    get_slots(p, values);
    for (uint32_t i = 0; i < p->n; i++)
        function_again(f, phis[i], values[i]);
    function_loop(f, e->index, LANES, limit, body, grouped);
    function_begin(f, grouped);
    function_branch(f, is_full, full, out);
    function_begin(f, full);
    emit_carry(p, emit_binary(e, LLVM_LSHR, end, function_number(f, GROUP_BITS)), carried);
    function_begin(f, carried);
    function_again(f, begin, end);
    function_branch(f, function_compare(f, LLVM_SLT, end, f->whole), group, out);
    function_begin(f, out);
    begin_slots(p, none, true);
    come_from(p, grouped, values);
    come_from(p, carried, NULL);
}

/* What is left behind the vectors. */
static void emit_tail(struct pass *p)
{
    const struct function *f = p->r->f;
    struct emitter *e = p->r->e;
    LLVMBlock from = function_here(f), tail = function_block(f, "tail"),
              done = function_block(f, "done");
    LLVMValue before[2 * GIR_MAX_REDUCTIONS], behind[2 * GIR_MAX_REDUCTIONS];
    get_slots(p, before);
    function_branch(f, function_compare(f, LLVM_SLT, f->whole, f->params[LENGTH]), tail, done);
    function_begin(f, tail);
    e->index = f->whole;
    e->mask = function_mask(f);
    emit_vector(p->r);
    get_slots(p, behind);
    LLVMBlock here = function_here(f);
    e->llvm->LLVMBuildBr(e->builder, done);
    function_begin(f, done);
    for (uint32_t i = 0; i < p->n; i++)
        *p->slots[i].value = before[i];
    begin_slots(p, from, false);
    come_from(p, here, behind);
}

static void emit_reducing(struct rows *r)
{
    struct pass pass = {.r = r};
    const struct function *f = r->f;
    struct emitter *e = r->e;
    LLVMBlock many = function_block(f, "many"), start = function_block(f, "start"),
              rest = function_block(f, "rest"), join = function_block(f, "join"),
              joined = function_block(f, "joined");
    LLVMValue before[2 * GIR_MAX_REDUCTIONS], behind[2 * GIR_MAX_REDUCTIONS];
    LLVMValue has_many =
        function_compare(f, LLVM_SGE, f->params[LENGTH], function_number(f, GROUP));
    find_slots(&pass);
    function_branch(f, has_many, many, start);
    function_begin(f, many);
    begin_levels(r);
    e->llvm->LLVMBuildBr(e->builder, start);
    function_begin(f, start);
    emit_groups(&pass, rest);
    emit_tail(&pass);
    LLVMBlock from = function_here(f);
    get_slots(&pass, before);
    function_branch(f, has_many, join, joined);
    function_begin(f, join);
    join_levels(r);
    get_slots(&pass, behind);
    e->llvm->LLVMBuildBr(e->builder, joined);
    function_begin(f, joined);
    for (uint32_t i = 0; i < pass.n; i++)
        *pass.slots[i].value = before[i];
    begin_slots(&pass, from, false);
    come_from(&pass, join, behind);
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
    emit_tail(&(struct pass){.r = r});
}

void rows_emit_long(struct rows *r)
{
    r->kept = r->long_kept;
    for (r->pass = 0; r->pass < r->n_passes; r->pass++) {
        rows_emit_once(r);
        rows_find_needed(r);
        if (r->n)
            emit_reducing(r);
        else
            emit_plain(r);
    }
    rows_emit_once(r);
    rows_emit_stores(r);
    r->e->llvm->LLVMBuildBr(r->e->builder, r->f->next);
}
