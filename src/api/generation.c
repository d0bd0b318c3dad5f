/* SPDX-License-Identifier: Apache-2.0 */
#include "api/generation.h"

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

void generation_free(struct generation *generation)
{
    if (!generation)
        return;
    for (size_t i = 0; i < generation->idle.count; i++)
        run_free(generation->idle.data[i]);
    vec_free(&generation->idle);
    plan_free(generation->plan);
    ir_graph_free(generation->graph);
    allocator_free(generation->allocator, generation->profile);
    allocator_free(generation->allocator, generation);
}
