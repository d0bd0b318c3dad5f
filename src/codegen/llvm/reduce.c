/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/llvm/reduce.h"

#define RADIX_BITS 6
#define LEVELS LONG_LEVELS
_Static_assert(REDUCTION_RADIX == 1 << RADIX_BITS, "a power of two");

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

void pass_begin_slots(const struct pass *p, LLVMBlock from, bool at_first)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const struct slot *slot = &p->slots[i];
        *slot->value =
            function_phi(p->r->f, slot->type, at_first ? slot->identity : *slot->value, from);
    }
}

void pass_get_slots(const struct pass *p, LLVMValue *values)
{
    for (uint32_t i = 0; i < p->n; i++)
        values[i] = *p->slots[i].value;
}

void pass_come_from(const struct pass *p, LLVMBlock from, const LLVMValue *values)
{
    for (uint32_t i = 0; i < p->n; i++) {
        LLVMValue value = values ? values[i] : p->slots[i].identity;
        p->r->e->llvm->LLVMAddIncoming(*p->slots[i].value, &value, &from, 1);
    }
}

/* ---- Steps ----------------------------------------------------------------------------------- */

LLVMValue reduce_two(const struct rows *r, const struct reduction *one, LLVMValue a, LLVMValue b)
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

void reduce_combine(struct rows *r)
{
    const struct emitter *e = r->e;
    for (uint32_t i = 0; i < r->n; i++) {
        struct reduction *one = &r->reductions[i];
        LLVMValue x = e->values[rows_code(r, one->step)->operands[0]];
        LLVMValue more = reduce_two(r, one, one->value, x);
        if (rows_find_nans(r, one->step))
            find_nans(r, one, x);
        one->value = e->mask ? emit_select(e, e->mask, more, one->value) : more;
    }
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

void reduce_put_pieces(const struct rows *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        r->e->llvm->LLVMBuildStore(r->e->builder, r->reductions[i].value,
                                   r->pieces[r->reductions[i].number]);
}

void reduce_get_pieces(struct rows *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct reduction *one = &r->reductions[i];
        one->value = r->e->llvm->LLVMBuildLoad2(r->e->builder, vector_of(r, one),
                                                r->pieces[one->number], "");
    }
}

/* ---- Levels ---------------------------------------------------------------------------------- */

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
        sums[i] = reduce_two(r, one, load_level(r, one, level), phis[i]);
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
                reduce_two(r, one, load_level(r, one, function_number(r->f, level)), one->value);
        if (rows_find_nans(r, one->step))
            one->nans = nans_of_groups(r, one);
    }
}

/* ---- Passes ---------------------------------------------------------------------------------- */

/* Elements of 64 steps. */
static uint64_t group_of(const struct pass *p)
{
    return (uint64_t)REDUCTION_RADIX << p->step_bits;
}

/* The steps of a group from `begin` to `limit`: from block `group` to the end of what it begins. */
static void emit_group(struct pass *p, LLVMValue begin, LLVMValue limit, LLVMBlock group)
{
    const struct function *f = p->r->f;
    LLVMBlock body = function_block(f, "body"), grouped = function_block(f, "grouped");
    LLVMValue phis[2 * GIR_MAX_REDUCTIONS], values[2 * GIR_MAX_REDUCTIONS];
    f->e->llvm->LLVMBuildBr(f->e->builder, body);
    function_begin(f, body);
    LLVMValue index = function_phi(f, function_integer(f, 64), begin, group);
    pass_begin_slots(p, group, true);
    pass_get_slots(p, phis);
    p->emit_step(p->r, index);
    pass_get_slots(p, values);
    for (uint32_t i = 0; i < p->n; i++)
        function_again(f, phis[i], values[i]);
    function_loop(f, index, p->stride, limit, body, grouped);
    function_begin(f, grouped);
}

