/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/control_recorded.h"

#include "runtime/control.h"
#include "runtime/crossing.h"

/* Of what is stacked there is room for all iterations that there may be, no more than so much. */
#define MOST_STACKED ((size_t)64 << 20)
/* Before it, as aligned as it is. */
#define COUNT_BYTES ((size_t)256)

/* ---- Memory ---------------------------------------------------------------------------------- */

static struct device_place place_of(const struct tensor *tensor)
{
    return (struct device_place){tensor->data, tensor->offset};
}

static bool same_place(const struct tensor *a, const struct tensor *b)
{
    return a->data == b->data && a->offset == b->offset;
}

static tssa_status *take(struct run *run, const struct tensor *shape, struct value *value)
{
    struct buffer *buffer = pool_alloc(&run->device_pool, tensor_bytes(shape));
    TRY_ALLOC(buffer);
    *value = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = *shape};
    value->tensor.data = buffer->data;
    value->tensor.offset = buffer->offset;
    value->tensor.owner = buffer;
    return NULL;
}

static void keep(void *user, void *memory, size_t size)
{
    (void)user;
    (void)memory;
    (void)size;
}

static const struct buffer_space kept = {.release = keep};

/* The same memory under a name that counts by itself: who holds it alone may change it in place,
 * and who lets it go leaves the memory to who has the other name. */
static tssa_status *lend(const struct run *run, const struct value *value, struct value *name)
{
    struct buffer *buffer = allocator_alloc(run->allocator, sizeof *buffer);
    TRY_ALLOC(buffer);
    *buffer = *value->tensor.owner;
    atomic_init(&buffer->references, 1);
    buffer->allocator = run->allocator;
    buffer->space = &kept;
    buffer->pool = NULL;
    *name = *value;
    name->tensor.owner = buffer;
    return NULL;
}

/* What the device computes of a step's operand; NULL: it is the host's, or not there. */
static const struct tensor *operand_there(const struct run *run, const struct step *step,
                                          uint32_t index)
{
    const struct plan *plan = run->plan;
    const struct ir_value *value = ir_operand(step->op, index);
    if (!value || plan_space(plan, value) != SPACE_DEVICE)
        return NULL;
    return &run->slots[plan_value(plan, value)->id].tensor;
}

static tssa_status *check_condition(const struct tensor *tensor)
{
    return tensor->dtype == TSSA_BOOL && tensor_count(tensor) == 1
               ? NULL
               : ERROR(TSSA_RUNTIME, "a condition must be one bool");
}

/* ---- What may not have been done ------------------------------------------------------------- */

/*
 * What a body copies to the other space, or takes out of a slot, has not been done when the body
 * was not run. So mirrors that it has filled are not there behind it, and values that it has taken
 * are. What is counted was counted once more in between, so that nobody changes it in place.
 */
static tssa_status *remember(const struct run *run, struct value **before)
{
    const uint32_t n = run->plan->n_slots;
    *before = allocator_calloc(run->allocator, n + 1u, sizeof **before);
    TRY_ALLOC(*before);
    for (uint32_t i = 0; i < n; i++)
        value_copy(&(*before)[i], &run->slots[i]);
    return NULL;
}

static void forget(const struct run *run, struct value *before)
{
    for (uint32_t i = 0; i < run->plan->n_slots; i++)
        value_release(&before[i]);
    allocator_free(run->allocator, before);
}

static void empty_mirrors(struct run *run, const struct value *before)
{
    for (uint32_t i = run->plan->n_values; i < run->plan->n_slots; i++)
        if (before[i].kind == TSSA_KIND_NONE)
            value_release(&run->slots[i]);
}

static void put_back(struct run *run, const struct value *before)
{
    for (uint32_t i = 0; i < run->plan->n_slots; i++)
        if (run->slots[i].kind == TSSA_KIND_NONE && before[i].kind != TSSA_KIND_NONE)
            value_copy(&run->slots[i], &before[i]);
}

/* ---- Loop ------------------------------------------------------------------------------------ */

struct recorder {
    struct run *run;
    const struct step *step;
    const struct block_plan *body;
    const struct device *device;
    struct device_stream *stream;
    struct device_while loop;
    struct value count;
    uint32_t n_carried, n_stacked, n_moves;
    struct value *carried;  /* where it is, before each iteration and in the end */
    struct value *returned; /* where the body has left it, and then what is stacked of it */
    struct value *stacks;   /* with room for all iterations; none where nobody wants it */
    struct device_move *moves;
};

