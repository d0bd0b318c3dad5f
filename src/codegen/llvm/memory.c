/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/llvm/memory.h"

#include <string.h>

#define MOST_LANES 64

/* ---- Shuffles -------------------------------------------------------------------------------- */

/* Elements of x and y behind each other, by their numbers. */
static LLVMValue shuffle(const struct emitter *e, LLVMValue x, LLVMValue y, const unsigned *indices,
                         unsigned n)
{
    LLVMValue lanes[MOST_LANES];
    for (unsigned i = 0; i < n; i++)
        lanes[i] = emit_int(e, 32, indices[i]);
    return e->llvm->LLVMBuildShuffleVector(e->builder, x, y, e->llvm->LLVMConstVector(lanes, n),
                                           "");
}

static LLVMValue shuffle_steps(const struct emitter *e, LLVMValue x, LLVMValue y, unsigned first,
                               unsigned step, unsigned n)
{
    unsigned indices[MOST_LANES];
    for (unsigned i = 0; i < n; i++)
        indices[i] = first + i * step;
    return shuffle(e, x, y, indices, n);
}

/* Lane i of field f is element i * n + f of n vectors behind each other. An even number of fields
 * is two halves. */
static void split_fields(const struct emitter *e, LLVMValue *vectors, unsigned n, unsigned width)
{
    LLVMValue out[GIR_MAX_FIELDS], half[GIR_MAX_FIELDS];
    if (n == 1)
        return;
    for (unsigned side = 0; n % 2 == 0 && side < 2; side++) {
        for (unsigned k = 0; k < n / 2; k++)
            half[k] = shuffle_steps(e, vectors[2 * k], vectors[2 * k + 1], side, 2, width);
        split_fields(e, half, n / 2, width);
        for (unsigned k = 0; k < n / 2; k++)
            out[2 * k + side] = half[k];
    }
    for (unsigned f = 0; n % 2 && f < n; f++) {
        out[f] = vectors[0];
        for (unsigned k = 1; k < n; k++) {
            unsigned indices[MOST_LANES];
            for (unsigned i = 0; i < width; i++) {
                const unsigned at = i * n + f;
                if (at / width == k)
                    indices[i] = width + at % width;
                else /* what is there already; of the first vector, once it is chosen from */
                    indices[i] = at / width == 0 && k == 1 ? at : i;
            }
            out[f] = shuffle(e, out[f], vectors[k], indices, width);
        }
    }
    memcpy(vectors, out, n * sizeof *out);
}

/* The inverse. */
static void join_fields(const struct emitter *e, LLVMValue *fields, unsigned n, unsigned width)
{
    LLVMValue out[GIR_MAX_FIELDS], halves[2][GIR_MAX_FIELDS];
    unsigned indices[MOST_LANES];
    if (n == 1)
        return;
    for (unsigned side = 0; n % 2 == 0 && side < 2; side++) {
        for (unsigned k = 0; k < n / 2; k++)
            halves[side][k] = fields[2 * k + side];
        join_fields(e, halves[side], n / 2, width);
    }
    for (unsigned k = 0; n % 2 == 0 && k < n; k++) {
        for (unsigned i = 0; i < width; i++)
            indices[i] = k % 2 * (width / 2) + i / 2 + i % 2 * width;
        out[k] = shuffle(e, halves[0][k / 2], halves[1][k / 2], indices, width);
    }
    for (unsigned k = 0; n % 2 && k < n; k++) {
        out[k] = fields[0];
        for (unsigned f = 1; f < n; f++) {
            for (unsigned i = 0; i < width; i++) {
                const unsigned at = k * width + i;
                if (at % n == f)
                    indices[i] = width + at / n;
                else
                    indices[i] = at % n == 0 && f == 1 ? at / n : i;
            }
            out[k] = shuffle(e, out[k], fields[f], indices, width);
        }
    }
    memcpy(fields, out, n * sizeof *out);
}

