/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookups of grids that are turned (gir/gir.h): which are, and along which axes; that kernels which
 * say so elsewhere are none; and that what is computed with them has the CPU's bits, of sizes that
 * are no multiple of a patch's, too: on `opencl`, where there is one, and on `cuda`, on a fake
 * driver.
 */
/* ctest-timeout: 600 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/gir_build.h"
#include "common/grid_operands.h"
#include "common/grids_run.h"
#include "common/no_error.h"
#include "device/grids/patches.h"
#include "gir/grid.h"

/* ---- What is turned -------------------------------------------------------------------------- */

/* Of %p, and %q, to %r. */
#define ONE(type, ops) FUSED_GRAPH("%x: " type, "%x", "%p: " type ") { " ops " return(%r)", "%y")
#define TWO(type, other, ops)                                                                      \
    FUSED_GRAPH("%x: " type ", %z: " other, "%x, %z",                                              \
                "%p: " type ", %q: " other ") { " ops " return(%r)", "%y")
#define PERMUTE(order) "%t = access(%p) {rule = [permute(" order ")]} "
#define EXP "%r = Exp(%t)"

static const struct {
    const char *text;
    const char *turned; /* per lookup, T: it is */
    int from, to;
} cases[] = {
    {ONE("f32[M, N]", PERMUTE("1, 0") EXP), "T", 0, 1},
    {ONE("f32[512, 512]", PERMUTE("1, 0") EXP), "T", 0, 1},
    {ONE("f32[B, M, N]", PERMUTE("0, 2, 1") EXP), "T", 1, 2},
    /* axes that lie one behind the other are one */
    {ONE("f32[B, C, H, W]", PERMUTE("0, 2, 3, 1") EXP), "T", 1, 3},
    {ONE("f32[B, H, W, C]", PERMUTE("0, 3, 1, 2") EXP), "T", 1, 2},
    {ONE("f32[B, 1, C, H, 1, W]", PERMUTE("0, 1, 3, 4, 5, 2") EXP), "T", 1, 5},
    {ONE("f32[A, B, C]", PERMUTE("2, 1, 0") EXP), "T", 0, 1},
    {ONE("f32[A, B, C, D, E]", PERMUTE("0, 4, 2, 1, 3") EXP), "T", 1, 2},
    {ONE("f32[M, N, 1]", PERMUTE("1, 0, 2") EXP), "T", 0, 1},
    {ONE("f16[M, N]", PERMUTE("1, 0") "%k = Cast(%t) {to = 1} %r = Exp(%k)"), "T", 0, 1},
    /* pieces */
    {ONE("f32[100, N]", "%s = access(%p) {rule = [slice(0, 3, 60, 1), permute(1, 0)]} "
                        "%r = Exp(%s)"),
     "T", 0, 1},
    {TWO("f32[M, N]", "f32[N, K]", PERMUTE("1, 0") "%r = Concat(%q, %t) {axis = 1}"), ".T", 0, 1},
    /* what lies well, and one that does not */
    {TWO("f32[M, N]", "f32[N, M]", PERMUTE("1, 0") "%r = Add(%t, %q)"), "T.", 0, 1},
    {TWO("f32[M, N]", "f32[M]", PERMUTE("1, 0") "%r = Add(%t, %q)"), "T.", 0, 1},
    {TWO("f32[M, N]", "f32[M, N]",
         PERMUTE("1, 0") "%u = access(%q) {rule = [permute(1, 0)]} %r = Add(%t, %u)"),
     "TT", 0, 1},
    /* of axes that are one for one of them alone, the last one */
    {TWO("f32[A, B, C]", "f32[B, A, C]",
         "%t = access(%p) {rule = [permute(1, 2, 0)]} "
         "%u = access(%q) {rule = [slice(2, 0, 50, 1), permute(0, 2, 1)]} "
         "%v = access(%t) {rule = [slice(1, 0, 50, 1)]} %r = Add(%v, %u)"),
     "TT", 1, 2},
    /* the last axis stays the last one, or is read from its end */
    {ONE("f32[B, S, H, D]", PERMUTE("0, 2, 1, 3") EXP), ".", 0, 0},
    {ONE("f32[M, N]", "%t = access(%p) {rule = [slice(1, -1, -1000, -1)]} " EXP), ".", 0, 0},
    {ONE("f32[M, N]", "%r = Exp(%p)"), ".", 0, 0},
    /* another axis than that of the first one */
    {TWO("f32[A, B, C]", "f32[A, C, B]",
         PERMUTE("2, 1, 0") "%u = access(%q) {rule = [permute(1, 2, 0)]} %r = Add(%t, %u)"),
     "T.", 0, 1},
    /* too little of it, in one direction or in all */
    {ONE("f32[7, N]", PERMUTE("1, 0") EXP), ".", 0, 0},
    {ONE("f32[N, 7]", PERMUTE("1, 0") EXP), ".", 0, 0},
    {ONE("f32[N, 2]", PERMUTE("1, 0") EXP), ".", 0, 0},
    {ONE("f32[B, 30, 31]", PERMUTE("0, 2, 1") EXP), ".", 0, 0},
    {ONE("f32[B, 32, 32]", PERMUTE("0, 2, 1") EXP), "T", 1, 2},
    /* data tells where it is */
    {TWO("f32[M, N]", "i64[K]",
         "%g = Gather(%p, %q) {axis = 0} %t = access(%g) {rule = [permute(1, 0)]} " EXP),
     "..", 0, 0},
    /* more than a block has room for */
    {FUSED_GRAPH("%x: f64[M, N]", "%x",
                 "%p: f64[M, N]) { %a = access(%p) {rule = [permute(1, 0)]} "
                 "%b = access(%p) {rule = [slice(0, 1, 30, 1), permute(1, 0)]} "
                 "%c = access(%p) {rule = [slice(0, 2, 31, 1), permute(1, 0)]} "
                 "%d = Concat(%b, %c) {axis = 1} %e = Concat(%a, %d) {axis = 1} return(%e)",
                 "%y"),
     "TT.", 0, 1},
};

