/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes: one file, one public function, one row of passes.def each.
 *
 * Contract. A pass is given a graph that ir_verify accepts and whose values have the types and
 * known elements of ir_infer_graph; it leaves one behind, and says at the top of its file
 *
 *   needs   what must hold before, beyond that
 *   keeps   what it leaves untouched; results' bits always, unless it says so
 *   breaks  what must be run or inferred again afterwards
 *
 * A pass gives every value that it makes a type (ir_infer_op_lenient), sets pass->changed when it
 * changed anything, takes time linear in the size of the graph, and leaves a graph that it does not
 * understand as it is. An error means that memory ran out or that tssa has a bug: a model is never
 * refused by a pass. What it did for the user, and what it could not do, it says in remarks.
 */
#ifndef TSSA_PASSES_PASS_H
#define TSSA_PASSES_PASS_H

#include "ir/ir.h"

struct pass_context;
struct ir_fusion;

struct pass {
    const char *name, *summary;
    tssa_status *(*run)(struct pass_context *pass);
};

/*
 * Runs one pure op without blocks whose operands are all Constants. results[i] are tensors in the
 * graph's arena; results[0] is NULL when the op cannot be run here (no kernel, it fails, it is no
 * tensor), which is no error.
 */
typedef tssa_status *(*pass_evaluate_fn)(void *user, struct ir_graph *graph, const struct ir_op *op,
                                         struct tensor **results);

/* How loops are computed at once (batch_cost.h). Zeros: as it costs, with the usual budget. For
 * tests. */
struct pass_batching {
    int64_t budget;      /* bytes of temporaries that there may be */
    int64_t block;       /* always in blocks of so many iterations, */
    int64_t block_bytes; /* or of so many bytes, from which the program tells the number itself; */
    int64_t rows; /* and as a loop where it stacks rows that have no fewer elements (versions.h) */
};

/* What a pass is run with. */
struct pass_context {
    struct ir_graph *graph;
    const struct pass *pass;              /* the one that runs: its name signs the remarks */
    const tssa_optimize_options *options; /* may be NULL */
    pass_evaluate_fn evaluate;            /* NULL: nothing can be evaluated */
    void *evaluate_user;
    struct pass_batching batching;
    const struct ir_fusion *fusion; /* NULL: nobody makes kernels */
    bool (*convolves)(void);        /* as in struct pipeline */
    bool changed;                   /* set by a pass that changed the graph */
};

/* What Where can select in every runtime: a set of element types. */
#define PASS_SELECTABLE (T_F32F64 | T_I32I64 | DTYPE_BIT(TSSA_UINT8))

/* Puts a new op before another one, under its node's name, and infers it. NULL: memory ran out. */
tssa_status *pass_insert(struct ir_op *op, struct ir_op *before);
/* Puts a new op in the place of one that is removed: its first result has the other's uses and
 * name. NULL as above. */
tssa_status *pass_replace(struct pass_context *pass, struct ir_op *op, struct ir_op *by);

/*
 * What the passes make is run by a session of this library alone, and need not suit other runtimes.
 */
bool pass_is_for_session(const struct pass_context *pass);
/* An op that a file keeps as it is, where it is: other runtimes fuse it with its neighbours
 * (pinned.c). It is not evaluated, merged, or moved without them. */
bool pass_is_pinned(const struct pass_context *pass, const struct ir_op *op);

/* Constants that passes compute, and second versions of loops, may make a file so many bytes larger
 * in all (ir_graph.folded_growth): what the options say, or else PASS_FILE_GROWTH. */
#define PASS_FILE_GROWTH ((int64_t)64 << 10)
static inline int64_t pass_file_growth(const struct pass_context *pass)
{
    int64_t bytes = pass->options ? pass->options->file_growth : 0;
    return bytes < 0 ? 0 : bytes ? bytes : PASS_FILE_GROWTH;
}

/* One remark about `op`, when somebody listens; printf-like. */
__attribute__((format(printf, 4, 5))) tssa_status *pass_remark(const struct pass_context *pass,
                                                               tssa_remark_kind kind,
                                                               const struct ir_op *op,
                                                               const char *format, ...);

#define PASS(name, summary) tssa_status *pass_##name(struct pass_context *pass);
#include "passes/passes.def"
#undef PASS

/* All passes, in the order of passes.def; *count is how many. */
const struct pass *pass_table(size_t *count);
/* NULL when there is none. */
const struct pass *pass_find(const char *name);

#endif
