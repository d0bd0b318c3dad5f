/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes: one file, one public function, one row of passes.def each.
 *
 * Contract. A pass is given a graph that ir_verify accepts and whose values have the types and known
 * elements of ir_infer_graph; it leaves one behind, and says at the top of its file
 *
 *   needs   what must hold before, beyond that
 *   keeps   what it leaves untouched; results' bits always, unless it says so
 *   breaks  what must be run or inferred again afterwards
 *
 * A pass gives every value that it makes a type (ir_infer_op), takes time linear in the size of the
 * graph, and leaves a graph that it does not understand as it is. An error means that memory ran out
 * or that tssa has a bug: a model is never refused by a pass.
 */
#ifndef TSSA_PASSES_PASS_H
#define TSSA_PASSES_PASS_H

#include "ir/ir.h"

struct pass {
    const char *name, *summary;
    tssa_status *(*run)(struct ir_graph *graph);
};

#define PASS(name, summary) tssa_status *pass_##name(struct ir_graph *graph);
#include "passes/passes.def"
#undef PASS

/* All passes, in the order of passes.def; *count is how many. */
const struct pass *pass_table(size_t *count);
/* NULL when there is none. */
const struct pass *pass_find(const char *name);

#endif
