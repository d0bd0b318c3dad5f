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

#include "codegen/clike/printer.h"
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
static void print_once(const struct printer *p)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        if (!p->when[i].varies && p->when[i].pass == p->pass && code->op != GIR_REDUCE &&
            code->op != GIR_LAST && !gir_has_effect(code))
            clike_print_step(p, i);
    }
}

/* Those of each element; whether there are any. */
static bool find_steps(struct printer *p)
{
    bool any = false;
    gir_find_needed(p->kernel, p->when, p->pass, p->needed);
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        any |= p->needed[i];
    return any;
}

static void print_steps(const struct printer *p)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        if (p->needed[i])
            clike_print_step(p, i);
}

static bool is_stored_once(const struct printer *p, uint32_t i)
{
    return gir_has_effect(&gir_codes(p->kernel)[i]) && !p->when[i].varies;
}

static void print_stores(const struct printer *p)
{
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        if (is_stored_once(p, i))
            clike_print_step(p, i);
}

static bool stores_once(const struct printer *p)
{
    bool any = false;
    for (uint32_t i = 0; i < p->kernel->n_codes; i++)
        any |= is_stored_once(p, i);
    return any;
}

/* ---- Reductions ------------------------------------------------------------------------------ */

/* The first reduction of the pass from step i on; the number of steps where there is none. */
static uint32_t next_reduction(const struct printer *p, uint32_t i)
{
    while (i < p->kernel->n_codes &&
           (gir_codes(p->kernel)[i].op != GIR_REDUCE || p->when[i].pass != p->pass))
        i++;
    return i;
}

static bool reduces(const struct printer *p)
{
    return next_reduction(p, 0) < p->kernel->n_codes;
}

#define EACH_REDUCTION(p, i)                                                                       \
    for (uint32_t i = next_reduction(p, 0); i < (p)->kernel->n_codes; i = next_reduction(p, i + 1))

/* The function that combines, "f32_ADD". */
static void print_combine(const struct printer *p, const struct gir_code *code)
{
    text_printf(p->text, "%s_%s", dtype_info(code->type)->ir_name, scalar_info(code->scalar)->name);
}

/* ---- Several at a time ----------------------------------------------------------------------- */

/* In multiplications: what a thread has under way together is to take no more. Beyond that
 * registers lack, and compilers take long. */
#define MOST_WORK 400

/*
 * How many elements a thread has under way: it reads all of them before it needs the first, and so
 * waits for memory once. A power of two, which divides RADIX.
 */
static unsigned several(const struct printer *p)
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
    return reduces(p) && p->form != CLIKE_TILES;
}

