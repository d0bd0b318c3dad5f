/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels (gir/gir.h) as text in languages like C: one printer, whose text is the same for all of
 * them but for names that a prelude defines (cuda.h, opencl.h, shim.h). Nothing of a processor is
 * in it.
 *
 *     clike_print_prelude(CLIKE_CUDA, clike_types(kernel), &text);
 *     clike_print(kernel, CLIKE_CUDA, "softmax", &text);
 *
 * A file has one prelude, for the types of all of its kernels. Operations, functions and
 * conversions are the interpreter's own text (ir/scalar/), and reductions have the order of
 * ir/reduction.def, so the bits are the interpreter's. CUDA C is compiled with CLIKE_CUDA_OPTIONS;
 * OpenCL C, in which there are grids alone, with CLIKE_OPENCL_OPTIONS and _ROUNDING; the shim,
 * which runs all threads of a kernel on the CPU one after the other, by a C compiler with
 * CLIKE_SHIM_OPTIONS.
 *
 * What a function's parameters are is told by clike_params, in the order of their steps in
 * codegen_run (codegen/codegen.h), which also says where arguments lie. How many threads run it is
 * the caller's: each takes what is left to it, by the form of the kernel:
 *
 *     CLIKE_ELEMENTS  threads in x share the elements of a row, in y the rows
 *     CLIKE_ROWS      a block is 32 threads in x, which share a row, by as many rows in y; more
 *                     blocks, in x, take other rows; or all of a block share one (of a grid, which
 *                     asks for it by its form, in CUDA C)
 *     CLIKE_COLUMNS   each thread, in x, has columns, and walks all rows of them
 *     CLIKE_TILES     a block has 1 << shift rows at a time, side by side, which its threads share;
 *                     more blocks take other rows; of a grid
 *     CLIKE_TURNED    a block has a patch of CLIKE_PATCH elements at a time: 1 << shift neighbours
 *                     of those behind the axes along which lookups are turned, by as many along
 *                     them as that leaves; more blocks take other patches; of a grid
 *
 * Kernels of a grid are parts of a launch, one or several side by side: a block is 32 threads in x,
 * by any number in y, blocks are in x, and each part has some of these. In a part without rows all
 * threads share the elements, or columns.
 *
 * Parts that have stages are given a group's rows, or elements, each: a block goes through the
 * stages of a group, as often as there are iterations, and through others as they are left to it.
 * All parts then end with the same block, and those of a stage stand before those of later ones.
 *
 * Threads: all of it may be called by any.
 */
#ifndef TSSA_CODEGEN_CLIKE_CLIKE_H
#define TSSA_CODEGEN_CLIKE_CLIKE_H

#include "base/text.h"
#include "gir/gir.h"

/* Of numbers of rows and elements: 32 bits, where they hold all of a call (clike_is_narrow), or 64.
 */
enum clike_width { CLIKE_NARROW, CLIKE_WIDE };
enum clike_dialect { CLIKE_CUDA, CLIKE_OPENCL, CLIKE_SHIM };

#define CLIKE_CUDA_OPTIONS "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"
#define CLIKE_OPENCL_OPTIONS "-cl-std=CL1.2"
#define CLIKE_OPENCL_ROUNDING " -cl-fp32-correctly-rounded-divide-sqrt" /* where there is that */
#define CLIKE_SHIM_OPTIONS "-ffp-contract=off -fno-math-errno -fno-strict-aliasing"

enum clike_form { CLIKE_ELEMENTS, CLIKE_ROWS, CLIKE_COLUMNS, CLIKE_TILES, CLIKE_TURNED };
enum clike_form clike_form(const struct gir_kernel *kernel);
/* Of rows: do all threads of a block share one, in this dialect? */
bool clike_has_block(const struct gir_kernel *kernel, enum clike_dialect dialect);