static tssa_status *make_tables(struct recorder *r)
{
    const tssa_allocator *a = r->run->allocator;
    const size_t n = r->n_carried + r->n_stacked + 1u;
    r->carried = allocator_calloc(a, r->n_carried + 1u, sizeof *r->carried);
    r->returned = allocator_calloc(a, n, sizeof *r->returned);
    r->stacks = allocator_calloc(a, r->n_stacked + 1u, sizeof *r->stacks);
    r->moves = allocator_calloc(a, n, sizeof *r->moves);
    return r->carried && r->returned && r->stacks && r->moves ? NULL : status_out_of_memory();
}

static void free_tables(struct recorder *r)
{
    const tssa_allocator *a = r->run->allocator;
    for (uint32_t k = 0; r->carried && k < r->n_carried; k++)
        value_release(&r->carried[k]);
    for (uint32_t k = 0; r->returned && k < r->n_carried + r->n_stacked; k++)
        value_release(&r->returned[k]);
    for (uint32_t k = 0; r->stacks && k < r->n_stacked; k++)
        value_release(&r->stacks[k]);
    value_release(&r->count);
    allocator_free(a, r->stacks);
    allocator_free(a, r->carried);
    allocator_free(a, r->returned);
    allocator_free(a, r->moves);
}

static void add_move(struct recorder *r, const struct value *to, const struct value *from)
{
    if (!same_place(&to->tensor, &from->tensor))
        r->moves[r->n_moves++] = (struct device_move){
            .to = place_of(&to->tensor),
            .from = place_of(&from->tensor),
            .size = tensor_bytes(&to->tensor),
        };
}

/* Places for what is carried, and what is there before the first iteration. */
static tssa_status *carry_in(struct recorder *r)
{
    for (uint32_t k = 0; k < r->n_carried; k++) {
        const struct value *given = r->run->inputs[r->step->first_input + k + 2];
        if (!given || given->kind != TSSA_KIND_TENSOR)
            return ERROR(TSSA_UNSUPPORTED, "a Loop that is recorded carries no tensor");
        TRY(take(r->run, &given->tensor, &r->carried[k]));
        add_move(r, &r->carried[k], given);
    }
    return NULL;
}

/* Whether there is a first iteration, if there are trips. */
static tssa_status *find_first_go(struct recorder *r)
{
    const struct tensor *there = operand_there(r->run, r->step, 1);
    const struct value *given =
        r->step->n_inputs > 1 ? r->run->inputs[r->step->first_input + 1] : NULL;
    bool goes = true;
    if (there) {
        TRY(check_condition(there));
        r->loop.go = place_of(there);
        return NULL;
    }
    if (given && given->kind != TSSA_KIND_NONE)
        TRY(control_read_bool(given, "the condition", &goes));
    if (!goes)
        r->loop.trips = 0;
    return NULL;
}

static tssa_status *begin(struct recorder *r)
{
    const struct tensor word = {.dtype = TSSA_INT64};
    const struct value *trips = r->run->inputs[r->step->first_input];
    r->loop.trips = INT64_MAX;
    if (trips && trips->kind != TSSA_KIND_NONE)
        TRY(control_read_int(trips, "the trip count", &r->loop.trips));
    TRY(find_first_go(r));
    TRY(take(r->run, &word, &r->count));
    r->loop.count = place_of(&r->count.tensor);
    TRY(make_tables(r));
    TRY(carry_in(r));
    return r->device->record_while_begin(r->stream, &r->loop, r->moves, r->n_moves);
}

/* The number of the iteration is where the device has it, for who reads it there, under both names.
 */
static void bind_count(struct recorder *r)
{
    const struct plan *plan = r->run->plan;
    const uint32_t slot = r->body->params[0];
    struct value *slots = r->run->slots;
    if (slot == SLOT_NONE)
        return;
    value_release(&slots[slot]);
    value_copy(&slots[slot], &r->count);
    if (!crossing_mirrored(plan, slot))
        return;
    value_release(&slots[plan->n_values + slot]);
    value_copy(&slots[plan->n_values + slot], &r->count);
}

