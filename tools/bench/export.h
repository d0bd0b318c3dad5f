/* SPDX-License-Identifier: Apache-2.0 */
/* The results, for programs: --json and --export-times. Both are written whole or not at all. */
#ifndef TSSA_BENCH_EXPORT_H
#define TSSA_BENCH_EXPORT_H

#include "tools/bench/result.h"

/* Can the files be written? To be asked before minutes are spent. */
tssa_status *export_check(const struct bench_arguments *arguments);

/* docs/tools.md has the schema. */
tssa_status *export_json(const struct results *results, const char *path);
/* A line per run: model, size, concurrency, number, set, milliseconds, pace. */
tssa_status *export_times(const struct results *results, const char *path);

#endif
