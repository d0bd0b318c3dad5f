/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/equal.h"

#include <string.h>

#include "base/hash.h"
#include "ir/rule.h"

/* ---- Attributes ------------------------------------------------------------------------------ */

static bool strings_equal(const tssa_string *a, const tssa_string *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a[i].size != b[i].size || (a[i].size && memcmp(a[i].data, b[i].data, a[i].size) != 0))
            return false;
    return true;
}

bool tensor_equal(const struct tensor *a, const struct tensor *b)
{
    if (a == b)
        return true;
    if (a->dtype != b->dtype || !tensor_same_shape(a, b))
        return false;
    if (a->dtype == TSSA_STRING)
        return strings_equal(a->data, b->data, tensor_count(a));
    size_t bytes = tensor_bytes(a);
    return bytes == 0 || a->data == b->data || memcmp(a->data, b->data, bytes) == 0;
}

static bool tensors_equal(const struct tensor *a, const struct tensor *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!tensor_equal(&a[i], &b[i]))
            return false;
    return true;
}

/* The plural kinds; floats bit by bit. */
static bool lists_equal(const struct ir_attr *a, const struct ir_attr *b)
{
    if (a->count != b->count)
        return false;
    if (a->count == 0)
        return true;
    switch (a->kind) {
    case IR_ATTR_FLOATS:
        return memcmp(a->floats, b->floats, a->count * sizeof *a->floats) == 0;
    case IR_ATTR_INTS:
        return memcmp(a->ints, b->ints, a->count * sizeof *a->ints) == 0;
    case IR_ATTR_STRINGS:
        return strings_equal(a->strings, b->strings, a->count);
    case IR_ATTR_TENSORS:
        return tensors_equal(a->tensors, b->tensors, a->count);
    case IR_ATTR_TYPES:
        return memcmp(a->types, b->types, a->count * sizeof(void *)) == 0;
    default:
        return false;
    }
}

static bool attr_equal(const struct ir_attr *a, const struct ir_attr *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case IR_ATTR_FLOAT:
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bit by bit, zeros and NaNs too */
        return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case IR_ATTR_INT:
        return a->i == b->i;
    case IR_ATTR_STRING:
        return strings_equal(&a->s, &b->s, 1);
    case IR_ATTR_TENSOR:
        return tensor_equal(a->tensor, b->tensor);
    case IR_ATTR_TYPE:
        return a->type == b->type;
    case IR_ATTR_RULE:
        return rule_equal(a->rule, b->rule);
    default:
        return lists_equal(a, b);
    }
}

bool ir_attrs_equal(const struct ir_op *a, const struct ir_op *b)
{
    if (a->n_attrs != b->n_attrs)
        return false;
    for (uint32_t i = 0; i < a->n_attrs; i++) {
        const struct ir_attr *other = &b->attrs[i]; /* mostly they are in one order */
        if (strcmp(other->name, a->attrs[i].name) != 0)
            other = ir_attr(b, a->attrs[i].name);
        if (!other || !attr_equal(&a->attrs[i], other))
            return false;
    }
    return true;
}

/* ---- Hashes ---------------------------------------------------------------------------------- */

#define HASHED_BYTES 4096 /* of each end of a tensor */

static uint64_t tensor_hash(const struct tensor *tensor)
{
    size_t bytes = tensor_bytes(tensor);
    const char *data = tensor->data;
    uint64_t hash = hash_bytes(tensor->dims, (size_t)tensor->rank * sizeof *tensor->dims,
                               (uint64_t)tensor->dtype);
    if (tensor->dtype == TSSA_STRING) {
        const tssa_string *strings = tensor->data;
        for (size_t i = 0; i < tensor_count(tensor) && i < HASHED_BYTES; i++)
            hash = hash_bytes(strings[i].data, strings[i].size, hash);
        return hash;
    }
    if (bytes <= 2 * (size_t)HASHED_BYTES)
        return hash_bytes(data, bytes, hash);
    hash = hash_bytes(data, HASHED_BYTES, hash);
    return hash_bytes(data + bytes - HASHED_BYTES, HASHED_BYTES, hash);
}

