/* SPDX-License-Identifier: Apache-2.0 */
/* What tssa_session_options.dump is given: texts of what a session computes, to look at. */
#ifndef TSSA_API_SESSION_DUMP_H
#define TSSA_API_SESSION_DUMP_H

#include "device/device.h"
#include "ir/ir.h"
#include "tssa.h"

/* "session": the graph that runs are made from. */
tssa_status *session_dump_graph(const struct ir_graph *graph, const tssa_session_options *options);
/* "gir" and "cuda": the kernels that the device makes of the graph's fuse ops. */
tssa_status *session_dump_kernels(const struct ir_graph *graph, const struct device *device,
                                  const tssa_session_options *options);

#endif
