/* SPDX-License-Identifier: Apache-2.0 */
#include "api/generation.h"

#include <string.h>

#include "runtime/poison.h"

static tssa_status *fill(struct generation *generation, const struct ir_graph *graph,
                         struct device_context *device, struct generation_extras extras)
{
    TRY(plan_compile(graph, device, &generation->plan));
    if (extras.poison)
        TRY(poison_plan(generation->plan));
    if (!extras.profile)
        return NULL;
    generation->profile = allocator_calloc(generation->allocator, generation->plan->n_steps + 1u,
                                           sizeof *generation->profile);
    TRY_ALLOC(generation->profile);
    return NULL;
}

tssa_status *generation_create(const struct ir_graph *graph, struct ir_graph *own,
                               struct device_context *device, struct generation_extras extras,
                               struct generation **out)
{
    struct generation *generation = allocator_calloc(device->allocator, 1, sizeof *generation);
    if (!generation) {
        ir_graph_free(own);
        return status_out_of_memory();
    }
    generation->allocator = device->allocator;
    generation->graph = own;
    vec_init(&generation->idle, device->allocator);
    tssa_status *status = fill(generation, graph, device, extras);
    if (status)
        generation_free(generation);
    else
        *out = generation;
    return status;
}

tssa_status *generation_place(struct generation *generation)
{
    if (!generation->placed)
        TRY(plan_place(generation->plan));
    generation->placed = true;
    return NULL;
}

/* ---- Run states ------------------------------------------------------------------------------ */

tssa_status *generation_get_ready(struct generation *generation, const struct team *team,
                                  const atomic_bool *stop)
{
    const struct plan *plan = generation->plan;
    struct run *run;
    if (!slab_is_known(plan))
        return NULL;
    TRY(generation_place(generation));
    TRY(run_create(plan, generation->allocator, team, generation->profile != NULL, &run));
    run->stop = stop;
    slab_get_ready(run);
    if (generation_give(generation, run, 0))
        return NULL;
    run_free(run);
    return status_out_of_memory();
}

bool generation_records(const struct generation *generation)
{
    const struct plan *plan = generation->plan;
    return plan->device->device->record_begin && !plan->driven;
}

static struct run *take_at(struct generation *generation, size_t index)
{
    struct idle_run *idle = generation->idle.data;
    struct run *run = idle[index].run;
    memmove(idle + index, idle + index + 1, (generation->idle.count - index - 1) * sizeof *idle);
    generation->idle.count--;
    return run;
}

/* Was there a run with these shapes lately? There is one now. */
static bool see(struct generation *generation, uint64_t shapes)
{
    for (uint32_t i = 0; i < GENERATION_SEEN; i++)
        if (generation->seen[i] == shapes)
            return true;
    generation->seen[generation->n_seen++ % GENERATION_SEEN] = shapes;
    return false;
}

/*
 * Each state has a recording of the latest shapes alone, and memory of its own. So shapes that come
 * again get one of their own, as far as there may be, and others the one that was not used for
 * longest.
 */
static struct run *take_recording(struct generation *generation, uint64_t shapes)
{
    const size_t n = generation->idle.count;
    const bool again = see(generation, shapes);
    for (size_t i = n; i-- > 0;)
        if (generation->idle.data[i].shapes == shapes)
            return take_at(generation, i);
    if (n == 0 || (again && n + generation->out <= GENERATION_STATES))
        return NULL;
    return take_at(generation, 0);
}

struct run *generation_take(struct generation *generation, uint64_t shapes)
{
    const size_t n = generation->idle.count;
    if (generation_records(generation))
        return take_recording(generation, shapes);
    return n ? take_at(generation, n - 1) : NULL;
}

bool generation_give(struct generation *generation, struct run *run, uint64_t shapes)
{
    const struct idle_run idle = {run, shapes};
    return vec_push(&generation->idle, idle);
}

void generation_free(struct generation *generation)
{
    if (!generation)
        return;
    for (size_t i = 0; i < generation->idle.count; i++)
        run_free(generation->idle.data[i].run);
    vec_free(&generation->idle);
    plan_free(generation->plan);
    ir_graph_free(generation->graph);
    allocator_free(generation->allocator, generation->profile);
    allocator_free(generation->allocator, generation);
}
