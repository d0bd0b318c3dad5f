/* SPDX-License-Identifier: Apache-2.0 */
#include "api/session_notes.h"

#include <stdio.h>

#include "base/text.h"
#include "device/library_op.h"
#include "gir/estimate.h"
#include "ir/fuse.h"

static void remark_of(const tssa_session_options *options, const char *pass, tssa_remark_kind kind,
                      const struct ir_op *op, const char *message)
{
    char described[256];
    ir_op_describe(op, described, sizeof described);
    options->remark(
        options->remark_user,
        &(tssa_remark){.kind = kind, .pass = pass, .op = described, .message = message});
}

static void remark(const tssa_session_options *options, tssa_remark_kind kind,
                   const struct ir_op *op, const char *message)
{
    remark_of(options, "session", kind, op, message);
}

struct asking {
    const struct plan *plan;
    const struct device *device;
    bool away; /* of steps that are not the host's */
    enum library_kind kind;
};

static enum library_kind kind_of(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Conv) || ir_op_is(op, IR_OP_ConvTranspose) ? LIBRARY_CONV
                                                                         : LIBRARY_MATMUL;
}

static bool asks(const struct asking *asking, const struct ir_op *op)
{
    const struct device_library *library = asking->device->library;
    struct library_problem problem;
    return library_asks(asking->device, op) && kind_of(op) == asking->kind &&
           (!library->is_worth_it ||
            (library_op_known(op, &problem) && library->is_worth_it(&problem)));
}

/* Is there a step that the library computes for sure, if it is there? */
static bool asks_library(const struct asking *asking, const struct block_plan *block)
{
    const bool *on_device = asking->plan->spaces.on_device;
    for (uint32_t i = 0; i < block->n_steps; i++) {
        const struct step *step = &block->steps[i];
        const bool away = on_device && on_device[step->op->id];
        if (step->kernel && away == asking->away && asks(asking, step->op))
            return true;
        for (uint32_t k = 0; k < step->n_blocks; k++)
            if (asks_library(asking, step->blocks[k]))
                return true;
    }
    return false;
}

/* For problems of a kind; `missed`: whether it was said, of all kinds. */
static void note_kind(struct tssa_context *context, const struct asking *asking,
                      atomic_flag *missed)
{
    const struct device_library *library = asking->device->library;
    char why[256];
    if (!asks_library(asking, asking->plan->body) ||
        library->is_there(asking->kind, why, sizeof why) ||
        atomic_flag_test_and_set(&missed[asking->kind]))
        return;
    context_log(context, TSSA_LOG_WARNING, "%s: %s", why, library->missed[asking->kind]);
    for (int other = 0; other < LIBRARY_KINDS; other++)
        if (library->missed[other] == library->missed[asking->kind])
            (void)atomic_flag_test_and_set(&missed[other]);
}

static void note_library(struct tssa_context *context, struct asking asking, atomic_flag *missed)
{
    const struct device_library *library = asking.device->library;
    if (!context->log || !library || !library->is_there)
        return;
    for (int kind = 0; kind < LIBRARY_KINDS; kind++) {
        asking.kind = (enum library_kind)kind;
        note_kind(context, &asking, missed);
    }
}

/* Once per context: its sessions all miss the same. */
void session_note_library(struct tssa_context *context, const struct plan *plan)
{
    note_library(context, (struct asking){.plan = plan, .device = plan->host->device},
                 context->library_missed);
    note_library(context,
                 (struct asking){.plan = plan, .device = plan->device->device, .away = true},
                 context->device_library_missed);
}

struct fused_count {
    unsigned ops, kernels;
};

static tssa_status *count_fused(void *user, struct ir_op *op)
{
    struct fused_count *count = user;
    const struct ir_block *body = ir_fuse_body(op);
    count->kernels += body != NULL;
    for (const struct ir_op *inner = body ? body->first : NULL; inner; inner = inner->next)
        count->ops += ir_op_computes(inner);
    return NULL;
}

void session_note_fused(struct tssa_context *context, const struct ir_graph *graph)
{
    struct fused_count count = {0, 0};
    tssa_status_free(ir_block_walk(graph->body, count_fused, &count)); /* nothing in it fails */
    if (count.kernels)
        context_log(context, TSSA_LOG_INFO, "session: %u operators are fused into %u kernels",
                    count.ops, count.kernels);
}

static void note_cache(struct tssa_context *context, const char *problem)
{
    if (!atomic_flag_test_and_set(&context->cache_missed))
        context_log(context, TSSA_LOG_WARNING, "session: %s: kernels are compiled anew each time",
                    problem);
}

void session_note_kept(struct tssa_context *context, struct device_context *device)
{
    struct device_compiled made;
    if (!atomic_load_explicit(&device->keeps_not, memory_order_relaxed))
        return;
    device->device->compiled(device, &made);
    note_cache(context, made.cache_problem);
}

/* That nothing can be compiled here, or kept, once per context. */
void session_note_compiled(struct tssa_context *context, const struct compile_report *report)
{
    if (report->compiled)
        context_log(context, TSSA_LOG_INFO, "session: %u fused operators are compiled kernels",
                    (unsigned)report->compiled);
    if (report->refused && !atomic_flag_test_and_set(&context->compile_missed))
        context_log(context, TSSA_LOG_WARNING, "session: %u fused operators are run one by one: %s",
                    (unsigned)report->refused, report->why);
    if (report->cache_problem[0])
        note_cache(context, report->cache_problem);
}

