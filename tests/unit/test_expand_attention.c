/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of random attributes and operands on devices that have no kernel of it, as two products
 * and what lies between (expand_attention), against the interpreter on the CPU. In most programs
 * sums of products are exact, or rounded once: queries and keys are multiples of 1/8, and of each
 * column of values one element is not 0. So all of it must have the same bits. What all queries
 * leave out is NaN.
 */
/* ctest-timeout: 600 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/expand_check.h"
#include "common/fake_cuda.h"
#include "common/op_run.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, LENGTHS, OPERANDS };
#define RESULTS 4
#define PASS "expand_attention"
#define MAX_COUNT (3 * 6 * 40 * 80)

/* ---- Programs -------------------------------------------------------------------------------- */

struct operand {
    bool given;
    tssa_dtype dtype;
    int rank;
    int64_t dims[4];
    char shape[4][8]; /* as the text has it */
    double values[MAX_COUNT];
    char elements[MAX_COUNT * sizeof(double)]; /* the same in its type */
};

struct program {
    struct random random;
    int64_t batch, heads, kv_heads, queries, keys, past, size, value_size;
    bool exact, packed, packed_kv, wanted[RESULTS];
    const char *names[4]; /* of batch, queries, keys and past; NULL: they are told */
    struct operand operands[OPERANDS];
    struct text text;
};

static const char *const operand_names[] = {"q", "k", "v", "mask", "pk", "pv", "lens"};

static int64_t count_of(const struct operand *o)
{
    int64_t n = 1;
    for (int i = 0; i < o->rank; i++)
        n *= o->dims[i];
    return n;
}

/* `names`: of axes, NULL: their sizes. */
static struct operand *add(struct program *p, int which, tssa_dtype dtype, int rank,
                           const int64_t *dims, const char *const *names)
{
    struct operand *o = &p->operands[which];
    o->given = true;
    o->dtype = dtype;
    o->rank = rank;
    for (int i = 0; i < rank; i++) {
        o->dims[i] = dims[i];
        if (names[i])
            snprintf(o->shape[i], sizeof o->shape[i], "%s", names[i]);
        else
            snprintf(o->shape[i], sizeof o->shape[i], "%d", (int)dims[i]);
    }
    assert_true(count_of(o) <= MAX_COUNT);
    return o;
}

static double any_number(struct program *p)
{
    return p->exact ? (double)random_int(&p->random, -8, 8) / 8
                    : (double)random_int(&p->random, -9999, 9999) / 10000;
}

/* [batch, heads, length, size], or packed. */
static struct operand *add_heads(struct program *p, int which, tssa_dtype dtype, bool packed,
                                 int64_t heads, int64_t length, const char *name, int64_t size)
{
    struct operand *o =
        packed ? add(p, which, dtype, 3, (const int64_t[]){p->batch, length, heads * size},
                     (const char *const[]){p->names[0], name, NULL})
               : add(p, which, dtype, 4, (const int64_t[]){p->batch, heads, length, size},
                     (const char *const[]){p->names[0], NULL, name, NULL});
    for (int64_t i = 0; i < count_of(o); i++)
        o->values[i] = any_number(p);
    return o;
}

/* Of an element of keys or values, now or past: its item, and its position among all. */
static void place_of(const struct program *p, int which, int64_t i, int64_t *item,
                     int64_t *position)
{
    const struct operand *o = &p->operands[which];
    const int64_t inner = o->dims[o->rank - 1], length = o->dims[o->rank - 2];
    *item = i / (count_of(o) / p->batch);
    *position = i / inner % length + (which == K || which == V ? p->past : 0);
}

/* Of each column of values one position is not 0. */
static void thin_out(struct program *p, int which)
{
    struct operand *o = &p->operands[which];
    const int64_t inner = o->dims[o->rank - 1];
    for (int64_t i = 0; p->exact && i < count_of(o); i++) {
        int64_t item, position;
        place_of(p, which, i, &item, &position);
        if (position != (i % inner % p->value_size * 7 + item) % (p->past + p->keys))
            o->values[i] = 0;
    }
}

