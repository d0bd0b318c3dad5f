/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/cost.h"

#include "base/vec.h"
#include "ir/rule.h"
#include "ir/scalar.h"

#define HUGE_SIZE 1e18

/* ---- Sizes ----------------------------------------------------------------------------------- */

int64_t cost_symbol(const struct dim *symbol, const struct cost_sizes *sizes)
{
    int64_t size = symbol == sizes->symbol ? sizes->symbol_size : sizes->size;
    size = size < symbol->low ? symbol->low : size;
    return size > symbol->high ? symbol->high : size;
}

static bool lookup(void *context, const struct dim *symbol, int64_t *value)
{
    *value = cost_symbol(symbol, context);
    return true;
}

double cost_dim(const struct dim *dim, const struct cost_sizes *sizes)
{
    int64_t value;
    if (!dim_eval(dim, lookup, (void *)sizes, &value))
        return HUGE_SIZE;
    return value < 0 ? 0 : (double)value;
}

double cost_elements(const struct ir_type *type, const struct cost_sizes *sizes)
{
    double elements = 1;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return (double)sizes->size;
    for (int i = 0; i < type->rank; i++)
        elements *= cost_dim(type->dims[i], sizes);
    return elements;
}

double cost_bytes(const struct ir_type *type, const struct cost_sizes *sizes)
{
    size_t size = type->kind == TYPE_TENSOR ? tssa_dtype_size(type->dtype) : 0;
    return cost_elements(type, sizes) * (double)(size ? size : 1);
}

/* A read of a whole tensor as it is: passes take it away. Types of unknown ranks are one type, and
 * do not tell. */
static bool is_whole(const struct ir_op *op)
{
    const struct ir_type *type = ir_op_is(op, IR_OP_access) ? op->results[0].type : NULL;
    if (!type || type->kind != TYPE_TENSOR || type->rank < 0 || type != ir_operand(op, 0)->type)
        return false;
    const struct rule *rule = rule_of(op);
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind != RULE_SPAN &&
            (rule->steps[i].kind != RULE_SLICE || rule->steps[i].params[3].is_operand ||
             rule->steps[i].params[3].value != 1))
            return false;
    return true;
}

bool cost_is_view(const struct ir_op *op)
{
    return (op->info->flags & IR_ALIAS) != 0 || is_whole(op);
}

static bool is_free(const struct ir_op *op)
{
    return cost_is_view(op) || !ir_op_computes(op);
}

/* ---- Live ranges ----------------------------------------------------------------------------- */

/* Ops are numbered in order, those with blocks before and behind what is in them. */
struct numbering {
    const struct ir_block *block; /* of the ops */
    uint32_t *enter, *leave;      /* by op id; 0: outside */
    uint32_t next;
    VEC(struct cost_range) ranges;
};

static void number_ops(struct numbering *n, const struct ir_op *first, const struct ir_op *end)
{
    for (const struct ir_op *op = first; op != end; op = op->next) {
        n->enter[op->id] = n->next++;
        for (uint32_t b = 0; b < op->n_blocks; b++)
            number_ops(n, op->blocks[b]->first, NULL);
        n->leave[op->id] = op->n_blocks ? n->next++ : n->enter[op->id];
    }
}

/* The op in `block` that the user is, or is in. */
static const struct ir_op *lift(const struct ir_op *user, const struct ir_block *block)
{
    while (user && user->parent != block)
        user = user->parent->owner;
    return user;
}

/* Where the value is needed for the last time, through views of it too. */
static uint32_t last_use(const struct numbering *n, const struct ir_value *value,
                         const struct ir_block *block, uint32_t last)
{
    for (const struct ir_use *use = value->uses; use; use = use->next) {
        const struct ir_op *user = lift(use->user, block);
        uint32_t at = user ? n->leave[user->id] : 0;
        if (at == 0)
            return n->next; /* behind the end */
        if (at > last)
            last = at;
        if (user == use->user && cost_is_view(user) && use == &user->operands[0])
            last = last_use(n, &user->results[0], block, last);
    }
    return last;
}

static bool add_range(struct numbering *n, const struct ir_value *value, uint32_t from, uint32_t to)
{
    const struct cost_range range = {value, from, to};
    return vec_push(&n->ranges, range);
}

static bool add_ranges(struct numbering *n, const struct ir_op *first, const struct ir_op *end)
{
    for (const struct ir_op *op = first; op != end; op = op->next) {
        uint32_t at = n->leave[op->id];
        for (uint32_t i = 0; i < op->n_results && !is_free(op); i++)
            if (op->results[i].wanted &&
                !add_range(n, &op->results[i], at, last_use(n, &op->results[i], op->parent, at)))
                return false;
        for (uint32_t b = 0; b < op->n_blocks; b++) {
            const struct ir_block *block = op->blocks[b];
            for (uint32_t i = 0; i < block->n_params; i++)
                if (!add_range(n, block->params[i], n->enter[op->id], at))
                    return false;
            if (!add_ranges(n, block->first, NULL))
                return false;
        }
    }
    return true;
}

