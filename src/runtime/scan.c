/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan. From version 9: operands are the states, then the scanned inputs; axes and directions are
 * attributes. Version 8 has a first operand sequence_lens (optional), a batch axis 0 everywhere,
 * and scans axis 1; it runs as one scan per batch item whose results are stacked again, padded with
 * zeros.
 */
#include <inttypes.h>
#include <string.h>

#include "runtime/control.h"
#include "runtime/executor.h"
#include "runtime/stack.h"

/* The attributes, decoded once. Arrays have an entry per scanned input or stacked output. */
struct scan_attrs {
    bool batched;
    uint32_t n_states, n_scanned, n_stacked;
    const int64_t *input_axes, *output_axes;
    const int64_t *input_directions, *output_directions; /* 1: from last to first */
};

struct scan {
    struct run *run;
    const struct step *step;
    const struct scan_attrs *attrs;
    const struct block_plan *body;
    uint32_t n_states, n_scanned, n_stacked;
    struct value *values; /* states, then scanned inputs; owned */
    struct stack *stacks;
    int64_t steps;
};

/* ---- Attributes ------------------------------------------------------------------------------ */

static const int64_t *decode_list(const struct ir_op *op, struct arena *arena, const char *name,
                                  uint32_t n)
{
    size_t count;
    const int64_t *values = ir_attr_ints(op, name, &count);
    int64_t *list = ARENA_ARRAY(arena, int64_t, n);
    for (uint32_t i = 0; list && values && i < n && i < count; i++)
        list[i] = values[i];
    return list;
}

tssa_status *control_prepare_scan(const struct ir_op *op, struct arena *arena, const void **state)
{
    struct scan_attrs *attrs = ARENA_NEW(arena, struct scan_attrs);
    TRY_ALLOC(attrs);
    attrs->batched = op->version < 9;
    uint32_t skip = attrs->batched ? 1 : 0, n = op->n_operands - skip;
    int64_t scanned = ir_attr_int(op, "num_scan_inputs", 0);
    if (op->n_operands < skip || scanned < 1 || scanned > n || op->n_results < n - scanned)
        return ERROR(TSSA_MALFORMED, "num_scan_inputs does not fit the inputs and outputs");
    attrs->n_scanned = (uint32_t)scanned;
    attrs->n_states = n - attrs->n_scanned;
    attrs->n_stacked = op->n_results - attrs->n_states;
    attrs->input_axes = decode_list(op, arena, "scan_input_axes", attrs->n_scanned);
    attrs->output_axes = decode_list(op, arena, "scan_output_axes", attrs->n_stacked);
    attrs->input_directions = decode_list(
        op, arena, attrs->batched ? "directions" : "scan_input_directions", attrs->n_scanned);
    attrs->output_directions = decode_list(op, arena, "scan_output_directions", attrs->n_stacked);
    if (!attrs->input_axes || !attrs->output_axes || !attrs->input_directions ||
        !attrs->output_directions)
        return status_out_of_memory();
    *state = attrs;
    return NULL;
}

/* A batch item's results are not the op's. */
bool control_scan_passes(const struct step *step, struct control_passing *passing)
{
    const struct scan_attrs *attrs = step->state;
    passing->n_carried = attrs->n_states;
    return !attrs->batched;
}

/* ---- One scan -------------------------------------------------------------------------------- */

static tssa_status *scan_open(struct scan *scan)
{
    const tssa_allocator *a = &scan->run->pool.cached;
    scan->values =
        allocator_calloc(a, (size_t)scan->n_states + scan->n_scanned + 1, sizeof *scan->values);
    scan->stacks = allocator_calloc(a, scan->n_stacked + 1u, sizeof *scan->stacks);
    TRY_ALLOC(scan->values);
    TRY_ALLOC(scan->stacks);
    for (uint32_t i = 0; i < scan->n_stacked; i++)
        stack_init(&scan->stacks[i], &scan->run->env, NULL);
    return NULL;
}

static void scan_close(struct scan *scan)
{
    for (uint32_t i = 0; scan->values && i < scan->n_states + scan->n_scanned; i++)
        value_release(&scan->values[i]);
    for (uint32_t i = 0; scan->stacks && i < scan->n_stacked; i++)
        stack_free(&scan->stacks[i]);
    allocator_free(&scan->run->pool.cached, scan->values);
    allocator_free(&scan->run->pool.cached, scan->stacks);
}

