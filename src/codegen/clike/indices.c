/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices of a grid's kernel: numbers of elements, and steps that such are computed of. What is
 * made of rows, positions, sizes and small constants alone is known to lie between ends that a call
 * tells, so that 32 bits hold it, or do not, before anything runs. What data tells is no index.
 */
#include <inttypes.h>

#include "codegen/clike/printer.h"
#include "gir/grid_reach.h"

static bool fits(int64_t number)
{
    return number >= INT32_MIN && number <= INT32_MAX;
}

/* ---- Which steps ----------------------------------------------------------------------------- */

bool clike_is_by_size(const struct gir_kernel *kernel, const struct gir_code *code)
{
    const struct gir_code *by = &gir_codes(kernel)[code->operands[1]];
    return kernel->grid && code->op == GIR_SCALAR && code->type == TSSA_INT64 &&
           (code->scalar == SCALAR_DIV || code->scalar == SCALAR_FMOD) &&
           (by->op == GIR_NUMBER || (by->op == GIR_CONSTANT && (int64_t)by->bits > 0));
}

static bool is_computed_of(const struct gir_kernel *kernel, const struct gir_code *code,
                           const bool *made)
{
    const uint32_t *x = code->operands;
    switch ((enum scalar_id)code->scalar) {
    case SCALAR_ADD:
    case SCALAR_SUB:
    case SCALAR_MUL:
    case SCALAR_MIN:
    case SCALAR_MAX:
        return made[x[0]] && made[x[1]];
    case SCALAR_DIV:
    case SCALAR_FMOD:
        return made[x[0]] && made[x[1]] && clike_is_by_size(kernel, code);
    case SCALAR_SEL:
        return made[x[1]] && made[x[2]];
    default:
        return false;
    }
}

/* Is the step made of what is no data? */
static bool is_made(const struct gir_kernel *kernel, const struct gir_code *code, const bool *made)
{
    if (code->type != TSSA_INT64)
        return false;
    switch ((enum gir_op)code->op) {
    case GIR_ROW:
    case GIR_POSITION:
    case GIR_NUMBER:
        return true;
    case GIR_CONSTANT:
        return fits((int64_t)code->bits);
    case GIR_SCALAR:
        return is_computed_of(kernel, code, made);
    default:
        return false;
    }
}

bool clike_compares_indices(const struct gir_code *code, const bool *indices)
{
    return code->op == GIR_SCALAR && code->type == TSSA_BOOL &&
           (code->scalar == SCALAR_LT || code->scalar == SCALAR_LE || code->scalar == SCALAR_GT ||
            code->scalar == SCALAR_GE || code->scalar == SCALAR_EQ) &&
           indices[code->operands[0]] && indices[code->operands[1]];
}

/* Marks what the step needs of what is made so, if it is an index, or wants one. */
static void want_operands(const struct gir_code *code, const bool *made, bool is_index,
                          bool *wanted)
{
    const uint32_t n = gir_n_operands(code);
    if (code->op == GIR_LOOKUP)
        wanted[code->operands[0]] = true;
    else if (code->op == GIR_STORE_AT)
        wanted[code->operands[1]] = true;
    for (uint32_t k = 0; k < n && (is_index || clike_compares_indices(code, made)); k++)
        wanted[code->operands[k]] = true;
}

void clike_find_indices(const struct gir_kernel *kernel, bool *indices)
{
    const struct gir_code *codes = gir_codes(kernel);
    bool made[GIR_MAX_CODES];
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        made[i] = kernel->grid && is_made(kernel, &codes[i], made);
        indices[i] = false;
    }
    for (uint32_t i = kernel->n_codes; i-- > 0;) {
        indices[i] &= made[i];
        want_operands(&codes[i], made, indices[i], indices);
    }
}

enum clike_width clike_width_of(const struct gir_kernel *kernel, enum clike_width width)
{
    return clike_form(kernel) == CLIKE_TILES ? CLIKE_WIDE : width;
}

/* ---- Whether 32 bits hold them --------------------------------------------------------------- */

