/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as text; see gir.h. */
#include <inttypes.h>

#include "base/text.h"
#include "gir/gir.h"

static const char *name_of(unsigned dtype)
{
    return dtype_info((tssa_dtype)dtype)->ir_name;
}

static const char *how_of(const struct gir_arg *arg)
{
    if (arg->is_result)
        return arg->moves ? " result" : " result per row";
    return arg->moves ? " moves" : "";
}

static void print_args(const struct gir_kernel *kernel, struct text *text)
{
    const struct gir_arg *args = gir_args(kernel);
    text_puts(text, kernel->whole_rows ? "whole rows, args " : "args ");
    for (uint32_t i = 0; i < kernel->n_args; i++) {
        text_printf(text, "%s%" PRIu32 ": %s%s", i ? ", " : "", i, name_of(args[i].dtype),
                    how_of(&args[i]));
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

bool gir_print(const struct gir_kernel *kernel, struct text *text)
{
    print_args(kernel, text);
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        if (code->op == GIR_STORE) {
            text_printf(text, "store %" PRIu64 " %%%" PRIu32 "\n", code->bits, code->operands[0]);
            continue;
        }
        text_printf(text, "%%%" PRIu32 " = ", i);
        if (code->op == GIR_CONSTANT)
            print_number(code, text);
        else if (code->op == GIR_LOAD)
            text_printf(text, "load %" PRIu64, code->bits);
        else if (code->op == GIR_REDUCE)
            print_reduction(code, text);
        else if (code->op == GIR_LENGTH)
            text_puts(text, "length");
        else
            text_puts(text, code->op == GIR_CONVERT ? "convert" : scalar_info(code->scalar)->name);
        for (uint32_t k = 0; k < gir_n_operands(code); k++)
            text_printf(text, " %%%" PRIu32, code->operands[k]);
        text_printf(text, " : %s\n", name_of(code->type));
    }
    return !text->failed;
}
