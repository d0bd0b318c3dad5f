/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/lists.h"

#include <inttypes.h>

#include "device/device.h"
#include "device/grids/grids.h"
#include "device/grids/keep.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/texts.h"
#include "device/grids/topk.h"
#include "ir/fuse.h"

#define NOT_WANTED UINT32_MAX

/* One of the ops: what its operands and results are of the op that is run. */
struct member {
    uint32_t operands[2], results[2];
    bool largest;
    const struct ir_op *op; /* of a block; NULL: the op itself */
};

struct lists {
    uint32_t n;
    struct member members[IR_FUSE_LISTS];
};

/* ---- The plan -------------------------------------------------------------------------------- */

static uint32_t result_of(const struct ir_block *body, const struct ir_value *value)
{
    const struct ir_op *ret = ir_block_return(body);
    for (uint32_t i = 0; i < ret->n_operands; i++)
        if (ir_operand(ret, i) == value)
            return i;
    return NOT_WANTED;
}

static struct member member_of(const struct ir_op *op, const struct ir_block *body)
{
    struct member member = {{0, 1}, {0, 1}, ir_attr_int(op, "largest", 1) != 0, body ? op : NULL};
    for (uint32_t i = 0; body && i < op->n_operands; i++)
        member.operands[i] = ir_operand(op, i)->index;
    for (uint32_t i = 0; i < 2; i++)
        if (i >= op->n_results)
            member.results[i] = NOT_WANTED;
        else if (body)
            member.results[i] = result_of(body, &op->results[i]);
    return member;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    const struct ir_block *body = ir_fuse_body(op);
    const struct ir_op *first = body ? body->first : op;
    struct lists *lists = ARENA_NEW(setup->arena, struct lists);
    TRY_ALLOC(lists);
    *lists = (struct lists){0};
    if (!body)
        lists->members[lists->n++] = member_of(op, NULL);
    for (const struct ir_op *inner = body ? first : NULL; inner && inner->next; inner = inner->next)
        lists->members[lists->n++] = member_of(inner, body);
    *state = lists;
    return ir_op_is(first, IR_OP_NonZero)
               ? grids_text_want(setup->context, GRIDS_TEXT_KEEP, TSSA_UINT8)
               : grids_text_want(setup->context, GRIDS_TEXT_TOPK,
                                 ir_operand(first, 0)->type->dtype);
}

/* As the interpreter says whose it is. */
static tssa_status *blame(tssa_status *status, const struct member *member)
{
    return member->op ? ir_op_blame(status, member->op) : status;
}

static tssa_status *make_output(struct kernel_args *args, uint32_t result, tssa_dtype dtype,
                                int rank, const int64_t *dims, struct tensor **tensor)
{
    *tensor = NULL;
    return result == NOT_WANTED ? NULL : kernel_output(args, result, dtype, rank, dims, tensor);
}

/* What launches are given, of all lists, and of those that there are not. */
#define MOST_PARAMS (IR_FUSE_LISTS * 8 + 8)

struct call {
    struct kernel_args *args;
    const struct lists *lists;
    struct buffer *buffers[IR_FUSE_LISTS], *counts;
    struct device_place from[IR_FUSE_LISTS];
    struct launch_param params[MOST_PARAMS];
    uint32_t n_params;
};

static void add(struct call *call, struct launch_param param)
{
    call->params[call->n_params++] = param;
}

static tssa_status *find_operands(struct call *call)
{
    for (uint32_t i = 0; i < call->lists->n; i++)
        TRY(grids_operand(call->args, call->lists->members[i].operands[0], &call->buffers[i],
                          &call->from[i]));
    return NULL;
}

static tssa_status *run(struct kernel_args *args, tssa_status *(*run_lists)(struct call *call))
{
    const tssa_allocator *allocator = args->env->stream->context->allocator;
    struct call *call = allocator_calloc(allocator, 1, sizeof *call);
    TRY_ALLOC(call);
    call->args = args;
    call->lists = args->state;
    tssa_status *status = run_lists(call);
    buffer_release(call->counts);
    for (uint32_t i = 0; i < IR_FUSE_LISTS; i++)
        buffer_release(call->buffers[i]);
    allocator_free(allocator, call);
    return status;
}

/* ---- NonZero --------------------------------------------------------------------------------- */

/* Of lists of no more chunks a block has one, and counts it by itself: that is sooner done than
 * another launch. */
#define FEW_CHUNKS 4
/* So many numbers are written before anybody knows how many there are, where all have room. */
#define MOST_EARLY ((int64_t)1 << 20)

