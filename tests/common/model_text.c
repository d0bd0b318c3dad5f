/* SPDX-License-Identifier: Apache-2.0 */
#include "common/model_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/no_error.h"

tssa_status *model_text_load(tssa_context *context, const char *text, tssa_model **model)
{
    char path[] = "/tmp/tssa_model_XXXXXX.tir";
    const int file = mkstemps(path, 4);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    tssa_status *status = tssa_model_load_file(context, path, NULL, model);
    unlink(path);
    return status;
}

void level_pair_open(struct level_pair *p, const char *text, tssa_compile compile, int threads)
{
    const tssa_context_options context = {.struct_size = sizeof context, .threads = threads};
    const tssa_session_options session = {
        .struct_size = sizeof session, .profile = 1, .compile = compile};
    no_error(tssa_context_create(&context, &p->context));
    for (int i = 0; i < 2; i++) {
        const tssa_optimize_options passes = {.struct_size = sizeof passes,
                                              .level = 2 * i,
                                              .target = TSSA_TARGET_SESSION,
                                              .verify_after_passes = 1};
        no_error(model_text_load(p->context, text, &p->models[i]));
        no_error(tssa_model_optimize(p->models[i], &passes));
        no_error(tssa_session_create(p->models[i], i ? &session : NULL, &p->sessions[i]));
    }
}

struct counting {
    const char *op;
    size_t steps;
};

static void count_step(void *user, const tssa_step_profile *step)
{
    struct counting *counting = user;
    counting->steps += strcmp(step->op, counting->op) == 0;
}

size_t level_pair_steps(const struct level_pair *p, const char *op)
{
    struct counting counting = {.op = op};
    no_error(tssa_session_profile_steps(p->sessions[1], count_step, &counting));
    return counting.steps;
}

void level_pair_close(struct level_pair *p)
{
    for (int i = 0; i < 2; i++) {
        tssa_session_free(p->sessions[i]);
        tssa_model_free(p->models[i]);
    }
    tssa_context_free(p->context);
}
