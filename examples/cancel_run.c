/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a model for its first output alone, says on standard error what the library has to tell, and
 * ends the run, not the program, when Ctrl-C is pressed or two seconds have passed.
 *
 *     cc cancel_run.c $(pkg-config --cflags --libs tssa) -o cancel_run && ./cancel_run model.onnx
 */
/* ctest-args: models/ssd_loop_small/model.onnx */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <tssa.h>
#include <unistd.h>

static tssa_cancel *cancel; /* a signal handler has no argument to find it by */

static void on_signal(int number)
{
    (void)number;
    tssa_cancel_request(cancel);
}

static void on_log(void *user, tssa_log_level level, const char *message)
{
    (void)user;
    fprintf(stderr, "%s: %s\n", level == TSSA_LOG_WARNING ? "warning" : "info", message);
}

static void check(tssa_status *status)
{
    if (!status)
        return;
    fprintf(stderr, "cancel_run: %s\n", tssa_status_message(status));
    tssa_status_free(status);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: cancel_run model.onnx\n");
        return 2;
    }
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    const tssa_context_options context_options = {.struct_size = sizeof context_options,
                                                  .log = on_log};
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    check(tssa_context_create(&context_options, &context));
    check(tssa_model_load_file(context, argv[1], NULL, &model));
    check(tssa_model_optimize(model, &optimize));
    check(tssa_session_create(model, NULL, &session));
    check(tssa_cancel_create(context, &cancel));

    size_t n = tssa_model_input_count(model);
    tssa_value **inputs = calloc(n + 1, sizeof *inputs), *output = NULL;
    tssa_value_info info;
    for (size_t i = 0; inputs && i < n; i++) {
        check(tssa_model_input(model, i, &info));
        for (int d = 0; d < info.rank; d++)
            if (info.dims[d] < 0)
                info.dims[d] = 1; /* a symbolic dim: any size will do here */
        check(tssa_tensor_create(context, info.dtype, info.rank, info.dims, &inputs[i]));
    }

    const size_t first = 0;
    const tssa_run_options run = {.struct_size = sizeof run, .cancel = cancel, .wanted = &first};
    signal(SIGINT, on_signal);
    signal(SIGALRM, on_signal);
    alarm(2);
    if (inputs)
        check(tssa_session_run_with(session, &run, n, inputs, 1, &output));
    alarm(0);
    check(tssa_model_output(model, first, &info));
    printf("%s: %s, %zu elements\n", info.name, tssa_dtype_name(tssa_value_dtype(output)),
           tssa_value_count(output));

    tssa_value_free(output);
    for (size_t i = 0; inputs && i < n; i++)
        tssa_value_free(inputs[i]);
    free(inputs);
    tssa_cancel_free(cancel);
    tssa_session_free(session);
    tssa_model_free(model);
    tssa_context_free(context);
    return 0;
}
