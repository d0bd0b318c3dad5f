/* SPDX-License-Identifier: Apache-2.0 */
/* Which form the code for a part's rows is to have: gir_kernel.form. */
#include "gir/form.h"
#include "gir/grid_maker.h"

/* From here on a warp's lanes read sixteen elements before they need the first. A row of another
 * length would have up to fifteen left, of which each is waited for. */
#define LONG_ROW 2048
/* Up to here, a row for each block is no more than a card has at a time: what is combined in order
 * by one warp of a block is what takes longest there. Beyond, on an H200, an argmax of 4096 such
 * rows took 65 us, and 28 with a warp for each. */
#define FEW_ROWS 256

/* What a block wants for what it reduces. */
static size_t count_stretches(const struct grid_maker *m)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < m->maker.n; i++)
        if (m->maker.codes[i].op == GIR_REDUCE)
            bytes += GIR_FORM_STRETCH * dtype_info((tssa_dtype)m->maker.codes[i].type)->size;
    return bytes;
}

/* Of long ones. */
static bool has_few_rows(struct grid_maker *m)
{
    const struct gir_grid_part *part = m->part;
    const struct dim *rows = grid_count(m, part->dims, part->rank - part->row);
    const size_t bytes = count_stretches(m);
    if (!rows || rows->high > FEW_ROWS || bytes == 0 || m->of_block + bytes > GRID_MOST_OF_BLOCK)
        return false;
    m->of_block += bytes;
    return true;
}

uint32_t grid_find_form(struct grid_maker *m)
{
    const struct gir_grid_part *part = m->part;
    if (grid_is_across(m))
        return GIR_FORM_ROWS_ACROSS;
    if (part->row == 0 || part->sums || m->n_cuts)
        return 0;
    const struct dim *length = grid_count(m, part->dims + part->rank - part->row, part->row);
    if (!length || length->low < LONG_ROW)
        return 0;
    return has_few_rows(m) ? GIR_FORM_ROW_OF_BLOCK : GIR_FORM_ROWS_ALONG;
}
