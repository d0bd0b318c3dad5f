/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/poison.h"

#include <string.h>

#include "runtime/executor.h"

static void fill(struct run *run, void *memory, size_t size)
{
    memset(memory, POOL_POISON, size);
    run->poisoned += size;
}

/* Are there parts in the entry's place, which are computed before? */
static bool has_parts(const struct run *run, uint32_t entry)
{
    const struct plan *plan = run->plan;
    const size_t *begins = run->slab.parts[SPACE_HOST].layout.begins;
    bool has = false;
    for (uint32_t p = 0; !has && p < plan->n_parts; p++)
        has = plan->parts[p].whole == entry && begins[p] != SIZE_MAX;
    return has;
}

/* A result's place where it is about to be computed, unless something lies there that it is
 * computed from. */
static void poison_before(struct run *run, const struct step *step)
{
    const struct plan *plan = run->plan;
    const struct step_scratch *scratch = &run->scratch[step->index];
    for (uint32_t i = 0; i < plan->n_placed; i++) {
        const struct plan_placed *placed = &plan->placed[i];
        const uint32_t output = placed->output - step->first_output;
        if (!placed->type || placed->back || placed->space != SPACE_HOST ||
            placed->output < step->first_output || output >= step->n_outputs)
            continue;
        const struct kernel_place *place = &run->places[placed->output];
        if (place->data && !has_parts(run, i))
            fill(run, place->data, place->size);
    }
    if (scratch->memory)
        fill(run, scratch->memory, scratch->size);
}

static void poison_after(struct run *run, const struct step *step)
{
    const struct plan *plan = run->plan;
    const struct slab_part *part = &run->slab.parts[SPACE_HOST];
    for (uint32_t i = 0; i < plan->n_placed; i++) {
        const struct plan_placed *placed = &plan->placed[i];
        if (placed->last == step->index && !placed->back && placed->space == SPACE_HOST &&
            part->layout.offsets[i] != SIZE_MAX && !(plan->n_parts && part->layout.tops[i] != i))
            fill(run, (char *)part->memory + part->layout.offsets[i],
                 part->layout.sizes[i] * (placed->turns ? 2 : 1));
    }
}

static tssa_status *run_poisoned(struct run *run, const struct step *step)
{
    poison_before(run, step);
    TRY(run->plan->poisoned[step->index](run, step));
    poison_after(run, step);
    return NULL;
}

static void wrap(const struct block_plan *block, step_run *plain)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        struct step *step = (struct step *)&block->steps[i]; /* the plan's, which is being made */
        plain[step->index] = step->run;
        step->run = run_poisoned;
        for (uint32_t b = 0; b < step->n_blocks; b++)
            wrap(step->blocks[b], plain);
    }
}

tssa_status *poison_plan(struct plan *plan)
{
    step_run *plain = ARENA_ARRAY(&plan->arena, step_run, plan->n_steps);
    TRY_ALLOC(plain);
    wrap(plan->body, plain);
    plan->poisoned = plain;
    return NULL;
}
