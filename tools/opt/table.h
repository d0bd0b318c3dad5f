/* SPDX-License-Identifier: Apache-2.0 */
/* Operator counts of a model before and after. */
#ifndef TSSA_OPT_TABLE_H
#define TSSA_OPT_TABLE_H

#include <jansson.h>

#include "tssa.h"

/* Survives its model. Zero it before; op_table_free it in any case. */
struct op_table {
    tssa_op_count *rows; /* domain and name are owned */
    size_t count;
    size_t constants, constant_bytes;
};

tssa_status *op_table_read(const tssa_model *model, struct op_table *table);
void op_table_free(struct op_table *table);

/* Columns before, after, change. */
tssa_status *op_table_print(const struct op_table *before, const struct op_table *after);
/* An array of {"operator", "before", "after"}; NULL when memory runs out. */
json_t *op_table_json(const struct op_table *before, const struct op_table *after);

#endif
