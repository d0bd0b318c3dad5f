/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: results that are alive together never share bytes, for random lifetimes and sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/placement.h"

#define MAX_PLACED 200

struct fixture {
    struct ir_graph *graph;
    struct plan plan;
    struct plan_placed placed[MAX_PLACED];
    size_t offsets[MAX_PLACED], sizes[MAX_PLACED], slab;
};

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void setup(struct fixture *f)
{
    f->graph = ir_graph_create(&allocator_default);
    assert_non_null(f->graph);
    f->plan = (struct plan){.graph = f->graph, .placed = f->placed};
}

static const struct ir_type *bytes_type(struct fixture *f, int64_t bytes)
{
    return type_tensor_const(&f->graph->types, TSSA_UINT8, 1, &bytes);
}

static void compute(struct fixture *f, uint32_t count, const int64_t *symbols)
{
    f->plan.n_placed = count;
    assert_null(
        placement_compute(&f->plan, symbols, &allocator_default, f->offsets, f->sizes, &f->slab));
}

static void check_disjoint(const struct fixture *f, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (f->offsets[i] == SIZE_MAX)
            continue;
        assert_int_equal(f->offsets[i] % TENSOR_ALIGNMENT, 0);
        assert_true(f->offsets[i] + f->sizes[i] <= f->slab);
        for (uint32_t j = i + 1; j < count; j++) {
            const struct plan_placed *a = &f->placed[i], *b = &f->placed[j];
            bool together = a->first <= b->last && b->first <= a->last;
            bool overlap = f->offsets[j] != SIZE_MAX &&
                           f->offsets[i] < f->offsets[j] + f->sizes[j] &&
                           f->offsets[j] < f->offsets[i] + f->sizes[i];
            assert_false(together && overlap);
        }
    }
}

static void test_random_lifetimes(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t random = 1;
    setup(&f);
    for (int round = 0; round < 300; round++) {
        uint32_t count = 1 + next_random(&random) % MAX_PLACED, step = 0;
        for (uint32_t i = 0; i < count; i++) {
            step += next_random(&random) % 3;
            f.placed[i] = (struct plan_placed){.output = i,
                                               .first = step,
                                               .last = step + next_random(&random) % 20,
                                               .type = bytes_type(&f, next_random(&random) % 5000)};
        }
        compute(&f, count, NULL);
        check_disjoint(&f, count);
    }
    ir_graph_free(f.graph);
}

/* A chain needs two buffers, however long it is. */
static void test_chain_reuses_memory(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    for (uint32_t i = 0; i < 100; i++)
        f.placed[i] = (struct plan_placed){i, i, i + 1, bytes_type(&f, 1024)};
    compute(&f, 100, NULL);
    check_disjoint(&f, 100);
    assert_int_equal(f.slab, 2 * 1024);
    ir_graph_free(f.graph);
}

/* Sizes follow the symbols; what overflows is left to the pool. */
static void test_symbolic_sizes(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    const struct dim *n = dim_symbol(&f.graph->dims, "N");
    const struct dim *dims[2] = {n, n};
    uint32_t numbers[64] = {0};
    assert_true(n->id < 64);
    numbers[n->id] = 1;
    f.plan.symbols = &n;
    f.plan.n_symbols = 1;
    f.plan.symbol_numbers = numbers;
    f.plan.n_symbol_numbers = 64;
    f.placed[0] = (struct plan_placed){0, 0, 1, type_tensor(&f.graph->types, TSSA_FLOAT, 2, dims)};
    compute(&f, 1, (const int64_t[]){8});
    assert_int_equal(f.sizes[0], 8 * 8 * 4);
    compute(&f, 1, (const int64_t[]){INT64_C(1) << 40});
    assert_int_equal(f.offsets[0], SIZE_MAX);
    assert_int_equal(f.slab, 0);
    ir_graph_free(f.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lifetimes),
        cmocka_unit_test(test_chain_reuses_memory),
        cmocka_unit_test(test_symbolic_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
