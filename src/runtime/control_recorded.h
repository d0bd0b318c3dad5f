/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control flow that the device decides while a recorded run is replayed (recorded.h): a Loop of
 * which it computes whether there is another iteration, and an If of which it computes the
 * condition. The host records the body of the one once, and both branches of the other, whatever
 * becomes of them.
 *
 * What such a Loop carries has places that stay: a result that the body makes elsewhere is moved
 * there behind each iteration. The number of the iteration is a word of the device's memory, which
 * operators on the device read; that it is given there, and not by the host, is what
 * step->on_host_recorded says. What it stacks has room for as many iterations as there may be, and
 * only the run's results may be that, since the host is told how many there were when all is done.
 */
#ifndef TSSA_RUNTIME_CONTROL_RECORDED_H
#define TSSA_RUNTIME_CONTROL_RECORDED_H

#include "runtime/executor.h"

/* Does the device decide over it, if its run is recorded? Of an If, or a Loop. */
bool control_is_recorded(const struct plan *plan, const struct ir_op *op);
/* Why it cannot, of one that it should decide over; NULL: it can. */
const char *control_recorded_lacks(const struct plan *plan, const struct ir_op *op);
/* Is it the number of an iteration of such a Loop? */
bool control_is_count(const struct plan *plan, const struct ir_value *value);

/* Does such a Loop stack it, an element in each iteration? Then, where a run is recorded, it has
 * room for all that there may be, its first dim is -1, and how many there are, an int64, is at that
 * place when the device is done. */
bool control_is_stacked(const struct plan *plan, const struct ir_value *value);
struct device_place control_stacked_count(const struct tensor *stacked);

/* Is this the run of a step that is being recorded? */
static inline bool control_records(const struct run *run, const struct step *step)
{
    return step->is_recorded && run->streams[SPACE_DEVICE]->records;
}
tssa_status *control_record_loop(struct run *run, const struct step *step);
tssa_status *control_record_if(struct run *run, const struct step *step);

#endif
