/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of a grid's kernel, several of a thread at a time: what is looked up for all of them is
 * read first. Compilers move no load across the branches of what is computed of another one (a
 * quotient has them), and so a thread would wait for memory once for each element.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codegen/clike/printer.h"

#define EACH 4
/* Of what takes longer than to read it, nothing is won; more than some operands are no memory's
 * lines any more. In multiplications, and operands. */
#define MOST_WORK 100
#define MOST_READ 4

/* Is it read first: at a place that does not depend on what is read? */
static bool is_first(const struct printer *p, uint32_t i)
{
    return p->needed[i] && gir_codes(p->kernel)[i].op == GIR_LOOKUP;
}

/* Marks what the numbers of what is read first are made of; false: some are made of what is read.
 */
static bool find_numbers(const struct printer *p, bool *numbers)
{
    bool apart = true;
    for (uint32_t i = p->kernel->n_codes; i-- > 0;) {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        numbers[i] &= p->needed[i];
        if (numbers[i] && code->op == GIR_LOOKUP)
            apart = false;
        if (!numbers[i] && !is_first(p, i))
            continue;
        for (uint32_t k = 0; k < gir_n_operands(code); k++)
            numbers[code->operands[k]] = true;
    }
    return apart;
}

bool clike_reads_ahead(const struct printer *p)
{
    bool numbers[GIR_MAX_CODES] = {false}, takes_long = false, checks = false;
    unsigned work = 0, read = 0;
    for (uint32_t i = 0; i < p->kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        const unsigned own = code->op == GIR_SCALAR ? scalar_info(code->scalar)->work : 1;
        work += p->needed[i] ? own : 0;
        read += is_first(p, i);
        checks |= p->needed[i] && code->op == GIR_CHECK;
        takes_long |= p->needed[i] && own > 1 && code->type != TSSA_INT64;
    }
    return !p->kernel->stage && takes_long && !checks && work <= MOST_WORK && read > 0 &&
           read <= MOST_READ && find_numbers(p, numbers);
}

static void open_next(struct printer *p)
{
    char head[64];
    snprintf(head, sizeof head, "UNROLL for (int next = 0; next < %d; next++)", EACH);
    clike_open_block(p, head);
    clike_line(p, "const index_t i = OF_TIME(first, next);");
}

/* What was read before. */
static void print_again(const struct printer *p, uint32_t i)
{
    clike_indent(p);
    text_printf(p->text, "const %s v%" PRIu32 " = w%" PRIu32 "[next];\n",
                clike_type_of(gir_codes(p->kernel)[i].type), i, i);
}

/* What is read first, and its numbers: for as long, they are all that is needed. */
static void print_reads(struct printer *p, const bool *numbers)
{
    bool needed[GIR_MAX_CODES];
    memcpy(needed, p->needed, sizeof needed);
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        p->needed[i] = numbers[i] || is_first(p, i);
    open_next(p);
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        if (p->needed[i])
            clike_print_step(p, i);
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        if (is_first(p, i)) {
            clike_indent(p);
            text_printf(p->text, "w%" PRIu32 "[next] = v%" PRIu32 ";\n", i, i);
        }
    clike_close_block(p);
    memcpy(p->needed, needed, sizeof needed);
}

static void print_rest(struct printer *p)
{
    open_next(p);
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        if (p->needed[i] && !is_first(p, i))
            clike_print_step(p, i);
        else if (p->needed[i])
            print_again(p, i);
    clike_close_block(p);
}

void clike_print_ahead(struct printer *p)
{
    bool numbers[GIR_MAX_CODES] = {false};
    char head[64];
    find_numbers(p, numbers);
    snprintf(head, sizeof head, "EACH_TIME_OF_THREAD(first, n, %d)", EACH);
    clike_open_block(p, head);
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        if (is_first(p, i)) {
            clike_indent(p);
            text_printf(p->text, "%s w%" PRIu32 "[%d];\n",
                        clike_type_of(gir_codes(p->kernel)[i].type), i, EACH);
        }
    print_reads(p, numbers);
    print_rest(p);
    clike_close_block(p);
}
