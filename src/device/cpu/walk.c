/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/walk.h"

#include <inttypes.h>
#include <string.h>

#include "gir/triangle.h"

tssa_status *walk_does_not_fit(uint32_t index, const struct tensor *tensor)
{
    char text[160];
    tensor_describe(tensor, text, sizeof text);
    return ERROR(TSSA_RUNTIME, "operand %" PRIu32 " (%s) does not fit the others' shapes", index,
                 text);
}

int64_t walk_slices(const struct team *team, int64_t count)
{
    const int64_t most = !team                              ? 1
                         : team->threads < WALK_MOST_SLICES ? team->threads
                                                            : WALK_MOST_SLICES,
                  slices = count / WALK_GRAIN;
    return slices < 1 ? 1 : slices < most ? slices : most;
}

int64_t walk_slice_begin(int64_t count, int64_t n, int64_t slice)
{
    return count / n * slice + (slice < count % n ? slice : count % n);
}

void walk_finish(struct walk *walk)
{
    const size_t bytes = walk->n_args * sizeof *walk->given;
    for (; walk->n_axes < 2; walk->n_axes++) {
        walk->sizes[walk->n_axes] = 1;
        memset(walk->steps[walk->n_axes], 0, bytes);
    }
    memcpy(walk->given, walk->steps[1], bytes);
    memcpy(walk->given + walk->n_args, walk->steps[0], bytes);
}

/* The place of element number `begin` along the axes. */
static void go_to(const struct walk *walk, int64_t begin, int64_t *index, char **at)
{
    for (uint32_t k = 0; k < walk->n_args; k++)
        at[k] = walk->data[k];
    for (int axis = 0; axis < walk->n_axes; axis++) {
        index[axis] = begin % walk->sizes[axis];
        begin /= walk->sizes[axis];
        for (uint32_t k = 0; k < walk->n_args && index[axis]; k++)
            at[k] += index[axis] * walk->steps[axis][k];
    }
}

void walk_run_checked(const struct walk *walk, int64_t begin, int64_t end, int64_t *told)
{
    const int64_t length = walk->sizes[0];
    while (begin < end) {
        int64_t index[TSSA_MAX_RANK], n = length, rows = 1;
        char *at[GIR_MAX_ARGS];
        go_to(walk, begin, index, at);
        if (index[0] || end - begin < length)
            n = length - index[0] < end - begin ? length - index[0] : end - begin;
        else
            rows = (end - begin) / length;
        if (rows > walk->sizes[1] - index[1])
            rows = walk->sizes[1] - index[1];
        if (told)
            told[2 * walk->n_args] = begin;
        walk->code->run((void *const *)at, walk->given, rows, n, &walk->code->calls, told);
        begin += rows * n;
    }
}

void walk_run(void *context, int64_t begin, int64_t end)
{
    walk_run_checked(context, begin, end, NULL);
}

/* ---- Columns --------------------------------------------------------------------------------- */

/* Columns of a triangle that are computed together: a vector has no more. */
#define BLOCK 32

void walk_run_columns_in(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct walk *walk = context;
    while (begin < end) {
        int64_t index[TSSA_MAX_RANK], rows = walk->reduced;
        char *at[GIR_MAX_ARGS];
        go_to(walk, begin, index, at);
        const int64_t left = walk->sizes[0] - index[0];
        int64_t n = left < end - begin ? left : end - begin;
        if (walk->is_triangle) {
            n = n < BLOCK ? n : BLOCK;
            rows = gir_triangle_rows(walk->diagonal, index[0] + n, rows);
        }
        walk->code->run((void *const *)at, walk->given, rows, n, &walk->code->calls, scratch);
        begin += n;
    }
}

/* Bytes that walk_run_columns has for what is kept. */
#define COLUMNS_MOST 65536

bool walk_kept_bytes(const struct walk *walk, size_t *bytes)
{
    return size_mul((size_t)walk->reduced, CODEGEN_MORE * walk->code->kept, bytes);
}

bool walk_keeps_little(const struct walk *walk)
{
    size_t bytes;
    return walk_kept_bytes(walk, &bytes) && bytes <= COLUMNS_MOST;
}

void walk_run_columns(void *walk, int64_t begin, int64_t end)
{
    _Alignas(TENSOR_ALIGNMENT) char kept[COLUMNS_MOST];
    walk_run_columns_in(walk, kept, begin, end);
}

/* ---- Calls that are set up ------------------------------------------------------------------- */

/* Bytes that a call has for what is kept of a row. */
#define KEPT_MOST 8192

static bool keeps_little(const struct walk *walk)
{
    size_t bytes;
    return size_mul((size_t)walk->sizes[0] + CODEGEN_MORE, walk->code->kept, &bytes) &&
           bytes <= KEPT_MOST;
}

/* All there is, in one call of the code. */
static void make_one(struct kernel_call *call)
{
    const struct walk *walk = &((struct walk_call *)call)->walk;
    _Alignas(TENSOR_ALIGNMENT) char kept[KEPT_MOST];
    walk->code->run((void *const *)walk->data, walk->given, walk->sizes[1], walk->sizes[0],
                    &walk->code->calls, kept);
}

static void make_elements(struct kernel_call *call)
{
    struct walk_call *c = (struct walk_call *)call;
    team_for(call->team, c->count, WALK_GRAIN, walk_run, &c->walk);
}

static void make_columns(struct kernel_call *call)
{
    struct walk_call *c = (struct walk_call *)call;
    team_for(call->team, c->count, WALK_GRAIN / (c->walk.reduced + 1) + 1, walk_run_columns,
             &c->walk);
}

/* Numbers of the loop may tell how many rows there are, and how long they are. */
static bool is_same(const struct kernel_call *x, const struct kernel_call *y)
{
    const struct walk_call *a = (const struct walk_call *)x, *b = (const struct walk_call *)y;
    const struct walk *v = &a->walk, *w = &b->walk;
    const size_t bytes = v->n_args * sizeof *v->given;
    bool same = a->count == b->count && v->code == w->code && v->n_axes == w->n_axes &&
                (x->make != make_columns || v->reduced == w->reduced) &&
                memcmp(v->given, w->given, 2 * bytes) == 0;
    for (int axis = 0; same && axis < v->n_axes; axis++)
        same =
            v->sizes[axis] == w->sizes[axis] && memcmp(v->steps[axis], w->steps[axis], bytes) == 0;
    return same;
}

bool walk_set_up(struct walk_call *call, const struct team *team, enum walk_kind kind)
{
    struct walk *walk = &call->walk;
    const bool small = walk->n_axes == 2 && walk->sizes[0] * walk->sizes[1] < 2 * WALK_GRAIN;
    if (kind == WALK_WHOLE_ROWS && (!small || !keeps_little(walk)))
        return false;
    if (kind == WALK_COLUMNS && !walk_keeps_little(walk))
        return false;
    call->call = (struct kernel_call){.make = kind == WALK_COLUMNS ? make_columns
                                              : small              ? make_one
                                                                   : make_elements,
                                      .data = walk->data,
                                      .n_data = walk->n_args,
                                      .team = team,
                                      .is_same = is_same};
    return true;
}
