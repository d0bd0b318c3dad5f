/* SPDX-License-Identifier: Apache-2.0 */
/* See profile.h. Times are laid end to end inside their parent, since a step's iterations are
 * summed. */
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

/* ---- Walking --------------------------------------------------------------------------------- */

struct walk {
    const struct step_profile *profile;
    profile_visitor *visit;
    void *user;
};

static uint64_t block_nanoseconds(const struct block_plan *block,
                                  const struct step_profile *profile)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < block->n_steps; i++)
        sum += profile[block->steps[i].index].nanoseconds;
    return sum;
}

/* Visits the steps of a block whose iterations, laid end to end, begin at `start`. */
static tssa_status *walk_block(const struct walk *walk, const struct block_plan *block,
                               const struct profile_entry *around, uint64_t start)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        const struct step *step = &block->steps[i];
        struct profile_entry entry = {.op = step->op,
                                      .around = around,
                                      .time = &walk->profile[step->index],
                                      .start = start,
                                      .step = step->index};
        if (!entry.time->count)
            continue;
        for (uint32_t b = 0; b < step->n_blocks; b++)
            entry.nested += block_nanoseconds(step->blocks[b], walk->profile);
        TRY(walk->visit(walk->user, &entry));
        for (uint32_t b = 0; b < step->n_blocks; b++) {
            TRY(walk_block(walk, step->blocks[b], &entry, start));
            start += block_nanoseconds(step->blocks[b], walk->profile);
        }
        start = entry.start + entry.time->nanoseconds;
    }
    return NULL;
}

tssa_status *profile_visit(const struct plan *plan, const struct step_profile *profile,
                           profile_visitor *visit, void *user)
{
    const struct walk walk = {profile, visit, user};
    return walk_block(&walk, plan->body, NULL, 0);
}

/* ---- Chrome trace events --------------------------------------------------------------------- */

static tssa_status *add_event(void *user, const struct profile_entry *entry)
{
    const struct step_profile *time = entry->time;
    char name[256];
    ir_op_describe(entry->op, name, sizeof name);
    json_t *event =
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:s, s:i, s:I, s:f}}", "cat", "Node",
                  "ph", "X", "name", name, "pid", 0, "tid", 0, "ts", (double)entry->start / 1e3,
                  "dur", (double)time->nanoseconds / 1e3, "args", "op_name", entry->op->info->name,
                  "step", (int)entry->step, "count", (json_int_t)time->count, "mean_us",
                  (double)time->nanoseconds / 1e3 / (double)time->count);
    return json_array_append_new(user, event) == 0 ? NULL : status_out_of_memory();
}

tssa_status *profile_write(const struct plan *plan, const struct step_profile *profile,
                           void (*write)(void *, const char *, size_t), void *user)
{
    json_t *events = json_array();
    TRY_ALLOC(events);
    tssa_status *status = profile_visit(plan, profile, add_event, events);
    char *text = status ? NULL : json_dumps(events, JSON_INDENT(1));
    json_decref(events);
    if (!status && !text)
        return status_out_of_memory();
    if (text)
        write(user, text, strlen(text));
    free(text);
    return status;
}
