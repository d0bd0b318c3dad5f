/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of iterations write into what a loop carries on (ir/update.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "ir/infer.h"
#include "ir/ir.h"
#include "ir/parser.h"
#include "ir/update.h"

/* A loop of `trips` whose kernel writes row `row` of what it carries, and goes on while `stays`. */
#define WRITES(trips, row, stays)                                                                  \
    "graph @g opset(\"\": 18) (%x: f32[8], %s: f32[5, 8], %b: bool[], %k: i64[]) -> (%y) {\n"      \
    " %n = Constant() {value = i64[] " trips "}\n"                                                 \
    " %y = Loop(%n, _, %s) { body(%i: i64[], %c: bool[], %t: f32[5, 8]) {\n"                       \
    " %f = fuse(%t, %x, " row ") { body(%p: f32[5, 8], %q: f32[8], %r: i64[]) {\n"                 \
    " %e = Exp(%q)\n %a = assign(%p, %e, %r) {rule = [select(0, $0)]}\n return(%a) } }\n"          \
    " return(" stays ", %f) } }\n return(%y)\n}\n"

static const struct ir_op *find_fuse(const struct ir_graph *graph)
{
    const struct ir_op *op = graph->body->first;
    while (!ir_op_is(op, IR_OP_Loop))
        op = op->next;
    op = op->blocks[0]->first;
    while (!ir_op_is(op, IR_OP_fuse))
        op = op->next;
    return op;
}

static void rows_of_all_iterations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool all;
    } rows[] = {{WRITES("5", "%i", "%c"), true},
                {WRITES("4", "%i", "%c"), false},
                {WRITES("6", "%i", "%c"), false},
                {WRITES("5", "%k", "%c"), false},
                {WRITES("5", "%i", "%b"), false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ir_graph *graph;
        uint32_t operand = UINT32_MAX;
        no_error(ir_parse(&allocator_default, rows[i].text, strlen(rows[i].text), &graph));
        no_error(ir_infer_graph(graph));
        const struct ir_op *fuse = find_fuse(graph);
        assert_true(ir_fuse_updates(fuse, 0, &operand));
        assert_int_equal(operand, 0);
        assert_int_equal(ir_fuse_writes_all(fuse, 0), rows[i].all);
        ir_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_all_iterations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
