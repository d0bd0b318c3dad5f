/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of an opset: the first, from the model's own on, that can say all of its ops. */
#include <string.h>

#include "onnx/export.h"
#include "onnx/schema.h"

static tssa_status *name_op(const struct ir_op *op, int64_t opset, tssa_status *status)
{
    char text[256];
    ir_op_describe(op, text, sizeof text);
    return status_prefix(status, "%s cannot be written at opset %lld", text, (long long)opset);
}

/* A graph, an opset to try, and what was wrong with it. */
struct attempt {
    struct export *export;
    int64_t opset;
    bool blocked; /* its nodes could be written, if it were not for a function that stays */
    bool yields;  /* ops are written as they are where their hazards cannot be gone around */
    uint64_t met; /* bit i: ops of hazard i are */
};

/* Operator sets that the model does not import: those of functions that were inlined. */
static tssa_status *need_opset(struct export *export, const char *domain, int64_t version,
                               bool exactly)
{
    const struct ir_graph *graph = export->graph;
    const struct ir_opset *found = NULL;
    for (size_t i = 0; i < graph->n_opsets; i++)
        if (strcmp(graph->opsets[i].domain, domain) == 0)
            found = &graph->opsets[i];
    for (size_t i = 0; i < export->opsets.count; i++)
        if (strcmp(export->opsets.data[i].domain, domain) == 0)
            found = &export->opsets.data[i];
    if (found && exactly && found->version != version)
        return ERROR(TSSA_UNSUPPORTED,
                     "it needs opset %lld of domain \"%s\", and the model has %lld",
                     (long long)version, domain, (long long)found->version);
    const struct ir_opset needed = {domain, version};
    if (!found && !vec_push(&export->opsets, needed))
        return status_out_of_memory();
    return NULL;
}

static tssa_status *need_domain(struct export *export, const struct ir_op *op)
{
    const struct ir_opaque *opaque = op->opaque;
    if (opaque && opaque->function)
        export_need_function(export, opaque->function);
    if (opaque)
        return opaque->domain[0]
                   ? need_opset(export, opaque->domain, opaque->opset, !opaque->function)
                   : NULL;
    return op->info->domain[0] ? need_opset(export, op->info->domain, op->version, false) : NULL;
}

static tssa_status *try_node(struct attempt *attempt, const struct ir_op *op)
{
    struct export *export = attempt->export;
    struct export_draft draft;
    if (export_is_initializer(export, op))
        return NULL;
    tssa_status *status = export_draft(export, op, attempt->opset, &draft);
    if (!status)
        status = need_domain(export, op);
    if (status)
        return name_op(op, attempt->opset, status);
    for (size_t i = 0; i < export->operands.count; i++)
        if (export->operands.data[i])
            bitset_add(&export->needed, export->operands.data[i]->id);
    return NULL;
}

/* What is written in the place of the op; or itself, if this opset cannot say that. */
static tssa_status *try_instead(struct attempt *attempt, const struct ir_op *op,
                                struct export_ops *instead)
{
    tssa_status *status = NULL;
    for (size_t i = 0; i < instead->count && !status; i++)
        status = try_node(attempt, instead->ops[i]);
    bool slow = onnx_hazard_is_slow(instead->hazard); /* no reason for another opset */
    if (!status || !(attempt->yields || slow) || tssa_status_code(status) != TSSA_UNSUPPORTED)
        return status_prefix(status, "hazard %s, in the place of %s",
                             onnx_hazard(instead->hazard).name, op->info->name);
    tssa_status_free(status);
    instead->unsaid = attempt->opset;
    attempt->met |= (uint64_t)!slow << instead->hazard;
    return try_node(attempt, op);
}

/* Has the graph's result a name already, and not the output's? Its inputs have, and what is
 * returned twice. */
static bool has_other_name(const struct ir_graph *graph, const struct ir_op *results,
                           uint32_t index)
{
    const struct ir_value *value = ir_operand(results, index);
    const char *name = graph->output_names ? graph->output_names[index] : NULL;
    bool other = !value->op && !(name && value->name && strcmp(value->name, name) == 0);
    for (uint32_t i = 0; i < index && !other; i++)
        other = ir_operand(results, i) == value;
    return other;
}

/* What is written as a copy must be of a type that Identity has there: sequences it takes from
 * opset 14 on. */
