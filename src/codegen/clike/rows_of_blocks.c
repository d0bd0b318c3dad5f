/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long row is a block's: its threads compute what is reduced, a stretch of the row at a time, in
 * memory of the block, and the first warp alone combines it, in the order that it has elsewhere. A
 * stretch is a whole group of steps.
 */
#include <inttypes.h>
#include <stdio.h>

#include "codegen/clike/walk.h"
#include "gir/form.h"

/* As text. */
#define TEXT_OF(number) #number
#define NUMBER(number) TEXT_OF(number)
#define STRETCH NUMBER(GIR_FORM_STRETCH)

static const struct clike_walk along_block = {"i", "BLOCK_THREAD", "BLOCK_THREADS", "n"};

/* What all threads compute of a stretch; those behind the row's end the last element again. */
static void print_stretch(struct printer *p)
{
    char head[100];
    snprintf(head, sizeof head,
             "UNROLL_BY(%u) for (int next = 0; next < " STRETCH " / BLOCK_THREADS; next++)",
             clike_several(p));
    clike_open_block(p, head);
    clike_line(p, "const index_t at = BLOCK_THREAD + next * BLOCK_THREADS,");
    clike_line(p, "              i = begin + at < n ? begin + at : n - 1;");
    clike_print_steps(p);
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
        clike_print_combine(p, &gir_codes(p->kernel)[i]);
        text_printf(p->text, "(s%" PRIu32 ", b%" PRIu32 "[%s]);\n", i, i, number);
    }
}

static void print_first_warp(struct printer *p)
{
    clike_open_block(p, "if (WARP == 0)");
    clike_line(p, "const int count = n - begin < " STRETCH " ? (int)(n - begin) : " STRETCH ";");
    clike_line(p, "int at = LANE;");
    clike_open_block(p, "for (; at + 7 * LANE_COUNT < count; at += 8 * LANE_COUNT)");
    clike_open_block(p, "UNROLL for (int next = 0; next < 8; next++)");
    combine_stretch(p, "at + next * LANE_COUNT");
    clike_close_block(p);
    clike_carry_levels(p, 8);
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
        text_printf(p->text, "SHARED(%s, b%" PRIu32 "[" STRETCH "]);\n",
                    clike_type_of(gir_codes(p->kernel)[i].type), i);
    }
    clike_begin_levels(p);
    clike_open_block(p, "for (index_t begin = 0; begin < n; begin += " STRETCH ")");
    print_stretch(p);
    clike_line(p, "MEET;");
    print_first_warp(p);
    clike_line(p, "MEET;");
    clike_close_block(p);
    clike_join_levels(p);
}

static void print_pass_of_block(struct printer *p)
{
    if (!clike_reduces(p)) {
        clike_line(p, "{");
        p->depth++;
        clike_print_walk(p, &along_block);
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
    clike_come_to(p, "o%" PRIu32 " = s%" PRIu32 ";\n");
    clike_close_block(p);
    EACH_REDUCTION(p, i)
    {
        const struct gir_code *code = &gir_codes(p->kernel)[i];
        clike_indent(p);
        text_printf(p->text, "TELL_BLOCK(%s, v%" PRIu32 ", ", clike_type_of(code->type), i);
        clike_print_combine(p, code);
        text_printf(p->text, ", o%" PRIu32 ");\n", i);
    }
}

void clike_print_rows_of_blocks(struct printer *p)
{
    clike_open_block(p, "EACH_ROW_OF_BLOCK(r, rows)");
    for (p->pass = 0; p->pass < p->n_passes; p->pass++) {
        clike_print_once(p);
        if (clike_find_steps(p) || clike_reduces(p))
            print_pass_of_block(p);
    }
    clike_print_once(p);
    if (clike_stores_once(p)) {
        clike_open_block(p, "if (BLOCK_THREAD == 0)");
        clike_print_stores(p);
        clike_close_block(p);
    }
    clike_close_block(p);
}