static void add_past(struct program *p, tssa_dtype dtype, tssa_dtype value_dtype)
{
    add_heads(p, PAST_K, dtype, false, p->kv_heads, p->past, p->names[3], p->size);
    add_heads(p, PAST_V, value_dtype, false, p->kv_heads, p->past, p->names[3], p->value_size);
    thin_out(p, PAST_V);
}

static void add_mask(struct program *p, tssa_dtype dtype)
{
    const int rank = (int)random_int(&p->random, 1, 4);
    const bool truths = random_chance(&p->random, 50);
    const int64_t total = p->past + p->keys;
    const bool shorter = total > 1 && random_chance(&p->random, 30);
    int64_t dims[4] = {p->batch, p->heads, p->queries, shorter ? total - 1 : total};
    /* That there are as many as keys may not be known, or not be so. */
    const char *names[4] = {p->names[0], NULL, p->names[1],
                            p->past || shorter ? p->names[3] ? "M" : NULL : p->names[2]};
    for (int i = 0; i < 3; i++)
        if (random_chance(&p->random, 40)) {
            dims[i] = 1;
            names[i] = NULL;
        }
    struct operand *o =
        add(p, MASK, truths ? TSSA_BOOL : dtype, rank, dims + 4 - rank, names + 4 - rank);
    const int masked = (int)random_int(&p->random, 0, 9) * 10;
    for (int64_t i = 0; i < count_of(o); i++)
        o->values[i] = truths                              ? random_chance(&p->random, 100 - masked)
                       : random_chance(&p->random, masked) ? -INFINITY
                       : random_chance(&p->random, 5)      ? -10000
                                                           : any_number(p);
}

/* Does no query of the item count it? */
static bool is_left_out(const struct program *p, int64_t item, int64_t position)
{
    const struct operand *mask = &p->operands[MASK], *lengths = &p->operands[LENGTHS];
    if (lengths->given && (double)position >= lengths->values[item])
        return true;
    if (!mask->given)
        return false;
    if (position >= mask->dims[mask->rank - 1])
        return true;
    return mask->rank == 1 && mask->values[position] == (mask->dtype == TSSA_BOOL ? 0 : -INFINITY);
}

static void poison(struct program *p, int which)
{
    struct operand *o = &p->operands[which];
    for (int64_t i = 0; o->given && i < count_of(o); i++) {
        int64_t item, position;
        place_of(p, which, i, &item, &position);
        if (is_left_out(p, item, position) && random_chance(&p->random, 70))
            o->values[i] = random_chance(&p->random, 50) ? NAN : INFINITY;
    }
}

static void add_operands(struct program *p)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT, TSSA_FLOAT16, TSSA_DOUBLE,
                                        TSSA_BFLOAT16};
    const tssa_dtype dtype = dtypes[random_int(&p->random, 0, 4)];
    const tssa_dtype value_dtype =
        random_chance(&p->random, 10) ? dtypes[random_int(&p->random, 0, 4)] : dtype;
    const bool masked = random_chance(&p->random, 60), has_past = random_chance(&p->random, 50);
    if (!has_past)
        p->past = 0;
    add_heads(p, Q, dtype, p->packed, p->heads, p->queries, p->names[1], p->size);
    add_heads(p, K, dtype, p->packed_kv, p->kv_heads, p->keys, p->names[2], p->size);
    add_heads(p, V, value_dtype, p->packed_kv, p->kv_heads, p->keys, p->names[2], p->value_size);
    thin_out(p, V);
    if (has_past)
        add_past(p, dtype, value_dtype);
    if (masked)
        add_mask(p, dtype);
    if (random_chance(&p->random, 25)) {
        struct operand *o = add(p, LENGTHS, TSSA_INT64, 1, &p->batch, p->names);
        for (int64_t i = 0; i < p->batch; i++)
            o->values[i] = (double)random_int(&p->random, -1, p->keys + p->past + 1);
    }
    for (int i = 0; i < OPERANDS; i++)
        if (i == K || i == V || i == PAST_K || i == PAST_V)
            poison(p, i);
}

