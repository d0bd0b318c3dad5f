/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run state has before its first run: where shapes are known the slab, which that run and
 * later ones keep, with the scratch memory that kernels of a library will need.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/model_text.h"
#include "common/no_error.h"
#include "common/test_alloc.h"
#include "common/test_device.h"
#include "device/device.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"
#include "runtime/ready.h"

#define GRAPH(parameters, ops)                                                                     \
    "graph @g opset(\"\": 21) ir_version(8) (" parameters ") -> (%y) {\n" ops "return(%y)\n}\n"
/* The result is small: of a large one, the layout that takes its time would leave some to the pool.
 */
#define CHAIN                                                                                      \
    "%a = Neg@13(%x)\n%b = Mul@14(%a, %x)\n%c = Sub@14(%b, %a)\n%d = Max@13(%b, %a, %c)\n"         \
    "%e = Add@14(%d, %c)\n%y = ReduceSum@13(%e)\n"
#define KNOWN GRAPH("%x: f32[4, 4096]", CHAIN)
#define OPEN GRAPH("%x: f32[N, 4096]", CHAIN)
#define LARGE GRAPH("%x: f32[8, 1048576]", CHAIN)
#define CONV                                                                                       \
    "%t = Conv@11(%x, %w) {pads = [1, 1, 1, 1]}\n%u = Neg@13(%t)\n"                                \
    "%y = Conv@11(%u, %v) {pads = [1, 1, 1, 1]}\n"
#define ROWS 4 /* of N */

struct program {
    struct ir_graph *graph;
    struct plan *plan;
    struct value operands[3];
    const struct value *inputs[3];
};

static void program_open(struct program *p, const char *text)
{
    *p = (struct program){.graph = NULL};
    no_error(ir_parse(&allocator_default, text, strlen(text), &p->graph));
    no_error(ir_infer_graph(p->graph));
    no_error(plan_create(p->graph, test_device(), &p->plan));
    for (uint32_t i = 0; i < p->graph->body->n_params; i++) {
        const struct ir_type *type = p->graph->body->params[i]->type;
        struct tensor *tensor = &p->operands[i].tensor;
        int64_t dims[TSSA_MAX_RANK];
        for (int k = 0; k < type->rank; k++)
            if (!dim_is_const(type->dims[k], &dims[k]))
                dims[k] = ROWS;
        no_error(tensor_create(&allocator_default, TSSA_FLOAT, type->rank, dims, tensor));
        for (int64_t k = 0; k < (int64_t)tensor_count(tensor); k++)
            ((float *)tensor->data)[k] = (float)(k % 7 - 3);
        p->operands[i].kind = TSSA_KIND_TENSOR;
        p->inputs[i] = &p->operands[i];
    }
}

static void program_close(struct program *p)
{
    for (uint32_t i = 0; i < p->graph->body->n_params; i++)
        value_release(&p->operands[i]);
    plan_free(p->plan);
    ir_graph_free(p->graph);
}

static struct run *new_run(const struct program *p, const tssa_allocator *allocator)
{
    struct run *run;
    no_error(run_create(p->plan, allocator, NULL, false, &run));
    return run;
}

/* Computes what a state does of which nothing was made before. */
static void expect_run(const struct program *p, struct run *run)
{
    struct run *fresh = new_run(p, &allocator_default);
    struct value expected = {.kind = TSSA_KIND_NONE}, y = {.kind = TSSA_KIND_NONE};
    no_error(run_execute(fresh, p->inputs, &expected));
    no_error(run_execute(run, p->inputs, &y));
    assert_true(tensor_same_shape(&y.tensor, &expected.tensor));
    assert_memory_equal(y.tensor.data, expected.tensor.data, tensor_bytes(&y.tensor));
    value_release(&expected);
    value_release(&y);
    run_free(fresh);
}

static const struct slab_part *part_of(const struct run *run)
{
    return &run->slab.parts[SPACE_HOST];
}

/* ---- The slab -------------------------------------------------------------------------------- */

/* The whole pages of it. */
static void expect_there(const struct slab_part *part)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)part->memory;
    const uintptr_t begin = (from + page - 1) / page * page;
    const size_t n = (from + part->size - begin) / page;
    unsigned char *there = calloc(n, 1);
    assert_non_null(there);
    assert_true(n > 4);
    assert_int_equal(mincore((void *)begin, n * page, there), 0);
    for (size_t i = 0; i < n; i++)
        assert_true(there[i] & 1);
    free(there);
}

