/* SPDX-License-Identifier: Apache-2.0 */
#include "common/live_bytes.h"

#include <stdlib.h>

#include "common/no_error.h"
#include "common/xmalloc.h"
#include "runtime/control.h"

#define RUNS 5

struct watch {
    step_run *plain; /* per step */
    size_t *stacked; /* per step: of the results that it stacks, the most */
    size_t around;   /* of the loops that are under way: stacks, and what they asked for */
    size_t most;     /* of all at one time */
    struct stretch {
        const char *first, *end;
    } * stretches; /* of memory that is in use */
    size_t n_stretches, room;
};

static struct watch watch; /* of the plan that is being run */

/* ---- What is in slots ------------------------------------------------------------------------ */

static size_t in_units(size_t bytes)
{
    return (bytes + TENSOR_ALIGNMENT - 1) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
}

static void add_stretch(const void *data, size_t size)
{
    const size_t bytes = in_units(size);
    if (watch.n_stretches == watch.room) {
        watch.room = 2 * watch.room + 64;
        watch.stretches = xrealloc(watch.stretches, watch.room * sizeof *watch.stretches);
    }
    watch.stretches[watch.n_stretches++] = (struct stretch){data, (const char *)data + bytes};
}

/* Not what is a constant's or the caller's; of a sequence, the handles as well. */
static void add_value(const struct value *value)
{
    const bool is_sequence = value->kind == TSSA_KIND_SEQUENCE;
    const size_t length = is_sequence ? sequence_length(value->sequence) : 0;
    if (value->kind == TSSA_KIND_TENSOR && value->tensor.owner && tensor_bytes(&value->tensor))
        add_stretch(value->tensor.data, tensor_bytes(&value->tensor));
    if (length)
        add_stretch(sequence_element(value->sequence, 0), length * sizeof *value);
    for (size_t i = 0; i < length; i++)
        add_value(sequence_element(value->sequence, i));
}

static int by_address(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Bytes that are some value's, each once. */
static size_t in_slots(const struct run *run)
{
    const char *end = NULL;
    size_t sum = 0;
    watch.n_stretches = 0;
    for (uint32_t i = 0; i < run->plan->n_slots; i++)
        add_value(&run->slots[i]);
    if (watch.n_stretches)
        qsort(watch.stretches, watch.n_stretches, sizeof *watch.stretches, by_address);
    for (size_t i = 0; i < watch.n_stretches; i++) {
        const struct stretch *s = &watch.stretches[i];
        const char *first = end && s->first < end ? end : s->first;
        if (s->end <= first)
            continue;
        sum += (size_t)(s->end - first);
        end = s->end;
    }
    return sum;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void note_stacked(const struct run *run, const struct step *step)
{
    struct control_passing passing;
    size_t sum = 0;
    if (!step->n_blocks || !control_passes(step, &passing))
        return;
    for (uint32_t i = passing.n_carried; i < step->n_outputs; i++) {
        const struct value *result = run->outputs[step->first_output + i];
        if (result && result->kind == TSSA_KIND_TENSOR)
            sum += in_units(tensor_bytes(&result->tensor));
    }
    if (sum > watch.stacked[step->index])
        watch.stacked[step->index] = sum;
}

static tssa_status *run_watched(struct run *run, const struct step *step)
{
    const size_t asked = in_units(run->scratch[step->index].most);
    const size_t around = step->n_blocks ? asked + watch.stacked[step->index] : 0;
    watch.around += around;
    tssa_status *status = watch.plain[step->index](run, step);
    watch.around -= around;
    if (status)
        return status;
    const size_t live = in_slots(run) + watch.around + asked;
    watch.most = live > watch.most ? live : watch.most;
    note_stacked(run, step);
    return NULL;
}

static void wrap(const struct block_plan *block)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        struct step *step = (struct step *)&block->steps[i]; /* the plan is the test's */
        watch.plain[step->index] = step->run;
        step->run = run_watched;
        step->n_turns = 0; /* of places that there are not */
        for (uint32_t b = 0; b < step->n_blocks; b++)
            wrap(step->blocks[b]);
    }
}

/* Of places, steps' scratch memory alone keeps its own, so that what kernels ask for is told
 * exactly. */
static void place_scratch_only(struct plan *plan)
{
    struct plan_placed *placed = (struct plan_placed *)plan->placed; /* the plan is the test's */
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_placed; i++)
        if (!placed[i].type)
            placed[n++] = placed[i];
    plan->n_placed = n;
    plan->n_leaving = plan->n_parts = 0;
}

size_t live_bytes(const struct ir_graph *graph, struct device_context *device,
                  const struct value *const *inputs, struct value *outputs)
{
    struct plan *plan;
    struct run *run;
    no_error(plan_create(graph, device, &plan));
    place_scratch_only(plan);
    no_error(run_create(plan, &allocator_default, NULL, false, &run));
    watch = (struct watch){.plain = xcalloc(plan->n_steps + 1u, sizeof(step_run)),
                           .stacked = xcalloc(plan->n_steps + 1u, sizeof(size_t))};
    wrap(plan->body);
    for (int i = 0; i < RUNS;
         i++) { /* the first ones tell what stacks come to and kernels ask for */
        watch.most = 0;
        for (uint32_t k = 0; k < plan->body->n_returns; k++)
            if (outputs[k].kind != TSSA_KIND_TENSOR)
                value_release(&outputs[k]);
        no_error(run_execute(run, inputs, outputs));
    }
    free(watch.plain);
    free(watch.stacked);
    free(watch.stretches);
    run_free(run);
    plan_free(plan);
    return watch.most;
}
