/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ops cost: bytes that live at once, bytes read and written, and operations, told from types
 * alone. Dims are given sizes: the numbers that they are, or, where only a run can tell, numbers
 * that the caller tries. Estimates: bytes are right but for what a runtime does in place or fuses;
 * times are of the order of what interpreters with vectorized kernels need.
 *
 *     struct cost_sizes sizes = {.size = 1024};       every symbol is 1024, within its bounds
 *     double bytes = cost_bytes(value->type, &sizes);
 *
 *     struct cost_ranges ranges;                      when each value of a row of ops lives
 *     TRY(cost_ranges_find(first, end, &ranges));
 *     double peak = cost_peak(&ranges, &sizes);
 *     cost_ranges_free(&ranges);
 */
#ifndef TSSA_IR_COST_H
#define TSSA_IR_COST_H

#include "ir/ir.h"

/* What symbols are: one of them, which may be NULL, and all the others. Their bounds hold in any
 * case. */
struct cost_sizes {
    const struct dim *symbol;
    int64_t symbol_size, size;
};

int64_t cost_symbol(const struct dim *symbol, const struct cost_sizes *sizes);
/* Never negative; very large where the number overflows. */
double cost_dim(const struct dim *dim, const struct cost_sizes *sizes);
/* Of a tensor. Unknown ranks and what is no tensor count as one axis of the symbols' size. */
double cost_elements(const struct ir_type *type, const struct cost_sizes *sizes);
double cost_bytes(const struct ir_type *type, const struct cost_sizes *sizes);

/* The result shares its operand's memory. */
bool cost_is_view(const struct ir_op *op);

/*
 * A read or a write of a region costs what it moves, not what it moves from: operand 0 as a whole.
 */
bool cost_moves_region(const struct ir_op *op);

struct cost_range {
    const struct ir_value *value;
    uint32_t from, to; /* positions, both inclusive */
};

struct cost_ranges {
    const tssa_allocator *allocator;
    /* but for constants and views, which live as long as what they show */
    struct cost_range *ranges;
    size_t count;
    uint32_t n_positions;
    double *change; /* by position: for cost_peak */
};

/*
 * Of the ops from `first` up to `end`, which is of the same block and may be NULL, and of those in
 * their blocks. What is used behind `end` lives until then. cost_ranges_free in every case.
 */
tssa_status *cost_ranges_find(struct ir_op *first, const struct ir_op *end,
                              struct cost_ranges *ranges);
void cost_ranges_free(struct cost_ranges *ranges);
/* The most bytes that live at once. */
double cost_peak(const struct cost_ranges *ranges, const struct cost_sizes *sizes);

struct cost_work {
    double calls;      /* kernels: views and constants are none */
    double bytes;      /* that they read and write */
    double operations; /* on elements; of products, multiplications and additions */
};

/* The same ops run once, Loops in them as often as their trip counts say. */
struct cost_work cost_work(const struct ir_op *first, const struct ir_op *end,
                           const struct cost_sizes *sizes);

/* The same of one element of an element-wise op's result, by its program; 1 of other ops. */
double cost_element_work(const struct ir_op *op);

/* Bytes of an operand, which is there, that a kernel reads: of what an access reads, its region;
 * none of what it reads as another operand or for its type alone. */
double cost_read_bytes(const struct ir_op *op, uint32_t operand, const struct cost_sizes *sizes);
/* What an op with one result takes in a kernel of its own. */
struct cost_work cost_kernel(const struct ir_op *op, const struct cost_sizes *sizes);
/* The same as a session runs it that makes no kernels: nothing is moved for a view, and an assign
 * writes into what it is given where nobody else reads that (`in_place`). */
struct cost_work cost_step(const struct ir_op *op, bool in_place, const struct cost_sizes *sizes);

/* Seconds that a machine takes. Orders of magnitude: for comparing. */
struct cost_machine {
    const char *name;
    double call;            /* of a kernel, however little it does */
    double byte, operation; /* of large tensors, on one thread where there are several */
};

/* A core of a CPU that runs a session. */
extern const struct cost_machine cost_cpu;
/* A GPU of a data centre, with memory of its own. */
extern const struct cost_machine cost_gpu;
/* Bytes and operations take their time at once. */
double cost_seconds(const struct cost_machine *machine, const struct cost_work *work);

#endif
