/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/onednn/unit.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/integers.h"

bool onednn_unit_make(struct onednn_unit *unit, dnnl_primitive_desc_t desc)
{
    desc_view scratchpad = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    bool made = scratchpad && desc_copy(&unit->scratchpad, scratchpad) &&
                dnnl_primitive_create(&unit->primitive, desc) == dnnl_success;
    if (made)
        unit->scratch_bytes = dnnl_memory_desc_get_size(scratchpad);
    dnnl_primitive_desc_destroy(desc);
    return made;
}

bool onednn_unit_reorder(struct onednn_unit *unit, const struct onednn_engine *engine,
                         desc_view from, desc_view to, dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t desc = NULL;
    if (dnnl_memory_desc_equal(from, to))
        return true;
    return dnnl_reorder_primitive_desc_create(&desc, from, engine->engine, to, engine->engine,
                                              attr) == dnnl_success &&
           onednn_unit_make(unit, desc);
}

void onednn_unit_drop(struct onednn_unit *unit)
{
    dnnl_primitive_destroy(unit->primitive);
    desc_drop(&unit->scratchpad);
}

size_t onednn_aligned(size_t size)
{
    return aligned(size, LIBRARY_ALIGNMENT);
}

/* An argument whose memory is at `data`. */
static bool bind(const struct onednn_engine *engine, int number, desc_view desc, const void *data,
                 dnnl_exec_arg_t *arg)
{
    arg->arg = number;
    return dnnl_memory_create(&arg->memory, desc, engine->engine, (void *)data) == dnnl_success;
}

static bool execute(const struct onednn_unit *unit, const struct onednn_engine *engine, int n,
                    const dnnl_exec_arg_t *args)
{
    return dnnl_primitive_execute(unit->primitive, engine->stream, n, args) == dnnl_success &&
           dnnl_stream_wait(engine->stream) == dnnl_success;
}

