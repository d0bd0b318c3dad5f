/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the message by protobuf-c's descriptors, gathers every field that is there, and changes
 * some. */
#include "common/proto_mutate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "common/xmalloc.h"
#include "onnx/onnx.pb-c.h"

/* A list, or one value: a number, a string, bytes. */
struct slot {
    const ProtobufCFieldDescriptor *field;
    void *value;   /* of a list: the array of pointers */
    size_t *count; /* of a list of messages; NULL: one value */
};

typedef VEC(struct slot) slots;

static void push(slots *all, struct slot slot)
{
    if (!vec_push(all, slot))
        abort();
}

static size_t size_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
        return sizeof(char *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_FLOAT:
        return sizeof(float);
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(double);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return sizeof(int64_t);
    default:
        return sizeof(int32_t); /* of the types that the schema uses: int32, enums */
    }
}

/* Whether a field that is no list is set. */
static bool is_set(const char *base, const ProtobufCFieldDescriptor *field)
{
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)(const void *)(base + field->quantifier_offset) == field->id;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING)
        return *(void *const *)(const void *)(base + field->offset) != NULL;
    return *(const protobuf_c_boolean *)(const void *)(base + field->quantifier_offset);
}

static void gather(ProtobufCMessage *message, slots *all)
{
    char *base = (char *)message;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        char *value = base + field->offset;
        bool list = field->label == PROTOBUF_C_LABEL_REPEATED;
        size_t *count = (size_t *)(void *)(base + field->quantifier_offset), one = 1;
        if (list) {
            value = *(char **)(void *)value;
        } else {
            one = is_set(base, field);
            count = &one;
        }
        for (size_t k = 0; k < *count; k++) {
            if (field->type == PROTOBUF_C_TYPE_MESSAGE)
                gather(((ProtobufCMessage **)(void *)value)[k], all);
            else
                push(all, (struct slot){.field = field, .value = value + k * size_of(field->type)});
        }
        if (list && field->type == PROTOBUF_C_TYPE_MESSAGE && *count)
            push(all, (struct slot){.field = field, .value = value, .count = count});
    }
}

/* ---- Changing one slot ----------------------------------------------------------------------- */

static int64_t odd_integer(struct random *random, int64_t old)
{
    static const int64_t integers[] = {
        0,   1,  -1,      2,         3,         7,         8,         16,        27,
        100, -2, 1000000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, UINT32_MAX};
    uint64_t choice = random_next(random) % (sizeof integers / sizeof integers[0] + 3);
    if (choice >= sizeof integers / sizeof integers[0])
        return (int64_t)((uint64_t)old + choice % 3 - 1);
    return integers[choice];
}

static double odd_number(struct random *random)
{
    static const double numbers[] = {0, -1, 0.5, 1e30, -1e30, 1e-30, INFINITY, NAN};
    return numbers[random_next(random) % (sizeof numbers / sizeof numbers[0])];
}

static void change_bytes(struct random *random, ProtobufCBinaryData *bytes)
{
    if (!bytes->len)
        return;
    uint64_t at = random_next(random) % bytes->len;
    if (random_next(random) % 3 == 0)
        bytes->len = at;
    else
        bytes->data[at] = (uint8_t)odd_integer(random, bytes->data[at]);
}

static void change_list(struct random *random, struct slot *slot)
{
    void **items = slot->value;
    size_t a = random_next(random) % *slot->count, b = random_next(random) % *slot->count;
    void *item = items[a];
    switch (random_next(random) % 3) {
    case 0: /* drop */
        memmove(&items[a], &items[a + 1], (*slot->count - a - 1) * sizeof *items);
        --*slot->count;
        break;
    case 1: /* one twice, another lost */
        items[a] = items[b];
        break;
    default:
        items[a] = items[b];
        items[b] = item;
    }
}

/* Takes another string: of the same field mostly, an operator for an operator. */
static void change_string(struct random *random, struct slot *slot, const slots *all)
{
    bool same_field = random_next(random) % 4 != 0;
    for (int tries = 0; tries < 200; tries++) {
        const struct slot *other = &all->data[random_next(random) % all->count];
        if (other->field->type == PROTOBUF_C_TYPE_STRING &&
            (!same_field || other->field == slot->field)) {
            *(char **)slot->value = *(char **)other->value;
            return;
        }
    }
}

static void change(struct random *random, struct slot *slot, const slots *all)
{
    switch (slot->field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        if (*slot->count)
            change_list(random, slot);
        break;
    case PROTOBUF_C_TYPE_STRING:
        change_string(random, slot, all);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        change_bytes(random, slot->value);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)slot->value = (float)odd_number(random);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)slot->value = odd_number(random);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        *(int64_t *)slot->value = odd_integer(random, *(int64_t *)slot->value);
        break;
    default: /* element types and the like: a valid number in two of three */
        *(int32_t *)slot->value = random_next(random) % 3
                                      ? (int32_t)(random_next(random) % 27)
                                      : (int32_t)odd_integer(random, *(int32_t *)slot->value);
    }
}

/*
 * Most fields are names, and most models with exchanged names are refused early: they come up less.
 */
static struct slot *choose(struct random *random, const slots *all)
{
    struct slot *slot = &all->data[random_next(random) % all->count];
    for (int tries = 0; tries < 8 && slot->field->type == PROTOBUF_C_TYPE_STRING; tries++)
        slot = &all->data[random_next(random) % all->count];
    return slot;
}

/* ---------------------------------------------------------------------------------------------- */

static void *arena_allocate(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void arena_ignore(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

const unsigned char *proto_mutate(struct arena *arena, struct random *random, const void *data,
                                  size_t data_size, size_t *size)
{
    ProtobufCAllocator allocator = {arena_allocate, arena_ignore, arena};
    slots all = VEC_INIT(&allocator_default);
    ProtobufCMessage *message =
        protobuf_c_message_unpack(&onnx__model_proto__descriptor, &allocator, data_size, data);
    if (!message)
        abort();
    gather(message, &all);
    uint64_t times = 1 + random_next(random) % 3;
    for (uint64_t i = 0; i < times; i++)
        change(random, choose(random, &all), &all);
    vec_free(&all);
    *size = protobuf_c_message_get_packed_size(message);
    unsigned char *bytes = arena_alloc(arena, *size);
    if (!bytes)
        abort();
    protobuf_c_message_pack(message, bytes);
    return bytes;
}
