/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be gone from the workload models after level 2: loops, partial writes and sequences.
 * The table is the goal; docs/workloads.md says, for every loop that stays, why it must.
 *
 * The models in models/ are tested, and those in build/models, of full size, where they were built.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/value.h"
#include "onnx/importer.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"

/* No more than `most` ops whose name begins with `op` in programs whose name begins with `program`.
 * `branches`: those inside branches count too. A rare way through suppression, taken for more than
 * 10,000 boxes, has a loop over classes that writes to two lists by index. */
struct goal {
    const char *program, *op;
    int most;
    bool branches;
};

static const struct goal goals[] = {
    {"yolov3", "Loop", 0, false},      {"yolov3", "Scatter", 0, false},
    {"yolov3", "Sequence", 0, false},  {"yolov3", "ConcatFromSequence", 0, false},
    {"ssd", "Loop", 0, true},          {"ssd", "Scatter", 0, true},
    {"ssd", "Sequence", 0, true},      {"ssd", "ConcatFromSequence", 0, true},
    {"yolact", "Loop", 0, true},       {"yolact", "Scatter", 0, true},
    {"yolact", "Sequence", 0, true},   {"yolact", "ConcatFromSequence", 0, true},
    {"fcos", "Loop", 0, true},         {"fcos", "Scatter", 0, true},
    {"fcos", "Sequence", 0, true},     {"fcos", "ConcatFromSequence", 0, true},
    {"lstm", "ScatterND", 0, true},    {"get_started", "Loop", 0, true},
    {"t_loop", "Loop", 0, true},       {"multiscale_bbox", "Loop", 0, true},
    {"bbox_expand", "Loop", 0, true},  {"bbox_expand", "Scatter", 0, true},
    {"attention", "Loop", 1, true},    {"seq2seq", "Loop", 1, true},
    {"normalize", "Scatter", 0, true}, {"offset2bbox", "Scatter", 0, true},
};

static const char *name_of(const char *path)
{
    const char *end = strrchr(path, '/'), *start = end - 1;
    while (start > path && start[-1] != '/')
        start--;
    return start;
}

/* The goals are for one image; a model of several returns lists, and large ones keep the loop over
 * them. */
static bool has_batch(const char *name)
{
    const char *batch = strstr(name, "_b");
    return batch && batch[2] >= '0' && batch[2] <= '9';
}

static int count(const struct ir_block *block, const struct goal *goal)
{
    int found = 0;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        found += strncmp(op->info->name, goal->op, strlen(goal->op)) == 0;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            if (goal->branches || !ir_op_is(op, IR_OP_If))
                found += count(op->blocks[i], goal);
    }
    return found;
}

static int count_own(const struct ir_block *block)
{
    int found = 0;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        found += ir_op_is_own(op) && !ir_op_is(op, IR_OP_return) && !op->opaque;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            found += count_own(op->blocks[i]);
    }
    return found;
}

static struct ir_graph *optimize(const char *path)
{
    struct ir_graph *graph = NULL;
    struct evaluator evaluator;
    evaluator_init(&evaluator, &allocator_default);
    const struct pipeline pipeline = {.evaluate = evaluator_run, .evaluate_user = &evaluator};
    tssa_status *status = onnx_import_file(&allocator_default, path, NULL, &graph);
    if (!status)
        status = pipeline_run(graph, PIPELINE_MAX_LEVEL, &pipeline);
    if (status)
        fail_msg("%s: %s", path, tssa_status_message(status));
    evaluator_free(&evaluator);
    return graph;
}

static void one_model(void **state)
{
    const char *path = *state, *name = name_of(path);
    struct ir_graph *graph = optimize(path);
    int failed = 0;
    for (size_t i = 0; i < sizeof goals / sizeof *goals; i++) {
        if (strncmp(name, goals[i].program, strlen(goals[i].program)) != 0 || has_batch(name))
            continue;
        int found = count(graph->body, &goals[i]);
        if (found > goals[i].most)
            print_error("%.40s: %d %s, at most %d should be left\n", name, found, goals[i].op,
                        goals[i].most);
        failed += found > goals[i].most;
    }
    if (count_own(graph->body) > 0) {
        print_error("%.40s: ops of tssa's own are left\n", name);
        failed++;
    }
    ir_graph_free(graph);
    assert_int_equal(failed, 0);
}

int main(void)
{
    glob_t models;
    if (glob(TSSA_SOURCE_DIR "/models/*/model.onnx", 0, NULL, &models) != 0)
        return 1;
    glob(TSSA_SOURCE_DIR "/build/models/*/model.onnx", GLOB_APPEND, NULL, &models);
    struct CMUnitTest *tests = calloc(models.gl_pathc, sizeof *tests);
    for (size_t i = 0; tests && i < models.gl_pathc; i++)
        tests[i] = (struct CMUnitTest){.name = models.gl_pathv[i] + strlen(TSSA_SOURCE_DIR) + 1,
                                       .test_func = one_model,
                                       .initial_state = models.gl_pathv[i]};
    int failed = tests ? _cmocka_run_group_tests("goals", tests, models.gl_pathc, NULL, NULL) : 1;
    free(tests);
    globfree(&models);
    return failed;
}
