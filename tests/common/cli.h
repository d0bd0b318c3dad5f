/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of every tool from outside. Include after <cmocka.h>. */
#ifndef TSSA_TESTS_CLI_H
#define TSSA_TESTS_CLI_H

#include "common/process.h"

/* Enough for every call that ends. */
extern const struct process_limits cli_limits;

/* Runs the tool at a path with up to 12 arguments. */
#define CLI_RUN(tool, ...)                                                                         \
    process_run((const char *const[16]){tool, __VA_ARGS__}, NULL, NULL, &cli_limits)

/* Ends well, and `part` is in what it printed. */
void cli_expect_good(struct process_result result, const char *part);
/* Ends with `status` and exactly one line on standard error, which begins with the tool's name and
 * holds `part`. */
void cli_expect_refused(struct process_result result, const char *name, int status,
                        const char *part);
/* Beginnings of a model, and none of it, are refused with status 3. `folder`: a place for them. */
void cli_expect_damaged_refused(const char *tool, const char *name, const char *model,
                                const char *folder);

/* For cmocka: *state is a new folder, which goes with everything in it. */
int cli_make_folder(void **state);
int cli_remove_folder(void **state);

#endif
