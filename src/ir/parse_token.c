/* SPDX-License-Identifier: Apache-2.0 */
/* What the parsers of the text form read token by token, and what they say about one. */
#include <string.h>

#include "ir/parse.h"

tssa_status *parse_error(const struct token *token, const char *what)
{
    return ERROR(TSSA_MALFORMED, "line %u, column %u: %s", (unsigned)token->line,
                 (unsigned)token->column, what);
}

tssa_status *parse_expected(const struct parser *parser, const char *what)
{
    const struct token *token = &parser->token;
    if (token->kind == TOKEN_END)
        return ERROR(TSSA_MALFORMED, "line %u, column %u: expected %s, found the end of the text",
                     (unsigned)token->line, (unsigned)token->column, what);
    return ERROR(TSSA_MALFORMED, "line %u, column %u: expected %s, found '%.*s'",
                 (unsigned)token->line, (unsigned)token->column, what,
                 (int)utf8_cut(token->start, token->size, 40), token->start);
}

tssa_status *parse_advance(struct parser *parser)
{
    return lexer_next(&parser->lexer, &parser->token);
}

bool parse_at(const struct parser *parser, char punctuation)
{
    return parser->token.kind == TOKEN_PUNCTUATION && parser->token.punctuation == punctuation;
}

bool parse_at_name(const struct parser *parser, const char *name)
{
    return parser->token.kind == TOKEN_NAME && parser->token.string_size == strlen(name) &&
           memcmp(parser->token.string, name, parser->token.string_size) == 0;
}

tssa_status *parse_accept(struct parser *parser, char punctuation, bool *accepted)
{
    *accepted = parse_at(parser, punctuation);
    return *accepted ? parse_advance(parser) : NULL;
}

tssa_status *parse_expect(struct parser *parser, char punctuation)
{
    if (parse_at(parser, punctuation))
        return parse_advance(parser);
    return parse_expected(parser, (char[]){'\'', punctuation, '\'', '\0'});
}

tssa_status *parse_enter(struct parser *parser)
{
    if (++parser->depth > PARSE_MAX_DEPTH)
        return parse_error(&parser->token, "nested too deeply");
    return NULL;
}

tssa_status *parse_intern(struct parser *parser, const char **name)
{
    const struct token *token = &parser->token;
    if (token->string_size && memchr(token->string, '\0', token->string_size))
        return parse_error(token, "a name holds a NUL character");
    *name = intern(&parser->graph->strings, token->string, token->string_size);
    TRY_ALLOC(*name);
    return parse_advance(parser);
}

tssa_status *parse_string(struct parser *parser, const char **string)
{
    if (parser->token.kind != TOKEN_STRING)
        return parse_expected(parser, "a string");
    return parse_intern(parser, string);
}

tssa_status *parse_name(struct parser *parser, const char **name)
{
    if (parser->token.kind != TOKEN_NAME && parser->token.kind != TOKEN_STRING)
        return parse_expected(parser, "a name");
    return parse_intern(parser, name);
}

tssa_status *parse_int(struct parser *parser, int64_t *value)
{
    bool negative = false;
    TRY(parse_accept(parser, '-', &negative));
    const struct token *token = &parser->token;
    if (token->kind != TOKEN_INT)
        return parse_expected(parser, "an integer");
    if (token->too_large || token->number > (uint64_t)INT64_MAX + negative)
        return parse_error(token, "the number does not fit in 64 bits");
    *value = negative ? -(int64_t)(token->number - (token->number != 0)) - (token->number != 0)
                      : (int64_t)token->number;
    return parse_advance(parser);
}