tssa_status *cost_ranges_find(struct ir_op *first, const struct ir_op *end,
                              struct cost_ranges *ranges)
{
    *ranges = (struct cost_ranges){0};
    if (first == end)
        return NULL;
    const struct ir_graph *graph = first->parent->graph;
    struct numbering n = {.block = first->parent, .next = 1, .ranges = VEC_INIT(graph->allocator)};
    ranges->allocator = graph->allocator;
    n.enter = allocator_calloc(graph->allocator, graph->n_ops, sizeof *n.enter);
    n.leave = allocator_calloc(graph->allocator, graph->n_ops, sizeof *n.leave);
    bool done = n.enter && n.leave;
    if (done) {
        number_ops(&n, first, end);
        done = add_ranges(&n, first, end);
    }
    allocator_free(graph->allocator, n.enter);
    allocator_free(graph->allocator, n.leave);
    ranges->ranges = n.ranges.data;
    ranges->count = n.ranges.count;
    ranges->n_positions = n.next + 1;
    ranges->change =
        allocator_calloc(graph->allocator, ranges->n_positions + 1u, sizeof *ranges->change);
    return done && ranges->change ? NULL : status_out_of_memory();
}

void cost_ranges_free(struct cost_ranges *ranges)
{
    if (!ranges->allocator)
        return;
    allocator_free(ranges->allocator, ranges->ranges);
    allocator_free(ranges->allocator, ranges->change);
    *ranges = (struct cost_ranges){0};
}

double cost_peak(const struct cost_ranges *ranges, const struct cost_sizes *sizes)
{
    double live = 0, peak = 0;
    for (uint32_t i = 0; i < ranges->n_positions; i++)
        ranges->change[i] = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        const struct cost_range *range = &ranges->ranges[i];
        double bytes = cost_bytes(range->value->type, sizes);
        ranges->change[range->from] += bytes;
        ranges->change[range->to + 1] -= bytes;
    }
    for (uint32_t i = 0; i < ranges->n_positions; i++) {
        live += ranges->change[i];
        peak = live > peak ? live : peak;
    }
    return peak;
}

/* ---- Work ------------------------------------------------------------------------------------ */

/* Operations for an element of the result. */
static double operations_each(const struct ir_op *op, const struct cost_sizes *sizes)
{
    const struct ir_type *left =
        op->n_operands && ir_operand(op, 0) ? ir_operand(op, 0)->type : NULL;
    if (op->info->cls != IR_CLASS_CONTRACTION || !left || left->kind != TYPE_TENSOR ||
        left->rank < 1)
        return 1;
    return 2 * cost_dim(left->dims[left->rank - 1], sizes);
}

bool cost_moves_region(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_Slice) ||
           op->info->cls == IR_CLASS_GATHER || (op->info->flags & IR_UPDATE) != 0;
}

static void add_op(struct cost_work *work, const struct ir_op *op, const struct cost_sizes *sizes)
{
    double moved = 0, elements = 0;
    bool region = cost_moves_region(op), update = (op->info->flags & IR_UPDATE) != 0;
    work->calls++;
    for (uint32_t i = region ? 1 : 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && !(op->info->flags & IR_SHAPE))
            moved += cost_bytes(ir_operand(op, i)->type, sizes);
    for (uint32_t i = 0; i < op->n_results && !update; i++) {
        moved += cost_bytes(op->results[i].type, sizes) * (region ? 2 : 1);
        elements += cost_elements(op->results[i].type, sizes);
    }
    if (op->info->cls == IR_CLASS_REDUCTION && ir_operand(op, 0))
        elements = cost_elements(ir_operand(op, 0)->type, sizes);
    work->bytes += moved;
    work->operations += elements * operations_each(op, sizes);
}

/* A Loop's trip count where it is known; 1 of other ops. */
static double times(const struct ir_op *op, const struct cost_sizes *sizes)
{
    const struct ir_value *trips = ir_op_is(op, IR_OP_Loop) ? ir_operand(op, 0) : NULL;
    if (!ir_op_is(op, IR_OP_Loop))
        return 1;
    return trips && trips->known && trips->known->count == 1 && trips->known->elements[0]
               ? cost_dim(trips->known->elements[0], sizes)
               : (double)sizes->size;
}

struct cost_work cost_work(const struct ir_op *first, const struct ir_op *end,
                           const struct cost_sizes *sizes)
{
    struct cost_work work = {0};
    for (const struct ir_op *op = first; op != end; op = op->next) {
        double n = times(op, sizes);
        if (op->n_blocks == 0 && !is_free(op))
            add_op(&work, op, sizes);
        for (uint32_t b = 0; b < op->n_blocks; b++) {
            const struct cost_work inner = cost_work(op->blocks[b]->first, NULL, sizes);
            work.calls += n * inner.calls;
            work.bytes += n * inner.bytes;
            work.operations += n * inner.operations;
        }
    }
    return work;
}

double cost_element_work(const struct ir_op *op)
{
    double work = 0;
    if (!op->info->ew)
        return 1;
    for (const struct scalar_code *code = op->info->ew->program; code->id != SCALAR_END; code++)
        work += scalar_info(code->id)->work;
    bool folds = op->info->max_operands == IR_VARIADIC && op->n_operands > 1;
    return folds ? work * (op->n_operands - 1) : work;
}

/* ---- Machines -------------------------------------------------------------------------------- */

const struct cost_machine cost_cpu = {
    .name = "cpu", .call = 0.2e-6, .byte = 0.1e-9, .operation = 0.05e-9};

const struct cost_machine cost_gpu = {
    .name = "gpu", .call = 4e-6, .byte = 0.5e-12, .operation = 0.1e-12};

double cost_seconds(const struct cost_machine *machine, const struct cost_work *work)
{
    const double bytes = work->bytes * machine->byte,
                 operations = work->operations * machine->operation;
    return work->calls * machine->call + (bytes > operations ? bytes : operations);
}
