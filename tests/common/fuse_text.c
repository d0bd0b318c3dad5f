/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fuse_text.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"

void fuse_text_init(struct fuse_text *t)
{
    struct text *texts[] = {&t->ops, &t->params, &t->operands, &t->inputs, &t->results, &t->names};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_init(texts[i], &allocator_default);
    t->n_params = t->n_results = 0;
}

void fuse_text_param(struct fuse_text *t, char inner, char outer, int number, tssa_dtype dtype,
                     const char *dims)
{
    const char *comma = t->n_params++ ? ", " : "", *name = dtype_info(dtype)->ir_name;
    text_printf(&t->params, "%s%%%c%d: %s[%s]", comma, inner, number, name, dims);
    text_printf(&t->inputs, "%s%%%c%d: %s[%s]", comma, outer, number, name, dims);
    text_printf(&t->operands, "%s%%%c%d", comma, outer, number);
}

tssa_dtype fuse_text_dtype(struct random *random)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT,  TSSA_FLOAT,   TSSA_FLOAT,  TSSA_FLOAT,
                                        TSSA_DOUBLE, TSSA_FLOAT16, TSSA_DOUBLE, TSSA_BFLOAT16,
                                        TSSA_INT8,   TSSA_INT32,   TSSA_INT64,  TSSA_UINT8,
                                        TSSA_UINT16, TSSA_UINT32,  TSSA_UINT64, TSSA_INT16};
    return dtypes[random_int(random, 0, sizeof dtypes / sizeof *dtypes - 1)];
}

void fuse_text_elementwise(struct fuse_text *t, struct random *random, tssa_dtype dtype, int made,
                           int a, int b)
{
    static const char *const two[] = {"Add", "Sub", "Mul", "Max", "Min", "Div"},
                             *const floats[] = {"Exp",  "Sigmoid", "Sqrt", "Relu",
                                                "Tanh", "Abs",     "Erf"};
    if (dtype_is_float(dtype) && random_chance(random, 40))
        text_printf(&t->ops, "%%v%d = %s(%%v%d)\n", made, floats[random_int(random, 0, 6)], a);
    else
        text_printf(&t->ops, "%%v%d = %s(%%v%d, %%v%d)\n", made, two[random_int(random, 0, 5)], a,
                    b);
}

void fuse_text_result(struct fuse_text *t, int number)
{
    const char *comma = t->n_results++ ? ", " : "";
    text_printf(&t->results, "%s%%v%d", comma, number);
    text_printf(&t->names, "%s%%y%d", comma, number);
}

char *fuse_text_finish(struct fuse_text *t, const char *graph_name)
{
    struct text *texts[] = {&t->ops, &t->params, &t->operands, &t->inputs, &t->results, &t->names};
    const char *names = text_string(&t->names);
    struct text all;
    text_init(&all, &allocator_default);
    text_printf(&all, "graph @%s opset(\"\": 26) ir_version(13) (%s) -> (%s) {\n", graph_name,
                text_string(&t->inputs), names);
    text_printf(&all, "%s = fuse(%s) {\nbody(%s) {\n", names, text_string(&t->operands),
                text_string(&t->params));
    text_printf(&all, "%sreturn(%s) } }\nreturn(%s)\n}\n", text_string(&t->ops),
                text_string(&t->results), names);
    char *text = strdup(text_string(&all));
    text_free(&all);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_free(texts[i]);
    return text;
}
