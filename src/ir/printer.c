/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of the IR; the grammar stands in docs/ir.md. */
#include "ir/printer.h"

#include <inttypes.h>
#include <string.h>

#include "ir/quote.h"
#include "ir/rule.h"
#include "ir/tensor_text.h"

struct printer {
    struct text *text;
    bool full;
    /*
     * Values without a name are numbered in the order of the text: by value id, 0 where not seen.
     */
    uint32_t *numbers;
    uint32_t n_values, next_number;
};

/* ---- Names ----------------------------------------------------------------------------------- */

static bool is_shown(const struct ir_value *value)
{
    return value->wanted || value->uses;
}

static void number_value(struct printer *printer, const struct ir_value *value)
{
    if (!value->name && value->id < printer->n_values && is_shown(value))
        printer->numbers[value->id] = ++printer->next_number;
}

static void number_block(struct printer *printer, const struct ir_block *block)
{
    for (uint32_t i = 0; i < block->n_params; i++)
        number_value(printer, block->params[i]);
    for (const struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_results; i++)
            number_value(printer, &op->results[i]);
        for (uint32_t i = 0; i < op->n_blocks; i++)
            if (op->blocks[i])
                number_block(printer, op->blocks[i]);
    }
}

static bool printer_init(struct printer *printer, const struct ir_graph *graph, bool full,
                         struct text *text)
{
    *printer = (struct printer){.text = text, .full = full};
    if (!graph)
        return true;
    printer->numbers = allocator_calloc(text->allocator, graph->n_values, sizeof *printer->numbers);
    if (!printer->numbers) {
        text->failed = true;
        return false;
    }
    printer->n_values = graph->n_values;
    number_block(printer, graph->body);
    return true;
}

static void printer_free(struct printer *printer)
{
    allocator_free(printer->text->allocator, printer->numbers);
}

static void print_value(const struct printer *printer, const struct ir_value *value)
{
    uint32_t number = value && value->id < printer->n_values ? printer->numbers[value->id] : 0;
    if (!value) {
        text_putc(printer->text, '_');
        return;
    }
    text_putc(printer->text, '%');
    if (value->name)
        ir_print_name(printer->text, value->name);
    else if (number)
        text_printf(printer->text, "%" PRIu32, number - 1);
    else
        text_puts(printer->text, "?"); /* not in the graph: only in messages about broken ones */
}

static void indent(const struct printer *printer, int depth)
{
    for (int i = 0; i < depth; i++)
        text_puts(printer->text, "  ");
}

static void print_string(const struct printer *printer, const char *string)
{
    ir_print_quoted(printer->text, string, strlen(string));
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static const char *const list_names[] = {[IR_ATTR_FLOATS] = "floats",
                                         [IR_ATTR_INTS] = "ints",
                                         [IR_ATTR_STRINGS] = "strings",
                                         [IR_ATTR_TENSORS] = "tensors",
                                         [IR_ATTR_TYPES] = "types"};

static void print_type_attr(const struct printer *printer, const struct ir_type *type)
{
    text_puts(printer->text, "type ");
    type_print(type, printer->text);
}

static void print_list_item(const struct printer *printer, const struct ir_attr *attr, size_t i)
{
    struct text *text = printer->text;
    switch (attr->kind) {
    case IR_ATTR_FLOATS:
        ir_print_float(text, attr->floats[i], true);
        break;
    case IR_ATTR_INTS:
        text_printf(text, "%" PRId64, attr->ints[i]);
        break;
    case IR_ATTR_STRINGS:
        ir_print_quoted(text, attr->strings[i].data, attr->strings[i].size);
        break;
    case IR_ATTR_TENSORS:
        ir_print_tensor(text, &attr->tensors[i], printer->full);
        break;
    default:
        print_type_attr(printer, attr->types[i]);
    }
}

static void print_list(const struct printer *printer, const struct ir_attr *attr)
{
    if (attr->count == 0)
        text_printf(printer->text, "%s ", list_names[attr->kind]);
    text_putc(printer->text, '[');
    for (size_t i = 0; i < attr->count && !printer->text->failed; i++) {
        text_puts(printer->text, i ? ", " : "");
        print_list_item(printer, attr, i);
    }
    text_putc(printer->text, ']');
}

static void print_attr(const struct printer *printer, const struct ir_attr *attr)
{
    struct text *text = printer->text;
    ir_print_name(text, attr->name);
    text_puts(text, " = ");
    switch (attr->kind) {
    case IR_ATTR_FLOAT:
        ir_print_float(text, attr->f, true);
        break;
    case IR_ATTR_INT:
        text_printf(text, "%" PRId64, attr->i);
        break;
    case IR_ATTR_STRING:
        ir_print_quoted(text, attr->s.data, attr->s.size);
        break;
    case IR_ATTR_TENSOR:
        ir_print_tensor(text, attr->tensor, printer->full);
        break;
    case IR_ATTR_TYPE:
        print_type_attr(printer, attr->type);
        break;
    case IR_ATTR_RULE:
        rule_print(attr->rule, text);
        break;
    default:
        print_list(printer, attr);
    }
}

static void print_attrs(const struct printer *printer, const struct ir_op *op)
{
    if (op->n_attrs == 0)
        return;
    text_puts(printer->text, " {");
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        text_puts(printer->text, i ? ", " : "");
        print_attr(printer, &op->attrs[i]);
    }
    text_putc(printer->text, '}');
}

