/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between arguments and the stack, where rows are lanes (short_rows.c): an element of all
 * rows is a vector there. They are calls (codegen_copy): emitted for each argument they took longer
 * to compile than all the rest. Planes of operands are read from where they are.
 */
#include "codegen/llvm/rows.h"

_Static_assert(CODEGEN_ROWS == LANES, "a lane for each row");

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
    bool in;       /* to the stack */
    unsigned size; /* bytes of an element */
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

LLVMValue rows_mask_below(const struct rows *r, LLVMValue count)
{
    struct emitter *e = r->e;
    LLVMValue numbers[LANES];
    for (unsigned i = 0; i < e->lanes; i++)
        numbers[i] = emit_int(e, 32, i);
    LLVMValue all =
        emit_splat(e, emit_cast(e, LLVM_TRUNC, count, function_integer(r->f, 32)), TSSA_INT32);
    return e->llvm->LLVMBuildICmp(e->builder, LLVM_SLT, e->llvm->LLVMConstVector(numbers, e->lanes),
                                  all, "");
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static void call_copy(const struct rows *r, const struct copy *c)
{
    const struct emitter *e = r->e;
    const struct llvm_api *llvm = e->llvm;
    LLVMType pointer = llvm->LLVMPointerTypeInContext(e->context, 0),
             word = function_integer(r->f, 64);
    LLVMType params[] = {pointer, word, word, pointer, word, word};
    LLVMType type = llvm->LLVMFunctionType(llvm->LLVMVoidTypeInContext(e->context), params, 6, 0);
    unsigned which = 0;
    while (c->size > 1u << which)
        which++;
    const size_t at =
        c->in ? offsetof(struct codegen_calls, in) : offsetof(struct codegen_calls, out);
    LLVMValue table = emit_entry_of(e, e->calls, (unsigned)(at / sizeof(void *)));
    LLVMValue args[] = {c->base, c->step, c->between, c->memory, c->elements, c->n_rows};
    llvm->LLVMBuildCall2(e->builder, type, emit_entry_of(e, table, which), args, 6, "");
}

/* Are they planes, of which vectors may be loaded? */
static LLVMValue are_planes(const struct rows *r, const struct copy *c)
{
    const struct function *f = r->f;
    LLVMValue good = function_compare(f, LLVM_IEQ, c->step, function_number(f, c->size));
    if (f->masks)
        return good;
    return emit_binary(r->e, LLVM_AND, good,
                       function_compare(f, LLVM_IEQ, c->n_rows, function_number(f, LANES)));
}

/* Planes are read from where they are, in each pass: what is strided is loaded from there, or from
 * the stack. */
static void read_in_place(struct rows *r, const struct copy *c, uint32_t number)
{
    const struct function *f = r->f;
    struct emitter *e = r->e;
    LLVMBlock rows = function_block(f, "by_rows"), done = function_block(f, "copied");
    LLVMValue good = are_planes(r, c), all = function_number(f, LANES);
    function_branch(f, good, done, rows);
    function_begin(f, rows);
    call_copy(r, c);
    e->llvm->LLVMBuildBr(e->builder, done);
    function_begin(f, done);
    e->args[number] = emit_select(e, good, c->base, c->memory);
    e->strides[number] = emit_select(e, good, c->between, function_number(f, LANES * c->size));
    e->row_masks[number] = NULL;
    r->there[number] = f->masks ? emit_select(e, good, c->n_rows, all) : NULL;
}

/* Number `index` of the steps that the call tells. */
static LLVMValue told_step(const struct rows *r, uint32_t index)
{
    LLVMType word = function_integer(r->f, 64);
    return load(r, word, row_element_at(r, word, r->f->params[STEPS], function_number(r->f, index)),
                8);
}

static void copy_arg(struct rows *r, uint32_t number, LLVMValue first, LLVMValue count)
{
    const struct function *f = r->f;
    struct emitter *e = r->e;
    const struct llvm_api *llvm = e->llvm;
    const struct gir_arg *arg = &gir_args(e->kernel)[number];
    LLVMType pointer = llvm->LLVMPointerTypeInContext(e->context, 0);
    struct copy copy = {.in = !arg->is_result,
                        .size = emit_size(rows_type_of(arg)),
                        .memory = r->args[number],
                        .n_rows = count};
    LLVMValue at = row_element_at(r, pointer, f->params[ARGS], function_number(f, number));
    copy.step = told_step(r, number);
    copy.base = row_element_at(r, function_integer(f, 8), load(r, pointer, at, 8),
                               emit_binary(e, LLVM_MUL, copy.step, first));
    copy.between = arg->moves == GIR_STRIDED ? told_step(r, e->kernel->n_args + number)
                                             : function_number(f, copy.size);
    copy.elements = arg->moves ? f->params[LENGTH] : function_number(f, 1);
    if (arg->moves == GIR_STRIDED)
        read_in_place(r, &copy, number);
    else
        call_copy(r, &copy);
}

void rows_emit_copies(struct rows *r, bool results, LLVMValue first, LLVMValue count)
{
    for (uint32_t i = 0; i < r->e->kernel->n_args; i++)
        if (gir_args(r->e->kernel)[i].is_result == results)
            copy_arg(r, i, first, count);
}
