/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grids (gir/grid.h): what a GPU would fuse of the committed models, of random fuse ops and of
 * random imperative programs has, as kernels of a thread for each element, the interpreter's bits,
 * in three orders of threads, run by the shim. What it finds wrong, they find.
 */
/* ctest-labels: random */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/committed_models.h"
#include "common/gir_build.h"
#include "common/grid_device.h"
#include "common/imperative_check.h"
#include "common/kernel_check.h"
#include "common/no_error.h"
#include "common/random_imperative.h"
#include "common/random_programs.h"
#include "common/shim_cuda.h"
#include "common/shim_device.h"

/* ---- Models ---------------------------------------------------------------------------------- */

static void open_session(struct model_run *run, const char *path, tssa_session **session)
{
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    const tssa_session_options options = {.struct_size = sizeof options};
    no_error(model_run_open(run, path, 0));
    no_error(tssa_model_optimize(run->model, &optimize));
    no_error(session_create_on(run->model, grid_device(), &options, session));
}

static void run_model(const char *path)
{
    struct model_run run = {0};
    tssa_session *session;
    open_session(&run, path, &session);
    no_error(model_run_read_inputs(&run, path));
    no_error(model_run_execute(&run));
    kernel_compare_run(session, &run, path);
    tssa_session_free(session);
    model_run_close(&run);
}

static void find_grids_of_model(void **state)
{
    run_model(*state);
}

static void one_model(void **state)
{
    for (int order = 0; order < 3; order++) {
        shim_order(order);
        run_model(*state);
    }
}

/* ---- Random programs ------------------------------------------------------------------------- */

#define USUAL_FUSED 40 /* of each kind */
#define USUAL_IMPERATIVE 80

static uint64_t first_program(void)
{
    uint64_t seed;
    return programs_seed(&seed) ? seed : 0;
}

static unsigned long n_programs(unsigned long usual)
{
    uint64_t seed;
    return programs_seed(&seed) ? 1 : programs_count(usual);
}

/* Loops are no grids yet. */
static void check_fused(void)
{
    for (int kind = 0; kind < KERNEL_KINDS; kind++)
        for (unsigned long i = 0; i < n_programs(USUAL_FUSED) && kind != KERNEL_LOOPS; i++)
            kernel_check(kind, first_program() + i, grid_context());
}

/* Gathers, of which random programs have few, with indices that are negative, or wrong. */
static const char *const gathers[] = {
    FUSED_GRAPH("%x: f32[A, 5], %i: i64[B]", "%x, %i",
                "%p: f32[A, 5], %k: i64[B]) { %g = Gather(%p, %k) {axis = 1} %n = Neg(%g) "
                "return(%n)",
                "%y"),
    FUSED_GRAPH("%x: f32[5, A], %i: i32[B, 2]", "%x, %i",
                "%p: f32[5, A], %k: i32[B, 2]) { %s = Sqrt(%p) %g = Gather(%s, %k) return(%g)",
                "%y"),
    FUSED_GRAPH("%x: f32[A, 6], %i: i64[A, 3]", "%x, %i",
                "%p: f32[A, 6], %k: i64[A, 3]) { %g = GatherElements(%p, %k) {axis = -1} "
                "return(%g)",
                "%y"),
    FUSED_GRAPH("%x: f32[6, 4, A], %i: i64[B, 2]", "%x, %i",
                "%p: f32[6, 4, A], %k: i64[B, 2]) { %g = GatherND(%p, %k) return(%g)", "%y"),
    FUSED_GRAPH("%x: f32[A, 6, C], %i: i64[A, B, 1]", "%x, %i",
                "%p: f32[A, 6, C], %k: i64[A, B, 1]) { %g = GatherND(%p, %k) {batch_dims = 1} "
                "return(%g)",
                "%y"),
    FUSED_GRAPH("%x: f32[6, A], %i: i64[], %j: i64[1]", "%x, %i, %j",
                "%p: f32[6, A], %k: i64[], %l: i64[1]) { "
                "%a = access(%p, %k) {rule = [select(0, $0)]} "
                "%b = access(%p, %l) {rule = [select(0, $0)]} %s = Add(%a, %b) return(%s)",
                "%y"),
};

