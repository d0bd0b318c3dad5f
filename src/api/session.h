/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TSSA_API_SESSION_H
#define TSSA_API_SESSION_H

#include <pthread.h>

#include "api/background.h"

struct tssa_session {
    struct tssa_model *model;
    struct device_context own;     /* of a device other than the context's */
    struct device_context *device; /* that or the context's */
    uint32_t n_inputs, n_outputs;
    bool profiled;
    atomic_bool stop;
    _Atomic(struct background *)
        background;               /* makes what is to take the place of `now`; NULL: nobody does */
    pthread_mutex_t lock;         /* guards what follows */
    struct generation *now;       /* what runs begin with */
    struct compile_report report; /* of it */
    uint64_t compile_ns;          /* until it was there */
    struct run_memory last;       /* of the run that ended last */
    struct device_counts counts;  /* of the same */
    size_t peak;                  /* the most that one held */
};

#endif
