/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the text form: recursive descent over docs/ir.md, with bounded nesting. Here: the graph
 * and its header. */
#include "ir/parser.h"

#include <string.h>

#include "ir/parse.h"

static tssa_status *parse_opsets(struct parser *parser)
{
    VEC(struct ir_opset) opsets = VEC_INIT(parser->graph->allocator);
    tssa_status *status = NULL;
    bool more = !parse_at(parser, ')');
    while (more) {
        struct ir_opset opset = {.version = 0};
        TRY_GOTO(status, parse_string(parser, &opset.domain), done);
        TRY_GOTO(status, parse_expect(parser, ':'), done);
        TRY_GOTO(status, parse_int(parser, &opset.version), done);
        if (!vec_push(&opsets, opset)) {
            status = status_out_of_memory();
            goto done;
        }
        TRY_GOTO(status, parse_accept(parser, ',', &more), done);
    }
    parser->graph->n_opsets = opsets.count;
    parser->graph->opsets =
        arena_copy(&parser->graph->arena, opsets.data, opsets.count * sizeof *opsets.data);
    status = parser->graph->opsets ? NULL : status_out_of_memory();
done:
    vec_free(&opsets);
    return status;
}

static tssa_status *parse_metadata(struct parser *parser)
{
    size_t base = parser->strings.count;
    bool more = !parse_at(parser, ')');
    while (more) {
        const char *key = NULL, *value = NULL;
        TRY(parse_string(parser, &key));
        TRY(parse_expect(parser, ':'));
        TRY(parse_string(parser, &value));
        if (!vec_push(&parser->strings, key) || !vec_push(&parser->strings, value))
            return status_out_of_memory();
        TRY(parse_accept(parser, ',', &more));
    }
    size_t n = (parser->strings.count - base) / 2;
    struct ir_string_pair *pairs = ARENA_ARRAY(&parser->graph->arena, struct ir_string_pair, n);
    TRY_ALLOC(pairs);
    for (size_t i = 0; i < n; i++)
        pairs[i] = (struct ir_string_pair){parser->strings.data[base + 2 * i],
                                           parser->strings.data[base + 2 * i + 1]};
    parser->graph->metadata = pairs;
    parser->graph->n_metadata = n;
    parser->strings.count = base;
    return NULL;
}

/* One `field(...)` of the header; *known is false when the next token starts no field. */
static tssa_status *parse_field(struct parser *parser, bool *known)
{
    struct ir_graph *graph = parser->graph;
    const struct {
        const char *name;
        /* One of these. */
        const char **string;
        int64_t *number;
        tssa_status *(*parse)(struct parser *parser);
    } fields[] = {{"opset", NULL, NULL, parse_opsets},
                  {"ir_version", NULL, &graph->ir_version, NULL},
                  {"model_version", NULL, &graph->model_version, NULL},
                  {"producer", &graph->producer_name, NULL, NULL},
                  {"producer_version", &graph->producer_version, NULL, NULL},
                  {"domain", &graph->domain, NULL, NULL},
                  {"doc", &graph->doc, NULL, NULL},
                  {"metadata", NULL, NULL, parse_metadata}};
    *known = false;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!parse_at_name(parser, fields[i].name))
            continue;
        *known = true;
        TRY(parse_advance(parser));
        TRY(parse_expect(parser, '('));
        if (fields[i].string)
            TRY(parse_string(parser, fields[i].string));
        else if (fields[i].number)
            TRY(parse_int(parser, fields[i].number));
        else if (fields[i].parse)
            TRY(fields[i].parse(parser));
        return parse_expect(parser, ')');
    }
    return NULL;
}

/* (%y as "out", ...): the values stay in parser->refs, the names in parser->strings. */
static tssa_status *parse_outputs(struct parser *parser)
{
    TRY(parse_expect(parser, '('));
    bool more = !parse_at(parser, ')');
    while (more) {
        struct value_ref ref;
        const char *name = NULL;
        TRY(parse_ref(parser, &ref));
        if (parse_at_name(parser, "as")) {
            TRY(parse_advance(parser));
            TRY(parse_string(parser, &name));
        }
        if (!vec_push(&parser->refs, ref) || !vec_push(&parser->strings, name))
            return status_out_of_memory();
        TRY(parse_accept(parser, ',', &more));
    }
    return parse_expect(parser, ')');
}

/* The name of an output that the text gives none. */
static const char *default_output_name(struct parser *parser, const struct ir_value *value,
                                       size_t i)
{
    if (value && value->name)
        return value->name;
    const char *name = arena_printf(&parser->graph->arena, "output_%zu", i);
    return name ? intern_str(&parser->graph->strings, name) : NULL;
}

