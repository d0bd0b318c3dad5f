/* SPDX-License-Identifier: Apache-2.0 */
/* --dump-ir: the graph as text, to standard error or into a folder. */
#ifndef TSSA_OPT_DUMP_H
#define TSSA_OPT_DUMP_H

#include "tools/opt/arguments.h"

struct dump {
    const struct opt_arguments *arguments;
    char *last;          /* the text of the last dump: what changed nothing is not dumped again */
    unsigned number;     /* of the files written so far */
    tssa_status *status; /* the first failure; the user frees it */
};

/* For tssa_optimize_options.dump, with the dump as its user. */
void dump_write(void *dump, const char *pass, const char *text, size_t size);
/* What the options do not ask for is not dumped. */
void dump_before(struct dump *dump, const tssa_model *model);
void dump_result(struct dump *dump, const tssa_model *model);
void dump_free(struct dump *dump);

#endif
