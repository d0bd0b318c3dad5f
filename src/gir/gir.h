/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel IR: what a kernel computes, as flat plain data without a pointer into the graph that it
 * was made from. The same bytes are what a generator of code is handed, what equal kernels are told
 * by, what a fuzzer mutates, and, printed, golden text.
 *
 * A kernel is rows of elements: for each row, and each of n elements in it, a straight line of code
 * in which each step makes one value, once. Arguments are memory: an operand or a result that moves
 * has n elements side by side in a row, one that does not has one element for the whole row.
 * Elements of one that is strided are as far from each other as the call says. In place of elements
 * there may be records of some elements side by side (columns of a short last axis): a load or a
 * store names the field. What rows there are, and where each argument has them, is the caller's:
 * dims are told in the call, so that one kernel serves all shapes.
 *
 *     args                                   0: f32 moves, 1: f32, 2: f32 result on 0
 *     %0 = load 0 : f32
 *     %1 = load 1 : f32
 *     %2 = MUL %0 %1 : f32
 *     %3 = 1 : f32
 *     %4 = ADD %2 %3 : f32
 *     store 2 %4
 *
 * A reduction combines what a value is in all elements of a row, from the identity that it names,
 * in the order of ir/reduction.def for an innermost axis. What it comes to is one value for the
 * row, and so is what is computed of such values, of numbers and of what does not move. Steps
 * behind may compute with it in each element of the same row: the row is walked once more for them
 * (gir_find_passes). Rows of a kernel with reductions, or with a result that does not move, are
 * whole in each call, and there are no records in them; elsewhere a row may come in parts, unless
 * the kernel says otherwise. Where operands of whole rows are strided, the same element of many
 * rows lies side by side, most often: a plane.
 *
 *     whole rows, args 0: f32 moves, 1: f32 result per row
 *     %0 = load 0 : f32
 *     %1 = reduce ADD from 0 %0 : f32
 *     %2 = length : f32
 *     %3 = DIV %1 %2 : f32
 *     store 1 %3
 *
 * Where in its row an element is, is a position: what ArgMax looks for.
 *
 *     %4 = position : i32
 *     %5 = SEL %3 %4 %2 : i32
 *     %6 = reduce MIN from 2147483647 %5 : i32
 *
 * A kernel of columns combines across rows: what a value is in the same element of all rows of a
 * call, in the order of ir/reduction.def for an axis that is not the innermost one. What that comes
 * to is one value for the column, and so is what is computed of such values and of what does not
 * move from row to row, which the argument says. Steps behind may compute with it in each row of
 * the column, which is walked once more for them: results are per column, or move from row to row.
 * Columns may come in parts, and lie as elements do elsewhere; a call has all rows, or none, or,
 * where nothing else is computed, as many of the first ones as tell of its columns
 * (gir/triangle.h).
 *
 *     columns, args 0: f32 moves, 1: f32 moves per column, 2: f32 result per column
 *     %0 = load 0 : f32
 *     %1 = load 1 : f32
 *     %2 = SUB %0 %1 : f32
 *     %3 = reduce MAX from -inf %2 : f32
 *     store 2 %3
 *
 * Or its rows are the iterations of a loop, or what is summed up along a column (CumSum), one after
 * the other: in place of reductions there are states, each of which begins as a value of the column
 * and is what the row before has made it. The last one is a value of the column again. Results may
 * then move from row to row as well. Of `for x in xs: h = h * a + x`, which keeps every h:
 *
 *     columns, args 0: f32 moves per column, 1: f32 moves per column,
 *                   2: f32 moves, 3: f32 result per column, 4: f32 result
 *     %0 = load 0 : f32
 *     %1 = state %0 : f32
 *     %2 = load 1 : f32
 *     %3 = MUL %1 %2 : f32
 *     %4 = load 2 : f32
 *     %5 = ADD %3 %4 : f32
 *     next %1 %5
 *     %7 = last %1 : f32
 *     store 3 %7
 *     store 4 %5
 *
 * Of records of 4, column 1 is read, and a result is strided:
 *
 *     args                                   0: f32 moves by 4, 1: f32 strided result
 *     %0 = load 0.1 : f32
 *     store 1 %0
 *
 * An operand that is looked up in has no element for each place, but a number of rows that is told
 * in the call: a step GIR_LOOKUP computes which one (counted from the end where it is negative),
 * and is told that there is one. Elements of the row lie as those of other operands: those of one
 * that moves are of one row for all of them, and one that stays has one element in each row.
 *
 *     args                                   0: f32 looked up, 1: i64 moves, 2: f32 result
 *     %0 = load 1 : i64
 *     %1 = lookup 0 %0 : f32
 *     store 2 %1
 *
 * Where nobody has looked at these numbers before, since the kernel computes them, say, it checks
 * them: of a row that is not there nothing is read, what the step comes to is then any value, and
 * the call tells of the first such element, and of the number (codegen_run). Such a kernel checks
 * all that it looks up, and keeps nothing.
 *
 *     args 0: f32 looked up checked, 1: i64 moves, 2: f32 result
 *     %0 = load 1 : i64
 *     %1 = 80 : i64
 *     %2 = DIV %0 %1 : i64
 *     %3 = lookup 0 %2 : f32
 *     store 2 %3
 *
 * Where an element is along an axis is told by an operand that is no memory: what is loaded of it
 * is how many elements behind a certain address it would lie. Of i * s, along the rows:
 *
 *     args                                   0: i64 position, 1: i64 moves, 2: i64 result
 *     %0 = load 0 : i64
 *     %1 = load 1 : i64
 *     %2 = MUL %0 %1 : i64
 *     store 2 %2
 *
 * A kernel may keep elements where a truth value says so, one behind the other. How many there are
 * is a result of the call, for each argument that they are stored in (codegen_run): who calls has
 * room for all. Its elements are one row, which may come in parts, one after the other, and a
 * position is that in the row. Of `x[x > t]` and `nonzero(x > t)`:
 *
 *     args 0: f32 moves, 1: f32, 2: f32 result kept, 3: i64 result kept
 *     %0 = load 0 : f32
 *     %1 = load 1 : f32
 *     %2 = GT %0 %1 : bool
 *     %3 = position : i64
 *     keep 2 %0 where %2
 *     keep 3 %3 where %2
 *
 * Or records are kept, all fields of one by the same truth value.
 *
 * A kernel of a grid is for devices that have a thread for each element, to which it is all the
 * same where in memory that is. Its arguments are wholes, of so many elements as is told in the
 * call, and a step tells the number of the element that is looked up, or stored. Outside of the
 * argument nothing is read, which gives 0, and nothing is stored: what a choice does not take may
 * be computed nevertheless. Where a step says `inside`, the element is there in each call that the
 * grid's claims allow, and nobody looks. Numbers that are told in the call, dims above all, are
 * steps as well. Elements i of a row r are threads', or, where there are reductions, a row is a
 * warp's, or a column is a thread's, and so it is where rows are a loop's iterations. What a check
 * finds false is an error, of the op that the interpreter finds it in.
 *
 *     grid of 1 number, args 0: f32, 1: i64, 2: f32 result
 *     %0 = position : i64
 *     %1 = lookup 1 %0 : i64
 *     %2 = number 0 : i64
 *     %3 = 0 : i64
 *     %4 = GE %1 %3 : bool
 *     %5 = LT %1 %2 : bool
 *     %6 = AND %4 %5 : bool
 *     %7 = lookup 0 %1 : f32
 *     %8 = SQRT %7 : f32
 *     check %6
 *     store 2 %8 at %0
 *
 * Threads that are side by side have elements that are, and so should what they look up. Of an
 * operand that is transposed it does not: a lookup of a grid of elements may say that it is turned,
 * and is then made by threads that go along another axis, which the part has (gir/grid.h), for
 * those that want it. What it comes to is the same.
 *
 *     %3 = lookup 0 turned %2 : f32
 *
 * Values have element types. A value of type bool is a truth value; elements of type bool are
 * loaded and stored as the bytes that they are, values of type u8. Of f16 and bf16 there are
 * conversions, choices, loads and stores.
 *
 * Meaning: of operations ir/scalar.def's, without exception; of conversions that of
 * kernels/cpu/lib/convert.h. Nothing traps, and but for checks nothing fails.
 *
 * Threads: a description is immutable when it is made.
 */
