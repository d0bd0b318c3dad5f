/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/keep.h"

#include "device/device.h"
#include "device/grids/grids.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/texts.h"

/* Of a list of no more the numbers are written before anybody knows how many there are, where they
 * all have room: who waits for that need not wait for them. */
#define MOST_EARLY 65536

void grids_kept_close(struct grids_kept *kept)
{
    buffer_release(kept->counts);
}

static tssa_status *launch(struct kernel_args *args, const struct grids_kept *kept,
                           uint32_t function, const struct launch_param *params, uint32_t n)
{
    return grids_launch_text(args->env->stream, GRIDS_TEXT_KEEP, kept->word, function,
                             function == 1 ? 1 : kept->chunks, params, n);
}

static tssa_status *make_counts(struct kernel_args *args, struct grids_kept *kept)
{
    const int64_t chunk = (int64_t)grids_threads(args->env->stream->context) * GRIDS_CHUNK_EACH;
    kept->chunks = kept->count / chunk + (kept->count % chunk != 0);
    kept->adds_up = kept->chunks > GRIDS_COUNTS;
    return kernel_scratch(args, (size_t)(kept->chunks + 1) * sizeof(int64_t), &kept->counts);
}

/* Counts them. */
static tssa_status *count_kept(struct kernel_args *args, const struct grids_kept *kept)
{
    const struct launch_param counts = grids_memory(grids_buffer(kept->counts)),
                              told = grids_memory(grids_counts(args->env->stream));
    const struct launch_param count[] = {grids_memory(kept->from),
                                         counts,
                                         told,
                                         grids_number(kept->count),
                                         grids_number(kept->bits),
                                         grids_number(kept->chunks),
                                         grids_number(!kept->adds_up)},
                              add[] = {counts, told, grids_number(kept->chunks)};
    TRY(launch(args, kept, 0, count, sizeof count / sizeof *count));
    return kept->adds_up ? launch(args, kept, 1, add, sizeof add / sizeof *add) : NULL;
}

/* Waits for how many there are. */
static tssa_status *read_found(struct kernel_args *args, struct grids_kept *kept)
{
    int64_t counts[GRIDS_COUNTS];
    const size_t n = kept->adds_up ? 1 : (size_t)kept->chunks;
    TRY(grids_read_counts(args->env->stream, counts, n));
    kept->found = 0;
    for (size_t i = 0; i < n; i++)
        kept->found += counts[i];
    return NULL;
}

/* Their coordinates, a row for each axis. */
static tssa_status *number_kept(struct kernel_args *args, const struct grids_kept *kept, int rank,
                                const int64_t *dims, struct device_place to)
{
    struct launch_param params[10 + TSSA_MAX_RANK] = {grids_memory(kept->from),
                                                      grids_memory(grids_buffer(kept->counts)),
                                                      grids_memory(grids_counts(args->env->stream)),
                                                      grids_memory(to),
                                                      grids_number(kept->count),
                                                      grids_number(kept->bits),
                                                      grids_number(kept->chunks),
                                                      grids_number(kept->adds_up),
                                                      grids_number(kept->found),
                                                      grids_number(rank)};
    for (int i = 0; i < TSSA_MAX_RANK; i++)
        params[10 + i] = grids_number(i < rank ? dims[i] : 1);
    return launch(args, kept, 2, params, sizeof params / sizeof *params);
}

/* The numbers of all in a list, into memory that has room for as many as there are elements. */
static tssa_status *number_early(struct kernel_args *args, struct grids_kept *kept,
                                 struct device_place to)
{
    if (kept->chunks > 1)
        TRY(count_kept(args, kept));
    TRY(number_kept(args, kept, 1, &kept->count, to));
    return read_found(args, kept);
}

tssa_status *grids_keep_numbers(struct kernel_args *args, struct grids_kept *kept,
                                struct buffer **numbers)
{
    const bool early = kept->count <= MOST_EARLY;
    TRY(make_counts(args, kept));
    if (!early) {
        TRY(count_kept(args, kept));
        TRY(read_found(args, kept));
    }
    const size_t room = (size_t)(early ? kept->count : kept->found);
    if (room == 0)
        return NULL;
    TRY(kernel_scratch(args, room * sizeof(int64_t), numbers));
    const struct device_place to = grids_buffer(*numbers);
    return early ? number_early(args, kept, to) : number_kept(args, kept, 1, &kept->count, to);
}

