/* SPDX-License-Identifier: Apache-2.0 */
/* Whether bytes are a kernel; see gir.h. */
#include <inttypes.h>
#include <string.h>

#include "gir/form.h"
#include "gir/gir.h"

#define TYPES_MEMORY (T_FLOAT | T_INT | T_BOOL)
#define TYPES_NUMBER (T_F32F64 | T_INT)
#define TYPES_REDUCED                                                                              \
    (T_F32F64 | DTYPE_BIT(TSSA_INT32) | DTYPE_BIT(TSSA_INT64) | DTYPE_BIT(TSSA_UINT64))

/* ---- Operations ------------------------------------------------------------------------------ */

/* The types of which a scalar operation that is no leaf is computed: of its operands, of SEL's
 * choices. */
static dtype_mask types_of(enum scalar_id id)
{
    switch (id) {
    case SCALAR_SEL:
        return TYPES_MEMORY;
    case SCALAR_EQ:
        return TYPES_NUMBER | T_BOOL;
    case SCALAR_ADD:
    case SCALAR_SUB:
    case SCALAR_MUL:
    case SCALAR_DIV:
    case SCALAR_MOD:
    case SCALAR_FMOD:
    case SCALAR_MIN:
    case SCALAR_MAX:
    case SCALAR_NEG:
    case SCALAR_ABS:
    case SCALAR_SIGN:
    case SCALAR_LT:
    case SCALAR_LE:
    case SCALAR_GT:
    case SCALAR_GE:
        return TYPES_NUMBER;
    case SCALAR_AND:
    case SCALAR_OR:
    case SCALAR_XOR:
    case SCALAR_NOT:
        return T_BOOL;
    case SCALAR_BAND:
    case SCALAR_BOR:
    case SCALAR_BXOR:
    case SCALAR_BNOT:
        return T_INT;
    case SCALAR_SHL:
    case SCALAR_SHR:
        return T_UINT;
    case SCALAR_WHEN:
    case SCALAR_OPT:
    case SCALAR_LAST:
        return 0;
    default:
        return scalar_info(id)->operands ? T_F32F64 : 0; /* functions, ISNAN; leaves */
    }
}

bool gir_converts(tssa_dtype from, tssa_dtype to)
{
    if (from == TSSA_FLOAT16 || from == TSSA_BFLOAT16)
        return to == TSSA_FLOAT;
    if (to == TSSA_FLOAT16 || to == TSSA_BFLOAT16)
        return from == TSSA_FLOAT;
    return from != to && dtype_in(TYPES_NUMBER | T_BOOL, from) &&
           dtype_in(TYPES_NUMBER | T_BOOL, to);
}

bool gir_computes(enum scalar_id id, tssa_dtype type)
{
    return dtype_in(types_of(id), type);
}

/* ---- Kernels --------------------------------------------------------------------------------- */

struct checker {
    const struct gir_kernel *kernel;
    const struct gir_arg *args;
    const struct gir_code *codes;
    uint32_t at;
    bool has_stored;
    uint8_t stored[GIR_MAX_ARGS]; /* fields of results, by bit */
    uint32_t where[GIR_MAX_ARGS]; /* of what is kept: the step that says it */
    uint32_t n_reductions, n_states, n_nexts;
    uint32_t turned;              /* bytes of what is */
    bool iterates;                /* gir_iterates */
    bool is_one[GIR_MAX_CODES];   /* per step before: is it one value for a row, or for a column? */
    bool is_last[GIR_MAX_CODES];  /* per step before: is it of what is there behind the last row? */
    bool has_next[GIR_MAX_CODES]; /* per state before */
};

static tssa_status *wrong(const struct checker *c, const char *what)
{
    return ERROR(TSSA_MALFORMED, "kernel, step %" PRIu32 ": %s", c->at, what);
}

/* Where the argument is a position, may it be? */
static bool is_place(const struct gir_kernel *kernel, const struct gir_arg *arg)
{
    const bool good = !arg->is_result && arg->fields == 1 && arg->moves != GIR_STRIDED &&
                      !arg->is_looked_up && !kernel->whole_rows &&
                      (arg->dtype == TSSA_INT32 || arg->dtype == TSSA_INT64);
    return arg->is_position <= good;
}

