/* SPDX-License-Identifier: Apache-2.0 */
/* One model on its way through tssa-opt. */
#ifndef TSSA_OPT_REWRITE_H
#define TSSA_OPT_REWRITE_H

#include "tools/common/load.h"
#include "tools/common/remarks.h"
#include "tools/opt/arguments.h"
#include "tools/opt/dump.h"
#include "tools/opt/stats.h"
#include "tools/opt/table.h"

struct rewrite {
    struct opt_arguments arguments;
    tssa_context *context;
    struct model_bytes bytes;
    tssa_model *model;    /* is optimized */
    tssa_model *original; /* as it was, for inspection and --check; may be NULL */
    tssa_model *written;  /* the optimized one, as its file says it; may be NULL */
    struct model_bytes written_bytes;
    struct op_table before, after;
    struct remark_list remarks;
    struct stats stats;
    struct dump dump;
    double seconds; /* that optimization took */
};

/* Loads the model, with the shapes and dims that the arguments fix. */
tssa_status *rewrite_load(struct rewrite *rewrite, tssa_functions functions, tssa_model **model);
/* Optimizes rewrite->model; fills the tables, remarks and stats. */
tssa_status *rewrite_optimize(struct rewrite *rewrite);
/* Writes the optimized model to memory and loads it again: rewrite->written. So that it can be run,
 * functions are inlined there, and in rewrite->original. */
tssa_status *rewrite_reload(struct rewrite *rewrite);
tssa_status *rewrite_save(const struct rewrite *rewrite, const char *path);
void rewrite_free(struct rewrite *rewrite);

#endif
