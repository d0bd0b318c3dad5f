/* SPDX-License-Identifier: Apache-2.0 */
/* Values of float16 and bfloat16, and the same in float32, for passes that compute them there. */
#ifndef TSSA_PASSES_LOWER_HALVES_H
#define TSSA_PASSES_LOWER_HALVES_H

#include "passes/pass.h"

/* What was made in float32 already. */
struct halves {
    struct pass_context *pass;
    struct ir_value **wide; /* per value that was there before: its Cast to float32, or NULL */
    uint32_t n_values;
};

tssa_status *halves_open(struct pass_context *pass, struct halves *halves);
void halves_close(struct halves *halves);

/* Is it a tensor of float16 or bfloat16? */
bool half_is(const struct ir_value *value);

bool half_is_cast(const struct ir_op *op);

/* The value of float32 that was rounded to this one; NULL: it is no such value. */
struct ir_value *half_rounded_from(const struct ir_value *value);

/* Are there operands of these types, constants aside, and were all of them rounded from float32? */
bool halves_were_rounded(const struct ir_op *op);

/* The value in float32, by a Cast behind it that is made once: constants are folded. */
tssa_status *half_widened(struct halves *halves, struct ir_value *value, struct ir_value **wide);

/* Everybody who read the op's result k reads it rounded to the type now. */
tssa_status *half_round(struct pass_context *pass, struct ir_op *op, uint32_t k, tssa_dtype to);

#endif
