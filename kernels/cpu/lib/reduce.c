/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lib/reduce.h"

#include <string.h>

#include "kernels/cpu/lib/convert.h"
#include "kernels/cpu/lib/reduce_levels.h"

#define LANES REDUCTION_LANES
#define RADIX REDUCTION_RADIX
#define CHUNK (RADIX * LANES) /* neighbours that are folded at once */
#define BLOCK 512             /* results that are computed together */
#define LEVELS REDUCE_LEVELS
#define WIDEST REDUCE_WIDEST

const struct reduce_loops *reduce_loops_of(enum reduction_row row, tssa_dtype dtype)
{
    switch (dtype) {
    case TSSA_FLOAT:
        return &reduce_loops_f32[row];
    case TSSA_DOUBLE:
        return &reduce_loops_f64[row];
    case TSSA_INT32:
        return &reduce_loops_i32[row];
    case TSSA_INT64:
        return &reduce_loops_i64[row];
    case TSSA_UINT64:
        return &reduce_loops_u64[row];
    default:
        return NULL;
    }
}

/* ---- Lines: the innermost axis is reduced ---------------------------------------------------- */

/* n neighbours of the loops' type. */
static void add_line(struct reduce_levels *levels, size_t width, const char *x, int64_t n,
                     const void *shift)
{
    while (n > 0) {
        int64_t steps = reduce_levels_room(levels, (n + LANES - 1) / LANES);
        int64_t taken = steps * LANES < n ? steps * LANES : n;
        levels->loops->fold(levels->memory, x, taken, shift);
        reduce_levels_add(levels, steps);
        x += (size_t)taken * width;
        n -= taken;
    }
}

void reduce_lines(enum reduction_row row, tssa_dtype dtype, void *out, const void *x,
                  int64_t stride, int64_t lines, int64_t n, const void *shift)
{
    const struct reduce_loops *loops = reduce_loops_of(row, dtype);
    size_t width = tssa_dtype_size(dtype);
    if (n <= CHUNK)
        loops->lines(out, x, stride, lines, n, shift);
    for (int64_t i = 0; n > CHUNK && i < lines; i++) {
        _Alignas(64) char memory[LEVELS * LANES * WIDEST];
        struct reduce_levels levels;
        reduce_levels_begin(&levels, loops, width, LANES, memory);
        add_line(&levels, width, (const char *)x + i * stride * (int64_t)width, n,
                 shift ? (const char *)shift + (size_t)i * width : NULL);
        char *lanes = reduce_levels_end(&levels);
        loops->halve(lanes);
        memcpy((char *)out + (size_t)i * width, lanes, width);
    }
    loops->finish(out, lines, n, shift);
}

/* ---- Columns: another axis is reduced -------------------------------------------------------- */

static void fold_columns(const struct reduce_loops *loops, size_t width, void *out, const char *x,
                         int64_t stride, int64_t columns, int64_t n, const void *shift)
{
    _Alignas(64) char memory[LEVELS * BLOCK * WIDEST];
    struct reduce_levels levels;
    reduce_levels_begin(&levels, loops, width, columns, memory);
    for (int64_t i = 0, count; i < n; i += count) {
        count = reduce_levels_room(&levels, n - i);
        loops->rows(levels.memory, x + (size_t)(i * stride) * width, stride, count, columns, shift);
        reduce_levels_add(&levels, count);
    }
    memcpy(out, reduce_levels_end(&levels), levels.bytes);
}

void reduce_columns(enum reduction_row row, tssa_dtype dtype, void *out, const void *x,
                    int64_t stride, int64_t columns, int64_t n, const void *shift)
{
    const struct reduce_loops *loops = reduce_loops_of(row, dtype);
    const size_t width = tssa_dtype_size(dtype);
    for (int64_t i = 0; i < columns; i += BLOCK) {
        const int64_t count = columns - i < BLOCK ? columns - i : BLOCK;
        const size_t offset = (size_t)i * width;
        const void *own = shift ? (const char *)shift + offset : NULL;
        fold_columns(loops, width, (char *)out + offset, (const char *)x + offset, stride, count, n,
                     own);
        loops->finish((char *)out + offset, count, n, own);
    }
}

/* ---- Tensors --------------------------------------------------------------------------------- */

struct reduce {
    enum reduction_row row;
    const struct tensor *in;
    struct tensor *out;
    const struct axis_nest *kept, *reduced;
    const char *shift;      /* given, per result */
    tssa_dtype dtype;       /* of accumulators */
    size_t width, in_width; /* bytes */
    /* that shares the steps of a result; NULL: each result is a thread's own */
    const struct team *team;
};

static const char *element(const struct reduce *r, int64_t offset)
{
    return (const char *)r->in->data + (size_t)offset * r->in_width;
}

/* n neighbours from `offset` on in the accumulators' type; in `buffer` where that is not the
 * tensor's. */
