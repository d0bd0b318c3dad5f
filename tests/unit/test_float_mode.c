/* SPDX-License-Identifier: Apache-2.0 */
/* A caller that rounds otherwise or flushes denormals gets the results that others get, and its
 * modes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/float_mode.h"
#include "base/team.h"
#include "common/no_error.h"
#include "common/onnx_model.h"
#include "tssa.h"

#if defined(__SSE__)
#include <pmmintrin.h>

#define N 65536

/* y = exp(x) / 3 + a * a, where a * a is folded, and a denormal. */
static void run_model(const float *x, float *y)
{
    static const float tiny = 1e-20f, three = 3;
    struct onnx_model model;
    model_init(&model, 8, 17);
    model_input(&model, model.graph, "x", TSSA_FLOAT, "65536");
    model_output(&model, model.graph, "y", TSSA_FLOAT, "65536");
    model_initializer(&model, model.graph,
                      model_tensor(&model, "a", TSSA_FLOAT, "", &tiny, sizeof tiny));
    model_initializer(&model, model.graph,
                      model_tensor(&model, "b", TSSA_FLOAT, "", &three, sizeof three));
    model_node(&model, model.graph, "Exp", "x", "e");
    model_node(&model, model.graph, "Div", "e,b", "q");
    model_node(&model, model.graph, "Mul", "a,a", "s");
    model_node(&model, model.graph, "Add", "q,s", "y");
    size_t size;
    const void *bytes = model_pack(&model, &size);

    const tssa_context_options options = {.struct_size = sizeof options, .threads = 2};
    tssa_context *context;
    tssa_model *loaded;
    tssa_session *session;
    tssa_value *input, *output = NULL;
    no_error(tssa_context_create(&options, &context));
    no_error(tssa_model_load_memory(context, bytes, size, NULL, &loaded));
    no_error(tssa_model_optimize(loaded, NULL));
    no_error(tssa_session_create(loaded, NULL, &session));
    no_error(tssa_tensor_create(context, TSSA_FLOAT, 1, (const int64_t[]){N}, &input));
    memcpy(tssa_tensor_data(input), x, N * sizeof *x);
    no_error(tssa_session_run(session, 1, &input, 1, &output));
    memcpy(y, tssa_tensor_data(output), N * sizeof *y);
    tssa_value_free(input);
    tssa_value_free(output);
    tssa_session_free(session);
    tssa_model_free(loaded);
    tssa_context_free(context);
    model_free(&model);
}

static void odd_modes(void)
{
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
    _MM_SET_ROUNDING_MODE(_MM_ROUND_UP);
}

static void runs_are_alike(void **state)
{
    (void)state;
    static float x[N], usual[N], odd[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)i * -0.0016f; /* to where exp gives denormals */
    run_model(x, usual);
    assert_true(usual[N - 1] > 0 && usual[N - 1] < 0x1p-126f);

    const unsigned before = _mm_getcsr();
    odd_modes();
    run_model(x, odd);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    assert_memory_equal(usual, odd, sizeof usual);
    assert_int_equal(after & _MM_FLUSH_ZERO_MASK, _MM_FLUSH_ZERO_ON);
    assert_int_equal(after & _MM_DENORMALS_ZERO_MASK, _MM_DENORMALS_ZERO_ON);
    assert_int_equal(after & _MM_ROUND_MASK, _MM_ROUND_UP);
}

static void note_mode(void *context, int64_t begin, int64_t end)
{
    unsigned *modes = context;
    for (int64_t i = begin; i < end; i++)
        modes[i] = _mm_getcsr() & ~FLOAT_MODE_FLAGS;
}

/* Each thread of a team, the calling one included. */
static void team_is_alike(void **state)
{
    (void)state;
    struct team team;
    team_open(&team, 2);
    if (!team.parallel_for)
        skip();
    unsigned modes[8];
    const unsigned before = _mm_getcsr();
    odd_modes();
    team_for(&team, 8, 1, note_mode, modes);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    for (int i = 0; i < 8; i++)
        assert_int_equal(modes[i], FLOAT_MODE_DEFAULT);
    assert_int_equal(after & _MM_ROUND_MASK, _MM_ROUND_UP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_alike),
        cmocka_unit_test(team_is_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
