/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as text; see gir.h. */
#include <inttypes.h>

#include "base/text.h"
#include "gir/form.h"

static const char *name_of(unsigned dtype)
{
    return dtype_info((tssa_dtype)dtype)->ir_name;
}

static const char *how_of(const struct gir_arg *arg)
{
    static const char *const results[] = {" result per row", " result", " strided result"},
                             *const operands[] = {"", " moves", " strided"};
    if (arg->is_kept)
        return " result kept";
    return (arg->is_result ? results : operands)[arg->moves];
}

/* Of a grid. */
static const char *how_of_whole(const struct gir_arg *arg)
{
    return arg->is_result ? " result" : "";
}

static const char *const forms_of_grids[GIR_FORM_COUNT] = {
    [0] = "",
    [GIR_FORM_ROWS_ALONG] = "long, ",
    [GIR_FORM_ROW_OF_BLOCK] = "long, of blocks, ",
    [GIR_FORM_ROWS_ACROSS] = "side by side, "};

static void print_form(const struct gir_kernel *kernel, struct text *text)
{
    if (kernel->grid)
        text_printf(text, "grid of %" PRIu32 " number%s, ", kernel->n_numbers,
                    kernel->n_numbers == 1 ? "" : "s");
    if (kernel->stage)
        text_printf(text, "stage %" PRIu32 ", ", kernel->stage);
    if (kernel->grid)
        text_puts(text, forms_of_grids[kernel->form]);
    text_puts(text, kernel->whole_rows ? "whole rows, args "
                    : kernel->columns  ? "columns, args "
                                       : "args ");
}

static void print_args(const struct gir_kernel *kernel, struct text *text)
{
    const struct gir_arg *args = gir_args(kernel);
    print_form(kernel, text);
    for (uint32_t i = 0; i < kernel->n_args; i++) {
        text_printf(text, "%s%" PRIu32 ": %s%s", i ? ", " : "", i, name_of(args[i].dtype),
                    kernel->grid ? how_of_whole(&args[i]) : how_of(&args[i]));
        if (args[i].fields > 1)
            text_printf(text, " by %u", (unsigned)args[i].fields);
        text_puts(text, args[i].is_position ? " position" : "");
        text_puts(text, args[i].per_column ? " per column" : "");
        if (args[i].is_looked_up)
            text_puts(text, kernel->grid     ? ""
                            : kernel->checks ? " looked up checked"
                                             : " looked up");
        const char *word = " on ";
        for (uint32_t k = 0; k < kernel->n_args; k++) {
            if (!(args[i].may_lie_on >> k & 1))
                continue;
            text_printf(text, "%s%" PRIu32, word, k);
            word = " or ";
        }
    }
    text_putc(text, '\n');
}

/* "1", or "1.0" of a record. */
static void print_place(const struct gir_kernel *kernel, const struct gir_code *code,
                        struct text *text)
{
    text_printf(text, "%" PRIu32, gir_arg_of(code));
    if (gir_args(kernel)[gir_arg_of(code)].fields > 1)
        text_printf(text, ".%" PRIu32, gir_field_of(code));
}

/* Numbers as numbers, as many digits as tell them apart. */
static void print_number(const struct gir_code *code, struct text *text)
{
    if (dtype_is_float(code->type))
        text_printf(text, "%.17g", dtype_load_double(code->type, &code->bits));
    else if (code->type == TSSA_UINT64)
        text_printf(text, "%" PRIu64, code->bits);
    else
        text_printf(text, "%" PRId64, dtype_load_int64(code->type, &code->bits));
}

static void print_reduction(const struct gir_code *code, struct text *text)
{
    text_printf(text, "reduce %s from ", scalar_info(code->scalar)->name);
    print_number(code, text);
}

static void print_effect(const struct gir_kernel *kernel, const struct gir_code *code,
                         struct text *text)
{
    const bool stores = code->op == GIR_STORE || code->op == GIR_STORE_AT;
    text_puts(text, stores                 ? "store "
                    : code->op == GIR_KEEP ? "keep "
                    : code->op == GIR_NEXT ? "next"
                                           : "check");
    if (stores || code->op == GIR_KEEP)
        print_place(kernel, code, text);
    text_printf(text, " %%%" PRIu32, code->operands[0]);
    if (gir_n_operands(code) == 2)
        text_printf(text, "%s %%%" PRIu32,
                    stores                 ? " at"
                    : code->op == GIR_KEEP ? " where"
                                           : "",
                    code->operands[1]);
    text_puts(text, code->inside ? " inside\n" : "\n");
}

/* What is computed of the operands that follow. */
static void print_what(const struct gir_kernel *kernel, const struct gir_code *code,
                       struct text *text)
{
    switch ((enum gir_op)code->op) {
    case GIR_CONSTANT:
        print_number(code, text);
        break;
    case GIR_LOAD:
    case GIR_LOOKUP:
        text_puts(text, code->op == GIR_LOAD ? "load " : "lookup ");
        print_place(kernel, code, text);
        text_puts(text, kernel->grid && gir_is_turned(code) ? " turned" : "");
        break;
    case GIR_REDUCE:
        print_reduction(code, text);
        break;
    case GIR_LENGTH:
        text_puts(text, "length");
        break;
    case GIR_POSITION:
        text_puts(text, "position");
        break;
    case GIR_STATE:
        text_puts(text, "state");
        break;
    case GIR_LAST:
        text_puts(text, "last");
        break;
    case GIR_NUMBER:
        text_printf(text, "number %" PRIu64, code->bits);
        break;
    case GIR_ROW:
        text_puts(text, "row");
        break;
    case GIR_TRIP:
        text_puts(text, "trip");
        break;
    default:
        text_puts(text, code->op == GIR_CONVERT ? "convert" : scalar_info(code->scalar)->name);
    }
}

bool gir_print(const struct gir_kernel *kernel, struct text *text)
{
    print_args(kernel, text);
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        if (gir_has_effect(code)) {
            print_effect(kernel, code, text);
            continue;
        }
        text_printf(text, "%%%" PRIu32 " = ", i);
        print_what(kernel, code, text);
        for (uint32_t k = 0; k < gir_n_operands(code); k++)
            text_printf(text, " %%%" PRIu32, code->operands[k]);
        text_printf(text, "%s : %s\n", code->inside ? " inside" : "", name_of(code->type));
    }
    return !text->failed;
}
