/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the ops that a fuse op holds in its place: the inverse of `fuse`.
 *
 *   needs   nothing
 *   keeps   types, known elements; all that is no fuse op
 *   breaks  nothing
 *
 * For what no kernel takes: passes that look at ops and their neighbours see them again.
 */
#include "ir/fuse.h"
#include "passes/pass.h"

tssa_status *pass_unfuse(struct pass_context *pass)
{
    ir_fuse_inline_all(pass->graph, &pass->changed);
    return NULL;
}