/* The same piece by piece: lanes are in memory meanwhile. */
static void emit_group_by_pieces(struct pass *p, LLVMValue begin, LLVMValue limit, LLVMBlock group)
{
    const struct function *f = p->r->f;
    LLVMBlock body = function_block(f, "body"), grouped = function_block(f, "grouped");
    for (uint32_t i = 0; i < p->n; i++)
        *p->slots[i].value = p->slots[i].identity;
    reduce_put_pieces(p->r);
    f->e->llvm->LLVMBuildBr(f->e->builder, body);
    function_begin(f, body);
    LLVMValue index = function_phi(f, function_integer(f, 64), begin, group);
    p->emit_step(p->r, index);
    function_loop(f, index, p->stride, limit, body, grouped);
    function_begin(f, grouped);
    reduce_get_pieces(p->r);
}

/* The steps that are all there, by groups; behind block `out` the values are of a group that is not
 * complete, or as at first, where there is none. */
static void emit_groups(struct pass *p, LLVMBlock out)
{
    const struct function *f = p->r->f;
    struct emitter *e = p->r->e;
    LLVMType word = function_integer(f, 64);
    LLVMBlock group = function_block(f, "group"), full = function_block(f, "full"),
              none = function_here(f), carried = function_block(f, "carried");
    LLVMValue values[2 * GIR_MAX_REDUCTIONS];
    function_branch(f, function_compare(f, LLVM_SGT, p->whole, function_number(f, 0)), group, out);
    function_begin(f, group);
    LLVMValue begin = function_phi(f, word, function_number(f, 0), none);
    LLVMValue end = emit_binary(e, LLVM_ADD, begin, function_number(f, group_of(p)));
    LLVMValue is_full = function_compare(f, LLVM_SLE, end, p->whole);
    LLVMValue limit = emit_select(e, is_full, end, p->whole);
    if (rows_have_pieces(p->r))
        emit_group_by_pieces(p, begin, limit, group);
    else
        emit_group(p, begin, limit, group);
    LLVMBlock grouped = function_here(f);
    pass_get_slots(p, values);
    function_branch(f, is_full, full, out);
    function_begin(f, full);
    emit_carry(p, emit_binary(e, LLVM_LSHR, end, function_number(f, p->step_bits + RADIX_BITS)),
               carried);
    function_begin(f, carried);
    function_again(f, begin, end);
    function_branch(f, function_compare(f, LLVM_SLT, end, p->whole), group, out);
    function_begin(f, out);
    pass_begin_slots(p, none, true);
    pass_come_from(p, grouped, values);
    pass_come_from(p, carried, NULL);
}

void reduce_all(struct pass *p)
{
    struct rows *r = p->r;
    const struct function *f = r->f;
    struct emitter *e = r->e;
    LLVMBlock many = function_block(f, "many"), start = function_block(f, "start"),
              rest = function_block(f, "rest"), join = function_block(f, "join"),
              joined = function_block(f, "joined");
    LLVMValue before[2 * GIR_MAX_REDUCTIONS], behind[2 * GIR_MAX_REDUCTIONS];
    LLVMValue has_many = function_compare(f, LLVM_SGE, p->length, function_number(f, group_of(p)));
    find_slots(p);
    function_branch(f, has_many, many, start);
    function_begin(f, many);
    begin_levels(r);
    e->llvm->LLVMBuildBr(e->builder, start);
    function_begin(f, start);
    emit_groups(p, rest);
    if (p->emit_tail)
        p->emit_tail(p);
    LLVMBlock from = function_here(f);
    pass_get_slots(p, before);
    function_branch(f, has_many, join, joined);
    function_begin(f, join);
    join_levels(r);
    pass_get_slots(p, behind);
    e->llvm->LLVMBuildBr(e->builder, joined);
    function_begin(f, joined);
    for (uint32_t i = 0; i < p->n; i++)
        *p->slots[i].value = before[i];
    pass_begin_slots(p, from, false);
    pass_come_from(p, join, behind);
}
