/* SPDX-License-Identifier: Apache-2.0 */
#include "gir/estimate.h"

#include <math.h>

#include "ir/fuse.h"

/* ---- Machines -------------------------------------------------------------------------------- */

/* Measured on an EPYC (Zen 4): bench/results/2026-11-26-estimates.md. */
const struct gir_rates gir_rates_v4 = {.name = "AVX-512",
                                       .register_bytes = 64,
                                       .masks = true,
                                       .launch = 200,
                                       .region = 120,
                                       .call = 15,
                                       .row = 1,
                                       .reduction = 1,
                                       .operation = 0.25,
                                       .division = 1.9,
                                       .function = 0.5,
                                       .copy = 0.9,
                                       .levels = {{"L1", 24e3, 0.005, 0.01, 0.6},
                                                  {"L2", 768e3, 0.0105, 0.0085, 0.6},
                                                  {"L3", 20e6, 0.0105, 0.0115, 1},
                                                  {"memory", INFINITY, 0.065, 0.07, 3}}};

const struct gir_rates gir_rates_v3 = {.name = "AVX2",
                                       .register_bytes = 32,
                                       .masks = false,
                                       .launch = 200,
                                       .region = 120,
                                       .call = 15,
                                       .row = 1,
                                       .reduction = 1,
                                       .operation = 0.15,
                                       .division = 0.9,
                                       .function = 0.4,
                                       .copy = 0.9,
                                       .levels = {{"L1", 24e3, 0.005, 0.01, 0.6},
                                                  {"L2", 768e3, 0.0105, 0.0085, 0.6},
                                                  {"L3", 20e6, 0.0105, 0.0115, 1},
                                                  {"memory", INFINITY, 0.065, 0.07, 3}}};

static const struct gir_level *level_of(const struct gir_rates *rates, double bytes)
{
    int i = 0;
    while (i < GIR_LEVELS - 1 && bytes > rates->levels[i].bytes)
        i++;
    return &rates->levels[i];
}

/* Of so many bytes those that would fit one level are there, all others behind it. */
static struct gir_level rates_of(const struct gir_rates *rates, double bytes)
{
    struct gir_level of = *level_of(rates, bytes);
    const struct gir_level *before = level_of(rates, bytes) - 1;
    if (before < rates->levels)
        return of;
    const double there = before->bytes / bytes;
    of.read = there * before->read + (1 - there) * of.read;
    of.written = there * before->written + (1 - there) * of.written;
    of.element = there * before->element + (1 - there) * of.element;
    return of;
}

/* ---- Work ------------------------------------------------------------------------------------ */

struct counting {
    const struct gir_kernel *kernel;
    const struct gir_extent *extent;
    const struct gir_rates *rates;
    struct gir_work *work;
    struct gir_when when[GIR_MAX_CODES];
    double elements;       /* of the space */
    double slots, singles; /* of vectors, whether an element is there or not; by themselves */
    double once;           /* rows, or columns: what is once for each */
};

static const struct gir_code *code_at(const struct counting *c, uint32_t step)
{
    return &gir_codes(c->kernel)[step];
}

static double round_up(double n, double lanes)
{
    return ceil(n / lanes) * lanes;
}

/* Elements of a vector where rows may come in parts. */
static double lanes_of(const struct counting *c)
{
    for (uint32_t i = 0; i < c->kernel->n_codes; i++)
        if (gir_width((tssa_dtype)code_at(c, i)->type) == 8)
            return c->rates->register_bytes / 4.0;
    return c->rates->register_bytes / 2.0;
}

static bool is_of_columns(enum gir_form form)
{
    return form == GIR_FORM_COLUMNS || form == GIR_FORM_ITERATIONS;
}

