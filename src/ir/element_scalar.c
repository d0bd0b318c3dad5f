/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of what element-wise ops compute: the row's program (ir/scalar.h) on elements. It is run
 * from its last code back, so that only what decides the element is read: of a selection, the
 * condition and one side.
 */
#include "ir/element_reader.h"
#include "ir/promotion.h"
#include "ir/scalar.h"

/* The program of the op that makes the value, at a place. */
struct program {
    struct reader *reader;
    const struct ir_value *value;
    const struct element *at;
    const struct scalar_code *codes;
    double params[EW_MAX_PARAMS];
};

/* Folds are programs of two operands at a time. */
static bool open_program(struct reader *reader, const struct ir_value *value,
                         const struct element *at, struct program *program)
{
    const struct ir_op_info *info = value->op->info;
    *program = (struct program){reader, value, at, NULL, {0}};
    if (!info->ew || info->max_operands == IR_VARIADIC || !promotes_nothing(value->op))
        return false;
    program->codes = info->ew->program;
    tssa_status *status = scalar_params(value->op, program->params);
    bool opened = !status;
    tssa_status_free(status);
    return opened;
}

static int last_code(const struct program *program)
{
    int n = 0;
    while (program->codes[n].id != SCALAR_END)
        n++;
    return n - 1;
}

/* Where the operands of code `end` end. */
static void find_operands(const struct program *program, int end, int *ends)
{
    int at = end - 1;
    for (int i = scalar_info(program->codes[end].id)->operands; i-- > 0;) {
        ends[i] = at;
        for (int open = 1; open > 0; at--)
            open += scalar_info(program->codes[at].id)->operands - 1;
    }
}

static bool evaluate(const struct program *program, int end, struct element *out);

/* ---- Truth values ---------------------------------------------------------------------------- */

/* 1, 0, or -1 when it cannot be told. */
static int decide(const struct program *program, int end);

static bool subtract(struct reader *reader, const struct element *a, const struct element *b,
                     struct element *out)
{
    struct element minus;
    const struct dim *negative = dim_const(&reader->graph->dims, -1);
    return element_made(reader, negative) && element_scale(reader, b, negative, &minus) &&
           element_add(reader, a, &minus, out);
}

/* How the elements can lie to each other, over the whole space. */
static int orders(struct reader *reader, const struct element *a, const struct element *b)
{
    struct element difference;
    int all = ORDER_ANY;
    if (!subtract(reader, a, b, &difference))
        return all;
    const struct dim *least = element_least(reader->graph, reader->space, &difference),
                     *most = element_most(reader->graph, reader->space, &difference);
    if (least && least->low >= 0)
        all &= least->low > 0 ? ORDER_GREATER : ~ORDER_LESS;
    if (most && most->high <= 0)
        all &= most->high < 0 ? ORDER_LESS : ~ORDER_GREATER;
    return all;
}

static int compare(const struct program *program, const int *ends, enum scalar_id id)
{
    struct element a, b;
    if (!evaluate(program, ends[0], &a) || !evaluate(program, ends[1], &b))
        return -1;
    return scalar_holds(scalar_orders(id), orders(program->reader, &a, &b));
}

static int decide_operand(const struct program *program, uint32_t index)
{
    struct element inner[TSSA_MAX_RANK];
    struct program other;
    const struct ir_value *value = ir_operand(program->value->op, index);
    const struct ir_known *known = value ? value->known : NULL;
    int64_t truth;
    if (known && known->count == 1 && dim_is_const(known->elements[0], &truth))
        return truth != 0;
    return value && value->op && program->reader->budget-- > 0 &&
                   element_place(program->reader, program->value, index, program->at, inner) &&
                   open_program(program->reader, value, inner, &other)
               ? decide(&other, last_code(&other))
               : -1;
}

static int decide_both(const struct program *program, const int *ends, int decisive)
{
    int a = decide(program, ends[0]);
    if (a == decisive)
        return a;
    int b = decide(program, ends[1]);
    return b == decisive ? b : a < 0 || b < 0 ? -1 : !decisive;
}

static int decide(const struct program *program, int end)
{
    int ends[3], other;
    const enum scalar_id id = program->codes[end].id;
    find_operands(program, end, ends);
    switch (id) {
    case SCALAR_X:
    case SCALAR_Y:
    case SCALAR_Z:
        return decide_operand(program, id - SCALAR_X);
    case SCALAR_AND:
        return decide_both(program, ends, 0);
    case SCALAR_OR:
        return decide_both(program, ends, 1);
    case SCALAR_NOT:
        other = decide(program, ends[0]);
        return other < 0 ? -1 : !other;
    default:
        return scalar_orders(id) ? compare(program, ends, id) : -1;
    }
}

/* ---- Elements -------------------------------------------------------------------------------- */

static bool whole(struct reader *reader, double number, struct element *out)
{
    int64_t integer;
    return scalar_whole(number, &integer) && element_set(reader, integer, out);
}

/* One of them must be the same everywhere. */
static bool multiply(struct reader *reader, const struct element *a, const struct element *b,
                     struct element *out)
{
    const struct dim *left = element_as_dim(a), *right = element_as_dim(b);
    return right ? element_scale(reader, a, right, out)
                 : left && element_scale(reader, b, left, out);
}

static bool combine(const struct program *program, int end, struct element *out)
{
    struct reader *reader = program->reader;
    const enum scalar_id id = program->codes[end].id;
    struct element in[2];
    int ends[3];
    bool done = true;
    find_operands(program, end, ends);
    for (int i = 0; i < scalar_info(id)->operands; i++)
        if (!evaluate(program, ends[i], &in[i]))
            return false;
    if (id == SCALAR_ADD)
        done = element_add(reader, &in[0], &in[1], out);
    else if (id == SCALAR_SUB)
        done = subtract(reader, &in[0], &in[1], out);
    else if (id == SCALAR_MUL)
        done = multiply(reader, &in[0], &in[1], out);
    else
        done = element_set(reader, 0, &in[1]) && subtract(reader, &in[1], &in[0], out);
    return done && element_fits(reader, program->value->type->dtype, out);
}

static bool evaluate(const struct program *program, int end, struct element *out)
{
    int ends[3], truth;
    const struct scalar_code *code = &program->codes[end];
    switch (code->id) {
    case SCALAR_X:
    case SCALAR_Y:
    case SCALAR_Z:
        return element_read_operand(program->reader, program->value, code->id - SCALAR_X,
                                    program->at, out);
    case SCALAR_K:
        return whole(program->reader, code->number, out);
    case SCALAR_P:
        return whole(program->reader, program->params[code->index], out);
    case SCALAR_WHEN:
        find_operands(program, end, ends);
        return evaluate(program, ends[program->params[code->index] != 0 ? 0 : 1], out);
    case SCALAR_SEL:
        find_operands(program, end, ends);
        truth = decide(program, ends[0]);
        return truth >= 0 && evaluate(program, ends[truth ? 1 : 2], out);
    case SCALAR_ADD:
    case SCALAR_SUB:
    case SCALAR_MUL:
    case SCALAR_NEG:
        return combine(program, end, out);
    default:
        return false;
    }
}

bool element_read_scalar(struct reader *reader, const struct ir_value *value,
                         const struct element *at, struct element *out)
{
    struct program program;
    return open_program(reader, value, at, &program) &&
           evaluate(&program, last_code(&program), out);
}