#ifndef TSSA_GIR_GIR_H
#define TSSA_GIR_GIR_H

#include "base/dtype.h"
#include "ir/scalar.h"

#define GIR_MAGIC 0x61726967 /* "gira": the number of this layout */
#define GIR_MAX_ARGS 64
#define GIR_MAX_CODES 2048
#define GIR_MAX_REDUCTIONS 32
#define GIR_MAX_FIELDS 8
#define GIR_MAX_NUMBERS 64
#define GIR_MAX_TURNED 16 /* bytes of an element of each lookup that is turned, of a kernel */
#define GIR_MAX_STAGES 5  /* PoCL compiles each for three times as long as the one before */
#define GIR_POSITIONS_AT (UINT64_C(1) << 46) /* as an address: that of element 0 of positions */
#define GIR_MAX_PLANES 128 /* elements of a strided row, where rows may lie side by side */

enum gir_op {
    GIR_LOAD,     /* bits: gir_bits(); type: the argument's element type, u8 where that is bool */
    GIR_CONSTANT, /* bits: the element's */
    GIR_CONVERT,  /* of operand 0, to type */
    GIR_SCALAR,   /* scalar: the operation; type: the result's */
    GIR_STORE,    /* bits as of a load; operand 0; type as of a load */
    /* scalar: ADD, MUL, MIN or MAX, of operand 0 in all elements; bits: the identity's */
    GIR_REDUCE,
    GIR_LENGTH, /* how many elements are reduced: those of a row, or the rows */
    /* as a load, of row number operand 0, an i64, of an argument that is looked up in */
    GIR_LOOKUP,
    /* which element of a whole row, or of all that a kernel keeps of, it is: 0, 1, ...; type: i32,
     * where its numbers are enough, or i64 */
    GIR_POSITION,
    /* ---- Of columns whose rows are a loop's iterations: each of them has one of both ---- */
    /* in the first row operand 0, one value for the column; bits: a number of its own */
    GIR_STATE,
    GIR_NEXT, /* what state operand 0 is in the row behind: operand 1 */
    GIR_LAST, /* what state operand 0 is behind the last row: one value for the column */
    /* The number of the row; type: i32 or i64. Of columns and iterations, and of grids, where a
     * position is that of the column. */
    GIR_ROW,
    /* ---- Of grids ---- */
    GIR_NUMBER,   /* bits: which of those that the call tells; type: i64 */
    GIR_STORE_AT, /* bits, type and operand 0 as of a store; element number operand 1, an i64 */
    GIR_CHECK,    /* operand 0, a truth value, is true, or else the call has failed */
    /* ---- Of kernels that keep ---- */
    GIR_KEEP, /* bits, type and operand 0 as of a store; where operand 1, a truth value, is true */
    /* ---- Of grids with stages ---- */
    GIR_TRIP, /* which iteration of a loop, each of which goes through the stages: 0, ...; i64 */
    GIR_OP_COUNT
};

