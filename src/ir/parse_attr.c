/* SPDX-License-Identifier: Apache-2.0 */
/* Constant tensors and attributes in the IR's text form. */
#include <stdlib.h>
#include <string.h>

#include "ir/parse.h"
#include "ir/rule.h"

/* ---- Numbers --------------------------------------------------------------------------------- */

/* [-] (a number | inf | nan), correctly rounded to float, or to double for dtype DOUBLE. */
static tssa_status *parse_number(struct parser *parser, tssa_dtype dtype, double *value)
{
    char spelled[256] = "-";
    bool negative = false;
    TRY(parse_accept(parser, '-', &negative));
    const struct token *token = &parser->token;
    bool special = parse_at_name(parser, "inf") || parse_at_name(parser, "nan");
    if (!special && token->kind != TOKEN_INT && token->kind != TOKEN_FLOAT)
        return parse_expected(parser, "a number");
    if (token->size + 2 > sizeof spelled)
        return parse_error(token, "the number is too long");
    memcpy(spelled + 1, token->start, token->size);
    const char *start = negative ? spelled : spelled + 1;
    *value = dtype == TSSA_DOUBLE || dtype == TSSA_COMPLEX128
                 ? strtod_l(start, NULL, parser->c_locale)
                 : (double)strtof_l(start, NULL, parser->c_locale);
    return parse_advance(parser);
}

/* An integer in the range of the element type. */
static tssa_status *parse_integer(struct parser *parser, tssa_dtype dtype, int64_t *bits)
{
    unsigned n = dtype_info(dtype)->file_bits;
    bool is_signed = dtype_info(dtype)->cls == DTYPE_CLASS_SIGNED, negative = false;
    TRY(parse_accept(parser, '-', &negative));
    const struct token *token = &parser->token;
    if (token->kind != TOKEN_INT)
        return parse_expected(parser, "an integer");
    uint64_t largest = is_signed ? (UINT64_C(1) << (n - 1)) - 1 : UINT64_MAX >> (64 - n);
    if (negative)
        largest = is_signed ? largest + 1 : 0;
    if (token->too_large || token->number > largest)
        return parse_error(token, "the number does not fit its element type");
    uint64_t two_complement = negative ? 0 - token->number : token->number;
    memcpy(bits, &two_complement, sizeof *bits);
    return parse_advance(parser);
}

/* ---- Tensors --------------------------------------------------------------------------------- */

static tssa_status *parse_complex(struct parser *parser, tssa_dtype dtype, void *element)
{
    double parts[2] = {0, 0};
    TRY(parse_expect(parser, '('));
    TRY(parse_number(parser, dtype, &parts[0]));
    TRY(parse_expect(parser, ','));
    TRY(parse_number(parser, dtype, &parts[1]));
    if (dtype == TSSA_COMPLEX128)
        memcpy(element, parts, sizeof parts);
    else
        memcpy(element, (float[]){(float)parts[0], (float)parts[1]}, 2 * sizeof(float));
    return parse_expect(parser, ')');
}

/* Bytes of a STRING element or attribute; NUL-terminated. */
static tssa_status *parse_bytes(struct parser *parser, tssa_string *string)
{
    if (parser->token.kind != TOKEN_STRING)
        return parse_expected(parser, "a string");
    string->size = parser->token.string_size;
    string->data = arena_string(&parser->graph->arena, parser->token.string, string->size);
    TRY_ALLOC(string->data);
    return parse_advance(parser);
}

/* Infinity stays infinity where the type has one, unlike in a Cast. */
static void store_float(tssa_dtype dtype, void *element, double number)
{
    uint8_t *code = element;
    if (dtype == TSSA_FLOAT8E8M0)
        *code = float_to_e8m0((float)number, true, ROUND_NEAREST);
    else if (dtype_info(dtype)->size == 1)
        *code = float_to_small_float(dtype, (float)number, false);
    else
        dtype_store_double(dtype, element, number);
}

static tssa_status *parse_element(struct parser *parser, tssa_dtype dtype, void *element)
{
    int64_t integer = 0;
    double number = 0;
    switch (dtype_info(dtype)->cls) {
    case DTYPE_CLASS_FLOAT:
        TRY(parse_number(parser, dtype, &number));
        store_float(dtype, element, number);
        return NULL;
    case DTYPE_CLASS_SIGNED:
    case DTYPE_CLASS_UNSIGNED:
        TRY(parse_integer(parser, dtype, &integer));
        dtype_store_int64(dtype, element, integer);
        return NULL;
    case DTYPE_CLASS_BOOL:
        integer = parse_at_name(parser, "true");
        if (!integer && !parse_at_name(parser, "false"))
            return parse_expected(parser, "true or false");
        dtype_store_int64(dtype, element, integer);
        return parse_advance(parser);
    case DTYPE_CLASS_COMPLEX:
        return parse_complex(parser, dtype, element);
    case DTYPE_CLASS_STRING:
        return parse_bytes(parser, element);
    case DTYPE_CLASS_NONE:
        break;
    }
    return parse_expected(parser, "an element");
}

