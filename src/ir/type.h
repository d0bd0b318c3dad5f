/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types of values, hash-consed per graph: equal types are the same pointer. What is not known is
 * said: dtype UNDEFINED, rank -1; a dim is never NULL (an unknown one is a fresh symbol). The table
 * owns its types, and they live as long as its arena. Not thread-safe.
 */
#ifndef TSSA_IR_TYPE_H
#define TSSA_IR_TYPE_H

#include "base/status.h"
#include "base/text.h"
#include "ir/dim.h"

enum type_kind {
    TYPE_UNKNOWN,
    TYPE_TENSOR,   /* dtype, rank, dims */
    TYPE_SEQUENCE, /* element */
    TYPE_OPTIONAL, /* element */
    TYPE_MAP,      /* dtype of the keys, element: type of the values */
    TYPE_OPAQUE    /* sparse tensors (element) and custom types (name): carried, never run */
};

struct ir_type {
    enum type_kind kind;
    tssa_dtype dtype;
    int rank; /* -1: unknown */
    const struct dim *const *dims;
    const struct ir_type *element;
    const char *name;            /* interned; of a custom type: its domain, a newline, its name */
    const struct ir_type *older; /* in the list of type_table.newest */
};

struct type_table {
    struct arena *arena;
    struct dim_table *dims;
    struct map types;
    const struct ir_type *unknown;
    const struct ir_type *newest; /* list of the tensor types of a known rank that have axes */
};

bool type_table_init(struct type_table *table, struct arena *arena, struct dim_table *dims);
void type_table_free(struct type_table *table);
/* As dim_table_copy; `dims` is a copy of the dims of `table`. */
bool type_table_copy(struct type_table *copy, const struct type_table *table, struct arena *arena,
                     struct dim_table *dims);

/* Makers return NULL only when memory runs out. */
const struct ir_type *type_tensor(struct type_table *table, tssa_dtype dtype, int rank,
                                  const struct dim *const *dims);
const struct ir_type *type_tensor_const(struct type_table *table, tssa_dtype dtype, int rank,
                                        const int64_t *dims);
const struct ir_type *type_unranked(struct type_table *table, tssa_dtype dtype);
const struct ir_type *type_scalar(struct type_table *table, tssa_dtype dtype);
const struct ir_type *type_sequence(struct type_table *table, const struct ir_type *element);
const struct ir_type *type_optional(struct type_table *table, const struct ir_type *element);
const struct ir_type *type_map(struct type_table *table, tssa_dtype key,
                               const struct ir_type *value);
/* A sparse tensor type has `element`, the tensor that it stands for; a custom type has a name. Both
 * may be NULL: nothing else is known. */
const struct ir_type *type_opaque(struct type_table *table, const struct ir_type *element,
                                  const char *name);

/* The most special type that both are instances of: differing dims become fresh symbols, differing
 * ranks or dtypes become unknown. Used for If results and loop-carried values. */
const struct ir_type *type_join(struct type_table *table, const struct ir_type *a,
                                const struct ir_type *b);
/* What is known from either; where both know and disagree, `a` wins. */
const struct ir_type *type_refine(struct type_table *table, const struct ir_type *a,
                                  const struct ir_type *b);
/* false when no value can be of both types (dtype, rank or constant dims contradict). */
bool type_compatible(const struct ir_type *a, const struct ir_type *b);
/* Are both tensors of known rank, and of the same dims in every run? */
bool type_same_dims(const struct ir_type *a, const struct ir_type *b);
/* Is it a tensor of one element in every run, whatever its rank? */
bool type_has_one_element(const struct ir_type *type);

/* "f32[N, 4]", "i64[]", "f32[*]" (unknown rank), "seq(f32[*])", "optional(...)", "map(i64, ...)",
 * "?". */
void type_print(const struct ir_type *type, struct text *text);

#endif
