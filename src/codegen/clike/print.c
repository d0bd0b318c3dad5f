/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function around a kernel's steps, by its form. r is a row, i an element of it:
 *
 *     each row                      each row of a warp               each column i
 *         steps, once                   for each pass:                   for each pass:
 *         each element                      steps, once                      steps, once
 *             steps                         each lane                        each row
 *                                               each element of it               steps; combined
 *                                                   steps; combined          what they come to
 *                                           what the lanes come to       steps, once
 *                                       steps, once
 *
 * Rows of a tile are walked as those of warps are, by threads that are groups in the place of
 * lanes, and what is reduced is a sum alone, in the order of the groups.
 *
 * What is computed in an earlier pass is computed again in those behind: on what this is for,
 * memory costs more. Where rows of columns are iterations there is one pass, and states are
 * variables around it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "codegen/clike/walk.h"

/* ---- Functions ------------------------------------------------------------------------------- */

static void print_elements(struct printer *p)
{
    clike_open_block(p, "EACH_ROW(r, rows)");
    clike_print_once(p);
    if (clike_find_steps(p)) {
        clike_open_block(p, "EACH_ELEMENT(i, n)");
        clike_print_steps(p);
        clike_close_block(p);
    }
    clike_close_block(p);
}

static const struct clike_walk along_row = {"i", "LANE", "LANE_COUNT", "n"},
                               down_column = {"r", "0", "1", "rows"};

/* Of a grid: there is one row, of all. */
static void print_threads(struct printer *p)
{
    clike_print_once(p);
    clike_print_stores(p); /* checks, which all threads make */
    clike_find_steps(p);
    if (p->form == CLIKE_TURNED) {
        clike_print_turned(p);
        return;
    }
    const bool ahead = clike_reads_ahead(p);
    if (ahead)
        clike_print_ahead(p);
    clike_open_block(p, ahead ? "EACH_THREAD_FROM(first, i, n)" : "EACH_THREAD(i, n)");
    clike_print_steps(p);
    clike_close_block(p);
}

/* A loop over a row or column, and what its reductions, if there are any, have come to. */
static void print_reducing(struct printer *p, const struct clike_walk *walk, const char *comes_to)
{
    clike_begin_levels(p);
    clike_print_walk(p, walk);
    clike_join_levels(p);
    clike_come_to(p, comes_to);
}

/* Of each reduction of the pass: how many terms a thread reads at a time. Some tens of reads in all
 * hide what one takes, of more there are no registers. */
static unsigned terms_each(const struct printer *p)
{
    unsigned n = 0;
    EACH_REDUCTION(p, i)
    {
        n++;
    }
    return n <= 4 ? 8 : 4;
}

/* The same of a tile: its terms are shared among groups, and there are no levels. */
static void print_terms(struct printer *p, const char *comes_to)
{
    char head[64];
    snprintf(head, sizeof head, "EACH_TERM(first, n, shift, %u)", terms_each(p));
    clike_begin_levels(p);
    clike_open_block(p, head);
    clike_line(p, "const index_t i = TERM_FROM(first, shift);");
    clike_print_steps(p);
    clike_combine_steps(p);
    clike_close_block(p);
    clike_come_to(p, comes_to);
}

uint32_t clike_reductions_before(const struct printer *p, uint32_t reduction)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < reduction; i++)
        n += gir_codes(p->kernel)[i].op == GIR_REDUCE;
    return n;
}

/* All groups share what they have, and meet once. */
static void print_groups(const struct printer *p)
{
    EACH_REDUCTION(p, i)
    {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        clike_indent(p);
        text_printf(p->text, "SHARE_GROUPS(%s, ", clike_type_of(code->type));
        clike_print_combine(p, code);
        text_printf(p->text, ", o%" PRIu32 ", %" PRIu32 ", shift);\n", i,
                    clike_reductions_before(p, i));
    }
    clike_line(p, "MEET_GROUPS;");
}

/* What lanes, or groups of a tile, have is declared around them, as o0, o1, ... */
static void print_lanes(struct printer *p)
{
    const bool tiles = p->form == CLIKE_TILES;
    EACH_REDUCTION(p, i)
    {
        clike_indent(p);
        text_printf(p->text, "LANES(%s, o%" PRIu32 ");\n",
                    clike_type_of(gir_codes(p->kernel)[i].type), i);
    }
    clike_open_block(p, "EACH_LANE");
    if (tiles)
        print_terms(p, "OF_LANE(o%" PRIu32 ") = s%" PRIu32 ";\n");
    else
        print_reducing(p, &along_row, "OF_LANE(o%" PRIu32 ") = s%" PRIu32 ";\n");
    clike_close_block(p);
    if (tiles)
        print_groups(p);
    EACH_REDUCTION(p, i)
    {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        clike_indent(p);
        text_printf(p->text, "%s(%s, v%" PRIu32 ", ", tiles ? "JOIN_GROUPS" : "REDUCE_LANES",
                    clike_type_of(code->type), i);
        clike_print_combine(p, code);
        text_printf(p->text, ", o%" PRIu32, i);
        if (tiles)
            text_printf(p->text, ", %" PRIu32 ", shift", clike_reductions_before(p, i));
        text_puts(p->text, ");\n");
    }
}

