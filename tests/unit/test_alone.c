/* SPDX-License-Identifier: Apache-2.0 */
/* Which operators the CPU makes a kernel of by themselves: by how long their rows are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/gir_build.h"
#include "common/test_device.h"
#include "ir/fuse.h"

static void expect(const char *body, const char *params, bool alone)
{
    char text[512];
    snprintf(text, sizeof text,
             "graph @g opset(\"\": 23) ir_version(10) (%s) -> (%%y) {\n"
             "  %%k = Constant() {value = i64[1] [-1]}\n  %%y = %s\n  return(%%y)\n}\n",
             params, body);
    struct ir_graph *graph = gir_parse_graph(text);
    const struct ir_fusion *fusion = device_find(NULL)->fusion(test_device());
    const struct ir_op *op = ir_block_return(graph->body)->prev;
    if (fusion->takes_alone(fusion->user, op) != alone)
        fail_msg("%s of %s", body, params);
    ir_graph_free(graph);
}

static void reductions(void **state)
{
    (void)state;
    expect("ReduceMax(%x, %k)", "%x: f32[N, 24]", true);
    expect("ReduceMax(%x, %k)", "%x: f32[N, 25]", false);
    expect("ReduceLogSumExp(%x, %k)", "%x: f32[N, 48]", true);
    expect("ReduceLogSumExp(%x, %k)", "%x: f32[N, 49]", false);
    expect("ReduceSum(%x, %k)", "%x: f32[N, 64]", true);
    expect("ReduceSum(%x, %k)", "%x: f32[N, 129]", false);
    expect("ReduceSum(%x, %k)", "%x: f32[N, M]", false);
    expect("ReduceSum(%x, %k)", "%x: f32[N, 1]", false);
    expect("ReduceSum(%x)", "%x: f32[4, 16]", true);
    expect("ArgMax(%x) {axis = 1}", "%x: f32[N, 1000]", true);
    expect("ArgMax(%x) {axis = 1}", "%x: f32[N, 48]", true);
    expect("ArgMax(%x) {axis = 1}", "%x: f32[N, 49]", false);
    expect("ArgMax(%x) {axis = 0}", "%x: f32[64, N]", false);
}

static void normalizations(void **state)
{
    (void)state;
    expect("Softmax(%x)", "%x: f32[N, M]", true);
    expect("LayerNormalization(%x, %s)", "%x: f32[N, 512], %s: f32[512]", true);
    expect("LayerNormalization(%x, %s)", "%x: f32[N, 511], %s: f32[511]", false);
    expect("LayerNormalization(%x, %s)", "%x: f32[N, 24], %s: f32[24]", true);
    expect("LayerNormalization(%x, %s)", "%x: f32[N, 25], %s: f32[25]", false);
    expect("InstanceNormalization(%x, %s, %s)", "%x: f32[N, 4, 32, 16], %s: f32[4]", true);
    expect("InstanceNormalization(%x, %s, %s)", "%x: f32[N, 4, H, W], %s: f32[4]", false);
    expect("Relu(%x)", "%x: f32[N, 512]", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reductions),
                                       cmocka_unit_test(normalizations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
