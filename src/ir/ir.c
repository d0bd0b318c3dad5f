/* SPDX-License-Identifier: Apache-2.0 */
/* Making, linking and reading the pieces of the IR; see ir.h. */
#include "ir/ir.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ir/copies.h"

/* ---- Graphs ---------------------------------------------------------------------------------- */

struct ir_graph *ir_graph_create(const tssa_allocator *allocator)
{
    struct ir_graph *graph = allocator_calloc(allocator, 1, sizeof *graph);
    if (!graph)
        return NULL;
    graph->allocator = allocator;
    arena_init(&graph->arena, allocator);
    intern_init(&graph->strings, &graph->arena);
    dim_table_init(&graph->dims, &graph->arena);
    if (!type_table_init(&graph->types, &graph->arena, &graph->dims) ||
        !(graph->body = ir_block_create(graph, NULL, 0))) {
        ir_graph_free(graph);
        return NULL;
    }
    return graph;
}

void ir_graph_free(struct ir_graph *graph)
{
    if (!graph)
        return;
    for (struct ir_resource *resource = graph->resources; resource; resource = resource->next)
        resource->release(resource);
    ir_copies_free(graph->copies);
    type_table_free(&graph->types);
    dim_table_free(&graph->dims);
    intern_free(&graph->strings);
    arena_clear(&graph->arena);
    allocator_free(graph->allocator, graph);
}

void ir_graph_attach(struct ir_graph *graph, struct ir_resource *resource)
{
    resource->next = graph->resources;
    graph->resources = resource;
}

static bool is_in(const struct file_map *file, const void *data, size_t size)
{
    const uintptr_t begin = (uintptr_t)file->data, at = (uintptr_t)data;
    return at >= begin && at - begin < file->size && size <= file->size - (at - begin);
}

void ir_graph_forget(const struct ir_graph *graph, const void *data, size_t size)
{
    for (; graph; graph = graph->source)
        for (const struct ir_resource *r = graph->resources; r; r = r->next)
            if (is_in(&r->file, data, size)) {
                file_map_forget(data, size);
                return;
            }
}

void ir_graph_forget_files(const struct ir_graph *graph)
{
    for (const struct ir_resource *r = graph->resources; r; r = r->next)
        file_map_forget(r->file.data, r->file.size);
}

/* ---- Blocks and values ----------------------------------------------------------------------- */

static void value_init(struct ir_graph *graph, struct ir_value *value, uint32_t index)
{
    value->id = graph->n_values++;
    value->index = index;
    value->type = graph->types.unknown;
    value->wanted = true;
}

static void number_values(struct ir_graph *graph, struct ir_block *block)
{
    for (uint32_t i = 0; i < block->n_params; i++)
        block->params[i]->id = graph->n_values++;
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_results; i++)
            op->results[i].id = graph->n_values++;
        for (uint32_t b = 0; b < op->n_blocks; b++)
            number_values(graph, op->blocks[b]);
    }
}

void ir_graph_number_values(struct ir_graph *graph)
{
    graph->n_values = 0;
    number_values(graph, graph->body);
}

struct ir_block *ir_block_create(struct ir_graph *graph, struct ir_op *owner, uint32_t n_params)
{
    struct ir_block *block = ARENA_NEW(&graph->arena, struct ir_block);
    if (!block)
        return NULL;
    block->graph = graph;
    block->owner = owner;
    for (uint32_t i = 0; i < n_params; i++)
        if (!ir_block_add_param(block))
            return NULL;
    return block;
}

/* Parameter arrays double in the arena when their count reaches a power of two. */
static bool params_grow(struct ir_block *block)
{
    uint32_t n = block->n_params;
    if (n != 0 && (n & (n - 1)) != 0)
        return true;
    struct ir_value **grown =
        ARENA_ARRAY(&block->graph->arena, struct ir_value *, n ? 2 * (size_t)n : 1);
    if (!grown)
        return false;
    if (n)
        memcpy(grown, block->params, n * sizeof *grown);
    block->params = grown;
    return true;
}

