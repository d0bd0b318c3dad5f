/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pass `recover` share. */
#ifndef TSSA_PASSES_RECOVER_RECOVER_H
#define TSSA_PASSES_RECOVER_RECOVER_H

#include "ir/element.h"
#include "ir/rule_draft.h"
#include "passes/pass.h"

/* ---- Ops ------------------------------------------------------------------------------------- */

/* The access or assign of a draft in the place of `op`, whose result `index` it replaces; it takes
 * over names and the type. The op itself stays when it has other results that are used. */
tssa_status *recover_access(struct pass_context *pass, struct ir_op *op, uint32_t index,
                            struct ir_value *base, const struct rule_draft *draft);
tssa_status *recover_assign(struct pass_context *pass, struct ir_op *op, struct ir_value *base,
                            struct ir_value *source, const struct rule_draft *draft);
/* An access of a draft before `op`, with a type; *result is `base` itself for a draft without
 * steps. */
tssa_status *recover_insert_access(struct pass_context *pass, struct ir_op *op,
                                   struct ir_value *base, const struct rule_draft *draft,
                                   struct ir_value **result);
/* All uses of an op's only result become uses of `value`, and the op goes. */
void recover_replace(struct pass_context *pass, struct ir_op *op, struct ir_value *value);

/* ---- Questions ------------------------------------------------------------------------------- */

static inline bool recover_is_ranked(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR && value->type->rank >= 0;
}
/* "%x", or the op that a value without a name comes from. */
const char *recover_name(const struct ir_value *value, char *text, size_t size);

/* ---- Writes where a mask is true ------------------------------------------------------------- */

/* A ScatterND of one value to where a mask of trailing indexed axes is true, which NonZero has
 * listed. */
struct listed_write {
    int axis;               /* of the data, where the mask begins */
    struct ir_value *mask;  /* NULL: it is no such write */
    struct ir_value *value; /* broadcasts to what is behind the mask's axes; NULL: updates differ */
};

/* Columns `axis` and on of the indices (of `depth`) are asked; `space` is that of the indices'
 * positions. */
tssa_status *recover_read_listed(struct pass_context *pass, struct ir_op *op,
                                 const struct element_space *space, int axis, int depth,
                                 struct listed_write *write);
/*
 * A Where of the part that the draft, which selects the leading axes, leaves; written back there.
 */
tssa_status *recover_write_listed(struct pass_context *pass, struct ir_op *op,
                                  const struct listed_write *write, const struct rule_draft *draft);

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Each raises one op, if it can. */
typedef tssa_status *(*recover_fn)(struct pass_context *pass, struct ir_op *op);

tssa_status *recover_scatter_nd(struct pass_context *pass, struct ir_op *op);
tssa_status *recover_scatter_elements(struct pass_context *pass, struct ir_op *op);
tssa_status *recover_tensor_scatter(struct pass_context *pass, struct ir_op *op);
tssa_status *recover_gather(struct pass_context *pass, struct ir_op *op);
tssa_status *recover_gather_nd(struct pass_context *pass, struct ir_op *op);
tssa_status *recover_gather_elements(struct pass_context *pass, struct ir_op *op);
tssa_status *recover_transpose(struct pass_context *pass, struct ir_op *op);
tssa_status *recover_concat(struct pass_context *pass, struct ir_op *op);
tssa_status *recover_add(struct pass_context *pass, struct ir_op *op);
tssa_status *recover_where(struct pass_context *pass, struct ir_op *op);
tssa_status *recover_assign_chain(struct pass_context *pass, struct ir_op *op);

#endif
