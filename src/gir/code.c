/* SPDX-License-Identifier: Apache-2.0 */
/* What generators of code ask of a step, too: nothing here needs the rest of the library. */
#include "gir/form.h"

bool gir_is_call(const struct gir_code *code)
{
    if (code->op != GIR_SCALAR || !dtype_in(T_F32F64, code->type))
        return false;
    switch ((enum scalar_id)code->scalar) {
#define CALL(name, operands) case SCALAR_##name:
#include "gir/calls.def"
#undef CALL
        return true;
    default:
        return false;
    }
}

uint32_t gir_n_operands(const struct gir_code *code)
{
    static const uint8_t operands[SCALAR_COUNT_OF_IDS] = {
#define SCALAR(name, n, kind, work, meaning) [SCALAR_##name] = (n),
#include "ir/scalar.def"
#undef SCALAR
    };
    if (code->op == GIR_SCALAR)
        return operands[code->scalar];
    if (code->op == GIR_STORE_AT || code->op == GIR_NEXT || code->op == GIR_KEEP)
        return 2;
    return code->op == GIR_STATE || code->op == GIR_LAST || code->op == GIR_CONVERT ||
           code->op == GIR_STORE || code->op == GIR_REDUCE || code->op == GIR_LOOKUP ||
           code->op == GIR_CHECK;
}

bool gir_has_effect(const struct gir_code *code)
{
    return code->op == GIR_STORE || code->op == GIR_STORE_AT || code->op == GIR_CHECK ||
           code->op == GIR_NEXT || code->op == GIR_KEEP;
}

bool gir_iterates(const struct gir_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        if (gir_codes(kernel)[i].op == GIR_STATE)
            return true;
    return false;
}

bool gir_keeps(const struct gir_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->n_args; i++)
        if (gir_args(kernel)[i].is_kept)
            return true;
    return false;
}

/* Is it there at the end of a pass? */
static bool is_end(const struct gir_code *code)
{
    return code->op == GIR_REDUCE || code->op == GIR_LAST;
}

/* The first pass in which a step's operands are all there. */
static struct gir_when operands_of(const struct gir_kernel *kernel, const struct gir_when *when,
                                   const struct gir_code *code)
{
    struct gir_when all = {0};
    for (uint32_t k = 0; k < gir_n_operands(code); k++) {
        const struct gir_when *operand = &when[code->operands[k]];
        const bool ends = is_end(&gir_codes(kernel)[code->operands[k]]);
        const uint16_t pass = (uint16_t)(operand->pass + ends);
        all.varies |= operand->varies;
        all.pass = pass > all.pass ? pass : all.pass;
    }
    return all;
}

void gir_find_needed(const struct gir_kernel *kernel, const struct gir_when *when, uint32_t pass,
                     bool *needed)
{
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        needed[i] = false;
    for (uint32_t i = kernel->n_codes; i-- > 0;) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        const bool here = when[i].pass == pass, kept = when[i].kept_in && when[i].kept_in <= pass;
        if (gir_has_effect(code))
            needed[i] = here && when[i].varies;
        const bool reads = code->op == GIR_REDUCE ? here : needed[i] && !kept;
        for (uint32_t k = 0; reads && k < gir_n_operands(code); k++)
            needed[code->operands[k]] |= when[code->operands[k]].varies;
    }
}

/* Is it an element of a column? Elements lie as far apart as rows do, often so that they drive each
 * other out of the cache. */
static bool lies_apart(const struct gir_kernel *kernel, const struct gir_code *code)
{
    const struct gir_arg *arg = &gir_args(kernel)[gir_arg_of(code)];
    return kernel->columns && !kernel->grid && code->op == GIR_LOAD && !arg->per_column &&
           arg->moves != GIR_STAYS;
}

/* Operations of a step, of which conversions between bytes and floats are two. */
static uint32_t work_of(const struct gir_code *code)
{
    static const uint8_t works[SCALAR_COUNT_OF_IDS] = {
#define SCALAR(name, n, kind, work, meaning) [SCALAR_##name] = (work),
#include "ir/scalar.def"
#undef SCALAR
    };
    return code->op == GIR_SCALAR ? works[code->scalar] : code->op == GIR_CONVERT ? 2 : 0;
}

