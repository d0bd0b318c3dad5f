/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one `fuse` op of recurrent layers each of which reads what the one before it computes:
 * RNNs, GRUs or LSTMs of one kind, forwards, with a Squeeze or Reshape in between that takes the
 * axis of directions away (layers_find, ir/layers.h). A kernel of it computes steps of one layer
 * while another thread takes the next layer through those before, and never has all that lies
 * between two layers at one time. The op stands where the last layer does.
 *
 * What is left, with a remark: layers that go backwards or both ways, of two kinds, whose sequences
 * end at steps of their own or are one behind the other, and of two-byte floats, which are rounded
 * in between; where others read what lies between two layers; and where what a layer leaves is read
 * before the last one runs.
 *
 *   needs   types
 *   keeps   results' bits; the order of ops with effects
 *   breaks  nothing
 */
#include "base/vec.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/layers.h"
#include "passes/lower/fuse.h"
#include "passes/lower/fuse_wrap.h"

struct joining {
    struct pass_context *pass;
    VEC(struct ir_op *) layers; /* of the graph, as they come */
    uint32_t *places;           /* per op id: ops come in the order of these */
    uint32_t n_places;
};

/* ---- Which ----------------------------------------------------------------------------------- */

static tssa_status *find_layer(void *context, struct ir_op *op)
{
    struct joining *j = context;
    j->places[op->id] = j->n_places++;
    return !layers_may_have(op) || vec_push(&j->layers, op) ? NULL : status_out_of_memory();
}

/* The op of the block in which somebody reads the value. */
static const struct ir_op *reader_in(const struct ir_block *block, const struct ir_use *use)
{
    const struct ir_op *op = use->user;
    while (op->parent != block)
        op = op->parent->owner;
    return op;
}

/* Where the first of those stands that read what the layer leaves, but for the layer behind it. */
static uint32_t first_reader(const struct joining *j, const struct ir_op *layer, uint32_t from)
{
    uint32_t first = UINT32_MAX;
    for (uint32_t i = from; i < layer->n_results; i++)
        for (const struct ir_use *use = layer->results[i].uses; use; use = use->next) {
            const uint32_t place = j->places[reader_in(layer->parent, use)->id];
            first = place < first ? place : first;
        }
    return first;
}

/* The layer that reads what this one computes; NULL: none does. */
static struct ir_op *layer_behind(const struct ir_op *layer)
{
    const struct ir_value *y = ir_result(layer, 0);
    for (const struct ir_use *use = y ? y->uses : NULL; use; use = use->next) {
        const struct ir_value *x = ir_result(use->user, 0);
        for (const struct ir_use *next = x ? x->uses : NULL; next; next = next->next)
            if (layers_may_have(next->user) && layers_before(next->user) == layer)
                return next->user;
    }
    return NULL;
}

/* As many as one op may have, from the first on, with a remark where there could be more. */
static tssa_status *find_stack(const struct joining *j, struct ir_op *first, struct ir_op **stack,
                               uint32_t *n)
{
    uint32_t reader = UINT32_MAX;
    stack[0] = first;
    for (*n = 1; *n < LAYERS_MOST; ++*n) {
        struct ir_op *last = stack[*n - 1], *next = layer_behind(last);
        const char *why = next ? layers_refuses_next(last, next) : NULL;
        if (!next)
            return NULL;
        const uint32_t own = first_reader(j, last, 1);
        reader = own < reader ? own : reader;
        if (!why && reader <= j->places[next->id])
            why = "what a layer before it leaves is read before it";
        if (why)
            return pass_remark(j->pass, TSSA_REMARK_MISSED, next,
                               "is not one op with the layer before it: %s", why);
        stack[*n] = next;
    }
    return NULL;
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* What the op reads enters the block, but for what the op before it there computes. */
static tssa_status *enter_operands(struct fuse_wrap *w, struct ir_op *op, bool is_first)
{
    for (uint32_t i = is_first ? 0 : 1; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i);
        struct ir_value *param = value ? fuse_wrap_enter(w, value) : NULL;
        if (value)
            TRY_ALLOC(param);
        ir_op_set_operand(op, i, param);
    }
    return NULL;
}

static struct ir_op *view_before(const struct ir_op *layer)
{
    return ir_operand(layer, RECURRENT_X)->op;
}

static bool is_handed_out(const struct ir_op *layer, uint32_t result, bool is_last)
{
    return layer->results[result].wanted && layer->results[result].uses && (result || is_last);
}

static uint32_t count_results(struct ir_op *const *stack, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < stack[i]->n_results; k++)
            count += is_handed_out(stack[i], k, i + 1 == n);
    return count;
}

/* The op is there, and so are what its block reads, and what lies between the layers. */
static void fill(struct ir_op *fuse, struct ir_op *const *stack, uint32_t n)
{
    struct ir_op *ret = fuse->blocks[0]->last;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            ir_op_move_before(view_before(stack[i]), ret);
        ir_op_move_before(stack[i], ret);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < stack[i]->n_results; k++)
            if (is_handed_out(stack[i], k, i + 1 == n)) {
                fuse_hand_out(&stack[i]->results[k], &fuse->results[count]);
                ir_op_set_operand(ret, count++, &stack[i]->results[k]);
            }
    fuse->inferred_from = ir_infer_stamp(fuse);
}

static tssa_status *wrap(const struct joining *j, struct fuse_wrap *w, struct ir_op *const *stack,
                         uint32_t n)
{
    struct ir_op *fuse;
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            TRY(enter_operands(w, view_before(stack[i]), false));
        TRY(enter_operands(w, stack[i], i == 0));
    }
    TRY(fuse_wrap_make(w, count_results(stack, n), stack[0]->name, stack[n - 1], &fuse));
    j->places[fuse->id] = j->places[stack[n - 1]->id];
    fill(fuse, stack, n);
    j->pass->changed = true;
    return pass_remark(j->pass, TSSA_REMARK_APPLIED, fuse, "one op of %u layers: %s", (unsigned)n,
                       stack[0]->info->name);
}

static tssa_status *join(const struct joining *j, struct ir_op *first)
{
    struct ir_op *stack[LAYERS_MOST];
    struct fuse_wrap w;
    uint32_t n;
    TRY(find_stack(j, first, stack, &n));
    if (n == 1 || !count_results(stack, n))
        return NULL;
    tssa_status *status = fuse_wrap_open(&w, j->pass->graph);
    if (!status)
        status = wrap(j, &w, stack, n);
    fuse_wrap_close(&w);
    return status;
}

/* Those that an earlier one took along, and what other fuse ops hold, stay where they are. */
static tssa_status *join_all(struct joining *j)
{
    TRY(ir_block_walk(j->pass->graph->body, find_layer, j));
    for (size_t i = 0; i < j->layers.count; i++)
        if (!ir_fuse_is_inside(j->layers.data[i]))
            TRY(join(j, j->layers.data[i]));
    return NULL;
}

tssa_status *pass_join_layers(struct pass_context *pass)
{
    const struct ir_graph *graph = pass->graph;
    struct joining j = {.pass = pass, .layers = VEC_INIT(graph->allocator)};
    /* A block that is made has two ops more, and takes two layers at least. */
    j.places = allocator_calloc(graph->allocator, 2u * graph->n_ops + 1u, sizeof *j.places);
    TRY_ALLOC(j.places);
    tssa_status *status = join_all(&j);
    vec_free(&j.layers);
    allocator_free(graph->allocator, j.places);
    return status;
}
