/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of what is kept, and what is noted of values (bound_lists.h). */
#include "passes/lower/bound_lists.h"

#define MOST_ELEMENTS ((int64_t)1 << 21) /* of a bounded value */

/* ---- Shapes ---------------------------------------------------------------------------------- */

bool bound_is_ranked(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR && value->type->rank >= 0;
}

/* Their product; -1: they are not known, or too many. */
int64_t bound_count_dims(const struct ir_type *type, int from, int to)
{
    int64_t n = 1, size;
    for (int i = from; i < to; i++)
        if (!dim_is_const(type->dims[i], &size) || size < 0 || !i64_mul(n, size, &n) ||
            n > MOST_ELEMENTS)
            return -1;
    return n;
}

int64_t bound_list_count(const struct ir_value *value)
{
    return bound_is_ranked(value) ? bound_count_dims(value->type, 0, value->type->rank) : -1;
}

/* ---- Sets ------------------------------------------------------------------------------------ */

tssa_status *bound_add_set(struct bounding *b, struct bound_set set, uint32_t *index)
{
    *index = (uint32_t)b->sets.count;
    return vec_push(&b->sets, set) ? NULL : status_out_of_memory();
}

/* Of the parent's elements each has so many here. */
tssa_status *bound_find_multiple(struct bounding *b, uint32_t parent, int64_t factor,
                                 uint32_t *index)
{
    struct dim_table *dims = &b->pass->graph->dims;
    if (factor == 1) {
        *index = parent;
        return NULL;
    }
    for (uint32_t i = 0; i < b->sets.count; i++)
        if (bound_set_at(b, i)->parent == parent + 1 && bound_set_at(b, i)->factor == factor) {
            *index = i;
            return NULL;
        }
    const struct dim *dim = dim_mul(dims, bound_set_at(b, parent)->dim, dim_const(dims, factor));
    TRY_ALLOC(dim);
    return bound_add_set(b,
                         (struct bound_set){.dim = dim,
                                            .bound = bound_set_at(b, parent)->bound * factor,
                                            .roots = bound_set_at(b, parent)->roots,
                                            .parent = parent + 1,
                                            .factor = factor},
                         index);
}

static struct ir_value *join_valid(struct bounding *b, struct pass_maker *m,
                                   const struct bound_set *set)
{
    struct ir_op *op =
        m->status ? NULL : ir_op_create(m->graph, ir_op_info(IR_OP_Concat), set->n_parts, 1);
    const struct ir_attr axis = {.name = intern_str(&m->graph->strings, "axis"),
                                 .kind = IR_ATTR_INT};
    if (!op || !axis.name || !ir_op_set_attr(m->graph, op, &axis))
        return pass_put(m, NULL);
    op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    for (uint32_t i = 0; i < set->n_parts; i++)
        ir_op_set_operand(op, i, bound_valid(b, m, set->parts[i]));
    return pass_put(m, op);
}

/* Which of the elements that there are room for are there: bool[bound]. */
struct ir_value *bound_valid(struct bounding *b, struct pass_maker *m, uint32_t index)
{
    struct bound_set set = *bound_set_at(b, index);
    if (set.valid)
        return set.valid;
    if (set.n_parts) {
        set.valid = join_valid(b, m, &set);
    } else if (set.parent) {
        const int64_t bound = set.bound / set.factor, last = 1;
        struct ir_value *each = bound_valid(b, m, set.parent - 1);
        each = pass_make_access(m, each, RULE_UNSQUEEZE, 1, &last, NULL);
        each = pass_make_access(m, each, RULE_EXPAND, 2, (int64_t[]){bound, set.factor}, NULL);
        set.valid = pass_make_access(m, each, RULE_RESHAPE, 1, &set.bound, NULL);
    } else {
        set.valid = set.mask->type->rank == 1
                        ? set.mask
                        : pass_make_access(m, set.mask, RULE_RESHAPE, 1, &set.bound, NULL);
    }
    return bound_set_at(b, index)->valid = set.valid;
}

/* ---- Noting ---------------------------------------------------------------------------------- */

void bound_note(struct bounding *b, const struct ir_op *op, uint32_t result,
                struct bound_value value)
{
    b->values[op->results[result].id] = value;
    b->roles[op->id] = BOUND_MADE;
}

/* The result with room for all: as long as the set, along that axis, and not too large. */
void bound_note_padded(struct bounding *b, const struct ir_op *op, struct bound_value value)
{
    const struct ir_value *padded = value.value;
    value.kind = BOUND_PADDED;
    if (bound_is_ranked(padded) && bound_is_ranked(&op->results[0]) &&
        padded->type->rank == op->results[0].type->rank && value.axis < padded->type->rank &&
        dim_is(padded->type->dims[value.axis], bound_set_at(b, value.set)->bound) &&
        bound_list_count(padded) >= 0)
        bound_note(b, op, 0, value);
}

tssa_status *bound_note_end(struct bounding *b, struct ir_op *op, uint32_t operand,
                            struct ir_value *value, uint32_t set)
{
    b->roles[op->id] = BOUND_ENDS;
    return vec_push(&b->ends, ((struct bound_end){op, operand, value, bound_set_at(b, set)->roots}))
               ? NULL
               : status_out_of_memory();
}

/* The op with these operands, before it; NULL where there is none to be made. */
tssa_status *bound_copy(struct bounding *b, struct ir_op *op, const struct ir_value *from,
                        struct ir_value *to, struct ir_value **made)
{
    struct ir_op *copy;
    ir_cloner_reset(&b->cloner);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct bound_value *value = bound_of(b, ir_operand(op, i));
        if (value->kind == BOUND_PADDED &&
            !ir_cloner_map(&b->cloner, ir_operand(op, i), value->value))
            return status_out_of_memory();
    }
    if (from && !ir_cloner_map(&b->cloner, from, to))
        return status_out_of_memory();
    TRY_ALLOC(copy = ir_clone_op(&b->cloner, op));
    TRY(pass_insert(copy, op));
    *made = &copy->results[0];
    return NULL;
}