static void check_gathers(void)
{
    for (size_t i = 0; i < sizeof gathers / sizeof *gathers; i++)
        for (uint64_t seed = 0; seed < 8; seed++)
            kernel_check_text(KERNEL_FUSE, gathers[i], seed, grid_context());
}

/* With wrong indices now and then, which is no matter here: the device looks at what comes of it.
 */
static void run_imperative(uint64_t seed)
{
    static const int64_t trips[] = {2, 0, 3};
    struct random_imperative program = random_imperative(seed);
    struct ir_graph *graph = NULL;
    struct kernel_program p = {0};
    no_error(imperative_fused(program.text, grid_device()->fusion(grid_context()), &graph));
    if (ir_block_is_imperative(graph->body) ||
        ir_block_return(graph->body)->n_operands > KERNEL_MAX_VALUES) {
        ir_graph_free(graph);
        free(program.text);
        return;
    }
    kernel_program_open(&p, graph, grid_context());
    for (size_t i = 0; i < sizeof trips / sizeof *trips; i++) {
        struct random_imperative_inputs in;
        random_imperative_inputs(&in, &program, trips[i], i == 0);
        tssa_status_free(run_execute(p.run, in.pointers, p.outputs));
        for (uint32_t k = 0; k < p.n_outputs; k++)
            value_release(&p.outputs[k]);
    }
    kernel_program_close(&p);
    free(program.text);
}

static void check_imperative(void)
{
    for (unsigned long i = 0; i < n_programs(USUAL_IMPERATIVE); i++)
        run_imperative(first_program() + i);
}

static uint32_t n_of_models; /* kernels: the first ones */

static void find_grids(void **state)
{
    (void)state;
    n_of_models = shim_count();
    assert_int_equal(grid_counts.refused, 0); /* of models all are grids */
    check_fused();
    check_gathers();
    check_imperative();
    grid_tells = false;
    shim_compile();
    assert_true(shim_count() > 0);
    assert_int_equal(shim_refused(), 0);
}

static void random_grids(void **state)
{
    (void)state;
    for (int order = 0; order < 3; order++) {
        shim_order(order);
        check_fused();
        check_gathers();
        check_imperative();
    }
}

/* ---- CUDA C ---------------------------------------------------------------------------------- */

static void compiles_as_cuda(void **state)
{
    (void)state;
    shim_compile_as_cuda(n_of_models);
}

/* ---- All ------------------------------------------------------------------------------------- */

static void grids_ran(void **state)
{
    (void)state;
    print_message("%u kernels; %u plans had grids, %u fuse ops were none; %u runs, %u not told, "
                  "%u that wrote into what is carried, %u failures found\n",
                  (unsigned)shim_count(), (unsigned)grid_counts.made, (unsigned)grid_counts.refused,
                  (unsigned)grid_counts.ran, (unsigned)grid_counts.not_told,
                  (unsigned)grid_counts.updated, (unsigned)grid_failures);
    assert_true(grid_counts.updated > 20);
    assert_true(grid_counts.ran > 50);
    assert_int_equal(grid_counts.not_told, 0);
}

static int clean_up(void **state)
{
    (void)state;
    shim_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest first[] = {cmocka_unit_test(find_grids),
                                       cmocka_unit_test(compiles_as_cuda)},
                            last[] = {cmocka_unit_test(random_grids), cmocka_unit_test(grids_ran)};
    grid_tells = getenv("TSSA_TELL") != NULL; /* which fuse ops are no grids */
    return committed_models_test(find_grids_of_model) + cmocka_run_group_tests(first, NULL, NULL) +
           committed_models_test(one_model) + cmocka_run_group_tests(last, NULL, clean_up);
}
