/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_region.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "common/op_run.h"
#include "ir/ir.h"

#define MAX_VALUES 40
#define MAX_RANK 8

struct region_value {
    tssa_dtype dtype;
    bool full; /* it has the dims of the space */
};

struct writer {
    struct random random;
    struct text ops, params, operands, inputs, results, names;
    struct region_value values[MAX_VALUES];
    int n_values, n_params, rank;
    int last; /* the last dim, the same in every run; 0: a symbol, as the others are */
};

static const tssa_dtype dtypes[] = {TSSA_FLOAT,  TSSA_FLOAT,   TSSA_FLOAT,    TSSA_FLOAT,
                                    TSSA_DOUBLE, TSSA_FLOAT16, TSSA_BFLOAT16, TSSA_INT8,
                                    TSSA_INT16,  TSSA_INT32,   TSSA_INT64,    TSSA_UINT8,
                                    TSSA_UINT16, TSSA_UINT32,  TSSA_UINT64,   TSSA_BOOL};
#define N_DTYPES ((int)(sizeof dtypes / sizeof *dtypes))

static bool chance(struct writer *w, int percent)
{
    return random_int(&w->random, 0, 99) < percent;
}

static tssa_dtype any_dtype(struct writer *w, dtype_mask allowed)
{
    for (;;) {
        const tssa_dtype dtype = dtypes[random_int(&w->random, 0, N_DTYPES - 1)];
        if (dtype_in(allowed, dtype))
            return dtype;
    }
}

static const char *name_of(tssa_dtype dtype)
{
    return dtype_info(dtype)->ir_name;
}

static int add_value(struct writer *w, tssa_dtype dtype, bool full)
{
    w->values[w->n_values] = (struct region_value){dtype, full};
    return w->n_values++;
}

/* ---- Operands ------------------------------------------------------------------------------------- */

static void add_param(struct writer *w, tssa_dtype dtype, bool full)
{
    char dims[64] = "";
    const int missing = full ? 0 : (int)random_int(&w->random, 0, w->rank);
    const int alike =
        (int)random_int(&w->random, 0, 2); /* broadcast or not, axis by axis, or all */
    bool has_all = missing == 0;
    for (int i = missing; i < w->rank; i++) {
        const bool has = full || (alike == 2 ? chance(w, 50) : alike == 1);
        has_all &= has;
        char dim[8];
        if (has && w->last && i == w->rank - 1)
            snprintf(dim, sizeof dim, i > missing ? ", %d" : "%d", w->last);
        else
            snprintf(dim, sizeof dim, i > missing ? ", %c" : "%c", has ? 'A' + i : '1');
        strcat(dims, dim);
    }
    const int value = add_value(w, dtype, has_all);
    const char *comma = w->n_params++ ? ", " : "";
    text_printf(&w->params, "%s%%v%d: %s[%s]", comma, value, name_of(dtype), dims);
    text_printf(&w->inputs, "%s%%x%d: %s[%s]", comma, value, name_of(dtype), dims);
    text_printf(&w->operands, "%s%%x%d", comma, value);
}

static int add_number(struct writer *w, tssa_dtype dtype)
{
    static const char *const floats[] = {"0", "1", "-1", "0.5", "2", "3", "-0.0", "inf", "nan"};
    static const char *const integers[] = {"0", "1", "2", "3", "5", "7"};
    const bool is_float = dtype_is_float(dtype);
    const char *number =
        is_float ? floats[random_int(&w->random, 0, 8)] : integers[random_int(&w->random, 0, 5)];
    if (dtype == TSSA_BOOL)
        number = chance(w, 50) ? "true" : "false";
    const int value = add_value(w, dtype, w->rank == 0);
    text_printf(&w->ops, "%%v%d = Constant() {value = %s[] %s}\n", value, name_of(dtype), number);
    return value;
}

/* A value of the type: one that is there, a number, or another one converted. */
static int find_operand(struct writer *w, tssa_dtype dtype)
{
    int found = -1, n = 0;
    for (int i = 0; i < w->n_values; i++)
        if (w->values[i].dtype == dtype && random_int(&w->random, 0, n++) == 0)
            found = i;
    if (found >= 0 && chance(w, 85))
        return found;
    if (chance(w, 25))
        return add_number(w, dtype);
    const int from = (int)random_int(&w->random, 0, w->n_values - 1);
    if (w->values[from].dtype == dtype)
        return from;
    const int value = add_value(w, dtype, w->values[from].full);
    text_printf(&w->ops, "%%v%d = Cast(%%v%d) {to = %d}\n", value, from, (int)dtype);
    return value;
}

