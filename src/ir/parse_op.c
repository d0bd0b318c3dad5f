/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the text form: values, ops and blocks (parse.h). */
#include <string.h>

#include "ir/parse.h"

#define MAX_ATTRS 4096

/* ---- Values ---------------------------------------------------------------------------------- */

tssa_status *parse_ref(struct parser *parser, struct value_ref *ref)
{
    *ref = (struct value_ref){.kind = REF_ABSENT, .token = parser->token};
    if (parse_at_name(parser, "_"))
        return parse_advance(parser);
    if (parser->token.kind == TOKEN_VALUE) {
        ref->kind = REF_NAME;
        return parse_intern(parser, &ref->name);
    }
    if (parser->token.kind != TOKEN_NUMBER_VALUE)
        return parse_expected(parser, "a value");
    if (parser->token.too_large)
        return parse_error(&parser->token, "the number of the value is too large");
    ref->kind = REF_NUMBER;
    ref->number = parser->token.number;
    return parse_advance(parser);
}

static tssa_status *define(struct parser *parser, const struct value_ref *ref,
                           struct ir_value *value)
{
    bool put = true;
    if (ref->kind == REF_ABSENT) {
        value->wanted = false;
    } else if (ref->kind == REF_NAME) {
        if (map_get(&parser->names, &ref->name, sizeof ref->name))
            return parse_error(&ref->token, "the value is defined twice");
        value->name = ref->name;
        put = map_put(&parser->names, &value->name, sizeof value->name, value);
    } else {
        if (map_get(&parser->numbers, &ref->number, sizeof ref->number))
            return parse_error(&ref->token, "the value is defined twice");
        uint64_t *key = arena_copy(&parser->graph->arena, &ref->number, sizeof ref->number);
        put = key && map_put(&parser->numbers, key, sizeof *key, value);
    }
    return put ? NULL : status_out_of_memory();
}

tssa_status *parse_resolve(const struct parser *parser, const struct value_ref *ref,
                           struct ir_value **value)
{
    *value = NULL;
    if (ref->kind == REF_ABSENT)
        return NULL;
    *value = ref->kind == REF_NAME ? map_get(&parser->names, &ref->name, sizeof ref->name)
                                   : map_get(&parser->numbers, &ref->number, sizeof ref->number);
    return *value ? NULL : parse_error(&ref->token, "the value is not defined before its use");
}

static void set_type(struct ir_value *value, const struct ir_type *type)
{
    value->type = type;
    value->declared = type;
}

/* ---- Ops ------------------------------------------------------------------------------------- */

/* The names before `=`, pushed to parser->refs. */
static tssa_status *parse_results(struct parser *parser)
{
    bool more = parser->token.kind == TOKEN_VALUE || parser->token.kind == TOKEN_NUMBER_VALUE ||
                parse_at_name(parser, "_");
    if (!more)
        return NULL;
    while (more) {
        struct value_ref ref;
        TRY(parse_ref(parser, &ref));
        if (!vec_push(&parser->refs, ref))
            return status_out_of_memory();
        TRY(parse_accept(parser, ',', &more));
    }
    return parse_expect(parser, '=');
}

static tssa_status *parse_operands(struct parser *parser)
{
    TRY(parse_expect(parser, '('));
    bool more = !parse_at(parser, ')');
    while (more) {
        struct value_ref ref;
        struct ir_value *value = NULL;
        TRY(parse_ref(parser, &ref));
        TRY(parse_resolve(parser, &ref, &value));
        if (!vec_push(&parser->operands, value))
            return status_out_of_memory();
        TRY(parse_accept(parser, ',', &more));
    }
    return parse_expect(parser, ')');
}

/* opaque("domain", "Name", version[, "overload"]) */
static tssa_status *parse_opaque(struct parser *parser, const struct ir_opaque **opaque)
{
    struct ir_opaque *made = ARENA_NEW(&parser->graph->arena, struct ir_opaque);
    bool more = false;
    TRY_ALLOC(made);
    TRY(parse_advance(parser));
    TRY(parse_expect(parser, '('));
    TRY(parse_string(parser, &made->domain));
    TRY(parse_expect(parser, ','));
    TRY(parse_string(parser, &made->name));
    TRY(parse_expect(parser, ','));
    TRY(parse_int(parser, &made->opset));
    made->overload = intern_str(&parser->graph->strings, "");
    TRY_ALLOC(made->overload);
    TRY(parse_accept(parser, ',', &more));
    if (more)
        TRY(parse_string(parser, &made->overload));
    *opaque = made;
    return parse_expect(parser, ')');
}

