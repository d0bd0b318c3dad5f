/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules: which elements of a tensor a view, an access or an assign means, as data.
 *
 * A rule [.] is a list of steps, applied to the base from left to right; what comes out is the
 * region. An empty rule is the whole tensor. A step's params are constants, or operands of the op
 * that carries the rule, counted from its first param operand ($0, $1, ...): integer tensors of one
 * element, or the index tensor of a gather, or the BOOL tensor of a mask. Axes are constants and
 * not negative. What the kinds and their params mean stands in rule.def.
 *
 *   view v = x[rule]        view(x, params...)       v shares x's storage: imperative programs
 *   write v, s              write(v, s)              v's storage now holds s: likewise
 *   access v = x[rule]      access(x, params...)     a read
 *   assign y = x[rule := s] assign(x, s, params...)  x, with s in the region
 *   update y, x             update(y, x)             from here on x is y: during conversion only
 *
 * `s` has the region's shape or broadcasts to it. Where a region holds an element of the base more
 * than once (an expand, a gather with duplicates), the last in row-major order is what a write
 * leaves.
 *
 * Rules live in the graph's arena and never change. In text: {rule = [select(0, $0), slice(1, 0, 4,
 * 2)]}, the whole tensor is {rule = steps[]}.
 */
#ifndef TSSA_IR_RULE_H
#define TSSA_IR_RULE_H

#include "ir/ir.h"

enum rule_kind {
#define RULE(id, ...) RULE_##id,
#include "ir/rule.def"
#undef RULE
    RULE_KIND_COUNT
};

#define RULE_MAX_STEPS 64

struct rule_param {
    bool is_operand;
    int64_t value; /* the constant, or the number of the param operand */
};

struct rule_step {
    enum rule_kind kind;
    uint32_t n_params;
    const struct rule_param *params;
};

struct rule {
    uint32_t n_steps;
    const struct rule_step *steps;
    uint32_t n_operands; /* 1 + the largest operand number */
};

struct rule_kind_info {
    const char *name;
    uint32_t min_params, max_params;
    uint32_t first_dynamic; /* params from here on may be operands */
};

const struct rule_kind_info *rule_kind_info(enum rule_kind kind);
/* false when there is none of this name. */
bool rule_kind_find(const char *name, size_t size, enum rule_kind *kind);

static inline struct rule_param rule_constant(int64_t value)
{
    return (struct rule_param){.value = value};
}
static inline struct rule_param rule_operand(int64_t number)
{
    return (struct rule_param){.is_operand = true, .value = number};
}

/* A copy, with its steps and params, in the graph's arena; NULL when memory runs out. */
const struct rule *rule_create(struct ir_graph *graph, size_t n_steps,
                               const struct rule_step *steps);
/* Same steps, same constants, same operand numbers. */
bool rule_equal(const struct rule *a, const struct rule *b);
/* Are all elements read, each once and in their order? Only their shape is another one then. */
bool rule_keeps_order(const struct rule *rule);
/* Does the region lie in steps, one along each axis, whatever the base's shape is? */
bool rule_is_strided(const struct rule *rule);
/* "[select(0, $0)]" */
void rule_print(const struct rule *rule, struct text *text);
/* One line why the steps are no rule (counts, constants where they must be, negative axes), else
 * NULL. */
const char *rule_problem(const struct rule *rule);

/*
 * Can no run fail in the step, applied to a tensor of these dims, of its own account? `value`: the
 * operand that its second param is, or NULL. false in doubt, and of reshapes and masks.
 */
bool rule_step_is_total(const struct rule_step *step, int rank, const struct dim *const *dims,
                        const struct ir_value *value);

/* The rule of a view, access or assign, else NULL. */
const struct rule *rule_of(const struct ir_op *op);
/* Where an op's param operands begin: 1 for view and access, 2 for assign. */
uint32_t rule_first_operand(const struct ir_op *op);
/* The SSA value of a param of `op`'s rule; NULL for a constant. */
struct ir_value *rule_param_value(const struct ir_op *op, const struct rule_param *param);
/* What a param is as a number: a constant, or the known element of its operand; NULL: not known. */
const struct dim *rule_param_dim(const struct ir_op *op, const struct rule_param *param);

/* New ops with a rule, in no block yet, not inferred; NULL when memory runs out. */
struct ir_op *rule_access_create(struct ir_graph *graph, struct ir_value *base,
                                 const struct rule *rule, uint32_t n_params,
                                 struct ir_value *const *params);
struct ir_op *rule_assign_create(struct ir_graph *graph, struct ir_value *base,
                                 struct ir_value *source, const struct rule *rule,
                                 uint32_t n_params, struct ir_value *const *params);

/*
 * The shape of the region of `op`'s rule in a base of this shape: *rank is -1 when it cannot be
 * told, dims must have room for TSSA_MAX_RANK. An error when no run can succeed. Fresh dims for
 * what only a run can tell.
 */
tssa_status *rule_region_shape(struct ir_op *op, int base_rank, const struct dim *const *base,
                               int *rank, const struct dim **dims);
/* The same for another rule whose params are operands of `op`: the first steps of its own, say. */
tssa_status *rule_prefix_shape(struct ir_op *op, const struct rule *rule, int base_rank,
                               const struct dim *const *base, int *rank, const struct dim **dims);

#endif