static void begin_levels(const struct printer *p)
{
    const bool levels = has_levels(p);
    if (levels)
        clike_line(p, "int64_t steps = 0;");
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

static void combine_steps(struct printer *p)
{
    EACH_REDUCTION(p, i)
    {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        clike_indent(p);
        text_printf(p->text, "s%" PRIu32 " = %s", i, p->form == CLIKE_TILES ? "i < n ? " : "");
        print_combine(p, code);
        text_printf(p->text, "(s%" PRIu32 ", v%" PRIu32 ")", i, code->operands[0]);
        if (p->form == CLIKE_TILES)
            text_printf(p->text, " : s%" PRIu32, i);
        text_puts(p->text, ";\n");
    }
}

/* So many more have been combined. */
static void carry_levels(struct printer *p, unsigned steps)
{
    char head[64];
    snprintf(head, sizeof head, "if ((steps += %u) %% RADIX == 0)", steps);
    clike_open_block(p, head);
    EACH_REDUCTION(p, i)
    {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        clike_indent(p);
        text_puts(p->text, "CARRY(");
        print_combine(p, code);
        text_printf(p->text, ", s%" PRIu32 ", l%" PRIu32 ", ", i, i);
        clike_print_number(p, code->type, code->bits);
        text_puts(p->text, ", steps / RADIX);\n");
    }
    clike_close_block(p);
}

static void join_levels(const struct printer *p)
{
    if (!has_levels(p))
        return;
    EACH_REDUCTION(p, i)
    {
        clike_indent(p);
        text_puts(p->text, "JOIN_LEVELS(");
        print_combine(p, &gir_codes(p->kernel)[i]);
        text_printf(p->text, ", s%" PRIu32 ", l%" PRIu32 ", steps);\n", i, i);
    }
}

/* ---- Functions ------------------------------------------------------------------------------- */

static void print_elements(struct printer *p)
{
    clike_open_block(p, "EACH_ROW(r, rows)");
    print_once(p);
    if (find_steps(p)) {
        clike_open_block(p, "EACH_ELEMENT(i, n)");
        print_steps(p);
        clike_close_block(p);
    }
    clike_close_block(p);
}

/* What a thread goes over: along a row, or down a column. */
struct walk {
    const char *number, *from, *step, *end;
};
static const struct walk along_row = {"i", "LANE", "LANE_COUNT", "n"},
                         down_column = {"r", "0", "1", "rows"};

static void open_walk(struct printer *p, const struct walk *walk, const char *from)
{
    char head[128];
    snprintf(head, sizeof head, "UNROLL_BY(1) for (int64_t %s = %s; %s < %s; %s += %s)",
             walk->number, from, walk->number, walk->end, walk->number, walk->step);
    clike_open_block(p, head);
    print_steps(p);
    combine_steps(p);
}

/* `each` at a time, and then the rest, of which there are too few to complete a group of RADIX. */
static void print_several(struct printer *p, const struct walk *walk, unsigned each)
{
    char text[160];
    snprintf(text, sizeof text, "int64_t first = %s;", walk->from);
    clike_line(p, text);
    snprintf(text, sizeof text, "UNROLL_BY(1) for (; first + %u * %s < %s; first += %u * %s)",
             each - 1, walk->step, walk->end, each, walk->step);
    clike_open_block(p, text);
    snprintf(text, sizeof text, "UNROLL for (int64_t next = 0; next < %u; next++)", each);
    clike_open_block(p, text);
    snprintf(text, sizeof text, "const int64_t %s = first + next * %s;", walk->number, walk->step);
    clike_line(p, text);
    print_steps(p);
    combine_steps(p);
    clike_close_block(p);
    if (has_levels(p))
        carry_levels(p, each);
    clike_close_block(p);
    open_walk(p, walk, "first");
    clike_close_block(p);
}

static void print_walk(struct printer *p, const struct walk *walk)
{
    const unsigned each = several(p);
    if (each > 1) {
        print_several(p, walk, each);
        return;
    }
    open_walk(p, walk, walk->from);
    if (has_levels(p))
        carry_levels(p, 1);
    clike_close_block(p);
}

/* What the reductions of the pass have come to. */
static void come_to(const struct printer *p, const char *format)
{
    EACH_REDUCTION(p, i)
    {
        clike_indent(p);
        text_printf(p->text, format, i, i);
    }
}

/* Of a grid: there is one row, of all. */
static void print_threads(struct printer *p)
{
    print_once(p);
    print_stores(p); /* checks, which all threads make */
    find_steps(p);
    if (p->form == CLIKE_TURNED) {
        clike_print_turned(p);
        return;
    }
    if (clike_reads_ahead(p))
        clike_print_ahead(p);
    clike_open_block(p,
                     clike_reads_ahead(p) ? "EACH_THREAD_FROM(first, i, n)" : "EACH_THREAD(i, n)");
    print_steps(p);
    clike_close_block(p);
}

/* A loop over a row or column, and what its reductions, if there are any, have come to. */
static void print_reducing(struct printer *p, const struct walk *walk, const char *comes_to)
{
    begin_levels(p);
    print_walk(p, walk);
    join_levels(p);
    come_to(p, comes_to);
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
    begin_levels(p);
    clike_open_block(p, head);
    clike_line(p, "const int64_t i = TERM_FROM(first, shift);");
    print_steps(p);
    combine_steps(p);
    clike_close_block(p);
    come_to(p, comes_to);
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
        print_combine(p, code);
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
        print_combine(p, code);
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
        print_once(p);
        if (find_steps(p) || reduces(p))
            print_lanes(p);
    }
    print_once(p);
    if (stores_once(p)) {
        clike_open_block(p, tiles ? "FIRST_GROUP(r, rows, shift)" : "FIRST_LANE");
        print_stores(p);
        clike_close_block(p);
    }
    clike_close_block(p);
}

/* ---- Rows of blocks -------------------------------------------------------------------------- */

/*
 * A long row is a block's: its threads compute what is reduced, a stretch of the row at a time, in
 * memory of the block, and the first warp alone combines it, in the order that it has elsewhere. A
 * stretch is a whole group of steps.
 */

static const struct walk along_block = {"i", "BLOCK_THREAD", "BLOCK_THREADS", "n"};

