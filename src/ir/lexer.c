/* SPDX-License-Identifier: Apache-2.0 */
/* Characters to tokens. */
#include "ir/lexer.h"

#include <string.h>

void lexer_init(struct lexer *lexer, const tssa_allocator *allocator, const char *text, size_t size)
{
    *lexer = (struct lexer){.at = text, .end = text + size, .line_start = text, .line = 1};
    text_init(&lexer->buffer, allocator);
}

void lexer_free(struct lexer *lexer)
{
    text_free(&lexer->buffer);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The character `offset` ahead; NUL at the end. */
static char peek(const struct lexer *lexer, size_t offset)
{
    return (size_t)(lexer->end - lexer->at) > offset ? lexer->at[offset] : '\0';
}

static tssa_status *lexer_error(const struct lexer *lexer, const char *what)
{
    return ERROR(TSSA_MALFORMED, "line %u, column %u: %s", (unsigned)lexer->line,
                 (unsigned)(lexer->at - lexer->line_start + 1), what);
}

static void skip_space(struct lexer *lexer)
{
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        if (c == '\n') {
            lexer->line++;
            lexer->line_start = ++lexer->at;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            lexer->at++;
        } else if (c == '/' && peek(lexer, 1) == '/') {
            while (lexer->at < lexer->end && *lexer->at != '\n')
                lexer->at++;
        } else {
            return;
        }
    }
}

/* ---- Strings --------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* What stands after a backslash. */
static tssa_status *lex_escape(struct lexer *lexer)
{
    static const char pairs[] = "\"\"\\\\n\nr\rt\t"; /* a letter, its byte */
    char c = peek(lexer, 0);
    for (const char *p = pairs; *p; p += 2) {
        if (*p == c) {
            text_putc(&lexer->buffer, p[1]);
            lexer->at++;
            return NULL;
        }
    }
    int high = hex_digit(peek(lexer, 1)), low = high < 0 ? -1 : hex_digit(peek(lexer, 2));
    if (c != 'x' || low < 0)
        return lexer_error(lexer, "unknown escape in a string");
    text_putc(&lexer->buffer, (char)(high * 16 + low));
    lexer->at += 3;
    return NULL;
}

static tssa_status *lex_string(struct lexer *lexer, struct token *token)
{
    text_clear(&lexer->buffer);
    lexer->at++;
    for (;;) {
        const char *run = lexer->at;
        while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\\' &&
               *lexer->at != '\n')
            lexer->at++;
        text_append(&lexer->buffer, run, (size_t)(lexer->at - run));
        char c = peek(lexer, 0);
        if (c != '"' && c != '\\')
            return lexer_error(lexer, "a string does not end on its line");
        lexer->at++;
        if (c == '"')
            break;
        TRY(lex_escape(lexer));
    }
    token->string = text_string(&lexer->buffer);
    TRY_ALLOC(token->string);
    token->string_size = lexer->buffer.size;
    return NULL;
}

/* ---- The other tokens ------------------------------------------------------------------------ */

static void lex_digits(struct lexer *lexer, struct token *token)
{
    for (; is_digit(peek(lexer, 0)); lexer->at++) {
        uint64_t digit = (uint64_t)(*lexer->at - '0');
        token->too_large = token->too_large ||
                           __builtin_mul_overflow(token->number, UINT64_C(10), &token->number) ||
                           __builtin_add_overflow(token->number, digit, &token->number);
    }
}

static void lex_number(struct lexer *lexer, struct token *token)
{
    token->kind = TOKEN_INT;
    lex_digits(lexer, token);
    if (peek(lexer, 0) == '.' && is_digit(peek(lexer, 1))) {
        token->kind = TOKEN_FLOAT;
        for (lexer->at++; is_digit(peek(lexer, 0)); lexer->at++)
            ;
    }
    size_t sign = peek(lexer, 1) == '-' || peek(lexer, 1) == '+';
    if (peek(lexer, 0) == 'e' && is_digit(peek(lexer, 1 + sign))) {
        token->kind = TOKEN_FLOAT;
        for (lexer->at += 1 + sign; is_digit(peek(lexer, 0)); lexer->at++)
            ;
    }
}

/* [A-Za-z_][A-Za-z0-9_]*; names of operators have dots too. */
static void lex_word(struct lexer *lexer, bool dots)
{
    while (is_letter(peek(lexer, 0)) || is_digit(peek(lexer, 0)) ||
           (dots && peek(lexer, 0) == '.' && is_letter(peek(lexer, 1))))
        lexer->at++;
}

static void lex_name(struct lexer *lexer, struct token *token)
{
    token->kind = TOKEN_NAME;
    token->string = lexer->at;
    lex_word(lexer, true);
    token->string_size = (size_t)(lexer->at - token->string);
    if (peek(lexer, 0) == '#' && is_digit(peek(lexer, 1))) {
        token->kind = TOKEN_FRESH;
        lexer->at++;
        lex_digits(lexer, token);
    }
}

static tssa_status *lex_value(struct lexer *lexer, struct token *token)
{
    token->kind = TOKEN_VALUE;
    lexer->at++;
    if (peek(lexer, 0) == '"')
        return lex_string(lexer, token);
    token->string = lexer->at;
    if (is_digit(peek(lexer, 0))) {
        token->kind = TOKEN_NUMBER_VALUE;
        lex_digits(lexer, token);
    } else {
        lex_word(lexer, false);
    }
    token->string_size = (size_t)(lexer->at - token->string);
    return token->string_size ? NULL : lexer_error(lexer, "a name is expected after %");
}

static tssa_status *lex_token(struct lexer *lexer, struct token *token)
{
    char c = *lexer->at;
    if (is_letter(c)) {
        lex_name(lexer, token);
        return NULL;
    }
    if (is_digit(c)) {
        lex_number(lexer, token);
        return NULL;
    }
    if (c == '"') {
        token->kind = TOKEN_STRING;
        return lex_string(lexer, token);
    }
    if (c == '%')
        return lex_value(lexer, token);
    if (c == '\0' || !strchr("(){}[],:=@+-*<>?$", c))
        return lexer_error(lexer, "unexpected character");
    token->kind = c == '-' && peek(lexer, 1) == '>' ? TOKEN_ARROW : TOKEN_PUNCTUATION;
    token->punctuation = token->kind == TOKEN_PUNCTUATION ? c : '\0';
    lexer->at += token->kind == TOKEN_ARROW ? 2 : 1;
    return NULL;
}

tssa_status *lexer_next(struct lexer *lexer, struct token *token)
{
    skip_space(lexer);
    *token = (struct token){.kind = TOKEN_END,
                            .start = lexer->at,
                            .line = lexer->line,
                            .column = (uint32_t)(lexer->at - lexer->line_start + 1)};
    if (lexer->at < lexer->end)
        TRY(lex_token(lexer, token));
    token->size = (size_t)(lexer->at - token->start);
    return NULL;
}
