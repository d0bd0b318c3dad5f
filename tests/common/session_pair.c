/* SPDX-License-Identifier: Apache-2.0 */
#include "common/session_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model_text.h"
#include "common/no_error.h"

void session_pair_load(struct session_pair *p, const char *text, int threads)
{
    const tssa_context_options context = {.struct_size = sizeof context, .threads = threads};
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    no_error(tssa_context_create(&context, &p->context));
    no_error(model_text_load(p->context, text, &p->model));
    no_error(tssa_model_optimize(p->model, &optimize));
    no_error(tssa_session_create(p->model, NULL, &p->plain));
}

void session_pair_open(struct session_pair *p, const char *text, int threads)
{
    const tssa_session_options compile = {
        .struct_size = sizeof compile, .profile = 1, .compile = TSSA_COMPILE_WAIT};
    session_pair_load(p, text, threads);
    no_error(tssa_session_create(p->model, &compile, &p->kernels));
    no_error(tssa_session_compiled(p->kernels, &p->info));
}

void session_pair_close(struct session_pair *p)
{
    tssa_session_free(p->kernels);
    tssa_session_free(p->plain);
    tssa_model_free(p->model);
    tssa_context_free(p->context);
}

tssa_value *session_pair_floats(const struct session_pair *p, int rank, const int64_t *dims,
                                bool few)
{
    tssa_value *value;
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    no_error(tssa_tensor_create(p->context, TSSA_FLOAT, rank, dims, &value));
    for (int64_t i = 0; i < n; i++) {
        const float x = (float)((i * 73 + rank) % 1009) / 505 - 1;
        ((float *)tssa_tensor_data(value))[i] = few && i % 100 ? x / 2 : x;
    }
    return value;
}

static size_t size_of(const tssa_value *value)
{
    return tssa_value_dtype(value) == TSSA_INT64 ? sizeof(int64_t) : sizeof(float);
}

static void compare(tssa_value *a, tssa_value *b)
{
    size_t n = size_of(a);
    assert_int_equal(tssa_value_dtype(a), tssa_value_dtype(b));
    assert_int_equal(tssa_tensor_rank(a), tssa_tensor_rank(b));
    for (int i = 0; i < tssa_tensor_rank(a); i++) {
        assert_int_equal(tssa_tensor_dims(a)[i], tssa_tensor_dims(b)[i]);
        n *= (size_t)tssa_tensor_dims(a)[i];
    }
    if (n)
        assert_memory_equal(tssa_tensor_data(a), tssa_tensor_data(b), n);
}

void session_pair_run(const struct session_pair *p, size_t n, tssa_value *const *inputs,
                      size_t n_outputs)
{
    tssa_value *made[SESSION_PAIR_VALUES] = {NULL}, *wanted[SESSION_PAIR_VALUES] = {NULL};
    no_error(tssa_session_run(p->kernels, n, inputs, n_outputs, made));
    no_error(tssa_session_run(p->plain, n, inputs, n_outputs, wanted));
    for (size_t i = 0; i < n_outputs; i++) {
        compare(made[i], wanted[i]);
        tssa_value_free(made[i]);
        tssa_value_free(wanted[i]);
    }
}
