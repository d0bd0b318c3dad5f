/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every CPU kernel on operands and attributes that nothing has checked: random kinds, types, ranks,
 * sizes and numbers, extreme ones among them. A kernel may refuse, or compute something; sanitizers
 * tell when it does worse. What it computed must be well formed, and no buffer may be left over.
 */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "device/device.h"

#define ROUNDS 400
#define MOST_MEMORY ((size_t)1 << 24)

/* ---- Memory: nothing large, so that a huge but legal result is refused at once --------------- */

static void *bounded_allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    return size > MOST_MEMORY ? NULL : allocator_alloc_aligned(&allocator_default, size, alignment);
}

static void bounded_release(void *user, void *memory)
{
    (void)user;
    allocator_free(&allocator_default, memory);
}

static const tssa_allocator bounded = {NULL, bounded_allocate, bounded_release};

/* ---- Operands -------------------------------------------------------------------------------- */

static int64_t some_int(struct random *random)
{
    static const int64_t extreme[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT32_MIN, INT32_MAX,
                                      1000,      -1000,         16,        17};
    return random_int(random, 0, 14) == 0 ? extreme[random_int(random, 0, 8)]
                                          : random_int(random, -3, 5);
}

static tssa_dtype some_dtype(struct random *random)
{
    static const tssa_dtype usual[] = {TSSA_FLOAT, TSSA_FLOAT, TSSA_INT64, TSSA_INT64, TSSA_BOOL};
    return random_int(random, 0, 2) ? usual[random_int(random, 0, 4)]
                                    : (tssa_dtype)random_int(random, 1, TSSA_DTYPE_COUNT - 1);
}

static void some_tensor(struct op_run *run, struct random *random, uint32_t index, tssa_dtype dtype)
{
    static const tssa_string words[] = {{"", 0}, {"a", 1}, {"b c", 3}, {"\xff\0z", 3}};
    int64_t dims[5];
    int rank = (int)random_int(random, 0, 4);
    for (int i = 0; i < rank; i++)
        dims[i] = random_int(random, random_int(random, 0, 9) == 0 ? 0 : 1, 4);
    struct tensor *x = op_input(run, index, dtype, rank, dims);
    size_t size = dtype_info(dtype)->size, count = tensor_count(x);
    for (size_t i = 0; i < count; i++) {
        char *element = (char *)x->data + i * size;
        int64_t value = some_int(random);
        if (dtype == TSSA_STRING)
            ((tssa_string *)x->data)[i] = words[random_int(random, 0, 3)];
        else if (dtype_info(dtype)->cls == DTYPE_CLASS_COMPLEX)
            memset(element, (int)(value & 0x3f), size);
        else if (dtype_is_float(dtype) && random_int(random, 0, 9) == 0)
            memset(element, 0x7f, size); /* NaN, or a large number */
        else
            dtype_store_int64(dtype, element, value);
    }
}

/* A sequence of up to three tensors, perhaps of different types. */
static void some_sequence(struct op_run *run, struct random *random, uint32_t index)
{
    struct value sequence, longer;
    assert_null(sequence_create(&allocator_default, TSSA_FLOAT, &sequence));
    for (int64_t i = random_int(random, 0, 3); i > 0; i--) {
        some_tensor(run, random, index, TSSA_FLOAT);
        assert_null(sequence_insert(&sequence, 0, &run->inputs[index], &longer));
        value_release(&sequence);
        sequence = longer;
    }
    value_release(&run->inputs[index]);
    run->inputs[index] = sequence;
    run->present[index] = true;
}

