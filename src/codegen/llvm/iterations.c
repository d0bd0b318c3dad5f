/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of columns whose rows are the iterations of a loop (gir_iterates), one after the other.
 *
 *     for each group of vectors of columns, as long as there are two whole ones:
 *         for each vector of it: what states begin as, and what is once for a column, to the stack
 *         for each row:
 *             for each vector: steps, of states on the stack, and what they are next
 *         for each vector: what is there behind the last row is stored
 *     each whole vector that is left, and then one with a mask:
 *         steps that are once for a column
 *         for each row: steps, of states in registers
 *         what is there behind the last row is stored
 *
 * The next row waits for this one: several vectors are a group so that the machine has others to
 * compute meanwhile, and reads longer stretches of a row: what fetches memory ahead follows these.
 */
#include "codegen/llvm/columns.h"

#define LEAST_GROUP 8 /* vectors */
#define MOST_GROUP 32
#define SOME_BYTES (16 * 1024)  /* on the stack, of a group of more than the fewest */
#define MOST_BYTES (128 * 1024) /* of any */

/* Per state, by its number: the step, and the one that is its next value. */
struct states {
    uint32_t n;
    uint32_t steps[GIR_MAX_CODES], nexts[GIR_MAX_CODES];
};

static void find_states(const struct rows *r, struct states *states)
{
    states->n = 0;
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++) {
        const struct gir_code *code = rows_code(r, i);
        if (code->op == GIR_STATE)
            states->steps[states->n++] = i;
        if (code->op == GIR_NEXT)
            states->nexts[rows_code(r, code->operands[0])->bits] = code->operands[1];
    }
}

static uint32_t first_of(const struct rows *r, uint32_t state)
{
    return rows_code(r, state)->operands[0];
}

/* Steps that are once for a column, before the first row. */
static void emit_before(struct rows *r)
{
    columns_forget_records(r->e);
    r->pass = 0;
    rows_emit_once(r);
}

/* The others, and what is stored then, of what states are behind the last row. */
static void emit_behind(struct rows *r, const LLVMValue *ends)
{
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++)
        if (rows_code(r, i)->op == GIR_LAST)
            r->e->values[i] = ends[rows_code(r, rows_code(r, i)->operands[0])->bits];
    columns_forget_records(r->e);
    r->pass = 1;
    rows_emit_once(r);
    rows_emit_stores(r);
}

/* ---- One vector ------------------------------------------------------------------------------ */

/* States are phis: of the first row what they begin as, then what the row before has made them. */
static void begin_phis(const struct rows *r, const struct states *states, LLVMBlock from)
{
    for (uint32_t i = 0; i < states->n; i++) {
        const uint32_t step = states->steps[i];
        r->e->values[step] = function_phi(r->f, emit_type(r->e, rows_code(r, step)->type),
                                          r->e->values[first_of(r, step)], from);
    }
}

/* What they are behind the last row, and where there is none. */
static void end_phis(const struct rows *r, const struct states *states, LLVMBlock none,
                     LLVMBlock last, LLVMValue *ends)
{
    for (uint32_t i = 0; i < states->n; i++) {
        const uint32_t step = states->steps[i];
        ends[i] = function_phi(r->f, emit_type(r->e, rows_code(r, step)->type),
                               r->e->values[first_of(r, step)], none);
        r->e->llvm->LLVMAddIncoming(ends[i], &r->e->values[states->nexts[i]], &last, 1);
    }
}

static void emit_vector(struct rows *r, const struct states *states)
{
    const struct function *f = r->f;
    LLVMBlock body = function_block(f, "iteration"), done = function_block(f, "done");
    LLVMValue rows = f->params[ROWS], ends[GIR_MAX_CODES];
    emit_before(r);
    LLVMBlock none = function_here(f);
    function_branch(f, function_compare(f, LLVM_SGT, rows, function_number(f, 0)), body, done);
    function_begin(f, body);
    LLVMValue row = function_phi(f, function_integer(f, 64), function_number(f, 0), none);
    begin_phis(r, states, none);
    columns_go_to(r, row);
    rows_emit_steps(r, row);
    for (uint32_t i = 0; i < states->n; i++)
        function_again(f, r->e->values[states->steps[i]], r->e->values[states->nexts[i]]);
    LLVMBlock last = function_here(f);
    function_loop(f, row, 1, rows, body, done);
    function_begin(f, done);
    end_phis(r, states, none, last, ends);
    emit_behind(r, ends);
}

