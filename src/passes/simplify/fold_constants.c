/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates pure ops without blocks whose operands are all Constants. The evaluator runs the
 * kernels of a run, so results have the bits of a run; an op that fails is left to fail when the
 * model is run.
 *
 *   needs   pass->evaluate; without it nothing happens
 *   keeps   types, known elements, order
 *   breaks  nothing
 *
 * So that a model does not grow out of hand (an Expand, a Range or a ConstantOfShape makes any size
 * from a few numbers), an op is evaluated only when
 *
 *   - its results are no larger than MAX_RESULT, or than the constants that go with it (those that
 *     no other op uses), and no larger than MAX_REPLACED, but for views (Reshape), which copy
 *     nothing;
 *   - all that was folded in the graph adds no more to its constants than pass_file_growth, or than
 *     MAX_SESSION_GROWTH where no file is written; up to MAX_FREE bytes are for nothing, since a
 *     node takes as many, and in sessions so are weights of products and convolutions that are made
 *     of no more than MAX_SEED (a ConstantOfShape), which each run would make and pack again: what
 *     they are made of is not in memory beside them, and those of one number throughout lie in the
 *     memory of the largest before them that have it;
 *   - all ops evaluated in the graph touch no more than MAX_WORK bytes; products and windows, which
 *     compute more than they read, are evaluated on small operands only.
 *
 * An op with too large a result is evaluated together with those behind it, if each is the only
 * user of the one before and the last result is small enough: a table that is turned around and
 * resized, say.
 *
 * In a file stay, whatever they weigh, ops that other runtimes fuse with their neighbours: those of
 * quantised models (pinned.c), and FP16 and BF16 constants that are widened, which are read half as
 * large.
 *
 * A constant has the precision of its type. A runtime that computes FP16 in FP32 and leaves
 * conversions out in between (ONNX Runtime, when its own optimizations are off) may use more of it
 * for what is not folded: results in FP16 may then differ in the last bit between the two models.
 */
#include <string.h>

#include "ir/infer.h"
#include "passes/lower/quantized.h"

#define MAX_RESULT ((size_t)256 << 10)
#define MAX_REPLACED ((size_t)16 << 20)
#define MAX_SESSION_GROWTH ((int64_t)4 << 20)
#define MAX_WEIGHTS ((size_t)512 << 20)
#define MAX_SEED ((size_t)4 << 10)
#define MAX_FREE 64
#define MIN_NARROW 1024 /* bytes of an FP16 constant that a reader widens */
#define MAX_WORK ((uint64_t)512 << 20)
#define MAX_HEAVY ((size_t)64 << 10) /* bytes of operands */
#define MAX_CHAIN 8                  /* ops that are evaluated together */

/* From two bytes to more of them. */
static bool widens_floats(const struct ir_op *op)
{
    const struct ir_value *x = ir_operand(op, 0);
    const struct ir_type *to = op->results[0].type;
    if (!ir_op_is(op, IR_OP_Cast) || to->kind != TYPE_TENSOR || x->type->kind != TYPE_TENSOR ||
        !dtype_in(T_F32F64, to->dtype) ||
        !dtype_in(DTYPE_BIT(TSSA_FLOAT16) | DTYPE_BIT(TSSA_BFLOAT16), x->type->dtype))
        return false;
    const struct tensor *constant = ir_value_constant(x);
    return !constant || tensor_bytes(constant) >= MIN_NARROW;
}

/* Somebody who reads the file wants it as it is. */
static bool is_kept(const struct pass_context *pass, const struct ir_op *op)
{
    return pass_is_pinned(pass, op) || quantized_is_weight(op) ||
           (!pass_is_for_session(pass) && widens_floats(op));
}

/* A pure op whose operands are constants, `but` for one of them; NULL: all. */
static bool is_constant_but(const struct ir_op *op, const struct ir_value *but)
{
    if (!(op->info->flags & IR_PURE) || op->info->cls == IR_CLASS_INTERNAL || op->n_blocks ||
        op->n_results == 0 || (op->info->flags & IR_RANDOM))
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = op->operands[i].value;
        if (value && value != but && !ir_value_constant(value))
            return false;
    }
    return op->n_operands > 0;
}

/* ---- The budget ------------------------------------------------------------------------------ */

/* What an op's operands weigh, and those of them that nobody else uses. */
struct weight {
    size_t operands, freed;
};

static bool is_counted_before(const struct ir_op *op, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (op->operands[i].value == op->operands[index].value)
            return true;
    return false;
}

