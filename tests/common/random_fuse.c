/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_fuse.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "common/fuse_text.h"
#include "common/op_run.h"
#include "ir/ir.h"

#define MAX_VALUES 40
#define MAX_RANK 8

struct fuse_value {
    tssa_dtype dtype;
    bool full; /* it has the dims of the space */
    /* what it is computed of may be wrong: it is a result, so that nobody leaves it out */
    bool errs;
};

struct writer {
    struct random random;
    struct fuse_text text;
    struct fuse_value values[MAX_VALUES];
    int n_values, rank;
    int last;            /* the last dim, the same in every run; 0: a symbol, as the others are */
    int fixed[MAX_RANK]; /* the size of an axis of the space; 0: a symbol */
    int n_raw;           /* operands that only accesses, assigns and Concats read */
    int n_pieces;        /* other values, of other shapes */
};

static const tssa_dtype dtypes[] = {TSSA_FLOAT,  TSSA_FLOAT,   TSSA_FLOAT,    TSSA_FLOAT,
                                    TSSA_DOUBLE, TSSA_FLOAT16, TSSA_BFLOAT16, TSSA_INT8,
                                    TSSA_INT16,  TSSA_INT32,   TSSA_INT64,    TSSA_UINT8,
                                    TSSA_UINT16, TSSA_UINT32,  TSSA_UINT64,   TSSA_BOOL};
#define N_DTYPES ((int)(sizeof dtypes / sizeof *dtypes))

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
    w->values[w->n_values] = (struct fuse_value){.dtype = dtype, .full = full};
    return w->n_values++;
}

/* ---- Operands -------------------------------------------------------------------------------- */

static void add_param(struct writer *w, tssa_dtype dtype, bool full)
{
    char dims[64] = "";
    const int missing = full ? 0 : (int)random_int(&w->random, 0, w->rank);
    const int alike =
        (int)random_int(&w->random, 0, 2); /* broadcast or not, axis by axis, or all */
    bool has_all = missing == 0;
    for (int i = missing; i < w->rank; i++) {
        const bool has = full || (alike == 2 ? random_chance(&w->random, 50) : alike == 1);
        has_all &= has;
        char dim[8];
        if (has && w->last && i == w->rank - 1)
            snprintf(dim, sizeof dim, i > missing ? ", %d" : "%d", w->last);
        else if (has && w->fixed[i])
            snprintf(dim, sizeof dim, "%s%d", i > missing ? ", " : "", w->fixed[i]);
        else
            snprintf(dim, sizeof dim, i > missing ? ", %c" : "%c", has ? 'A' + i : '1');
        strcat(dims, dim);
    }
    const int value = add_value(w, dtype, has_all);
    fuse_text_param(&w->text, 'v', 'x', value, dtype, dims);
}

static int add_number(struct writer *w, tssa_dtype dtype)
{
    static const char *const floats[] = {"0", "1", "-1", "0.5", "2", "3", "-0.0", "inf", "nan"};
    static const char *const integers[] = {"0", "1", "2", "3", "5", "7"};
    const bool is_float = dtype_is_float(dtype);
    const char *number =
        is_float ? floats[random_int(&w->random, 0, 8)] : integers[random_int(&w->random, 0, 5)];
    if (dtype == TSSA_BOOL)
        number = random_chance(&w->random, 50) ? "true" : "false";
    const int value = add_value(w, dtype, w->rank == 0);
    text_printf(&w->text.ops, "%%v%d = Constant() {value = %s[] %s}\n", value, name_of(dtype),
                number);
    return value;
}

/* By a scale and a zero point, where there are such operators. */
static bool quantizes(const struct writer *w, int from, tssa_dtype to)
{
    static const dtype_mask small = T_I8U8 | DTYPE_BIT(TSSA_INT16) | DTYPE_BIT(TSSA_UINT16);
    const tssa_dtype dtype = w->values[from].dtype;
    return (dtype == TSSA_FLOAT && dtype_in(small, to)) ||
           (to == TSSA_FLOAT && dtype_in(small | DTYPE_BIT(TSSA_INT32), dtype));
}

