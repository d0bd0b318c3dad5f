/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_ranges.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/text.h"
#include "common/op_run.h"

#define MAX_RANK 3

struct writer {
    struct random random;
    struct text outer, ops; /* lines before the fuse op, and in it */
    int rank, n_values, n_ranges;
    int last; /* the size of the last axis; 0: only a run tells */
    const char *dtype;
    char dims[40], params[600], operands[200];
};

static const struct {
    const char *name;
    tssa_dtype dtype;
} types[] = {{"f32", TSSA_FLOAT},     {"f64", TSSA_DOUBLE}, {"f16", TSSA_FLOAT16},
             {"bf16", TSSA_BFLOAT16}, {"i64", TSSA_INT64},  {"i32", TSSA_INT32},
             {"u8", TSSA_UINT8},      {"i16", TSSA_INT16},  {"u64", TSSA_UINT64}};
#define N_TYPES ((int)(sizeof types / sizeof *types))

static void add_operand(struct writer *w, const char *outer, const char *inner, const char *type)
{
    const size_t n = strlen(w->params), m = strlen(w->operands);
    snprintf(w->params + n, sizeof w->params - n, "%s%%%s: %s", n ? ", " : "", inner, type);
    snprintf(w->operands + m, sizeof w->operands - m, "%s%%%s", m ? ", " : "", outer);
}

/* From a number on, as many as the axis of x has, this way or that: int64, then the type. */
static void add_told(struct writer *w, int r, int axis, tssa_dtype dtype)
{
    const int start = (int)random_int(&w->random, -9, 9),
              delta = random_chance(&w->random, 70) ? 1 : (int)random_int(&w->random, 0, 1) * 3 - 2;
    char outer[16], inner[16];
    text_printf(&w->outer,
                "%%a%d = Constant() {value = i64[] %d}\n%%s%d = Constant() {value = i64[] %d}\n"
                "%%d%d = Constant() {value = i64[] %d}\n"
                "%%n%d = Gather(%%shape, %%a%d)\n%%m%d = Mul(%%n%d, %%d%d)\n"
                "%%l%d = Add(%%m%d, %%s%d)\n",
                r, axis, r, start, r, delta, r, r, r, r, r, r, r, r);
    snprintf(outer, sizeof outer, "l%d", r);
    snprintf(inner, sizeof inner, "k%d", r);
    add_operand(w, outer, inner, "i64[]");
    text_printf(&w->ops,
                "%%is%d = Constant() {value = i64[] %d}\n%%id%d = Constant() {value = i64[] %d}\n"
                "%%r%d = Range(%%is%d, %%k%d, %%id%d)\n%%c%d = Cast(%%r%d) {to = %d}\n",
                r, start, r, delta, r, r, r, r, r, r, (int)dtype);
}

/* Of the type itself, of numbers. */
static void add_constant(struct writer *w, int r)
{
    const int start = (int)random_int(&w->random, 0, 9), delta = (int)random_int(&w->random, 1, 3);
    text_printf(&w->ops,
                "%%is%d = Constant() {value = %s[] %d}\n%%il%d = Constant() {value = %s[] %d}\n"
                "%%id%d = Constant() {value = %s[] %d}\n%%c%d = Range(%%is%d, %%il%d, %%id%d)\n",
                r, w->dtype, start, r, w->dtype, start + delta * w->last, r, w->dtype, delta, r, r,
                r, r);
}

/* Along an axis of the space, with axes of one element behind it. */
static void add_range(struct writer *w, tssa_dtype dtype)
{
    const int r = w->n_ranges++, axis = (int)random_int(&w->random, 0, w->rank - 1);
    if (axis + 1 == w->rank && w->last && random_chance(&w->random, 70)) {
        add_constant(w, r);
    } else {
        add_told(w, r, axis, dtype);
    }
    char view[40] = "";
    for (int i = axis + 1; i < w->rank; i++)
        snprintf(view + strlen(view), sizeof view - strlen(view), "%s%d", *view ? ", " : "",
                 i - axis);
    if (*view)
        text_printf(&w->ops, "%%v%d = access(%%c%d) {rule = [unsqueeze(%s)]}\n", w->n_values++, r,
                    view);
    else
        text_printf(&w->ops, "%%v%d = Add(%%c%d, %%c%d)\n", w->n_values++, r, r);
}

static void add_elementwise(struct writer *w)
{
    static const char *const two[] = {"Add", "Sub", "Mul", "Max", "Min", "Div"};
    const int a = (int)random_int(&w->random, 0, w->n_values - 1),
              b = (int)random_int(&w->random, 0, w->n_values - 1);
    text_printf(&w->ops, "%%v%d = %s(%%v%d, %%v%d)\n", w->n_values++,
                two[random_int(&w->random, 0, 5)], a, b);
}

char *random_ranges(uint64_t seed)
{
    struct writer w = {.random = {seed * 2 + 1}};
    const int t = (int)random_int(&w.random, 0, N_TYPES - 1);
    char type[60];
    text_init(&w.outer, &allocator_default);
    text_init(&w.ops, &allocator_default);
    w.rank = (int)random_int(&w.random, 1, MAX_RANK);
    w.last = random_chance(&w.random, 50) ? (int)random_int(&w.random, 2, 40) : 0;
    w.dtype = types[t].name;
    for (int i = 0; i < w.rank; i++) {
        const size_t n = strlen(w.dims);
        if (i + 1 == w.rank && w.last)
            snprintf(w.dims + n, sizeof w.dims - n, "%s%d", n ? ", " : "", w.last);
        else
            snprintf(w.dims + n, sizeof w.dims - n, "%s%c", n ? ", " : "", 'A' + i);
    }
    snprintf(type, sizeof type, "%s[%s]", w.dtype, w.dims);
    text_puts(&w.outer, "%shape = Shape(%x)\n");
    add_operand(&w, "x", "v0", type);
    w.n_values = 1;
    for (int64_t i = random_int(&w.random, 1, 3); i > 0; i--) {
        add_range(&w, types[t].dtype);
        add_elementwise(&w);
    }
    text_printf(&w.ops, "%%y0 = Add(%%v0, %%v%d)\n", w.n_values - 1);
    struct text all;
    text_init(&all, &allocator_default);
    text_printf(&all,
                "graph @ranges opset(\"\": 26) ir_version(13) (%%x: %s) -> (%%y) {\n%s"
                "%%y = fuse(%s) {\nbody(%s) {\n%sreturn(%%y0) } }\nreturn(%%y)\n}\n",
                type, text_string(&w.outer), w.operands, w.params, text_string(&w.ops));
    char *text = strdup(text_string(&all));
    text_free(&all);
    text_free(&w.outer);
    text_free(&w.ops);
    return text;
}
