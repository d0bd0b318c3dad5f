/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/choice.h"

/* Of a byte: in a core's cache, in the one that cores share, and in memory. */
#define SECONDS_BYTE_CACHE 0.04e-9
#define SECONDS_BYTE_SHARED 0.1e-9
#define SECONDS_BYTE_MEMORY 0.25e-9
#define CACHE_BYTES ((double)CHOICE_BLOCK_BYTES)
#define SHARED_BYTES ((double)(16 << 20))

/*
 * Sizes decide nothing where the loop is given and leaves more bytes, or takes more seconds. Memory that is
 * made is at most a multiple of what is fixed there and grows no faster than with a size and the number of
 * iterations, which smaller sizes have shown already, and nobody waits for such a loop: what would speak
 * against a rewriting only there would keep loops as they are whose every real run is thousands of times
 * smaller.
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

double choice_seconds(const struct cost_work *work, double live)
{
    return work->calls * CHOICE_SECONDS_CALL + work->bytes * choice_seconds_byte(live) +
           work->operations * CHOICE_SECONDS_OPERATION;
}

/* ---- Sizes that are tried ------------------------------------------------------------------------- */

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

/* ---- The choice ----------------------------------------------------------------------------------- */

/* The figures that a remark tells: those of the sizes that speak most against all at once. */
static void note(struct choice *choice, const struct choice_figures *f, bool fits)
{
    const struct choice_figures *told = &choice->told;
    bool first = told->may == 0, worse = f->all / f->may > told->all / told->may;
    if (!first && (fits ? told->all > told->may || f->batched <= MOST_LOSS * f->loop : !worse))
        return;
    choice->told = *f;
}

/* One point: may it be all at once, and would blocks win, or lose? */
static void weigh(struct choice *choice, const struct cost_sizes *sizes, bool *all, bool *blocks,
                  bool *loses)
{
    struct choice_figures f = {0};
    bool possible = choice->figures(choice->context, sizes, &f);
    if (choice->n_symbols && (!possible || f.fixed > LARGEST || f.loop > LONGEST))
        return;
    bool fits = f.all <= f.may;
    note(choice, &f, fits);
    *all &= fits && f.batched <= MOST_LOSS * f.loop;
    *blocks |= f.loop >= LEAST_GAIN * f.blocks;
    *loses |= f.blocks > MOST_LOSS * f.loop + SECONDS_ONCE;
}

void choice_make(struct choice *choice)
{
    static const int64_t sizes[] = {1, 32, 1024, 32768, 1 << 20};
    size_t n = choice->n_symbols ? sizeof sizes / sizeof *sizes : 1;
    bool all = true, blocks = false, loses = false;
    for (int s = 0; s < (choice->n_symbols ? choice->n_symbols : 1); s++)
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < (choice->n_symbols > 1 ? n : 1); k++) {
                const struct cost_sizes point = {choice->symbols[s], sizes[i], sizes[k]};
                weigh(choice, &point, &all, &blocks, &loses);
            }
    choice->known = choice->n_symbols == 0;
    choice->way = all ? CHOICE_ALL : blocks && !loses ? CHOICE_BLOCKS : CHOICE_LEAVE;
}

/* ---- What is said about it ------------------------------------------------------------------------ */

#define MIB(bytes) ((bytes) / (1 << 20))

tssa_status *choice_remark(const struct choice *choice, const struct pass_context *pass,
                           const struct ir_op *loop, const char *const words[3])
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
    return pass_remark(pass, kind, loop,
                       "%s (sizes that only a run tells could make it %.2g times the memory that "
                       "may be, and %.2g times the time of the loop)",
                       way, told->all / told->may, told->batched / told->loop);
}
