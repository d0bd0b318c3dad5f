/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/bound.h"

#include <string.h>

#include "runtime/crossing.h"

uint32_t bound_arguments(const struct run *run)
{
    return run->plan->body->n_params + run->plan->body->n_returns;
}

static bool is_output(const struct run *run, uint32_t argument)
{
    return argument >= run->plan->body->n_params;
}

static uint32_t output_of(const struct run *run, uint32_t argument)
{
    return argument - run->plan->body->n_params;
}

/* ---- What a run has -------------------------------------------------------------------------- */

/* Of what the device reads or makes; NULL: it is the host's. */
static void *memory_of(const struct run *run, uint32_t argument)
{
    if (is_output(run, argument))
        return run->outputs_there[output_of(run, argument)];
    const uint32_t slot = run->plan->body->params[argument];
    return slot != SLOT_NONE && crossing_mirrored(run->plan, slot) ? run->inputs_there[argument]
                                                                   : NULL;
}

static size_t size_of(const struct run *run, uint32_t argument)
{
    return tensor_bytes(is_output(run, argument)
                            ? &run->caller_outputs[output_of(run, argument)].tensor
                            : &run->slots[run->plan->body->params[argument]].tensor);
}

static bool overlaps(const struct run *run, uint32_t argument, const struct bound *own)
{
    const uintptr_t begin = (uintptr_t)own->memory, other = (uintptr_t)memory_of(run, argument);
    return other && begin < other + size_of(run, argument) && other < begin + own->size;
}

static bool is_apart(const struct run *run, uint32_t argument, const struct bound *own)
{
    for (uint32_t i = 0; i < bound_arguments(run); i++)
        if (i != argument && overlaps(run, i, own))
            return false;
    return true;
}

/* ---- What is bound --------------------------------------------------------------------------- */

static bool was_seen(const struct bound_seen *seen, const void *memory)
{
    for (uint32_t i = 0; i < BOUND_SEEN; i++)
        if (seen->memory[i] == memory)
            return true;
    return false;
}

/* Where it was seen is free, or at the end. */
static void note(struct bound_seen *seen, void *memory)
{
    uint32_t at = 0;
    while (at < BOUND_SEEN - 1 && seen->memory[at] && seen->memory[at] != memory)
        at++;
    memmove(seen->memory + 1, seen->memory, at * sizeof *seen->memory);
    seen->memory[0] = memory;
}

static bool may_bind(const struct run *run, uint32_t argument, const struct bound *own)
{
    if ((uintptr_t)own->memory % run->plan->device->device->operand_alignment)
        return false;
    return !is_output(run, argument) || (slab_can_bind(run, output_of(run, argument), own->size) &&
                                         is_apart(run, argument, own));
}

void bound_find(const struct run *run, struct bound_seen *seen, struct bound *wanted)
{
    for (uint32_t i = 0; i < bound_arguments(run); i++) {
        void *memory = memory_of(run, i);
        wanted[i] = (struct bound){.memory = NULL};
        if (!memory)
            continue;
        if (was_seen(&seen[i], memory)) {
            const struct bound own = {memory, size_of(run, i)};
            if (may_bind(run, i, &own))
                wanted[i] = own;
        }
        note(&seen[i], memory);
    }
}

/* Inputs have the sizes that they had, but who gives memory for an output may be wrong. */
bool bound_fits(const struct run *run, const struct bound *bound)
{
    for (uint32_t i = 0; i < bound_arguments(run); i++)
        if (bound[i].memory && (bound[i].memory != memory_of(run, i) ||
                                (is_output(run, i) && bound[i].size != size_of(run, i))))
            return false;
    return true;
}

bool bound_is_all(const struct run *run, const struct bound *bound)
{
    for (uint32_t i = 0; i < bound_arguments(run); i++)
        if (!bound[i].memory && memory_of(run, i))
            return false;
    return true;
}

uint32_t bound_count(const struct run *run, const struct bound *bound)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < bound_arguments(run); i++)
        n += bound[i].memory != NULL;
    return n;
}

bool bound_has_all(const struct run *run, const struct bound *bound, const struct bound *wanted)
{
    for (uint32_t i = 0; i < bound_arguments(run); i++)
        if (wanted[i].memory && !bound[i].memory)
            return false;
    return true;
}

/* ---- While a recording is made --------------------------------------------------------------- */

void bound_begin(struct run *run, const struct bound *bound)
{
    for (uint32_t i = run->plan->body->n_params; i < bound_arguments(run); i++)
        if (bound[i].memory)
            slab_bind(run, output_of(run, i), bound[i].memory, bound[i].size);
}

void bound_end(struct run *run, const struct bound *bound)
{
    for (uint32_t i = run->plan->body->n_params; i < bound_arguments(run); i++)
        if (bound[i].memory)
            slab_bind(run, output_of(run, i), NULL, 0);
}
