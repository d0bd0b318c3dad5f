/* SPDX-License-Identifier: Apache-2.0 */
/* What passes say, kept until it is known what is still true at the end. */
#ifndef TSSA_TOOLS_REMARKS_H
#define TSSA_TOOLS_REMARKS_H

#include <stdbool.h>

#include "tssa.h"

struct remark {
    tssa_remark_kind kind;
    char *pass, *op, *message;
    size_t times; /* how often it was said */
};

struct remark_list {
    struct remark *remarks;
    size_t count, capacity;
    size_t run;  /* the first remark of the pass that runs now */
    bool failed; /* memory ran out: some are missing */
};

/* For tssa_optimize_options.remark, with the list as its user. */
void remarks_add(void *list, const tssa_remark *remark);
/*
 * After each run of a pass: what it could not do in an earlier run is said again or no longer true.
 */
void remarks_pass_done(struct remark_list *list, const char *pass);
/* Forgets what could not be done with loops and branches that are not there any more, and tells the
 * same thing once: of the copies of a node, say. */
tssa_status *remarks_settle(struct remark_list *list, const tssa_model *model);
/* Those that say what a kernel is and takes, and what became none; all but what a kernel takes. */
void remarks_keep_kernels(struct remark_list *list);
void remarks_drop_kernels(struct remark_list *list);
/* Those of convolutions: how their images lie, and what the library does with them. */
void remarks_keep_layouts(struct remark_list *list);
void remarks_free(struct remark_list *list);

/* What was done, then what was not, in the order of the passes. */
void remarks_print(const struct remark_list *list);
/* What remarks_keep_kernels left. */
void remarks_print_kernels(const struct remark_list *list);
/* One line for each that says why `op` is left as it is. */
void remarks_print_missed(const struct remark_list *list, const char *op, int indent);

#endif
