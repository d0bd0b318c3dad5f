/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TSSA_PASSES_ANALYSIS_OF_DATA_H
#define TSSA_PASSES_ANALYSIS_OF_DATA_H

#include "ir/ir.h"

/*
 * Is the value computed of floats, through ops of the same block, of which some are looked at? Then
 * it is no size, index or condition that is told before anything is computed, whatever its type.
 */
bool is_of_data(const struct ir_value *value);

#endif
