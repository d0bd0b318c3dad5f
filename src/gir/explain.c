/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuse op has become, as a line of text; see estimate.h. */
#include <inttypes.h>
#include <math.h>

#include "base/text.h"
#include "gir/estimate.h"
#include "ir/fuse.h"
#include "ir/row.h"

struct explaining {
    const struct ir_op *fuse;
    const struct gir_fused *built;
    const struct gir_rates *rates;
    const struct cost_sizes *sizes;
    struct text *text;
};

static const char *const forms[GIR_FORM_COUNT] = {[GIR_FORM_ELEMENTS] = "elements",
                                                  [GIR_FORM_ROWS_ALONG] = "rows along lanes",
                                                  [GIR_FORM_ROWS_ACROSS] = "rows across lanes",
                                                  [GIR_FORM_COLUMNS] = "columns",
                                                  [GIR_FORM_ITERATIONS] = "iterations"};

/* ---- Numbers --------------------------------------------------------------------------------- */

static void put_scaled(struct text *text, double n, const char *const *units, int n_units)
{
    int unit = 0;
    while (n >= 999.5 && unit < n_units - 1) {
        n /= 1000;
        unit++;
    }
    text_printf(text, "%.3g%s%s", n, units[unit][0] ? " " : "", units[unit]);
}

static void put_bytes(struct text *text, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    put_scaled(text, bytes, units, 5);
}

static void put_time(struct text *text, double nanoseconds)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    put_scaled(text, nanoseconds, units, 4);
}

/* Of a mean, too. */
static void put_count(struct text *text, double n)
{
    text_printf(text, n == floor(n) ? "%.0f" : "%.1f", n);
}

static void put_each(struct text *text, const char **separator, double n, const char *one)
{
    if (n <= 0)
        return;
    text_printf(text, "%s%.2g %s%s", *separator, n, one, n == 1 ? "" : "s");
    *separator = ", ";
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static uint32_t n_parts(const struct explaining *x)
{
    return x->built->kernel ? 1 : x->built->parts->n;
}

static const struct gir_kernel *part_at(const struct explaining *x, uint32_t i,
                                        struct gir_extent *extent)
{
    if (x->built->kernel) {
        gir_extent_of_kernel(x->fuse, x->built->kernel, &x->built->space, x->sizes, extent);
        return x->built->kernel;
    }
    gir_extent_of_part(x->fuse, &x->built->parts->parts[i], x->sizes, extent);
    return x->built->parts->parts[i].kernel;
}

static void put_extent(const struct explaining *x, const struct gir_extent *extent)
{
    if (extent->calls != 1)
        text_printf(x->text, "%.0f times ", extent->calls);
    put_count(x->text, extent->rows);
    text_puts(x->text, " by ");
    put_count(x->text, extent->length);
}

static bool has_records(const struct gir_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->n_args; i++)
        if (gir_args(kernel)[i].fields > 1)
            return true;
    return false;
}

static void put_part(const struct explaining *x, const struct gir_kernel *kernel,
                     const struct gir_extent *extent, const struct gir_work *work)
{
    text_puts(x->text, extent->is_triangle ? "columns of a triangle" : forms[work->form]);
    if (has_records(kernel))
        text_puts(x->text, " of records");
    if (gir_keeps(kernel))
        text_puts(x->text, " some of which are kept");
    if (x->built->kernel && gir_has_planes(kernel, &x->built->space))
        text_puts(x->text, " in planes");
    text_puts(x->text, ", ");
    put_extent(x, extent);
    if (work->walks > 1)
        text_printf(x->text, " in %" PRIu32 " walks", work->walks);
}

/* ---- What else there was --------------------------------------------------------------------- */

/* The other form of whole rows, and what told which it is. */
static void put_other_form(const struct explaining *x, const struct gir_kernel *kernel,
                           const struct gir_extent *extent, const struct gir_work *work)
{
    struct gir_when when[GIR_MAX_CODES];
    struct gir_work other;
    if (!kernel->whole_rows)
        return;
    gir_find_passes(kernel, when);
    const struct gir_across across = gir_find_across(kernel, when, x->rates->register_bytes);
    const bool is_across = work->form == GIR_FORM_ROWS_ACROSS;
    text_puts(x->text, is_across ? "; along lanes" : "; across lanes");
    if (!is_across && !across.room) {
        text_puts(x->text, kernel->form ? ": never, so long are they in every run"
                                        : ": no room for rows so wide");
        return;
    }
    if (!is_across && extent->length > (double)across.room) {
        text_printf(x->text, ": room for rows of %" PRIu64, across.room);
        return;
    }
    gir_count_as(kernel, extent, x->rates, is_across ? GIR_FORM_ROWS_ALONG : GIR_FORM_ROWS_ACROSS,
                 &other);
    text_puts(x->text, " ");
    put_time(x->text, gir_time(x->rates, &other).all);
    text_printf(x->text,
                " (measured: across up to %" PRIu64 " elements%s, from %" PRIu64 " rows on%s)",
                across.longest, across.but < across.longest ? " but 32" : "", across.fewest,
                across.planes       ? ""
                : across.times == 1 ? " and as many as elements"
                                    : " and half as many as elements");
}