static tssa_status *bind(struct recorder *r)
{
    struct run *run = r->run;
    struct value goes;
    TRY(control_scalar(run, TSSA_BOOL, true, &goes));
    executor_bind(run, r->body, 1, &goes);
    for (uint32_t k = 0; k < r->n_carried; k++) {
        struct value name;
        TRY(lend(run, &r->carried[k], &name));
        executor_bind(run, r->body, k + 2, &name);
    }
    if (r->body->params[0] != SLOT_NONE)
        value_release(&run->slots[r->body->params[0]]);
    if (r->body->binds) /* the number of the iteration tells nothing that the host could know */
        bindings_read(run, r->body->binds);
    TRY(crossing_enter(run, r->body->crossing));
    bind_count(r);
    return NULL;
}

static bool overlap(const struct tensor *a, const struct tensor *b)
{
    const size_t begin = a->offset, end = begin + tensor_bytes(a), other = b->offset;
    return a->data == b->data && begin < other + tensor_bytes(b) && other < end;
}

/* Does a move of another one's write over it? */
static bool is_in_the_way(const struct recorder *r, const struct tensor *tensor)
{
    bool hit = false;
    for (uint32_t i = 0; i < r->n_carried; i++)
        hit |= !same_place(&r->carried[i].tensor, &r->returned[i].tensor) &&
               overlap(&r->carried[i].tensor, tensor);
    return hit;
}

/* What lies where another one goes is put aside, since all go at once. */
static tssa_status *put_aside(struct recorder *r, uint32_t k)
{
    struct value aside;
    const bool stays =
        k < r->n_carried && same_place(&r->carried[k].tensor, &r->returned[k].tensor);
    if (stays || !is_in_the_way(r, &r->returned[k].tensor))
        return NULL;
    TRY(take(r->run, &r->returned[k].tensor, &aside));
    tssa_status *status =
        r->device->copy(r->stream, DEVICE_COPY_WITHIN, place_of(&aside.tensor),
                        place_of(&r->returned[k].tensor), tensor_bytes(&aside.tensor));
    value_release(&r->returned[k]);
    r->returned[k] = aside;
    return status;
}

struct device_place control_stacked_count(const struct tensor *stacked)
{
    return (struct device_place){stacked->data, stacked->offset - COUNT_BYTES};
}

/* Room for an element of each iteration, and before it for how many there are in the end. */
static tssa_status *take_stack(struct recorder *r, const struct tensor *element,
                               struct value *stack)
{
    const size_t bytes = tensor_bytes(element);
    const uint64_t trips = (uint64_t)(r->loop.trips > 0 ? r->loop.trips : 0);
    if (element->rank >= TSSA_MAX_RANK || trips > MOST_STACKED ||
        (bytes && trips > MOST_STACKED / bytes))
        return ERROR(TSSA_UNSUPPORTED, "a Loop that is recorded may stack more than there is room");
    const size_t size = (size_t)trips * bytes;
    struct buffer *buffer = pool_alloc(&r->run->device_pool, COUNT_BYTES + size);
    TRY_ALLOC(buffer);
    *stack = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = element->dtype}};
    struct tensor *tensor = &stack->tensor;
    tensor->rank = element->rank + 1;
    tensor->dims[0] = -1; /* nobody knows yet: symbols are not told of it */
    for (int i = 0; i < element->rank; i++)
        tensor->dims[i + 1] = element->dims[i];
    tensor->data = buffer->data;
    tensor->offset = buffer->offset + COUNT_BYTES;
    tensor->owner = buffer;
    return NULL;
}

static tssa_status *take_stacked(struct recorder *r)
{
    for (uint32_t k = 0; k < r->n_stacked; k++) {
        const uint32_t from = r->n_carried + k;
        struct value *element = &r->returned[from];
        executor_take(r->run, r->body, from + 1, element);
        if (!r->step->op->results[from].wanted) {
            value_release(element);
            continue;
        }
        if (element->kind != TSSA_KIND_TENSOR)
            return ERROR(TSSA_UNSUPPORTED, "a Loop that is recorded stacks no tensor");
        TRY(put_aside(r, from));
        TRY(take_stack(r, &element->tensor, &r->stacks[k]));
    }
    return NULL;
}