struct lacked_remarks {
    const struct plan *plan;
    const tssa_session_options *options;
};

static tssa_status *remark_lacked(void *user, struct ir_op *op)
{
    const struct lacked_remarks *remarks = user;
    const struct plan *plan = remarks->plan;
    char message[160];
    if (!plan->spaces.lacked[op->id])
        return NULL;
    snprintf(message, sizeof message, "device %s has no kernel for it: it runs on %s, with copies",
             plan->device->device->name, plan->host->device->name);
    remark(remarks->options, TSSA_REMARK_MISSED, op, message);
    return NULL;
}

void session_note_lacked(struct tssa_context *context, const struct plan *plan,
                         const tssa_session_options *options)
{
    struct lacked_remarks remarks = {plan, options};
    if (!plan->spaces.n_lacked)
        return;
    context_log(context, TSSA_LOG_INFO, "session: device %s lacks %u operators, which run on %s",
                plan->device->device->name, (unsigned)plan->spaces.n_lacked,
                plan->host->device->name);
    if (options->remark) /* nothing in it fails */
        tssa_status_free(ir_block_walk(plan->graph->body, remark_lacked, &remarks));
}

/* What it was, to the log. */
void session_note_background(struct tssa_context *context, struct background_result *result)
{
    if (result->status && !atomic_flag_test_and_set(&context->compile_missed))
        context_log(context, TSSA_LOG_WARNING, "session: operators are run one by one: %s",
                    tssa_status_message(result->status));
    tssa_status_free(result->status);
    session_note_compiled(context, &result->report);
    if (result->generation)
        session_note_fused(context, result->generation->graph);
}

static void remark_loop(const struct step *step, const tssa_session_options *options)
{
    char message[160];
    snprintf(message, sizeof message, "%s%s",
             step->repeat ? "iterations differ in addresses alone: they are set up once"
                          : "its iterations are made step by step: ",
             step->repeat ? "" : step->why);
    remark(options, step->repeat ? TSSA_REMARK_APPLIED : TSSA_REMARK_MISSED, step->op, message);
}

void session_remark_recording(const struct plan *plan, const tssa_session_options *options)
{
    char message[160];
    if (!plan->device->device->record_begin)
        return;
    snprintf(message, sizeof message, "%s%s",
             plan->driven ? "runs are asked of the device step by step: "
                          : "runs of the same shapes are recorded once and replayed",
             plan->driven ? plan->driven : "");
    remark(options, plan->driven ? TSSA_REMARK_MISSED : TSSA_REMARK_APPLIED,
           ir_block_return(plan->graph->body), message);
}

void session_remark_loops(const struct block_plan *block, const tssa_session_options *options)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        const struct step *step = &block->steps[i];
        for (uint32_t k = 0; k < step->n_blocks; k++)
            session_remark_loops(step->blocks[k], options);
        if (step->repeat || step->why)
            remark_loop(step, options);
        if (step->is_recorded)
            remark(options, TSSA_REMARK_APPLIED, step->op,
                   "where runs are replayed, the device decides over it");
    }
}

/* ---- Kernels --------------------------------------------------------------------------------- */

#define LIKELY_SIZE 1024 /* of what a run tells, as the pass `fuse` has it */

struct kernel_remarks {
    const struct gir_rates *rates;
    const tssa_session_options *options;
};

/* Nothing is said of what is no kernel: who refused it has. */
static tssa_status *explain(const struct ir_op *op, const struct gir_rates *rates,
                            struct text *text)
{
    const struct cost_sizes sizes = {.size = LIKELY_SIZE};
    struct gir_fused built;
    const char *why;
    bool good = true;
    if (ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm))
        return gir_explain_product(op, rates, &sizes, text) ? NULL : status_out_of_memory();
    if (!ir_fuse_body(op) || ir_fuse_is_inside(op))
        return NULL;
    tssa_status *status = gir_build_fuse(op, op->parent->graph->allocator, &built, &why);
    if (!status && !why)
        good = gir_explain(op, &built, rates, &sizes, text);
    gir_fused_free(&built);
    return good ? status : status_out_of_memory();
}

static tssa_status *remark_kernel(void *user, struct ir_op *op)
{
    const struct kernel_remarks *remarks = user;
    struct text text;
    text_init(&text, op->parent->graph->allocator);
    tssa_status *status = explain(op, remarks->rates, &text);
    if (!status && text.size)
        remark_of(remarks->options, "gir", TSSA_REMARK_APPLIED, op, text_string(&text));
    text_free(&text);
    return status;
}

tssa_status *session_remark_kernels(const struct ir_graph *graph, struct device_context *device,
                                    const tssa_session_options *options)
{
    struct gir_rates rates;
    struct kernel_remarks remarks = {.rates = &rates, .options = options};
    if (!options->remark || !device->device->rates)
        return NULL;
    device->device->rates(device, &rates);
    return ir_block_walk(graph->body, remark_kernel, &remarks);
}
