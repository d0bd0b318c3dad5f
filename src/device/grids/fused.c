/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/fused.h"

#include <inttypes.h>

#include "device/count.h"
#include "device/grids/grids.h"
#include "device/grids/launcher.h"
#include "device/grids/multiply.h"
#include "device/grids/operands.h"
#include "device/grids/patches.h"
#include "device/grids/programs.h"
#include "device/grids/sizes.h"
#include "ir/update.h"

/* More would have threads start that have next to nothing to do: each goes on with other elements.
 */
#define MOST_BLOCKS CLIKE_MOST_BLOCKS

/* What cards' caches hold, at least, and rows that are enough to keep a card busy. */
#define CACHE_BYTES ((int64_t)16 << 20)
#define BUSY_ROWS 2048

struct state {
    struct gir_grid *grid;
    struct grids_code *code;
    uint32_t height, note, n_params;
    bool checks;
    uint32_t *updates; /* per result 1 + the operand whose memory it takes; 0: none */
};

/* ---- What a launch is given ------------------------------------------------------------------ */

static uint32_t count_params(const struct gir_grid *grid, bool *checks)
{
    struct clike_param params[CLIKE_MAX_PARAMS];
    uint32_t n = grid->n + 1; /* where parts end, and iterations */
    *checks = false;
    for (uint32_t i = 0; i < grid->n; i++) {
        const uint32_t of_part = clike_params(grid->parts[i].kernel, params);
        for (uint32_t k = 0; k < of_part; k++)
            *checks |= params[k].kind == CLIKE_STATUS;
        n += of_part;
    }
    return n;
}

/* In bytes: memory is two numbers at most. */
static size_t params_size(const struct gir_grid *grid)
{
    bool checks;
    size_t size = 8 * (size_t)count_params(grid, &checks);
    for (uint32_t i = 0; i < grid->n; i++)
        size += 8 * ((size_t)grid->parts[i].kernel->n_args + 1);
    return size;
}

const char *grids_fused_refuses(const struct launcher *launcher, const struct ir_op *fuse)
{
    struct gir_grid *grid;
    const char *why = NULL;
    tssa_status *status = gir_build_grid(fuse, fuse->parent->graph->allocator, &grid, &why);
    if (grid && params_size(grid) > launcher->most_bytes)
        why = "a launch has not so many parameters";
    gir_grid_free(grid);
    if (status)
        why = "memory ran out";
    tssa_status_free(status);
    return why;
}

/* ---- The plan -------------------------------------------------------------------------------- */

static void find_updates(const struct gir_grid *grid, uint32_t *updates)
{
    for (uint32_t i = 0; i < grid->n; i++)
        for (uint32_t k = 0; k < grid->parts[i].kernel->n_args; k++)
            if (grid->parts[i].wholes[k].updates)
                updates[grid->parts[i].wholes[k].index] = grid->parts[i].wholes[k].updates;
}

/* Of which threads share a row. */
static bool has_rows(const struct gir_kernel *kernel)
{
    return clike_form(kernel) == CLIKE_ROWS || clike_form(kernel) == CLIKE_TILES;
}

/* Of the block's threads, in y: what has rows wants its own. */
static uint32_t find_height(const struct launcher *launcher, const struct gir_grid *grid)
{
    for (uint32_t i = 0; i < grid->n; i++)
        if (has_rows(grid->parts[i].kernel))
            return launcher->row_height;
    return launcher->height;
}

static tssa_status *fill_state(const struct ir_op *op, const struct kernel_setup *setup,
                               struct state *state)
{
    struct device_context *context = setup->context;
    state->updates = ARENA_ARRAY(setup->arena, uint32_t, op->n_results);
    TRY_ALLOC(state->updates);
    find_updates(state->grid, state->updates);
    state->height = find_height(context->device->launcher, state->grid);
    state->n_params = count_params(state->grid, &state->checks);
    if (state->checks)
        TRY(grids_add_note(context, op->name, &state->note));
    return grids_code_find(context, state->grid, &state->code);
}

typedef tssa_status *(*build_fn)(const struct ir_op *fuse, const tssa_allocator *allocator,
                                 struct gir_grid **grid, const char **why);

static tssa_status *prepare_built(const struct ir_op *op, build_fn build,
                                  const struct kernel_setup *setup, const void **kept)
{
    const char *why = NULL;
    struct state *state = ARENA_NEW(setup->arena, struct state);
    TRY_ALLOC(state);
    TRY(build(op, setup->context->allocator, &state->grid, &why));
    if (!state->grid)
        return ERROR(TSSA_RUNTIME, "there is no grid of a fuse op: %s", why);
    tssa_status *status = fill_state(op, setup, state);
    if (status)
        gir_grid_free(state->grid);
    else
        *kept = state;
    return status;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **kept)
{
    return prepare_built(op, gir_build_grid, setup, kept);
}

