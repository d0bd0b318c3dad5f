/* SPDX-License-Identifier: Apache-2.0 */
/* The table of hazards, and what the exporter asks of it. */
#include "onnx/hazard.h"

#include <string.h>

static const struct hazard hazards[] = {
#define HAZARD(field, id, what, where, otherwise, example)                                         \
    [HAZARD_##id] = {.name = #id,                                                                  \
                     .kind = #field,                                                               \
                     .pattern = (what),                                                            \
                     .seen = (where),                                                              \
                     .around = (otherwise),                                                        \
                     .model = (example),                                                           \
                     .field = hazard_##id},
#include "onnx/hazards.def"
#undef HAZARD
};

_Static_assert(HAZARD_COUNT <= 64, "a row is a bit of onnx_export_options.kept_hazards");

size_t onnx_hazard_count(void)
{
    return HAZARD_COUNT;
}

tssa_hazard_info onnx_hazard(size_t index)
{
    const struct hazard *hazard = &hazards[index];
    return (tssa_hazard_info){.name = hazard->name,
                              .pattern = hazard->pattern,
                              .seen = hazard->seen,
                              .around = hazard->around,
                              .model = hazard->model};
}

bool onnx_hazard_is_slow(size_t index)
{
    return hazards[index].slow != NULL;
}

/* NULL: the row is not to be avoided. */
static const struct hazard *row(const struct export *export, size_t index)
{
    return export->options.kept_hazards >> index & 1 ? NULL : &hazards[index];
}

bool export_copies_result(const struct export *export, const struct ir_op *results, uint32_t index)
{
    for (size_t i = 0; i < HAZARD_COUNT; i++) {
        const struct hazard *hazard = row(export, i);
        if (hazard && hazard->copy && hazard->copy(results, index))
            return true;
    }
    return false;
}

enum export_shape export_result_shape(const struct export *export, const struct ir_op *results,
                                      uint32_t index)
{
    enum export_shape shape = SHAPE_DECLARED;
    for (size_t i = 0; i < HAZARD_COUNT; i++)
        if (hazards[i].shape && hazards[i].shape(results, index))
            shape = row(export, i) ? SHAPE_INFERRED : SHAPE_NONE;
    return shape;
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static void *failed(struct hazard_rewrite *rewrite)
{
    rewrite->failed = true;
    return NULL;
}

static const struct ir_type *tensor_type(struct arena *arena, tssa_dtype dtype)
{
    struct ir_type *type = ARENA_NEW(arena, struct ir_type);
    if (type)
        *type = (struct ir_type){.kind = TYPE_TENSOR, .dtype = dtype, .rank = -1};
    return type;
}

/* An op in no block, with room for two attributes. */
static struct ir_op *new_op(struct hazard_rewrite *rewrite, enum ir_op_id id, tssa_dtype dtype,
                            uint32_t n)
{
    struct arena *arena = &rewrite->export->scratch;
    struct ir_op *op = ARENA_NEW(arena, struct ir_op);
    if (!op)
        return failed(rewrite);
    *op = (struct ir_op){.info = ir_op_info(id),
                         .origin = IR_ORIGIN_MADE,
                         .name = rewrite->op->name,
                         .n_operands = n,
                         .n_results = 1,
                         .operands = ARENA_ARRAY(arena, struct ir_use, n),
                         .results = ARENA_NEW(arena, struct ir_value),
                         .attrs = ARENA_ARRAY(arena, struct ir_attr, 2),
                         .parent = rewrite->op->parent};
    const struct ir_type *type = tensor_type(arena, dtype);
    if ((n && !op->operands) || !op->results || !op->attrs || !type)
        return failed(rewrite);
    op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    op->results[0] = (struct ir_value){
        .id = (uint32_t)(rewrite->export->n_values++), .type = type, .op = op, .wanted = true};
    if (!vec_push(&rewrite->made, op))
        return failed(rewrite);
    return op;
}

static struct ir_op *last_op(const struct hazard_rewrite *rewrite)
{
    return (struct ir_op *)rewrite->made.data[rewrite->made.count - 1];
}

static void set_attr(struct hazard_rewrite *rewrite, struct ir_attr attr)
{
    if (rewrite->failed)
        return;
    struct ir_op *op = last_op(rewrite);
    op->attrs[op->n_attrs++] = attr;
}

void hazard_set_int(struct hazard_rewrite *rewrite, const char *name, int64_t number)
{
    set_attr(rewrite, (struct ir_attr){.name = name, .kind = IR_ATTR_INT, .i = number});
}

void hazard_set_string(struct hazard_rewrite *rewrite, const char *name, const char *text)
{
    set_attr(rewrite,
             (struct ir_attr){.name = name, .kind = IR_ATTR_STRING, .s = {text, strlen(text)}});
}

const struct ir_value *hazard_emit(struct hazard_rewrite *rewrite, enum ir_op_id id,
                                   tssa_dtype dtype, uint32_t n,
                                   const struct ir_value *const *operands)
{
    if (rewrite->failed)
        return NULL;
    struct ir_op *op = new_op(rewrite, id, dtype, n);
    for (uint32_t i = 0; op && i < n; i++)
        op->operands[i] = (struct ir_use){.user = op, .value = (struct ir_value *)operands[i]};
    return op ? &op->results[0] : NULL;
}

static const struct ir_value *constant(struct hazard_rewrite *rewrite, tssa_dtype dtype, int rank,
                                       size_t count, const void *elements)
{
    if (rewrite->failed)
        return NULL;
    struct arena *arena = &rewrite->export->scratch;
    struct tensor *tensor = ARENA_NEW(arena, struct tensor);
    void *data = arena_copy(arena, elements, count * dtype_info(dtype)->size);
    struct ir_op *op = new_op(rewrite, IR_OP_Constant, dtype, 0);
    if (!tensor || !data || !op)
        return failed(rewrite);
    *tensor = (struct tensor){.dtype = dtype, .rank = rank, .dims = {(int64_t)count}, .data = data};
    set_attr(rewrite, (struct ir_attr){.name = "value", .kind = IR_ATTR_TENSOR, .tensor = tensor});
    return &op->results[0];
}

const struct ir_value *hazard_bool(struct hazard_rewrite *rewrite, bool truth)
{
    const uint8_t element = truth;
    return constant(rewrite, TSSA_BOOL, 0, 1, &element);
}

const struct ir_value *hazard_ints(struct hazard_rewrite *rewrite, int rank, size_t count,
                                   const int64_t *numbers)
{
    return constant(rewrite, TSSA_INT64, rank, count, numbers);
}

const struct ir_value *hazard_int(struct hazard_rewrite *rewrite, int rank, int64_t number)
{
    return hazard_ints(rewrite, rank, 1, &number);
}

/* The last op stands for the one that is rewritten: its result is that op's. */
static tssa_status *keep_rewrite(struct export *export, const struct hazard_rewrite *rewrite,
                                 size_t hazard)
{
    struct export_ops *ops = ARENA_NEW(&export->scratch, struct export_ops);
    const struct ir_op **made =
        ARENA_ARRAY(&export->scratch, const struct ir_op *, rewrite->made.count);
    struct ir_op *last = last_op(rewrite);
    if (!ops || !made)
        return status_out_of_memory();
    memcpy(made, rewrite->made.data, rewrite->made.count * sizeof *made);
    *ops = (struct export_ops){.hazard = hazard, .ops = made, .count = rewrite->made.count};
    last->results[0] = rewrite->op->results[0];
    last->results[0].op = last;
    if (!map_put(&export->rewritten, &rewrite->op->id, sizeof rewrite->op->id, ops))
        return status_out_of_memory();
    return NULL;
}

static tssa_status *rewrite_op(struct hazard_rewrite *rewrite)
{
    struct export *export = rewrite->export;
    size_t last = 0;
    for (size_t i = 0; i < HAZARD_COUNT && rewrite->made.count == 0; i++) {
        const struct hazard *hazard = row(export, i);
        if (hazard && hazard->ops && rewrite->op->exact)
            hazard->ops(rewrite, rewrite->op);
        if (hazard && hazard->slow && rewrite->op->origin == IR_ORIGIN_MADE)
            hazard->slow(rewrite, rewrite->op);
        last = i;
    }
    if (rewrite->failed)
        return status_out_of_memory();
    return rewrite->made.count ? keep_rewrite(export, rewrite, last) : NULL;
}

/* Nodes of the model stay what they are; what passes made of them, too, unless it is to be exact,
 * or is slow. */
static tssa_status *visit(void *context, struct ir_op *op)
{
    struct export *export = context;
    if (!op->exact && op->origin != IR_ORIGIN_MADE)
        return NULL;
    struct hazard_rewrite rewrite = {.export = export, .op = op};
    vec_init(&rewrite.made, export->allocator);
    tssa_status *status = rewrite_op(&rewrite);
    vec_free(&rewrite.made);
    return status;
}

tssa_status *export_avoid_hazards(struct export *export)
{
    return ir_block_walk(export->graph->body, visit, export);
}

struct export_ops *export_instead(const struct export *export, const struct ir_op *op)
{
    struct export_ops *ops = map_get(&export->rewritten, &op->id, sizeof op->id);
    return ops && ops->unsaid == export->opset ? NULL : ops;
}