static void expect_turned(const struct gir_grid_part *part, const char *turned, const char *text)
{
    const struct gir_kernel *kernel = part->kernel;
    char found[64] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        if (gir_codes(kernel)[i].op == GIR_LOOKUP && n + 1 < sizeof found)
            found[n++] = gir_is_turned(&gir_codes(kernel)[i]) ? 'T' : '.';
    if (strcmp(found, turned) != 0)
        fail_msg("%s where %s is right, %s", found, turned, text);
}

static void what_is_turned(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why;
        struct ir_graph *graph = gir_parse_graph(cases[i].text);
        struct gir_grid *grid = gir_build_whole_grid(graph, &why);
        assert_non_null(grid);
        expect_turned(&grid->parts[0], cases[i].turned, cases[i].text);
        if (grid->parts[0].turned_from != cases[i].from || grid->parts[0].turned_to != cases[i].to)
            fail_msg("axes %d to %d, %s", grid->parts[0].turned_from, grid->parts[0].turned_to,
                     cases[i].text);
        gir_grid_free(grid);
        ir_graph_free(graph);
    }
}

/* ---- Checks ---------------------------------------------------------------------------------- */

struct turned_kernel {
    struct gir_kernel kernel;
    struct gir_arg args[2];
    struct gir_code codes[5];
};

static struct turned_kernel make_kernel(void)
{
    const struct gir_code position = {.op = GIR_POSITION, .type = TSSA_INT64},
                          lookup = {.op = GIR_LOOKUP,
                                    .type = TSSA_DOUBLE,
                                    .bits = gir_bits(0, GIR_TURNED)};
    return (struct turned_kernel){
        {.magic = GIR_MAGIC,
         .size = sizeof(struct turned_kernel),
         .grid = 1,
         .n_args = 2,
         .n_codes = 5},
        {{.dtype = TSSA_DOUBLE, .fields = 1, .is_looked_up = 1},
         {.dtype = TSSA_DOUBLE, .fields = 1, .is_result = 1}},
        {position,
         lookup,
         lookup,
         {.op = GIR_SCALAR, .scalar = SCALAR_ADD, .type = TSSA_DOUBLE, .operands = {1, 2}},
         {.op = GIR_STORE_AT, .type = TSSA_DOUBLE, .operands = {3, 0}, .bits = 1}}};
}

static const char cannot[] =
    "kernel, step 1: it is turned where it cannot be, or with too much else";

static void kernels_are_checked(void **state)
{
    struct turned_kernel k = make_kernel();
    (void)state;
    no_error(gir_check(&k, sizeof k));
    k.codes[1].bits = gir_bits(0, GIR_TURNED + 1);
    gir_expect_wrong(&k, sizeof k, "kernel, step 1: there is no such argument");
    k = make_kernel();
    k.codes[4].bits = gir_bits(1, GIR_TURNED);
    gir_expect_wrong(&k, sizeof k, "kernel, step 4: there is no such argument");
    k = make_kernel();
    k.kernel.stage = 1;
    gir_expect_wrong(&k, sizeof k, cannot);
    k = make_kernel();
    k.kernel.whole_rows = 1;
    gir_expect_wrong(&k, sizeof k, cannot);
    k = make_kernel();
    k.kernel.columns = 1;
    gir_expect_wrong(&k, sizeof k, cannot);
    k = make_kernel();
    k.codes[3] = k.codes[2];
    gir_expect_wrong(&k, sizeof k,
                     "kernel, step 3: it is turned where it cannot be, or with too much else");
}