tssa_status *grids_fused_prepare_behind(const struct ir_op *op, const struct kernel_setup *setup,
                                        const void **kept)
{
    return prepare_built(op, gir_build_grid_behind, setup, kept);
}

void grids_fused_release(const void *state)
{
    gir_grid_free(((const struct state *)state)->grid);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* What could not be taken is copied into the result first, if anything of it is left in the end. */
static tssa_status *make_result(struct kernel_args *args, uint32_t index, uint32_t updates)
{
    const struct ir_type *type = args->op->results[index].type;
    int64_t dims[TSSA_MAX_RANK];
    struct tensor *tensor;
    if (!args->outputs[index] || (updates && kernel_take(args, index, updates - 1, &tensor)))
        return NULL;
    TRY(grids_result_dims(args, index, dims));
    TRY(kernel_output(args, index, type->dtype, type->rank, dims, &tensor));
    return updates && !ir_fuse_writes_all(args->op, index) ? grids_copy(args, updates - 1, tensor)
                                                           : NULL;
}

/* ---- A launch -------------------------------------------------------------------------------- */

struct call {
    struct kernel_args *args;
    const struct state *state;
    struct buffer **buffers; /* per operand, NULL: it is not the host's */
    struct buffer *inner;    /* what stages hand on; NULL: nothing */
    size_t inner_at[GIR_MAX_STAGES];
    struct launch_param *params;
    uint32_t n_params;
    int64_t numbers[GIR_MAX_NUMBERS];
    struct grids_patches patches; /* of the part at hand, where something is turned */
};

static void add_number(struct call *call, int64_t number)
{
    call->params[call->n_params++] = (struct launch_param){.number = number};
}

static tssa_status *add_memory(struct call *call, const struct gir_whole *whole, bool is_result)
{
    struct launch_param *param = &call->params[call->n_params++];
    const uint32_t i = whole->index;
    param->is_memory = true;
    if (whole->owner == GIR_INNER) {
        param->place = grids_buffer(call->inner);
        param->place.offset += call->inner_at[i];
        return NULL;
    }
    if (!is_result && whole->owner == GIR_OF_OP)
        return grids_operand(call->args, i, &call->buffers[i], &param->place);
    param->place = grids_place(&call->args->outputs[i]->tensor);
    return NULL;
}

static void add_note(struct call *call)
{
    struct grids_stream *stream = (struct grids_stream *)call->args->env->stream;
    call->params[call->n_params++] =
        (struct launch_param){.is_memory = true, .place = {stream->notes, call->state->note}};
    stream->launched = true;
}

static int64_t count_of(const struct call *call, const struct gir_whole *whole, bool is_result)
{
    if (whole->owner == GIR_INNER)
        return call->state->grid->inner[whole->index].count;
    const struct value *value = is_result || whole->owner == GIR_OF_RESULT
                                    ? call->args->outputs[whole->index]
                                    : call->args->inputs[whole->index];
    return (int64_t)tensor_count(&value->tensor);
}

/* Rows of a tile, as a power of two: of a group, whose block is alone with it, as many as can be.
 */
static int tile_shift(const struct state *state, int64_t rows, int64_t n)
{
    int shift = 0;
    while (state->grid->groups && shift < CLIKE_MAX_SHIFT && (INT64_C(1) << shift) < rows)
        shift++;
    if (state->grid->groups)
        return shift;
    return multiply_divide(&(struct columns){.n = rows,
                                             .lines = 1,
                                             .terms = n,
                                             .threads = 32 * (int64_t)state->height,
                                             .side_by_side = true,
                                             .most = CLIKE_MAX_SHIFT});
}

static tssa_status *add_params(struct call *call, const struct gir_grid_part *part, int64_t rows,
                               int64_t n)
{
    struct clike_param params[CLIKE_MAX_PARAMS];
    const uint32_t n_params = clike_params(part->kernel, params);
    for (uint32_t k = 0; k < n_params; k++) {
        const struct gir_whole *whole = &part->wholes[params[k].arg];
        const bool is_result = gir_args(part->kernel)[params[k].arg].is_result;
        switch (params[k].kind) {
        case CLIKE_MEMORY:
            TRY(add_memory(call, whole, is_result));
            break;
        case CLIKE_STATUS:
            add_note(call);
            break;
        case CLIKE_COUNT:
            add_number(call, count_of(call, whole, is_result));
            break;
        case CLIKE_NUMBER:
            add_number(call, call->numbers[params[k].arg]);
            break;
        case CLIKE_ALONG:
            add_number(call, call->patches.along);
            break;
        case CLIKE_INNER:
            add_number(call, call->patches.inner);
            break;
        case CLIKE_SHIFT:
            add_number(call,
                       part->turned_to ? call->patches.shift : tile_shift(call->state, rows, n));
            break;
        default:
            add_number(call, params[k].kind == CLIKE_N_ROWS ? rows : n);
        }
    }
    return NULL;
}

/* A row is read in each pass: those that are under way together stay in the cache in between, so
 * where there are more, all go on to another row when they have one. */
static int64_t rows_at_once(int64_t rows, int64_t n)
{
    const int64_t cached = CACHE_BYTES / (8 * (n > 0 ? n : 1)),
                  most = cached > BUSY_ROWS ? cached : BUSY_ROWS, turns = (rows + most / 2) / most;
    return turns > 1 ? (rows + turns - 1) / turns : rows;
}

/* Threads have an element, a column or, 32 of them, a row each, and blocks a tile or a patch, as
 * far as blocks go. */
static int64_t count_blocks(const struct call *call, const struct gir_grid_part *part,
                            enum clike_dialect dialect, int64_t rows, int64_t n)
{
    const struct state *state = call->state;
    if (state->grid->groups)
        return state->grid->groups;
    if (clike_has_block(part->kernel, dialect))
        return rows < MOST_BLOCKS ? rows : MOST_BLOCKS;
    const enum clike_form form = clike_form(part->kernel);
    const int64_t each = form == CLIKE_TILES  ? (int64_t)1 << tile_shift(state, rows, n)
                         : form == CLIKE_ROWS ? state->height
                                              : 32 * (int64_t)state->height,
                  items = form == CLIKE_ROWS       ? rows_at_once(rows, n)
                          : has_rows(part->kernel) ? rows
                                                   : n,
                  blocks = form == CLIKE_TURNED ? call->patches.count
                                                : items / each + (items % each != 0);
    return blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
}

static tssa_status *tell_numbers(struct call *call)
{
    const struct gir_grid *grid = call->state->grid;
    for (uint32_t i = 0; i < grid->n_numbers; i++)
        if (!grids_tell(call->args, grid->numbers[i], &call->numbers[i]))
            return ERROR(TSSA_RUNTIME, "a size that a launch must be given is not told");
    return NULL;
}

static bool holds(const struct gir_claim *claim, int64_t size, int64_t wanted)
{
    return size == wanted || (claim->claims == GIR_SAME_OR_ONE && size == 1) ||
           (claim->claims == GIR_AT_MOST && size < wanted);
}

static tssa_status *misfit(const struct gir_claim *claim, int64_t size, int64_t wanted)
{
    static const char *const more[] = {
        [GIR_SAME] = "", [GIR_SAME_OR_ONE] = "1 or ", [GIR_AT_MOST] = "at most "};
    char op[200];
    ir_op_describe(claim->op, op, sizeof op);
    return ERROR(TSSA_RUNTIME,
                 "%s: shapes do not fit: a size is %" PRId64 ", where %s%" PRId64 " is wanted", op,
                 size, more[claim->claims], wanted);
}

/* Do shapes fit? */
static tssa_status *look_at_sizes(const struct call *call)
{
    const struct gir_grid *grid = call->state->grid;
    for (uint32_t i = 0; i < grid->n_claims; i++) {
        const struct gir_claim *claim = &grid->claims[i];
        int64_t size, wanted;
        if (!grids_tell(call->args, claim->size, &size) ||
            !grids_tell(call->args, claim->wanted, &wanted))
            return ERROR(TSSA_RUNTIME, "a size that must fit is not told");
        if (!holds(claim, size, wanted))
            return misfit(claim, size, wanted);
    }
    return NULL;
}

/* Are the elements there that threads do not look for? They are unless inference errs: sizes of one
 * name are one number before a kernel is asked. */
static tssa_status *look_at_counts(const struct call *call, const struct gir_grid_part *part)
{
    for (uint32_t k = 0; k < part->kernel->n_args; k++) {
        const struct gir_whole *whole = &part->wholes[k];
        int64_t least;
        if (!whole->least)
            continue;
        if (!grids_tell(call->args, whole->least, &least))
            return ERROR(TSSA_RUNTIME, "a size that must fit is not told");
        const int64_t count = count_of(call, whole, gir_args(part->kernel)[k].is_result);
        if (count < least)
            return ERROR(TSSA_RUNTIME,
                         "shapes do not fit: %" PRId64 " elements, where %" PRId64 " are wanted",
                         count, least);
    }
    return NULL;
}

/* Memory for what stages hand on, each at a place that suits any type. */
static tssa_status *find_inner(struct call *call)
{
    const struct gir_grid *grid = call->state->grid;
    size_t size = 0;
    for (uint32_t i = 0; i < grid->n_inner; i++) {
        call->inner_at[i] = size;
        size += ((size_t)grid->inner[i].count * tssa_dtype_size(grid->inner[i].dtype) + 63) &
                ~(size_t)63;
    }
    return size ? kernel_scratch(call->args, size, &call->inner) : NULL;
}

static tssa_status *cut(struct call *call, const struct gir_grid_part *part, int64_t n)
{
    int64_t along, inner;
    if (!part->turned_to)
        return NULL;
    TRY(grids_part_axes(call->args, part, &along, &inner));
    call->patches = grids_cut(n, along, inner);
    return NULL;
}

/* Do 32 bits hold what a part computes its elements' numbers of? */
static bool is_narrow(const struct call *call, const struct gir_grid_part *part, int64_t rows,
                      int64_t n)
{
    int64_t counts[GIR_MAX_ARGS];
    for (uint32_t k = 0; k < part->kernel->n_args; k++)
        counts[k] = count_of(call, &part->wholes[k], gir_args(part->kernel)[k].is_result);
    return clike_is_narrow(part->kernel, &(struct clike_call){rows, n, call->numbers, counts});
}

static tssa_status *launch(struct call *call)
{
    struct device_context *context = call->args->env->stream->context;
    const struct gir_grid *grid = call->state->grid;
    struct launch launch = {.height = call->state->height, .params = call->params};
    int64_t ends[GIR_GRID_MAX_PARTS], blocks = 0, trips;
    const enum clike_dialect dialect = context->device->launcher->dialect;
    enum clike_width width = CLIKE_NARROW;
    TRY(look_at_sizes(call));
    TRY(tell_numbers(call));
    TRY(find_inner(call));
    for (uint32_t i = 0; i < grid->n; i++) {
        int64_t rows, n;
        TRY(look_at_counts(call, &grid->parts[i]));
        TRY(grids_part_space(call->args, &grid->parts[i], &rows, &n));
        TRY(cut(call, &grid->parts[i], n));
        if (!is_narrow(call, &grid->parts[i], rows, n))
            width = CLIKE_WIDE;
        if (grid->groups)
            *(grid->parts[i].row ? &rows : &n) /= grid->groups;
        TRY(add_params(call, &grid->parts[i], rows, n));
        const int64_t own = count_blocks(call, &grid->parts[i], dialect, rows, n);
        ends[i] = blocks = grid->groups ? own : blocks + own;
    }
    for (uint32_t i = 0; i < grid->n; i++)
        add_number(call, ends[i]);
    TRY(grids_trips(call->args, grid, &trips));
    if (grid->groups)
        add_number(call, trips);
    if (blocks == 0 || trips <= 0)
        return NULL;
    launch.blocks = (uint32_t)blocks;
    launch.n_params = call->n_params;
    TRY(grids_code_function(context, call->state->code, width, &launch.function));
    call->args->env->stream->counts.launches++;
    count_bytes(call->args, call->state->updates, grids_tell);
    return context->device->launcher->launch(call->args->env->stream, &launch);
}

tssa_status *grids_fused_launch(struct kernel_args *args, const void *of)
{
    const struct state *state = of;
    const tssa_allocator *allocator = args->env->stream->context->allocator;
    const uint32_t n_inputs = args->n_inputs + 1; /* that of the first op */
    struct call *call = allocator_calloc(allocator, 1, sizeof *call);
    const size_t params_bytes = state->n_params * sizeof *call->params;
    void *memory = allocator_calloc(allocator, 1, params_bytes + n_inputs * sizeof *call->buffers);
    tssa_status *status = call && memory ? NULL : status_out_of_memory();
    if (!status) {
        *call = (struct call){.args = args, .state = state, .params = memory};
        call->buffers = (struct buffer **)((char *)memory + params_bytes);
        status = launch(call);
        for (uint32_t i = 0; i < n_inputs; i++)
            buffer_release(call->buffers[i]);
        buffer_release(call->inner);
    }
    allocator_free(allocator, memory);
    allocator_free(allocator, call);
    return status;
}

static tssa_status *run(struct kernel_args *args)
{
    const struct state *state = args->state;
    for (uint32_t i = 0; i < args->n_outputs; i++)
        TRY(make_result(args, i, state->updates[i]));
    return grids_fused_launch(args, state);
}

const struct kernel grids_fused = {
    .prepare = prepare, .run = run, .release = grids_fused_release, .updates = count_updated};