static void find_slots(struct counting *c)
{
    const struct gir_extent *extent = c->extent;
    const double rows = extent->rows * extent->calls;
    const enum gir_form form = c->work->form;
    c->elements = extent->length * rows;
    c->once = is_of_columns(form) ? extent->length * extent->calls : rows;
    if (form == GIR_FORM_ROWS_ACROSS) {
        c->slots = round_up(extent->rows, GIR_FORM_LANES) * extent->length * extent->calls;
        return;
    }
    const double lanes = form == GIR_FORM_ELEMENTS ? lanes_of(c) : GIR_FORM_LANES;
    if (c->rates->masks || is_of_columns(form)) {
        c->slots = round_up(extent->length, lanes) * rows;
        return;
    }
    const double whole = floor(extent->length / lanes) * lanes;
    c->slots = whole * rows;
    c->singles = (extent->length - whole) * rows;
}

/* NaNs are looked for besides the extreme. */
static bool is_extreme(const struct gir_code *code)
{
    return (code->scalar == SCALAR_MAX || code->scalar == SCALAR_MIN) &&
           (code->type == TSSA_FLOAT || code->type == TSSA_DOUBLE);
}

/* Functions that are emitted in place, of elements of f32. */
static bool is_emitted(const struct gir_code *code)
{
    return code->type == TSSA_FLOAT &&
           (code->scalar == SCALAR_EXP || code->scalar == SCALAR_LOG ||
            code->scalar == SCALAR_TANH || code->scalar == SCALAR_SIGMOID ||
            code->scalar == SCALAR_ERF);
}

static double time_of_scalar(const struct gir_rates *rates, const struct gir_code *code)
{
    const double work = fmax(1, scalar_info((enum scalar_id)code->scalar)->work);
    if (is_extreme(code)) /* NaNs are looked for besides */
        return 2 * rates->operation;
    if (gir_is_call(code))
        return work * (is_emitted(code) ? rates->operation : rates->function);
    return work > 1 ? rates->division : rates->operation;
}

/* Levels of them, between records and their fields. */
static int shuffles(int fields)
{
    int n = 0;
    while (1 << n < fields)
        n++;
    return n;
}

#define KEEPING 8

/* Nanoseconds of a step on a vector register. */
static double time_of(const struct counting *c, const struct gir_code *code)
{
    const struct gir_arg *arg = &gir_args(c->kernel)[gir_arg_of(code)];
    const double operation = c->rates->operation;
    switch ((enum gir_op)code->op) {
    case GIR_LOAD:
    case GIR_STORE:
        return (1 + shuffles(arg->fields)) * operation;
    case GIR_KEEP: /* permutations of eight lanes each, and where they go */
        return (KEEPING + shuffles(arg->fields)) * operation;
    case GIR_SCALAR:
        return time_of_scalar(c->rates, code);
    case GIR_REDUCE:
        return ((is_extreme(code) ? 2 : 1) + (c->work->form == GIR_FORM_ROWS_ACROSS ? 3 : 0)) *
               operation;
    case GIR_CONSTANT:
    case GIR_LENGTH:
    case GIR_NUMBER:
    case GIR_ROW:
    case GIR_TRIP:
    case GIR_STATE:
    case GIR_NEXT:
    case GIR_LAST:
        return 0;
    default:
        return operation;
    }
}

/* Bytes of a lane that the step works on. */
static double width_of(const struct counting *c, const struct gir_code *code)
{
    unsigned width = gir_width((tssa_dtype)code->type);
    for (uint32_t k = 0; k < gir_n_operands(code); k++) {
        const unsigned other = gir_width((tssa_dtype)code_at(c, code->operands[k])->type);
        width = other > width ? other : width;
    }
    return width;
}

#define SINGLE 0.5 /* operations on a vector that one on an element by itself takes as long as */

/* How many vector registers that is. */
static double registers(const struct counting *c, double width, double slots, double singles)
{
    return slots * width / c->rates->register_bytes + singles * SINGLE;
}

static void add_time(struct counting *c, const struct gir_code *code, double slots, double singles)
{
    c->work->computing += time_of(c, code) * registers(c, width_of(c, code), slots, singles);
}

static void add_class(struct gir_work *work, const struct gir_code *code, double n)
{
    if (code->op == GIR_CONVERT || code->op == GIR_REDUCE)
        work->operations += n;
    if (code->op != GIR_SCALAR)
        return;
    if (gir_is_call(code))
        work->functions += n;
    else if (scalar_info((enum scalar_id)code->scalar)->work > 1)
        work->divisions += n;
    else
        work->operations += n;
}

