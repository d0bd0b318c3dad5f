/* SPDX-License-Identifier: Apache-2.0 */
/* Hash-consed types. What a value can be is bounded by the loader and the IR parser (nesting), so
 * the functions over element types recurse. */
#include "ir/type.h"

#include <string.h>

#include "base/dtype.h"

/* What makes two types equal; hashed as bytes, so it has no padding. */
struct type_key {
    uint32_t kind, dtype;
    int64_t rank;
    const void *parts[TSSA_MAX_RANK]; /* the dims, or the element type and the name */
};

/* The type that `from` describes; its arrays are copied when it is new. */
static const struct ir_type *make(struct type_table *table, const struct ir_type *from)
{
    struct type_key key = {.kind = from->kind, .dtype = from->dtype, .rank = from->rank};
    size_t n = from->rank > 0 ? (size_t)from->rank : 0;
    if (n)
        memcpy(key.parts, from->dims, n * sizeof *from->dims);
    else {
        key.parts[n++] = from->element;
        key.parts[n++] = from->name;
    }
    size_t key_size = offsetof(struct type_key, parts) + n * sizeof key.parts[0];
    const struct ir_type *found = map_get(&table->types, &key, key_size);
    if (found)
        return found;
    struct ir_type *type = arena_copy(table->arena, from, sizeof *from);
    void *stored = arena_copy(table->arena, &key, key_size);
    if (!type || !stored)
        return NULL;
    if (from->rank > 0) {
        type->dims = arena_copy(table->arena, from->dims, n * sizeof *from->dims);
        if (!type->dims)
            return NULL;
    }
    if (!map_put(&table->types, stored, key_size, type))
        return NULL;
    if (type->kind == TYPE_TENSOR && type->rank >= 1) {
        type->older = table->newest;
        table->newest = type;
    }
    return type;
}

bool type_table_init(struct type_table *table, struct arena *arena, struct dim_table *dims)
{
    *table = (struct type_table){.arena = arena, .dims = dims};
    map_init(&table->types, arena->allocator);
    table->unknown = make(table, &(struct ir_type){.kind = TYPE_UNKNOWN, .rank = -1});
    return table->unknown != NULL;
}

void type_table_free(struct type_table *table)
{
    map_free(&table->types);
}

bool type_table_copy(struct type_table *copy, const struct type_table *table, struct arena *arena,
                     struct dim_table *dims)
{
    copy->arena = arena;
    copy->dims = dims;
    copy->unknown = table->unknown;
    copy->newest = table->newest;
    return map_copy(&copy->types, &table->types);
}

const struct ir_type *type_tensor(struct type_table *table, tssa_dtype dtype, int rank,
                                  const struct dim *const *dims)
{
    if (rank < 0 || rank > TSSA_MAX_RANK)
        return type_unranked(table, dtype);
    for (int i = 0; i < rank; i++)
        if (!dims[i])
            return NULL; /* making it ran out of memory */
    return make(table,
                &(struct ir_type){
                    .kind = TYPE_TENSOR, .dtype = dtype, .rank = rank, .dims = rank ? dims : NULL});
}

const struct ir_type *type_tensor_const(struct type_table *table, tssa_dtype dtype, int rank,
                                        const int64_t *dims)
{
    const struct dim *made[TSSA_MAX_RANK];
    for (int i = 0; i < rank && i < TSSA_MAX_RANK; i++)
        made[i] = dim_const(table->dims, dims[i]);
    return type_tensor(table, dtype, rank, made);
}

const struct ir_type *type_unranked(struct type_table *table, tssa_dtype dtype)
{
    return make(table, &(struct ir_type){.kind = TYPE_TENSOR, .dtype = dtype, .rank = -1});
}

const struct ir_type *type_scalar(struct type_table *table, tssa_dtype dtype)
{
    return type_tensor(table, dtype, 0, NULL);
}

/* A type around another; NULL stays NULL. */
static const struct ir_type *wrap(struct type_table *table, enum type_kind kind, tssa_dtype dtype,
                                  const struct ir_type *element)
{
    if (!element)
        return NULL;
    return make(table,
                &(struct ir_type){.kind = kind, .dtype = dtype, .rank = -1, .element = element});
}

const struct ir_type *type_sequence(struct type_table *table, const struct ir_type *element)
{
    return wrap(table, TYPE_SEQUENCE, TSSA_UNDEFINED, element);
}

const struct ir_type *type_optional(struct type_table *table, const struct ir_type *element)
{
    return wrap(table, TYPE_OPTIONAL, TSSA_UNDEFINED, element);
}

const struct ir_type *type_map(struct type_table *table, tssa_dtype key,
                               const struct ir_type *value)
{
    return wrap(table, TYPE_MAP, key, value);
}

const struct ir_type *type_opaque(struct type_table *table, const struct ir_type *element,
                                  const char *name)
{
    return make(table, &(struct ir_type){
                           .kind = TYPE_OPAQUE, .rank = -1, .element = element, .name = name});
}

