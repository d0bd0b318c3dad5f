/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever is claimed of a region holds: random rules of every kind on small random shapes, whose
 * dims and params are constants or known to the run alone, are compared element by element with
 * what the reference kernels resolve them to.
 *
 * TSSA_SEED=N runs one of them and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/random_programs.h"
#include "common/random_rule.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/region.h"

#define RULES 3
#define ALL_KINDS ((UINT32_C(1) << RULE_KIND_COUNT) - 1)
#define SCALARS 12
#define MAX_BASE 4

/* What is computed from the counter %i, from %k, and from dims. */
static const char *const names[SCALARS] = {"i",  "k",  "i1", "i2", "i22", "k1",
                                           "k2", "ki", "n",  "m1", "i3",  "i33"};

static void compute(int64_t i, int64_t k, int64_t n, int64_t *values)
{
    const int64_t all[SCALARS] = {i,     k,     i + 1, 2 * i,  2 * i + 2, k - 1,
                                  2 * k, k + i, n,     -i - 1, 3 * i,     3 * i + 3};
    memcpy(values, all, sizeof all);
}

struct test_case {
    uint64_t seed;
    struct random random;
    struct ir_graph *graph;
    struct ir_value *x, *scalars[SCALARS];
    struct ir_block *body;
    struct region_space space;
    struct pool pool;
    int rank;
    int64_t dims[MAX_BASE], values[SCALARS], k;
    struct random_rule rules[RULES];
    struct ir_value *params[RULES][RANDOM_RULE_OPERANDS];
    struct region regions[RULES];
    int64_t *offsets[RULES]; /* of each element */
    int64_t counts[RULES];
    bool *touched[RULES]; /* by offset */
    int64_t size;         /* of the base */
};

static void claim(const struct test_case *t, bool holds, const char *what, int rule)
{
    if (holds)
        return;
    struct text text;
    text_init(&text, &allocator_default);
    for (int i = 0; i < RULES; i++) {
        rule_print(&t->rules[i].rule, &text);
        text_putc(&text, '\n');
    }
    print_message("TSSA_SEED=%llu: rule %d: %s\n%s", (unsigned long long)t->seed, rule, what,
                  text_string(&text));
    text_free(&text);
    fail();
}

static void ok(const struct test_case *t, tssa_status *status)
{
    if (!status)
        return;
    claim(t, false, tssa_status_message(status), -1);
}

/* ---- The graph ------------------------------------------------------------------------------- */

static const char *const text =
    "graph (%%x: f32[%s], %%k: i64[], %%n: i64[N]) -> (%%r as \"r\") {\n"
    "  %%one = Constant() {value = i64[] 1}\n"
    "  %%two = Constant() {value = i64[] 2}\n"
    "  %%three = Constant() {value = i64[] 3}\n"
    "  %%trips = Constant() {value = i64[] 5}\n"
    "  %%n_shape = Shape(%%n)\n"
    "  %%r = Loop(%%trips, _, %%x) {\n"
    "    body(%%i: i64[], %%c: bool[], %%v: f32[%s]) {\n"
    "      %%i1 = Add(%%i, %%one)\n"
    "      %%i2 = Mul(%%i, %%two)\n"
    "      %%i22 = Add(%%i2, %%two)\n"
    "      %%k1 = Sub(%%k, %%one)\n"
    "      %%k2 = Mul(%%two, %%k)\n"
    "      %%ki = Add(%%k, %%i)\n"
    "      %%zero = Sub(%%one, %%one)\n"
    "      %%n_only = Squeeze(%%n_shape)\n"
    "      %%m = Sub(%%zero, %%i)\n"
    "      %%m1 = Sub(%%m, %%one)\n"
    "      %%i3 = Mul(%%i, %%three)\n"
    "      %%i33 = Add(%%i3, %%three)\n"
    "      return(%%c, %%v)\n"
    "    }\n"
    "  }\n"
    "  return(%%r)\n"
    "}\n";

struct finder {
    const char *name;
    struct ir_value *found;
};

static tssa_status *find(void *context, struct ir_op *op)
{
    struct finder *finder = context;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].name && strcmp(op->results[i].name, finder->name) == 0)
            finder->found = &op->results[i];
    return NULL;
}

