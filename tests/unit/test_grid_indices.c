/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices of grids: which calls 32 bits hold, at the ends of these; which steps a narrow text has
 * in them; and that devices compile the wide text when a call first wants it. That both texts have
 * the interpreter's bits, test_grid.c tells, which runs each of them.
 */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "codegen/clike/clike.h"
#include "common/gir_build.h"
#include "common/grid_operands.h"
#include "common/grids_run.h"
#include "gir/form.h"

#define LIMIT (INT64_C(1) << 31)

/* ---- Kernels --------------------------------------------------------------------------------- */

#define STEPS 8

/* Of two arguments, of which the last step is a store of what is looked up. */
struct made_kernel {
    struct gir_kernel head;
    struct gir_arg args[2];
    struct gir_code codes[STEPS];
};

#define I64(kind)                                                                                  \
    {                                                                                              \
        .op = GIR_##kind, .type = TSSA_INT64                                                       \
    }
#define NUMBER(n)                                                                                  \
    {                                                                                              \
        .op = GIR_NUMBER, .type = TSSA_INT64, .bits = (n)                                          \
    }
#define CONSTANT(n)                                                                                \
    {                                                                                              \
        .op = GIR_CONSTANT, .type = TSSA_INT64, .bits = (uint64_t)(n)                              \
    }
#define OF(id, result, a, b, c)                                                                    \
    {                                                                                              \
        .op = GIR_SCALAR, .scalar = SCALAR_##id, .type = TSSA_##result, .operands = { a, b, c }    \
    }
#define LOOKUP(at)                                                                                 \
    {                                                                                              \
        .op = GIR_LOOKUP, .type = TSSA_INT64, .operands = { at }                                   \
    }
#define CHECKED(truth)                                                                             \
    {                                                                                              \
        .op = GIR_CHECK, .type = TSSA_BOOL, .operands = { truth }                                  \
    }
#define STORE(value, at)                                                                           \
    {                                                                                              \
        .op = GIR_STORE_AT, .type = TSSA_INT64, .operands = {value, at}, .bits = 1                 \
    }

static struct made_kernel kernel_of(const struct gir_code *codes, uint32_t n)
{
    struct made_kernel k = {.head = {.magic = GIR_MAGIC,
                                     .grid = 1,
                                     .n_args = 2,
                                     .n_codes = n,
                                     .n_numbers = 2,
                                     .size = sizeof k},
                            .args = {{.dtype = TSSA_INT64, .fields = 1, .is_looked_up = 1},
                                     {.dtype = TSSA_INT64, .is_result = 1, .fields = 1}}};
    memcpy(k.codes, codes, n * sizeof *codes);
    return k;
}
#define KERNEL(...)                                                                                \
    kernel_of((const struct gir_code[]){__VA_ARGS__},                                              \
              sizeof((const struct gir_code[]){__VA_ARGS__}) / sizeof(struct gir_code))

/* Rows are 1, and there are no numbers that matter, unless said. */
static bool is_narrow_of(const struct made_kernel *k, int64_t rows, int64_t n, int64_t a, int64_t b)
{
    return clike_is_narrow(&k->head, &(const struct clike_call){rows, n, (const int64_t[]){a, b},
                                                                (const int64_t[]){5, 5}});
}

