/* SPDX-License-Identifier: Apache-2.0 */
#include "common/poison.h"

#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"

#define RUBBISH 0xaa

/* What the steps of a plan did before. */
struct poisoned {
    struct poisoned *next;
    const struct plan *plan;
    step_run *plain; /* per step */
};

static struct poisoned *all;
static uint64_t written;

static struct poisoned **find(const struct plan *plan)
{
    struct poisoned **link = &all;
    while (*link && (*link)->plan != plan)
        link = &(*link)->next;
    return link;
}

static void fill(void *memory, size_t size)
{
    memset(memory, RUBBISH, size);
    written += size;
}

/* A result's place where it is about to be computed, unless something lies there that it is computed from. */
static void poison_before(const struct run *run, const struct step *step)
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
        if (place->data)
            fill(place->data, place->size);
    }
    if (scratch->memory)
        fill(scratch->memory, scratch->size);
}

static void poison_after(const struct run *run, const struct step *step)
{
    const struct plan *plan = run->plan;
    const struct slab_part *part = &run->slab.parts[SPACE_HOST];
    for (uint32_t i = 0; i < plan->n_placed; i++) {
        const struct plan_placed *placed = &plan->placed[i];
        if (placed->last == step->index && !placed->back && placed->space == SPACE_HOST &&
            part->layout.offsets[i] != SIZE_MAX)
            fill((char *)part->memory + part->layout.offsets[i],
                 part->layout.sizes[i] * (placed->turns ? 2 : 1));
    }
}

static tssa_status *run_poisoned(struct run *run, const struct step *step)
{
    poison_before(run, step);
    tssa_status *status = (*find(run->plan))->plain[step->index](run, step);
    if (!status)
        poison_after(run, step);
    return status;
}

static void wrap(struct poisoned *poisoned, const struct block_plan *block)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        struct step *step = (struct step *)&block->steps[i]; /* the plan is the test's */
        poisoned->plain[step->index] = step->run;
        step->run = run_poisoned;
        for (uint32_t b = 0; b < step->n_blocks; b++)
            wrap(poisoned, step->blocks[b]);
    }
}

void poison_plan(struct plan *plan)
{
    struct poisoned *poisoned = xcalloc(1, sizeof *poisoned);
    *poisoned = (struct poisoned){all, plan, xcalloc(plan->n_steps + 1u, sizeof(step_run))};
    all = poisoned;
    wrap(poisoned, plan->body);
}

void poison_forget(const struct plan *plan)
{
    struct poisoned **link = find(plan), *poisoned = *link;
    if (!poisoned)
        return;
    *link = poisoned->next;
    free(poisoned->plain);
    free(poisoned);
}

uint64_t poison_bytes(void)
{
    return written;
}
