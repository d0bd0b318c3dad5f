/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that lower writes share. Makers are as those of passes/lower/lower.h. */
#ifndef TSSA_PASSES_LOWER_LOWER_WRITER_H
#define TSSA_PASSES_LOWER_LOWER_WRITER_H

#include "passes/lower/lower.h"

/* An assign that is being lowered: s goes to the region of x that the rule names. */
struct writer {
    struct lowering *l;
    struct ir_value *x, *s;
    const struct rule *rule;
    struct ir_value *const *params;
    struct region region;
    /* Of a region that is a box, by axis of the base: is the source turned around to run forwards,
     * and which step of the rule alone cuts the axis. */
    bool is_box, turned[TSSA_MAX_RANK];
    const struct rule_step *dynamic[TSSA_MAX_RANK];
};

bool lower_has_dims(const struct ir_value *value, int rank, const struct dim *const *dims);
/* The source in the region's shape (lower_source.c). */
struct ir_value *lower_full_source(struct writer *w);

/* ---- Boxes (lower_box.c) --------------------------------------------------------------------- */

/* Finds out what the region is and, if it is a box, how its axes are written. */
tssa_status *lower_open_writer(struct writer *w, struct lowering *l, struct ir_value *x,
                               struct ir_value *s, const struct rule *rule,
                               struct ir_value *const *params);
/* NULL without a failure: the region is no box, or one of its axes cannot be written. */
struct ir_value *lower_assign_box(struct writer *w);
/* The axes of the base that are written in part: how many; `axes` has room for TSSA_MAX_RANK. */
int lower_partial_axes(const struct region *region, int *axes);
/* The source in the shape of the box, running forwards along each axis. */
struct ir_value *lower_forward_source(struct writer *w);
/* Would ONNX Runtime write to x in place, if rows of it were written by ScatterElements? */
bool lower_is_in_place(const struct writer *w, const struct ir_value *x);

/* ---- Places of an axis that are constants (lower_assembly.c) --------------------------------- */

static inline bool lower_const_axis(const struct region_axis *axis, int64_t *start, int64_t *count)
{
    return axis->exact && dim_is_const(axis->start, start) && dim_is_const(axis->count, count);
}

/*
 * Are the places constants, of an axis short enough to be put together from pieces? Gives its size.
 */
bool lower_has_places(const struct region *region, int axis, int64_t *dim);
/* x with `part` at the places; NULL without a failure: they are no constants. */
struct ir_value *lower_write_pieces(struct writer *w, struct ir_value *x, struct ir_value *part,
                                    int axis);

/* ---- Spans (lower_span.c) -------------------------------------------------------------------- */

/* The span that alone cuts the axis of a box, or NULL; is that so of all spans of the rule? */
static inline const struct rule_step *lower_span_of(const struct writer *w, int axis)
{
    const struct rule_step *step = w->dynamic[axis];
    return step && step->kind == RULE_SPAN ? step : NULL;
}
bool lower_spans_cut_alone(const struct writer *w);
/* x with `part` at the axis's span, by an operator that fails where it is not all there. NULL
 * without a failure: there is none. */
struct ir_value *lower_write_span(struct writer *w, struct ir_value *x, struct ir_value *part,
                                  int axis);

/* ---- Places that a run tells (lower_dynamic.c) ----------------------------------------------- */

/* Sets w->dynamic. */
void lower_find_dynamic(struct writer *w);
/* Is there a step that cuts the axis at [start, end), which needs no counting from the end? */
bool lower_is_dynamic(struct writer *w, int axis);
/* [start, end) as lists of one element. */
void lower_dynamic_bounds(struct writer *w, struct ir_value *x, int axis, struct ir_value **start,
                          struct ir_value **end);
const struct dim *lower_param_dim(struct writer *w, const struct rule_param *param);

#endif
