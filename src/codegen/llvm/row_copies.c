/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between arguments and the stack, where rows are lanes (short_rows.c): an element of all
 * rows is a vector there.
 *
 *     where an element's values in the rows lie side by side (a plane of a transposed operand, one
 *         element per row): for each element: a vector, of which the rows that are there are loaded
 *         and stored
 *     else, where the elements of a row do, and all rows are there: tiles of as many elements and
 *         rows as a register has elements are transposed; what no tile has is copied as below
 *     else: one by one
 */
#include "codegen/llvm/rows.h"

#define QUAD 4        /* rows that are copied together */
#define LEAST_TILED 8 /* elements: a tile of fewer is mostly empty */

/* ---- Loops ----------------------------------------------------------------------------------- */

struct row_loop row_loop_begin(const struct rows *r, LLVMValue begin, LLVMValue end, uint64_t step)
{
    const struct function *f = r->f;
    struct row_loop loop = {.end = end, .step = step};
    LLVMBlock from = function_here(f);
    loop.body = function_block(f, "loop");
    loop.out = function_block(f, "out");
    function_branch(f, function_compare(f, LLVM_SLT, begin, end), loop.body, loop.out);
    function_begin(f, loop.body);
    loop.index = function_phi(f, function_integer(f, 64), begin, from);
    return loop;
}

