/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a kernel being made of a fuse op's values, where views see them; see maps.h. */
#ifndef TSSA_GIR_MAPPER_H
#define TSSA_GIR_MAPPER_H

#include "base/vec.h"
#include "gir/maps.h"
#include "gir/scalars.h"

/* A value that was evaluated. */
struct mapper_seen {
    uint32_t next; /* 1 + the next one of the value; 0: none */
    uint32_t step;
    struct gir_view view;
};

/* Of the results' space, what a part is for. */
struct mapper_region {
    uint32_t cut;                                     /* axes, by bit, that it has part of */
    int64_t begin[TSSA_MAX_RANK], end[TSSA_MAX_RANK]; /* of these */
};

struct mapper {
    const struct ir_op *fuse;
    const struct ir_block *body;   /* whose values are evaluated: of a loop, an iteration's */
    const struct ir_op *loop;      /* that the fuse op is; NULL: it is none */
    uint32_t states[GIR_MAX_ARGS]; /* of what the loop carries, the steps */
    const struct tssa_allocator *allocator;
    const struct ir_type *like; /* of results */
    struct gir_parts *parts;
    struct gir_maker maker;
    tssa_status *status; /* memory ran out; then maker.why as well */

    /* Of the part that is being made. */
    struct gir_part *part;
    struct gir_arg args[GIR_MAX_ARGS];
    uint32_t side_by_side[GIR_MAX_ARGS]; /* axes, by bit, along which elements or records are */
    int64_t apart[GIR_MAX_ARGS]
                 [TSSA_MAX_RANK]; /* along the space's axes: as in struct gir_layout */
    uint32_t n_args;
    bool checks;                /* whether there is what is looked up */
    bool unrolls;               /* the last axis of results */
    struct gir_view root;       /* of results, where nothing is unrolled; of what columns come to */
    const struct ir_op *active; /* the assign whose region it is; NULL: of none */
    struct mapper_region region; /* where it is of none */
    /* There is no such part, but one of what lies before this element of an axis of results, and
     * one of the rest. */
    bool is_cut;
    int cut_axis;
    int64_t cut_at;

    uint32_t first_value, n_values; /* ids of the values of the block */
    uint32_t *heads;                /* per value: 1 + the first in `seen`; 0: none */
    VEC(struct mapper_seen) seen;
    uint32_t *order;   /* per value: the number of its op in the block */
    bool *marked;      /* per value: mark_dependents */
    uint32_t *numbers; /* room for a number per step */
};

/* It is no kernel: the first reason stays. */
uint32_t mapper_refuse(struct mapper *m, const char *why);
/* False: it cannot be, for the status, which is the mapper's then, or as it is not `good`;
 * maker.why says why. */
bool mapper_check(struct mapper *m, tssa_status *status, bool good);

/* The step that is the value's elements where the view sees them; maker.why: there is none. */
uint32_t mapper_evaluate(struct mapper *m, const struct ir_value *value, struct gir_view view);
/* The same of a parameter of the fuse op's block, and of a constant of one element. */
uint32_t mapper_load(struct mapper *m, const struct ir_value *param, const struct gir_view *view);
uint32_t mapper_number(struct mapper *m, const struct ir_value *value);

/* ---- positions.c ----------------------------------------------------------------------------- */

/* What a Trilu computes where the view sees it. */
uint32_t mapper_triangle(struct mapper *m, const struct ir_op *op, const struct gir_view *view);
/* The same of a Range. */
uint32_t mapper_range(struct mapper *m, const struct ir_op *op, const struct gir_view *view);

/* ---- columns.c ------------------------------------------------------------------------------- */

/* What reduces or walks columns, like which all that does is: of one axis, of equal dims; one that
 * reduces, where there is any. NULL: there is none (*any tells), or they are not. */
