/* SPDX-License-Identifier: Apache-2.0 */
/* What value.c, sequence.c and value_map.c share; nobody else includes this. */
#ifndef TSSA_BASE_CONTAINER_H
#define TSSA_BASE_CONTAINER_H

#include "base/value.h"

/* Values nest at most this deep, so that recursion over them is bounded. */
#define VALUE_MAX_DEPTH 16

/* 0 for tensors, 1 for a sequence of tensors, ... */
int value_depth(const struct value *value);
int sequence_depth(const struct sequence *sequence);
int value_map_depth(const struct value_map *map);

void sequence_retain(struct sequence *sequence);
void sequence_release(struct sequence *sequence);
/* The copy is frozen: what leaves a run may be read from several threads. */
tssa_status *sequence_detach(const tssa_allocator *allocator, const struct sequence *from,
                             struct value *to);

void value_map_retain(struct value_map *map);
void value_map_release(struct value_map *map);
tssa_status *value_map_detach(const tssa_allocator *allocator, const struct value_map *from,
                              struct value *to);

#endif