static bool has_other_users(const struct ir_op *op, const struct ir_value *value)
{
    for (const struct ir_use *use = value->uses; use; use = use->next)
        if (use->user != op)
            return true;
    return false;
}

static struct weight weigh(const struct ir_op *op)
{
    struct weight weight = {0, 0};
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = op->operands[i].value;
        const struct tensor *constant = value ? ir_value_constant(value) : NULL;
        if (!constant || (i < 16 && is_counted_before(op, i)))
            continue;
        size_t bytes = tensor_bytes(constant);
        weight.operands += bytes;
        if (i < 16 && !has_other_users(op, value))
            weight.freed += bytes;
    }
    return weight;
}

/* The bytes of a result where its type tells them; 0 where only evaluation can. */
static size_t typed_bytes(const struct ir_value *result)
{
    const struct ir_type *type = result->type;
    int64_t dims[TSSA_MAX_RANK];
    size_t count, bytes;
    if (!result->wanted || type->kind != TYPE_TENSOR || type->rank < 0)
        return 0;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dims[i]))
            return 0;
    tssa_status *status = tensor_layout(type->dtype, type->rank, dims, &count, &bytes);
    if (!status)
        return bytes;
    tssa_status_free(status);
    return SIZE_MAX;
}

/* What is packed once if it is a constant: read by products, convolutions and recurrent operators
 * alone, and never as their first operand. */
static bool makes_weights(const struct pass_context *pass, const struct ir_op *op,
                          const struct weight *weight)
{
    bool weights = pass_is_for_session(pass) && weight->operands <= MAX_SEED &&
                   op->n_results == 1 && op->results[0].uses;
    for (const struct ir_use *use = op->results[0].uses; use && weights; use = use->next) {
        const enum ir_op_class reader = use->user->info->cls;
        weights = use != &use->user->operands[0] &&
                  (reader == IR_CLASS_CONTRACTION || reader == IR_CLASS_RECURRENT);
    }
    return weights;
}

static int64_t growth(const struct pass_context *pass, const struct ir_op *op,
                      const struct weight *weight, size_t bytes)
{
    if (makes_weights(pass, op, weight))
        return 0;
    return bytes <= MAX_FREE && bytes > weight->freed ? 0 : (int64_t)bytes - (int64_t)weight->freed;
}

static bool is_affordable(const struct pass_context *pass, const struct ir_op *op,
                          const struct weight *weight, size_t bytes)
{
    bool copies = !(op->info->flags & IR_ALIAS);
    if (bytes <= MAX_WEIGHTS && makes_weights(pass, op, weight))
        return true;
    if ((copies && bytes > MAX_REPLACED) || (bytes > MAX_RESULT && bytes > weight->freed))
        return false;
    int64_t most = pass_is_for_session(pass) ? MAX_SESSION_GROWTH : pass_file_growth(pass);
    int64_t more = growth(pass, op, weight, bytes);
    return more <= 0 || pass->graph->folded_growth + more <= most;
}

static bool is_heavy(const struct ir_op *op)
{
    enum ir_op_class cls = op->info->cls;
    if (ir_op_is(op, IR_OP_Resize)) /* a few operations for each element of its result */
        return false;
    return cls == IR_CLASS_CONTRACTION || cls == IR_CLASS_WINDOW || cls == IR_CLASS_RECURRENT;
}

static tssa_status *refuse(const struct pass_context *pass, const struct ir_op *op, size_t bytes)
{
    return pass_remark(
        pass, TSSA_REMARK_MISSED, op,
        "not folded: %zu bytes of constants would be too many, %lld were added before", bytes,
        (long long)pass->graph->folded_growth);
}

/* ---- Folding --------------------------------------------------------------------------------- */

static tssa_status *replace(struct ir_graph *graph, struct ir_op *op, struct tensor *const *tensors)
{
    for (uint32_t i = 0; i < op->n_results; i++) {
        struct ir_value *result = &op->results[i];
        if (!result->wanted)
            continue;
        struct ir_op *constant = ir_constant_create(graph, tensors[i]);
        TRY_ALLOC(constant);
        constant->name = op->name;
        ir_op_insert_before(constant, op);
        TRY(ir_infer_op_lenient(constant));
        ir_value_replace(result, &constant->results[0]);
        constant->results[0].name = result->name;
        constant->results[0].declared = result->declared;
        result->name = NULL;
    }
    ir_op_remove(op);
    return NULL;
}

