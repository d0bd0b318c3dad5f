/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numpy's .npy files, format versions 1 to 3 (numpy/lib/format.py, NEP 1).
 *
 * numpy has no name for bfloat16, float8 and the types below a byte: they are written as unsigned
 * integers of the same bits (int4 and int2 as int8). Strings are numpy's fixed-width unicode.
 */
#ifndef TSSA_TOOLS_NPY_H
#define TSSA_TOOLS_NPY_H

#include "base/file.h"
#include "base/value.h"

/* A tensor that owns its memory. Column-major arrays are transposed; big-endian, structured and
 * pickled ones are refused. */
tssa_status *npy_read(const tssa_allocator *allocator, const void *data, size_t size,
                      struct value *value);

/* Reads a raw array of unsigned integers or of numpy's void type as what the bits mean: BFLOAT16,
 * say. Does nothing to a tensor that cannot be that, or that needs no help. */
void npy_reinterpret(struct tensor *tensor, tssa_dtype dtype);

tssa_status *npy_write(const struct tensor *tensor, struct file_writer *writer);

#endif
