/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel's arguments walk along the axes of its space: what fused.c and mapped.c find out,
 * and run alike. */
#ifndef TSSA_DEVICE_CPU_WALK_H
#define TSSA_DEVICE_CPU_WALK_H

#include "device/cpu/compile.h"

/* Below this many elements per thread, starting threads costs more than it brings. */
#define WALK_GRAIN 16384

/* Slices of so many elements that threads share where each is told something of its own; and where
 * one begins. */
#define WALK_MOST_SLICES 16
int64_t walk_slices(const struct team *team, int64_t count);
int64_t walk_slice_begin(int64_t count, int64_t n, int64_t slice);

enum walk_kind { WALK_ELEMENTS, WALK_WHOLE_ROWS, WALK_COLUMNS };

/* Axes innermost first: a row's elements, the rows of a call, and loops around calls. */
struct walk {
    const struct cpu_code *code;
    uint32_t n_args;
    int n_axes;
    int64_t sizes[TSSA_MAX_RANK]; /* of axes */
    int64_t steps[TSSA_MAX_RANK]
                 [GIR_MAX_ARGS]; /* in bytes; of axis 0, from an element to the next one */
    /* To the code: steps of axis 1, those of axis 0, and of what is looked up in, from a row to the
     * next and how many. */
    int64_t given[4 * GIR_MAX_ARGS];
    int64_t reduced; /* rows of a column, in kernels of such; who has found out gives their steps */
    bool is_triangle; /* of which the first ones may tell: gir/triangle.h */
    int64_t diagonal;
    char *data[GIR_MAX_ARGS];
};

/* A call that was set up: of `data`, the walk's. */
struct walk_call {
    struct kernel_call call;
    struct walk walk;
    int64_t count; /* elements, columns, or whole rows */
};

/* The error of an operand of another shape or type than the kernel was made for. */
tssa_status *walk_does_not_fit(uint32_t index, const struct tensor *tensor);
/* When the axes are known: there are two at least, of one element where there are none. */
void walk_finish(struct walk *walk);
/* For team_for: elements [begin, end) of all: a part of a row after the other, or as many rows as
 * there are before the next axis turns. */
void walk_run(void *walk, int64_t begin, int64_t end);
/* The same of a kernel that checks, which tells as a call of the code does (codegen_run), elements
 * counted from the walk's first one; `told` is NULL of others. */
void walk_run_checked(const struct walk *walk, int64_t begin, int64_t end, int64_t *told);
/* The same of columns [begin, end), all rows of each; and with memory for what their code keeps,
 * of walk_kept_bytes(), for parts_for. */
void walk_run_columns(void *walk, int64_t begin, int64_t end);
void walk_run_columns_in(void *walk, void *scratch, int64_t begin, int64_t end);
/* What columns' code keeps. False: more than there can be. */
bool walk_kept_bytes(const struct walk *walk, size_t *bytes);
/* Is it so little that walk_run_columns has memory for it? */
bool walk_keeps_little(const struct walk *walk);

/*
 * Makes the call, which has been filled but for its first member, one that can be made. False: not
 * of whole rows which are more than one call of the code, or keep more than a few KiB of one.
 */
bool walk_set_up(struct walk_call *call, const struct team *team, enum walk_kind kind);
/* Of a fuse op with parts: kernel.set_up. */
bool cpu_set_up_mapped(struct kernel_args *args, const struct device_fused *fused,
                       const bool *known, struct walk_call *call);

#endif
