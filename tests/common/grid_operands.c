/* SPDX-License-Identifier: Apache-2.0 */
#include "common/grid_operands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void operands_open(struct operands *o, uint64_t seed)
{
    *o = (struct operands){.random = {seed}};
    arena_init(&o->arena, &allocator_default);
}

void operands_clear(struct operands *o)
{
    o->n = 0;
    arena_clear(&o->arena);
}

struct tensor *operands_add(struct operands *o, tssa_dtype dtype, int rank, const int64_t *dims)
{
    struct value *value = &o->values[o->n];
    size_t count, bytes;
    assert_null(tensor_layout(dtype, rank, dims, &count, &bytes));
    value->kind = TSSA_KIND_TENSOR;
    value->tensor = (struct tensor){.dtype = dtype, .rank = rank};
    if (rank)
        memcpy(value->tensor.dims, dims, (size_t)rank * sizeof *dims);
    value->tensor.data = arena_alloc_aligned(&o->arena, bytes + 1, TENSOR_ALIGNMENT);
    assert_non_null(value->tensor.data);
    o->given[o->n++] = value;
    return &value->tensor;
}

struct tensor *operands_add_bits(struct operands *o, tssa_dtype dtype, int rank,
                                 const int64_t *dims, int percent)
{
    struct tensor *x = operands_add(o, dtype, rank, dims);
    const size_t size = tssa_dtype_size(dtype);
    memset(x->data, 0, tensor_bytes(x));
    for (size_t i = 0; i < tensor_count(x); i++) {
        unsigned char *element = (unsigned char *)x->data + i * size;
        for (size_t k = 0; random_chance(&o->random, percent) && k < size; k++)
            element[k] = dtype == TSSA_BOOL ? 1 : (unsigned char)random_bits(&o->random);
        if (dtype != TSSA_BOOL && random_chance(&o->random, 5))
            element[size - 1] = 0x80;
    }
    return x;
}

struct tensor *operands_add_ints(struct operands *o, int64_t n, const int64_t *values)
{
    struct tensor *x = operands_add(o, TSSA_INT64, 1, &n);
    memcpy(x->data, values, (size_t)n * sizeof *values);
    return x;
}

struct tensor *operands_add_numbers(struct operands *o, tssa_dtype dtype, int rank,
                                    const int64_t *dims)
{
    struct tensor *x = operands_add(o, dtype, rank, dims);
    for (size_t i = 0; i < tensor_count(x); i++)
        dtype_store_double(dtype, (char *)x->data + i * tssa_dtype_size(dtype),
                           (double)random_int(&o->random, -1000, 1000) / 1000);
    return x;
}

int64_t operands_size(struct operands *o)
{
    static const int64_t large[] = {31, 32, 33, 63, 64, 65, 130, 257};
    if (random_chance(&o->random, 40))
        return large[random_int(&o->random, 0, 7)];
    return random_int(&o->random, random_chance(&o->random, 5) ? 0 : 1, 9);
}

int64_t operands_length(struct operands *o)
{
    return random_chance(&o->random, 30) ? random_int(&o->random, 2000, 9000) : operands_size(o);
}

void grids_run_open_typed(struct grids_run *run, const char *device, const char *program,
                          const char *type)
{
    char text[1000];
    size_t size = 0;
    while (*program) {
        const bool is_type = strncmp(program, "@@@", 3) == 0;
        assert_true(size + 16 < sizeof text);
        if (is_type)
            size += (size_t)snprintf(text + size, 16, "%s", type);
        else
            text[size++] = *program;
        program += is_type ? 3 : 1;
    }
    text[size] = '\0';
    grids_run_open(run, device, text);
}

void operands_expect_close(const struct grids_run *run, int output, double tolerance)
{
    const struct tensor *made = &run->made[output].tensor, *wanted = &run->wanted[output].tensor;
    const size_t size = tssa_dtype_size(wanted->dtype);
    assert_int_equal(made->dtype, wanted->dtype);
    assert_int_equal(made->rank, wanted->rank);
    assert_memory_equal(made->dims, wanted->dims, (size_t)wanted->rank * sizeof *wanted->dims);
    for (size_t i = 0; i < tensor_count(wanted); i++)
        expect_close(dtype_load_double(made->dtype, (const char *)made->data + i * size),
                     dtype_load_double(made->dtype, (const char *)wanted->data + i * size),
                     tolerance, "result", i);
}