static tssa_status *check_arg(const struct gir_kernel *kernel, uint32_t i)
{
    const struct gir_arg *args = gir_args(kernel), *arg = &args[i];
    bool good = dtype_in(TYPES_MEMORY, arg->dtype) && arg->is_result <= 1 &&
                arg->moves < GIR_MOVES_COUNT && arg->fields >= 1 && arg->fields <= GIR_MAX_FIELDS &&
                (arg->fields == 1 || arg->moves == GIR_SIDE_BY_SIDE ||
                 (arg->moves == GIR_STAYS && !arg->is_result)) &&
                arg->per_column <= kernel->columns &&
                (!kernel->columns || !arg->is_result || !arg->may_lie_on) &&
                arg->is_looked_up <= 1 && arg->is_kept <= 1 && is_place(kernel, arg) &&
                (!arg->is_kept || (arg->is_result && arg->moves == GIR_SIDE_BY_SIDE &&
                                   !arg->may_lie_on && !kernel->columns && !kernel->whole_rows)) &&
                (!arg->is_looked_up || (!arg->is_result && arg->fields == 1 && !kernel->columns)) &&
                (!arg->is_result || arg->moves || kernel->whole_rows) &&
                ((arg->is_result && arg->moves) || !arg->may_lie_on);
    for (uint32_t k = 0; good && k < GIR_MAX_ARGS; k++)
        if (arg->may_lie_on >> k & 1)
            good = k < kernel->n_args && !args[k].is_result && !args[k].is_position &&
                   arg->moves == GIR_SIDE_BY_SIDE && args[k].moves == arg->moves &&
                   args[k].dtype == arg->dtype && args[k].fields == arg->fields;
    return good ? NULL : ERROR(TSSA_MALFORMED, "kernel: argument %" PRIu32 " is none", i);
}

/* Of a grid: a whole. */
static tssa_status *check_whole(const struct gir_kernel *kernel, uint32_t i)
{
    const struct gir_arg *arg = &gir_args(kernel)[i];
    const struct gir_arg whole = {.dtype = arg->dtype,
                                  .is_result = arg->is_result,
                                  .moves = GIR_STAYS,
                                  .fields = 1,
                                  .is_looked_up = !arg->is_result};
    const bool good = dtype_in(TYPES_MEMORY, arg->dtype) && arg->is_result <= 1 &&
                      memcmp(arg, &whole, sizeof whole) == 0;
    return good ? NULL : ERROR(TSSA_MALFORMED, "kernel: argument %" PRIu32 " is none", i);
}

/* Of a grid: threads that meet share it. */
static tssa_status *check_turned(struct checker *c, const struct gir_code *code)
{
    const struct gir_kernel *kernel = c->kernel;
    c->turned += dtype_info((tssa_dtype)code->type)->size;
    return !kernel->whole_rows && !kernel->columns && !kernel->stage && c->turned <= GIR_MAX_TURNED
               ? NULL
               : wrong(c, "it is turned where it cannot be, or with too much else");
}

/* Of a grid: an element by its number. */
static tssa_status *check_element(struct checker *c, const struct gir_code *code)
{
    const bool store = code->op == GIR_STORE_AT;
    const uint32_t number = gir_arg_of(code);
    if (number >= c->kernel->n_args || (gir_field_of(code) && !gir_is_turned(code)))
        return wrong(c, "there is no such argument");
    const struct gir_arg *arg = &c->args[number];
    const tssa_dtype type = arg->dtype == TSSA_BOOL ? TSSA_UINT8 : (tssa_dtype)arg->dtype;
    if (arg->is_result != store || code->type != type)
        return wrong(c, "it does not suit the argument");
    if (c->codes[code->operands[store ? 1 : 0]].type != TSSA_INT64)
        return wrong(c, "it is told by what is no number");
    if (gir_is_turned(code))
        TRY(check_turned(c, code));
    if (!store)
        return c->has_stored ? wrong(c, "something is looked up behind a store") : NULL;
    c->has_stored = true;
    c->stored[number] = 1;
    return c->codes[code->operands[0]].type == type ? NULL : wrong(c, "the types differ");
}

/* Steps that only grids have. */
static tssa_status *check_grid_code(struct checker *c, const struct gir_code *code)
{
    if (!c->kernel->grid)
        return wrong(c, "it is no grid");
    switch ((enum gir_op)code->op) {
    case GIR_NUMBER:
        return code->type == TSSA_INT64 && code->bits < c->kernel->n_numbers
                   ? NULL
                   : wrong(c, "there is no such number");
    case GIR_TRIP:
        return code->type == TSSA_INT64 && c->kernel->stage
                   ? NULL
                   : wrong(c, "it is no number of an iteration, or there are none");
    case GIR_CHECK:
        return code->type == TSSA_BOOL && c->codes[code->operands[0]].type == TSSA_BOOL
                   ? NULL
                   : wrong(c, "it checks no truth value");
    default:
        return check_element(c, code);
    }
}

