/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which symbol is bound where. A symbol is bound at one place of its scope, the first in the order
 * of execution: when the value is made (a graph input, a step's result, a block's parameter) that
 * has it as an axis, or, for the value of an integer, as an element. It is bound in the steps
 * behind that place, to the end of the block that holds it. From there on a run knows the size of
 * everything whose dims have no other symbols, before a kernel computes it.
 *
 * Used while a plan is compiled, in the order of execution. Errors: out of memory alone.
 */
#ifndef TSSA_RUNTIME_SYMBOLS_H
#define TSSA_RUNTIME_SYMBOLS_H

#include "base/vec.h"
#include "runtime/plan.h"

struct symbol_scope {
    struct plan *plan;
    uint32_t *numbers; /* plan->symbol_numbers, being filled */
    bool *bound;       /* per dim id: a symbol that is bound here */
    VEC(const struct dim *) symbols;
    VEC(uint32_t) order;           /* ids of the symbols that are bound here, oldest first */
    VEC(struct plan_binding) made; /* since the last symbols_take */
};

tssa_status *symbols_init(struct symbol_scope *scope, struct plan *plan, struct arena *scratch);
void symbols_free(struct symbol_scope *scope);

/* Binds what the value, which is in this slot, is the first to have as an axis. */
tssa_status *symbols_bind_shape(struct symbol_scope *scope, const struct ir_value *value,
                                uint32_t slot);
/* The same of its elements, which are known: not of an input, whose elements a run does not look
 * at. */
tssa_status *symbols_bind_elements(struct symbol_scope *scope, const struct ir_value *value,
                                   uint32_t slot);
/* Are there bindings made since the last symbols_take? */
static inline bool symbols_made(const struct symbol_scope *scope)
{
    return scope->made.count > 0;
}
/* The bindings made since the last call; NULL: none. */
tssa_status *symbols_take(struct symbol_scope *scope, const struct plan_bindings **bindings);
/* Around a block: what was bound inside is no more. */
size_t symbols_enter(const struct symbol_scope *scope);
void symbols_leave(struct symbol_scope *scope, size_t mark);
/* Do the symbols that are bound here tell the value's size? Never for strings, whose bytes have
 * none. */
bool symbols_size(const struct symbol_scope *scope, const struct ir_value *value);
/* Fills plan->symbols. */
tssa_status *symbols_finish(struct symbol_scope *scope);

#endif