/* Every byte counts: what is not used is 0. */
struct gir_code {
    uint8_t op;           /* gir_op */
    uint8_t scalar;       /* scalar_id */
    uint8_t type;         /* tssa_dtype */
    uint8_t inside;       /* 1: of LOOKUP and STORE_AT of grids: the element is there */
    uint32_t operands[3]; /* numbers of steps before */
    uint64_t bits;
};

enum gir_moves {
    GIR_STAYS,        /* one element or record a row */
    GIR_SIDE_BY_SIDE, /* n of them */
    GIR_STRIDED,      /* n elements, as far apart as the call says */
    GIR_MOVES_COUNT
};

struct gir_arg {
    uint8_t dtype;
    uint8_t is_result; /* written */
    uint8_t moves;     /* gir_moves */
    /* elements of a record, all of which are stored, of a result; 1: there are no records */
    uint8_t fields;
    uint8_t per_column;   /* of a kernel of columns: it does not move from row to row */
    uint8_t is_looked_up; /* of an operand without records: a step tells where its elements are */
    uint8_t is_kept; /* of a result: elements or records that are kept are stored, by GIR_KEEP */
    /* of an operand of int32 or int64: element i is i, and so far behind GIR_POSITIONS_AT; there is
     * no memory */
    uint8_t is_position;
    uint64_t may_lie_on; /* of a result: the operands, by bit, whose memory it may take */
};