/* The axis of scanned input i; checks that all scanned lengths agree and remembers the length. */
static tssa_status *input_axis(struct scan *scan, uint32_t i, int *axis)
{
    const struct value *value = &scan->values[scan->n_states + i];
    int64_t wanted = scan->attrs->batched ? 0 : scan->attrs->input_axes[i];
    if (value->kind != TSSA_KIND_TENSOR)
        return ERROR(TSSA_RUNTIME, "scan input %u is no tensor", (unsigned)i);
    int rank = value->tensor.rank;
    if (wanted < -rank || wanted >= rank)
        return ERROR(TSSA_RUNTIME, "scan input %u: axis %" PRId64 " is out of range for rank %d",
                     (unsigned)i, wanted, rank);
    *axis = (int)(wanted < 0 ? wanted + rank : wanted);
    int64_t length = value->tensor.dims[*axis];
    if (scan->steps >= 0 && scan->steps != length)
        return ERROR(TSSA_RUNTIME, "scan input %u has %" PRId64 " steps, another has %" PRId64,
                     (unsigned)i, length, scan->steps);
    scan->steps = length;
    return NULL;
}

static tssa_status *iterate(struct scan *scan, int64_t t, const int *axes)
{
    struct run *run = scan->run;
    struct value value;
    for (uint32_t i = 0; i < scan->n_states; i++)
        executor_bind(run, scan->body, i, &scan->values[i]);
    for (uint32_t i = 0; i < scan->n_scanned; i++) {
        int64_t at = scan->attrs->input_directions[i] == 1 ? scan->steps - 1 - t : t;
        TRY(slice_along(&run->pool, &scan->values[scan->n_states + i].tensor, axes[i], at, &value));
        executor_bind(run, scan->body, scan->n_states + i, &value);
    }
    TRY(executor_run_block(run, scan->body));
    for (uint32_t i = 0; i < scan->n_states; i++)
        executor_take(run, scan->body, i, &scan->values[i]);
    for (uint32_t i = 0; i < scan->n_stacked; i++) {
        executor_take(run, scan->body, scan->n_states + i, &value);
        tssa_status *status = stack_push(&scan->stacks[i], &value, scan->steps);
        value_release(&value);
        TRY(status);
    }
    slab_take_turns(run, scan->step);
    return NULL;
}

/* Runs over scan->values; `limit` < 0: all steps. */
static tssa_status *scan_steps(struct scan *scan, int64_t limit)
{
    int *axes = allocator_calloc(&scan->run->pool.cached, scan->n_scanned + 1u, sizeof *axes);
    TRY_ALLOC(axes);
    tssa_status *status = NULL;
    scan->steps = -1;
    for (uint32_t i = 0; !status && i < scan->n_scanned; i++)
        status = input_axis(scan, i, &axes[i]);
    if (!status && limit > scan->steps)
        status =
            ERROR(TSSA_RUNTIME, "sequence_lens holds %" PRId64 " but there are %" PRId64 " steps",
                  limit, scan->steps);
    if (!status && limit >= 0)
        scan->steps = limit;
    for (int64_t t = 0; !status && t < scan->steps; t++)
        status = iterate(scan, t, axes);
    allocator_free(&scan->run->pool.cached, axes);
    return status;
}

static tssa_status *finish_stacks(struct scan *scan, struct value *results)
{
    const struct ir_op *returned = ir_block_return(scan->body->block);
    bool batched = scan->attrs->batched;
    for (uint32_t i = 0; i < scan->n_stacked; i++) {
        int64_t axis = batched ? 0 : scan->attrs->output_axes[i];
        bool reverse = !batched && scan->attrs->output_directions[i] == 1;
        struct tensor empty;
        control_empty_element(scan->run, returned, scan->n_states + i, &empty);
        TRY(stack_finish(&scan->stacks[i], &empty, axis, reverse, &results[i]));
    }
    return NULL;
}

/* ---- Version 9 and later --------------------------------------------------------------------- */

static tssa_status *run_unbatched(struct scan *scan)
{
    struct run *run = scan->run;
    for (uint32_t i = 0; i < scan->step->n_inputs; i++)
        if (run->inputs[scan->step->first_input + i])
            value_copy(&scan->values[i], run->inputs[scan->step->first_input + i]);
    TRY(scan_steps(scan, -1));
    struct value *results =
        allocator_calloc(&run->pool.cached, scan->n_stacked + 1u, sizeof *results);
    TRY_ALLOC(results);
    tssa_status *status = finish_stacks(scan, results);
    for (uint32_t i = 0; !status && i < scan->n_states; i++)
        control_set_result(run, scan->step, i, &scan->values[i]);
    for (uint32_t i = 0; i < scan->n_stacked; i++)
        if (!status)
            control_set_result(run, scan->step, scan->n_states + i, &results[i]);
        else
            value_release(&results[i]);
    allocator_free(&run->pool.cached, results);
    return status;
}

/* ---- Version 8 ------------------------------------------------------------------------------- */

/* Extends a [steps, ...] tensor with zeros to `length` steps. */
static tssa_status *pad_steps(struct run *run, struct value *value, int64_t length)
{
    struct tensor *tensor = &value->tensor;
    if (tensor->dims[0] == length)
        return NULL;
    size_t bytes = tensor_bytes(tensor), count, total;
    int64_t dims[TSSA_MAX_RANK];
    memcpy(dims, tensor->dims, sizeof dims);
    dims[0] = length;
    TRY(tensor_layout(tensor->dtype, tensor->rank, dims, &count, &total));
    struct buffer *buffer = pool_alloc(&run->pool, total);
    TRY_ALLOC(buffer);
    memset(buffer->data, 0, total);
    if (bytes)
        memcpy(buffer->data, tensor->data, bytes);
    buffer_release(tensor->owner);
    tensor->owner = buffer;
    tensor->data = buffer->data;
    tensor->dims[0] = length;
    return NULL;
}