static tssa_status *try_copy(const struct attempt *attempt, const struct ir_op *results,
                             uint32_t index)
{
    const struct ir_value *value = ir_operand(results, index);
    const struct export_draft copy = {.name = "Identity",
                                      .version = schema_bind("Identity", attempt->opset)};
    const struct schema *schema = schema_find(copy.name, copy.version);
    bool copied = results->parent->owner ? export_copies_result(attempt->export, results, index)
                                         : has_other_name(attempt->export->graph, results, index);
    if (!schema || !copied)
        return NULL;
    return name_op(results, attempt->opset,
                   export_check_type(&copy, "input", 0, value, schema->input_types[0]));
}

static tssa_status *try_results(struct attempt *attempt, const struct ir_op *results)
{
    for (uint32_t i = 0; i < results->n_operands; i++) {
        bitset_add(&attempt->export->needed, results->operands[i].value->id);
        TRY(try_copy(attempt, results, i));
    }
    return NULL;
}

static tssa_status *try_op(void *context, struct ir_op *op)
{
    struct attempt *attempt = context;
    struct export_ops *instead = export_instead(attempt->export, op);
    if (ir_op_is(op, IR_OP_return))
        return try_results(attempt, op);
    return instead ? try_instead(attempt, op, instead) : try_node(attempt, op);
}

static tssa_status *try_graph(struct attempt *attempt)
{
    struct export *export = attempt->export;
    memset(export->needed.words, 0, (export->needed.size + 63) / 64 * sizeof(uint64_t));
    export->needs_empty = false;
    export->opset = attempt->opset;
    export->opsets.count = 0;
    memset(export->functions.words, 0, (export->functions.size + 63) / 64 * sizeof(uint64_t));
    export_need_kept_functions(export);
    attempt->blocked = false;
    attempt->met = 0;
    TRY(ir_block_walk(export->graph->body, try_op, attempt));
    if (attempt->opset == export_model_opset(export->graph))
        return NULL;
    attempt->blocked = true;
    return export_check_functions(export, attempt->opset);
}

/*
 * Why the first opset does not do and, if that is because of a function, the last; both are taken.
 */
static tssa_status *join_reasons(tssa_status *first, tssa_status *last, bool blocked)
{
    tssa_status *both = first;
    if (last == first)
        return first;
    if (blocked) {
        both = ERROR(TSSA_UNSUPPORTED, "%s; of newer ones, %s", tssa_status_message(first),
                     tssa_status_message(last));
        tssa_status_free(first);
    }
    tssa_status_free(last);
    return both;
}

/* From the first opset on, or this one alone. */
static tssa_status *try_opsets(struct attempt *attempt, bool fixed)
{
    tssa_status *first = try_graph(attempt), *status = first;
    while (status && !fixed && tssa_status_code(status) == TSSA_UNSUPPORTED &&
           attempt->opset < IR_NEWEST_OPSET) {
        if (status != first)
            tssa_status_free(status);
        attempt->opset++;
        status = try_graph(attempt);
    }
    if (status)
        return join_reasons(first, status, attempt->blocked);
    tssa_status_free(first);
    return NULL;
}

tssa_status *export_choose_opset(struct export *export)
{
    int64_t asked = export->options.opset, opset = asked;
    if (!asked)
        opset = export_model_opset(export->graph);
    if (asked > IR_NEWEST_OPSET || asked < 0 || (asked && asked < ONNX_OLDEST_OPSET))
        return ERROR(TSSA_INVALID_ARGUMENT, "opset %lld is none of %d to %d", (long long)asked,
                     ONNX_OLDEST_OPSET, IR_NEWEST_OPSET);
    if (opset < ONNX_OLDEST_OPSET)
        opset = ONNX_OLDEST_OPSET;
    if (!bitset_init(&export->functions, &export->scratch, export->graph->n_functions) ||
        !bitset_init(&export->needed, &export->scratch, export->n_values) ||
        !bitset_init(&export->placed, &export->scratch, export->n_values))
        return status_out_of_memory();
    struct attempt attempt = {.export = export, .opset = opset};
    tssa_status *status = try_opsets(&attempt, asked != 0);
    if (status && tssa_status_code(status) == TSSA_UNSUPPORTED) {
        attempt = (struct attempt){.export = export, .opset = opset, .yields = true};
        tssa_status_free(status);
        status = try_opsets(&attempt, asked != 0);
    }
    if (!status && export->options.met_hazards)
        *export->options.met_hazards |= attempt.met;
    return status;
}
