/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of a kernel as declarations in C. Operations are calls of functions that the prelude has,
 * by type and by the name in ir/scalar.def, f32_ADD; but for those of truth values, which C has.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "codegen/clike/printer.h"

const char *clike_type_of(tssa_dtype dtype)
{
    switch (dtype) {
    case TSSA_FLOAT:
        return "float";
    case TSSA_DOUBLE:
        return "double";
    case TSSA_BOOL:
        return "bool";
    case TSSA_INT8:
        return "int8_t";
    case TSSA_INT16:
        return "int16_t";
    case TSSA_INT32:
        return "int32_t";
    case TSSA_INT64:
        return "int64_t";
    case TSSA_UINT8:
        return "uint8_t";
    case TSSA_UINT32:
        return "uint32_t";
    case TSSA_UINT64:
        return "uint64_t";
    default: /* and what is its bits: FLOAT16, BFLOAT16 */
        return "uint16_t";
    }
}

const char *clike_index_type(const struct printer *p)
{
    return p->kernel->grid ? "index_t" : "int64_t";
}

void clike_indent(const struct printer *p)
{
    for (int i = 0; i < p->depth; i++)
        text_puts(p->text, "    ");
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static void print_float(const struct printer *p, tssa_dtype type, uint64_t bits)
{
    const bool wide = type == TSSA_DOUBLE;
    const double number = dtype_load_double(type, &bits);
    if (isfinite(number))
        text_printf(p->text, "%a%s", number, wide ? "" : "f");
    else if (isinf(number))
        text_printf(p->text, "%s%sINFINITY", number < 0 ? "-" : "", wide ? "(double)" : "");
    else
        text_puts(p->text, wide ? "(double)NAN" : "NAN");
}

void clike_print_number(const struct printer *p, tssa_dtype type, uint64_t bits)
{
    const int64_t number = dtype_load_int64(type, &bits);
    if (type == TSSA_FLOAT || type == TSSA_DOUBLE)
        print_float(p, type, bits);
    else if (dtype_info(type)->cls != DTYPE_CLASS_SIGNED)
        text_printf(p->text, "(%s)%" PRIu64 "u", clike_type_of(type), bits);
    else if (number == INT64_MIN) /* C has no such literal */
        text_puts(p->text, "INT64_MIN");
    else
        text_printf(p->text, "(%s)%" PRId64, clike_type_of(type), number);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* How far behind the argument's first byte it is. */
static void print_offset(const struct printer *p, const struct gir_code *code)
{
    const uint32_t k = gir_arg_of(code), field = gir_field_of(code);
    const struct gir_arg *arg = &gir_args(p->kernel)[k];
    const unsigned size = dtype_info((tssa_dtype)code->type)->size;
    const char *plus = "";
    if (!arg->per_column) {
        text_printf(p->text, "r * a%" PRIu32 "_row", k);
        plus = " + ";
    }
    if (arg->is_looked_up) {
        text_printf(p->text, "%sROW_OF(v%" PRIu32 ", a%" PRIu32 "_count) * a%" PRIu32 "_next", plus,
                    code->operands[0], k, k);
        plus = " + ";
    }
    if (arg->moves == GIR_STRIDED)
        text_printf(p->text, "%si * a%" PRIu32 "_step", plus, k);
    else if (arg->moves == GIR_SIDE_BY_SIDE)
        text_printf(p->text, "%si * %u", plus, size * arg->fields);
    if (arg->moves != GIR_STAYS)
        plus = " + ";
    if (field || !*plus)
        text_printf(p->text, "%s%" PRIu32, plus, field * size);
}

static void print_load(const struct printer *p, const struct gir_code *code)
{
    const bool is_position = gir_args(p->kernel)[gir_arg_of(code)].is_position;
    text_printf(p->text, "%s(%s, a%" PRIu32 ", ", is_position ? "PLACE" : "LOAD",
                clike_type_of(code->type), gir_arg_of(code));
    print_offset(p, code);
    text_putc(p->text, ')');
}

static void print_store(const struct printer *p, const struct gir_code *code)
{
    text_printf(p->text, "STORE(%s, a%" PRIu32 ", ", clike_type_of(code->type), gir_arg_of(code));
    print_offset(p, code);
    text_printf(p->text, ", v%" PRIu32 ");\n", code->operands[0]);
}

/* Of a grid. */
static void print_look_up(const struct printer *p, const struct gir_code *code)
{
    const uint32_t k = gir_arg_of(code);
    text_printf(p->text, "LOOK_UP%s(%s, a%" PRIu32 ", v%" PRIu32 ", a%" PRIu32 "_count)",
                code->inside ? "_INSIDE" : "", clike_type_of(code->type), k, code->operands[0], k);
}

static void print_effect(const struct printer *p, const struct gir_code *code)
{
    const uint32_t k = gir_arg_of(code);
    if (code->op == GIR_STORE)
        print_store(p, code);
    else if (code->op == GIR_CHECK)
        text_printf(p->text, "CHECK(v%" PRIu32 ");\n", code->operands[0]);
    else if (code->op == GIR_NEXT)
        text_printf(p->text, "s%" PRIu32 " = v%" PRIu32 ";\n", code->operands[0],
                    code->operands[1]);
    else
        text_printf(p->text,
                    "STORE_%s(%s, a%" PRIu32 ", v%" PRIu32 ", a%" PRIu32 "_count, v%" PRIu32 ");\n",
                    code->inside ? "INSIDE" : "AT", clike_type_of(code->type), k, code->operands[1],
                    k, code->operands[0]);
}

/* ---- Conversions ----------------------------------------------------------------------------- */

static bool is_float(tssa_dtype dtype)
{
    return dtype == TSSA_FLOAT || dtype == TSSA_DOUBLE;
}

/* Of ir/scalar/convert.h; NULL: it is C's own. */
static const char *conversion(tssa_dtype from, tssa_dtype to)
{
    if (from == TSSA_FLOAT16 || from == TSSA_BFLOAT16)
        return from == TSSA_FLOAT16 ? "f32_of_f16" : "f32_of_bf16";
    if (to == TSSA_FLOAT16 || to == TSSA_BFLOAT16)
        return to == TSSA_FLOAT16 ? "f16_of_f32" : "bf16_of_f32";
    if (!is_float(from) || is_float(to))
        return NULL;
    if (to == TSSA_UINT64)
        return "u64_of_f64";
    return to == TSSA_INT64 || to == TSSA_UINT32 ? "i64_of_f64" : "i32_of_f64";
}

static void print_conversion(const struct printer *p, const struct gir_code *code)
{
    const uint32_t from = code->operands[0];
    const char *function = conversion(gir_codes(p->kernel)[from].type, code->type);
    if (code->type == TSSA_BOOL)
        text_printf(p->text, "v%" PRIu32 " != 0", from);
    else if (function)
        text_printf(p->text, "(%s)%s(v%" PRIu32 ")", clike_type_of(code->type), function, from);
    else
        text_printf(p->text, "(%s)v%" PRIu32, clike_type_of(code->type), from);
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* Of truth values. */
static const char *truth_operator(enum scalar_id id)
{
    switch (id) {
    case SCALAR_AND:
        return "&&";
    case SCALAR_OR:
        return "||";
    case SCALAR_XOR:
        return "!=";
    default:
        return "==";
    }
}

/* The quotient of the same numbers that stands before step i; i: there is none. */
static uint32_t find_quotient(const struct printer *p, uint32_t i)
{
    const struct gir_code *codes = gir_codes(p->kernel);
    for (uint32_t k = 0; k < i; k++)
        if (codes[k].op == GIR_SCALAR && codes[k].scalar == SCALAR_DIV &&
            codes[k].operands[0] == codes[i].operands[0] &&
            codes[k].operands[1] == codes[i].operands[1] && (!p->when[k].varies || p->needed[k]))
            return k;
    return i;
}

static void print_by_size(const struct printer *p, const struct gir_code *code)
{
    const uint32_t i = (uint32_t)(code - gir_codes(p->kernel)), *x = code->operands;
    const uint32_t quotient = code->scalar == SCALAR_FMOD ? find_quotient(p, i) : i;
    if (code->scalar == SCALAR_FMOD)
        text_printf(p->text, "v%" PRIu32 " - v%" PRIu32 " * ", x[0], x[1]);
    if (quotient != i)
        text_printf(p->text, "v%" PRIu32, quotient);
    else
        text_printf(p->text, "%s(v%" PRIu32 ", v%" PRIu32 ")",
                    !p->indices[i]     ? "i64_BY_SIZE"
                    : p->natural[x[0]] ? "u32_BY_SIZE"
                                       : "i32_BY_SIZE",
                    x[0], x[1]);
}

static bool is_index(const struct printer *p, const struct gir_code *code)
{
    return p->indices[code - gir_codes(p->kernel)];
}

static void print_scalar(const struct printer *p, const struct gir_code *code)
{
    const uint32_t n = gir_n_operands(code), *x = code->operands;
    const tssa_dtype type = gir_codes(p->kernel)[x[n - 1]].type;
    if (clike_is_by_size(p->kernel, code)) {
        print_by_size(p, code);
    } else if (code->scalar == SCALAR_SEL) {
        text_printf(p->text, "v%" PRIu32 " ? v%" PRIu32 " : v%" PRIu32, x[0], x[1], x[2]);
    } else if (is_index(p, code) || clike_compares_indices(code, p->indices)) {
        clike_print_of_indices(p, code);
    } else if (type == TSSA_BOOL && n == 1) {
        text_printf(p->text, "!v%" PRIu32, x[0]);
    } else if (type == TSSA_BOOL) {
        text_printf(p->text, "v%" PRIu32 " %s v%" PRIu32, x[0], truth_operator(code->scalar), x[1]);
    } else {
        text_printf(p->text, "%s_%s(v%" PRIu32, dtype_info(type)->ir_name,
                    scalar_info(code->scalar)->name, x[0]);
        for (uint32_t k = 1; k < n; k++)
            text_printf(p->text, ", v%" PRIu32, x[k]);
        text_putc(p->text, ')');
    }
}

/* ---- Steps ----------------------------------------------------------------------------------- */

void clike_print_step(const struct printer *p, uint32_t i)
{
    const struct gir_code *code = &gir_codes(p->kernel)[i];
    clike_indent(p);
    if (gir_has_effect(code)) {
        print_effect(p, code);
        return;
    }
    const char *type = p->indices[i] ? "index_t" : clike_type_of(code->type);
    text_printf(p->text, "const %s v%" PRIu32 " = ", type, i);
    switch ((enum gir_op)code->op) {
    case GIR_CONSTANT:
        if (p->indices[i])
            text_printf(p->text, "%" PRId64, (int64_t)code->bits);
        else
            clike_print_number(p, code->type, code->bits);
        break;
    case GIR_CONVERT:
        print_conversion(p, code);
        break;
    case GIR_SCALAR:
        print_scalar(p, code);
        break;
    case GIR_LENGTH:
        text_printf(p->text, "(%s)%s", clike_type_of(code->type),
                    p->form == CLIKE_COLUMNS ? "rows" : "n");
        break;
    case GIR_POSITION:
        text_printf(p->text, "(%s)%s", type,
                    p->kernel->stage && p->form == CLIKE_ELEMENTS ? "(group * n + i)" : "i");
        break;
    case GIR_STATE:
        text_printf(p->text, "s%" PRIu32, i);
        break;
    case GIR_LAST:
        text_printf(p->text, "s%" PRIu32, code->operands[0]);
        break;
    case GIR_NUMBER:
        text_printf(p->text, "n%" PRIu64, code->bits);
        break;
    case GIR_ROW:
        text_printf(p->text, "%s%s", code->type == TSSA_INT32 ? "(int32_t)" : "",
                    p->kernel->stage ? "(group * rows + r)" : "r");
        break;
    case GIR_TRIP:
        text_puts(p->text, "trip");
        break;
    default:
        if (p->kernel->grid)
            print_look_up(p, code);
        else
            print_load(p, code);
    }
    text_puts(p->text, ";\n");
}
