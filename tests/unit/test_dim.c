/* SPDX-License-Identifier: Apache-2.0 */
/* Dims: canonical forms, and that making an expression never changes its value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/dim.h"

static struct arena arena;
static struct dim_table table;
static struct text text;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, &allocator_default);
    dim_table_init(&table, &arena);
    text_init(&text, &allocator_default);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    text_free(&text);
    dim_table_free(&table);
    arena_clear(&arena);
    return 0;
}

typedef const struct dim *D;

static D c(int64_t value)
{
    return dim_const(&table, value);
}
static D s(const char *name)
{
    return dim_symbol(&table, name);
}
static D add(D a, D b)
{
    return dim_add(&table, a, b);
}
static D sub(D a, D b)
{
    return dim_sub(&table, a, b);
}
static D mul(D a, D b)
{
    return dim_mul(&table, a, b);
}
static D fdiv(D a, D b)
{
    return dim_floordiv(&table, a, b);
}
static D cdiv(D a, D b)
{
    return dim_ceildiv(&table, a, b);
}
static D mod(D a, D b)
{
    return dim_mod(&table, a, b);
}
static D dmin(D a, D b)
{
    return dim_min(&table, a, b);
}
static D dmax(D a, D b)
{
    return dim_max(&table, a, b);
}

static void expect(D dim, const char *expected)
{
    text_clear(&text);
    dim_print(dim, &text);
    assert_string_equal(text_string(&text), expected);
}

static void sums_and_products(void **state)
{
    (void)state;
    D n = s("N"), m = s("M");
    assert_ptr_equal(n, s("N"));
    assert_ptr_equal(add(n, n), mul(c(2), n));
    assert_ptr_equal(mul(add(n, c(1)), c(2)), add(add(n, n), c(2)));
    assert_ptr_equal(mul(n, m), mul(m, n));
    assert_ptr_equal(add(add(n, m), c(3)), add(c(3), add(m, n)));
    assert_ptr_equal(mul(add(n, m), sub(n, m)), sub(mul(n, n), mul(m, m)));
    assert_ptr_equal(sub(n, n), c(0));
    assert_ptr_equal(mul(n, c(0)), c(0));
    assert_ptr_equal(add(n, c(0)), n);
    expect(add(mul(c(2), n), c(1)), "2*N + 1");
    expect(sub(c(-3), n), "-N - 3");
    expect(add(n, mul(m, n)), "M*N + N");
    expect(sub(mul(c(-2), n), mul(c(5), m)), "-5*M - 2*N");
    expect(c(INT64_MIN), "-9223372036854775808");
    expect(s("batch size"), "\"batch size\"");
    expect(s("min"), "\"min\"");
    expect(s("a#1"), "\"a#1\"");
    expect(s("q\"\\\n\x01\xff\xc3\xa9"), "\"q\\\"\\\\\\n\\x01\\xff\xc3\xa9\"");
}

static void fresh_symbols(void **state)
{
    (void)state;
    D a = dim_fresh(&table, "nonzero"), b = dim_fresh(&table, "nonzero");
    assert_ptr_not_equal(a, b);
    expect(a, "nonzero#1");
    expect(b, "nonzero#2");
    assert_ptr_not_equal(s("nonzero#1"), a);
    assert_ptr_equal(dim_fresh_numbered(&table, "nonzero", 1), a);
    dim_fresh_numbered(&table, "x", 9);
    expect(dim_fresh(&table, "not an identifier"), "d#10");
    assert_true(dim_is_fresh(a) && !dim_is_fresh(s("N")));
}

static void quotients(void **state)
{
    (void)state;
    D n = s("N"), m = s("M");
    assert_ptr_equal(fdiv(n, c(1)), n);
    assert_ptr_equal(fdiv(c(0), n), c(0));
    assert_ptr_equal(fdiv(mul(n, c(6)), c(3)), mul(n, c(2)));
    assert_ptr_equal(fdiv(mul(n, m), m), n);
    assert_ptr_equal(fdiv(mul(c(4), mul(n, m)), mul(c(2), n)), mul(c(2), m));
    assert_ptr_equal(fdiv(add(mul(n, c(2)), c(2)), add(n, c(1))), c(2));
    assert_ptr_equal(fdiv(fdiv(n, c(2)), c(3)), fdiv(n, c(6)));
    assert_ptr_equal(fdiv(add(n, c(2)), c(3)), cdiv(n, c(3)));
    assert_ptr_equal(fdiv(mul(c(2), n), c(4)), fdiv(n, c(2)));
    assert_ptr_equal(add(fdiv(sub(n, c(3)), c(2)), c(2)), fdiv(add(n, c(1)), c(2)));
    assert_ptr_equal(fdiv(n, c(-2)), fdiv(sub(c(0), n), c(2)));
    assert_ptr_equal(cdiv(cdiv(n, c(2)), c(5)), cdiv(n, c(10)));
    assert_ptr_equal(fdiv(c(-7), c(2)), c(-4));
    assert_ptr_equal(cdiv(c(-7), c(2)), c(-3));
    assert_ptr_equal(mod(c(-7), c(3)), c(2));
    assert_ptr_equal(mod(c(7), c(-3)), c(-2));
    assert_ptr_equal(mod(mul(n, c(6)), c(3)), c(0));
    assert_ptr_equal(mod(mod(n, c(5)), c(7)), mod(n, c(5)));
    assert_ptr_equal(mod(mul(n, m), n), c(0));
    expect(cdiv(n, c(3)), "ceildiv(N, 3)");
    expect(fdiv(add(n, c(7)), c(3)), "floordiv(N + 1, 3) + 2");
    expect(mod(add(n, c(7)), c(3)), "mod(N + 1, 3)");
    expect(fdiv(add(mul(n, m), c(1)), n), "M + floordiv(1, N)");
    expect(fdiv(c(5), c(0)), "floordiv(5, 0)");
    expect(mod(n, c(0)), "mod(N, 0)");
}

static void extrema(void **state)
{
    (void)state;
    D n = s("N"), m = s("M");
    assert_ptr_equal(dmin(n, n), n);
    assert_ptr_equal(dmin(add(n, c(1)), n), n);
    assert_ptr_equal(dmax(add(n, c(1)), n), add(n, c(1)));
    assert_ptr_equal(dmin(dmin(n, c(10)), c(5)), dmin(n, c(5)));
    assert_ptr_equal(dmin(c(7), dmin(n, c(7))), dmin(n, c(7)));
    assert_ptr_equal(dmax(n, c(0)), n);
    assert_ptr_equal(dmin(n, c(-1)), c(-1));
    assert_ptr_equal(dmin(n, add(n, m)), n);
    assert_ptr_equal(dmax(c(0), dmin(n, c(5))), dmin(n, c(5)));
    assert_ptr_equal(dmax(n, dmin(n, c(5))), n);
    assert_true(dim_broadcasts(c(1), n) && dim_broadcasts(n, n) &&
                dim_broadcasts(dmin(n, c(1)), n));
    assert_false(dim_broadcasts(n, c(1)) || dim_broadcasts(dmin(n, c(2)), n) ||
                 dim_broadcasts(dmin(n, c(1)), m) || dim_broadcasts(dmin(dmin(n, m), c(1)), n));
    assert_ptr_equal(dmax(c(9), dmin(n, c(5))), c(9));
    assert_ptr_equal(dmin(m, n), dmin(n, m));
    expect(dmin(n, c(1000)), "min(1000, N)");
    expect(dmax(sub(n, m), c(0)), "max(0, -M + N)");
    /* A difference may be negative: nothing can be dropped. */
    assert_ptr_not_equal(dmax(sub(n, m), c(0)), sub(n, m));
}

