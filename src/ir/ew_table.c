/* SPDX-License-Identifier: Apache-2.0 */
/* What element-wise rows have besides the columns of every row: parameters, and the expression as a program. */
#include <string.h>

#include "ir/scalar.h"

/* ---- How rows are spelled ------------------------------------------------------------------------- */

#define FLOAT(name_, value_)                                                                       \
    {                                                                                              \
        .name = name_, .kind = EW_PARAM_FLOAT, .fallback = value_                                  \
    }
#define INT(name_, value_)                                                                         \
    {                                                                                              \
        .name = name_, .kind = EW_PARAM_INT, .fallback = value_                                    \
    }
#define CHOICE(name_, first_, second_)                                                             \
    {                                                                                              \
        .name = name_, .kind = EW_PARAM_CHOICE, .first = first_, .second = second_                 \
    }
#define REQUIRED(name_, first_, second_)                                                           \
    {                                                                                              \
        .name = name_, .kind = EW_PARAM_REQUIRED, .first = first_, .second = second_               \
    }
/* The leading entry is there because C has no empty list; the rest of the array ends the list. */
#define PARAMS(...) ((const struct ew_param[EW_MAX_PARAMS + 2]){{.name = NULL}, __VA_ARGS__} + 1)

enum { INDEX_Y = 1, INDEX_Z = 2 };

/* Postfix: the operands' codes, then the operation's. */
/* clang-format off */
#define X {.id = SCALAR_X},
#define Y {.id = SCALAR_Y},
#define Z {.id = SCALAR_Z},
#define P(i) {.id = SCALAR_P, .index = (i)},
#define K(constant) {.id = SCALAR_K, .number = (constant)},
#define LOWEST {.id = SCALAR_LOWEST},
#define HIGHEST {.id = SCALAR_HIGHEST},
#define COUNT {.id = SCALAR_COUNT},
#define WHEN(i, a, b) a b {.id = SCALAR_WHEN, .index = (i)},
#define OPT(operand, a) operand a {.id = SCALAR_OPT, .index = INDEX_##operand},
#define LAST(a, b) a b {.id = SCALAR_LAST},
#define SEL(a, b, c) a b c {.id = SCALAR_SEL},
#define ADD(a, b) a b {.id = SCALAR_ADD},
#define SUB(a, b) a b {.id = SCALAR_SUB},
#define MUL(a, b) a b {.id = SCALAR_MUL},
#define DIV(a, b) a b {.id = SCALAR_DIV},
#define MOD(a, b) a b {.id = SCALAR_MOD},
#define FMOD(a, b) a b {.id = SCALAR_FMOD},
#define POW(a, b) a b {.id = SCALAR_POW},
#define MIN(a, b) a b {.id = SCALAR_MIN},
#define MAX(a, b) a b {.id = SCALAR_MAX},
#define NEG(a) a {.id = SCALAR_NEG},
#define ABS(a) a {.id = SCALAR_ABS},
#define SIGN(a) a {.id = SCALAR_SIGN},
#define FLOOR(a) a {.id = SCALAR_FLOOR},
#define CEIL(a) a {.id = SCALAR_CEIL},
#define ROUND(a) a {.id = SCALAR_ROUND},
#define SQRT(a) a {.id = SCALAR_SQRT},
#define EXP(a) a {.id = SCALAR_EXP},
#define EXPM1(a) a {.id = SCALAR_EXPM1},
#define LOG(a) a {.id = SCALAR_LOG},
#define LOG1P(a) a {.id = SCALAR_LOG1P},
#define ERF(a) a {.id = SCALAR_ERF},
#define SIN(a) a {.id = SCALAR_SIN},
#define COS(a) a {.id = SCALAR_COS},
#define TAN(a) a {.id = SCALAR_TAN},
#define ASIN(a) a {.id = SCALAR_ASIN},
#define ACOS(a) a {.id = SCALAR_ACOS},
#define ATAN(a) a {.id = SCALAR_ATAN},
#define SINH(a) a {.id = SCALAR_SINH},
#define COSH(a) a {.id = SCALAR_COSH},
#define TANH(a) a {.id = SCALAR_TANH},
#define ASINH(a) a {.id = SCALAR_ASINH},
#define ACOSH(a) a {.id = SCALAR_ACOSH},
#define ATANH(a) a {.id = SCALAR_ATANH},
#define LT(a, b) a b {.id = SCALAR_LT},
#define LE(a, b) a b {.id = SCALAR_LE},
#define GT(a, b) a b {.id = SCALAR_GT},
#define GE(a, b) a b {.id = SCALAR_GE},
#define EQ(a, b) a b {.id = SCALAR_EQ},
#define ISNAN(a) a {.id = SCALAR_ISNAN},
#define AND(a, b) a b {.id = SCALAR_AND},
#define OR(a, b) a b {.id = SCALAR_OR},
#define XOR(a, b) a b {.id = SCALAR_XOR},
#define NOT(a) a {.id = SCALAR_NOT},
#define BAND(a, b) a b {.id = SCALAR_BAND},
#define BOR(a, b) a b {.id = SCALAR_BOR},
#define BXOR(a, b) a b {.id = SCALAR_BXOR},
#define BNOT(a) a {.id = SCALAR_BNOT},
#define SHL(a, b) a b {.id = SCALAR_SHL},
#define SHR(a, b) a b {.id = SCALAR_SHR},
/* clang-format on */

