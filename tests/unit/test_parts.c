/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with scratch memory per part: the same bytes for any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

/* The parts of a parallel loop one after the other, the last one first. */
static void backwards(int threads, int64_t count, team_body body, void *context)
{
    for (int64_t t = threads - 1; t >= 0; t--)
        body(context, count * t / threads, count * (t + 1) / threads);
}

static const int64_t shape[4] = {3, 16, 40, 40};
#define COUNT (3 * 16 * 40 * 40)
static float x[COUNT], channel[16];
static const int64_t k = 5, sizes[4] = {3, 16, 33, 60}, edges[8] = {1, 0, 2, 3, 0, 1, 0, 5};

static void add_operands(struct op_run *t)
{
    op_add(t, TSSA_FLOAT, 4, shape, x);
    switch (t->op->info->id) {
    case IR_OP_TopK:
        op_add(t, TSSA_INT64, 0, NULL, &k);
        break;
    case IR_OP_Pad:
        op_string(t, "mode", "reflect");
        op_add(t, TSSA_INT64, 1, (const int64_t[]){8}, edges);
        break;
    case IR_OP_Resize:
        op_string(t, "mode", "linear");
        op_absent(t);
        op_absent(t);
        op_add(t, TSSA_INT64, 1, (const int64_t[]){4}, sizes);
        break;
    case IR_OP_InstanceNormalization:
    case IR_OP_BatchNormalization:
        for (int i = 0; i < (t->op->info->id == IR_OP_BatchNormalization ? 4 : 2); i++)
            op_add(t, TSSA_FLOAT, 1, (const int64_t[]){16}, channel);
        break;
    case IR_OP_LayerNormalization:
        op_add(t, TSSA_FLOAT, 3, (const int64_t[]){16, 1, 1}, channel);
        break;
    default:
        break;
    }
}

/* axis 0: the default one. */
static void run_with(struct op_run *t, enum ir_op_id id, int axis, int threads)
{
    static const int64_t kernel[2] = {3, 3}, strides[2] = {2, 1}, pads[4] = {1, 1, 1, 1};
    op_begin(t, id, 0);
    static struct team team; /* of one run at a time */
    team = (struct team){.threads = threads, .parallel_for = threads > 1 ? backwards : NULL};
    t->env.team = &team;
    if (id == IR_OP_MaxPool || id == IR_OP_AveragePool) {
        op_ints(t, "kernel_shape", 2, kernel);
        op_ints(t, "strides", 2, strides);
        op_ints(t, "pads", 4, pads);
    }
    if (axis)
        op_int(t, "axis", axis);
    op_int(t, "size", 5);          /* LRN */
    op_int(t, "training_mode", 1); /* BatchNormalization */
    add_operands(t);
    op_outputs(t, id == IR_OP_MaxPool || id == IR_OP_TopK ? 2 : 1);
    op_go(t);
}

static void test_threads(void **state)
{
    (void)state;
    static const struct {
        enum ir_op_id id;
        int axis;
    } ops[] = {
        {IR_OP_Softmax, 0},
        {IR_OP_Softmax, 1},
        {IR_OP_LogSoftmax, 0},
        {IR_OP_Hardmax, 0},
        {IR_OP_Hardmax, 1},
        {IR_OP_TopK, 0},
        {IR_OP_TopK, 1},
        {IR_OP_MaxPool, 0},
        {IR_OP_AveragePool, 0},
        {IR_OP_GlobalAveragePool, 0},
        {IR_OP_Resize, 0},
        {IR_OP_InstanceNormalization, 0},
        {IR_OP_BatchNormalization, 0},
        {IR_OP_LayerNormalization, 0},
        {IR_OP_LRN, 0},
        {IR_OP_Pad, 0},
    };
    random_floats(x, COUNT, 1);
    random_floats(channel, 16, 2);
    for (int i = 0; i < 16; i++)
        channel[i] += 2;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int threads = 2; threads < 8; threads += 5) {
            struct op_run one, many;
            run_with(&one, ops[i].id, ops[i].axis, 1);
            run_with(&many, ops[i].id, ops[i].axis, threads);
            for (int r = 0; r < 2; r++) {
                if (one.outputs[r].kind == TSSA_KIND_NONE)
                    continue;
                size_t bytes = tensor_bytes(&one.outputs[r].tensor);
                assert_int_equal(tensor_bytes(&many.outputs[r].tensor), bytes);
                assert_memory_equal(one.outputs[r].tensor.data, many.outputs[r].tensor.data, bytes);
            }
            op_close(&one);
            op_close(&many);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
