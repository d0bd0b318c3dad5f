/* SPDX-License-Identifier: Apache-2.0 */
#include "device/emulated/program.h"

#include "device/devices.h"
#include "ir/fuse.h"

/* ---- The ops --------------------------------------------------------------------------------- */

static const struct kernel *host_kernel(const struct ir_op *op)
{
    return cpu_device.find_kernel(op);
}

static bool is_computed(const struct ir_op *op)
{
    return !ir_op_is(op, IR_OP_return) && !ir_value_constant(&op->results[0]);
}

bool emulated_can(const struct ir_op *op)
{
    const struct ir_block *body = ir_fuse_body(op);
    if (!body)
        return host_kernel(op) != NULL;
    for (const struct ir_op *inner = body->first; inner; inner = inner->next)
        if (is_computed(inner) && !host_kernel(inner))
            return false;
    return true;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

struct maker {
    const struct kernel_setup *setup;
    struct emulated_program *program;
    const struct ir_block *body; /* NULL: the op is alone */
};

static uint32_t number_of(const struct maker *m, const struct ir_value *value)
{
    if (!value->op)
        return value->index;
    uint32_t number = m->program->n_inputs;
    for (const struct ir_op *op = m->body->first; op != value->op; op = op->next)
        number += op->n_results;
    return number + value->index;
}

static void measure(struct emulated_program *program, const struct ir_op *op)
{
    program->n_values += op->n_results;
    program->n_ops++;
    if (op->n_operands > program->most_operands)
        program->most_operands = op->n_operands;
    if (op->n_results > program->most_results)
        program->most_results = op->n_results;
}

static tssa_status *make_tables(const struct maker *m, uint32_t n_outputs)
{
    struct emulated_program *program = m->program;
    struct arena *arena = m->setup->arena;
    program->ops = ARENA_ARRAY(arena, struct emulated_op, program->n_ops);
    program->constants = ARENA_ARRAY(arena, const struct tensor *, program->n_values);
    program->outputs = ARENA_ARRAY(arena, uint32_t, n_outputs);
    program->n_ops = 0; /* they are counted as they are made */
    return program->ops && program->constants && program->outputs ? NULL : status_out_of_memory();
}

/* ---- Making it ------------------------------------------------------------------------------- */

static tssa_status *add_op(const struct maker *m, const struct ir_op *op, uint32_t first_output)
{
    struct emulated_program *program = m->program;
    struct emulated_op *made = &program->ops[program->n_ops];
    *made = (struct emulated_op){.op = op, .kernel = host_kernel(op), .first_output = first_output};
    made->inputs = ARENA_ARRAY(m->setup->arena, uint32_t, op->n_operands);
    TRY_ALLOC(made->inputs);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        made->inputs[i] = !value ? EMULATED_ABSENT : m->body ? number_of(m, value) : i;
    }
    TRY(kernel_prepare(made->kernel, op, m->setup, &made->state));
    program->n_ops++;
    return NULL;
}

static tssa_status *add_alone(const struct maker *m, const struct ir_op *op)
{
    measure(m->program, op);
    TRY(make_tables(m, op->n_results));
    for (uint32_t i = 0; i < op->n_results; i++)
        m->program->outputs[i] = op->n_operands + i;
    return add_op(m, op, op->n_operands);
}

static tssa_status *add_body(const struct maker *m, const struct ir_op *fuse)
{
    struct emulated_program *program = m->program;
    for (const struct ir_op *op = m->body->first; op; op = op->next)
        measure(program, op);
    TRY(make_tables(m, fuse->n_results));
    uint32_t number = program->n_inputs;
    for (const struct ir_op *op = m->body->first; op; number += op->n_results, op = op->next)
        if (is_computed(op))
            TRY(add_op(m, op, number));
        else if (op->n_results)
            program->constants[number] = ir_value_constant(&op->results[0]);
    for (uint32_t i = 0; i < fuse->n_results; i++)
        program->outputs[i] = number_of(m, ir_operand(ir_block_return(m->body), i));
    return NULL;
}

tssa_status *emulated_program_make(const struct ir_op *op, const struct kernel_setup *setup,
                                   struct emulated_program *program)
{
    const struct maker maker = {setup, program, ir_fuse_body(op)};
    *program = (struct emulated_program){.allocator = setup->context->allocator,
                                         .n_inputs = op->n_operands,
                                         .n_values = op->n_operands};
    tssa_status *status = maker.body ? add_body(&maker, op) : add_alone(&maker, op);
    if (status)
        emulated_program_free(program);
    return status;
}

void emulated_program_free(const struct emulated_program *program)
{
    for (uint32_t i = 0; i < program->n_ops; i++)
        kernel_release(program->ops[i].kernel, program->ops[i].state);
}

/* ---- Running it ------------------------------------------------------------------------------ */

static tssa_status *run_op(const struct emulated_op *op, struct kernel_env *env,
                           struct value *values, const struct value **inputs,
                           struct value **outputs)
{
    for (uint32_t i = 0; i < op->op->n_operands; i++) {
        const uint32_t number = op->inputs[i];
        const bool there = number != EMULATED_ABSENT && values[number].kind != TSSA_KIND_NONE;
        inputs[i] = there ? &values[number] : NULL;
    }
    for (uint32_t i = 0; i < op->op->n_results; i++)
        outputs[i] = op->op->results[i].wanted ? &values[op->first_output + i] : NULL;
    struct kernel_args args = {.env = env,
                               .state = op->state,
                               .op = op->op,
                               .n_inputs = op->op->n_operands,
                               .n_outputs = op->op->n_results,
                               .inputs = inputs,
                               .outputs = outputs};
    return op->kernel->run(&args);
}

tssa_status *emulated_program_run(const struct emulated_program *program, struct kernel_env *env,
                                  struct value *values)
{
    const size_t inputs_size = program->most_operands * sizeof(const struct value *),
                 size = inputs_size + program->most_results * sizeof(struct value *);
    void *pointers = allocator_alloc(program->allocator, size ? size : 1);
    TRY_ALLOC(pointers);
    const struct value **inputs = pointers;
    struct value **outputs = (struct value **)((char *)pointers + inputs_size);
    tssa_status *status = NULL;
    for (uint32_t i = program->n_inputs; i < program->n_values; i++)
        if (program->constants[i])
            values[i] = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = *program->constants[i]};
    for (uint32_t i = 0; !status && i < program->n_ops; i++)
        status = run_op(&program->ops[i], env, values, inputs, outputs);
    allocator_free(program->allocator, pointers);
    return status;
}