/* f32[2, 3]: constants only. */
static tssa_status *parse_shape(struct parser *parser, struct tensor *tensor)
{
    *tensor = (struct tensor){.dtype = parse_peek_dtype(parser)};
    if (tensor->dtype == TSSA_UNDEFINED)
        return parse_expected(parser, "an element type");
    TRY(parse_advance(parser));
    TRY(parse_expect(parser, '['));
    bool more = !parse_at(parser, ']');
    while (more) {
        if (tensor->rank == TSSA_MAX_RANK)
            return parse_error(&parser->token, "too many dims");
        TRY(parse_int(parser, &tensor->dims[tensor->rank++]));
        TRY(parse_accept(parser, ',', &more));
    }
    return parse_expect(parser, ']');
}

tssa_status *parse_tensor(struct parser *parser, struct tensor *tensor)
{
    struct token start = parser->token;
    size_t count = 0, bytes = 0;
    TRY(parse_shape(parser, tensor));
    if (parse_at(parser, '<'))
        return parse_error(&parser->token, "the elements of this tensor were not printed");
    tssa_status *status = tensor_layout(tensor->dtype, tensor->rank, tensor->dims, &count, &bytes);
    if (status) {
        tssa_status *located = parse_error(&start, tssa_status_message(status));
        tssa_status_free(status);
        return located;
    }
    /* Every element takes a character, so the text bounds what is allocated. */
    if (count > (size_t)(parser->lexer.end - parser->token.start))
        return parse_error(&start, "there are fewer elements than the shape says");
    char *data = arena_alloc_aligned(&parser->graph->arena, bytes ? bytes : 1, TENSOR_ALIGNMENT);
    TRY_ALLOC(data);
    tensor->data = data;
    if (tensor->rank > 0)
        TRY(parse_expect(parser, '['));
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            TRY(parse_expect(parser, ','));
        TRY(parse_element(parser, tensor->dtype, data + i * dtype_info(tensor->dtype)->size));
    }
    return tensor->rank > 0 ? parse_expect(parser, ']') : NULL;
}

/* ---- Attributes ------------------------------------------------------------------------------ */

/* The plural of an attribute kind. */
static enum ir_attr_kind plural(enum ir_attr_kind kind)
{
    return kind + (IR_ATTR_FLOATS - IR_ATTR_FLOAT);
}

static const struct {
    const char *name;
    enum ir_attr_kind kind;
} list_names[] = {{"floats", IR_ATTR_FLOATS},
                  {"ints", IR_ATTR_INTS},
                  {"strings", IR_ATTR_STRINGS},
                  {"tensors", IR_ATTR_TENSORS},
                  {"types", IR_ATTR_TYPES}};

static tssa_status *parse_numeric(struct parser *parser, struct ir_attr *attr)
{
    struct lexer ahead = parser->lexer; /* no string can follow a sign: its buffer stays as it is */
    struct token token = parser->token;
    if (parse_at(parser, '-')) {
        ahead.buffer = (struct text){.allocator = parser->lexer.buffer.allocator};
        tssa_status *status = lexer_next(&ahead, &token);
        text_free(&ahead.buffer);
        TRY(status);
    }
    if (token.kind == TOKEN_INT) {
        attr->kind = IR_ATTR_INT;
        return parse_int(parser, &attr->i);
    }
    double value = 0;
    TRY(parse_number(parser, TSSA_FLOAT, &value));
    attr->kind = IR_ATTR_FLOAT;
    attr->f = (float)value;
    return NULL;
}

/* One item of a list, or a value that is no list. */
static tssa_status *parse_single(struct parser *parser, struct ir_attr *attr)
{
    if (parser->token.kind == TOKEN_STRING) {
        attr->kind = IR_ATTR_STRING;
        return parse_bytes(parser, &attr->s);
    }
    if (parse_at_name(parser, "type")) {
        attr->kind = IR_ATTR_TYPE;
        TRY(parse_advance(parser));
        return parse_type(parser, &attr->type);
    }
    if (parse_peek_dtype(parser) != TSSA_UNDEFINED) {
        struct tensor *tensor = ARENA_NEW(&parser->graph->arena, struct tensor);
        TRY_ALLOC(tensor);
        attr->kind = IR_ATTR_TENSOR;
        attr->tensor = tensor;
        return parse_tensor(parser, tensor);
    }
    return parse_numeric(parser, attr);
}

