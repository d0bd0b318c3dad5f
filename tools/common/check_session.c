/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session is made for every run and freed after it, so that what it keeps for its next run is not
 * taken for what this one holds.
 */
#include "api/handles.h"
#include "tools/common/check_engine.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"

static tssa_status *run_session(const struct session_engine *engine, enum check_side side,
                                const struct run_inputs *inputs, double seconds,
                                tssa_value **outputs)
{
    tssa_model *model = engine->models[side];
    tssa_session *session;
    TRY(tssa_session_create(model, NULL, &session));
    interrupt_limit(session, seconds);
    tssa_status *status = tssa_session_run(session, inputs->count, inputs->values,
                                           tssa_model_output_count(model), outputs);
    interrupt_disarm();
    tssa_session_free(session);
    return status;
}

static tssa_status *run(struct check_engine *base, enum check_side side,
                        const struct run_inputs *inputs, const struct engine_limits *limits,
                        tssa_value **outputs, struct engine_cost *cost)
{
    const struct session_engine *engine = (const struct session_engine *)base;
    tssa_context *context = engine->context;
    size_t held = atomic_load(&context->memory_used), peak = atomic_load(&context->memory_peak);
    size_t limit = context->memory_limit;
    if (limits->memory && held < limit && limits->memory < limit - held)
        context->memory_limit = held + limits->memory;
    atomic_store(&context->memory_peak, held);
    double start = clock_seconds();
    tssa_status *status = run_session(engine, side, inputs, limits->seconds, outputs);
    cost->seconds = clock_seconds() - start;
    cost->memory = atomic_load(&context->memory_peak) - held;
    context->memory_limit = limit;
    if (atomic_load(&context->memory_peak) < peak)
        atomic_store(&context->memory_peak, peak);
    return status;
}

tssa_status *session_engine_init(struct session_engine *engine, tssa_context *context,
                                 tssa_model *original, tssa_model *rewritten)
{
    *engine = (struct session_engine){.engine = {.run = run}, .context = context};
    engine->models[CHECK_OLD] = original;
    engine->models[CHECK_NEW] = rewritten;
    for (int side = CHECK_OLD; side <= CHECK_NEW; side++) {
        tssa_session *session;
        tssa_status *status = tssa_session_create(engine->models[side], NULL, &session);
        if (status)
            return side == CHECK_NEW ? status_prefix(status, "the new model") : status;
        tssa_session_free(session);
    }
    return NULL;
}
