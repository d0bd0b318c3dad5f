/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutations of a model that leave it a valid protobuf message: numbers at their limits, names
 * exchanged, items of lists dropped, doubled and exchanged. They reach what damaged bytes do not.
 */
#ifndef TSSA_TESTS_PROTO_MUTATE_H
#define TSSA_TESTS_PROTO_MUTATE_H

#include "base/arena.h"
#include "tools/common/random.h"

/* The bytes of a mutated model, in the arena. `data` is a valid ModelProto. */
const unsigned char *proto_mutate(struct arena *arena, struct random *random, const void *data,
                                  size_t data_size, size_t *size);

#endif