/* Elements that lie apart are moved one by one, but for those of planes, whose rows lie side by
 * side, and are lanes. */
static bool gathers(const struct counting *c, const struct gir_code *code)
{
    const struct gir_arg *arg = &gir_args(c->kernel)[gir_arg_of(code)];
    if (code->op == GIR_LOOKUP && c->when[code->operands[0]].varies)
        return true;
    return (code->op == GIR_LOAD || code->op == GIR_STORE || code->op == GIR_LOOKUP) &&
           arg->moves == GIR_STRIDED && c->work->form != GIR_FORM_ROWS_ACROSS;
}

#define LINE 64 /* bytes, of a cache */

/* Where elements are as far apart as lines, each is wherever all of the operand is. */
static void add_gather(struct counting *c, const struct gir_code *code)
{
    const uint32_t arg = gir_arg_of(code);
    const double apart = c->extent->apart[arg],
                 all = c->extent->elements[arg] * (apart > 0 ? apart : LINE);
    const bool close = apart > 0 && apart < LINE;
    const struct gir_level level = close ? c->rates->levels[0] : rates_of(c->rates, all);
    c->work->gathers += c->elements;
    c->work->gathering += c->elements * level.element;
}

static bool is_loaded(const struct gir_code *code)
{
    return code->op == GIR_LOAD || code->op == GIR_LOOKUP;
}

/* A step of a walk, for each element. */
static void add_step(struct counting *c, uint32_t step, uint32_t pass)
{
    const struct gir_code *code = code_at(c, step);
    const bool kept = c->when[step].kept_in && c->when[step].kept_in <= pass;
    const double bytes = c->elements * gir_width((tssa_dtype)code->type);
    if (kept || (pass && is_loaded(code)))
        c->work->again += bytes;
    if (kept) {
        c->work->computing +=
            c->rates->operation * registers(c, width_of(c, code), c->slots, c->singles);
        return;
    }
    if (c->when[step].kept_in == pass + 1)
        c->work->again += bytes;
    add_class(c->work, code, c->elements);
    if (gathers(c, code))
        add_gather(c, code);
    else
        add_time(c, code, c->slots, c->singles);
}

static void add_walk(struct counting *c, uint32_t pass)
{
    bool needed[GIR_MAX_CODES];
    gir_find_needed(c->kernel, c->when, pass, needed);
    for (uint32_t i = 0; i < c->kernel->n_codes; i++) {
        const struct gir_code *code = code_at(c, i);
        if (needed[i])
            add_step(c, i, pass);
        if (code->op != GIR_REDUCE || c->when[i].pass != pass)
            continue;
        add_class(c->work, code, c->elements);
        add_time(c, code, c->slots, c->singles);
        if (c->work->form == GIR_FORM_ROWS_ALONG) /* NaNs are joined besides */
            c->work->reductions += gir_finds_extreme(code) ? 2 * c->once : c->once;
    }
}

/* What is once for a row, or a column. */
static void add_once(struct counting *c)
{
    const bool rows = c->work->form == GIR_FORM_ROWS_ALONG || c->work->form == GIR_FORM_ELEMENTS;
    for (uint32_t i = 0; i < c->kernel->n_codes; i++) {
        const struct gir_code *code = code_at(c, i);
        if (c->when[i].varies || code->op == GIR_REDUCE)
            continue;
        add_class(c->work, code, c->once);
        add_time(c, code, rows ? 0 : c->once, rows ? c->once : 0);
    }
}

static void add_args(struct counting *c)
{
    struct gir_work *work = c->work;
    const double rows = c->extent->rows * c->extent->calls;
    for (uint32_t k = 0; k < c->kernel->n_args; k++) {
        const struct gir_arg *arg = &gir_args(c->kernel)[k];
        const double width = gir_width((tssa_dtype)arg->dtype);
        *(arg->is_result ? &work->written : &work->read) += c->extent->elements[k] * width;
        if (arg->moves == GIR_STAYS)
            continue;
        work->row_bytes += c->extent->length * width;
        if (work->form == GIR_FORM_ROWS_ACROSS && arg->moves == GIR_SIDE_BY_SIDE)
            work->copies += rows * ceil(c->extent->length / GIR_FORM_TILE);
    }
}