static const char *dtype_name(tssa_dtype dtype)
{
    return dtype == TSSA_INT64      ? "i64"
           : dtype == TSSA_BOOL     ? "bool"
           : dtype == TSSA_DOUBLE   ? "f64"
           : dtype == TSSA_FLOAT16  ? "f16"
           : dtype == TSSA_BFLOAT16 ? "bf16"
                                    : "f32";
}

static void print_type(struct program *p, const struct operand *o)
{
    text_printf(&p->text, "%s[", dtype_name(o->dtype));
    for (int i = 0; i < o->rank; i++)
        text_printf(&p->text, "%s%s", i ? ", " : "", o->shape[i]);
    text_printf(&p->text, "]");
}

static void print_attributes(struct program *p)
{
    text_printf(&p->text, "{qk_matmul_output_mode = %d", (int)random_int(&p->random, 0, 3));
    if (p->packed)
        text_printf(&p->text, ", q_num_heads = %d", (int)p->heads);
    if (p->packed_kv)
        text_printf(&p->text, ", kv_num_heads = %d", (int)p->kv_heads);
    if (random_chance(&p->random, 50))
        text_printf(&p->text, ", is_causal = 1");
    if (random_chance(&p->random, 30))
        text_printf(&p->text, ", softcap = %g", random_chance(&p->random, 50) ? 2.0 : 0.75);
    if (random_chance(&p->random, 40))
        text_printf(&p->text, ", scale = 0.3");
    text_printf(&p->text, "}\n");
}

static void print_results(struct program *p, bool all)
{
    const char *separator = "";
    for (int i = 0; i < RESULTS; i++) {
        if (!all && !p->wanted[i])
            continue;
        text_printf(&p->text, p->wanted[i] ? "%s%%r%d" : "%s_", separator, i);
        separator = ", ";
    }
}

static void print_program(struct program *p)
{
    const char *separator = "";
    text_printf(&p->text, "graph @g opset(\"\": 24) ir_version(11) (");
    for (int i = 0; i < OPERANDS; i++) {
        if (!p->operands[i].given)
            continue;
        text_printf(&p->text, "%s%%%s: ", separator, operand_names[i]);
        print_type(p, &p->operands[i]);
        separator = ", ";
    }
    text_printf(&p->text, ") -> (");
    print_results(p, false);
    text_printf(&p->text, ") {\n");
    print_results(p, true);
    text_printf(&p->text, " = Attention(");
    for (int i = 0; i < OPERANDS; i++)
        text_printf(&p->text, p->operands[i].given ? "%s%%%s" : "%s_", i ? ", " : "",
                    operand_names[i]);
    text_printf(&p->text, ") ");
    print_attributes(p);
    text_printf(&p->text, "return(");
    print_results(p, false);
    text_printf(&p->text, ")\n}\n");
}

