/* SPDX-License-Identifier: Apache-2.0 */
/* Values for people: one line per tensor, tables of boxes. All on standard output. */
#ifndef TSSA_RUN_SUMMARY_H
#define TSSA_RUN_SUMMARY_H

#include "base/value.h"

/* Name, type, shape, range and first elements; sequences element by element. */
void summary_value(const char *name, const struct value *value);

/* A table of dets (K,5), x1 y1 x2 y2 score, and labels (K); one table per image for sequences of
 * them. False when the outputs hold no such pair. */
bool summary_boxes(size_t count, tssa_value *const *outputs);

#endif
