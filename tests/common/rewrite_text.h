/* SPDX-License-Identifier: Apache-2.0 */
/* For tests in which memory runs out: a program is read, inferred and rewritten, and forgotten. */
#ifndef TSSA_TESTS_REWRITE_TEXT_H
#define TSSA_TESTS_REWRITE_TEXT_H

#include "passes/pipeline.h"

/* `pipeline` may be NULL, as for pipeline_run_passes. */
tssa_status *rewrite_text(const tssa_allocator *allocator, const char *text,
                          const char *const *passes, size_t n_passes,
                          const struct pipeline *pipeline);

#endif