/* What all threads compute of a stretch; those behind the row's end the last element again. */
static void print_stretch(struct printer *p)
{
    clike_open_block(p, "UNROLL for (int next = 0; next < STRETCH / BLOCK_THREADS; next++)");
    clike_line(p, "const int64_t at = BLOCK_THREAD + next * BLOCK_THREADS,");
    clike_line(p, "              i = begin + at < n ? begin + at : n - 1;");
    print_steps(p);
    EACH_REDUCTION(p, i)
    {
        clike_indent(p);
        text_printf(p->text, "b%" PRIu32 "[at] = v%" PRIu32 ";\n", i,
                    gir_codes(p->kernel)[i].operands[0]);
    }
    clike_close_block(p);
}

/* s = combine(s, what is at `number` of the stretch) */
static void combine_stretch(const struct printer *p, const char *number)
{
    EACH_REDUCTION(p, i)
    {
        clike_indent(p);
        text_printf(p->text, "s%" PRIu32 " = ", i);
        print_combine(p, &gir_codes(p->kernel)[i]);
        text_printf(p->text, "(s%" PRIu32 ", b%" PRIu32 "[%s]);\n", i, i, number);
    }
}

static void print_first_warp(struct printer *p)
{
    clike_open_block(p, "if (WARP == 0)");
    clike_line(p, "const int count = n - begin < STRETCH ? (int)(n - begin) : STRETCH;");
    clike_line(p, "int at = LANE;");
    clike_open_block(p, "for (; at + 7 * LANE_COUNT < count; at += 8 * LANE_COUNT)");
    clike_open_block(p, "UNROLL for (int next = 0; next < 8; next++)");
    combine_stretch(p, "at + next * LANE_COUNT");
    clike_close_block(p);
    carry_levels(p, 8);
    clike_close_block(p);
    clike_open_block(p, "for (; at < count; at += LANE_COUNT)");
    combine_stretch(p, "at");
    clike_close_block(p);
    clike_close_block(p);
}

static void print_stretches(struct printer *p)
{
    EACH_REDUCTION(p, i)
    {
        clike_indent(p);
        text_printf(p->text, "SHARED(%s, b%" PRIu32 "[STRETCH]);\n",
                    clike_type_of(gir_codes(p->kernel)[i].type), i);
    }
    begin_levels(p);
    clike_open_block(p, "for (int64_t begin = 0; begin < n; begin += STRETCH)");
    print_stretch(p);
    clike_line(p, "MEET;");
    print_first_warp(p);
    clike_line(p, "MEET;");
    clike_close_block(p);
    join_levels(p);
}

static void print_pass_of_block(struct printer *p)
{
    if (!reduces(p)) {
        clike_line(p, "{");
        p->depth++;
        print_walk(p, &along_block);
        clike_close_block(p);
        return;
    }
    EACH_REDUCTION(p, i)
    {
        clike_indent(p);
        text_printf(p->text, "%s o%" PRIu32 ";\n", clike_type_of(gir_codes(p->kernel)[i].type), i);
    }
    clike_line(p, "{");
    p->depth++;
    print_stretches(p);
    come_to(p, "o%" PRIu32 " = s%" PRIu32 ";\n");
    clike_close_block(p);
    EACH_REDUCTION(p, i)
    {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        clike_indent(p);
        text_printf(p->text, "TELL_BLOCK(%s, v%" PRIu32 ", ", clike_type_of(code->type), i);
        print_combine(p, code);
        text_printf(p->text, ", o%" PRIu32 ");\n", i);
    }
}

static void print_rows_of_blocks(struct printer *p)
{
    clike_open_block(p, "EACH_ROW_OF_BLOCK(r, rows)");
    for (p->pass = 0; p->pass < p->n_passes; p->pass++) {
        print_once(p);
        if (find_steps(p) || reduces(p))
            print_pass_of_block(p);
    }
    print_once(p);
    if (stores_once(p)) {
        clike_open_block(p, "if (BLOCK_THREAD == 0)");
        print_stores(p);
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
    print_once(p);
    find_steps(p);
    declare_states(p);
    clike_open_block(p, "for (int64_t r = 0; r < rows; r++)");
    print_steps(p);
    clike_close_block(p);
    print_last(p);
    p->pass = 1;
    print_once(p);
    print_stores(p);
    clike_close_block(p);
}

static void print_columns(struct printer *p)
{
    clike_open_block(p, p->kernel->grid ? "EACH_THREAD(i, n)" : "EACH_COLUMN(i, n)");
    for (p->pass = 0; p->pass < p->n_passes; p->pass++) {
        print_once(p);
        if (find_steps(p) || reduces(p))
            print_column_pass(p);
    }
    print_once(p);
    print_stores(p);
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
        print_rows_of_blocks(p);
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
    struct printer p = {.text = text, .dialect = dialect};
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
