/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expressions of element-wise rows are what code generators will read: nothing but calls of the scalar
 * operations, of the right arity and kind, over the row's operands and parameters.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ops.h"

enum kind { VALUE, TEST, TRUTH, MIXED };

static const struct scalar {
    const char *name;
    int operands;
    enum kind kind;
} scalars[] = {
#define SCALAR(name, operands, kind, meaning) {#name, operands, kind},
#include "ir/scalar.def"
#undef SCALAR
};

#define N_SCALARS (sizeof scalars / sizeof *scalars)

/* What an expression is: a truth value, or an element. In BOOL rows operands may be either. */
enum sort { ELEMENT, FLAG, OPERAND };

struct reader {
    const struct ir_op_info *info;
    const char *at;
    bool used[N_SCALARS];
};

#define BAD(reader, why)                                                                           \
    fail_msg("%s: %s at \"%s\" of %s", (reader)->info->name, why, (reader)->at,                    \
             (reader)->info->ew->expression)

static enum sort read_expression(struct reader *reader);

static void expect(struct reader *reader, char c)
{
    while (*reader->at == ' ')
        reader->at++;
    if (*reader->at != c)
        BAD(reader, "unexpected character");
    reader->at++;
}

static void read_argument(struct reader *reader, enum sort wanted)
{
    enum sort sort = read_expression(reader);
    if (sort != wanted && sort != OPERAND)
        BAD(reader, wanted == FLAG ? "no truth value" : "no element");
}

/* A plain number, as of K and P. */
static double read_number(struct reader *reader)
{
    char *end;
    double number = strtod(reader->at, &end);
    if (end == reader->at)
        BAD(reader, "no number");
    reader->at = end;
    return number;
}

static void read_parameter(struct reader *reader)
{
    double index = read_number(reader);
    int count = 0;
    while (reader->info->ew->params[count].name)
        count++;
    if (!(index >= 0 && index < count))
        BAD(reader, "no such parameter");
}

/* The arguments of the operations that are not alike. */
static enum sort read_mixed(struct reader *reader, const char *name)
{
    if (strcmp(name, "K") == 0) {
        read_number(reader);
        return ELEMENT;
    }
    if (strcmp(name, "P") == 0) {
        read_parameter(reader);
        return ELEMENT;
    }
    if (strcmp(name, "WHEN") == 0)
        read_parameter(reader);
    else
        read_argument(reader, FLAG);
    expect(reader, ',');
    enum sort a = read_expression(reader);
    expect(reader, ',');
    enum sort b = read_expression(reader);
    if (a != b && a != OPERAND && b != OPERAND)
        BAD(reader, "two sorts");
    return a;
}

static enum sort read_call(struct reader *reader, size_t index)
{
    const struct scalar *scalar = &scalars[index];
    reader->used[index] = true;
    if (scalar->operands == 0)
        return ELEMENT;
    expect(reader, '(');
    enum sort sort = scalar->kind == TEST || scalar->kind == TRUTH ? FLAG : ELEMENT;
    if (scalar->kind == MIXED)
        sort = read_mixed(reader, scalar->name);
    else
        for (int i = 0; i < scalar->operands; i++) {
            if (i > 0)
                expect(reader, ',');
            read_argument(reader, scalar->kind == TRUTH ? FLAG : ELEMENT);
        }
    expect(reader, ')');
    return sort;
}

static enum sort read_expression(struct reader *reader)
{
    while (*reader->at == ' ')
        reader->at++;
    size_t length = 0;
    while (isalnum((unsigned char)reader->at[length]))
        length++;
    if (length == 1 && *reader->at >= 'X' && *reader->at <= 'Z') {
        if (*reader->at - 'X' >= reader->info->max_operands)
            BAD(reader, "no such operand");
        reader->at++;
        return OPERAND;
    }
    for (size_t i = 0; i < N_SCALARS; i++)
        if (strlen(scalars[i].name) == length &&
            strncmp(scalars[i].name, reader->at, length) == 0) {
            reader->at += length;
            return read_call(reader, i);
        }
    BAD(reader, "unknown operation");
    return ELEMENT;
}

static void rows_are_expressions(void **state)
{
    (void)state;
    struct reader reader = {.used = {false}};
    int rows = 0;
    for (int id = 0; id < IR_OP_COUNT; id++) {
        reader.info = ir_op_info((enum ir_op_id)id);
        if (!reader.info->ew)
            continue;
        rows++;
        reader.at = reader.info->ew->expression;
        enum sort sort = read_expression(&reader);
        if (*reader.at != '\0')
            BAD(&reader, "text after the end");
        bool truth = reader.info->ew->result == EW_BOOL || reader.info->types == T_BOOL;
        if (sort != OPERAND && (sort == FLAG) != truth)
            BAD(&reader, "wrong sort of result");
    }
    assert_true(rows > 60);
    for (size_t i = 0; i < N_SCALARS; i++)
        if (!reader.used[i])
            fail_msg("no row uses %s", scalars[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