struct ir_value *ir_block_add_param(struct ir_block *block)
{
    struct ir_value *value = ARENA_NEW(&block->graph->arena, struct ir_value);
    if (!value || !params_grow(block))
        return NULL;
    value_init(block->graph, value, block->n_params);
    value->block = block;
    block->params[block->n_params++] = value;
    return value;
}

static const struct ir_block *block_of(const struct ir_value *value)
{
    return value->op ? value->op->parent : value->block;
}

/* How much a declaration says: nothing of the shape; the rank; so many dims, too. */
static int said(const struct ir_type *declared)
{
    int64_t size;
    if (!declared || declared->kind == TYPE_UNKNOWN)
        return 0;
    if (declared->kind != TYPE_TENSOR)
        return 1;
    int count = declared->rank >= 0;
    for (int i = 0; i < declared->rank; i++)
        count += dim_is_const(declared->dims[i], &size);
    return count;
}

void ir_value_declare(struct ir_value *value, const struct ir_type *declared)
{
    if (said(declared) > said(value->declared) && type_compatible(declared, value->type))
        value->declared = declared;
}

void ir_value_replace(struct ir_value *from, struct ir_value *to)
{
    if (block_of(from) == block_of(to))
        ir_value_declare(to, from->declared);
    while (from->uses)
        ir_op_set_operand(from->uses->user, (uint32_t)(from->uses - from->uses->user->operands),
                          to);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

struct ir_op *ir_op_create(struct ir_graph *graph, const struct ir_op_info *info,
                           uint32_t n_operands, uint32_t n_results)
{
    struct ir_op *op = ARENA_NEW(&graph->arena, struct ir_op);
    if (!op)
        return NULL;
    op->info = info;
    op->id = graph->n_ops++;
    graph->has_mutation |= info->cls == IR_CLASS_MUTATION;
    op->n_operands = n_operands;
    op->n_results = n_results;
    op->operands = ARENA_ARRAY(&graph->arena, struct ir_use, n_operands);
    op->results = ARENA_ARRAY(&graph->arena, struct ir_value, n_results);
    if (!op->operands || !op->results)
        return NULL;
    for (uint32_t i = 0; i < n_operands; i++)
        op->operands[i].user = op;
    for (uint32_t i = 0; i < n_results; i++) {
        value_init(graph, &op->results[i], i);
        op->results[i].op = op;
    }
    return op;
}

void ir_op_append(struct ir_block *block, struct ir_op *op)
{
    op->parent = block;
    op->prev = block->last;
    op->next = NULL;
    *(block->last ? &block->last->next : &block->first) = op;
    block->last = op;
}

void ir_op_insert_before(struct ir_op *op, struct ir_op *before)
{
    struct ir_block *block = before->parent;
    op->parent = block;
    op->next = before;
    op->prev = before->prev;
    *(before->prev ? &before->prev->next : &block->first) = op;
    before->prev = op;
}

static void unlink_op(struct ir_op *op)
{
    struct ir_block *block = op->parent;
    *(op->prev ? &op->prev->next : &block->first) = op->next;
    *(op->next ? &op->next->prev : &block->last) = op->prev;
}

void ir_op_move_before(struct ir_op *op, struct ir_op *before)
{
    unlink_op(op);
    ir_op_insert_before(op, before);
}

void ir_op_remove(struct ir_op *op)
{
    unlink_op(op);
    op->parent = NULL;
    op->prev = op->next = NULL;
    for (uint32_t i = 0; i < op->n_operands; i++)
        ir_op_set_operand(op, i, NULL);
}

static void use_unlink(struct ir_use *use)
{
    if (!use->value)
        return;
    *(use->prev ? &use->prev->next : &use->value->uses) = use->next;
    if (use->next)
        use->next->prev = use->prev;
}

void ir_op_set_operand(struct ir_op *op, uint32_t index, struct ir_value *value)
{
    struct ir_use *use = &op->operands[index];
    use_unlink(use);
    use->value = value;
    use->prev = NULL;
    use->next = value ? value->uses : NULL;
    if (use->next)
        use->next->prev = use;
    if (value)
        value->uses = use;
}

bool ir_op_set_blocks(struct ir_graph *graph, struct ir_op *op, uint32_t n_blocks)
{
    struct arena *arena = &graph->arena;
    op->blocks = ARENA_ARRAY(arena, struct ir_block *, n_blocks);
    op->block_names = ARENA_ARRAY(arena, const char *, n_blocks);
    op->n_blocks = n_blocks;
    return op->blocks && op->block_names;
}

struct ir_block *ir_op_block(const struct ir_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->n_blocks; i++)
        if (strcmp(op->block_names[i], name) == 0)
            return op->blocks[i];
    return NULL;
}

