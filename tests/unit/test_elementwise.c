/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element-wise kernels against values computed here, independently: formulas in long double, and a naive
 * indexer for broadcasting.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/kernel.h"

#define EW(id, ...) extern const struct cpu_kernel cpu_kernel_##id;
#define OP(...)
#include "ir/ops.def"
#undef EW
#undef OP

/* ---- One op, run on tensors ----------------------------------------------------------------------- */

struct fixture {
    struct ir_graph *graph;
    struct pool pool;
    struct arena arena;
    struct kernel_env env;
};

static int setup(void **state)
{
    static struct fixture f;
    f.graph = ir_graph_create(&allocator_default);
    pool_init(&f.pool, &allocator_default);
    arena_init(&f.arena, &allocator_default);
    f.env = (struct kernel_env){.pool = &f.pool, .strings = &f.arena};
    *state = &f;
    return f.graph ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    pool_clear(&f->pool);
    arena_clear(&f->arena);
    ir_graph_free(f->graph);
    return 0;
}

static struct value borrow(tssa_dtype dtype, int rank, const int64_t *dims, void *data)
{
    struct value value = {.kind = TSSA_KIND_TENSOR};
    value.tensor.dtype = dtype;
    value.tensor.rank = rank;
    for (int i = 0; i < rank; i++)
        value.tensor.dims[i] = dims[i];
    value.tensor.data = data;
    return value;
}

static struct value vector(tssa_dtype dtype, int64_t n, void *data)
{
    return borrow(dtype, 1, &n, data);
}

static tssa_status *try_run(struct fixture *f, struct ir_op *op, const struct cpu_kernel *kernel,
                            uint32_t n, const struct value *const *in, struct value *out)
{
    const void *state = NULL;
    if (kernel->prepare)
        TRY(kernel->prepare(op, &f->arena, &state));
    struct value *outputs[1] = {out};
    out->kind = TSSA_KIND_NONE;
    struct kernel_args args = {.env = &f->env,
                               .state = state,
                               .op = op,
                               .n_inputs = n,
                               .n_outputs = 1,
                               .inputs = in,
                               .outputs = outputs};
    return kernel->run(&args);
}

static struct ir_op *make_op(struct fixture *f, enum ir_op_id id, uint32_t n)
{
    struct ir_op *op = ir_op_create(f->graph, ir_op_info(id), n, 1);
    assert_non_null(op);
    return op;
}

#define RUN(f, Id, out, ...)                                                                       \
    run_op(f,                                                                                      \
           make_op(f, IR_OP_##Id, sizeof((const struct value *[]){__VA_ARGS__}) / sizeof(void *)), \
           &cpu_kernel_##Id, (const struct value *[]){__VA_ARGS__},                                \
           sizeof((const struct value *[]){__VA_ARGS__}) / sizeof(void *), out)

static void run_op(struct fixture *f, struct ir_op *op, const struct cpu_kernel *kernel,
                   const struct value *const *in, uint32_t n, struct value *out)
{
    tssa_status *status = try_run(f, op, kernel, n, in, out);
    if (status)
        fail_msg("%s", tssa_status_message(status));
}

static void test_add(void **state)
{
    struct fixture *f = *state;
    float a[4] = {1, 2, 3, 4}, b[4] = {0.5f, NAN, INFINITY, -4};
    struct value x = vector(TSSA_FLOAT, 4, a), y = vector(TSSA_FLOAT, 4, b), z;
    RUN(f, Add, &z, &x, &y);
    const float *r = z.tensor.data;
    assert_true(r[0] == 1.5f && r[1] != r[1] && r[2] == INFINITY && r[3] == 0);
    value_release(&z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_add, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