/* ---- The rows ------------------------------------------------------------------------------------- */

const struct ew_info ew_table[EW_COUNT] = {
#define OP(...)
#define EW(id_, versions_, min_in, max_in, types_, result_, params_, expression_)                  \
    [EW_INDEX_##id_] = {.result = result_,                                                         \
                        .params = params_,                                                         \
                        .program = (const struct scalar_code[]){expression_{.id = SCALAR_END}}},
#include "ir/ops.def"
#undef OP
#undef EW
};

static const struct scalar_info infos[SCALAR_COUNT_OF_IDS] = {
    [SCALAR_END] = {.name = "END"},
#define SCALAR(name_, operands_, kind_, work_, meaning_)                                           \
    [SCALAR_##name_] = {                                                                           \
        .name = #name_, .operands = (operands_), .kind = SCALAR_KIND_##kind_, .work = (work_)},
#include "ir/scalar.def"
#undef SCALAR
};

const struct scalar_info *scalar_info(enum scalar_id id)
{
    return &infos[id];
}

/* ---- Parameters ----------------------------------------------------------------------------------- */

static tssa_status *choice(const struct ir_op *op, const struct ew_param *param, double *value)
{
    const char *chosen = ir_attr_str(op, param->name, NULL);
    if (!chosen && param->kind == EW_PARAM_REQUIRED)
        return ERROR(TSSA_MALFORMED, "attribute \"%s\" is missing", param->name);
    *value = chosen && strcmp(chosen, param->second) == 0;
    if (chosen && *value == 0 && strcmp(chosen, param->first) != 0)
        return ERROR(TSSA_MALFORMED, "attribute \"%s\" is \"%s\", not \"%s\" or \"%s\"",
                     param->name, chosen, param->first, param->second);
    return NULL;
}

tssa_status *scalar_params(const struct ir_op *op, double params[EW_MAX_PARAMS])
{
    const struct ew_param *rows = op->info->ew->params;
    for (int i = 0; rows[i].name; i++)
        switch (rows[i].kind) {
        case EW_PARAM_FLOAT:
            params[i] = ir_attr_float(op, rows[i].name, (float)rows[i].fallback);
            break;
        case EW_PARAM_INT:
            params[i] = (double)ir_attr_int(op, rows[i].name, (int64_t)rows[i].fallback);
            break;
        default:
            TRY(choice(op, &rows[i], &params[i]));
        }
    return NULL;
}

bool scalar_has_float_params(const struct ew_info *ew)
{
    for (int i = 0; ew->params[i].name; i++)
        if (ew->params[i].kind == EW_PARAM_FLOAT)
            return true;
    return false;
}
