/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of elements of which lookups are turned (gir/gir.h). What threads that are side by side
 * would look up lies apart, so they look up what lies side by side, for others, and share it:
 *
 *     each patch of a block
 *         each element, those along the turned axes side by side
 *             steps of turned lookups, which are stored in memory of the block
 *         all threads meet
 *         each element, neighbours side by side
 *             all other steps, which read that memory
 *         all threads meet
 *
 * Steps are the same in both, at other elements, so whatever is computed around a lookup is, too.
 */
#include <inttypes.h>
#include <string.h>

#include "codegen/clike/printer.h"

/* A patch's room: of 32 elements there is that of one more, so that threads which go the one way
 * or the other are in different banks. */
#define ROOM (CLIKE_PATCH + CLIKE_PATCH / 32)

static uint32_t words_of(const struct gir_code *code)
{
    return ROOM * dtype_info((tssa_dtype)code->type)->size / 8;
}

/* Of what is turned before step i. */
static uint32_t words_before(const struct gir_kernel *kernel, uint32_t i)
{
    uint32_t words = 0;
    for (uint32_t k = 0; k < i; k++)
        words += gir_is_turned(&gir_codes(kernel)[k]) ? words_of(&gir_codes(kernel)[k]) : 0;
    return words;
}

uint32_t clike_turned_words(const struct gir_kernel *kernel)
{
    return clike_form(kernel) == CLIKE_TURNED ? words_before(kernel, kernel->n_codes) : 0;
}

/* Adds what steps are computed of, of those of elements; of what is turned nothing, if it is there.
 */
static void add_operands(const struct printer *p, bool is_there, bool *steps)
{
    const struct gir_code *codes = gir_codes(p->kernel);
    for (uint32_t i = p->kernel->n_codes; i-- > 0;)
        for (uint32_t k = 0; steps[i] && k < gir_n_operands(&codes[i]); k++)
            if (!is_there || !gir_is_turned(&codes[i]))
                steps[codes[i].operands[k]] |= p->needed[codes[i].operands[k]];
}

/* What is looked up where threads go along the turned axes. */
static void find_turned(const struct printer *p, bool *reads)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        reads[i] = p->needed[i] && gir_is_turned(&gir_codes(p->kernel)[i]);
}

/* All that is done where they go along neighbours. */
static void find_rest(const struct printer *p, bool *steps)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        steps[i] = p->needed[i] && gir_has_effect(&gir_codes(p->kernel)[i]);
    add_operands(p, true, steps);
}

/* Of more operands than these, lines of memory would come and go. */
#define MOST_READ 4

/* What is looked up there that is not turned, nor at a place that data tells; whether there is any.
 */
static bool find_others(const struct printer *p, const bool *steps, bool *reads)
{
    const struct gir_code *codes = gir_codes(p->kernel);
    bool of_data[GIR_MAX_CODES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->kernel->n_codes; i++) {
        bool operands = false;
        for (uint32_t k = 0; k < gir_n_operands(&codes[i]); k++)
            operands |= of_data[codes[i].operands[k]];
        of_data[i] = operands || codes[i].op == GIR_LOOKUP;
        reads[i] = steps[i] && codes[i].op == GIR_LOOKUP && !gir_is_turned(&codes[i]) && !operands;
        n += reads[i];
    }
    return n > 0 && n <= MOST_READ;
}

/* ---- Reads ----------------------------------------------------------------------------------- */

/* What a thread reads of its next elements, wN, before it needs the first. */
static void declare_reads(const struct printer *p, const bool *reads)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++) {
        if (!reads[i])
            continue;
        clike_indent(p);
        text_printf(p->text, "%s w%" PRIu32 "[PATCH_AHEAD];\n",
                    clike_type_of(gir_codes(p->kernel)[i].type), i);
    }
}

