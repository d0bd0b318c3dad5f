/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/patches.h"

#include "base/integers.h"
#include "codegen/clike/clike.h"

/* Where there is less, nothing is won by turning it: a patch is then neighbours alone, and threads
 * look up what they would without. */
#define LEAST_SIDE 8
#define LEAST_ELEMENTS CLIKE_PATCH

/* Both sides of a patch, as a power of two, where there is enough. */
#define SQUARE (CLIKE_PATCH_SHIFT / 2)

/* As many as a side has, up to that of a square. */
static int side_of(int64_t n)
{
    int side = 0;
    while (side < SQUARE && (INT64_C(1) << side) < n)
        side++;
    return side;
}

struct grids_patches grids_cut(int64_t n, int64_t along, int64_t inner)
{
    struct grids_patches p = {along, inner, SQUARE, 0};
    if (n == 0)
        return p;
    if (along < LEAST_SIDE || inner < LEAST_SIDE || along * inner < LEAST_ELEMENTS)
        p = (struct grids_patches){1, n, CLIKE_PATCH_SHIFT, 0};
    else if (inner < along)
        p.shift = side_of(inner);
    else
        p.shift = CLIKE_PATCH_SHIFT - side_of(along);
    p.count = n / (p.along * p.inner) * divide_up(p.inner, INT64_C(1) << p.shift) *
              divide_up(p.along, INT64_C(1) << (CLIKE_PATCH_SHIFT - p.shift));
    return p;
}
