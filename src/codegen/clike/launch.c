/* SPDX-License-Identifier: Apache-2.0 */
/* A launch: a function for each of its parts, and the kernel that calls them, side by side or, of
 * stages, one after the other for each group. */
#include <inttypes.h>

#include "codegen/clike/printer.h"

/* The parameter as the launch has it, with its part's number; its type is that of the part's. */
static void print_param_of_part(const struct printer *p, const struct clike_param *param)
{
    static const char *const suffix[] = {
        [CLIKE_MEMORY] = "", [CLIKE_COUNT] = "_count", [CLIKE_NUMBER] = ""};
    const uint32_t k = p->part;
    if (param->kind >= CLIKE_N_ROWS)
        text_printf(p->text, "p%" PRIu32 "_%s", k, clike_name_of_call(param->kind));
    else if (param->kind == CLIKE_STATUS)
        text_printf(p->text, "p%" PRIu32 "_status", k);
    else
        text_printf(p->text, "p%" PRIu32 "_%c%" PRIu32 "%s", k,
                    param->kind == CLIKE_NUMBER ? 'n' : 'a', param->arg, suffix[param->kind]);
}

static bool is_memory(const struct clike_param *param)
{
    return param->kind == CLIKE_MEMORY || param->kind == CLIKE_STATUS;
}

static void declare_param_of_part(const struct printer *p, const struct clike_param *param)
{
    const bool is_result = param->kind == CLIKE_STATUS || gir_args(p->kernel)[param->arg].is_result;
    if (is_memory(param))
        text_printf(p->text, "GIVEN(%s%s, ", is_result ? "RESULT" : "OPERAND",
                    p->kernel->stage ? "_IN_PLACE" : "");
    else
        text_puts(p->text, "int64_t ");
    print_param_of_part(p, param);
    if (is_memory(param))
        text_putc(p->text, ')');
}

static void give_param_to_part(const struct printer *p, const struct clike_param *param)
{
    if (is_memory(param))
        text_puts(p->text, "PLACE_OF(");
    print_param_of_part(p, param);
    if (is_memory(param))
        text_putc(p->text, ')');
}

/* Where NAME_run has it. */
static void print_given_to_part(const struct printer *p, const struct clike_param *param)
{
    const uint32_t n_args = p->kernel->n_args, last = n_args + p->kernel->n_numbers;
    if (param->kind == CLIKE_MEMORY || param->kind == CLIKE_STATUS) {
        const uint32_t k = param->kind == CLIKE_STATUS ? n_args : param->arg;
        text_printf(p->text, "args[%" PRIu32 "]", p->args + k);
        return;
    }
    if (param->kind == CLIKE_SHIFT && p->form == CLIKE_TILES) { /* the shim's threads have a row */
        text_putc(p->text, '0');
        return;
    }
    const uint32_t at = param->kind == CLIKE_COUNT    ? param->arg
                        : param->kind == CLIKE_NUMBER ? n_args + param->arg
                                                      : last + (param->kind - CLIKE_N_ROWS);
    text_printf(p->text, "steps[%" PRIu32 "]", p->steps + at);
}

/* The function of a part. */
static void print_part(struct printer *p, const char *name)
{
    if (p->width == CLIKE_NARROW)
        text_puts(p->text, "#define index_t int32_t\n");
    text_printf(p->text, "PART %s_%" PRIu32 "(\n    ", name, p->part);
    clike_print_params(p, false, clike_print_param);
    text_printf(p->text, ",\n    %sPART_PARAMS)\n",
                p->kernel->stage          ? "index_t group, int64_t trip, "
                : p->form == CLIKE_TURNED ? "SHARED_PLACE(uint64_t) turned, "
                                          : "");
    clike_print_function(p);
    if (p->width == CLIKE_NARROW)
        text_puts(p->text, "#undef index_t\n");
}

/* A macro of the part's blocks. */
static void print_blocks_of_part(const struct printer *p, const char *macro)
{
    text_printf(p->text, "%s(", macro);
    if (p->part)
        text_printf(p->text, "end%" PRIu32, p->part - 1);
    else
        text_putc(p->text, '0');
    text_printf(p->text, ", end%" PRIu32 ")", p->part);
}

static void print_call_of_part(const struct printer *p, const char *name)
{
    clike_indent(p);
    text_puts(p->text, "if (");
    print_blocks_of_part(p, "IN_PART");
    text_printf(p->text, ")\n        %s_%" PRIu32 "(\n    ", name, p->part);
    clike_print_params(p, false, give_param_to_part);
    text_puts(p->text, clike_form(p->kernel) == CLIKE_TURNED ? ", turned, " : ", ");
    print_blocks_of_part(p, "OF_PART");
    text_puts(p->text, ");\n");
}