static int64_t imported_opset(const struct ir_graph *graph, const char *domain)
{
    for (size_t i = 0; i < graph->n_opsets; i++)
        if (strcmp(graph->opsets[i].domain, domain) == 0)
            return graph->opsets[i].version;
    return domain[0] ? IR_NEWEST_ML_OPSET : IR_NEWEST_OPSET;
}

/* The row for [domain.]Name, or the name alone of tssa's own ops; `opaque` has a spelling of its
 * own. */
static const struct ir_op_info *find_info(const char *spelled, size_t size)
{
    char domain[64] = "", name[64];
    const char *dot = memrchr(spelled, '.', size);
    size_t domain_size = dot ? (size_t)(dot - spelled) : 0, skip = dot ? domain_size + 1 : 0;
    if (domain_size >= sizeof domain || size - skip >= sizeof name)
        return NULL;
    memcpy(domain, spelled, domain_size);
    memcpy(name, spelled + skip, size - skip);
    domain[domain_size] = name[size - skip] = '\0';
    const struct ir_op_info *info = ir_op_lookup(domain, name);
    if (!info && !dot)
        info = ir_op_lookup(ir_op_info(IR_OP_opaque)->domain, name);
    bool prefixed = dot && info && info->versions[0] == 0;
    return info && !prefixed && info->id != IR_OP_opaque && info->id != IR_OP_call ? info : NULL;
}

/* Name[@version] */
static tssa_status *parse_op_name(struct parser *parser, const struct ir_op_info **info,
                                  int *version)
{
    struct token token = parser->token;
    bool given = false;
    if (token.kind != TOKEN_NAME)
        return parse_expected(parser, "an operator");
    *info = find_info(token.string, token.string_size);
    if (!*info)
        return ERROR(TSSA_MALFORMED, "line %u, column %u: unknown operator '%.*s'",
                     (unsigned)token.line, (unsigned)token.column,
                     (int)utf8_cut(token.string, token.string_size, 40), token.string);
    TRY(parse_advance(parser));
    TRY(parse_accept(parser, '@', &given));
    if (given) {
        int64_t number = 0;
        struct token at = parser->token;
        TRY(parse_int(parser, &number));
        if (number < 0 || number > UINT8_MAX)
            return parse_error(&at, "no such version");
        *version = (int)number;
        return NULL;
    }
    *version = ir_op_bind(*info, imported_opset(parser->graph, (*info)->domain));
    if (*version == 0 && (*info)->versions[0] != 0)
        return parse_error(&token, "the operator is newer than the imported opset");
    return NULL;
}

/* The rest of an attribute list whose first name is parsed; pushed to parser->attrs. */
static tssa_status *parse_attrs(struct parser *parser, const char *name)
{
    size_t base = parser->attrs.count;
    for (;;) {
        struct token start = parser->token;
        struct ir_attr attr = {.name = name};
        bool more = false;
        TRY(parse_expect(parser, '='));
        TRY(parse_attr_value(parser, &attr));
        for (size_t i = base; i < parser->attrs.count; i++)
            if (parser->attrs.data[i].name == name)
                return parse_error(&start, "the attribute is there twice");
        if (parser->attrs.count - base == MAX_ATTRS)
            return parse_error(&start, "too many attributes");
        if (!vec_push(&parser->attrs, attr))
            return status_out_of_memory();
        TRY(parse_accept(parser, ',', &more));
        if (!more)
            return parse_expect(parser, '}');
        TRY(parse_name(parser, &name));
    }
}

static tssa_status *parse_block(struct parser *parser, struct ir_block *block);

/* The rest of an op's blocks, of which the first one's name is parsed. */
static tssa_status *parse_blocks(struct parser *parser, struct ir_op *op, const char *name)
{
    size_t base = parser->blocks.count;
    for (;;) {
        struct ir_block *block = ir_block_create(parser->graph, op, 0);
        TRY_ALLOC(block);
        if (!vec_push(&parser->blocks, block) || !vec_push(&parser->strings, name))
            return status_out_of_memory();
        TRY(parse_block(parser, block));
        if (parse_at(parser, '}'))
            break;
        TRY(parse_name(parser, &name));
    }
    size_t n = parser->blocks.count - base;
    if (!ir_op_set_blocks(parser->graph, op, (uint32_t)n))
        return status_out_of_memory();
    parser->blocks.count = base;
    parser->strings.count -= n;
    memcpy(op->blocks, parser->blocks.data + base, n * sizeof *op->blocks);
    memcpy(op->block_names, parser->strings.data + parser->strings.count,
           n * sizeof *op->block_names);
    return parse_advance(parser);
}