bool ir_op_is_pure(const struct ir_op *op)
{
    if (!(op->info->flags & IR_PURE))
        return false;
    for (uint32_t i = 0; i < op->n_blocks; i++)
        for (const struct ir_op *inner = op->blocks[i]->first; inner; inner = inner->next)
            if (!ir_op_is_pure(inner))
                return false;
    return true;
}

bool ir_op_broadcasts(const struct ir_op *op)
{
    return op->info->ew && !ir_op_is(op, IR_OP_PRelu) && !ir_op_is(op, IR_OP_Clip);
}

const struct ir_function_op *ir_function_unknown(const struct ir_function *function)
{
    for (size_t i = 0; i < function->n_ops; i++)
        if (!function->ops[i].callee && !function->ops[i].is_known)
            return &function->ops[i];
    return NULL;
}

bool ir_block_has(const struct ir_block *block, enum ir_op_id id)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (ir_op_is(op, id))
            return true;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            if (ir_block_has(op->blocks[i], id))
                return true;
    }
    return false;
}

tssa_status *ir_block_walk(struct ir_block *block, tssa_status *(*visit)(void *, struct ir_op *),
                           void *context)
{
    struct ir_op *next;
    for (struct ir_op *op = block->first; op; op = next) {
        next = op->next; /* the visitor may remove the op */
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(ir_block_walk(op->blocks[i], visit, context));
        TRY(visit(context, op));
    }
    return NULL;
}

/* No more of an operator's name is shown: the node's tells more. */
#define SHOWN_TYPE 60

void ir_op_describe(const struct ir_op *op, char *text, size_t size)
{
    const char *type = op->opaque ? op->opaque->name : op->info->name;
    const char *name = op->name ? op->name : "";
    int type_size = (int)utf8_cut(type, strlen(type), SHOWN_TYPE), name_size = 0;
    if (!name[0]) {
        snprintf(text, size, "%.*s (node %u)", type_size, type, (unsigned)op->id);
        return;
    }
    size_t around = (size_t)type_size + sizeof " (node \"\")";
    if (size > around)
        name_size = (int)utf8_cut(name, strlen(name), size - around);
    snprintf(text, size, "%.*s (node \"%.*s\")", type_size, type, name_size, name);
}

tssa_status *ir_op_blame(tssa_status *status, const struct ir_op *op)
{
    char text[256];
    if (!status)
        return NULL;
    ir_op_describe(op, text, sizeof text);
    return status_prefix(status, "%s", text);
}

/* ---- Attributes ------------------------------------------------------------------------------ */

const struct ir_attr *ir_attr(const struct ir_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return &op->attrs[i];
    return NULL;
}

bool ir_op_set_attr(struct ir_graph *graph, struct ir_op *op, const struct ir_attr *attr)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (strcmp(op->attrs[i].name, attr->name) == 0) {
            op->attrs[i] = *attr;
            return true;
        }
    struct ir_attr *grown = ARENA_ARRAY(&graph->arena, struct ir_attr, (size_t)op->n_attrs + 1);
    if (!grown)
        return false;
    if (op->n_attrs)
        memcpy(grown, op->attrs, op->n_attrs * sizeof *grown);
    grown[op->n_attrs++] = *attr;
    op->attrs = grown;
    return true;
}