/* Its operator alone is told from its row, as rates do not tell which of the two is better made. */
static void put_alone(const struct explaining *x)
{
    const struct ir_op *only = NULL;
    for (const struct ir_op *op = ir_fuse_body(x->fuse)->first; op; op = op->next) {
        if (!ir_op_computes(op))
            continue;
        if (only)
            return;
        only = op;
    }
    if (only && ir_row_axes(only) > 0)
        text_puts(x->text, "; alone: faster than the operator, as measured");
}

/* What its operators would do without it. */
static void put_apart(const struct explaining *x, const struct gir_work *work)
{
    const struct gir_apart apart = gir_time_apart(x->fuse, x->rates, work, x->sizes);
    text_printf(x->text, "; one by one %.9g launch%s, ", apart.launches,
                apart.launches == 1 ? "" : "es");
    put_bytes(x->text, apart.bytes);
    text_puts(x->text, ", ");
    put_time(x->text, apart.all);
}

/* ---- The op ---------------------------------------------------------------------------------- */

static void put_work(const struct explaining *x, const struct gir_work *work, double elements)
{
    const char *separator = "; each ";
    text_puts(x->text, ": reads ");
    put_bytes(x->text, work->read);
    text_puts(x->text, ", writes ");
    put_bytes(x->text, work->written);
    if (work->again > 0) {
        text_puts(x->text, ", again ");
        put_bytes(x->text, work->again);
    }
    if (elements <= 0)
        return;
    put_each(x->text, &separator, work->operations / elements, "operation");
    put_each(x->text, &separator, work->divisions / elements, "division");
    put_each(x->text, &separator, work->functions / elements, "function");
    put_each(x->text, &separator, work->gathers / elements, "gather");
}

static void put_times(const struct explaining *x, const struct gir_work *work)
{
    const struct gir_times times = gir_time(x->rates, work);
    const char *bound = times.arithmetic >= times.memory ? "arithmetic" : times.level;
    if (2 * times.set_up > times.all)
        bound = "set-up";
    text_puts(x->text, "; about ");
    put_time(x->text, times.all);
    text_printf(x->text, ", bound by %s (%s alone ", bound, times.level);
    put_time(x->text, times.limit);
    text_puts(x->text, ")");
}

static bool is_told(const struct ir_type *type)
{
    int64_t n;
    for (int i = 0; type->kind == TYPE_TENSOR && i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &n))
            return false;
    return true;
}

/* Is it known how large everything is? */
static bool is_all_told(const struct ir_op *fuse)
{
    bool told = true;
    for (uint32_t i = 0; i < fuse->n_operands; i++)
        told &= !ir_operand(fuse, i) || is_told(ir_operand(fuse, i)->type);
    for (uint32_t i = 0; i < fuse->n_results; i++)
        told &= is_told(fuse->results[i].type);
    return told;
}

bool gir_explain(const struct ir_op *fuse, const struct gir_fused *built,
                 const struct gir_rates *rates, const struct cost_sizes *sizes, struct text *text)
{
    const struct explaining x = {fuse, built, rates, sizes, text};
    struct gir_work all = {0}, work;
    struct gir_extent extent;
    double elements = 0;
    for (uint32_t i = 0; i < n_parts(&x); i++) {
        const struct gir_kernel *kernel = part_at(&x, i, &extent);
        gir_count(kernel, &extent, rates, &work);
        text_puts(text, i ? "; then " : "");
        put_part(&x, kernel, &extent, &work);
        elements += extent.length * extent.rows * extent.calls;
        if (i)
            gir_add_work(&all, &work);
        else
            all = work;
    }
    put_work(&x, &all, elements);
    put_times(&x, &all);
    if (built->kernel)
        put_other_form(&x, built->kernel, &extent, &all);
    put_apart(&x, &all);
    put_alone(&x);
    if (!is_all_told(fuse))
        text_printf(text, "; with %" PRId64 " for what a run tells", sizes->size);
    return text_string(text) != NULL;
}

bool gir_explain_product(const struct ir_op *op, const struct gir_rates *rates,
                         const struct cost_sizes *sizes, struct text *text)
{
    static const char *const units[] = {"", "thousand", "million", "billion"};
    const struct cost_work work = cost_work(op, op->next, sizes);
    const struct gir_work moved = {.read = work.bytes};
    const struct gir_times times = gir_time(rates, &moved);
    /* Of f32; a library multiplies and adds at once. */
    const double at_once = 2 * rates->register_bytes / 4.0,
                 arithmetic = work.operations / at_once * rates->operation;
    text_puts(text, "product, the library's or tssa's own, in no kernel: ");
    put_scaled(text, work.operations, units, 4);
    text_printf(text, " operations, %.3g a byte: ", work.operations / fmax(1, work.bytes));
    put_bytes(text, work.bytes);
    text_puts(text, "; not below ");
    put_time(text, fmax(arithmetic, times.limit));
    text_printf(text, ", bound by %s", arithmetic > times.limit ? "arithmetic" : times.level);
    return text_string(text) != NULL;
}