static void some_operands(struct op_run *run, struct random *random)
{
    tssa_dtype shared = some_dtype(random);
    for (uint32_t i = 0; i < run->n_inputs; i++) {
        int64_t kind = random_int(random, 0, 19);
        if (kind == 0)
            run->present[i] = false;
        else if (kind == 1)
            run->present[i] = true; /* an empty optional */
        else if (kind == 2 || (run->op->info->cls == IR_CLASS_SEQUENCE && i == 0 && kind < 15))
            some_sequence(run, random, i);
        else
            some_tensor(run, random, i, kind < 12 ? shared : some_dtype(random));
    }
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static void some_attributes(struct op_run *run, struct random *random)
{
    static const char *const ints[] = {"axis",        "keepdims",
                                       "batch_dims",  "k",
                                       "upper",       "blocksize",
                                       "dtype",       "to",
                                       "fmod",        "allowzero",
                                       "new_axis",    "exclusive",
                                       "reverse",     "sorted",
                                       "transA",      "group",
                                       "end",         "start",
                                       "num_outputs", "ceil_mode",
                                       "largest",     "select_last_index",
                                       "saturate",    "batch_axis",
                                       "time_axis",   "noop_with_empty_axes"};
    static const char *const lists[] = {"axes",    "perm",      "pads",
                                        "strides", "dilations", "kernel_shape"};
    static const char *const words[] = {"",     "none", "add",    "mul", "min",      "max",
                                        "edge", "wrap", "linear", "CRD", "circular", "reflect"};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        if (random_int(random, 0, 3) == 0)
            op_int(run, ints[i], some_int(random));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int64_t values[8];
        int64_t count = random_int(random, 0, 8);
        for (int64_t j = 0; j < count; j++)
            values[j] = some_int(random);
        if (random_int(random, 0, 2) == 0)
            op_ints(run, lists[i], (size_t)count, values);
    }
    if (random_int(random, 0, 1))
        op_string(run, "mode", words[random_int(random, 0, 11)]);
    if (random_int(random, 0, 1))
        op_string(run, "reduction", words[random_int(random, 0, 5)]);
}

/* ---- The test -------------------------------------------------------------------------------- */

static void check_value(const struct value *value)
{
    size_t count, bytes;
    if (value->kind == TSSA_KIND_SEQUENCE)
        for (size_t i = 0; i < sequence_length(value->sequence); i++)
            check_value(sequence_element(value->sequence, i));
    if (value->kind != TSSA_KIND_TENSOR)
        return;
    const struct tensor *x = &value->tensor;
    assert_null(tensor_layout(x->dtype, x->rank, x->dims, &count, &bytes));
    /* Every byte can be read; every string is one. */
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum = (unsigned char)(sum + ((const unsigned char *)x->data)[i]);
    for (size_t i = 0; x->dtype == TSSA_STRING && i < count; i++)
        for (size_t j = 0; j < ((const tssa_string *)x->data)[i].size; j++)
            sum = (unsigned char)(sum + (unsigned char)((const tssa_string *)x->data)[i].data[j]);
}

static bool run_one(enum ir_op_id id, struct random *random)
{
    const struct ir_op_info *info = ir_op_info(id);
    struct op_run run;
    uint32_t most_in = info->max_operands < 6 ? info->max_operands : 6;
    uint32_t most_out = info->max_results < 4 ? info->max_results : 4;
    most_in = most_in < info->min_operands ? info->min_operands : most_in;
    op_open(&run, id, (uint32_t)random_int(random, info->min_operands, most_in),
            (uint32_t)random_int(random, info->min_results, most_out));
    run.pool.allocator = &bounded;
    some_operands(&run, random);
    some_attributes(&run, random);
    tssa_status *status = op_try(&run);
    bool success = !status;
    if (status) {
        assert_int_not_equal(tssa_status_code(status), TSSA_INTERNAL);
        assert_true(tssa_status_message(status)[0] != 0);
        tssa_status_free(status);
    } else {
        for (uint32_t i = 0; i < run.n_outputs; i++)
            check_value(&run.outputs[i]);
    }
    op_close(&run);
    return success;
}

static void test_every_kernel(void **state)
{
    struct random random = {1};
    int kernels = 0, successes = 0;
    (void)state;
    for (int id = 0; id < IR_OP_COUNT; id++) {
        struct op_run run;
        op_open(&run, (enum ir_op_id)id, 0, 0);
        bool found = device_find(NULL)->find_kernel(run.op) != NULL;
        op_close(&run);
        if (!found)
            continue;
        kernels++;
        for (int round = 0; round < ROUNDS; round++)
            successes += run_one((enum ir_op_id)id, &random);
    }
    /* Else the operands were never right by chance, and nothing was tested. */
    assert_true(kernels > 100);
    assert_true(successes > kernels * ROUNDS / 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_kernel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
