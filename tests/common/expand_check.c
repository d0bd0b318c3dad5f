/* SPDX-License-Identifier: Apache-2.0 */
#include "common/expand_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/model_text.h"
#include "common/no_error.h"

/* ---- A model at a level, on a device --------------------------------------------------------- */

struct side {
    const char *pass; /* whose remarks are counted */
    tssa_model *model;
    tssa_session *session;
    int expanded, left;
};

static void count_remark(void *user, const tssa_remark *remark)
{
    struct side *side = user;
    if (strcmp(remark->pass, side->pass) != 0)
        return;
    side->expanded += remark->kind == TSSA_REMARK_APPLIED;
    side->left += remark->kind == TSSA_REMARK_MISSED;
}

/* false: the device is not there. */
static bool open_side(struct side *side, tssa_context *context, const char *pass, const char *text,
                      int level, const char *device)
{
    const tssa_optimize_options passes = {.struct_size = sizeof passes,
                                          .level = level,
                                          .target = TSSA_TARGET_SESSION,
                                          .verify_after_passes = 1};
    const tssa_session_options options = {.struct_size = sizeof options,
                                          .device = device,
                                          .remark = count_remark,
                                          .remark_user = side};
    *side = (struct side){.pass = pass};
    no_error(model_text_load(context, text, &side->model));
    no_error(tssa_model_optimize(side->model, &passes));
    tssa_status *status = tssa_session_create(side->model, &options, &side->session);
    if (tssa_status_code(status) == TSSA_UNSUPPORTED && device) {
        print_message("%s\n", tssa_status_message(status));
        tssa_status_free(status);
        tssa_model_free(side->model);
        return false;
    }
    no_error(status);
    return true;
}

static void close_side(struct side *side)
{
    tssa_session_free(side->session);
    tssa_model_free(side->model);
}

static void make_inputs(tssa_context *context, size_t n, const struct expand_input *inputs,
                        tssa_value **values)
{
    for (size_t i = 0; i < n; i++) {
        const struct expand_input *input = &inputs[i];
        no_error(tssa_tensor_create(context, input->dtype, input->rank, input->dims, &values[i]));
        const size_t bytes = tensor_bytes(&values[i]->value.tensor);
        if (input->data)
            memcpy(tssa_tensor_data(values[i]), input->data, bytes);
        else
            memset(tssa_tensor_data(values[i]), 0, bytes);
    }
}

static void free_values(tssa_value **values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tssa_value_free(values[i]);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static void compare(const struct expand_program *p, const struct side *wanted,
                    const struct side *made, tssa_context *context)
{
    tssa_value *inputs[EXPAND_MOST];
    make_inputs(context, p->n_inputs, p->inputs, inputs);
    for (int turn = 0; turn < 2; turn++) {
        tssa_value *a[EXPAND_MOST] = {NULL}, *b[EXPAND_MOST] = {NULL};
        no_error(tssa_session_run(wanted->session, p->n_inputs, inputs, p->n_outputs, a));
        no_error(tssa_session_run(made->session, p->n_inputs, inputs, p->n_outputs, b));
        for (size_t i = 0; i < p->n_outputs; i++)
            p->compare(p->user, &a[i]->value, &b[i]->value, i);
        free_values(a, p->n_outputs);
        free_values(b, p->n_outputs);
    }
    free_values(inputs, p->n_inputs);
}

bool expand_check(const char *pass, const char *device, const struct expand_program *program)
{
    tssa_context *context;
    struct side wanted, made;
    no_error(tssa_context_create(NULL, &context));
    const bool there = open_side(&made, context, pass, program->text, 2, device);
    if (there) {
        assert_true(open_side(&wanted, context, pass, program->text, 0, NULL));
        assert_int_equal(wanted.expanded + wanted.left, 0);
        if (made.expanded != 1 || made.left != 0)
            fail_msg("it is one operator:\n%s", program->text);
        compare(program, &wanted, &made, context);
        close_side(&wanted);
        close_side(&made);
    }
    tssa_context_free(context);
    return there;
}

void expand_expect(const char *pass, const char *text, int level, const char *device, int expanded,
                   int left)
{
    tssa_context *context;
    struct side side;
    no_error(tssa_context_create(NULL, &context));
    assert_true(open_side(&side, context, pass, text, level, device));
    assert_int_equal(side.expanded, expanded);
    assert_int_equal(side.left, left);
    close_side(&side);
    tssa_context_free(context);
}

void expand_expect_run(const char *text, const char *device, size_t n_inputs,
                       const struct expand_input *inputs, bool works)
{
    tssa_context *context;
    tssa_value *values[EXPAND_MOST], *output = NULL;
    struct side side;
    no_error(tssa_context_create(NULL, &context));
    assert_true(open_side(&side, context, "", text, 2, device));
    make_inputs(context, n_inputs, inputs, values);
    tssa_status *status = tssa_session_run(side.session, n_inputs, values, 1, &output);
    if (works)
        no_error(status);
    else
        assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
    tssa_status_free(status);
    tssa_value_free(output);
    free_values(values, n_inputs);
    close_side(&side);
    tssa_context_free(context);
}