void gir_count_as(const struct gir_kernel *kernel, const struct gir_extent *extent,
                  const struct gir_rates *rates, enum gir_form form, struct gir_work *work)
{
    struct counting c = {.kernel = kernel, .extent = extent, .rates = rates, .work = work};
    *work = (struct gir_work){
        .form = form, .launches = 1, .calls = extent->calls, .regions = extent->regions};
    work->walks = gir_find_passes(kernel, c.when);
    find_slots(&c);
    for (uint32_t pass = 0; pass < work->walks; pass++)
        add_walk(&c, pass);
    add_once(&c);
    add_args(&c);
    const double begun = form == GIR_FORM_ROWS_ACROSS ? ceil(extent->rows / GIR_FORM_LANES)
                         : is_of_columns(form)        ? ceil(extent->length / GIR_FORM_LANES)
                                                      : extent->rows;
    work->rows = begun * extent->calls * work->walks;
}

void gir_count(const struct gir_kernel *kernel, const struct gir_extent *extent,
               const struct gir_rates *rates, struct gir_work *work)
{
    struct gir_when when[GIR_MAX_CODES];
    gir_find_passes(kernel, when);
    const struct gir_across across = gir_find_across(kernel, when, rates->register_bytes);
    gir_count_as(kernel, extent, rates, gir_form_of(kernel, &across, extent->rows, extent->length),
                 work);
}

void gir_add_work(struct gir_work *work, const struct gir_work *more)
{
    work->calls += more->calls;
    work->rows += more->rows;
    work->read += more->read;
    work->written += more->written;
    work->again += more->again;
    work->row_bytes = fmax(work->row_bytes, more->row_bytes);
    work->operations += more->operations;
    work->divisions += more->divisions;
    work->functions += more->functions;
    work->gathers += more->gathers;
    work->copies += more->copies;
    work->reductions += more->reductions;
    work->regions += more->regions;
    work->computing += more->computing;
    work->gathering += more->gathering;
}

/* ---- Time ------------------------------------------------------------------------------------ */

struct gir_times gir_time(const struct gir_rates *rates, const struct gir_work *work)
{
    const struct gir_level level = rates_of(rates, work->read + work->written),
                           row = rates_of(rates, work->row_bytes);
    struct gir_times times = {
        .set_up = work->launches * rates->launch + work->regions * rates->region +
                  (work->calls - work->launches) * rates->call + work->rows * rates->row +
                  work->reductions * rates->reduction,
        .arithmetic = work->computing + work->gathering + work->copies * rates->copy,
        .limit = work->read * level.read + work->written * level.written,
        .level = level.name};
    times.memory = times.limit + work->again * row.read;
    times.all = times.set_up + fmax(times.arithmetic, times.memory);
    return times;
}

struct gir_apart gir_time_apart(const struct ir_op *fuse, const struct gir_rates *rates,
                                const struct gir_work *work, const struct cost_sizes *sizes)
{
    struct gir_apart apart = {0};
    double memory = 0;
    for (const struct ir_op *op = ir_fuse_body(fuse)->first; op; op = op->next) {
        if (!ir_op_computes(op) || ir_op_is(op, IR_OP_return))
            continue;
        const struct cost_work step =
            op->n_blocks ? cost_work(op, op->next, sizes) : cost_step(op, false, sizes);
        const double written = fmin(step.bytes, cost_bytes(op->results[0].type, sizes));
        const struct gir_level level = rates_of(rates, step.bytes);
        apart.launches += step.calls;
        apart.bytes += step.bytes;
        memory += (step.bytes - written) * level.read + written * level.written;
    }
    /* Rows are walked, and lanes joined, in operators as in kernels. */
    const struct gir_times times = gir_time(rates, work);
    apart.all = apart.launches * rates->launch + work->rows * rates->row +
                work->reductions * rates->reduction +
                fmax(memory + times.memory - times.limit, times.arithmetic);
    return apart;
}
