/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a grid's kernel being made; see grid.h. */
#ifndef TSSA_GIR_GRID_MAKER_H
#define TSSA_GIR_GRID_MAKER_H

#include "base/vec.h"
#include "gir/grid.h"
#include "gir/scalars.h"
#include "ir/rule.h"

#define GRID_MOST_OPERANDS 32 /* of an op */
#define GRID_MOST_STATES 32   /* of a loop's iterations, in a thread */
/* Bytes of a block's memory, of all parts of a launch: a kernel has 48 KiB, of which threads that
 * share rows want some as well. */
#define GRID_MOST_OF_BLOCK ((size_t)40 << 10)

/* Where an element of a value is: a step for each of its axes, an int64. */
struct grid_place {
    int rank;
    uint32_t at[TSSA_MAX_RANK];
};

/* A value that was evaluated. */
struct grid_seen {
    const struct ir_value *value;
    uint32_t active, step;
    struct grid_place place;
};

/* In each call, where an element is, 0 <= number < size. */
struct grid_below {
    uint32_t number;
    const struct dim *size;
};

/* An element of what a loop carries, that each thread has. */
struct grid_state {
    uint32_t carried, step;
    struct grid_place place;
};

/* What is stored of a result, and where. */
struct grid_stored {
    uint32_t arg, value, number;
    bool inside;
    tssa_dtype type;
};

/* A value that a stage stores for those behind it. */
struct grid_cut {
    const struct ir_value *value;
    uint32_t stage;
    uint32_t result; /* that it is; GIR_NONE: none, and `inner` is its number */
    uint32_t inner;
};

struct grid_maker {
    const struct ir_op *fuse;
    const struct ir_op *loop; /* that it is of, or NULL */
    const struct ir_op *own;  /* the fuse op of which `body` is: of a loop, that of an iteration */
    const struct ir_block *body; /* whose ops are computed */
    const struct dim *trips;     /* of the loop; NULL: an operand tells */
    bool walks;                  /* of a loop, rows are its iterations: there are no stages */
    struct gir_grid *grid;
    struct gir_maker maker;
    tssa_status *status; /* memory ran out; then maker.why as well */

    /* Of the part that is being made. */
    struct gir_grid_part *part;
    struct gir_arg args[GIR_MAX_ARGS];
    uint32_t n_args;
    struct grid_place space; /* where in the part's space an element is */
    /* Where nothing is reduced, or of what sums are for: which of all it is; else GIR_NONE. */
    uint32_t number;
    uint32_t term;   /* of sums of products: which one */
    bool in_term;    /* what is being evaluated is one */
    int64_t sums;    /* elements of products that all parts so far compute */
    size_t of_block; /* bytes of a block's memory that they want */
    /* A truth value: whether what is being evaluated is chosen; GIR_NONE: it is. */
    uint32_t active;
    /* Of a loop: the iteration's number, and states. */
    uint32_t row, n_states;
    struct grid_state states[GRID_MOST_STATES];
    VEC(struct grid_seen) seen;
    VEC(struct grid_below) below; /* what is known of numbers */
    uint32_t *numbers;            /* room for a number per step */
    /* The op of the block whose result is given, as operand n_operands; NULL: none is. */
    const struct ir_op *before;
    /* Of stages. */
    uint32_t n_cuts;
    struct grid_cut cuts[GIR_MAX_STAGES];
    const struct ir_op *op;        /* that is being evaluated */
    const struct ir_value *stored; /* what is being computed: not looked up */
    bool across;                   /* of the part: see grid_is_across */
};

/* It is no grid: the first reason stays. */
uint32_t grid_refuse(struct grid_maker *m, const char *why);

/* ---- grid_index.c: numbers, which are int64 -------------------------------------------------- */

uint32_t grid_constant(struct grid_maker *m, int64_t value);
/* Is it the same number in all calls? */
bool grid_is_constant(const struct grid_maker *m, uint32_t step, int64_t *value);
uint32_t grid_dim(struct grid_maker *m, const struct dim *dim);
uint32_t grid_add(struct grid_maker *m, uint32_t a, uint32_t b);
uint32_t grid_sub(struct grid_maker *m, uint32_t a, uint32_t b);
uint32_t grid_mul(struct grid_maker *m, uint32_t a, uint32_t b);
/* Towards zero, and what is left. */
uint32_t grid_div(struct grid_maker *m, uint32_t a, uint32_t b);
uint32_t grid_rest(struct grid_maker *m, uint32_t a, uint32_t b);
uint32_t grid_min(struct grid_maker *m, uint32_t a, uint32_t b);
uint32_t grid_max(struct grid_maker *m, uint32_t a, uint32_t b);
/* Truth values. */
uint32_t grid_test(struct grid_maker *m, enum scalar_id id, uint32_t a, uint32_t b);
uint32_t grid_both(struct grid_maker *m, uint32_t a, uint32_t b); /* either may be GIR_NONE: true */
/* One of two values of the same type. */
uint32_t grid_choose(struct grid_maker *m, uint32_t truth, uint32_t a, uint32_t b);
/* A number that counts from the end where it is negative. */
uint32_t grid_from_end(struct grid_maker *m, uint32_t number, uint32_t count);
/* The call fails where the number is not in [0, count), if what is being evaluated is chosen. */
void grid_check(struct grid_maker *m, uint32_t number, uint32_t count);

