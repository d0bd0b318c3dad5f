/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/topk.h"

#include <inttypes.h>

#include "device/device.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/texts.h"

/* Unless few are wanted, each element of a line is compared with all others: of longer ones the
 * host is sooner done. */
#define MOST_ELEMENTS 65536

/* What k1 of the text has room for, and elements that it can count. */
#define MOST_CHOSEN 1024
#define MOST_COUNTED ((1 << 21) - 1)
/* k1 goes through a line some 16 times, and meets in between. A card makes so many
 * comparisons meanwhile: a block's 256 threads make them for 32 elements. */
#define SOME_COMPARISONS (1 << 25)

struct topk {
    int64_t axis;
    bool largest;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct topk *topk = ARENA_NEW(setup->arena, struct topk);
    TRY_ALLOC(topk);
    topk->axis = ir_op_axis(op);
    topk->largest = ir_attr_int(op, "largest", 1) != 0;
    *state = topk;
    return grids_text_want(setup->context, GRIDS_TEXT_TOPK, ir_operand(op, 0)->type->dtype);
}

struct lines_of {
    int64_t lines, n, inner, k;
    const struct tensor *values, *indices; /* NULL: not wanted */
};

bool grids_topk_chooses(int64_t lines, int64_t n, int64_t k)
{
    return (double)lines * (double)n * (double)n > SOME_COMPARISONS && n > MOST_CHOSEN &&
           n <= MOST_COUNTED && k <= MOST_CHOSEN;
}

static tssa_status *launch(struct kernel_args *args, const struct lines_of *w,
                           struct buffer **buffer)
{
    const struct topk *topk = args->state;
    const struct tensor *some = w->values ? w->values : w->indices, *x = &args->inputs[0]->tensor;
    const bool chooses = grids_topk_chooses(w->lines, w->n, w->k);
    struct device_place from;
    TRY(grids_operand(args, 0, buffer, &from));
    const struct launch_param params[] = {grids_memory(from),
                                          grids_memory(grids_place(w->values ? w->values : some)),
                                          grids_memory(grids_place(w->indices ? w->indices : some)),
                                          grids_number(w->lines),
                                          grids_number(w->n),
                                          grids_number(w->inner),
                                          grids_number(w->k),
                                          grids_number(topk->largest),
                                          grids_number(w->values != NULL),
                                          grids_number(w->indices != NULL)};
    return grids_launch_text(args->env->stream, GRIDS_TEXT_TOPK, x->dtype, chooses,
                             chooses ? w->lines : w->lines * grids_ranked_blocks(w->n), params,
                             sizeof params / sizeof *params);
}

/* The results, of operands that are checked. */
static tssa_status *make_results(struct kernel_args *args, struct lines_of *w)
{
    const struct topk *topk = args->state;
    const struct tensor *x;
    struct tensor *values, *indices;
    int64_t dims[TSSA_MAX_RANK];
    int axis;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_axis(topk->axis, x->rank, &axis));
    TRY(grids_int(args, 1, &w->k));
    if (w->k < 0 || w->k > x->dims[axis])
        return ERROR(TSSA_RUNTIME, "K is %" PRId64 ", but axis %d has %" PRId64 " elements", w->k,
                     axis, x->dims[axis]);
    w->lines = w->inner = 1;
    w->n = x->dims[axis];
    for (int i = 0; i < x->rank; i++) {
        dims[i] = i == axis ? w->k : x->dims[i];
        w->lines *= i == axis ? 1 : x->dims[i];
        w->inner *= i > axis ? x->dims[i] : 1;
    }
    TRY(kernel_output(args, 0, x->dtype, x->rank, dims, &values));
    TRY(kernel_output(args, 1, TSSA_INT64, x->rank, dims, &indices));
    w->values = values;
    w->indices = indices;
    return NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    struct lines_of w;
    struct buffer *buffer = NULL;
    TRY(make_results(args, &w));
    if (w.k == 0 || w.lines == 0 || (!w.values && !w.indices))
        return NULL;
    tssa_status *status = launch(args, &w, &buffer);
    buffer_release(buffer);
    return status;
}

static bool is_long(const struct ir_op *op)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    const int64_t axis = ir_op_axis(op), at = axis < 0 ? axis + type->rank : axis;
    int64_t n;
    return at >= 0 && at < type->rank && dim_is_const(type->dims[at], &n) && n > MOST_ELEMENTS;
}

const struct kernel *grids_topk_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run};
    const bool is_it = ir_op_is(op, IR_OP_TopK) && op->n_operands == 2 && ir_operand(op, 0);
    if (!is_it || !grids_text_takes(ir_operand(op, 0)->type->dtype) || is_long(op))
        return NULL;
    return &kernel;
}
