/* SPDX-License-Identifier: Apache-2.0 */
/* A layer with its operands and results, for who computes one (recurrent.c) or several (stack.c).
 */
#ifndef TSSA_KERNELS_CPU_RECURRENT_LAYER_H
#define TSSA_KERNELS_CPU_RECURRENT_LAYER_H

#include "device/kernel.h"
#include "kernels/cpu/recurrent/recurrent.h"

/* What a step keeps of a layer. */
struct recurrent_state {
    struct recurrent_attrs attrs;
    struct activation activations[RECURRENT_MAX_DIRECTIONS * RECURRENT_MAX_FUNCTIONS];
    tssa_dtype dtype;      /* that constant weights were transposed for */
    const void *packed[2]; /* W and R as in struct recurrent; NULL: no constants */
};

struct recurrent_layer {
    struct recurrent r;
    const struct recurrent_state *state;
    const struct tensor *operands[RECURRENT_OPERANDS];
    struct tensor *last_h, *last_c; /* NULL: not wanted */
};

/* Everything of a run that is T lies in one buffer; first measured, then placed and filled. */
struct carver {
    char *memory; /* NULL while measuring */
    size_t used, size;
    bool fits;
};
void *carve(struct carver *carver, size_t count);

/* Of an op of its own, or one in a fuse op, whose operands these are: the state. */
tssa_status *recurrent_layer_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                     const struct recurrent_state **state);
/* Reads operands and sizes. `args` are those of the layer's op. */
tssa_status *recurrent_layer_open(const struct kernel_args *args,
                                  const struct recurrent_state *state,
                                  struct recurrent_layer *layer);
tssa_status *recurrent_layer_results(struct kernel_args *args, struct recurrent_layer *layer);
/* Elements of the gates of a step; INT64_MAX: too many. */
int64_t recurrent_step_gates(const struct recurrent *r);
/* As many steps as give about this many elements of gates, but no more than there are. */
#define RECURRENT_CHUNK ((int64_t)1 << 19)
int64_t recurrent_choose_chunk(const struct recurrent *r, int64_t elements);
/* All but r.lengths and r.gates; false: there is too much. */
bool recurrent_layer_carve(struct recurrent_layer *layer, struct carver *carver);
/* Gates of r.chunk steps. */
bool recurrent_carve_gates(struct recurrent *r, struct carver *carver);
/* States from the operands, and into the results. */
void recurrent_layer_begin(struct recurrent_layer *layer);
void recurrent_layer_end(struct recurrent_layer *layer);
/* Steps r.first to r.first + r.chunk. */
void recurrent_chunk(struct recurrent *r, const struct team *team);

#endif