/* ---- Ops ------------------------------------------------------------------------------------- */

/* `Add@14`, `ai.onnx.ml.Scaler@1`, `return`, `access`, `opaque("com.acme", "Magic", 1)` */
static void print_op_name(const struct printer *printer, const struct ir_op *op)
{
    struct text *text = printer->text;
    const struct ir_opaque *opaque = op->opaque;
    if (opaque) {
        text_puts(text, "opaque(");
        print_string(printer, opaque->domain);
        text_puts(text, ", ");
        print_string(printer, opaque->name);
        text_printf(text, ", %" PRId64, opaque->opset);
        if (opaque->overload && opaque->overload[0]) {
            text_puts(text, ", ");
            print_string(printer, opaque->overload);
        }
        text_putc(text, ')');
        return;
    }
    if (op->info->domain[0] && !ir_op_is_own(op))
        text_printf(text, "%s.", op->info->domain);
    text_puts(text, op->info->name);
    if (op->version != 0 || op->info->versions[0] != 0)
        text_printf(text, "@%d", op->version);
}

static void print_results(const struct printer *printer, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++) {
        text_puts(printer->text, i ? ", " : "");
        print_value(printer, is_shown(&op->results[i]) ? &op->results[i] : NULL);
    }
    if (op->n_results)
        text_puts(printer->text, " = ");
}

static void print_result_types(const struct printer *printer, const struct ir_op *op)
{
    const char *before = ": ";
    for (uint32_t i = 0; i < op->n_results; i++) {
        if (!is_shown(&op->results[i]))
            continue;
        text_puts(printer->text, before);
        type_print(op->results[i].type, printer->text);
        before = ", ";
    }
}

/* Everything but the blocks. */
static void print_op_head(const struct printer *printer, const struct ir_op *op)
{
    struct text *text = printer->text;
    print_results(printer, op);
    print_op_name(printer, op);
    text_putc(text, '(');
    for (uint32_t i = 0; i < op->n_operands; i++) {
        text_puts(text, i ? ", " : "");
        print_value(printer, op->operands[i].value);
    }
    text_putc(text, ')');
    if (op->name) {
        text_puts(text, " @");
        ir_print_name(text, op->name);
    }
    print_attrs(printer, op);
    print_result_types(printer, op);
}

static void print_ops(const struct printer *printer, const struct ir_block *block, int depth);

static void print_params(const struct printer *printer, const struct ir_block *block,
                         const struct tensor *const *defaults)
{
    text_putc(printer->text, '(');
    for (uint32_t i = 0; i < block->n_params; i++) {
        text_puts(printer->text, i ? ", " : "");
        print_value(printer, block->params[i]);
        text_puts(printer->text, ": ");
        type_print(block->params[i]->type, printer->text);
        if (defaults && defaults[i]) {
            text_puts(printer->text, " = ");
            ir_print_tensor(printer->text, defaults[i], printer->full);
        }
    }
    text_putc(printer->text, ')');
}

static void print_op(const struct printer *printer, const struct ir_op *op, int depth)
{
    struct text *text = printer->text;
    indent(printer, depth);
    print_op_head(printer, op);
    if (op->n_blocks == 0)
        return;
    text_puts(text, " {\n");
    for (uint32_t i = 0; i < op->n_blocks; i++) {
        indent(printer, depth + 1);
        ir_print_name(text, op->block_names[i]);
        print_params(printer, op->blocks[i], NULL);
        text_puts(text, " {\n");
        print_ops(printer, op->blocks[i], depth + 2);
        indent(printer, depth + 1);
        text_puts(text, "}\n");
    }
    indent(printer, depth);
    text_putc(text, '}');
}