/* Turns items of one kind into an array of what they hold. */
static tssa_status *pack_list(struct parser *parser, const struct ir_attr *items, size_t count,
                              struct ir_attr *list)
{
    static const size_t sizes[] = {[IR_ATTR_FLOATS] = sizeof(float),
                                   [IR_ATTR_INTS] = sizeof(int64_t),
                                   [IR_ATTR_STRINGS] = sizeof(tssa_string),
                                   [IR_ATTR_TENSORS] = sizeof(struct tensor),
                                   [IR_ATTR_TYPES] = sizeof(const struct ir_type *)};
    size_t size = sizes[list->kind];
    char *array = arena_alloc_array(&parser->graph->arena, count, size);
    TRY_ALLOC(array);
    for (size_t i = 0; i < count; i++) {
        const void *item = list->kind == IR_ATTR_TENSORS ? (const void *)items[i].tensor
                                                         : (const void *)&items[i].f;
        memcpy(array + i * size, item, size);
    }
    list->count = count;
    list->floats = (const float *)(const void *)array;
    return NULL;
}

/* The rest of a list; the opening bracket is parsed. */
static tssa_status *parse_list(struct parser *parser, struct ir_attr *attr)
{
    size_t base = parser->attrs.count;
    bool more = true;
    while (more) {
        struct token start = parser->token;
        struct ir_attr item = {.name = attr->name};
        TRY(parse_single(parser, &item));
        if (!vec_push(&parser->attrs, item))
            return status_out_of_memory();
        if (item.kind != parser->attrs.data[base].kind)
            return parse_error(&start, "a list holds items of one kind");
        TRY(parse_accept(parser, ',', &more));
    }
    attr->kind = plural(parser->attrs.data[base].kind);
    TRY(pack_list(parser, parser->attrs.data + base, parser->attrs.count - base, attr));
    parser->attrs.count = base;
    return parse_expect(parser, ']');
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* [-] integer, or $ and the number of an operand. */
static tssa_status *parse_param(struct parser *parser, struct rule_param *param)
{
    TRY(parse_accept(parser, '$', &param->is_operand));
    return parse_int(parser, &param->value);
}

/* name(param, ...) */
static tssa_status *parse_step(struct parser *parser, struct rule_step *step,
                               struct rule_param *params)
{
    bool more = false, empty = false;
    const struct token *token = &parser->token;
    if (token->kind != TOKEN_NAME ||
        !rule_kind_find(token->string, token->string_size, &step->kind))
        return parse_expected(parser, "a step of a rule");
    TRY(parse_advance(parser));
    TRY(parse_expect(parser, '('));
    TRY(parse_accept(parser, ')', &empty));
    for (more = !empty; more;) {
        if (step->n_params == TSSA_MAX_RANK)
            return parse_error(&parser->token, "too many params");
        TRY(parse_param(parser, &params[step->n_params++]));
        TRY(parse_accept(parser, ',', &more));
    }
    step->params = params;
    return empty ? NULL : parse_expect(parser, ')');
}

/* The steps of a rule up to its closing bracket; the opening one is parsed. */
static tssa_status *parse_rule(struct parser *parser, const struct token *start,
                               struct ir_attr *attr)
{
    struct rule_step steps[RULE_MAX_STEPS];
    struct rule_param params[RULE_MAX_STEPS][TSSA_MAX_RANK];
    size_t count = 0;
    bool more = !parse_at(parser, ']');
    while (more) {
        if (count == RULE_MAX_STEPS)
            return parse_error(&parser->token, "a rule has too many steps");
        steps[count] = (struct rule_step){0};
        memset(params[count], 0, sizeof params[count]);
        TRY(parse_step(parser, &steps[count], params[count]));
        count++;
        TRY(parse_accept(parser, ',', &more));
    }
    attr->kind = IR_ATTR_RULE;
    attr->rule = rule_create(parser->graph, count, steps);
    TRY_ALLOC(attr->rule);
    if (rule_problem(attr->rule))
        return parse_error(start, rule_problem(attr->rule));
    return parse_expect(parser, ']');
}

/* A list, or a rule, which begins with the name of a step. */
static tssa_status *parse_brackets(struct parser *parser, struct ir_attr *attr)
{
    struct token start = parser->token;
    enum rule_kind kind;
    TRY(parse_expect(parser, '['));
    if (parser->token.kind == TOKEN_NAME &&
        rule_kind_find(parser->token.string, parser->token.string_size, &kind))
        return parse_rule(parser, &start, attr);
    return parse_list(parser, attr);
}

tssa_status *parse_attr_value(struct parser *parser, struct ir_attr *attr)
{
    struct token start = parser->token;
    if (parse_at(parser, '['))
        return parse_brackets(parser, attr);
    if (parse_at_name(parser, "steps")) {
        TRY(parse_advance(parser));
        TRY(parse_expect(parser, '['));
        return parse_rule(parser, &start, attr);
    }
    for (size_t i = 0; i < sizeof list_names / sizeof *list_names; i++) {
        if (!parse_at_name(parser, list_names[i].name))
            continue;
        attr->kind = list_names[i].kind;
        TRY(pack_list(parser, NULL, 0, attr));
        TRY(parse_advance(parser));
        TRY(parse_expect(parser, '['));
        return parse_expect(parser, ']');
    }
    return parse_single(parser, attr);
}