static void add_quantized(struct writer *w, int value, int from, tssa_dtype dtype)
{
    static const char *const scales[] = {"0.037", "0.5", "1", "3", "-0.25", "0", "inf", "nan"};
    const tssa_dtype integer = dtype == TSSA_FLOAT ? w->values[from].dtype : dtype;
    const bool has_zero = integer != TSSA_UINT8 || random_chance(&w->random, 50);
    text_printf(&w->text.ops, "%%scale%d = Constant() {value = f32[] %s}\n", value,
                scales[random_int(&w->random, 0, random_chance(&w->random, 80) ? 3 : 7)]);
    if (has_zero)
        text_printf(&w->text.ops, "%%zero%d = Constant() {value = %s[] %d}\n", value,
                    name_of(integer), (int)random_int(&w->random, 0, 127));
    text_printf(&w->text.ops, "%%v%d = %s(%%v%d, %%scale%d", value,
                dtype == TSSA_FLOAT ? "DequantizeLinear" : "QuantizeLinear", from, value);
    text_printf(&w->text.ops, has_zero ? ", %%zero%d)\n" : ")\n", value);
    if (dtype == TSSA_FLOAT || w->n_values == MAX_VALUES || random_chance(&w->random, 50))
        return;
    const int back = add_value(w, TSSA_FLOAT, w->values[value].full);
    text_printf(&w->text.ops, "%%v%d = DequantizeLinear(%%v%d, %%scale%d", back, value, value);
    text_printf(&w->text.ops, has_zero ? ", %%zero%d)\n" : ")\n", value);
}

static int add_converted(struct writer *w, int from, tssa_dtype dtype)
{
    const int value = add_value(w, dtype, w->values[from].full);
    if (quantizes(w, from, dtype) && random_chance(&w->random, 50))
        add_quantized(w, value, from, dtype);
    else
        text_printf(&w->text.ops, "%%v%d = Cast(%%v%d) {to = %d}\n", value, from, (int)dtype);
    return value;
}

/* A value of the type: one that is there, a number, or another one converted. */
static int find_operand(struct writer *w, tssa_dtype dtype)
{
    int found = -1, n = 0;
    for (int i = 0; i < w->n_values; i++)
        if (w->values[i].dtype == dtype && random_int(&w->random, 0, n++) == 0)
            found = i;
    if (found >= 0 && random_chance(&w->random, 85))
        return found;
    if (random_chance(&w->random, 25))
        return add_number(w, dtype);
    const int from = (int)random_int(&w->random, 0, w->n_values - 1);
    if (w->values[from].dtype == dtype)
        return from;
    return add_converted(w, from, dtype);
}

/* ---- Accesses and assigns -------------------------------------------------------------------- */

/* Dims: a size, or minus the number of a symbol, from 1 on. */
struct shape {
    int rank, dims[MAX_RANK];
};

static struct shape space_of(const struct writer *w)
{
    struct shape shape = {.rank = w->rank};
    for (int i = 0; i < w->rank; i++)
        shape.dims[i] = w->fixed[i] ? w->fixed[i] : -1 - i;
    return shape;
}

static void insert_dim(struct shape *shape, int axis, int dim)
{
    memmove(shape->dims + axis + 1, shape->dims + axis,
            (size_t)(shape->rank++ - axis) * sizeof *shape->dims);
    shape->dims[axis] = dim;
}

static void remove_dim(struct shape *shape, int axis)
{
    memmove(shape->dims + axis, shape->dims + axis + 1,
            (size_t)(--shape->rank - axis) * sizeof *shape->dims);
}

/* Another operand of the fuse op, by its number. */
static int add_raw(struct writer *w, tssa_dtype dtype, const struct shape *shape)
{
    struct text dims;
    text_init(&dims, &allocator_default);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0)
            text_printf(&dims, "%s%c", i ? ", " : "", 'A' - 1 - shape->dims[i]);
        else
            text_printf(&dims, "%s%d", i ? ", " : "", shape->dims[i]);
    fuse_text_param(&w->text, 'r', 's', w->n_raw, dtype, text_string(&dims));
    text_free(&dims);
    return w->n_raw++;
}

static int any_axis(struct writer *w, const struct shape *shape)
{
    return (int)random_int(&w->random, 0, shape->rank - 1);
}