static void print_rows(struct printer *p)
{
    const bool tiles = p->form == CLIKE_TILES;
    clike_open_block(p, tiles             ? "EACH_ROW_OF_TILE(r, rows, shift)"
                        : p->kernel->grid ? "EACH_WARP_OF_PART(r, rows)"
                                          : "EACH_WARP(r, rows)");
    for (p->pass = 0; p->pass < p->n_passes; p->pass++) {
        clike_print_once(p);
        if (clike_find_steps(p) || clike_reduces(p))
            print_lanes(p);
    }
    clike_print_once(p);
    if (clike_stores_once(p)) {
        clike_open_block(p, tiles ? "FIRST_GROUP(r, rows, shift)" : "FIRST_LANE");
        clike_print_stores(p);
        clike_close_block(p);
    }
    clike_close_block(p);
}

/* Sums are of a block of their own, behind which there is what they have come to. */
static void print_column_pass(struct printer *p)
{
    EACH_REDUCTION(p, i)
    {
        clike_indent(p);
        text_printf(p->text, "%s v%" PRIu32 ";\n", clike_type_of(gir_codes(p->kernel)[i].type), i);
    }
    clike_line(p, "{");
    p->depth++;
    print_reducing(p, &down_column, "v%" PRIu32 " = s%" PRIu32 ";\n");
    clike_close_block(p);
}

/* States are variables, and constants in an iteration. */
static void declare_states(const struct printer *p)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        if (code->op != GIR_STATE)
            continue;
        clike_indent(p);
        text_printf(p->text, "%s s%" PRIu32 " = v%" PRIu32 ";\n", clike_type_of(code->type), i,
                    code->operands[0]);
    }
}

static void print_last(const struct printer *p)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        if (gir_codes(p->kernel)[i].op == GIR_LAST)
            clike_print_step(p, i);
}

static void print_iterations(struct printer *p)
{
    clike_open_block(p, p->kernel->grid ? "EACH_THREAD(i, n)" : "EACH_COLUMN(i, n)");
    clike_print_once(p);
    clike_find_steps(p);
    declare_states(p);
    char head[64];
    snprintf(head, sizeof head, "for (%s r = 0; r < rows; r++)", clike_index_type(p));
    clike_open_block(p, head);
    clike_print_steps(p);
    clike_close_block(p);
    print_last(p);
    p->pass = 1;
    clike_print_once(p);
    clike_print_stores(p);
    clike_close_block(p);
}

static void print_columns(struct printer *p)
{
    clike_open_block(p, p->kernel->grid ? "EACH_THREAD(i, n)" : "EACH_COLUMN(i, n)");
    for (p->pass = 0; p->pass < p->n_passes; p->pass++) {
        clike_print_once(p);
        if (clike_find_steps(p) || clike_reduces(p))
            print_column_pass(p);
    }
    clike_print_once(p);
    clike_print_stores(p);
    clike_close_block(p);
}

void clike_print_function(struct printer *p)
{
    clike_line(p, "{");
    p->depth++;
    if (p->form == CLIKE_TURNED || (p->form == CLIKE_ELEMENTS && p->kernel->grid))
        print_threads(p);
    else if (p->form == CLIKE_ELEMENTS)
        print_elements(p);
    else if (clike_has_block(p->kernel, p->dialect))
        clike_print_rows_of_blocks(p);
    else if (p->form == CLIKE_ROWS || p->form == CLIKE_TILES)
        print_rows(p);
    else if (gir_iterates(p->kernel))
        print_iterations(p);
    else
        print_columns(p);
    clike_close_block(p);
}

/* Without reductions: what differs from element to element, numbers of rows that are looked up
 * among it. */
static void find_elements(struct printer *p)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        if (code->op == GIR_LOAD || code->op == GIR_LOOKUP)
            p->when[i].varies = gir_varies(p->kernel, &gir_args(p->kernel)[gir_arg_of(code)]);
        for (uint32_t k = 0; k < gir_n_operands(code) && code->op != GIR_STORE; k++)
            p->when[i].varies |= p->when[code->operands[k]].varies;
    }
}

/* Of a kernel. */
void clike_begin(struct printer *p, const struct gir_kernel *kernel)
{
    p->kernel = kernel;
    p->form = clike_form(kernel);
    p->n_passes = gir_find_passes(kernel, p->when);
    clike_begin_indices(p);
    p->pass = 0;
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        p->when[i].kept_in = 0;
    if (p->form == CLIKE_ELEMENTS && !kernel->grid)
        find_elements(p);
}

/* Where codegen_run has it. */
static void print_given(const struct printer *p, const struct clike_param *param)
{
    if (param->kind == CLIKE_MEMORY)
        text_printf(p->text, "args[%" PRIu32 "]", param->arg);
    else if (param->kind >= CLIKE_N_ROWS)
        text_puts(p->text, clike_name_of_call(param->kind));
    else
        text_printf(p->text, "steps[%" PRIu32 "]",
                    (uint32_t)(param->kind - CLIKE_ROW) * p->kernel->n_args + param->arg);
}

bool clike_print(const struct gir_kernel *kernel, enum clike_dialect dialect, const char *name,
                 struct text *text)
{
    struct printer p = {.text = text, .dialect = dialect, .width = CLIKE_WIDE};
    clike_begin(&p, kernel);
    text_printf(text, "KERNEL %s(\n    ", name);
    clike_print_params(&p, false, clike_print_param);
    text_puts(text, ")\n");
    clike_print_function(&p);
    if (dialect == CLIKE_SHIM) {
        text_printf(text, "LAUNCHER(%s", name);
        clike_print_params(&p, true, print_given);
        text_puts(text, ")\n");
    }
    return !text->failed;
}