struct found {
    int64_t count, units, chunks, columns;
    int64_t found;
    int rank;
    struct tensor *y;
};

struct finding {
    struct call *call;
    struct found lists[IR_FUSE_LISTS];
    int64_t units, span; /* of all; chunks of a unit */
    int64_t room;        /* numbers, if all elements were found */
    bool counts, early;
};

static int64_t parts_of(int64_t n, int64_t each)
{
    return n / each + (n % each != 0);
}

static tssa_status *measure(struct finding *f)
{
    const struct kernel_args *args = f->call->args;
    const int64_t chunk = (int64_t)grids_threads(args->env->stream->context) * GRIDS_CHUNK_EACH;
    for (uint32_t i = 0; i < f->call->lists->n; i++) {
        const struct tensor *x;
        struct found *list = &f->lists[i];
        TRY(kernel_tensor(args, f->call->lists->members[i].operands[0], &x));
        if (x->dtype != TSSA_BOOL || x->rank < 1 || x->rank > 2)
            return ERROR(TSSA_RUNTIME, "operand is no list or matrix of truth values");
        list->rank = x->rank;
        list->count = (int64_t)tensor_count(x);
        list->columns = x->rank == 2 ? x->dims[1] : 0;
        list->chunks = parts_of(list->count, chunk);
        f->room += list->count <= MOST_EARLY ? list->count * x->rank : 2 * MOST_EARLY;
    }
    return NULL;
}

static int64_t count_units(struct finding *f)
{
    int64_t units = 0;
    for (uint32_t i = 0; i < f->call->lists->n; i++)
        units += f->lists[i].units = parts_of(f->lists[i].chunks, f->span);
    return units;
}

/* So many units that the host can be told of each. */
static void divide(struct finding *f)
{
    f->span = 1;
    for (uint32_t i = 0; i < f->call->lists->n; i++)
        if (f->lists[i].chunks > f->span)
            f->span = f->lists[i].chunks;
    f->counts = f->span > FEW_CHUNKS;
    for (f->span = f->counts ? 1 : f->span; (f->units = count_units(f)) > GRIDS_COUNTS;)
        f->span += f->span / 8 + 1;
    f->early = f->room <= MOST_EARLY;
}

/* Of each list its elements and units; `numbers`: and where their numbers go. */
static void add_lists(struct finding *f, bool numbers)
{
    struct call *call = f->call;
    int64_t end = 0;
    call->n_params = 0;
    for (uint32_t i = 0; i < IR_FUSE_LISTS; i++) {
        const uint32_t of = i < call->lists->n ? i : 0;
        const struct found *list = &f->lists[of];
        end += i < call->lists->n ? list->units : 0;
        add(call, grids_memory(call->from[of]));
        if (numbers)
            add(call, grids_memory(list->y ? grids_place(list->y)
                                           : grids_counts(call->args->env->stream)));
        add(call, grids_number(end));
        add(call, grids_number(list->count));
        if (numbers)
            add(call, grids_number(list->columns));
    }
    add(call, grids_memory(call->counts ? grids_buffer(call->counts)
                                        : grids_counts(call->args->env->stream)));
    add(call, grids_memory(grids_counts(call->args->env->stream)));
    add(call, grids_number(f->units));
    add(call, grids_number(f->span));
}

static tssa_status *launch_keep(struct finding *f, uint32_t function)
{
    return grids_launch_text(f->call->args->env->stream, GRIDS_TEXT_KEEP, TSSA_UINT8, function,
                             f->units, f->call->params, f->call->n_params);
}

static tssa_status *count_all(struct finding *f)
{
    add_lists(f, false);
    return launch_keep(f, 3);
}

static tssa_status *number_all(struct finding *f)
{
    add_lists(f, true);
    add(f->call, grids_number(f->counts));
    return launch_keep(f, 4);
}

static tssa_status *read_found(struct finding *f)
{
    int64_t counts[GRIDS_COUNTS], unit = 0;
    if (f->units)
        TRY(grids_read_counts(f->call->args->env->stream, counts, (size_t)f->units));
    for (uint32_t i = 0; i < f->call->lists->n; i++)
        for (int64_t k = 0; k < f->lists[i].units; k++)
            f->lists[i].found += counts[unit++];
    return NULL;
}

/* Room for all elements, or for those that were found. */
static tssa_status *make_all(struct finding *f)
{
    for (uint32_t i = 0; i < f->call->lists->n; i++) {
        struct found *list = &f->lists[i];
        const int64_t dims[] = {list->rank, f->early ? list->count : list->found};
        TRY(make_output(f->call->args, f->call->lists->members[i].results[0], TSSA_INT64, 2, dims,
                        &list->y));
    }
    return NULL;
}

