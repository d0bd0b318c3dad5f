/* SPDX-License-Identifier: Apache-2.0 */
/* The table of control flow, and If, SequenceMap and fuse; see control.h. */
#include "runtime/control.h"

#include "ir/fuse.h"
#include "runtime/control_recorded.h"

struct control {
    enum ir_op_id id;
    step_run run;
    tssa_status *(*prepare)(const struct ir_op *op, struct arena *arena, const void **state);
    bool (*passes)(const struct step *step, struct control_passing *passing);
    const char *blocks[2]; /* NULL after the last */
};

static const struct control controls[] = {
    {IR_OP_If, control_run_if, NULL, NULL, {"then_branch", "else_branch"}},
    {IR_OP_Loop, control_run_loop, NULL, control_loop_passes, {"body", NULL}},
    {IR_OP_Scan, control_run_scan, control_prepare_scan, control_scan_passes, {"body", NULL}},
    {IR_OP_SequenceMap, control_run_sequence_map, NULL, NULL, {"body", NULL}},
    {IR_OP_fuse, control_run_fuse, NULL, NULL, {IR_FUSE_BODY, NULL}},
};

static const struct control *find(const struct ir_op *op)
{
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
        if (ir_op_is(op, controls[i].id))
            return &controls[i];
    return NULL;
}

step_run control_find(const struct ir_op *op)
{
    const struct control *control = find(op);
    return control ? control->run : NULL;
}

struct ir_block *control_block(const struct ir_op *op, uint32_t index)
{
    return ir_op_block(op, find(op)->blocks[index]);
}

bool control_passes(const struct step *step, struct control_passing *passing)
{
    const struct control *control = find(step->op);
    *passing = (struct control_passing){0};
    return control && control->passes && control->passes(step, passing);
}

tssa_status *control_prepare(const struct ir_op *op, struct arena *arena, const void **state)
{
    const struct control *control = find(op);
    uint32_t n = 0;
    for (; n < 2 && control->blocks[n]; n++)
        if (!ir_op_block(op, control->blocks[n]))
            return ERROR(TSSA_MALFORMED, "the subgraph \"%s\" is missing", control->blocks[n]);
    if (op->n_blocks != n)
        return ERROR(TSSA_MALFORMED, "%u subgraphs where %u are needed", (unsigned)op->n_blocks,
                     (unsigned)n);
    return control->prepare ? control->prepare(op, arena, state) : NULL;
}

/* ---- If -------------------------------------------------------------------------------------- */

tssa_status *control_run_if(struct run *run, const struct step *step)
{
    bool condition;
    if (control_records(run, step))
        return control_record_if(run, step);
    TRY(control_read_bool(run->inputs[step->first_input], "the condition", &condition));
    const struct block_plan *block = step->blocks[condition ? 0 : 1];
    TRY(executor_run_block(run, block));
    for (uint32_t i = 0; i < step->n_outputs; i++) {
        struct value value;
        executor_take(run, block, i, &value);
        control_set_result(run, step, i, &value);
    }
    return NULL;
}

/* ---- SequenceMap ----------------------------------------------------------------------------- */

/* Binds iteration i: elements of the sequences, tensors as they are. */
static tssa_status *bind_elements(struct run *run, const struct step *step,
                                  const struct block_plan *body, size_t i)
{
    for (uint32_t k = 0; k < step->n_inputs; k++) {
        const struct value *input = run->inputs[step->first_input + k];
        struct value element;
        if (!input)
            continue;
        if (input->kind != TSSA_KIND_SEQUENCE) {
            value_copy(&element, input);
        } else {
            if (i >= sequence_length(input->sequence))
                return ERROR(TSSA_RUNTIME, "input %u is shorter than the first sequence",
                             (unsigned)k);
            value_copy(&element, sequence_element(input->sequence, i));
        }
        executor_bind(run, body, k, &element);
    }
    return NULL;
}

static tssa_dtype result_dtype(const struct step *step, uint32_t index)
{
    const struct ir_type *type = step->op->results[index].type;
    return type->kind == TYPE_SEQUENCE && type->element->kind == TYPE_TENSOR ? type->element->dtype
                                                                             : TSSA_UNDEFINED;
}

/* Appends the block's returns to the step's results, which hold the sequences so far. */
static tssa_status *append_returns(struct run *run, const struct step *step,
                                   const struct block_plan *body)
{
    for (uint32_t k = 0; k < step->n_outputs; k++) {
        struct value *slot = run->outputs[step->first_output + k], element, longer;
        executor_take(run, body, k, &element);
        tssa_status *status = NULL;
        if (slot) {
            status = sequence_insert(slot, sequence_length(slot->sequence), &element, &longer);
            if (!status) {
                value_release(slot);
                value_move(slot, &longer);
            }
        }
        value_release(&element);
        TRY(status);
    }
    return NULL;
}

tssa_status *control_run_sequence_map(struct run *run, const struct step *step)
{
    const struct block_plan *body = step->blocks[0];
    const struct value *first = run->inputs[step->first_input];
    if (!first || first->kind != TSSA_KIND_SEQUENCE)
        return ERROR(TSSA_RUNTIME, "the first input must be a sequence");
    const size_t length = sequence_length(first->sequence);
    for (uint32_t k = 0; k < step->n_outputs; k++)
        if (run->outputs[step->first_output + k])
            TRY(sequence_create_for(&run->pool.cached, result_dtype(step, k), length,
                                    run->outputs[step->first_output + k]));
    for (size_t i = 0; i < length; i++) {
        TRY(bind_elements(run, step, body, i));
        TRY(executor_run_block(run, body));
        TRY(append_returns(run, step, body));
    }
    return NULL;
}

/* What has its slot is there; the rest are parameters, constants, and what is returned twice. */
tssa_status *control_run_fuse(struct run *run, const struct step *step)
{
    const struct block_plan *block = step->blocks[0];
    TRY(executor_run_block(run, block));
    for (uint32_t i = 0; i < step->n_outputs; i++) {
        struct value *slot = run->outputs[step->first_output + i];
        if (slot && slot != &run->slots[block->returns[i].slot])
            value_copy(slot, &run->slots[block->returns[i].slot]);
    }
    return NULL;
}