static struct ir_value *value_named(const struct test_case *t, const char *name)
{
    struct finder finder = {.name = name};
    ok(t, ir_block_walk(t->graph->body, find, &finder));
    assert_non_null(finder.found);
    return finder.found;
}

/* Dims of the base are numbers, or all symbols. */
static void make_graph(struct test_case *t)
{
    char dims[64] = "", program[2048];
    bool symbolic = random_int(&t->random, 0, 2) == 0;
    t->rank = (int)random_int(&t->random, 0, MAX_BASE - 1);
    t->size = 1;
    for (int i = 0; i < t->rank; i++) {
        t->dims[i] = random_int(&t->random, 0, 9) ? random_int(&t->random, 1, 4) : 0;
        t->size *= t->dims[i];
        char dim[16];
        if (symbolic)
            snprintf(dim, sizeof dim, "%sD%d", i ? ", " : "", (int)t->dims[i]);
        else
            snprintf(dim, sizeof dim, "%s%d", i ? ", " : "", (int)t->dims[i]);
        strcat(dims, dim);
    }
    snprintf(program, sizeof program, text, dims, dims);
    ok(t, ir_parse(&allocator_default, program, strlen(program), &t->graph));
    ok(t, ir_infer_graph(t->graph));
    t->x = t->graph->body->params[0];
    struct ir_value *inner = value_named(t, "i1");
    t->body = inner->op->parent;
    t->scalars[0] = t->body->params[0];
    t->scalars[1] = t->graph->body->params[1];
    for (int i = 2; i < SCALARS; i++)
        t->scalars[i] = value_named(t, strcmp(names[i], "n") == 0 ? "n_only" : names[i]);
    compute(random_int(&t->random, 0, 3), random_int(&t->random, -1, 2), 2, t->values);
}

/* The values that stand for a rule's operands in the graph; tensors get one of their type. */
static void make_params(struct test_case *t, int rule)
{
    for (uint32_t i = 0; i < t->rules[rule].n_operands; i++) {
        const struct random_operand *operand = &t->rules[rule].operands[i];
        if (operand->scalar >= 0) {
            t->params[rule][i] = t->scalars[operand->scalar];
            continue;
        }
        struct ir_value *value = ir_block_add_param(t->graph->body);
        assert_non_null(value);
        value->type = type_tensor_const(&t->graph->types, operand->tensor.dtype,
                                        operand->tensor.rank, operand->tensor.dims);
        t->params[rule][i] = value;
    }
}

static bool lookup(void *context, const struct dim *symbol, int64_t *value)
{
    const struct test_case *t = context;
    if (!dim_is_fresh(symbol)) {
        *value = symbol->name[0] == 'D' ? atoll(symbol->name + 1) : 2;
        return true;
    }
    for (int i = 0; i < 2; i++) {
        const struct dim *mine =
            map_get(&t->space.symbols, &symbol->id, sizeof symbol->id)
                ? region_scalar((struct region_space *)&t->space, t->scalars[i])
                : NULL;
        if (mine == symbol) {
            *value = t->values[i];
            return true;
        }
    }
    return false; /* a size that only the run knows */
}

static bool eval(struct test_case *t, const struct dim *dim, int64_t *value)
{
    return dim_eval(dim, lookup, t, value);
}

/* ---- One region ------------------------------------------------------------------------------ */

static void store(void *context, int64_t n, int64_t offset)
{
    ((int64_t *)context)[n] = offset;
}

static void tabulate(const struct test_case *t, const struct rule_region *region, int64_t **offsets,
                     int64_t *count, bool **touched)
{
    *count = rule_region_count(region);
    *offsets = calloc((size_t)*count + 1, sizeof **offsets);
    *touched = calloc((size_t)t->size + 1, sizeof **touched);
    assert_true(*offsets && *touched);
    rule_region_walk(region, store, *offsets);
    for (int64_t n = 0; n < *count; n++)
        (*touched)[(*offsets)[n]] = true;
}