static tssa_status *find(struct finding *f)
{
    if (f->counts)
        TRY(kernel_scratch(f->call->args, (size_t)f->units * sizeof(int64_t), &f->call->counts));
    if (f->early)
        TRY(make_all(f));
    if (f->counts)
        TRY(count_all(f));
    if (f->early)
        TRY(number_all(f));
    TRY(read_found(f));
    if (!f->early) {
        TRY(make_all(f));
        return number_all(f);
    }
    for (uint32_t i = 0; i < f->call->lists->n; i++)
        if (f->lists[i].y)
            f->lists[i].y->dims[1] = f->lists[i].found;
    return NULL;
}

static tssa_status *find_all(struct call *call)
{
    struct finding f = {.call = call};
    TRY(measure(&f));
    divide(&f);
    TRY(find_operands(call));
    return find(&f);
}

static tssa_status *run_found(struct kernel_args *args)
{
    return run(args, find_all);
}

/* ---- TopK ------------------------------------------------------------------------------------ */

/* As the text has them. */
enum { LARGEST = 1, WITH_VALUES = 2, WITH_INDICES = 4, CHOOSES = 8 };

/* One block goes through a list some 16 times to choose from it. Of a longer one than this, of
 * which the highest are wanted, all blocks find before which elements are more than -inf: a mask
 * has left few of them (passes/lower/bound_lists.c). */
#define SIFT_FROM 8192
#define MOST_CHUNKS 1024 /* as the text has it */

struct sorted {
    int64_t n, k, jobs, how;
    int64_t chunk, chunks; /* the first one, and how many, if it is sifted */
    struct tensor *values, *indices;
};

struct sorting {
    struct call *call;
    struct sorted lists[IR_FUSE_LISTS];
    tssa_dtype dtype;
    int64_t chunks; /* of all that are sifted */
};

static bool is_sifted(const struct sorting *s, const struct sorted *list)
{
    const int how = LARGEST | CHOOSES;
    return dtype_in(T_F32F64, s->dtype) && (list->how & how) == how && list->n > SIFT_FROM &&
           list->chunks <= MOST_CHUNKS;
}

static tssa_status *make_sorted(struct sorting *s, const struct member *member, struct sorted *list)
{
    struct kernel_args *args = s->call->args;
    const int64_t threads = grids_threads(args->env->stream->context);
    const struct tensor *x;
    TRY(kernel_tensor(args, member->operands[0], &x));
    TRY(grids_int(args, member->operands[1], &list->k));
    if (x->rank != 1)
        return ERROR(TSSA_RUNTIME, "operand is no list");
    list->n = x->dims[0];
    if (list->k < 0 || list->k > list->n)
        return ERROR(TSSA_RUNTIME, "K is %" PRId64 ", but axis 0 has %" PRId64 " elements", list->k,
                     list->n);
    TRY(make_output(args, member->results[0], x->dtype, 1, &list->k, &list->values));
    TRY(make_output(args, member->results[1], TSSA_INT64, 1, &list->k, &list->indices));
    const bool chooses = grids_topk_chooses(s->call->lists->n, list->n, list->k);
    list->how = (member->largest ? LARGEST : 0) | (list->values ? WITH_VALUES : 0) |
                (list->indices ? WITH_INDICES : 0) | (chooses ? CHOOSES : 0);
    if (!list->k || (!list->values && !list->indices))
        return NULL;
    list->jobs = chooses ? 1 : grids_ranked_blocks(list->n);
    list->chunk = s->chunks;
    list->chunks = parts_of(list->n, threads * GRIDS_CHUNK_EACH);
    if (!is_sifted(s, list)) {
        list->chunks = 0;
        return NULL;
    }
    s->chunks += list->chunks;
    return NULL;
}

/* A list of those that are sifted, or of the others, or one that there is not. */
static void add_sorted(struct sorting *s, uint32_t i, bool sifted, int64_t *end)
{
    struct call *call = s->call;
    const struct sorted *list = &s->lists[i < call->lists->n ? i : 0];
    const struct device_place nowhere = call->from[0];
    if (i < call->lists->n && (list->chunks != 0) == sifted)
        *end += list->jobs;
    add(call, grids_memory(call->from[i < call->lists->n ? i : 0]));
    add(call, grids_memory(list->values ? grids_place(list->values) : nowhere));
    add(call, grids_memory(list->indices ? grids_place(list->indices) : nowhere));
    add(call, grids_number(*end));
    add(call, grids_number(list->n));
    add(call, grids_number(list->k));
    add(call, grids_number(list->how));
    if (sifted)
        add(call, grids_number(list->chunk));
}

