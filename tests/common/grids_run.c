/* SPDX-License-Identifier: Apache-2.0 */
#include "common/grids_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/fake_cuda.h"
#include "common/no_error.h"
#include "common/same_value.h"
#include "common/test_card.h"
#include "common/test_device.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

static void connect_or_skip(struct device_context *context, const char *device)
{
    device_context_open(context, device_find(device), &allocator_default, NULL);
    context->host = test_device();
    tssa_status *status = device_context_connect(context);
    if (tssa_status_code(status) == TSSA_UNSUPPORTED) {
        print_message("%s\n", tssa_status_message(status));
        tssa_status_free(status);
        device_context_close(context);
        skip();
    }
    no_error(status);
}

void grids_run_open(struct grids_run *run, const char *device, const char *text)
{
    memset(run, 0, sizeof *run);
    connect_or_skip(&run->device, device);
    no_error(ir_parse(&allocator_default, text, strlen(text), &run->graph));
    no_error(ir_infer_graph(run->graph));
    for (const struct ir_op *op = run->graph->body->first; op; op = op->next)
        if (!ir_op_is(op, IR_OP_Constant) && !ir_op_is(op, IR_OP_return) &&
            !run->device.device->find_kernel(op))
            fail_msg("the device has no kernel of %s", op->info->name);
    no_error(plan_create(run->graph, &run->device, &run->on_device));
    no_error(plan_create(run->graph, test_device(), &run->on_host));
}

static void release(struct grids_run *run)
{
    for (int i = 0; i < GRIDS_RUN_MAX; i++) {
        value_release(&run->made[i]);
        value_release(&run->wanted[i]);
    }
}

void grids_run_close(struct grids_run *run)
{
    release(run);
    plan_free(run->on_device);
    plan_free(run->on_host);
    ir_graph_free(run->graph);
    device_context_close(&run->device);
}

static tssa_status *execute(const struct plan *plan, const struct value *const *inputs,
                            struct value *outputs, struct device_counts *counts)
{
    struct run *run;
    memset(outputs, 0, GRIDS_RUN_MAX * sizeof *outputs);
    TRY(run_create(plan, &allocator_default, NULL, false, &run));
    tssa_status *status = run_execute(run, inputs, outputs);
    *counts = run->counts;
    run_free(run);
    return status;
}

tssa_status *grids_run_try(struct grids_run *run, const struct value *const *inputs)
{
    release(run);
    return execute(run->on_device, inputs, run->made, &run->counts);
}

tssa_status *grids_run_on_host(struct grids_run *run, const struct value *const *inputs)
{
    struct device_counts none;
    release(run);
    return execute(run->on_host, inputs, run->wanted, &none);
}

bool grids_run_go(struct grids_run *run, const struct value *const *inputs)
{
    release(run);
    struct device_counts none;
    tssa_status *wanted = execute(run->on_host, inputs, run->wanted, &none),
                *made = execute(run->on_device, inputs, run->made, &run->counts);
    const bool good = !wanted;
    if (good)
        no_error(made);
    else
        assert_string_equal(tssa_status_message(made), tssa_status_message(wanted));
    tssa_status_free(made);
    tssa_status_free(wanted);
    return good;
}

void grids_run_same(struct grids_run *run, const struct value *const *inputs)
{
    if (!grids_run_go(run, inputs))
        return;
    for (int i = 0; i < GRIDS_RUN_MAX; i++)
        if (!same_value(&run->made[i], &run->wanted[i]))
            fail_msg("output %d is not the CPU's", i);
}

void grids_expect_launches(const struct grids_run *run, const char *device, uint64_t most)
{
    assert_true(strcmp(device, "cuda") != 0 || run->counts.launches <= most);
}

int grids_run_on_each(int (*run_on)(const char *device))
{
    static const char *const orders[] = {"0", "1", "2"};
    const int end = test_card() ? GRIDS_FIRST_ORDER + 1 : 3;
    int failed = run_on("opencl");
    fake_cuda_use(true);
    for (int i = GRIDS_FIRST_ORDER; i < end; i++) {
        setenv("FAKE_CUDA_ORDER", orders[i], 1);
        failed += run_on("cuda");
    }
    return failed;
}
