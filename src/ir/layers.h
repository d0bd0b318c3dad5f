/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrent layers one after the other, as one fuse op (join_layers):
 *
 *     %y = fuse(%x, %w1, %r1, %w2, %r2) {
 *       body(%a, %b, %c, %d, %e) {
 *         %p, _ = LSTM(%a, %b, %c)       [steps, 1, sequences, states]
 *         %q = Squeeze(%p, axis 1)       or what else takes the axis of directions away
 *         %s, _ = LSTM(%q, %d, %e)
 *         return(%s)
 *       }
 *     }
 *
 * Nobody else reads what lies between two layers, so that a kernel need not have all of it at one
 * time, and can compute some steps of a layer while the next one takes those before.
 */
#ifndef TSSA_IR_LAYERS_H
#define TSSA_IR_LAYERS_H

#include "ir/recurrent.h"

#define LAYERS_MOST 16

struct layers {
    uint32_t n;
    const struct ir_op *ops[LAYERS_MOST];
};

/* Is it RNN, GRU or LSTM, of which more could be one op? What may be wrong with it says
 * layers_refuses. */
bool layers_may_have(const struct ir_op *op);
/* Why the layer is in no such op, whatever lies around it; NULL: it may be in one. */
const char *layers_refuses(const struct ir_op *layer);
/* The layer of which this one reads the sequence of states, through an op that keeps their order;
 * NULL: it reads something else. */
const struct ir_op *layers_before(const struct ir_op *layer);
/* Why the layer, and the one before, are not in one op; NULL: they may be. */
const char *layers_refuses_next(const struct ir_op *before, const struct ir_op *layer);

/* False: it is no fuse op, or one of something else. */
bool layers_find(const struct ir_op *op, struct layers *found);

#endif
