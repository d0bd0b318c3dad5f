/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of element.h share: a question under way, and the functions that move it on.
 *
 * A function returns false when there is no answer, or when memory ran out (reader->out_of_memory).
 */
#ifndef TSSA_IR_ELEMENT_READER_H
#define TSSA_IR_ELEMENT_READER_H

#include "ir/element.h"

struct reader {
    struct ir_graph *graph;
    const struct element_space *space;
    int budget;
    bool out_of_memory;
    const struct ir_value *doubt; /* the first value that could not be answered */
    /* Of element_trace: the op that the element is traced to, and where it lies there. */
    bool traces;
    enum ir_op_id id;
    struct ir_value *origin;
    struct element *origin_at;
};

/* The element of `value` at a place: of any value, and of what one kind of op computes. */
typedef bool element_read_fn(struct reader *reader, const struct ir_value *value,
                             const struct element *at, struct element *out);

bool element_read_value(struct reader *reader, struct ir_value *value, const struct element *at,
                        struct element *out);
/* Of a constant that has as many axes as the place. */
bool element_read_table(struct reader *reader, const struct tensor *table, const struct element *at,
                        struct element *out);
/* Of an operand of one element. */
bool element_read_single(struct reader *reader, const struct ir_value *value, uint32_t index,
                         struct element *out);

/* Where an element of the value comes from in operand `index` of its op, which is broadcast; and
 * that element. */
bool element_place(struct reader *reader, const struct ir_value *value, uint32_t index,
                   const struct element *at, struct element *inner);
bool element_read_operand(struct reader *reader, const struct ir_value *value, uint32_t index,
                          const struct element *at, struct element *out);

/* By operator: of the value, which is its first result. */
element_read_fn element_read_scalar, element_read_same, element_read_cast, element_read_range,
    element_read_constant_of_shape, element_read_concat, element_read_split, element_read_tile,
    element_read_reshape, element_read_access;
/* Of an op that only rearranges its first operand, by the `rule` column of the op table. */
element_read_fn element_read_movement;

/* ---- Expressions ----------------------------------------------------------------------------- */

/* Notes that memory ran out when `dim` is NULL. */
bool element_made(struct reader *reader, const struct dim *dim);
bool element_set(struct reader *reader, int64_t number, struct element *out);
bool element_add(struct reader *reader, const struct element *a, const struct element *b,
                 struct element *out);
bool element_scale(struct reader *reader, const struct element *a, const struct dim *by,
                   struct element *out);
/* The dim that the element is everywhere; NULL: it varies, or is known to a run only. */
const struct dim *element_as_dim(const struct element *a);
/* Is it never negative, wherever it is asked for? */
bool element_is_index(struct reader *reader, const struct element *element);
/* Does no element wrap in arithmetic of this type? */
bool element_fits(struct reader *reader, tssa_dtype dtype, const struct element *element);
/* An element of an integer tensor. */
int64_t element_load(const struct tensor *tensor, int64_t at);

#endif
