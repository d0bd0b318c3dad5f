/* SPDX-License-Identifier: Apache-2.0 */
/* What runs of models ask of a device, as a table in tests/golden, a line per model. */
#ifndef TSSA_TESTS_COMMON_WORK_TABLE_H
#define TSSA_TESTS_COMMON_WORK_TABLE_H

#include <stdbool.h>

#include <tssa.h>

#include "base/text.h"

struct work_table {
    const char *name; /* the file's */
    struct text found;
};

/* `test`: which one writes it. The strings outlive the table. */
void work_table_open(struct work_table *table, const char *name, const char *test);
/* `path`: models/NAME/model.onnx. */
void work_table_add(struct work_table *table, const char *path, const tssa_session_work *work);
/* Prints the lines that differ from the file's, or, with TSSA_UPDATE_GOLDEN in the environment and
 * `good`, writes the file; returns the number of failures. */
int work_table_close(struct work_table *table, bool good);

#endif
