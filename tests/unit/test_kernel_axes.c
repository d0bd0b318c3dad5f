/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Neighbouring axes that are reduced, which kernels have as one: sessions give the interpreter's
 * bits with and without, of a model by hand and of random ones.
 */
/* ctest-labels: random */
/* ctest-isa: v3 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/op_run.h"
#include "common/session_pair.h"

/* A pool, a norm, and what others read, too; an operand along one of the axes alone. */
static const char by_hand[] = SESSION_MODEL(
    "%x: f32[B, 7, 9, 40], %s: f32[1, 1, 40], %w: f32[9, 40]", "%pool, %norm, %all, %most",
    "%axes = Constant() {value = i64[2] [2, 1]}\n"
    "%r = Relu(%x)\n"
    "%pool = ReduceMean(%r, %axes) {keepdims = 0}\n"
    "%m = ReduceMean(%x, %axes) {keepdims = 1}\n"
    "%d = Sub(%x, %m)\n"
    "%dd = Mul(%d, %d)\n"
    "%v = ReduceMean(%dd, %axes) {keepdims = 1}\n"
    "%sd = Sqrt(%v)\n"
    "%n = Div(%d, %sd)\n"
    "%norm = Mul(%n, %s)\n"
    "%all = Concat(%v, %v) {axis = 0}\n"
    "%b = Add(%x, %w)\n"
    "%h = Neg(%b)\n"
    "%most = ReduceMax(%h, %axes) {keepdims = 1}\n");

static void sessions(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct session_pair p;
        session_pair_open(&p, by_hand, threads);
        for (int64_t b = 0; b < 5; b++) {
            tssa_value *inputs[] = {
                session_pair_floats(&p, 4, (int64_t[]){b, 7, 9, 40}, false),
                session_pair_floats(&p, 3, (int64_t[]){1, 1, 40}, false),
                session_pair_floats(&p, 2, (int64_t[]){9, 40}, false),
            };
            session_pair_run(&p, 3, inputs, 4);
            for (int v = 0; v < 3; v++)
                tssa_value_free(inputs[v]);
        }
        session_pair_close(&p);
    }
}

/* ---- Random ones ----------------------------------------------------------------------------- */

struct shape {
    int rank, first, n;       /* which axes are reduced */
    int64_t dims[6], ones[6]; /* the same with one element along these, and some others */
};

static struct shape random_shape(struct random *random)
{
    struct shape s = {.rank = (int)random_int(random, 3, 5)};
    s.first = (int)random_int(random, 0, s.rank - 3);
    s.n = (int)random_int(random, 2, s.rank - 1 - s.first);
    for (int i = 0; i < s.rank; i++) {
        const bool merged = i >= s.first && i < s.first + s.n;
        s.dims[i] = random_int(random, 2, 7);
        s.ones[i] = merged || random_chance(random, 30) ? 1 : s.dims[i];
    }
    return s;
}

static void write_dims(struct text *text, int rank, const int64_t *dims)
{
    for (int i = 0; i < rank; i++)
        text_printf(text, "%s%d", i ? ", " : "", (int)dims[i]);
}

/* Ops %v1 to %v`n`, of all elements, each of those before. */
static void write_elementwise(struct text *text, struct random *random, int n)
{
    static const char *const binary[] = {"Add", "Sub", "Mul", "Max"};
    static const char *const others[] = {"o", "c", "v0"};
    for (int i = 1; i <= n; i++) {
        const int a = (int)random_int(random, 0, i - 1);
        const char *name = binary[random_int(random, 0, 3)];
        if (random_chance(random, 30))
            text_printf(text, "%%v%d = Neg(%%v%d)\n", i, a);
        else if (random_chance(random, 50))
            text_printf(text, "%%v%d = %s(%%v%d, %%%s)\n", i, name, a,
                        others[random_int(random, 0, 2)]);
        else
            text_printf(text, "%%v%d = %s(%%v%d, %%v%d)\n", i, name, a,
                        (int)random_int(random, 0, i - 1));
    }
}

static void write_model(struct text *text, struct random *random, const struct shape *s)
{
    static const char *const reductions[] = {"Sum", "Mean", "Max", "SumSquare", "L2", "Prod"};
    const int n = (int)random_int(random, 1, 4), some = (int)random_int(random, 0, n);
    text_printf(text, "graph @g opset(\"\": 21) ir_version(10) (%%v0: f32[");
    write_dims(text, s->rank, s->dims);
    text_printf(text, "], %%o: f32[");
    write_dims(text, s->rank, s->ones);
    text_printf(text,
                "], %%c: f32[%d]) -> (%%r, %%some, %%of, %%k, %%w) {\n%%axes = Constant() "
                "{value = i64[%d] [",
                (int)s->dims[s->rank - 1], s->n);
    for (int i = s->n - 1; i >= 0; i--)
        text_printf(text, "%d%s", s->first + i - (i % 2 ? s->rank : 0), i ? ", " : "");
    text_printf(text, "]}\n");
    write_elementwise(text, random, n);
    text_printf(text, "%%r = Reduce%s(%%v%d, %%axes) {keepdims = 0}\n",
                reductions[random_int(random, 0, 5)], n);
    text_printf(text, "%%some = Abs(%%v%d)\n%%of = Abs(%%r)\n", some);
    text_printf(text, "%%k = Reduce%s(%%v%d, %%axes) {keepdims = 1}\n",
                reductions[random_int(random, 0, 5)], some);
    text_printf(text, "%%d = Sub(%%v%d, %%k)\n%%e = Mul(%%d, %%d)\n", n);
    text_printf(text, "%%f = ReduceMean(%%e, %%axes) {keepdims = 1}\n%%g = Sqrt(%%f)\n");
    text_printf(text, "%%w = Mul(%%d, %%g)\nreturn(%%r, %%some, %%of, %%k, %%w)\n}\n");
}

static void random_models(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct random random = {seed * 2 + 1};
        const struct shape s = random_shape(&random);
        struct session_pair p;
        struct text text;
        text_init(&text, &allocator_default);
        write_model(&text, &random, &s);
        session_pair_open(&p, text_string(&text), 1);
        tssa_value *inputs[] = {session_pair_floats(&p, s.rank, s.dims, false),
                                session_pair_floats(&p, s.rank, s.ones, false),
                                session_pair_floats(&p, 1, &s.dims[s.rank - 1], false)};
        session_pair_run(&p, 3, inputs, 5);
        for (int v = 0; v < 3; v++)
            tssa_value_free(inputs[v]);
        session_pair_close(&p);
        text_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sessions), cmocka_unit_test(random_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
