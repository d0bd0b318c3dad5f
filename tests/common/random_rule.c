/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct maker {
    struct random *random;
    const struct random_scalars *scalars;
    struct random_rule *rule;
    struct rule_param *params; /* of the step that is made */
    uint32_t n;
};

static int64_t below(struct maker *m, int64_t n)
{
    return n > 0 ? random_int(m->random, 0, n - 1) : 0;
}

static void put(struct maker *m, int64_t value)
{
    m->params[m->n++] = rule_constant(value);
}

static uint32_t add_operand(struct maker *m, int scalar)
{
    struct random_rule *rule = m->rule;
    for (uint32_t i = 0; scalar >= 0 && i < rule->n_operands; i++)
        if (rule->operands[i].scalar == scalar)
            return i;
    assert_true(rule->n_operands < RANDOM_RULE_OPERANDS);
    rule->operands[rule->n_operands] = (struct random_operand){.scalar = scalar};
    return rule->n_operands++;
}

/* A number, as a constant or as a scalar that has this value. */
static void put_dynamic(struct maker *m, int64_t value)
{
    if (below(m, 2))
        for (int tries = 0; tries < 6 && m->scalars->n; tries++) {
            int64_t at = below(m, m->scalars->n);
            if (m->scalars->values[at] != value)
                continue;
            m->params[m->n++] = rule_operand(add_operand(m, (int)at));
            return;
        }
    put(m, value);
}

static bool make_select(struct maker *m)
{
    int64_t axis = below(m, m->rule->rank);
    if (m->rule->rank == 0 || m->rule->dims[axis] == 0)
        return false;
    put(m, axis);
    put_dynamic(m, below(m, m->rule->dims[axis]) - (below(m, 4) ? 0 : m->rule->dims[axis]));
    return true;
}

static bool make_slice(struct maker *m)
{
    static const int64_t by[] = {1, 1, 1, 2, 2, 3, -1, -1, -2};
    int64_t axis = below(m, m->rule->rank);
    if (m->rule->rank == 0)
        return false;
    int64_t dim = m->rule->dims[axis], start = below(m, dim + 1), end = start + below(m, dim + 2);
    int64_t step = by[below(m, 9)];
    if (step < 0) {
        start = below(m, 2) ? -1 : start;
        end = below(m, 2) ? INT64_MIN : below(m, start + 1) - 1;
    } else if (!below(m, 3)) {
        start = below(m, 2) ? 0 : -below(m, dim + 1);
        end = below(m, 2) ? INT64_MAX : -below(m, dim + 1);
    }
    put(m, axis);
    put_dynamic(m, start);
    put_dynamic(m, end);
    put_dynamic(m, step);
    return true;
}

/* Now and then of more than there is: then the step is taken back. */
static bool make_span(struct maker *m)
{
    int64_t axis = below(m, m->rule->rank);
    if (m->rule->rank == 0)
        return false;
    int64_t dim = m->rule->dims[axis], start = below(m, dim + 1);
    put(m, axis);
    put_dynamic(m, start);
    put_dynamic(m, below(m, dim - start + (below(m, 8) ? 1 : 3)));
    return true;
}

static bool make_permute(struct maker *m)
{
    int64_t perm[TSSA_MAX_RANK];
    for (int i = 0; i < m->rule->rank; i++)
        perm[i] = i;
    for (int i = m->rule->rank - 1; i > 0; i--) {
        int64_t at = below(m, i + 1), old = perm[i];
        perm[i] = perm[at];
        perm[at] = old;
    }
    for (int i = 0; i < m->rule->rank; i++)
        put(m, perm[i]);
    return true;
}

static bool make_reshape(struct maker *m)
{
    int64_t left = 1;
    bool open = true;
    for (int i = 0; i < m->rule->rank; i++)
        left *= m->rule->dims[i];
    if (left == 0) {
        put(m, below(m, 3));
        put(m, 0);
        return true;
    }
    int n = (int)below(m, 3);
    for (int i = 0; i < n; i++) {
        int64_t part = 1 + below(m, 4);
        if (left % part != 0)
            part = 1;
        put_dynamic(m, part);
        left /= part;
    }
    if (left != 1 || below(m, 2)) {
        if (open && below(m, 2))
            put(m, -1);
        else
            put_dynamic(m, left);
    }
    return true;
}

static bool make_squeeze(struct maker *m)
{
    for (int i = 0; i < m->rule->rank; i++)
        if (m->rule->dims[i] == 1 && below(m, 2))
            put(m, i);
    return m->n > 0;
}

static bool make_unsqueeze(struct maker *m)
{
    int n = 1 + (int)below(m, 2);
    int64_t axis = 0;
    for (int i = 0; i < n && m->rule->rank + n < TSSA_MAX_RANK; i++) {
        axis += below(m, m->rule->rank + i + 1 - axis);
        put(m, axis++);
    }
    return m->n > 0;
}

static bool make_expand(struct maker *m)
{
    for (int64_t i = m->rule->rank < 5 ? below(m, 2) : 0; i-- > 0;)
        put_dynamic(m, 1 + below(m, 3));
    for (int i = 0; i < m->rule->rank; i++) {
        int64_t dim = m->rule->dims[i];
        put_dynamic(m, dim == 1 ? below(m, 4) : below(m, 2) ? dim : 1);
    }
    return true;
}

static bool make_tile(struct maker *m)
{
    for (int i = 0; i < m->rule->rank; i++)
        put_dynamic(m, below(m, 2) ? 1 : below(m, 4));
    return true;
}

