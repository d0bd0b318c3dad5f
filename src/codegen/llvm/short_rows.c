/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of at most 20 elements, 32 of them at a time, each a lane:
 *
 *     for each 32 rows, or what is left of them:
 *         operands are copied to the stack, so that an element's values in all of these rows are a vector
 *         for each pass:
 *             steps that are once for a row, on vectors
 *             for each element: steps; what a reduction combines is put by, combined with the identity
 *             elements are combined by halves, which is the order of ir/reduction.def for so few
 *         results are copied from the stack
 *
 * Lanes without a row compute with whatever is there: nothing traps, and nothing of it is stored.
 */
#include "codegen/llvm/rows.h"

#define LEAST_ROWS 4
#define QUAD 4 /* rows that are copied together */

/* Up to how many elements the copies cost less than vectors of which few lanes are there: functions take long, halving
 * the lanes of a reduction takes a while. */
static uint64_t longest(const struct rows *r)
{
    uint64_t n = 4;
    for (uint32_t i = 0; i < r->e->kernel->n_codes; i++) {
        if (gir_is_call(rows_code(r, i)))
            return SHORT_ROW;
        if (rows_code(r, i)->op == GIR_REDUCE)
            n = 12;
    }
    return n;
}

LLVMValue rows_emit_is_short(const struct rows *r)
{
    const struct function *f = r->f;
    if (!r->has_short)
        return NULL;
    LLVMValue is_short =
        function_compare(f, LLVM_SLE, f->params[LENGTH], function_number(f, longest(r)));
    LLVMValue many = function_compare(f, LLVM_SGE, f->params[ROWS], function_number(f, LEAST_ROWS));
    return emit_binary(r->e, LLVM_AND, is_short, many);
}

/* ---- Loops ---------------------------------------------------------------------------------------- */

/* for (index = begin; index < end; index += step), where it may be that there is none. */
struct loop {
    LLVMValue index, end;
    LLVMBlock body, out;
    uint64_t step;
};

static struct loop begin_loop(const struct rows *r, LLVMValue begin, LLVMValue end, uint64_t step)
{
    const struct function *f = r->f;
    struct loop loop = {.end = end, .step = step};
    LLVMBlock from = function_here(f);
    loop.body = function_block(f, "loop");
    loop.out = function_block(f, "out");
    function_branch(f, function_compare(f, LLVM_SLT, begin, end), loop.body, loop.out);
    function_begin(f, loop.body);
    loop.index = function_phi(f, function_integer(f, 64), begin, from);
    return loop;
}

static void end_loop(const struct rows *r, const struct loop *loop)
{
    function_loop(r->f, loop->index, loop->step, loop->end, loop->body, loop->out);
    function_begin(r->f, loop->out);
}

/* ---- Copies --------------------------------------------------------------------------------------- */

/* An argument, and the rows of it that are copied. */
struct copy {
    bool in; /* to the stack */
    LLVMType element;
    unsigned size;
    LLVMValue base, step; /* where the first of the rows is, and from one to the next */
    LLVMValue memory;     /* on the stack */
};

static LLVMValue element_at(const struct rows *r, LLVMType type, LLVMValue from, LLVMValue index)
{
    return r->e->llvm->LLVMBuildGEP2(r->e->builder, type, from, &index, 1, "");
}

static LLVMValue load(const struct rows *r, LLVMType type, LLVMValue from, unsigned alignment)
{
    LLVMValue value = r->e->llvm->LLVMBuildLoad2(r->e->builder, type, from, "");
    r->e->llvm->LLVMSetAlignment(value, alignment);
    return value;
}

static void store(const struct rows *r, LLVMValue value, LLVMValue to, unsigned alignment)
{
    r->e->llvm->LLVMSetAlignment(r->e->llvm->LLVMBuildStore(r->e->builder, value, to), alignment);
}

/* Rows [row, row + n) of an element, which they have at `at`; in memory the first of all is at `lanes`. */
static void copy_rows(const struct rows *r, const struct copy *c, LLVMValue at, LLVMValue lanes,
                      LLVMValue row, unsigned n)
{
    const struct emitter *e = r->e;
    const struct llvm_api *llvm = e->llvm;
    LLVMType byte = function_integer(r->f, 8);
    LLVMType type = n == 1 ? c->element : llvm->LLVMVectorType(c->element, n);
    LLVMValue there = element_at(r, c->element, lanes, row);
    LLVMValue all = c->in ? llvm->LLVMGetPoison(type) : load(r, type, there, c->size);
    at = element_at(r, byte, at, emit_binary(e, LLVM_MUL, row, c->step));
    for (unsigned i = 0; i < n; i++) {
        LLVMValue lane = emit_int(e, 32, i);
        if (c->in) {
            LLVMValue one = load(r, c->element, at, c->size);
            all = n == 1 ? one : llvm->LLVMBuildInsertElement(e->builder, all, one, lane, "");
        } else {
            LLVMValue one = n == 1 ? all : llvm->LLVMBuildExtractElement(e->builder, all, lane, "");
            store(r, one, at, c->size);
        }
        at = element_at(r, byte, at, c->step);
    }
    if (c->in)
        store(r, all, there, c->size);
}