static void overflow_is_unknown(void **state)
{
    (void)state;
    D n = s("N"), big = c(INT64_MAX);
    assert_true(dim_is_fresh(add(big, c(1))));
    assert_true(dim_is_fresh(mul(big, c(2))));
    assert_true(dim_is_fresh(sub(c(INT64_MIN), c(1))));
    assert_true(dim_is_fresh(fdiv(c(INT64_MIN), c(-1))));
    assert_true(dim_is_fresh(mul(mul(n, big), c(2))));
    assert_ptr_equal(mod(c(INT64_MIN), c(-1)), c(0));
    /* An unknown integer may be negative. */
    D any = add(big, c(1));
    assert_ptr_not_equal(dmax(any, c(0)), any);
}

static void size_is_bounded(void **state)
{
    (void)state;
    D deep = s("N"), wide = c(0);
    for (int i = 0; i < 1000; i++) {
        deep = add(dmin(deep, fdiv(s("M"), add(deep, c(1)))), c(1));
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        wide = add(mul(wide, s("M")), s(name));
        assert_true(deep->depth <= DIM_MAX_DEPTH && deep->size <= DIM_MAX_SIZE);
        assert_true(wide->depth <= DIM_MAX_DEPTH && wide->n_terms <= DIM_MAX_TERMS);
    }
}

static void substitution(void **state)
{
    (void)state;
    D n = s("N"), m = s("M");
    D e = add(cdiv(mul(n, m), c(4)), dmin(n, c(100)));
    assert_ptr_equal(dim_substitute(&table, e, n, c(8)), add(mul(c(2), m), c(8)));
    assert_ptr_equal(dim_substitute(&table, e, s("other"), c(8)), e);
    assert_ptr_equal(dim_substitute(&table, e, n, n), e);
}

/* ---- Properties ------------------------------------------------------------------------------ */

/* An expression, and what it should be worth: computed beside it, with exact integers. */
struct sample {
    D dim;
    int64_t value;
    bool valid; /* false: overflow or a division by zero on the way */
};

#define SYMBOLS 4

static int64_t symbol_values[SYMBOLS];
static const char *const symbol_names[SYMBOLS] = {"A", "B", "C", "D"};
static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % n);
}