/* Parts of a vector, behind each other; and a part of it. */
static LLVMValue join_parts(const struct emitter *e, LLVMValue *parts, unsigned n, unsigned width)
{
    for (; n > 1; n /= 2, width *= 2)
        for (unsigned k = 0; k < n / 2; k++)
            parts[k] = shuffle_steps(e, parts[2 * k], parts[2 * k + 1], 0, 1, 2 * width);
    return parts[0];
}

static LLVMValue part_of(const struct emitter *e, LLVMValue vector, unsigned first, unsigned width)
{
    return width == e->lanes ? vector : shuffle_steps(e, vector, vector, first, 1, width);
}

/* ---- Records --------------------------------------------------------------------------------- */

/* Vectors of one register each, as many as there are fields, hold `width` records. */
struct records {
    struct emitter *e;
    tssa_dtype type;
    uint32_t arg;
    unsigned fields, width;
};

static struct records records_of(struct emitter *e, const struct gir_code *code)
{
    const uint32_t arg = gir_arg_of(code);
    const unsigned most = e->register_bytes / emit_size(code->type);
    return (struct records){.e = e,
                            .type = code->type,
                            .arg = arg,
                            .fields = gir_args(e->kernel)[arg].fields,
                            .width = most < e->lanes ? most : e->lanes};
}

static LLVMValue element(const struct emitter *e, LLVMValue base, tssa_dtype type, LLVMValue index)
{
    return e->llvm->LLVMBuildGEP2(e->builder, emit_element(e, type), base, &index, 1, "");
}

/* Vector k of those that hold the records from number `first` on, counted from the index. */
static LLVMValue vector_at(const struct records *r, unsigned first, unsigned k)
{
    struct emitter *e = r->e;
    LLVMValue begin = emit_binary(e, LLVM_MUL, e->index, emit_int(e, 64, r->fields));
    begin = emit_binary(e, LLVM_ADD, begin, emit_int(e, 64, first * r->fields + k * r->width));
    return element(e, e->args[r->arg], r->type, begin);
}

/* Which lanes of that vector are there: each record's as often as it has fields. */
static LLVMValue mask_at(const struct records *r, unsigned first, unsigned k)
{
    unsigned indices[MOST_LANES];
    for (unsigned i = 0; i < r->width; i++)
        indices[i] = first + (k * r->width + i) / r->fields;
    return shuffle(r->e, r->e->mask, r->e->mask, indices, r->width);
}

static LLVMType vector_type(const struct records *r)
{
    return r->e->llvm->LLVMVectorType(emit_element(r->e, r->type), r->width);
}

static LLVMValue load_vector(const struct records *r, unsigned first, unsigned k)
{
    struct emitter *e = r->e;
    const unsigned size = emit_size(r->type);
    LLVMType type = vector_type(r);
    LLVMValue where = vector_at(r, first, k);
    if (e->mask) {
        LLVMType types[] = {type, e->llvm->LLVMPointerTypeInContext(e->context, 0)};
        LLVMValue args[] = {where, emit_int(e, 32, size), mask_at(r, first, k),
                            e->llvm->LLVMConstNull(type)};
        return emit_intrinsic(e, "llvm.masked.load", types, 2, args, 4);
    }
    LLVMValue value = e->llvm->LLVMBuildLoad2(e->builder, type, where, "");
    e->llvm->LLVMSetAlignment(value, size);
    return value;
}

static void store_vector(const struct records *r, unsigned first, unsigned k, LLVMValue value)
{
    struct emitter *e = r->e;
    const unsigned size = emit_size(r->type);
    LLVMValue where = vector_at(r, first, k);
    if (e->mask) {
        LLVMType types[] = {vector_type(r), e->llvm->LLVMPointerTypeInContext(e->context, 0)};
        LLVMValue args[] = {value, where, emit_int(e, 32, size), mask_at(r, first, k)};
        emit_intrinsic(e, "llvm.masked.store", types, 2, args, 4);
        return;
    }
    e->llvm->LLVMSetAlignment(e->llvm->LLVMBuildStore(e->builder, value, where), size);
}

