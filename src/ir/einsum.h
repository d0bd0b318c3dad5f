/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum's equations (ai.onnx 12): which axis of which operand is which label. */
#ifndef TSSA_IR_EINSUM_H
#define TSSA_IR_EINSUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define EINSUM_MAX_OPERANDS 16
/* Axes that an ellipsis stands for are labels of their own. */
#define EINSUM_MAX_LABELS (52 + TSSA_MAX_RANK)

/* One comma-separated term, or the output: letters, and an ellipsis before letter `ellipsis`. */
struct einsum_term {
    int n_letters;
    int ellipsis; /* -1: none */
    char letters[TSSA_MAX_RANK];
};

struct einsum {
    int n_operands;
    struct einsum_term operands[EINSUM_MAX_OPERANDS], out;
};

/* An equation for operands of known ranks: every axis has a label, numbered from 0. */
struct einsum_axes {
    int n_labels, out_rank;
    uint8_t operands[EINSUM_MAX_OPERANDS][TSSA_MAX_RANK], out[TSSA_MAX_RANK];
};

/* Reads an equation; what stands after "->" is made up where it is missing. */
tssa_status *einsum_parse(const char *equation, struct einsum *einsum);
tssa_status *einsum_resolve(const struct einsum *einsum, int n_operands, const int *ranks,
                            struct einsum_axes *axes);

#endif
