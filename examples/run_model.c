/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a model, binds zeroed buffers to its inputs, runs it and prints the outputs.
 *
 *     cc run_model.c $(pkg-config --cflags --libs tssa) -o run_model && ./run_model model.onnx
 */
/* ctest-args: models/get_started_small/model.onnx */
#include <stdio.h>
#include <stdlib.h>
#include <tssa.h>

static void check(tssa_status *status)
{
    if (!status)
        return;
    fprintf(stderr, "run_model: %s\n", tssa_status_message(status));
    tssa_status_free(status);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: run_model model.onnx\n");
        return 2;
    }
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    check(tssa_context_create(NULL, &context));
    check(tssa_model_load_file(context, argv[1], NULL, &model));
    check(tssa_model_optimize(model, NULL));
    check(tssa_session_create(model, NULL, &session));

    size_t n_in = tssa_model_input_count(model), n_out = tssa_model_output_count(model);
    tssa_value **inputs = calloc(n_in + 1, sizeof *inputs);
    tssa_value **outputs = calloc(n_out + 1, sizeof *outputs);
    tssa_value_info info;
    for (size_t i = 0; inputs && i < n_in; i++) {
        check(tssa_model_input(model, i, &info));
        for (int d = 0; d < info.rank; d++)
            if (info.dims[d] < 0)
                info.dims[d] = 1; /* a symbolic dim: any size will do here */
        check(tssa_tensor_create(context, info.dtype, info.rank, info.dims, &inputs[i]));
    }
    if (outputs)
        check(tssa_session_run(session, n_in, inputs, n_out, outputs));
    for (size_t i = 0; outputs && i < n_out; i++) {
        check(tssa_model_output(model, i, &info));
        printf("%s: %s, %zu elements\n", info.name, tssa_dtype_name(tssa_value_dtype(outputs[i])),
               tssa_value_count(outputs[i]));
        tssa_value_free(outputs[i]);
    }
    for (size_t i = 0; inputs && i < n_in; i++)
        tssa_value_free(inputs[i]);
    free(inputs);
    free(outputs);
    tssa_session_free(session);
    tssa_model_free(model);
    tssa_context_free(context);
    return 0;
}
