/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a graph that is one `fuse` op, written piece by piece: operand %xN of the graph is
 * %vN in the block (%sN and %rN where only accesses and assigns read it), and result %vN is the
 * graph's %yN.
 */
#ifndef TSSA_TESTS_FUSE_TEXT_H
#define TSSA_TESTS_FUSE_TEXT_H

#include "base/text.h"
#include "common/op_run.h"
#include "tssa.h"

struct fuse_text {
    struct text ops; /* the block's lines, each with its newline */
    struct text params, operands, inputs, results, names;
    int n_params, n_results;
};

void fuse_text_init(struct fuse_text *t);

/* Another operand; `inner` and `outer` are the letters of its names. */
void fuse_text_param(struct fuse_text *t, char inner, char outer, int number, tssa_dtype dtype,
                     const char *dims);

void fuse_text_result(struct fuse_text *t, int number);

/* An element type, floats more often than others. */
tssa_dtype fuse_text_dtype(struct random *random);

/* Value `made` of values a and b, or of a alone, which are of the type. */
void fuse_text_elementwise(struct fuse_text *t, struct random *random, tssa_dtype dtype, int made,
                           int a, int b);

/* The whole text, the caller's to free(); `t` holds nothing then. */
char *fuse_text_finish(struct fuse_text *t, const char *graph_name);

#endif