static uint64_t rule_hash(const struct rule *rule, uint64_t hash)
{
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        hash = hash_bytes(&step->kind, sizeof step->kind, hash);
        for (uint32_t k = 0; k < step->n_params; k++)
            hash = hash_bytes(&step->params[k].value, sizeof step->params[k].value, hash);
    }
    return hash;
}

static uint64_t attr_hash(const struct ir_attr *attr)
{
    uint64_t hash = hash_bytes(attr->name, strlen(attr->name), (uint64_t)attr->kind);
    switch (attr->kind) {
    case IR_ATTR_FLOAT:
        return hash_bytes(&attr->f, sizeof attr->f, hash);
    case IR_ATTR_INT:
        return hash_bytes(&attr->i, sizeof attr->i, hash);
    case IR_ATTR_STRING:
        return hash_bytes(attr->s.data, attr->s.size, hash);
    case IR_ATTR_TENSOR:
        return hash ^ tensor_hash(attr->tensor);
    case IR_ATTR_INTS:
        return hash_bytes(attr->ints, attr->count * sizeof *attr->ints, hash);
    case IR_ATTR_RULE:
        return rule_hash(attr->rule, hash);
    default:
        return hash;
    }
}

/* A tensor is a tensor, whichever version of Constant holds it. */
static int version_of(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Constant) ? 0 : op->version;
}

uint64_t ir_op_hash(const struct ir_op *op)
{
    const uint32_t head[] = {(uint32_t)op->info->id, (uint32_t)version_of(op), op->n_operands,
                             op->n_results, op->n_blocks};
    uint64_t hash = hash_bytes(head, sizeof head, 0);
    for (uint32_t i = 0; i < op->n_attrs; i++)
        hash += attr_hash(&op->attrs[i]); /* in any order */
    return hash;
}

/* ---- Ops and blocks -------------------------------------------------------------------------- */

static bool heads_equal(const struct ir_op *a, const struct ir_op *b)
{
    if (a->info != b->info || a->opaque != b->opaque || version_of(a) != version_of(b) ||
        a->n_operands != b->n_operands || a->n_results != b->n_results ||
        a->n_blocks != b->n_blocks)
        return false;
    for (uint32_t i = 0; i < a->n_results; i++)
        if (a->results[i].wanted != b->results[i].wanted)
            return false;
    return ir_attrs_equal(a, b);
}

tssa_status *ir_ops_equal(struct ir_cloner *map, const struct ir_op *a, const struct ir_op *b,
                          bool *equal)
{
    *equal = false;
    if (!heads_equal(a, b))
        return NULL;
    for (uint32_t i = 0; i < a->n_operands; i++)
        if (ir_cloner_get(map, a->operands[i].value) != b->operands[i].value)
            return NULL;
    *equal = true;
    for (uint32_t i = 0; i < a->n_blocks && *equal; i++) {
        *equal = strcmp(a->block_names[i], b->block_names[i]) == 0;
        if (*equal)
            TRY(ir_blocks_equal(map, a->blocks[i], b->blocks[i], equal));
    }
    return NULL;
}

static tssa_status *map_value(struct ir_cloner *map, const struct ir_value *a,
                              const struct ir_value *b)
{
    return ir_cloner_map(map, a, (struct ir_value *)b) ? NULL : status_out_of_memory();
}

tssa_status *ir_blocks_equal(struct ir_cloner *map, const struct ir_block *a,
                             const struct ir_block *b, bool *equal)
{
    *equal = false;
    if (a->n_params != b->n_params)
        return NULL;
    for (uint32_t i = 0; i < a->n_params; i++)
        TRY(map_value(map, a->params[i], b->params[i]));
    const struct ir_op *x = a->first, *y = b->first;
    for (; x && y; x = x->next, y = y->next) {
        TRY(ir_ops_equal(map, x, y, equal));
        if (!*equal)
            return NULL;
        for (uint32_t i = 0; i < x->n_results; i++)
            TRY(map_value(map, &x->results[i], &y->results[i]));
    }
    *equal = !x && !y;
    return NULL;
}
