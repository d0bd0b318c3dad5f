/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: the walk over a rule's steps that makes them. */
#include "ir/region.h"

#include "ir/region_walk.h"

static const step_fn steps[RULE_KIND_COUNT] = {
#define RULE(id, text, ...) [RULE_##id] = region_step_##text,
#include "ir/rule.def"
#undef RULE
};

static tssa_status *begin(struct region_walk *walk, const struct ir_type *base)
{
    struct region *region = walk->region;
    const struct dim *stride = walk_constant(walk, 1);
    region->base_rank = walk->rank = walk->n_ids = base->rank;
    region->offset = walk_constant(walk, 0);
    for (int i = base->rank; i-- > 0;) {
        region->base[i] = base->dims[i];
        region->axes[i] = (struct region_axis){.exact = true,
                                               .start = walk_constant(walk, 0),
                                               .count = base->dims[i],
                                               .step = 1,
                                               .result = i};
        walk->axes[i] = (struct region_walk_axis){.dim = base->dims[i], .stride = stride, .id = i};
        stride = dim_mul(walk->table, stride, base->dims[i]);
        TRY_ALLOC(region->axes[i].start);
    }
    region->exact = region->mapped = region->strided = true;
    region->single = REGION_YES;
    return NULL;
}

/* Duplicates are only there where anything is. */
static void settle_single(const struct region_walk *walk)
{
    struct region *region = walk->region;
    for (int i = 0; i < region->rank; i++)
        if (region->single == REGION_NO && region->dims[i]->low < 1)
            region->single = REGION_UNKNOWN;
}

static tssa_status *finish(struct region_walk *walk)
{
    struct region *region = walk->region;
    int result[TSSA_MAX_RANK];
    region->rank = walk->rank;
    for (int r = 0; r < walk->rank; r++)
        walk_account(walk, &walk->axes[r]);
    for (int i = 0; i < region->base_rank; i++) {
        region->exact = region->exact && region->axes[i].exact;
        result[i] = -1;
        for (int r = 0; r < walk->rank; r++)
            if (walk->axes[r].id == region->axes[i].result)
                result[i] = r;
        TRY_ALLOC(region->axes[i].start);
        TRY_ALLOC(region->axes[i].count);
    }
    for (int i = 0; i < region->base_rank; i++)
        region->axes[i].result = result[i];
    for (int r = 0; r < walk->rank; r++) {
        region->dims[r] = walk->axes[r].dim;
        region->strides[r] = walk->axes[r].stride;
        TRY_ALLOC(region->dims[r]);
        TRY_ALLOC(region->strides[r]);
    }
    TRY_ALLOC(region->offset);
    settle_single(walk);
    return NULL;
}

tssa_status *region_make(struct region_space *space, const struct ir_type *base,
                         const struct rule *rule, struct ir_value *const *params,
                         struct region *region)
{
    *region = (struct region){.rule = rule, .params = params, .base_rank = -1, .rank = -1};
    struct region_walk walk = {.space = space, .table = &space->graph->dims, .region = region};
    if (base->kind != TYPE_TENSOR || base->rank < 0)
        return NULL;
    TRY(begin(&walk, base));
    for (uint32_t i = 0; i < rule->n_steps && walk.rank >= 0; i++)
        TRY(steps[rule->steps[i].kind](&walk, &rule->steps[i]));
    if (walk.rank < 0 || walk.rank > TSSA_MAX_RANK) {
        *region = (struct region){.rule = rule, .params = params, .base_rank = -1, .rank = -1};
        return NULL;
    }
    return finish(&walk);
}

tssa_status *region_of(struct region_space *space, const struct ir_op *op, struct ir_value **params,
                       struct region *region)
{
    const struct rule *rule = rule_of(op);
    uint32_t first = rule_first_operand(op);
    for (uint32_t i = 0; i < rule->n_operands; i++)
        params[i] = ir_operand(op, first + i);
    return region_make(space, ir_operand(op, 0)->type, rule, params, region);
}
