/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/numbers.h"

#include <stdint.h>
#include <stdlib.h>

tssa_status *numbers_make(size_t count, unsigned seed, float **numbers)
{
    uint32_t state = seed;
    *numbers = calloc(count, sizeof **numbers);
    TRY_ALLOC(*numbers);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        (*numbers)[i] = (float)(state >> 8) / (float)(1 << 23) - 1.0f;
    }
    return NULL;
}

tssa_status *numbers_upload(struct card *card, size_t count, unsigned seed, cuda_address *memory)
{
    float *numbers;
    TRY(numbers_make(count, seed, &numbers));
    tssa_status *status = card_upload(card, numbers, count * sizeof *numbers, memory);
    free(numbers);
    return status;
}
