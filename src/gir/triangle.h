/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of columns over an upper triangle (Trilu): of a column, rows from its diagonal on are one
 * and the same number. The highest or lowest of a column is then that of its first rows, down to
 * the first row that is such a number: nothing is gained by more of them, and which of two equal
 * ones it is is told by the first.
 *
 *     Trilu(pairs, 1).max(0), pairs of [200, 200]: columns 0 to 31 have told after 32 rows
 */
#ifndef TSSA_GIR_TRIANGLE_H
#define TSSA_GIR_TRIANGLE_H

#include "gir/maps.h"

/*
 * Are all results of the kernel what columns come to, and all reductions the highest or lowest of
 * such columns, along the space's last axis, with one diagonal: are elements from row `column -
 * *diagonal + 1` on that number? Of a kernel that gir_check accepts.
 */
bool gir_find_triangle(const struct gir_kernel *kernel, const struct gir_map *maps,
                       const struct gir_part_space *space, int64_t *diagonal);

/* How many of `rows` rows tell of the columns before number `end`. */
static inline int64_t gir_triangle_rows(int64_t diagonal, int64_t end, int64_t rows)
{
    const int64_t first = end > diagonal ? end - diagonal : 0; /* of the number, in the last one */
    return first < rows ? first + 1 : rows;
}

#endif
