/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and strings for the test programs, which end when there is none. */
#ifndef TSSA_TESTS_XMALLOC_H
#define TSSA_TESTS_XMALLOC_H

#include <stddef.h>

void *xcalloc(size_t count, size_t size);
void *xrealloc(void *memory, size_t size);
char *xstrdup(const char *string);
char *xprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
