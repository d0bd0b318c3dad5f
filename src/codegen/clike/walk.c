/* SPDX-License-Identifier: Apache-2.0 */
/* What the forms of kernels have in common; see walk.h. */
#include "codegen/clike/walk.h"

#include <inttypes.h>
#include <stdio.h>

#include "gir/form.h"

/* ---- Blocks ---------------------------------------------------------------------------------- */

void clike_line(const struct printer *p, const char *text)
{
    clike_indent(p);
    text_puts(p->text, text);
    text_putc(p->text, '\n');
}

void clike_open_block(struct printer *p, const char *head)
{
    clike_line(p, head);
    clike_line(p, "{");
    p->depth++;
}

void clike_close_block(struct printer *p)
{
    p->depth--;
    clike_line(p, "}");
}

/* Steps that are once for the row, or the column, and wait for what is before the pass. */
void clike_print_once(const struct printer *p)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        if (!p->when[i].varies && p->when[i].pass == p->pass && code->op != GIR_REDUCE &&
            code->op != GIR_LAST && !gir_has_effect(code))
            clike_print_step(p, i);
    }
}

/* Those of each element; whether there are any. */
bool clike_find_steps(struct printer *p)
{
    bool any = false;
    gir_find_needed(p->kernel, p->when, p->pass, p->needed);
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        any |= p->needed[i];
    return any;
}

void clike_print_steps(const struct printer *p)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        if (p->needed[i])
            clike_print_step(p, i);
}

static bool is_stored_once(const struct printer *p, uint32_t i)
{
    return gir_has_effect(&gir_codes(p->kernel)[i]) && !p->when[i].varies;
}

void clike_print_stores(const struct printer *p)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        if (is_stored_once(p, i))
            clike_print_step(p, i);
}

bool clike_stores_once(const struct printer *p)
{
    bool any = false;
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        any |= is_stored_once(p, i);
    return any;
}

/* ---- Reductions ------------------------------------------------------------------------------ */

/* The first reduction of the pass from step i on; the number of steps where there is none. */
uint32_t clike_next_reduction(const struct printer *p, uint32_t i)
{
    while (i < p->kernel->n_codes &&
           (gir_codes(p->kernel)[i].op != GIR_REDUCE || p->when[i].pass != p->pass))
        i++;
    return i;
}

bool clike_reduces(const struct printer *p)
{
    return clike_next_reduction(p, 0) < p->kernel->n_codes;
}

/* The function that combines, "f32_ADD". */
void clike_print_combine(const struct printer *p, const struct gir_code *code)
{
    text_printf(p->text, "%s_%s", dtype_info(code->type)->ir_name, scalar_info(code->scalar)->name);
}

/* ---- Several at a time ----------------------------------------------------------------------- */

/* In multiplications: what a thread has under way together is to take no more. Beyond that
 * registers lack, and compilers take long. */
#define MOST_WORK 400

unsigned clike_several(const struct printer *p)
{
    const bool is_long = p->kernel->grid && p->kernel->form == GIR_FORM_ROWS_ALONG;
    unsigned work = 0, n = is_long ? 16 : 8;
    for (uint32_t i = 0; i < p->kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        if (p->needed[i])
            work += code->op == GIR_SCALAR ? scalar_info(code->scalar)->work : 1;
    }
    while (n > 1 && n * work > MOST_WORK)
        n /= 2;
    return n;
}

/* ---- Combining ------------------------------------------------------------------------------- */

/* Is the order of what is combined that of ir/reduction.def? */
static bool has_levels(const struct printer *p)
{
    return clike_reduces(p) && p->form != CLIKE_TILES;
}

void clike_begin_levels(const struct printer *p)
{
    const bool levels = has_levels(p);
    if (levels) {
        clike_indent(p);
        text_printf(p->text, "%s steps = 0;\n", clike_index_type(p));
    }
    EACH_REDUCTION(p, i)
    {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        const char *type = clike_type_of(code->type);
        clike_indent(p);
        if (levels)
            text_printf(p->text, "BEGIN_LEVELS(%s, s%" PRIu32 ", l%" PRIu32 ", ", type, i, i);
        else
            text_printf(p->text, "%s s%" PRIu32 " = ", type, i);
        clike_print_number(p, code->type, code->bits);
        text_puts(p->text, levels ? ");\n" : ";\n");
    }
}

