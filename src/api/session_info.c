/* SPDX-License-Identifier: Apache-2.0 */
/* What a session says of its runs. */
#include <stdio.h>
#include <string.h>

#include "api/session.h"
#include "base/float_mode.h"

tssa_status *tssa_session_library(const tssa_session *session, tssa_library_info *info)
{
    if (!session || !info)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_library: an argument is NULL");
    pthread_mutex_t *lock = &((struct tssa_session *)session)->lock;
    pthread_mutex_lock(lock);
    const struct kernel_tally *tally = &session->now->plan->tally;
    *info = (tssa_library_info){
        .primitives = (size_t)atomic_load_explicit(&tally->primitives, memory_order_relaxed),
        .nanoseconds = atomic_load_explicit(&tally->nanoseconds, memory_order_relaxed),
        .packed_bytes = atomic_load_explicit(&tally->packed_bytes, memory_order_relaxed)};
    pthread_mutex_unlock(lock);
    return NULL;
}

tssa_status *tssa_session_memory(tssa_session *session, tssa_memory_use *use)
{
    if (!session || !use)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_memory: an argument is NULL");
    *use = (tssa_memory_use){0};
    pthread_mutex_lock(&session->lock);
    use->peak = session->peak;
    use->last = session->last.held;
    use->live = session->last.live;
    for (size_t i = 0; i < session->now->idle.count; i++)
        use->kept += run_kept(session->now->idle.data[i].run);
    pthread_mutex_unlock(&session->lock);
    return NULL;
}

tssa_status *tssa_session_counts(tssa_session *session, tssa_session_work *work)
{
    if (!session || !work)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_session_counts: an argument is NULL");
    const struct device *device = session->device->device;
    if (!device->counts)
        return ERROR(TSSA_UNSUPPORTED, "the session's device, %s, does not count", device->name);
    pthread_mutex_lock(&session->lock);
    const struct device_counts counts = session->counts;
    pthread_mutex_unlock(&session->lock);
    *work = (tssa_session_work){.launches = counts.launches,
                                .library_calls = counts.library_calls,
                                .bytes = counts.bytes,
                                .allocations = counts.allocations,
                                .copies = counts.copies,
                                .copied_bytes = counts.copied_bytes,
                                .replays = counts.replays,
                                .waits = counts.waits};
    return NULL;
}

const char *tssa_device_name(size_t index)
{
    const struct device *device = device_at(index);
    return device ? device->name : NULL;
}

/* ---- Profiles -------------------------------------------------------------------------------- */

static tssa_status *check_profile(const struct tssa_session *session, bool complete,
                                  const char *function)
{
    if (!session || !complete)
        return ERROR(TSSA_INVALID_ARGUMENT, "%s: an argument is NULL", function);
    if (!session->profiled)
        return ERROR(TSSA_INVALID_ARGUMENT, "the session was made without `profile`");
    return NULL;
}

tssa_status *tssa_session_profile(tssa_session *session,
                                  void (*write)(void *, const char *, size_t), void *user)
{
    FLOAT_MODE_ENTER();
    TRY(check_profile(session, write, "tssa_session_profile"));
    pthread_mutex_lock(&session->lock);
    tssa_status *status = profile_write(session->now->plan, session->now->profile, write, user);
    pthread_mutex_unlock(&session->lock);
    return status;
}

/* Hands profile entries on in the form of tssa.h. */
struct step_reader {
    void (*visit)(void *user, const tssa_step_profile *step);
    void *user;
};

static tssa_status *read_step(void *user, const struct profile_entry *entry)
{
    const struct step_reader *reader = user;
    char node[256], around[256] = "";
    tssa_step_profile step = {.op = entry->op->info->name,
                              .node = node,
                              .around = around,
                              .calls = entry->time->count,
                              .nanoseconds = entry->time->nanoseconds,
                              .nested_nanoseconds = entry->nested};
    ir_op_describe(entry->op, node, sizeof node);
    if (entry->around)
        ir_op_describe(entry->around->op, around, sizeof around);
    for (const struct profile_entry *outer = entry->around; outer; outer = outer->around)
        step.depth++;
    reader->visit(reader->user, &step);
    return NULL;
}

tssa_status *tssa_session_profile_steps(tssa_session *session,
                                        void (*visit)(void *user, const tssa_step_profile *step),
                                        void *user)
{
    TRY(check_profile(session, visit, "tssa_session_profile_steps"));
    struct step_reader reader = {visit, user};
    pthread_mutex_lock(&session->lock);
    tssa_status *status =
        profile_visit(session->now->plan, session->now->profile, read_step, &reader);
    pthread_mutex_unlock(&session->lock);
    return status;
}

tssa_status *tssa_session_profile_clear(tssa_session *session)
{
    TRY(check_profile(session, true, "tssa_session_profile_clear"));
    pthread_mutex_lock(&session->lock);
    memset(session->now->profile, 0,
           (session->now->plan->n_steps + 1u) * sizeof *session->now->profile);
    pthread_mutex_unlock(&session->lock);
    return NULL;
}