/* A slice of `length` elements, as text; how many there must be. */
static int write_slice(struct writer *w, int axis, int length, char *text, size_t size)
{
    const int by = (int)random_int(&w->random, 1, 3), rest = (int)random_int(&w->random, 0, 2),
              all = (length - 1) * by + 1 + rest, start = (int)random_int(&w->random, 0, rest);
    const int last = start + (length - 1) * by;
    if (random_chance(&w->random, 70)) {
        snprintf(text, size, "slice(%d, %d, %d, %d)", axis,
                 random_chance(&w->random, 30) ? start - all : start, last + 1, by);
    } else {
        /* The end of one that goes backwards to element 0 is below all. */
        snprintf(text, size, "slice(%d, %d, %d, %d)", axis, last, start ? start - 1 : -1000, -by);
    }
    return all;
}

/* The same of a span, of an axis that may be shorter: *errs then. */
static int write_span(struct writer *w, int axis, int length, bool *errs, char *text, size_t size)
{
    const int start = (int)random_int(&w->random, 0, 2);
    snprintf(text, size, "span(%d, %d, %d)", axis, start, length);
    *errs |= random_chance(&w->random, 50);
    return *errs ? -MAX_RANK : start + length + (int)random_int(&w->random, 0, 2);
}

/* A step that leaves the region; the shape becomes what it is a region of. The text is empty where
 * there is none. */
static void write_read(struct writer *w, struct shape *shape, bool *index, bool *errs, char *text,
                       size_t size)
{
    const struct shape old = *shape;
    int axis = shape->rank ? any_axis(w, shape) : 0, length;
    text[0] = '\0';
    switch (random_int(&w->random, 0, 5)) {
    case 0:
        strcpy(text, "permute(");
        for (int i = 0, turn = axis; i < old.rank; i++) {
            const int from = (i + turn) % old.rank;
            snprintf(text + strlen(text), size - strlen(text), "%s%d", i ? ", " : "", from);
            shape->dims[from] = old.dims[i];
        }
        strcat(text, ")");
        break;
    case 1:
    case 2:
        if (shape->rank == MAX_RANK)
            return;
        axis = (int)random_int(&w->random, 0, shape->rank);
        length = (int)random_int(&w->random, 1, 6);
        *index = !*index && random_chance(&w->random, 20);
        if (*index)
            snprintf(text, size, "select(%d, $0)", axis);
        else
            snprintf(text, size, "select(%d, %d)", axis,
                     (int)random_int(&w->random, -length, length - 1));
        insert_dim(shape, axis, *index ? 6 : length);
        break;
    case 3:
        if (shape->rank == 0)
            return;
        if (shape->dims[axis] > 0 && random_chance(&w->random, 40))
            shape->dims[axis] = write_span(w, axis, shape->dims[axis], errs, text, size);
        else if (shape->dims[axis] > 0)
            shape->dims[axis] = write_slice(w, axis, shape->dims[axis], text, size);
        else
            snprintf(text, size,
                     random_chance(&w->random, 50) ? "slice(%d, -1, -1000, -1)"
                                                   : "slice(%d, 0, 1000, 1)",
                     axis);
        break;
    case 4:
        if (shape->rank && shape->dims[axis] == 1) {
            snprintf(text, size, "unsqueeze(%d)", axis);
            remove_dim(shape, axis);
        }
        break;
    default:
        if (shape->rank == MAX_RANK)
            return;
        axis = (int)random_int(&w->random, 0, shape->rank);
        snprintf(text, size, "squeeze(%d)", axis);
        insert_dim(shape, axis, 1);
    }
}

/* What an access of an operand gives, of the space's shape. */
static void add_access(struct writer *w, tssa_dtype dtype)
{
    struct shape shape = space_of(w);
    char rule[600] = "";
    bool index = false, errs = false;
    for (int64_t n = random_int(&w->random, 1, 3); n > 0; n--) {
        char step[160], more[sizeof rule + 2 + sizeof step];
        bool has_index = index;
        write_read(w, &shape, &has_index, &errs, step, sizeof step);
        index |= has_index;
        if (!step[0])
            continue;
        snprintf(more, sizeof more, "%s%s%s", step, rule[0] ? ", " : "", rule);
        strcpy(rule, more);
    }
    const int raw = add_raw(w, dtype, &shape);
    const int number = index ? add_raw(w, TSSA_INT64, &(struct shape){0}) : 0;
    const int value = add_value(w, dtype, true);
    w->values[value].errs = index || errs;
    text_printf(&w->text.ops, "%%v%d = access(%%r%d", value, raw);
    if (index)
        text_printf(&w->text.ops, ", %%r%d", number);
    text_printf(&w->text.ops, ") {rule = %s[%s]}\n", rule[0] ? "" : "steps", rule);
}

