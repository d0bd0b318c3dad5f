/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps a part of a plan's outputs needs. */
#include "runtime/plan.h"

/* Slots that the step reads, in its blocks too: what is made in there is marked as well, to no
 * harm. */
static void mark_reads(const struct plan *plan, const struct step *step, bool *slots)
{
    for (uint32_t i = 0; i < step->n_inputs; i++) {
        uint32_t slot = plan_home_slot(plan, plan->inputs[step->first_input + i]);
        if (slot != SLOT_NONE)
            slots[slot] = true;
    }
    for (uint32_t i = 0; i < step->n_blocks; i++) {
        const struct block_plan *block = step->blocks[i];
        for (uint32_t k = 0; k < block->n_steps; k++)
            mark_reads(plan, &block->steps[k], slots);
        for (uint32_t k = 0; k < block->n_returns; k++)
            slots[plan_home_slot(plan, block->returns[k].slot)] = true;
    }
}

static bool makes_any(const struct plan *plan, const struct step *step, const bool *slots)
{
    for (uint32_t i = 0; i < step->n_outputs; i++) {
        uint32_t slot = plan->outputs[step->first_output + i];
        if (slot != SLOT_NONE && slots[slot])
            return true;
    }
    return false;
}

tssa_status *plan_needed(const struct plan *plan, const bool *wanted, const tssa_allocator *scratch,
                         bool *needed)
{
    const struct block_plan *body = plan->body;
    bool *slots = allocator_calloc(scratch, plan->n_slots + 1u, sizeof *slots);
    TRY_ALLOC(slots);
    for (uint32_t i = 0; i < body->n_returns; i++)
        if (wanted[i])
            slots[plan_home_slot(plan, body->returns[i].slot)] = true;
    for (uint32_t i = body->n_steps; i-- > 0;) {
        needed[i] = makes_any(plan, &body->steps[i], slots);
        if (needed[i])
            mark_reads(plan, &body->steps[i], slots);
    }
    allocator_free(scratch, slots);
    return NULL;
}
