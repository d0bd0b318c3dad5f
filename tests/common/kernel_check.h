/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of fuse ops run with kernels, which a device has compiled, and without: the results have
 * the same bits. Operands are all kinds of numbers, NaN, infinities, -0, denormals and the ends of
 * integers among them.
 */
#ifndef TSSA_TESTS_COMMON_KERNEL_CHECK_H
#define TSSA_TESTS_COMMON_KERNEL_CHECK_H

#include "common/model_run.h"
#include "device/device.h"
#include "ir/ir.h"
#include "runtime/executor.h"

#define KERNEL_MAX_VALUES 16 /* inputs of a graph, and outputs */
#define KERNEL_MAX_RANK 8    /* of them */

struct kernel_program {
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
    struct value outputs[KERNEL_MAX_VALUES];
    uint32_t n_outputs;
};

/* Inferred and verified; the test fails, with the text, where it cannot be. */
struct ir_graph *kernel_parse(const char *text);
/* Takes the graph. */
void kernel_program_open(struct kernel_program *program, struct ir_graph *graph,
                         struct device_context *device);
void kernel_program_close(struct kernel_program *program);
/* Fails the test, with the text, where an element is not the same. */
void kernel_compare(const struct tensor *a, const struct tensor *b, const char *text,
                    uint32_t output);
/* Runs the session with the model's inputs; fails the test, with the name, where an output is not
 * the model's own, which has been run. */
void kernel_compare_run(tssa_session *session, const struct model_run *run, const char *name);

/* Random programs of common/random_fuse.h and its kin. */
enum kernel_kind {
    KERNEL_FUSE,
    KERNEL_MAPS,
    KERNEL_ROWS,
    KERNEL_COLUMNS,
    KERNEL_PLANES,
    KERNEL_LOOPS,
    KERNEL_KEEPS,
    KERNEL_SCANS,
    KERNEL_RANGES,
    KERNEL_KINDS
};

/* To be freed. */
char *kernel_text(enum kernel_kind kind, uint64_t seed);
/*
 * Runs it twice, with operands of several shapes and numbers: by kernels that the context compiles,
 * and by the interpreter. Where one run errs, the other does. Whether it was compiled. Where
 * TSSA_SEED asks for one program it is printed.
 */
bool kernel_check(enum kernel_kind kind, uint64_t seed, struct device_context *device);
/* The same of a text, with operands of that kind; sizes are named A to H. */
bool kernel_check_text(enum kernel_kind kind, const char *text, uint64_t seed,
                       struct device_context *device);

/* How often there is what, in programs and in what they are run with. */
struct kernel_seen {
    unsigned long programs, dtypes[TSSA_DTYPE_COUNT], ranks[KERNEL_MAX_RANK + 1]; /* of operands */
    unsigned long ops[IR_OP_COUNT];
    unsigned long broadcast, ones, empty; /* operands that are so */
    unsigned long backward, computed;     /* slices */
    /* ops that walk columns, look for a place in them, or compute elements of what they come to */
    unsigned long column_walks, column_places, column_elements;
    unsigned long nan, infinite, minus_zero, denormal; /* elements */
};

/* Adds what kernel_check would run. */
void kernel_see(enum kernel_kind kind, uint64_t seed, struct kernel_seen *seen);

#endif
