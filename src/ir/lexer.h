/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of the IR's text form: docs/ir.md, "Tokens". */
#ifndef TSSA_IR_LEXER_H
#define TSSA_IR_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,         /* Add, ai.onnx.ml.Scaler, _ */
    TOKEN_FRESH,        /* nonzero#3: string, number */
    TOKEN_VALUE,        /* %x, %"a b": string; */
    TOKEN_NUMBER_VALUE, /* %17: number */
    TOKEN_STRING,       /* "...": string */
    TOKEN_INT,          /* 17: number */
    TOKEN_FLOAT,        /* 1.5, 1e9 */
    TOKEN_ARROW,        /* -> */
    TOKEN_PUNCTUATION   /* one character of (){}[],:=@+-*<>?$ */
};

struct token {
    enum token_kind kind;
    char punctuation;
    const char *start; /* its spelling in the text */
    size_t size;
    const char *string; /* decoded, in the lexer's buffer until the next token; not terminated */
    size_t string_size;
    uint64_t number;
    bool too_large; /* the number is not a uint64 */
    uint32_t line, column;
};

struct lexer {
    const char *at, *end, *line_start;
    uint32_t line;
    struct text buffer; /* the last decoded string */
};

void lexer_init(struct lexer *lexer, const tssa_allocator *allocator, const char *text,
                size_t size);
void lexer_free(struct lexer *lexer);
tssa_status *lexer_next(struct lexer *lexer, struct token *token);

#endif
