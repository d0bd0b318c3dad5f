/* SPDX-License-Identifier: Apache-2.0 */
/* What is emitted of a kernel with whole rows, pass by pass: long_rows.c along a row, short_rows.c
 * across rows; and of one of columns: columns.c. */
#ifndef TSSA_CODEGEN_LLVM_ROWS_H
#define TSSA_CODEGEN_LLVM_ROWS_H

#include "codegen/llvm/function.h"
#include "gir/form.h"
#include "ir/reduction.h"

#define LANES REDUCTION_LANES
_Static_assert(LANES == GIR_FORM_LANES, "the lanes of reductions are rows, too");

struct reduction {
    uint32_t step, number; /* of all reductions of the kernel */
    LLVMValue identity;
    LLVMValue value; /* of the lanes, by now */
    LLVMValue nans;  /* where a lane was NaN, by now; NULL: nobody asks */
};

struct rows {
    struct function *f;
    struct emitter *e;
    uint32_t n_passes, pass;
    uint32_t n; /* reductions of the pass */
    struct reduction reductions[GIR_MAX_REDUCTIONS];
    struct gir_when when[GIR_MAX_CODES];
    bool needed[GIR_MAX_CODES]; /* in the pass, and once for each element */
    /* Memory. Of rows as lanes: an element is a vector of its values in all of these, so is what is
     * once for a row. */
    struct gir_across across;
    /* of rows whose elements are lanes: what is left over, by levels */
    LLVMValue levels[GIR_MAX_REDUCTIONS];
    LLVMValue nans[GIR_MAX_REDUCTIONS];   /* and in which lanes of that there were any */
    LLVMValue pieces[GIR_MAX_REDUCTIONS]; /* all lanes, where they are computed piece by piece */
    LLVMValue elements[GIR_MAX_REDUCTIONS], args[GIR_MAX_ARGS];
    LLVMValue there[GIR_MAX_ARGS]; /* how many rows, of planes; NULL: any may be loaded */
    LLVMValue long_kept[GIR_MAX_CODES], short_kept[GIR_MAX_CODES];
    const LLVMValue *kept; /* one of these: where the values are that are kept */
    const struct columns *columns;
    unsigned group; /* of iterations, vectors of columns that are computed in turn; 0: one */
};

#define LONG_LEVELS 7 /* above the first: enough for 2^53 elements */

/* Are whole rows computed with piece by piece (gir_lanes_of)? */
static inline bool rows_have_pieces(const struct rows *r)
{
    return r->e->kernel->whole_rows && r->f->lanes < LANES;
}

static inline const struct gir_code *rows_code(const struct rows *r, uint32_t step)
{
    return &gir_codes(r->e->kernel)[step];
}

/* Is the value one that an earlier pass has kept? */
static inline bool rows_has(const struct rows *r, uint32_t step)
{
    return r->when[step].kept_in && r->when[step].kept_in <= r->pass;
}

/* Of an argument's elements, as they are in memory. */
tssa_dtype rows_type_of(const struct gir_arg *arg);
LLVMValue rows_combine(const struct rows *r, const struct reduction *one, LLVMValue a, LLVMValue b);
/* Are NaNs looked for apart? The higher or the lower of floats takes one instruction where there
 * are none. */
bool rows_find_nans(const struct rows *r, uint32_t step);
/* So many vectors on the stack; of whole rows, of LANES. */
LLVMValue rows_make_memory(const struct rows *r, tssa_dtype dtype, uint64_t n);
/* Where long rows, or columns, have what is kept: side by side. */
void rows_find_kept(struct rows *rows);
/* Steps that are once for the row and wait for what is before the pass. */
void rows_emit_once(const struct rows *r);
/* Those that are stored. */
void rows_emit_stores(const struct rows *r);
/* for (index = begin; index < end; index += step), where it may be that there is none. */
struct row_loop {
    LLVMValue index, end;
    LLVMBlock body, out;
    uint64_t step;
};
struct row_loop row_loop_begin(const struct rows *r, LLVMValue begin, LLVMValue end, uint64_t step);
void row_loop_end(const struct rows *r, const struct row_loop *loop);
LLVMValue row_element_at(const struct rows *r, LLVMType type, LLVMValue from, LLVMValue index);
/* Rows [first, first + count), of LANES at most, between the arguments and the stack: operands to
 * it, or results from it. */
void rows_emit_copies(struct rows *r, bool results, LLVMValue first, LLVMValue count);
/* Lanes 0, 1, ... that are less than `count`, which may be less than 0. */
LLVMValue rows_mask_below(const struct rows *r, LLVMValue count);
/* The steps of a vector whose first element is number `index` of what is kept. */
void rows_emit_steps(const struct rows *r, LLVMValue index);
/* Finds the pass's reductions, and the steps that are needed for what it makes. */
void rows_find_needed(struct rows *r);

#endif
