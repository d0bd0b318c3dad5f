/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of every form has the interpreter's bits: random kernels are compiled in those that
 * gir/form.h would not choose for them, rows along and across lanes, of several lanes at a time.
 * Without a generator of code that is skipped.
 */
/* ctest-labels: random */
/* ctest-timeout: 600 */
/* ctest-isa: v3 v2 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/isa.h"
#include "common/kernel_check.h"
#include "common/random_programs.h"
#include "device/cpu/compile.h"
#include "device/devices.h"
#include "gir/form.h"

#define MAX_KERNELS 64 /* of one program */

/* ---- A device that compiles in the form that is asked for -------------------------------------
 */

static struct {
    uint32_t form, lanes;
    struct gir_kernel *kernels[MAX_KERNELS];
    uint32_t n;
} asked;

static void forget(void)
{
    while (asked.n > 0)
        free(asked.kernels[--asked.n]);
}

static struct gir_kernel *in_form(const struct gir_kernel *kernel)
{
    struct gir_kernel *made = malloc(kernel->size);
    assert_non_null(made);
    memcpy(made, kernel, kernel->size);
    made->form = kernel->whole_rows ? asked.form : 0;
    made->lanes = asked.lanes;
    assert_null(gir_check(made, made->size));
    return made;
}

static tssa_status *compile(struct device_context *context, struct device_compiling *compiling)
{
    for (uint32_t i = 0; i < compiling->n; i++) {
        assert_true(asked.n < MAX_KERNELS);
        asked.kernels[asked.n] = in_form(compiling->kernels[i].kernel);
        compiling->kernels[i].kernel = asked.kernels[asked.n++];
    }
    return cpu_compile(context, compiling);
}

static struct device_context *forming_context(void)
{
    static struct device device;
    static struct device_context context;
    if (!context.device) {
        device = *device_find(NULL);
        device.compile = compile;
        device_context_open(&context, &device, &allocator_default, NULL);
    }
    return &context;
}

/* ---- Programs -------------------------------------------------------------------------------- */

static const uint32_t forms[] = {GIR_FORM_ROWS_ALONG, GIR_FORM_ROWS_ACROSS},
                      lanes[] = {4, 8, 16, 32};
#define N_FORMS (sizeof forms / sizeof *forms)
#define N_LANES (sizeof lanes / sizeof *lanes)

/* Each program in another form than the one before. */
static void check_kind(enum kernel_kind kind, unsigned long usual)
{
    uint64_t begin = 0;
    const bool one = programs_seed(&begin);
    const unsigned long n = one ? 1 : programs_count(isa_level() < ISA_V3 ? usual / 3 : usual);
    unsigned long n_compiled = 0;
    for (uint64_t seed = begin; seed < begin + n; seed++) {
        asked.form = forms[seed % N_FORMS];
        asked.lanes = lanes[seed / N_FORMS % N_LANES];
        n_compiled += kernel_check(kind, seed, forming_context());
        forget();
    }
    print_message("%lu of %lu fuse ops were compiled\n", n_compiled, n);
}

static void rows(void **state)
{
    (void)state;
    check_kind(KERNEL_ROWS, 120);
}

static void planes(void **state)
{
    (void)state;
    check_kind(KERNEL_PLANES, 60);
}

static void columns(void **state)
{
    (void)state;
    check_kind(KERNEL_COLUMNS, 60);
}

static void loops(void **state)
{
    (void)state;
    check_kind(KERNEL_LOOPS, 30);
}

static void elements(void **state)
{
    (void)state;
    check_kind(KERNEL_FUSE, 60);
}

/* ---- What may be asked for ------------------------------------------------------------------- */

static const struct {
    uint32_t form, lanes;
    uint32_t whole_rows;
    bool is_there;
} wanted[] = {
    {0, 0, 0, true},
    {0, 16, 0, true},
    {GIR_FORM_ROWS_ALONG, 32, 1, true},
    {GIR_FORM_ROWS_ACROSS, 0, 1, true},
    {GIR_FORM_ROWS_ACROSS, 0, 0, false}, /* of no rows */
    {GIR_FORM_COLUMNS, 0, 1, false},
    {0, 1, 1, false},
    {0, 24, 1, false},
    {0, 64, 1, false},
};

static void what_is_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const struct gir_kernel kernel = {.magic = GIR_MAGIC,
                                          .size = sizeof kernel,
                                          .whole_rows = wanted[i].whole_rows,
                                          .form = wanted[i].form,
                                          .lanes = wanted[i].lanes};
        tssa_status *status = gir_check(&kernel, sizeof kernel);
        assert_true(!status == wanted[i].is_there);
        tssa_status_free(status);
        if (wanted[i].is_there && wanted[i].lanes)
            assert_int_equal(gir_lanes_of(&kernel, 16), wanted[i].lanes);
    }
}

static int leave(void **state)
{
    (void)state;
    device_context_close(forming_context());
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_there), cmocka_unit_test(rows),
                                       cmocka_unit_test(planes),        cmocka_unit_test(columns),
                                       cmocka_unit_test(loops),         cmocka_unit_test(elements)};
    return cmocka_run_group_tests(tests, NULL, leave);
}