/* A parameter, of an argument but for the last five. */
enum clike_param_kind {
    CLIKE_MEMORY, /* where it has the first row */
    CLIKE_ROW,    /* bytes from row to row */
    CLIKE_STEP,   /* of what is strided, from element to element */
    CLIKE_NEXT,   /* of what is looked up in, from a row there to the next */
    CLIKE_COUNT,  /* and how many there are; of a grid: elements of the whole */
    CLIKE_NUMBER, /* of a grid: number `arg` */
    CLIKE_STATUS, /* of a grid: a byte of memory that becomes 1 when a check fails */
    CLIKE_N_ROWS, /* of the call */
    CLIKE_LENGTH, /* elements of a row */
    CLIKE_ALONG,  /* of what is turned: elements along the axes in question, */
    CLIKE_INNER,  /* and of all axes behind them */
    /* As a power of two: of tiles how many rows they have, CLIKE_MAX_SHIFT at most; of patches how
     * many neighbours, CLIKE_PATCH at most. */
    CLIKE_SHIFT
};

struct clike_param {
    enum clike_param_kind kind;
    uint32_t arg;
};

#define CLIKE_MAX_PARAMS (5 * GIR_MAX_ARGS + GIR_MAX_NUMBERS + 6)
#define CLIKE_MAX_SHIFT 5
#define CLIKE_PATCH_SHIFT 10
#define CLIKE_PATCH (1 << CLIKE_PATCH_SHIFT)

/* All are int64 but for memory. Returns how many. */
uint32_t clike_params(const struct gir_kernel *kernel, struct clike_param *params);

/* The type in C of elements, and of values. */
const char *clike_type_of(tssa_dtype dtype);

/* Element types whose operations a kernel has. */
dtype_mask clike_types(const struct gir_kernel *kernel);

/* What stands before the kernels of a file, which ends with this line. False: memory ran out. */
#define CLIKE_PRELUDE_END "/* ---- Kernels ---- */\n"
bool clike_print_prelude(enum clike_dialect dialect, dtype_mask types, struct text *text);

/* Why a kernel that gir_check accepts cannot be printed; NULL: it can. */
const char *clike_refuses(const struct gir_kernel *kernel);

/*
 * A kernel that is not refused, and no grid, as a function of this name; of CLIKE_SHIM there is
 * also NAME_run, a codegen_run that needs neither functions nor scratch memory. False: memory ran
 * out.
 */
bool clike_print(const struct gir_kernel *kernel, enum clike_dialect dialect, const char *name,
                 struct text *text);

/*
 * Kernels of a grid as one function, of their parameters, one kernel's after the other's, and then
 * for each of them the number of the block behind its last one: kernel 0 has blocks 0 to that; and
 * last, where there are stages, how many iterations there are of these, 1 where there is no loop.
 * In OpenCL C an offset in bytes, an int64, is behind each memory, and a block is 32 threads by 1
 * where a part has rows. Of CLIKE_SHIM there is also NAME_run, for which there are, for each kernel
 * in turn, in args its arguments and the status, in steps how many elements each argument has, its
 * numbers, rows and n, and of what is turned `along`, `inner` and `shift`; and where there are
 * stages, its own `rows` is how many groups there are, and its `n` how many iterations.
 *
 * A narrow text has, but in tiles, 32 bits for numbers of rows and elements, and for what is
 * computed of them alone and tells where something is looked up or stored; what data tell, or what
 * is stored, has 64.
 */
bool clike_print_launch(const struct gir_kernel *const *kernels, uint32_t n,
                        enum clike_dialect dialect, enum clike_width width, const char *name,
                        struct text *text);

/* What a call tells of a kernel of a grid: all of its rows, or 1, of n elements (of all groups),
 * its numbers, and how many elements each argument has. */
struct clike_call {
    int64_t rows, n;
    const int64_t *numbers, *counts;
};
#define CLIKE_MOST_BLOCKS 4096 /* of a part; and 1,024 threads of each */

/* Do 32 bits hold all numbers of rows and elements that threads compute in the call, of those of
 * what is read and what is not, whatever the data are? Or has its narrow text 64? A launch may be
 * narrow if that is so of all parts. */
bool clike_is_narrow(const struct gir_kernel *kernel, const struct clike_call *call);

#endif
