/* SPDX-License-Identifier: Apache-2.0 */
/* What element-wise rows have besides the columns of every row: parameters, and the expression as a
 * program. */
#include <string.h>

#include "ir/ew_table.h"
#include "ir/scalar_postfix.h"

/* ---- How rows are spelled -------------------------------------------------------------------- */

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

/* ---- The rows -------------------------------------------------------------------------------- */

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

/* ---- Numbers --------------------------------------------------------------------------------- */

int scalar_orders(enum scalar_id id)
{
    static const uint8_t orders[SCALAR_COUNT_OF_IDS] = {
        [SCALAR_LT] = ORDER_LESS,    [SCALAR_LE] = ORDER_LESS | ORDER_EQUAL,
        [SCALAR_GT] = ORDER_GREATER, [SCALAR_GE] = ORDER_GREATER | ORDER_EQUAL,
        [SCALAR_EQ] = ORDER_EQUAL,
    };
    return orders[id];
}

int scalar_holds(int holds, int possible)
{
    return !(possible & ~holds) ? 1 : !(possible & holds) ? 0 : -1;
}

bool scalar_whole(double number, int64_t *integer)
{
    if (!(number > -0x1p53 && number < 0x1p53 && number == (double)(int64_t)number))
        return false;
    *integer = (int64_t)number;
    return true;
}

/* ---- Parameters ------------------------------------------------------------------------------ */

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
