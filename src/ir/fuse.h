/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fuse`: ops that are meant to become one kernel.
 *
 *     %y = fuse(%x, %s): f32[N] {
 *       body(%a: f32[N], %b: f32[]) {
 *         %p = Mul@14(%a, %b): f32[N]
 *         %q = Tanh@13(%p): f32[N]
 *         return(%q)
 *       }
 *     }
 *
 * Its one block, `body`, is run once: parameter i is operand i, result i is what it returns as i.
 * The block captures nothing, and holds pure ops without blocks of their own, constants among them.
 * Or it holds one Loop or Scan, whose body is one fuse op, constants and numbers (ir_fuse_loop):
 *
 *     %h = fuse(%n, %x, %a): f32[N] {
 *       body(%p: i64[], %q: f32[N], %r: f32[N]) {
 *         %s = Loop@16(%p, _, %q): f32[N] {
 *           body(%i: i64[], %go: bool[], %t: f32[N]) {
 *             %u = fuse(%t, %r): f32[N] { ... }
 *             return(%go, %u)
 *           }
 *         }
 *         return(%s)
 *       }
 *     }
 *
 * Beside a loop there is nothing, or there is no kernel of the op. Or it holds what one kernel by
 * hand computes: ops on lists, a Conv and what follows it, recurrent layers in a row (layers.h).
 *
 * What a kernel is made of is therefore all there, in the op. Who has no kernel for it runs the
 * block as if its ops stood in the op's place.
 *
 * It is a session's: a file has none (ir_fuse_unfused).
 */
#ifndef TSSA_IR_FUSE_H
#define TSSA_IR_FUSE_H

#include "ir/ir.h"

#define IR_FUSE_BODY "body"

struct cost_machine;

/*
 * Classes of ops that kernels are made of: element-wise ones; accesses and assigns, of what is
 * outside of the kernel (unless it moves inside), and views of what rows came to; what is computed
 * row by row (ir/row.h: reductions, softmax, normalizations), where all rows of a kernel are the
 * same; Concat, of what is outside (unless it moves inside), of which each element is one of an
 * operand that its place tells; gathers (accesses whose rule has one, and others, as GatherND), of
 * which each element is one that indices tell, and those among them for which alone these are
 * computed, element by element; reductions of another axis than the innermost one
 * (ir_column_axis) and what is computed of its columns, where all of a kernel are of the same one;
 * what depends on where an element is (Trilu, and a Range whose length is told before a run); loops
 * of which an iteration is one kernel, for all of their iterations; what keeps elements or rows
 * that a mask tells (ir_fuse_keeps), of which nobody in the kernel reads what is kept (no grid has
 * that: how many are kept before it, an element does not know); running sums and products along
 * another axis than the last one (ir_scan_axis), where all of a kernel go along the same one, in
 * the same direction; and small products of matrices with what is computed of them (of grids alone:
 * who has libraries for products has no use for it). And, in kernels of their own, several ops on
 * lists (ir_fuse_lists), which is what the CPU has no use for.
 */
enum ir_fuses {
    IR_FUSES_ELEMENTWISE = 1,
    IR_FUSES_RULES = 2,
    IR_FUSES_ROWS = 4,
    IR_FUSES_CONCATS = 8,
    IR_FUSES_GATHERS = 16,
    IR_FUSES_COLUMNS = 32,
    IR_FUSES_POSITIONS = 64,
    IR_FUSES_LOOPS = 128,
    IR_FUSES_KEEPS = 256,
    IR_FUSES_INDICES = 512,
    IR_FUSES_SCANS = 1024,
    IR_FUSES_PRODUCTS = 2048,
    IR_FUSES_ALL = 4095,
    IR_FUSES_LISTS = 4096,
    IR_FUSES_GRIDS = (IR_FUSES_ALL & ~IR_FUSES_KEEPS) | IR_FUSES_LISTS
};

/* What kernels are made of, as who makes them lends it to the pass `fuse`. */
struct ir_fusion {
    uint32_t classes;                   /* enum ir_fuses */
    const struct cost_machine *machine; /* that they run on: ir/cost.h */
    uint32_t most_operands;             /* of a kernel */
    /* What lies between two products is computed part by part from so many bytes on, which no near
     * cache holds (split_tables); 0: never. */
    int64_t table_bytes;
    /*
     * What an access, a Concat or a gather reads, the indices of these, and what an assign writes,
     * may be computed in the kernel that alone needs it: elements are computed where they are read.
     */
    bool moves_inside;
    /* May a kernel compute of a part of each row, too, what it computes of rows? Who computes a row
     * has all of it at hand. */
    bool row_parts;
    /* May a kernel compute, side by side, what has nothing to do with each other, of any shapes?
     * One launch then does what several would. */
    bool side_by_side;
    /* May a kernel store what it computes into what a loop carries on (ir/update.h), wherever in
     * that it belongs? */
    bool updates;
    /* What the graph is given is the caller's memory: an assign into it is a copy first. */
    bool borrows;
    /* Is there no kernel of RNN, GRU, LSTM and Attention, so that they are better loops and
     * products (expand_recurrent, expand_attention)? */
    bool expands;
    /* Why the op, of these classes, is in no kernel; NULL: it may be. The function is NULL: any may
     * be. */
    const char *(*refuses)(void *user, const struct ir_op *op);
    /*
     * Why the op, an access that permutes and then reshapes, is not in a kernel with what reads it,
     * an op of its shape; NULL: it may be. Such accesses are made one first (fuse_planes.c). The
     * function is NULL: none may be.
     */
    const char *(*refuses_planes)(void *user, const struct ir_op *op);
    /* Why there is no kernel of the fuse op, as it is; NULL: there is one. The function is NULL:
     * nobody can tell. */
    const char *(*refuses_whole)(void *user, const struct ir_op *fuse);
    /*
     * Does no element of what the fuse op computes depend on the size, which is that of the first
     * axis of all of it? Then more may be computed than there are in the end, before anybody knows
     * (follow_boxes). NULL: that is not done.
     */
    bool (*is_free_of)(void *user, const struct ir_op *fuse, const struct dim *size);
    /* May an Add and a Relu of the result of a Conv be computed with it (follow_convolutions)?
     * NULL: of none. */
    bool (*follows)(void *user, const struct ir_op *conv);
    /* May the op, if it is not refused, be a kernel without others? NULL: none. */
    bool (*takes_alone)(void *user, const struct ir_op *op);
    void *user;
};

/* Is more read of the operand than its type? */
bool ir_fuse_reads(const struct ir_op *op, uint32_t operand);
/*
 * Does the op need the operand's elements at other places than where it computes its own? The
 * number of a rule, what is read by one, what is written by one; what a Concat puts one behind the
 * other; what a gather reads, and its indices; from where to where a Range goes.
 */
bool ir_fuse_moves(const struct ir_op *op, uint32_t operand);
/* The same, and could they be computed where they are needed? Not a number of a rule, which is one
 * for all elements. */
bool ir_fuse_moves_elements(const struct ir_op *op, uint32_t operand);

/*
 * Is it a Compress, an access by a mask alone, or a NonZero, of a list, of which a mask that is as
 * long says of each element whether it is kept? It reads its operands where they are, and what it
 * computes is of another size. Or is it a Compress or an access that keeps rows so, along an axis
 * before which all have one element? What it keeps rows of is read elsewhere, then.
 */
bool ir_fuse_keeps(const struct ir_op *op);
/* Has a value of this type as many rows along the axis as the mask, a list, has elements, and of
 * each axis before it one? These may be kept so. */
bool ir_fuse_keeps_rows(const struct ir_type *type, int64_t axis, const struct ir_value *mask);
/* That axis, of such an op. */
int ir_fuse_kept_axis(const struct ir_op *op);
/* Of what of which rows are kept that may be computed where they are: how many columns there are in
 * every run, 2 to IR_FUSE_COLUMNS; 1 of a list; 0: it may not, or nothing is kept. */
int64_t ir_fuse_kept_columns(const struct ir_op *op);
/* The same of a value of this type, of which rows along the axis would be kept. */
int64_t ir_fuse_columns(const struct ir_type *type, int64_t axis);
#define IR_FUSE_COLUMNS 8
/* The mask, an operand of such an op. */
struct ir_value *ir_fuse_mask(const struct ir_op *op);

/*
 * Is it a NonZero of truth values with no more than two axes, or a TopK of a list? Several of one
 * kind, which is not 0, may be a fuse op, of up to IR_FUSE_LISTS, each of which stands by itself:
 * one launch of a device is enough for them, and one time that its host waits.
 */
uint32_t ir_fuse_lists(const struct ir_op *op);
/*
 * The NonMaxSuppression of one class that a fuse op begins with, whose operands are its first ones,
 * and of which all else in it reads the rows that are kept; NULL: it is no such op. Then a device
 * may read as many rows as may be kept, before its host waits for how many they are.
 */
const struct ir_op *ir_fuse_boxes(const struct ir_op *op);
#define IR_FUSE_LISTS 8
/*
 * The Conv that a fuse op begins with, whose operands are its first ones, all of them, and what
 * else is there of its result: an Add of a value of its shape, then a Relu, or one of them. That is
 * what libraries compute together with it (follow_convolutions).
 */
struct ir_fuse_convolution {
    const struct ir_op *conv;
    bool adds, clips;
    uint32_t added; /* the operand of the fuse op that is added */
};
/* False: it is no such op. */
bool ir_fuse_convolves(const struct ir_op *op, struct ir_fuse_convolution *found);

/* The op's block; NULL: it is no fuse op, or has not got one (the verifier has not seen it). */
struct ir_block *ir_fuse_body(const struct ir_op *op);
/* The operand that a parameter of a fuse op's block stands for; NULL: the value is no such
 * parameter. */
struct ir_value *ir_fuse_operand(const struct ir_value *value);

/*
 * The value of the block that the result is, computed there for this result: no other result of the
 * op that anybody wants and that comes before returns it, and it is neither a parameter nor a
 * constant. NULL: the result is another name of something, or nobody wants it.
 */
struct ir_value *ir_fuse_returned(const struct ir_op *op, uint32_t result);

/* The Loop or Scan that is all that the op is made of, and an iteration of which is one fuse op;
 * NULL: it is no fuse op, or one of other ops. */
struct ir_op *ir_fuse_loop(const struct ir_op *op);
/* The fuse op that an iteration of a Loop or Scan is, beside constants and what computes integers
 * of one element; NULL: it is more. */
struct ir_op *ir_fuse_iteration(const struct ir_op *loop);
/* Is the op in a fuse op, at any depth? */
bool ir_fuse_is_inside(const struct ir_op *op);

/* Puts the ops of the block in the place of the op. */
void ir_fuse_inline(struct ir_op *op);
/* The same for all of the graph; *changed is set when there are any. */
void ir_fuse_inline_all(struct ir_graph *graph, bool *changed);

/*
 * A graph without fuse ops, for readers that know none: *unfused is `graph` itself where it has
 * none, and *copy NULL; else *copy, which must not outlive the graph, and goes with ir_graph_free.
 */
tssa_status *ir_fuse_unfused(const struct ir_graph *graph, struct ir_graph **copy,
                             const struct ir_graph **unfused);

#endif
