/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the element-wise interpreter (elementwise.c) and its inner loops, which are compiled from
 * the rows of the op table once per element type (elementwise_loops.h, elementwise_TYPE.c).
 */
#ifndef TSSA_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H
#define TSSA_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H

#include "device/kernel.h"

#define EW_MAX_OPERANDS 3

/* What an expression reads that is the same for all elements. */
struct ew_uniform {
    double params[EW_MAX_PARAMS];
    double count;                  /* COUNT */
    bool present[EW_MAX_OPERANDS]; /* for OPT */
    bool last;                     /* for LAST */
};

/*
 * Computes n elements. Steps are in elements; 0 repeats one operand element. `out` may be exactly
 * one of the operands (a fold), never a shifted overlap. Absent operands point to a zero element.
 */
typedef void (*ew_loop)(const struct ew_uniform *uniform, int64_t n, void *out, int64_t out_step,
                        const void *const *in, const int64_t *in_step);

/* One table per native element type, indexed by ir_op_id; NULL where the row excludes the type. */
#define EW_LOOPS(type) extern const ew_loop ew_loops_##type[IR_OP_COUNT]
EW_LOOPS(f32);
EW_LOOPS(f64);
EW_LOOPS(i8);
EW_LOOPS(i16);
EW_LOOPS(i32);
EW_LOOPS(i64);
EW_LOOPS(u8);
EW_LOOPS(u16);
EW_LOOPS(u32);
EW_LOOPS(u64);
EW_LOOPS(bool);
EW_LOOPS(str);
#undef EW_LOOPS

/* Loops that select between two elements, by the element's size: 1, 2, 4, 8 or 16 bytes. */
ew_loop ew_where_loop(size_t element_size);

/* The loop of Pow over FLOAT or DOUBLE with this exponent, which does not read operand 1: the same
 * bits as the row's loop, in less time. NULL for other types and where there is none. */
ew_loop ew_power_loop(tssa_dtype dtype, double exponent);

#endif
