/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_imperative.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

#define MAX_RANK RANDOM_IMPERATIVE_MAX_RANK
#define MAX_VALUES 256
#define MAX_DEPTH 3
#define MAX_ELEMENTS 200

struct shape {
    int rank;
    int64_t dims[MAX_RANK];
};

/* A tensor in scope. */
struct tensor_value {
    uint32_t id;
    struct shape shape;
};

struct generator {
    char *text;
    size_t size, capacity;
    struct random random;
    uint32_t n_values;
    int depth, budget; /* statements that may still come */
    struct tensor_value tensors[MAX_VALUES];
    size_t n_tensors;
    uint32_t counters[MAX_VALUES]; /* integers of any size */
    size_t n_counters;
    uint32_t cells[MAX_VALUES]; /* integers that are 0 or 1, and may be written to */
    size_t n_cells;
};

/* ---- Text ------------------------------------------------------------------------------------ */

static int64_t between(struct generator *g, int64_t low, int64_t high)
{
    return random_int(&g->random, low, high);
}

static bool one_in(struct generator *g, int64_t n)
{
    return between(g, 1, n) == 1;
}

__attribute__((format(printf, 2, 3))) static void emit(struct generator *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(g->text + g->size, g->capacity - g->size, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < g->capacity - g->size);
    g->size += (size_t)n;
}