static struct program *program_make(uint64_t seed, bool exact)
{
    static const char *const names[] = {"B", "L", "S", "P"};
    struct program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->random = (struct random){seed};
    p->exact = exact;
    p->batch = random_int(&p->random, 1, 3);
    p->kv_heads = random_int(&p->random, 1, 2);
    p->heads = p->kv_heads * random_int(&p->random, 1, 3);
    p->queries = random_chance(&p->random, 40) ? 1 : random_int(&p->random, 1, exact ? 5 : 30);
    p->keys = random_int(&p->random, 1, exact ? 6 : 40);
    p->past = random_int(&p->random, 1, exact ? 4 : 30);
    p->size = random_int(&p->random, 1, exact ? 8 : 80);
    p->value_size = random_int(&p->random, 1, exact ? 8 : 80);
    p->packed = random_chance(&p->random, 40);
    p->packed_kv = random_chance(&p->random, 40);
    for (int i = 0; i < 4; i++)
        p->names[i] = random_chance(&p->random, 30) ? names[i] : NULL;
    for (int i = 0; i < RESULTS; i++)
        p->wanted[i] = random_chance(&p->random, i == 0 ? 90 : 30);
    if (!p->wanted[1] && !p->wanted[2] && !p->wanted[3])
        p->wanted[0] = true;
    add_operands(p);
    text_init(&p->text, &allocator_default);
    print_program(p);
    return p;
}