static bool lookup(void *context, const struct dim *symbol, int64_t *value)
{
    (void)context;
    for (int i = 0; i < SYMBOLS; i++) {
        if (strcmp(symbol->name, symbol_names[i]) == 0) {
            *value = symbol_values[i];
            return true;
        }
    }
    return false;
}

static int64_t floored(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

static struct sample combine(uint32_t kind, struct sample a, struct sample b)
{
    static D (*const makers[])(D, D) = {add, sub, mul, fdiv, cdiv, mod, dmin, dmax};
    struct sample r = {.dim = makers[kind](a.dim, b.dim), .valid = a.valid && b.valid};
    int64_t x = a.value, y = b.value;
    if (kind >= 3 && kind <= 5)
        r.valid = r.valid && y != 0 && !(x == INT64_MIN && y == -1);
    if (!r.valid)
        return r;
    switch (kind) {
    case 0:
        r.valid = i64_add(x, y, &r.value);
        break;
    case 1:
        r.valid = y != INT64_MIN && i64_add(x, -y, &r.value);
        break;
    case 2:
        r.valid = i64_mul(x, y, &r.value);
        break;
    case 3:
        r.value = floored(x, y);
        break;
    case 4:
        r.value = floored(x, y) + (floored(x, y) * y != x);
        break;
    case 5:
        r.value = x - floored(x, y) * y;
        break;
    case 6:
        r.value = x < y ? x : y;
        break;
    default:
        r.value = x > y ? x : y;
    }
    return r;
}

static struct sample random_leaf(void)
{
    if (random_below(2)) {
        int64_t value = (int64_t)random_below(13) - 5;
        return (struct sample){c(value), value, true};
    }
    uint32_t i = random_below(SYMBOLS);
    return (struct sample){s(symbol_names[i]), symbol_values[i], true};
}

static struct sample random_expression(uint32_t depth)
{
    if (depth == 0 || random_below(5) == 0)
        return random_leaf();
    struct sample a = random_expression(depth - 1);
    struct sample b = random_expression(depth - 1);
    return combine(random_below(8), a, b);
}

static bool has_unknown(D dim)
{
    bool found = dim_is_fresh(dim);
    for (uint32_t i = 0; i < dim->n_terms; i++)
        found = found || has_unknown(dim->terms[i]);
    return found;
}

/* The dim rebuilt from its own terms, which must be itself. */
static D rebuild(D dim)
{
    static D (*const makers[])(D, D) = {
        [DIM_PRODUCT] = mul, [DIM_FLOORDIV] = fdiv, [DIM_CEILDIV] = cdiv,
        [DIM_MOD] = mod,     [DIM_MIN] = dmin,      [DIM_MAX] = dmax};
    if (dim->n_terms == 0)
        return dim;
    D result = NULL;
    for (uint32_t i = 0; i < dim->n_terms; i++) {
        D term = rebuild(dim->terms[i]);
        if (dim->kind == DIM_SUM)
            result = add(result ? result : c(dim->value), mul(term, c(dim->coefficients[i])));
        else
            result = result ? makers[dim->kind](result, term) : term;
    }
    return result;
}

static void making_keeps_the_value(void **state)
{
    (void)state;
    size_t checked = 0;
    for (uint32_t round = 0; round < 40000; round++) {
        random_state = round;
        for (int i = 0; i < SYMBOLS; i++)
            symbol_values[i] = random_below(random_below(4) ? 12 : 100000);
        struct sample e = random_expression(1 + random_below(5));
        int64_t value;
        assert_ptr_equal(rebuild(e.dim), e.dim);
        if (!e.valid || has_unknown(e.dim) || !dim_eval(e.dim, lookup, NULL, &value))
            continue;
        assert_int_equal(value, e.value);
        assert_true(e.dim->low <= value && value <= e.dim->high);
        checked++;
    }
    assert_true(checked > 20000);
}

/* Substituting constants gives what evaluation gives. */
static void substituting_evaluates(void **state)
{
    (void)state;
    size_t checked = 0;
    for (uint32_t round = 0; round < 10000; round++) {
        random_state = round + 1000000;
        for (int i = 0; i < SYMBOLS; i++)
            symbol_values[i] = 1 + random_below(50);
        struct sample e = random_expression(4);
        if (!e.valid || has_unknown(e.dim))
            continue;
        D value = e.dim;
        for (int i = 0; i < SYMBOLS; i++)
            value = dim_substitute(&table, value, s(symbol_names[i]), c(symbol_values[i]));
        int64_t constant;
        if (!dim_is_const(value, &constant))
            continue; /* a division by zero that cancelled on one side only */
        assert_int_equal(constant, e.value);
        checked++;
    }
    assert_true(checked > 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(sums_and_products), T(fresh_symbols),          T(quotients),
        T(extrema),           T(overflow_is_unknown),    T(size_is_bounded),
        T(substitution),      T(making_keeps_the_value), T(substituting_evaluates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