/* Which element it is, row-major, of as many as these dims say; and back. */
uint32_t grid_flatten(struct grid_maker *m, const struct grid_place *place,
                      const struct dim *const *dims);
void grid_unflatten(struct grid_maker *m, uint32_t number, int rank, const struct dim *const *dims,
                    struct grid_place *place);

/* One more axis of the place. */
void grid_insert(struct grid_place *place, int64_t axis, uint32_t at);

/* ---- grid_told.c ----------------------------------------------------------------------------- */

/* The size as who makes a call can tell it; NULL: nobody can, or memory ran out. */
const struct dim *grid_told(struct grid_maker *m, const struct dim *dim);

/* ---- grid_claims.c --------------------------------------------------------------------------- */

/* Of m->op, whatever is chosen: calls are asked for it if it is not known. Refuses where they
 * cannot be asked. */
void grid_claim(struct grid_maker *m, const struct dim *size, const struct dim *wanted,
                enum gir_claims claims);
/* As many elements are in the one as in the other. */
void grid_claim_count(struct grid_maker *m, const struct dim *const *dims, int rank,
                      const struct dim *const *wanted, int wanted_rank);

/* ---- grid_inside.c --------------------------------------------------------------------------- */

/* Is it known, from what has been told by grid_know_below and from the claims, that a number is one
 * of an axis of this size? */
bool grid_is_below(struct grid_maker *m, uint32_t number, const struct dim *size);
void grid_know_below(struct grid_maker *m, uint32_t number, const struct dim *size);
/* The same of each axis of a place. */
bool grid_is_inside(struct grid_maker *m, const struct grid_place *place,
                    const struct dim *const *dims);
void grid_know_inside(struct grid_maker *m, const struct grid_place *place,
                      const struct dim *const *dims);
/* Is the number surely one of an element of the argument, which has these dims? Then calls are
 * asked for as many elements. */
bool grid_is_sure(struct grid_maker *m, uint32_t arg, uint32_t number,
                  const struct dim *const *dims, int rank);
/* The product of these dims; NULL: memory ran out. */
const struct dim *grid_count(struct grid_maker *m, const struct dim *const *dims, int rank);
/* The same as a number; false: they are not all known, or it is too large. */
bool grid_known_count(const struct dim *const *dims, int n, int64_t *product);

/* ---- grid_rule.c ----------------------------------------------------------------------------- */

/* Why elements of what an access or assign computes cannot tell where they are; NULL: they can. */
const char *grid_rule_refuses(const struct ir_op *op);
/* Where in the base of an access an element of it is. */
bool grid_through(struct grid_maker *m, const struct ir_op *access, struct grid_place *place);
/* Where in the region of an access or assign an element of its base is, and whether it is there
 * (GIR_NONE: all are). */
bool grid_into(struct grid_maker *m, const struct ir_op *op, struct grid_place *place,
               uint32_t *is_there);

/* ---- grid_value.c ---------------------------------------------------------------------------- */

/* The step that is the value's element there; maker.why: there is none. */
uint32_t grid_evaluate(struct grid_maker *m, const struct ir_value *value,
                       const struct grid_place *place);
/* An element of what has this type, as it is stored. */
uint32_t grid_element(struct grid_maker *m, uint32_t step, tssa_dtype dtype);
/* Of a place in these dims, that in an operand of other ones that is broadcast to them. */
bool grid_broadcast(struct grid_maker *m, const struct dim *const *dims, int rank,
                    const struct dim *const *operand, struct grid_place *place);
/* The argument that is this operand or result. */
uint32_t grid_arg(struct grid_maker *m, enum gir_owner owner, uint32_t index, bool is_result,
                  tssa_dtype dtype);

/* An element of what lies in memory of this type. */
uint32_t grid_look_up(struct grid_maker *m, enum gir_owner owner, uint32_t index,
                      const struct ir_type *type, const struct grid_place *place);

/* ---- grid_loops.c ---------------------------------------------------------------------------- */

/* Of a loop, before its parts. False: it is no grid. */
bool grid_begin_loop(struct grid_maker *m);
/* Over what the result goes; false: that is not known. */
bool grid_loop_space(struct grid_maker *m, uint32_t result, struct gir_grid_part *part);
/* Whether there is an iteration; GIR_NONE: there is. */
uint32_t grid_loop_runs(struct grid_maker *m);
/* Begins a part, of columns. */
void grid_loop_part(struct grid_maker *m, uint32_t row, uint32_t position);
void grid_loop_result(struct grid_maker *m, uint32_t result, struct grid_stored *stored);
/* Behind all results of a part: what the states are in the next iteration. */
void grid_end_loop(struct grid_maker *m);
/* Is the step another one in each iteration? */
bool grid_varies(const struct grid_maker *m, uint32_t step);
/* The value that another name of it stands for, from block to block. */
const struct ir_value *grid_loop_source(const struct grid_maker *m, const struct ir_value *value);
/* Is it a parameter of the loop's block? Then an element of what it stands for in an iteration. */
bool grid_is_of_iteration(const struct grid_maker *m, const struct ir_value *param);
uint32_t grid_iteration_param(struct grid_maker *m, const struct ir_value *param,
                              const struct grid_place *place);

