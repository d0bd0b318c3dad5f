/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops/choice.h"

#include "passes/analysis/branch_sizes.h"
#include "passes/analysis/recurrence.h"

/* Seconds of an operation on an element, of one thread of an interpreter. */
#define SECONDS_OPERATION 0.05e-9
/* Of a byte: in a core's cache, in the one that cores share, and in memory. */
#define SECONDS_BYTE_CACHE 0.04e-9
#define SECONDS_BYTE_SHARED 0.1e-9
#define SECONDS_BYTE_MEMORY 0.25e-9
#define CACHE_BYTES ((double)CHOICE_BLOCK_BYTES)
#define SHARED_BYTES ((double)(16 << 20))

/*
 * Sizes decide nothing where the loop is given and leaves more bytes, or takes more seconds:
 * temporaries that grow faster than these exceed the budget at smaller sizes already, those that
 * grow no faster take a share of them that is the same there, and a loop that nobody waits for is
 * none to keep for the sake of its memory.
 */
#define LARGEST ((double)(1 << 30))
#define LONGEST 60

/* What blocks must win. */
#define LEAST_GAIN 1.25
/* What may be lost: a share, and seconds that no size changes. */
#define MOST_LOSS 1.1
#define SECONDS_ONCE 50e-6

int64_t choice_budget(const struct pass_context *pass)
{
    return pass->batching.budget ? pass->batching.budget : CHOICE_BUDGET;
}

double choice_may(const struct pass_context *pass, double given, double left, double row)
{
    return 1.5 * (given + left + row) + (double)choice_budget(pass) - given;
}

double choice_seconds_byte(double live)
{
    return live <= CACHE_BYTES    ? SECONDS_BYTE_CACHE
           : live <= SHARED_BYTES ? SECONDS_BYTE_SHARED
                                  : SECONDS_BYTE_MEMORY;
}

const struct choice_rates *choice_rates(const struct pass_context *pass)
{
    /* Measured in ONNX Runtime 1.31, and in tssa. */
    static const struct choice_rates others = {10e-6, 0.4e-6, 0.4e-6},
                                     sessions = {1e-6, 0.1e-6, 0.1e-6};
    return pass_is_for_session(pass) ? &sessions : &others;
}

double choice_seconds(const struct choice_rates *rates, const struct cost_work *work, double live)
{
    return work->calls * rates->call + work->bytes * choice_seconds_byte(live) +
           work->operations * SECONDS_OPERATION;
}

/* ---- What a loop is given -------------------------------------------------------------------- */

static bool add_given(void *context, struct ir_value *value)
{
    struct choice_given *given = context;
    if (loop_makes(given->loop, value))
        return true;
    for (size_t i = 0; i < given->values.count; i++)
        if (given->values.data[i] == value)
            return true;
    return vec_push(&given->values, value);
}

tssa_status *choice_given_find(const struct loop *loop, struct choice_given *given)
{
    *given = (struct choice_given){loop, VEC_INIT(loop->body->graph->allocator)};
    for (uint32_t k = 0; k < loop->n_carried; k++)
        if (!add_given(given, loop_initial(loop, k)))
            return status_out_of_memory();
    for (const struct ir_op *op = loop->body->first; op; op = op->next)
        if (!recurrence_visit_operands(op, add_given, given))
            return status_out_of_memory();
    return NULL;
}

void choice_given_free(struct choice_given *given)
{
    if (given->loop)
        vec_free(&given->values);
    *given = (struct choice_given){0};
}

double choice_given_bytes(const struct choice_given *given, const struct cost_sizes *sizes)
{
    double bytes = 0;
    for (size_t i = 0; i < given->values.count; i++)
        bytes += cost_bytes(given->values.data[i]->type, sizes);
    return bytes;
}

/* ---- Sizes that are tried -------------------------------------------------------------------- */

void choice_try_dim(struct choice *choice, const struct dim *dim)
{
    if (dim->kind == DIM_SYMBOL && dim->low != dim->high &&
        choice->n_symbols < CHOICE_MAX_SYMBOLS) {
        for (int i = 0; i < choice->n_symbols; i++)
            if (choice->symbols[i] == dim)
                return;
        choice->symbols[choice->n_symbols++] = dim;
    }
    for (uint32_t i = 0; i < dim->n_terms; i++)
        choice_try_dim(choice, dim->terms[i]);
}

