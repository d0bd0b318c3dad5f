/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/recurrent.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- Functions ------------------------------------------------------------------------------- */

static const struct recurrent_function_info functions[] = {
#define SAME(name, ...) {#name, IR_OP_##name, __VA_ARGS__},
#define DIFFERENT(name, ...) {#name, IR_OP_COUNT, __VA_ARGS__},
#include "ir/recurrent.def"
#undef SAME
#undef DIFFERENT
};

const struct recurrent_function_info *recurrent_function_info(enum recurrent_function_id id)
{
    return &functions[id];
}

struct parameters {
    const float *values;
    size_t count, next;
};

static struct parameters parameters_of(const struct ir_op *op, const char *name)
{
    const struct ir_attr *attr = ir_attr(op, name);
    if (!attr || attr->kind != IR_ATTR_FLOATS)
        return (struct parameters){NULL, 0, 0};
    return (struct parameters){attr->floats, attr->count, 0};
}

static double parameter(struct parameters *list, bool used, double fallback)
{
    return used && list->next < list->count ? (double)list->values[list->next++] : fallback;
}

static tssa_status *decode_function(const char *name, struct parameters *alphas,
                                    struct parameters *betas, struct recurrent_function *function)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const struct recurrent_function_info *f = &functions[i];
        if (strcasecmp(name, f->name) != 0)
            continue;
        *function = (struct recurrent_function){.id = (enum recurrent_function_id)i,
                                                .alpha = parameter(alphas, f->has_alpha, f->alpha),
                                                .beta = parameter(betas, f->has_beta, f->beta)};
        return NULL;
    }
    return ERROR(TSSA_UNSUPPORTED, "the activation \"%s\" is unknown", name);
}

static tssa_status *decode_functions(const struct ir_op *op, const struct recurrent_cell *cell,
                                     struct recurrent_attrs *attrs)
{
    static const char *const defaults[][RECURRENT_MAX_FUNCTIONS] = {
        [RECURRENT_RNN] = {"Tanh"},
        [RECURRENT_GRU] = {"Sigmoid", "Tanh"},
        [RECURRENT_LSTM] = {"Sigmoid", "Tanh", "Tanh"}};
    const struct ir_attr *names = ir_attr(op, "activations");
    struct parameters alphas = parameters_of(op, "activation_alpha");
    struct parameters betas = parameters_of(op, "activation_beta");
    const size_t count = cell->n_functions * (size_t)attrs->directions;
    if (names && (names->kind != IR_ATTR_STRINGS || names->count != count))
        return ERROR(TSSA_MALFORMED, "activations must name %zu functions", count);
    for (size_t i = 0; i < count; i++) {
        const char *name =
            names ? names->strings[i].data : defaults[cell->kind][i % cell->n_functions];
        TRY(decode_function(name, &alphas, &betas, &attrs->functions[i]));
    }
    return NULL;
}

/* ---- Operators ------------------------------------------------------------------------------- */

const struct recurrent_cell *recurrent_cell_of(const struct ir_op *op)
{
    static const struct recurrent_cell rnn = {RECURRENT_RNN, 1, 1}, gru = {RECURRENT_GRU, 3, 2},
                                       lstm = {RECURRENT_LSTM, 4, 3};
    return ir_op_is(op, IR_OP_RNN)    ? &rnn
           : ir_op_is(op, IR_OP_GRU)  ? &gru
           : ir_op_is(op, IR_OP_LSTM) ? &lstm
                                      : NULL;
}

tssa_status *recurrent_decode(const struct ir_op *op, const struct recurrent_cell *cell,
                              struct recurrent_attrs *attrs)
{
    const char *direction = ir_attr_str(op, "direction", "forward");
    bool both = strcmp(direction, "bidirectional") == 0;
    attrs->reverse = strcmp(direction, "reverse") == 0;
    if (!both && !attrs->reverse && strcmp(direction, "forward") != 0)
        return ERROR(TSSA_MALFORMED, "the direction is \"%s\"", direction);
    attrs->directions = both ? 2 : 1;
    attrs->hidden = ir_attr_int(op, "hidden_size", 0);
    if (attrs->hidden < 0)
        return ERROR(TSSA_MALFORMED, "hidden_size is %" PRId64, attrs->hidden);
    attrs->batch_first = ir_attr_int(op, "layout", 0) != 0;
    attrs->input_forget = ir_attr_int(op, "input_forget", 0) != 0;
    attrs->linear_before_reset = ir_attr_int(op, "linear_before_reset", 0) != 0;
    attrs->clip = (double)ir_attr_float(op, "clip", INFINITY);
    return decode_functions(op, cell, attrs);
}