static tssa_status *check_memory(struct checker *c, const struct gir_code *code)
{
    const bool keeps = code->op == GIR_KEEP, store = code->op == GIR_STORE || keeps;
    if (c->kernel->grid)
        return code->op == GIR_LOOKUP ? check_element(c, code)
                                      : wrong(c, "a grid does not say which element");
    const uint32_t number = gir_arg_of(code), field = gir_field_of(code);
    if (number >= c->kernel->n_args || field >= c->args[number].fields || code->inside)
        return wrong(c, "there is no such argument");
    const struct gir_arg *arg = &c->args[number];
    const tssa_dtype type = arg->dtype == TSSA_BOOL ? TSSA_UINT8 : (tssa_dtype)arg->dtype;
    if (arg->is_result != store || code->type != type ||
        arg->is_looked_up != (code->op == GIR_LOOKUP) || arg->is_kept != keeps)
        return wrong(c, "it does not suit the argument");
    if (keeps && c->codes[code->operands[1]].type != TSSA_BOOL)
        return wrong(c, "what says what is kept is no truth value");
    if (keeps && c->stored[number] && c->where[number] != code->operands[1])
        return wrong(c, "fields are kept of different records");
    c->where[number] = code->operands[1];
    if (code->op == GIR_LOOKUP && (c->codes[code->operands[0]].type != TSSA_INT64 ||
                                   (arg->moves && !c->is_one[code->operands[0]])))
        return wrong(c, "it looks up what is no number of a row");
    if (!store)
        return c->has_stored ? wrong(c, "something is loaded behind a store") : NULL;
    if (c->stored[number] >> field & 1)
        return wrong(c, "the argument is stored twice");
    c->has_stored = true;
    c->stored[number] |= (uint8_t)(1u << field);
    if (!gir_varies(c->kernel, arg) && !c->is_one[code->operands[0]])
        return wrong(c, "what is reduced has more than one of it");
    return c->codes[code->operands[0]].type == type ? NULL : wrong(c, "the types differ");
}

static tssa_status *check_scalar(const struct checker *c, const struct gir_code *code)
{
    const enum scalar_id id = code->scalar;
    const struct scalar_info *info = scalar_info(id);
    const bool choice = id == SCALAR_SEL, test = info->kind == SCALAR_KIND_TEST;
    const struct gir_code *last = &c->codes[code->operands[info->operands - 1]];
    const tssa_dtype type = last->type;
    if (!gir_computes(id, type) || code->type != (test ? TSSA_BOOL : type))
        return wrong(c, "it is not computed in that type");
    for (uint32_t i = 0; i + 1 < info->operands; i++)
        if (c->codes[code->operands[i]].type != (choice && i == 0 ? TSSA_BOOL : type))
            return wrong(c, "an operand has another type");
    return NULL;
}

static tssa_status *check_constant(const struct checker *c, const struct gir_code *code)
{
    const unsigned width = 8 * dtype_info(code->type)->size;
    if (!dtype_in(TYPES_MEMORY & ~T_BOOL, code->type) || (width < 64 && code->bits >> width))
        return wrong(c, "no element of the type");
    return NULL;
}

static tssa_status *check_reduce(struct checker *c, const struct gir_code *code)
{
    if (!c->kernel->whole_rows && !c->kernel->columns)
        return wrong(c, "rows may come in parts");
    if (!dtype_in(TYPES_REDUCED, code->type) || c->codes[code->operands[0]].type != code->type)
        return wrong(c, "it is not reduced in that type");
    if (c->n_reductions++ == GIR_MAX_REDUCTIONS)
        return wrong(c, "there are more reductions than kernels may have");
    return check_constant(c, code);
}

