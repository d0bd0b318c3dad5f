/* SPDX-License-Identifier: Apache-2.0 */
/* How large a kernel's space is, told from types; see estimate.h. */
#include <math.h>
#include <string.h>

#include "gir/estimate.h"
#include "gir/triangle.h"
#include "ir/fuse.h"

#define UNKNOWN (-1.0)
#define MOST_SIZE 1e6 /* what is longer is taken for as long, to count */

/* A shape as numbers; UNKNOWN: a run tells. */
struct shape {
    int rank;
    double dims[TSSA_MAX_RANK];
};

/* A space, and which axes of it arguments have. */
struct space {
    struct shape shape;
    uint32_t n_args;
    uint32_t axes[GIR_MAX_ARGS];
    bool bent[GIR_MAX_ARGS]; /* part of something larger: axes do not go on in each other */
};

static struct shape shape_of(const struct ir_type *type, const struct cost_sizes *sizes)
{
    struct shape shape = {.rank = type->rank < 0 ? 0 : type->rank};
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = cost_dim(type->dims[i], sizes);
    return shape;
}

static const struct ir_value *value_of(const struct ir_op *fuse, bool is_result, uint32_t index)
{
    return is_result ? &fuse->results[index] : ir_operand(fuse, index);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void remove_axis(struct shape *shape, int64_t axis)
{
    for (int i = (int)axis; i + 1 < shape->rank; i++)
        shape->dims[i] = shape->dims[i + 1];
    shape->rank--;
}

static void insert_axis(struct shape *shape, int64_t axis)
{
    for (int i = shape->rank++; i > (int)axis; i--)
        shape->dims[i] = shape->dims[i - 1];
    shape->dims[axis] = 1;
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* How many elements a slice by constants has. */
static double slice(double dim, const struct rule_param *params)
{
    for (int i = 1; i < 4; i++)
        if (params[i].is_operand)
            return UNKNOWN;
    const double by = (double)params[3].value, low = by < 0 ? -1 : 0, high = by < 0 ? dim - 1 : dim;
    double from = (double)params[1].value, to = (double)params[2].value;
    from = clamp(from < 0 ? from + dim : from, by < 0 ? -1 : 0, high);
    to = clamp(to < 0 ? to + dim : to, low, dim);
    return fmax(0, ceil((to - from) / by));
}

/* Views have no other steps. */
static void follow(struct shape *shape, const struct rule_step *step)
{
    const struct shape old = *shape;
    const struct rule_param *params = step->params;
    switch (step->kind) {
    case RULE_SELECT:
        remove_axis(shape, params[0].value);
        break;
    case RULE_SLICE:
        shape->dims[params[0].value] = slice(shape->dims[params[0].value], params);
        break;
    case RULE_SPAN:
        shape->dims[params[0].value] = params[2].is_operand ? UNKNOWN : (double)params[2].value;
        break;
    case RULE_PERMUTE:
        for (int i = 0; i < shape->rank; i++)
            shape->dims[i] = old.dims[params[i].value];
        break;
    case RULE_SQUEEZE:
        for (uint32_t i = step->n_params; i-- > 0;)
            remove_axis(shape, params[i].value);
        break;
    case RULE_UNSQUEEZE:
        for (uint32_t i = 0; i < step->n_params && shape->rank < TSSA_MAX_RANK; i++)
            insert_axis(shape, params[i].value);
        break;
    default:
        for (int i = 0; i < shape->rank; i++)
            shape->dims[i] = UNKNOWN;
    }
}

/* ---- Axes ------------------------------------------------------------------------------------ */

static double dim_at(const struct space *space, int axis)
{
    return space->shape.dims[axis] < 0 ? 1 : space->shape.dims[axis];
}

static bool has_axis(const struct space *space, int axis)
{
    for (uint32_t k = 0; k < space->n_args; k++)
        if (space->axes[k] >> axis & 1)
            return true;
    return false;
}

/* Do all arguments walk from one axis on to the other? */
static bool goes_on(const struct space *space, int a, int b)
{
    for (uint32_t k = 0; k < space->n_args; k++) {
        const bool has = space->axes[k] >> a & 1;
        if (has != (space->axes[k] >> b & 1) || (has && space->bent[k]))
            return false;
    }
    return true;
}

/* Axes [0, end) but for one, as the code is called with them: *first is the innermost walk, *second
 * the next one, and what is left are calls. */
static void find_walks(const struct space *space, int end, int without, double *first,
                       double *second, double *calls)
{
    double *const walks[] = {first, second, calls};
    int n = 0, last = -1;
    *first = *second = *calls = 1;
    for (int axis = end - 1; axis >= 0; axis--) {
        if (axis == without || !has_axis(space, axis))
            continue;
        if (last >= 0 && n < 2 && !goes_on(space, axis, last))
            n++;
        *walks[n] *= dim_at(space, axis);
        last = axis;
    }
}

/* Elements of the argument that the space has. */
static double elements_of(const struct space *space, uint32_t arg)
{
    double elements = 1;
    for (int axis = 0; axis < space->shape.rank; axis++)
        elements *= space->axes[arg] >> axis & 1 ? dim_at(space, axis) : 1;
    return elements;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static void tell(struct space *space, uint32_t arg, int first, const struct shape *shape)
{
    for (int i = 0; i < shape->rank && first + i < space->shape.rank; i++) {
        const int axis = first + i;
        if (axis >= 0 && space->axes[arg] >> axis & 1 && space->shape.dims[axis] < 0)
            space->shape.dims[axis] = shape->dims[i];
    }
}

static struct shape shape_of_planes(const struct gir_planes *planes)
{
    struct shape shape = {.rank = planes->rank};
    for (int i = 0; i < planes->rank; i++)
        shape.dims[i] = (double)planes->dims[i];
    return shape;
}

/* Rows that lie side by side, of all of them. */
static double side_by_side(const struct gir_kernel *kernel, const struct gir_space *space,
                           double rows)
{
    for (uint32_t k = 0; k < kernel->n_args; k++)
        if (space->places[k].planes)
            return (double)gir_rows_of_planes(space->places[k].planes);
    return rows;
}

void gir_extent_of_kernel(const struct ir_op *fuse, const struct gir_kernel *kernel,
                          const struct gir_space *space, const struct cost_sizes *sizes,
                          struct gir_extent *extent)
{
    struct space s = {.shape = {.rank = space->rank}, .n_args = kernel->n_args};
    *extent = (struct gir_extent){.regions = 0};
    for (int i = 0; i < space->rank; i++)
        s.shape.dims[i] = UNKNOWN;
    for (uint32_t k = 0; k < kernel->n_args; k++) {
        const struct gir_place *place = &space->places[k];
        const struct ir_value *value = value_of(fuse, gir_args(kernel)[k].is_result, place->index);
        const struct shape shape =
            place->planes ? shape_of_planes(place->planes) : shape_of(value->type, sizes);
        s.axes[k] = place->axes;
        tell(&s, k, place->first, &shape);
    }
    const int row = space->rank - space->row;
    if (space->row) {
        double rows = 1, outer = 1;
        extent->length = 1;
        for (int axis = row; axis < space->rank; axis++)
            extent->length *= dim_at(&s, axis);
        find_walks(&s, row, -1, &rows, &outer, &extent->calls);
        extent->rows = fmin(rows, side_by_side(kernel, space, rows));
        extent->calls *= outer * (extent->rows > 0 ? rows / extent->rows : 1);
    } else {
        find_walks(&s, row, -1, &extent->length, &extent->rows, &extent->calls);
    }
    for (uint32_t k = 0; k < kernel->n_args; k++)
        extent->elements[k] = elements_of(&s, k);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* What the argument is, along the last axes of the space. */
static struct shape region_of(const struct ir_op *fuse, const struct gir_arg *arg,
                              const struct gir_map *map, const struct cost_sizes *sizes)
{
    struct shape shape = shape_of(value_of(fuse, arg->is_result, map->index)->type, sizes);
    for (uint32_t i = 0; map->rule && i < map->rule->n_steps; i++)
        follow(&shape, &map->rule->steps[i]);
    shape.rank -= arg->fields > 1 && shape.rank > 0;
    return shape;
}

/* Bytes from an element to the next one along a row; 0: not known. */
static double apart_of(const struct ir_op *fuse, const struct gir_part *part, uint32_t k,
                       const struct space *s)
{
    const struct gir_arg *arg = &gir_args(part->kernel)[k];
    const struct gir_map *map = &part->maps[k];
    int axis = s->shape.rank - 1;
    while (axis >= 0 && !has_axis(s, axis))
        axis--;
    if (!gir_is_of_op(map) || axis < 0)
        return 0;
    const struct gir_layout layout =
        gir_view_layout(value_of(fuse, arg->is_result, map->index)->type, map->rule);
    const int own = axis - (s->shape.rank - (layout.rank - (arg->fields > 1)));
    return own < 0 ? 0 : fabs((double)layout.apart[own]) * gir_width((tssa_dtype)arg->dtype);
}

/* Of what is looked up in: no more than there is of it, and no more than is looked up. */
static double looked_up(const struct shape *whole, double all)
{
    double there = 1;
    for (int i = 0; i < whole->rank; i++)
        there *= whole->dims[i] < 0 ? 1 : whole->dims[i];
    return fmin(there, all);
}

/* Of columns of a triangle the first rows tell, of 32 columns at a time: in the mean, and a call of
 * the code for each 32. */
static void cut_triangle(const struct gir_part *part, struct gir_extent *extent)
{
    const int64_t length = (int64_t)fmin(extent->length, MOST_SIZE),
                  rows = (int64_t)fmin(extent->rows, MOST_SIZE);
    int64_t diagonal;
    double all = 0, blocks = 0;
    if (!gir_find_triangle(part->kernel, part->maps, &part->space, &diagonal))
        return;
    for (int64_t end = GIR_FORM_LANES; end < length + GIR_FORM_LANES; end += GIR_FORM_LANES) {
        all += (double)gir_triangle_rows(diagonal, end < length ? end : length, rows);
        blocks++;
    }
    extent->is_triangle = true;
    extent->rows = blocks > 0 ? all / blocks : 0;
    extent->calls *= blocks;
    extent->length /= fmax(blocks, 1);
}

/* How many iterations a loop has, which an operand says. */
static double trips_of(const struct ir_op *fuse, uint32_t operand, const struct cost_sizes *sizes)
{
    const struct ir_value *trips = ir_operand(fuse, operand);
    return trips && trips->known && trips->known->count == 1 && trips->known->elements[0]
               ? cost_dim(trips->known->elements[0], sizes)
               : (double)sizes->size;
}

void gir_extent_of_part(const struct ir_op *fuse, const struct gir_part *part,
                        const struct cost_sizes *sizes, struct gir_extent *extent)
{
    const struct gir_kernel *kernel = part->kernel;
    struct space s = {.shape = {.rank = part->space.rank}, .n_args = kernel->n_args};
    *extent = (struct gir_extent){.regions = 0};
    struct shape regions[GIR_MAX_ARGS];
    for (int i = 0; i < s.shape.rank; i++)
        s.shape.dims[i] = part->space.dims[i] < 0 ? UNKNOWN : (double)part->space.dims[i];
    for (uint32_t k = 0; k < kernel->n_args; k++) {
        const struct gir_map *map = &part->maps[k];
        s.axes[k] = map->axes;
        s.bent[k] = map->rule != NULL;
        regions[k].rank = 0;
        if (!gir_is_of_op(map))
            continue;
        regions[k] = region_of(fuse, &gir_args(kernel)[k], map, sizes);
        tell(&s, k, s.shape.rank - regions[k].rank, &regions[k]);
    }
    for (int i = 0; i < s.shape.rank; i++)
        if (s.shape.dims[i] < 0)
            s.shape.dims[i] = i == part->space.column && part->space.trips
                                  ? trips_of(fuse, part->space.trips - 1, sizes)
                              : has_axis(&s, i) ? (double)sizes->size
                                                : 1;
    if (part->space.column >= 0) {
        double outer = 1;
        find_walks(&s, s.shape.rank, part->space.column, &extent->length, &outer, &extent->calls);
        extent->calls *= outer;
        extent->rows = dim_at(&s, part->space.column);
        cut_triangle(part, extent);
    } else {
        find_walks(&s, s.shape.rank, -1, &extent->length, &extent->rows, &extent->calls);
    }
    const double all = extent->length * extent->rows * extent->calls;
    for (uint32_t k = 0; k < kernel->n_args; k++) {
        const struct gir_arg *arg = &gir_args(kernel)[k];
        extent->apart[k] = apart_of(fuse, part, k, &s);
        extent->regions += gir_is_of_op(&part->maps[k]);
        extent->elements[k] = !gir_is_of_op(&part->maps[k]) ? 0
                              : arg->is_looked_up           ? looked_up(&regions[k], all)
                                                            : elements_of(&s, k) * arg->fields;
    }
}