static const void *neighbours(const struct reduce *r, int64_t offset, int64_t n, void *buffer)
{
    if (r->in->dtype == r->dtype)
        return element(r, offset);
    convert_elements(n, r->in->dtype, element(r, offset), 1, r->dtype, buffer, 1, &convert_default);
    return buffer;
}

/* Does a step have lanes? */
static bool has_lanes(const struct axis_nest *reduced)
{
    return reduced->rank && reduced->strides[reduced->rank - 1] == 1;
}

/* Results that are computed together: one with lanes, or n that lie side by side, as their elements
 * do. */
struct group {
    const struct reduce *r;
    const struct reduce_loops *loops;
    int64_t offset, n;    /* of the first element; accumulators: LANES where there are lanes */
    const void *shift;    /* of the results */
    char *shares;         /* n accumulators for each share of a team */
    int64_t first, steps; /* of the first share; of each share */
};

/* Steps [first, end) of one result, whose runs of neighbours are innermost. */
static void fold_runs(const struct group *g, struct reduce_levels *levels, int64_t first,
                      int64_t end)
{
    _Alignas(64) char buffer[CHUNK * WIDEST];
    const struct reduce *r = g->r;
    int64_t run = r->reduced->sizes[r->reduced->rank - 1], each = (run + LANES - 1) / LANES;
    for (int64_t step = first, steps; step < end; step += steps) {
        int64_t at = step % each, most = CHUNK / LANES;
        steps = each - at < end - step ? each - at : end - step;
        steps = steps < most ? steps : most;
        int64_t n = run - at * LANES < steps * LANES ? run - at * LANES : steps * LANES;
        int64_t from = g->offset + axis_nest_offset(r->reduced, step / each * run) + at * LANES;
        add_line(levels, r->width, neighbours(r, from, n, buffer), n, g->shift);
    }
}

/* Steps [first, end) of n results. */
static void fold_rows(const struct group *g, struct reduce_levels *levels, int64_t first,
                      int64_t end)
{
    _Alignas(64) char buffer[BLOCK * WIDEST];
    const struct reduce *r = g->r;
    const struct axis_nest *reduced = r->reduced;
    int64_t run = reduced->rank ? reduced->sizes[reduced->rank - 1] : 1;
    int64_t stride = reduced->rank ? reduced->strides[reduced->rank - 1] : 0;
    bool converts = r->in->dtype != r->dtype;
    for (int64_t i = first, count; i < end; i += count) {
        int64_t rest = run - i % run < end - i ? run - i % run : end - i;
        count = converts ? 1 : reduce_levels_room(levels, rest);
        const void *x = neighbours(r, g->offset + axis_nest_offset(reduced, i), g->n, buffer);
        g->loops->rows(levels->memory, x, stride, count, g->n, g->shift);
        reduce_levels_add(levels, count);
    }
}

static void fold_steps(const struct group *g, struct reduce_levels *levels, int64_t first,
                       int64_t end)
{
    (has_lanes(g->r->reduced) ? fold_runs : fold_rows)(g, levels, first, end);
}

/* ---- The steps of a result on several threads ------------------------------------------------ */

#define SHARES 4096         /* accumulators of all shares of a turn, at most */
#define MOST_SHARES RADIX   /* shares of a turn */
#define STEPS_OF_TEAM 32768 /* elements from which on a team shares them */

static void fold_shares(void *context, int64_t begin, int64_t end)
{
    const struct group *g = context;
    _Alignas(64) char memory[LEVELS * BLOCK * WIDEST];
    for (int64_t i = begin; i < end; i++) {
        struct reduce_levels levels;
        int64_t first = g->first + i * g->steps;
        reduce_levels_begin(&levels, g->loops, g->r->width, g->n, memory);
        fold_steps(g, &levels, first, first + g->steps);
        memcpy(g->shares + (size_t)i * levels.bytes, reduce_levels_end(&levels), levels.bytes);
    }
}

/* Shares of `each` steps, as many as there are from g->first on: what the order combines apart
 * anyway. */
static void fold_level(struct group *g, struct reduce_levels *levels, int level, int64_t each,
                       int64_t steps)
{
    const int64_t room = SHARES / g->n, most = room < MOST_SHARES ? room : MOST_SHARES;
    g->steps = each;
    while (steps - g->first >= each) {
        const int64_t rest = (steps - g->first) / each, count = rest < most ? rest : most;
        team_for(g->r->team, count, 1, fold_shares, g);
        for (int64_t i = 0; i < count; i++)
            reduce_levels_join(levels, level, g->shares + (size_t)i * levels->bytes);
        g->first += count * each;
    }
}

/*
 * Shares of RADIX ^ 2 steps, then of RADIX; the last few steps are left. Returns how many are done.
 */
static int64_t fold_by_team(struct group *g, struct reduce_levels *levels, int64_t steps)
{
    _Alignas(64) char shares[SHARES * WIDEST];
    g->shares = shares;
    g->first = 0;
    fold_level(g, levels, 2, RADIX * RADIX, steps);
    fold_level(g, levels, 1, RADIX, steps);
    g->shares = NULL;
    return g->first;
}