struct gir_kernel {
    uint32_t magic;
    uint32_t size; /* bytes in all */
    uint32_t n_args, n_codes;
    /* 1: rows are whole in each call; so they are where there are reductions or results per row */
    uint32_t whole_rows;
    uint32_t columns;   /* 1: reductions are of columns, not of rows, or rows are iterations */
    uint32_t grid;      /* 1: arguments are wholes, and steps tell which elements of them */
    uint32_t n_numbers; /* that a call tells, of a grid */
    uint32_t checks;    /* 1: of what is looked up there may be no such row */
    /* Of a grid whose launch has stages (grid.h), 1 + its own, and a call's rows, or elements where
     * there are none, are a group's; 0: of others. */
    uint32_t stage;
    /* What form.h says otherwise, which the bits do not depend on; 0: it does. Measurements and
     * tests ask for it. Of a grid, GIR_FORM_ROWS_ALONG: rows are long;
     * GIR_FORM_ROW_OF_BLOCK: and so few that all threads of a block share one.
     * GIR_FORM_ROWS_ACROSS: what lies side by side in memory is of rows that are; what is reduced
     * is then combined in the order of the threads that share a row, and nothing that varies is
     * stored. */
    uint32_t form;  /* of whole rows, GIR_FORM_ROWS_ALONG or _ACROSS, or _ROW_OF_BLOCK */
    uint32_t lanes; /* a power of two, GIR_FORM_LANES at most */
    /* struct gir_arg args[n_args]; struct gir_code codes[n_codes]; */
};

static inline const struct gir_arg *gir_args(const struct gir_kernel *kernel)
{
    return (const struct gir_arg *)(kernel + 1);
}

static inline const struct gir_code *gir_codes(const struct gir_kernel *kernel)
{
    return (const struct gir_code *)(gir_args(kernel) + kernel->n_args);
}

/* Of loads and stores: the argument, and the field of a record. */
static inline uint64_t gir_bits(uint32_t arg, uint32_t field)
{
    return arg | (uint64_t)field << 32;
}

static inline uint32_t gir_arg_of(const struct gir_code *code)
{
    return (uint32_t)code->bits;
}

static inline uint32_t gir_field_of(const struct gir_code *code)
{
    return (uint32_t)(code->bits >> 32);
}

/* In the place of a field, of a grid's lookup: it is turned. */
#define GIR_TURNED 1

static inline bool gir_is_turned(const struct gir_code *code)
{
    return code->op == GIR_LOOKUP && gir_field_of(code) == GIR_TURNED;
}

/* Has what is reduced more than one element of the argument? */
static inline bool gir_varies(const struct gir_kernel *kernel, const struct gir_arg *arg)
{
    return kernel->columns ? !arg->per_column : arg->moves != GIR_STAYS;
}

/* Are the rows of a call a loop's iterations? */
bool gir_iterates(const struct gir_kernel *kernel);

/* Has it results of which only the kernel knows how many elements there are? */
bool gir_keeps(const struct gir_kernel *kernel);

/* Is it done for what it does, and has no value? */
bool gir_has_effect(const struct gir_code *code);

/* How many operands the step has. */
uint32_t gir_n_operands(const struct gir_code *code);

/* When a step is computed. */
struct gir_when {
    /* in each element of a row, else once for the row; of columns, in each row, else once for
     * the column */
    bool varies;
    /* The walk along the row in which it is, numbered from 0; of what is once for the row, the one
     * before which it is, of a reduction, or the last of a state, the one at whose end it is there.
     */
    uint16_t pass;
    /* 1 + the pass that keeps it for those behind, since it takes long; 0: it is computed again
     * where it is needed. */
    uint16_t kept_in;
};

/* Fills when[n_codes], of a kernel that gir_check accepts; returns how many passes there are.
 * Elements of results that may lie on an operand are stored in the last one. */
uint32_t gir_find_passes(const struct gir_kernel *kernel, struct gir_when *when);
/* Marks what is computed in a pass for each element, or was kept: needed[n_codes]. */
void gir_find_needed(const struct gir_kernel *kernel, const struct gir_when *when, uint32_t pass,
                     bool *needed);
/* Bytes of an element of all values that are kept. */
size_t gir_kept_bytes(const struct gir_kernel *kernel);

/*
 * Is it a kernel? Of any bytes, aligned as a kernel is: TSSA_MALFORMED where it is not, with what
 * is wrong. What passes may be given to a generator of code.
 */
tssa_status *gir_check(const void *bytes, size_t size);

/* What steps there are: conversions, and operations of operands of a type (SEL: of what it chooses
 * between). */
bool gir_converts(tssa_dtype from, tssa_dtype to);
bool gir_computes(enum scalar_id id, tssa_dtype type);

struct text;
/* The text above, of a kernel that gir_check accepts. False: memory ran out. */
bool gir_print(const struct gir_kernel *kernel, struct text *text);

/* Functions that a kernel calls, as they are no operation of a machine: of f32 and f64. */
bool gir_is_call(const struct gir_code *code);

#endif