static bool make_diagonal(struct maker *m)
{
    int64_t a = below(m, m->rule->rank), b = below(m, m->rule->rank);
    if (m->rule->rank < 2 || a == b)
        return false;
    put(m, a);
    put(m, b);
    put(m, below(m, 7) - 3);
    return true;
}

static struct random_operand *put_tensor(struct maker *m, tssa_dtype dtype, int rank,
                                         const int64_t *dims)
{
    uint32_t at = add_operand(m, -1);
    struct random_operand *operand = &m->rule->operands[at];
    operand->tensor = (struct tensor){.dtype = dtype, .rank = rank, .data = operand->data};
    memcpy(operand->tensor.dims, dims, (size_t)rank * sizeof *dims);
    m->params[m->n++] = rule_operand(at);
    return operand;
}

static bool make_gather(struct maker *m)
{
    int64_t axis = below(m, m->rule->rank), dims[2] = {below(m, 4), 1 + below(m, 2)};
    if (m->rule->rank == 0 || m->rule->rank > 4 || m->rule->dims[axis] == 0)
        return false;
    int64_t dim = m->rule->dims[axis];
    put(m, axis);
    struct random_operand *operand = put_tensor(m, TSSA_INT64, (int)below(m, 3), dims);
    bool distinct = below(m, 2) && (int64_t)tensor_count(&operand->tensor) <= dim;
    int64_t first = below(m, dim);
    for (size_t i = 0; i < tensor_count(&operand->tensor); i++)
        operand->data[i] =
            (distinct ? (first + (int64_t)i) % dim : below(m, dim)) - (below(m, 4) ? 0 : dim);
    return true;
}

static bool make_mask(struct maker *m)
{
    int rank = m->rule->rank, n = 1 + (int)below(m, 2);
    int64_t axis = below(m, rank);
    if (rank == 0)
        return false;
    n = axis + n > rank ? 1 : n;
    put(m, axis);
    struct random_operand *operand = put_tensor(m, TSSA_BOOL, n, m->rule->dims + axis);
    for (size_t i = 0; i < tensor_count(&operand->tensor); i++)
        ((uint8_t *)operand->data)[i] = (uint8_t)below(m, 2);
    return true;
}

static bool (*const makers[RULE_KIND_COUNT])(struct maker *m) = {
#define RULE(id, text, ...) [RULE_##id] = make_##text,
#include "ir/rule.def"
#undef RULE
};

bool random_rule_resolve(const struct random_rule *rule, struct pool *pool, int rank,
                         const int64_t *dims, const int64_t *scalars, struct rule_region *region)
{
    struct tensor numbers[RANDOM_RULE_OPERANDS];
    const struct tensor *params[RANDOM_RULE_OPERANDS];
    for (uint32_t i = 0; i < rule->n_operands; i++) {
        params[i] = &rule->operands[i].tensor;
        if (rule->operands[i].scalar < 0)
            continue;
        /* Read only. */
        numbers[i] = (struct tensor){.dtype = TSSA_INT64,
                                     .data = (void *)(uintptr_t)&scalars[rule->operands[i].scalar]};
        params[i] = &numbers[i];
    }
    *region = (struct rule_region){0};
    tssa_status *status = rule_region_resolve(pool, &rule->rule, params, rank, dims, region);
    bool resolved = status == NULL;
    tssa_status_free(status);
    if (!resolved)
        rule_region_release(region);
    return resolved;
}

/* Takes the last step back unless the region that it makes exists and is small. */
static void settle(struct maker *m, struct pool *pool, int rank, const int64_t *dims)
{
    struct rule_region region;
    struct random_rule *rule = m->rule;
    bool good = random_rule_resolve(rule, pool, rank, dims, m->scalars->values, &region);
    if (!good) {
        rule->rule.n_steps--;
        return;
    }
    if (rule_region_count(&region) > RANDOM_RULE_ELEMENTS || region.rank > 6) {
        rule->rule.n_steps--;
    } else {
        rule->rank = region.rank;
        memcpy(rule->dims, region.dims, sizeof rule->dims);
    }
    rule_region_release(&region);
}

void random_rule(struct random *random, struct pool *pool, uint32_t kinds, int rank,
                 const int64_t *dims, const struct random_scalars *scalars, struct random_rule *out)
{
    *out = (struct random_rule){.rank = rank};
    out->rule.steps = out->steps;
    memcpy(out->dims, dims, (size_t)rank * sizeof *dims);
    int wanted = (int)random_int(random, 0, RANDOM_RULE_STEPS);
    for (int tries = 0; tries < 4 * wanted && (int)out->rule.n_steps < wanted; tries++) {
        enum rule_kind kind = (enum rule_kind)random_int(random, 0, RULE_KIND_COUNT - 1);
        struct maker m = {.random = random,
                          .scalars = scalars,
                          .rule = out,
                          .params = out->params[out->rule.n_steps]};
        if (!(kinds >> kind & 1) || !makers[kind](&m))
            continue;
        out->steps[out->rule.n_steps++] = (struct rule_step){kind, m.n, m.params};
        settle(&m, pool, rank, dims);
    }
    /* Those of steps that were taken back are not asked for. */
    out->n_operands = 0;
    for (uint32_t i = 0; i < out->rule.n_steps; i++)
        for (uint32_t p = 0; p < out->steps[i].n_params; p++)
            if (out->params[i][p].is_operand && out->params[i][p].value >= out->n_operands)
                out->n_operands = (uint32_t)out->params[i][p].value + 1;
    out->rule.n_operands = out->n_operands;
}