static void load_records(const struct records *r, LLVMValue *fields)
{
    struct emitter *e = r->e;
    LLVMValue parts[GIR_MAX_FIELDS][MOST_LANES];
    const unsigned n = e->lanes / r->width;
    for (unsigned p = 0; p < n; p++) {
        LLVMValue vectors[GIR_MAX_FIELDS];
        for (unsigned k = 0; k < r->fields; k++)
            vectors[k] = load_vector(r, p * r->width, k);
        split_fields(e, vectors, r->fields, r->width);
        for (unsigned f = 0; f < r->fields; f++)
            parts[f][p] = vectors[f];
    }
    for (unsigned f = 0; f < r->fields; f++)
        fields[f] = join_parts(e, parts[f], n, r->width);
}

/* The vectors that hold the records from number `first` on, of their fields. */
static void join_records(const struct records *r, const LLVMValue *fields, unsigned first,
                         LLVMValue *vectors)
{
    for (unsigned f = 0; f < r->fields; f++)
        vectors[f] = part_of(r->e, fields[f], first, r->width);
    join_fields(r->e, vectors, r->fields, r->width);
}

static void store_records(const struct records *r, const LLVMValue *fields)
{
    for (unsigned first = 0; first < r->e->lanes; first += r->width) {
        LLVMValue vectors[GIR_MAX_FIELDS];
        join_records(r, fields, first, vectors);
        for (unsigned k = 0; k < r->fields; k++)
            store_vector(r, first, k, vectors[k]);
    }
}

/* Where a single element of a record is. */
static LLVMValue field_at(const struct records *r, uint32_t field)
{
    struct emitter *e = r->e;
    LLVMValue index = emit_int(e, 64, field);
    if (gir_args(e->kernel)[r->arg].moves != GIR_STAYS)
        index = emit_binary(e, LLVM_ADD,
                            emit_binary(e, LLVM_MUL, e->index, emit_int(e, 64, r->fields)), index);
    return element(e, e->args[r->arg], r->type, index);
}

LLVMValue emit_load_field(struct emitter *e, const struct gir_code *code)
{
    const struct records r = records_of(e, code);
    const bool moves = gir_args(e->kernel)[r.arg].moves != GIR_STAYS;
    if (e->lanes == 1 || !moves) {
        LLVMValue value = e->llvm->LLVMBuildLoad2(e->builder, emit_element(e, code->type),
                                                  field_at(&r, gir_field_of(code)), "");
        e->llvm->LLVMSetAlignment(value, emit_size(code->type));
        return moves ? value : emit_splat(e, value, code->type);
    }
    struct emitted_records *records = &e->records[r.arg];
    if (records->index != e->index) {
        load_records(&r, records->fields);
        records->index = e->index;
    }
    return records->fields[gir_field_of(code)];
}

bool emit_has_all_fields(struct emitter *e, const struct gir_code *code, LLVMValue value)
{
    struct emitted_records *records = &e->records[gir_arg_of(code)];
    records->fields[gir_field_of(code)] = value;
    if (++records->n_stored < gir_args(e->kernel)[gir_arg_of(code)].fields)
        return false;
    records->n_stored = 0;
    return true;
}

void emit_store_field(struct emitter *e, const struct gir_code *code, LLVMValue value)
{
    const struct records r = records_of(e, code);
    if (e->lanes == 1) {
        LLVMValue where = field_at(&r, gir_field_of(code));
        e->llvm->LLVMSetAlignment(e->llvm->LLVMBuildStore(e->builder, value, where),
                                  emit_size(code->type));
    } else if (emit_has_all_fields(e, code, value)) {
        store_records(&r, e->records[r.arg].fields);
    }
}

unsigned emit_join_all(struct emitter *e, const struct gir_code *code, LLVMValue *vectors)
{
    const struct records r = records_of(e, code);
    for (unsigned first = 0; first < e->lanes; first += r.width, vectors += r.fields)
        join_records(&r, e->records[r.arg].fields, first, vectors);
    return r.width;
}

void emit_store_all(struct emitter *e, const struct gir_code *code, LLVMValue where)
{
    const struct records r = records_of(e, code);
    LLVMValue index = e->index, mask = e->mask, arg = e->args[r.arg];
    e->index = emit_int(e, 64, 0);
    e->mask = NULL;
    e->args[r.arg] = where;
    store_records(&r, e->records[r.arg].fields);
    e->index = index;
    e->mask = mask;
    e->args[r.arg] = arg;
}

