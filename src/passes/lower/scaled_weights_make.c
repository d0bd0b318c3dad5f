/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/lower/scaled_weights.h"

#include <math.h>
#include <string.h>

static struct tensor *create_tensor(struct ir_graph *graph, const struct tensor *like, int rank,
                                    const int64_t *dims)
{
    struct tensor *tensor = ARENA_NEW(&graph->arena, struct tensor);
    if (!tensor)
        return NULL;
    *tensor = (struct tensor){.dtype = like->dtype, .rank = rank};
    memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
    tensor->data = arena_alloc_aligned(&graph->arena, tensor_bytes(tensor), TENSOR_ALIGNMENT);
    return tensor->data ? tensor : NULL;
}

#define NOT_FINITE "weights would not be finite"

/* NULL, or why it cannot be said. */
static const char *put_number(struct tensor *tensor, int64_t index, double value)
{
    if (tensor->dtype == TSSA_FLOAT)
        ((float *)tensor->data)[index] = (float)value;
    else if (tensor->dtype == TSSA_DOUBLE)
        ((double *)tensor->data)[index] = value;
    else
        ((uint16_t *)tensor->data)[index] = double_to_half(value);
    double stored = product_number(tensor, index);
    if (!isfinite(stored))
        return NOT_FINITE;
    return tensor->dtype == TSSA_FLOAT16 && stored != value
               ? "weights would be so small that FLOAT16 has fewer bits for them"
               : NULL;
}

/* Of output o's group, among all input channels. */
static int64_t first_input(const struct product *p, int64_t o)
{
    return o / (p->out / p->groups) * (p->in / p->groups);
}

/* The first weight of output o and of input 0 of its group. */
static int64_t place_of(const struct product *p, int64_t o)
{
    return p->turned ? first_input(p, o) * p->step_in + o % (p->out / p->groups) * p->step_out
                     : o * p->step_out;
}

/* Outputs that are visited together, weight by weight: those of a matrix lie side by side, and to
 * go down its columns one by one reads a line of the cache for each element. */
#define TOGETHER 16

struct outputs {
    int64_t first, n;
    int64_t inputs[TOGETHER], places[TOGETHER]; /* input 0 of each one's group, and its weights */
};

static struct outputs some_outputs(const struct product *p, int64_t first)
{
    struct outputs some = {.first = first,
                           .n = p->out - first < TOGETHER ? p->out - first : TOGETHER};
    for (int64_t o = 0; o < some.n; o++) {
        some.inputs[o] = first_input(p, first + o);
        some.places[o] = place_of(p, first + o);
    }
    return some;
}

/* Do they lie side by side, of float32, with one weight for each input, as those of a matrix do? */
static bool are_a_row(const struct product *p, const struct outputs *some)
{
    bool row = p->w->dtype == TSSA_FLOAT && p->inner == 1;
    for (int64_t o = 1; o < some->n; o++)
        row &= some->places[o] == some->places[0] + o && some->inputs[o] == some->inputs[0];
    return row;
}

/* As scale_rows. */
static const char *scale_a_row(const struct product *p, const struct affine *in,
                               const struct affine *out, const struct outputs *some,
                               struct tensor *w)
{
    bool finite = true;
    for (int64_t i = 0; i < p->in / p->groups; i++) {
        const int64_t place = some->places[0] + i * p->step_in;
        const float *from = (const float *)p->w->data + place;
        float *to = (float *)w->data + place;
        const double factor = in->factor[some->inputs[0] + i];
        for (int64_t o = 0; o < some->n; o++) {
            to[o] = (float)((double)from[o] * (out->factor[some->first + o] * factor));
            finite &= isfinite(to[o]);
        }
    }
    return finite ? NULL : NOT_FINITE;
}

/* Scales their weights. NULL, or why these cannot be said. */
static const char *scale_rows(const struct product *p, const struct affine *in,
                              const struct affine *out, const struct outputs *some,
                              struct tensor *w)
{
    if (are_a_row(p, some))
        return scale_a_row(p, in, out, some, w);
    for (int64_t i = 0; i < p->in / p->groups; i++)
        for (int64_t o = 0; o < some->n; o++) {
            const double factor = out->factor[some->first + o] * in->factor[some->inputs[o] + i];
            const int64_t place = some->places[o] + i * p->step_in;
            for (int64_t k = 0; k < p->inner; k++) {
                const double number = product_number(p->w, place + k) * factor;
                const char *obstacle = put_number(w, place + k, number);
                if (obstacle)
                    return obstacle;
            }
        }
    return NULL;
}

/* What the shifts of the inputs add to them. */
static void shift_rows(const struct product *p, const struct affine *in, const struct outputs *some,
                       double *sums)
{
    for (int64_t i = 0; i < p->in / p->groups; i++)
        for (int64_t o = 0; o < some->n; o++)
            for (int64_t k = 0; k < p->inner; k++)
                sums[o] += product_number(p->w, some->places[o] + i * p->step_in + k) *
                           in->shift[some->inputs[o] + i];
}

/* Weights and biases of some outputs, of which either may be NULL. */
static const char *make_rows(const struct product *p, const struct affine *in,
                             const struct affine *out, const struct outputs *some, struct tensor *w,
                             struct tensor *bias)
{
    double shifts[TOGETHER] = {0};
    const char *obstacle = w ? scale_rows(p, in, out, some, w) : NULL;
    if (in->shifts)
        shift_rows(p, in, some, shifts);
    for (int64_t o = some->first; o < some->first + some->n && bias && !obstacle; o++) {
        const double b = (p->bias ? product_number(p->bias, o) : 0) + shifts[o - some->first];
        obstacle = put_number(bias, o, b * out->factor[o] + out->shift[o]);
    }
    return obstacle;
}

tssa_status *scaled_weights_make(struct ir_graph *graph, const struct product *p,
                                 const struct affine *in, const struct affine *out,
                                 struct scaled_weights *made)
{
    const struct scales by = {in->factor, out->factor};
    const bool scales = in->scales || out->scales;
    struct tensor *w = NULL;
    *made = (struct scaled_weights){.w = scales ? scaled_weights_find(graph, p, &by) : NULL};
    if (scales && !made->w) {
        made->w = w = create_tensor(graph, p->w, p->w->rank, p->w->dims);
        TRY_ALLOC(w);
    }
    if (in->shifts || out->shifts || (p->bias && out->scales)) {
        made->bias = create_tensor(graph, p->w, 1, &p->out);
        TRY_ALLOC(made->bias);
    }
    for (int64_t o = 0; o < p->out && !made->obstacle; o += TOGETHER) {
        const struct outputs some = some_outputs(p, o);
        made->obstacle = make_rows(p, in, out, &some, w, made->bias);
    }
    return w && !made->obstacle ? scaled_weights_add(graph, p, &by, w) : NULL;
}