/* Of a loop's iterations. */
static tssa_status *check_state(struct checker *c, const struct gir_code *code)
{
    const uint32_t first = code->operands[0];
    if (code->type != c->codes[first].type)
        return wrong(c, "a state has another type");
    if (code->op != GIR_STATE && c->codes[first].op != GIR_STATE)
        return wrong(c, "it is of no state");
    if (code->op == GIR_LAST)
        return NULL;
    if (code->op == GIR_STATE) {
        if (!c->kernel->columns || !dtype_in(TYPES_MEMORY & ~T_BOOL, code->type) ||
            !c->is_one[first] || c->is_last[first] || code->bits != c->n_states)
            return wrong(c, "it is no state");
        c->n_states++;
        return NULL;
    }
    if (c->has_next[first] || c->codes[code->operands[1]].type != code->type)
        return wrong(c, "it is no next value of a state");
    c->has_next[first] = true;
    c->n_nexts++;
    return NULL;
}

/* What a step may name beside its operands. */
static bool is_well_formed(const struct gir_code *code)
{
    const bool has_bits = code->op == GIR_LOAD || code->op == GIR_STORE || code->op == GIR_LOOKUP ||
                          code->op == GIR_KEEP || code->op == GIR_CONSTANT ||
                          code->op == GIR_REDUCE || code->op == GIR_NUMBER ||
                          code->op == GIR_STORE_AT || code->op == GIR_STATE;
    if (code->op >= GIR_OP_COUNT || code->inside > 1 || (!has_bits && code->bits))
        return false;
    if (code->inside && code->op != GIR_LOOKUP && code->op != GIR_STORE_AT)
        return false;
    switch (code->op) {
    case GIR_SCALAR:
        return code->scalar < SCALAR_COUNT_OF_IDS && types_of((enum scalar_id)code->scalar);
    case GIR_REDUCE:
        return code->scalar == SCALAR_ADD || code->scalar == SCALAR_MUL ||
               code->scalar == SCALAR_MIN || code->scalar == SCALAR_MAX;
    default:
        return code->scalar == 0;
    }
}

static tssa_status *check_code(struct checker *c, const struct gir_code *code)
{
    if (!is_well_formed(code))
        return wrong(c, "it is none");
    const uint32_t n = gir_n_operands(code);
    for (uint32_t i = 0; i < 3; i++)
        if (i < n ? code->operands[i] >= c->at || gir_has_effect(&c->codes[code->operands[i]])
                  : code->operands[i] != 0)
            return wrong(c, "an operand is none");
    switch (code->op) {
    case GIR_CONSTANT:
        return check_constant(c, code);
    case GIR_CONVERT:
        return gir_converts(c->codes[code->operands[0]].type, code->type)
                   ? NULL
                   : wrong(c, "there is no such conversion");
    case GIR_SCALAR:
        return check_scalar(c, code);
    case GIR_REDUCE:
        return check_reduce(c, code);
    case GIR_LENGTH:
        return dtype_in(TYPES_REDUCED, code->type) && (c->kernel->whole_rows || c->kernel->columns)
                   ? NULL
                   : wrong(c, "it is no number, or rows may come in parts");
    case GIR_POSITION:
        return (code->type == TSSA_INT32 || code->type == TSSA_INT64) &&
                       (c->kernel->whole_rows || c->kernel->grid || gir_keeps(c->kernel))
                   ? NULL
                   : wrong(c, "it is no position, or rows may come in parts");
    case GIR_LOAD:
    case GIR_STORE:
    case GIR_LOOKUP:
    case GIR_KEEP:
        return check_memory(c, code);
    case GIR_ROW:
        return (code->type == TSSA_INT32 || code->type == TSSA_INT64) &&
                       (c->kernel->grid || c->kernel->columns)
                   ? NULL
                   : wrong(c, "it is no number of a row, or there are none");
    case GIR_STATE:
    case GIR_NEXT:
    case GIR_LAST:
        return check_state(c, code);
    default:
        return check_grid_code(c, code);
    }
}

/* Is the step at hand one value for a row, or for a column? */
static bool is_one(const struct checker *c)
{
    const struct gir_code *code = &c->codes[c->at];
    bool all = code->op != (c->kernel->columns ? GIR_ROW : GIR_POSITION) && code->op != GIR_STATE &&
               code->op != GIR_NEXT &&
               (c->kernel->grid || (code->op != GIR_LOAD && code->op != GIR_LOOKUP) ||
                !gir_varies(c->kernel, &c->args[gir_arg_of(code)]));
    for (uint32_t k = 0; k < gir_n_operands(code); k++)
        all &= c->is_one[code->operands[k]];
    return all || code->op == GIR_REDUCE || code->op == GIR_LAST;
}

/* Is the step at hand of what is there behind the last row? */
static bool is_last(const struct checker *c)
{
    const struct gir_code *code = &c->codes[c->at];
    bool any = code->op == GIR_LAST;
    for (uint32_t k = 0; k < gir_n_operands(code); k++)
        any |= c->is_last[code->operands[k]];
    return any;
}

