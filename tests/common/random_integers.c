/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_integers.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "base/text.h"
#include "common/op_run.h"
#include "common/xmalloc.h"

enum kind { SCALAR, LIST, VECTOR, N_KINDS }; /* [], [2], [N] */

#define MAX_VALUES 96
#define TOP_OPS 14
#define BODY_OPS 14

struct number {
    tssa_dtype dtype; /* an integer or BOOL */
    enum kind kind;
};

struct generator {
    struct text text;
    struct random random;
    struct number values[MAX_VALUES]; /* %v0, %v1, ... that can be used here */
    int n_values;
    tssa_dtype favourite; /* most of the program's arithmetic is in this type */
};

static const tssa_dtype integers[] = {TSSA_INT64, TSSA_INT32, TSSA_INT64,  TSSA_INT32,
                                      TSSA_INT8,  TSSA_INT16, TSSA_UINT8,  TSSA_UINT16,
                                      TSSA_INT64, TSSA_INT32, TSSA_UINT32, TSSA_UINT64};

static int64_t below(struct generator *g, int64_t limit)
{
    return random_int(&g->random, 0, limit - 1);
}

static bool coin(struct generator *g)
{
    return below(g, 2) == 0;
}

static tssa_dtype any_type(struct generator *g)
{
    return integers[below(g, sizeof integers / sizeof *integers)];
}

static const char *name_of(tssa_dtype dtype)
{
    return dtype_info(dtype)->ir_name;
}

static bool is_signed(tssa_dtype dtype)
{
    return dtype_info(dtype)->cls == DTYPE_CLASS_SIGNED;
}

/* The next value, of which the text is written behind it. */
static int begin(struct generator *g, tssa_dtype dtype, enum kind kind)
{
    assert_true(g->n_values < MAX_VALUES);
    g->values[g->n_values] = (struct number){dtype, kind};
    text_printf(&g->text, "  %%v%d = ", g->n_values);
    return g->n_values++;
}

/* ---- Leaves ---------------------------------------------------------------------------------- */

/* Small, next to a limit of the type, a power of two, or any. */
static int64_t near_limit(struct generator *g, tssa_dtype dtype)
{
    int bits = dtype_info(dtype)->file_bits - is_signed(dtype);
    uint64_t highest = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1, value;
    switch (below(g, 6)) {
    case 0:
    case 1:
        value = (uint64_t)below(g, 6);
        break;
    case 2:
        value = highest - (uint64_t)below(g, 4);
        break;
    case 3:
        value = is_signed(dtype) ? ~highest + (uint64_t)below(g, 4) : highest / 2 + 1;
        break;
    case 4:
        value = UINT64_C(1) << below(g, bits);
        break;
    default:
        value = random_bits(&g->random) & highest;
    }
    return is_signed(dtype) && below(g, 4) == 0 ? (int64_t)(0 - value) : (int64_t)value;
}

static void print_number(struct generator *g, tssa_dtype dtype, int64_t value)
{
    char element[8];
    dtype_store_int64(dtype, element, value); /* -highest - 1 of what was negated */
    value = dtype_load_int64(dtype, element);
    if (dtype == TSSA_UINT64)
        text_printf(&g->text, " %" PRIu64, (uint64_t)value);
    else
        text_printf(&g->text, " %" PRId64, value);
}

static int constant(struct generator *g, tssa_dtype dtype, bool not_zero)
{
    int64_t value = near_limit(g, dtype);
    char element[8];
    dtype_store_int64(dtype, element, value);
    if (not_zero && dtype_load_int64(dtype, element) == 0)
        value = 3;
    int id = begin(g, dtype, SCALAR);
    text_printf(&g->text, "Constant() {value = %s[]", name_of(dtype));
    print_number(g, dtype, value);
    text_puts(&g->text, "}\n");
    return id;
}

static int constant_list(struct generator *g)
{
    int id = begin(g, TSSA_INT64, LIST);
    text_puts(&g->text, "Constant() {value = i64[2] [");
    print_number(g, TSSA_INT64, near_limit(g, TSSA_INT64));
    text_puts(&g->text, ",");
    print_number(g, TSSA_INT64, near_limit(g, TSSA_INT64));
    text_puts(&g->text, "]}\n");
    return id;
}

static int cast(struct generator *g, int from, tssa_dtype to)
{
    int id = begin(g, to, g->values[from].kind);
    text_printf(&g->text, "Cast(%%v%d) {to = %d}\n", from, (int)to);
    return id;
}

