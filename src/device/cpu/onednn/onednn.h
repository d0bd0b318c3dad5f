/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the oneDNN provider share. oneDNN 2.x and 3.x. */
#ifndef TSSA_DEVICE_CPU_ONEDNN_ONEDNN_H
#define TSSA_DEVICE_CPU_ONEDNN_ONEDNN_H

#include <dnnl.h>
#include <stdatomic.h>

#include "device/cpu/plugins.h"
#include "device/cpu/provider.h"

struct onednn_engine {
    struct cpu_engine base;
    dnnl_engine_t engine;
    dnnl_stream_t stream; /* on the CPU it has no state: used by all threads */
    atomic_bool is_ready;
};

/* OpenMP's settings for the calling thread, as they were. */
struct onednn_setting {
    int threads, dynamic;
};

/* Bracket every call that computes: sets the number of threads, which is a problem's, and the old
 * settings again. */
struct onednn_setting onednn_enter(int threads);
void onednn_leave(struct onednn_setting before);

/* How many of a problem's threads pack weights of so many bytes (LIBRARY_PACKED_ALONE). */
int onednn_packing_threads(size_t bytes, int threads);

/* As get_ready of struct cpu_provider. */
void onednn_get_ready(struct cpu_engine *engine);

/* Whether it uses these instructions here, of enum dnnl_cpu_isa_t. */
bool onednn_has_isa(unsigned isa);

/* Whether sums of products of bytes are exact: without VNNI pairs of them saturate in 16 bits. */
bool onednn_sums_bytes(void);

struct library_primitive *onednn_make_matmul(const struct library_problem *problem);
struct library_primitive *onednn_make_conv(struct cpu_engine *engine,
                                           const struct library_problem *problem);
/* As make_packer; where sizes decide whether Winograd's algorithm computes it, NULL. */
struct library_primitive *onednn_make_conv_packer(struct cpu_engine *engine,
                                                  const struct library_problem *problem);

/* ---- Memory descriptions: values in oneDNN 2, handles in 3 ----------------------------------- */

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t desc_view;
#define DESC(desc) (desc)
#else
typedef const dnnl_memory_desc_t *desc_view;
#define DESC(desc) (&(desc))
#endif

bool desc_make(dnnl_memory_desc_t *desc, int n, const dnnl_dims_t dims, dnnl_data_type_t type,
               dnnl_format_tag_t tag);
bool desc_copy(dnnl_memory_desc_t *desc, desc_view from);
void desc_drop(dnnl_memory_desc_t *desc);

#endif