/* The header's outputs are those of `return`. */
static tssa_status *set_outputs(struct parser *parser)
{
    struct ir_graph *graph = parser->graph;
    const struct ir_op *ret = ir_block_return(graph->body);
    size_t n = parser->refs.count;
    if (!ret || ret->n_operands != n)
        return parse_expected(parser, "a return of as many values as the graph has outputs before");
    graph->output_names = ARENA_ARRAY(&graph->arena, const char *, n);
    TRY_ALLOC(graph->output_names);
    for (size_t i = 0; i < n; i++) {
        struct ir_value *value = NULL;
        const char *name = parser->strings.data[i];
        TRY(parse_resolve(parser, &parser->refs.data[i], &value));
        if (value != ret->operands[i].value)
            return parse_error(&parser->refs.data[i].token, "the graph returns another value");
        graph->output_names[i] = name ? name : default_output_name(parser, value, i);
        TRY_ALLOC(graph->output_names[i]);
    }
    return NULL;
}

/* The inputs' defaults, which parse_params left in parser->attrs. */
static tssa_status *set_defaults(struct parser *parser)
{
    struct ir_graph *graph = parser->graph;
    graph->input_defaults = ARENA_ARRAY(&graph->arena, const struct tensor *, parser->attrs.count);
    TRY_ALLOC(graph->input_defaults);
    for (size_t i = 0; i < parser->attrs.count; i++)
        graph->input_defaults[i] = parser->attrs.data[i].tensor;
    parser->attrs.count = 0;
    return NULL;
}

static tssa_status *parse_graph(struct parser *parser)
{
    bool more = true;
    TRY(parse_advance(parser));
    if (!parse_at_name(parser, "graph"))
        return parse_expected(parser, "'graph'");
    TRY(parse_advance(parser));
    TRY(parse_accept(parser, '@', &more));
    if (more)
        TRY(parse_name(parser, &parser->graph->name));
    for (more = true; more;)
        TRY(parse_field(parser, &more));
    TRY(parse_params(parser, parser->graph->body, true));
    TRY(set_defaults(parser));
    if (parser->token.kind != TOKEN_ARROW)
        return parse_expected(parser, "'->'");
    TRY(parse_advance(parser));
    TRY(parse_outputs(parser));
    TRY(parse_body(parser, parser->graph->body));
    TRY(set_outputs(parser));
    return parser->token.kind == TOKEN_END ? NULL : parse_expected(parser, "the end of the text");
}

/* Fresh dims made while parsing must not take a number that comes later in the text. */
static void reserve_fresh(struct dim_table *dims, const char *text, size_t size)
{
    const char *end = text + size;
    for (const char *at = text; size && (at = memchr(at, '#', (size_t)(end - at))) != NULL;) {
        uint32_t number = 0;
        for (at++; at < end && *at >= '0' && *at <= '9' && number <= PARSE_MAX_NUMBER / 10; at++)
            number = number * 10 + (uint32_t)(*at - '0');
        if (number > dims->n_fresh && number <= PARSE_MAX_NUMBER)
            dims->n_fresh = number;
    }
}

static void parser_init(struct parser *parser, const tssa_allocator *allocator, const char *text,
                        size_t size)
{
    *parser = (struct parser){.graph = ir_graph_create(allocator)};
    parser->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    lexer_init(&parser->lexer, allocator, text, size);
    map_init(&parser->names, allocator);
    map_init(&parser->numbers, allocator);
    vec_init(&parser->refs, allocator);
    vec_init(&parser->operands, allocator);
    vec_init(&parser->attrs, allocator);
    vec_init(&parser->blocks, allocator);
    vec_init(&parser->strings, allocator);
}

static void parser_free(struct parser *parser)
{
    vec_free(&parser->strings);
    vec_free(&parser->blocks);
    vec_free(&parser->attrs);
    vec_free(&parser->operands);
    vec_free(&parser->refs);
    map_free(&parser->numbers);
    map_free(&parser->names);
    lexer_free(&parser->lexer);
    if (parser->c_locale)
        freelocale(parser->c_locale);
}

tssa_status *ir_parse(const tssa_allocator *allocator, const char *text, size_t size,
                      struct ir_graph **graph)
{
    struct parser parser;
    tssa_status *status = status_out_of_memory();
    parser_init(&parser, allocator, text, size);
    if (parser.graph && parser.c_locale) {
        reserve_fresh(&parser.graph->dims, text, size);
        status = parse_graph(&parser);
    }
    if (status)
        ir_graph_free(parser.graph);
    else
        *graph = parser.graph;
    parser_free(&parser);
    return status;
}
