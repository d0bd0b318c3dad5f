/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise loops of STRING: Equal, by bytes. */
#include <string.h>

#include "kernels/cpu/elementwise/elementwise.h"

static void equal(const struct ew_uniform *uniform, int64_t n, void *out, int64_t out_step,
                  const void *const *in, const int64_t *in_step)
{
    (void)uniform;
    const tssa_string *x = in[0], *y = in[1];
    uint8_t *o = out;
    for (int64_t i = 0; i < n; i++) {
        const tssa_string a = x[i * in_step[0]], b = y[i * in_step[1]];
        o[i * out_step] = a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
    }
}

const ew_loop ew_loops_str[IR_OP_COUNT] = {[IR_OP_Equal] = equal};
