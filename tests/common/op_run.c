/* SPDX-License-Identifier: Apache-2.0 */
/* One op in a graph of its own; see op_run.h. */
#include "common/op_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/test_device.h"
#include "ir/infer.h"

uint64_t random_bits(struct random *random)
{
    /* xorshift64*; the state may not be 0. */
    uint64_t x = random->state ? random->state : 88172645463325252u;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * 2685821657736338717u;
}

int64_t random_int(struct random *random, int64_t low, int64_t high)
{
    return low + (int64_t)((random_bits(random) >> 16) % (uint64_t)(high - low + 1));
}

bool random_chance(struct random *random, int percent)
{
    return random_int(random, 0, 99) < percent;
}

/* Runs the parts one after the other, the last first, so that a body that relies on order fails. */
static void parts_in_turn(int threads, int64_t count, team_body body, void *context)
{
    for (int64_t part = threads - 1; part >= 0; part--)
        body(context, count * part / threads, count * (part + 1) / threads);
}

static const struct team test_team = {.threads = 3, .parallel_for = parts_in_turn};

void random_floats(float *values, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
}

void expect_close(double actual, double expected, double tolerance, const char *what, size_t index)
{
    if ((isnan(actual) && isnan(expected)) || actual == expected ||
        fabs(actual - expected) <= tolerance * (1 + fabs(expected)))
        return;
    fail_msg("%s[%zu] is %.17g, not %.17g", what, index, actual, expected);
}

void op_begin(struct op_run *run, enum ir_op_id id, int version)
{
    const struct ir_op_info *info = ir_op_info(id);
    memset(run, 0, sizeof *run);
    run->graph = ir_graph_create(&allocator_default);
    assert_non_null(run->graph);
    /* Room for all that may be added. */
    run->op = ir_op_create(run->graph, info, OP_RUN_MAX, OP_RUN_MAX);
    assert_non_null(run->op);
    run->op->version = version ? version : ir_op_bind(info, IR_NEWEST_OPSET);
    run->op->n_operands = 0;
    op_outputs(run, 1);
    arena_init(&run->arena, &allocator_default);
    pool_init(&run->pool, &allocator_default);
    run->env = (struct kernel_env){.pool = &run->pool, .strings = &run->arena, .team = &test_team};
}

void op_outputs(struct op_run *run, uint32_t n_outputs)
{
    assert_true(n_outputs <= OP_RUN_MAX);
    run->op->n_results = run->n_outputs = n_outputs;
}

void op_absent(struct op_run *run)
{
    assert_true(run->n_inputs < OP_RUN_MAX);
    run->op->n_operands = ++run->n_inputs;
}

void op_open(struct op_run *run, enum ir_op_id id, uint32_t n_inputs, uint32_t n_outputs)
{
    op_begin(run, id, 0);
    op_outputs(run, n_outputs);
    for (uint32_t i = 0; i < n_inputs; i++)
        op_absent(run);
}

static void release_outputs(struct op_run *run)
{
    for (uint32_t i = 0; i < run->n_outputs; i++)
        value_release(&run->outputs[i]);
}

void op_close(struct op_run *run)
{
    release_outputs(run);
    for (uint32_t i = 0; i < run->n_inputs; i++)
        value_release(&run->inputs[i]);
    assert_int_equal(run->pool.used_bytes, 0);
    pool_clear(&run->pool);
    arena_clear(&run->arena);
    ir_graph_free(run->graph);
}

void op_attr(struct op_run *run, struct ir_attr attr)
{
    assert_true(ir_op_set_attr(run->graph, run->op, &attr));
}

void op_int(struct op_run *run, const char *name, int64_t value)
{
    op_attr(run, (struct ir_attr){.name = name, .kind = IR_ATTR_INT, .i = value});
}

void op_float(struct op_run *run, const char *name, float value)
{
    op_attr(run, (struct ir_attr){.name = name, .kind = IR_ATTR_FLOAT, .f = value});
}

void op_ints(struct op_run *run, const char *name, size_t count, const int64_t *values)
{
    const int64_t *copy = arena_copy(&run->arena, values, count * sizeof *values);
    op_attr(run,
            (struct ir_attr){.name = name, .kind = IR_ATTR_INTS, .count = count, .ints = copy});
}

void op_string(struct op_run *run, const char *name, const char *value)
{
    op_attr(run,
            (struct ir_attr){.name = name, .kind = IR_ATTR_STRING, .s = {value, strlen(value)}});
}