/* ---- A group --------------------------------------------------------------------------------- */

/* Is it made again where it is needed, for no more than a load? */
static bool is_made_again(const struct gir_code *code)
{
    return code->op == GIR_LOAD || code->op == GIR_CONSTANT;
}

/* Marks what rows need of what is once for a column. */
static void find_live(const struct rows *r, bool *live)
{
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++)
        live[i] = false;
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++) {
        const struct gir_code *code = rows_code(r, i);
        for (uint32_t k = 0; r->needed[i] && code->op != GIR_STATE && k < gir_n_operands(code); k++)
            live[code->operands[k]] |= !r->when[code->operands[k]].varies;
    }
}

/* The step's place on the stack, of the vector from a column on. */
static LLVMValue place_of(const struct rows *r, uint32_t step, LLVMValue vector)
{
    const struct emitter *e = r->e;
    return e->llvm->LLVMBuildGEP2(e->builder, emit_type(e, rows_code(r, step)->type),
                                  r->long_kept[step], &vector, 1, "");
}

static void put(const struct rows *r, uint32_t step, LLVMValue vector, LLVMValue value)
{
    r->e->llvm->LLVMBuildStore(r->e->builder, value, place_of(r, step, vector));
}

static LLVMValue get(const struct rows *r, uint32_t step, LLVMValue vector)
{
    return r->e->llvm->LLVMBuildLoad2(r->e->builder, emit_type(r->e, rows_code(r, step)->type),
                                      place_of(r, step, vector), "");
}

/* Columns of a group, and the number in it of the vector at hand. */
struct group {
    struct rows *r;
    const struct states *states;
    LLVMValue begin, end;
};

static struct row_loop begin_vectors(const struct group *g, LLVMValue *vector)
{
    const struct function *f = g->r->f;
    const struct row_loop loop = row_loop_begin(g->r, g->begin, g->end, f->lanes);
    LLVMValue offset = emit_binary(f->e, LLVM_SUB, loop.index, g->begin);
    *vector =
        emit_binary(f->e, LLVM_LSHR, offset, function_number(f, (uint64_t)__builtin_ctz(f->lanes)));
    f->e->index = loop.index;
    return loop;
}

static void begin_group(const struct group *g, const bool *live)
{
    struct rows *r = g->r;
    LLVMValue vector;
    columns_go_to(r, function_number(r->f, 0));
    const struct row_loop loop = begin_vectors(g, &vector);
    emit_before(r);
    for (uint32_t i = 0; i < g->states->n; i++)
        put(r, g->states->steps[i], vector, r->e->values[first_of(r, g->states->steps[i])]);
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++)
        if (live[i] && !is_made_again(rows_code(r, i)))
            put(r, i, vector, r->e->values[i]);
    row_loop_end(r, &loop);
}

static void emit_rows(const struct group *g, const bool *live)
{
    struct rows *r = g->r;
    LLVMValue vector;
    const struct row_loop rows = row_loop_begin(r, function_number(r->f, 0), r->f->params[ROWS], 1);
    columns_go_to(r, rows.index);
    const struct row_loop loop = begin_vectors(g, &vector);
    columns_forget_records(r->e);
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++)
        if (live[i] && is_made_again(rows_code(r, i)))
            emit_step(r->e, i);
        else if (live[i] || (r->needed[i] && rows_code(r, i)->op == GIR_STATE))
            r->e->values[i] = get(r, i, vector);
    rows_emit_steps(r, rows.index);
    for (uint32_t i = 0; i < g->states->n; i++)
        put(r, g->states->steps[i], vector, r->e->values[g->states->nexts[i]]);
    row_loop_end(r, &loop);
    row_loop_end(r, &rows);
}

static void end_group(const struct group *g)
{
    struct rows *r = g->r;
    LLVMValue vector, ends[GIR_MAX_CODES];
    columns_go_to(r, function_number(r->f, 0));
    const struct row_loop loop = begin_vectors(g, &vector);
    for (uint32_t i = 0; i < g->states->n; i++)
        ends[i] = get(r, g->states->steps[i], vector);
    emit_before(r);
    emit_behind(r, ends);
    row_loop_end(r, &loop);
}

