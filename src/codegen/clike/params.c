/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to know of a kernel's text without it: its form, and its parameters. */
#include <inttypes.h>

#include "codegen/clike/printer.h"
#include "gir/form.h"

/* ---- Forms ----------------------------------------------------------------------------------- */

enum clike_form clike_form(const struct gir_kernel *kernel)
{
    enum clike_form form = kernel->columns ? CLIKE_COLUMNS : CLIKE_ELEMENTS;
    if (kernel->grid && kernel->form == GIR_FORM_ROWS_ACROSS)
        return CLIKE_TILES;
    for (uint32_t k = 0; k < kernel->n_args; k++)
        if (kernel->whole_rows && gir_args(kernel)[k].is_result &&
            gir_args(kernel)[k].moves == GIR_STAYS)
            form = CLIKE_ROWS;
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        if (kernel->whole_rows && gir_codes(kernel)[i].op == GIR_REDUCE)
            form = CLIKE_ROWS;
        else if (kernel->grid && gir_is_turned(&gir_codes(kernel)[i]))
            form = CLIKE_TURNED;
    return form;
}

bool clike_has_block(const struct gir_kernel *kernel, enum clike_dialect dialect)
{
    return dialect == CLIKE_CUDA && kernel->grid && kernel->form == GIR_FORM_ROW_OF_BLOCK;
}

const char *clike_refuses(const struct gir_kernel *kernel)
{
    if (kernel->checks)
        return "which element is the first wrong one, threads do not tell";
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        switch ((enum gir_op)gir_codes(kernel)[i].op) {
        case GIR_LOAD:
        case GIR_CONSTANT:
        case GIR_CONVERT:
        case GIR_SCALAR:
        case GIR_STORE:
        case GIR_REDUCE:
        case GIR_LENGTH:
        case GIR_LOOKUP:
        case GIR_POSITION:
        case GIR_STATE:
        case GIR_NEXT:
        case GIR_LAST:
        case GIR_NUMBER:
        case GIR_ROW:
        case GIR_TRIP:
        case GIR_STORE_AT:
        case GIR_CHECK:
            break;
        default:
            return "a step of the kernel has no form in C";
        }
    return NULL;
}

dtype_mask clike_types(const struct gir_kernel *kernel)
{
    dtype_mask types = 0;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        if (code->op != GIR_SCALAR && code->op != GIR_REDUCE)
            continue;
        if (code->scalar != SCALAR_SEL)
            types |= DTYPE_BIT(gir_codes(kernel)[code->operands[0]].type);
    }
    return types;
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static bool checks(const struct gir_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        if (gir_codes(kernel)[i].op == GIR_CHECK)
            return true;
    return false;
}

static uint32_t params_of_grid(const struct gir_kernel *kernel, struct clike_param *params)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < kernel->n_args; k++) {
        params[n++] = (struct clike_param){CLIKE_MEMORY, k};
        params[n++] = (struct clike_param){CLIKE_COUNT, k};
    }
    if (checks(kernel))
        params[n++] = (struct clike_param){CLIKE_STATUS, 0};
    for (uint32_t k = 0; k < kernel->n_numbers; k++)
        params[n++] = (struct clike_param){CLIKE_NUMBER, k};
    return n;
}

static uint32_t params_of_args(const struct gir_kernel *kernel, struct clike_param *params)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < kernel->n_args; k++) {
        const struct gir_arg *arg = &gir_args(kernel)[k];
        params[n++] = (struct clike_param){CLIKE_MEMORY, k};
        if (!arg->per_column)
            params[n++] = (struct clike_param){CLIKE_ROW, k};
        if (arg->moves == GIR_STRIDED)
            params[n++] = (struct clike_param){CLIKE_STEP, k};
        if (!arg->is_looked_up)
            continue;
        params[n++] = (struct clike_param){CLIKE_NEXT, k};
        params[n++] = (struct clike_param){CLIKE_COUNT, k};
    }
    return n;
}

uint32_t clike_params(const struct gir_kernel *kernel, struct clike_param *params)
{
    uint32_t n = kernel->grid ? params_of_grid(kernel, params) : params_of_args(kernel, params);
    params[n++] = (struct clike_param){CLIKE_N_ROWS, 0};
    params[n++] = (struct clike_param){CLIKE_LENGTH, 0};
    const enum clike_form form = clike_form(kernel);
    if (form == CLIKE_TURNED) {
        params[n++] = (struct clike_param){CLIKE_ALONG, 0};
        params[n++] = (struct clike_param){CLIKE_INNER, 0};
    }
    if (form == CLIKE_TILES || form == CLIKE_TURNED)
        params[n++] = (struct clike_param){CLIKE_SHIFT, 0};
    return n;
}

/* May the argument lie where another one does that is written, or read? What a stage reads may be
 * what one before has written. */
static bool is_in_place(const struct gir_kernel *kernel, uint32_t arg)
{
    bool found = gir_args(kernel)[arg].may_lie_on != 0 || kernel->stage;
    for (uint32_t k = 0; k < kernel->n_args; k++)
        found |= gir_args(kernel)[k].may_lie_on >> arg & 1;
    return found;
}

const char *clike_name_of_call(enum clike_param_kind kind)
{
    static const char *const names[] = {[CLIKE_N_ROWS] = "rows",
                                        [CLIKE_LENGTH] = "n",
                                        [CLIKE_ALONG] = "along",
                                        [CLIKE_INNER] = "inner",
                                        [CLIKE_SHIFT] = "shift"};
    return names[kind];
}

void clike_print_param(const struct printer *p, const struct clike_param *param)
{
    static const char *const suffix[] = {
        [CLIKE_ROW] = "row", [CLIKE_STEP] = "step", [CLIKE_NEXT] = "next", [CLIKE_COUNT] = "count"};
    if (param->kind == CLIKE_MEMORY)
        text_printf(p->text, "%s%s a%" PRIu32,
                    gir_args(p->kernel)[param->arg].is_result ? "RESULT" : "OPERAND",
                    is_in_place(p->kernel, param->arg) ? "_IN_PLACE" : "", param->arg);
    else if (param->kind >= CLIKE_N_ROWS)
        text_printf(p->text, "%s %s", clike_index_type(p), clike_name_of_call(param->kind));
    else if (param->kind == CLIKE_NUMBER)
        text_printf(p->text, "%s n%" PRIu32, clike_index_type(p), param->arg);
    else if (param->kind == CLIKE_STATUS)
        text_puts(p->text, "RESULT status");
    else
        text_printf(p->text, "%s a%" PRIu32 "_%s", clike_index_type(p), param->arg,
                    suffix[param->kind]);
}

void clike_print_params(const struct printer *p, bool first, clike_print_param_fn print)
{
    struct clike_param params[CLIKE_MAX_PARAMS];
    const uint32_t n = clike_params(p->kernel, params);
    for (uint32_t i = 0; i < n; i++) {
        const bool begins = params[i].kind == CLIKE_MEMORY || params[i].kind == CLIKE_N_ROWS ||
                            params[i].kind == CLIKE_STATUS ||
                            (params[i].kind == CLIKE_NUMBER && params[i].arg == 0);
        if (first || i)
            text_puts(p->text, begins ? ",\n    " : ", ");
        print(p, &params[i]);
    }
}