static size_t all_bytes(const struct ir_op *op, struct tensor *const *tensors)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted)
            bytes += tensor_bytes(tensors[i]);
    return bytes;
}

static bool has_results(const struct ir_op *op)
{
    bool wanted = false;
    for (uint32_t i = 0; i < op->n_results; i++)
        wanted |= op->results[i].uses != NULL;
    return wanted && op->results[0].wanted;
}

/* Evaluates an op whose operands are constants; tensors[0] is NULL where that cannot be done. */
static tssa_status *evaluate(struct pass_context *pass, const struct ir_op *op,
                             const struct weight *weight, size_t bytes, struct tensor ***tensors)
{
    struct ir_graph *graph = pass->graph;
    *tensors = ARENA_ARRAY(&graph->arena, struct tensor *, op->n_results);
    TRY_ALLOC(*tensors);
    (*tensors)[0] = NULL;
    if ((is_heavy(op) && weight->operands > MAX_HEAVY) || graph->folded_work > MAX_WORK)
        return NULL;
    if (!(op->info->flags & IR_ALIAS))
        graph->folded_work += weight->operands + bytes;
    return pass->evaluate(pass->evaluate_user, graph, op, *tensors);
}

/* ---- Chains ---------------------------------------------------------------------------------- */

/* Ops that each use the one before, which nobody else does; the last result is small. */
struct chain {
    struct ir_op *ops[MAX_CHAIN];
    uint32_t count;
    struct weight weight; /* of the constants that go in */
};

/* The only user of an op's only result, when its other operands are constants. */
static struct ir_op *next_of(const struct pass_context *pass, const struct ir_op *op)
{
    const struct ir_use *use = op->results[0].uses;
    if (op->n_results != 1 || !use || use->next || use->user->parent != op->parent ||
        use->user->n_results != 1 || !is_constant_but(use->user, &op->results[0]) ||
        is_kept(pass, use->user))
        return NULL;
    return use->user;
}

static bool find_chain(const struct pass_context *pass, struct ir_op *op, struct chain *chain)
{
    *chain = (struct chain){.count = 0};
    while (op && chain->count < MAX_CHAIN) {
        struct weight more = weigh(op);
        size_t bytes = typed_bytes(&op->results[0]);
        chain->ops[chain->count++] = op;
        chain->weight.operands += more.operands;
        chain->weight.freed += more.freed;
        if (bytes == 0 || bytes > MAX_REPLACED)
            return false;
        if (chain->count > 1 && is_affordable(pass, op, &chain->weight, bytes))
            return true;
        op = next_of(pass, op);
    }
    return false;
}

/* What the op gives, as a constant that the next one takes. */
static tssa_status *evaluate_link(struct pass_context *pass, struct chain *chain, uint32_t i,
                                  struct tensor ***tensors)
{
    struct ir_op *op = chain->ops[i];
    struct weight weight = weigh(op);
    TRY(evaluate(pass, op, &weight, typed_bytes(&op->results[0]), tensors));
    if (!(*tensors)[0] || i + 1 == chain->count)
        return NULL;
    struct ir_op *constant = ir_constant_create(pass->graph, (*tensors)[0]);
    TRY_ALLOC(constant);
    ir_op_insert_before(constant, op);
    TRY(ir_infer_op_lenient(constant));
    ir_value_replace(&op->results[0], &constant->results[0]);
    return NULL;
}

/* Takes an op out that the walk may be about to visit. */
static void take_out(struct ir_op *op, struct ir_op **next)
{
    if (*next == op)
        *next = op->next;
    ir_op_remove(op);
}

static tssa_status *fold_chain(struct pass_context *pass, struct chain *chain, struct ir_op **next)
{
    struct tensor **tensors = NULL;
    struct ir_op *last = chain->ops[chain->count - 1];
    uint32_t n = 0; /* that were evaluated */
    do
        TRY(evaluate_link(pass, chain, n, &tensors));
    while (tensors[0] && ++n < chain->count);
    bool done = n == chain->count;
    if (done) {
        pass->graph->folded_growth += growth(pass, last, &chain->weight, tensor_bytes(tensors[0]));
        pass->changed = true;
        if (*next == last)
            *next = last->next;
        TRY(replace(pass->graph, last, tensors));
        n--;
    }
    for (uint32_t i = n; i-- > 0;) {
        struct ir_op *op = chain->ops[i], *constant = op->prev;
        if (done)
            take_out(op, next);
        else
            ir_value_replace(&constant->results[0], &op->results[0]);
        ir_op_remove(constant);
    }
    return NULL;
}