/* Rows of an operand, by numbers that are an operand, or lie in one, or are computed. */
static void add_lookup(struct writer *w)
{
    const tssa_dtype dtype = w->values[random_int(&w->random, 0, w->n_values - 1)].dtype,
                     number = random_chance(&w->random, 50) ? TSSA_INT64 : TSSA_INT32;
    struct shape shape = space_of(w);
    char before[60] = "", numbers[16];
    const int axis = shape.rank ? any_axis(w, &shape) : 0;
    if (shape.rank == 0 || shape.rank == MAX_RANK)
        return;
    struct shape list = {.rank = 1, .dims = {shape.dims[axis]}};
    if (random_chance(&w->random, 40)) {
        insert_dim(&list, 1, 3);
        const int raw = add_raw(w, number, &list);
        text_printf(&w->text.ops, "%%c%d = access(%%r%d) {rule = [select(1, -2)]}\n", w->n_pieces,
                    raw);
        snprintf(numbers, sizeof numbers, "%%c%d", w->n_pieces++);
    } else {
        snprintf(numbers, sizeof numbers, "%%r%d", add_raw(w, number, &list));
    }
    if (random_chance(&w->random, 40)) {
        text_printf(&w->text.ops, "%%c%d = Neg(%s)\n", w->n_pieces, numbers);
        snprintf(numbers, sizeof numbers, "%%c%d", w->n_pieces++);
    }
    shape.dims[axis] = 6;
    if (random_chance(&w->random, 30)) {
        snprintf(before, sizeof before, "select(%d, 1), ", axis);
        insert_dim(&shape, axis, 2);
    }
    const int raw = add_raw(w, dtype, &shape), value = add_value(w, dtype, true);
    w->values[value].errs = true;
    text_printf(&w->text.ops, "%%v%d = access(%%r%d, %s) {rule = [%sgather(%d, $0)]}\n", value, raw,
                numbers, before, axis);
}

/* A rule of one or two steps that take part of the space. */
static void write_region(struct writer *w, struct shape *shape, bool *errs, char *rule, size_t size)
{
    for (int64_t n = random_int(&w->random, 1, 2); n > 0 && shape->rank; n--) {
        const int axis = any_axis(w, shape), dim = shape->dims[axis];
        char step[80];
        if (random_chance(&w->random, 60)) {
            const int at = dim > 0 ? (int)random_int(&w->random, -dim, dim - 1) : 0;
            *errs |= dim < 0;
            snprintf(step, sizeof step, "select(%d, %d)", axis, at);
            remove_dim(shape, axis);
        } else if (random_chance(&w->random, 40)) {
            const int start = dim > 0 ? (int)random_int(&w->random, 0, dim - 1) : 0,
                      count = dim > 0 ? (int)random_int(&w->random, n > 1, dim - start) : 1;
            *errs |= dim < 0;
            snprintf(step, sizeof step, "span(%d, %d, %d)", axis, start, count);
            shape->dims[axis] = count;
        } else if (dim > 0) {
            const int start = (int)random_int(&w->random, 0, dim - 1),
                      by = (int)random_int(&w->random, 1, 2);
            snprintf(step, sizeof step, "slice(%d, %d, %d, %d)", axis, start, dim, by);
            shape->dims[axis] = (dim - start - 1) / by + 1;
        } else {
            snprintf(step, sizeof step, "slice(%d, 0, 1, 1)", axis);
            shape->dims[axis] = 1;
        }
        snprintf(rule + strlen(rule), size - strlen(rule), "%s%s", rule[0] ? ", " : "", step);
    }
}