static void check_shape(struct test_case *t, int rule)
{
    const struct region *region = &t->regions[rule];
    claim(t, region->rank == t->rules[rule].rank, "rank", rule);
    for (int i = 0; i < region->rank; i++) {
        int64_t dim;
        if (eval(t, region->dims[i], &dim))
            claim(t, dim == t->rules[rule].dims[i], "dims", rule);
    }
}

static void check_strides(struct test_case *t, int rule)
{
    const struct region *region = &t->regions[rule];
    const int64_t *dims = t->rules[rule].dims;
    int64_t strides[TSSA_MAX_RANK], offset, at[TSSA_MAX_RANK];
    if (!region->strided || !eval(t, region->offset, &offset))
        return;
    for (int i = 0; i < region->rank; i++)
        if (!eval(t, region->strides[i], &strides[i]))
            return;
    for (int64_t n = 0; n < t->counts[rule]; n++) {
        int64_t expected = offset;
        unflatten(region->rank, dims, n, at);
        for (int i = 0; i < region->rank; i++)
            expected += at[i] * strides[i];
        claim(t, expected == t->offsets[rule][n], "strides", rule);
    }
}

static void check_axis(struct test_case *t, int rule, int axis)
{
    const struct region *region = &t->regions[rule];
    const struct region_axis *claimed = &region->axes[axis];
    int64_t start, count, at[TSSA_MAX_RANK], element[TSSA_MAX_RANK];
    if (!eval(t, claimed->start, &start) || !eval(t, claimed->count, &count))
        return;
    for (int64_t n = 0; n < t->counts[rule]; n++) {
        unflatten(t->rank, t->dims, t->offsets[rule][n], at);
        unflatten(region->rank, t->rules[rule].dims, n, element);
        int64_t way = at[axis] - start;
        claim(t,
              way % claimed->step == 0 && way / claimed->step >= 0 && way / claimed->step < count,
              "coordinates", rule);
        int64_t along = claimed->result >= 0 ? element[claimed->result] : 0;
        if (region->mapped)
            claim(t, way == along * claimed->step, "mapping", rule);
    }
}

static void check_box(struct test_case *t, int rule)
{
    const struct region *region = &t->regions[rule];
    int64_t box = 1, there = 0, count;
    for (int i = 0; i < t->rank; i++) {
        if (!eval(t, region->axes[i].count, &count))
            return;
        box *= count;
    }
    for (int64_t i = 0; i < t->size; i++)
        there += t->touched[rule][i];
    if (region->exact)
        claim(t, box == there, "box", rule);
    if (region->single != REGION_UNKNOWN)
        claim(t, (there == t->counts[rule]) == (region->single == REGION_YES), "single", rule);
    enum region_answer whole = region_is_whole(&t->space, region);
    if (whole != REGION_UNKNOWN)
        claim(t, (there == t->size) == (whole == REGION_YES), "whole", rule);
    if (region_is_empty(region))
        claim(t, there == 0, "empty", rule);
}

/* ---- Two regions ----------------------------------------------------------------------------- */

static void check_answer(struct test_case *t, enum region_answer answer, bool is, const char *what,
                         int rule)
{
    if (answer != REGION_UNKNOWN)
        claim(t, is == (answer == REGION_YES), what, rule);
}

static void check_pair(struct test_case *t, int a, int b)
{
    bool covers = true, meets = false;
    for (int64_t i = 0; i < t->size; i++) {
        covers = covers && (t->touched[a][i] || !t->touched[b][i]);
        meets = meets || (t->touched[a][i] && t->touched[b][i]);
    }
    const struct random_rule *x = &t->rules[a], *y = &t->rules[b];
    bool same =
        x->rank == y->rank && memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0 &&
        memcmp(t->offsets[a], t->offsets[b], (size_t)t->counts[a] * sizeof *t->offsets[a]) == 0;
    const struct region *r = &t->regions[a], *s = &t->regions[b];
    check_answer(t, region_disjoint(&t->space, r, s), !meets, "disjoint", a);
    check_answer(t, region_covers(&t->space, r, s), covers, "covers", a);
    check_answer(t, region_equal(&t->space, r, s), same, "equal", a);
}

