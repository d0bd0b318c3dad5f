/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs compute the same, bit by bit, before and after all passes of level 2. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/random_graph.h"
#include "common/rewrite_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t seed = 0;
    memcpy(&seed, data, size < sizeof seed ? size : sizeof seed);
    char *text = random_graph(seed);
    for (int64_t trips = 0; trips < 4; trips += 3)
        rewrite_check(&(const struct rewrite_check){.text = text,
                                                    .lenient = true,
                                                    .size = 1 + (int64_t)(seed % 5),
                                                    .scalar = trips,
                                                    .seed = seed});
    free(text);
    return 0;
}
