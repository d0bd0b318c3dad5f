/* SPDX-License-Identifier: Apache-2.0 */
/* Distances between float32 numbers, counted in steps of the last place. */
#ifndef TSSA_CUDA_PROBE_ULP_H
#define TSSA_CUDA_PROBE_ULP_H

/* How far `value` is from the exact result, in units of the last place of the float32 next to that.
 * Infinity when one is finite or NaN and the other is not. */
double ulp_error(float value, double exact);

#endif