/* ---- Strides --------------------------------------------------------------------------------- */

/* So many bytes behind the argument's first one, for each lane, or the one. */
static LLVMValue behind(const struct emitter *e, uint32_t arg, LLVMValue offset)
{
    return e->llvm->LLVMBuildGEP2(e->builder, e->llvm->LLVMIntTypeInContext(e->context, 8),
                                  e->args[arg], &offset, 1, "");
}

/* Where the elements are: a vector of pointers, or one. */
static LLVMValue strided_at(const struct emitter *e, uint32_t arg)
{
    LLVMValue index = e->index, stride = e->strides[arg], lanes[MOST_LANES];
    for (unsigned i = 0; i < e->lanes; i++)
        lanes[i] = emit_int(e, 64, i);
    if (e->lanes > 1) {
        index = emit_splat(e, index, TSSA_INT64);
        index = emit_binary(e, LLVM_ADD, index, e->llvm->LLVMConstVector(lanes, e->lanes));
        stride = emit_splat(e, stride, TSSA_INT64);
    }
    return behind(e, arg, emit_binary(e, LLVM_MUL, index, stride));
}

static LLVMType pointers(const struct emitter *e)
{
    return e->llvm->LLVMVectorType(e->llvm->LLVMPointerTypeInContext(e->context, 0), e->lanes);
}

static LLVMValue load_from(struct emitter *e, const struct gir_code *code, LLVMValue where)
{
    const unsigned size = emit_size(code->type);
    LLVMType type = emit_type(e, code->type);
    if (e->lanes == 1) {
        LLVMValue value = e->llvm->LLVMBuildLoad2(e->builder, type, where, "");
        e->llvm->LLVMSetAlignment(value, size);
        return value;
    }
    LLVMType types[] = {type, pointers(e)};
    LLVMValue args[] = {where, emit_int(e, 32, size),
                        e->mask ? e->mask : emit_constant(e, TSSA_BOOL, 1),
                        e->llvm->LLVMConstNull(type)};
    return emit_intrinsic(e, "llvm.masked.gather", types, 2, args, 4);
}

LLVMValue emit_load_strided(struct emitter *e, const struct gir_code *code)
{
    return load_from(e, code, strided_at(e, gir_arg_of(code)));
}

LLVMValue emit_load_at(struct emitter *e, const struct gir_code *code, LLVMValue offsets)
{
    return load_from(e, code, behind(e, gir_arg_of(code), offsets));
}

/* Of lanes that are not there, numbers are 0, and there may be no row: nothing is loaded. */
LLVMValue emit_lookup_offsets(const struct emitter *e, uint32_t arg, LLVMValue number)
{
    LLVMValue stride = e->lookup_strides[arg], size = e->lookup_sizes[arg],
              zero = emit_constant(e, TSSA_INT64, 0);
    if (e->lanes > 1) {
        stride = emit_splat(e, stride, TSSA_INT64);
        size = emit_splat(e, size, TSSA_INT64);
    }
    LLVMValue is_negative = e->llvm->LLVMBuildICmp(e->builder, LLVM_SLT, number, zero, "");
    LLVMValue from_end = emit_binary(e, LLVM_ADD, number, size);
    return emit_binary(e, LLVM_MUL, emit_select(e, is_negative, from_end, number), stride);
}

void emit_store_strided(struct emitter *e, const struct gir_code *code, LLVMValue value)
{
    const unsigned size = emit_size(code->type);
    LLVMValue where = strided_at(e, gir_arg_of(code));
    if (e->lanes == 1) {
        e->llvm->LLVMSetAlignment(e->llvm->LLVMBuildStore(e->builder, value, where), size);
        return;
    }
    LLVMType types[] = {emit_type(e, code->type), pointers(e)};
    LLVMValue args[] = {value, where, emit_int(e, 32, size),
                        e->mask ? e->mask : emit_constant(e, TSSA_BOOL, 1)};
    emit_intrinsic(e, "llvm.masked.scatter", types, 2, args, 4);
}