static uint32_t fresh(struct generator *g)
{
    return g->n_values++;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static int64_t elements(const struct shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        count *= shape->dims[i];
    return count;
}

static bool same_shape(const struct shape *a, const struct shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static struct tensor_value add(struct generator *g, uint32_t id, const struct shape *shape)
{
    struct tensor_value value = {id, *shape};
    if (g->n_tensors < MAX_VALUES)
        g->tensors[g->n_tensors++] = value;
    return value;
}

/* Newer ones more often. */
static struct tensor_value pick(struct generator *g)
{
    size_t i = (size_t)between(g, 0, (int64_t)g->n_tensors - 1);
    size_t j = (size_t)between(g, 0, (int64_t)g->n_tensors - 1);
    return g->tensors[i > j ? i : j];
}

/* One of this shape, if a few tries find one. */
static bool pick_like(struct generator *g, const struct shape *shape, struct tensor_value *value)
{
    for (int i = 0; i < 12; i++) {
        *value = pick(g);
        if (same_shape(&value->shape, shape))
            return true;
    }
    return false;
}

static const char *const binary[] = {"Add", "Sub", "Max", "Min"};

/* A new tensor of the shape of `like`. */
static struct tensor_value compute(struct generator *g, const struct tensor_value *like)
{
    struct tensor_value other;
    uint32_t id = fresh(g);
    if (one_in(g, 4))
        emit(g, "%%v%u = Neg(%%v%u)\n", id, like->id);
    else if (one_in(g, 3))
        emit(g, "%%v%u = Mul(%%v%u, %%half)\n", id, like->id);
    else if (one_in(g, 3) || !pick_like(g, &like->shape, &other))
        emit(g, "%%v%u = Add(%%v%u, %%three)\n", id, like->id);
    else
        emit(g, "%%v%u = %s(%%v%u, %%v%u)\n", id, binary[between(g, 0, 3)], like->id, other.id);
    return add(g, id, &like->shape);
}

/* ---- Indices --------------------------------------------------------------------------------- */

static uint32_t constant(struct generator *g, int64_t value)
{
    uint32_t id = fresh(g);
    emit(g, "%%v%u = Constant() {value = i64[] %lld}\n", id, (long long)value);
    return id;
}

/* A value that is an index into a dim: %v<result>. */
static uint32_t index_value(struct generator *g, int64_t dim)
{
    if (dim >= 2 && one_in(g, 3))
        return g->cells[between(g, 0, (int64_t)g->n_cells - 1)];
    if (one_in(g, 4))
        return constant(g, between(g, -dim, dim - 1));
    uint32_t limit = constant(g, dim), id = fresh(g);
    emit(g, "%%v%u = Mod(%%v%u, %%v%u)\n", id,
         g->counters[between(g, 0, (int64_t)g->n_counters - 1)], limit);
    return id;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* A rule on its way: its text, its operands, and the shape it leads to. */
struct rule_text {
    char steps[400], operands[200];
    int n_operands;
    struct shape shape;
};

__attribute__((format(printf, 2, 3))) static void step(struct rule_text *rule, const char *format,
                                                       ...)
{
    size_t used = strlen(rule->steps);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(rule->steps + used, sizeof rule->steps - used, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof rule->steps - used);
}

static int operand(struct rule_text *rule, uint32_t id)
{
    size_t used = strlen(rule->operands);
    snprintf(rule->operands + used, sizeof rule->operands - used, ", %%v%u", id);
    return rule->n_operands++;
}

static void remove_axis(struct shape *shape, int axis)
{
    shape->rank--;
    for (int i = axis; i < shape->rank; i++)
        shape->dims[i] = shape->dims[i + 1];
}

static void insert_axis(struct shape *shape, int axis, int64_t dim)
{
    for (int i = shape->rank++; i > axis; i--)
        shape->dims[i] = shape->dims[i - 1];
    shape->dims[axis] = dim;
}

static int random_axis(struct generator *g, const struct shape *shape)
{
    return (int)between(g, 0, shape->rank - 1);
}

static bool add_select(struct generator *g, struct rule_text *rule)
{
    if (rule->shape.rank == 0)
        return false;
    int axis = random_axis(g, &rule->shape);
    int64_t dim = rule->shape.dims[axis];
    if (dim == 0)
        return false;
    if (one_in(g, 3))
        step(rule, "select(%d, %lld)", axis, (long long)between(g, -dim, dim - 1));
    else
        step(rule, "select(%d, $%d)", axis, operand(rule, index_value(g, dim)));
    remove_axis(&rule->shape, axis);
    return true;
}

/* How many elements a slice takes, counted one by one. A start before the first one is that. */
static int64_t slice_length(int64_t dim, int64_t start, int64_t end, int64_t by)
{
    int64_t length = 0, low = by < 0 ? -1 : 0, high = by < 0 ? dim - 1 : dim;
    start = start < 0 ? (start + dim < 0 ? 0 : start + dim) : start;
    end = end < 0 ? (end + dim < 0 ? low : end + dim) : end;
    start = start > high ? high : start;
    end = end > high ? high : end;
    for (int64_t i = start; by > 0 ? i < end : i > end; i += by)
        length++;
    return length;
}

static bool add_slice(struct generator *g, struct rule_text *rule)
{
    static const int64_t steps[] = {1, 1, 1, 2, 3, -1, -1, -2};
    if (rule->shape.rank == 0)
        return false;
    int axis = random_axis(g, &rule->shape);
    int64_t *dim = &rule->shape.dims[axis], start = between(g, -*dim - 1, *dim + 1);
    int64_t end = between(g, -*dim - 1, *dim + 1), by = steps[between(g, 0, 7)];
    if (one_in(g, 3))
        step(rule, "slice(%d, $%d, %lld, %lld)", axis, operand(rule, constant(g, start)),
             (long long)end, (long long)by);
    else
        step(rule, "slice(%d, %lld, %lld, %lld)", axis, (long long)start, (long long)end,
             (long long)by);
    *dim = slice_length(*dim, start, end, by);
    return true;
}

static bool add_permute(struct generator *g, struct rule_text *rule)
{
    struct shape old = rule->shape;
    int axes[MAX_RANK] = {0, 1, 2, 3};
    step(rule, "permute(");
    for (int i = 0; i < old.rank; i++) {
        int j = (int)between(g, i, old.rank - 1), axis = axes[j];
        axes[j] = axes[i];
        step(rule, "%s%d", i ? ", " : "", axis);
        rule->shape.dims[i] = old.dims[axis];
    }
    step(rule, ")");
    return true;
}

/* Into one axis, or the first one split off by a -1. */
static bool add_reshape(struct generator *g, struct rule_text *rule)
{
    int64_t count = elements(&rule->shape), factor = between(g, 1, 4);
    if (count == 0 || count % factor != 0 || one_in(g, 3)) {
        rule->shape = (struct shape){.rank = 1, .dims = {count}};
        step(rule, count ? "reshape(-1)" : "reshape(0)");
        return true;
    }
    rule->shape = (struct shape){.rank = 2, .dims = {factor, count / factor}};
    if (one_in(g, 2))
        step(rule, "reshape($%d, -1)", operand(rule, constant(g, factor)));
    else
        step(rule, "reshape(%lld, -1)", (long long)factor);
    return true;
}

static bool add_squeeze(struct generator *g, struct rule_text *rule)
{
    for (int i = 0; i < rule->shape.rank; i++)
        if (rule->shape.dims[i] == 1) {
            step(rule, "squeeze(%d)", i);
            remove_axis(&rule->shape, i);
            return true;
        }
    (void)g;
    return false;
}

static bool add_unsqueeze(struct generator *g, struct rule_text *rule)
{
    if (rule->shape.rank == MAX_RANK)
        return false;
    int axis = (int)between(g, 0, rule->shape.rank);
    step(rule, "unsqueeze(%d)", axis);
    insert_axis(&rule->shape, axis, 1);
    return true;
}

static bool add_expand(struct generator *g, struct rule_text *rule)
{
    struct shape *shape = &rule->shape;
    if (elements(shape) * 3 > MAX_ELEMENTS)
        return false;
    bool wider = shape->rank < MAX_RANK && one_in(g, 2), grown = wider;
    if (wider)
        insert_axis(shape, 0, between(g, 0, 3));
    step(rule, "expand(");
    for (int i = 0; i < shape->rank; i++) {
        if (!grown && shape->dims[i] == 1) {
            shape->dims[i] = between(g, 0, 3);
            grown = true;
        }
        step(rule, "%s%lld", i ? ", " : "", (long long)shape->dims[i]);
    }
    step(rule, ")");
    return true;
}

static bool add_tile(struct generator *g, struct rule_text *rule)
{
    if (rule->shape.rank == 0 || elements(&rule->shape) * 2 > MAX_ELEMENTS)
        return false;
    int axis = random_axis(g, &rule->shape);
    int64_t times = between(g, 0, 2);
    step(rule, "tile(");
    for (int i = 0; i < rule->shape.rank; i++)
        step(rule, "%s%lld", i ? ", " : "", (long long)(i == axis ? times : 1));
    step(rule, ")");
    rule->shape.dims[axis] *= times;
    return true;
}

static bool add_diagonal(struct generator *g, struct rule_text *rule)
{
    struct shape *shape = &rule->shape;
    if (shape->rank < 2)
        return false;
    int a = random_axis(g, shape), b = (a + 1) % shape->rank;
    int64_t offset = between(g, -1, 2), length = 0;
    for (int64_t i = 0; i < shape->dims[a]; i++)
        length += i + offset >= 0 && i + offset < shape->dims[b];
    step(rule, "diagonal(%d, %d, %lld)", a, b, (long long)offset);
    remove_axis(shape, a > b ? a : b);
    remove_axis(shape, a > b ? b : a);
    insert_axis(shape, shape->rank, length);
    return true;
}

static bool add_gather(struct generator *g, struct rule_text *rule)
{
    if (rule->shape.rank == 0)
        return false;
    int axis = random_axis(g, &rule->shape);
    int64_t *dim = &rule->shape.dims[axis], count = *dim ? between(g, 0, 3) : 0;
    uint32_t id = fresh(g);
    emit(g, "%%v%u = Constant() {value = i64[%lld] [", id, (long long)count);
    for (int64_t i = 0; i < count; i++)
        emit(g, "%s%lld", i ? ", " : "", (long long)between(g, -*dim, *dim - 1));
    emit(g, "]}\n");
    step(rule, "gather(%d, $%d)", axis, operand(rule, id));
    *dim = count;
    return true;
}

static bool add_mask(struct generator *g, struct rule_text *rule)
{
    struct shape *shape = &rule->shape;
    if (shape->rank == 0)
        return false;
    int axis = random_axis(g, shape), covered = axis + 1 < shape->rank && one_in(g, 3) ? 2 : 1;
    int64_t count = shape->dims[axis] * (covered == 2 ? shape->dims[axis + 1] : 1), set = 0;
    uint32_t id = fresh(g);
    emit(g, "%%v%u = Constant() {value = bool[%lld", id, (long long)shape->dims[axis]);
    if (covered == 2)
        emit(g, ", %lld", (long long)shape->dims[axis + 1]);
    emit(g, "] [");
    for (int64_t i = 0; i < count; i++) {
        bool on = one_in(g, 2);
        emit(g, "%s%s", i ? ", " : "", on ? "true" : "false");
        set += on;
    }
    emit(g, "]}\n");
    step(rule, "mask(%d, $%d)", axis, operand(rule, id));
    if (covered == 2)
        remove_axis(shape, axis);
    shape->dims[axis] = set;
    return true;
}

static struct rule_text random_rule(struct generator *g, const struct shape *base)
{
    static bool (*const kinds[])(struct generator *, struct rule_text *) = {
        add_select, add_select,  add_select,   add_slice,   add_slice,
        add_slice,  add_permute, add_reshape,  add_squeeze, add_unsqueeze,
        add_expand, add_tile,    add_diagonal, add_gather,  add_mask};
    struct rule_text rule = {.shape = *base};
    int64_t n = between(g, 1, 2);
    for (int64_t i = 0; i < n;) {
        size_t before = strlen(rule.steps);
        if (i > 0)
            step(&rule, ", ");
        if (kinds[between(g, 0, (int64_t)(sizeof kinds / sizeof *kinds) - 1)](g, &rule))
            i++;
        else
            rule.steps[before] = '\0';
    }
    return rule;
}

/* ---- Statements ------------------------------------------------------------------------------ */

static void emit_block(struct generator *g, int64_t n);

static void emit_view(struct generator *g)
{
    struct tensor_value base = pick(g);
    struct rule_text rule = random_rule(g, &base.shape);
    uint32_t id = fresh(g);
    emit(g, "%%v%u = %s(%%v%u%s) {rule = [%s]}\n", id, one_in(g, 8) ? "access" : "view", base.id,
         rule.operands, rule.steps);
    add(g, id, &rule.shape);
}

static void emit_write(struct generator *g)
{
    struct tensor_value to = pick(g), from;
    if (one_in(g, 2))
        emit(g, "write(%%v%u, %%v%u)\n", to.id, compute(g, &to).id);
    else if (one_in(g, 4) || !pick_like(g, &to.shape, &from))
        emit(g, "write(%%v%u, %%three)\n", to.id);
    else
        emit(g, "write(%%v%u, %%v%u)\n", to.id, from.id);
}

static void emit_compute(struct generator *g)
{
    struct tensor_value like = pick(g);
    compute(g, &like);
}

/* An integer that changes under the feet of the views that it leads to. */
static void emit_cell_write(struct generator *g)
{
    uint32_t from = g->cells[between(g, 0, (int64_t)g->n_cells - 1)], id = fresh(g);
    emit(g, "%%v%u = Sub(%%one, %%v%u)\n", id, from);
    emit(g, "write(%%v%u, %%v%u)\n", g->cells[between(g, 0, (int64_t)g->n_cells - 1)], id);
}

/* A loop's counter is a tensor like others. */
static void emit_counter_write(struct generator *g)
{
    uint32_t to = g->counters[between(g, 0, (int64_t)g->n_counters - 1)];
    emit(g, "write(%%v%u, %s)\n", to, one_in(g, 2) ? "%one" : "%zero");
}

static void emit_condition(struct generator *g, uint32_t id)
{
    if (one_in(g, 2))
        emit(g, "%%v%u = Identity(%%c)\n", id);
    else
        emit(g, "%%v%u = Less(%%v%u, %%one)\n", id,
             g->counters[between(g, 0, (int64_t)g->n_counters - 1)]);
}

/* What a block hands out in the place of `like`: mostly new storage, or what nobody else holds. */
static uint32_t handed_out(struct generator *g, const struct tensor_value *like, size_t n_outer)
{
    struct tensor_value value;
    for (int i = 0; i < 6 && one_in(g, 2); i++)
        if (pick_like(g, &like->shape, &value) &&
            (one_in(g, 60) || (g->n_tensors > n_outer && value.id >= g->tensors[n_outer].id)))
            return value.id;
    return compute(g, like).id;
}

struct scope {
    size_t tensors, counters, cells;
};

static struct scope enter(struct generator *g)
{
    g->depth++;
    return (struct scope){g->n_tensors, g->n_counters, g->n_cells};
}

static void leave(struct generator *g, const struct scope *scope)
{
    g->depth--;
    g->n_tensors = scope->tensors;
    g->n_counters = scope->counters;
    g->n_cells = scope->cells;
}

static void emit_results(struct generator *g, const uint32_t *ids, int n)
{
    for (int i = 0; i < n; i++)
        emit(g, "%s%%v%u", i ? ", " : "", ids[i]);
    emit(g, n ? " = " : "");
}

static void emit_if(struct generator *g)
{
    uint32_t condition = fresh(g), results[2] = {fresh(g), fresh(g)}, out[2];
    int n = (int)between(g, 0, 2);
    struct tensor_value like[2] = {pick(g), pick(g)};
    emit_condition(g, condition);
    emit_results(g, results, n);
    emit(g, "If(%%v%u) {\n", condition);
    for (int branch = 0; branch < 2; branch++) {
        struct scope scope = enter(g);
        emit(g, branch ? "else_branch() {\n" : "then_branch() {\n");
        emit_block(g, between(g, 0, 4));
        for (int i = 0; i < n; i++)
            out[i] = handed_out(g, &like[i], scope.tensors);
        emit(g, "return(");
        for (int i = 0; i < n; i++)
            emit(g, "%s%%v%u", i ? ", " : "", out[i]);
        emit(g, ")\n}\n");
        leave(g, &scope);
    }
    emit(g, "}\n");
    for (int i = 0; i < n; i++)
        add(g, results[i], &like[i].shape);
}

static void emit_trips(struct generator *g)
{
    static const char *const trips[] = {"%n", "%n", "%zero", "%one", "%two", "_"};
    int64_t i = between(g, 0, 5);
    emit(g, "Loop(%s, %s", trips[i], one_in(g, 4) ? "%c" : "_");
}

/* With `stacked` values collected from each iteration behind the carried ones. */
static void emit_loop(struct generator *g)
{
    int n = (int)between(g, 0, 2), stacked = one_in(g, 4);
    uint32_t results[3] = {fresh(g), fresh(g), fresh(g)}, params[2], out[3];
    uint32_t counter = fresh(g), keep = fresh(g), cell = fresh(g), limit, number = fresh(g);
    struct tensor_value like[2];
    for (int i = 0; i < n; i++) {
        like[i] = pick(g);
        if (one_in(g, 20))
            continue;
        like[i] = compute(g, &like[i]); /* what is carried is mostly nobody else's */
        g->n_tensors -= !one_in(g, 10);
    }
    limit = constant(g, between(g, 0, 3));
    emit_results(g, results, n + stacked);
    emit_trips(g);
    for (int i = 0; i < n; i++)
        emit(g, ", %%v%u", like[i].id);
    struct scope scope = enter(g);
    emit(g, ") {\nbody(%%v%u: i64[], %%v%u: bool[]", counter, cell);
    for (int i = 0; i < n; i++) {
        params[i] = fresh(g);
        emit(g, ", %%v%u: f32[*]", params[i]);
    }
    emit(g, ") {\n%%v%u = Identity(%%v%u)\n", number, counter); /* nobody writes to it */
    g->counters[g->n_counters++] = counter;
    for (int i = 0; i < n; i++)
        add(g, params[i], &like[i].shape);
    emit_block(g, between(g, 0, 5));
    for (int i = 0; i < n; i++) {
        const struct tensor_value param = {params[i], like[i].shape};
        out[i] = one_in(g, 3) ? params[i] : handed_out(g, &param, scope.tensors);
    }
    if (stacked)
        emit(g, "%%v%u = ReduceMax(%%v%u) {keepdims = 0}\n", out[n] = fresh(g), pick(g).id);
    emit(g, "%%v%u = Less(%%v%u, %%v%u)\nreturn(%%v%u", keep, number, limit, keep);
    for (int i = 0; i < n + stacked; i++)
        emit(g, ", %%v%u", out[i]);
    emit(g, ")\n}\n}\n");
    leave(g, &scope);
    for (int i = 0; i < n; i++)
        add(g, results[i], &like[i].shape);
}

static void emit_statement(struct generator *g)
{
    bool nested = g->depth < MAX_DEPTH && g->budget > 4;
    int64_t kind = between(g, 0, nested ? 18 : 14);
    if (kind < 5)
        emit_view(g);
    else if (kind < 11)
        emit_write(g);
    else if (kind < 14)
        emit_compute(g);
    else if (kind < 15)
        one_in(g, 3) ? emit_counter_write(g) : emit_cell_write(g);
    else if (kind < 17)
        emit_if(g);
    else
        emit_loop(g);
}

static void emit_block(struct generator *g, int64_t n)
{
    for (int64_t i = 0; i < n && g->budget > 0; i++) {
        g->budget--;
        emit_statement(g);
    }
}

/* ---- Programs -------------------------------------------------------------------------------- */

static void emit_inputs(struct generator *g, struct random_imperative *program)
{
    emit(g, "graph (%%n: i64[], %%c: bool[], %%k: i64[]");
    for (int t = 0; t < RANDOM_IMPERATIVE_TENSORS; t++) {
        struct shape shape = {.rank = (int)between(g, 0, 3)};
        uint32_t id = fresh(g);
        bool symbolic = one_in(g, 2);
        emit(g, ", %%v%u: f32[", id);
        for (int i = 0; i < shape.rank; i++) {
            shape.dims[i] = one_in(g, 12) ? 0 : between(g, 1, 4);
            if (symbolic)
                emit(g, "%sD%d_%d", i ? ", " : "", t, i);
            else
                emit(g, "%s%lld", i ? ", " : "", (long long)shape.dims[i]);
        }
        emit(g, "]");
        program->rank[t] = shape.rank;
        memcpy(program->dims[t], shape.dims, sizeof shape.dims);
        add(g, id, &shape);
    }
    emit(g, ") -> (");
}

static void emit_constants(struct generator *g)
{
    emit(g, "%%zero = Constant() {value = i64[] 0}\n");
    emit(g, "%%one = Constant() {value = i64[] 1}\n");
    emit(g, "%%two = Constant() {value = i64[] 2}\n");
    emit(g, "%%half = Constant() {value = f32[] 0.5}\n");
    if (one_in(g, 3)) { /* a Constant that is written to */
        uint32_t id = fresh(g);
        emit(g, "%%v%u = Constant() {value = f32[3] [1, -2, 4]}\n", id);
        add(g, id, &(struct shape){.rank = 1, .dims = {3}});
    }
    emit(g, "%%three = Constant() {value = f32[] 3}\n");
    for (int i = 0; i < 2; i++) {
        g->counters[g->n_counters] = g->cells[g->n_cells] = fresh(g);
        emit(g, "%%v%u = Identity(%s)\n", g->cells[g->n_cells], i ? "%k" : "%one");
        g->n_counters++;
        g->n_cells++;
    }
}

struct random_imperative random_imperative(uint64_t seed)
{
    struct random_imperative program = {0};
    struct generator *body = calloc(1, sizeof *body);
    assert_non_null(body);
    body->capacity = (size_t)1 << 18;
    body->text = malloc(body->capacity);
    assert_non_null(body->text);
    body->random = (struct random){seed * 2654435761u + 1};
    body->budget = (int)between(body, 3, 40);
    emit_inputs(body, &program);
    size_t outputs = body->size; /* the list of outputs goes here, once it is known */
    char *header = malloc(outputs + 1);
    assert_non_null(header);
    memcpy(header, body->text, outputs + 1);
    body->size = 0;
    emit_constants(body);
    emit_block(body, body->budget);
    char list[MAX_VALUES * 24] = "", names[MAX_VALUES * 10] = "";
    for (size_t i = 0; i < body->n_tensors; i++) {
        if (i >= RANDOM_IMPERATIVE_TENSORS && !one_in(body, 2))
            continue;
        const char *comma = names[0] ? ", " : "";
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%%v%u as \"o%zu\"", comma,
                 body->tensors[i].id, i);
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%%v%u", comma,
                 body->tensors[i].id);
    }
    size_t size = outputs + strlen(list) + body->size + strlen(names) + 64;
    program.text = malloc(size);
    assert_non_null(program.text);
    snprintf(program.text, size, "%s%s) {\n%.*sreturn(%s)\n}\n", header, list, (int)body->size,
             body->text, names);
    free(header);
    free(body->text);
    free(body);
    return program;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

void random_imperative_inputs(struct random_imperative_inputs *in,
                              const struct random_imperative *program, int64_t n, bool c)
{
    *in = (struct random_imperative_inputs){.n = n, .k = n & 1, .c = c};
    in->values[0].tensor = (struct tensor){.dtype = TSSA_INT64, .data = &in->n};
    in->values[1].tensor = (struct tensor){.dtype = TSSA_BOOL, .data = &in->c};
    in->values[2].tensor = (struct tensor){.dtype = TSSA_INT64, .data = &in->k};
    for (int t = 0; t < RANDOM_IMPERATIVE_TENSORS; t++) {
        struct tensor *tensor = &in->values[3 + t].tensor;
        *tensor =
            (struct tensor){.dtype = TSSA_FLOAT, .rank = program->rank[t], .data = in->data[t]};
        memcpy(tensor->dims, program->dims[t], sizeof program->dims[t]);
        for (int i = 0; i < 256; i++)
            in->data[t][i] = i % 13 == 5 ? -0.0f : (float)((i * 37 + t * 11 + n) % 101) / 4 - 12;
    }
    for (int i = 0; i < RANDOM_IMPERATIVE_INPUTS; i++) {
        in->values[i].kind = TSSA_KIND_TENSOR;
        in->pointers[i] = &in->values[i];
    }
}