const struct ir_op *mapper_find_reduction(const struct mapper *m, bool *any);
/* Is each result what there is of each column, or an element of each row of it? */
bool mapper_fits_columns(const struct mapper *m, const struct ir_op *reduction);
/* The space of the part, and how results lie in it. */
tssa_status *mapper_begin_columns(struct mapper *m, const struct ir_op *reduction);
/* Which arguments move from row to row; there is more than one column. */
void mapper_mark_columns(struct mapper *m);
/* The same, and what is reduced is known. */
void mapper_finish_columns(struct mapper *m);
/* Where the root sees a result. */
struct gir_view mapper_root_of(const struct mapper *m, const struct ir_value *value);
/* What the columns of an operand come to, or the elements that are computed of them, where the view
 * sees it. */
uint32_t mapper_reduce(struct mapper *m, const struct ir_op *op, const struct gir_view *view);

/* ---- scans.c --------------------------------------------------------------------------------- */

/* The running sum or product like which all are: along one axis, in one direction. NULL: there is
 * none (*any tells), or they are not. */
const struct ir_op *mapper_find_scan(const struct mapper *m, bool *any);
/* The space of the part, and how results lie in it. */
tssa_status *mapper_begin_scans(struct mapper *m, const struct ir_op *scan);
/* Which arguments move from row to row. */
void mapper_finish_scans(struct mapper *m);
/* A sum of what is before an element, and that. */
uint32_t mapper_scan(struct mapper *m, const struct ir_op *op, const struct gir_view *view);

/* Stores a step as a field of those of a result, a value, or of the part of it that the rule
 * leaves. */
void mapper_store(struct mapper *m, const struct ir_value *value, uint32_t index,
                  const struct rule *rule, uint32_t field, uint32_t fields, uint32_t step);

/* Stores a step as a field of those of a result where the other one is true, one behind the other.
 */
void mapper_keep(struct mapper *m, const struct ir_value *value, uint32_t index, uint32_t field,
                 uint32_t fields, uint32_t step, uint32_t where);

/* Stores the step, a truth value, for whoever calls the kernel: the argument. */
uint32_t mapper_store_mask(struct mapper *m, uint32_t where);

/* ---- parts.c --------------------------------------------------------------------------------- */

/* Nothing is known of the next part yet, but for sizes of results like m->like that are the same in
 * every run. */
void mapper_begin_part(struct mapper *m, int rank);
/* The same of the region of results. */
void mapper_begin_region(struct mapper *m, int rank);
/* What moves, and how. Sizes are told by types, by operands, or, behind the first part, by results.
 */
void mapper_finish_args(struct mapper *m);
/* Is a row of the part no more than the columns of its last axis, since there is an argument that
 * lies elsewhere behind them? */
bool mapper_has_short_rows(const struct mapper *m, int64_t columns);
/* The part's kernel, once its steps are made. */
tssa_status *mapper_finish_part(struct mapper *m);

/* ---- kept.c ---------------------------------------------------------------------------------- */

/* The op that keeps what the value is; NULL: it is all there. */
const struct ir_op *mapper_keeper(const struct ir_value *value);
/* One part, of elements that a mask has; what has several columns is read by column. */
tssa_status *mapper_make_kept(struct mapper *m);

/* ---- loops.c --------------------------------------------------------------------------------- */

/* All that the loop carries has these dims. NULL: it has not, or carries nothing. */
const struct ir_type *mapper_carried(const struct ir_op *loop);
/* One part, of a fuse op that is a loop. */
tssa_status *mapper_make_loop(struct mapper *m);
/* What a parameter of an iteration's block is where the view sees it. */
uint32_t mapper_iteration_param(struct mapper *m, const struct ir_value *param,
                                const struct gir_view *view);
/* What an access in an iteration computes, where the view sees it. */
uint32_t mapper_iteration_access(struct mapper *m, const struct ir_op *op,
                                 const struct gir_view *view);

/* ---- concat.c: Concats ----------------------------------------------------------------------- */

/* Why pieces cannot be told from each other; NULL: they can. */
const char *mapper_concat_refuses(const struct ir_op *op);
/* As mapper_evaluate: of the piece in which all lies that the view sees. Where there are several,
 * the part is cut. */
uint32_t mapper_concat(struct mapper *m, const struct ir_op *op, struct gir_view view);
/* The region as a rule; NULL: it is all. Of a column of the last axis, where it is not -1. */
tssa_status *mapper_region_rule(struct mapper *m, const struct mapper_region *region, int column,
                                const struct rule **rule);

#endif