bool onednn_reorder(const struct onednn_unit *unit, const struct onednn_engine *engine,
                    desc_view from, const void *source, desc_view to, void *target, void *scratch)
{
    dnnl_exec_arg_t args[3] = {{0}};
    int n = 2;
    bool bound = bind(engine, DNNL_ARG_FROM, from, source, &args[0]) &&
                 bind(engine, DNNL_ARG_TO, to, target, &args[1]);
    if (bound && unit->scratch_bytes > 0)
        bound = bind(engine, DNNL_ARG_SCRATCHPAD, DESC(unit->scratchpad), scratch, &args[n++]);
    const bool done = bound && execute(unit, engine, n, args);
    for (int i = 0; i < n; i++)
        dnnl_memory_destroy(args[i].memory);
    return done;
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

/* Source, weights, result, perhaps bias, perhaps scratchpad. */
#define MOST_ARGS 5

/* Arguments in one run; oneDNN takes no addresses, but handles with one each. */
struct conv_args {
    int n;
    dnnl_exec_arg_t args[MOST_ARGS];
    void *at[MOST_ARGS]; /* that they point to */
};

static bool find_layouts(struct conv_unit *conv, const struct onednn_engine *engine, bool biased,
                         dnnl_primitive_desc_t desc)
{
    static const struct {
        dnnl_query_t query;
        int index;
    } queries[OPERANDS] = {[SRC] = {dnnl_query_src_md, 0},
                           [WEIGHTS] = {dnnl_query_weights_md, 0},
                           [BIAS] = {dnnl_query_weights_md, 1},
                           [DST] = {dnnl_query_dst_md, 0}};
    bool found = true;
    conv->engine = engine;
    conv->biased = biased;
    for (int i = 0; i < OPERANDS && found; i++) {
        desc_view used = dnnl_primitive_desc_query_md(desc, queries[i].query, queries[i].index);
        found = (i == BIAS && !biased) || (used && desc_copy(&conv->used[i], used));
    }
    return found;
}

bool conv_unit_make(struct conv_unit *conv, const struct onednn_engine *engine, bool biased,
                    dnnl_primitive_desc_t desc)
{
    if (find_layouts(conv, engine, biased, desc))
        return onednn_unit_make(&conv->unit, desc);
    dnnl_primitive_desc_destroy(desc);
    return false;
}

bool conv_unit_describe(struct conv_unit *conv, const struct onednn_engine *engine, bool biased,
                        dnnl_primitive_desc_t desc)
{
    const bool found = find_layouts(conv, engine, biased, desc);
    dnnl_primitive_desc_destroy(desc);
    return found;
}

static bool add_arg(const struct conv_unit *conv, struct conv_args *call, int number,
                    desc_view desc)
{
    return bind(conv->engine, number, desc, DNNL_MEMORY_NONE, &call->args[call->n++]);
}

static void drop_args(struct conv_args *call)
{
    for (int i = 0; call && i < call->n; i++)
        dnnl_memory_destroy(call->args[i].memory);
    free(call);
}

static struct conv_args *make_args(const struct conv_unit *conv)
{
    struct conv_args *call = calloc(1, sizeof *call);
    if (!call)
        return NULL;
    if (add_arg(conv, call, DNNL_ARG_SRC, DESC(conv->used[SRC])) &&
        add_arg(conv, call, DNNL_ARG_WEIGHTS, DESC(conv->used[WEIGHTS])) &&
        add_arg(conv, call, DNNL_ARG_DST, DESC(conv->used[DST])) &&
        (!conv->biased || add_arg(conv, call, DNNL_ARG_BIAS, DESC(conv->used[BIAS]))) &&
        (conv->unit.scratch_bytes == 0 ||
         add_arg(conv, call, DNNL_ARG_SCRATCHPAD, DESC(conv->unit.scratchpad))))
        return call;
    drop_args(call);
    return NULL;
}

/* Those of an earlier run, for one thread at a time. */
static struct conv_args *take_args(struct conv_unit *conv)
{
    struct conv_args *call = atomic_exchange_explicit(&conv->idle, NULL, memory_order_acquire);
    return call ? call : make_args(conv);
}

static void give_args(struct conv_unit *conv, struct conv_args *call)
{
    struct conv_args *none = NULL;
    if (!atomic_compare_exchange_strong_explicit(&conv->idle, &none, call, memory_order_release,
                                                 memory_order_relaxed))
        drop_args(call);
}

static bool set_args(const struct conv_unit *conv, struct conv_args *call,
                     const struct conv_places *places)
{
    void *all[MOST_ARGS] = {places->at[SRC], places->at[WEIGHTS], places->at[DST]};
    int n = 3;
    if (conv->biased)
        all[n++] = places->at[BIAS];
    all[n] = places->scratch;
    bool set = true;
    for (int i = 0; i < call->n && set; i++) {
        if (call->at[i] == all[i]) /* else the library zeros the padding of weights once more */
            continue;
        set = dnnl_memory_set_data_handle(call->args[i].memory, all[i]) == dnnl_success;
        call->at[i] = set ? all[i] : NULL;
    }
    return set;
}

bool conv_unit_run(struct conv_unit *conv, const struct conv_places *places)
{
    struct conv_args *call = take_args(conv);
    if (!call)
        return false;
    const bool done =
        set_args(conv, call, places) && execute(&conv->unit, conv->engine, call->n, call->args);
    give_args(conv, call);
    return done;
}

void conv_unit_drop(struct conv_unit *conv)
{
    drop_args(atomic_load_explicit(&conv->idle, memory_order_acquire));
    onednn_unit_drop(&conv->unit);
    conv_drop_descs(conv->used);
}

bool conv_unit_same_packing(const struct conv_unit *a, const struct conv_unit *b)
{
    return dnnl_memory_desc_equal(DESC(a->used[WEIGHTS]), DESC(b->used[WEIGHTS]));
}