static void program_free(struct program *p)
{
    text_free(&p->text);
    free(p);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* The inputs, in memory of the program's own. */
static void write_inputs(struct program *p, struct expand_program *made)
{
    for (int i = 0; i < OPERANDS; i++) {
        struct operand *o = &p->operands[i];
        if (!o->given)
            continue;
        struct expand_input *input = &made->inputs[made->n_inputs++];
        *input = (struct expand_input){.dtype = o->dtype, .rank = o->rank, .data = o->elements};
        memcpy(input->dims, o->dims, sizeof o->dims);
        for (int64_t k = 0; k < count_of(o); k++)
            dtype_store_double(o->dtype, o->elements + (size_t)k * tssa_dtype_size(o->dtype),
                               o->values[k]);
    }
}

static double tolerance_of(tssa_dtype dtype)
{
    return dtype == TSSA_DOUBLE    ? 1e-12
           : dtype == TSSA_FLOAT   ? 1e-5
           : dtype == TSSA_FLOAT16 ? 2e-3
                                   : 2e-2;
}

/* Which NaN it is has no meaning (docs/numerics.md). */
static bool same_element(tssa_dtype dtype, const char *a, const char *b)
{
    return memcmp(a, b, tssa_dtype_size(dtype)) == 0 ||
           (isnan(dtype_load_double(dtype, a)) && isnan(dtype_load_double(dtype, b)));
}

static void compare(void *user, const struct value *wanted, const struct value *made, size_t output)
{
    struct program *p = user;
    const struct tensor *a = &wanted->tensor, *b = &made->tensor;
    const size_t size = tssa_dtype_size(a->dtype);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
    for (size_t i = 0; i < tensor_count(a); i++) {
        const char *x = (const char *)a->data + i * size, *y = (const char *)b->data + i * size;
        const double is = dtype_load_double(a->dtype, y), should = dtype_load_double(a->dtype, x);
        if (p->exact && !same_element(a->dtype, x, y))
            fail_msg("output %zu is %.17g at %zu, not %.17g, of\n%s", output, is, i, should,
                     text_string(&p->text));
        expect_close(is, should, tolerance_of(a->dtype), "output", output);
    }
}

/* false: there is no such device. */
static bool check(const char *device, uint64_t seed, bool exact)
{
    struct program *p = program_make(seed, exact);
    struct expand_program made = {.text = text_string(&p->text), .compare = compare, .user = p};
    write_inputs(p, &made);
    for (int i = 0; i < RESULTS; i++)
        made.n_outputs += p->wanted[i];
    const bool there = expand_check(PASS, device, &made);
    program_free(p);
    return there;
}

/* One in eight is larger, and not exact. */
static void check_all(const char *device, uint64_t programs)
{
    for (uint64_t seed = 1; seed <= programs; seed++)
        if (!check(device, seed, seed % 8 != 0))
            skip();
}

static void test_emulated(void **state)
{
    (void)state;
    check_all("emulated", 400);
}

static void test_cuda(void **state)
{
    (void)state;
    fake_cuda_use(true);
    check_all("cuda", 40);
    assert_int_equal(fake_cuda_alive(), 0);
    fake_cuda_use(false);
}

static void test_opencl(void **state)
{
    (void)state;
    check_all("opencl", 20);
}

/* ---- What is left ---------------------------------------------------------------------------- */

#define MODEL(inputs, op)                                                                          \
    "graph @g opset(\"\": 24) ir_version(11) (" inputs ") -> (%y) {\n%y, _, _, _ = " op            \
    "\nreturn(%y)\n}\n"
#define INPUTS(b, l, s)                                                                            \
    "%q: f32[" b ", 2, " l ", 4], %k: f32[" b ", 2, " s ", 4], %v: f32[" b ", 2, " s ", 4]"

static void expect_told(const char *text, int level, const char *device, int expanded, int left)
{
    expand_expect(PASS, text, level, device, expanded, left);
}

static void test_what_is_left(void **state)
{
    static const char plain[] = MODEL(INPUTS("B", "L", "S"), "Attention(%q, %k, %v)");
    (void)state;
    expect_told(plain, 2, "emulated", 1, 0);
    /* The CPU has a kernel; lower levels leave the model as it is. */
    expect_told(plain, 2, NULL, 0, 0);
    expect_told(plain, 1, "emulated", 0, 0);
    expect_told(plain, 0, "emulated", 0, 0);
    expect_told(MODEL("%q: f32[1, H, 2, 4], %k: f32[1, H, 3, 4], %v: f32[1, H, 3, 4]",
                      "Attention(%q, %k, %v)"),
                2, "emulated", 0, 1);
    expect_told(MODEL("%q: f32[A, 2, 2, 4], %k: f32[B, 2, 3, 4], %v: f32[B, 2, 3, 4]",
                      "Attention(%q, %k, %v)"),
                2, "emulated", 0, 1);
    expect_told(MODEL(INPUTS("1", "2", "S") ", %m: bool[2, T]", "Attention(%q, %k, %v, %m)"), 2,
                "emulated", 1, 0);
    expect_told(MODEL(INPUTS("1", "2", "3") ", %m: bool[T, 3]", "Attention(%q, %k, %v, %m)"), 2,
                "emulated", 0, 1);
    expect_told(MODEL(INPUTS("1", "2", "3") ", %m: bool[2, 3]", "Attention(%q, %k, %v, %m)"), 2,
                "emulated", 1, 0);
    expect_told(MODEL(INPUTS("1", "2", "3") ", %m: i32[2, 3]", "Attention(%q, %k, %v, %m)"), 2,
                "emulated", 0, 1);
    expect_told(MODEL(INPUTS("1", "0", "3"), "Attention(%q, %k, %v)"), 2, "emulated", 0, 1);
}

/* A mask of `length` positions, of 3: a longer one fails the run, as on the host. */
static void fails_of_mask(const char *device, int64_t length)
{
    static const char text[] =
        MODEL(INPUTS("1", "2", "3") ", %m: bool[2, T]", "Attention(%q, %k, %v, %m)");
    const struct expand_input inputs[] = {{TSSA_FLOAT, 4, {1, 2, 2, 4}, NULL},
                                          {TSSA_FLOAT, 4, {1, 2, 3, 4}, NULL},
                                          {TSSA_FLOAT, 4, {1, 2, 3, 4}, NULL},
                                          {TSSA_BOOL, 2, {2, length}, NULL}};
    expand_expect_run(text, device, 4, inputs, length <= 3);
}

static void test_long_masks(void **state)
{
    (void)state;
    fake_cuda_use(true);
    for (int64_t length = 1; length <= 5; length++) {
        fails_of_mask(NULL, length);
        fails_of_mask("emulated", length);
        fails_of_mask("cuda", length);
    }
    fake_cuda_use(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_emulated),   cmocka_unit_test(test_cuda),
        cmocka_unit_test(test_opencl),     cmocka_unit_test(test_what_is_left),
        cmocka_unit_test(test_long_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