void clike_combine_steps(struct printer *p)
{
    EACH_REDUCTION(p, i)
    {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        clike_indent(p);
        text_printf(p->text, "s%" PRIu32 " = %s", i, p->form == CLIKE_TILES ? "i < n ? " : "");
        clike_print_combine(p, code);
        text_printf(p->text, "(s%" PRIu32 ", v%" PRIu32 ")", i, code->operands[0]);
        if (p->form == CLIKE_TILES)
            text_printf(p->text, " : s%" PRIu32, i);
        text_puts(p->text, ";\n");
    }
}

/* So many more have been combined. */
void clike_carry_levels(struct printer *p, unsigned steps)
{
    char head[64];
    snprintf(head, sizeof head, "if ((steps += %u) %% RADIX == 0)", steps);
    clike_open_block(p, head);
    EACH_REDUCTION(p, i)
    {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        clike_indent(p);
        text_puts(p->text, "CARRY(");
        clike_print_combine(p, code);
        text_printf(p->text, ", s%" PRIu32 ", l%" PRIu32 ", ", i, i);
        clike_print_number(p, code->type, code->bits);
        text_puts(p->text, ", steps / RADIX);\n");
    }
    clike_close_block(p);
}

void clike_join_levels(const struct printer *p)
{
    if (!has_levels(p))
        return;
    EACH_REDUCTION(p, i)
    {
        clike_indent(p);
        text_puts(p->text, "JOIN_LEVELS(");
        clike_print_combine(p, &gir_codes(p->kernel)[i]);
        text_printf(p->text, ", s%" PRIu32 ", l%" PRIu32 ", steps);\n", i, i);
    }
}

static void open_walk(struct printer *p, const struct clike_walk *walk, const char *from)
{
    char head[128];
    snprintf(head, sizeof head, "UNROLL_BY(1) for (%s %s = %s; %s < %s; %s += %s)",
             clike_index_type(p), walk->number, from, walk->number, walk->end, walk->number,
             walk->step);
    clike_open_block(p, head);
    clike_print_steps(p);
    clike_combine_steps(p);
}

/* `each` at a time, and then the rest, of which there are too few to complete a group of RADIX. */
static void print_several(struct printer *p, const struct clike_walk *walk, unsigned each)
{
    const char *type = clike_index_type(p);
    char text[160];
    snprintf(text, sizeof text, "%s first = %s;", type, walk->from);
    clike_line(p, text);
    snprintf(text, sizeof text, "UNROLL_BY(1) for (; first + %u * %s < %s; first += %u * %s)",
             each - 1, walk->step, walk->end, each, walk->step);
    clike_open_block(p, text);
    snprintf(text, sizeof text, "UNROLL for (%s next = 0; next < %u; next++)", type, each);
    clike_open_block(p, text);
    snprintf(text, sizeof text, "const %s %s = first + next * %s;", type, walk->number, walk->step);
    clike_line(p, text);
    clike_print_steps(p);
    clike_combine_steps(p);
    clike_close_block(p);
    if (has_levels(p))
        clike_carry_levels(p, each);
    clike_close_block(p);
    open_walk(p, walk, "first");
    clike_close_block(p);
}

void clike_print_walk(struct printer *p, const struct clike_walk *walk)
{
    const unsigned each = clike_several(p);
    if (each > 1) {
        print_several(p, walk, each);
        return;
    }
    open_walk(p, walk, walk->from);
    if (has_levels(p))
        clike_carry_levels(p, 1);
    clike_close_block(p);
}

/* What the reductions of the pass have come to. */
void clike_come_to(const struct printer *p, const char *format)
{
    EACH_REDUCTION(p, i)
    {
        clike_indent(p);
        text_printf(p->text, format, i, i);
    }
}