void choice_try_type(struct choice *choice, const struct ir_type *type)
{
    for (int d = 0; type->kind == TYPE_TENSOR && d < type->rank; d++)
        choice_try_dim(choice, type->dims[d]);
}

/* ---- The choice ------------------------------------------------------------------------------ */

/* The figures that a remark tells: those of the sizes that speak most against all at once. */
static void note(struct choice *choice, const struct choice_figures *f, bool fits)
{
    const struct choice_figures *told = &choice->told;
    bool first = told->may == 0, worse = f->all / f->may > told->all / told->may;
    if (!first && (fits ? told->all > told->may || f->batched <= MOST_LOSS * f->loop : !worse))
        return;
    choice->told = *f;
}

/* The figures of one point; false: it decides nothing. */
static bool find_figures(struct choice *choice, const struct cost_sizes *sizes,
                         struct choice_figures *f)
{
    const struct branch_sizes asked = {choice->symbols, choice->n_symbols, sizes};
    *f = (struct choice_figures){0};
    bool possible = choice->figures(choice->context, sizes, f);
    if (!choice->n_symbols)
        return true;
    if (!possible || f->fixed > LARGEST || f->loop > LONGEST)
        return false;
    bool excluded = branch_sizes_exclude(&asked, choice->block);
    choice->in_branch |= excluded;
    return !excluded;
}

typedef void visit_point(struct choice *choice, const struct cost_sizes *sizes,
                         const struct choice_figures *f, void *context);

/*
 * A number for each of more iterations would count for the first time: beside 32 MiB, at 2^20, it
 * does not. Larger sizes would put every loop over scalars into blocks, which cost most where there
 * are few.
 */
#define LARGEST_SIZE (INT64_C(1) << 20)
#define BEYOND (INT64_C(1) << 23)
#define SIZES_APART 32

/* 1, 2, 3, 4, 6, 8, 12, ... */
static int64_t next_fine(int64_t size)
{
    return size == 1 ? 2 : (size & (size - 1)) == 0 ? size / 2 * 3 : size / 3 * 4;
}

/* Each symbol at each size, and all others at fewer. */
static void visit_points(struct choice *choice, bool fine, visit_point *visit, void *context)
{
    int64_t most = choice->n_symbols ? LARGEST_SIZE : 1,
            most_others = choice->n_symbols > 1 ? LARGEST_SIZE : 1;
    struct choice_figures f;
    for (int s = 0; s < (choice->n_symbols ? choice->n_symbols : 1); s++)
        for (int64_t size = 1; size <= most; size = fine ? next_fine(size) : size * SIZES_APART)
            for (int64_t others = 1; others <= most_others; others *= SIZES_APART) {
                const struct cost_sizes point = {choice->symbols[s], size, others};
                if (find_figures(choice, &point, &f))
                    visit(choice, &point, &f, context);
            }
}

/* Would blocks take longer than may be? */
static bool loses(const struct choice_figures *f)
{
    return f->blocks > MOST_LOSS * f->loop + SECONDS_ONCE;
}

/*
 * Would all at once be too much of more iterations than are tried? Of mere scalars, of which there
 * must be millions: nothing that fewer ones should pay for by blocks.
 */
static bool is_for_few(struct choice *choice)
{
    struct choice_figures f;
    bool too_much = false;
    for (int s = 0; choice->may_ask && s < choice->n_symbols; s++) {
        const struct cost_sizes points[] = {{choice->symbols[s], BEYOND, 1},
                                            {choice->symbols[s], BEYOND, BEYOND},
                                            {choice->symbols[s], 1, BEYOND}};
        for (size_t i = 0; i < sizeof points / sizeof *points; i++)
            too_much |= find_figures(choice, &points[i], &f) && f.all > f.may;
    }
    return too_much;
}

/* What holds at all points, and at some. */
struct scales {
    bool some, all_fits, all_wins, blocks_win, blocks_lose;
};

/* One point: may it be all at once, and would blocks win, or lose? */
static void weigh(struct choice *choice, const struct cost_sizes *sizes,
                  const struct choice_figures *f, void *context)
{
    struct scales *scales = context;
    bool fits = f->all <= f->may;
    (void)sizes;
    note(choice, f, fits);
    double once = choice->n_symbols ? SECONDS_ONCE : 0;
    scales->some = true;
    scales->all_fits &= fits && f->batched <= MOST_LOSS * f->loop + once;
    scales->all_wins |= f->loop >= LEAST_GAIN * f->batched;
    scales->blocks_win |= f->loop >= LEAST_GAIN * f->blocks;
    scales->blocks_lose |= loses(f);
}

