/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up operands: the same in every run. */
#ifndef TSSA_CUDA_PROBE_NUMBERS_H
#define TSSA_CUDA_PROBE_NUMBERS_H

#include "bench/cuda_probe/card.h"

/* `count` numbers in [-1, 1), in memory of malloc; and the same on the card. */
tssa_status *numbers_make(size_t count, unsigned seed, float **numbers);
tssa_status *numbers_upload(struct card *card, size_t count, unsigned seed, cuda_address *memory);

#endif
