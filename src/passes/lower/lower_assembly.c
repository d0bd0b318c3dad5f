/* SPDX-License-Identifier: Apache-2.0 */
/* An axis that is put together anew; see lower_assembly.h. */
#include "passes/lower/lower_assembly.h"

/* More pieces of a Concat than this cost more than a Gather from all of them. */
#define MAX_PIECES 32
#define MAX_PLACES 4096 /* of an axis that is written piece by piece */

bool lower_has_places(const struct region *region, int axis, int64_t *dim)
{
    int64_t start, count;
    return lower_const_axis(&region->axes[axis], &start, &count) &&
           dim_is_const(region->base[axis], dim) && *dim <= MAX_PLACES;
}

static bool continues(const struct assembly *a, int64_t i)
{
    return i > 0 && a->origins[i].source == a->origins[i - 1].source &&
           a->origins[i].at == a->origins[i - 1].at + 1;
}

static struct ir_value *assemble_pieces(struct assembly *a)
{
    struct ir_value *parts[MAX_PIECES];
    uint32_t n = 0;
    for (int64_t i = 0, end; i < a->n; i = end) {
        const struct assembly_origin *from = &a->origins[i];
        for (end = i + 1; end < a->n && continues(a, end); end++)
            ;
        if (n == MAX_PIECES)
            return NULL;
        parts[n++] =
            lower_cut(a->l, a->sources[from->source], a->axis, from->at, from->at + end - i);
    }
    return lower_concat(a->l, n, parts, a->axis);
}

static int64_t count_pieces(const struct assembly *a)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->n; i++)
        n += !continues(a, i);
    return n;
}

/* From all sources that are used, one behind the other. */
static struct ir_value *assemble_gather(struct assembly *a, int64_t *places, int64_t *firsts)
{
    struct ir_value **used = a->sources; /* compacted in place */
    uint32_t n = 0;
    int64_t end = 0, size;
    for (uint32_t s = 0; s < a->n_sources; s++) {
        bool is_used = false;
        for (int64_t i = 0; i < a->n && !is_used; i++)
            is_used = a->origins[i].source == s;
        if (!is_used || a->l->status || lower_rank(a->sources[s]) <= a->axis ||
            !dim_is_const(a->sources[s]->type->dims[a->axis], &size))
            continue;
        firsts[s] = end;
        end += size;
        used[n++] = a->sources[s];
    }
    for (int64_t i = 0; i < a->n; i++)
        places[i] = firsts[a->origins[i].source] + a->origins[i].at;
    struct ir_value *const operands[] = {lower_concat(a->l, n, used, a->axis),
                                         lower_ints(a->l, 1, (size_t)a->n, places)};
    return lower_emit_axis(a->l, IR_OP_Gather, 2, operands, a->axis);
}

struct ir_value *assembly_make(struct assembly *a)
{
    const tssa_allocator *allocator = a->l->graph->allocator;
    struct ir_value *y = NULL;
    if (a->l->status || a->n == 0)
        return a->sources[0];
    if (count_pieces(a) <= MAX_PIECES)
        return assemble_pieces(a);
    int64_t *places = allocator_calloc(allocator, (size_t)a->n, sizeof *places);
    int64_t *firsts = allocator_calloc(allocator, a->n_sources, sizeof *firsts);
    if (places && firsts)
        y = assemble_gather(a, places, firsts);
    else if (!a->l->status)
        a->l->status = status_out_of_memory();
    allocator_free(allocator, places);
    allocator_free(allocator, firsts);
    return y;
}

tssa_status *assembly_init(struct assembly *a, struct lowering *l, struct ir_value *x, int axis,
                           int64_t n, uint32_t n_writes)
{
    const tssa_allocator *allocator = l->graph->allocator;
    *a = (struct assembly){.l = l, .axis = axis, .n = n, .n_sources = 1};
    a->origins = allocator_calloc(allocator, (size_t)n + 1, sizeof *a->origins);
    a->sources = allocator_calloc(allocator, (size_t)n_writes + 1, sizeof *a->sources);
    TRY_ALLOC(a->origins);
    TRY_ALLOC(a->sources);
    a->sources[0] = x;
    for (int64_t i = 0; i < n; i++)
        a->origins[i].at = i;
    return NULL;
}

void assembly_free(struct assembly *a)
{
    allocator_free(a->l->graph->allocator, a->origins);
    allocator_free(a->l->graph->allocator, a->sources);
}

void assembly_write(struct assembly *a, const struct region_axis *at, struct ir_value *part)
{
    int64_t start = 0, count = 0;
    (void)lower_const_axis(at, &start, &count);
    a->sources[a->n_sources] = part;
    for (int64_t i = 0; i < count; i++)
        a->origins[start + i * at->step] = (struct assembly_origin){a->n_sources, i};
    a->n_sources++;
}

struct ir_value *lower_write_pieces(struct writer *w, struct ir_value *x, struct ir_value *part,
                                    int axis)
{
    struct assembly a;
    struct ir_value *y = NULL;
    int64_t dim;
    if (!lower_has_places(&w->region, axis, &dim))
        return NULL;
    tssa_status *status = assembly_init(&a, w->l, x, axis, dim, 1);
    if (!status) {
        assembly_write(&a, &w->region.axes[axis], part);
        y = assembly_make(&a);
    } else if (!w->l->status) {
        w->l->status = status;
    } else {
        tssa_status_free(status);
    }
    assembly_free(&a);
    return y;
}