/* From column `begin` on, as many vectors as there are, r->group at most: to column *end. */
static void emit_group(struct rows *r, const struct states *states, LLVMValue begin, LLVMValue *end)
{
    const struct function *f = r->f;
    bool live[GIR_MAX_CODES];
    LLVMValue most =
        emit_binary(f->e, LLVM_ADD, begin, function_number(f, (uint64_t)r->group * f->lanes));
    LLVMValue is_less = function_compare(f, LLVM_SLT, most, f->whole);
    struct group g = {.r = r, .states = states, .begin = begin};
    g.end = *end = emit_select(f->e, is_less, most, f->whole);
    find_live(r, live);
    begin_group(&g, live);
    emit_rows(&g, live);
    end_group(&g);
}

/* ---- The function ---------------------------------------------------------------------------- */

/* Is it on the stack, of each vector of a group? */
static bool is_put(const struct rows *r, const bool *live, uint32_t step)
{
    const struct gir_code *code = rows_code(r, step);
    return code->op == GIR_STATE || (live[step] && !is_made_again(code));
}

/* How many vectors are a group, of which each has so many bytes on the stack; 0: there is no room.
 */
static unsigned group_of(size_t bytes)
{
    const size_t some = bytes ? SOME_BYTES / bytes : MOST_GROUP;
    if (bytes * LEAST_GROUP > MOST_BYTES)
        return 0;
    return some > MOST_GROUP ? MOST_GROUP : some < LEAST_GROUP ? LEAST_GROUP : (unsigned)some;
}

void iterations_emit_memory(struct rows *r)
{
    bool live[GIR_MAX_CODES];
    size_t bytes = 0;
    r->pass = 0;
    rows_find_needed(r);
    find_live(r, live);
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++)
        if (is_put(r, live, i))
            bytes += (size_t)emit_size(rows_code(r, i)->type) * LANES;
    r->group = group_of(bytes);
    for (uint32_t i = 0; i < r->e->kernel->n_codes && r->group; i++)
        if (is_put(r, live, i))
            r->long_kept[i] = rows_make_memory(r, rows_code(r, i)->type, r->group);
}

/* Groups, as long as there are two whole vectors; then the column from which on there is less. */
static LLVMValue emit_groups(struct rows *r, const struct states *states)
{
    const struct function *f = r->f;
    LLVMBlock from = function_here(f), head = function_block(f, "head"),
              body = function_block(f, "group"), out = function_block(f, "grouped");
    LLVMValue end;
    f->e->llvm->LLVMBuildBr(f->e->builder, head);
    function_begin(f, head);
    LLVMValue begin = function_phi(f, function_integer(f, 64), function_number(f, 0), from);
    LLVMValue left = emit_binary(f->e, LLVM_SUB, f->whole, begin);
    function_branch(f, function_compare(f, LLVM_SGT, left, function_number(f, f->lanes)), body,
                    out);
    function_begin(f, body);
    emit_group(r, states, begin, &end);
    function_again(f, begin, end);
    f->e->llvm->LLVMBuildBr(f->e->builder, head);
    function_begin(f, out);
    return begin;
}

void iterations_emit(struct rows *r, LLVMBlock end)
{
    const struct function *f = r->f;
    struct emitter *e = f->e;
    struct states states;
    LLVMBlock one = function_block(f, "one"), rest = function_block(f, "rest"),
              tail = function_block(f, "tail");
    LLVMValue first = function_number(f, 0), index;
    find_states(r, &states);
    r->pass = 0;
    rows_find_needed(r);
    e->mask = NULL;
    if (r->long_kept[states.steps[0]])
        first = emit_groups(r, &states);
    LLVMBlock from = function_here(f);
    function_branch(f, function_compare(f, LLVM_SLT, first, f->whole), one, rest);
    function_begin(f, one);
    e->index = index = function_phi(f, function_integer(f, 64), first, from);
    emit_vector(r, &states);
    function_loop(f, index, f->lanes, f->whole, one, rest);
    function_begin(f, rest);
    function_branch(f, function_compare(f, LLVM_SLT, f->whole, f->params[LENGTH]), tail, end);
    function_begin(f, tail);
    e->index = f->whole;
    e->mask = function_mask(f);
    emit_vector(r, &states);
    e->llvm->LLVMBuildBr(e->builder, end);
}