static void test_known_shapes(void **state)
{
    struct program p;
    (void)state;
    program_open(&p, KNOWN);
    struct run *run = new_run(&p, &allocator_default);
    slab_get_ready(run);
    const struct slab_part *part = part_of(run);
    void *memory = part->memory;
    const size_t size = part->size;
    assert_true(memory && run_kept(run) == size);
    expect_there(part);
    for (int i = 0; i < 5; i++) {
        expect_run(&p, run);
        assert_ptr_equal(part->memory, memory);
        assert_int_equal(part->size, size);
        /* the layout that takes its time comes when it does otherwise */
        assert_int_equal(run->slab.layouts, i < 2 ? 1 : 2);
    }
    run_free(run);
    program_close(&p);
}

/* What the first run is left to do. */
static void expect_none(const char *text)
{
    struct program p;
    program_open(&p, text);
    struct run *run = new_run(&p, &allocator_default);
    slab_get_ready(run);
    assert_null(part_of(run)->memory);
    assert_int_equal(run_kept(run), 0);
    expect_run(&p, run);
    assert_non_null(part_of(run)->memory);
    run_free(run);
    program_close(&p);
}

static void test_others(void **state)
{
    (void)state;
    expect_none(OPEN);
    expect_none(LARGE);
}

static void test_no_memory(void **state)
{
    struct program p;
    bool through = false;
    (void)state;
    program_open(&p, KNOWN);
    for (long number = 0; !through; number++) {
        struct test_alloc failing;
        test_alloc_init(&failing);
        struct run *run = new_run(&p, &failing.allocator);
        failing.fail_at = failing.count + number;
        slab_get_ready(run);
        through = failing.count <= failing.fail_at;
        failing.fail_at = -1;
        assert_true(through || !run->slab.placed);
        expect_run(&p, run);
        run_free(run);
        assert_int_equal(failing.live, 0);
        assert_true(!through || number > 1);
    }
    program_close(&p);
}

/* ---- Scratch memory -------------------------------------------------------------------------- */

/* What the library's kernels expect is what they need, and in the slab from the first run on. */
static void test_scratch(void **state)
{
    static const char text[] =
        GRAPH("%x: f32[1, 16, 12, 12], %w: f32[32, 16, 3, 3], %v: f32[16, 32, 3, 3]", CONV);
    struct program p;
    size_t expected = 0;
    (void)state;
    program_open(&p, text);
    no_error(plan_get_ready(p.plan, UINT64_MAX));
    struct run *run = new_run(&p, &allocator_default);
    slab_get_ready(run);
    expect_run(&p, run);
    assert_false(run->env.missed && TSSA_HAVE_ONEDNN);
    for (uint32_t i = 0; i < p.plan->n_steps; i++) {
        expected += p.plan->scratch[i];
        if (TSSA_HAVE_ONEDNN)
            assert_int_equal(run->scratch[i].most, p.plan->scratch[i]);
    }
    assert_int_equal(expected > 0, TSSA_HAVE_ONEDNN);
    expect_run(&p, run);
    if (TSSA_HAVE_ONEDNN)
        assert_int_equal(run->slab.layouts, 1);
    run_free(run);
    program_close(&p);
}

/* ---- Sessions -------------------------------------------------------------------------------- */

static void expect_kept(const char *text, bool known)
{
    struct level_pair pair;
    tssa_memory_use use;
    level_pair_open(&pair, text, TSSA_COMPILE_OFF, 1);
    for (int i = 0; i < 2; i++) {
        no_error(tssa_session_memory(pair.sessions[i], &use));
        assert_int_equal(use.kept > 0, known);
        assert_true(use.last == 0 && use.peak == 0);
    }
    level_pair_close(&pair);
}

static void test_sessions(void **state)
{
    (void)state;
    expect_kept(KNOWN, true);
    expect_kept(OPEN, false);
    expect_kept(LARGE, false);
}

int main(void)
{
    /* Beside the tests' folder; see base/plugin.h. */
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_shapes), cmocka_unit_test(test_others),
        cmocka_unit_test(test_no_memory),    cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
