/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions that the provider (device/cpu/provider.h) computes: primitives made at the first use of a
 * shape and kept by the step, weights that are constants packed once. Thread-safe.
 */
#ifndef TSSA_KERNELS_CPU_CONTRACTION_CONV_PROVIDER_H
#define TSSA_KERNELS_CPU_CONTRACTION_CONV_PROVIDER_H

#include <pthread.h>

#include "device/cpu/provider.h"
#include "device/device.h"
#include "kernels/cpu/contraction/conv.h"

/* Constant weights in the layout of one or more primitives. */
struct conv_packed {
    uint32_t users; /* primitives */
    size_t bytes;
    void *data;
};

/* A primitive and the shape that it was made for. */
struct conv_made {
    struct conv problem;
    struct conv_primitive *primitive; /* NULL: the provider declined */
    struct conv_packed *packed;       /* NULL: the weights are packed in each run, or not at all */
    uint32_t runs;                    /* that use it now */
    uint64_t used;                    /* when last; 0: never, the entry is free */
};

/* As many shapes are kept; of more, those used last. */
#define CONV_SHAPES 8

struct conv_provider {
    struct device_context *context;
    struct kernel_tally *tally; /* NULL: nobody asks */
    bool constant;              /* every run has the same weights */
    pthread_mutex_t lock;
    uint64_t clock;
    struct conv_made made[CONV_SHAPES];
};

void conv_provider_open(struct conv_provider *provider, const struct kernel_setup *setup,
                        bool constant);
void conv_provider_close(struct conv_provider *provider);

/*
 * The job's x and bias are float32, and so is y, dense; w may be of any float type. *done stays false where
 * there is no provider, or it declines.
 */
tssa_status *conv_provider_run(struct kernel_args *args, struct conv_provider *provider,
                               const struct conv_job *job, float *y, bool *done);

#endif