/* A value of this type, and of the kind or a scalar; a new one where none is found. */
static int pick(struct generator *g, tssa_dtype dtype, enum kind kind)
{
    for (int tries = 0; tries < 8; tries++) {
        int id = (int)below(g, g->n_values);
        const struct number *value = &g->values[id];
        if (value->kind != kind && value->kind != SCALAR)
            continue;
        if (value->dtype == dtype)
            return id;
        if (value->dtype != TSSA_BOOL && below(g, 3) == 0)
            return cast(g, id, dtype);
    }
    return constant(g, dtype, false);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static void binary(struct generator *g, const char *op, tssa_dtype result, int a, int b,
                   const char *attributes)
{
    enum kind kind = g->values[a].kind != SCALAR ? g->values[a].kind : g->values[b].kind;
    begin(g, result, kind);
    text_printf(&g->text, "%s(%%v%d, %%v%d)%s\n", op, a, b, attributes);
}

static void unary(struct generator *g, const char *op, int a)
{
    begin(g, g->values[a].dtype, g->values[a].kind);
    text_printf(&g->text, "%s(%%v%d)\n", op, a);
}

static void where(struct generator *g, tssa_dtype dtype, enum kind kind)
{
    int a = pick(g, dtype, kind), b = pick(g, dtype, kind);
    binary(g, coin(g) ? "Less" : "Greater", TSSA_BOOL, a, b, "");
    int condition = g->n_values - 1;
    enum kind wide = g->values[condition].kind;
    begin(g, dtype, wide);
    text_printf(&g->text, "Where(%%v%d, %%v%d, %%v%d)\n", condition, coin(g) ? a : b, a);
}

static void branch(struct generator *g, tssa_dtype dtype)
{
    int a = pick(g, dtype, SCALAR), b = pick(g, dtype, SCALAR);
    binary(g, coin(g) ? "LessOrEqual" : "Equal", TSSA_BOOL, a, b, "");
    int condition = g->n_values - 1;
    begin(g, dtype, SCALAR);
    text_printf(&g->text,
                "If(%%v%d) { then_branch() { return(%%v%d) } else_branch() { return(%%v%d) } }\n",
                condition, a, b);
}

static void clip(struct generator *g, tssa_dtype dtype, enum kind kind)
{
    int x = pick(g, dtype, kind), low = constant(g, dtype, false), high = constant(g, dtype, false);
    begin(g, dtype, g->values[x].kind);
    text_printf(&g->text, "Clip(%%v%d, %%v%d, %%v%d)\n", x, low, high);
}

static void comparison(struct generator *g, tssa_dtype dtype, enum kind kind)
{
    static const char *const names[] = {"Equal", "Less", "LessOrEqual", "Greater",
                                        "GreaterOrEqual"};
    int a = pick(g, dtype, kind);
    binary(g, names[below(g, 5)], TSSA_BOOL, a,
           coin(g) ? constant(g, dtype, false) : pick(g, dtype, kind), "");
}

static void arithmetic(struct generator *g, tssa_dtype dtype, enum kind kind)
{
    static const char *const names[] = {"Add", "Sub", "Mul", "Add", "Mul", "Min", "Max"};
    int a = pick(g, dtype, kind);
    binary(g, names[below(g, 7)], dtype, a,
           coin(g) ? constant(g, dtype, false) : pick(g, dtype, kind), "");
}

static void division(struct generator *g, tssa_dtype dtype, enum kind kind)
{
    static const char *const attributes[] = {"", " {fmod = 1}"};
    int a = pick(g, dtype, kind), b = constant(g, dtype, true);
    if (below(g, 2))
        binary(g, "Div", dtype, a, b, "");
    else
        binary(g, "Mod", dtype, a, b, attributes[below(g, 2)]);
}

static void running_sum(struct generator *g, tssa_dtype dtype)
{
    int x = pick(g, dtype, LIST), axis;
    bool wide = dtype == TSSA_INT64 || dtype == TSSA_INT32;
    if (!wide || g->values[x].kind != LIST)
        return;
    axis = begin(g, TSSA_INT64, SCALAR);
    text_puts(&g->text, "Constant() {value = i64[] 0}\n");
    begin(g, dtype, LIST);
    text_printf(&g->text, "CumSum(%%v%d, %%v%d)\n", x, axis);
}

/* start, start + delta: two elements, in an INT64 or an INT32 that may wrap. */
static void range(struct generator *g, tssa_dtype dtype)
{
    int64_t limit = dtype == TSSA_INT64 ? INT64_MAX : INT32_MAX;
    if (dtype != TSSA_INT64 && dtype != TSSA_INT32)
        return;
    int id = g->n_values;
    int64_t numbers[] = {limit - 3, limit, 2};
    for (int i = 0; i < 3; i++) {
        begin(g, dtype, SCALAR);
        text_printf(&g->text, "Constant() {value = %s[] %" PRId64 "}\n", name_of(dtype),
                    numbers[i]);
    }
    begin(g, dtype, LIST);
    text_printf(&g->text, "Range(%%v%d, %%v%d, %%v%d)\n", id, id + 1, id + 2);
}

static void add_op(struct generator *g)
{
    tssa_dtype dtype = coin(g) ? g->favourite : any_type(g);
    enum kind kind = (enum kind)below(g, N_KINDS);
    switch (below(g, 12)) {
    case 0:
        clip(g, dtype, kind);
        return;
    case 1:
        where(g, dtype, kind);
        return;
    case 2:
        branch(g, dtype);
        return;
    case 3:
        division(g, dtype, kind);
        return;
    case 4:
        if (is_signed(dtype))
            unary(g, coin(g) ? "Neg" : "Abs", pick(g, dtype, kind));
        else
            binary(g, "BitShift", dtype, pick(g, dtype, kind), constant(g, dtype, false),
                   " {direction = \"LEFT\"}");
        return;
    case 5:
    case 6:
        comparison(g, dtype, kind);
        return;
    case 7:
        if (below(g, 2))
            running_sum(g, dtype);
        else
            range(g, dtype);
        return;
    default:
        arithmetic(g, dtype, kind);
    }
}

/* ---- Programs -------------------------------------------------------------------------------- */

/* %v0 is the shape of %z, %v3 and %v5 are its dims, %v6 counts the rows. */
static void sizes(struct generator *g)
{
    begin(g, TSSA_INT64, LIST);
    text_puts(&g->text, "Shape(%z)\n");
    begin(g, TSSA_INT64, SCALAR);
    text_puts(&g->text, "Size(%z)\n");
    for (int i = 0; i < 2; i++) {
        int index = begin(g, TSSA_INT64, SCALAR);
        text_printf(&g->text, "Constant() {value = i64[] %d}\n", i);
        begin(g, TSSA_INT64, SCALAR);
        text_printf(&g->text, "Gather(%%v0, %%v%d)\n", index);
    }
    begin(g, TSSA_INT64, VECTOR);
    text_puts(&g->text, "Range(%v2, %v3, %v4)\n");
    begin(g, TSSA_INT64, SCALAR);
    text_puts(&g->text, "Identity(%s)\n");
    constant_list(g);
}

/* %v3 iterations, or a few. Returns how many values the loop stacks. */
static int loop(struct generator *g, int first_output)
{
    tssa_dtype dtype = coin(g) ? TSSA_INT64 : TSSA_INT32;
    int init = constant(g, dtype, false), step = constant(g, dtype, false), outside = g->n_values;
    bool sized = coin(g);
    int stacked[8], n = 0;
    struct text head = g->text;
    text_init(&g->text, head.allocator);
    begin(g, TSSA_INT64, SCALAR);
    text_puts(&g->text, "Identity(%i)\n");
    begin(g, dtype, SCALAR);
    text_puts(&g->text, "Identity(%k)\n");
    for (int i = 0; i < BODY_OPS && g->n_values < MAX_VALUES - 8; i++)
        add_op(g);
    for (int id = g->n_values - 1; id >= outside && n < 8; id--)
        stacked[n++] = id;
    struct text body = g->text;
    g->text = head;
    text_puts(&g->text, sized ? "" : "  %five = Constant() {value = i64[] 5}\n");
    text_puts(&g->text, "  %last");
    for (int i = 0; i < n; i++)
        text_printf(&g->text, ", %%o%d", first_output + i);
    text_printf(&g->text, " = Loop(%s, _, %%v%d) {\n  body(%%i: i64[], %%c: bool[], %%k: %s[]) {\n",
                sized ? "%v3" : "%five", init, name_of(dtype));
    text_puts(&g->text, text_string(&body));
    text_free(&body);
    text_printf(&g->text, "  %%next = Add(%%k, %%v%d)\n  return(%%c, %%next", step);
    for (int i = 0; i < n; i++)
        text_printf(&g->text, ", %%v%d", stacked[i]);
    text_puts(&g->text, ")\n  }\n  }\n");
    g->n_values = outside;
    return n;
}

char *random_integers(uint64_t seed)
{
    struct generator g = {.random = {seed * UINT64_C(0x9e3779b97f4a7c15) + 1}};
    struct text all;
    text_init(&g.text, &allocator_default);
    text_init(&all, &allocator_default);
    g.favourite = any_type(&g);
    sizes(&g);
    for (int i = 0; i < TOP_OPS; i++)
        add_op(&g);
    int top = g.n_values, n = loop(&g, 0), left = RANDOM_INTEGERS_MAX_OUTPUTS - n - 1;
    text_puts(&all, "graph (%z: f32[N, M], %s: i64[]) -> (%last as \"last\"");
    for (int i = 0; i < n; i++)
        text_printf(&all, ", %%o%d as \"o%d\"", i, i);
    for (int id = top - 1; id >= 0 && id >= top - left; id--)
        text_printf(&all, ", %%v%d as \"v%d\"", id, id);
    text_printf(&all, ") {\n%s  return(%%last", text_string(&g.text));
    for (int i = 0; i < n; i++)
        text_printf(&all, ", %%o%d", i);
    for (int id = top - 1; id >= 0 && id >= top - left; id--)
        text_printf(&all, ", %%v%d", id);
    text_puts(&all, ")\n}\n");
    assert_false(all.failed);
    char *copy = xstrdup(text_string(&all));
    text_free(&g.text);
    text_free(&all);
    return copy;
}