/* Counts of chunks, then room for the places of all elements, twice, and for them
 * (kernels/grids/topk.h). */
static tssa_status *make_sifted(struct sorting *s)
{
    const int64_t threads = grids_threads(s->call->args->env->stream->context);
    const size_t element = 2 * sizeof(int32_t) + tssa_dtype_size(s->dtype),
                 chunk = sizeof(int64_t) + (size_t)threads * GRIDS_CHUNK_EACH * element;
    return kernel_scratch(s->call->args, (size_t)s->chunks * chunk, &s->call->counts);
}

static tssa_status *launch_topk(struct sorting *s, uint32_t function, int64_t jobs)
{
    return grids_launch_text(s->call->args->env->stream, GRIDS_TEXT_TOPK, s->dtype, function, jobs,
                             s->call->params, s->call->n_params);
}

static tssa_status *sift(struct sorting *s)
{
    struct call *call = s->call;
    int64_t end = 0;
    TRY(make_sifted(s));
    call->n_params = 0;
    for (uint32_t i = 0; i < IR_FUSE_LISTS; i++) {
        const uint32_t of = i < call->lists->n ? i : 0;
        end += i < call->lists->n ? s->lists[i].chunks : 0;
        add(call, grids_memory(call->from[of]));
        add(call, grids_number(end));
        add(call, grids_number(s->lists[of].n));
    }
    add(call, grids_memory(grids_buffer(call->counts)));
    add(call, grids_number(s->chunks));
    return launch_topk(s, 3, s->chunks);
}

static tssa_status *sort(struct sorting *s, bool sifted)
{
    struct call *call = s->call;
    int64_t end = 0;
    call->n_params = 0;
    for (uint32_t i = 0; i < IR_FUSE_LISTS; i++)
        add_sorted(s, i, sifted, &end);
    if (sifted)
        add(call, grids_memory(grids_buffer(call->counts)));
    add(call, grids_number(end));
    if (sifted)
        add(call, grids_number(s->chunks));
    return launch_topk(s, sifted ? 4 : 2, end);
}

static tssa_status *sort_all(struct call *call)
{
    struct sorting s = {.call = call,
                        .dtype =
                            call->args->inputs[call->lists->members[0].operands[0]]->tensor.dtype};
    for (uint32_t i = 0; i < call->lists->n; i++)
        TRY(blame(make_sorted(&s, &call->lists->members[i], &s.lists[i]),
                  &call->lists->members[i]));
    TRY(find_operands(call));
    if (s.chunks) {
        TRY(sift(&s));
        TRY(sort(&s, true));
    }
    return sort(&s, false);
}

static tssa_status *run_sorted(struct kernel_args *args)
{
    return run(args, sort_all);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct kernel found = {.prepare = prepare, .run = run_found},
                           sorted = {.prepare = prepare, .run = run_sorted};

const struct kernel *grids_lists_find(const struct ir_op *op)
{
    const struct ir_block *body = ir_fuse_body(op);
    const uint32_t kind = body ? ir_fuse_lists(body->first) : 0;
    uint32_t n = 0;
    for (const struct ir_op *inner = kind ? body->first : NULL; inner && inner->next;
         inner = inner->next, n++)
        if (ir_fuse_lists(inner) != kind)
            return NULL;
    if (n == 0 || n > IR_FUSE_LISTS)
        return NULL;
    return ir_op_is(body->first, IR_OP_NonZero) ? &found : &sorted;
}

/* A long list of which few are wanted is sifted. */
static bool is_long(const struct ir_op *op)
{
    const struct tensor *k = ir_value_constant(ir_operand(op, 1));
    const struct ir_type *type = ir_operand(op, 0)->type;
    int64_t n;
    return dtype_in(T_F32F64, type->dtype) && dim_is_const(type->dims[0], &n) && n > SIFT_FROM &&
           k && tensor_count(k) == 1 && k->dtype == TSSA_INT64 &&
           grids_topk_chooses(1, n, *(const int64_t *)k->data);
}

const struct kernel *grids_lists_find_one(const struct ir_op *op)
{
    if (!ir_fuse_lists(op))
        return NULL;
    if (ir_op_is(op, IR_OP_NonZero))
        return &found;
    return is_long(op) ? &sorted : NULL;
}
