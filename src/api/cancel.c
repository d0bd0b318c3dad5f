/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_cancel: a flag that a run reads before every step. */
#include "api/handles.h"
#include "base/status.h"

tssa_status *tssa_cancel_create(tssa_context *context, tssa_cancel **out)
{
    if (!context || !out)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_cancel_create: an argument is NULL");
    struct tssa_cancel *cancel = allocator_calloc(&context->allocator, 1, sizeof *cancel);
    TRY_ALLOC(cancel);
    cancel->context = context;
    atomic_init(&cancel->requested, false);
    *out = cancel;
    return NULL;
}

void tssa_cancel_free(tssa_cancel *cancel)
{
    if (cancel)
        allocator_free(&cancel->context->allocator, cancel);
}

void tssa_cancel_request(tssa_cancel *cancel)
{
    if (cancel)
        atomic_store_explicit(&cancel->requested, true, memory_order_relaxed);
}

void tssa_cancel_reset(tssa_cancel *cancel)
{
    if (cancel)
        atomic_store_explicit(&cancel->requested, false, memory_order_relaxed);
}
