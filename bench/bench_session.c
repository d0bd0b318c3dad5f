/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it takes to get a model going: load, optimize, session, and the memory that they hold, for each
 * model given (default: the committed SSD). Milliseconds; minimum and median.
 */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/executor.h"
#include "tssa.h"

#define SAMPLES 51

static void check(tssa_status *status)
{
    if (!status)
        return;
    fprintf(stderr, "bench_session: %s\n", tssa_status_message(status));
    tssa_status_free(status);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print(const char *what, double *samples)
{
    qsort(samples, SAMPLES, sizeof *samples, by_value);
    printf("  %-10s min %7.3f ms   median %7.3f ms\n", what, samples[0], samples[SAMPLES / 2]);
}

static void measure(const char *path)
{
    static double load[SAMPLES], optimize[SAMPLES], create[SAMPLES];
    size_t peak = 0;
    for (int i = 0; i < SAMPLES; i++) {
        tssa_context *context;
        tssa_model *model;
        tssa_session *session;
        check(tssa_context_create(&(tssa_context_options){.threads = 1}, &context));
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
    print("load", load);
    print("optimize", optimize);
    print("session", create);
    printf("  %-10s %zu KiB\n", "memory", peak / 1024);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        measure("models/ssd_loop_small/model.onnx");
    for (int i = 1; i < argc; i++)
        measure(argv[i]);
    return 0;
}