void op_tensor(struct op_run *run, const char *name, const struct tensor *value)
{
    op_attr(run, (struct ir_attr){.name = name, .kind = IR_ATTR_TENSOR, .tensor = value});
}

static struct tensor *set_input(struct op_run *run, uint32_t index, tssa_dtype dtype, int rank,
                                const int64_t *dims)
{
    assert_true(index < run->n_inputs);
    struct value *value = &run->inputs[index];
    value_release(value);
    run->present[index] = true;
    value->kind = TSSA_KIND_TENSOR;
    value->tensor = (struct tensor){.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        value->tensor.dims[i] = dims[i];
    return &value->tensor;
}

void op_add(struct op_run *run, tssa_dtype dtype, int rank, const int64_t *dims, const void *data)
{
    op_absent(run);
    set_input(run, run->n_inputs - 1, dtype, rank, dims)->data = (void *)(uintptr_t)data;
}

struct tensor *op_input(struct op_run *run, uint32_t index, tssa_dtype dtype, int rank,
                        const int64_t *dims)
{
    size_t count, bytes;
    assert_null(tensor_layout(dtype, rank, dims, &count, &bytes));
    struct tensor *tensor = set_input(run, index, dtype, rank, dims);
    tensor->data = arena_alloc_aligned(&run->arena, bytes + 1, TENSOR_ALIGNMENT);
    assert_non_null(tensor->data);
    return tensor;
}

struct tensor *op_random(struct op_run *run, uint32_t index, struct random *random,
                         tssa_dtype dtype, int rank, const int64_t *dims)
{
    static const tssa_string words[] = {{"", 0}, {"a", 1}, {"b", 1}, {"ab", 2}, {"abc", 3}};
    struct tensor *x = op_input(run, index, dtype, rank, dims);
    size_t count = tensor_count(x), bytes = tensor_bytes(x);
    if (dtype == TSSA_STRING)
        for (size_t i = 0; i < count; i++)
            ((tssa_string *)x->data)[i] = words[random_int(random, 0, 4)];
    else if (dtype == TSSA_BOOL)
        for (size_t i = 0; i < count; i++)
            ((bool *)x->data)[i] = random_int(random, 0, 1);
    else
        for (size_t i = 0; i < bytes; i++)
            ((unsigned char *)x->data)[i] = (unsigned char)random_bits(random);
    return x;
}

struct tensor *op_input_ints(struct op_run *run, uint32_t index, tssa_dtype dtype, int rank,
                             int64_t count, const int64_t *values)
{
    struct tensor *x = op_input(run, index, dtype, rank, &count);
    for (int64_t i = 0; i < count; i++)
        dtype_store_int64(dtype, (char *)x->data + (size_t)i * dtype_info(dtype)->size, values[i]);
    return x;
}

tssa_status *op_try(struct op_run *run)
{
    const struct kernel *kernel = test_device()->device->find_kernel(run->op);
    const struct value *inputs[OP_RUN_MAX];
    struct value *outputs[OP_RUN_MAX];
    const void *state = NULL;
    assert_non_null(kernel);
    release_outputs(run);
    for (uint32_t i = 0; i < run->n_inputs; i++)
        inputs[i] = run->present[i] ? &run->inputs[i] : NULL;
    for (uint32_t i = 0; i < run->n_outputs; i++)
        outputs[i] = run->op->results[i].wanted ? &run->outputs[i] : NULL;
    const struct kernel_setup setup = {.arena = &run->arena, .context = test_device()};
    TRY(kernel_prepare(kernel, run->op, &setup, &state));
    struct kernel_args args = {.env = &run->env,
                               .state = state,
                               .op = run->op,
                               .n_inputs = run->n_inputs,
                               .n_outputs = run->n_outputs,
                               .inputs = inputs,
                               .outputs = outputs};
    tssa_status *status = kernel->run(&args);
    kernel_release(kernel, state);
    return status;
}

/* Tensors become Constants; of other values inference is told nothing. */
static struct ir_value *make_operand(struct op_run *run, uint32_t index)
{
    struct ir_block *body = run->graph->body;
    if (run->inputs[index].kind != TSSA_KIND_TENSOR)
        return ir_block_add_param(body);
    struct ir_op *constant = ir_constant_create(run->graph, &run->inputs[index].tensor);
    assert_non_null(constant);
    ir_op_append(body, constant);
    return ir_result(constant, 0);
}

static tssa_status *infer(struct op_run *run)
{
    for (uint32_t i = 0; i < run->n_inputs; i++)
        ir_op_set_operand(run->op, i, run->present[i] ? make_operand(run, i) : NULL);
    ir_op_append(run->graph->body, run->op);
    return ir_infer_graph(run->graph);
}

static void check_types(const struct op_run *run)
{
    for (uint32_t i = 0; i < run->n_outputs; i++) {
        const struct tensor *tensor = &run->outputs[i].tensor;
        const struct ir_type *inferred = run->op->results[i].type;
        if (run->outputs[i].kind != TSSA_KIND_TENSOR)
            continue;
        while (inferred->kind == TYPE_OPTIONAL) /* a full optional is its element */
            inferred = inferred->element;
        if (!type_compatible(inferred, type_tensor_const(&run->graph->types, tensor->dtype,
                                                         tensor->rank, tensor->dims)))
            fail_msg("%s: output %u is not of the type inferred", run->op->info->name, (unsigned)i);
    }
}

static void go(struct op_run *run, bool known)
{
    tssa_status *status = infer(run);
    if (!known) /* kernels learn nothing from what was inferred */
        ir_op_remove(run->op);
    if (!status)
        status = op_try(run);
    if (known)
        ir_op_remove(run->op);
    if (!status) {
        check_types(run);
        return;
    }
    print_error("%s: %s\n", run->op->info->name, tssa_status_message(status));
    tssa_status_free(status);
    fail();
}

void op_go(struct op_run *run)
{
    go(run, false);
}

void op_go_known(struct op_run *run)
{
    go(run, true);
}

void op_fails(struct op_run *run, const char *text)
{
    tssa_status *status = op_try(run);
    if (status && strstr(tssa_status_message(status), text)) {
        tssa_status_free(status);
        return;
    }
    print_error("%s: \"%s\" does not say \"%s\"\n", run->op->info->name,
                status ? tssa_status_message(status) : "success", text);
    tssa_status_free(status);
    fail();
}

const struct tensor *op_output(struct op_run *run, uint32_t index, tssa_dtype dtype, int rank,
                               const int64_t *dims)
{
    const struct value *value = &run->outputs[index];
    assert_int_equal(value->kind, TSSA_KIND_TENSOR);
    assert_int_equal(value->tensor.dtype, dtype);
    assert_int_equal(value->tensor.rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(value->tensor.dims[i], dims[i]);
    return &value->tensor;
}

void op_expect_ints(struct op_run *run, uint32_t index, int rank, const int64_t *dims,
                    const int64_t *values)
{
    const struct tensor *y = op_output(run, index, run->outputs[index].tensor.dtype, rank, dims);
    size_t size = dtype_info(y->dtype)->size;
    for (size_t i = 0; i < tensor_count(y); i++)
        assert_int_equal(dtype_load_int64(y->dtype, (const char *)y->data + i * size), values[i]);
}

int64_t flat_index(int rank, const int64_t *dims, const int64_t *coordinates)
{
    int64_t number = 0;
    for (int i = 0; i < rank; i++) {
        assert_in_range(coordinates[i], 0, dims[i] - 1);
        number = number * dims[i] + coordinates[i];
    }
    return number;
}

void unflatten(int rank, const int64_t *dims, int64_t number, int64_t *coordinates)
{
    for (int i = rank - 1; i >= 0; i--) {
        coordinates[i] = number % dims[i];
        number /= dims[i];
    }
}

void op_expect_moved(struct op_run *run, uint32_t index, const struct tensor *x, int rank,
                     const int64_t *dims, op_source source, const void *context, const void *fill)
{
    const struct tensor *y = op_output(run, index, x->dtype, rank, dims);
    size_t size = dtype_info(x->dtype)->size;
    for (size_t i = 0; i < tensor_count(y); i++) {
        int64_t coordinates[TSSA_MAX_RANK];
        unflatten(rank, dims, (int64_t)i, coordinates);
        int64_t from = source(context, coordinates);
        const void *expected = from < 0 ? fill : (const char *)x->data + (size_t)from * size;
        if (memcmp((const char *)y->data + i * size, expected, size) != 0)
            fail_msg("%s: element %zu is not element %lld of the operand", run->op->info->name, i,
                     (long long)from);
    }
}
