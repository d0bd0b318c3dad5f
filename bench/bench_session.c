/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it takes to get a model going: load, optimize, session, and the memory that they hold, for
 * each model given (default: the committed SSD). Milliseconds; minimum and median.
 */
#include "bench/measure.h"
#include "runtime/executor.h"

#define SAMPLES 51

static void measure(const char *path)
{
    static double load[SAMPLES], optimize[SAMPLES], create[SAMPLES];
    size_t peak = 0;
    for (int i = 0; i < SAMPLES; i++) {
        tssa_context *context;
        tssa_model *model;
        tssa_session *session;
        check(tssa_context_create(
            &(tssa_context_options){.struct_size = sizeof(tssa_context_options), .threads = 1},
            &context));
        uint64_t start = executor_now();
        check(tssa_model_load_file(context, path, NULL, &model));
        uint64_t loaded = executor_now();
        check(tssa_model_optimize(model, NULL));
        uint64_t optimized = executor_now();
        check(tssa_session_create(model, NULL, &session));
        uint64_t created = executor_now();
        load[i] = (double)(loaded - start) / 1e6;
        optimize[i] = (double)(optimized - loaded) / 1e6;
        create[i] = (double)(created - optimized) / 1e6;
        peak = tssa_context_memory_peak(context);
        tssa_session_free(session);
        tssa_model_free(model);
        tssa_context_free(context);
    }
    printf("%s\n", path);
    report("  load", "ms", load, SAMPLES);
    report("  optimize", "ms", optimize, SAMPLES);
    report("  session", "ms", create, SAMPLES);
    printf("  memory held at most         %zu KiB\n", peak / 1024);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        measure("models/ssd_loop_small/model.onnx");
    for (int i = 1; i < argc; i++)
        measure(argv[i]);
    return 0;
}