/* ---- Patches --------------------------------------------------------------------------------- */

static void expect_cut(int64_t n, int64_t along, int64_t inner, struct grids_patches wanted)
{
    const struct grids_patches cut = grids_cut(n, along, inner);
    assert_int_equal(cut.along, wanted.along);
    assert_int_equal(cut.inner, wanted.inner);
    assert_int_equal(cut.shift, wanted.shift);
    assert_int_equal(cut.count, wanted.count);
}

/* Squares; where there is less in one direction, more of the other one; neighbours alone. */
static void how_it_is_cut(void **state)
{
    (void)state;
    expect_cut(4096 * 4096, 4096, 4096, (struct grids_patches){4096, 4096, 5, 128 * 128});
    expect_cut(3 * 33 * 33, 33, 33, (struct grids_patches){33, 33, 5, 3 * 2 * 2});
    expect_cut(1000 * 9, 1000, 9, (struct grids_patches){1000, 9, 4, 16});
    expect_cut(2 * 9 * 1000, 9, 1000, (struct grids_patches){9, 1000, 6, 2 * 16});
    expect_cut(8 * 128, 8, 128, (struct grids_patches){8, 128, 7, 1});
    expect_cut(7 * 1000, 7, 1000, (struct grids_patches){1, 7000, 10, 7});
    expect_cut(1000 * 7, 1000, 7, (struct grids_patches){1, 7000, 10, 7});
    expect_cut(31 * 33, 31, 33, (struct grids_patches){1, 1023, 10, 1});
    expect_cut(0, 0, 50, (struct grids_patches){0, 50, 5, 0});
    expect_cut(0, 50, 50, (struct grids_patches){50, 50, 5, 0});
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* What is fused of %p, %q and %r, to %s, of a type; @@@ stands for it. */
struct program {
    const char *types, *ops;
    int ranks[3];
    bool computes;
};

static void open_program(struct grids_run *run, const char *device, const struct program *p,
                         const char *type)
{
    static const char *const names[] = {"x", "y", "z"}, *const inner[] = {"p", "q", "r"};
    char text[2000], operands[3][300] = {"", "", ""};
    const char *at = p->types;
    for (int i = 0; i < 3 && p->ranks[i]; i++) {
        const int size = (int)(strchr(at, ']') - at) + 1;
        const char *comma = i ? ", " : "";
        snprintf(operands[0] + strlen(operands[0]), 100, "%s%%%s: %.*s", comma, names[i], size, at);
        snprintf(operands[1] + strlen(operands[1]), 100, "%s%%%s", comma, names[i]);
        snprintf(operands[2] + strlen(operands[2]), 100, "%s%%%s: %.*s", comma, inner[i], size, at);
        at += size + 1;
    }
    snprintf(text, sizeof text,
             "graph @g opset(\"\": 18) ir_version(8) (%s) -> (%%o) {\n"
             "%%o = fuse(%s) { body(%s) {\n%s\nreturn(%%s)\n} }\nreturn(%%o)\n}\n",
             operands[0], operands[1], operands[2], p->ops);
    grids_run_open_typed(run, device, text, type);
}

/* Operands of dims that each says of the sizes A, B, ...; of any bits where nothing is computed:
 * which NaN comes of one is a card's own. */
static void run_program(struct grids_run *run, struct operands *o, const struct program *p,
                        tssa_dtype dtype, const int64_t *sizes)
{
    const char *at = p->types;
    for (int i = 0; i < 3 && p->ranks[i]; i++) {
        int64_t dims[5];
        at = strchr(at, '[') + 1;
        for (int k = 0; k < p->ranks[i]; k++, at += 3)
            dims[k] = *at >= 'A' && *at <= 'E' ? sizes[*at - 'A'] : *at - '0';
        if (p->computes)
            operands_add_numbers(o, dtype, p->ranks[i], dims);
        else
            operands_add_bits(o, dtype, p->ranks[i], dims, 95);
    }
    grids_run_same(run, o->given);
    assert_true(run->counts.launches > 0 || !tensor_count(&run->made[0].tensor));
    operands_clear(o);
}

static void run_sizes(const char *device, const struct program *p, tssa_dtype dtype,
                      const int64_t (*sizes)[5], size_t n)
{
    struct grids_run run;
    struct operands o;
    open_program(&run, device, p, dtype_info(dtype)->ir_name);
    operands_open(&o, 17 + (uint64_t)dtype);
    for (size_t i = 0; i < n; i++)
        run_program(&run, &o, p, dtype, sizes[i]);
    grids_run_close(&run);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void types(void **state)
{
    static const struct program transpose = {
        "@@@[A, B] ", "%s = access(%p) {rule = [permute(1, 0)]}", {2}, false};
    static const tssa_dtype dtypes[] = {TSSA_BOOL,   TSSA_INT8,  TSSA_FLOAT16, TSSA_UINT16,
                                        TSSA_FLOAT,  TSSA_INT32, TSSA_DOUBLE,  TSSA_UINT64,
                                        TSSA_UINT32, TSSA_INT64};
    static const int64_t sizes[][5] = {{1, 1},   {1, 2000}, {2000, 1}, {31, 31},
                                       {33, 33}, {65, 40},  {8, 131},  {131, 8},
                                       {0, 5},   {5, 0},    {9, 200},  {201, 11}};
    for (size_t i = 0; i < COUNT(dtypes); i++)
        run_sizes(*state, &transpose, dtypes[i], sizes, COUNT(sizes));
}

/* Ranks 2 to 5, several operands, choices, a row that is added. */
static void programs(void **state)
{
    static const struct program all[] = {
        {"@@@[A, B, C] ", "%t = access(%p) {rule = [permute(0, 2, 1)]} %s = Abs(%t)", {3}, true},
        {"@@@[A, B, C] ", "%t = access(%p) {rule = [permute(2, 1, 0)]} %s = Abs(%t)", {3}, true},
        {"@@@[A, B, C, D] ",
         "%t = access(%p) {rule = [permute(0, 2, 3, 1)]} %s = Neg(%t)",
         {4},
         true},
        {"@@@[A, B, C, D] ",
         "%t = access(%p) {rule = [permute(0, 3, 1, 2)]} %s = Neg(%t)",
         {4},
         true},
        {"@@@[A, B, C, D] ",
         "%t = access(%p) {rule = [permute(0, 2, 1, 3)]} %s = Neg(%t)",
         {4},
         true},
        {"@@@[A, B, C, D, E] ",
         "%t = access(%p) {rule = [permute(4, 2, 1, 3, 0)]} %s = Neg(%t)",
         {5},
         true},
        {"@@@[B, A] @@@[A, B] @@@[B] ",
         "%t = access(%p) {rule = [permute(1, 0)]} %a = Add(%t, %q) %s = Mul(%a, %r)",
         {2, 2, 1},
         true},
        {"@@@[B, A] @@@[C, A] ",
         "%c = Concat(%p, %q) {axis = 0} %e = Abs(%c) %s = access(%e) {rule = [permute(1, 0)]}",
         {2, 2},
         true},
        {"@@@[B, A] @@@[B, A] @@@[A, B] ",
         "%t = access(%p) {rule = [permute(1, 0)]} %u = access(%q) {rule = [permute(1, 0)]} "
         "%l = Less(%t, %r) %s = Where(%l, %u, %t)",
         {2, 2, 2},
         true},
    };
    static const int64_t sizes[][5] = {{1, 1, 1, 1, 1},   {2, 33, 34, 3, 2}, {34, 40, 33, 2, 1},
                                       {1, 9, 8, 31, 33}, {3, 20, 0, 7, 2},  {40, 2, 1, 9, 50},
                                       {5, 64, 17, 2, 3}};
    for (size_t i = 0; i < COUNT(all); i++)
        run_sizes(*state, &all[i], TSSA_FLOAT, sizes, COUNT(sizes));
}

/* Blocks then have several, one after the other. */
static void more_patches_than_blocks(void **state)
{
    static const struct program transpose = {
        "@@@[A, B, C] ", "%t = access(%p) {rule = [permute(0, 2, 1)]} %s = Abs(%t)", {3}, true};
    static const int64_t sizes[][5] = {{1030, 33, 33}};
    run_sizes(*state, &transpose, TSSA_FLOAT, sizes, 1);
}

/* ---------------------------------------------------------------------------------------------- */

#define OF_DEVICE(test) cmocka_unit_test_prestate(test, (void *)device)

static int run_on(const char *device)
{
    const struct CMUnitTest tests[] = {OF_DEVICE(types), OF_DEVICE(programs),
                                       OF_DEVICE(more_patches_than_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_turned),
                                       cmocka_unit_test(kernels_are_checked),
                                       cmocka_unit_test(how_it_is_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL) + grids_run_on_each(run_on);
}
