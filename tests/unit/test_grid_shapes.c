/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of operands that do not fit, of `fuse` ops on devices that launch grids: threads do not
 * see that, so calls look (gir_claim), also where there is no thread. Those that fit are computed,
 * with the CPU's bits. On `opencl`, where there is one, and on `cuda`, on a fake driver.
 */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/grid_operands.h"
#include "common/grids_run.h"

struct shapes {
    int64_t x[3], y[3];
    bool fit;
};

struct fused {
    const char *ops;   /* of %p and %q to %r */
    const char *types; /* of both */
    int rank_x, rank_y, n;
    struct shapes shapes[6];
};

static const struct fused all[] = {
    {"%a = Exp(%p)\n%r = Add(%a, %q)",
     "f32[N, 4] f32[M, 4]",
     2,
     2,
     6,
     {{{5, 4}, {5, 4}, true},
      {{5, 4}, {1, 4}, true},
      {{1, 4}, {5, 4}, true},
      {{0, 4}, {1, 4}, true},
      {{5, 4}, {3, 4}, false},
      {{5, 4}, {0, 4}, false}}},
    {"%a = Exp(%p)\n%r = Concat(%a, %q) {axis = 1}",
     "f32[N, 4] f32[M, 3]",
     2,
     2,
     4,
     {{{5, 4}, {5, 3}, true},
      {{0, 4}, {0, 3}, true},
      {{5, 4}, {3, 3}, false},
      {{0, 4}, {1, 3}, false}}},
    {"%b = access(%p) {rule = [squeeze(0)]}\n%r = Mul(%b, %q)",
     "f32[N, 4] f32[4]",
     2,
     1,
     3,
     {{{1, 4}, {4}, true}, {{20, 4}, {4}, false}, {{0, 4}, {4}, false}}},
    {"%a = Exp(%p)\n%b = access(%a) {rule = [expand(3, 4)]}\n%r = Add(%b, %q)",
     "f32[N, 4] f32[4]",
     2,
     1,
     4,
     {{{3, 4}, {4}, true}, {{1, 4}, {4}, true}, {{20, 4}, {4}, false}, {{2, 4}, {4}, false}}},
    {"%a = Exp(%p)\n%b = access(%a) {rule = [reshape(5, 7)]}\n%r = Add(%b, %q)",
     "f32[N, 5] f32[7]",
     2,
     1,
     4,
     {{{7, 5}, {7}, true}, {{8, 5}, {7}, false}, {{6, 5}, {7}, false}, {{0, 5}, {7}, false}}},
    {"%a = Exp(%p)\n%r = GatherElements(%a, %q) {axis = 0}",
     "f32[N, K] i64[M, L]",
     2,
     2,
     3,
     {{{5, 4}, {2, 4}, true}, {{5, 4}, {2, 3}, true}, {{5, 4}, {2, 5}, false}}},
    {"%c = Greater(%p, %q)\n%r = Where(%c, %p, %q)",
     "f32[N, 4] f32[M, 1]",
     2,
     2,
     3,
     {{{5, 4}, {5, 1}, true}, {{5, 4}, {1, 1}, true}, {{5, 4}, {4, 1}, false}}},
};

static void open_fused(struct grids_run *run, const char *device, const struct fused *f)
{
    char text[800];
    const char *y = strchr(f->types, ']') + 2;
    const int x = (int)(y - f->types) - 1;
    snprintf(text, sizeof text,
             "graph @g opset(\"\": 18) ir_version(8) (%%x: %.*s, %%y: %s) -> (%%z) {\n"
             "%%z = fuse(%%x, %%y) { body(%%p: %.*s, %%q: %s) {\n%s\nreturn(%%r)\n} }\n"
             "return(%%z)\n}\n",
             x, f->types, y, x, f->types, y, f->ops);
    grids_run_open(run, device, text);
}

static void run_shapes(struct grids_run *run, struct operands *o, const struct fused *f,
                       const struct shapes *s)
{
    operands_add_numbers(o, TSSA_FLOAT, f->rank_x, s->x);
    if (strstr(f->types, "i64")) { /* row 0 */
        struct tensor *rows = operands_add(o, TSSA_INT64, f->rank_y, s->y);
        memset(rows->data, 0, tensor_bytes(rows));
    } else {
        operands_add_numbers(o, TSSA_FLOAT, f->rank_y, s->y);
    }
    if (s->fit) {
        grids_run_same(run, o->given);
        assert_true(run->counts.launches > 0 || !tensor_count(&run->made[0].tensor));
    } else {
        tssa_status *wanted = grids_run_on_host(run, o->given);
        assert_int_equal(tssa_status_code(wanted), TSSA_RUNTIME);
        tssa_status_free(wanted);
        tssa_status *made = grids_run_try(run, o->given);
        assert_int_equal(tssa_status_code(made), TSSA_RUNTIME);
        tssa_status_free(made);
    }
    operands_clear(o);
}

static void test_shapes(void **state)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct grids_run run;
        struct operands o;
        open_fused(&run, *state, &all[i]);
        operands_open(&o, 3 + i);
        for (int k = 0; k < all[i].n; k++)
            run_shapes(&run, &o, &all[i], &all[i].shapes[k]);
        grids_run_close(&run);
    }
}

static int run_on(const char *device)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_shapes, (void *)device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return grids_run_on_each(run_on);
}
