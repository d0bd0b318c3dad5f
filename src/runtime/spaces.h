/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which space each value lies, and where each op runs, when a device has memory of its own.
 *
 * The host must know some values before work can be given to the device: conditions, trip counts,
 * the integers that shapes are made of (ir_value.known), and the numbers that tell an op how large
 * its result is (the bounds of a Range, the counts of a Tile). It computes such a value itself
 * where everything that goes into it is small and comes from shapes, constants and inputs; else the
 * device computes it, and it is copied. All other ops run on the device; what that lacks, and what
 * is not a tensor of numbers (strings, sequences, what a Scan and a SequenceMap cut up), stays with
 * the host.
 *
 * A value lies where it is made. Where it is used in the other space it has a mirror there, a
 * second slot, into which it is copied once, before the step that needs it first. Small values that
 * the host computes need none on the device: they go along with the launch, as its arguments.
 *
 * What a fuse op holds that no kernel takes is looked at as if it stood in the op's place; one that
 * the device has a kernel for runs there. Tables are by the id of what plan_value says.
 *
 * A constant's mirror is made with the plan. Used while a plan is compiled; found in time linear in
 * the graph, times the rounds that values carried by loops need.
 */
#ifndef TSSA_RUNTIME_SPACES_H
#define TSSA_RUNTIME_SPACES_H

#include "device/device.h"

enum space { SPACE_HOST, SPACE_DEVICE, SPACE_COUNT };

struct spaces {
    const uint8_t *of_value; /* per value id: its space; NULL: all lie in the host's */
    const bool *known;       /* per value id: the host computes it, or could */
    const bool *needed;      /* per value id: it must know it, or what it follows from */
    const bool *mirrored;    /* per value id: it is used in the other space, too */
    const bool *on_device;   /* per op id */
    const bool *lacked;      /* per op id: the device lacks it, and it runs on the host */
    uint32_t n_lacked;       /* how many these are */
};

struct plan;

/* plan->spaces, of its graph and its devices. Where there is one space nothing is looked at. */
tssa_status *spaces_find(struct plan *plan);

/* Must operand `index` of the op, which may be a return, lie in the other space than its value
 * does? */
bool spaces_crosses(const struct plan *plan, const struct ir_op *op, uint32_t index);
/*
 * Is it a small value of the host's, which goes along with the op's launch on the device as it is?
 */
bool spaces_is_argument(const struct plan *plan, const struct ir_op *op, uint32_t index);

#endif
