/* SPDX-License-Identifier: Apache-2.0 */
/* numpy's .npz archives: a zip file of .npy files. */
#ifndef TSSA_TOOLS_NPZ_H
#define TSSA_TOOLS_NPZ_H

#include "base/value.h"

/*
 * Reads the array `name`; or, when there is only one in the archive, that one. *found is false when
 * there are several and none has the name. Errors start with the path. An array that takes more
 * than `most` bytes unpacked is refused before that: a small archive may hold a large one.
 */
tssa_status *npz_read(const tssa_allocator *allocator, const char *path, const char *name,
                      size_t most, bool *found, struct value *value);

#endif