/* An element goes behind those of the iterations before. */
static void add_elements(struct recorder *r)
{
    for (uint32_t k = 0; k < r->n_stacked; k++) {
        const struct tensor *element = &r->returned[r->n_carried + k].tensor;
        if (r->stacks[k].kind == TSSA_KIND_TENSOR)
            r->moves[r->n_moves++] = (struct device_move){
                .to = place_of(&r->stacks[k].tensor),
                .from = place_of(element),
                .size = tensor_bytes(element),
                .step = tensor_bytes(element),
            };
    }
}

/* How many iterations there were goes to where what is stacked has it: the count is not kept. */
static tssa_status *tell_counts(struct recorder *r)
{
    for (uint32_t k = 0; k < r->n_stacked; k++)
        if (r->stacks[k].kind == TSSA_KIND_TENSOR)
            TRY(r->device->copy(r->stream, DEVICE_COPY_WITHIN,
                                control_stacked_count(&r->stacks[k].tensor), r->loop.count,
                                sizeof(int64_t)));
    return NULL;
}

static tssa_status *take_returned(struct recorder *r)
{
    for (uint32_t k = 0; k < r->n_carried; k++) {
        const struct tensor *before = &r->carried[k].tensor;
        const struct value *after = &r->returned[k];
        executor_take(r->run, r->body, k + 1, &r->returned[k]);
        if (after->kind != TSSA_KIND_TENSOR || after->tensor.dtype != before->dtype ||
            !tensor_same_shape(&after->tensor, before))
            return ERROR(TSSA_UNSUPPORTED, "a Loop that is recorded carries other sizes");
    }
    for (uint32_t k = 0; k < r->n_carried; k++)
        TRY(put_aside(r, k));
    return take_stacked(r);
}

/* Whether there is another iteration, memory NULL: if there are trips. */
static tssa_status *find_go(const struct recorder *r, struct device_place *go)
{
    const struct plan *plan = r->run->plan;
    const struct ir_value *value = ir_operand(ir_block_return(r->body->block), 0);
    const struct value *condition = &r->run->slots[plan_value(plan, value)->id];
    bool goes;
    *go = (struct device_place){0};
    if (plan_space(plan, value) == SPACE_DEVICE) {
        TRY(check_condition(&condition->tensor));
        *go = place_of(&condition->tensor);
        return NULL;
    }
    TRY(control_read_bool(condition, "the body's condition", &goes));
    return goes ? NULL : ERROR(TSSA_UNSUPPORTED, "a Loop that is recorded runs once");
}

static tssa_status *end(struct recorder *r)
{
    struct device_place go;
    TRY(crossing_leave(r->run, r->body->crossing));
    TRY(take_returned(r));
    TRY(find_go(r, &go));
    r->n_moves = 0;
    for (uint32_t k = 0; k < r->n_carried; k++)
        add_move(r, &r->carried[k], &r->returned[k]);
    add_elements(r);
    TRY(r->device->record_while_end(r->stream, &r->loop, go, r->moves, r->n_moves));
    return tell_counts(r);
}

/* The condition was not copied to the host, and nobody needs it any more. */
static void release_condition(const struct recorder *r)
{
    const struct plan_copies *copies = &r->body->crossing->returned;
    for (uint32_t i = 0; i < copies->count; i++)
        if (copies->items[i].space == SPACE_HOST && copies->items[i].release)
            value_release(&r->run->slots[copies->items[i].from]);
}

static tssa_status *record_body(struct recorder *r)
{
    TRY(bind(r));
    TRY(executor_run_steps(r->run, r->body));
    tssa_status *status = end(r);
    release_condition(r);
    return status;
}

static tssa_status *record(struct recorder *r)
{
    struct value *before;
    TRY(begin(r));
    TRY(remember(r->run, &before));
    tssa_status *status = record_body(r);
    empty_mirrors(r->run, before);
    forget(r->run, before);
    TRY(status);
    for (uint32_t k = 0; k < r->n_carried; k++)
        control_set_result(r->run, r->step, k, &r->carried[k]);
    for (uint32_t k = 0; k < r->n_stacked; k++)
        control_set_result(r->run, r->step, r->n_carried + k, &r->stacks[k]);
    return NULL;
}