/* One batch item: slices of all inputs, a scan, and its results pushed onto `batches`. */
static tssa_status *run_item(struct scan *scan, int64_t item, int64_t limit, int64_t length,
                             struct value *results, struct stack *batches)
{
    struct run *run = scan->run;
    for (uint32_t i = 0; i < scan->n_states + scan->n_scanned; i++) {
        const struct value *input = run->inputs[scan->step->first_input + 1 + i];
        if (!input || input->kind != TSSA_KIND_TENSOR || input->tensor.rank < 1 ||
            item >= input->tensor.dims[0])
            return ERROR(TSSA_RUNTIME, "input %u has no batch item %" PRId64, (unsigned)(i + 1),
                         item);
        value_release(&scan->values[i]);
        TRY(slice_along(&run->pool, &input->tensor, 0, item, &scan->values[i]));
    }
    TRY(scan_steps(scan, limit));
    TRY(finish_stacks(scan, results));
    for (uint32_t i = 0; i < scan->n_states; i++)
        TRY(stack_push(&batches[i], &scan->values[i], 0));
    for (uint32_t i = 0; i < scan->n_stacked; i++) {
        TRY(pad_steps(run, &results[i], length));
        TRY(stack_push(&batches[scan->n_states + i], &results[i], 0));
        value_release(&results[i]);
    }
    return NULL;
}

static tssa_status *run_items(struct scan *scan, struct value *results, struct stack *batches)
{
    struct run *run = scan->run;
    const struct value *lens = run->inputs[scan->step->first_input];
    const struct value *first = run->inputs[scan->step->first_input + 1 + scan->n_states];
    if (!first || first->kind != TSSA_KIND_TENSOR || first->tensor.rank < 2)
        return ERROR(TSSA_RUNTIME, "scan input 0 needs a batch axis and a sequence axis");
    int64_t items = first->tensor.dims[0], length = first->tensor.dims[1];
    bool limited = lens && lens->kind == TSSA_KIND_TENSOR;
    if (limited &&
        (lens->tensor.dtype != TSSA_INT64 || (int64_t)tensor_count(&lens->tensor) != items))
        return ERROR(TSSA_RUNTIME, "sequence_lens must be %" PRId64 " INT64 values", items);
    for (int64_t b = 0; b < items; b++) {
        int64_t limit = limited ? ((const int64_t *)lens->tensor.data)[b] : -1;
        if (limited && limit < 0)
            return ERROR(TSSA_RUNTIME, "sequence_lens holds %" PRId64, limit);
        TRY(run_item(scan, b, limit, length, results, batches));
    }
    for (uint32_t i = 0; i < scan->n_states + scan->n_stacked; i++) {
        struct value value;
        struct tensor empty;
        control_empty_element(run, ir_block_return(scan->body->block), i, &empty);
        TRY(stack_finish(&batches[i], &empty, 0, false, &value));
        control_set_result(run, scan->step, i, &value);
    }
    return NULL;
}

static tssa_status *run_batched(struct scan *scan)
{
    struct run *run = scan->run;
    uint32_t n = scan->n_states + scan->n_stacked;
    struct value *results =
        allocator_calloc(&run->pool.cached, scan->n_stacked + 1u, sizeof *results);
    struct stack *batches = allocator_calloc(&run->pool.cached, n + 1u, sizeof *batches);
    tssa_status *status = results && batches ? NULL : status_out_of_memory();
    for (uint32_t i = 0; batches && i < n; i++)
        stack_init(&batches[i], &run->env, NULL);
    if (!status)
        status = run_items(scan, results, batches);
    for (uint32_t i = 0; results && i < scan->n_stacked; i++)
        value_release(&results[i]);
    for (uint32_t i = 0; batches && i < n; i++)
        stack_free(&batches[i]);
    allocator_free(&run->pool.cached, results);
    allocator_free(&run->pool.cached, batches);
    return status;
}

tssa_status *control_run_scan(struct run *run, const struct step *step)
{
    const struct scan_attrs *attrs = step->state;
    struct scan scan = {.run = run,
                        .step = step,
                        .attrs = attrs,
                        .body = step->blocks[0],
                        .n_states = attrs->n_states,
                        .n_scanned = attrs->n_scanned,
                        .n_stacked = attrs->n_stacked};
    tssa_status *status = scan_open(&scan);
    if (!status)
        status = attrs->batched ? run_batched(&scan) : run_unbatched(&scan);
    scan_close(&scan);
    return status;
}
