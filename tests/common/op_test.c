/* SPDX-License-Identifier: Apache-2.0 */
/* One op, inferred and run; see op_test.h. */
#include "common/op_test.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu/kernels.h"
#include "ir/infer.h"

void op_test_begin(struct op_test *t, enum ir_op_id id, int version)
{
    memset(t, 0, sizeof *t);
    t->id = id;
    t->version = version ? version : ir_op_bind(ir_op_info(id), IR_NEWEST_OPSET);
    t->graph = ir_graph_create(&allocator_default);
    assert_non_null(t->graph);
    pool_init(&t->pool, &allocator_default);
    arena_init(&t->arena, &allocator_default);
    t->team.threads = 1;
}

static struct ir_attr *new_attr(struct op_test *t, const char *name, enum ir_attr_kind kind)
{
    assert_true(t->n_attrs < OP_TEST_MAX);
    struct ir_attr *attr = &t->attrs[t->n_attrs++];
    attr->name = intern_str(&t->graph->strings, name);
    attr->kind = kind;
    return attr;
}

void op_test_int(struct op_test *t, const char *name, int64_t value)
{
    new_attr(t, name, IR_ATTR_INT)->i = value;
}

void op_test_float(struct op_test *t, const char *name, float value)
{
    new_attr(t, name, IR_ATTR_FLOAT)->f = value;
}

void op_test_str(struct op_test *t, const char *name, const char *value)
{
    struct ir_attr *attr = new_attr(t, name, IR_ATTR_STRING);
    attr->s.data = value;
    attr->s.size = strlen(value);
}

void op_test_ints(struct op_test *t, const char *name, size_t count, const int64_t *values)
{
    struct ir_attr *attr = new_attr(t, name, IR_ATTR_INTS);
    attr->ints = values;
    attr->count = count;
}

void op_test_in(struct op_test *t, tssa_dtype dtype, int rank, const int64_t *dims,
                const void *data)
{
    assert_true(t->n_in < OP_TEST_MAX);
    struct value *value = &t->in[t->n_in++];
    value->kind = TSSA_KIND_TENSOR;
    value->tensor.dtype = dtype;
    value->tensor.rank = rank;
    for (int i = 0; i < rank; i++)
        value->tensor.dims[i] = dims[i];
    value->tensor.data = (void *)(uintptr_t)data;
}

void op_test_absent(struct op_test *t)
{
    assert_true(t->n_in < OP_TEST_MAX);
    t->in[t->n_in++].kind = TSSA_KIND_NONE;
}

static struct ir_op *build(struct op_test *t, uint32_t n_out)
{
    struct ir_op *op = ir_op_create(t->graph, ir_op_info(t->id), t->n_in, n_out);
    assert_non_null(op);
    op->version = t->version;
    for (uint32_t i = 0; i < t->n_in; i++) {
        if (t->in[i].kind == TSSA_KIND_NONE)
            continue;
        struct ir_op *constant = ir_constant_create(t->graph, &t->in[i].tensor);
        assert_non_null(constant);
        ir_op_append(t->graph->body, constant);
        ir_op_set_operand(op, i, ir_result(constant, 0));
    }
    for (uint32_t i = 0; i < t->n_attrs; i++)
        assert_true(ir_op_set_attr(t->graph, op, &t->attrs[i]));
    ir_op_append(t->graph->body, op);
    return op;
}

static tssa_status *infer_and_run(struct op_test *t, struct ir_op *op)
{
    TRY(ir_infer_graph(t->graph));
    const struct cpu_kernel *kernel = cpu_kernel_find(op);
    assert_non_null(kernel);
    const void *state = NULL;
    if (kernel->prepare)
        TRY(kernel->prepare(op, &t->arena, &state));
    struct kernel_env env = {.pool = &t->pool, .strings = &t->arena, .team = &t->team};
    const struct value *in[OP_TEST_MAX];
    struct value *out[OP_TEST_MAX];
    for (uint32_t i = 0; i < t->n_in; i++)
        in[i] = t->in[i].kind == TSSA_KIND_NONE ? NULL : &t->in[i];
    for (uint32_t i = 0; i < op->n_results; i++)
        out[i] = &t->out[i];
    struct kernel_args args = {.env = &env,
                               .state = state,
                               .op = op,
                               .n_inputs = t->n_in,
                               .n_outputs = op->n_results,
                               .inputs = in,
                               .outputs = out};
    return kernel->run(&args);
}

void op_test_run(struct op_test *t, uint32_t n_out)
{
    struct ir_op *op = build(t, n_out);
    tssa_status *status = infer_and_run(t, op);
    if (status) {
        print_message("%s\n", tssa_status_message(status));
        tssa_status_free(status);
        fail();
    }
    for (uint32_t i = 0; i < n_out; i++) {
        const struct tensor *tensor = &t->out[i].tensor;
        assert_int_equal(t->out[i].kind, TSSA_KIND_TENSOR);
        assert_true(
            type_compatible(op->results[i].type, type_tensor_const(&t->graph->types, tensor->dtype,
                                                                   tensor->rank, tensor->dims)));
    }
}

void op_test_refused(struct op_test *t, uint32_t n_out)
{
    tssa_status *status = infer_and_run(t, build(t, n_out));
    assert_non_null(status);
    tssa_status_free(status);
}

void op_test_end(struct op_test *t)
{
    for (uint32_t i = 0; i < OP_TEST_MAX; i++)
        value_release(&t->out[i]);
    pool_clear(&t->pool);
    arena_clear(&t->arena);
    ir_graph_free(t->graph);
}

void op_test_fill(float *values, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
}

void op_test_close(double actual, double expected, double tolerance, const char *what, size_t index)
{
    if ((isnan(actual) && isnan(expected)) || actual == expected ||
        fabs(actual - expected) <= tolerance * (1 + fabs(expected)))
        return;
    fail_msg("%s[%zu] is %.17g, not %.17g", what, index, actual, expected);
}