/* Element `index` of `count` rows. */
static void copy_element(const struct rows *r, const struct copy *c, LLVMValue index,
                         LLVMValue count)
{
    const struct function *f = r->f;
    LLVMValue at = element_at(r, c->element, c->base, index);
    LLVMValue first = emit_binary(r->e, LLVM_MUL, index, function_number(f, LANES));
    LLVMValue lanes = element_at(r, c->element, c->memory, first);
    LLVMValue quads = emit_binary(r->e, LLVM_AND, count, function_number(f, ~(uint64_t)(QUAD - 1)));
    struct loop loop = begin_loop(r, function_number(f, 0), quads, QUAD);
    copy_rows(r, c, at, lanes, loop.index, QUAD);
    end_loop(r, &loop);
    loop = begin_loop(r, quads, count, 1);
    copy_rows(r, c, at, lanes, loop.index, 1);
    end_loop(r, &loop);
}

static void copy_arg(const struct rows *r, uint32_t number, LLVMValue first, LLVMValue count)
{
    const struct function *f = r->f;
    struct emitter *e = r->e;
    const struct llvm_api *llvm = e->llvm;
    const struct gir_arg *arg = &gir_args(e->kernel)[number];
    const tssa_dtype dtype = arg->dtype == TSSA_BOOL ? TSSA_UINT8 : (tssa_dtype)arg->dtype;
    LLVMType pointer = llvm->LLVMPointerTypeInContext(e->context, 0);
    LLVMValue index = function_number(f, number);
    struct copy copy = {.in = !arg->is_result,
                        .element = emit_element(e, dtype),
                        .size = emit_size(dtype),
                        .memory = r->args[number]};
    LLVMValue base = load(r, pointer, element_at(r, pointer, f->params[ARGS], index), 8);
    copy.step = load(r, function_integer(f, 64),
                     element_at(r, function_integer(f, 64), f->params[STEPS], index), 8);
    copy.base =
        element_at(r, function_integer(f, 8), base, emit_binary(e, LLVM_MUL, copy.step, first));
    if (!arg->moves) {
        copy_element(r, &copy, function_number(f, 0), count);
        return;
    }
    struct loop loop = begin_loop(r, function_number(f, 0), f->params[LENGTH], 1);
    copy_element(r, &copy, loop.index, count);
    end_loop(r, &loop);
}

static void copy_all(const struct rows *r, bool results, LLVMValue first, LLVMValue count)
{
    for (uint32_t i = 0; i < r->e->kernel->n_args; i++)
        if (gir_args(r->e->kernel)[i].is_result == results)
            copy_arg(r, i, first, count);
}

/* ---- Passes --------------------------------------------------------------------------------------- */

/* Vector number `index` of some on the stack. */
static LLVMValue vector_at(const struct rows *r, tssa_dtype dtype, LLVMValue memory,
                           LLVMValue index)
{
    return element_at(r, emit_type(r->e, dtype), memory, index);
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

/* The steps of element `index`, and what is combined of it. */
static void emit_element_steps(const struct rows *r, LLVMValue index)
{
    struct emitter *e = r->e;
    rows_emit_steps(r, e->index);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct reduction *one = &r->reductions[i];
        LLVMValue value = e->values[rows_code(r, one->step)->operands[0]];
        store_element(r, one, index, rows_combine(r, one, one->identity, value));
    }
}

/* Elements k and k + half, for each k of which there are both, of `count`; how many are left. */
static LLVMValue combine_halves(const struct rows *r, LLVMValue count, uint64_t half)
{
    const struct function *f = r->f;
    LLVMValue distance = function_number(f, half);
    LLVMValue pairs = emit_binary(r->e, LLVM_SUB, count, distance);
    struct loop loop = begin_loop(r, function_number(f, 0), pairs, 1);
    LLVMValue other = emit_binary(r->e, LLVM_ADD, loop.index, distance);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct reduction *one = &r->reductions[i];
        store_element(
            r, one, loop.index,
            rows_combine(r, one, load_element(r, one, loop.index), load_element(r, one, other)));
    }
    end_loop(r, &loop);
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
    for (uint32_t i = 0; i < r->n; i++) /* of no elements */
        store_element(r, &r->reductions[i], zero, r->reductions[i].identity);
    struct loop loop = begin_loop(r, zero, count, 1);
    e->index = emit_binary(e, LLVM_MUL, loop.index, function_number(f, LANES));
    emit_element_steps(r, loop.index);
    end_loop(r, &loop);
    for (uint64_t half = LANES / 2; r->n && half > 0; half /= 2)
        count = combine_halves(r, count, half);
    for (uint32_t i = 0; i < r->n; i++)
        e->values[r->reductions[i].step] = load_element(r, &r->reductions[i], zero);
}

void rows_emit_short(struct rows *r, LLVMBlock from)
{
    const struct function *f = r->f;
    struct emitter *e = r->e;
    LLVMBlock rows = function_block(f, "rows");
    e->llvm->LLVMBuildBr(e->builder, rows);
    function_begin(f, rows);
    LLVMValue first = function_phi(f, function_integer(f, 64), function_number(f, 0), from);
    LLVMValue count = emit_binary(e, LLVM_SUB, f->params[ROWS], first);
    LLVMValue all = function_number(f, LANES);
    count = emit_select(e, function_compare(f, LLVM_SLT, count, all), count, all);
    copy_all(r, false, first, count);
    for (uint32_t i = 0; i < e->kernel->n_args; i++)
        e->args[i] = r->args[i];
    e->lanes = LANES;
    e->mask = NULL;
    e->is_across = true;
    r->kept = r->short_kept;
    for (r->pass = 0; r->pass < r->n_passes; r->pass++)
        emit_pass(r);
    rows_emit_once(r);
    rows_emit_stores(r);
    copy_all(r, true, first, count);
    function_loop(f, first, LANES, f->params[ROWS], rows, f->end);
}
