/* SPDX-License-Identifier: Apache-2.0 */
/* Along which axes a kernel with planes is run; see build.h. */
#include <string.h>

#include "gir/build.h"
#include "ir/fuse.h"

bool gir_reads_planes(const struct ir_op *fuse)
{
    struct gir_planes planes;
    bool any = false;
    for (const struct ir_op *op = ir_fuse_body(fuse)->first; op; op = op->next) {
        if (ir_op_is(op, IR_OP_assign))
            return false;
        if (!ir_op_is(op, IR_OP_access))
            continue;
        if (!ir_operand(op, 0)->block || gir_planes_refuses(op, &planes))
            return false;
        any = true;
    }
    return any;
}

struct walking {
    const struct gir_kernel *kernel;
    const struct gir_space *space;
    const int64_t *dims; /* of the space */
    int n_axes;
    int64_t *sizes;
    int64_t (*steps)[GIR_MAX_ARGS];
    int first; /* axes from this one on may be merged, not a row with others */
};

static int64_t bytes_of(const struct gir_kernel *kernel, uint32_t arg)
{
    return (int64_t)dtype_info((tssa_dtype)gir_args(kernel)[arg].dtype)->size;
}

/* The innermost subaxes of an argument along an axis, `done` elements of which were walked along:
 * how many elements go on in the same way, and the step. */
static int64_t subaxis_at(const struct walking *w, uint32_t arg, int axis, int64_t done,
                          int64_t *step)
{
    const struct gir_place *place = &w->space->places[arg];
    const int64_t size = bytes_of(w->kernel, arg);
    *step = 0;
    if (!(place->axes >> axis & 1))
        return w->dims[axis] / done;
    if (!place->planes) {
        int64_t inner = 1;
        for (int i = axis + 1; i < place->first + place->rank; i++)
            inner *= place->axes >> i & 1 ? w->dims[i] : 1;
        *step = inner * done * size;
        return w->dims[axis] / done;
    }
    for (int i = place->planes->n_subaxes; i-- > 0;) {
        const struct gir_subaxis *subaxis = &place->planes->subaxes[i];
        if (subaxis->axis != axis - place->first)
            continue;
        if (done < subaxis->size) {
            *step = subaxis->step * done * size;
            return subaxis->size % done ? 0 : subaxis->size / done;
        }
        if (done % subaxis->size)
            return 0;
        done /= subaxis->size;
    }
    return 0;
}

/* As many elements of the space's axis as all arguments have in one subaxis. */
static bool add_subaxis(struct walking *w, int axis, int64_t *done)
{
    const uint32_t n = w->kernel->n_args;
    int64_t steps[GIR_MAX_ARGS], least = w->dims[axis] / *done;
    const int last = w->n_axes - 1;
    bool goes_on = last >= w->first;
    for (uint32_t k = 0; k < n; k++) {
        const int64_t size = subaxis_at(w, k, axis, *done, &steps[k]);
        least = size < least ? size : least;
        goes_on = goes_on && steps[k] == w->steps[last][k] * w->sizes[last];
    }
    for (uint32_t k = 0; k < n && least > 0; k++)
        if (subaxis_at(w, k, axis, *done, &steps[k]) % least)
            return false;
    if (least < 1 || (!goes_on && w->n_axes == TSSA_MAX_RANK))
        return false;
    *done *= least;
    if (goes_on) {
        w->sizes[last] *= least;
        return true;
    }
    w->sizes[w->n_axes] = least;
    memcpy(w->steps[w->n_axes++], steps, n * sizeof *steps);
    return true;
}

static bool add_axes(struct walking *w, int from, int end)
{
    for (int axis = end; axis-- > from;)
        for (int64_t done = 1; done < w->dims[axis];)
            if (!add_subaxis(w, axis, &done))
                return false;
    return true;
}

/* How many arguments have the axis's elements side by side. */
static uint32_t count_close(const struct walking *w, int axis)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < w->kernel->n_args; k++)
        n += w->steps[axis][k] == bytes_of(w->kernel, k);
    return n;
}

/* The order of rows does not matter. */
static void put_closest_second(struct walking *w)
{
    int64_t steps[GIR_MAX_ARGS];
    int best = 1;
    for (int i = 2; i < w->n_axes; i++)
        if (count_close(w, i) > count_close(w, best))
            best = i;
    if (best >= w->n_axes)
        return;
    const int64_t size = w->sizes[1];
    const size_t bytes = w->kernel->n_args * sizeof *steps;
    memcpy(steps, w->steps[1], bytes);
    memcpy(w->steps[1], w->steps[best], bytes);
    memcpy(w->steps[best], steps, bytes);
    w->sizes[1] = w->sizes[best];
    w->sizes[best] = size;
}

bool gir_has_planes(const struct gir_kernel *kernel, const struct gir_space *space)
{
    for (uint32_t k = 0; k < kernel->n_args; k++)
        if (space->places[k].planes)
            return true;
    return false;
}

bool gir_walk_planes(const struct gir_kernel *kernel, const struct gir_space *space,
                     const int64_t *dims, int *n_axes, int64_t *sizes,
                     int64_t (*steps)[GIR_MAX_ARGS])
{
    struct walking w = {
        .kernel = kernel, .space = space, .dims = dims, .sizes = sizes, .steps = steps};
    const int row = space->rank - space->row;
    if (!add_axes(&w, row, space->rank) || w.n_axes != 1)
        return false;
    w.first = 1;
    if (!add_axes(&w, 0, row))
        return false;
    put_closest_second(&w);
    *n_axes = w.n_axes;
    return true;
}