/* The elements that a rule touches in iteration i; false when it fails there. */
static bool touch(struct test_case *t, int rule, int64_t i, bool *touched)
{
    int64_t values[SCALARS], offset[1024];
    struct rule_region region;
    compute(i, t->values[1], 2, values);
    memset(touched, 0, 1024);
    if (!random_rule_resolve(&t->rules[rule], &t->pool, t->rank, t->dims, values, &region))
        return false;
    int64_t count = rule_region_count(&region);
    bool small = count <= 1024;
    if (small)
        rule_region_walk(&region, store, offset);
    rule_region_release(&region);
    for (int64_t n = 0; small && n < count; n++)
        touched[offset[n]] = true;
    return small;
}

static bool check_across(struct test_case *t, int a, int b)
{
    bool x[1024], y[1024];
    const struct dim *counter = region_scalar(&t->space, t->scalars[0]);
    if (!region_disjoint_across(&t->space, &t->regions[a], &t->regions[b], counter, t->body))
        return false;
    for (int64_t i = 0; i < 5; i++)
        for (int64_t j = 0; j < 5; j++) {
            if (i == j || !touch(t, a, i, x) || !touch(t, b, j, y))
                continue;
            for (int64_t n = 0; n < t->size; n++)
                claim(t, !(x[n] && y[n]), "disjoint in two iterations", a);
        }
    return true;
}

/* ---- Rules of rules -------------------------------------------------------------------------- */

static void expect_rule(struct test_case *t, const struct rule *rule, int as, const char *what)
{
    struct random_rule copy = t->rules[as];
    struct rule_region region;
    copy.rule = *rule;
    claim(t,
          random_rule_resolve(&copy, &t->pool, t->rank, t->dims, t->values, &region) &&
              region.rank == t->rules[as].rank &&
              memcmp(region.dims, t->rules[as].dims, (size_t)region.rank * sizeof *region.dims) ==
                  0,
          what, as);
    int64_t *offsets = calloc((size_t)t->counts[as] + 1, sizeof *offsets);
    assert_non_null(offsets);
    rule_region_walk(&region, store, offsets);
    claim(t, memcmp(offsets, t->offsets[as], (size_t)t->counts[as] * sizeof *offsets) == 0, what,
          as);
    free(offsets);
    rule_region_release(&region);
}

static void check_composition(struct test_case *t, int rule)
{
    const struct rule *whole = &t->rules[rule].rule, *composed;
    uint32_t at = (uint32_t)random_int(&t->random, 0, whole->n_steps);
    struct rule first = *whole, second = *whole;
    first.n_steps = at;
    second.steps += at;
    second.n_steps -= at;
    /* Both count their operands alike here. */
    ok(t, rule_compose(t->graph, t->x->type, &first, &second, 0, &composed));
    claim(t, rule_problem(composed) == NULL, "composition is no rule", rule);
    expect_rule(t, composed, rule, "composition");
}

