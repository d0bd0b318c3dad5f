/* SPDX-License-Identifier: Apache-2.0 */
/* See profile.h. Times are laid end to end inside their parent, since a step's iterations are summed. */
#include "runtime/profile.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

void profile_add(const struct plan *plan, struct step_profile *total, struct step_profile *run)
{
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        total[i].count += run[i].count;
        total[i].nanoseconds += run[i].nanoseconds;
        if (run[i].count)
            total[i].started = run[i].started;
    }
    if (plan->n_steps)
        memset(run, 0, plan->n_steps * sizeof *run);
}

static json_t *step_event(const struct step *step, const struct step_profile *profile, double start)
{
    const struct ir_op *op = step->op;
    char name[256];
    ir_op_describe(op, name, sizeof name);
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:s, s:i, s:I, s:f}}", "cat", "Node",
                     "ph", "X", "name", name, "pid", 0, "tid", 0, "ts", start, "dur",
                     (double)profile->nanoseconds / 1e3, "args", "op_name", op->info->name, "step",
                     (int)step->index, "count", (json_int_t)profile->count, "mean_us",
                     (double)profile->nanoseconds / 1e3 / (double)profile->count);
}

static tssa_status *add_block(json_t *events, const struct block_plan *block,
                              const struct step_profile *profile, double start)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        const struct step *step = &block->steps[i];
        const struct step_profile *own = &profile[step->index];
        if (!own->count)
            continue;
        json_t *event = step_event(step, own, start);
        if (!event || json_array_append_new(events, event) != 0)
            return status_out_of_memory();
        double inside = start;
        for (uint32_t b = 0; b < step->op->n_blocks; b++) {
            TRY(add_block(events, step->blocks[b], profile, inside));
            for (uint32_t k = 0; k < step->blocks[b]->n_steps; k++)
                inside += (double)profile[step->blocks[b]->steps[k].index].nanoseconds / 1e3;
        }
        start += (double)own->nanoseconds / 1e3;
    }
    return NULL;
}

tssa_status *profile_write(const struct plan *plan, const struct step_profile *profile,
                           void (*write)(void *, const char *, size_t), void *user)
{
    json_t *events = json_array();
    TRY_ALLOC(events);
    tssa_status *status = add_block(events, plan->body, profile, 0);
    char *text = status ? NULL : json_dumps(events, JSON_INDENT(1));
    json_decref(events);
    if (!status && !text)
        return status_out_of_memory();
    if (text)
        write(user, text, strlen(text));
    free(text);
    return status;
}