/* A region of something is written: a number, or an operand that is broadcast to the region. */
static void add_assign(struct writer *w)
{
    struct shape shape = space_of(w);
    char rule[200] = "", source[40];
    bool errs = false;
    int base = -1;
    for (int i = w->n_values; i-- > 0 && base < 0;)
        if (w->values[i].full)
            base = i;
    if (base < 0 || w->rank == 0)
        return;
    const tssa_dtype dtype = w->values[base].dtype;
    write_region(w, &shape, &errs, rule, sizeof rule);
    if (random_chance(&w->random, 20)) {
        const bool full = w->rank == 0;
        snprintf(source, sizeof source, "%%v%d", add_number(w, dtype));
        w->values[w->n_values - 1].full = full;
    } else {
        while (shape.rank && random_chance(&w->random, 10))
            remove_dim(&shape, 0);
        for (int i = 0; i < shape.rank; i++)
            shape.dims[i] = random_chance(&w->random, 10) ? 1 : shape.dims[i];
        snprintf(source, sizeof source, "%%r%d", add_raw(w, dtype, &shape));
    }
    const int value = add_value(w, dtype, true);
    w->values[value].errs = errs;
    text_printf(&w->text.ops, "%%v%d = assign(%%v%d, %s) {rule = [%s]}\n", value, base, source,
                rule);
}

/* ---- Concats --------------------------------------------------------------------------------- */

/* Something of the shape, by its name: an operand, what is computed of one, or now and then another
 * Concat. */
static void write_piece(struct writer *w, tssa_dtype dtype, struct shape shape, int depth,
                        char *name, size_t size)
{
    const int axis = shape.rank ? any_axis(w, &shape) : 0,
              length = shape.rank ? shape.dims[axis] : 0;
    char first[16], second[16];
    if (depth && length >= 2 && random_chance(&w->random, 30)) {
        const int part = (int)random_int(&w->random, 0, length);
        shape.dims[axis] = part;
        write_piece(w, dtype, shape, depth - 1, first, sizeof first);
        shape.dims[axis] = length - part;
        write_piece(w, dtype, shape, depth - 1, second, sizeof second);
        snprintf(name, size, "%%c%d", w->n_pieces);
        text_printf(&w->text.ops, "%%c%d = Concat(%s, %s) {axis = %d}\n", w->n_pieces++, first,
                    second, random_chance(&w->random, 50) ? axis : axis - shape.rank);
        return;
    }
    snprintf(name, size, "%%r%d", add_raw(w, dtype, &shape));
    if (random_chance(&w->random, 50))
        return;
    text_printf(&w->text.ops, "%%c%d = %s(%s)\n", w->n_pieces, dtype == TSSA_BOOL ? "Not" : "Abs",
                name);
    snprintf(name, size, "%%c%d", w->n_pieces++);
}

/* Up to three, of the space's shape, or what an access has of such a thing. */
static void add_concat(struct writer *w)
{
    struct shape shape = space_of(w);
    const tssa_dtype dtype = w->values[random_int(&w->random, 0, w->n_values - 1)].dtype;
    const int n = (int)random_int(&w->random, 1, 3), axis = shape.rank ? any_axis(w, &shape) : 0;
    char pieces[3][16], rule[160] = "";
    if (shape.rank == 0 || shape.dims[axis] < 1)
        return;
    int rest = shape.dims[axis];
    if (random_chance(&w->random, 30))
        rest = write_slice(w, axis, rest, rule, sizeof rule);
    for (int i = 0; i < n; i++) {
        const int least = rest > 0 && random_chance(&w->random, 90);
        shape.dims[axis] = i + 1 == n ? rest : (int)random_int(&w->random, least, rest);
        rest -= shape.dims[axis];
        write_piece(w, dtype, shape, 1, pieces[i], sizeof pieces[i]);
    }
    const int value = add_value(w, dtype, true);
    text_printf(&w->text.ops, "%%%c%d = Concat(", rule[0] ? 'c' : 'v',
                rule[0] ? w->n_pieces : value);
    for (int i = 0; i < n; i++)
        text_printf(&w->text.ops, "%s%s", i ? ", " : "", pieces[i]);
    text_printf(&w->text.ops, ") {axis = %d}\n", axis);
    if (rule[0])
        text_printf(&w->text.ops, "%%v%d = access(%%c%d) {rule = [%s]}\n", value, w->n_pieces++,
                    rule);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

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
    const bool other = random_chance(&w->random, 50);
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
    text_printf(&w->text.ops, "%%v%d = %s(", value, info->name);
    for (int i = 0; i < n; i++)
        text_printf(&w->text.ops, "%s%%v%d", i ? ", " : "", operands[i]);
    text_printf(&w->text.ops, ") %s\n", attributes_of(w, info));
}