/* All steps; results or lanes to `results`. */
static void fold_all(struct group *g, void *results)
{
    _Alignas(64) char memory[LEVELS * BLOCK * WIDEST];
    const struct axis_nest *reduced = g->r->reduced;
    struct reduce_levels levels;
    int64_t steps = reduced->count, done = 0;
    if (has_lanes(reduced)) {
        int64_t run = reduced->sizes[reduced->rank - 1];
        steps = steps / run * ((run + LANES - 1) / LANES);
    }
    reduce_levels_begin(&levels, g->loops, g->r->width, g->n, memory);
    if (g->r->team)
        done = fold_by_team(g, &levels, steps);
    fold_steps(g, &levels, done, steps);
    memcpy(results, reduce_levels_end(&levels), levels.bytes);
}

/* ---- Results --------------------------------------------------------------------------------- */

/* n results whose lines begin `stride` apart. */
static void fold_lines(const struct reduce *r, const struct reduce_loops *loops, int64_t offset,
                       int64_t stride, int64_t n, const char *shift, char *results)
{
    _Alignas(64) char lanes[LANES * WIDEST];
    if (r->in->dtype == r->dtype && r->reduced->rank == 1 && r->reduced->count <= CHUNK) {
        loops->lines(results, element(r, offset), stride, n, r->reduced->count, shift);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        struct group group = {.r = r, .loops = loops, .offset = offset + i * stride, .n = LANES};
        group.shift = shift ? shift + (size_t)i * r->width : NULL;
        fold_all(&group, lanes);
        loops->halve(lanes);
        memcpy(results + (size_t)i * r->width, lanes, r->width);
    }
}

/* At most BLOCK results of a run of kept neighbours. */
static void fold_block(const struct reduce *r, enum reduction_row row, int64_t first, int64_t n,
                       const void *shift, void *results)
{
    const struct reduce_loops *loops = reduce_loops_of(row, r->dtype);
    int last = r->kept->rank - 1;
    int64_t offset = axis_nest_offset(r->kept, first);
    int64_t stride = last >= 0 ? r->kept->strides[last] : 0;
    if (r->reduced->count == 0)
        loops->fill(results, n);
    else if (has_lanes(r->reduced))
        fold_lines(r, loops, offset, stride, n, shift, results);
    else
        fold_all(&(struct group){.r = r, .loops = loops, .offset = offset, .n = n, .shift = shift},
                 results);
    loops->finish(results, n, r->reduced->count, shift);
}

static void reduce_range(void *context, int64_t begin, int64_t end)
{
    const struct reduce *r = context;
    _Alignas(64) char results[BLOCK * WIDEST], shifts[BLOCK * WIDEST];
    int64_t run = r->kept->rank ? r->kept->sizes[r->kept->rank - 1] : 1;
    size_t out_width = tssa_dtype_size(r->out->dtype);
    const int shift_row = reduction_table[r->row].shift;
    for (int64_t i = begin, n; i < end; i += n) {
        n = run - i % run < end - i ? run - i % run : end - i;
        n = n < BLOCK ? n : BLOCK;
        const void *shift = r->shift ? r->shift + (size_t)i * r->width : NULL;
        if (shift_row >= 0) {
            fold_block(r, (enum reduction_row)shift_row, i, n, NULL, shifts);
            shift = shifts;
        }
        fold_block(r, r->row, i, n, shift, results);
        convert_elements(n, r->dtype, results, 1, r->out->dtype,
                         (char *)r->out->data + (size_t)i * out_width, 1, &convert_default);
    }
}

/* How many results, of so many elements each, are enough for a thread. */
static int64_t grain_of(int64_t reduced)
{
    int64_t grain = 32768 / (reduced > 0 ? reduced : 1);
    return grain > 0 ? grain : 1;
}

/* Are there too few results for one per thread, and elements enough to share each? */
static bool shares_steps(const struct team *team, int64_t results, int64_t elements)
{
    return team && team->parallel_for && results < team->threads && elements >= STEPS_OF_TEAM;
}

void reduce_tensor(const struct team *team, enum reduction_row row, const struct tensor *in,
                   const struct axis_nest *kept, const struct axis_nest *reduced, const void *shift,
                   struct tensor *out)
{
    tssa_dtype dtype = reduction_type(row, in->dtype);
    struct reduce r = {.row = row,
                       .in = in,
                       .out = out,
                       .kept = kept,
                       .reduced = reduced,
                       .shift = shift,
                       .dtype = dtype,
                       .width = tssa_dtype_size(dtype),
                       .in_width = tssa_dtype_size(in->dtype)};
    if (shares_steps(team, kept->count, reduced->count)) {
        r.team = team;
        reduce_range(&r, 0, kept->count);
    } else {
        team_for(team, kept->count, grain_of(reduced->count), reduce_range, &r);
    }
}