/* For as long, these and what they are computed of are all that is needed. */
static void print_reads(struct printer *p, const char *head, const bool *reads)
{
    bool needed[GIR_MAX_CODES], steps[GIR_MAX_CODES];
    memcpy(needed, p->needed, sizeof needed);
    memcpy(steps, reads, sizeof steps);
    add_operands(p, false, steps);
    memcpy(p->needed, steps, sizeof steps);
    clike_open_block(p, head);
    clike_line(p, "const index_t i = OF_PATCH_OR_FIRST(a, b, inner);");
    for (uint32_t i = 0; i < p->kernel->n_codes; i++) {
        if (steps[i])
            clike_print_step(p, i);
        if (!reads[i])
            continue;
        clike_indent(p);
        text_printf(p->text, "w%" PRIu32 "[next - first] = v%" PRIu32 ";\n", i, i);
    }
    clike_close_block(p);
    memcpy(p->needed, needed, sizeof needed);
}

/* ---- Halves ---------------------------------------------------------------------------------- */

/* Where in memory of the block the element of step i is. */
static void print_place(const struct printer *p, uint32_t i)
{
    text_printf(p->text, "TURNED(%s, %" PRIu32 ", a, b, shift)",
                clike_type_of(gir_codes(p->kernel)[i].type), words_before(p->kernel, i));
}

static void print_shares(const struct printer *p, const bool *reads)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++) {
        if (!reads[i])
            continue;
        clike_indent(p);
        print_place(p, i);
        text_printf(p->text, " = w%" PRIu32 "[next - first];\n", i);
    }
}

static void print_first_half(struct printer *p)
{
    static const char head[] = "EACH_ALONG(next, first, a, b, shift)";
    bool reads[GIR_MAX_CODES];
    find_turned(p, reads);
    clike_open_block(p, "EACH_TIME_OF_PATCH(first)");
    declare_reads(p, reads);
    print_reads(p, head, reads);
    clike_open_block(p, head);
    print_shares(p, reads);
    clike_close_block(p);
    clike_close_block(p);
}

/* A step that is there: turned, or read before. */
static void print_there(const struct printer *p, uint32_t i)
{
    const struct gir_code *code = &gir_codes(p->kernel)[i];
    clike_indent(p);
    text_printf(p->text, "const %s v%" PRIu32 " = ", clike_type_of(code->type), i);
    if (gir_is_turned(code))
        print_place(p, i);
    else
        text_printf(p->text, "w%" PRIu32 "[next - first]", i);
    text_puts(p->text, ";\n");
}

static void print_rest(struct printer *p, const bool *steps, const bool *reads)
{
    clike_open_block(p, "IF_IN_PATCH(a, b)");
    clike_line(p, "const index_t i = OF_PATCH(a, b, inner);");
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        if (steps[i] && (reads[i] || gir_is_turned(&gir_codes(p->kernel)[i])))
            print_there(p, i);
        else if (steps[i])
            clike_print_step(p, i);
    clike_close_block(p);
}

static void print_second_half(struct printer *p)
{
    static const char head[] = "EACH_INNER(next, first, a, b, shift)";
    bool steps[GIR_MAX_CODES], reads[GIR_MAX_CODES];
    find_rest(p, steps);
    const bool ahead = find_others(p, steps, reads);
    if (!ahead)
        memset(reads, 0, sizeof reads);
    clike_open_block(p, "EACH_TIME_OF_PATCH(first)");
    declare_reads(p, reads);
    if (ahead)
        print_reads(p, head, reads);
    memcpy(p->needed, steps, sizeof steps); /* nothing is printed behind it */
    clike_open_block(p, head);
    print_rest(p, steps, reads);
    clike_close_block(p);
    clike_close_block(p);
}

void clike_print_turned(struct printer *p)
{
    clike_line(p, "BEGIN_PATCHES(n, along, inner, shift);");
    clike_open_block(p, "EACH_PATCH(patch)");
    clike_line(p, "BEGIN_PATCH(patch, along, inner, shift);");
    print_first_half(p);
    clike_line(p, "MEET;");
    print_second_half(p);
    clike_close_block(p);
}