/* ---- The fuse op ----------------------------------------------------------------------------- */

/* Without the axis, which has one element in every run; -1: as they are. */
static void add_results(struct writer *w, int squeezed)
{
    int n = 0;
    for (int i = w->n_values; i-- > 0;) {
        int result = i;
        if (!w->values[i].full ||
            (!w->values[i].errs && (n >= 4 || (n > 0 && random_chance(&w->random, 50)))))
            continue;
        if (squeezed >= 0) {
            result = add_value(w, w->values[i].dtype, false);
            text_printf(&w->text.ops, "%%v%d = access(%%v%d) {rule = [squeeze(%d)]}\n", result, i,
                        squeezed);
        }
        fuse_text_result(&w->text, result);
        n++;
    }
}

/* An axis that results can do without; -1: they stay. */
static int spare_axis(struct writer *w)
{
    for (int i = 0; i + 1 < w->rank; i++)
        if (w->fixed[i] == 1 && w->n_values < MAX_VALUES / 2 && random_chance(&w->random, 50))
            return i;
    return -1;
}

static void write_all(struct writer *w)
{
    const int params = (int)random_int(&w->random, 0, 4), ops = (int)random_int(&w->random, 1, 10);
    w->rank = (int)random_int(&w->random, 0, MAX_RANK);
    w->last = random_chance(&w->random, 30) ? (int)random_int(&w->random, 2, 34) : 0;
    add_param(w, any_dtype(w, T_FLOAT | T_INT | T_BOOL), true);
    for (int i = 0; i < params; i++)
        add_param(w, any_dtype(w, T_FLOAT | T_INT | T_BOOL), random_chance(&w->random, 40));
    for (int i = 0; i < ops && w->n_values < MAX_VALUES - 10; i++)
        add_op(w, any_row(w));
    add_results(w, -1);
}

static void write_maps(struct writer *w)
{
    const int ops = (int)random_int(&w->random, 1, 8);
    int count = 1;
    w->rank = (int)random_int(&w->random, 0, MAX_RANK);
    for (int i = 0; i < w->rank; i++) {
        w->fixed[i] = random_chance(&w->random, i + 1 == w->rank ? 70 : 40)
                          ? (int)random_int(&w->random, 1, 5)
                          : 0;
        if (count * w->fixed[i] > 60)
            w->fixed[i] = 1;
        count *= w->fixed[i] ? w->fixed[i] : 1;
    }
    add_param(w, any_dtype(w, T_FLOAT | T_INT | T_BOOL), true);
    for (int64_t i = random_int(&w->random, 0, 3); i > 0; i--)
        add_access(w, w->values[random_int(&w->random, 0, w->n_values - 1)].dtype);
    if (random_chance(&w->random, 40))
        add_param(w, any_dtype(w, T_FLOAT | T_INT | T_BOOL), random_chance(&w->random, 40));
    /* Kernels check what is looked up where nothing is assigned. */
    const bool assigns = random_chance(&w->random, 60);
    for (int i = 0; i < ops && w->n_values < MAX_VALUES - 10; i++) {
        add_op(w, any_row(w));
        if (assigns && w->text.n_params < 10 && random_chance(&w->random, 45))
            add_assign(w);
        if (w->text.n_params < 10 && random_chance(&w->random, assigns ? 10 : 30))
            add_lookup(w);
        if (w->text.n_params < 9 && random_chance(&w->random, 20))
            add_concat(w);
    }
    add_op(w, any_row(w));
    add_results(w, spare_axis(w));
}

static char *write_text(uint64_t seed, void (*write)(struct writer *w))
{
    struct writer w = {.random = {seed * 2 + 1}};
    fuse_text_init(&w.text);
    write(&w);
    return fuse_text_finish(&w.text, "fuse");
}

char *random_fuse(uint64_t seed)
{
    return write_text(seed, write_all);
}

char *random_maps(uint64_t seed)
{
    return write_text(seed, write_maps);
}
