/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An axis of which constant places are written is put together anew from pieces of the base and of
 * what is written.
 */
#ifndef TSSA_PASSES_LOWER_LOWER_ASSEMBLY_H
#define TSSA_PASSES_LOWER_LOWER_ASSEMBLY_H

#include "passes/lower/lower_writer.h"

/* Where the element at a place of an axis comes from: sources[source] at `at`. */
struct assembly_origin {
    uint32_t source;
    int64_t at;
};

/* An axis that is put together anew from sources, the base first. */
struct assembly {
    struct lowering *l;
    int axis;
    int64_t n; /* places */
    struct assembly_origin *origins;
    uint32_t n_sources;
    struct ir_value **sources;
};

/* Of `n` places of x, with room for so many writes; to be freed, also after a failure. */
tssa_status *assembly_init(struct assembly *a, struct lowering *l, struct ir_value *x, int axis,
                           int64_t n, uint32_t n_writes);
void assembly_free(struct assembly *a);
/* `part` goes to constant places. */
void assembly_write(struct assembly *a, const struct region_axis *at, struct ir_value *part);
struct ir_value *assembly_make(struct assembly *a);

#endif
