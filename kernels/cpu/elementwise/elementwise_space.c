/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcasting: the index space of a result and how each operand walks it. */
#include "kernels/cpu/elementwise/elementwise_space.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static tssa_status *do_not_fit(int rank, const int64_t *shape, const struct tensor *operand)
{
    struct tensor so_far = {.dtype = operand->dtype, .rank = rank};
    if (rank > 0)
        memcpy(so_far.dims, shape, (size_t)rank * sizeof *shape);
    char a[200], b[200];
    tensor_describe(&so_far, a, sizeof a);
    tensor_describe(operand, b, sizeof b);
    return ERROR(TSSA_RUNTIME, "%s and %s cannot be broadcast to one shape", a, b);
}

tssa_status *ew_broadcast(int *rank, int64_t *shape, const struct tensor *operand)
{
    int wider = operand->rank - *rank;
    if (wider > 0) {
        for (int i = *rank - 1; i >= 0; i--)
            shape[i + wider] = shape[i];
        for (int i = 0; i < wider; i++)
            shape[i] = 1;
        *rank = operand->rank;
    }
    int offset = *rank - operand->rank;
    for (int i = 0; i < operand->rank; i++) {
        int64_t dim = operand->dims[i];
        if (shape[offset + i] == 1)
            shape[offset + i] = dim;
        else if (dim != 1 && dim != shape[offset + i])
            return do_not_fit(*rank, shape, operand);
    }
    return NULL;
}

/* ---- Making a space -------------------------------------------------------------------------- */

/* The product of the shape. Zero dims count as one for the overflow check, so that no stride
 * overflows. */
static tssa_status *count_elements(struct ew_space *space)
{
    int64_t count = 1;
    bool empty = false;
    for (int i = 0; i < space->rank; i++) {
        empty |= space->shape[i] == 0;
        if (!i64_mul(count, space->shape[i] ? space->shape[i] : 1, &count))
            return ERROR(TSSA_LIMIT, "the result has more elements than can be counted");
    }
    space->count = empty ? 0 : count;
    return NULL;
}

static void make_one_loop(struct ew_space *space)
{
    space->inner = space->count;
    space->out_step = 1;
    space->n_outer = 0;
}

/* All operands have the result's shape or one element: the space is one loop. */
static bool make_flat(struct ew_space *space, uint32_t n, const struct tensor *const *operands)
{
    for (uint32_t k = 0; k < n; k++) {
        const struct tensor *operand = operands[k];
        int64_t step = 0;
        if (operand && operand->rank > 0) {
            step = operand->rank == space->rank;
            for (int i = 0; i < operand->rank && step; i++)
                step = operand->dims[i] == space->shape[i];
            if (!step && tensor_count(operand) != 1 && space->count > 0)
                return false;
        }
        space->in_step[k] = step;
    }
    make_one_loop(space);
    return true;
}

/*
 * Adds a dim outside the others, or merges it into the outermost one where all walk the two as one.
 */
static void add_dim(struct ew_space *space, int64_t extent, int64_t out, const int64_t *in)
{
    int last = space->n_outer - 1;
    bool merge = last >= 0 && out == space->outer_out[last] * space->outer[last];
    for (uint32_t k = 0; k < space->n_in && merge; k++)
        merge = in[k] == space->outer_in[last][k] * space->outer[last];
    if (merge) {
        space->outer[last] *= extent;
        return;
    }
    space->outer[++last] = extent;
    space->outer_out[last] = out;
    for (uint32_t k = 0; k < space->n_in; k++)
        space->outer_in[last][k] = in[k];
    space->n_outer = last + 1;
}

