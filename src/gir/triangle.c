/* SPDX-License-Identifier: Apache-2.0 */
#include "gir/triangle.h"

/* A kernel of columns, being looked at. */
struct triangle {
    const struct gir_code *codes;
    const struct gir_map *maps;
    const struct gir_part_space *space;
};

/* Is the step the position along the axis? */
static bool is_position(const struct triangle *t, uint32_t step, int axis)
{
    const struct gir_code *code = &t->codes[step];
    const struct gir_map *map = &t->maps[gir_arg_of(code)];
    return code->op == GIR_LOAD && map->index == GIR_POSITIONS && map->axes == 1u << axis;
}

/* What a constant of the types of positions is. */
static bool is_integer(const struct gir_code *code, int64_t *number)
{
    if (code->op != GIR_CONSTANT || (code->type != TSSA_INT32 && code->type != TSSA_INT64))
        return false;
    *number = code->type == TSSA_INT32 ? (int32_t)(uint32_t)code->bits : (int64_t)code->bits;
    return true;
}

/* The position of the row and a number, which is the diagonal. */
static bool is_first(const struct triangle *t, uint32_t step, int64_t *diagonal)
{
    const struct gir_code *code = &t->codes[step];
    const int axis = t->space->column;
    *diagonal = 0;
    if (is_position(t, step, axis))
        return true;
    if (code->op != GIR_SCALAR || code->scalar != SCALAR_ADD)
        return false;
    for (int i = 0; i < 2; i++)
        if (is_position(t, code->operands[i], axis) &&
            is_integer(&t->codes[code->operands[1 - i]], diagonal))
            return true;
    return false;
}

/* Elements where the column is so far behind the row, and a number elsewhere. */
static bool is_upper(const struct triangle *t, const struct gir_code *code, int64_t *diagonal)
{
    if (code->op != GIR_SCALAR || code->scalar != SCALAR_SEL ||
        t->codes[code->operands[2]].op != GIR_CONSTANT)
        return false;
    const struct gir_code *kept = &t->codes[code->operands[0]];
    return kept->op == GIR_SCALAR && kept->scalar == SCALAR_GE &&
           is_position(t, kept->operands[0], t->space->rank - 1) &&
           is_first(t, kept->operands[1], diagonal);
}

bool gir_find_triangle(const struct gir_kernel *kernel, const struct gir_map *maps,
                       const struct gir_part_space *space, int64_t *diagonal)
{
    const struct triangle t = {gir_codes(kernel), maps, space};
    bool any = false;
    for (uint32_t i = 0; i < kernel->n_args; i++)
        if (gir_args(kernel)[i].is_result && !gir_args(kernel)[i].per_column)
            return false;
    for (uint32_t i = 0; i < kernel->n_codes && kernel->columns; i++) {
        const struct gir_code *code = &t.codes[i];
        int64_t own;
        if (code->op == GIR_LENGTH)
            return false;
        if (code->op != GIR_REDUCE)
            continue;
        if ((code->scalar != SCALAR_MAX && code->scalar != SCALAR_MIN) ||
            !is_upper(&t, &t.codes[code->operands[0]], &own) || (any && own != *diagonal))
            return false;
        *diagonal = own;
        any = true;
    }
    return any;
}