/* Nothing is walked twice where rows are iterations. */
static tssa_status *check_iterations(const struct checker *c)
{
    if (!c->iterates)
        return NULL;
    if (c->codes[c->at].op == GIR_REDUCE || c->codes[c->at].op == GIR_LENGTH)
        return wrong(c, "there are iterations, and reductions");
    const struct gir_code *code = &c->codes[c->at];
    const bool each = !c->is_one[c->at] ||
                      (code->op == GIR_STORE && gir_varies(c->kernel, &c->args[gir_arg_of(code)]));
    return c->is_last[c->at] && each ? wrong(c, "an iteration knows the last one") : NULL;
}

/* Rows are looked up, and nothing is kept. */
static bool may_check(const struct gir_kernel *kernel)
{
    bool good = false;
    for (uint32_t i = 0; i < kernel->n_args; i++)
        good |= gir_args(kernel)[i].is_looked_up;
    return good && !gir_keeps(kernel) && !kernel->grid;
}

/* What is asked for of the code's form is there. */
static bool has_form(const struct gir_kernel *kernel)
{
    const bool along = kernel->form == GIR_FORM_ROWS_ALONG ||
                       (kernel->form == GIR_FORM_ROW_OF_BLOCK && kernel->grid && !kernel->stage);
    return (!kernel->form ||
            (kernel->whole_rows && (along || kernel->form == GIR_FORM_ROWS_ACROSS))) &&
           kernel->lanes <= (kernel->grid ? 0 : GIR_FORM_LANES) &&
           !(kernel->lanes & (kernel->lanes - 1)) && kernel->lanes != 1;
}

tssa_status *gir_check(const void *bytes, size_t size)
{
    const struct gir_kernel *kernel = bytes;
    if (size < sizeof *kernel || kernel->magic != GIR_MAGIC || kernel->size != size)
        return ERROR(TSSA_MALFORMED, "these are no bytes of a kernel");
    if (kernel->whole_rows > 1 || kernel->columns > 1 || (kernel->whole_rows && kernel->columns) ||
        kernel->grid > 1 || kernel->checks > 1 ||
        kernel->stage > (kernel->grid ? GIR_MAX_STAGES : 0) || !has_form(kernel) ||
        kernel->n_numbers > (kernel->grid ? GIR_MAX_NUMBERS : 0) || kernel->n_args > GIR_MAX_ARGS ||
        kernel->n_codes > GIR_MAX_CODES ||
        size != sizeof *kernel + kernel->n_args * sizeof(struct gir_arg) +
                    kernel->n_codes * sizeof(struct gir_code))
        return ERROR(TSSA_MALFORMED, "kernel: %" PRIu32 " arguments and %" PRIu32 " steps",
                     kernel->n_args, kernel->n_codes);
    struct checker c = {.kernel = kernel,
                        .args = gir_args(kernel),
                        .codes = gir_codes(kernel),
                        .iterates = gir_iterates(kernel)};
    for (uint32_t i = 0; i < kernel->n_args; i++)
        TRY(kernel->grid ? check_whole(kernel, i) : check_arg(kernel, i));
    for (; c.at < kernel->n_codes; c.at++) {
        TRY(check_code(&c, &c.codes[c.at]));
        c.is_one[c.at] = is_one(&c);
        c.is_last[c.at] = is_last(&c);
        TRY(check_iterations(&c));
    }
    if (kernel->checks && !may_check(kernel))
        return ERROR(TSSA_MALFORMED, "kernel: it looks nothing up that it could check");
    if (c.n_states != c.n_nexts)
        return ERROR(TSSA_MALFORMED, "kernel: a state is the same in all iterations");
    const bool whole = kernel->whole_rows && !kernel->grid;
    for (uint32_t i = 0; i < kernel->n_args; i++) {
        if (c.args[i].is_result && c.stored[i] != (1u << c.args[i].fields) - 1)
            return ERROR(TSSA_MALFORMED, "kernel: a result is not stored");
        if (whole && (c.args[i].fields > 1 || c.args[i].is_looked_up ||
                      (c.args[i].moves == GIR_STRIDED && c.args[i].is_result)))
            return ERROR(TSSA_MALFORMED, "kernel: in whole rows there are no records, nor strided "
                                         "results, nor is anything looked up");
    }
    return NULL;
}