static void make_nested(struct ew_space *space, const struct tensor *const *operands)
{
    /* Innermost dims first; reversed below. */
    assert(space->n_in <= EW_MAX_OPERANDS);
    int64_t out = 1, step[EW_MAX_OPERANDS] = {1, 1, 1};
    space->n_outer = 0;
    for (int i = space->rank - 1; i >= 0; i--) {
        int64_t in[EW_MAX_OPERANDS] = {0};
        for (uint32_t k = 0; k < space->n_in; k++) {
            int d = operands[k] ? i - (space->rank - operands[k]->rank) : -1;
            int64_t dim = d < 0 ? 1 : operands[k]->dims[d];
            in[k] = dim == 1 ? 0 : step[k];
            step[k] *= dim;
        }
        if (space->shape[i] != 1)
            add_dim(space, space->shape[i], out, in);
        out *= space->shape[i];
    }
    /* The inner loop is the innermost dim, unless that is short and another one is long. */
    int chosen = 0;
    if (space->outer[0] < 8)
        for (int i = 1; i < space->n_outer; i++)
            if (space->outer[i] >= 8 * space->outer[chosen])
                chosen = i;
    space->inner = space->outer[chosen];
    space->out_step = space->outer_out[chosen];
    memcpy(space->in_step, space->outer_in[chosen], sizeof space->in_step);
    int n = 0;
    for (int i = 0; i < space->n_outer; i++) {
        if (i == chosen)
            continue;
        space->outer[n] = space->outer[i];
        space->outer_out[n] = space->outer_out[i];
        memmove(space->outer_in[n], space->outer_in[i], sizeof space->outer_in[n]);
        n++;
    }
    space->n_outer = n;
}

/* All operands have one shape, as most do: nothing is broadcast, and nothing compared again. */
static bool have_one_shape(uint32_t n, const struct tensor *const *operands)
{
    for (uint32_t k = 1; k < n; k++)
        if (!operands[k] || !tensor_same_shape(operands[k], operands[0]))
            return false;
    return true;
}

static tssa_status *make_one_shape(struct ew_space *space, const struct tensor *operand)
{
    space->rank = operand->rank;
    for (int i = 0; i < operand->rank; i++)
        space->shape[i] = operand->dims[i];
    for (uint32_t k = 0; k < space->n_in; k++)
        space->in_step[k] = 1;
    TRY(count_elements(space));
    make_one_loop(space);
    return NULL;
}

tssa_status *ew_space_make(struct ew_space *space, uint32_t n, const struct tensor *const *operands)
{
    space->rank = 0;
    space->n_in = n;
    if (have_one_shape(n, operands))
        return make_one_shape(space, operands[0]);
    for (uint32_t k = 0; k < n; k++)
        if (operands[k])
            TRY(ew_broadcast(&space->rank, space->shape, operands[k]));
    TRY(count_elements(space));
    if (!make_flat(space, n, operands))
        make_nested(space, operands);
    return NULL;
}

/* ---- Walking --------------------------------------------------------------------------------- */

void ew_cursor_start(struct ew_cursor *cursor, const struct ew_space *space, int64_t begin,
                     int64_t end)
{
    cursor->space = space;
    cursor->remaining = end - begin;
    cursor->stretch = 0;
    cursor->position = begin;
    cursor->out_offset = 0;
    for (uint32_t k = 0; k < space->n_in; k++)
        cursor->in_offset[k] = 0;
    if (space->n_outer > 0) {
        cursor->position = begin % space->inner;
        int64_t rest = begin / space->inner;
        for (int i = 0; i < space->n_outer; i++) {
            int64_t index = cursor->index[i] = rest % space->outer[i];
            rest /= space->outer[i];
            cursor->out_offset += index * space->outer_out[i];
            for (uint32_t k = 0; k < space->n_in; k++)
                cursor->in_offset[k] += index * space->outer_in[i][k];
        }
    }
    cursor->out_offset += cursor->position * space->out_step;
    for (uint32_t k = 0; k < space->n_in; k++)
        cursor->in_offset[k] += cursor->position * space->in_step[k];
}

static void move(struct ew_cursor *cursor, int64_t by, int64_t out, const int64_t *in)
{
    cursor->out_offset += by * out;
    for (uint32_t k = 0; k < cursor->space->n_in; k++)
        cursor->in_offset[k] += by * in[k];
}

int64_t ew_cursor_next(struct ew_cursor *cursor)
{
    const struct ew_space *space = cursor->space;
    if (cursor->remaining <= 0)
        return 0;
    if (cursor->stretch > 0) {
        /* To the start of the next inner loop. */
        move(cursor, -cursor->position, space->out_step, space->in_step);
        cursor->position = 0;
        for (int i = 0; i < space->n_outer; i++) {
            move(cursor, 1, space->outer_out[i], space->outer_in[i]);
            if (++cursor->index[i] < space->outer[i])
                break;
            move(cursor, -space->outer[i], space->outer_out[i], space->outer_in[i]);
            cursor->index[i] = 0;
        }
    }
    int64_t n = space->inner - cursor->position;
    if (n > cursor->remaining)
        n = cursor->remaining;
    cursor->stretch = n;
    cursor->remaining -= n;
    return n;
}
