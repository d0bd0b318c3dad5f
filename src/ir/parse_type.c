/* SPDX-License-Identifier: Apache-2.0 */
/* Dims and types in the IR's text form. */
#include <string.h>

#include "ir/parse.h"

/* ---- Dims ------------------------------------------------------------------------------------ */

typedef const struct dim *(*dim_maker)(struct dim_table *, const struct dim *, const struct dim *);

static const struct {
    const char *name;
    dim_maker make;
    bool variadic;
} functions[] = {{"floordiv", dim_floordiv, false},
                 {"ceildiv", dim_ceildiv, false},
                 {"mod", dim_mod, false},
                 {"min", dim_min, true},
                 {"max", dim_max, true}};

static tssa_status *parse_arguments(struct parser *parser, size_t function, const struct dim **dim)
{
    struct dim_table *dims = &parser->graph->dims;
    bool more = true;
    int count = 1;
    TRY(parse_expect(parser, '('));
    TRY(parse_dim(parser, dim));
    for (;; count++) {
        const struct dim *next = NULL;
        TRY(parse_accept(parser, ',', &more));
        if (!more)
            break;
        TRY(parse_dim(parser, &next));
        *dim = functions[function].make(dims, *dim, next);
        TRY_ALLOC(*dim);
    }
    if (count < 2 || (count > 2 && !functions[function].variadic))
        return parse_expected(parser, count < 2 ? "a second argument" : "two arguments");
    return parse_expect(parser, ')');
}

static tssa_status *parse_symbol(struct parser *parser, const struct dim **dim)
{
    const char *name = NULL;
    TRY(parse_name(parser, &name));
    *dim = dim_symbol(&parser->graph->dims, name);
    TRY_ALLOC(*dim);
    return NULL;
}

static tssa_status *parse_fresh(struct parser *parser, const struct dim **dim)
{
    char hint[64];
    uint64_t number = parser->token.number;
    if (number == 0 || number > PARSE_MAX_NUMBER || parser->token.too_large ||
        parser->token.string_size > 40)
        return parse_error(&parser->token, "no such fresh dim");
    memcpy(hint, parser->token.string, parser->token.string_size);
    hint[parser->token.string_size] = '\0';
    *dim = dim_fresh_numbered(&parser->graph->dims, hint, (uint32_t)number);
    TRY_ALLOC(*dim);
    return parse_advance(parser);
}

static tssa_status *parse_factor(struct parser *parser, const struct dim **dim)
{
    if (parser->token.kind == TOKEN_FRESH)
        return parse_fresh(parser, dim);
    if (parser->token.kind == TOKEN_NAME)
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            if (parse_at_name(parser, functions[i].name)) {
                TRY(parse_advance(parser));
                return parse_arguments(parser, i, dim);
            }
    if (parser->token.kind == TOKEN_NAME || parser->token.kind == TOKEN_STRING)
        return parse_symbol(parser, dim);
    if (parser->token.kind == TOKEN_INT) {
        int64_t value = 0;
        TRY(parse_int(parser, &value));
        *dim = dim_const(&parser->graph->dims, value);
        TRY_ALLOC(*dim);
        return NULL;
    }
    if (!parse_at(parser, '('))
        return parse_expected(parser, "a dim");
    TRY(parse_advance(parser));
    TRY(parse_dim(parser, dim));
    return parse_expect(parser, ')');
}

/*
 * Factors with * between them; `negative` is the sign in front, which belongs to a leading number.
 */
static tssa_status *parse_term(struct parser *parser, bool negative, const struct dim **dim)
{
    struct dim_table *dims = &parser->graph->dims;
    if (negative && parser->token.kind == TOKEN_INT && !parser->token.too_large &&
        parser->token.number == UINT64_C(1) << 63) {
        *dim = dim_const(dims, INT64_MIN); /* its magnitude is no int64 */
        TRY_ALLOC(*dim);
        TRY(parse_advance(parser));
    } else {
        TRY(parse_factor(parser, dim));
        *dim = negative ? dim_sub(dims, dim_const(dims, 0), *dim) : *dim;
        TRY_ALLOC(*dim);
    }
    while (parse_at(parser, '*')) {
        const struct dim *factor = NULL;
        TRY(parse_advance(parser));
        TRY(parse_factor(parser, &factor));
        *dim = dim_mul(dims, *dim, factor);
        TRY_ALLOC(*dim);
    }
    return NULL;
}