/* Which of the loop's results is the fuse op's; GIR_NONE: none is. */
uint32_t grid_result_of_loop(const struct grid_maker *m, uint32_t result);
/* What is carried as `carried`, a parameter of the loop's block; NULL: its shape changes. */
const struct ir_value *grid_carried_param(const struct grid_maker *m, uint32_t carried);

/* ---- grid_trips.c ---------------------------------------------------------------------------- */

/* Of a loop whose iterations go through stages, before its parts. False: it is no grid. */
bool grid_begin_trips(struct grid_maker *m);
/* The step that is the iteration's number. */
uint32_t grid_make_trip(struct grid_maker *m);
/* An element of what the iteration before has left. */
uint32_t grid_left(struct grid_maker *m, uint32_t carried, const struct grid_place *place);

/* ---- grid_result.c --------------------------------------------------------------------------- */

/* The value of the block that is the fuse op's result; NULL: none is. */
const struct ir_value *grid_result_value(const struct grid_maker *m, uint32_t result);
/* The same if it is computed for this result (ir_fuse_returned). */
const struct ir_value *grid_returned(const struct grid_maker *m, uint32_t result);
/* Is what is stored of it the region of an assign alone? */
bool grid_updates(const struct grid_maker *m, uint32_t result);
/* The operand that its memory is as before the launch; false: it is any. */
bool grid_begins_as(const struct grid_maker *m, uint32_t result, uint32_t *operand);
/* That stages store for others, behind results; NULL: it is a result. */
const struct grid_cut *grid_inner_cut(const struct grid_maker *m, uint32_t stored);
/* What is stored: of all that, or what a result has that its operand has not. */
const struct ir_value *grid_stored_value(const struct grid_maker *m, uint32_t stored);

/* ---- grid_product.c -------------------------------------------------------------------------- */

/* Is it a product of matrices? */
bool grid_multiplies(const struct ir_op *op);
/* Why it is none that a part computes; NULL: it is. */
const char *grid_product_refuses(const struct ir_op *op);
/* How many terms sums have, at most, of the products among the needed values, whose ids begin with
 * `first`; NULL: there are none. */
const struct dim *grid_terms(struct grid_maker *m, const bool *needed, uint32_t first);
/* An element of a product, in a part of sums. */
uint32_t grid_multiply(struct grid_maker *m, const struct ir_op *op,
                       const struct grid_place *place);
/* An op that has rows, in a part of sums: softmax and the like of one operand, whose rows are the
 * terms. */
uint32_t grid_row_of_terms(struct grid_maker *m, const struct ir_op *op,
                           const struct grid_place *place);
/* Is it better if threads that are side by side have elements that are, of the part being made, and
 * not terms? */
bool grid_is_across(const struct grid_maker *m);
/* Do the parts that are made compute products much oftener than there are elements of them? */
bool grid_multiplies_again(const struct grid_maker *m);

/* ---- grid_turned.c --------------------------------------------------------------------------- */

/* Finds which lookups of a part that is made are turned, and along which axes. */
void grid_find_turned(struct grid_maker *m, struct gir_grid_part *part);

/* ---- grid_stages.c --------------------------------------------------------------------------- */

/* Finds what stages would store for others; false: there is nothing, or too much. */
bool grid_find_cuts(struct grid_maker *m);
/* How many elements there are of the type; false: nobody knows. */
bool grid_count_elements(const struct ir_type *type, int64_t *count);
/* That is the value; NULL: it is none. */
const struct grid_cut *grid_cut_of(const struct grid_maker *m, const struct ir_value *value);
/* The stage in which the value can be computed. */
uint32_t grid_stage_of(const struct grid_maker *m, const struct ir_value *value);
/* Of parts that are made: how many groups there are. Refuses where they are none. */
void grid_find_groups(struct grid_maker *m);

/* ---- grid_form.c ----------------------------------------------------------------------------- */

/* gir_kernel.form of the part, whose steps are made. Once for each part. */
uint32_t grid_find_form(struct grid_maker *m);

/* ---- grid_rows.c ----------------------------------------------------------------------------- */

/* Is it an op that has rows, or one that reduces columns? */
bool grid_reduces(const struct ir_op *op);
/* What such an op computes, where the space's rows or columns are. */
uint32_t grid_reduce(struct grid_maker *m, const struct ir_op *op, const struct grid_place *place);
/* A running sum, where the space's element is. */
uint32_t grid_scan(struct grid_maker *m, const struct ir_op *op, const struct grid_place *place);
/* Where in the value what the space's element, or its row, comes to is, and whether it is there
 * (GIR_NONE: it is). False: it is not one place. */
bool grid_find_place(struct grid_maker *m, const struct ir_value *value, struct grid_place *place,
                     uint32_t *is_there);

#endif