/* ---- Ops ------------------------------------------------------------------------------------------ */

static const struct ir_op_info *any_row(struct writer *w)
{
    for (;;) {
        const struct ir_op_info *info =
            ir_op_info((enum ir_op_id)random_int(&w->random, 0, IR_OP_COUNT - 1));
        if (info->ew)
            return info;
    }
}

static const char *attributes_of(struct writer *w, const struct ir_op_info *info)
{
    const bool other = chance(w, 50);
    switch (info->id) {
    case IR_OP_BitShift:
        return other ? "{direction = \"LEFT\"}" : "{direction = \"RIGHT\"}";
    case IR_OP_Mod:
        return other ? "{fmod = 1}" : "";
    case IR_OP_Gelu:
        return other ? "{approximate = \"tanh\"}" : "";
    case IR_OP_LeakyRelu:
    case IR_OP_Elu:
        return other ? "{alpha = 0.25}" : "";
    default:
        return "";
    }
}

static void add_op(struct writer *w, const struct ir_op_info *info)
{
    const bool variadic = info->max_operands == IR_VARIADIC, where = info->ew->result == EW_WHERE;
    const int n =
        (int)random_int(&w->random, info->min_operands, variadic ? 4 : info->max_operands);
    const dtype_mask legal = T_FLOAT | T_INT | T_BOOL;
    const tssa_dtype dtype = any_dtype(w, info->types & legal);
    int operands[4];
    bool full = false;
    for (int i = 0; i < n; i++) {
        operands[i] = find_operand(w, where && i == 0 ? TSSA_BOOL : dtype);
        full |= w->values[operands[i]].full;
    }
    const int value = add_value(w, info->ew->result == EW_BOOL ? TSSA_BOOL : dtype, full);
    text_printf(&w->ops, "%%v%d = %s(", value, info->name);
    for (int i = 0; i < n; i++)
        text_printf(&w->ops, "%s%%v%d", i ? ", " : "", operands[i]);
    text_printf(&w->ops, ") %s\n", attributes_of(w, info));
}

/* ---- The region ----------------------------------------------------------------------------------- */

static void add_results(struct writer *w)
{
    int n = 0;
    for (int i = w->n_values; i-- > 0 && n < 4;) {
        if (!w->values[i].full || (n > 0 && chance(w, 50)))
            continue;
        text_printf(&w->results, "%s%%v%d", n ? ", " : "", i);
        text_printf(&w->names, "%s%%y%d", n ? ", " : "", i);
        n++;
    }
}

static void write_all(struct writer *w)
{
    const int params = (int)random_int(&w->random, 0, 4), ops = (int)random_int(&w->random, 1, 10);
    w->rank = (int)random_int(&w->random, 0, MAX_RANK);
    w->last = chance(w, 30) ? (int)random_int(&w->random, 2, 34) : 0;
    add_param(w, any_dtype(w, T_FLOAT | T_INT | T_BOOL), true);
    for (int i = 0; i < params; i++)
        add_param(w, any_dtype(w, T_FLOAT | T_INT | T_BOOL), chance(w, 40));
    for (int i = 0; i < ops && w->n_values < MAX_VALUES - 10; i++)
        add_op(w, any_row(w));
    add_results(w);
}

char *random_region(uint64_t seed)
{
    struct writer w = {.random = {seed * 2 + 1}};
    struct text *texts[] = {&w.ops, &w.params, &w.operands, &w.inputs, &w.results, &w.names};
    struct text all;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_init(texts[i], &allocator_default);
    text_init(&all, &allocator_default);
    write_all(&w);
    text_printf(&all,
                "graph @region opset(\"\": 24) ir_version(11) (%s) -> (%s) {\n%s = fuse(%s) {\n",
                text_string(&w.inputs), text_string(&w.names), text_string(&w.names),
                text_string(&w.operands));
    text_printf(&all, "body(%s) {\n%sreturn(%s) } }\nreturn(%s)\n}\n", text_string(&w.params),
                text_string(&w.ops), text_string(&w.results), text_string(&w.names));
    char *text = strdup(text_string(&all));
    text_free(&all);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_free(texts[i]);
    return text;
}
