/* SPDX-License-Identifier: Apache-2.0 */
/* Which operands of what is joined lie in the result's place; see placement.h. */
#include "runtime/placement.h"

/* If memory does not allow it with all parts, it is tried so often without those that are there
 * first. */
#define MOST_TRIES 4

struct joiner {
    const struct plan *plan;
    const struct layout *layout;
    const int64_t *symbols;
    size_t most; /* bytes in use during the step that needs most, with nothing joined */
};

/* The parts [first, end) of one step. */
struct group {
    uint32_t first, end;
};

/* ---- Where parts begin ----------------------------------------------------------------------- */

static size_t exact_size(const struct joiner *j, const struct ir_type *type)
{
    return plan_type_size(j->plan, j->symbols, j->plan->n_input_symbols, type);
}

/* Fills begins; false: sizes are not what they must be. */
static bool find_begins(const struct joiner *j, const struct group *group)
{
    const struct plan_part *parts = j->plan->parts;
    const struct ir_op *op = parts[group->first].step->op;
    size_t at = 0;
    for (uint32_t i = 0, p = group->first; i < op->n_operands; i++) {
        const size_t size = exact_size(j, ir_operand(op, i)->type);
        if (size == SIZE_MAX)
            return false;
        if (p < group->end && parts[p].operand == i) {
            const uint32_t entry = parts[p].entry;
            const bool fits = size > 0 && exact_size(j, j->plan->placed[entry].type) == size &&
                              j->layout->wanted[entry] <= size;
            j->layout->begins[p++] = fits ? at : SIZE_MAX;
        }
        if (!size_add(at, size, &at))
            return false;
    }
    const size_t whole = j->layout->sizes[parts[group->first].whole];
    return at > 0 && exact_size(j, op->results[0].type) == at && whole >= at && whole != SIZE_MAX;
}

/* ---- What it takes --------------------------------------------------------------------------- */

static void add_live(const struct joiner *j, uint32_t first, uint32_t end, size_t bytes)
{
    for (uint32_t s = first; s < end; s++)
        j->layout->live[s] += bytes; /* modulo 2^64 */
}

/* The first step in which one of the parts is in use; SLOT_NONE: there is none. */
static uint32_t first_of(const struct joiner *j, const struct group *group)
{
    uint32_t first = SLOT_NONE;
    for (uint32_t p = group->first; p < group->end; p++) {
        const uint32_t own = j->layout->firsts[j->plan->parts[p].entry];
        if (j->layout->begins[p] != SIZE_MAX && own < first)
            first = own;
    }
    return first;
}

/* Has the whole be there from `first` on and its parts nowhere else, or takes that back. */
static void count_whole(const struct joiner *j, const struct group *group, uint32_t first, bool in)
{
    const struct plan_part *parts = &j->plan->parts[group->first];
    const uint32_t index = parts->step->index;
    const size_t room = placement_room(j->plan, j->layout, parts->whole);
    add_live(j, first, index, in ? room : -room);
    for (uint32_t p = group->first; p < group->end; p++) {
        const uint32_t entry = j->plan->parts[p].entry;
        const size_t own = placement_room(j->plan, j->layout, entry);
        if (j->layout->begins[p] != SIZE_MAX)
            add_live(j, j->layout->firsts[entry], index + 1, in ? -own : own);
    }
}

static bool takes_too_much(const struct joiner *j, uint32_t first, uint32_t end)
{
    for (uint32_t s = first; s < end; s++)
        if (j->layout->live[s] > j->most)
            return true;
    return false;
}

static void drop_from(const struct joiner *j, const struct group *group, uint32_t first)
{
    for (uint32_t p = group->first; p < group->end; p++)
        if (j->layout->firsts[j->plan->parts[p].entry] <= first)
            j->layout->begins[p] = SIZE_MAX;
}

/* ---- All ------------------------------------------------------------------------------------- */

static void keep(const struct joiner *j, const struct group *group, uint32_t first)
{
    const struct layout *layout = j->layout;
    for (uint32_t p = group->first; p < group->end; p++) {
        const struct plan_part *part = &j->plan->parts[p];
        if (layout->begins[p] == SIZE_MAX)
            continue;
        layout->tops[part->entry] = part->whole;
        layout->firsts[part->whole] = first;
        layout->sizes[part->entry] = exact_size(j, j->plan->placed[part->entry].type);
    }
}

static void join(const struct joiner *j, const struct group *group)
{
    const uint32_t end = j->plan->parts[group->first].step->index;
    uint32_t first = find_begins(j, group) ? first_of(j, group) : SLOT_NONE;
    for (int tries = 0; first != SLOT_NONE; tries++) {
        count_whole(j, group, first, true);
        if (!takes_too_much(j, first, end)) {
            keep(j, group, first);
            return;
        }
        count_whole(j, group, first, false);
        if (tries == MOST_TRIES)
            break;
        drop_from(j, group, first);
        first = first_of(j, group);
    }
    for (uint32_t p = group->first; p < group->end; p++)
        j->layout->begins[p] = SIZE_MAX;
}

/* What is joined may be joined again, later: wholes come before their parts in reverse. */
static void find_tops(const struct plan *plan, const struct layout *layout)
{
    for (uint32_t p = plan->n_parts; p-- > 0;) {
        const struct plan_part *part = &plan->parts[p];
        const uint32_t above = plan->placed[part->whole].part;
        if (layout->begins[p] == SIZE_MAX || !above || layout->begins[above - 1] == SIZE_MAX)
            continue;
        layout->begins[p] += layout->begins[above - 1];
        layout->tops[part->entry] = layout->tops[part->whole];
    }
}

void placement_join(const struct plan *plan, const int64_t *symbols, const struct layout *layout,
                    size_t most)
{
    const struct joiner j = {plan, layout, symbols, most};
    for (uint32_t p = 0; p < plan->n_parts;) {
        struct group group = {p, p};
        while (group.end < plan->n_parts && plan->parts[group.end].step == plan->parts[p].step)
            group.end++;
        p = group.end;
        join(&j, &group);
    }
    find_tops(plan, layout);
}