/* Operations in an element of a row that take longer than to store what they come to, and to load
 * it in another walk. */
#define LONG_WORK 8

/* Marks floats of rows that so many operations lead to, those that several lead through again and
 * again counted as often. */
static void find_worked(const struct gir_kernel *kernel, const struct gir_when *when,
                        bool *takes_long)
{
    uint32_t works[GIR_MAX_CODES];
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        works[i] = when[i].varies ? work_of(code) : 0;
        for (uint32_t k = 0; when[i].varies && k < gir_n_operands(code); k++)
            works[i] += works[code->operands[k]];
        works[i] = works[i] < LONG_WORK ? works[i] : LONG_WORK;
        takes_long[i] |=
            works[i] == LONG_WORK && dtype_in(T_F32F64, code->type) && !gir_has_effect(code);
    }
}

/* Marks functions, and quotients of what these compute (a sigmoid): one of them takes longer than a
 * load, and is kept in the function's place. So is what is loaded of columns. */
static void find_long(const struct gir_kernel *kernel, const struct gir_when *when,
                      bool *takes_long)
{
    bool of_call[GIR_MAX_CODES];
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        const bool divides = code->op == GIR_SCALAR && code->scalar == SCALAR_DIV;
        bool any = false;
        for (uint32_t k = 0; k < gir_n_operands(code); k++)
            any |= of_call[code->operands[k]];
        of_call[i] = when[i].varies && (any || gir_is_call(code));
        takes_long[i] = gir_is_call(code) || lies_apart(kernel, code) ||
                        (of_call[i] && divides && dtype_in(T_F32F64, code->type));
    }
    if (kernel->whole_rows && !kernel->grid)
        find_worked(kernel, when, takes_long);
}

/* What takes long is computed once, in the first pass that needs it. What only such needs as is
 * kept is not needed again: from the end. */
static void find_kept(const struct gir_kernel *kernel, struct gir_when *when, uint32_t n_passes)
{
    bool needed[GIR_MAX_CODES], takes_long[GIR_MAX_CODES];
    uint16_t first[GIR_MAX_CODES] = {0};
    find_long(kernel, when, takes_long);
    for (uint32_t pass = 0; pass < n_passes; pass++) {
        gir_find_needed(kernel, when, pass, needed);
        for (uint32_t i = kernel->n_codes; i-- > 0;) {
            if (!needed[i] || !takes_long[i])
                continue;
            if (first[i]) {
                when[i].kept_in = first[i];
                gir_find_needed(kernel, when, pass, needed);
            } else {
                first[i] = (uint16_t)(pass + 1);
            }
        }
    }
}

size_t gir_kept_bytes(const struct gir_kernel *kernel)
{
    struct gir_when when[GIR_MAX_CODES];
    size_t bytes = 0;
    gir_find_passes(kernel, when);
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        if (when[i].kept_in)
            bytes += gir_width((tssa_dtype)gir_codes(kernel)[i].type);
    return bytes;
}

uint32_t gir_find_passes(const struct gir_kernel *kernel, struct gir_when *when)
{
    const struct gir_arg *args = gir_args(kernel);
    uint32_t n = 1;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        when[i] = operands_of(kernel, when, code);
        if (is_end(code))
            when[i].varies = false;
        else if (code->op == GIR_STATE || code->op == GIR_NEXT || code->op == GIR_KEEP ||
                 code->op == (kernel->columns ? GIR_ROW : GIR_POSITION))
            when[i].varies = true;
        else if (!kernel->grid && (code->op == GIR_LOAD || code->op == GIR_STORE))
            when[i].varies = gir_varies(kernel, &args[gir_arg_of(code)]);
        else if (!kernel->grid && code->op == GIR_LOOKUP) /* as the row's number does, too */
            when[i].varies |= gir_varies(kernel, &args[gir_arg_of(code)]);
        if ((code->op == GIR_REDUCE || (gir_has_effect(code) && when[i].varies)) &&
            n <= when[i].pass)
            n = when[i].pass + 1u;
    }
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        if (code->op == GIR_STORE && when[i].varies && args[gir_arg_of(code)].may_lie_on)
            when[i].pass = (uint16_t)(n - 1);
    }
    if (n > 1)
        find_kept(kernel, when, n);
    return n;
}