/* `: type, type`, one for each result that is not `_`; their names start at refs. */
static tssa_status *parse_result_types(struct parser *parser, struct ir_op *op, size_t refs)
{
    bool given = false, first = true;
    TRY(parse_accept(parser, ':', &given));
    for (uint32_t i = 0; given && i < op->n_results; i++) {
        const struct ir_type *type = NULL;
        if (parser->refs.data[refs + i].kind == REF_ABSENT)
            continue;
        if (!first)
            TRY(parse_expect(parser, ','));
        first = false;
        TRY(parse_type(parser, &type));
        set_type(&op->results[i], type);
    }
    return NULL;
}

/* What follows the operands: [@name] [{attributes}] [: types] [{blocks}] */
static tssa_status *parse_op_tail(struct parser *parser, struct ir_op *op, size_t refs)
{
    bool given = false;
    const char *name = NULL;
    size_t base = parser->attrs.count;
    TRY(parse_accept(parser, '@', &given));
    if (given)
        TRY(parse_name(parser, &op->name));
    TRY(parse_accept(parser, '{', &given));
    if (given) {
        TRY(parse_name(parser, &name));
        if (parse_at(parser, '('))
            return parse_blocks(parser, op, name);
        TRY(parse_attrs(parser, name));
        op->n_attrs = (uint32_t)(parser->attrs.count - base);
        op->attrs = arena_copy(&parser->graph->arena, parser->attrs.data + base,
                               op->n_attrs * sizeof *op->attrs);
        TRY_ALLOC(op->attrs);
        parser->attrs.count = base;
    }
    TRY(parse_result_types(parser, op, refs));
    TRY(parse_accept(parser, '{', &given));
    if (!given)
        return NULL;
    TRY(parse_name(parser, &name));
    return parse_blocks(parser, op, name);
}

static tssa_status *parse_op(struct parser *parser, struct ir_block *block)
{
    const struct ir_op_info *info = ir_op_info(IR_OP_opaque);
    const struct ir_opaque *opaque = NULL;
    size_t refs = parser->refs.count, operands = parser->operands.count;
    int version = 0;
    TRY(parse_results(parser));
    if (parse_at_name(parser, "opaque"))
        TRY(parse_opaque(parser, &opaque));
    else
        TRY(parse_op_name(parser, &info, &version));
    TRY(parse_operands(parser));

    uint32_t n_operands = (uint32_t)(parser->operands.count - operands);
    uint32_t n_results = (uint32_t)(parser->refs.count - refs);
    struct ir_op *op = ir_op_create(parser->graph, info, n_operands, n_results);
    TRY_ALLOC(op);
    op->version = version;
    op->opaque = opaque;
    for (uint32_t i = 0; i < n_operands; i++)
        ir_op_set_operand(op, i, parser->operands.data[operands + i]);
    parser->operands.count = operands;
    ir_op_append(block, op);
    /* Inner blocks may push to `refs`, and must not see the op's own results. */
    TRY(parse_op_tail(parser, op, refs));
    for (uint32_t i = 0; i < n_results; i++)
        TRY(define(parser, &parser->refs.data[refs + i], &op->results[i]));
    parser->refs.count = refs;
    return NULL;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

tssa_status *parse_params(struct parser *parser, struct ir_block *block, bool defaults)
{
    TRY(parse_expect(parser, '('));
    bool more = !parse_at(parser, ')');
    while (more) {
        struct value_ref ref;
        const struct ir_type *type = NULL;
        struct ir_attr given = {.kind = IR_ATTR_TENSOR};
        bool has_default = false;
        TRY(parse_ref(parser, &ref));
        if (ref.kind == REF_ABSENT)
            return parse_error(&ref.token, "a parameter needs a name");
        TRY(parse_expect(parser, ':'));
        TRY(parse_type(parser, &type));
        struct ir_value *param = ir_block_add_param(block);
        TRY_ALLOC(param);
        set_type(param, type);
        TRY(define(parser, &ref, param));
        if (defaults)
            TRY(parse_accept(parser, '=', &has_default));
        if (has_default) {
            struct tensor *tensor = ARENA_NEW(&parser->graph->arena, struct tensor);
            TRY_ALLOC(tensor);
            TRY(parse_tensor(parser, tensor));
            given.tensor = tensor;
        }
        if (defaults && !vec_push(&parser->attrs, given))
            return status_out_of_memory();
        TRY(parse_accept(parser, ',', &more));
    }
    return parse_expect(parser, ')');
}

tssa_status *parse_body(struct parser *parser, struct ir_block *block)
{
    TRY(parse_expect(parser, '{'));
    while (!parse_at(parser, '}'))
        TRY(parse_op(parser, block));
    return parse_advance(parser);
}

static tssa_status *parse_block(struct parser *parser, struct ir_block *block)
{
    TRY(parse_enter(parser));
    TRY(parse_params(parser, block, false));
    TRY(parse_body(parser, block));
    parser->depth--;
    return NULL;
}
