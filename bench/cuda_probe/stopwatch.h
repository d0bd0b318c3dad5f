/* SPDX-License-Identifier: Apache-2.0 */
/* How long something takes, by the host's clock. */
#ifndef TSSA_CUDA_PROBE_STOPWATCH_H
#define TSSA_CUDA_PROBE_STOPWATCH_H

#include "bench/cuda_probe/card.h"

struct timing {
    double median, least; /* microseconds, of one piece of work */
};

double stopwatch_now(void); /* seconds */

typedef tssa_status *stopwatch_work(struct card *card, void *data);

/*
 * Does the work again and again, for a third of a second or 200 times, whichever ends first, but at
 * least three times after a first one that does not count. `pieces`: into how many its time is
 * divided. `work` must itself wait for what it started.
 */
tssa_status *stopwatch_time(struct card *card, stopwatch_work *work, void *data, double pieces,
                            struct timing *timing);

#endif