/* ---- NonZero --------------------------------------------------------------------------------- */

static tssa_status *prepare_non_zero(const struct ir_op *op, const struct kernel_setup *setup,
                                     const void **state)
{
    (void)state;
    return grids_text_want(setup->context, GRIDS_TEXT_KEEP,
                           grids_word(ir_operand(op, 0)->type->dtype));
}

static tssa_status *find_early(struct kernel_args *args, struct grids_kept *kept)
{
    struct tensor *y;
    TRY(kernel_output(args, 0, TSSA_INT64, 2, (const int64_t[]){1, kept->count}, &y));
    if (!y)
        return NULL;
    TRY(number_early(args, kept, grids_place(y)));
    y->dims[1] = kept->found;
    return NULL;
}

static tssa_status *find_non_zero(struct kernel_args *args, const struct tensor *x,
                                  struct grids_kept *kept)
{
    struct tensor *y;
    if (kept->count)
        TRY(make_counts(args, kept));
    if (x->rank == 1 && kept->count > 0 && kept->count <= MOST_EARLY)
        return find_early(args, kept);
    if (kept->count) {
        TRY(count_kept(args, kept));
        TRY(read_found(args, kept));
    }
    TRY(kernel_output(args, 0, TSSA_INT64, 2, (const int64_t[]){x->rank, kept->found}, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    return number_kept(args, kept, x->rank, x->dims, grids_place(y));
}

static tssa_status *run_non_zero(struct kernel_args *args)
{
    const struct tensor *x;
    struct buffer *own = NULL;
    struct grids_kept kept = {0};
    TRY(kernel_tensor(args, 0, &x));
    kept.word = grids_word(x->dtype);
    kept.bits = (int64_t)dtype_value_bits(x->dtype);
    kept.count = (int64_t)tensor_count(x);
    tssa_status *status = grids_operand(args, 0, &own, &kept.from);
    if (!status)
        status = find_non_zero(args, x, &kept);
    grids_kept_close(&kept);
    buffer_release(own);
    return status;
}

/* ---- Compress -------------------------------------------------------------------------------- */

struct compress {
    bool flat; /* no axis: elements of the flattened operand */
    int64_t axis;
};

static tssa_status *prepare_compress(const struct ir_op *op, const struct kernel_setup *setup,
                                     const void **state)
{
    struct compress *compress = ARENA_NEW(setup->arena, struct compress);
    TRY_ALLOC(compress);
    compress->flat = !ir_attr(op, "axis");
    compress->axis = ir_op_axis(op);
    *state = compress;
    TRY(grids_text_want(setup->context, GRIDS_TEXT_KEEP, TSSA_UINT8));
    return grids_text_want(setup->context, GRIDS_TEXT_SPREAD,
                           grids_word(op->results[0].type->dtype));
}

/* What rows are kept of. */
struct rows {
    const struct tensor *x, *condition;
    int rank, axis;
    int64_t dims[TSSA_MAX_RANK]; /* of the result; that of the axis is not known */
    int64_t limit, width;        /* rows along the axis, elements of one */
    struct buffer *buffers[2], *numbers;
    struct device_place from;
};

static tssa_status *find_rows(struct kernel_args *args, struct rows *rows)
{
    const struct compress *compress = args->state;
    TRY(kernel_tensor(args, 1, &rows->condition));
    TRY(kernel_tensor(args, 0, &rows->x));
    const struct tensor *x = rows->x;
    rows->rank = 1;
    rows->limit = (int64_t)tensor_count(x);
    rows->width = 1;
    if (!compress->flat) {
        TRY(kernel_axis(compress->axis, x->rank, &rows->axis));
        rows->rank = x->rank;
        for (int i = 0; i < x->rank; i++)
            rows->dims[i] = x->dims[i];
        for (int i = rows->axis + 1; i < x->rank; i++)
            rows->width *= x->dims[i];
        rows->limit = x->dims[rows->axis];
    }
    if (rows->condition->dtype != TSSA_BOOL || rows->condition->rank != 1)
        return ERROR(TSSA_RUNTIME, "condition must be a list of bool");
    return NULL;
}

/* Behind the axis nothing may be true. */
static tssa_status *check_rest(struct kernel_args *args, const struct rows *rows)
{
    const int64_t limit = rows->limit, rest = rows->condition->dims[0] - limit;
    struct device_context *context = args->env->stream->context;
    tssa_status *status = NULL;
    if (rest <= 0)
        return NULL;
    uint8_t *mask = allocator_alloc(context->allocator, (size_t)rest);
    TRY_ALLOC(mask);
    status = grids_read(args, 1, (size_t)limit, mask, (size_t)rest);
    for (int64_t i = rest; i > 0 && !status; i--)
        if (mask[i - 1])
            status = ERROR(TSSA_RUNTIME, "condition is true for number %lld of %lld",
                           (long long)(limit + i - 1), (long long)limit);
    allocator_free(context->allocator, mask);
    return status;
}

static tssa_status *move_rows(struct kernel_args *args, struct rows *rows,
                              const struct grids_kept *kept, const struct tensor *y)
{
    const int64_t count = (int64_t)tensor_count(y);
    TRY(grids_operand(args, 0, &rows->buffers[0], &rows->from));
    const struct launch_param params[] = {
        grids_memory(rows->from),     grids_memory(grids_buffer(rows->numbers)),
        grids_memory(grids_place(y)), grids_number(count),
        grids_number(kept->found),    grids_number(rows->limit),
        grids_number(rows->width)};
    return grids_launch_each(args->env->stream, GRIDS_TEXT_SPREAD, grids_word(y->dtype), 2, count,
                             params, sizeof params / sizeof *params);
}

static tssa_status *number_rows(struct kernel_args *args, struct rows *rows,
                                struct grids_kept *kept)
{
    TRY(grids_operand(args, 1, &rows->buffers[1], &kept->from));
    return grids_keep_numbers(args, kept, &rows->numbers);
}

static tssa_status *keep_rows(struct kernel_args *args, struct rows *rows, struct grids_kept *kept)
{
    struct tensor *y;
    TRY(check_rest(args, rows));
    const int64_t n = rows->condition->dims[0];
    kept->word = TSSA_UINT8;
    kept->bits = UINT8_MAX;
    kept->count = n < rows->limit ? n : rows->limit;
    if (kept->count)
        TRY(number_rows(args, rows, kept));
    rows->dims[rows->axis] = kept->found;
    TRY(kernel_output(args, 0, rows->x->dtype, rows->rank, rows->dims, &y));
    return !y || tensor_count(y) == 0 ? NULL : move_rows(args, rows, kept, y);
}

static tssa_status *run_compress(struct kernel_args *args)
{
    struct rows rows = {0};
    struct grids_kept kept = {0};
    TRY(find_rows(args, &rows));
    tssa_status *status = keep_rows(args, &rows, &kept);
    grids_kept_close(&kept);
    buffer_release(rows.numbers);
    buffer_release(rows.buffers[0]);
    buffer_release(rows.buffers[1]);
    return status;
}

/* ---------------------------------------------------------------------------------------------- */

const struct kernel *grids_keep_find(const struct ir_op *op)
{
    static const struct kernel non_zero = {.prepare = prepare_non_zero, .run = run_non_zero},
                               compress = {.prepare = prepare_compress, .run = run_compress};
    const tssa_dtype dtype = op->n_operands ? ir_operand(op, 0)->type->dtype : TSSA_UNDEFINED;
    if (grids_word(dtype) == TSSA_UNDEFINED)
        return NULL;
    if (ir_op_is(op, IR_OP_NonZero))
        return dtype_value_bits(dtype) ? &non_zero : NULL;
    return ir_op_is(op, IR_OP_Compress) ? &compress : NULL;
}
