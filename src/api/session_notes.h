/* SPDX-License-Identifier: Apache-2.0 */
/* What a session says to the log. What is so for all of a context is said once. */
#ifndef TSSA_API_SESSION_NOTES_H
#define TSSA_API_SESSION_NOTES_H

#include "api/background.h"

/* That there is no library of which the plan would make use. */
void session_note_library(struct tssa_context *context, const struct plan *plan);
/* What runs elsewhere than was asked for: how much to the log, what to options->remark. */
void session_note_lacked(struct tssa_context *context, const struct plan *plan,
                         const tssa_session_options *options);
void session_note_fused(struct tssa_context *context, const struct ir_graph *graph);
/* What was compiled, that nothing can be compiled here, or kept. */
void session_note_compiled(struct tssa_context *context, const struct compile_report *report);
/* That what first runs compile cannot be kept. */
void session_note_kept(struct tssa_context *context, struct device_context *device);
/* The same of what was done in the background, and what failed, which is freed. */
void session_note_background(struct tssa_context *context, struct background_result *result);
/* What each kernel moves, computes and takes (gir/estimate.h), to options->remark. */
tssa_status *session_remark_kernels(const struct ir_graph *graph, struct device_context *device,
                                    const tssa_session_options *options);
/* Whether runs can be recorded, on a device that records, or why not. */
void session_remark_recording(const struct plan *plan, const tssa_session_options *options);
/* Remarks on loops in the block and in blocks in it: why iterations are made step by step. */
void session_remark_loops(const struct block_plan *block, const tssa_session_options *options);

#endif