bool ir_op_copy_attrs(struct ir_graph *graph, struct ir_op *op, const struct ir_op *from)
{
    for (uint32_t i = 0; i < from->n_attrs; i++)
        if (!ir_op_set_attr(graph, op, &from->attrs[i]))
            return false;
    return true;
}

static const struct ir_attr *attr_of_kind(const struct ir_op *op, const char *name,
                                          enum ir_attr_kind kind)
{
    const struct ir_attr *attr = ir_attr(op, name);
    return attr && attr->kind == kind ? attr : NULL;
}

int64_t ir_attr_int(const struct ir_op *op, const char *name, int64_t fallback)
{
    const struct ir_attr *attr = attr_of_kind(op, name, IR_ATTR_INT);
    return attr ? attr->i : fallback;
}

int64_t ir_op_axis(const struct ir_op *op)
{
    int axis = 0;
    ir_op_default_axis(op->info, op->version, &axis);
    return ir_attr_int(op, "axis", axis);
}

float ir_attr_float(const struct ir_op *op, const char *name, float fallback)
{
    const struct ir_attr *attr = attr_of_kind(op, name, IR_ATTR_FLOAT);
    return attr ? attr->f : fallback;
}

const char *ir_attr_str(const struct ir_op *op, const char *name, const char *fallback)
{
    const struct ir_attr *attr = attr_of_kind(op, name, IR_ATTR_STRING);
    return attr ? attr->s.data : fallback;
}

const int64_t *ir_attr_ints(const struct ir_op *op, const char *name, size_t *count)
{
    const struct ir_attr *attr = attr_of_kind(op, name, IR_ATTR_INTS);
    *count = attr ? attr->count : 0;
    return attr ? attr->ints : NULL;
}

const struct tensor *ir_attr_tensor(const struct ir_op *op, const char *name)
{
    const struct ir_attr *attr = attr_of_kind(op, name, IR_ATTR_TENSOR);
    return attr ? attr->tensor : NULL;
}

/* ---- Constants ------------------------------------------------------------------------------- */

struct ir_op *ir_constant_create(struct ir_graph *graph, const struct tensor *tensor)
{
    const struct ir_op_info *info = ir_op_info(IR_OP_Constant);
    struct ir_op *op = ir_op_create(graph, info, 0, 1);
    struct ir_attr attr = {
        .name = intern_str(&graph->strings, "value"), .kind = IR_ATTR_TENSOR, .tensor = tensor};
    if (!op || !attr.name || !ir_op_set_attr(graph, op, &attr))
        return NULL;
    op->version = ir_op_bind(info, IR_NEWEST_OPSET);
    return op;
}

struct ir_op *ir_constant_ints(struct ir_graph *graph, int rank, size_t count,
                               const int64_t *values)
{
    struct tensor *tensor = ARENA_NEW(&graph->arena, struct tensor);
    int64_t *data = ARENA_ARRAY(&graph->arena, int64_t, count);
    if (!tensor || !data)
        return NULL;
    if (count)
        memcpy(data, values, count * sizeof *data);
    tensor->dtype = TSSA_INT64;
    tensor->rank = rank;
    tensor->dims[0] = (int64_t)count;
    tensor->data = data;
    return ir_constant_create(graph, tensor);
}

bool ir_value_is_mutable(const struct ir_graph *graph, const struct ir_value *value)
{
    const struct ir_use *use = graph->has_mutation ? value->uses : NULL;
    while (use && (use != use->user->operands || use->user->info->cls != IR_CLASS_MUTATION))
        use = use->next;
    return use != NULL;
}

bool ir_block_is_imperative(const struct ir_block *block)
{
    if (!block->graph->has_mutation)
        return false;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (op->info->cls == IR_CLASS_MUTATION)
            return true;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            if (ir_block_is_imperative(op->blocks[i]))
                return true;
    }
    return false;
}

const struct tensor *ir_value_constant(const struct ir_value *value)
{
    if (!value || !value->op || !ir_op_is(value->op, IR_OP_Constant))
        return NULL;
    return ir_attr_tensor(value->op, "value");
}