/* Of all parts, each followed by what comes of `end`, of its number. */
static void print_params_of_parts(struct printer *p, const struct gir_kernel *const *kernels,
                                  uint32_t n, bool first, clike_print_param_fn print,
                                  const char *end)
{
    p->args = p->steps = 0;
    for (p->part = 0; p->part < n; p->part++) {
        p->kernel = kernels[p->part];
        p->form = clike_form(p->kernel);
        clike_print_params(p, first || p->part, print);
        p->args += p->kernel->n_args + 1;
        p->steps += p->kernel->n_args + p->kernel->n_numbers + (p->form == CLIKE_TURNED ? 5 : 2);
    }
    for (uint32_t i = 0; i < n; i++)
        text_printf(p->text, end, i);
}

/* Reductions of which the threads of a block share what they have at once, 1 at least: of tiles,
 * all of a part. */
static uint32_t count_shared(struct printer *p, const struct gir_kernel *const *kernels, uint32_t n)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < n; i++) {
        p->kernel = kernels[i];
        const uint32_t own = clike_form(p->kernel) == CLIKE_TILES
                                 ? clike_reductions_before(p, p->kernel->n_codes)
                                 : 1;
        most = own > most ? own : most;
    }
    return most;
}

/* Each block has groups, and goes through the stages of each, as often as there are iterations. */
static void print_stages(struct printer *p, const struct gir_kernel *const *kernels, uint32_t n,
                         const char *name)
{
    clike_open_block(p, "EACH_GROUP(group, end0)");
    clike_open_block(p, "EACH_TRIP(trip, trips)");
    for (p->part = 0; p->part < n; p->part++) {
        p->kernel = kernels[p->part];
        if (p->part) /* also within a stage: parts share the memory in which threads meet */
            clike_line(p, "END_STAGE;");
        clike_indent(p);
        text_printf(p->text, "IN_STAGE(%" PRIu32 ")\n", p->kernel->stage);
        clike_indent(p);
        text_printf(p->text, "    %s_%" PRIu32 "(\n    ", name, p->part);
        clike_print_params(p, false, give_param_to_part);
        text_puts(p->text, ", group, trip, OF_GROUP);\n");
    }
    clike_line(p, "END_STAGE;");
    clike_close_block(p);
    clike_close_block(p);
}

static void print_parts(struct printer *p, const struct gir_kernel *const *kernels, uint32_t n,
                        const char *name)
{
    for (p->part = 0; p->part < n; p->part++) {
        p->kernel = kernels[p->part];
        print_call_of_part(p, name);
    }
}

/* Words of the block that parts have to turn what they look up, one or another of them. */
static uint32_t turned_words(const struct gir_kernel *const *kernels, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t own = clike_turned_words(kernels[i]);
        most = own > most ? own : most;
    }
    return most;
}

/* Does a part reduce something? */
static bool combines(const struct gir_kernel *const *kernels, uint32_t n)
{
    bool any = false;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < kernels[k]->n_codes; i++)
            any |= gir_codes(kernels[k])[i].op == GIR_REDUCE;
    return any;
}

bool clike_print_launch(const struct gir_kernel *const *kernels, uint32_t n,
                        enum clike_dialect dialect, enum clike_width width, const char *name,
                        struct text *text)
{
    struct printer p = {.text = text, .dialect = dialect};
    for (p.part = 0; p.part < n; p.part++) {
        p.width = clike_width_of(kernels[p.part], width);
        clike_begin(&p, kernels[p.part]);
        print_part(&p, name);
    }
    const uint32_t words = turned_words(kernels, n);
    text_printf(text, "%s %s(\n    ",
                combines(kernels, n) ? "KERNEL_THAT_COMBINES"
                : words              ? "KERNEL_THAT_TURNS"
                                     : "KERNEL",
                name);
    print_params_of_parts(&p, kernels, n, false, declare_param_of_part, ", int64_t end%" PRIu32);
    if (kernels[0]->stage)
        text_puts(text, ", int64_t trips");
    text_printf(text, ")\n{\n    BEGIN_LAUNCH(%" PRIu32 ")\n", count_shared(&p, kernels, n));
    if (words)
        text_printf(text, "    SHARED(uint64_t, turned[%" PRIu32 "]);\n", words);
    p.depth = 1;
    (kernels[0]->stage ? print_stages : print_parts)(&p, kernels, n, name);
    text_puts(text, "}\n");
    if (dialect == CLIKE_SHIM) {
        text_puts(text, kernels[0]->stage ? "LAUNCHER_OF_STAGES(" : "LAUNCHER(");
        if (kernels[0]->stage)
            text_printf(text, "%" PRIu32 ", ", kernels[n - 1]->stage);
        text_puts(text, name);
        print_params_of_parts(&p, kernels, n, true, print_given_to_part,
                              kernels[0]->stage ? ", rows" : ", 1 + %" PRIu32);
        text_puts(text, kernels[0]->stage ? ", n)\n" : ")\n");
    }
    return !text->failed;
}