/* What a thread goes on by is less: elements of all threads that a part may have, a few of each. */
#define MOST_STEP (INT64_C(4) * CLIKE_MOST_BLOCKS * 1024)

/* Numbers of so many. */
static struct gir_interval below(int64_t count)
{
    return (struct gir_interval){0, count > 0 ? count - 1 : 0};
}

static bool are_told(const struct gir_kernel *kernel, const struct clike_call *call)
{
    bool told = fits(call->rows) && call->rows <= INT32_MAX - MOST_STEP && fits(call->n) &&
                call->n <= INT32_MAX - MOST_STEP;
    for (uint32_t i = 0; i < kernel->n_args; i++)
        told &= call->counts[i] <= INT32_MAX;
    for (uint32_t i = 0; i < kernel->n_numbers; i++) /* an index that is divided by one asks it */
        told &= call->numbers[i] >= 0 && call->numbers[i] <= INT32_MAX;
    return told;
}

bool clike_is_narrow(const struct gir_kernel *kernel, const struct clike_call *call)
{
    /* No index is computed of an iteration's number. */
    const struct gir_reach_of of = {.rows = below(call->rows),
                                    .positions = below(call->n),
                                    .trips = {INT64_MIN, INT64_MAX},
                                    .numbers = call->numbers};
    struct gir_interval ranges[GIR_MAX_CODES];
    bool indices[GIR_MAX_CODES];
    if (clike_width_of(kernel, CLIKE_NARROW) == CLIKE_WIDE)
        return true;
    if (!are_told(kernel, call))
        return false;
    clike_find_indices(kernel, indices);
    gir_find_ranges(kernel, &of, ranges);
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        if (indices[i] && (!fits(ranges[i].low) || !fits(ranges[i].high)))
            return false;
    return true;
}

/* ---- As text --------------------------------------------------------------------------------- */

/* Is it surely not negative? Sizes are not. */
static bool is_natural(const struct gir_code *code, const bool *natural)
{
    const uint32_t *x = code->operands;
    if (code->op == GIR_CONSTANT)
        return (int64_t)code->bits >= 0;
    if (code->op != GIR_SCALAR)
        return true;
    switch ((enum scalar_id)code->scalar) {
    case SCALAR_SUB:
        return false;
    case SCALAR_DIV:
    case SCALAR_FMOD:
        return natural[x[0]];
    case SCALAR_SEL:
        return natural[x[1]] && natural[x[2]];
    case SCALAR_MAX:
        return natural[x[0]] || natural[x[1]];
    default:
        return natural[x[0]] && natural[x[1]];
    }
}

void clike_begin_indices(struct printer *p)
{
    const struct gir_code *codes = gir_codes(p->kernel);
    if (p->width == CLIKE_NARROW)
        clike_find_indices(p->kernel, p->indices);
    for (uint32_t i = 0; i < p->kernel->n_codes; i++) {
        p->indices[i] &= p->width == CLIKE_NARROW;
        p->natural[i] = p->indices[i] && is_natural(&codes[i], p->natural);
    }
}

static const char *operator_of(enum scalar_id id)
{
    switch (id) {
    case SCALAR_ADD:
        return "+";
    case SCALAR_SUB:
        return "-";
    case SCALAR_MUL:
        return "*";
    case SCALAR_LT:
    case SCALAR_MIN:
        return "<";
    case SCALAR_LE:
        return "<=";
    case SCALAR_GT:
    case SCALAR_MAX:
        return ">";
    case SCALAR_GE:
        return ">=";
    default:
        return "==";
    }
}

void clike_print_of_indices(const struct printer *p, const struct gir_code *code)
{
    const uint32_t *x = code->operands;
    text_printf(p->text, "v%" PRIu32 " %s v%" PRIu32, x[0],
                operator_of((enum scalar_id)code->scalar), x[1]);
    if (code->scalar == SCALAR_MIN || code->scalar == SCALAR_MAX)
        text_printf(p->text, " ? v%" PRIu32 " : v%" PRIu32, x[0], x[1]);
}