static void print_ops(const struct printer *printer, const struct ir_block *block, int depth)
{
    for (const struct ir_op *op = block->first; op && !printer->text->failed; op = op->next) {
        print_op(printer, op, depth);
        text_putc(printer->text, '\n');
    }
}

/* The graph whose body an op is, however deep, in; NULL for an op that is in no block. */
static const struct ir_graph *graph_of(const struct ir_op *op)
{
    return op->parent ? op->parent->graph : NULL;
}

static bool has_unnamed(const struct ir_op *op)
{
    bool unnamed = op->n_blocks != 0;
    for (uint32_t i = 0; i < op->n_results; i++)
        unnamed = unnamed || !op->results[i].name;
    for (uint32_t i = 0; i < op->n_operands; i++)
        unnamed = unnamed || (op->operands[i].value && !op->operands[i].value->name);
    return unnamed;
}

void ir_print_op_line(const struct ir_op *op, struct text *text)
{
    struct printer printer;
    if (!printer_init(&printer, has_unnamed(op) ? graph_of(op) : NULL, false, text))
        return;
    print_op_head(&printer, op);
    printer_free(&printer);
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

static void print_opsets(const struct printer *printer, const struct ir_graph *graph)
{
    if (graph->n_opsets == 0)
        return;
    text_puts(printer->text, " opset(");
    for (size_t i = 0; i < graph->n_opsets; i++) {
        text_puts(printer->text, i ? ", " : "");
        print_string(printer, graph->opsets[i].domain);
        text_printf(printer->text, ": %" PRId64, graph->opsets[i].version);
    }
    text_putc(printer->text, ')');
}

static void print_metadata(const struct printer *printer, const struct ir_graph *graph)
{
    if (graph->n_metadata == 0)
        return;
    text_puts(printer->text, " metadata(");
    for (size_t i = 0; i < graph->n_metadata; i++) {
        text_puts(printer->text, i ? ", " : "");
        print_string(printer, graph->metadata[i].key);
        text_puts(printer->text, ": ");
        print_string(printer, graph->metadata[i].value);
    }
    text_putc(printer->text, ')');
}

static void print_field(const struct printer *printer, const char *field, const char *value)
{
    if (!value)
        return;
    text_printf(printer->text, " %s(", field);
    print_string(printer, value);
    text_putc(printer->text, ')');
}

static void print_header(const struct printer *printer, const struct ir_graph *graph)
{
    struct text *text = printer->text;
    text_puts(text, "graph");
    if (graph->name) {
        text_puts(text, " @");
        ir_print_name(text, graph->name);
    }
    print_opsets(printer, graph);
    if (graph->ir_version)
        text_printf(text, " ir_version(%" PRId64 ")", graph->ir_version);
    if (graph->model_version)
        text_printf(text, " model_version(%" PRId64 ")", graph->model_version);
    print_field(printer, "producer", graph->producer_name);
    print_field(printer, "producer_version", graph->producer_version);
    print_field(printer, "domain", graph->domain);
    print_field(printer, "doc", graph->doc);
    print_metadata(printer, graph);
}

static void print_outputs(const struct printer *printer, const struct ir_graph *graph)
{
    const struct ir_op *ret = ir_block_return(graph->body);
    text_puts(printer->text, " -> (");
    for (uint32_t i = 0; ret && i < ret->n_operands; i++) {
        text_puts(printer->text, i ? ", " : "");
        print_value(printer, ret->operands[i].value);
        if (graph->output_names && graph->output_names[i]) {
            text_puts(printer->text, " as ");
            print_string(printer, graph->output_names[i]);
        }
    }
    text_putc(printer->text, ')');
}

void ir_print_graph(const struct ir_graph *graph, bool full, struct text *text)
{
    struct printer printer;
    if (!printer_init(&printer, graph, full, text))
        return;
    print_header(&printer, graph);
    text_putc(text, ' ');
    print_params(&printer, graph->body, graph->input_defaults);
    print_outputs(&printer, graph);
    text_puts(text, " {\n");
    print_ops(&printer, graph->body, 1);
    text_puts(text, "}\n");
    printer_free(&printer);
}