tssa_status *parse_dim(struct parser *parser, const struct dim **dim)
{
    TRY(parse_enter(parser));
    bool negative = parse_at(parser, '-');
    if (negative)
        TRY(parse_advance(parser));
    TRY(parse_term(parser, negative, dim));
    while (parse_at(parser, '+') || parse_at(parser, '-')) {
        const struct dim *term = NULL;
        negative = parse_at(parser, '-');
        TRY(parse_advance(parser));
        TRY(parse_term(parser, negative, &term));
        *dim = dim_add(&parser->graph->dims, *dim, term);
        TRY_ALLOC(*dim);
    }
    parser->depth--;
    return NULL;
}

/* ---- Types ----------------------------------------------------------------------------------- */

tssa_dtype parse_peek_dtype(const struct parser *parser)
{
    char name[32];
    if (parser->token.kind != TOKEN_NAME || parser->token.string_size >= sizeof name)
        return TSSA_UNDEFINED;
    memcpy(name, parser->token.string, parser->token.string_size);
    name[parser->token.string_size] = '\0';
    return dtype_from_name(name);
}

/* The dims of a tensor type, up to and with the closing bracket. */
static tssa_status *parse_dims(struct parser *parser, tssa_dtype dtype, const struct ir_type **type)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = 0;
    bool more = !parse_at(parser, ']');
    while (more) {
        if (rank == TSSA_MAX_RANK)
            return parse_error(&parser->token, "too many dims");
        TRY(parse_dim(parser, &dims[rank++]));
        TRY(parse_accept(parser, ',', &more));
    }
    TRY(parse_expect(parser, ']'));
    *type = type_tensor(&parser->graph->types, dtype, rank, dims);
    TRY_ALLOC(*type);
    return NULL;
}

static tssa_status *parse_tensor_type(struct parser *parser, const struct ir_type **type)
{
    tssa_dtype dtype = parse_peek_dtype(parser);
    if (dtype == TSSA_UNDEFINED && !parse_at_name(parser, "undefined"))
        return parse_expected(parser, "a type");
    TRY(parse_advance(parser));
    TRY(parse_expect(parser, '['));
    bool unranked = false;
    TRY(parse_accept(parser, '*', &unranked));
    if (!unranked)
        return parse_dims(parser, dtype, type);
    *type = type_unranked(&parser->graph->types, dtype);
    TRY_ALLOC(*type);
    return parse_expect(parser, ']');
}

static tssa_status *parse_wrapped(struct parser *parser, enum type_kind kind,
                                  const struct ir_type **type)
{
    struct type_table *types = &parser->graph->types;
    const struct ir_type *element = NULL;
    tssa_dtype key = TSSA_UNDEFINED;
    TRY(parse_advance(parser));
    TRY(parse_expect(parser, '('));
    if (kind == TYPE_MAP) {
        key = parse_peek_dtype(parser);
        if (key == TSSA_UNDEFINED)
            return parse_expected(parser, "the type of the keys");
        TRY(parse_advance(parser));
        TRY(parse_expect(parser, ','));
    }
    TRY(parse_type(parser, &element));
    *type = kind == TYPE_SEQUENCE   ? type_sequence(types, element)
            : kind == TYPE_OPTIONAL ? type_optional(types, element)
                                    : type_map(types, key, element);
    TRY_ALLOC(*type);
    return parse_expect(parser, ')');
}

tssa_status *parse_type(struct parser *parser, const struct ir_type **type)
{
    TRY(parse_enter(parser));
    if (parse_at(parser, '?')) {
        *type = parser->graph->types.unknown;
        TRY(parse_advance(parser));
    } else if (parse_at_name(parser, "opaque")) {
        *type = type_opaque(&parser->graph->types, NULL, NULL);
        TRY_ALLOC(*type);
        TRY(parse_advance(parser));
    } else if (parse_at_name(parser, "seq")) {
        TRY(parse_wrapped(parser, TYPE_SEQUENCE, type));
    } else if (parse_at_name(parser, "optional")) {
        TRY(parse_wrapped(parser, TYPE_OPTIONAL, type));
    } else if (parse_at_name(parser, "map")) {
        TRY(parse_wrapped(parser, TYPE_MAP, type));
    } else {
        TRY(parse_tensor_type(parser, type));
    }
    parser->depth--;
    return NULL;
}