/* ---- Weights of one number ------------------------------------------------------------------- */

/* Has all of the tensor the number that the op gives? */
static bool is_filled_so(const struct tensor *filled, const struct ir_op *op)
{
    static const float zero = 0;
    const struct tensor *value = ir_attr_tensor(op, "value");
    const tssa_dtype dtype = value ? value->dtype : TSSA_FLOAT;
    return filled && filled->dtype == dtype && dtype != TSSA_STRING &&
           memcmp(filled->data, value ? value->data : &zero, tssa_dtype_size(dtype)) == 0;
}

/* *tensors stays NULL where there is no memory to lie in. */
static tssa_status *share_filled(const struct pass_context *pass, const struct ir_op *op,
                                 size_t bytes, struct tensor ***tensors)
{
    struct ir_graph *graph = pass->graph;
    const struct ir_type *type = op->results[0].type;
    if (!ir_op_is(op, IR_OP_ConstantOfShape) || !is_filled_so(graph->filled, op) || bytes == 0 ||
        bytes > tensor_bytes(graph->filled))
        return NULL;
    struct tensor *tensor = ARENA_NEW(&graph->arena, struct tensor);
    *tensors = ARENA_ARRAY(&graph->arena, struct tensor *, 1);
    TRY_ALLOC(tensor);
    TRY_ALLOC(*tensors);
    *tensor =
        (struct tensor){.dtype = type->dtype, .rank = type->rank, .data = graph->filled->data};
    for (int i = 0; i < type->rank; i++)
        (void)dim_is_const(type->dims[i], &tensor->dims[i]); /* they told the bytes */
    (*tensors)[0] = tensor;
    return NULL;
}

static void note_filled(struct ir_graph *graph, const struct ir_op *op, const struct tensor *tensor)
{
    if (ir_op_is(op, IR_OP_ConstantOfShape) && tensor_count(tensor) > 0 &&
        (!graph->filled || tensor_bytes(tensor) > tensor_bytes(graph->filled)))
        graph->filled = tensor;
}

/* ---- The pass -------------------------------------------------------------------------------- */

static tssa_status *fold(struct pass_context *pass, struct ir_op *op, struct ir_op **next)
{
    struct weight weight = weigh(op);
    struct chain chain;
    struct tensor **tensors = NULL;
    size_t bytes = 0;
    for (uint32_t i = 0; i < op->n_results && bytes != SIZE_MAX; i++) {
        size_t more = typed_bytes(&op->results[i]);
        bytes = more > SIZE_MAX - bytes ? SIZE_MAX : bytes + more;
    }
    if (!is_affordable(pass, op, &weight, bytes))
        return find_chain(pass, op, &chain) ? fold_chain(pass, &chain, next)
                                            : refuse(pass, op, bytes);
    const bool weights = makes_weights(pass, op, &weight);
    if (weights)
        TRY(share_filled(pass, op, bytes, &tensors));
    if (!tensors)
        TRY(evaluate(pass, op, &weight, bytes, &tensors));
    if (!tensors[0])
        return NULL;
    if (weights)
        note_filled(pass->graph, op, tensors[0]);
    bytes = all_bytes(op, tensors);
    if (!is_affordable(pass, op, &weight, bytes))
        return refuse(pass, op, bytes);
    pass->graph->folded_growth += growth(pass, op, &weight, bytes);
    pass->changed = true;
    return replace(pass->graph, op, tensors);
}

/* *next is what the walk visits after the op. */
static tssa_status *visit(struct pass_context *pass, struct ir_op *op, struct ir_op **next)
{
    if (!is_constant_but(op, NULL) || !has_results(op))
        return NULL;
    if (quantized_is_weight(op) && pass_is_for_session(pass))
        return NULL;
    if (is_kept(pass, op))
        return pass_remark(pass, TSSA_REMARK_MISSED, op,
                           "not folded: runtimes that read the file fuse it with its neighbours");
    return fold(pass, op, next);
}

static tssa_status *visit_block(struct pass_context *pass, struct ir_block *block)
{
    struct ir_op *next;
    for (struct ir_op *op = block->first; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(visit_block(pass, op->blocks[i]));
        TRY(visit(pass, op, &next));
    }
    return NULL;
}

tssa_status *pass_fold_constants(struct pass_context *pass)
{
    return pass->evaluate ? visit_block(pass, pass->graph->body) : NULL;
}