static bool check_inverse(struct test_case *t, int rule)
{
    const struct rule *inverse, *both;
    ok(t, rule_invert(t->graph, t->x->type, &t->rules[rule].rule, &inverse));
    if (!inverse)
        return false;
    struct random_rule copy = t->rules[rule];
    struct rule_region region;
    /* Composed without knowledge of the shape. */
    ok(t, rule_compose(t->graph, NULL, &t->rules[rule].rule, inverse, 0, &both));
    copy.rule = *both;
    claim(t, random_rule_resolve(&copy, &t->pool, t->rank, t->dims, t->values, &region), "inverse",
          rule);
    claim(t,
          region.rank == t->rank &&
              memcmp(region.dims, t->dims, (size_t)t->rank * sizeof *t->dims) == 0,
          "shape of the inverse", rule);
    int64_t *offsets = calloc((size_t)t->size + 1, sizeof *offsets);
    assert_non_null(offsets);
    rule_region_walk(&region, store, offsets);
    for (int64_t n = 0; n < t->size; n++)
        claim(t, offsets[n] == n, "order of the inverse", rule);
    free(offsets);
    rule_region_release(&region);
    return true;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

struct tally {
    long cases, equal, covers, disjoint, across, inverse, strided, single;
};

static void make_rule(struct test_case *t, int rule)
{
    static const uint32_t kinds[] = {ALL_KINDS, 1u << RULE_SELECT | 1u << RULE_SLICE,
                                     1u << RULE_PERMUTE | 1u << RULE_SQUEEZE |
                                         1u << RULE_UNSQUEEZE | 1u << RULE_RESHAPE,
                                     ALL_KINDS & ~(1u << RULE_GATHER | 1u << RULE_MASK)};
    const struct random_scalars scalars = {SCALARS, t->values};
    struct rule_region region;
    struct random_rule *made = &t->rules[rule];
    if (rule > 0 && random_int(&t->random, 0, 3) == 0)
        *made = made[-1];
    else
        random_rule(&t->random, &t->pool, kinds[random_int(&t->random, 0, 3)], t->rank, t->dims,
                    &scalars, made);
    for (uint32_t i = 0; i < t->rules[rule].rule.n_steps; i++)
        t->rules[rule].steps[i].params = t->rules[rule].params[i];
    t->rules[rule].rule.steps = t->rules[rule].steps;
    for (uint32_t i = 0; i < t->rules[rule].n_operands; i++)
        if (t->rules[rule].operands[i].scalar < 0)
            t->rules[rule].operands[i].tensor.data = t->rules[rule].operands[i].data;
    make_params(t, rule);
    claim(t, random_rule_resolve(&t->rules[rule], &t->pool, t->rank, t->dims, t->values, &region),
          "resolved", rule);
    tabulate(t, &region, &t->offsets[rule], &t->counts[rule], &t->touched[rule]);
    rule_region_release(&region);
    ok(t, region_make(&t->space, t->x->type, &t->rules[rule].rule, t->params[rule],
                      &t->regions[rule]));
}

static void check_rule(struct test_case *t, int rule, struct tally *tally)
{
    if (t->regions[rule].rank >= 0) {
        check_shape(t, rule);
        check_strides(t, rule);
        for (int i = 0; i < t->rank; i++)
            check_axis(t, rule, i);
        check_box(t, rule);
        for (int other = 0; other < RULES; other++) {
            check_pair(t, rule, other);
            tally->across += check_across(t, rule, other);
            const struct region *a = &t->regions[rule], *b = &t->regions[other];
            tally->equal += region_equal(&t->space, a, b) != REGION_UNKNOWN;
            tally->covers += region_covers(&t->space, a, b) != REGION_UNKNOWN;
            tally->disjoint += region_disjoint(&t->space, a, b) != REGION_UNKNOWN;
        }
        tally->strided += t->regions[rule].strided;
        tally->single += t->regions[rule].single != REGION_UNKNOWN;
    }
    check_composition(t, rule);
    tally->inverse += check_inverse(t, rule);
    tally->cases++;
}

static void run_seed(uint64_t seed, struct tally *tally)
{
    struct test_case *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->seed = seed;
    t->random.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    pool_init(&t->pool, &allocator_default);
    make_graph(t);
    region_space_init(&t->space, t->graph);
    for (int i = 0; i < RULES; i++)
        make_rule(t, i);
    for (int i = 0; i < RULES; i++)
        check_rule(t, i, tally);
    for (int i = 0; i < RULES; i++) {
        free(t->offsets[i]);
        free(t->touched[i]);
    }
    region_space_free(&t->space);
    ir_graph_free(t->graph);
    pool_clear(&t->pool);
    free(t);
}

static void test_claims(void **state)
{
    (void)state;
    uint64_t seed;
    struct tally tally = {0};
    if (programs_seed(&seed)) {
        run_seed(seed, &tally);
        return;
    }
    unsigned long count = programs_count(3000);
    for (unsigned long i = 1; i <= count; i++)
        run_seed(i, &tally);
    print_message("%ld rules: %ld strided, %ld single or not, %ld inverted; of %ld pairs told: %ld "
                  "equal, %ld covers, %ld disjoint, %ld apart in all iterations\n",
                  tally.cases, tally.strided, tally.single, tally.inverse, RULES * tally.cases,
                  tally.equal, tally.covers, tally.disjoint, tally.across);
    /* An analysis that tells nothing would pass. */
    assert_true(tally.strided > tally.cases / 3 && tally.single > tally.cases / 3);
    assert_true(tally.across > 0 && tally.inverse > tally.cases / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
