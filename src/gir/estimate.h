/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel takes, told before it is run: the bytes that it moves, how often it walks a row,
 * its operations, and from these a time. Sizes are those of types, and ir/cost.h's where a run
 * tells.
 *
 *     struct gir_extent extent;                      how large a call is
 *     gir_extent_of_kernel(fuse, kernel, &space, &sizes, &extent);
 *     struct gir_work work;                          what there is to do
 *     gir_count(kernel, &extent, rates, &work);
 *     struct gir_times times = gir_time(rates, &work);
 *
 * Estimates, of one thread: for comparing, and for telling what a kernel is bound by.
 */
#ifndef TSSA_GIR_ESTIMATE_H
#define TSSA_GIR_ESTIMATE_H

#include "gir/form.h"
#include "gir/fuse.h"
#include "ir/cost.h"

/* ---- Machines -------------------------------------------------------------------------------- */

#define GIR_LEVELS 4

/* Nanoseconds, of one core. */
struct gir_rates {
    const char *name;
    unsigned register_bytes; /* of vectors */
    bool masks;              /* what is left of a row is a vector, too */
    double launch;           /* of a kernel, however little it does */
    double region;           /* of finding which part of an operand or result an argument is */
    double call, row;        /* of calling its code once more, and of a row in that */
    double reduction;        /* the lanes of one being joined */
    double operation;        /* on a vector register: a multiplication */
    double division;         /* and a division, or a root */
    double function;         /* the same of a function that is called, for each multiplication that
                              * it takes as long as */
    double copy;             /* of a tile of a row whose elements become lanes, or were */
    /* Caches, the fastest first, and memory: what fits, a byte, and an element that is loaded or
     * stored by itself. */
    struct gir_level {
        const char *name;
        double bytes, read, written, element;
    } levels[GIR_LEVELS];
};

/* x86-64 with AVX2, and with AVX-512. */
extern const struct gir_rates gir_rates_v3, gir_rates_v4;

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* How large a kernel's space is, as its code is called. Of columns, a row is what lies side by
 * side, and the rows are what is reduced. */
struct gir_extent {
    double length, rows, calls;
    bool is_triangle;              /* rows are those that tell of a column, in the mean */
    double elements[GIR_MAX_ARGS]; /* of arguments, each counted once; 0: of what is no operand */
    double apart[GIR_MAX_ARGS];    /* bytes from one to the next in a row, where these are not side
                                    * by side */
    uint32_t regions;              /* arguments that are a part of an operand or a result */
};

void gir_extent_of_kernel(const struct ir_op *fuse, const struct gir_kernel *kernel,
                          const struct gir_space *space, const struct cost_sizes *sizes,
                          struct gir_extent *extent);
void gir_extent_of_part(const struct ir_op *fuse, const struct gir_part *part,
                        const struct cost_sizes *sizes, struct gir_extent *extent);

/* ---- Work ------------------------------------------------------------------------------------ */

struct gir_work {
    enum gir_form form;
    uint32_t walks;                          /* along a row, or down a column */
    double launches, calls, rows;            /* rows: that are begun, in all walks */
    double read, written;                    /* bytes of arguments, each once */
    double again;                            /* bytes that later walks read once more, or keep */
    double operations, divisions, functions; /* on elements; divisions: roots, too */
    double gathers;                          /* elements */
    double copies;                           /* of tiles of rows that are across */
    double reductions;                       /* lanes that are joined */
    double row_bytes;                        /* of a row, of all arguments that move in it */
    double regions;                          /* as in struct gir_extent */
    double computing; /* nanoseconds of all of these, on vectors, without gathers and copies */
    double gathering; /* and of gathers */
};

/* In the form that the code has for it. */
void gir_count(const struct gir_kernel *kernel, const struct gir_extent *extent,
               const struct gir_rates *rates, struct gir_work *work);
/* In another one. */
void gir_count_as(const struct gir_kernel *kernel, const struct gir_extent *extent,
                  const struct gir_rates *rates, enum gir_form form, struct gir_work *work);
/* Adds what another kernel does, which is run after it, in the same launch. */
void gir_add_work(struct gir_work *work, const struct gir_work *more);

/* ---- Time ------------------------------------------------------------------------------------ */

/* Nanoseconds. */
struct gir_times {
    double all;        /* set-up, and the longer of the other two */
    double set_up;     /* launches, calls, rows */
    double arithmetic; /* operations, gathers, copies */
    double memory;     /* bytes where they are */
    double limit;      /* the same, if nothing were read twice */
    const char *level; /* where the arguments fit */
};

struct gir_times gir_time(const struct gir_rates *rates, const struct gir_work *work);

/* What the fuse op's operators move and take one by one: each a launch, whose results are written
 * and read again. Their arithmetic is taken to be that of the kernel's, `work`. */
struct gir_apart {
    double launches, bytes, all;
};
struct gir_apart gir_time_apart(const struct ir_op *fuse, const struct gir_rates *rates,
                                const struct gir_work *work, const struct cost_sizes *sizes);

/* ---- Text ------------------------------------------------------------------------------------ */

/* One line on what a fuse op has become: forms, what else there was, work, times. False: memory ran
 * out. */
bool gir_explain(const struct ir_op *fuse, const struct gir_fused *built,
                 const struct gir_rates *rates, const struct cost_sizes *sizes, struct text *text);
/* The same of a product of matrices, which is in no kernel: operations, and how many for a byte. */
bool gir_explain_product(const struct ir_op *op, const struct gir_rates *rates,
                         const struct cost_sizes *sizes, struct text *text);

#endif
