/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN's primitives, each with the memory that it needs for itself, and convolutions of them. */
#ifndef TSSA_DEVICE_CPU_ONEDNN_UNIT_H
#define TSSA_DEVICE_CPU_ONEDNN_UNIT_H

#include <stdatomic.h>

#include "device/cpu/onednn/conv_desc.h"

struct onednn_unit {
    dnnl_primitive_t primitive; /* NULL: there is nothing to do */
    dnnl_memory_desc_t scratchpad;
    size_t scratch_bytes;
};

/* Takes the description. What has been made is the caller's to drop, on failure, too. */
bool onednn_unit_make(struct onednn_unit *unit, dnnl_primitive_desc_t desc);
/* One that moves elements from a layout to another one; none where these are the same. */
bool onednn_unit_reorder(struct onednn_unit *unit, const struct onednn_engine *engine,
                         desc_view from, desc_view to, dnnl_primitive_attr_t attr);
void onednn_unit_drop(struct onednn_unit *unit);

/* Runs what onednn_unit_reorder has made. */
bool onednn_reorder(const struct onednn_unit *unit, const struct onednn_engine *engine,
                    desc_view from, const void *source, desc_view to, void *target, void *scratch);

/* `size` at the alignment of what lies behind it in scratch memory. */
size_t onednn_aligned(size_t size);

/* ---- Convolutions ---------------------------------------------------------------------------- */

struct conv_args;

struct conv_unit {
    const struct onednn_engine *engine;
    struct onednn_unit unit;
    bool biased;
    dnnl_memory_desc_t used[OPERANDS]; /* as the primitive wants them */
    _Atomic(struct conv_args *) idle;  /* of an earlier run; NULL: there are none */
};

/* Where operands and scratchpad are. */
struct conv_places {
    void *at[OPERANDS];
    void *scratch;
};

/* Takes the description. What has been made is the caller's to drop, on failure, too. */
bool conv_unit_make(struct conv_unit *conv, const struct onednn_engine *engine, bool biased,
                    dnnl_primitive_desc_t desc);
/* The same without the primitive, whose code is not compiled then: the layouts alone. */
bool conv_unit_describe(struct conv_unit *conv, const struct onednn_engine *engine, bool biased,
                        dnnl_primitive_desc_t desc);
/* Any thread; changes nothing but what it keeps for the next run. */
bool conv_unit_run(struct conv_unit *conv, const struct conv_places *places);
void conv_unit_drop(struct conv_unit *conv);
bool conv_unit_same_packing(const struct conv_unit *a, const struct conv_unit *b);

#endif
