/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/copies.h"

#include <pthread.h>
#include <string.h>

#include "base/vec.h"
#include "ir/ir.h"

struct copied {
    char *data;
    const void *source;
    size_t size;
    unsigned holders;
    bool there;
};

struct ir_copies {
    pthread_mutex_t lock; /* guards what follows */
    unsigned open;
    VEC(struct copied) all; /* by address */
};

/* ---- Life ------------------------------------------------------------------------------------ */

static struct ir_copies *create(const tssa_allocator *allocator)
{
    struct ir_copies *copies = allocator_calloc(allocator, 1, sizeof *copies);
    if (!copies)
        return NULL;
    pthread_mutex_init(&copies->lock, NULL);
    copies->open = 1;
    vec_init(&copies->all, allocator);
    return copies;
}

void ir_copies_free(struct ir_copies *copies)
{
    if (!copies)
        return;
    const tssa_allocator *allocator = copies->all.allocator;
    pthread_mutex_destroy(&copies->lock);
    vec_free(&copies->all);
    allocator_free(allocator, copies);
}

/* How many begin at the address or before. */
static size_t up_to(const struct ir_copies *copies, const void *data)
{
    size_t low = 0, high = copies->all.count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((uintptr_t)copies->all.data[middle].data <= (uintptr_t)data)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool ir_copies_add(struct ir_graph *graph, void *data, const void *source, size_t size)
{
    if (size < IR_COPIES_FROM)
        return true;
    if (!graph->copies && !(graph->copies = create(graph->allocator)))
        return false;
    struct ir_copies *copies = graph->copies;
    if (!vec_reserve(&copies->all, 1))
        return false;
    const size_t at = up_to(copies, data);
    struct copied *place = copies->all.data + at;
    memmove(place + 1, place, (copies->all.count - at) * sizeof *place);
    *place = (struct copied){.data = data, .source = source, .size = size, .there = true};
    copies->all.count++;
    return true;
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* Locked; NULL: there are none. */
static struct ir_copies *lock(const struct ir_graph *graph)
{
    while (graph && !graph->copies)
        graph = graph->source;
    if (!graph)
        return NULL;
    pthread_mutex_lock(&graph->copies->lock);
    return graph->copies;
}

static struct copied *find(const struct ir_copies *copies, const void *data)
{
    const size_t n = up_to(copies, data);
    struct copied *last = n ? &copies->all.data[n - 1] : NULL;
    return last && (uintptr_t)data - (uintptr_t)last->data < last->size ? last : NULL;
}

/* ---- Being there ----------------------------------------------------------------------------- */

static void settle(const struct ir_copies *copies, struct copied *copy)
{
    const bool wanted = copies->open || copy->holders;
    if (wanted && !copy->there)
        memcpy(copy->data, copy->source, copy->size);
    if (!wanted && copy->there)
        pages_give_back(copy->data, copy->size);
    copy->there = wanted;
}

static void settle_all(struct ir_copies *copies)
{
    for (size_t i = 0; i < copies->all.count; i++)
        settle(copies, &copies->all.data[i]);
}

void ir_copies_open(const struct ir_graph *graph)
{
    struct ir_copies *copies = lock(graph);
    if (!copies)
        return;
    copies->open++;
    settle_all(copies);
    pthread_mutex_unlock(&copies->lock);
}

void ir_copies_leave(const struct ir_graph *graph)
{
    struct ir_copies *copies = lock(graph);
    if (!copies)
        return;
    copies->open--;
    settle_all(copies);
    pthread_mutex_unlock(&copies->lock);
}

bool ir_copies_hold(const struct ir_graph *graph, const void *data)
{
    struct ir_copies *copies = lock(graph);
    if (!copies)
        return false;
    struct copied *copy = find(copies, data);
    if (copy) {
        copy->holders++;
        settle(copies, copy);
    }
    pthread_mutex_unlock(&copies->lock);
    return copy != NULL;
}

void ir_copies_drop(const struct ir_graph *graph, const void *data)
{
    struct ir_copies *copies = lock(graph);
    if (!copies)
        return;
    struct copied *copy = find(copies, data);
    if (copy) {
        copy->holders--;
        settle(copies, copy);
    }
    pthread_mutex_unlock(&copies->lock);
}

size_t ir_copies_there(const struct ir_graph *graph)
{
    struct ir_copies *copies = lock(graph);
    size_t bytes = 0;
    if (!copies)
        return 0;
    for (size_t i = 0; i < copies->all.count; i++)
        bytes += copies->all.data[i].there ? copies->all.data[i].size : 0;
    pthread_mutex_unlock(&copies->lock);
    return bytes;
}
