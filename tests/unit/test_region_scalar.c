/* SPDX-License-Identifier: Apache-2.0 */
/* SSA scalars as dims: arithmetic is looked through by the rows' programs, but for what may have
 * wrapped around. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/region.h"
#include "ir/verifier.h"

static const struct {
    const char *op;  /* that makes %y of %i and %j, any numbers */
    const char *dim; /* what that is; NULL: a symbol of its own */
} cases[] = {
    {"%y = Add(%i, %j)", "i + j"},
    {"%s = Sub(%i, %j)\n %y = Mul(%s, %two)", "2*i - 2*j"},
    {"%s = Neg(%i)\n %y = Sub(%s, %two)", "-i - 2"},
    {"%y = Min(%i, %j)", "min(i, j)"},
    {"%y = Max(%i, %two)", "max(i, 2)"},
    {"%s = Min(%i, %two)\n %t = Max(%s, %two)\n %y = Add(%t, %j)", "2 + j"},
    /* Sums that have wrapped around are not what they seem to be, when they are compared. */
    {"%s = Add(%i, %j)\n %y = Min(%s, %two)", NULL},
    {"%s = Add(%i, %i)\n %y = Max(%s, %two)", NULL},
    {"%s = Mul(%i, %two)\n %y = Abs(%s)", NULL},
    {"%s = Add(%i, %two)\n %y = Div(%s, %two)", NULL},
    /* Not of a fold of three, nor where a condition chooses. */
    {"%y = Min(%i, %j, %two)", NULL},
    {"%c = Less(%i, %j)\n %y = Where(%c, %i, %j)", NULL},
};

/* The dim that the text is, with the symbols of the values %i and %j. */
static const struct dim *expected(struct region_space *space, const struct dim *i,
                                  const struct dim *j, const char *text)
{
    struct dim_table *dims = &space->graph->dims;
    const struct dim *two = dim_const(dims, 2);
    if (strcmp(text, "i + j") == 0)
        return dim_add(dims, i, j);
    if (strcmp(text, "2*i - 2*j") == 0)
        return dim_mul(dims, two, dim_sub(dims, i, j));
    if (strcmp(text, "-i - 2") == 0)
        return dim_sub(dims, dim_sub(dims, dim_const(dims, 0), i), two);
    if (strcmp(text, "min(i, j)") == 0)
        return dim_min(dims, i, j);
    if (strcmp(text, "max(i, 2)") == 0)
        return dim_max(dims, i, two);
    return dim_add(dims, two, j);
}

static void looks_through_arithmetic(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        char text[512];
        struct ir_graph *graph;
        struct region_space space;
        snprintf(text, sizeof text,
                 "graph @g opset(\"\": 21) (%%i: i64[], %%j: i64[]) -> (%%y) {\n"
                 " %%two = Constant() {value = i64[] 2}\n %s\n return(%%y)\n}\n",
                 cases[n].op);
        no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
        no_error(ir_infer_graph(graph));
        no_error(ir_verify(graph));
        region_space_init(&space, graph);
        const struct dim *i = region_scalar(&space, graph->body->params[0]),
                         *j = region_scalar(&space, graph->body->params[1]),
                         *y = region_scalar(&space, ir_operand(ir_block_return(graph->body), 0));
        if (cases[n].dim ? y != expected(&space, i, j, cases[n].dim)
                         : y->kind != DIM_SYMBOL || y == i || y == j)
            fail_msg("%s: is not %s", cases[n].op, cases[n].dim ? cases[n].dim : "a symbol");
        region_space_free(&space);
        ir_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(looks_through_arithmetic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