void row_loop_end(const struct rows *r, const struct row_loop *loop)
{
    function_loop(r->f, loop->index, loop->step, loop->end, loop->body, loop->out);
    function_begin(r->f, loop->out);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* An argument, and the rows of it that are copied. */
struct copy {
    bool in;               /* to the stack */
    bool is_read_in_place; /* where it is of planes */
    LLVMType element;
    unsigned size, width; /* bytes of an element, elements of a tile's side */
    LLVMValue base, step,
        between; /* where the first of the rows is; from one to the next; between elements */
    LLVMValue memory, elements, n_rows; /* on the stack; how many */
};

LLVMValue row_element_at(const struct rows *r, LLVMType type, LLVMValue from, LLVMValue index)
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

/* Lanes 0, 1, ... that are less than `count`. */
static LLVMValue mask_below(const struct rows *r, LLVMValue count, unsigned width)
{
    struct emitter *e = r->e;
    const unsigned lanes = e->lanes;
    LLVMValue numbers[LANES];
    for (unsigned i = 0; i < width; i++)
        numbers[i] = emit_int(e, 32, i);
    e->lanes = width;
    LLVMValue all =
        emit_splat(e, emit_cast(e, LLVM_TRUNC, count, function_integer(r->f, 32)), TSSA_INT32);
    e->lanes = lanes;
    return e->llvm->LLVMBuildICmp(e->builder, LLVM_ULT, e->llvm->LLVMConstVector(numbers, width),
                                  all, "");
}

/* The first `count` elements of a vector; NULL: all. */
static LLVMValue load_some(const struct rows *r, const struct copy *c, LLVMValue from,
                           unsigned width, LLVMValue mask)
{
    const struct llvm_api *llvm = r->e->llvm;
    LLVMType type = llvm->LLVMVectorType(c->element, width);
    if (!mask)
        return load(r, type, from, c->size);
    LLVMType types[] = {type, llvm->LLVMPointerTypeInContext(r->e->context, 0)};
    LLVMValue args[] = {from, emit_int(r->e, 32, c->size), mask, llvm->LLVMConstNull(type)};
    return emit_intrinsic(r->e, "llvm.masked.load", types, 2, args, 4);
}

static void store_some(const struct rows *r, const struct copy *c, LLVMValue value, LLVMValue to,
                       unsigned width, LLVMValue mask)
{
    const struct llvm_api *llvm = r->e->llvm;
    if (!mask) {
        store(r, value, to, c->size);
        return;
    }
    LLVMType types[] = {llvm->LLVMVectorType(c->element, width),
                        llvm->LLVMPointerTypeInContext(r->e->context, 0)};
    LLVMValue args[] = {value, to, emit_int(r->e, 32, c->size), mask};
    emit_intrinsic(r->e, "llvm.masked.store", types, 2, args, 4);
}

/* Where element `index` of the first row is, and of row `row` on the stack. */
static LLVMValue there_at(const struct rows *r, const struct copy *c, LLVMValue index)
{
    return row_element_at(r, function_integer(r->f, 8), c->base,
                          emit_binary(r->e, LLVM_MUL, index, c->between));
}

static LLVMValue here_at(const struct rows *r, const struct copy *c, LLVMValue index, LLVMValue row)
{
    LLVMValue first = emit_binary(r->e, LLVM_MUL, index, function_number(r->f, LANES));
    return row_element_at(r, c->element, c->memory, emit_binary(r->e, LLVM_ADD, first, row));
}

/* ---- One by one ------------------------------------------------------------------------------ */

/* Rows [row, row + n) of an element, which they have at `at`; in memory the first of all is at
 * `lanes`. */
static void copy_rows(const struct rows *r, const struct copy *c, LLVMValue at, LLVMValue lanes,
                      LLVMValue row, unsigned n)
{
    const struct emitter *e = r->e;
    const struct llvm_api *llvm = e->llvm;
    LLVMType byte = function_integer(r->f, 8);
    LLVMType type = n == 1 ? c->element : llvm->LLVMVectorType(c->element, n);
    LLVMValue there = row_element_at(r, c->element, lanes, row);
    LLVMValue all = c->in ? llvm->LLVMGetPoison(type) : load(r, type, there, c->size);
    at = row_element_at(r, byte, at, emit_binary(e, LLVM_MUL, row, c->step));
    for (unsigned i = 0; i < n; i++) {
        LLVMValue lane = emit_int(e, 32, i);
        if (c->in) {
            LLVMValue one = load(r, c->element, at, c->size);
            all = n == 1 ? one : llvm->LLVMBuildInsertElement(e->builder, all, one, lane, "");
        } else {
            LLVMValue one = n == 1 ? all : llvm->LLVMBuildExtractElement(e->builder, all, lane, "");
            store(r, one, at, c->size);
        }
        at = row_element_at(r, byte, at, c->step);
    }
    if (c->in)
        store(r, all, there, c->size);
}

/* Element `index` of all rows. */
static void copy_element(const struct rows *r, const struct copy *c, LLVMValue index)
{
    const struct function *f = r->f;
    LLVMValue at = there_at(r, c, index), lanes = here_at(r, c, index, function_number(f, 0));
    LLVMValue quads =
        emit_binary(r->e, LLVM_AND, c->n_rows, function_number(f, ~(uint64_t)(QUAD - 1)));
    struct row_loop loop = row_loop_begin(r, function_number(f, 0), quads, QUAD);
    copy_rows(r, c, at, lanes, loop.index, QUAD);
    row_loop_end(r, &loop);
    loop = row_loop_begin(r, quads, c->n_rows, 1);
    copy_rows(r, c, at, lanes, loop.index, 1);
    row_loop_end(r, &loop);
}

static void copy_elements(const struct rows *r, const struct copy *c, LLVMValue first)
{
    struct row_loop loop = row_loop_begin(r, first, c->elements, 1);
    copy_element(r, c, loop.index);
    row_loop_end(r, &loop);
}

/* ---- Planes ---------------------------------------------------------------------------------- */

static void copy_planes(const struct rows *r, const struct copy *c)
{
    LLVMValue mask = r->f->masks ? mask_below(r, c->n_rows, LANES) : NULL;
    struct row_loop loop = row_loop_begin(r, function_number(r->f, 0), c->elements, 1);
    LLVMValue there = there_at(r, c, loop.index),
              here = here_at(r, c, loop.index, function_number(r->f, 0));
    if (c->in)
        store_some(r, c, load_some(r, c, there, LANES, mask), here, LANES, NULL);
    else
        store_some(r, c, load_some(r, c, here, LANES, NULL), there, LANES, mask);
    row_loop_end(r, &loop);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/*
 * Element k of vector i and element i of vector k change places, by blocks of 1, 2, 4, ... of them.
 */
static void transpose(const struct rows *r, LLVMValue *vectors, unsigned width)
{
    const struct emitter *e = r->e;
    for (unsigned block = 1; block < width; block *= 2)
        for (unsigned i = 0; i < width; i++) {
            LLVMValue low[TILE], high[TILE], x = vectors[i];
            if (i & block)
                continue;
            LLVMValue y = vectors[i + block];
            for (unsigned k = 0; k < width; k++) {
                low[k] = emit_int(e, 32, k & block ? width + k - block : k);
                high[k] = emit_int(e, 32, k & block ? width + k : k + block);
            }
            vectors[i] = e->llvm->LLVMBuildShuffleVector(e->builder, x, y,
                                                         e->llvm->LLVMConstVector(low, width), "");
            vectors[i + block] = e->llvm->LLVMBuildShuffleVector(
                e->builder, x, y, e->llvm->LLVMConstVector(high, width), "");
        }
}

/* Elements from `first` on of rows from `row` on; the mask: of the elements that are there. */
static void copy_tile(const struct rows *r, const struct copy *c, LLVMValue first, LLVMValue row,
                      LLVMValue mask)
{
    const struct function *f = r->f;
    LLVMValue vectors[TILE], here = here_at(r, c, first, row), there = there_at(r, c, first),
                             lane = function_number(f, LANES);
    there =
        row_element_at(r, function_integer(f, 8), there, emit_binary(r->e, LLVM_MUL, row, c->step));
    for (unsigned i = 0; i < c->width; i++) {
        vectors[i] = load_some(r, c, c->in ? there : here, c->width, c->in ? mask : NULL);
        if (c->in)
            there = row_element_at(r, function_integer(f, 8), there, c->step);
        else
            here = row_element_at(r, c->element, here, lane);
    }
    transpose(r, vectors, c->width);
    for (unsigned i = 0; i < c->width; i++) {
        store_some(r, c, vectors[i], c->in ? here : there, c->width, c->in ? NULL : mask);
        if (c->in)
            here = row_element_at(r, c->element, here, lane);
        else
            there = row_element_at(r, function_integer(f, 8), there, c->step);
    }
}

/* Elements before `end`: whole tiles, or else the last ones have masks. */
static void copy_tiles(const struct rows *r, const struct copy *c, LLVMValue end)
{
    const struct function *f = r->f;
    struct row_loop loop = row_loop_begin(r, function_number(f, 0), end, c->width);
    LLVMValue left = emit_binary(r->e, LLVM_SUB, end, loop.index);
    LLVMValue mask = f->masks ? mask_below(r, left, c->width) : NULL;
    struct row_loop rows =
        row_loop_begin(r, function_number(f, 0), function_number(f, LANES), c->width);
    copy_tile(r, c, loop.index, rows.index, mask);
    row_loop_end(r, &rows);
    row_loop_end(r, &loop);
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static LLVMValue both(const struct rows *r, LLVMValue a, LLVMValue b)
{
    return emit_binary(r->e, LLVM_AND, a, b);
}

/* Tiles, and what they leave. */
static void copy_by_rows(const struct rows *r, const struct copy *c, LLVMBlock done)
{
    const struct function *f = r->f;
    LLVMValue zero = function_number(f, 0), size = function_number(f, c->size);
    LLVMBlock tiles = function_block(f, "tiles"), rest = function_block(f, "elements"),
              from = function_here(f);
    LLVMValue good = function_compare(f, LLVM_IEQ, c->between, size);
    good = both(r, good, function_compare(f, LLVM_IEQ, c->n_rows, function_number(f, LANES)));
    good =
        both(r, good, function_compare(f, LLVM_SGE, c->elements, function_number(f, LEAST_TILED)));
    function_branch(f, good, tiles, rest);
    function_begin(f, tiles);
    LLVMValue whole = function_number(f, ~(uint64_t)(c->width - 1));
    LLVMValue end = f->masks ? c->elements : emit_binary(r->e, LLVM_AND, c->elements, whole);
    copy_tiles(r, c, end);
    LLVMBlock tiled = function_here(f);
    r->e->llvm->LLVMBuildBr(r->e->builder, rest);
    function_begin(f, rest);
    LLVMValue first = function_phi(f, function_integer(f, 64), zero, from);
    r->e->llvm->LLVMAddIncoming(first, &end, &tiled, 1);
    copy_elements(r, c, first);
    r->e->llvm->LLVMBuildBr(r->e->builder, done);
}

/* Are they planes, of which vectors may be loaded or stored? */
static LLVMValue are_planes(const struct rows *r, const struct copy *c)
{
    const struct function *f = r->f;
    LLVMValue good = function_compare(f, LLVM_IEQ, c->step, function_number(f, c->size));
    if (f->masks)
        return good;
    return both(r, good, function_compare(f, LLVM_IEQ, c->n_rows, function_number(f, LANES)));
}

/* Planes are read from where they are, in each pass: what is strided is loaded from there, or from
 * the stack. */
static void read_in_place(const struct rows *r, const struct copy *c, uint32_t number)
{
    struct emitter *e = r->e;
    LLVMValue good = are_planes(r, c), all = function_number(r->f, LANES);
    e->args[number] = emit_select(e, good, c->base, c->memory);
    e->strides[number] = emit_select(e, good, c->between, function_number(r->f, LANES * c->size));
    e->row_masks[number] =
        r->f->masks ? mask_below(r, emit_select(e, good, c->n_rows, all), LANES) : NULL;
}

static void copy_all(const struct rows *r, const struct copy *c, bool moves)
{
    const struct function *f = r->f;
    LLVMBlock planes = function_block(f, "planes"), rows = function_block(f, "by_rows"),
              done = function_block(f, "copied");
    LLVMValue good = are_planes(r, c);
    function_branch(f, good, planes, rows);
    function_begin(f, planes);
    if (!c->is_read_in_place)
        copy_planes(r, c);
    r->e->llvm->LLVMBuildBr(r->e->builder, done);
    function_begin(f, rows);
    if (moves) {
        copy_by_rows(r, c, done);
    } else {
        copy_elements(r, c, function_number(f, 0));
        r->e->llvm->LLVMBuildBr(r->e->builder, done);
    }
    function_begin(f, done);
}

/* Number `index` of the steps that the call tells. */
static LLVMValue told_step(const struct rows *r, uint32_t index)
{
    LLVMType word = function_integer(r->f, 64);
    return load(r, word, row_element_at(r, word, r->f->params[STEPS], function_number(r->f, index)),
                8);
}

static void copy_arg(const struct rows *r, uint32_t number, LLVMValue first, LLVMValue count)
{
    const struct function *f = r->f;
    struct emitter *e = r->e;
    const struct llvm_api *llvm = e->llvm;
    const struct gir_arg *arg = &gir_args(e->kernel)[number];
    const tssa_dtype dtype = arg->dtype == TSSA_BOOL ? TSSA_UINT8 : (tssa_dtype)arg->dtype;
    LLVMType pointer = llvm->LLVMPointerTypeInContext(e->context, 0);
    const unsigned width = e->register_bytes / emit_size(dtype);
    struct copy copy = {.in = !arg->is_result,
                        .element = emit_element(e, dtype),
                        .size = emit_size(dtype),
                        .width = width < TILE ? width : TILE,
                        .memory = r->args[number],
                        .n_rows = count};
    LLVMValue at = row_element_at(r, pointer, f->params[ARGS], function_number(f, number));
    copy.step = told_step(r, number);
    copy.base = row_element_at(r, function_integer(f, 8), load(r, pointer, at, 8),
                               emit_binary(e, LLVM_MUL, copy.step, first));
    copy.between = arg->moves == GIR_STRIDED ? told_step(r, e->kernel->n_args + number)
                                             : function_number(f, copy.size);
    copy.elements = arg->moves ? f->params[LENGTH] : function_number(f, 1);
    copy.is_read_in_place = arg->moves == GIR_STRIDED;
    copy_all(r, &copy, arg->moves);
    if (copy.is_read_in_place)
        read_in_place(r, &copy, number);
}

void rows_emit_copies(const struct rows *r, bool results, LLVMValue first, LLVMValue count)
{
    for (uint32_t i = 0; i < r->e->kernel->n_args; i++)
        if (gir_args(r->e->kernel)[i].is_result == results)
            copy_arg(r, i, first, count);
}
