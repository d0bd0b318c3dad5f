/* SPDX-License-Identifier: Apache-2.0 */
/* The results, for people, on standard output. */
#ifndef TSSA_BENCH_REPORT_H
#define TSSA_BENCH_REPORT_H

#include "tools/bench/result.h"

/* A page per lane with its operators, or a table when there are sizes or numbers of threads to
 * compare; then how the lanes compare, and how loud the machine was. */
void report_print(const struct results *results);

#endif
