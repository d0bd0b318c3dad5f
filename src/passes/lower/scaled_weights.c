/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/lower/scaled_weights.h"

#include <string.h>

/* In the arena of the graph, newest first. */
struct ir_scaled {
    struct ir_scaled *next;
    struct product of; /* of its pointers, the weights alone are looked at */
    struct scales by;
    const struct tensor *made;
};

static bool are_same(const double *a, const double *b, int64_t count)
{
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

/* Factors of both belong to the same weights: the operator may be another one. */
static bool is_made_so(const struct ir_scaled *s, const struct product *p, const struct scales *by)
{
    const struct product *q = &s->of;
    return q->w->data == p->w->data && q->w->dtype == p->w->dtype && q->w->rank == p->w->rank &&
           memcmp(q->w->dims, p->w->dims, (size_t)p->w->rank * sizeof *p->w->dims) == 0 &&
           q->in == p->in && q->out == p->out && q->groups == p->groups && q->inner == p->inner &&
           q->step_in == p->step_in && q->step_out == p->step_out && q->turned == p->turned &&
           are_same(s->by.in, by->in, p->in) && are_same(s->by.out, by->out, p->out);
}

const struct tensor *scaled_weights_find(const struct ir_graph *graph, const struct product *p,
                                         const struct scales *by)
{
    for (; graph; graph = graph->source)
        for (const struct ir_scaled *s = graph->scaled; s; s = s->next)
            if (is_made_so(s, p, by))
                return s->made;
    return NULL;
}

static const double *keep(struct ir_graph *graph, const double *factors, int64_t count)
{
    double *kept = ARENA_ARRAY(&graph->arena, double, (size_t)count);
    if (kept)
        memcpy(kept, factors, (size_t)count * sizeof *kept);
    return kept;
}

tssa_status *scaled_weights_add(struct ir_graph *graph, const struct product *p,
                                const struct scales *by, const struct tensor *made)
{
    struct ir_scaled *s = ARENA_NEW(&graph->arena, struct ir_scaled);
    TRY_ALLOC(s);
    *s = (struct ir_scaled){
        .next = graph->scaled,
        .of = *p,
        .by = {keep(graph, by->in, p->in), keep(graph, by->out, p->out)},
        .made = made,
    };
    TRY_ALLOC(s->by.in);
    TRY_ALLOC(s->by.out);
    graph->scaled = s;
    return NULL;
}