static bool is_narrow(const struct made_kernel *k, int64_t n, int64_t a)
{
    return is_narrow_of(k, 1, n, a, 0);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void elements_are_counted(void **state)
{
    (void)state;
    const struct made_kernel k = KERNEL(I64(POSITION), LOOKUP(0), STORE(1, 0));
    for (int arg = 0; arg < 2; arg++)
        for (int64_t count = LIMIT - 1; count <= LIMIT + 1; count++) {
            const int64_t counts[] = {arg ? 5 : count, arg ? count : 5}, numbers[] = {0, 0};
            const struct clike_call call = {1, 5, numbers, counts};
            assert_int_equal(clike_is_narrow(&k.head, &call), count < LIMIT);
        }
    /* what a thread goes over, and then goes on by */
    assert_true(is_narrow(&k, 0, 0));
    assert_true(is_narrow(&k, LIMIT - (1 << 25), 0));
    assert_true(is_narrow_of(&k, LIMIT - (1 << 25), 1, 0, 0));
    for (int64_t count = LIMIT - 1; count <= LIMIT + 1; count++) {
        assert_false(is_narrow(&k, count, 0));
        assert_false(is_narrow_of(&k, count, 1, 0, 0));
    }
    assert_false(is_narrow(&k, INT64_MAX, 0));
    assert_false(is_narrow_of(&k, INT64_MIN, 1, 0, 0));
}

static void numbers_are_looked_at(void **state)
{
    (void)state;
    const struct made_kernel k = KERNEL(I64(POSITION), LOOKUP(0), STORE(1, 0));
    for (int64_t number = LIMIT - 1; number <= LIMIT + 1; number++) {
        assert_int_equal(is_narrow_of(&k, 1, 5, number, 0), number < LIMIT);
        assert_int_equal(is_narrow_of(&k, 1, 5, 0, number), number < LIMIT);
    }
    assert_false(is_narrow(&k, 5, -1));
}

/* What the highest and the lowest index is. */
static void indices_are_computed(void **state)
{
    (void)state;
    const struct made_kernel sum =
        KERNEL(I64(POSITION), NUMBER(0), OF(ADD, INT64, 0, 1, 0), LOOKUP(2), STORE(3, 0));
    assert_true(is_narrow(&sum, 1, LIMIT - 1));
    assert_false(is_narrow(&sum, 2, LIMIT - 1));
    assert_false(is_narrow(&sum, 3, LIMIT - 1));
    const struct made_kernel product =
        KERNEL(I64(POSITION), NUMBER(0), OF(MUL, INT64, 0, 1, 0), LOOKUP(0), STORE(3, 2));
    assert_true(is_narrow(&product, 2, LIMIT - 1));
    assert_true(is_narrow(&product, 3, (LIMIT - 2) / 2));
    assert_false(is_narrow(&product, 3, LIMIT / 2));
    assert_false(is_narrow(&product, 1 << 20, 1 << 20));
    assert_false(is_narrow(&product, LIMIT - (1 << 25), LIMIT - 1)); /* nor by what is left of 64 */
    const struct made_kernel rest =
        KERNEL(CONSTANT(-1), NUMBER(0), OF(SUB, INT64, 0, 1, 0), NUMBER(1), OF(SUB, INT64, 2, 3, 0),
               LOOKUP(4), STORE(5, 0));
    assert_true(is_narrow_of(&rest, 1, 1, LIMIT - 1, 0));
    assert_false(is_narrow_of(&rest, 1, 1, LIMIT - 1, 1));
    assert_false(is_narrow_of(&rest, 1, 1, LIMIT - 1, 2));
}

/* What is chosen, compared, and the steps between. */
static void all_steps_are(void **state)
{
    (void)state;
    const struct made_kernel between = KERNEL(I64(POSITION), NUMBER(0), OF(MUL, INT64, 0, 1, 0),
                                              OF(FMOD, INT64, 2, 1, 0), LOOKUP(3), STORE(4, 0));
    assert_true(is_narrow(&between, 2, LIMIT - 1));
    assert_false(is_narrow(&between, 4, LIMIT / 2));
    const struct made_kernel compared =
        KERNEL(I64(POSITION), NUMBER(0), OF(MUL, INT64, 0, 1, 0), OF(LT, BOOL, 2, 1, 0), CHECKED(3),
               LOOKUP(0), STORE(5, 0));
    assert_true(is_narrow(&compared, 2, LIMIT - 1));
    assert_false(is_narrow(&compared, 4, LIMIT / 2));
    const struct made_kernel chosen =
        KERNEL(I64(POSITION), NUMBER(0), OF(MUL, INT64, 0, 1, 0), OF(LT, BOOL, 0, 1, 0),
               OF(SEL, INT64, 3, 0, 2), LOOKUP(4), STORE(5, 0));
    assert_true(is_narrow(&chosen, 2, LIMIT - 1));
    assert_false(is_narrow(&chosen, 4, LIMIT / 2));
}

/* What is computed where a check has failed is computed. */
static void checks_tell_nothing(void **state)
{
    (void)state;
    const struct made_kernel k =
        KERNEL(I64(POSITION), CONSTANT(2), OF(LT, BOOL, 0, 1, 0), CHECKED(2), NUMBER(0),
               OF(MUL, INT64, 0, 4, 0), LOOKUP(5), STORE(6, 0));
    assert_true(is_narrow(&k, 2, LIMIT - 1));
    assert_false(is_narrow(&k, 4, LIMIT / 2));
}

/* Nothing is divided by 0, and it is no reason for 64 bits. */
static void sizes_may_be_none(void **state)
{
    (void)state;
    const struct made_kernel k =
        KERNEL(I64(POSITION), NUMBER(0), OF(DIV, INT64, 0, 1, 0), OF(FMOD, INT64, 0, 1, 0),
               OF(ADD, INT64, 2, 3, 0), LOOKUP(4), STORE(5, 0));
    assert_true(is_narrow(&k, 100, 0));
    assert_true(is_narrow(&k, LIMIT / 4, 0));
    assert_false(is_narrow(&k, LIMIT - (1 << 25), 0));
    assert_true(is_narrow(&k, LIMIT - (1 << 25), 7));
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void expect_text(const struct made_kernel *k, enum clike_width width, const char *wanted)
{
    const struct gir_kernel *kernel = &k->head;
    struct text text;
    text_init(&text, &allocator_default);
    assert_true(clike_print_launch(&kernel, 1, CLIKE_SHIM, width, "k", &text));
    if (!strstr(text_string(&text), wanted))
        fail_msg("%s\nis not in\n%s", wanted, text_string(&text));
    text_free(&text);
}

/* They have 64 bits in each text, so that nobody asks. */
static void tiles_are_wide(void **state)
{
    (void)state;
    struct made_kernel k =
        KERNEL(I64(ROW), NUMBER(0), OF(MUL, INT64, 0, 1, 0), LOOKUP(2), STORE(3, 0));
    assert_true(is_narrow_of(&k, 2, 1, LIMIT - 1, 0));
    assert_false(is_narrow_of(&k, 2, 1, LIMIT, 0));
    expect_text(&k, CLIKE_NARROW, "const index_t v2 = v0 * v1;");
    k.head.form = GIR_FORM_ROWS_ACROSS;
    assert_true(is_narrow_of(&k, 2, 1, LIMIT, 0));
    expect_text(&k, CLIKE_NARROW, "const int64_t v2 = i64_MUL(v0, v1);");
}

/* What is stored, and what data tells, has 64 bits, and calls are not asked whether that fits. */
static void data_is_no_index(void **state)
{
    (void)state;
    const struct made_kernel stored =
        KERNEL(I64(POSITION), CONSTANT(LIMIT - 1), OF(MUL, INT64, 0, 1, 0), LOOKUP(0),
               OF(ADD, INT64, 2, 3, 0), STORE(4, 0));
    assert_true(is_narrow(&stored, 100, 0));
    expect_text(&stored, CLIKE_NARROW, "const index_t v0 = (index_t)i;");
    expect_text(&stored, CLIKE_NARROW, "const int64_t v2 = i64_MUL(v0, v1);");
    expect_text(&stored, CLIKE_WIDE, "const int64_t v0 = (int64_t)i;");
    const struct made_kernel told =
        KERNEL(I64(POSITION), LOOKUP(0), NUMBER(0), OF(MUL, INT64, 1, 2, 0),
               OF(ADD, INT64, 3, 0, 0), LOOKUP(4), STORE(5, 0));
    assert_true(is_narrow(&told, 100, LIMIT - 1));
    expect_text(&told, CLIKE_NARROW, "const int64_t v3 = i64_MUL(v1, v2);");
    expect_text(&told, CLIKE_NARROW, "const int64_t v4 = i64_ADD(v3, v0);");
    const struct made_kernel large =
        KERNEL(I64(POSITION), CONSTANT(LIMIT), OF(ADD, INT64, 0, 1, 0), LOOKUP(2), STORE(3, 0));
    assert_true(is_narrow(&large, 100, 0));
    expect_text(&large, CLIKE_NARROW, "const int64_t v2 = i64_ADD(v0, v1);");
}

static void divisions_are_of_32_bits(void **state)
{
    (void)state;
    const struct made_kernel k =
        KERNEL(I64(POSITION), NUMBER(0), OF(SUB, INT64, 0, 1, 0), OF(DIV, INT64, 0, 1, 0),
               OF(DIV, INT64, 2, 1, 0), OF(ADD, INT64, 3, 4, 0), LOOKUP(5), STORE(6, 0));
    expect_text(&k, CLIKE_NARROW, "const index_t v3 = u32_BY_SIZE(v0, v1);");
    expect_text(&k, CLIKE_NARROW, "const index_t v4 = i32_BY_SIZE(v2, v1);");
    expect_text(&k, CLIKE_WIDE, "const int64_t v4 = i64_BY_SIZE(v2, v1);");
}

/* ---- Devices --------------------------------------------------------------------------------- */

static const char transposed[] =
    "graph @g opset(\"\": 18) ir_version(8) (%x: f32[A, B], %y: f32[5]) -> (%z, %w) {\n"
    "%z, %w = fuse(%x, %y) { body(%p: f32[A, B], %q: f32[5]) {\n"
    "%t = access(%p) {rule = [permute(1, 0)]} %e = Exp(%t) %n = Neg(%q)\nreturn(%e, %n)\n} }\n"
    "return(%z, %w)\n}\n";

static uint64_t compiled(struct grids_run *run)
{
    struct device_compiled made;
    run->device.device->compiled(&run->device, &made);
    return made.kernels;
}

static void run_sizes(struct grids_run *run, int64_t a, int64_t b)
{
    struct operands o;
    operands_open(&o, 3);
    operands_add_numbers(&o, TSSA_FLOAT, 2, (const int64_t[]){a, b});
    operands_add_numbers(&o, TSSA_FLOAT, 1, (const int64_t[]){5});
    grids_run_same(run, o.given);
    operands_clear(&o);
}

/* A size that 32 bits do not hold, of what has no elements; and small ones again. */
static void wide_is_compiled_when_wanted(void **state)
{
    struct grids_run run;
    grids_run_open(&run, *state, transposed);
    run_sizes(&run, 3, 70);
    assert_int_equal(compiled(&run), 1);
    run_sizes(&run, 0, LIMIT - 1);
    assert_int_equal(compiled(&run), 1);
    run_sizes(&run, 0, LIMIT);
    assert_int_equal(compiled(&run), 2);
    run_sizes(&run, LIMIT + 1, 0);
    run_sizes(&run, 40, 3);
    run_sizes(&run, 0, LIMIT + 1);
    assert_int_equal(compiled(&run), 2);
    grids_run_close(&run);
}

static int run_on(const char *device)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(wide_is_compiled_when_wanted, (void *)device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_counted),     cmocka_unit_test(numbers_are_looked_at),
        cmocka_unit_test(indices_are_computed),     cmocka_unit_test(all_steps_are),
        cmocka_unit_test(checks_tell_nothing),      cmocka_unit_test(sizes_may_be_none),
        cmocka_unit_test(tiles_are_wide),           cmocka_unit_test(data_is_no_index),
        cmocka_unit_test(divisions_are_of_32_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + grids_run_on_each(run_on);
}