tssa_status *control_record_loop(struct run *run, const struct step *step)
{
    struct recorder r = {.run = run, .step = step, .body = step->blocks[0]};
    struct control_passing passing;
    control_loop_passes(step, &passing);
    r.stream = run->streams[SPACE_DEVICE];
    r.device = r.stream->context->device;
    r.n_carried = passing.n_carried;
    r.n_stacked = step->n_outputs - r.n_carried;
    tssa_status *status = record(&r);
    free_tables(&r);
    return status;
}

/* ---- If -------------------------------------------------------------------------------------- */

struct choice {
    struct run *run;
    const struct step *step;
    struct value *results;
    struct value *returned; /* by the branch that is recorded */
    struct device_move *moves;
};

static tssa_status *take_result(struct choice *c, const struct block_plan *block, uint32_t i)
{
    struct value *result = &c->results[i], *returned = &c->returned[i];
    executor_take(c->run, block, i, returned);
    if (returned->kind != TSSA_KIND_TENSOR)
        return ERROR(TSSA_UNSUPPORTED, "an If that is recorded has a result that is no tensor");
    if (result->kind == TSSA_KIND_NONE)
        TRY(take(c->run, &returned->tensor, result));
    if (returned->tensor.dtype != result->tensor.dtype ||
        !tensor_same_shape(&returned->tensor, &result->tensor))
        return ERROR(TSSA_UNSUPPORTED, "an If that is recorded has results of two sizes");
    c->moves[i] = (struct device_move){.to = place_of(&result->tensor),
                                       .from = place_of(&returned->tensor),
                                       .size = tensor_bytes(&result->tensor)};
    return NULL;
}

static tssa_status *record_branch(struct choice *c, const struct block_plan *block)
{
    TRY(crossing_enter(c->run, block->crossing));
    if (block->binds)
        bindings_read(c->run, block->binds);
    TRY(executor_run_steps(c->run, block));
    TRY(crossing_leave(c->run, block->crossing));
    for (uint32_t i = 0; i < c->step->n_outputs; i++)
        TRY(take_result(c, block, i));
    return NULL;
}

static void release_returned(struct choice *c)
{
    for (uint32_t i = 0; i < c->step->n_outputs; i++)
        value_release(&c->returned[i]);
}

static tssa_status *record_branches(struct choice *c, const struct value *before)
{
    struct device_stream *stream = c->run->streams[SPACE_DEVICE];
    const struct device *device = stream->context->device;
    const uint32_t n = c->step->n_outputs;
    TRY(record_branch(c, c->step->blocks[0]));
    TRY(device->record_if_else(stream, c->moves, n));
    release_returned(c);
    empty_mirrors(c->run, before);
    put_back(c->run, before);
    TRY(record_branch(c, c->step->blocks[1]));
    TRY(device->record_if_end(stream, c->moves, n));
    empty_mirrors(c->run, before);
    return NULL;
}

static tssa_status *record_choice(struct choice *c)
{
    struct device_stream *stream = c->run->streams[SPACE_DEVICE];
    const struct tensor *condition = operand_there(c->run, c->step, 0);
    struct value *before;
    if (!c->results || !c->returned || !c->moves)
        return status_out_of_memory();
    TRY(check_condition(condition));
    TRY(stream->context->device->record_if_begin(stream, place_of(condition)));
    TRY(remember(c->run, &before));
    tssa_status *status = record_branches(c, before);
    forget(c->run, before);
    release_returned(c);
    for (uint32_t i = 0; !status && i < c->step->n_outputs; i++)
        control_set_result(c->run, c->step, i, &c->results[i]);
    return status;
}

tssa_status *control_record_if(struct run *run, const struct step *step)
{
    const tssa_allocator *a = run->allocator;
    const size_t n = step->n_outputs + 1u;
    struct choice c = {.run = run, .step = step};
    c.results = allocator_calloc(a, n, sizeof *c.results);
    c.returned = allocator_calloc(a, n, sizeof *c.returned);
    c.moves = allocator_calloc(a, n, sizeof *c.moves);
    tssa_status *status = record_choice(&c);
    for (uint32_t i = 0; c.results && i < step->n_outputs; i++)
        value_release(&c.results[i]);
    allocator_free(a, c.results);
    allocator_free(a, c.returned);
    allocator_free(a, c.moves);
    return status;
}
