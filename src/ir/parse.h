/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the IR parser share: parser.c (the graph), parse_op.c (values, ops, blocks),
 * parse_token.c, parse_type.c, parse_attr.c. */
#ifndef TSSA_IR_PARSE_H
#define TSSA_IR_PARSE_H

#include <locale.h>

#include "base/vec.h"
#include "ir/ir.h"
#include "ir/lexer.h"

#define PARSE_MAX_DEPTH 256 /* the importer nests blocks 128 deep */
/* Numbers of fresh dims and of values beyond this are no output of the printer. */
#define PARSE_MAX_NUMBER (UINT32_C(1) << 30)

/* A value as it is spelled. */
struct value_ref {
    enum { REF_ABSENT, REF_NAME, REF_NUMBER } kind;
    const char *name; /* interned */
    uint64_t number;
    struct token token; /* where, for messages; `string` is stale */
};

struct parser {
    struct ir_graph *graph;
    struct lexer lexer;
    struct token token; /* the next one */
    locale_t c_locale;
    int depth;                 /* of nested blocks, types and dims */
    struct map names, numbers; /* defined values */
    /* Stacks: who pushes takes the count back to what it was. */
    VEC(struct value_ref) refs;
    VEC(struct ir_value *) operands;
    VEC(struct ir_attr) attrs;
    VEC(struct ir_block *) blocks;
    VEC(const char *) strings;
};

/* "line 3, column 7: expected X, found Y" about the next token. */
tssa_status *parse_expected(const struct parser *parser, const char *what);
/* A message about `token`. */
tssa_status *parse_error(const struct token *token, const char *what);

tssa_status *parse_advance(struct parser *parser);
bool parse_at(const struct parser *parser, char punctuation);
bool parse_at_name(const struct parser *parser, const char *name);
/* Takes the punctuation if it is next. */
tssa_status *parse_accept(struct parser *parser, char punctuation, bool *accepted);
tssa_status *parse_expect(struct parser *parser, char punctuation);
/* One level of nesting more; PARSE_MAX_DEPTH is an error. parser->depth-- ends it. */
tssa_status *parse_enter(struct parser *parser);
/* The decoded string of the next token (a name or string), interned. */
tssa_status *parse_intern(struct parser *parser, const char **name);
/* A string token, interned. */
tssa_status *parse_string(struct parser *parser, const char **string);
/* A name, quoted or not, interned. */
tssa_status *parse_name(struct parser *parser, const char **name);
/* [-] integer in the range of int64. */
tssa_status *parse_int(struct parser *parser, int64_t *value);

tssa_status *parse_dim(struct parser *parser, const struct dim **dim);
tssa_status *parse_type(struct parser *parser, const struct ir_type **type);
/* A name that is an element type; UNDEFINED when the next token is none. */
tssa_dtype parse_peek_dtype(const struct parser *parser);

tssa_status *parse_tensor(struct parser *parser, struct tensor *tensor);
/* name = value; the name is parsed already. */
tssa_status *parse_attr_value(struct parser *parser, struct ir_attr *attr);

tssa_status *parse_ref(struct parser *parser, struct value_ref *ref);
/* The value that was defined by that name; NULL for `_`. */
tssa_status *parse_resolve(const struct parser *parser, const struct value_ref *ref,
                           struct ir_value **value);
/* (%a: type, ...); with defaults (= tensor) pushed to parser->attrs for a graph. */
tssa_status *parse_params(struct parser *parser, struct ir_block *block, bool defaults);
/* { ops } */
tssa_status *parse_body(struct parser *parser, struct ir_block *block);

#endif