/* ---- Two versions ---------------------------------------------------------------------------- */

/* Rows are too long where blocks lose. */
static void bound_rows(struct choice *choice, const struct cost_sizes *sizes,
                       const struct choice_figures *f, void *context)
{
    struct choice_rows *rows = &choice->rows;
    double elements = cost_dim(rows->elements, sizes);
    (void)context;
    if (loses(f) && elements < (double)rows->too_long)
        rows->too_long = (int64_t)elements;
}

/* Of shorter ones, fewer iterations than may win, be they as short as they can, are too few. */
static void bound_trips(struct choice *choice, const struct cost_sizes *sizes,
                        const struct choice_figures *f, void *context)
{
    bool *wins = context;
    struct choice_rows *rows = &choice->rows;
    double trips = cost_dim(rows->trips, sizes);
    if (cost_dim(rows->elements, sizes) >= (double)rows->too_long || f->blocks > f->loop)
        return;
    if (trips < (double)rows->least_trips)
        rows->least_trips = trips < 1 ? 1 : (int64_t)trips;
    *wins |= f->loop >= LEAST_GAIN * f->blocks;
}

/* Can a run tell whether blocks pay? */
static bool find_rows(struct choice *choice)
{
    bool wins = false;
    struct choice_rows *rows = &choice->rows;
    rows->too_long = rows->least_trips = INT64_MAX;
    if (!rows->elements || choice->n_symbols == CHOICE_MAX_SYMBOLS)
        return false;
    visit_points(choice, true, bound_rows, NULL);
    visit_points(choice, true, bound_trips, &wins);
    return wins && rows->too_long < INT64_MAX;
}

void choice_make(struct choice *choice)
{
    struct scales scales = {.all_fits = true, .all_wins = !choice->must_win};
    visit_points(choice, false, weigh, &scales);
    if (choice->in_branch) /* which leaves sizes between those */
        visit_points(choice, true, weigh, &scales);
    choice->known = choice->n_symbols == 0;
    if (choice->in_branch && !scales.some)
        choice->way = CHOICE_LEAVE;
    else if (scales.all_fits && scales.all_wins)
        choice->way = is_for_few(choice) ? CHOICE_FEW : CHOICE_ALL;
    else if (scales.blocks_win && !scales.blocks_lose)
        choice->way = CHOICE_BLOCKS;
    else
        choice->way = scales.blocks_win && find_rows(choice) ? CHOICE_BOTH : CHOICE_LEAVE;
}

/* ---- What is said about it ------------------------------------------------------------------- */

#define MIB(bytes) ((bytes) / (1 << 20))

tssa_status *choice_remark(const struct choice *choice, const struct pass_context *pass,
                           const struct ir_op *loop, const char *const words[])
{
    const struct choice_figures *told = &choice->told;
    const char *way = words[choice->way];
    tssa_remark_kind kind = choice->way == CHOICE_LEAVE ? TSSA_REMARK_MISSED : TSSA_REMARK_APPLIED;
    if (choice->known)
        return pass_remark(pass, kind, loop,
                           "%s (about %.3g MiB and %.3g ms, of %.3g MiB that may be and %.3g ms "
                           "that the loop takes)",
                           way, MIB(told->all), told->batched * 1e3, MIB(told->may),
                           told->loop * 1e3);
    if (choice->way == CHOICE_ALL)
        return pass_remark(pass, kind, loop, "%s", way);
    if (choice->way == CHOICE_FEW)
        return pass_remark(pass, kind, loop, "%s (a run asks first: fewer than %lld iterations)",
                           way, (long long)CHOICE_MANY);
    if (choice->way == CHOICE_BOTH)
        return pass_remark(pass, kind, loop,
                           "%s (a run asks first: rows of fewer than %lld elements, and at least "
                           "%lld iterations)",
                           way, (long long)choice->rows.too_long,
                           (long long)choice->rows.least_trips);
    return pass_remark(pass, kind, loop,
                       "%s (sizes that only a run tells could make it %.2g times the memory that "
                       "may be, and %.2g times the time of the loop)",
                       way, told->all / told->may, told->batched / told->loop);
}