const struct ir_type *type_join(struct type_table *table, const struct ir_type *a,
                                const struct ir_type *b)
{
    if (!a || !b)
        return NULL;
    if (a == b)
        return a;
    if (a->kind != b->kind || a->kind == TYPE_UNKNOWN || a->kind == TYPE_OPAQUE)
        return table->unknown;
    tssa_dtype dtype = a->dtype == b->dtype ? a->dtype : TSSA_UNDEFINED;
    if (a->kind != TYPE_TENSOR)
        return wrap(table, a->kind, dtype, type_join(table, a->element, b->element));
    if (a->rank != b->rank || a->rank < 0)
        return type_unranked(table, dtype);
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < a->rank; i++) {
        const struct dim *x = a->dims[i], *y = b->dims[i];
        dims[i] = x == y ? x
                         : dim_fresh_between(table->dims, "d", x->low < y->low ? x->low : y->low,
                                             x->high > y->high ? x->high : y->high);
    }
    return type_tensor(table, dtype, a->rank, dims);
}

/* The dim that says more: a constant, then an expression, then a fresh symbol; `a` when both do. */
static const struct dim *refine_dim(const struct dim *a, const struct dim *b)
{
    if (a->kind == DIM_CONST)
        return a;
    return b->kind == DIM_CONST || (dim_is_fresh(a) && !dim_is_fresh(b)) ? b : a;
}

const struct ir_type *type_refine(struct type_table *table, const struct ir_type *a,
                                  const struct ir_type *b)
{
    if (!a || !b)
        return NULL;
    if (a == b || b->kind == TYPE_UNKNOWN)
        return a;
    if (a->kind == TYPE_UNKNOWN)
        return b;
    if (a->kind != b->kind || a->kind == TYPE_OPAQUE)
        return a;
    tssa_dtype dtype = a->dtype != TSSA_UNDEFINED ? a->dtype : b->dtype;
    if (a->kind != TYPE_TENSOR)
        return a->element ? wrap(table, a->kind, dtype, type_refine(table, a->element, b->element))
                          : a;
    if (a->rank < 0)
        return type_tensor(table, dtype, b->rank, b->dims);
    if (a->rank != b->rank)
        return type_tensor(table, dtype, a->rank, a->dims);
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < a->rank; i++)
        dims[i] = refine_dim(a->dims[i], b->dims[i]);
    return type_tensor(table, dtype, a->rank, dims);
}

bool type_compatible(const struct ir_type *a, const struct ir_type *b)
{
    if (a == b || a->kind == TYPE_UNKNOWN || b->kind == TYPE_UNKNOWN)
        return true;
    if (a->kind != b->kind)
        return false;
    if (a->dtype != b->dtype && a->dtype != TSSA_UNDEFINED && b->dtype != TSSA_UNDEFINED)
        return false;
    if (a->kind == TYPE_OPAQUE)
        return true;
    if (a->kind != TYPE_TENSOR)
        return !a->element || type_compatible(a->element, b->element);
    if (a->rank != b->rank)
        return a->rank < 0 || b->rank < 0;
    for (int i = 0; i < a->rank; i++) {
        int64_t x, y;
        if (dim_is_const(a->dims[i], &x) && dim_is_const(b->dims[i], &y) && x != y)
            return false;
    }
    return true;
}

bool type_same_dims(const struct ir_type *a, const struct ir_type *b)
{
    bool same =
        a->kind == TYPE_TENSOR && b->kind == TYPE_TENSOR && a->rank >= 0 && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

bool type_has_one_element(const struct ir_type *type)
{
    if (type->kind != TYPE_TENSOR)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is(type->dims[i], 1))
            return false;
    return type->rank >= 0;
}

static void print_tensor(const struct ir_type *type, struct text *text)
{
    text_puts(text, dtype_info(type->dtype)->ir_name);
    text_putc(text, '[');
    if (type->rank < 0)
        text_putc(text, '*');
    for (int i = 0; i < type->rank; i++) {
        text_puts(text, i ? ", " : "");
        dim_print(type->dims[i], text);
    }
    text_putc(text, ']');
}

void type_print(const struct ir_type *type, struct text *text)
{
    switch (type->kind) {
    case TYPE_UNKNOWN:
        text_putc(text, '?');
        return;
    case TYPE_OPAQUE:
        text_puts(text, "opaque");
        return;
    case TYPE_TENSOR:
        print_tensor(type, text);
        return;
    case TYPE_SEQUENCE:
        text_puts(text, "seq(");
        break;
    case TYPE_OPTIONAL:
        text_puts(text, "optional(");
        break;
    case TYPE_MAP:
        text_printf(text, "map(%s, ", dtype_info(type->dtype)->ir_name);
        break;
    }
    type_print(type->element, text);
    text_putc(text, ')');
}
